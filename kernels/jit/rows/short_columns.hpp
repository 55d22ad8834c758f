// SPDX-License-Identifier: Apache-2.0
// ShortColumns: few rows whose lanes have the results (the softmax of an image's classes, channels first). A vector of
// lanes is read from all rows, computed from end to end in registers, and written to all rows.
#pragma once

#include <memory>
#include <vector>

#include "kernels/jit/rows/row_code.hpp"

namespace partita::jit {

class ShortColumns : public WholeRows {
 public:
  /// Whether rows are so few.
  static bool fit(const RowPlan& plan);

  ShortColumns(const RowPlan& plan, const WriteRow& write);

  int64_t units() const override;
  using WholeRows::run;
  void run(const RunArgs& args, std::byte* scratch, int64_t begin, int64_t end) const override;

 private:
  /// So many lanes of all rows.
  struct Piece {
    RowCodeTensors in, out;
    std::vector<size_t> results;                          ///< of out
    std::shared_ptr<const FlatKernel> kernel, streaming;  ///< the latter null where results stay in the caches
  };
  int64_t elements_of_unit() const override;
  Piece piece(const WriteRow& write, int64_t lanes) const;
  void run(const Piece& piece, const Tile& tile, int64_t pieces) const;

  std::vector<Piece> pieces_;  ///< a whole one, and what is left of the lanes, where there is
};

}  // namespace partita::jit
