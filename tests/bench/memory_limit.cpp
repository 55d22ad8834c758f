// SPDX-License-Identifier: Apache-2.0
// Each thread reads its part as some streams side by side, because one stream alone leaves much of a core's bandwidth
// unused, and takes turns between pieces that are read and pieces that are written. What is written depends on what was
// read, so that the compiler keeps the reads, and every line is another one: some machines write lines of zeros at
// twice the speed of any other.
#include "tests/bench/memory_limit.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "src/base/cpu.hpp"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace partita::bench {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kStreams = 4;
constexpr size_t kLinesOfPiece = 4;            // of each stream
constexpr size_t kReadAhead = 2048;            // the hardware's own prefetching is shorter than memory's latency
constexpr int64_t kStep = 0x1e3779b97f4a7c15;  // between a word of a line and that of the next one
constexpr size_t kMostEvicted = size_t{512} << 20;

size_t lines_in(size_t bytes) { return (bytes + kLine - 1) / kLine; }

/// One thread's part.
struct Part {
  const char* from;
  char* to;
  size_t stream;   ///< lines of each stream; stream k begins at line k * stream
  size_t written;  ///< lines

  size_t pieces() const { return std::max<size_t>(1, std::max(stream, written / kStreams) / kLinesOfPiece); }
  size_t read_until(size_t piece, size_t pieces) const { return stream * piece / pieces; }
  char* written_until(size_t piece, size_t pieces) const { return to + written * piece / pieces * kLine; }
  const char* line(size_t stream_number, size_t i) const { return from + (stream_number * stream + i) * kLine; }
};

#if defined(__x86_64__)
__attribute__((target("avx512f"))) void walk_avx512(const Part& part) {
  __m512i mixed = _mm512_setzero_si512();
  const __m512i step = _mm512_set1_epi64(kStep);
  size_t read = 0;
  char* written = part.to;
  for (size_t piece = 1, pieces = part.pieces(); piece <= pieces; ++piece) {
    for (const size_t end = part.read_until(piece, pieces); read < end; ++read)
      for (size_t k = 0; k < kStreams; ++k) {
        const char* line = part.line(k, read);
        __builtin_prefetch(line + kReadAhead);
        mixed = _mm512_xor_si512(mixed, _mm512_load_si512(line));
      }
    for (const char* end = part.written_until(piece, pieces); written < end; written += kLine) {
      mixed = _mm512_add_epi64(mixed, step);
      _mm512_stream_si512(reinterpret_cast<__m512i*>(written), mixed);
    }
  }
  asm volatile("" : : "v"(mixed));
  _mm_sfence();
}

__attribute__((target("avx2"))) void walk_avx2(const Part& part) {
  __m256i low = _mm256_setzero_si256(), high = low;
  const __m256i step = _mm256_set1_epi64x(kStep);
  size_t read = 0;
  char* written = part.to;
  for (size_t piece = 1, pieces = part.pieces(); piece <= pieces; ++piece) {
    for (const size_t end = part.read_until(piece, pieces); read < end; ++read)
      for (size_t k = 0; k < kStreams; ++k) {
        const char* line = part.line(k, read);
        __builtin_prefetch(line + kReadAhead);
        low = _mm256_xor_si256(low, _mm256_load_si256(reinterpret_cast<const __m256i*>(line)));
        high = _mm256_xor_si256(high, _mm256_load_si256(reinterpret_cast<const __m256i*>(line) + 1));
      }
    for (const char* end = part.written_until(piece, pieces); written < end; written += kLine) {
      low = _mm256_add_epi64(low, step);
      high = _mm256_add_epi64(high, step);
      _mm256_stream_si256(reinterpret_cast<__m256i*>(written), low);
      _mm256_stream_si256(reinterpret_cast<__m256i*>(written) + 1, high);
    }
  }
  asm volatile("" : : "x"(low), "x"(high));
  _mm_sfence();
}
#endif

void walk_plain(const Part& part) {
  std::array<uint64_t, kLine / 8> mixed{}, words{};
  size_t read = 0;
  char* written = part.to;
  for (size_t piece = 1, pieces = part.pieces(); piece <= pieces; ++piece) {
    for (const size_t end = part.read_until(piece, pieces); read < end; ++read)
      for (size_t k = 0; k < kStreams; ++k) {
        std::memcpy(words.data(), part.line(k, read), kLine);
        for (size_t word = 0; word < words.size(); ++word) mixed[word] ^= words[word];
      }
    for (const char* end = part.written_until(piece, pieces); written < end; written += kLine) {
      for (uint64_t& word : mixed) word += kStep;
      std::memcpy(written, mixed.data(), kLine);
    }
  }
  asm volatile("" : : "r"(mixed.data()) : "memory");
}

using Walk = void (*)(const Part&);

Walk best_walk() {
#if defined(__x86_64__)
  switch (machine_isa()) {
    case Isa::avx512: return walk_avx512;
    case Isa::avx2: return walk_avx2;
    case Isa::any: break;
  }
#endif
  return walk_plain;
}

}  // namespace

MemoryLimit::MemoryLimit(size_t read, size_t written, int threads)
    : threads_(threads),
      lines_of_stream_((lines_in(read) + kStreams * static_cast<size_t>(threads) - 1) /
                       (kStreams * static_cast<size_t>(threads))),
      lines_written_(lines_in(written)),
      from_(lines_of_stream_ * kStreams * static_cast<size_t>(threads) * kLine + kReadAhead),
      to_(lines_written_ * kLine) {
  // pages that were never written may all be one and the same
  std::memset(from_.data(), 1, from_.bytes());
  std::memset(to_.data(), 1, to_.bytes());
}

void MemoryLimit::run() const {
  const Walk walk = best_walk();
  const size_t parts = static_cast<size_t>(threads_);
#pragma omp parallel for num_threads(threads_) schedule(static, 1)
  for (size_t i = 0; i < parts; ++i) {
    const size_t first = lines_written_ * i / parts, end = lines_written_ * (i + 1) / parts;
    walk({static_cast<const char*>(from_.data()) + i * lines_of_stream_ * kStreams * kLine,
          static_cast<char*>(to_.data()) + first * kLine, lines_of_stream_, end - first});
  }
}

CacheEviction::CacheEviction(int threads) : walk_(std::min(2 * last_level_cache_bytes(), kMostEvicted), 0, threads) {}

}  // namespace partita::bench
