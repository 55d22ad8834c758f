// SPDX-License-Identifier: Apache-2.0
// Plan of a forward pooling: what is decided before code is generated.
//
// A row of the result is made in two steps. First the source rows that its windows cover along z and y are folded (sum
// or maximum) into one row of f32 in scratch memory; cells before and behind it stand for the padding and hold the
// fold's identity. Then the folded row is combined along x: channel-last, a window's cells are `channels` elements
// apart; channel-first, a tap of consecutive windows is every element or every second one of a stretch, and for longer
// strides the row is taken apart into its phases first. Rows are handled in tiles of some rows of one plane or all rows
// of some planes.
#pragma once

#include "kernels/jit/pool/view.hpp"
#include "kernels/kernel.hpp"

namespace partita::jit {

struct ForwardPlan {
  explicit ForwardPlan(const Problem& problem);

  ForwardPool p;
  int64_t cell = 1;                 ///< elements of a cell in scratch memory: the channels, or one
  int64_t places = 0;               ///< cells of a folded row with its padding
  int64_t first_place = 0;          ///< of the source's first cell
  int64_t row_floats = 0;           ///< places * cell
  bool apart = false;               ///< rows are taken apart into phases
  bool every_second = false;        ///< of consecutive windows, a tap's elements lie two apart
  int64_t combined_row_floats = 0;  ///< from what one row of a combination reads to the next row
  std::vector<int64_t> taps;        ///< floats from a row's beginning to each tap of its first window
  std::vector<int64_t> phases;

  /// What one call of the fold walks: rows of a plane, one row of several planes, the cells of a row, or the source
  /// rows themselves where one window lies over all of them.
  enum class FoldWalk : uint8_t { rows, planes, cells, sources };
  FoldWalk fold_walk = FoldWalk::rows;
  int64_t fold_length = 0;  ///< elements that a call folds in a row
  int64_t fold_rows = 8;    ///< source rows folded in one call

  int64_t source_elements = 0;
  int64_t planes = 1, rows = 1;  ///< of the result, for each batch item
  int64_t tile_planes = 1, tile_rows = 1, plane_blocks = 1, row_blocks = 1;
  int64_t units() const { return p.g.batch * plane_blocks * row_blocks; }

  std::vector<PoolGeometry::Taps> z_taps, y_taps;
  std::vector<int64_t> alike_until;  ///< y of the first row behind `y` whose windows have other taps
  int64_t source_rows(int64_t z, int64_t y) const;

  /// What a folded value is multiplied by or divided by (average), or compared with (maximum with windows without
  /// cells): one constant, or a number of its place along x and one of its row.
  enum class Numbers : uint8_t { none, constant, each };
  Numbers numbers = Numbers::none;
  float constant = 1;
  std::vector<float> x_numbers, row_numbers;

  bool rows_join = false;  ///< all rows of a tile lie evenly in the memory of `back`'s operands
  bool may_stream = false;

  int64_t folded_floats = 0, phase_floats = 0;  ///< scratch memory of a thread; one phase
  int64_t scratch_floats() const;

 private:
  void join_axes();
  void plan_row();
  void plan_tiles();
  void plan_scratch();
  void plan_numbers();
  bool rows_lie_evenly(const PoolView& view) const;
};

/// Null where the plan can be carried out, else why not.
const char* refuse_forward_plan(const Problem& problem);

}  // namespace partita::jit
