// SPDX-License-Identifier: Apache-2.0
// Blocks shared by the threads.
#include "kernels/jit/flat/block_copy.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "kernels/jit/code/run_of.hpp"
#include "kernels/jit/flat/block_kernel.hpp"
#include "kernels/jit/flat/each_run.hpp"
#include "kernels/jit/flat/exceeds_cache.hpp"
#include "kernels/jit/flat/flat_parts.hpp"
#include "kernels/jit/flat/staging.hpp"
#include "src/base/dtype.hpp"
#include "src/base/round.hpp"
#include "src/base/shape.hpp"
#include "src/base/threads.hpp"

namespace partita::jit {
namespace {

constexpr int64_t kCallsOfThread = 4;   ///< at the least
constexpr int64_t kMostStaged = 65536;  ///< bytes of what one index of the last axis has, which leave together

class BlockCopy {
 public:
  BlockCopy(const Problem& loop, const Target& target, const BlockPlan& plan) : threads_(std::max(target.threads, 1)) {
    elements_ = elements(loop.out[0].dims);
    const int64_t each = element_bytes(loop.out[0].dtype);
    src_ = loop.in[0].offset * each;
    dst_ = loop.out[0].offset * each;
    std::vector<BlockAxis> axes = plan.around;
    const auto taken_last = [&] {
      if (axes.empty()) return BlockAxis{1, 0, 0};
      const BlockAxis last = axes.back();
      axes.pop_back();
      return last;
    };
    BlockAxis inner = taken_last();
    // Threads share what calls walk, so that is the last axis where there is little else.
    int64_t others = 1;
    for (const BlockAxis& axis : axes) others *= axis.extent;
    const bool alone = others < kCallsOfThread * threads_;
    const BlockAxis outer = alone ? inner : taken_last();
    if (alone) inner = {1, 0, 0};
    around_ = std::move(axes);
    around_.push_back(outer);
    for (const BlockAxis& axis : around_) extents_.push_back(axis.extent);
    const bool large = exceeds_cache(loop);
    const Fetching fetching = large ? Fetching::of_many_streams() : Fetching();
    plain_ = std::make_shared<const BlockKernel>(plan, outer, inner, false, fetching);
    if (!large) return;
    if (stores_lines(plan)) {
      streaming_ = std::make_shared<const BlockKernel>(plan, outer, inner, true, fetching);
      return;
    }
    const int64_t bytes = elements_ / elements(extents_) * each;
    if (bytes == outer.dst && bytes <= kMostStaged) staging_ = Staging(threads_, bytes, outer.extent);
  }

  size_t scratch_bytes() const { return staging_.scratch_bytes(); }

  Status operator()(const RunArgs& args) const {
    const bool streams = streaming_ && outputs_aligned(args);
    const BlockKernel& kernel = streams ? *streaming_ : *plain_;
    const auto* const src = static_cast<const std::byte*>(args.in[0]) + src_;
    auto* const dst = static_cast<std::byte*>(args.out[0]) + dst_;
    const int64_t blocks = elements(extents_);
    const auto part = [&](int64_t begin, int64_t end, int number) {
      StagedLines lines = staging_.lines(args.scratch, number);
      each_run(begin, end, extents_, [&](const Dims& at, int64_t n) {
        int64_t from = 0, to = 0;
        for (int d = 0; d < at.size(); ++d) {
          from += at[d] * around_[static_cast<size_t>(d)].src;
          to += at[d] * around_[static_cast<size_t>(d)].dst;
        }
        if (!staging_) return kernel(src + from, dst + to, n);
        staging_.run(lines, dst + to, n, [&](int64_t first, int64_t some, std::byte* staged) {
          kernel(src + from + first * around_.back().src, staged, some);
        });
      });
      lines.finish();
      if (streams || staging_) end_streaming();
    };
    parallel_for(blocks, elements_ / blocks, part, static_cast<int>(threads_));
    return {};
  }

 private:
  bool stores_lines(const BlockPlan& plan) const {
    const auto whole = [](int64_t bytes) { return bytes % kCacheLine == 0; };
    return whole(dst_) && std::ranges::all_of(plan.around, whole, &BlockAxis::dst) &&
           std::ranges::all_of(plan.moves, [&](const BlockMove& m) { return m.bytes == kCacheLine && whole(m.dst); });
  }

  int64_t threads_;
  int64_t elements_ = 0, src_ = 0, dst_ = 0;
  std::vector<BlockAxis> around_;  ///< those that calls do not walk, then one that they walk in part
  Dims extents_;
  Staging staging_;
  std::shared_ptr<const BlockKernel> plain_, streaming_;
};

/// More cycles an element take less in tiles, or run by run.
constexpr double kMostCycles = 0.8;
/// Bytes: longer runs are copied as fast one by one; past the caches, those longer than a line.
constexpr int64_t kLongRun = 256;
constexpr int64_t kFew = 8;  ///< such rows that a run becomes have a kernel (flat/transpose_few.cpp)

/// The axis along which the source's elements follow each other; -1: none.
int axis_of_runs(const TensorDesc& src) {
  for (int d = 0; d < src.dims.size(); ++d)
    if (src.dims[d] > 1 && src.strides[d] == 1) return d;
  return -1;
}

/// Whether blocks are tried: of a copy in words, whose last axis is that of the result's runs.
bool may_gain(const Problem& copy) {
  const TensorDesc &src = copy.in[0], &dst = copy.out[0];
  const int last = dst.dims.size() - 1, runs = axis_of_runs(src);
  const int64_t each = element_bytes(dst.dtype), length = dst.dims[last];
  // Halves of words are converted there and back where runs are copied.
  if (runs == last) return each == 2 || length * each <= (exceeds_cache(copy) ? kCacheLine : kLongRun);
  const bool separates = runs >= 0 && src.dims[runs] <= kFew && src.strides[last] == src.dims[runs];
  return !separates || length * each < kCacheLine;
}

}  // namespace

std::optional<BlockPlan> block_copy_plan(const Problem& problem, const Target& target) {
  if (target.isa != Isa::avx512 || !is_copy(problem)) return {};
  const Problem copy = in_words(prepared(problem));
  if (bits_of(copy.out[0].dtype) < 16 || !may_gain(copy)) return {};
  std::optional<BlockPlan> plan = plan_blocks(copy);
  return plan && plan->cycles < kMostCycles ? std::move(plan) : std::nullopt;
}

Result<Run> make_block_copy(const Problem& problem, const Target& target, BlockPlan plan) {
  return run_of<BlockCopy>(problem, target, std::move(plan));
}

}  // namespace partita::jit
