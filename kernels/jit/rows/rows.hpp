// SPDX-License-Identifier: Apache-2.0
// Rows: what operators share that reduce along axes and then map the elements. A space is cut into tiles; a tile is
// swept two or three times while it lies in the caches, each sweep being generated code.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/jit/flat/row_kernel.hpp"
#include "kernels/jit/flat/side_by_side.hpp"
#include "kernels/jit/rows/row_space.hpp"
#include "kernels/kernel.hpp"
#include "kernels/thread_scratch.hpp"
#include "src/base/threads.hpp"

namespace partita::jit {

/// The expressions around the skeleton, also where the problem has none: then they load the main input and store the
/// result. The outputs of `back` are numbered without gaps; `back_out[i]` is the i-th one's port.
struct Edges {
  Expr front, back;
  std::vector<int> front_in, back_in, back_out;
  bool has_front = false;
};
Edges edges_of(const Problem& problem);

/// How tiles are cut. Nothing here depends on the number of threads.
struct Tiling {
  int64_t tile_rows = 1;  ///< rows of a tile at the most
  int64_t block = 1;      ///< lanes of a block at the most: of one kernel call
  int64_t blocks = 1;     ///< blocks of lanes in a tile
};

/// A problem as rows: views of all operands the kernels touch.
struct RowPlan {
  Isa isa = Isa::any;
  int threads = 1;
  Edges edges;
  RowSpace space;
  Tiling tiling;
  std::vector<RowView> in, out;  ///< by port; only those over the space
  bool may_stream = false;       ///< the results exceed their share of the last-level cache

  /// Results of a tile: scratch for one number each has so many f32.
  int64_t results() const { return space.along_lanes ? tiling.tile_rows : tiling.block; }
};

/// Which ports lie over the space beside what the expressions load and store.
struct RowPorts {
  std::vector<int> in;           ///< read element by element
  std::vector<int> in_result;    ///< read once a result
  std::vector<int> out_result;   ///< written once a result
  bool front_is_result = false;  ///< what the front expression loads, too
  bool runs = false;             ///< slices must lie along lanes
  bool columns_once = false;     ///< where lanes are results, elements are read by one sweep, so tiles may be large
};

/// Fills `plan`; null, or why generated code cannot run the problem. Descriptions of `in_result` and `out_result` have
/// the dims of the space, with or without the reduced ones (or with 1 in their place).
const char* plan_rows(const Problem& problem, const Target& target, const std::vector<bool>& reduced,
                      const RowPorts& ports, RowPlan& plan);
/// What plan_rows asks of the operands' types and expressions.
const char* refuse_edges(const Problem& problem, const Edges& edges);
/// All operands of the expressions, the results first, then the main input's own ports.
std::vector<SpaceOperand> edge_operands(const Problem& problem, const Edges& edges);
/// Puts the views of `operands` (in the order of space.views) where `plan.in` and `plan.out` have their ports.
void place_views(const Problem& problem, const std::vector<SpaceOperand>& operands, RowPlan& plan);

/// Scratch memory of a tile, laid out once.
class ScratchPlan {
 public:
  /// f32 values: one for each lane of each row of a tile.
  RowView elements(const RowPlan& plan);
  /// f32 numbers, one for each result; with `blocks`, for each block of lanes too.
  RowView results(const RowPlan& plan, bool blocks = false);
  /// `count` f32 that lie along the lanes and are the same for all rows.
  RowView lanes(const RowPlan& plan, int64_t count);
  size_t bytes() const { return bytes_; }

 private:
  RowView take(RowView view, int64_t floats);
  size_t bytes_ = 0;
};

/// Numbers of a tile's results, in scratch memory, as one row.
inline RowView as_row(const RowView& results) { return {.offset = results.offset, .lane = 4}; }
/// The numbers of the first block, for all blocks: where fold_blocks leaves them.
inline RowView first_block(RowView results) {
  results.block = 0;
  return results;
}

/// Whether the distances between rows leave each at a cache line, where the first is.
bool at_cache_lines(const RowView& view);

struct Tile {
  const RunArgs& args;
  std::byte* scratch;
  Dims outer = {};
  int64_t row = 0, rows = 1;
  int64_t lane = 0;

  float* floats(const RowView& view, int64_t block = 0) const {
    return reinterpret_cast<float*>(scratch + view.offset + block * view.block);
  }
  /// Scratch is addressed from the tile's first row and lane on, tensors from their own.
  std::byte* address(const RowView& view, int64_t block) const;
};

/// Some vectors of a row, and then others, by one expression: code with its operands, and the views of those that have
/// an address.
struct RowPass {
  std::vector<RowView> in, out;
  Lanes lanes;
  RowShape shape{.length = 0};
};

/// One walk over a tile: an expression over views.
class Sweep {
 public:
  using Value = ExprBuilder::Value;
  ExprBuilder builder() { return ExprBuilder(expr_); }
  Value load(const RowView& view);
  void store(const RowView& view, Value value);
  void fold(const RowView& view, Fold how, Value value);
  /// The front expression's value; the back expression's stores.
  Value front(const RowPlan& plan);
  void back(const RowPlan& plan, Value value);

  /// While the tile is swept, what the next one reads of these inputs is fetched: a first sweep alone would wait for
  /// memory, which has nothing to do during the others. Before make.
  void fetch_next_tile(const RowPlan& plan);
  /// Takes in what `last` does to the tile before, before make; false, and nothing has changed, where that is too much.
  /// The order of sums stays.
  bool join(const Sweep& last);
  /// Makes the code for calls of `length` lanes and, where it is not 0, of `rest` lanes.
  void make(Isa isa, int64_t length, int64_t rest, bool streaming);
  void make(const RowPlan& plan);
  /// One call: block `block` of the tile.
  void run(const Tile& tile, const RowPlan& plan, int64_t block) const;
  /// The same with so many rows and lanes (`length` or `rest` of make).
  void run(const Tile& tile, int64_t block, int64_t rows, int64_t lanes) const;
  /// Of joined sweeps: block `block` of both tiles, which have as many rows and lanes.
  void run(const Tile& tile, const Tile& previous, const RowPlan& plan, int64_t block) const;
  /// One row over `length` lanes.
  void run_row(const Tile& tile) const { run(tile, 0, 1, length_); }

  /// The sweep over a row of `length` lanes, for those who make one code of several: with results past the caches, or
  /// else what the next row reads is fetched while they are written.
  std::vector<RowPass> passes(Isa isa, int64_t length, bool streaming) const;
  /// Whether results leave the caches, and the plan's rows of them are whole cache lines.
  bool may_stream(const RowPlan& plan) const;
  /// What is written, for those who make other code of it: operands of `expr` are numbers of views.
  const Expr& expr() const { return expr_; }
  const std::vector<RowView>& in() const { return in_; }
  const std::vector<RowView>& out() const { return out_; }
  Fold fold_of_out(size_t k) const { return folds_[k]; }

 private:
  static constexpr size_t kMaxOperands = 96;
  /// Code with the views of its operands.
  struct Code {
    std::vector<RowView> in, out;
    std::shared_ptr<const FlatKernel> kernel, streaming;
    RowsAtOnce pairs;  ///< two; where rows are swept one by one alone, none
  };
  using Codes = std::vector<Code>;  ///< one after the other they cover a row

  /// Several vectors of a row are folded with each other first.
  bool is_unrolled() const;
  /// The output is a row of sums, which rows are added to.
  bool adds_rows(size_t output) const;
  bool adds_rows() const;
  /// Two rows at once are worth it, and nothing but rows of sums is written for both.
  bool pairs_rows() const;
  bool goes_in_pairs(Isa isa) const;
  /// make(first, length, vectors): what covers a row of `length` lanes, in order.
  template <class F>
  auto covering(Isa isa, int64_t length, F make) const;
  std::vector<bool> in_any_order() const;
  RowShape row_shape(int64_t length, int vectors) const;
  RowPass pass(Isa isa, int64_t first, int64_t length, int vectors) const;
  Code code(Isa isa, int64_t first, int64_t length, int vectors, bool streaming) const;
  int64_t fetched_ahead(const RowView& view) const;
  bool fetches_next_row() const;
  /// The output has one number for each row of a call.
  bool folds_row(size_t output) const;
  static int64_t block_lanes(const Tile& tile, const RowPlan& plan, int64_t block);
  void run(const Tile& tile, const Tile& previous, int64_t block, int64_t rows, int64_t lanes) const;
  static bool is_result(const RowView& view, Fold how) { return view.from == RowView::From::out && how == Fold::none; }

  Expr expr_;
  std::vector<RowView> in_, out_;
  std::vector<Fold> folds_;  ///< of each output
  int64_t length_ = 0, rows_ahead_ = 0;
  bool fetches_in_turns_ = false;
  std::optional<bool> unrolled_as_;  ///< joined sweeps: as the first of them
  bool fenced_ = true;               ///< what streams ends with a fence
  Codes whole_, rest_;
};

/// The last two sweeps of a tile, and both as one walk: where results leave the caches, those of a tile are written
/// while the next one is computed, so that stores drain meanwhile.
struct LastSweeps {
  Sweep inner, last, joined;
  bool joins = false;

  /// Once `inner` and `last` are written.
  void make(const RowPlan& plan);
  /// Scratch memories of tiles that a part needs.
  size_t scratches() const { return joins ? 2 : 1; }
};

/// Tiles of the plan.
int64_t tile_count(const RowPlan& plan);
/// Tile `index`, in the order of memory.
Tile tile_at(const RowPlan& plan, const RunArgs& args, std::byte* scratch, int64_t index);
/// Results of the tile that exist (a tile at the end has fewer than there is room for).
int64_t results_of(const RowPlan& plan, const Tile& tile);
/// Rough count of operations of a tile.
int64_t tile_cost(const RowPlan& plan);

/// Calls work(block) for every block of lanes of a tile.
template <class F>
void each_block(const RowPlan& plan, F work) {
  if (plan.tiling.blocks == 1) return work(0);
  parallel_for(plan.tiling.blocks, tile_cost(plan) / plan.tiling.blocks, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) work(b);
  });
}

/// For all tiles on all threads; a thread's share has `part_bytes` bytes.
ThreadScratch tiles_scratch(const RowPlan& plan, size_t part_bytes);

/// Tiles [begin, end) in order: before(tile), sweeps.inner, between(tile), sweeps.last. Each of sweeps.scratches()
/// tiles has `scratch_bytes` of `scratch`.
template <class Before, class Between>
void sweep_tiles(const RowPlan& plan, const RunArgs& args, std::byte* scratch, size_t scratch_bytes, int64_t begin,
                 int64_t end, const LastSweeps& sweeps, Before before, Between between) {
  std::array<std::optional<Tile>, 2> tiles;
  const auto sweep = [&](const Sweep& s, const Tile& tile) {
    each_block(plan, [&](int64_t b) { s.run(tile, plan, b); });
  };
  for (int64_t t = begin; t < end; ++t) {
    const auto turn = sweeps.joins ? static_cast<size_t>(t - begin) % 2 : 0;
    const std::optional<Tile>& previous = tiles[1 - turn];
    const Tile& tile = tiles[turn].emplace(tile_at(plan, args, scratch + turn * scratch_bytes, t));
    before(tile);
    if (previous && results_of(plan, tile) == results_of(plan, *previous)) {
      each_block(plan, [&](int64_t b) { sweeps.joined.run(tile, *previous, plan, b); });
    } else {
      if (previous) sweep(sweeps.last, *previous);
      sweep(sweeps.inner, tile);
    }
    between(tile);
    if (!sweeps.joins || t + 1 == end) sweep(sweeps.last, tile);
  }
}

/// The same for all tiles, shared out to threads; takes tiles_scratch of args.scratch. Where tiles are fewer than
/// threads, their blocks are shared out instead.
template <class Before, class Between>
void each_tile(const RowPlan& plan, const RunArgs& args, size_t scratch_bytes, const LastSweeps& sweeps, Before before,
               Between between) {
  const int64_t tiles = tile_count(plan);
  const auto part = [&](int64_t begin, int64_t end, int number) {
    std::byte* scratch = tiles_scratch(plan, sweeps.scratches() * scratch_bytes).share(args.scratch, number);
    sweep_tiles(plan, args, scratch, scratch_bytes, begin, end, sweeps, before, between);
  };
  if (tiles < plan.threads && plan.tiling.blocks > 1) return part(0, tiles, 0);
  parallel_for(tiles, tile_cost(plan), part, plan.threads);
}

/// The same number for each result of `view`, in every block.
void fill_results(const RowPlan& plan, const Tile& tile, const RowView& view, float value);
/// Folds the blocks' numbers of each result, in order, into the first block's.
void fold_blocks(const RowPlan& plan, const Tile& tile, const RowView& view, Fold how);
/// Moves the tile's numbers between scratch and a tensor that has one for each result.
void write_results(const RowPlan& plan, const Tile& tile, const RowView& numbers, const RowView& tensor);
void read_results(const RowPlan& plan, const Tile& tile, const RowView& tensor, const RowView& numbers);

}  // namespace partita::jit
