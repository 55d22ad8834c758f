// SPDX-License-Identifier: Apache-2.0
// What fits averages over whole planes, their weights, and the walk over planes.
#include <algorithm>
#include <array>

#include "kernels/jit/flat/exceeds_cache.hpp"
#include "kernels/jit/pool/average/plane.hpp"
#include "kernels/jit/pool/walk.hpp"
#include "src/base/dtype.hpp"
#include "src/base/threads.hpp"

namespace partita::jit {
namespace {

constexpr size_t kMostOperands = 32, kMostMoves = 32;
constexpr int64_t kMostMove = lanes_of(Isa::avx2), kMostLanes = 16;
constexpr size_t kBitsBefore = kMostLanes / 8;           ///< bytes of zeros in front of the bits of moves
constexpr int64_t kLeastSize = 16, kMostSize = 1 << 14;  ///< of a plane, whose sums are in the nearest caches twice
constexpr int64_t kUnitElements = 1 << 15;  ///< of a call: what calls share with their neighbours stays small

/// As many windows as cells, and planes of a size that a kernel is made for.
bool has_planes(const Problem& problem) {
  if (problem.in[static_cast<size_t>(front_port(problem.step))].dims != problem.out[0].dims) return false;
  const AveragePlan p(problem);
  const PoolGeometry& g = p.g;
  const int64_t size = g.src[1] * g.src[2];
  if (p.maximum || p.channel_last || p.adaptive || g.src[0] != 1 || g.kernel[0] != 1 || g.pads_begin[0] != 0)
    return false;
  for (int i : {1, 2})
    if (g.strides[i] != 1 && g.dst[i] > 1) return false;
  return g.src[2] > 1 && size >= kLeastSize && size <= kMostSize;
}

}  // namespace

AveragePlanes::AveragePlanes(const Problem& problem)
    : AveragePlan(problem), backward(problem.step == StepKind::pool_backward), moves_x(moves(2)), moves_y(moves(1)) {
  if (same_along_x && same_along_rows) return;
  for (int64_t y = 0; y < g.src[1]; ++y)
    for (int64_t x = 0; x < g.src[2]; ++x) weights.push_back(weight_at(y, x));
}

/// A gradient's cell lies under the windows that start before it.
std::vector<int64_t> AveragePlanes::moves(int axis) const {
  std::vector<int64_t> list;
  for (int64_t tap = 0; tap < g.kernel[axis]; ++tap) {
    const int64_t cell = tap * g.dilations[axis] - g.pads_begin[axis], move = backward ? -cell : cell;
    if (std::abs(move) < g.src[axis]) list.push_back(move);
  }
  std::ranges::sort(list);
  return list;
}

bool AveragePlanePool::fits(const Problem& problem) {
  // Sums of integers are divided.
  if (!has_planes(problem) || is_integer(problem.in[0].dtype) || is_integer(problem.out[0].dtype)) return false;
  const AveragePlanes p(problem);
  if (p.moves_x.empty() || p.moves_y.empty() || p.moves_x.size() * p.moves_y.size() > kMostMoves ||
      std::max(-p.moves_x.front(), p.moves_x.back()) > kMostMove)
    return false;
  if (p.out.size() > JoinedStores::kMostOutputs || p.back_in.size() + p.out.size() > kMostOperands ||
      p.front_in.size() > kMostOperands)
    return false;
  const auto walks = [&](const PoolOperand& o) {
    return o.x == element_bytes(o.dtype) && (p.g.src[1] == 1 || o.y == o.x * p.width());
  };
  const auto reads = [&](int k) {
    const PoolOperand& o = p.in[static_cast<size_t>(k)];
    return walks(o) || (o.x == 0 && o.y == 0);
  };
  return std::ranges::all_of(p.front_in, reads) && std::ranges::all_of(p.back_in, reads) &&
         std::ranges::all_of(p.out, [&](const PoolOperand& o) { return o.fold != Fold::none || walks(o); });
}

AveragePlanePool::AveragePlanePool(const Problem& problem, const Target& target)
    : p_(problem),
      threads_(std::max(1, target.threads)),
      sums_bytes_(AveragePlaneKernel::sums_bytes(target.isa, p_)),
      sums_(threads_, sums_bytes_) {
  // Whole vectors are read.
  if (!p_.weights.empty()) p_.weights.resize(static_cast<size_t>(p_.size() + kMostLanes), 0.0f);
  element_bytes_ = element_bytes(p_.out[0].dtype);
  together_ = JoinedStores::together(target.isa, element_bytes_);
  // What is folded of a plane is one number.
  if (!p_.has_folds()) planes_ = std::clamp<int64_t>(kUnitElements / p_.size(), 1, p_.g.channels);
  folds_ = {problem, p_, target, p_.g.batch * p_.g.channels, sums_.bytes()};
  make_inside();
  using Stores = AveragePlaneKernel::Stores;
  kernel_ = std::make_unique<const AveragePlaneKernel>(target.isa, p_, problem, Stores::plain);
  if (!exceeds_cache(problem)) return;
  const auto on_vectors = [&](const PoolOperand& o) {
    const int64_t vector = lanes_of(target.isa) * element_bytes(o.dtype);
    return std::ranges::all_of(std::array{o.offset, o.n, o.c}, [&](int64_t at) { return at % vector == 0; });
  };
  joined_ = !std::ranges::all_of(p_.out, on_vectors);
  if (joined_ && !rows_follow(target.isa, p_.out, p_.width(), p_.g.src[1], planes_ > 1)) return;
  streaming_ =
      std::make_unique<const AveragePlaneKernel>(target.isa, p_, problem, joined_ ? Stores::joined : Stores::streaming);
}

void AveragePlanePool::make_inside() {
  const int64_t bytes = AveragePlaneKernel::inside_bytes(p_);
  inside_.resize(kBitsBefore + static_cast<size_t>(std::ssize(p_.moves_x) * bytes) + sizeof(int32_t));
  for (size_t move = 0; move < p_.moves_x.size(); ++move)
    for (int64_t i = 0; i < p_.size(); ++i) {
      const int64_t x = i % p_.width() + p_.moves_x[move];
      if (x < 0 || x >= p_.width()) continue;
      inside_[kBitsBefore + move * static_cast<size_t>(bytes) + static_cast<size_t>(i / 8)] |= std::byte{1} << (i % 8);
    }
}

Status AveragePlanePool::operator()(const RunArgs& args) const {
  const bool streaming = streaming_ && outputs_aligned(args);
  const int64_t calls = (p_.g.channels + planes_ - 1) / planes_;
  const auto part = [&](int64_t begin, int64_t end, int number) {
    const PoolFolds::Part folds(folds_, args, number);
    std::byte* sums = sums_.share(args.scratch, number);
    fill_words(sums, sums_bytes_, 0.0f);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t c = i % calls * planes_;
      folds.unit(
          i, [&](const RunArgs& to) { run(to, i / calls, c, std::min(planes_, p_.g.channels - c), streaming, sums); });
    }
    if (streaming) end_streaming();
  };
  parallel_for(p_.g.batch * calls, planes_ * p_.size(), part, threads_);
  folds_.finish(args);
  return {};
}

void AveragePlanePool::run(const RunArgs& args, int64_t n, int64_t c, int64_t planes, bool streaming,
                           std::byte* sums) const {
  std::array<const void*, kMostOperands> windows, cells;
  std::array<void*, JoinedStores::kMostOutputs> out;
  const auto place = [&](int k) {
    const auto o = static_cast<size_t>(k);
    return p_.in[o].at(args.in[o], n, c, 0, 0, 0);
  };
  size_t count = 0;
  for (int k : p_.front_in) windows[count++] = place(k);
  count = 0;
  for (int k : p_.back_in) cells[count++] = place(k);
  for (size_t o = 0; o < p_.out.size(); ++o) {
    out[o] = const_cast<std::byte*>(p_.out[o].at(args.out[o], n, c, 0, 0, 0));
    cells[count++] = out[o];
  }
  AveragePlaneCall call{.windows = windows.data(),
                        .cells = cells.data(),
                        .joined = nullptr,
                        .pending = 0,
                        .weights = p_.weights.data(),
                        .inside = inside_.data() + kBitsBefore,
                        .planes = planes,
                        .sums = sums};
  if (!streaming || !joined_) return (streaming ? *streaming_ : *kernel_)(call);
  const JoinedCall joined({out.data(), p_.out.size()}, element_bytes_, together_, planes * p_.size());
  call.joined = joined.places();
  call.pending = joined.pending();
  (*streaming_)(call);
  joined.finish();
}

}  // namespace partita::jit
