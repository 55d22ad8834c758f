// SPDX-License-Identifier: Apache-2.0
// What fits rows that are spread, and the walk over planes.
#include <algorithm>

#include "kernels/jit/flat/exceeds_cache.hpp"
#include "kernels/jit/pool/average/rows.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/threads.hpp"

namespace partita::jit {
namespace {

constexpr size_t kMostStreams = 64;
constexpr int64_t kPlanesPerThread = 4, kLeastPlanes = 16;
constexpr int64_t kCallBytes = 8 << 10;         ///< of a result, which is staged twice
constexpr int64_t kMostStagedBytes = 16 << 10;  ///< of a plane: two stay in the nearest cache
constexpr int64_t kMostLinesBytes = 64 << 10;   ///< of one that is staged only where results begin inside of lines

int64_t planes_of_image(const PoolPlan& p) { return p.g.channels * p.g.src[0]; }

std::optional<int64_t> planes_apart(const PoolPlan& p, const PoolOperand& o) {
  return o.planes_apart(p.g, /*inside_image=*/true);
}

bool is_flat(const PoolGeometry& g) {
  return g.dst[0] == g.src[0] && g.kernel[0] == 1 && g.strides[0] == 1 && g.pads_begin[0] == 0;
}

/// Whether others take longer: sums without strides, where most of a vector is cells; windows that cover each cell
/// once, in narrow rows.
bool is_faster(const AveragePlan& p) {
  constexpr int64_t kLeastCells = 5, kLeastWithoutStrides = 12, kMostOfTiles = 2 * RowSpread::kLanes;
  const PoolGeometry& g = p.g;
  const int64_t cells = g.src[2];
  if (p.adaptive) return cells >= kLeastCells;
  if (g.strides[2] == 1) return cells >= kLeastWithoutStrides && cells <= RowSpread::kLanes;
  return cells >= kLeastCells && (!g.tiles_source() || cells <= kMostOfTiles);
}

}  // namespace

bool AverageRowsPool::fits(const Problem& problem, const Target& target) {
  const bool averages = problem.op == OpKind::AvgPoolBackward || problem.op == OpKind::AdaptiveAvgPoolBackward;
  if (!averages || target.isa != Isa::avx512) return false;
  const AveragePlan p(problem);
  if (p.channel_last || !is_flat(p.g) || !is_faster(p) || !AverageRowsKernel::has_room(p) ||
      AverageRowsKernel::streams_of(p) > kMostStreams)
    return false;
  // Sums of integers are divided.
  if (is_integer(problem.in[static_cast<size_t>(front_port(problem.step))].dtype) || is_integer(problem.out[0].dtype))
    return false;
  const auto walks = [&](const PoolOperand& o) {
    // Rows of a plane are reached by immediate numbers.
    const int64_t farthest = std::abs(o.y) * (p.g.src[1] + p.g.pads_begin[1] + p.g.strides[1]);
    return planes_apart(p, o) && (o.x == element_bytes(o.dtype) || o.x == 0) && farthest < INT32_MAX / 2;
  };
  const auto reads = [&](int k) { return walks(p.in[static_cast<size_t>(k)]); };
  if (!std::ranges::all_of(p.front_in, reads) || !std::ranges::all_of(p.back_in, reads) ||
      !std::ranges::all_of(p.out, [&](const PoolOperand& o) { return walks(o) && (o.x != 0 || o.fold != Fold::none); }))
    return false;
  // Sums have one order, so what makes them is not chosen by the number of threads.
  if (p.planes() < kLeastPlanes) return false;
  const int64_t most = AverageRowsKernel::stores_lines(p) ? kMostLinesBytes : kMostStagedBytes;
  if (exceeds_cache(problem) && !StagedPlanes::fit(p, most)) return false;
  return RowSpread::of(p).has_value();
}

AverageRowsPool::AverageRowsPool(const Problem& problem, const Target& target)
    : p_(problem),
      spread_(*RowSpread::of(p_)),
      threads_(std::max(1, target.threads)),
      is_staged_(exceeds_cache(problem)),
      kernel_(p_, spread_, problem, is_staged_ ? AverageRowsStores::staged : AverageRowsStores::plain) {
  if (is_staged_ && AverageRowsKernel::stores_lines(p_))
    streaming_ = std::make_unique<const AverageRowsKernel>(p_, spread_, problem, AverageRowsStores::streaming);
  for (const PoolOperand& o : p_.in) in_apart_.push_back(planes_apart(p_, o).value_or(0));
  for (const PoolOperand& o : p_.out) out_apart_.push_back(*planes_apart(p_, o));
  int64_t longest = 0;
  for (const PoolOperand& o : p_.out) longest = std::max(longest, StagedPlanes::plane_bytes(p_, o));
  // What is folded of a plane is one number.
  const int64_t most = p_.has_folds() ? 1 : std::min(planes_of_image(p_), p_.planes() / (kPlanesPerThread * threads_));
  planes_ = std::clamp<int64_t>(kCallBytes / longest, 1, std::max<int64_t>(1, most));
  if (is_staged_) staged_ = {p_, planes_, /*behind=*/kCacheLine, threads_};
  folds_ = {problem, p_, target, p_.planes(), staged_.bytes()};
  if (p_.same_along_rows && p_.same_along_x) return;
  for (int64_t y = 0; y < p_.g.dst[1]; ++y) {
    for (int64_t x = 0; x < p_.g.dst[2]; ++x) weights_.push_back(p_.weight_at(y, x));
    weights_.resize(static_cast<size_t>((y + 1) * AverageRowsKernel::weights_of_row(p_)));
  }
}

Status AverageRowsPool::operator()(const RunArgs& args) const {
  const bool streaming = streaming_ && outputs_aligned(args);
  const int64_t planes = planes_of_image(p_), calls = (planes + planes_ - 1) / planes_;  // of an image
  const auto part = [&](int64_t begin, int64_t end, int number) {
    const PoolFolds::Part folds(folds_, args, number);
    StagedPlanes::Part staged(is_staged_ && !streaming ? &staged_ : nullptr, static_cast<std::byte*>(args.scratch),
                              number);
    for (int64_t call = begin; call < end; ++call) {
      const Planes these{call / calls, call % calls * planes_, std::min(planes_, planes - call % calls * planes_)};
      folds.unit(call, [&](const RunArgs& to) { run(to, streaming ? *streaming_ : kernel_, these, staged); });
    }
    staged.finish();
    if (is_staged_) end_streaming();
  };
  parallel_for(p_.g.batch * calls, planes_ * p_.g.src[1] * p_.g.src[2], part, threads_);
  folds_.finish(args);
  return {};
}

void AverageRowsPool::run(const RunArgs& args, const AverageRowsKernel& kernel, const Planes& planes,
                          StagedPlanes::Part& staged) const {
  std::array<const void*, kMostStreams> streams;
  size_t count = 0;
  const auto add = [&](int operand) {
    const auto k = static_cast<size_t>(operand);
    streams[count++] = p_.in[k].at(args.in[k], planes.image, 0, 0, 0, 0) + planes.first * in_apart_[k];
  };
  std::ranges::for_each(p_.front_in, add);
  std::ranges::for_each(p_.back_in, add);
  const auto result = [&](size_t k) {
    return const_cast<std::byte*>(p_.out[k].at(args.out[k], planes.image, 0, 0, 0, 0)) + planes.first * out_apart_[k];
  };
  for (size_t k = 0; k < p_.out.size(); ++k) streams[count++] = staged.place(k, result(k));
  for (size_t k = 0; staged.any() && k < p_.out.size(); ++k)
    for (const void* stream : AverageRowsKernel::line_streams(staged.lines(k))) streams[count++] = stream;
  kernel({streams.data(), weights_.data(), planes.count});
  for (size_t k = 0; k < p_.out.size(); ++k)
    if (staged.stages(k))
      staged.made(k, result(k), planes.count, kernel.lines_sent(k, staged.lines(k).count, planes.count));
}

}  // namespace partita::jit
