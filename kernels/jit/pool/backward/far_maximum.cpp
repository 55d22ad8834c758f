// SPDX-License-Identifier: Apache-2.0
// What fits, and the walk over groups of channels.
#include "kernels/jit/pool/backward/far_maximum.hpp"

#include <algorithm>
#include <limits>

#include "kernels/jit/pool/walk.hpp"
#include "src/base/shape.hpp"
#include "src/base/threads.hpp"

namespace partita::jit {
namespace {

/// Cells of a window and windows over a cell from which on this takes less time than looking at each. The other kernels
/// are fastest where vectors go across channels, and with twice as many elements of 16 bits at once; of volumes they
/// search each window by itself.
constexpr int64_t kFar = 60, kFarAlongX = 40, kFarInVolumes = 36;
constexpr int64_t kAhead = 16;                    ///< cells; channel-last, where those of a row lie apart
constexpr int64_t kMostBytes = int64_t{1} << 24;  ///< of a thread's scratch memory

}  // namespace

FarMaximumPool::Layout::Layout(const PoolPlan& p, Isa isa, int64_t slots) {
  const PoolGeometry& g = p.g;
  const int64_t width = g.src[2], windows_row = g.dst[2];
  place = lanes_of(isa) * 4;
  cells_row = std::max(g.pads_begin[2] + width, (windows_row - 1) * g.strides[2] + p.span(2)) * place;
  maxima_row = windows_row * place;
  gradient_row = width * place;
  maxima = cells_row;
  names = maxima + slots * maxima_row;
  windows = names + slots * maxima_row;
  gradients = windows + maxima_row;
  transposed = gradients + slots * gradient_row;
  bytes = transposed + (p.channel_last ? 0 : std::max(maxima_row, gradient_row));
}

std::vector<FarMaximumPool::WindowRow> FarMaximumPool::window_rows(const PoolPlan& p) {
  std::vector<WindowRow> list;
  int64_t read = 0;
  for (int64_t z = 0; z < p.g.dst[0]; ++z)
    for (int64_t y = 0; y < p.g.dst[1]; ++y) {
      WindowRow& row = list.emplace_back();
      for (const int64_t cells : p.tap_rows_of(z, y))
        if (cells >= 0) row.reached.push_back(cells);
      row.read_end = read = std::max(read, row.reached.back() + 1);
    }
  // Complete is what no later windows reach.
  int64_t finished = list.back().read_end = p.rows();
  for (auto row = list.rbegin(); row != list.rend(); ++row) {
    row->finished_end = finished;
    finished = std::min(finished, row->reached.front());
  }
  return list;
}

int64_t FarMaximumPool::slots_for(const std::vector<WindowRow>& rows) {
  int64_t most = 0, finished = 0;
  for (const WindowRow& row : rows) {
    most = std::max(most, row.read_end - finished);
    finished = row.finished_end;
  }
  return most;
}

bool FarMaximumPool::fits(const Problem& problem, const Target& target) {
  const PoolPlan p(problem);
  const PoolGeometry& g = p.g;
  if (!p.maximum || p.indices >= 0 || p.has_folds() || elements(g.dst) == 0) return false;
  const bool along_x = !p.channel_last && bits_of(problem.in[0].dtype) == 32;
  const int64_t each = p.tap_rows() * g.kernel[2] + p.reach(0) * p.reach(1) * p.reach(2);
  if (each < (g.kernel[0] > 1 ? kFarInVolumes : along_x ? kFarAlongX : kFar)) return false;
  for (int axis = 0; axis < 3; ++axis)
    if (!p.windows_have_cells(axis)) return false;
  return Layout(p, target.isa, slots_for(window_rows(p))).bytes <= kMostBytes;
}

FarMaximumPool::FarMaximumPool(const Problem& problem, const Target& target)
    : p_(problem),
      rows_(window_rows(p_)),
      slots_(slots_for(rows_)),
      layout_(p_, target.isa, slots_),
      stages_(p_, target.isa),
      threads_(std::max(1, target.threads)),
      lanes_(lanes_of(target.isa)),
      maxima_(target.isa, p_.g.kernel[2], p_.g.strides[2], p_.g.dilations[2]),
      sums_(target.isa),
      scratch_(threads_, layout_.bytes) {
  const PoolGeometry& g = p_.g;
  if (g.channels >= lanes_) whole_ = group(lanes_);
  if (g.channels % lanes_ != 0) rest_ = group(g.channels % lanes_);
  for (const int32_t tap : p_.first_taps(0))
    first_taps_.push_back(tap * static_cast<int32_t>(g.dilations[2] * layout_.place));
  for (WindowRow& row : rows_)
    for (int64_t& cells : row.reached) cells = slot(cells) * layout_.maxima_row;
  if (p_.channel_last) return;
  const auto exchange = [&](int64_t a, int64_t b) {
    return std::make_unique<const TransposeKernel>(
        target.isa, TransposeShape{.bytes = 4, .a = a, .b = b, .src_row = b * 4, .dst_row = a * 4});
  };
  cells_in_ = exchange(lanes_, g.src[2]);
  windows_in_ = exchange(lanes_, g.dst[2]);
  cells_out_ = exchange(g.src[2], lanes_);
}

/// Channel-last a row of a call is a cell, channel-first a channel.
FarMaximumPool::Group FarMaximumPool::group(int64_t channels) {
  const auto walk = [&](int64_t width) {
    return p_.channel_last
               ? RowWalk{.length = channels, .along = Along::x, .scratch_row_bytes = layout_.place, .ahead = kAhead}
               : RowWalk{.length = width, .along = Along::c, .scratch_row_bytes = width * 4};
  };
  return {channels, stages_.source(walk(p_.g.src[2])), stages_.gradients(walk(p_.g.dst[2])),
          stages_.back(1, walk(p_.g.src[2]), false)};
}

Status FarMaximumPool::operator()(const RunArgs& args) const {
  const int64_t groups = (p_.g.channels - 1) / lanes_ + 1;
  const auto part = [&](int64_t begin, int64_t end, int number) {
    // Beside the source nothing wins; lanes without a channel compute with what is there; gradients start as zeros.
    std::byte* scratch = scratch_.share(args.scratch, number);
    fill_words(scratch, layout_.maxima, -std::numeric_limits<float>::infinity());
    fill_words(scratch + layout_.maxima, layout_.bytes - layout_.maxima, 0.0f);
    for (int64_t i = begin; i < end; ++i) make_channels(args, i / groups, i % groups * lanes_, scratch);
  };
  const int64_t steps = p_.tap_rows() + p_.g.kernel[2];
  parallel_for(p_.g.batch * groups, elements(p_.g.src) * lanes_ * steps, part, threads_);
  return {};
}

/// All cells of channel `c` and of those behind, as many as a vector has lanes.
void FarMaximumPool::make_channels(const RunArgs& args, int64_t n, int64_t c, std::byte* scratch) const {
  const PoolGeometry& g = p_.g;
  const Group& of = c + lanes_ <= g.channels ? whole_ : rest_;
  const auto at = [&](int64_t row, int64_t height) { return Spot{n, c, row / height, row % height, 0}; };
  int64_t read = 0, finished = 0;
  for (size_t i = 0; i < rows_.size(); ++i) {
    for (; read < rows_[i].read_end; ++read) search_row(args, of, at(read, g.src[1]), scratch);
    add_windows(args, of, at(static_cast<int64_t>(i), g.dst[1]), scratch);
    for (; finished < rows_[i].finished_end; ++finished) finish_row(args, of, at(finished, g.src[1]), scratch);
  }
}

/// Reads a row of cells, and finds along it the greatest one for each column of windows.
void FarMaximumPool::search_row(const RunArgs& args, const Group& of, const Spot& at, std::byte* scratch) const {
  const int64_t kept = slot(at.z * p_.g.src[1] + at.y), before = p_.g.pads_begin[2] * layout_.place;
  std::byte *cells = scratch + before, *transposed = scratch + layout_.transposed;
  stages_.run_source(of.source, args, at, p_.channel_last ? p_.g.src[2] : of.channels,
                     p_.channel_last ? cells : transposed);
  if (!p_.channel_last) (*cells_in_)(transposed, cells);
  maxima_({.cells = scratch,
           .maxima = scratch + layout_.maxima + kept * layout_.maxima_row,
           .names = scratch + layout_.names + kept * layout_.maxima_row,
           .first = first_taps_.data(),
           .windows = p_.g.dst[2],
           .first_window_name = kept * layout_.gradient_row - before});
}

/// Adds the gradients of a row of windows to those of its cells.
void FarMaximumPool::add_windows(const RunArgs& args, const Group& of, const Spot& at, std::byte* scratch) const {
  const WindowRow& row = rows_[static_cast<size_t>(at.z * p_.g.dst[1] + at.y)];
  std::byte *windows = scratch + layout_.windows, *transposed = scratch + layout_.transposed;
  stages_.run_gradients(of.windows, args, at, p_.channel_last ? p_.g.dst[2] : of.channels,
                        p_.channel_last ? windows : transposed);
  if (!p_.channel_last) (*windows_in_)(transposed, windows);
  sums_({.maxima = scratch + layout_.maxima,
         .names_at = layout_.names - layout_.maxima,
         .rows = row.reached.data(),
         .row_count = std::ssize(row.reached),
         .windows = windows,
         .window_count = p_.g.dst[2],
         .gradients = scratch + layout_.gradients});
}

/// Stores a row of cells; its place is for another one then.
void FarMaximumPool::finish_row(const RunArgs& args, const Group& of, const Spot& at, std::byte* scratch) const {
  std::byte* cells = scratch + layout_.gradients + slot(at.z * p_.g.src[1] + at.y) * layout_.gradient_row;
  std::byte* transposed = scratch + layout_.transposed;
  if (!p_.channel_last) (*cells_out_)(cells, transposed);
  const std::array<const std::byte*, 1> stored = {p_.channel_last ? cells : transposed};
  stages_.run_back(of.back.plain, args, stored, at, p_.channel_last ? p_.g.src[2] : of.channels);
  fill_words(cells, layout_.gradient_row, 0.0f);
}

}  // namespace partita::jit
