// SPDX-License-Identifier: Apache-2.0
// What both walks over pooling gradients do alike: sizes of parts, scratch memory, streaming.
#pragma once

#include <cstring>
#include <initializer_list>
#include <vector>

#include "kernels/jit/code/emitter.hpp"
#include "kernels/jit/flat/exceeds_cache.hpp"
#include "kernels/kernel.hpp"
#include "src/base/round.hpp"

namespace partita::jit {

/// Size of the parts when `total` is cut into equal parts of about `wanted`.
int64_t even_part(int64_t total, int64_t wanted);

/// Whether all distances are whole cache lines.
bool on_lines(std::initializer_list<int64_t> distances);

/// 0, 1, 2, .. below `count`.
std::vector<int32_t> numbers(int64_t count);

/// Fills `bytes` bytes with copies of a 32-bit word.
template <class Word>
void fill_words(std::byte* to, int64_t bytes, Word word) {
  static_assert(sizeof(Word) == 4);
#pragma omp simd
  for (int64_t k = 0; k < bytes / 4; ++k) std::memcpy(to + 4 * k, &word, 4);
}

}  // namespace partita::jit
