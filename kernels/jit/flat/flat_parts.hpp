// SPDX-License-Identifier: Apache-2.0
// Flat loops cut into blocks of rows: the walk that generated code of loops shares.
#pragma once

#include <optional>
#include <vector>

#include "kernels/jit/flat/flat_kernel.hpp"
#include "kernels/problem.hpp"
#include "src/base/dtype.hpp"

namespace partita::jit {

inline constexpr size_t kMaxLoopOperands = 160;

/// The address so many bytes on. It may be a number (ExprOp::uniform), so it is no arithmetic of pointers.
inline const std::byte* moved(const void* address, int64_t bytes) {
  return reinterpret_cast<const std::byte*>(reinterpret_cast<uintptr_t>(address) + static_cast<uintptr_t>(bytes));
}

/// Where rows of an operand begin, in bytes, so that a call of few rows finds them in few instructions.
struct RowPlaces {
  explicit RowPlaces(const TensorDesc& over_rows);
  /// Address of the first element of row `at`.
  const std::byte* row(const void* base, const Dims& at) const {
    int64_t bytes = offset;
    for (int d = 0; d < at.size(); ++d) bytes += at[d] * strides[d];
    return moved(base, bytes);
  }

  int64_t offset;
  Dims strides;
};

/// A block of rows of one length. Axes are those of the prepared loop; the innermost one counts rows here.
struct FlatPart {
  Dims rows;                                       ///< extents
  int64_t length = 0;                              ///< elements of a row
  int64_t start = 0;                               ///< first element along the innermost axis
  std::vector<TensorDesc> in, out;                 ///< over the rows; offset of the part's first element
  std::vector<std::optional<TensorDesc>> numbers;  ///< RowOperand::numbers of the inputs
  std::vector<bool> in_steps, out_steps;
  std::vector<RowPlaces> in_places, out_places;  ///< of `in` and `out`
  int64_t grouped = 1;                           ///< RowShape::group; then `rows` are groups

  /// The axis that a call walks where nothing speaks for another: the last one with more than one row.
  int last_axis() const;
  /// Operands as they are walked row by row along `axis`.
  RowShape shape(int axis) const;
  /// Where a call along the last axis would have few short rows, and so cost as much as they do: makes them one group
  /// of `shape`, which has them row by row, so that calls walk the axis before. False: left as they are.
  bool group(RowShape& shape, size_t operations);
  /// Of a row, or of a group.
  int64_t elements() const { return grouped * length; }
  /// Where rows are pieces of an input's cache lines and the axis along which they share lines is far from the one that
  /// calls walk: the two are walked one behind the other, so that a line is used up while it is in the caches. Not
  /// where the loop reads coordinates, which these are not any more.
  void read_lines_once();
  /// Whether the rows read each element of input `k` once.
  bool is_read_once(size_t k) const;
  /// Bytes of such inputs.
  int64_t bytes_read() const;
  /// Lets `shape` fetch from several pages in turns, where few tensors come from memory, little is computed and the
  /// processor does not do as well alone; where more is computed and it does, `shape` fetches nothing, and where rows
  /// are folded into one, from the one stream that they are.
  void fetch_in_turns(const Lanes& lanes, RowShape& shape) const;
  /// Lets `shape` fetch nothing where the processor reads streams at full speed alone, and else no rows that are read
  /// again and again: for what is mostly in the caches, where fetching takes the time of loads.
  void fetch_in_caches(RowShape& shape) const;
  /// Once `in` and `out` are known, or have changed.
  void find_places();

 private:
  void move_axis(int from, int to);
};

/// Of an input whose rows of `length` elements lie apart, so that the processor does not fetch what comes: about so
/// many bytes of the next rows as are read meanwhile. None where there are no rows to fetch, or out of reach.
Fetching later_rows(const RowOperand& o, int64_t length);

/// Axis d of the result is axis order[d] of the loop.
Problem with_axes(const Problem& loop, const Dims& order);
/// The loop as generated code wants it: axes in the order of its memory, joined, at least one.
Problem prepared(const Problem& loop);
/// Whether elements that follow each other along `axis` may be parts of one cache line, though not the same element.
bool shares_lines(const TensorDesc& desc, int axis);
/// A prepared loop that copies smaller elements: as one that copies words of 32 bits, where rows consist of them, so
/// that nothing is converted there and back.
Problem in_words(Problem prepared);
/// The prepared loop in rows of at most 2048 elements, so that threads can share a long axis, or 8192 (4096 where rows
/// become numbers) where there are other axes to share; a shorter rest is a part of its own.
std::vector<FlatPart> parts_of(const Problem& prepared);

/// Null where rows of every operand can be walked, otherwise the reason.
const char* refuse_rows(const Problem& prepared);

/// Coordinates of the first element of row `at`, for index operations.
void place_of(const FlatPart& part, const Dims& at, int32_t* place);

}  // namespace partita::jit
