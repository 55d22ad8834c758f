// SPDX-License-Identifier: Apache-2.0
// A resampling as planes of z, y, x and channels that lie side by side, for both layouts and both directions.
#pragma once

#include "kernels/jit/flat/row_kernel.hpp"
#include "kernels/jit/resample/axes.hpp"
#include "kernels/problem.hpp"
#include "src/base/threads.hpp"

namespace partita::jit {

/// Channel-last: a plane is an image. Channel-first: it is one channel of an image, without channels of its own; with
/// one spatial axis the channels take the place of the missing y.
struct ResampleWalk {
  bool channel_last = false;
  int joined = 0;  ///< channel-first: so many axes before x are joined with it (1: y, 2: z too); channels are y then
  int64_t outer = 1, inner = 1;  ///< planes
  int64_t channels = 1;
  AxisMap z, y, x;  ///< from the places read to the places made
};

/// A tensor in a walk: byte distances; `each` is the size of an element.
struct WalkedTensor {
  Dtype dtype = Dtype::undef;
  int64_t each = 0, offset = 0, outer = 0, inner = 0, z = 0, y = 0, x = 0, c = 0;

  const std::byte* at(const void* base, const ResampleWalk& walk, int64_t plane, int64_t iz, int64_t iy,
                      int64_t ix) const {
    return static_cast<const std::byte*>(base) + offset + plane / walk.inner * outer + plane % walk.inner * inner +
           iz * z + iy * y + ix * x;
  }
  /// 1: the elements of `extent` places along x and their channels follow each other; 0: they are one; -1: neither.
  int row_step(const ResampleWalk& walk, int64_t extent) const;
  /// The same for the channels of one place.
  int channel_step(const ResampleWalk& walk) const;
  /// Whether planes, rows and, if so asked, the places of a row begin at cache lines.
  bool at_cache_lines(bool places) const;
};

ResampleWalk resample_walk(const Problem& p, bool channel_last);
/// The same; channel-first, where a row of results would not fill a vector and a vector over several rows can be picked
/// from a few vectors of sources, with axes joined.
ResampleWalk joined_walk(const Problem& p, bool channel_last, Isa isa);
WalkedTensor walked(const TensorDesc& desc, const Problem& p, const ResampleWalk& walk);

/// Calls run(plane, z, y) for each row of results, channel-last, on all threads.
template <class F>
void each_result_row(const ResampleWalk& walk, F run) {
  const int64_t to_z = walk.z.to(), to_y = walk.y.to();
  parallel_for(walk.outer * to_z * to_y, walk.x.to() * walk.channels, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) run(row / to_y / to_z, row / to_y % to_z, row % to_y);
  });
}

/// Null where generated code can walk every operand in one of the layouts, then `channel_last` says which.
const char* refuse_resample_walk(const Problem& p, bool& channel_last);

}  // namespace partita::jit
