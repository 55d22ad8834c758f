// SPDX-License-Identifier: Apache-2.0
// Channel-last poolings with few taps.
#include "kernels/jit/pool/forward/taps.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "kernels/jit/flat/exceeds_cache.hpp"
#include "src/base/round.hpp"
#include "src/base/shape.hpp"
#include "src/base/threads.hpp"

namespace partita::jit {
namespace {

constexpr int64_t kMaxTaps = 16;
constexpr size_t kMaxOperands = 128;
constexpr size_t kMaxKernels = 12;
constexpr size_t kCheapFront = 3;  ///< instructions that may be repeated for every window over an element
constexpr int64_t kRun = 1 << 12;  ///< elements of rows walked stretch by stretch: they stay in the nearest cache

int64_t count(const PoolGeometry::Taps& taps) { return taps.end - taps.begin; }

}  // namespace

bool TapPool::fits(const ForwardPool& p) {
  const PoolGeometry& g = p.g;
  const int64_t rows = g.kernel[0] * g.kernel[1], taps = rows * g.kernel[2];
  if (!g.channel_last || taps > kMaxTaps || p.front_in.size() * static_cast<size_t>(taps) > kMaxOperands / 2)
    return false;
  size_t kernels = 1;
  for (int i = 0; i < 3; ++i) kernels *= window_stretches(g, i).size();
  if (kernels > kMaxKernels) return false;
  // Folding reads `rows` elements a cell and stores one; then a window reads kernel[2] cells. The way through scratch
  // memory itself costs as much as two reads.
  const int64_t folded = (rows + 1) * g.strides[2] + g.kernel[2] + 2;
  return taps <= (p.front.code.size() > kCheapFront ? folded / 2 : folded);
}

TapPool::TapPool(const Problem& problem, const Target& target)
    : p_(forward_pool(problem)),
      stretches_(window_stretches(p_.g, 2)),
      joined_(windows_join()),
      may_stream_(may_stream(p_, problem)) {
  const PoolGeometry& g = p_.g;
  for (const WindowStretch& s : window_stretches(g, 1)) {
    y_taps_.insert(y_taps_.end(), static_cast<size_t>(s.count), s.taps);
    alike_until_.insert(alike_until_.end(), static_cast<size_t>(s.count), s.first + s.count);
  }
  most_rows_ = std::max<int64_t>(1, kRun / (g.dst[2] * g.channels));
  std::map<RowKind, size_t> first_kernels;
  for (int64_t z = 0; z < g.dst[0]; ++z) {
    z_taps_.push_back(g.taps(0, z));
    for (int64_t y = 0; y < g.dst[1]; ++y) {
      const RowKind row{count(z_taps_.back()) * count(y_taps_[static_cast<size_t>(y)]),
                        g.counted(0, z) * g.counted(1, y)};
      const auto [known, is_new] = first_kernels.try_emplace(row, kernels_.size());
      kernel_of_.push_back(known->second);
      for (size_t s = 0; s < stretches_.size() && is_new; ++s) {
        Kernels& made = kernels_.emplace_back();
        made.plain = make(target.isa, row, stretches_[s], false);
        if (may_stream_) made.streaming = make(target.isa, row, stretches_[s], true);
      }
    }
  }
}

/// Windows follow each other in all operands as their cells do.
bool TapPool::windows_join() const {
  const PoolGeometry& g = p_.g;
  const auto joins = [&](const PoolView& view, int64_t cells) {
    return joined_walk(view, cells, g.channels).has_value();
  };
  return g.strides[2] == 1 &&
         std::all_of(p_.front_in.begin(), p_.front_in.end(),
                     [&](int k) { return joins(p_.in[static_cast<size_t>(k)], g.src[2]); }) &&
         std::all_of(p_.back_in.begin(), p_.back_in.end(),
                     [&](int k) { return joins(p_.in[static_cast<size_t>(k)], g.dst[2]); }) &&
         std::all_of(p_.out.begin(), p_.out.end(), [&](const PoolView& view) { return joins(view, g.dst[2]); });
}

RowOperand TapPool::operand(const PoolView& view, int64_t cells, int64_t step) const {
  const auto walk = joined_ ? joined_walk(view, cells, p_.g.channels) : row_walk(view, p_.g.channels, view.c);
  return {view.dtype, walk == RowWalk::next, view.x * step};
}

/// Elements are taken as they are, from few rows.
bool TapPool::takes_stencil(int64_t source_rows, int64_t valid) const {
  const std::vector<Instr>& front = p_.front.code;
  if (front.size() != 1 || front[0].op != ExprOp::load || front[0].imm != 0) return false;
  // Taps of a row are named as distances from the first.
  const bool near = p_.in[0].x * p_.g.dilations[2] * p_.g.kernel[2] <= INT32_MAX / 2;
  return valid > 0 && near && source_rows <= Stencil::kMaxSources && p_.in[0].dtype != Dtype::s32 &&
         operand(p_.in[0], p_.g.src[2], 1).steps;
}

TapPool::Kernel TapPool::make(Isa isa, const RowKind& row, const WindowStretch& stretch, bool streaming) const {
  const PoolGeometry& g = p_.g;
  const auto [source_rows, counted_rows] = row;
  const int64_t length = joined_ ? stretch.count * g.channels : g.channels, valid = source_rows * count(stretch.taps);
  const int64_t counted = counted_rows * stretch.counted;
  std::vector<RowOperand> taps, operands, outputs;
  for (int k : p_.back_in) operands.push_back(operand(p_.in[static_cast<size_t>(k)], g.dst[2], 1));
  for (const PoolView& view : p_.out) outputs.push_back(operand(view, g.dst[2], 1));
  if (takes_stencil(source_rows, valid)) {
    StencilShape shape;
    shape.rows = {.length = length, .in = operands, .out = outputs, .streaming = streaming};
    shape.fold = g.maximum ? Fold::max : Fold::sum;
    shape.dtype = p_.in[0].dtype;
    shape.sources = source_rows;
    const int64_t distance = p_.in[0].x / p_.in[0].element_bytes() * g.dilations[2];
    for (int64_t t = 0; t < count(stretch.taps); ++t) shape.taps.push_back(t * distance);
    shape.row_bytes = p_.in[0].x * g.strides[2];
    const size_t fresh = std::min(shape.taps.size(), static_cast<size_t>(g.strides[2]));
    shape.fresh_sources = g.kernel[0] > 1 ? source_rows : std::min(source_rows, g.strides[1]);
    shape.fetched.assign(shape.taps.end() - static_cast<int64_t>(fresh), shape.taps.end());
    if (g.strides[1] > 1 && g.kernel[1] > g.strides[1]) shape.fetched_ahead = ahead_in_rows(g.strides[1] * p_.in[0].y);
    if (HalfMaxima::fits(isa, shape, p_.back)) return {.halves = std::make_shared<const HalfMaxima>(shape)};
    Expr expr;
    const auto value = finished(ExprBuilder(expr), ExprBuilder(expr).skeleton(), counted);
    return {.stencil = make_stencil(isa, shape, std::move(expr), value, p_.back, p_.back_in)};
  }
  for (int k : p_.front_in) taps.push_back(operand(p_.in[static_cast<size_t>(k)], g.src[2], g.strides[2]));
  RowKernelWriter w;
  ExprBuilder::Value value = 0;
  for (int64_t t = 0; t < valid; ++t) {
    const auto next = w.splice(p_.front, p_.front_in, taps);
    value = t == 0 ? next : g.maximum ? w.builder().max(value, next) : w.builder().add(value, next);
  }
  w.splice(p_.back, p_.back_in, operands, outputs, finished(w.builder(), value, counted));
  return {.taps = w.make(isa, length, streaming)};
}

ExprBuilder::Value TapPool::finished(ExprBuilder b, ExprBuilder::Value value, int64_t counted) const {
  if (counted == 0) return b.constant(p_.g.maximum ? p_.lowest : 0.0f);
  if (p_.g.maximum) return value;
  const double divisor = p_.g.divisor_of(counted);
  return p_.divides ? b.div(value, b.constant(static_cast<float>(divisor)))
                    : b.mul(value, b.constant(static_cast<float>(1 / divisor)));
}

Status TapPool::operator()(const RunArgs& args) const {
  const PoolGeometry& g = p_.g;
  const bool streaming = may_stream_ && outputs_aligned(args);
  const int64_t cost = g.dst[2] * g.channels * elements(g.kernel);
  parallel_for(g.batch * g.dst[0] * g.dst[1], cost, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t y = begin % g.dst[1];
      const int64_t rows = std::min({alike_until_[static_cast<size_t>(y)] - y, most_rows_, end - begin});
      run(args, {begin / g.dst[1] / g.dst[0], begin / g.dst[1] % g.dst[0], y, rows}, streaming);
      begin += rows;
    }
    if (streaming) end_streaming();
  });
  return {};
}

void TapPool::run(const RunArgs& args, const Rows& rows, bool streaming) const {
  const PoolGeometry& g = p_.g;
  const auto [n, z, y, row_count] = rows;
  const PoolGeometry::Taps tz = z_taps_[static_cast<size_t>(z)], ty = y_taps_[static_cast<size_t>(y)];
  std::array<const void*, kMaxOperands> in;
  std::array<void*, kMaxOperands> out;
  const auto advance = [](auto& at, int64_t bytes) {
    at = const_cast<std::byte*>(static_cast<const std::byte*>(at)) + bytes;
  };
  const size_t first_kernel = kernel_of_[static_cast<size_t>(z * g.dst[1] + y)];
  for (size_t s = 0; s < stretches_.size(); ++s) {
    const WindowStretch& stretch = stretches_[s];
    const Kernels& made = kernels_[first_kernel + s];
    const Kernel& kernel = streaming ? made.streaming : made.plain;
    // A stencil knows how far the taps of a row are from the first one.
    const int64_t taps_end = kernel.taps ? stretch.taps.end : stretch.taps.begin + 1;
    size_t k = 0;
    for (int64_t a = tz.begin; a < tz.end; ++a)
      for (int64_t b = ty.begin; b < ty.end; ++b)
        for (int64_t c = stretch.taps.begin; c < taps_end; ++c)
          for (int operand : p_.front_in)
            in[k++] =
                p_.in[static_cast<size_t>(operand)].at(args.in[static_cast<size_t>(operand)], n, 0, g.cell(0, z, a),
                                                       g.cell(1, y, b), g.cell(2, stretch.first, c));
    const size_t sources = k;
    for (int operand : p_.back_in)
      in[k++] =
          p_.in[static_cast<size_t>(operand)].at(args.in[static_cast<size_t>(operand)], n, 0, z, y, stretch.first);
    for (size_t o = 0; o < p_.out.size(); ++o)
      out[o] = const_cast<std::byte*>(p_.out[o].at(args.out[o], n, 0, z, y, stretch.first));
    for (int64_t row = 0; row < row_count; ++row) {
      for (size_t i = 0; row > 0 && i < k; ++i) {
        const bool source = i < sources;
        const int operand = source ? p_.front_in[i % p_.front_in.size()] : p_.back_in[i - sources];
        advance(in[i], p_.in[static_cast<size_t>(operand)].y * (source ? g.strides[1] : 1));
      }
      for (size_t o = 0; row > 0 && o < p_.out.size(); ++o) advance(out[o], p_.out[o].y);
      const StencilCall call{in.data(), in.data() + sources, out.data(), joined_ ? 1 : stretch.count};
      if (kernel.halves)
        (*kernel.halves)(call);
      else if (kernel.stencil)
        (*kernel.stencil)(call);
      else
        (*kernel.taps)({in.data(), out.data(), nullptr, call.rows});
    }
  }
}

}  // namespace partita::jit
