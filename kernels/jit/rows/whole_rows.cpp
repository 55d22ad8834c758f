// SPDX-License-Identifier: Apache-2.0
// Choice of code for whole rows, and their sharing out.
#include "kernels/jit/rows/whole_rows.hpp"

#include "kernels/jit/rows/long_rows.hpp"
#include "kernels/jit/rows/short_columns.hpp"
#include "kernels/jit/rows/short_rows.hpp"
#include "src/base/shape.hpp"

namespace partita::jit {
namespace {

constexpr int64_t kOperationsAnElement = 3;

}  // namespace

std::unique_ptr<const WholeRows> whole_rows(const RowPlan& plan, size_t tile_bytes, int64_t most_short,
                                            const WriteRow& write, LongRowsWhere long_rows) {
  if (ShortRows::fit(plan, most_short)) return std::make_unique<const ShortRows>(plan, write);
  if (ShortColumns::fit(plan)) return std::make_unique<const ShortColumns>(plan, write);
  if (LongRows::fit(plan, long_rows)) return std::make_unique<const LongRows>(plan, tile_bytes, write);
  return nullptr;
}

int64_t WholeRows::units() const { return elements(plan_.space.outer) * plan_.space.rows; }

Tile WholeRows::tile_of_row(const RunArgs& args, std::byte* scratch, int64_t row) const {
  Tile tile{.args = args, .scratch = scratch, .outer = coordinates(row / plan_.space.rows, plan_.space.outer)};
  tile.row = row % plan_.space.rows;
  return tile;
}

Status WholeRows::run(const RunArgs& args) const {
  const ThreadScratch parts = scratch(plan_.threads);
  parallel_for(
      units(), elements_of_unit() * kOperationsAnElement,
      [&](int64_t begin, int64_t end, int number) { run(args, parts.share(args.scratch, number), begin, end); },
      plan_.threads);
  return {};
}

}  // namespace partita::jit
