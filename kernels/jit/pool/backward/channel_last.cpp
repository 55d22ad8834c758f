// SPDX-License-Identifier: Apache-2.0
// The channel-last walk. For each row of cells:
//   average: the weighted sum of the rows of windows over it, along z and y; once for all rows it is the same for
//   maximum: each row of windows over it once: its gradients and, from the rows of the source, its winning taps
// then the windows are spread along x over the row's cells, and the back expression stores them; for averages the two
// are one step.
#include "kernels/jit/pool/backward/channel_last.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include "kernels/jit/code/imm32.hpp"
#include "kernels/jit/flat/exceeds_cache.hpp"
#include "kernels/jit/pool/walk.hpp"
#include "src/base/round.hpp"
#include "src/base/threads.hpp"

namespace partita::jit {
namespace {

/// Of a row: small where blocks share nothing, so that making and storing of cells overlap; else what blocks compute
/// twice at their borders should stay small, too.
constexpr int64_t kApartElements = 2048, kBlockElements = 8192;
constexpr int64_t kPlaneBytes = 1 << 20;  ///< prepared windows of whole planes
constexpr int64_t kLeastPeriods = 8;      ///< of a block: what blocks compute twice at their borders stays small

}  // namespace

/// Scratch memory of one thread.
struct ChannelLastPool::Work {
  int64_t* window_tags;  // rows held by the slots; -1: none
  int64_t* source_tags;
  std::byte *windows, *source, *cells;
  const Block* block;
};

ChannelLastPool::ChannelLastPool(const Problem& problem, const Target& target)
    : p_(problem),
      stages_(p_, target.isa),
      isa_(target.isa),
      threads_(std::max(1, target.threads)),
      join_pooled_(stages_.joinable_pooled()),
      join_source_(p_.maximum && stages_.joinable_source()),
      join_cells_(stages_.joinable_cells()) {
  const int64_t lanes = lanes_of(isa_);
  pitch_ = rounded_up(p_.g.channels, lanes) * 4;
  const int64_t period = p_.g.strides[2] * p_.g.channels;
  for (const ColumnBlock& columns : p_.column_blocks(
           p_.g.strides[2] *
           even_part((p_.g.src[2] - 1) / p_.g.strides[2] + 1,
                     std::max(kLeastPeriods, (p_.reach(2) == 1 ? kApartElements : kBlockElements) / period)))) {
    blocks_.emplace_back();
    static_cast<ColumnBlock&>(blocks_.back()) = columns;
  }
  lay_out();
  make_rows();
  make_kernels(exceeds_cache(problem));
}

void ChannelLastPool::lay_out() {
  const int64_t slack = 64;
  int64_t windows = 0, source = 0, cells = 0;
  for (const Block& b : blocks_) {
    windows = std::max(windows, p_.reach(2) + b.periods);
    source = std::max(source, (b.windows - 1) * p_.g.strides[2] + p_.span(2));
    cells = std::max(cells, b.periods * p_.g.strides[2]);
  }
  winners_at_ = windows * pitch_;
  window_row_bytes_ = winners_at_ * (p_.maximum ? 2 : 1);
  source_row_bytes_ = source * pitch_;
  if (p_.maximum) {
    slots_z_ = std::min(p_.g.dst[0], p_.reach(0));
    slots_y_ = std::min(p_.g.dst[1], p_.reach(1));
    // Otherwise each plane of cells would search the same windows again.
    if (p_.span(0) > 1 && slots_z_ * p_.g.dst[1] * window_row_bytes_ <= kPlaneBytes) slots_y_ = p_.g.dst[1];
    source_slots_ = p_.span(0) * p_.span(1);
  }
  window_slots_ = slots_z_ * slots_y_;
  tags_at_ = 0;
  windows_at_ = aligned((window_slots_ + source_slots_) * 8);
  source_at_ = aligned(windows_at_ + window_slots_ * window_row_bytes_);
  // One more row, of what lies outside the source.
  cells_at_ = aligned(source_at_ + (p_.maximum ? (source_slots_ + 1) * source_row_bytes_ : 0));
  scratch_ = {threads_, cells_at_ + cells * p_.g.channels * 4 + slack};
}

void ChannelLastPool::make_rows() {
  const PoolGeometry& g = p_.g;
  for (int64_t z = 0; z < g.src[0]; ++z)
    for (int64_t y = 0; y < g.src[1]; ++y) {
      const auto row = static_cast<int64_t>(rows_.size());
      CellRow made{p_.row_covers(z, y), {}, row};
      if (y > 0 && rows_.back().covers == made.covers) made.same_as = rows_.back().same_as;
      rows_.push_back(std::move(made));
    }
  numbers_ = numbers(p_.maximum ? p_.tap_rows() * g.kernel[2] : 0);
  if (!p_.maximum) return;
  first_taps_ = p_.first_taps(0);
  for (int64_t z = 0; z < g.dst[0]; ++z)
    for (int64_t y = 0; y < g.dst[1]; ++y) {
      read_rows_.push_back(p_.tap_rows_of(z, y));
      std::vector<int32_t> table;
      for (int64_t row : read_rows_.back())
        table.push_back(imm32((row < 0 ? source_slots_ : source_slot(row)) * source_row_bytes_));
      table.push_back(p_.first_tap_of(z, y));
      winner_rows_.push_back(std::move(table));
    }
}

void ChannelLastPool::make_kernels(bool large_result) {
  const PoolGeometry& g = p_.g;
  const bool dense = pitch_ == g.channels * 4;
  choose_phases();
  join_pooled_ = join_pooled_ && dense;
  join_source_ = join_source_ && dense;
  if (!phases_.empty()) join_cells_ = join_cells_ && dense && g.strides[2] == 1;
  const bool may_stream = large_result && rows_aligned();
  const auto walk = [&](int64_t cells, bool join, int64_t pitch) {
    return join ? RowWalk{cells * g.channels, Along::nothing, 0, true} : RowWalk{g.channels, Along::x, pitch, false};
  };
  for (Block& b : blocks_) {
    const RowWalk pooled = walk(b.windows, join_pooled_, pitch_);
    if (b.windows > 0 && p_.maximum) {
      b.gradients = stages_.gradients(pooled);
      if (b.sources > 0) b.read = stages_.source(walk(b.sources, join_source_, pitch_));
    }
    if (b.windows > 0 && !p_.maximum)
      for (const CellRow& row : rows_)
        if (auto& sums = b.sums[row.covers.size()]; sums.empty()) sums = stages_.sum(row.covers.size(), pooled);
    RowWalk phase = walk(b.cells, join_cells_, pitch_);
    phase.every = g.strides[2];
    for (const auto& windows : phases_) b.phases.push_back(stages_.back(windows.size(), phase, may_stream));
    if (phases_.empty()) b.back = stages_.back(1, walk(b.cells, join_cells_, g.channels * 4), may_stream);
  }
  streams_ = may_stream;
  if (phases_.empty()) make_spread(may_stream);
}

/// Averages add up the windows over a cell where they store it, unless these are too many.
void ChannelLastPool::choose_phases() {
  if (p_.maximum || p_.reach(2) > PoolStages::kMaxSummed) return;
  for (int64_t cell = 0; cell < std::min(p_.g.strides[2], p_.g.src[2]); ++cell) {
    phases_.emplace_back();
    const int64_t place = p_.lead() + cell, step = p_.g.strides[2];
    for (int64_t back = 0; back < p_.reach(2); ++back)
      if (p_.tap_of(2, place % step, back) >= 0)
        phases_.back().push_back((place / step - back + p_.reach(2) - 1) * pitch_);
  }
}

void ChannelLastPool::make_spread(bool streaming) {
  const PoolGeometry& g = p_.g;
  SpreadShape spread{.maximum = p_.maximum,
                     .channel_last = true,
                     .kernel = g.kernel[2],
                     .stride = g.strides[2],
                     .dilation = g.dilations[2],
                     .lead = p_.lead(),
                     .reach = p_.reach(2),
                     .window_bytes = pitch_,
                     .cell_bytes = g.channels * 4,
                     .vectors = pitch_ / (isa_ == Isa::avx512 ? 64 : 32),
                     .winners_at = winners_at_,
                     .cover_counts = {1}};
  if (p_.maximum) {
    std::set<int> counts;
    for (const CellRow& row : rows_) counts.insert(static_cast<int>(row.covers.size()));
    spread.cover_counts.assign(counts.begin(), counts.end());
    winner_ = std::make_unique<const WinnerKernel>(isa_, WinnerShape{.channel_last = true,
                                                                     .tap_rows = p_.tap_rows(),
                                                                     .kernel = g.kernel[2],
                                                                     .stride = g.strides[2],
                                                                     .dilation = g.dilations[2],
                                                                     .cell_bytes = pitch_,
                                                                     .window_bytes = pitch_,
                                                                     .vectors = spread.vectors});
  }
  choose_touches(spread, streaming);
  spread_ = std::make_unique<const SpreadKernel>(isa_, spread);
  for (CellRow& row : rows_) {
    row.spread.assign(static_cast<size_t>(spread_->row_entries()), 0);
    row.spread[0] = p_.maximum ? static_cast<int32_t>(row.covers.size()) : 1;
    for (size_t k = 0; p_.maximum && k < row.covers.size(); ++k) {
      row.spread[1 + 2 * k] = imm32(window_slot(row.covers[k].z, row.covers[k].y) * window_row_bytes_);
      row.spread[2 + 2 * k] = row.covers[k].tap * 4;
    }
  }
}

/// Every row that a call stores starts at a cache line, where the tensors do.
bool ChannelLastPool::rows_aligned() const {
  return std::ranges::all_of(p_.out, [&](const PoolOperand& o) {
    return on_lines({o.offset, o.n, o.z, o.y, join_cells_ ? 0 : o.x, blocks_.size() > 1 ? blocks_[0].cells * o.x : 0});
  });
}

Status ChannelLastPool::operator()(const RunArgs& args) const {
  const int64_t rows = static_cast<int64_t>(blocks_.size()) * p_.g.batch * p_.rows();
  const auto part = [&](int64_t begin, int64_t end, int number) {
    std::byte* scratch = scratch_.share(args.scratch, number);
    auto* tags = reinterpret_cast<int64_t*>(scratch + tags_at_);
    Work work{tags, tags + window_slots_, scratch + windows_at_, scratch + source_at_, scratch + cells_at_, nullptr};
    run_rows(args, work, begin, end);
  };
  parallel_for(rows, blocks_[0].cells * p_.g.channels, part, threads_);
  return {};
}

/// Nothing is prepared, and what lies outside the tensors is what it should be.
void ChannelLastPool::start_block(Work& work) const {
  std::fill_n(work.window_tags, window_slots_ + source_slots_, -1);
  for (int64_t slot = 0; slot < window_slots_; ++slot) {
    std::byte* row = work.windows + slot * window_row_bytes_;
    fill_words(row, winners_at_, 0.0f);
    fill_words(row + winners_at_, window_row_bytes_ - winners_at_, int32_t{-1});
  }
  if (p_.maximum)
    fill_words(work.source, (source_slots_ + 1) * source_row_bytes_, -std::numeric_limits<float>::infinity());
}

void ChannelLastPool::run_rows(const RunArgs& args, Work& work, int64_t begin, int64_t end) const {
  const bool streaming = streams_ && outputs_aligned(args);
  for (int64_t i = begin; i < end; ++i) {
    const int64_t row = i % p_.rows(), n = i / p_.rows() % p_.g.batch;
    const Block* block = &blocks_[static_cast<size_t>(i / p_.rows() / p_.g.batch)];
    if (block != work.block) {
      work.block = block;
      start_block(work);
    }
    if (p_.maximum)
      for (const RowCover& c : rows_[static_cast<size_t>(row)].covers) window_row(args, work, n, c.z, c.y);
    else
      sum_row(args, work, n, row);
    phases_.empty() ? spread_row(args, work, n, row, streaming) : store_phases(args, work, n, row, streaming);
  }
  if (streaming) end_streaming();
}

void ChannelLastPool::spread_row(const RunArgs& args, Work& work, int64_t n, int64_t row, bool streaming) const {
  const Block& b = *work.block;
  (*spread_)({.windows = work.windows,
              .cells = work.cells,
              .rows = rows_[static_cast<size_t>(row)].spread.data(),
              .numbers = numbers_.data(),
              .row_count = 1,
              .periods = b.periods,
              .cells_row_bytes = 0,
              .planes = 1,
              .windows_plane_bytes = 0,
              .cells_plane_bytes = 0,
              .touched = touched(args, n, row, b)});
  const std::array<const std::byte*, 1> cells = {work.cells};
  stages_.run_back(streaming ? b.back.streaming : b.back.plain, args, cells,
                   {n, 0, row / p_.g.src[1], row % p_.g.src[1], b.cell}, join_cells_ ? 1 : b.cells);
}

void ChannelLastPool::store_phases(const RunArgs& args, Work& work, int64_t n, int64_t row, bool streaming) const {
  const Block& b = *work.block;
  const int64_t step = p_.g.strides[2];
  for (int64_t phase = 0; phase < std::min(b.cells, std::ssize(phases_)); ++phase) {
    std::array<const std::byte*, PoolStages::kMaxSummed> windows;
    size_t count = 0;
    for (int64_t place : phases_[static_cast<size_t>(phase)]) windows[count++] = work.windows + place;
    const PoolStages::Back& back = b.phases[static_cast<size_t>(phase)];
    stages_.run_back(streaming ? back.streaming : back.plain, args, {windows.data(), count},
                     {n, 0, row / p_.g.src[1], row % p_.g.src[1], b.cell + phase},
                     join_cells_ ? 1 : (b.cells - phase + step - 1) / step);
  }
}

/// The result's row, what the back expression reads, and of the next row of cells the windows and source cells that
/// come in.
void ChannelLastPool::choose_touches(SpreadShape& spread, bool streaming) {
  const int64_t period = p_.g.strides[2];
  touches_cells_ = !streaming;
  if (touches_cells_) spread.touches.push_back({p_.out[0].x * period, true});
  if (p_.ahead >= 0) spread.touches.push_back({p_.in[static_cast<size_t>(p_.ahead)].x, false});
  if (p_.maximum) spread.touches.push_back({p_.in[0].x * period, false});
  for (int k : p_.back_in)
    if (const int64_t bytes = p_.in[static_cast<size_t>(k)].x * period;
        spread.touches.size() < kMaxTouches && !(p_.maximum && k == 0))
      spread.touches.push_back({bytes, false});
}

std::array<const std::byte*, kMaxTouches> ChannelLastPool::touched(const RunArgs& args, int64_t n, int64_t row,
                                                                   const Block& b) const {
  std::array<const std::byte*, kMaxTouches> list{};
  size_t count = 0;
  const int64_t z = row / p_.g.src[1], y = row % p_.g.src[1];
  if (touches_cells_) list[count++] = p_.out[0].at(args.out[0], n, 0, z, y, b.cell);
  const int64_t windows = std::min((y + p_.g.pads_begin[1]) / p_.g.strides[1] + 1, p_.g.dst[1] - 1);
  if (const auto ahead = static_cast<size_t>(p_.ahead); p_.ahead >= 0)
    list[count++] = p_.in[ahead].at(args.in[ahead], n, 0, std::min(z, p_.g.dst[0] - 1), windows, b.window);
  if (p_.maximum) list[count++] = p_.in[0].at(args.in[0], n, 0, z, std::min(y + p_.span(1), p_.g.src[1] - 1), b.source);
  for (int k : p_.back_in) {
    const auto o = static_cast<size_t>(k);
    if (count < kMaxTouches && !(p_.maximum && k == 0)) list[count++] = p_.in[o].at(args.in[o], n, 0, z, y, b.cell);
  }
  return list;
}

void ChannelLastPool::sum_row(const RunArgs& args, Work& work, int64_t n, int64_t row) const {
  const Block& b = *work.block;
  const CellRow& cells = rows_[static_cast<size_t>(row)];
  const int64_t tag = n * p_.rows() + cells.same_as;
  if (work.window_tags[0] == tag || b.windows == 0) return;
  work.window_tags[0] = tag;
  stages_.run_sum(b.sums.find(cells.covers.size())->second, args, cells.covers, {n, 0, 0, 0, b.window},
                  join_pooled_ ? 1 : b.windows, work.windows + b.window_at * pitch_);
}

void ChannelLastPool::window_row(const RunArgs& args, Work& work, int64_t n, int64_t z, int64_t y) const {
  const Block& b = *work.block;
  const int64_t slot = window_slot(z, y), row = z * p_.g.dst[1] + y, tag = n * p_.g.dst[0] * p_.g.dst[1] + row;
  if (work.window_tags[slot] == tag || b.windows == 0) return;
  work.window_tags[slot] = tag;
  for (int64_t source : read_rows_[static_cast<size_t>(row)])
    if (source >= 0) source_row(args, work, n, source);
  std::byte* to = work.windows + slot * window_row_bytes_ + b.window_at * pitch_;
  stages_.run_gradients(b.gradients, args, {n, 0, z, y, b.window}, join_pooled_ ? 1 : b.windows, to);
  (*winner_)({.source = work.source,
              .winners = to + winners_at_,
              .rows = winner_rows_[static_cast<size_t>(row)].data(),
              .first = first_taps_.data() + b.window,
              .row_count = 1,
              .windows = b.windows,
              .winners_row_bytes = 0,
              .planes = 1,
              .source_plane_bytes = 0,
              .winners_plane_bytes = 0});
}

void ChannelLastPool::source_row(const RunArgs& args, Work& work, int64_t n, int64_t row) const {
  const Block& b = *work.block;
  const int64_t slot = source_slot(row), tag = n * p_.rows() + row;
  if (work.source_tags[slot] == tag || b.sources == 0) return;
  work.source_tags[slot] = tag;
  stages_.run_source(b.read, args, {n, 0, row / p_.g.src[1], row % p_.g.src[1], b.source}, join_source_ ? 1 : b.sources,
                     work.source + slot * source_row_bytes_ + b.source_at * pitch_);
}

}  // namespace partita::jit
