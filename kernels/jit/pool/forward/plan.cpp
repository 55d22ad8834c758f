// SPDX-License-Identifier: Apache-2.0
// Decisions of forward pooling.
#include "kernels/jit/pool/forward/plan.hpp"

#include <algorithm>
#include <limits>

#include "kernels/jit/code/emitter.hpp"
#include "kernels/jit/code/expand.hpp"
#include "kernels/jit/pool/windows.hpp"
#include "kernels/jit/taps/stencil.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"

namespace partita::jit {
namespace {

constexpr int64_t kTileFloats = 16384;  ///< folded rows of a tile: well within the second-level cache
/// Of large planes some rows: what is read ahead and what is written past the caches take turns so soon that neither
/// waits for the other.
constexpr int64_t kTileOfPlane = 1024;
constexpr int64_t kJoinedRows = 7;      ///< read side by side: few, as they are one stream of memory
constexpr int64_t kTiles = 16;          ///< at least, so that threads share the work evenly
constexpr int64_t kWorthTiles = 32768;  ///< elements of a result below which one thread makes it
constexpr int64_t kGroup = 16;          ///< floats read or written beyond the rows of a tile in scratch memory
constexpr size_t kMaxOperands = 12;     ///< of an expression, beside what the pooling itself reads

int64_t blocks(int64_t extent, int64_t block) { return (extent + block - 1) / block; }

bool whole(const PoolGeometry& g, int i) {
  const PoolGeometry::Taps taps = g.taps(i, 0);
  return g.dst[i] == 1 && taps.end - taps.begin == g.src[i];
}

bool same_number(const std::vector<float>& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [&](float v) { return v == numbers[0]; });
}

}  // namespace

ForwardPlan::ForwardPlan(const Problem& problem) : p(forward_pool(problem)) {
  may_stream = jit::may_stream(p, problem);
  source_elements = elements(problem.in[0].dims);
  rows = p.g.dst[0] * p.g.dst[1];
  plan_numbers();
  join_axes();
  plan_row();
  plan_tiles();
  if (p.g.channel_last || numbers != Numbers::each) return;
  for (int64_t plane = 1; plane < tile_planes; ++plane)
    for (int64_t row = 0; row < rows; ++row) row_numbers.push_back(row_numbers[static_cast<size_t>(row)]);
}

/// Channel-last windows over everything fold all cells as if they were rows.
void ForwardPlan::join_axes() {
  PoolGeometry& g = p.g;
  if (!g.channel_last || !whole(g, 0) || !whole(g, 1) || !whole(g, 2) || g.src[2] == 1) return;
  std::vector<PoolView> views = p.in;
  for (int k : p.front_in) {
    PoolView& view = views[static_cast<size_t>(k)];
    const auto even = even_distance(view, g.src);
    if (!even) return;
    view.z = view.x = 0;
    view.y = *even;
  }
  // Operands of `back` lie over the one cell of the result.
  p.in = views;
  const int64_t cells = elements(g.src);
  g.src = g.kernel = {1, cells, 1};
  g.dilations = g.strides = {1, 1, 1};
  g.pads_begin = {0, 0, 0};
  fold_walk = FoldWalk::sources;
  fold_rows = std::min(cells, kJoinedRows);
}

void ForwardPlan::plan_row() {
  const PoolGeometry& g = p.g;
  for (int64_t z = 0; z < g.dst[0]; ++z) z_taps.push_back(g.taps(0, z));
  for (const WindowStretch& s : window_stretches(g, 1))
    for (int64_t k = 0; k < s.count; ++k) {
      y_taps.push_back(s.taps);
      alike_until.push_back(s.first + s.count);
    }
  cell = g.channel_last ? g.channels : 1;
  const int64_t reach = (g.dst[2] - 1) * g.strides[2] + (g.kernel[2] - 1) * g.dilations[2] + 1;
  apart = !g.channel_last && g.strides[2] > 2;
  every_second = !g.channel_last && g.strides[2] == 2;
  // Channel-first rows start at cache lines, unless their phases do not.
  const int64_t unit = g.channel_last ? 1 : apart ? g.strides[2] : kGroup;
  first_place = apart ? g.pads_begin[2] : blocks(g.pads_begin[2], unit) * unit;
  places = blocks(first_place + std::max(g.src[2], reach - g.pads_begin[2]), unit) * unit;
  row_floats = places * cell;
  for (int64_t t = 0; apart && t < g.kernel[2]; ++t) phases.push_back(t * g.dilations[2] % g.strides[2]);
  std::sort(phases.begin(), phases.end());
  phases.erase(std::unique(phases.begin(), phases.end()), phases.end());
  const bool joined = !g.channel_last || std::all_of(p.front_in.begin(), p.front_in.end(), [&](int k) {
    return joined_walk(p.in[static_cast<size_t>(k)], g.src[2], g.channels).has_value();
  });
  if (!joined) fold_walk = FoldWalk::cells;
  fold_length = !joined ? g.channels : g.src[2] * cell;
}

void ForwardPlan::plan_tiles() {
  const PoolGeometry& g = p.g;
  planes = g.channel_last ? 1 : g.channels;
  const int64_t floats = !g.channel_last && rows * row_floats > kTileOfPlane ? kTileOfPlane : kTileFloats;
  tile_rows = std::clamp<int64_t>(floats / row_floats, 1, rows);
  tile_planes = tile_rows < rows ? 1 : std::clamp<int64_t>(floats / (rows * row_floats), 1, planes);
  const auto tiles = [&] { return g.batch * blocks(planes, tile_planes) * blocks(rows, tile_rows); };
  const int64_t result = g.batch * g.channels * rows * g.dst[2];
  while (result >= kWorthTiles && tiles() < kTiles && tile_planes * tile_rows > 1) {
    int64_t& longest = tile_planes > 1 ? tile_planes : tile_rows;
    longest = (longest + 1) / 2;
  }
  plane_blocks = blocks(planes, tile_planes);
  row_blocks = blocks(rows, tile_rows);
  int64_t runs = 0;
  for (int64_t y = 0; y < g.dst[1]; y = alike_until[static_cast<size_t>(y)]) runs += g.dst[0];
  if (fold_walk == FoldWalk::rows && tile_planes > 1 && tile_rows < tile_planes * runs) fold_walk = FoldWalk::planes;

  rows_join = true;
  for (int k : p.back_in) rows_join = rows_join && rows_lie_evenly(p.in[static_cast<size_t>(k)]);
  for (const PoolView& view : p.out) rows_join = rows_join && rows_lie_evenly(view);

  plan_scratch();
}

void ForwardPlan::plan_scratch() {
  const int64_t stride = p.g.strides[2];
  folded_floats = tile_planes * tile_rows * row_floats;
  if (apart) {
    phase_floats = blocks(folded_floats, kGroup * stride) * kGroup;
    folded_floats = phase_floats * stride;
  }
  folded_floats = blocks(folded_floats, kGroup) * kGroup + Stencil::kOverread;
  combined_row_floats = p.g.channel_last ? stride * cell : apart ? places / stride : places;
  for (int64_t t = 0; t < p.g.kernel[2]; ++t) {
    const int64_t place = first_place - p.g.pads_begin[2] + t * p.g.dilations[2];
    taps.push_back(apart ? place % stride * phase_floats + place / stride : place * cell);
  }
}

bool ForwardPlan::rows_lie_evenly(const PoolView& view) const {
  if (p.g.dst[0] > 1 && view.z != p.g.dst[1] * view.y) return false;
  return tile_planes == 1 || view.c == rows * view.y;
}

void ForwardPlan::plan_numbers() {
  const PoolGeometry& g = p.g;
  bool empty = false;
  const auto number = [&](double divisor) {
    empty = empty || divisor == 0;
    if (g.maximum) return divisor == 0 ? p.lowest : -std::numeric_limits<float>::infinity();
    if (p.divides) return divisor == 0 ? 1.0f : static_cast<float>(divisor);
    return PoolGeometry::reciprocal(divisor);
  };
  // A divisor that is given belongs to the rows.
  for (int64_t x = 0; x < g.dst[2]; ++x) x_numbers.push_back(number(static_cast<double>(g.counted(2, x))));
  for (int64_t z = 0; z < g.dst[0]; ++z)
    for (int64_t y = 0; y < g.dst[1]; ++y)
      row_numbers.push_back(number(g.divisor_of(g.counted(0, z) * g.counted(1, y))));
  if (g.maximum) {
    numbers = empty ? Numbers::each : Numbers::none;
  } else if (same_number(x_numbers) && same_number(row_numbers)) {
    numbers = Numbers::constant;
    constant = number(g.divisor({0, 0, 0}));
  } else {
    numbers = Numbers::each;
  }
}

int64_t ForwardPlan::source_rows(int64_t z, int64_t y) const {
  const PoolGeometry::Taps a = z_taps[static_cast<size_t>(z)], b = y_taps[static_cast<size_t>(y)];
  return (a.end - a.begin) * (b.end - b.begin);
}

int64_t ForwardPlan::scratch_floats() const {
  return folded_floats + (apart ? phase_floats * p.g.strides[2] + Stencil::kOverread : 0);
}

const char* refuse_forward_plan(const Problem& problem) {
  for (const auto* side : {&problem.in, &problem.out})
    for (const TensorDesc& desc : *side)
      if (elements(desc.dims) == 0) return "a tensor has no elements";
  const ForwardPool p = forward_pool(problem);
  const int64_t reach = p.g.dst[2] * p.g.strides[2] + p.g.kernel[2] * p.g.dilations[2];
  if ((p.g.pads_begin[2] + p.g.src[2] + reach) * p.g.channels > INT32_MAX / 8) return "a row is too long";
  for (const Expr* e : {&p.front, &p.back})
    if (const char* reason = refuse_placeless(*e, problem)) return reason;
  if (p.front_in.size() > kMaxOperands || p.back_in.size() > kMaxOperands || p.out.size() > kMaxOperands)
    return "too many operands";
  const auto refuse = [&](const PoolView& view, const Dims& extents, bool output) -> const char* {
    if (output ? !Emitter::stores(view.dtype) : !Emitter::loads(view.dtype))
      return "an operand's type has no generated conversion";
    const auto walk = p.g.channel_last ? row_walk(view, p.g.channels, view.c) : row_walk(view, extents[2], view.x);
    return !walk || (output && *walk == RowWalk::same) ? "an operand's elements are not next to each other" : nullptr;
  };
  for (int k : p.front_in)
    if (const char* reason = refuse(p.in[static_cast<size_t>(k)], p.g.src, false)) return reason;
  for (int k : p.back_in)
    if (const char* reason = refuse(p.in[static_cast<size_t>(k)], p.g.dst, false)) return reason;
  for (const PoolView& view : p.out)
    if (const char* reason = refuse(view, p.g.dst, true)) return reason;
  return nullptr;
}

}  // namespace partita::jit
