// SPDX-License-Identifier: Apache-2.0
// What is read before each result along x; rows of results, channels in groups.
#include "kernels/jit/resample/linear.hpp"

#include <algorithm>
#include <optional>

#include "kernels/jit/code/expand.hpp"
#include "kernels/jit/flat/exceeds_cache.hpp"
#include "kernels/jit/flat/flat_parts.hpp"
#include "src/base/check.hpp"
#include "src/base/dtype.hpp"

namespace partita::jit {
namespace {

constexpr int64_t kLeastChannels = 16;  ///< a vector
constexpr size_t kMostOperations = 40;  ///< of the expression: its code is written for some vectors
constexpr float kWhole = 1;

bool is_gradient(const Problem& p) { return p.step == StepKind::resample_backward; }

/// Nothing where a result of the interpolation takes of other places than neighbours.
std::optional<std::vector<LinearPlace>> linear_places(const PlaneWalk& walk, bool gradient) {
  const AxisMap map = gradient ? walk.x.transposed() : walk.x;  // of the interpolation
  // Nearest neighbours, which read one place, are as fast anyway, but for their gradient.
  if (map.most_taps() > 2 || (map.most_taps() < 2 && !gradient) || map.from() < 2) return {};
  std::vector<LinearPlace> places;
  int32_t newest = -1;
  for (int64_t i = 0; i < map.to(); ++i) {
    const std::span<const Tap> taps = map.taps(i);
    if (taps.empty() || taps.back().source < newest) return {};
    const bool single = taps.size() == 1;
    if (single ? taps[0].weight != kWhole : taps[0].source + 1 != taps[1].source) return {};
    const int32_t moves = taps.back().source - newest;
    const int32_t skipped = gradient ? 0 : std::max(moves - 2, 0);
    places.push_back({.moves = moves - skipped,
                      .skipped = skipped,
                      .made = std::min(moves, std::max(taps.back().source - 1, 0)),
                      .single = single ? 1 : 0,
                      .older = taps.front().weight,
                      .newer = taps.back().weight});
    newest = taps.back().source;
  }
  if (!gradient) return places;
  const int32_t moves = static_cast<int32_t>(map.from()) + 1 - newest;  // to some nothing is added
  const int32_t made = std::min(moves, static_cast<int32_t>(map.from()));
  places.push_back({.moves = moves, .made = made, .single = 0, .older = 0, .newer = 0});
  return places;
}

}  // namespace

bool ResampleLinear::fits(const Problem& p, Isa isa) {
  bool channel_last = false;
  if (isa != Isa::avx512 || refuse_resample_walk(p, channel_last) || !channel_last || !p.front.empty()) return false;
  const PlaneWalk walk = resample_walk(p, true);
  const Expr back = back_expression(p);
  const WalkedTensor source = walked(p.in[static_cast<size_t>(front_port(p.step))], p, walk);
  // Vectors of sources are read from memory: one value for all channels lies nowhere side by side.
  return walk.channels >= kLeastChannels && source.channel_step(walk) == 1 && source.x <= INT32_MAX &&
         walk.z.most_taps() * walk.y.most_taps() <= static_cast<int64_t>(LinearKernel::kMostRows) &&
         loaded_operands(back).size() + p.out.size() <= LinearKernel::kMostOperands && !reads_coordinates(back) &&
         linear_places(walk, is_gradient(p)) && expanded(back, p, isa).code.size() <= kMostOperations;
}

ResampleLinear::ResampleLinear(const Problem& p, const Target& target)
    : walk_(resample_walk(p, true)),
      source_port_(front_port(p.step)),
      back_in_(loaded_operands(back_expression(p))),
      source_(walked(p.in[static_cast<size_t>(source_port_)], p, walk_)),
      places_(*linear_places(walk_, is_gradient(p))) {
  PT_ASSERT(target.isa == Isa::avx512);
  for (int k : back_in_) back_tensors_.push_back(walked(p.in[static_cast<size_t>(k)], p, walk_));
  bool aligned = true;
  for (const TensorDesc& desc : p.out) {
    out_.push_back(walked(desc, p, walk_));
    aligned = aligned && out_.back().at_cache_lines(/*places=*/true);
  }
  may_stream_ = aligned && exceeds_cache(p);
  make_kernels(p);
}

void ResampleLinear::make_kernels(const Problem& p) {
  const Lanes back = numbered_back(p, back_in_);
  LinearShape shape{.gradient = is_gradient(p), .source_bytes = source_.x};
  shape.skips = std::ranges::any_of(places_, [](const LinearPlace& place) { return place.skipped > 0; });
  shape.rows = {.dtype = source_.dtype, .weighted = walk_.y.weighted() || walk_.z.weighted()};
  const auto operands = [&](const std::vector<WalkedTensor>& tensors) {
    std::vector<TurnOperand> list;
    for (const WalkedTensor& t : tensors) list.push_back({t.dtype, t.channel_step(walk_) == 1, t.x});
    return list;
  };
  // A row of sources is read first for one row of results and then for some more, which leave memory time.
  const int64_t rows_ahead = std::max<int64_t>(1, walk_.y.from() / walk_.y.to());
  if (exceeds_cache(p) && source_.y <= INT32_MAX / 2 / rows_ahead) {
    shape.rows.fetching = Fetching::second_level(static_cast<int>(source_.y * rows_ahead));
    shape.rows.fetched_rows = static_cast<size_t>(rows_ahead);
  }
  shape.in = operands(back_tensors_);
  shape.out = operands(out_);
  for (int64_t z = 0; z < walk_.z.to(); ++z)
    for (int64_t y = 0; y < walk_.y.to(); ++y)
      for (size_t streaming = 0; streaming <= (may_stream_ ? 1 : 0); ++streaming) {
        shape.rows.count = walk_.z.taps(z).size() * walk_.y.taps(y).size();
        shape.streaming = streaming == 1;
        Kernels& kernels = kernels_[streaming][shape.rows.count];
        if (kernels.last) continue;
        const int64_t most = LinearKernel::most_channels(shape.rows.count);
        shape.channels = most;
        if (walk_.channels > most) kernels.whole = std::make_shared<const LinearKernel>(back, shape);
        shape.channels = walk_.channels - (walk_.channels - 1) / most * most;
        kernels.last = std::make_shared<const LinearKernel>(back, shape);
      }
}

Status ResampleLinear::operator()(const RunArgs& args) const {
  const bool streaming = may_stream_ && outputs_aligned(args);
  each_result_row(walk_, streaming,
                  [&](int64_t plane, int64_t z, int64_t y) { run_row(args, plane, z, y, streaming); });
  return {};
}

void ResampleLinear::run_row(const RunArgs& args, int64_t plane, int64_t z, int64_t y, bool streaming) const {
  const auto z_taps = walk_.z.taps(z), y_taps = walk_.y.taps(y);
  const size_t row_count = z_taps.size() * y_taps.size();
  const Kernels& kernels = kernels_[streaming ? 1 : 0][row_count];
  const int64_t most = LinearKernel::most_channels(row_count), places = std::ssize(places_);
  std::array<const void*, LinearKernel::kMostRows> rows;
  std::array<float, LinearKernel::kMostRows> weights;
  std::array<const void*, LinearKernel::kMostOperands> in;
  std::array<void*, LinearKernel::kMostOperands> out;
  for (int64_t channel = 0; channel < walk_.channels; channel += most) {
    const auto address = [&](const WalkedTensor& t, const void* base, int64_t at_z, int64_t at_y) {
      return t.at(base, walk_, plane, at_z, at_y, 0) + channel * t.c;
    };
    for (size_t r = 0; r < row_count; ++r) {
      const Tap &tz = z_taps[r / y_taps.size()], &ty = y_taps[r % y_taps.size()];
      rows[r] = address(source_, args.in[static_cast<size_t>(source_port_)], tz.source, ty.source);
      weights[r] = tz.weight * ty.weight;
    }
    for (size_t o = 0; o < back_tensors_.size(); ++o)
      in[o] = address(back_tensors_[o], args.in[static_cast<size_t>(back_in_[o])], z, y);
    for (size_t o = 0; o < out_.size(); ++o) out[o] = const_cast<std::byte*>(address(out_[o], args.out[o], z, y));
    const Kernel& kernel = channel + most < walk_.channels ? kernels.whole : kernels.last;
    (*kernel)({rows.data(), weights.data(), places_.data(), places, in.data(), out.data()});
  }
}

}  // namespace partita::jit
