// SPDX-License-Identifier: Apache-2.0
// LongRows: rows that registers cannot hold, one after the other. All sweeps over a row are loops of one piece of code:
// the loads of a row begin while the stores of the one before it are under way, and nothing is called in between. Sums
// are those of tiles.
#pragma once

#include <memory>
#include <vector>

#include "kernels/jit/rows/whole_rows.hpp"

namespace partita::jit {

class LongRows : public WholeRows {
 public:
  /// Whether a row stays in the nearest cache, and results in some cache; what leaves them does better in tiles, whose
  /// stores drain while others are computed.
  static bool fit(const RowPlan& plan);

  LongRows(const RowPlan& plan, size_t tile_bytes, const WriteRow& write);
  ~LongRows() override;

  using WholeRows::run;
  void run(const RunArgs& args, std::byte* scratch, int64_t begin, int64_t end) const override;

 private:
  class Writer;
  class Code;

  std::vector<RowView> views_;  ///< of all operands that have an address
  std::unique_ptr<const Code> code_;
};

}  // namespace partita::jit
