// SPDX-License-Identifier: Apache-2.0
// Softmax by tiles of slices. Forward: the maximum m; e = exp(x - m), kept in scratch memory, and its sum s; e / s.
// The logarithm keeps no e and ends in (x - m) - log s. Backward: the sum over the slice, then each element.
#include "kernels/jit/rows/softmax.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <limits>

#include "kernels/jit/code/run_of.hpp"
#include "kernels/jit/rows/row_maxima.hpp"
#include "kernels/jit/rows/rows.hpp"
#include "kernels/jit/rows/short_rows.hpp"
#include "kernels/narrow_results.hpp"
#include "src/base/check.hpp"
#include "src/base/cpu.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"

namespace partita::jit {
namespace {

using Value = Sweep::Value;

/// Vectors of a row: of longer ones, exponentials wait less for maxima in tiles. Tiles do not store past the caches
/// where rows begin inside lines, nor do they fetch as much as those processors need that read no stream by themselves:
/// there as many are in one piece as are compiled in a millisecond.
constexpr int64_t kShort = 6, kShortWithoutTiles = 13;
/// Going backward, elements of 16 bits are converted once; those of f32 are as fast from the nearest cache.
constexpr int64_t kShortBackward = 48, kShortBackwardF32 = 24;

const char* plan_along_axis(const Problem& p, const Target& target, int64_t given, const RowPorts& ports,
                            RowPlan& plan) {
  const int rank = p.out[0].dims.size();
  std::vector<bool> reduced(static_cast<size_t>(rank), false);
  if (rank > 0) {
    const auto axis = normal_axis(given, rank);
    if (!axis) return "`axis` is out of range";
    reduced[static_cast<size_t>(*axis)] = true;
  }
  return plan_rows(p, target, reduced, ports, plan);
}

bool has_stats(const Problem& p) { return p.op == OpKind::SoftMax && p.out_ports() > 1; }

const char* plan_forward(const Problem& p, const Target& target, RowPlan& plan) {
  RowPorts ports;
  if (has_stats(p)) ports.out_result = {1};
  return plan_along_axis(p, target, p.attrs.i64(Attr::axis), ports, plan);
}

const char* plan_backward(const Problem& p, const Target& target, RowPlan& plan) {
  return plan_along_axis(p, target, p.attrs.i64(Attr::axis), {.in = {1}, .in_result = {}, .out_result = {}}, plan);
}

Value exponential(ExprBuilder b, Value x, int32_t kind, bool narrow) {
  return b.apply(ExprOp::exp, x, 0, 0, kind | (narrow ? kNarrowResult : 0));
}

class Softmax {
 public:
  Softmax(const Problem& p, const Target& target)
      : logarithm_(p.op == OpKind::LogSoftmax), narrow_(p.narrow), inf_as_zero_(p.attrs.is(Attr::mode, "inf_as_zero")) {
    PT_ASSERT(plan_forward(p, target, plan_) == nullptr);
    if (has_stats(p)) stats_ = &plan_.out[1];
    max_ = scratch_.results(plan_, true);
    sum_ = scratch_.results(plan_, true);
    log_sum_ = scratch_.results(plan_);
    if (!logarithm_ || plan_.edges.has_front) elements_ = scratch_.elements(plan_);
    write_sweeps();
    write_finish();
    const bool tiles = reads_streams_alone() && plan_.space.lanes % kCacheLine == 0;
    const int64_t most_short = tiles ? kShort : kShortWithoutTiles;
    if (!halves_have_maxima() || ShortRows::fit(plan_, most_short))
      whole_ = whole_rows(plan_, scratch_.bytes(), most_short, [this](RowWriter& row) { write_row(row); });
    if (!whole_) make_tiles();
  }

  size_t scratch_bytes() const { return rows_scratch_bytes(whole_.get(), plan_, scratch_.bytes(), sweeps_); }

  Status operator()(const RunArgs& args) const {
    return run_rows(
        whole_.get(), plan_, args, scratch_.bytes(), sweeps_, [this](const Tile& tile) { find_max(tile); },
        [this](const Tile& tile) { finish(tile); });
  }

 private:
  void write_sweeps() {
    const bool kept = plan_.edges.has_front;  // its result is computed once
    Value x = find_max_.front(plan_);
    if (kept) find_max_.store(elements_, x);
    find_max_.fold(max_, Fold::max, x);

    Sweep& exponentials = sweeps_.inner;
    x = kept ? exponentials.load(elements_) : exponentials.front(plan_);
    const Value m = exponentials.load(first_block(max_));
    const Value e = exponential(exponentials.builder(), exponentials.builder().sub(x, m), kNotPositive, narrow_);
    if (!logarithm_) exponentials.store(elements_, e);
    exponentials.fold(sum_, Fold::sum, e);

    Sweep& map = sweeps_.last;
    if (logarithm_) {
      x = kept ? map.load(elements_) : map.front(plan_);
      const Value shifted = map.builder().sub(x, map.load(first_block(max_)));
      map.back(plan_, map.builder().sub(shifted, map.load(first_block(sum_))));
    } else {
      const Value scale = map.load(first_block(sum_));
      map.back(plan_, map.builder().mul(map.load(elements_), scale));
    }
  }

  /// From a sum to what the map needs, for all results of a tile at once.
  void write_finish() {
    ExprBuilder b = finish_.builder();
    const Value s = finish_.load(as_row(sum_)), m = finish_.load(as_row(max_));
    const Value log = b.apply(ExprOp::log, s);
    if (logarithm_) {
      finish_.store(as_row(sum_), log);
    } else {
      const Value nothing = b.apply(ExprOp::eq, s, b.constant(0));
      const Value inverse = b.apply(ExprOp::reciprocal, s);
      finish_.store(as_row(sum_), inf_as_zero_ ? b.select(nothing, b.constant(0), inverse) : inverse);
      if (stats_) {
        const Value infinite = b.constant(-std::numeric_limits<float>::infinity());
        finish_.store(as_row(log_sum_), b.select(nothing, infinite, b.add(m, log)));
      }
    }
  }

  void make_tiles() {
    make_maxima();
    if (maxima_.empty()) find_max_.make(plan_);
    finish_.make(plan_.isa, plan_.results(), 0, false);
    sweeps_.make(plan_);
  }

  /// What is read where nothing is computed before.
  const RowView& source() const { return plan_.in[static_cast<size_t>(plan_.edges.front_in[0])]; }

  /// Lanes of blocks, and of what is left of a row.
  std::array<int64_t, 2> lengths() const { return {plan_.tiling.block, plan_.space.lanes % plan_.tiling.block}; }

  /// Where nothing is computed before maxima are searched.
  bool have_maxima() const {
    return !plan_.edges.has_front && plan_.space.along_lanes && std::ranges::all_of(lengths(), [&](int64_t length) {
      return length == 0 || RowMaxima::fits(plan_.isa, source().dtype, length);
    });
  }
  /// Those of 16-bit elements are found so fast that tiles win.
  bool halves_have_maxima() const { return have_maxima() && bits_of(source().dtype) == 16; }

  void make_maxima() {
    if (!have_maxima()) return;
    for (int64_t length : lengths())
      if (length > 0) maxima_.emplace_back(plan_.isa, source().dtype, length, source().row);
  }

  void write_row(RowWriter& row) const {
    row.begin(max_, least());
    row.begin(sum_, 0);
    row.elements(find_max_);
    row.elements(sweeps_.inner);
    row.numbers(finish_);
    row.elements(sweeps_.last);
    if (stats_) row.write(log_sum_, *stats_);
  }

  /// The lowest number instead of -inf: a slice of -inf alone then gives exponentials of 0, not NaN.
  float least() const {
    return inf_as_zero_ ? std::numeric_limits<float>::lowest() : -std::numeric_limits<float>::infinity();
  }

  void find_max(const Tile& tile) const {
    fill_results(plan_, tile, max_, least());
    each_block(plan_, [&](int64_t b) { find_max(tile, b); });
    fold_blocks(plan_, tile, max_, Fold::max);
    fill_results(plan_, tile, sum_, 0);
  }

  void find_max(const Tile& tile, int64_t block) const {
    if (maxima_.empty()) return find_max_.run(tile, plan_, block);
    const bool whole = (block + 1) * plan_.tiling.block <= plan_.space.lanes;
    (whole ? maxima_.front() : maxima_.back())(tile.address(source(), block), tile.floats(max_, block), tile.rows);
  }

  void finish(const Tile& tile) const {
    fold_blocks(plan_, tile, sum_, Fold::sum);
    finish_.run_row(tile);
    if (stats_) write_results(plan_, tile, log_sum_, *stats_);
  }

  bool logarithm_, narrow_, inf_as_zero_;
  RowPlan plan_;
  ScratchPlan scratch_;
  const RowView* stats_ = nullptr;
  RowView max_, sum_, log_sum_, elements_;
  Sweep find_max_, finish_;
  std::deque<RowMaxima> maxima_;  ///< that do the same as `find_max_`
  LastSweeps sweeps_;
  std::unique_ptr<const WholeRows> whole_;
};

/// dst (g - sum of g dst), or g - exp(dst) sum of g for the logarithm.
class SoftmaxBackward {
 public:
  SoftmaxBackward(const Problem& p, const Target& target) {
    PT_ASSERT(plan_backward(p, target, plan_) == nullptr);
    const bool logarithm = p.op == OpKind::LogSoftmaxBackward, kept = plan_.edges.has_front;
    sum_ = scratch_.results(plan_, true);
    if (kept) elements_ = scratch_.elements(plan_);

    Sweep& add_up = sweeps_.inner;
    Value g = add_up.front(plan_);
    if (kept) add_up.store(elements_, g);
    add_up.fold(sum_, Fold::sum, logarithm ? g : add_up.builder().mul(g, add_up.load(plan_.in[1])));

    Sweep& map = sweeps_.last;
    ExprBuilder b = map.builder();
    g = kept ? map.load(elements_) : map.front(plan_);
    const Value y = map.load(plan_.in[1]), sum = map.load(first_block(sum_));
    map.back(plan_, logarithm ? b.sub(g, b.mul(exponential(b, y, 0, p.narrow), sum)) : b.mul(y, b.sub(g, sum)));
    const int64_t most_short = bits_of(plan_.in[1].dtype) == 32 ? kShortBackwardF32 : kShortBackward;
    const auto write = [this](RowWriter& row) { write_row(row); };
    whole_ = whole_rows(plan_, scratch_.bytes(), most_short, write, LongRowsWhere::in_streams_too);
    if (!whole_) sweeps_.make(plan_);
  }

  size_t scratch_bytes() const { return rows_scratch_bytes(whole_.get(), plan_, scratch_.bytes(), sweeps_); }

  Status operator()(const RunArgs& args) const {
    return run_rows(
        whole_.get(), plan_, args, scratch_.bytes(), sweeps_,
        [this](const Tile& tile) { fill_results(plan_, tile, sum_, 0); },
        [this](const Tile& tile) { fold_blocks(plan_, tile, sum_, Fold::sum); });
  }

 private:
  void write_row(RowWriter& row) const {
    row.begin(sum_, 0);
    row.elements(sweeps_.inner);
    row.elements(sweeps_.last);
  }

  RowPlan plan_;
  ScratchPlan scratch_;
  RowView sum_, elements_;
  LastSweeps sweeps_;
  std::unique_ptr<const WholeRows> whole_;
};

}  // namespace

const char* refuse_softmax(const Problem& problem, const Target& target) {
  RowPlan plan;
  return plan_forward(problem, target, plan);
}
Result<Run> make_softmax(const Problem& problem, const Target& target) { return run_of<Softmax>(problem, target); }

const char* refuse_softmax_backward(const Problem& problem, const Target& target) {
  RowPlan plan;
  return plan_backward(problem, target, plan);
}
Result<Run> make_softmax_backward(const Problem& problem, const Target& target) {
  return run_of<SoftmaxBackward>(problem, target);
}

}  // namespace partita::jit
