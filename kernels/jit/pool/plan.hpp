// SPDX-License-Identifier: Apache-2.0
// PoolPlan: what the walks over pooling gradients, and over maxima with indices, share: the problem with three spatial
// axes, operands by byte distances, and how rows of cells and of windows depend on each other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/jit/flat/row_kernel.hpp"
#include "kernels/jit/pool/windows.hpp"
#include "src/base/dtype.hpp"

namespace partita::jit {

/// Byte distances of a tensor along its axes; three spatial axes whatever the rank. A result with a `fold` is a slot of
/// PoolFolds: a number for each channel, or channel-first a vector.
struct PoolOperand {
  Dtype dtype = Dtype::undef;
  int64_t offset = 0, n = 0, c = 0, z = 0, y = 0, x = 0;
  Fold fold = Fold::none;

  /// Whether a vector of so many elements, `behind` bytes behind the first one of those that are read together, is the
  /// first one in its cache line, of a tensor that moves along x: then it is worth fetching what will be read there.
  bool begins_line(int64_t behind, int lanes) const {
    return x != 0 && jit::begins_line(behind, int64_t{lanes} * element_bytes(dtype));
  }
  /// Bytes from each plane over the last two axes to the next one, in the order of batch, channels, z, or inside an
  /// image alone; absent where that is not one number.
  std::optional<int64_t> planes_apart(const PoolGeometry& g, bool inside_image = false) const;
  const std::byte* at(const void* base, int64_t in, int64_t ic, int64_t iz, int64_t iy, int64_t ix) const {
    return static_cast<const std::byte*>(base) + offset + in * n + ic * c + iz * z + iy * y + ix * x;
  }
};

/// A row of windows over a row of cells: which rows of taps the cells are, and the weight of the windows along z and y.
struct RowCover {
  int64_t z, y;  ///< the windows' row
  int32_t tap;   ///< number of the row's first tap in row-major order
  float weight;
  friend bool operator==(const RowCover&, const RowCover&) = default;
};

/// Cells [cell, cell + cells) of a row with the windows that reach them and, for a maximum, the cells that these
/// windows read. Prepared rows of windows (of source cells) start with what `*_at` elements before the first one would
/// be: places outside the tensor hold zeros (the lowest value).
struct ColumnBlock {
  int64_t cell = 0, cells = 0;
  int64_t periods = 0;  ///< strides that the cells span, rounded up
  int64_t window = 0, windows = 0, window_at = 0;
  int64_t source = 0, sources = 0, source_at = 0;
};

/// What windows a gradient from indices is taken to have, for it knows none: along axes that they make shorter they are
/// `overlap` cells longer than their stride, and the first one starts `pad` cells before the source.
struct AssumedWindows {
  int64_t overlap = 0, pad = 0;
};

/// Types of floats that have the order of integers in as many bits, which kernels read as they are.
inline bool is_plain_float(Dtype dtype) { return dtype == Dtype::f32 || dtype == Dtype::bf16 || dtype == Dtype::f16; }

/// How many results are folded.
inline int folds_of(const std::vector<PoolOperand>& out) {
  return static_cast<int>(std::ranges::count_if(out, [](const PoolOperand& o) { return o.fold != Fold::none; }));
}

struct PoolPlan {
  explicit PoolPlan(const Problem& problem, const AssumedWindows& assumed = {});

  PoolGeometry g;
  bool channel_last, maximum;
  Expr front, back;
  std::vector<int> front_in, back_in;  ///< operands they load
  /// The operand over the windows that is worth fetching ahead: the gradient, or what the front expression reads in its
  /// place (then the gradient has no memory). -1: none moves along x.
  int ahead = -1;
  std::vector<PoolOperand> in, out;
  /// Gradients from indices: the operand that names winners. -1: they are found in in[0].
  int indices = -1;
  PoolIndex base;  ///< of indices
  /// Average: every window along x, or along z and y, has the same weight; `weight` is what they have in common.
  bool same_along_x = true, same_along_rows = true;
  float weight = 1;

  /// Gradients from indices: whether elements of all operands are neighbours along x or one for all, and distances of
  /// indices in a plane are numbers of 32 bits.
  bool fits_indices() const;

  /// Whether nothing is done with what the pooling gives but to store it.
  bool stores_alone() const;
  /// Whether there is one result, of floats of 16 bits: of two vectors a whole cache line can be made.
  bool has_one_narrow_result() const {
    return out.size() == 1 && out[0].fold == Fold::none && (out[0].dtype == Dtype::bf16 || out[0].dtype == Dtype::f16);
  }
  bool has_folds() const { return folds_of(out) > 0; }
  int64_t rows() const { return g.src[0] * g.src[1]; }  ///< of cells, in a plane
  /// Over the last two axes, which PoolOperand::planes_apart is about.
  int64_t planes() const { return g.batch * g.channels * g.src[0]; }
  /// Cells between a window's first and last one, both counted.
  int64_t span(int i) const { return (g.kernel[i] - 1) * g.dilations[i] + 1; }
  /// Windows along an axis that one cell of a period can see: the last and reach - 1 before it.
  int64_t reach(int i) const { return (span(i) - 1) / g.strides[i] + 1; }
  /// Cells of its period that lie before the first cell.
  int64_t lead() const { return g.pads_begin[2] % g.strides[2]; }
  /// Number of the tap that cell `cell` of a period (a stride's worth of cells from where a window starts) is of the
  /// window `back` periods before; -1: of none.
  int64_t tap_of(int i, int64_t cell, int64_t back) const;
  /// Whether each window along an axis has a tap inside the source.
  bool windows_have_cells(int i) const;
  int64_t tap_rows() const { return g.kernel[0] * g.kernel[1]; }

  /// Bytes, 64, 32 or 16, that all rows of the results are multiples of and start at multiples of; 0: there are none.
  /// `apart`: the same of every so many elements of a row.
  int streamed_piece(int64_t apart = 0) const;
  int streamed_piece(const PoolOperand& o, int64_t apart = 0) const;
  /// Channel-last: whether cells that are stored in turns, some vectors of channels at a time, make whole cache lines
  /// of no more than two stores.
  bool streams_cells(Isa isa) const;
  static bool streams_cells(Isa isa, const PoolOperand& o);

  std::vector<RowCover> row_covers(int64_t z, int64_t y) const;
  /// Blocks of `cells` cells (a multiple of the stride), the last one with what is left.
  std::vector<ColumnBlock> column_blocks(int64_t cells) const;
  /// For each window along x what averages multiply by, or for maxima the number of its first valid tap; behind them
  /// `more` entries of windows that do not exist.
  std::vector<float> window_weights() const;
  /// Average: what the sum of each column of windows is multiplied by; one number where all columns weigh the same.
  std::vector<float> column_weights() const { return same_along_x ? std::vector{weight} : window_weights(); }
  std::vector<int32_t> first_taps(int64_t more) const;
  /// Rows of cells that row (z, y) of windows reads, by number of the row of taps; -1 outside the source.
  std::vector<int64_t> tap_rows_of(int64_t z, int64_t y) const;
  /// Number of the first row of taps of windows (z, y) inside the source, as a tap number.
  int32_t first_tap_of(int64_t z, int64_t y) const;
};

std::vector<Dtype> types_of(const std::vector<PoolOperand>& operands);
/// Whether JoinedStores may write the rows of results, `rows` of `row` elements in a plane: these, and where a call
/// writes several planes those too, follow each other in all results, which have elements of one size and start at the
/// same place of a vector.
bool rows_follow(Isa isa, const std::vector<PoolOperand>& out, int64_t row, int64_t rows, bool planes);

PoolGeometry pool_plan_geometry(const Problem& problem, const AssumedWindows& assumed);

}  // namespace partita::jit
