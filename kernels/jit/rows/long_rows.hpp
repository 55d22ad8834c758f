// SPDX-License-Identifier: Apache-2.0
// LongRows: rows that registers cannot hold, one after the other. All sweeps over a row are loops of one piece of code:
// the loads of a row begin while the stores of the one before it are under way, and nothing is called in between. Sums
// are those of tiles.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "kernels/jit/rows/whole_rows.hpp"

namespace partita::jit {

class LongRows : public WholeRows {
 public:
  /// Takes down more than other rows can do.
  class Writer : public RowWriter {
   public:
    /// A sweep over the first `count` elements.
    virtual void first_elements(const Sweep& sweep, int64_t count) = 0;
    /// What `write` writes, of rows whose number is not 0 alone.
    virtual void where(const RowView& number, const std::function<void()>& write) = 0;
  };
  using Write = std::function<void(Writer&)>;

  /// Whether a row stays in the nearest cache, and results in some cache or `where` says that this does not matter: in
  /// tiles stores drain while others are computed, which not all processors need.
  static bool fit(const RowPlan& plan, LongRowsWhere where);

  LongRows(const RowPlan& plan, size_t tile_bytes, const Write& write);
  ~LongRows() override;

  using WholeRows::run;
  void run(const RunArgs& args, std::byte* scratch, int64_t begin, int64_t end) const override;

 private:
  class Passes;
  class Code;
  struct Variant {
    std::vector<RowView> views;    ///< of all operands that have an address
    std::vector<size_t> streamed;  ///< which of them are results that are stored past the caches
    std::unique_ptr<const Code> code;
  };
  /// Without code where `streaming` makes no difference.
  Variant variant(const Write& write, bool streaming) const;
  static bool run(const Variant& variant, const Tile& tile);

  Variant plain_, streaming_;  ///< the latter only where results leave the caches
};

}  // namespace partita::jit
