// SPDX-License-Identifier: Apache-2.0
// stream_copy: results that were put together in the caches, on their way to memory.
#pragma once

#include <cstddef>

namespace partita::jit {

/// Copies; whole cache lines go past the caches, so that they need not be read first. For results whose rows start
/// anywhere, where kernels cannot stream themselves.
/// The caller ends with end_streaming().
/// As many bytes at `next` are fetched into the second-level cache meanwhile; null: none.
void stream_copy(std::byte* to, const std::byte* from, size_t bytes, const std::byte* next = nullptr);

}  // namespace partita::jit
