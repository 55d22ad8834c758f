// SPDX-License-Identifier: Apache-2.0
// WholeRows: operators over short rows without tiles. Some rows at once are computed from end to end in registers:
// elements are read and converted once, and nothing waits for memory in between.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/jit/rows/row_code.hpp"

namespace partita::jit {

class WholeRows {
 public:
  /// Whether rows have so few vectors. Rows and operator alone may say how many those are, not what is fused to the
  /// operator, so that fusing changes no sum - but for dozens of operators, whose code would be too long.
  static bool fit(const RowPlan& plan, int64_t most_vectors);

  /// `write` says what is done to rows.
  WholeRows(const RowPlan& plan, const std::function<void(RowCode&)>& write);

  /// Rows [begin, end) of all in the space.
  void run(const RunArgs& args, int64_t begin, int64_t end) const;
  /// All of them, on all threads.
  Status run(const RunArgs& args) const;

 private:
  static constexpr size_t kMostOperands = 1024;
  struct Piece {
    int64_t rows;                 ///< at once
    std::vector<size_t> results;  ///< of out; streamed results begin at cache lines, or are joined
    bool streams, joins;
    RowCodeSide in, out;
    std::shared_ptr<const FlatKernel> kernel;
  };
  void add(const std::function<void(RowCode&)>& write, int rows, bool streams);
  bool run(const Piece& piece, const Tile& tile) const;
  bool run_joined(const Piece& piece, RowCall call, const Tile& tile) const;

  const RowPlan& plan_;
  std::vector<Piece> pieces_;  ///< the fastest first; the last one takes all rows
};

/// Scratch memory of rows that are whole, or else swept in tiles that need `tile_bytes` each.
inline size_t rows_scratch_bytes(const std::optional<WholeRows>& whole, const RowPlan& plan, size_t tile_bytes,
                                 const LastSweeps& sweeps) {
  return whole ? 0 : tiles_scratch(plan, sweeps.scratches() * tile_bytes).bytes();
}

/// All rows: whole, or each tile as each_tile does it.
template <class Before, class Between>
Status run_rows(const std::optional<WholeRows>& whole, const RowPlan& plan, const RunArgs& args, size_t tile_bytes,
                const LastSweeps& sweeps, Before before, Between between) {
  if (whole) return whole->run(args);
  each_tile(plan, args, tile_bytes, sweeps, before, between);
  return {};
}

}  // namespace partita::jit
