// SPDX-License-Identifier: Apache-2.0
// Planning of rows: operands, tiles and scratch memory.
#include "kernels/jit/rows/rows.hpp"

#include <algorithm>

#include "kernels/jit/code/expand.hpp"
#include "kernels/jit/flat/exceeds_cache.hpp"
#include "src/base/dtype.hpp"
#include "src/base/round.hpp"
#include "src/base/shape.hpp"

namespace partita::jit {
namespace {

constexpr int64_t kTileBytes = 32768;    ///< read by a tile of short rows: it stays in the nearest cache
constexpr int64_t kLongestBlock = 8192;  ///< lanes of one call; f32 sums stay exact enough
constexpr int64_t kColumnTile = 65536;   ///< elements of a tile whose lanes are results
constexpr int64_t kWidestColumns = 1024, kNarrowestColumns = 64;
constexpr int64_t kWidestColumnsOnce = 2048;  ///< some numbers of each stay in the nearest cache
constexpr int64_t kLeastTiles = 8;
constexpr int64_t kUnit = 64;  ///< blocks are multiples of it, so that vectors and cache lines stay whole

const char* refuse_expression(const Expr& expr, const Problem& problem) {
  for (const Instr& in : expr.code)
    if (fold_of(in.op) != Fold::none) return "an expression reduces";
  return refuse_placeless(expr, problem);
}

const char* refuse_type(Dtype dtype, bool output) {
  return (output ? Emitter::stores(dtype) : Emitter::loads(dtype)) ? nullptr
                                                                   : "an operand's type has no generated conversion";
}

/// A tensor without the reduced axes, as one over the space with strides 0 along them.
TensorDesc widened(const TensorDesc& desc, const Dims& dims, const std::vector<bool>& reduced) {
  TensorDesc wide = desc;
  const bool has_all = desc.dims.size() == dims.size();
  wide.dims = dims;
  wide.strides = Dims(dims.size(), 0);
  for (int d = 0, k = 0; d < dims.size(); ++d) {
    const bool gone = reduced[static_cast<size_t>(d)];
    if (!gone) wide.strides[d] = desc.strides[k];
    if (!gone || has_all) ++k;
  }
  return wide;
}

/// Bytes read for each element of the space, or kept of it in f32.
int64_t bytes_of_element(const RowSpace& space) {
  int64_t bytes = 0;
  for (const RowView& view : space.views)
    if (view.from == RowView::From::in && view.lane != 0 && view.row != 0) bytes += element_bytes(view.dtype);
  return std::max<int64_t>(4, bytes);
}

/// Lanes of a tile that is swept once: whole rows, where that leaves tiles for some threads.
int64_t columns_once(const RowSpace& space) {
  const int64_t share = elements(space.outer) * space.lanes / kLeastTiles;
  return std::clamp(share / kUnit * kUnit, kNarrowestColumns, kWidestColumnsOnce);
}

Tiling tiling_of(const RowSpace& space, bool once) {
  Tiling t;
  if (space.along_lanes) {
    t.blocks = (space.lanes + kLongestBlock - 1) / kLongestBlock;
    t.block = t.blocks == 1 ? space.lanes : rounded_up((space.lanes + t.blocks - 1) / t.blocks, kUnit);
    t.blocks = (space.lanes + t.block - 1) / t.block;
    t.tile_rows =
        std::clamp<int64_t>(kTileBytes / bytes_of_element(space) / space.lanes, 1, std::min<int64_t>(space.rows, 256));
  } else {
    const int64_t wide = std::clamp(kColumnTile / space.rows / kUnit * kUnit, kNarrowestColumns, kWidestColumns);
    t.block = std::min(space.lanes, once ? columns_once(space) : wide);
    t.tile_rows = space.rows;
  }
  return t;
}

}  // namespace

Edges edges_of(const Problem& problem) {
  Edges edges{front_expression(problem), back_expression(problem), {}, {}, {}, !problem.front.empty()};
  edges.front_in = loaded_operands(edges.front);
  edges.back_in = loaded_operands(edges.back);
  for (const Instr& in : edges.back.code)
    if (in.op == ExprOp::store) edges.back_out.push_back(in.imm);
  std::sort(edges.back_out.begin(), edges.back_out.end());
  for (Instr& in : edges.back.code)
    if (in.op == ExprOp::store)
      in.imm = static_cast<int32_t>(std::lower_bound(edges.back_out.begin(), edges.back_out.end(), in.imm) -
                                    edges.back_out.begin());
  return edges;
}

const char* refuse_edges(const Problem& problem, const Edges& edges) {
  for (const auto* side : {&problem.in, &problem.out})
    for (const TensorDesc& desc : *side)
      if (std::find(desc.dims.begin(), desc.dims.end(), 0) != desc.dims.end()) return "a tensor has no elements";
  if (const char* reason = refuse_expression(problem.front, problem)) return reason;
  if (const char* reason = refuse_expression(problem.back, problem)) return reason;
  for (const auto* list : {&edges.front_in, &edges.back_in})
    for (int k : *list)
      if (const char* reason = refuse_type(problem.in[static_cast<size_t>(k)].dtype, false)) return reason;
  for (int k : edges.back_out)
    if (const char* reason = refuse_type(problem.out[static_cast<size_t>(k)].dtype, true)) return reason;
  constexpr size_t kMost = 72;  // leaves room for the operands of the sweeps themselves
  return edges.front_in.size() + edges.back_in.size() + edges.back_out.size() > kMost ? "too many operands" : nullptr;
}

std::vector<SpaceOperand> edge_operands(const Problem& problem, const Edges& edges) {
  std::vector<SpaceOperand> list;
  for (int k : edges.back_out) list.push_back({RowView::From::out, k, problem.out[static_cast<size_t>(k)]});
  for (const auto* side : {&edges.front_in, &edges.back_in})
    for (int k : *side) list.push_back({RowView::From::in, k, problem.in[static_cast<size_t>(k)]});
  return list;
}

void place_views(const Problem& problem, const std::vector<SpaceOperand>& operands, RowPlan& plan) {
  plan.in.assign(problem.in.size(), {});
  plan.out.assign(problem.out.size(), {});
  for (size_t k = 0; k < operands.size(); ++k) {
    RowView view = plan.space.views[k];
    view.block = plan.tiling.block * view.lane;
    auto& side = view.from == RowView::From::in ? plan.in : plan.out;
    side[static_cast<size_t>(view.port)] = view;
  }
}

const char* plan_rows(const Problem& problem, const Target& target, const std::vector<bool>& reduced,
                      const RowPorts& ports, RowPlan& plan) {
  plan.isa = target.isa;
  plan.threads = std::max(1, target.threads);
  plan.edges = edges_of(problem);
  if (const char* reason = refuse_edges(problem, plan.edges)) return reason;
  const Dims& dims = problem.out[0].dims;
  std::vector<SpaceOperand> operands = edge_operands(problem, plan.edges);
  if (ports.front_is_result)
    for (size_t k = 0; k < plan.edges.front_in.size(); ++k) {
      SpaceOperand& o = operands[plan.edges.back_out.size() + k];
      o.desc = widened(o.desc, dims, reduced);  // read by sweeps, so lanes must be neighbours
    }
  for (int k : ports.in) {
    const TensorDesc& desc = problem.in[static_cast<size_t>(k)];
    if (const char* reason = refuse_type(desc.dtype, false)) return reason;
    operands.push_back({RowView::From::in, k, desc});
  }
  for (int k : ports.in_result)
    operands.push_back({RowView::From::in, k, widened(problem.in[static_cast<size_t>(k)], dims, reduced), true});
  for (int k : ports.out_result)
    operands.push_back({RowView::From::out, k, widened(problem.out[static_cast<size_t>(k)], dims, reduced), true});
  if (const char* reason = row_space(dims, reduced, operands, plan.space, ports.runs)) return reason;
  plan.tiling = tiling_of(plan.space, ports.columns_once);
  place_views(problem, operands, plan);
  plan.may_stream = exceeds_cache(problem);
  return nullptr;
}

RowView ScratchPlan::take(RowView view, int64_t floats) {
  view.offset = static_cast<int64_t>(bytes_);
  bytes_ += static_cast<size_t>(rounded_up(floats * 4, kCacheLine));
  return view;
}

RowView ScratchPlan::elements(const RowPlan& plan) {
  const Tiling& t = plan.tiling;
  const int64_t row = rounded_up(t.block * t.blocks, kCacheLine / 4);
  return take({.row = row * 4, .lane = 4, .block = t.block * 4}, row * t.tile_rows);
}

RowView ScratchPlan::results(const RowPlan& plan, bool blocks) {
  const int64_t n = rounded_up(plan.results(), kCacheLine / 4);
  const RowView view = plan.space.along_lanes ? RowView{.steps = false, .row = 4} : RowView{.lane = 4};
  RowView placed = take(view, n * (blocks ? plan.tiling.blocks : 1));
  if (blocks) placed.block = n * 4;
  return placed;
}

RowView ScratchPlan::lanes(const RowPlan& plan, int64_t count) {
  return take({.lane = 4, .block = plan.tiling.block * 4}, count);
}

}  // namespace partita::jit
