// SPDX-License-Identifier: Apache-2.0
// Choice of blocks by what their moves cost.
#include "kernels/jit/flat/block_plan.hpp"

#include <algorithm>
#include <functional>
#include <limits>

#include "src/base/dtype.hpp"
#include "src/base/round.hpp"
#include "src/base/shape.hpp"

namespace partita::jit {
namespace {

constexpr int kVector = static_cast<int>(kCacheLine);  ///< bytes
constexpr int64_t kMostElements = 512;                 ///< of a block: its code has no loop
constexpr double kCyclesOfBlock = 3;                   ///< beside its moves

struct Element {
  int64_t src, dst;
};

/// Cycles of loads, permutations and stores that have so many bytes.
double cycles_of_load(int bytes) { return bytes == kVector ? 1 : 0.5; }
double cycles_of_permutation(int bytes) { return bytes == kVector ? 1.5 : 1; }  // now and then its order is loaded
double cycles_of_store(int bytes) { return bytes == kVector ? 2 : bytes >= 4 ? 1 : 2; }

double cycles_of(const BlockMove& move) {
  int widest = move.bytes;
  double cycles = cycles_of_store(move.bytes);
  for (const BlockMove::Window& w : move.windows) {
    widest = std::max(widest, w.bytes);
    cycles += cycles_of_load(w.bytes);
  }
  const size_t permutations = std::max<size_t>(move.windows.size() - 1, move.in_order() ? 0 : 1);
  return cycles + static_cast<double>(permutations) * cycles_of_permutation(widest);
}

/// The moves of a block, whose elements are in the order of the result.
class Moves {
 public:
  Moves(const std::vector<Element>& elements, int each) : elements_(elements), each_(each) {
    for (const Element& e : elements_) end_ = std::max(end_, e.src + each);
    for (size_t begin = 0; begin < elements_.size();) {
      size_t end = begin + 1;
      while (end < elements_.size() && elements_[end].dst == elements_[end - 1].dst + each_) ++end;
      add_run(begin, end);
      begin = end;
    }
  }

  std::vector<BlockMove> moves;
  double cycles = 0;

 private:
  /// Of elements [begin, end), which follow each other in the result: moves that cost least for what they add. The last
  /// one may begin among what has been moved.
  void add_run(size_t begin, size_t end) {
    for (size_t at = begin; at < end;) {
      double least = std::numeric_limits<double>::infinity(), cost = 0;
      std::optional<BlockMove> best;
      size_t next = at;
      for (int bytes = kVector; bytes >= each_; bytes /= 2) {
        const auto count = static_cast<size_t>(bytes / each_);
        if (count > end - begin) continue;
        const size_t first = std::min(at, end - count), behind = first + count;
        BlockMove move = move_of(first, count);
        const double cycles = cycles_of(move), a_new_one = cycles / static_cast<double>(behind - at);
        if (a_new_one >= least) continue;
        least = a_new_one, cost = cycles, best = std::move(move), next = behind;
      }
      moves.push_back(std::move(*best));
      cycles += cost;
      at = next;
    }
  }

  BlockMove move_of(size_t first, size_t count) const {
    BlockMove move{elements_[first].dst, static_cast<int>(count) * each_, {}, {}};
    std::vector<int64_t> wanted;
    for (size_t i = first; i < first + count; ++i) wanted.push_back(elements_[i].src);
    std::ranges::sort(wanted);
    for (size_t i = 0; i < wanted.size();) {
      move.windows.push_back(window_at(wanted, i));
      const int64_t behind = move.windows.back().src + move.windows.back().bytes;
      while (i < wanted.size() && wanted[i] + each_ <= behind) ++i;
    }
    for (size_t i = first; i < first + count; ++i) move.origins.push_back(origin_of(elements_[i].src, move.windows));
    return move;
  }

  /// The smallest window that has as many of the elements from `wanted[i]` on as one can have. Windows stay between
  /// the block's first and last element.
  BlockMove::Window window_at(const std::vector<int64_t>& wanted, size_t i) const {
    const int64_t first = wanted[i];
    int most = kVector;
    while (most > end_) most /= 2;
    int64_t last = first;
    for (size_t k = i; k < wanted.size() && wanted[k] + each_ <= first + most; ++k) last = wanted[k];
    int bytes = each_;
    while (bytes < last + each_ - first) bytes *= 2;
    return {std::min(first, end_ - bytes), bytes};
  }

  BlockMove::Origin origin_of(int64_t src, const std::vector<BlockMove::Window>& windows) const {
    for (size_t w = 0; w < windows.size(); ++w) {
      const int64_t in = src - windows[w].src;
      if (in >= 0 && in + each_ <= windows[w].bytes) return {static_cast<int>(w), static_cast<int>(in / each_)};
    }
    return {0, 0};
  }

  const std::vector<Element>& elements_;
  int each_;
  int64_t end_ = 0;  // behind the source's last element
};

/// Of each axis of the copy, how many indices a block has; they divide its extent.
using Block = std::vector<int64_t>;

class Planner {
 public:
  Planner(std::vector<BlockAxis> axes, int each) : axes_(std::move(axes)), each_(each) {}

  std::optional<BlockPlan> run() {
    Block block(axes_.size(), 1);
    for (size_t d = axes_.size(); d-- > 0 && count(block) < kMostElements;) {
      for (int64_t most : {kMostElements / 8, kMostElements}) {
        Block part = block;
        grow(part, d, most);
        consider(part);
        consider_with_source(part);
      }
      grow(block, d, kMostElements);
      if (block[d] < axes_[d].extent) break;
    }
    if (best_) best_->around = around(chosen_);
    return std::move(best_);
  }

 private:
  static int64_t count(const Block& block) {
    int64_t n = 1;
    for (int64_t extent : block) n *= extent;
    return n;
  }

  /// Takes as much of axis `d` as leaves at most so many elements.
  void grow(Block& block, size_t d, int64_t most) const {
    const int64_t others = count(block) / block[d];
    for (int64_t n = std::min(axes_[d].extent, most / others); n > block[d]; --n)
      if (axes_[d].extent % n == 0) block[d] = n;
  }

  /// The block with more of the axes along which the source has runs.
  void consider_with_source(Block block) {
    std::vector<size_t> order(axes_.size());
    for (size_t d = 0; d < order.size(); ++d) order[d] = d;
    std::ranges::stable_sort(order, std::less<>(), [&](size_t d) { return axes_[d].src; });
    for (size_t d : order) {
      if (axes_[d].src == 0 || axes_[d].src > kVector) return;
      const int64_t before = block[d];
      grow(block, d, kMostElements);
      if (block[d] > before) consider(block);
    }
  }

  void consider(const Block& block) {
    const int64_t n = count(block);
    if (n < 2) return;
    std::vector<Element> elements{{0, 0}};
    for (size_t d = 0; d < block.size(); ++d) {
      const std::vector<Element> before = std::move(elements);
      elements.clear();
      for (const Element& e : before)
        for (int64_t i = 0; i < block[d]; ++i) elements.push_back({e.src + i * axes_[d].src, e.dst + i * axes_[d].dst});
    }
    if (std::ranges::any_of(elements, [](const Element& e) { return std::max(e.src, e.dst) > kFarthest; })) return;
    std::ranges::sort(elements, std::less<>(), &Element::dst);
    Moves moves(elements, each_);
    const double cycles = (moves.cycles + kCyclesOfBlock) / static_cast<double>(n);
    if (best_ && best_->cycles <= cycles) return;
    best_ = BlockPlan{each_, std::move(moves.moves), {}, cycles};
    chosen_ = block;
  }

  std::vector<BlockAxis> around(const Block& block) const {
    std::vector<BlockAxis> joined;
    for (size_t d = 0; d < axes_.size(); ++d) {
      const BlockAxis axis{axes_[d].extent / block[d], axes_[d].src * block[d], axes_[d].dst * block[d]};
      if (axis.extent == 1) continue;
      BlockAxis* const last = joined.empty() ? nullptr : &joined.back();
      if (last && last->src == axis.src * axis.extent && last->dst == axis.dst * axis.extent)
        *last = {last->extent * axis.extent, axis.src, axis.dst};
      else
        joined.push_back(axis);
    }
    return joined;
  }

  static constexpr int64_t kFarthest = int64_t{1} << 30;  // reached by instructions

  std::vector<BlockAxis> axes_;
  int each_;
  std::optional<BlockPlan> best_;
  Block chosen_;
};

}  // namespace

bool BlockMove::in_order() const {
  if (windows.size() > 1) return false;
  for (size_t i = 0; i < origins.size(); ++i)
    if (origins[i].element != static_cast<int>(i)) return false;
  return true;
}

std::optional<BlockPlan> plan_blocks(const Problem& copy) {
  const TensorDesc &in = copy.in[0], &out = copy.out[0];
  const auto each = static_cast<int>(element_bytes(out.dtype));
  if (elements(out.dims) == 0) return {};
  std::vector<BlockAxis> axes;
  for (int d = 0; d < out.dims.size(); ++d) {
    if (out.dims[d] > 1 && (out.strides[d] <= 0 || in.strides[d] < 0)) return {};
    axes.push_back({out.dims[d], in.strides[d] * each, out.strides[d] * each});
  }
  return Planner(std::move(axes), each).run();
}

}  // namespace partita::jit
