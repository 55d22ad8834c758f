// SPDX-License-Identifier: Apache-2.0
// Stretches of results along x, one call each.
#include "kernels/jit/resample/direct.hpp"

#include <algorithm>
#include <numeric>

#include "kernels/jit/flat/exceeds_cache.hpp"

namespace partita::jit {
namespace {

constexpr size_t kMaxOperands = 96;
constexpr int64_t kLeastChannels = 16;   ///< a vector
constexpr int64_t kElementsACall = 160;  ///< on average, where a row takes several calls: prepared rows take two

std::vector<int32_t> every_source(const AxisMap& map) {
  std::vector<int32_t> list(static_cast<size_t>(map.from()));
  std::iota(list.begin(), list.end(), 0);
  return list;
}

std::vector<TapStretch> x_stretches(const PlaneWalk& walk, const Attrs& attrs, AxisStep& step) {
  const std::vector<int32_t> position = every_source(walk.x);
  step = regular_step(walk.x, attrs, position);
  return tap_stretches(walk.x, 0, walk.x.to(), step, position);
}

}  // namespace

bool ResampleDirect::fits(const Problem& p) {
  bool channel_last = false;
  if (refuse_resample_walk(p, channel_last) || !channel_last) return false;
  const PlaneWalk walk = resample_walk(p, true);
  const auto taps = static_cast<size_t>(walk.z.most_taps() * walk.y.most_taps() * walk.x.most_taps());
  if (walk.channels < kLeastChannels || taps > kMaxTaps) return false;
  AxisStep step;
  const auto calls = static_cast<int64_t>(x_stretches(walk, p.attrs, step).size());
  if (calls > 1 && calls * kElementsACall > walk.x.to() * walk.channels) return false;
  // Where a source has a share in several results, it should be cheap to read.
  const bool cheap = p.front.empty() && p.in[static_cast<size_t>(front_port(p.step))].dtype == Dtype::f32;
  const auto reads_once = [](const AxisMap& axis) {
    return !axis.weighted() || axis.to() * static_cast<int64_t>(axis.most_taps()) <= axis.from();
  };
  return cheap || (reads_once(walk.x) && reads_once(walk.y) && reads_once(walk.z));
}

ResampleDirect::ResampleDirect(const Problem& p, const Target& target)
    : walk_(resample_walk(p, true)),
      front_(front_expression(p)),
      back_(back_expression(p)),
      front_in_(loaded_operands(front_)),
      back_in_(loaded_operands(back_)) {
  for (int k : front_in_) front_tensors_.push_back(walked(p.in[static_cast<size_t>(k)], p, walk_));
  for (int k : back_in_) back_tensors_.push_back(walked(p.in[static_cast<size_t>(k)], p, walk_));
  bool aligned = true;
  for (const TensorDesc& desc : p.out) {
    out_.push_back(walked(desc, p, walk_));
    aligned = aligned && out_.back().at_cache_lines(/*places=*/true);
  }
  may_stream_ = aligned && exceeds_cache(p);
  stretches_ = x_stretches(walk_, p.attrs, x_step_);
  make_kernels(target.isa);
}

void ResampleDirect::make_kernels(Isa isa) {
  for (int64_t z = 0; z < walk_.z.to(); ++z)
    for (int64_t y = 0; y < walk_.y.to(); ++y)
      for (const TapStretch& s : stretches_) {
        const size_t nz = walk_.z.taps(z).size(), ny = walk_.y.taps(y).size(), nx = s.positions.size();
        for (size_t streaming = 0; streaming <= (may_stream_ ? 1 : 0); ++streaming) {
          Kernel& kernel = kernels_[streaming][nz][ny][nx];
          if (!kernel) kernel = make(isa, nz, ny, nx, streaming == 1);
        }
      }
}

/// back(sum over taps of front(place) * weights); the product of weights is computed once a place.
ResampleDirect::Kernel ResampleDirect::make(Isa isa, size_t z_taps, size_t y_taps, size_t x_taps,
                                            bool streaming) const {
  RowKernelWriter w;
  const auto operands = [&](const std::vector<WalkedTensor>& tensors, int64_t places) {
    std::vector<RowOperand> list;
    for (const WalkedTensor& t : tensors) list.push_back({t.dtype, t.channel_step(walk_) == 1, t.x * places});
    return list;
  };
  const auto weights = [&](const AxisMap& map, size_t taps, int64_t row_bytes) {
    std::vector<ExprBuilder::Value> list;
    for (size_t k = 0; k < taps; ++k)
      list.push_back(map.weighted() ? w.load({Dtype::f32, false, row_bytes}) : w.builder().constant(1));
    return list;
  };
  const auto wz = weights(walk_.z, z_taps, 0), wy = weights(walk_.y, y_taps, 0), wx = weights(walk_.x, x_taps, 4);
  auto sum = w.builder().constant(0);
  for (size_t k = 0; k < z_taps * y_taps * x_taps; ++k) {
    auto term = w.splice(front_, front_in_, operands(front_tensors_, x_step_.shift));
    std::vector<ExprBuilder::Value> factors;
    if (walk_.x.weighted()) factors.push_back(wx[k % x_taps]);
    if (walk_.y.weighted()) factors.push_back(wy[k / x_taps % y_taps]);
    if (walk_.z.weighted()) factors.push_back(wz[k / x_taps / y_taps]);
    for (size_t f = 1; f < factors.size(); ++f) factors[0] = w.builder().mul(factors[0], factors[f]);
    if (!factors.empty()) term = w.builder().mul(term, factors[0]);
    sum = k == 0 ? term : w.builder().add(sum, term);
  }
  w.splice(back_, back_in_, operands(back_tensors_, x_step_.step), operands(out_, x_step_.step), sum);
  return w.make(isa, walk_.channels, streaming);
}

Status ResampleDirect::operator()(const RunArgs& args) const {
  const bool streaming = may_stream_ && outputs_aligned(args);
  each_result_row(walk_, streaming,
                  [&](int64_t plane, int64_t z, int64_t y) { run_row(args, plane, z, y, streaming); });
  return {};
}

void ResampleDirect::run_row(const RunArgs& args, int64_t plane, int64_t z, int64_t y, bool streaming) const {
  for (const TapStretch& s : stretches_) run_stretch(args, s, plane, z, y, streaming);
}

void ResampleDirect::run_stretch(const RunArgs& args, const TapStretch& s, int64_t plane, int64_t z, int64_t y,
                                 bool streaming) const {
  std::array<const void*, kMaxOperands> in;
  std::array<void*, kMaxOperands> out;
  const auto z_taps = walk_.z.taps(z), y_taps = walk_.y.taps(y);
  size_t k = 0;
  if (walk_.z.weighted())
    for (const Tap& tz : z_taps) in[k++] = &tz.weight;
  if (walk_.y.weighted())
    for (const Tap& ty : y_taps) in[k++] = &ty.weight;
  if (walk_.x.weighted())
    for (size_t x = 0; x < s.positions.size(); ++x) in[k++] = &s.weights[x * static_cast<size_t>(s.count)];
  for (const Tap& tz : z_taps)
    for (const Tap& ty : y_taps)
      for (size_t x = 0; x < s.positions.size(); ++x) {
        for (size_t o = 0; o < front_tensors_.size(); ++o)
          in[k++] = front_tensors_[o].at(args.in[static_cast<size_t>(front_in_[o])], walk_, plane, tz.source, ty.source,
                                         s.positions[x]);
      }
  for (size_t o = 0; o < back_tensors_.size(); ++o)
    in[k++] = back_tensors_[o].at(args.in[static_cast<size_t>(back_in_[o])], walk_, plane, z, y, s.first);
  for (size_t o = 0; o < out_.size(); ++o)
    out[o] = const_cast<std::byte*>(out_[o].at(args.out[o], walk_, plane, z, y, s.first));
  const Kernel& kernel = kernels_[streaming ? 1 : 0][z_taps.size()][y_taps.size()][s.positions.size()];
  (*kernel)({in.data(), out.data(), nullptr, s.count});
}

}  // namespace partita::jit
