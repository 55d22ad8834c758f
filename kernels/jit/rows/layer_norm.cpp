// SPDX-License-Identifier: Apache-2.0
// LayerNorm and RMSNorm by tiles of rows, short rows in one piece. Each block of a row: its sum, then its squared
// differences from its own mean, read from the cache; blocks are joined in f64. Then (x - mean) rstd gamma + beta.
// Rows of 16-bit elements are read once for both: s = sum(x - m), q = sum((x - m)^2), m the mean of a row's first
// elements; mean = m + s / N, variance = q / N - (s / N)^2 (Chan, Golub and LeVeque 1983). The difference loses one bit
// where m is as far from the mean as the deviation is wide. Rows of which m is farther are added up again, m their
// mean.
#include <cmath>

#include "kernels/jit/code/run_of.hpp"
#include "kernels/jit/rows/long_rows.hpp"
#include "kernels/jit/rows/norm.hpp"
#include "kernels/jit/rows/norm_parts.hpp"
#include "kernels/jit/rows/short_rows.hpp"
#include "src/base/check.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"

namespace partita::jit {
namespace {

using Value = Sweep::Value;

constexpr int64_t kFirst = 32;  ///< elements of a row that say roughly what its mean is

bool has_stats(const Problem& p) { return p.op == OpKind::LayerNorm && p.out_ports() > 2; }

const char* plan_forward(const Problem& p, const Target& target, RowPlan& plan) {
  const int rank = p.out[0].dims.size();
  const auto begin = normal_axis(p.attrs.i64_or(Attr::begin_norm_axis, -1), rank);
  if (!begin) return "`begin_norm_axis` is out of range";
  std::vector<bool> reduced(static_cast<size_t>(rank), false);
  for (int d = *begin; d < rank; ++d) reduced[static_cast<size_t>(d)] = true;
  RowPorts ports{.in = {}, .in_result = {}, .out_result = {}, .runs = true};
  if (has_stats(p)) ports.out_result = {1, 2};
  if (const char* reason = plan_rows(p, target, reduced, ports, plan)) return reason;
  if (!plan.space.along_lanes) return "the normalised elements are not next to each other";
  for (int port = 1; port < (p.op == OpKind::RMSNorm ? 2 : 3); ++port)
    if (has_affine(p, port))
      if (const char* reason = refuse_vector(p.in[static_cast<size_t>(port)], plan.space.lanes)) return reason;
  return nullptr;
}

class LayerNorm {
 public:
  LayerNorm(const Problem& p, const Target& target)
      : root_mean_square_(p.op == OpKind::RMSNorm), epsilon_(p.attrs.f32_or(Attr::epsilon, 1e-5f)) {
    PT_ASSERT(plan_forward(p, target, plan_) == nullptr);
    has_stats_ = has_stats(p);
    sums_ = scratch_.results(plan_, true);
    squares_ = scratch_.results(plan_, true);
    mean_ = scratch_.results(plan_);
    scale_ = scratch_.results(plan_);
    if (plan_.edges.has_front) elements_ = scratch_.elements(plan_);
    if (one_block()) mean_ = sums_;
    at_once_ = !ShortRows::fit(plan_, most_in_one_piece()) && !root_mean_square_ && one_block() &&
               !plan_.edges.has_front && bits_of(plan_.in[0].dtype) == 16 && plan_.space.lanes > kFirst;
    if (at_once_) {
      first_ = scratch_.results(plan_);
      is_far_ = scratch_.results(plan_);
      write_sweep();
      write_repetition();
    } else {
      write_sweeps();
    }
    write_map(p);
    if (one_block()) write_finish();
    make_whole_rows();
    if (!whole_) make_tiles();
  }

  size_t scratch_bytes() const { return rows_scratch_bytes(whole_.get(), plan_, scratch_.bytes(), sweeps_); }

  Status operator()(const RunArgs& args) const {
    return run_rows(
        whole_.get(), plan_, args, scratch_.bytes(), sweeps_, [this](const Tile& tile) { measure(tile); },
        [this](const Tile& tile) { finish(tile); });
  }

 private:
  /// Sums of differences from the mean of the first elements, and of their squares.
  void write_sweep() {
    ExprBuilder e = estimate_.builder();
    estimate_.fold(first_, Fold::sum, e.mul(estimate_.front(plan_), e.constant(1.0f / kFirst)));
    Sweep& moments = sweeps_.inner;
    const Value x = moments.front(plan_);
    ExprBuilder b = moments.builder();
    const Value difference = b.sub(x, moments.load(first_));
    moments.fold(sums_, Fold::sum, difference);
    moments.fold(squares_, Fold::sum, product_for_sum(b, difference, difference));
  }

  /// Rows whose first elements are far from the others, and what is summed up again of them.
  void write_repetition() {
    ExprBuilder b = far_.builder(), n = nearer_.builder();
    const auto count = static_cast<float>(plan_.space.lanes);
    const Value shift = b.div(far_.load(as_row(sums_)), b.constant(count));
    const Value square = b.div(far_.load(as_row(squares_)), b.constant(count));
    far_.store(as_row(is_far_), b.gt(b.mul(b.constant(2), b.mul(shift, shift)), square));
    const Value nearer = n.div(nearer_.load(as_row(sums_)), n.constant(count));
    nearer_.store(as_row(first_), n.add(nearer_.load(as_row(first_)), nearer));
    for (const RowView& sums : {sums_, squares_}) nearer_.store(as_row(sums), n.constant(0));
  }

  /// The sums of rows, or of squares, are added up by the last sweep but one.
  void write_sweeps() {
    const bool kept = plan_.edges.has_front;
    Sweep& first = root_mean_square_ ? sweeps_.inner : add_up_;
    Value x = first.front(plan_);
    if (kept) first.store(elements_, x);
    first.fold(sums_, Fold::sum, root_mean_square_ ? product_for_sum(first.builder(), x, x) : x);
    if (root_mean_square_) return;
    Sweep& differences = sweeps_.inner;
    x = kept ? differences.load(elements_) : differences.front(plan_);
    ExprBuilder b = differences.builder();
    const Value difference = b.sub(x, differences.load(sums_));
    differences.fold(squares_, Fold::sum, product_for_sum(b, difference, difference));
  }

  void write_map(const Problem& p) {
    Sweep& map = sweeps_.last;
    ExprBuilder b = map.builder();
    Value x = plan_.edges.has_front ? map.load(elements_) : map.front(plan_);
    if (!root_mean_square_) x = b.sub(x, map.load(mean_));
    x = b.mul(x, map.load(scale_));
    const auto vector = [&](int port) {
      return map.load(vector_view(RowView::From::in, port, p.in[static_cast<size_t>(port)], plan_.tiling.block));
    };
    const bool scales = has_affine(p, 1), shifts = !root_mean_square_ && has_affine(p, 2);
    if (scales && shifts)
      x = b.fma(x, vector(1), vector(2));
    else if (scales || shifts)
      x = scales ? b.mul(x, vector(1)) : b.add(x, vector(2));
    map.back(plan_, x);
  }

  /// Vectors of a row, by measurement, also where they are more than there are registers.
  int64_t most_in_one_piece() const { return plan_.isa == Isa::avx512 && bits_of(plan_.in[0].dtype) < 32 ? 24 : 16; }

  bool one_block() const { return plan_.tiling.blocks == 1; }

  /// Of rows of one block, for all of a tile at once: from sums to means, and from squares to what the map needs.
  void write_finish() {
    const auto count = static_cast<float>(plan_.space.lanes);
    ExprBuilder m = means_.builder(), b = finish_.builder();
    means_.store(as_row(sums_), m.div(means_.load(as_row(sums_)), m.constant(count)));
    Value variance = b.div(finish_.load(as_row(root_mean_square_ ? sums_ : squares_)), b.constant(count));
    if (at_once_) {
      const Value shift = b.div(finish_.load(as_row(sums_)), b.constant(count));
      variance = b.max(b.sub(variance, b.mul(shift, shift)), b.constant(0));
      finish_.store(as_row(mean_), b.add(finish_.load(as_row(first_)), shift));
    }
    const Value deviation = b.apply(ExprOp::sqrt, b.add(variance, b.constant(epsilon_)));
    finish_.store(as_row(squares_), variance);
    finish_.store(as_row(scale_), b.div(b.constant(1), deviation));
  }

  void make_whole_rows() {
    constexpr auto where = LongRowsWhere::in_streams_too;
    if (!at_once_) {
      const auto write = [this](RowWriter& row) { write_row(row); };
      whole_ = whole_rows(plan_, scratch_.bytes(), most_in_one_piece(), write, where);
    } else if (LongRows::fit(plan_, where)) {
      const auto write = [this](LongRows::Writer& row) { write_row_at_once(row); };
      whole_ = std::make_unique<const LongRows>(plan_, scratch_.bytes(), write);
    }
  }

  void make_tiles() {
    const bool has_means = !root_mean_square_ && !at_once_;
    if (at_once_) {
      estimate_.make(plan_.isa, kFirst, 0, false);
      far_.make(plan_.isa, plan_.results(), 0, false);
      nearer_.make(plan_.isa, 1, 0, false);
    }
    if (has_means) add_up_.make(plan_);
    if (has_means && one_block()) means_.make(plan_.isa, plan_.results(), 0, false);
    if (one_block()) finish_.make(plan_.isa, plan_.results(), 0, false);
    sweeps_.make(plan_);
  }

  void write_row(RowWriter& row) const {
    row.begin(sums_, 0);
    row.begin(squares_, 0);
    if (!root_mean_square_) {
      row.elements(add_up_);
      row.numbers(means_);
    }
    row.elements(sweeps_.inner);
    write_end(row);
  }

  void write_row_at_once(LongRows::Writer& row) const {
    row.begin(first_, 0);
    row.first_elements(estimate_, kFirst);
    row.begin(sums_, 0);
    row.begin(squares_, 0);
    row.elements(sweeps_.inner);
    row.numbers(far_);
    row.where(is_far_, [&] {
      row.numbers(nearer_);
      row.elements(sweeps_.inner);
    });
    write_end(row);
  }

  void write_end(RowWriter& row) const {
    row.numbers(finish_);
    row.elements(sweeps_.last);
    if (!has_stats_) return;
    row.write(mean_, plan_.out[1]);
    row.write(squares_, plan_.out[2]);
  }

  /// Lanes of block `block`.
  double count_of(int64_t block) const {
    return static_cast<double>(std::min(plan_.tiling.block, plan_.space.lanes - block * plan_.tiling.block));
  }

  void measure(const Tile& tile) const {
    fill_results(plan_, tile, sums_, 0);
    fill_results(plan_, tile, squares_, 0);
    if (at_once_) {
      fill_results(plan_, tile, first_, 0);
      estimate_.run(tile, 0, tile.rows, kFirst);
    }
    if (root_mean_square_ || at_once_) return;
    each_block(plan_, [&](int64_t block) {
      add_up_.run(tile, plan_, block);
      if (one_block()) return means_.run_row(tile);
      const double count = count_of(block);
      float* sums = tile.floats(sums_, block);
      for (int64_t i = 0; i < tile.rows; ++i) sums[i] = static_cast<float>(sums[i] / count);
    });
  }

  /// Of rows whose first elements are far from the others.
  void measure_again(const Tile& tile) const {
    far_.run_row(tile);
    for (int64_t i = 0; i < tile.rows; ++i) {
      if (tile.floats(is_far_)[i] == 0) continue;
      Tile row = tile;
      row.row += i;
      row.rows = 1;
      row.scratch += i * static_cast<int64_t>(sizeof(float));  // numbers of results alone are read and written
      nearer_.run_row(row);
      sweeps_.inner.run(row, plan_, 0);
    }
  }

  void finish(const Tile& tile) const {
    if (at_once_) measure_again(tile);
    if (one_block())
      finish_.run_row(tile);
    else
      join_blocks(tile);
    if (!has_stats_) return;
    write_results(plan_, tile, mean_, plan_.out[1]);
    write_results(plan_, tile, squares_, plan_.out[2]);
  }

  void join_blocks(const Tile& tile) const {
    for (int64_t i = 0; i < tile.rows; ++i) {
      double variance = 0, mean = 0;
      if (root_mean_square_) {
        for (int64_t b = 0; b < plan_.tiling.blocks; ++b) variance += static_cast<double>(tile.floats(sums_, b)[i]);
        variance /= static_cast<double>(plan_.space.lanes);
      } else {
        Moments all;
        for (int64_t b = 0; b < plan_.tiling.blocks; ++b)
          all.add(count_of(b), tile.floats(sums_, b)[i], tile.floats(squares_, b)[i]);
        mean = all.mean;
        variance = all.variance();
      }
      tile.floats(mean_)[i] = static_cast<float>(mean);
      tile.floats(scale_)[i] = static_cast<float>(1 / std::sqrt(variance + static_cast<double>(epsilon_)));
      tile.floats(squares_)[i] = static_cast<float>(variance);
    }
  }

  bool root_mean_square_, has_stats_ = false, at_once_ = false;
  float epsilon_;
  RowPlan plan_;
  ScratchPlan scratch_;
  RowView sums_, squares_;  ///< of each block; the sums become the blocks' means, the squares of the first the variance
  RowView mean_, scale_, elements_, first_, is_far_;
  Sweep estimate_, far_, nearer_, add_up_, means_, finish_;
  LastSweeps sweeps_;
  std::unique_ptr<const WholeRows> whole_;
};

}  // namespace

const char* refuse_layer_norm(const Problem& problem, const Target& target) {
  RowPlan plan;
  return plan_forward(problem, target, plan);
}
Result<Run> make_layer_norm(const Problem& problem, const Target& target) { return run_of<LayerNorm>(problem, target); }

}  // namespace partita::jit
