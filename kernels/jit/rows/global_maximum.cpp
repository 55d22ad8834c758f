// SPDX-License-Identifier: Apache-2.0
// Gradients of global maxima by tiles of planes, small ones in one piece. The maximum m of a plane; the least number of
// a cell that is m (or NaN, which is a maximum); the gradient there, zeros elsewhere. Where vectors go across planes,
// both are found by one sweep, for the cells come in order.
#include "kernels/jit/rows/global_maximum.hpp"

#include <numeric>

#include "kernels/jit/code/run_of.hpp"
#include "kernels/jit/rows/rows.hpp"
#include "kernels/jit/rows/whole_rows.hpp"
#include "kernels/loop/fold_plan.hpp"
#include "kernels/pool_geometry.hpp"
#include "src/base/check.hpp"
#include "src/base/shape.hpp"

namespace partita::jit {
namespace {

using Value = Sweep::Value;

constexpr int64_t kShort = 16;                    ///< vectors of a plane: tiles are as fast with longer ones
constexpr int64_t kMostCells = int64_t{1} << 20;  ///< whose numbers are f32
constexpr int64_t kFewChannelLast = 20;           ///< cells that kernels with each tap spelled out are quicker with
constexpr size_t kDiffDst = 1;

const char* plan_planes(const Problem& p, const Target& target, RowPlan& plan) {
  if (p.op != OpKind::MaxPoolBackward) return "it is no gradient of maxima";
  if (has_folds(p)) return "its results are not folded";
  const PoolGeometry g = pool_geometry(p, p.out[0].dims, p.in[kDiffDst].dims);
  if (!g.covers_all()) return "a window leaves cells out";
  if (g.channel_last && elements(g.src) <= kFewChannelLast) return "vectors of channels, few cells";
  if (elements(g.src) > kMostCells) return "there are too many cells to count in f32";
  std::vector<bool> reduced(static_cast<size_t>(p.out[0].dims.size()), false);
  for (int i = 0; i < g.axes(); ++i) reduced[static_cast<size_t>(g.tensor_axis(i))] = true;
  return plan_rows(p, target, reduced,
                   {.in = {0}, .in_result = {}, .out_result = {}, .front_is_result = true, .columns_once = true}, plan);
}

class GlobalMaximum {
 public:
  GlobalMaximum(const Problem& p, const Target& target) {
    PT_ASSERT(plan_planes(p, target, plan_) == nullptr);
    max_ = scratch_.results(plan_, true);
    place_ = scratch_.results(plan_, true);
    number_cells();
    if (plan_.space.along_lanes) {
      find_max_.fold(max_, Fold::max, find_max_.load(plan_.in[0]));
      write_find_place();
    } else {
      write_find_both();
    }
    write_put();
    if (plan_.space.along_lanes)
      whole_ = whole_rows(plan_, scratch_.bytes(), kShort, [this](RowWriter& row) { write_row(row); });
    if (!whole_) {
      if (plan_.space.along_lanes) find_max_.make(plan_);
      sweeps_.make(plan_);
    }
  }

  size_t scratch_bytes() const { return rows_scratch_bytes(whole_.get(), plan_, scratch_.bytes(), sweeps_); }

  Status operator()(const RunArgs& args) const {
    const bool planes = plan_.space.along_lanes;
    return run_rows(
        whole_.get(), plan_, args, scratch_.bytes(), sweeps_,
        [this, planes](const Tile& tile) { planes ? find_max(tile) : begin_both(tile); },
        [this, planes](const Tile& tile) {
          if (planes) fold_blocks(plan_, tile, place_, Fold::min);
        });
  }

 private:
  void number_cells() {
    const RowSpace& space = plan_.space;
    numbers_.resize(static_cast<size_t>(space.along_lanes ? space.lanes : space.rows));
    std::iota(numbers_.begin(), numbers_.end(), 0.0f);
    number_ = {.from = RowView::From::kernel, .steps = space.along_lanes, .table = numbers_.data()};
    (space.along_lanes ? number_.lane : number_.row) = 4;
    number_.block = plan_.tiling.block * number_.lane;
  }

  void write_find_place() {
    Sweep& find = sweeps_.inner;
    const Value x = find.load(plan_.in[0]), m = find.load(first_block(max_)), n = find.load(number_);
    ExprBuilder b = find.builder();
    const Value is_number = b.apply(ExprOp::eq, x, x), is_maximum = b.apply(ExprOp::eq, x, m);
    find.fold(place_, Fold::min, b.select(is_number, b.select(is_maximum, n, b.constant(identity_of(Fold::min))), n));
  }

  /// A cell takes the place of the greatest before it if it is greater, or the first NaN.
  void write_find_both() {
    Sweep& find = sweeps_.inner;
    const Value x = find.load(plan_.in[0]), before = find.load(max_), place = find.load(place_), n = find.load(number_);
    ExprBuilder b = find.builder();
    const Value m = b.max(before, x), stays = b.apply(ExprOp::eq, m, before),
                is_number = b.apply(ExprOp::eq, before, before);
    find.store(max_, m);
    find.store(place_, b.select(stays, place, b.select(is_number, n, place)));
  }

  void write_put() {
    Sweep& put = sweeps_.last;
    const Value n = put.load(number_), place = put.load(first_block(place_)), gradient = put.front(plan_);
    ExprBuilder b = put.builder();
    put.back(plan_, b.select(b.apply(ExprOp::eq, n, place), gradient, b.constant(0)));
  }

  void write_row(RowWriter& row) const {
    row.begin(max_, identity_of(Fold::max));
    row.begin(place_, identity_of(Fold::min));
    row.elements(find_max_);
    row.elements(sweeps_.inner);
    row.elements(sweeps_.last);
  }

  void begin_both(const Tile& tile) const {
    fill_results(plan_, tile, max_, identity_of(Fold::max));
    fill_results(plan_, tile, place_, 0);
  }

  void find_max(const Tile& tile) const {
    fill_results(plan_, tile, max_, identity_of(Fold::max));
    each_block(plan_, [&](int64_t b) { find_max_.run(tile, plan_, b); });
    fold_blocks(plan_, tile, max_, Fold::max);
    fill_results(plan_, tile, place_, identity_of(Fold::min));
  }

  RowPlan plan_;
  ScratchPlan scratch_;
  std::vector<float> numbers_;  ///< of the cells
  RowView number_, max_, place_;
  Sweep find_max_;
  LastSweeps sweeps_;
  std::unique_ptr<const WholeRows> whole_;
};

}  // namespace

const char* refuse_global_maximum(const Problem& problem, const Target& target) {
  RowPlan plan;
  return plan_planes(problem, target, plan);
}
Result<Run> make_global_maximum(const Problem& problem, const Target& target) {
  return run_of<GlobalMaximum>(problem, target);
}

}  // namespace partita::jit
