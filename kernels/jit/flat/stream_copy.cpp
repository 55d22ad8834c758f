// SPDX-License-Identifier: Apache-2.0
// Non-temporal stores of whole lines, common ones of what is left at both ends.
#include "kernels/jit/flat/stream_copy.hpp"

#include <emmintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace partita::jit {

void stream_copy(std::byte* to, const std::byte* from, size_t bytes, const std::byte* next) {
  constexpr size_t kLine = 64, kVector = sizeof(__m128i);
  const size_t head = std::min(bytes, (kLine - reinterpret_cast<uintptr_t>(to) % kLine) % kLine);
  std::memcpy(to, from, head);
  const size_t end = head + (bytes - head) / kLine * kLine;
  for (size_t line = head; line < end; line += kLine) {
    if (next != nullptr) _mm_prefetch(reinterpret_cast<const char*>(next + line), _MM_HINT_T1);
    for (size_t at = line; at < line + kLine; at += kVector)
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + at),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at)));
  }
  std::memcpy(to + end, from + end, bytes - end);
}

}  // namespace partita::jit
