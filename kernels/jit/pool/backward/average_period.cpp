// SPDX-License-Identifier: Apache-2.0
// What fits the kernel of averages' periods, and the walk over rows of them.
#include "kernels/jit/pool/backward/average_period.hpp"

#include <array>

#include "kernels/jit/flat/exceeds_cache.hpp"
#include "kernels/jit/pool/average/plan.hpp"
#include "kernels/jit/pool/walk.hpp"
#include "src/base/round.hpp"
#include "src/base/threads.hpp"

namespace partita::jit {
namespace {

constexpr int64_t kLeastChannels = 8;
constexpr size_t kMostStreams = 96;

/// Of each row of windows.
std::vector<float> row_weights(const PoolPlan& p) {
  std::vector<float> weights(static_cast<size_t>(p.g.dst[1]), 0.0f);
  for (int64_t y = 0; y < p.g.src[1]; ++y)
    for (const RowCover& cover : p.row_covers(0, y)) weights[static_cast<size_t>(cover.y)] = cover.weight;
  return weights;
}

}  // namespace

bool AveragePeriodPool::fits(const Problem& problem, const Target& target) {
  const AveragePlan p(problem);
  if (target.isa != Isa::avx512 || p.adaptive || !AveragePeriodKernel::fits(p)) return false;
  if (p.g.channels < kLeastChannels || AveragePeriodKernel::streams_of(p) > kMostStreams) return false;
  return !exceeds_cache(problem) || p.streams_cells(target.isa);
}

AveragePeriodPool::AveragePeriodPool(const Problem& problem, const Target& target)
    : p_(problem),
      threads_(std::max(1, target.threads)),
      row_weights_(row_weights(p_)),
      column_weights_(p_.column_weights()),
      row_bytes_(aligned(p_.g.dst[2] * AveragePeriodKernel::window_bytes(p_))),
      sums_(threads_, row_bytes_ + p_.g.strides[1] * AveragePeriodKernel::window_bytes(p_)),
      folds_(problem, p_, target, p_.g.batch * p_.g.src[0] * periods_of(p_, 1), sums_.bytes()),
      rows_(p_, exceeds_cache(problem), [&](const PeriodPart& rows, bool streaming) {
        return std::make_shared<const AveragePeriodKernel>(p_, problem, rows, streaming);
      }) {}

Status AveragePeriodPool::operator()(const RunArgs& args) const {
  const bool streaming = rows_.streams() && outputs_aligned(args);
  const auto part = [&](int64_t begin, int64_t end, int number) {
    const PoolFolds::Part folds(folds_, args, number);
    std::byte* sums = sums_.share(args.scratch, number);
    const auto search = [&](const AveragePeriodKernel& kernel, int64_t plane, int64_t period) {
      run(args, kernel, plane, period, sums);
    };
    const auto store = [&](const AveragePeriodKernel& kernel, int64_t plane, int64_t period, int64_t i) {
      folds.unit(i, [&](const RunArgs& to) { run(to, kernel, plane, period, sums); });
    };
    rows_.run(begin, end, streaming, search, store);
    if (streaming) end_streaming();
  };
  parallel_for(p_.g.batch * p_.g.src[0] * rows_.count(), p_.g.strides[1] * p_.g.src[2] * p_.g.channels, part, threads_);
  folds_.finish(args);
  return {};
}

void AveragePeriodPool::run(const RunArgs& args, const AveragePeriodKernel& kernel, int64_t plane, int64_t period,
                            std::byte* sums) const {
  std::array<const void*, kMostStreams> addresses;
  size_t count = place_period(p_, args, plane, period, addresses.data());
  addresses[count++] = sums;
  addresses[count++] = sums + row_bytes_;
  addresses[count++] = column_weights_.data();
  const auto window = static_cast<size_t>(std::min(period, p_.g.dst[1] - 1));
  kernel({addresses.data(), row_weights_[window]});
}

}  // namespace partita::jit
