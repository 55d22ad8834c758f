// SPDX-License-Identifier: Apache-2.0
// LayerNormBackward, with x' = (x - mean) rstd, g the gradient and h = g gamma, n elements a row:
//   first sweep    the row's sums of h and of h x'
//   then           a = rstd sum h / n, b = rstd sum(h x') / n
//   second sweep   h rstd - a - x' b; g x' and g are added to the gradients of gamma and beta
// Rows are dealt to a fixed number of groups; each group has its own f32 gradients of gamma and beta, which are added
// in f64, in order. So results do not depend on the number of threads.
#include <algorithm>

#include "kernels/jit/code/run_of.hpp"
#include "kernels/jit/rows/norm.hpp"
#include "kernels/jit/rows/norm_parts.hpp"
#include "kernels/jit/rows/whole_rows.hpp"
#include "kernels/loop/fold_plan.hpp"
#include "src/base/check.hpp"
#include "src/base/dtype.hpp"
#include "src/base/round.hpp"
#include "src/base/shape.hpp"

namespace partita::jit {
namespace {

using Value = Sweep::Value;

constexpr int64_t kShort = 12, kShortNarrow = 16;  ///< vectors of a row that is computed in one piece; of AVX2
constexpr int64_t kMostGroups = 64;
constexpr int64_t kLeastRows = 32;  ///< of a group, so that its gradients of gamma and beta are small beside its rows

bool has_gradients(const Problem& p) { return p.out_ports() > 2; }

const char* plan_backward(const Problem& p, const Target& target, RowPlan& plan) {
  const int rank = p.out[0].dims.size();
  const auto begin = normal_axis(p.attrs.i64_or(Attr::begin_norm_axis, -1), rank);
  if (!begin) return "`begin_norm_axis` is out of range";
  std::vector<bool> reduced(static_cast<size_t>(rank), false);
  for (int d = *begin; d < rank; ++d) reduced[static_cast<size_t>(d)] = true;
  const RowPorts ports{.in = {0}, .in_result = {2, 3}, .out_result = {}, .runs = true};
  if (const char* reason = plan_rows(p, target, reduced, ports, plan)) return reason;
  if (!plan.space.along_lanes) return "the normalised elements are not next to each other";
  if (has_affine(p, 4))
    if (const char* reason = refuse_vector(p.in[4], plan.space.lanes)) return reason;
  if (!has_gradients(p)) return nullptr;
  for (size_t port : {1u, 2u})
    if (const char* reason = refuse_vector(p.out[port], plan.space.lanes)) return reason;
  return nullptr;
}

class LayerNormBackward {
 public:
  LayerNormBackward(const Problem& p, const Target& target)
      : gradients_(has_gradients(p)), epsilon_(p.attrs.f32_or(Attr::epsilon, 1e-5f)) {
    PT_ASSERT(plan_backward(p, target, plan_) == nullptr);
    if (has_affine(p, 4)) gamma_ = vector_view(RowView::From::in, 4, p.in[4], plan_.tiling.block);
    if (gradients_)
      for (int port : {1, 2})
        gradient_out_[port - 1] =
            vector_view(RowView::From::out, port, p.out[static_cast<size_t>(port)], plan_.tiling.block);
    mean_ = scratch_.results(plan_);
    rstd_ = scratch_.results(plan_);
    sum_ = scratch_.results(plan_, true);
    dot_ = scratch_.results(plan_, true);
    if (plan_.edges.has_front) elements_ = scratch_.elements(plan_);
    write_sums();
    write_map();
    write_numbers();
    // By measurement: rows of 32-bit elements fill the nearest cache, with the vectors beside them.
    const bool narrow = bits_of(plan_.in[0].dtype) == 16 && bits_of(plan_.in[1].dtype) == 16;
    const auto where = narrow ? LongRowsWhere::in_streams_too : LongRowsWhere::in_caches;
    const auto write = [this](RowWriter& row) { write_row(row); };
    whole_ = whole_rows(plan_, scratch_.bytes(), plan_.isa == Isa::avx512 ? kShort : kShortNarrow, write, where);
    if (!whole_) make_tiles();
    groups_ = std::clamp<int64_t>(units() * (whole_ ? 1 : plan_.tiling.tile_rows) / kLeastRows, 1,
                                  std::min(kMostGroups, units()));
  }

  /// Tiles' scratch, then the groups' gradients: gamma's and beta's of each.
  size_t scratch_bytes() const { return parts().bytes() + (gradients_ ? groups_ * 2 * group_bytes() : 0); }

  Status operator()(const RunArgs& args) const {
    std::byte* sums = static_cast<std::byte*>(args.scratch) + parts().bytes();
    const bool share_rows = groups_ < plan_.threads && plan_.tiling.blocks > 1;
    const auto part = [&](int64_t begin, int64_t end, int number) {
      std::byte* scratch = parts().share(args.scratch, number);
      for (int64_t g = begin; g < end; ++g)  // without gradients of gamma and beta there may be no memory at all
        run_group(args, scratch, gradients_ ? sums + group_offset(g) : nullptr, g);
    };
    if (share_rows)
      part(0, groups_, 0);
    else
      parallel_for(groups_, units() / groups_ * (whole_ ? plan_.space.lanes : tile_cost(plan_)), part, plan_.threads);
    if (gradients_) add_groups(args, sums);
    return {};
  }

 private:
  /// Groups are made of rows or of tiles.
  int64_t units() const { return whole_ ? whole_->units() : tile_count(plan_); }
  ThreadScratch parts() const {
    if (whole_) return whole_->scratch(std::min<int64_t>(plan_.threads, groups_));
    return {std::min<int64_t>(plan_.threads, groups_), static_cast<int64_t>(sweeps_.scratches() * scratch_.bytes())};
  }
  size_t group_bytes() const { return static_cast<size_t>(aligned(plan_.space.lanes * 4)); }
  size_t group_offset(int64_t group) const { return static_cast<size_t>(group) * 2 * group_bytes(); }

  struct Normalised {
    Value x, g, h;
  };
  Normalised normalised(Sweep& s, bool stored) const {
    ExprBuilder b = s.builder();
    const Value g = stored ? s.load(elements_) : s.front(plan_);
    const Value centred = b.sub(s.load(plan_.in[0]), s.load(mean_));
    const Value x = b.mul(centred, s.load(rstd_));
    return {x, g, gamma_.lane ? b.mul(g, s.load(gamma_)) : g};
  }

  void write_sums() {
    Sweep& sums = sweeps_.inner;
    const Normalised n = normalised(sums, false);
    if (plan_.edges.has_front) sums.store(elements_, n.g);
    sums.fold(sum_, Fold::sum, n.h);
    sums.fold(dot_, Fold::sum, product_for_sum(sums.builder(), n.h, n.x));
  }

  void write_map() {
    Sweep& map = sweeps_.last;
    const Normalised n = normalised(map, plan_.edges.has_front);
    ExprBuilder b = map.builder();
    // Both with the opposite sign and times rstd, see write_numbers.
    const Value mean = map.load(first_block(sum_)), slope = map.load(first_block(dot_)), rstd = map.load(rstd_);
    map.back(plan_, b.fma(n.x, slope, b.fma(n.h, rstd, mean)));
    if (gradients_) {
      // Their place differs from group to group: it comes with the tile.
      const int64_t block = plan_.tiling.block * 4;
      RowView gamma{.from = RowView::From::out, .port = gamma_sum_port(), .lane = 4, .block = block};
      RowView beta{.from = RowView::From::out, .port = gamma_sum_port() + 1, .lane = 4, .block = block};
      map.fold(gamma, Fold::sum, product_for_sum(b, n.g, n.x));
      map.fold(beta, Fold::sum, n.g);
    }
  }

  /// What prepare and finish_sums do to a tile's numbers.
  void write_numbers() {
    ExprBuilder b = deviations_.builder();
    const Value variance = b.add(deviations_.load(as_row(rstd_)), b.constant(epsilon_));
    deviations_.store(as_row(rstd_), b.div(b.constant(1), b.apply(ExprOp::sqrt, variance)));
    ExprBuilder m = means_.builder();
    const Value count = m.constant(-static_cast<float>(plan_.space.lanes)), rstd = means_.load(as_row(rstd_));
    for (const RowView& view : {sum_, dot_})
      means_.store(as_row(view), m.mul(m.div(means_.load(as_row(view)), count), rstd));
  }

  void make_tiles() {
    for (Sweep* sweep : {&deviations_, &means_}) sweep->make(plan_.isa, plan_.results(), 0, false);
    sweeps_.make(plan_);
  }

  void write_row(RowWriter& row) const {
    row.read(plan_.in[2], mean_);
    row.read(plan_.in[3], rstd_);
    row.numbers(deviations_);
    row.begin(sum_, 0);
    row.begin(dot_, 0);
    row.elements(sweeps_.inner);
    row.numbers(means_);
    row.elements(sweeps_.last);
  }

  /// The groups' sums stand behind the problem's outputs.
  int gamma_sum_port() const { return static_cast<int>(plan_.out.size()); }

  void run_group(const RunArgs& args, std::byte* scratch, std::byte* sums, int64_t group) const {
    std::array<void*, kMostOutputs> out;
    std::copy(args.out.begin(), args.out.end(), out.begin());
    if (gradients_) {
      std::fill_n(reinterpret_cast<float*>(sums), group_bytes() / 2, 0.0f);
      out[args.out.size()] = sums;
      out[args.out.size() + 1] = sums + group_bytes();
    }
    const RunArgs own{args.in, {out.data(), args.out.size() + 2}, args.scratch};
    const int64_t begin = units() * group / groups_, end = units() * (group + 1) / groups_;
    if (whole_) return whole_->run(own, scratch, begin, end);
    sweep_tiles(
        plan_, own, scratch, scratch_.bytes(), begin, end, sweeps_, [this](const Tile& tile) { prepare(tile); },
        [this](const Tile& tile) { finish_sums(tile); });
  }

  void prepare(const Tile& tile) const {
    read_results(plan_, tile, plan_.in[2], mean_);
    read_results(plan_, tile, plan_.in[3], rstd_);
    deviations_.run_row(tile);
    fill_results(plan_, tile, sum_, 0);
    fill_results(plan_, tile, dot_, 0);
  }

  void finish_sums(const Tile& tile) const {
    for (const RowView* view : {&sum_, &dot_}) fold_blocks(plan_, tile, *view, Fold::sum);
    means_.run_row(tile);
  }

  /// diff_gamma and diff_beta from the groups' sums.
  void add_groups(const RunArgs& args, const std::byte* sums) const {
    constexpr int64_t kPiece = 256;
    const int64_t pieces = (plan_.space.lanes + kPiece - 1) / kPiece;
    parallel_for(pieces * 2, kPiece * groups_, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        const auto which = static_cast<size_t>(p / pieces);
        const int64_t first = p % pieces * kPiece, count = std::min(kPiece, plan_.space.lanes - first);
        std::array<double, kPiece> total{};
        for (int64_t g = 0; g < groups_; ++g) {
          const auto* from = reinterpret_cast<const float*>(sums + group_offset(g) + which * group_bytes()) + first;
          fold_numbers(Fold::sum, total.data(), from, count);
        }
        const RowView& to = gradient_out_[which];
        std::byte* out = static_cast<std::byte*>(args.out[which + 1]) + to.offset;
        if (to.dtype == Dtype::f32)
          round_numbers(reinterpret_cast<float*>(out) + first, total.data(), count);
        else
          for (int64_t i = 0; i < count; ++i)
            store_from_double(out, to.dtype, first + i, total[static_cast<size_t>(i)]);
      }
    });
  }

  static constexpr size_t kMostOutputs = 96;

  bool gradients_;
  float epsilon_;
  RowPlan plan_;
  ScratchPlan scratch_;
  int64_t groups_ = 1;
  RowView gamma_{.lane = 0};
  std::array<RowView, 2> gradient_out_;
  RowView mean_, rstd_, sum_, dot_, elements_;
  LastSweeps sweeps_;
  Sweep deviations_, means_;
  std::unique_ptr<const WholeRows> whole_;
};

}  // namespace

const char* refuse_layer_norm_backward(const Problem& problem, const Target& target) {
  RowPlan plan;
  return plan_backward(problem, target, plan);
}
Result<Run> make_layer_norm_backward(const Problem& problem, const Target& target) {
  return run_of<LayerNormBackward>(problem, target);
}

}  // namespace partita::jit
