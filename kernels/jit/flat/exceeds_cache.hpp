// SPDX-License-Identifier: Apache-2.0
// Which results are better stored past the caches, and the end of such stores.
#pragma once

#include <xmmintrin.h>

#include <algorithm>

#include "kernels/kernel.hpp"
#include "kernels/problem.hpp"
#include "src/base/cpu.hpp"
#include "src/base/dtype.hpp"
#include "src/base/round.hpp"
#include "src/base/shape.hpp"

namespace partita::jit {

/// Bytes of a tensor's elements, each counted once: what is folded, or broadcast, repeats along axes.
inline int64_t bytes_of_places(const TensorDesc& desc) {
  int64_t places = 1;
  for (int d = 0; d < desc.dims.size(); ++d)
    places *= desc.strides[d] != 0 ? desc.dims[d] : std::min<int64_t>(desc.dims[d], 1);
  return places * bits_of(desc.dtype) / 8;
}

/// Whether the results, or the memory that they are parts of, exceed their share of the last-level cache.
inline bool exceeds_cache(const Problem& problem) {
  int64_t bytes = 0;
  for (const TensorDesc& desc : problem.out) bytes += bytes_of_places(desc);
  return leaves_the_caches(std::max(bytes, problem.result_bytes));
}

/// Whether all results begin at cache lines, so that whole ones may go past the caches.
inline bool outputs_aligned(const RunArgs& args) { return std::ranges::all_of(args.out, is_at_cache_line); }

/// Makes what this thread stored past the caches visible to the others. Waits until memory has it, so kernels leave it
/// to those who call them: once at the end of a thread's share.
inline void end_streaming() { _mm_sfence(); }

}  // namespace partita::jit
