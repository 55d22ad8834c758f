// SPDX-License-Identifier: Apache-2.0
// PicksView: planes of rows of results, as PicksKernel makes them.
#pragma once

#include <optional>
#include <vector>

#include "kernels/jit/taps/picks_kernel.hpp"
#include "kernels/jit/taps/planes.hpp"

namespace partita::jit {

struct PicksView {
  PlaneWalk walk;      ///< its rows are turns
  int64_t places = 0;  ///< of a source's row
  int source_port = 0;
  WalkedTensor source;
  std::vector<int> in_ports;  ///< of what the back expression reads
  std::vector<WalkedTensor> in = {}, out = {};
  std::vector<PickedRow> rows = {};  ///< of a plane, turn by turn
  size_t row_taps = 1;               ///< source rows that each takes
  bool rows_weighted = false;        ///< some of them with a share that is not 1
  int64_t together = 1;              ///< rows of a turn

  int64_t planes() const { return walk.outer * walk.inner; }
  /// Of turn `turn` of a plane.
  const PickedRow* rows_of(int64_t z, int64_t turn) const {
    return &rows[static_cast<size_t>((z * walk.y.to() + turn) * together)];
  }
};

/// `walk` says what each result takes; a turn is a row. Nothing where a row takes no row, or too many, or rows are too
/// far from each other, or elements of rows do not follow each other.
std::optional<PicksView> picks_view(const Problem& p, const PlaneWalk& walk);

/// The same in turns of several rows, in two parts: turns make whole cache lines, and planes are some of those of
/// `view` until a turn ends with one; what planes are left over make the second part, if there are any. Nothing where
/// rows fill a vector, or do not follow each other from plane to plane, or there are not planes enough.
std::vector<PicksView> in_turns_of_rows(const PicksView& view);

/// Whether some share is not 1, or becomes less where taps are split.
bool is_weighted(const AxisMap& map);

}  // namespace partita::jit
