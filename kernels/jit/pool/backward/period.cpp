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
  if (!has_periods(p) || !p.channel_last || g.channels < kLeastChannels || PeriodKernel::streams_of(p) > kMostStreams)
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
      folds_(problem, p_, target, p_.g.batch * p_.g.src[0] * periods_of(p_, 1), kept_.bytes()) {
  const bool streams = exceeds_cache(problem) && p_.streams_cells(target.isa);
  std::vector<std::pair<PeriodPart, Row>> made;
  for (int64_t period = 0; period < periods_of(p_, 1); ++period) {
    PeriodPart part = period_part(p_, 1, period);
    auto known = std::ranges::find(made, part, &std::pair<PeriodPart, Row>::first);
    if (known == made.end()) {
      Row row;
      const auto kernel = [&](const PeriodPart& rows, bool streaming) {
        return std::make_shared<const PeriodKernel>(target.isa, p_, problem, rows, streaming);
      };
      row.plain = kernel(part, false);
      if (streams) row.streaming = kernel(part, true);
      PeriodPart alone = part;
      alone.end_cell = alone.first_cell;
      if (reach() > 1 && part.window()) row.search = kernel(alone, false);
      made.emplace_back(part, std::move(row));
      known = made.end() - 1;
    }
    rows_.push_back(known->second);
  }
}

Status PeriodPool::operator()(const RunArgs& args) const {
  const bool streams = outputs_aligned(args);
  const int64_t periods = std::ssize(rows_);
  const auto part = [&](int64_t begin, int64_t end, int number) {
    const PoolFolds::Part folds(folds_, args, number);
    std::byte* kept = kept_.share(args.scratch, number);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t plane = i / periods, period = i % periods;
      for (int64_t above = std::max<int64_t>(0, period - reach() + 1); i == begin && above < period; ++above)
        if (const auto& search = rows_[static_cast<size_t>(above)].search) run(args, *search, plane, above, kept);
      const Row& row = rows_[static_cast<size_t>(period)];
      folds.unit(i, [&](const RunArgs& to) {
        run(to, streams && row.streaming ? *row.streaming : *row.plain, plane, period, kept);
      });
    }
    if (streams && rows_[0].streaming) end_streaming();
  };
  parallel_for(p_.g.batch * p_.g.src[0] * periods, p_.g.strides[1] * p_.g.src[2] * p_.g.channels, part, threads_);
  folds_.finish(args);
  return {};
}

/// Rows that do not exist have some address that is never used.
void PeriodPool::run(const RunArgs& args, const PeriodKernel& kernel, int64_t plane, int64_t period,
                     std::byte* kept) const {
  const PoolGeometry& g = p_.g;
  const int64_t n = plane / g.src[0], z = plane % g.src[0], first = period * g.strides[1] - g.pads_begin[1];
  const auto row_in = [&](int64_t y) { return std::clamp<int64_t>(y, 0, g.src[1] - 1); };
  std::array<const void*, kMostStreams> addresses;
  size_t count = 0;
  for (int64_t tap = 0; tap < g.kernel[1]; ++tap)
    addresses[count++] = p_.in[0].at(args.in[0], n, 0, z, row_in(first + tap * g.dilations[1]), 0);
  for (int k : p_.front_in) {
    const auto o = static_cast<size_t>(k);
    addresses[count++] = p_.in[o].at(args.in[o], n, 0, z, std::min(period, g.dst[1] - 1), 0);
  }
  for (int64_t row = 0; row < g.strides[1]; ++row)
    for (int k : p_.back_in) {
      const auto o = static_cast<size_t>(k);
      addresses[count++] = p_.in[o].at(args.in[o], n, 0, z, row_in(first + row), 0);
    }
  for (int64_t row = 0; row < g.strides[1]; ++row)
    for (size_t o = 0; o < p_.out.size(); ++o)
      addresses[count++] = p_.out[o].at(args.out[o], n, 0, z, row_in(first + row), 0);
  for (int64_t back = 0; back < reach(); ++back)
    addresses[count++] = kept + (period + reach() - back) % reach() * row_bytes_;
  kernel({addresses.data()});
}

}  // namespace partita::jit
