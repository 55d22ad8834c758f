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

constexpr int64_t kLeastWidth = 8;  ///< windows along x of one plane at a time
constexpr int64_t kPlanesPerThread = 4, kLeastPlanes = 16;
constexpr size_t kMostStreams = 64;
constexpr int64_t kMostStagedBytes = 64 << 10;  ///< of a plane

}  // namespace

/// Whether the kernel can do it, however narrow rows are.
bool PlanePeriodPool::is_possible(const PoolPlan& p, const Problem& problem, Isa isa) {
  const PoolGeometry& g = p.g;
  if (!p.maximum || !has_periods(p) || p.channel_last || PlanePeriodKernel::streams_of(p, isa) > kMostStreams)
    return false;
  if (g.strides[2] > PlanePeriodKernel::kMostStride || g.strides[1] > PlanePeriodKernel::kMostStride) return false;
  if (p.indices >= 0 && (!p.fits_indices() || g.strides[2] > PlanePeriodKernel::kMostStrideFromIndices)) return false;
  if (!p.windows_have_cells(2)) return false;
  // What can be streamed in neither way goes through tiles, which can.
  if (exceeds_cache(problem) && p.streamed_piece() == 0 && !StagedPlanes::fit(p, kMostStagedBytes)) return false;
  // Rows of a window are reached by immediate numbers.
  const int64_t far = p.span(1) + g.pads_begin[1] + g.strides[1];
  const auto near = [&](const PoolOperand& o) { return std::abs(o.y) * far < INT32_MAX / 2; };
  return std::ranges::all_of(p.in, near) && std::ranges::all_of(p.out, near) && g.src[2] < INT32_MAX / 64;
}

bool PlanePeriodPool::fits(const Problem& problem, const Target& target, const AssumedWindows& assumed) {
  const PoolPlan p(problem, assumed);
  // Sums have one order, so what makes them is not chosen by the number of threads.
  const int64_t least = p.has_folds() ? kLeastPlanes : kPlanesPerThread * target.threads;
  return p.g.dst[2] >= kLeastWidth && p.planes() >= least && is_possible(p, problem, target.isa);
}

bool PlanePeriodPool::fits_side_by_side(const Problem& problem, const Target& target) {
  return side_by_side(PoolPlan(problem), problem, target) > 1;
}

/// How many planes go side by side; 1: none.
int PlanePeriodPool::side_by_side(const PoolPlan& p, const Problem& problem, const Target& target) {
  if (!is_possible(p, problem, target.isa)) return 1;
  const int planes = PlanePeriodKernel::side_by_side(p, target.isa);
  // Planes are reached by immediate numbers, too.
  const auto near = [&](const PoolOperand& o) {
    return std::abs(o.planes_apart(p.g).value_or(0)) * planes < INT32_MAX / 4;
  };
  const bool fit = p.planes() >= planes * kPlanesPerThread * target.threads && std::ranges::all_of(p.in, near) &&
                   std::ranges::all_of(p.out, near);
  return fit ? planes : 1;
}

PlanePeriodPool::PlanePeriodPool(const Problem& problem, const Target& target, const AssumedWindows& assumed)
    : p_(problem, assumed),
      threads_(std::max(1, target.threads)),
      margin_(PlanePeriodKernel::windows_before(p_, target.isa) * 4),
      row_bytes_(aligned(PlanePeriodKernel::windows_of_row(p_, target.isa) * 8)),
      shared_rows_(PlanePeriodKernel::shared_rows(p_, target.isa)),
      shared_row_bytes_(PlanePeriodKernel::shared_row_bytes(p_, target.isa)),
      kept_(threads_, PlanePeriodKernel::kept_rows(p_) * row_bytes_ + shared_rows_ * shared_row_bytes_),
      side_by_side_(side_by_side(p_, problem, target)) {
  for (const PoolOperand& o : p_.in) in_apart_.push_back(o.planes_apart(p_.g));
  for (const PoolOperand& o : p_.out) out_apart_.push_back(o.planes_apart(p_.g));
  const bool large = exceeds_cache(problem);
  PlaneStores stores{.side_by_side = side_by_side_};
  const auto kernel = [&](const PlaneStores& how) {
    return std::make_unique<const PlanePeriodKernel>(target.isa, p_, problem, how);
  };
  if (large && p_.streamed_piece() > 0) {
    streaming_ = kernel({.side_by_side = side_by_side_, .piece = p_.streamed_piece()});
  } else if (large) {
    stores.is_staged = is_staged_ = true;
    staged_ = {p_, side_by_side_, 0, threads_};
  }
  folds_ = PoolFolds(problem, p_, target, p_.planes(), kept_.bytes() + staged_.bytes());
  kernel_ = kernel(stores);
  stores.side_by_side = 1;
  if (p_.planes() % side_by_side_ != 0) single_ = kernel(stores);
}

bool PlanePeriodPool::from_indices(const RunArgs& args) const {
  std::atomic<int64_t> found = 0;
  run_all(args, &found);
  return found == p_.g.batch * p_.g.channels * elements(p_.g.dst);
}

PlanePeriodPool::Work PlanePeriodPool::work(const RunArgs& args, int number) const {
  auto* scratch = static_cast<std::byte*>(args.scratch);
  Work made{.kept = kept_.share(args.scratch, number),
            .staged = {is_staged_ ? &staged_ : nullptr, scratch + kept_.bytes(), number}};
  fill_words(made.kept, PlanePeriodKernel::kept_rows(p_) * row_bytes_, int32_t{-1});
  return made;
}

/// Units are some planes side by side, or one of those that are left.
void PlanePeriodPool::run_all(const RunArgs& args, std::atomic<int64_t>* found) const {
  const PlanePeriodKernel& kernel = streaming_ && outputs_aligned(args) ? *streaming_ : *kernel_;
  const int64_t whole = p_.planes() / side_by_side_, left = p_.planes() % side_by_side_;
  const auto part = [&](int64_t begin, int64_t end, int number) {
    const PoolFolds::Part folds(folds_, args, number);
    Work mine = work(args, number);
    for (int64_t unit = begin; unit < end; ++unit) {
      const bool together = unit < whole;
      const int64_t plane = together ? unit * side_by_side_ : whole * side_by_side_ + unit - whole;
      folds.unit(plane, [&](const RunArgs& to) { run(to, together ? kernel : *single_, plane, mine); });
    }
    mine.staged.finish();
    if (found != nullptr) *found += std::accumulate(mine.counts.begin(), mine.counts.end(), int64_t{0});
    if (streaming_ || is_staged_) end_streaming();
  };
  parallel_for(whole + left, p_.g.src[1] * p_.g.src[2] * side_by_side_, part, threads_);
  folds_.finish(args);
}

const std::byte* PlanePeriodPool::plane_of(const PoolOperand& o, const std::optional<int64_t>& apart, const void* base,
                                           int64_t plane) const {
  if (apart) return static_cast<const std::byte*>(base) + o.offset + plane * *apart;
  const int64_t z = plane % p_.g.src[0], c = plane / p_.g.src[0] % p_.g.channels;
  return o.at(base, plane / p_.g.src[0] / p_.g.channels, c, z, 0, 0);
}

void PlanePeriodPool::run(const RunArgs& args, const PlanePeriodKernel& kernel, int64_t plane, Work& work) const {
  std::array<const void*, kMostStreams> addresses;
  size_t count = 0;
  const auto add = [&](int operand) {
    const auto o = static_cast<size_t>(operand);
    addresses[count++] = plane_of(p_.in[o], in_apart_[o], args.in[o], plane);
  };
  if (p_.indices >= 0) {
    const int64_t z = plane % p_.g.src[0], c = plane / p_.g.src[0] % p_.g.channels;
    const int64_t corner = (z * p_.g.src[1] - p_.g.pads_begin[1]) * p_.g.src[2] - p_.g.pads_begin[2];
    add(p_.indices);
    addresses[count++] =
        reinterpret_cast<const void*>(p_.base.first(plane / p_.g.src[0] / p_.g.channels, c) + corner * p_.base.cell);
  } else {
    add(0);
  }
  std::ranges::for_each(p_.front_in, add);
  std::ranges::for_each(p_.back_in, add);
  const auto result_of = [&](size_t o) {
    return const_cast<std::byte*>(plane_of(p_.out[o], out_apart_[o], args.out[o], plane));
  };
  for (size_t o = 0; o < p_.out.size(); ++o) addresses[count++] = work.staged.place(o, result_of(o));
  const int64_t rows = PlanePeriodKernel::kept_rows(p_);
  for (int64_t row = 0; row < rows; ++row) addresses[count++] = work.kept + row * row_bytes_ + margin_;
  for (int64_t row = 0; row < shared_rows_; ++row)
    addresses[count++] = work.kept + rows * row_bytes_ + row * shared_row_bytes_;
  for (size_t o = 0; work.staged.any() && o < p_.out.size(); ++o)
    for (const void* stream : PlanePeriodKernel::line_streams(work.staged.lines(o))) addresses[count++] = stream;
  kernel({addresses.data(), work.counts.data()});
  for (size_t o = 0; o < p_.out.size(); ++o)
    if (work.staged.stages(o))
      work.staged.made(o, result_of(o), kernel.planes(), kernel.lines_sent(p_.out[o], work.staged.lines(o).count));
}

}  // namespace partita::jit
