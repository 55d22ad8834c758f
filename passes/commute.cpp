// SPDX-License-Identifier: Apache-2.0
// Rewriting of subgraphs: average poolings change places with convolutions whose windows are one cell.
#include "passes/commute.hpp"

#include <algorithm>

#include "kernels/pool_geometry.hpp"
#include "passes/layout.hpp"
#include "passes/patterns/sets.hpp"
#include "src/base/axes.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"

namespace partita {
namespace {

/// Fewer windows than cells by this factor at least, or the product is hardly less work.
constexpr int64_t kLeastCellsPerWindow = 2;

constexpr OpSet kSum = OpKind::BiasAddBackward | OpKind::ReduceSum;

bool is_adaptive(OpKind kind) { return kind == OpKind::AdaptiveAvgPool || kind == OpKind::AdaptiveAvgPoolBackward; }

bool is_power_of_two(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

std::string text_of(const SubOp& op) { return str(name_of(op.kind), " ", op.id); }

class Commuter {
 public:
  explicit Commuter(Subgraph& graph) : g_(graph), moves_(graph.ops.size(), Move::none) {}

  /// Whether something changed.
  bool run() {
    for (size_t i = 0; i < g_.ops.size(); ++i) moves_[i] = move_of(g_.ops[i]);
    if (std::all_of(moves_.begin(), moves_.end(), [](Move m) { return m == Move::none; })) return false;
    drop_what_nobody_reads();
    for (size_t i = 0; i < moves_.size(); ++i) put(g_.ops[i], moves_[i]);
    g_.ops = std::move(made_);
    drop_values();
    return true;
  }

 private:
  enum class Move : uint8_t { none, drop, data, weights, sum, forward };

  SubValue& value(int v) { return g_.values[static_cast<size_t>(v)]; }
  const SubValue& value(int v) const { return g_.values[static_cast<size_t>(v)]; }
  const Dims& dims(int v) const { return value(v).desc.dims; }
  Dtype type(int v) const { return value(v).desc.dtype; }
  /// Null where the value is an input port.
  const SubOp* maker(int v) const {
    const int p = value(v).producer;
    return p < 0 ? nullptr : &g_.ops[static_cast<size_t>(p)];
  }

  /// The port through which an operator that moves reads what a pooling or a product made.
  static size_t port_of(Move move) { return move == Move::weights ? 1 : 0; }

  Move move_of(const SubOp& op) const {
    if (patterns::kDataGradient.has(op.kind)) {
      const SubOp* spread = spread_of(op, 0);
      return spread && is_pointwise(op.attrs, dims(op.in[1])) && is_less(*spread, op, op.out[0]) ? Move::data
                                                                                                 : Move::none;
    }
    if (patterns::kWeightsGradient.has(op.kind)) {
      const SubOp* spread = spread_of(op, 1);
      return spread && is_pointwise(op.attrs, dims(op.out[0])) && is_less(*spread, op, op.in[0]) ? Move::weights
                                                                                                 : Move::none;
    }
    if (kSum.has(op.kind)) return sums_all(op) ? Move::sum : Move::none;
    if (patterns::kAverage.has(op.kind)) return pools_product(op) ? Move::forward : Move::none;
    return Move::none;
  }

  const SubOp* spread_of(const SubOp& op, size_t port) const {
    const SubOp* made = maker(op.in[port]);
    return made && patterns::kAverageBackward.has(made->kind) && elements(dims(made->in[0])) > 0 ? made : nullptr;
  }

  /// Channels are the same axis for both.
  bool same_axes(const SubOp& pool, const SubOp& op, int rank) const {
    const PoolAxes axes = pool_axes(pool.attrs, rank);
    return axes.batch && axes.spatial == rank - 2 && axes.channel_last == channels_last(op.attrs);
  }

  /// The dims of `like` with one cell for each window of the pooling.
  Dims pooled_dims(const SubOp& pool, const Dims& like) const {
    const Dims& windows = dims(patterns::kAverageBackward.has(pool.kind) ? pool.in[0] : pool.out[0]);
    const PoolAxes axes = pool_axes(pool.attrs, like.size());
    Dims made = like;
    for (int i = 0; i < axes.spatial; ++i) made[axes.spatial_axis(i)] = windows[axes.spatial_axis(i)];
    return made;
  }

  /// Whether `op` on windows, whose new inner tensor is `like` pooled, is less work and no more memory than on cells.
  bool is_less(const SubOp& pool, const SubOp& op, int like) const {
    const Dims &wide = dims(patterns::kAverageBackward.has(pool.kind) ? pool.out[0] : pool.in[0]), &other = dims(like);
    if (!same_axes(pool, op, wide.size()) || other.size() != wide.size()) return false;
    const int64_t cells = elements(wide), windows = elements(pooled_dims(pool, wide));
    return windows * kLeastCellsPerWindow <= cells && elements(pooled_dims(pool, other)) <= cells;
  }

  PoolGeometry geometry(const SubOp& pool) const {
    Problem p;
    p.op = pool.kind;
    p.attrs = pool.attrs;
    const Dims &in = dims(pool.in[0]), &out = dims(pool.out[0]);
    return patterns::kAverageBackward.has(pool.kind) ? pool_geometry(p, out, in) : pool_geometry(p, in, out);
  }

  /// The cells of each window receive all of its gradient: a window is divided by the number of its cells.
  bool shares_all(const SubOp& pool) const {
    if (is_adaptive(pool.kind)) return true;
    const PoolGeometry g = geometry(pool);
    int64_t cells = 1;
    for (int i = 0; i < g.axes(); ++i) {
      const PoolGeometry::Taps first = g.taps(i, 0);
      for (int64_t o = 0; o < g.dst[i]; ++o) {
        const PoolGeometry::Taps t = g.taps(i, o);
        const int64_t of_axis = t.end - t.begin;
        const bool equal =
            g.divides_by == PoolDivisor::fixed ? of_axis == first.end - first.begin : of_axis == g.counted(i, o);
        if (of_axis == 0 || !equal) return false;
      }
      cells *= first.end - first.begin;
    }
    return g.divides_by != PoolDivisor::fixed || g.divisor_override == cells;
  }

  /// The share of a cell is one gradient over a power of two: rounding before and behind that is rounding once.
  bool shares_are_exact(const SubOp& pool) const {
    const Dims &wide = dims(pool.out[0]), &narrow = dims(pool.in[0]);
    if (is_adaptive(pool.kind)) {
      const PoolAxes axes = pool_axes(pool.attrs, wide.size());
      for (int i = 0; i < axes.spatial; ++i) {
        const int64_t cells = wide[axes.spatial_axis(i)], windows = narrow[axes.spatial_axis(i)];
        if (cells % windows != 0 || !is_power_of_two(cells / windows)) return false;
      }
      return true;
    }
    const PoolGeometry g = geometry(pool);
    for (int i = 0; i < g.axes(); ++i) {
      if (g.strides[i] < g.kernel[i]) return false;
      for (int64_t o = 0; o < g.dst[i]; ++o)
        if (const int64_t counted = g.counted(i, o); counted != 0 && !is_power_of_two(counted)) return false;
    }
    return g.divides_by != PoolDivisor::fixed || is_power_of_two(std::abs(g.divisor_override));
  }

  /// A sum over all cells, which is the one over all windows.
  bool sums_all(const SubOp& op) const {
    const SubOp* spread = spread_of(op, 0);
    if (!spread || !shares_all(*spread)) return false;
    const int rank = dims(op.in[0]).size();
    if (op.kind == OpKind::BiasAddBackward) return rank >= 3 && same_axes(*spread, op, rank);
    const PoolAxes axes = pool_axes(spread->attrs, rank);
    std::vector<bool> summed(static_cast<size_t>(rank), false);
    for (int64_t axis : op.attrs.dims(Attr::axes)) summed[static_cast<size_t>(*normal_axis(axis, rank))] = true;
    for (int i = 0; i < axes.spatial; ++i)
      if (!summed[static_cast<size_t>(axes.spatial_axis(i))]) return false;
    return true;
  }

  bool pools_product(const SubOp& pool) const {
    const SubOp* op = maker(pool.in[0]);
    if (!op || !patterns::kConvolution.has(op->kind) || value(pool.in[0]).output || readers(pool.in[0]) != 1)
      return false;
    // Integers and bf16 are multiplied faster than f32, which pooled sources are, by as much as there is less to do.
    if (type(pool.in[0]) == Dtype::bf16 || elements(dims(pool.out[0])) == 0) return false;
    for (int v : op->in)
      if (const SubOp* made = maker(v); made && made->kind == OpKind::Dequantize) return false;
    if (!is_pointwise(op->attrs, dims(op->in[1])) || !is_less(pool, *op, op->in[0])) return false;
    return op->in.size() < 3 || shares_all(pool);
  }

  size_t readers(int v) const {
    size_t count = 0;
    for (const SubOp& op : g_.ops) count += static_cast<size_t>(std::count(op.in.begin(), op.in.end(), v));
    return count;
  }

  /// Poolings and products that only operators read that move.
  void drop_what_nobody_reads() {
    std::vector<bool> needed(g_.values.size(), false);
    for (size_t v = 0; v < needed.size(); ++v) needed[v] = g_.values[v].output;
    for (size_t i = 0; i < g_.ops.size(); ++i)
      for (size_t port = 0; port < g_.ops[i].in.size(); ++port)
        if (moves_[i] == Move::none || port != port_of(moves_[i]))
          needed[static_cast<size_t>(g_.ops[i].in[port])] = true;
    for (size_t i = 0; i < g_.ops.size(); ++i) {
      if (moves_[i] == Move::none || needed[static_cast<size_t>(g_.ops[i].in[port_of(moves_[i])])]) continue;
      moves_[static_cast<size_t>(value(g_.ops[i].in[port_of(moves_[i])]).producer)] = Move::drop;
    }
  }

  /// A new inner value that lies as `like` does.
  int add_value(Dtype dtype, const Dims& shape, int like) {
    logical_tensor desc(0, dtype, shape);
    desc.strides = strides_in_order_of(value(like).desc, shape);
    g_.values.push_back({desc, -1, false});
    return static_cast<int>(g_.values.size()) - 1;
  }

  void put(const SubOp& op, Move move) {
    switch (move) {
      case Move::none: made_.push_back(op); return;
      case Move::drop: return;
      case Move::data: put_data_gradient(op, *maker(op.in[0])); return;
      case Move::weights: put_weights_gradient(op, *maker(op.in[1])); return;
      case Move::sum: put_sum(op, *maker(op.in[0])); return;
      case Move::forward: put_forward(op, *maker(op.in[0])); return;
    }
  }

  static SubOp on_windows(const SubOp& op, const SubOp& pool) {
    SubOp made = op;
    made.text = str(text_of(op), " (on windows of ", text_of(pool), ")");
    return made;
  }

  void put_data_gradient(const SubOp& op, const SubOp& pool) {
    SubOp product = on_windows(op, pool), spread = pool;
    const int diff_src = op.out[0];
    const bool once = type(diff_src) == Dtype::bf16 && shares_are_exact(pool);
    const Dtype inner = once ? Dtype::bf16 : Dtype::f32;  // f16 might overflow before the division
    const Dims windows = pooled_dims(pool, dims(diff_src));
    const int gradient = add_value(inner, windows, diff_src);
    product.in[0] = pool.in[0];
    product.in.resize(2);  // what stood for an attribute
    product.out = {gradient};
    if (op.attrs.has(Attr::dst_shape))
      product.attrs.set(Attr::dst_shape, std::vector<int64_t>(windows.begin(), windows.end()));
    spread.text = str(text_of(pool), " (behind ", text_of(op), ")");
    spread.in = {gradient};
    spread.out = {diff_src};
    if (pool.attrs.has(Attr::src_shape)) {
      const Dims& cells = dims(diff_src);
      spread.attrs.set(Attr::src_shape, std::vector<int64_t>(cells.begin(), cells.end()));
    }
    made_.push_back(std::move(product));
    made_.push_back(std::move(spread));
  }

  /// The average of `src` whose gradient `spread` is, not rounded further than to f32.
  SubOp average_of(const SubOp& spread, const SubOp& op, int src) {
    SubOp average = spread;
    average.kind = is_adaptive(spread.kind) ? OpKind::AdaptiveAvgPool : OpKind::AvgPool;
    average.attrs.set(Attr::src_shape, {});
    if (is_adaptive(spread.kind)) {
      const Dims windows = spatial_dims(spread.attrs, dims(spread.in[0]));
      average.attrs.set(Attr::spatial_axes, {});
      average.attrs.set(Attr::sizes, std::vector<int64_t>(windows.begin(), windows.end()));
    }
    average.text = str(name_of(average.kind), " (of the source of ", text_of(op), ")");
    average.in = {src};
    average.out = {add_value(Dtype::f32, pooled_dims(spread, dims(src)), src)};
    return average;
  }

  void put_weights_gradient(const SubOp& op, const SubOp& pool) {
    SubOp average = average_of(pool, op, op.in[0]), product = on_windows(op, pool);
    product.in = {average.out[0], pool.in[0]};
    made_.push_back(std::move(average));
    made_.push_back(std::move(product));
  }

  void put_sum(const SubOp& op, const SubOp& pool) {
    SubOp sum = on_windows(op, pool);
    sum.in[0] = pool.in[0];
    made_.push_back(std::move(sum));
  }

  void put_forward(const SubOp& pool, const SubOp& op) {
    SubOp average = pool, product = on_windows(op, pool);
    const int src = op.in[0];
    average.text = str(text_of(pool), " (before ", text_of(op), ")");
    average.in = {src};
    average.out = {add_value(Dtype::f32, pooled_dims(pool, dims(src)), src)};
    product.in[0] = average.out[0];
    product.out = pool.out;
    made_.push_back(std::move(average));
    made_.push_back(std::move(product));
  }

  /// Takes out values that nobody makes or reads any more, and tells the others who makes them.
  void drop_values() {
    std::vector<int> number(g_.values.size(), -1);
    std::vector<SubValue> kept;
    const auto keep = [&](int& v) {
      int& to = number[static_cast<size_t>(v)];
      if (to < 0) {
        to = static_cast<int>(kept.size());
        kept.push_back(value(v));
        kept.back().producer = -1;
      }
      v = to;
    };
    for (auto* ports : {&g_.inputs, &g_.outputs}) std::for_each(ports->begin(), ports->end(), keep);
    for (size_t i = 0; i < g_.ops.size(); ++i) {
      std::for_each(g_.ops[i].in.begin(), g_.ops[i].in.end(), keep);
      std::for_each(g_.ops[i].out.begin(), g_.ops[i].out.end(), keep);
      for (int v : g_.ops[i].out) kept[static_cast<size_t>(v)].producer = static_cast<int>(i);
    }
    g_.values = std::move(kept);
  }

  Subgraph& g_;
  std::vector<Move> moves_;  // of each operator
  std::vector<SubOp> made_;
};

}  // namespace

void commute_pools(Subgraph& graph) {
  while (Commuter(graph).run()) {
  }
}

}  // namespace partita
