// SPDX-License-Identifier: Apache-2.0
// One axis of pooling, seen from both sides.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/pool_geometry.hpp"

namespace partita::jit {

/// A window that covers a cell: its number and which of its taps the cell is.
struct Cover {
  int64_t window;
  int64_t tap;
  friend bool operator==(const Cover&, const Cover&) = default;
};

/// Windows first, first + 1, .. (count of them) whose valid taps, and what an average counts, are the same.
struct WindowStretch {
  int64_t first = 0, count = 1;
  PoolGeometry::Taps taps{0, 0};
  int64_t counted = 0;
};

/// All windows that cover cell `cell` of axis `i`, in order.
std::vector<Cover> covers_of(const PoolGeometry& g, int i, int64_t cell);
/// What counts of a window of an average along axis `i`, inverted; 0 for a window without a valid cell.
float axis_weight(const PoolGeometry& g, int i, int64_t window);

std::vector<WindowStretch> window_stretches(const PoolGeometry& g, int i);

/// The same geometry with three spatial axes: axes of extent 1 are put in front.
PoolGeometry with_three_axes(PoolGeometry g);

}  // namespace partita::jit
