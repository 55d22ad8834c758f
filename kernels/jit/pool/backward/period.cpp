// SPDX-License-Identifier: Apache-2.0
// What fits the kernel of periods, and the walk over rows of them.
#include "kernels/jit/pool/backward/period.hpp"

#include <algorithm>
#include <array>

#include "kernels/jit/flat/exceeds_cache.hpp"
#include "kernels/jit/pool/walk.hpp"
#include "src/base/dtype.hpp"
#include "src/base/threads.hpp"

namespace partita::jit {
namespace {

constexpr int64_t kMostCells = 16;  ///< of a period
constexpr int64_t kLeastChannels = 8;
constexpr size_t kMostStreams = 96;

}  // namespace

bool PeriodPool::fits(const Problem& problem) {
  const PoolPlan p(problem);
  const PoolGeometry& g = p.g;
  if (!p.maximum || !has_periods(p) || !p.channel_last || g.channels < kLeastChannels ||
      PeriodKernel::streams_of(p) > kMostStreams)
    return false;
  if (g.strides[1] * g.strides[2] > kMostCells) return false;
  // Cells and windows are reached by immediate numbers.
  const int64_t far = std::max(p.span(2), g.pads_begin[2] + g.strides[2]);
  const auto near = [&](const PoolOperand& o) { return std::abs(o.x) * far < INT32_MAX / 2; };
  return std::ranges::all_of(p.in, near) && std::ranges::all_of(p.out, near) &&
         PeriodKernel::window_bytes(p, Isa::avx512) * p.reach(2) < INT32_MAX / 2;
}

PeriodPool::PeriodPool(const Problem& problem, const Target& target)
    : p_(problem),
      threads_(std::max(1, target.threads)),
      row_bytes_(aligned(periods_of(p_, 2) * PeriodKernel::window_bytes(p_, target.isa))),
      kept_(threads_, reach() * row_bytes_),
      folds_(problem, p_, target, p_.g.batch * p_.g.src[0] * periods_of(p_, 1), kept_.bytes()),
      rows_(p_, exceeds_cache(problem) && p_.streams_cells(target.isa), [&](const PeriodPart& rows, bool streaming) {
        return std::make_shared<const PeriodKernel>(target.isa, p_, problem, rows, streaming);
      }) {}

Status PeriodPool::operator()(const RunArgs& args) const {
  const bool streaming = rows_.streams() && outputs_aligned(args);
  const auto part = [&](int64_t begin, int64_t end, int number) {
    const PoolFolds::Part folds(folds_, args, number);
    std::byte* kept = kept_.share(args.scratch, number);
    const auto search = [&](const PeriodKernel& kernel, int64_t plane, int64_t period) {
      run(args, kernel, plane, period, kept);
    };
    rows_.run(begin, end, streaming, search, [&](const PeriodKernel& kernel, int64_t plane, int64_t period, int64_t i) {
      folds.unit(i, [&](const RunArgs& to) { run(to, kernel, plane, period, kept); });
    });
    if (streaming) end_streaming();
  };
  parallel_for(p_.g.batch * p_.g.src[0] * rows_.count(), p_.g.strides[1] * p_.g.src[2] * p_.g.channels, part, threads_);
  folds_.finish(args);
  return {};
}

/// Rows that do not exist have some address that is never used.
void PeriodPool::run(const RunArgs& args, const PeriodKernel& kernel, int64_t plane, int64_t period,
                     std::byte* kept) const {
  const PoolGeometry& g = p_.g;
  std::array<const void*, kMostStreams> addresses;
  size_t count = 0;
  for (int64_t tap = 0; tap < g.kernel[1]; ++tap) {
    const int64_t y = period * g.strides[1] - g.pads_begin[1] + tap * g.dilations[1];
    addresses[count++] =
        p_.in[0].at(args.in[0], plane / g.src[0], 0, plane % g.src[0], std::clamp<int64_t>(y, 0, g.src[1] - 1), 0);
  }
  count += place_period(p_, args, plane, period, addresses.data() + count);
  for (int64_t back = 0; back < reach(); ++back)
    addresses[count++] = kept + (period + reach() - back) % reach() * row_bytes_;
  kernel({addresses.data()});
}

}  // namespace partita::jit
