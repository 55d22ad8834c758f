// SPDX-License-Identifier: Apache-2.0
// Non-temporal stores of whole lines, common ones of what is left at both ends.
#include "kernels/jit/flat/stream_copy.hpp"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "src/base/cpu.hpp"
#include "src/base/round.hpp"

namespace partita::jit {
namespace {

constexpr size_t kLine = kCacheLine;

__attribute__((target("avx512f"))) void copy_avx512(std::byte* to, const std::byte* from, size_t lines,
                                                    const std::byte* next) {
  for (size_t at = 0; at < lines * kLine; at += kLine) {
    if (next != nullptr) _mm_prefetch(reinterpret_cast<const char*>(next + at), _MM_HINT_T1);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + at), _mm512_loadu_si512(from + at));
  }
}

void copy_any(std::byte* to, const std::byte* from, size_t lines, const std::byte* next) {
  constexpr size_t kVector = sizeof(__m128i);
  for (size_t at = 0; at < lines * kLine; at += kVector) {
    if (next != nullptr && at % kLine == 0) _mm_prefetch(reinterpret_cast<const char*>(next + at), _MM_HINT_T1);
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + at), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at)));
  }
}

__attribute__((target("avx512f"))) void copy_cached_avx512(std::byte* to, const std::byte* from, size_t vectors) {
  for (size_t at = 0; at < vectors * kLine; at += kLine) _mm512_storeu_si512(to + at, _mm512_loadu_si512(from + at));
}

__attribute__((target("avx"))) void copy_cached_any(std::byte* to, const std::byte* from, size_t vectors) {
  for (size_t at = 0; at < vectors * kLine; at += sizeof(__m256i))
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + at),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + at)));
}

bool is_wide() {
  static const bool wide = machine_isa() == Isa::avx512;
  return wide;
}

/// A line is one store where there are vectors that large: fewer stores wait for memory, and what follows them less.
void copy_lines(std::byte* to, const std::byte* from, size_t lines, const std::byte* next = nullptr) {
  is_wide() ? copy_avx512(to, from, lines, next) : copy_any(to, from, lines, next);
}

}  // namespace

void stream_copy(std::byte* to, const std::byte* from, size_t bytes, const std::byte* next) {
  if (bytes == 0) return;  // what is empty may have no address
  const size_t head = std::min(bytes, (kLine - reinterpret_cast<uintptr_t>(to) % kLine) % kLine);
  std::memcpy(to, from, head);
  const size_t lines = (bytes - head) / kLine, end = head + lines * kLine;
  copy_lines(to + head, from + head, lines, next == nullptr ? nullptr : next + head);
  std::memcpy(to + end, from + end, bytes - end);
}

void cached_copy(std::byte* to, const std::byte* from, size_t bytes) {
  if (bytes == 0) return;
  if (bytes < kLine) return static_cast<void>(std::memcpy(to, from, bytes));
  const size_t vectors = (bytes - 1) / kLine, last = bytes - kLine;
  is_wide() ? copy_cached_avx512(to, from, vectors) : copy_cached_any(to, from, vectors);
  std::memcpy(to + last, from + last, kLine);
}

StagedLines::StagedLines(std::byte* scratch, size_t most) : buffers_{scratch, scratch + bytes_of_one(most)} {}

std::byte* StagedLines::place(const std::byte* to) {
  if (staged_.to != nullptr && staged_.to + staged_.end != to) finish();
  buffer_ = 1 - buffer_;
  return buffers_[buffer_] + reinterpret_cast<uintptr_t>(to) % kLine;
}

/// What begins with a line that is known in part has to wait.
StagedLines::Lines StagedLines::lines() const {
  if (staged_.known_from > 0) return {nullptr, nullptr, 0};
  return {buffers_[1 - buffer_], staged_.to, static_cast<int64_t>(staged_.end / kLine)};
}

void StagedLines::written(std::byte* to, size_t bytes) {
  const size_t first = reinterpret_cast<uintptr_t>(to) % kLine;
  const size_t known_from = staged_.to == nullptr ? first : send();
  staged_ = {to - first, first + bytes, known_from};
}

void StagedLines::finish() {
  if (staged_.to == nullptr) return;
  std::byte* const end = staged_.to + staged_.end / kLine * kLine;
  const size_t rest = staged_.end % kLine;
  buffer_ = 1 - buffer_;
  const size_t known_from = send();
  if (rest > known_from) std::memcpy(end + known_from, buffers_[buffer_] + known_from, rest - known_from);
  staged_ = {};
}

/// Whole lines leave; the rest becomes the beginning of the other buffer. Returns from where on that line is known.
size_t StagedLines::send() {
  const std::byte* const from = buffers_[1 - buffer_];
  const size_t lines = staged_.end / kLine, rest = staged_.end % kLine;
  size_t known_from = staged_.known_from, sent = staged_.sent;
  if (lines > 0 && known_from > 0) {
    std::memcpy(staged_.to + known_from, from + known_from, kLine - known_from);
    known_from = 0, sent = 1;
  }
  copy_lines(staged_.to + sent * kLine, from + sent * kLine, lines - sent);
  if (rest > known_from)
    std::memcpy(buffers_[buffer_] + known_from, from + lines * kLine + known_from, rest - known_from);
  return known_from;
}

}  // namespace partita::jit
