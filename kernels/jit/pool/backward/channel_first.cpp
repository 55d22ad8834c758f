// SPDX-License-Identifier: Apache-2.0
// The channel-first walk over tiles.
//   average: weighted sums of rows of windows, one for each different row of cells
//   maximum: gradients, source cells and winning taps of each row of windows
// then the windows are spread along x, and the back expression runs over the tile's cells as they lie in memory.
#include "kernels/jit/pool/backward/channel_first.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "kernels/jit/flat/exceeds_cache.hpp"
#include "kernels/jit/pool/walk.hpp"
#include "src/base/round.hpp"
#include "src/base/threads.hpp"

namespace partita::jit {
namespace {

constexpr int64_t kTileElements = 4096;  ///< cells of a tile: with what they are made from, they stay in the caches
constexpr int64_t kPartElements = 1024;  ///< the same where planes are cut anyway: reading and storing take turns often
constexpr int64_t kDeepElements = 32768;  ///< the same where windows reach over several planes of a volume
constexpr int64_t kPlaneElements = 8192;  ///< the same for tiles of several planes, margins of rows included

}  // namespace

ChannelFirstPool::ChannelFirstPool(const Problem& problem, const Target& target)
    : p_(problem),
      stages_(p_, target.isa),
      isa_(target.isa),
      threads_(std::max(1, target.threads)),
      lanes_(lanes_of(isa_)),
      join_cells_(stages_.joinable_cells()) {
  make_tiles();
  choose_steps();
  lay_out();
  make_kernels(exceeds_cache(problem));
  make_tables();
}

void ChannelFirstPool::make_tiles() {
  const int64_t width = p_.g.src[2], rows = p_.rows(), step = p_.g.strides[2] * lanes_;
  int64_t cells = width;
  if (width > kTileElements)
    cells = step * even_part(rounded_up(width, step) / step, std::max<int64_t>(1, kTileElements / step));
  for (const ColumnBlock& columns : p_.column_blocks(cells)) {
    blocks_.emplace_back();
    static_cast<ColumnBlock&>(blocks_.back()) = columns;
  }
  join_cells_ = join_cells_ && blocks_.size() == 1;
  const int64_t step_y = p_.g.strides[1];
  const bool deep = p_.reach(0) > 1 || (p_.maximum && p_.span(0) > 1);
  const int64_t most = deep ? kDeepElements : kTileElements;
  int64_t together = rows;
  if (rows * blocks_[0].cells > most) {
    int64_t lines = step_y;  // rows that make whole cache lines
    for (const PoolOperand& o : p_.out) lines = std::lcm(lines, kCacheLine / std::gcd(kCacheLine, o.y));
    const int64_t step = lines * blocks_[0].cells > most ? step_y : lines;
    // Sums of overlapping windows are made anew for every tile.
    const bool apart = p_.maximum || p_.reach(1) == 1;
    const int64_t wanted = deep ? kDeepElements : apart ? kPartElements : kTileElements;
    together = std::min(
        rows, step * even_part(rounded_up(rows, step) / step, std::max<int64_t>(1, wanted / blocks_[0].cells / step)));
  }
  if (together == rows && blocks_.size() == 1)
    planes_ = std::clamp<int64_t>(kPlaneElements / (rows * (width + 2 * lanes_)), 1, p_.g.channels);
  planes_are_rows_ = planes_ * p_.g.strides[1] > p_.g.src[1];
  row_blocks_ = pool_row_blocks(p_, together, !planes_are_rows_);
}

/// A row is one step where it is short.
void ChannelFirstPool::choose_steps() {
  const int64_t stride = p_.g.strides[2], together = 4;
  const int64_t row = stride <= SpreadKernel::kPhases ? (blocks_[0].periods + lanes_ - 1) / lanes_ * stride
                                                      : (blocks_[0].cells + lanes_ - 1) / lanes_;
  step_vectors_ = row <= SpreadKernel::kMostVectors ? row : (together + stride - 1) / stride * stride;
}

int64_t ChannelFirstPool::steps(const Block& block) const {
  return (block.cells + step_vectors_ * lanes_ - 1) / (step_vectors_ * lanes_);
}

void ChannelFirstPool::lay_out() {
  int64_t windows = 0, source = 0, cells = 0, stored = 0, slots = 0;
  for (const Block& b : blocks_) {
    windows = std::max(windows, p_.reach(2) + steps(b) * step_vectors_ * lanes_ / p_.g.strides[2] + 2 * lanes_);
    source = std::max(source, (rounded_up(b.windows, lanes_) + lanes_) * p_.g.strides[2] + p_.span(2));
    cells = std::max(cells, b.cells);
    stored = std::max(stored, steps(b) * step_vectors_ * lanes_);
  }
  int64_t rows = 0;
  for (const PoolRowBlock& block : row_blocks_) {
    slots = std::max(slots, block.window_slots);
    source_slots_ = std::max(source_slots_, block.source_slots);
    rows = std::max(rows, block.count);
  }
  winners_at_ = windows * 4;
  window_row_bytes_ = winners_at_ * (p_.maximum ? 2 : 1);
  window_plane_bytes_ = slots * window_row_bytes_;
  source_row_bytes_ = source * 4;
  // One more row, of what lies outside the source.
  source_plane_bytes_ = p_.maximum ? (source_slots_ + 1) * source_row_bytes_ : 0;
  source_at_ = aligned(planes_ * window_plane_bytes_);
  cells_at_ = aligned(source_at_ + planes_ * source_plane_bytes_);
  scratch_ = {threads_, cells_at_ + (planes_ * rows * cells + stored) * 4};
}

void ChannelFirstPool::make_kernels(bool large_result) {
  const PoolGeometry& g = p_.g;
  SpreadShape spread{.maximum = p_.maximum,
                     .kernel = g.kernel[2],
                     .stride = g.strides[2],
                     .dilation = g.dilations[2],
                     .lead = p_.lead(),
                     .reach = p_.reach(2),
                     .vectors = step_vectors_,
                     .winners_at = winners_at_,
                     .cover_counts = {1}};
  if (p_.maximum) {
    spread.cover_counts.clear();
    for (const PoolRowBlock& block : row_blocks_)
      for (size_t k = 0; k < block.spread.size(); k += 1 + 2 * static_cast<size_t>(block.spread[k]))
        if (std::ranges::find(spread.cover_counts, block.spread[k]) == spread.cover_counts.end())
          spread.cover_counts.push_back(block.spread[k]);
    winner_ = std::make_unique<const WinnerKernel>(
        isa_,
        WinnerShape{
            .tap_rows = p_.tap_rows(), .kernel = g.kernel[2], .stride = g.strides[2], .dilation = g.dilations[2]});
  }
  const bool may_stream = large_result && tiles_aligned();
  choose_touches(spread, may_stream);
  spread_ = std::make_unique<const SpreadKernel>(isa_, spread);
  const auto walk = [&](int64_t length, int64_t row_bytes, int64_t plane_bytes) {
    return planes_are_rows_ ? RowWalk{length, Along::c, plane_bytes, false}
                            : RowWalk{length, Along::y, row_bytes, false};
  };
  for (Block& b : blocks_) {
    const auto back = [&](const PoolRowBlock& rows) {
      return stages_.back(1,
                          join_cells_ ? RowWalk{rows.count * b.cells, Along::c, rows.count * b.cells * 4, true}
                                      : RowWalk{b.cells, Along::y, b.cells * 4, false},
                          may_stream);
    };
    b.whole = back(row_blocks_.front());
    b.last = back(row_blocks_.back());
    if (b.windows == 0) continue;
    const RowWalk pooled = walk(b.windows, window_row_bytes_, window_plane_bytes_);
    if (p_.maximum) {
      b.gradients = stages_.gradients(pooled);
      if (b.sources > 0) b.read = stages_.source(walk(b.sources, source_row_bytes_, source_plane_bytes_));
    }
    for (const PoolRowBlock& rows : row_blocks_)
      for (const PoolSums& sums : rows.sums)
        if (!b.sums.contains(sums.covers.size())) b.sums[sums.covers.size()] = stages_.sum(sums.covers.size(), pooled);
  }
}

bool ChannelFirstPool::touches_operand(int k) const {
  return p_.in[static_cast<size_t>(k)].x != 0 && !(p_.maximum && k == 0);
}

/// The tile's result, what the back expression reads, and the next tile's windows and source cells. Tiles of joined
/// rows lie in one piece.
void ChannelFirstPool::choose_touches(SpreadShape& spread, bool streaming) {
  const int64_t cells = std::min(step_vectors_ * lanes_, blocks_[0].cells);
  touches_cells_ = !streaming && join_cells_;
  if (touches_cells_) spread.touches.push_back({cells * p_.out[0].x, true});
  if (p_.ahead >= 0)
    spread.touches.push_back(
        {cells * p_.in[static_cast<size_t>(p_.ahead)].x / (p_.g.strides[1] * p_.g.strides[2]), false});
  if (p_.maximum) spread.touches.push_back({cells * p_.in[0].x, false});
  for (int k : p_.back_in)
    if (join_cells_ && touches_operand(k) && spread.touches.size() < kMaxTouches)
      spread.touches.push_back({cells * p_.in[static_cast<size_t>(k)].x, false});
}

std::array<const std::byte*, kMaxTouches> ChannelFirstPool::touched(const RunArgs& args, const PoolRowBlock& rows,
                                                                    const Spot& at, int64_t planes) const {
  std::array<const std::byte*, kMaxTouches> list{};
  size_t count = 0;
  const auto here = [&](const PoolOperand& o, const void* base) {
    return o.at(base, at.n, at.c, rows.first / p_.g.src[1], rows.first % p_.g.src[1], 0);
  };
  const bool last = &rows == &row_blocks_.back();
  const int64_t next = last ? 0 : rows.first + rows.count, z = next / p_.g.src[1], y = next % p_.g.src[1];
  const int64_t c = std::min(at.c + (last ? planes : 0), p_.g.channels - 1);
  if (touches_cells_) list[count++] = here(p_.out[0], args.out[0]);
  if (const auto ahead = static_cast<size_t>(p_.ahead); p_.ahead >= 0)
    list[count++] = p_.in[ahead].at(args.in[ahead], at.n, c, std::min(z / p_.g.strides[0], p_.g.dst[0] - 1),
                                    std::min(y / p_.g.strides[1], p_.g.dst[1] - 1), 0);
  if (p_.maximum) list[count++] = p_.in[0].at(args.in[0], at.n, c, z, y, 0);
  for (int k : p_.back_in)
    if (join_cells_ && touches_operand(k) && count < kMaxTouches)
      list[count++] = here(p_.in[static_cast<size_t>(k)], args.in[static_cast<size_t>(k)]);
  return list;
}

/// Slots become byte distances.
void ChannelFirstPool::make_tables() {
  const auto row_bytes = static_cast<int32_t>(window_row_bytes_);
  const auto entries = static_cast<size_t>(spread_->row_entries());
  for (PoolRowBlock& block : row_blocks_) {
    std::vector<int32_t> table(static_cast<size_t>(block.count) * entries);
    size_t from = 0;
    for (size_t to = 0; to < table.size(); to += entries) {
      if (!p_.maximum) {
        table[to] = 1;
        table[to + 1] = block.spread[from++] * row_bytes;
        continue;
      }
      const auto covers = static_cast<size_t>(block.spread[from]);
      table[to] = block.spread[from++];
      for (size_t k = 0; k < covers; ++k, from += 2) {
        table[to + 1 + 2 * k] = block.spread[from] * row_bytes;
        table[to + 2 + 2 * k] = block.spread[from + 1];
      }
    }
    block.spread = std::move(table);
    for (size_t k = 0; k < block.winners.size(); ++k)
      if ((k + 1) % static_cast<size_t>(p_.tap_rows() + 1) != 0)
        block.winners[k] = static_cast<int32_t>((block.winners[k] < 0 ? source_slots_ : int64_t{block.winners[k]}) *
                                                source_row_bytes_);
  }
  numbers_ = numbers(p_.maximum ? p_.tap_rows() * p_.g.kernel[2] : 0);
  if (p_.maximum) first_taps_ = p_.first_taps(2 * lanes_);
}

/// Every row that a call stores starts at a cache line, where the tensors do.
bool ChannelFirstPool::tiles_aligned() const {
  return std::ranges::all_of(p_.out, [&](const PoolOperand& o) {
    const int64_t columns = blocks_.size() > 1 ? blocks_[0].cells * o.x : 0;
    const int64_t rows = row_blocks_.size() > 1 || !join_cells_ ? (join_cells_ ? row_blocks_[0].count : 1) : 0;
    return on_lines({o.offset, o.n, o.c, join_cells_ ? 0 : o.z, rows * o.y, columns});
  });
}

Status ChannelFirstPool::operator()(const RunArgs& args) const {
  const int64_t tiles_of_planes = (p_.g.channels + planes_ - 1) / planes_, row_blocks = std::ssize(row_blocks_);
  const int64_t tiles = std::ssize(blocks_) * p_.g.batch * tiles_of_planes * row_blocks;
  const int64_t cost = blocks_[0].cells * row_blocks_[0].count * planes_;
  const auto part = [&](int64_t begin, int64_t end, int number) {
    std::byte* scratch = scratch_.share(args.scratch, number);
    Work work{scratch, scratch + source_at_, scratch + cells_at_, nullptr};
    for (int64_t i = begin; i < end; ++i) {
      const int64_t plane = i / row_blocks % tiles_of_planes * planes_, outer = i / row_blocks / tiles_of_planes;
      const Block* block = &blocks_[static_cast<size_t>(outer / p_.g.batch)];
      if (block != work.block) {
        work.block = block;
        start_block(work);
      }
      run_tile(args, work, row_blocks_[static_cast<size_t>(i % row_blocks)], {.n = outer % p_.g.batch, .c = plane},
               std::min(planes_, p_.g.channels - plane));
    }
    if (blocks_[0].whole.streaming) end_streaming();
  };
  parallel_for(tiles, cost, part, threads_);
  return {};
}

/// What lies outside the tensors is what it should be.
void ChannelFirstPool::start_block(Work& work) const {
  for (std::byte* row = work.windows; row < work.windows + planes_ * window_plane_bytes_; row += window_row_bytes_) {
    fill_words(row, winners_at_, 0.0f);
    fill_words(row + winners_at_, window_row_bytes_ - winners_at_, int32_t{-1});
  }
  fill_words(work.source, planes_ * source_plane_bytes_, -std::numeric_limits<float>::infinity());
}

void ChannelFirstPool::run_tile(const RunArgs& args, Work& work, const PoolRowBlock& rows, const Spot& at,
                                int64_t planes) const {
  const Block& b = *work.block;
  if (b.windows > 0) p_.maximum ? window_rows(args, work, rows, at, planes) : sum_rows(args, work, rows, at, planes);
  (*spread_)({.windows = work.windows,
              .cells = work.cells,
              .rows = rows.spread.data(),
              .numbers = numbers_.data(),
              .row_count = rows.count,
              .periods = steps(b),
              .cells_row_bytes = b.cells * 4,
              .planes = planes,
              .windows_plane_bytes = window_plane_bytes_,
              .cells_plane_bytes = rows.count * b.cells * 4,
              .touched = touched(args, rows, at, planes)});
  store_cells(args, work, rows, at, planes);
}

/// Calls run(place, byte distance in scratch memory, rows) until all rows of all planes are done.
template <class Run>
void ChannelFirstPool::each_call(const PoolRows& rows, const Spot& at, int64_t planes, int64_t row_bytes,
                                 int64_t plane_bytes, Run run) const {
  Spot from = at;
  from.z = rows.z;
  const int64_t calls = planes_are_rows_ ? rows.count : planes;
  for (int64_t call = 0; call < calls; ++call) {
    from.y = rows.y + (planes_are_rows_ ? call : 0);
    from.c = at.c + (planes_are_rows_ ? 0 : call);
    run(from, rows.slot * row_bytes + call * (planes_are_rows_ ? row_bytes : plane_bytes),
        planes_are_rows_ ? planes : rows.count);
  }
}

void ChannelFirstPool::sum_rows(const RunArgs& args, Work& work, const PoolRowBlock& rows, const Spot& at,
                                int64_t planes) const {
  const Block& b = *work.block;
  Spot from = at;
  from.x = b.window;
  for (const PoolSums& sums : rows.sums)
    each_call({0, 0, sums.count, sums.slot}, from, planes, window_row_bytes_, window_plane_bytes_,
              [&](const Spot& spot, int64_t distance, int64_t count) {
                stages_.run_sum(b.sums.find(sums.covers.size())->second, args, sums.covers, spot, count,
                                work.windows + distance + b.window_at * 4);
              });
}

void ChannelFirstPool::window_rows(const RunArgs& args, Work& work, const PoolRowBlock& rows, const Spot& at,
                                   int64_t planes) const {
  const Block& b = *work.block;
  Spot from = at;
  from.x = b.source;
  for (const PoolRows& source : rows.source)
    if (b.sources > 0)
      each_call(source, from, planes, source_row_bytes_, source_plane_bytes_,
                [&](const Spot& spot, int64_t distance, int64_t count) {
                  stages_.run_source(b.read, args, spot, count, work.source + distance + b.source_at * 4);
                });
  from.x = b.window;
  for (const PoolRows& windows : rows.windows)
    each_call(windows, from, planes, window_row_bytes_, window_plane_bytes_,
              [&](const Spot& spot, int64_t distance, int64_t count) {
                stages_.run_gradients(b.gradients, args, spot, count, work.windows + distance + b.window_at * 4);
              });
  if (rows.window_slots == 0) return;
  (*winner_)({.source = work.source,
              .winners = work.windows + winners_at_ + b.window_at * 4,
              .rows = rows.winners.data(),
              .first = first_taps_.data() + b.window,
              .row_count = rows.window_slots,
              .windows = (b.windows + lanes_ - 1) / lanes_,
              .winners_row_bytes = window_row_bytes_,
              .planes = planes,
              .source_plane_bytes = source_plane_bytes_,
              .winners_plane_bytes = window_plane_bytes_});
}

void ChannelFirstPool::store_cells(const RunArgs& args, const Work& work, const PoolRowBlock& rows, const Spot& at,
                                   int64_t planes) const {
  const Block& b = *work.block;
  const PoolStages::Back& back = &rows == &row_blocks_.back() ? b.last : b.whole;
  const PoolStages::Kernel kernel = back.streaming && outputs_aligned(args) ? back.streaming : back.plain;
  Spot from = at;
  from.x = b.cell;
  if (join_cells_) {
    from.z = rows.first / p_.g.src[1];
    from.y = rows.first % p_.g.src[1];
    return stages_.run_back(kernel, args, std::array<const std::byte*, 1>{work.cells}, from, planes);
  }
  for (const PoolRows& cells : rows.cells)
    for (int64_t plane = 0; plane < planes; ++plane) {
      from.c = at.c + plane;
      from.z = cells.z;
      from.y = cells.y;
      const std::array<const std::byte*, 1> row = {work.cells + (plane * rows.count + cells.slot) * b.cells * 4};
      stages_.run_back(kernel, args, row, from, cells.count);
    }
}

}  // namespace partita::jit
