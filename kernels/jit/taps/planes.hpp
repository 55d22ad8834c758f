// SPDX-License-Identifier: Apache-2.0
// Tensors as planes of z, y, x and channels that lie side by side, for both layouts, and the taps along their axes.
#pragma once

#include "kernels/jit/taps/axis_map.hpp"
#include "kernels/problem.hpp"
#include "src/base/dtype.hpp"

namespace partita::jit {

/// Channel-last: a plane is an image. Channel-first: it is one channel of an image, without channels of its own; with
/// one spatial axis the channels take the place of the missing y.
struct PlaneWalk {
  bool channel_last = false;  ///< so that x counts the places of a row, or their channels, too (with_channels_in_rows)
  int joined = 0;  ///< channel-first: so many axes before x are joined with it (1: y, 2: z too); channels are y then
  int64_t outer = 1, inner = 1;  ///< planes
  int64_t channels = 1;
  AxisMap z, y, x;  ///< from the places read to the places made
};

/// Channel-last: rows of places and channels as one axis x.
PlaneWalk with_channels_in_rows(PlaneWalk walk);

/// A tensor in a walk: byte distances; `each` is the size of an element.
struct WalkedTensor {
  Dtype dtype = Dtype::undef;
  int64_t each = 0, offset = 0, outer = 0, inner = 0, z = 0, y = 0, x = 0, c = 0;

  const std::byte* at(const void* base, const PlaneWalk& walk, int64_t plane, int64_t iz, int64_t iy,
                      int64_t ix) const {
    return static_cast<const std::byte*>(base) + offset + plane / walk.inner * outer + plane % walk.inner * inner +
           iz * z + iy * y + ix * x;
  }
  /// 1: the elements of `extent` places along x and their channels follow each other; 0: they are one; -1: neither.
  int row_step(const PlaneWalk& walk, int64_t extent) const;
  /// The same for the channels of one place.
  int channel_step(const PlaneWalk& walk) const;
  /// Whether planes, rows and, if so asked, the places of a row begin at cache lines.
  bool at_cache_lines(bool places) const;
};

/// Positions of z, y, x and the channels in a tensor's dims; -1 where there is no such axis.
struct PlaneAxes {
  int c, z, y, x;
};
PlaneAxes plane_axes(const Problem& p);

WalkedTensor walked(const TensorDesc& desc, const Problem& p, const PlaneWalk& walk);

}  // namespace partita::jit
