// SPDX-License-Identifier: Apache-2.0
// Each thread walks its part of both buffers in pieces of some lines, read piece, written piece, in turns. What is
// written depends on what was read, so that the compiler keeps the reads.
#include "tests/bench/memory_limit.hpp"

#include <omp.h>

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
constexpr size_t kLinesOfPiece = 16;
constexpr size_t kMostEvicted = size_t{512} << 20;

size_t lines_in(size_t bytes) { return (bytes + kLine - 1) / kLine; }

/// One thread's part, in lines.
struct Part {
  const char* from;
  char* to;
  size_t read, written;
};

struct Piece {
  const char *from, *from_end;
  char *to, *to_end;
};

size_t pieces_of(const Part& part) { return std::max<size_t>(1, std::max(part.read, part.written) / kLinesOfPiece); }

Piece piece_of(const Part& part, size_t i, size_t pieces) {
  return {part.from + part.read * i / pieces * kLine, part.from + part.read * (i + 1) / pieces * kLine,
          part.to + part.written * i / pieces * kLine, part.to + part.written * (i + 1) / pieces * kLine};
}

#if defined(__x86_64__)
__attribute__((target("avx512f"))) void walk_avx512(const Part& part) {
  __m512i mixed = _mm512_setzero_si512();
  const size_t pieces = pieces_of(part);
  for (size_t i = 0; i < pieces; ++i) {
    const Piece piece = piece_of(part, i, pieces);
    for (const char* at = piece.from; at < piece.from_end; at += kLine)
      mixed = _mm512_xor_si512(mixed, _mm512_load_si512(at));
    for (char* at = piece.to; at < piece.to_end; at += kLine)
      _mm512_stream_si512(reinterpret_cast<__m512i*>(at), mixed);
  }
  asm volatile("" : : "v"(mixed));
  _mm_sfence();
}

__attribute__((target("avx2"))) void walk_avx2(const Part& part) {
  __m256i low = _mm256_setzero_si256(), high = low;
  const size_t pieces = pieces_of(part);
  for (size_t i = 0; i < pieces; ++i) {
    const Piece piece = piece_of(part, i, pieces);
    for (const char* at = piece.from; at < piece.from_end; at += kLine) {
      const __m256i* line = reinterpret_cast<const __m256i*>(at);
      low = _mm256_xor_si256(low, _mm256_load_si256(line));
      high = _mm256_xor_si256(high, _mm256_load_si256(line + 1));
    }
    for (char* at = piece.to; at < piece.to_end; at += kLine) {
      __m256i* line = reinterpret_cast<__m256i*>(at);
      _mm256_stream_si256(line, low);
      _mm256_stream_si256(line + 1, high);
    }
  }
  asm volatile("" : : "x"(low), "x"(high));
  _mm_sfence();
}
#endif

void walk_plain(const Part& part) {
  std::array<uint64_t, kLine / 8> mixed{}, line{};
  const size_t pieces = pieces_of(part);
  for (size_t i = 0; i < pieces; ++i) {
    const Piece piece = piece_of(part, i, pieces);
    for (const char* at = piece.from; at < piece.from_end; at += kLine) {
      std::memcpy(line.data(), at, kLine);
      for (size_t word = 0; word < line.size(); ++word) mixed[word] ^= line[word];
    }
    for (char* at = piece.to; at < piece.to_end; at += kLine) std::memcpy(at, mixed.data(), kLine);
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
    : from_(lines_in(read) * kLine), to_(lines_in(written) * kLine), threads_(threads) {
  // pages that were never written may all be one and the same
  std::memset(from_.data(), 1, from_.bytes());
  std::memset(to_.data(), 1, to_.bytes());
}

void MemoryLimit::run() const {
  const Walk walk = best_walk();
  const size_t read = from_.bytes() / kLine, written = to_.bytes() / kLine;
#pragma omp parallel num_threads(threads_)
  {
    const size_t me = static_cast<size_t>(omp_get_thread_num()), all = static_cast<size_t>(omp_get_num_threads());
    const size_t r = read * me / all, w = written * me / all;
    walk({static_cast<const char*>(from_.data()) + r * kLine, static_cast<char*>(to_.data()) + w * kLine,
          read * (me + 1) / all - r, written * (me + 1) / all - w});
  }
}

CacheEviction::CacheEviction(int threads) : walk_(std::min(2 * last_level_cache_bytes(), kMostEvicted), 0, threads) {}

}  // namespace partita::bench
