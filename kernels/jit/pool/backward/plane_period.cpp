// SPDX-License-Identifier: Apache-2.0
// What fits the kernel of planes of periods, and the walk over planes.
#include "kernels/jit/pool/backward/plane_period.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "kernels/jit/flat/exceeds_cache.hpp"
#include "kernels/jit/pool/walk.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/threads.hpp"

namespace partita::jit {
namespace {

constexpr int64_t kLeastWidth = 8;  ///< windows along x
constexpr int64_t kPlanesPerThread = 4, kLeastPlanes = 16;
constexpr size_t kMostStreams = 64;

}  // namespace

bool PlanePeriodPool::fits(const Problem& problem, const Target& target, const AssumedWindows& assumed) {
  const PoolPlan p(problem, assumed);
  const PoolGeometry& g = p.g;
  if (!p.maximum || !has_periods(p) || p.channel_last || PlanePeriodKernel::streams_of(p, target.isa) > kMostStreams)
    return false;
  if (g.strides[2] > PlanePeriodKernel::kMostStride || g.strides[1] > PlanePeriodKernel::kMostStride ||
      g.dst[2] < kLeastWidth)
    return false;
  if (p.indices >= 0 && (!p.fits_indices() || g.strides[2] > PlanePeriodKernel::kMostStrideFromIndices)) return false;
  // Sums have one order, so what makes them is not chosen by the number of threads.
  const int64_t planes = g.batch * g.channels * g.src[0];
  if (planes < (p.has_folds() ? kLeastPlanes : kPlanesPerThread * target.threads)) return false;
  if (!p.windows_have_cells(2)) return false;
  // Rows that cannot be streamed go through tiles, which can.
  if (exceeds_cache(problem) && p.streamed_piece() == 0) return false;
  // Rows of a window are reached by immediate numbers.
  const int64_t far = p.span(1) + g.pads_begin[1] + g.strides[1];
  const auto near = [&](const PoolOperand& o) { return std::abs(o.y) * far < INT32_MAX / 2; };
  return std::ranges::all_of(p.in, near) && std::ranges::all_of(p.out, near) && g.src[2] < INT32_MAX / 64;
}

PlanePeriodPool::PlanePeriodPool(const Problem& problem, const Target& target, const AssumedWindows& assumed)
    : p_(problem, assumed),
      threads_(std::max(1, target.threads)),
      margin_(PlanePeriodKernel::windows_before(p_, target.isa) * 4),
      row_bytes_(aligned(PlanePeriodKernel::windows_of_row(p_, target.isa) * 8)),
      shared_rows_(PlanePeriodKernel::shared_rows(p_, target.isa)),
      kept_(threads_, (PlanePeriodKernel::kept_rows(p_) + shared_rows_) * row_bytes_),
      folds_(problem, p_, target, p_.g.batch * p_.g.channels * p_.g.src[0], kept_.bytes()) {
  kernel_ = std::make_unique<const PlanePeriodKernel>(target.isa, p_, problem, 0);
  if (exceeds_cache(problem) && p_.streamed_piece() > 0)
    streaming_ = std::make_unique<const PlanePeriodKernel>(target.isa, p_, problem, p_.streamed_piece());
}

bool PlanePeriodPool::from_indices(const RunArgs& args) const {
  std::atomic<int64_t> found = 0;
  run_all(args, &found);
  return found == p_.g.batch * p_.g.channels * elements(p_.g.dst);
}

void PlanePeriodPool::run_all(const RunArgs& args, std::atomic<int64_t>* found) const {
  const bool streaming = streaming_ && outputs_aligned(args);
  const auto part = [&](int64_t begin, int64_t end, int number) {
    const PoolFolds::Part folds(folds_, args, number);
    const int64_t bytes = PlanePeriodKernel::kept_rows(p_) * row_bytes_;
    std::byte* kept = kept_.share(args.scratch, number);
    std::array<int32_t, kMostLanes> counts{};
    fill_words(kept, bytes, int32_t{-1});
    for (int64_t plane = begin; plane < end; ++plane)
      folds.unit(plane,
                 [&](const RunArgs& to) { run(to, streaming ? *streaming_ : *kernel_, plane, kept, counts.data()); });
    if (found != nullptr) *found += std::accumulate(counts.begin(), counts.end(), int64_t{0});
    if (streaming) end_streaming();
  };
  parallel_for(p_.g.batch * p_.g.channels * p_.g.src[0], p_.g.src[1] * p_.g.src[2], part, threads_);
  folds_.finish(args);
}

void PlanePeriodPool::run(const RunArgs& args, const PlanePeriodKernel& kernel, int64_t plane, std::byte* kept,
                          int32_t* counts) const {
  const int64_t z = plane % p_.g.src[0], c = plane / p_.g.src[0] % p_.g.channels;
  const int64_t n = plane / p_.g.src[0] / p_.g.channels;
  std::array<const void*, kMostStreams> addresses;
  size_t count = 0;
  const auto add = [&](int operand) {
    const auto o = static_cast<size_t>(operand);
    addresses[count++] = p_.in[o].at(args.in[o], n, c, z, 0, 0);
  };
  if (p_.indices >= 0) {
    const int64_t corner = (z * p_.g.src[1] - p_.g.pads_begin[1]) * p_.g.src[2] - p_.g.pads_begin[2];
    add(p_.indices);
    addresses[count++] = reinterpret_cast<const void*>(p_.base.first(n, c) + corner * p_.base.cell);
  } else {
    add(0);
  }
  std::ranges::for_each(p_.front_in, add);
  std::ranges::for_each(p_.back_in, add);
  for (size_t o = 0; o < p_.out.size(); ++o) addresses[count++] = p_.out[o].at(args.out[o], n, c, z, 0, 0);
  const int64_t rows = PlanePeriodKernel::kept_rows(p_);
  for (int64_t row = 0; row < rows; ++row) addresses[count++] = kept + row * row_bytes_ + margin_;
  for (int64_t row = 0; row < shared_rows_; ++row) addresses[count++] = kept + (rows + row) * row_bytes_;
  kernel({addresses.data(), counts});
}

}  // namespace partita::jit
