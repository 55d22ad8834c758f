// SPDX-License-Identifier: Apache-2.0
// Rows, columns and weights of pooling gradients.
#include "kernels/jit/pool/plan.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/jit/flat/joined_stores.hpp"
#include "kernels/jit/pool/walk.hpp"
#include "kernels/loop/fold_plan.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"

namespace partita::jit {
namespace {

constexpr int64_t kMostNames = 1 << 30;
constexpr int32_t kNoTap = INT32_MIN / 2;  ///< stays negative whatever tap number is added

PoolOperand pool_operand(const TensorDesc& desc, bool channel_last) {
  PoolOperand o;
  const int axes = desc.dims.size() - 2;
  if (axes < 1) return o;  // not one of the pooling's tensors
  const int64_t each = element_bytes(desc.dtype);
  const auto stride = [&](int axis) { return desc.dims[axis] == 1 ? 0 : desc.strides[axis] * each; };
  const auto spatial = [&](int from_end) {
    return axes > from_end ? stride((channel_last ? axes : axes + 1) - from_end) : 0;
  };
  return {desc.dtype, desc.offset * each, stride(0),  stride(channel_last ? axes + 1 : 1),
          spatial(2), spatial(1),         spatial(0), Fold::none};
}

PoolOperand fold_slot(Fold fold, bool channel_last) {
  return {.dtype = Dtype::f32, .c = channel_last ? int64_t{sizeof(float)} : 0, .fold = fold};
}

/// True where all windows with a valid cell weigh the same along the axis; `weight` becomes their weight.
bool same_weights(const PoolGeometry& g, int i, float& weight) {
  weight = 0;
  for (int64_t o = 0; o < g.dst[i]; ++o) {
    const float w = axis_weight(g, i, o);
    if (w == 0) continue;
    if (weight != 0 && w != weight) return false;
    weight = w;
  }
  return true;
}

}  // namespace

std::vector<Dtype> types_of(const std::vector<PoolOperand>& operands) {
  std::vector<Dtype> types;
  for (const PoolOperand& o : operands) types.push_back(o.dtype);
  return types;
}

bool rows_follow(Isa isa, const std::vector<PoolOperand>& out, int64_t row, int64_t rows, bool planes) {
  const PoolOperand& first = out[0];
  const int64_t each = element_bytes(first.dtype), vector = JoinedStores::together(isa, each) * each;
  if (each == 1 || out.size() > JoinedStores::most_outputs(isa)) return false;
  return std::ranges::all_of(out, [&](const PoolOperand& o) {
    return o.fold == Fold::none && element_bytes(o.dtype) == each && (rows == 1 || o.y == row * each) &&
           (!planes || o.c == rows * row * each) && o.offset % vector == first.offset % vector && o.n == first.n &&
           o.c == first.c && o.z == first.z;
  });
}

PoolGeometry pool_plan_geometry(const Problem& p, const AssumedWindows& assumed) {
  if (has_indices(p) || p.step == StepKind::pool_forward)
    return with_three_axes(pool_geometry(p, p.in[0].dims, p.out[0].dims));
  PoolGeometry g = with_three_axes(pool_geometry(p, p.out[0].dims, p.in[static_cast<size_t>(front_port(p.step))].dims));
  if (p.step != StepKind::max_pool_indices_backward) return g;
  for (int i = 0; i < 3; ++i) {
    g.kernel[i] = g.strides[i] = std::max<int64_t>(1, (g.src[i] + g.dst[i] / 2) / g.dst[i]);
    if (g.strides[i] == 1) continue;
    g.kernel[i] += assumed.overlap;
    g.pads_begin[i] = assumed.pad;
  }
  return g;
}

PoolPlan::PoolPlan(const Problem& p, const AssumedWindows& assumed)
    : g(pool_plan_geometry(p, assumed)),
      channel_last(g.channel_last),
      maximum(g.maximum),
      front(front_expression(p)),
      back(back_expression(p)),
      front_in(loaded_operands(front)),
      back_in(loaded_operands(back)) {
  for (const TensorDesc& desc : p.in) in.push_back(pool_operand(desc, channel_last));
  for (size_t k = 0; k < p.out.size(); ++k) {
    const Fold fold = fold_of_output(back, k);
    out.push_back(fold == Fold::none ? pool_operand(p.out[k], channel_last) : fold_slot(fold, channel_last));
  }
  base = pool_index(p.attrs, g);
  if (p.step == StepKind::max_pool_indices_backward) indices = 1;
  const auto moving = std::ranges::find_if(front_in, [&](int k) { return in[static_cast<size_t>(k)].x != 0; });
  if (moving != front_in.end()) ahead = *moving;
  if (maximum) return;
  float z = 1, y = 1, x = 1;
  const bool same_z = same_weights(g, 0, z), same_y = same_weights(g, 1, y);
  same_along_rows = same_z && same_y;
  same_along_x = same_weights(g, 2, x);
  // Each factor is the reciprocal of a small whole number: one division of their product rounds once.
  const auto count = [](float w) { return w == 0 ? int64_t{1} : int64_t{std::lround(1.0f / w)}; };
  if (same_along_rows && same_along_x)
    weight = static_cast<float>(1.0 / g.divisor_of(count(z) * count(y) * count(x)));
  else if (same_along_rows)
    weight = static_cast<float>(1.0 / static_cast<double>(count(z) * count(y)));
  else if (same_along_x)
    weight = static_cast<float>(1.0 / static_cast<double>(count(x)));
}

int64_t PoolPlan::tap_of(int i, int64_t cell, int64_t back) const {
  const int64_t distance = cell + back * g.strides[i];
  return distance % g.dilations[i] == 0 && distance / g.dilations[i] < g.kernel[i] ? distance / g.dilations[i] : -1;
}

bool PoolPlan::windows_have_cells(int i) const {
  for (int64_t window = 0; window < g.dst[i]; ++window)
    if (g.taps(i, window).begin >= g.taps(i, window).end) return false;
  return true;
}

bool PoolPlan::stores_alone() const { return out.size() == 1 && jit::stores_alone(back); }

bool PoolPlan::fits_indices() const {
  const PoolOperand& named = in[static_cast<size_t>(indices)];
  const bool narrow = named.dtype == Dtype::s32;  // differences are taken in their own type
  if (channel_last || elements(g.src) * base.cell * (narrow ? g.batch * g.channels : 1) > kMostNames) return false;
  const auto neighbours = [](const PoolOperand& o) { return o.x == element_bytes(o.dtype); };
  const auto reads = [&](int k) {
    const PoolOperand& o = in[static_cast<size_t>(k)];
    return o.x == 0 || neighbours(o);
  };
  return neighbours(named) && std::ranges::all_of(out, neighbours) && std::ranges::all_of(front_in, reads) &&
         std::ranges::all_of(back_in, reads);
}

std::optional<int64_t> PoolOperand::planes_apart(const PoolGeometry& g, bool inside_image) const {
  std::optional<int64_t> apart;
  int64_t planes = 1;
  const int64_t images = inside_image ? 1 : g.batch;
  for (const auto& [count, distance] : {std::pair(g.src[0], z), std::pair(g.channels, c), std::pair(images, n)}) {
    if (count == 1) continue;
    if (!apart) apart = distance;
    if (distance != *apart * planes) return std::nullopt;
    planes *= count;
  }
  return apart.value_or(0);
}

int PoolPlan::streamed_piece(int64_t apart) const {
  int common = kCacheLine;
  for (const PoolOperand& o : out) common = std::min(common, streamed_piece(o, apart));
  return common;
}

int PoolPlan::streamed_piece(const PoolOperand& o, int64_t apart) const {
  int64_t common = std::gcd(kCacheLine, apart * element_bytes(o.dtype));
  for (int64_t distance : {o.offset, o.n, o.z, o.y, channel_last ? 0 : o.c}) common = std::gcd(common, distance);
  return common >= 16 ? static_cast<int>(common) : 0;
}

bool PoolPlan::streams_cells(Isa isa) const {
  return std::ranges::all_of(out, [&](const PoolOperand& o) { return streams_cells(isa, o); });
}

bool PoolPlan::streams_cells(Isa isa, const PoolOperand& o) {
  return on_lines({o.offset, o.n, o.z, o.y, o.x}) && 2 * lanes_of(isa) * element_bytes(o.dtype) >= kCacheLine;
}

std::vector<RowCover> PoolPlan::row_covers(int64_t z, int64_t y) const {
  std::vector<RowCover> list;
  const std::vector<Cover> over_y = covers_of(g, 1, y);
  for (const Cover& cz : covers_of(g, 0, z))
    for (const Cover& cy : over_y)
      list.push_back({cz.window, cy.window, static_cast<int32_t>((cz.tap * g.kernel[1] + cy.tap) * g.kernel[2]),
                      maximum ? 1.0f : axis_weight(g, 0, cz.window) * axis_weight(g, 1, cy.window)});
  return list;
}

std::vector<ColumnBlock> PoolPlan::column_blocks(int64_t cells) const {
  std::vector<ColumnBlock> list;
  const int64_t step = g.strides[2], pad = g.pads_begin[2];
  for (int64_t cell = 0; cell < g.src[2]; cell += cells) {
    ColumnBlock b;
    b.cell = cell;
    b.cells = std::min(cells, g.src[2] - cell);
    b.periods = (b.cells + step - 1) / step;
    const int64_t first = (cell + pad) / step - (reach(2) - 1);
    const int64_t end = std::min(g.dst[2], (cell + b.cells - 1 + pad) / step + 1);
    b.window = std::max<int64_t>(first, 0);
    b.windows = std::max<int64_t>(end - b.window, 0);
    b.window_at = b.window - first;
    const int64_t source = b.window * step - pad;
    b.source = std::clamp<int64_t>(source, 0, g.src[2]);
    const int64_t source_end = std::min(g.src[2], source + (b.windows - 1) * step + span(2));
    b.sources = b.windows == 0 ? 0 : std::max<int64_t>(source_end - b.source, 0);
    b.source_at = b.source - source;
    list.push_back(b);
  }
  return list;
}

std::vector<float> PoolPlan::window_weights() const {
  std::vector<float> list;
  for (int64_t o = 0; o < g.dst[2]; ++o) list.push_back(axis_weight(g, 2, o) * (same_along_rows ? weight : 1.0f));
  return list;
}

std::vector<int32_t> PoolPlan::first_taps(int64_t more) const {
  std::vector<int32_t> list;
  for (int64_t o = 0; o < g.dst[2]; ++o) list.push_back(static_cast<int32_t>(g.taps(2, o).begin));
  list.insert(list.end(), static_cast<size_t>(more), kNoTap);
  return list;
}

std::vector<int64_t> PoolPlan::tap_rows_of(int64_t z, int64_t y) const {
  std::vector<int64_t> list;
  const auto tz = g.taps(0, z), ty = g.taps(1, y);
  for (int64_t a = 0; a < g.kernel[0]; ++a)
    for (int64_t b = 0; b < g.kernel[1]; ++b) {
      const bool valid = a >= tz.begin && a < tz.end && b >= ty.begin && b < ty.end;
      const int64_t iz = z * g.strides[0] - g.pads_begin[0] + a * g.dilations[0];
      const int64_t iy = y * g.strides[1] - g.pads_begin[1] + b * g.dilations[1];
      list.push_back(valid ? iz * g.src[1] + iy : -1);
    }
  return list;
}

int32_t PoolPlan::first_tap_of(int64_t z, int64_t y) const {
  return static_cast<int32_t>((g.taps(0, z).begin * g.kernel[1] + g.taps(1, y).begin) * g.kernel[2]);
}

}  // namespace partita::jit
