// SPDX-License-Identifier: Apache-2.0
// Slots, what units keep of them, and the results.
#include "kernels/jit/pool/folds.hpp"

#include <algorithm>

#include "kernels/jit/pool/walk.hpp"
#include "kernels/loop/fold_plan.hpp"
#include "src/base/axes.hpp"
#include "src/base/round.hpp"
#include "src/base/shape.hpp"
#include "src/base/threads.hpp"

namespace partita::jit {
namespace {

size_t lines(int64_t bytes) { return static_cast<size_t>(aligned(bytes)); }

int channel_axis_of(const Problem& p, const TensorDesc& desc) { return channel_axis(p.attrs, desc.dims.size()); }

}  // namespace

const char* PoolFolds::refuse(const Problem& p) {
  for (const Instr& in : p.back.code)
    if (makes_integer(in, p)) return "it folds integers";
  for (size_t k = 0; k < p.out.size(); ++k) {
    if (fold_of_output(p.back, k) == Fold::none) continue;
    const TensorDesc& out = p.out[k];
    if (out.dtype != Dtype::f32 || out.offset != 0) return "a folded output is not a whole f32 tensor";
    for (int d = 0; d < out.dims.size(); ++d)
      if (out.dims[d] > 1 && (out.strides[d] != 0) != (d == channel_axis_of(p, out)))
        return "it folds into other numbers than one a channel";
  }
  return nullptr;
}

PoolFolds::PoolFolds(const Problem& problem, const PoolPlan& plan, const Target& target, int64_t units, size_t before)
    : channel_last_(plan.channel_last),
      channels_(plan.g.channels),
      of_plane_(units / std::max<int64_t>(1, plan.g.batch * plan.g.channels)),
      units_(units) {
  for (size_t k = 0; k < problem.out.size(); ++k) {
    const TensorDesc& out = problem.out[k];
    const Fold how = fold_of_output(problem.back, k);
    if (how != Fold::none) outputs_.push_back({k, how, out.strides[channel_axis_of(problem, out)]});
  }
  if (!any()) return;
  const int64_t lanes = lanes_of(target.isa);
  slot_ = channel_last_ ? rounded_up(channels_, lanes) : lanes;
  numbers_ = channel_last_ ? channels_ : 1;
  const int64_t outputs = std::ssize(outputs_);
  slots_ = {std::max(1, target.threads), aligned(slot_ * int64_t{sizeof(float)}) * outputs};
  slots_at_ = lines(static_cast<int64_t>(before));
  units_at_ = slots_at_ + lines(static_cast<int64_t>(slots_.bytes()));
  sums_at_ = units_at_ + lines(units_ * outputs * numbers_ * int64_t{sizeof(float)});
}

size_t PoolFolds::scratch_bytes() const {
  return any() ? sums_at_ + static_cast<size_t>(channels_) * sizeof(double) : 0;
}

PoolFolds::Part::Part(const PoolFolds& folds, const RunArgs& args, int number)
    : folds_(folds), args_(args), scratch_(args.scratch) {
  if (!folds.any()) return;
  std::ranges::copy(args.out, out_.begin());
  args_.out = {out_.data(), args.out.size()};
  slots_ = folds.slots_.share<float>(static_cast<std::byte*>(args.scratch) + folds.slots_at_, number);
  for (size_t f = 0; f < folds.outputs_.size(); ++f)
    out_[folds.outputs_[f].port] = slots_ + f * lines(folds.slot_ * int64_t{sizeof(float)}) / sizeof(float);
}

void PoolFolds::Part::clear() const {
  for (const Output& o : folds_.outputs_)
    std::fill_n(static_cast<float*>(out_[o.port]), folds_.slot_, identity_of(o.how));
}

void PoolFolds::Part::keep(int64_t unit) const {
  for (size_t f = 0; f < folds_.outputs_.size(); ++f) {
    const Output& o = folds_.outputs_[f];
    const auto* slot = static_cast<const float*>(out_[o.port]);
    float* kept = folds_.of_unit(scratch_, unit, f);
    if (folds_.channel_last_) {
      std::copy_n(slot, folds_.numbers_, kept);
      continue;
    }
    double all = identity_of(o.how);
    for (int64_t l = 0; l < folds_.slot_; ++l) all = folded(o.how, all, slot[l]);
    *kept = static_cast<float>(all);
  }
}

void PoolFolds::finish(const RunArgs& args) const {
  auto* sums = reinterpret_cast<double*>(static_cast<std::byte*>(args.scratch) + sums_at_);
  for (size_t f = 0; f < outputs_.size(); ++f) {
    const Output& o = outputs_[f];
    auto* out = static_cast<float*>(args.out[o.port]);
    parallel_for(channels_, channel_last_ ? units_ : units_ / channels_, [&](int64_t begin, int64_t end) {
      std::fill(sums + begin, sums + end, identity_of(o.how));
      if (channel_last_) {
        for (int64_t unit = 0; unit < units_; ++unit)
          fold_numbers(o.how, sums + begin, of_unit(args.scratch, unit, f) + begin, end - begin);
      } else {
        for (int64_t first = 0; first < units_; first += channels_ * of_plane_)
          for (int64_t c = begin; c < end; ++c)
            for (int64_t k = 0; k < of_plane_; ++k)
              sums[c] = folded(o.how, sums[c], *of_unit(args.scratch, first + c * of_plane_ + k, f));
      }
      for (int64_t c = begin; c < end; ++c) out[c * o.stride] = static_cast<float>(sums[c]);
    });
  }
}

}  // namespace partita::jit
