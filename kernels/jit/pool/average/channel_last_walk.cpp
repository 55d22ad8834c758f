// SPDX-License-Identifier: Apache-2.0
// What fits averages column by column, their weights, and the walk over rows.
#include <algorithm>
#include <array>
#include <map>

#include "kernels/jit/flat/exceeds_cache.hpp"
#include "kernels/jit/pool/average/channel_last.hpp"
#include "kernels/jit/pool/walk.hpp"
#include "src/base/dtype.hpp"
#include "src/base/threads.hpp"

namespace partita::jit {
namespace {

constexpr size_t kMostOperands = 32;
constexpr int64_t kMostReach = 32, kMostPhases = 16;
constexpr int64_t kBlockElements = 1 << 15;  ///< of a row: some rows of windows stay in the second-level cache
constexpr int64_t kRowsTogether = 2;         ///< of cells, where all rows read as many windows: less to do for a column
constexpr int64_t kColumnBytes = 1 << 15;    ///< sums of columns stay in the nearest cache
constexpr int64_t kLeastPeriods = 8;         ///< of a block: columns over its border are summed twice

/// Whether an average may be seen as a gradient: the distance between windows is a cell, and no window lies in the
/// padding alone. Sums of integers are divided, so they have kernels of their own.
bool mirrors(const Problem& problem) {
  const PoolGeometry g = pool_plan_geometry(problem, {});
  if (g.maximum) return false;
  for (int i = 0; i < 3; ++i)
    if (g.strides[i] != 1 || g.pads_begin[i] > (g.kernel[i] - 1) * g.dilations[i]) return false;
  const bool sums = g.kernel[1] > 1 && g.kernel[2] > 1;  // else few taps are read as quickly where they lie
  return sums && !is_integer(problem.in[0].dtype) && !is_integer(problem.out[0].dtype);
}

}  // namespace

AverageColumns::AverageColumns(const Problem& problem)
    : AveragePlan(problem), backward(problem.step != StepKind::pool_forward) {
  if (backward) return;
  if (!same_along_x || !same_along_rows) add_weights();
  same_along_x = same_along_rows = true;
  for (int i = 0; i < 3; ++i) g.pads_begin[i] = span(i) - 1 - g.pads_begin[i];
  std::swap(g.src, g.dst);
}

void AverageColumns::add_weights() {
  std::map<int64_t, int64_t> known;  // by what counts along z and y
  for (int64_t z = 0; z < g.dst[0]; ++z)
    for (int64_t y = 0; y < g.dst[1]; ++y) {
      const int64_t counted = g.counted(0, z) * g.counted(1, y);
      const auto [row, is_new] = known.emplace(counted, std::ssize(weights));
      row_weights.push_back(row->second);
      for (int64_t x = 0; is_new && x < g.dst[2]; ++x)
        weights.push_back(PoolGeometry::reciprocal(g.divisor_of(counted * g.counted(2, x))));
    }
  weight = 1;
}

bool AverageLastPool::fits(const Problem& problem) {
  if (problem.step == StepKind::pool_forward && !mirrors(problem)) return false;
  const AverageColumns p(problem);
  if (p.adaptive && p.g.dst[2] > p.g.src[2]) return false;
  return !p.maximum && p.channel_last && p.reach(2) <= kMostReach && p.g.strides[2] <= kMostPhases &&
         p.g.dst[2] <= INT32_MAX && p.back_in.size() + p.out.size() <= kMostOperands &&
         p.front_in.size() <= kMostOperands;
}

AverageLastPool::AverageLastPool(const Problem& problem, const Target& target)
    : p_(problem), threads_(std::max(1, target.threads)), column_weights_(p_.column_weights()) {
  const PoolGeometry& g = p_.g;
  const int64_t periods = (g.src[2] - 1) / g.strides[2] + 1;
  blocks_ = p_.column_blocks(g.strides[2] * even_part(periods, std::max(kLeastPeriods * p_.reach(2),
                                                                        kBlockElements / (g.strides[2] * g.channels))));
  for (int64_t x = 0; x < g.src[2] && p_.adaptive; ++x) {
    const std::vector<Cover> over = p_.covers(2, x);
    cells_.push_back(over.size() > 1        ? AdaptiveCell::shared
                     : over.back().tap == 0 ? AdaptiveCell::first
                                            : AdaptiveCell::inside);
  }
  column_bytes_ = AverageLastKernel::column_scratch_bytes(target.isa, p_);
  together_ = g.strides[1] > 1 ? 1 : std::clamp<int64_t>(kColumnBytes / column_bytes_, 1, kRowsTogether);
  const int64_t rows = p_.rows();
  for (int64_t row = 0; row < rows; ++row) {
    Windows& over = alone_.emplace_back().shared;
    for (const RowCover& c : p_.row_covers(row / g.src[1], row % g.src[1])) over.push_back(c);
  }
  for (int64_t row = 0; together_ > 1 && row < rows; ++row) {
    const auto first = static_cast<size_t>(row), second = static_cast<size_t>((row + 1) % rows);
    pairs_.push_back(over_both(alone_[first].shared, alone_[second].shared, row + 1 < rows));
  }
  size_t windows = 0;
  for (const auto* list : {&alone_, &pairs_})
    for (const Over& over : *list) windows = std::max(windows, over.count());
  record_bytes_ = aligned(together_ * AverageLastKernel::row_bytes(p_));
  table_bytes_ = aligned(static_cast<int64_t>(windows * p_.front_in.size() * sizeof(void*)));
  scratch_ = {threads_, record_bytes_ + table_bytes_ + together_ * column_bytes_};
  folds_ = {problem, p_, target, std::ssize(blocks_) * calls(), scratch_.bytes()};
  kernel_ = std::make_unique<const AverageLastKernel>(target.isa, p_, problem, together_, false);
  const int lanes = lanes_of(target.isa);
  // Cells follow each other, so whole vectors make whole cache lines.
  const auto on_vectors = [&](const PoolOperand& o) {
    const int64_t vector = lanes * element_bytes(o.dtype);
    return std::ranges::all_of(std::array{o.offset, o.n, o.z, o.y, o.x}, [&](int64_t at) { return at % vector == 0; });
  };
  if (exceeds_cache(problem) && std::ranges::all_of(p_.out, on_vectors))
    streaming_ = std::make_unique<const AverageLastKernel>(target.isa, p_, problem, together_, true);
}

Status AverageLastPool::operator()(const RunArgs& args) const {
  const bool streaming = streaming_ && outputs_aligned(args);
  const int64_t rows = p_.g.batch * p_.rows(), calls = this->calls();
  const auto part = [&](int64_t begin, int64_t end, int number) {
    const PoolFolds::Part folds(folds_, args, number);
    std::byte* scratch = scratch_.share(args.scratch, number);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % calls * together_;
      folds.unit(i, [&](const RunArgs& to) {
        run(to, streaming ? *streaming_ : *kernel_, blocks_[static_cast<size_t>(i / calls)], first,
            std::min(together_, rows - first), scratch);
      });
    }
    if (streaming) end_streaming();
  };
  parallel_for(std::ssize(blocks_) * calls, blocks_[0].cells * p_.g.channels * together_, part, threads_);
  folds_.finish(args);
  return {};
}

/// Of two rows; those of different images share nothing.
AverageLastPool::Over AverageLastPool::over_both(const Windows& first, const Windows& second, bool one_image) {
  const auto has = [&](const Windows& windows, const RowCover& cover) {
    return one_image && std::ranges::any_of(windows.covers, [&](const RowCover& other) {
             return other.z == cover.z && other.y == cover.y;
           });
  };
  Over both;
  for (const RowCover& c : first.covers) (has(second, c) ? both.shared : both.own[0]).push_back(c);
  for (const RowCover& c : second.covers)
    if (!has(first, c)) both.own[1].push_back(c);
  return both;
}

/// Rows [first, first + count) of a block, all batch items' in order.
void AverageLastPool::run(const RunArgs& args, const AverageLastKernel& kernel, const ColumnBlock& block, int64_t first,
                          int64_t count, std::byte* scratch) const {
  const auto row_of_image = static_cast<size_t>(first % p_.rows());
  const Over& over = count > 1 ? pairs_[row_of_image] : alone_[row_of_image];
  const void** table = reinterpret_cast<const void**>(scratch + record_bytes_);
  const auto place_windows = [&](const Windows& windows, int64_t row) {
    const AverageLastWindows placed = {table, windows.weights.data(), std::ssize(windows.covers)};
    for (const RowCover& c : windows.covers)
      for (int k : p_.front_in) {
        const auto number = static_cast<size_t>(k);
        *table++ = p_.in[number].at(args.in[number], row / p_.rows(), 0, c.z, c.y, block.window);
      }
    return placed;
  };
  for (int64_t k = 0; k < count; ++k) {
    auto* row = reinterpret_cast<AverageLastRow*>(scratch + k * AverageLastKernel::row_bytes(p_));
    *row = {place_windows(over.own[static_cast<size_t>(k)], first + k),
            scratch + record_bytes_ + table_bytes_ + k * column_bytes_, weights_of(first + k, block)};
    place_cells(args, block, first + k, reinterpret_cast<const void**>(row + 1));
  }
  const AdaptiveCell* cells = p_.adaptive ? cells_.data() + block.cell : nullptr;
  kernel({.rows = reinterpret_cast<const AverageLastRow*>(scratch),
          .row_count = count,
          .shared = place_windows(over.shared, first),
          .column_weights = column_weights_.data() + (p_.same_along_x ? 0 : block.window),
          .column = block.window - block.window_at,
          .cell_count = block.cells,
          .cells = cells,
          .columns_before = cells != nullptr && *cells != AdaptiveCell::first ? 1 : 0});
}

/// Of the cells of a row of the block; null where they weigh the same.
const float* AverageLastPool::weights_of(int64_t row, const ColumnBlock& block) const {
  if (p_.weights.empty()) return nullptr;
  return p_.weights.data() + p_.row_weights[static_cast<size_t>(row % p_.rows())] + block.cell;
}

void AverageLastPool::place_cells(const RunArgs& args, const ColumnBlock& block, int64_t row, const void** to) const {
  const int64_t n = row / p_.rows(), z = row % p_.rows() / p_.g.src[1], y = row % p_.g.src[1];
  for (int k : p_.back_in)
    *to++ = p_.in[static_cast<size_t>(k)].at(args.in[static_cast<size_t>(k)], n, 0, z, y, block.cell);
  for (size_t k = 0; k < p_.out.size(); ++k) *to++ = p_.out[k].at(args.out[k], n, 0, z, y, block.cell);
}

}  // namespace partita::jit
