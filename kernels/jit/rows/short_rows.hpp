// SPDX-License-Identifier: Apache-2.0
// ShortRows: some rows at once are computed from end to end in registers: elements are read and converted once, and
// nothing waits for memory in between.
#pragma once

#include <memory>
#include <vector>

#include "kernels/jit/rows/row_code.hpp"
#include "kernels/jit/rows/whole_rows.hpp"

namespace partita::jit {

class ShortRows : public WholeRows {
 public:
  /// Whether rows have so few vectors. Rows and operator alone may say how many those are, not what is fused to the
  /// operator, so that fusing changes no sum - but for dozens of operators, whose code would be too long.
  static bool fit(const RowPlan& plan, int64_t most_vectors);

  ShortRows(const RowPlan& plan, const WriteRow& write);
  using WholeRows::run;

  void run(const RunArgs& args, std::byte* scratch, int64_t begin, int64_t end) const override;

 private:
  static constexpr size_t kMostOperands = 1024;
  struct Piece {
    int64_t rows;                 ///< at once
    std::vector<size_t> results;  ///< of out; streamed results begin at cache lines, or are joined
    bool streams, joins;
    RowCodeTensors in, out;
    std::shared_ptr<const FlatKernel> kernel;
  };
  void add(const RowCode& code, int rows, bool streams);
  bool run(const Piece& piece, const Tile& tile) const;
  bool run_joined(const Piece& piece, RowCall call, const Tile& tile) const;

  std::vector<Piece> pieces_;  ///< the fastest first; the last one takes all rows
};

}  // namespace partita::jit
