// SPDX-License-Identifier: Apache-2.0
// Taps: what a convolution's windows see through one tap, and what one tap gives back, read in rows of places.
#pragma once

#include "kernels/ref/view.hpp"
#include "kernels/ref/windows.hpp"

namespace partita::ref {

/// The spatial part of a convolution: windows at the places of the narrow side slide over the wide side.
struct Sliding {
  WindowShape shape;
  Dims wide, narrow;
};

/// For windows [first, first + n): the element of the wide side under `tap`, 0 in the padding. `at` is the position of
/// the image's and channel's first element in `wide`, a channel-first view.
void read_under_tap(const Sliding& sliding, const View& wide, int64_t at, const Dims& tap, int64_t first, int64_t n,
                    float* to);

/// For wide places [first, first + n): the element of the narrow side whose window sees the place through `tap`, 0
/// where there is none.
void read_through_tap(const Sliding& sliding, const View& narrow, int64_t at, const Dims& tap, int64_t first, int64_t n,
                      float* to);

}  // namespace partita::ref
