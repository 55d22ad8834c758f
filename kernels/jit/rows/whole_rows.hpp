// SPDX-License-Identifier: Apache-2.0
// WholeRows: operators over rows without tiles: each row, or some at once, is computed from end to end by one piece of
// code. Short rows stay in registers (short_rows.hpp), longer ones in the nearest cache (long_rows.hpp). Where lanes
// have the results, a vector of lanes is computed from end to end (short_columns.hpp).
#pragma once

#include <functional>
#include <memory>

#include "kernels/jit/rows/rows.hpp"

namespace partita::jit {

/// Takes down what is done to rows, in this order. A place in a tile's scratch memory stands for the values that go
/// there.
class RowWriter {
 public:
  virtual ~RowWriter() = default;
  /// The rows' numbers, before elements are folded into them: `value`, or what the tensor has for the rows.
  virtual void begin(const RowView& numbers, float value) = 0;
  virtual void read(const RowView& tensor, const RowView& numbers) = 0;
  virtual void elements(const Sweep& sweep) = 0;
  /// A sweep over a tile's numbers (`as_row`).
  virtual void numbers(const Sweep& sweep) = 0;
  virtual void write(const RowView& numbers, const RowView& tensor) = 0;
};
using WriteRow = std::function<void(RowWriter&)>;

/// Where rows that registers cannot hold are whole: where results stay in the caches, or also past them on processors
/// where one stream at a time is as fast as memory, so that a row's loads and stores need not go together.
enum class LongRowsWhere : uint8_t { in_caches, in_streams_too };

class WholeRows {
 public:
  virtual ~WholeRows() = default;

  /// Of `parts` parts of the units that run at once.
  ThreadScratch scratch(int64_t parts) const { return {std::min(parts, units()), part_bytes_}; }
  /// What threads share: the rows of all tiles, or pieces of columns.
  virtual int64_t units() const;
  /// Units [begin, end) with a part's scratch memory.
  virtual void run(const RunArgs& args, std::byte* scratch, int64_t begin, int64_t end) const = 0;
  /// All of them, on all threads of the plan, with scratch(threads).
  Status run(const RunArgs& args) const;

 protected:
  WholeRows(const RowPlan& plan, size_t part_bytes) : plan_(plan), part_bytes_(static_cast<int64_t>(part_bytes)) {}
  /// work(tile) for rows that lie at one place along the outer axes.
  template <class F>
  void each_tile(const RunArgs& args, std::byte* scratch, int64_t begin, int64_t end, F work) const {
    while (begin < end) {
      Tile tile = tile_of_row(args, scratch, begin);
      tile.rows = std::min(end - begin, plan_.space.rows - tile.row);
      begin += tile.rows;
      work(tile);
    }
  }

  const RowPlan& plan_;

 private:
  virtual int64_t elements_of_unit() const { return plan_.space.lanes; }
  Tile tile_of_row(const RunArgs& args, std::byte* scratch, int64_t row) const;

  int64_t part_bytes_;
};

/// `write` says what is done to rows, whose tiles need `tile_bytes` of scratch memory. Null where tiles are better:
/// where rows have more than a block of lanes, or leave the caches (unless `long_rows` says otherwise) and have more
/// than `most_short` vectors, or are many and their lanes have the results.
std::unique_ptr<const WholeRows> whole_rows(const RowPlan& plan, size_t tile_bytes, int64_t most_short,
                                            const WriteRow& write, LongRowsWhere long_rows = LongRowsWhere::in_caches);

/// Scratch memory of rows that are whole, or else swept in tiles that need `tile_bytes` each.
inline size_t rows_scratch_bytes(const WholeRows* whole, const RowPlan& plan, size_t tile_bytes,
                                 const LastSweeps& sweeps) {
  return whole ? whole->scratch(plan.threads).bytes() : tiles_scratch(plan, sweeps.scratches() * tile_bytes).bytes();
}

/// All rows: whole, or each tile as each_tile does it.
template <class Before, class Between>
Status run_rows(const WholeRows* whole, const RowPlan& plan, const RunArgs& args, size_t tile_bytes,
                const LastSweeps& sweeps, Before before, Between between) {
  if (whole) return whole->run(args);
  each_tile(plan, args, tile_bytes, sweeps, before, between);
  return {};
}

}  // namespace partita::jit
