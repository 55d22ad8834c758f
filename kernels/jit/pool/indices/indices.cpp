// SPDX-License-Identifier: Apache-2.0
// Maximum pooling with indices, tile by tile: rows of the source are prepared as f32 with margins of the lowest value,
// the search (pool/backward/winner.hpp) gives each window's maximum and the place of its cell relative to the window,
// the back expression stores the maxima, and places become indices.
#include "kernels/jit/pool/indices/indices.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "kernels/jit/code/expand.hpp"
#include "kernels/jit/code/run_of.hpp"
#include "kernels/jit/flat/exceeds_cache.hpp"
#include "kernels/jit/flat/row_kernel.hpp"
#include "kernels/jit/flat/stream_copy.hpp"
#include "kernels/jit/pool/backward/winner.hpp"
#include "kernels/jit/pool/indices/index_store.hpp"
#include "kernels/jit/pool/indices/index_window.hpp"
#include "kernels/jit/pool/view.hpp"
#include "kernels/jit/pool/walk.hpp"
#include "kernels/jit/pool/windows.hpp"
#include "kernels/thread_scratch.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/threads.hpp"

namespace partita::jit {
namespace {

constexpr int64_t kTileFloats = 16384;  ///< of prepared source rows: reading and storing take turns often
constexpr int64_t kLeastChannels = 64;  ///< of an image's tile
constexpr int64_t kMaxTaps = 512;       ///< the search spells them out
constexpr size_t kMaxOperands = 12;

/// The problem without the output for indices: further outputs of the back expression move up.
Expr without_indices(Expr back) {
  for (Instr& in : back.code)
    if (in.op == ExprOp::store && in.imm > 0) --in.imm;
  return back;
}

class IndexPool {
 public:
  IndexPool(const Problem& problem, const Target& target);
  size_t scratch_bytes() const { return scratch_.bytes(); }
  Status operator()(const RunArgs& args) const;

 private:
  using Kernel = std::shared_ptr<const FlatKernel>;
  /// Code for so many channels.
  struct Kernels {
    Kernel load, store, stream;
    std::shared_ptr<const IndexStoreKernel> indices, indices_stream;  ///< null where indices are not neighbours
  };
  struct Tile {
    int64_t n, c, channels, z, y, rows;
  };
  /// Of a thread.
  struct Work {
    float *source, *winners;
    int32_t* table;
    std::byte* staged;  ///< maxima of a tile, on their way to memory; null where they are stored at once
    bool streams_maxima, streams_indices;
  };
  void lay_out();
  void name_taps();
  void name_steps();
  Kernels make(Isa isa, int64_t channels) const;
  std::unique_ptr<const WinnerKernel> make_winner(Isa isa, int64_t channels) const;
  void run(const RunArgs& args, const Work& work, const Tile& t) const;
  void load(const RunArgs& args, const Work& work, const Tile& t) const;
  void fill_empty(const Work& work, const Tile& t) const;
  void store_maxima(const RunArgs& args, const Work& work, const Tile& t) const;
  template <class Index>
  void store_indices(const RunArgs& args, const Work& work, const Tile& t) const;
  const Kernels& kernels_of(const Tile& t) const { return t.channels == block_ ? whole_ : last_; }
  int64_t source_begin(int64_t y) const { return std::max<int64_t>(0, y * g_.strides[1] - g_.pads_begin[1]); }
  int64_t source_end(int64_t y) const {
    return std::min(g_.src[1], y * g_.strides[1] - g_.pads_begin[1] + (g_.kernel[1] - 1) * g_.dilations[1] + 1);
  }

  PoolGeometry g_;
  Expr front_, back_;
  std::vector<int> front_in_, back_in_;
  std::vector<PoolView> in_, out_;  ///< out_[0]: maxima; then what the back expression stores beside them
  PoolView indices_;
  PoolIndex base_;
  float lowest_;
  bool images_;  ///< vectors of channels, else of windows along x
  int64_t lanes_;
  int threads_;
  int64_t block_ = 1, tile_rows_ = 1;
  int64_t cell_floats_ = 1;    ///< of a place in scratch memory
  int64_t row_floats_ = 0;     ///< of a prepared source row
  int64_t tile_sources_ = 1;   ///< source rows of a plane under a tile
  int64_t window_floats_ = 0;  ///< of a row of winners; as many maxima follow
  int64_t winners_at_ = 0, table_at_ = 0, staged_at_ = 0, part_floats_ = 0;
  ThreadScratch scratch_;
  bool any_empty_ = false, may_stream_ = false, stages_ = false, streams_indices_ = false;
  std::vector<std::byte> index_steps_;
  std::vector<int32_t> tap_names_, first_;
  Kernels whole_, last_;
  std::unique_ptr<const WinnerKernel> winner_, last_winner_;
};

IndexPool::IndexPool(const Problem& problem, const Target& target)
    : g_(with_three_axes(pool_geometry(problem, problem.in[0].dims, problem.out[0].dims))),
      front_(front_expression(problem)),
      back_(without_indices(back_expression(problem))),
      front_in_(loaded_operands(front_)),
      back_in_(loaded_operands(back_)),
      base_(pool_index(problem.attrs, g_)),
      lowest_(forward_pool(problem).lowest),
      lanes_(lanes_of(target.isa)),
      threads_(std::max(1, target.threads)) {
  for (const TensorDesc& desc : problem.in) in_.push_back(pool_view(desc, g_.channel_last));
  for (const TensorDesc& desc : problem.out) out_.push_back(pool_view(desc, g_.channel_last));
  indices_ = out_[1];
  out_.erase(out_.begin() + 1);
  images_ = g_.channels > 1 && out_[0].c == out_[0].element_bytes();
  name_taps();
  lay_out();
  const auto rows_on_lines = [&](const PoolView& view) {
    return on_lines({view.offset, view.n, images_ ? view.x : view.c, view.y, view.z,
                     images_ && block_ < g_.channels ? block_ * view.c : 0});
  };
  const bool large = exceeds_cache(problem);
  may_stream_ = large && std::ranges::all_of(out_, rows_on_lines);
  streams_indices_ = large && !any_empty_ && rows_on_lines(indices_);
  // Rows that start anywhere but follow each other are put together in the caches first.
  stages_ = large && !may_stream_ && !images_ && out_.size() == 1 && out_[0].y == g_.dst[2] * out_[0].element_bytes();
  staged_at_ = part_floats_;
  if (stages_) part_floats_ += (tile_rows_ * out_[0].y + 63) / 64 * 16;
  scratch_ = {threads_, part_floats_ * 4};
  name_steps();
  whole_ = make(target.isa, block_);
  winner_ = make_winner(target.isa, block_);
  if (g_.channels % block_ == 0) return;
  last_ = make(target.isa, g_.channels % block_);
  last_winner_ = make_winner(target.isa, g_.channels % block_);
}

/// A tap is known by how far its cell lies behind the window's first place in the source.
void IndexPool::name_taps() {
  for (int64_t a = 0; a < g_.kernel[0]; ++a)
    for (int64_t b = 0; b < g_.kernel[1]; ++b)
      for (int64_t c = 0; c < g_.kernel[2]; ++c)
        tap_names_.push_back(static_cast<int32_t>((a * g_.dilations[0] * g_.src[1] + b * g_.dilations[1]) * g_.src[2] +
                                                  c * g_.dilations[2]));
  for (int64_t x = 0; x < g_.dst[2]; ++x) first_.push_back(static_cast<int32_t>(g_.taps(2, x).begin * g_.dilations[2]));
  first_.insert(first_.end(), static_cast<size_t>(2 * lanes_), 0);
  for (int i = 0; i < 3; ++i)
    for (int64_t o = 0; o < g_.dst[i]; ++o) any_empty_ = any_empty_ || g_.counted(i, o) == 0;
}

/// Indices of neighbours: windows are a stride apart, channels of an image what a channel counts.
void IndexPool::name_steps() {
  const int64_t count = images_ ? block_ : g_.dst[2], step = images_ ? base_.channel : g_.strides[2] * base_.cell;
  const auto each = static_cast<size_t>(indices_.element_bytes());
  index_steps_.resize(static_cast<size_t>(count + 16) * each);
  for (int64_t k = 0; k < count; ++k) {
    const int64_t value = k * step;  // little-endian: narrow numbers are the first bytes of wide ones
    std::memcpy(index_steps_.data() + static_cast<size_t>(k) * each, &value, each);
  }
}

void IndexPool::lay_out() {
  const int64_t windows = images_ ? g_.dst[2] : (g_.dst[2] + lanes_ - 1) / lanes_ * lanes_;
  const int64_t reach = (g_.kernel[2] - 1) * g_.dilations[2] + 1;
  const int64_t places =
      std::max(g_.pads_begin[2] + g_.src[2], (windows + (images_ ? 0 : lanes_)) * g_.strides[2] + reach);
  const int64_t tall = (g_.kernel[1] - 1) * g_.dilations[1] + 1;
  block_ = 1;
  if (images_) {
    const int64_t least = places * (g_.kernel[0] * tall + 1);
    block_ = std::min(g_.channels, std::max(kLeastChannels, kTileFloats / least / kLeastChannels * kLeastChannels));
  }
  cell_floats_ = images_ ? (block_ + lanes_ - 1) / lanes_ * lanes_ : 1;
  row_floats_ = (places * cell_floats_ + 15) / 16 * 16;
  const auto sources = [&](int64_t rows) { return std::min(g_.src[1], (rows - 1) * g_.strides[1] + tall); };
  tile_rows_ = g_.dst[1];
  while (tile_rows_ > 1 && g_.kernel[0] * sources(tile_rows_) * row_floats_ > kTileFloats)
    tile_rows_ = (tile_rows_ + 1) / 2;
  const int64_t planes = g_.batch * ((g_.channels + block_ - 1) / block_) * g_.dst[0];
  while (tile_rows_ > 1 && planes * ((g_.dst[1] + tile_rows_ - 1) / tile_rows_) < threads_)
    tile_rows_ = (tile_rows_ + 1) / 2;
  tile_sources_ = sources(tile_rows_);
  window_floats_ = windows * cell_floats_;
  winners_at_ = (g_.kernel[0] * tile_sources_ + 1) * row_floats_;
  table_at_ = winners_at_ + (tile_rows_ * 2 * window_floats_ + 15) / 16 * 16;
  part_floats_ = table_at_ + (tile_rows_ * (g_.kernel[0] * g_.kernel[1] + 1) + 15) / 16 * 16;
}

std::unique_ptr<const WinnerKernel> IndexPool::make_winner(Isa isa, int64_t channels) const {
  return std::make_unique<const WinnerKernel>(isa, WinnerShape{.channel_last = images_,
                                                               .tap_rows = g_.kernel[0] * g_.kernel[1],
                                                               .kernel = g_.kernel[2],
                                                               .stride = g_.strides[2],
                                                               .dilation = g_.dilations[2],
                                                               .cell_bytes = cell_floats_ * 4,
                                                               .window_bytes = cell_floats_ * 4,
                                                               .vectors = (channels + lanes_ - 1) / lanes_,
                                                               .tap_names = tap_names_,
                                                               .bests_at = window_floats_ * 4});
}

/// Rows are the channels of a place, or places along x.
IndexPool::Kernels IndexPool::make(Isa isa, int64_t channels) const {
  const auto operand = [&](const PoolView& view) {
    return RowOperand{view.dtype, (images_ ? view.c : view.x) != 0, images_ ? view.x : view.y};
  };
  const auto operands = [&](const std::vector<int>& loaded) {
    std::vector<RowOperand> list;
    for (int k : loaded) list.push_back(operand(in_[static_cast<size_t>(k)]));
    return list;
  };
  Kernels made;
  RowKernelWriter load;
  load.store({Dtype::f32, true, (images_ ? cell_floats_ : row_floats_) * 4},
             load.splice(front_, front_in_, operands(front_in_)));
  made.load = load.make(isa, images_ ? channels : g_.src[2], false, Fetching::near());
  RowKernelWriter store;
  std::vector<RowOperand> outputs;
  for (const PoolView& view : out_) outputs.push_back(operand(view));
  const auto best = store.load({Dtype::f32, true, (images_ ? cell_floats_ : 2 * window_floats_) * 4});
  store.splice(back_, back_in_, operands(back_in_), outputs, best);
  made.store = store.make(isa, images_ ? channels : g_.dst[2], false);
  if (may_stream_) made.stream = store.make(isa, images_ ? channels : g_.dst[2], true);
  if ((images_ ? indices_.c : indices_.x) != indices_.element_bytes()) return made;
  IndexStoreShape shape{
      .dtype = indices_.dtype, .length = images_ ? channels : g_.dst[2], .cell = base_.cell, .streaming = false};
  made.indices = std::make_shared<const IndexStoreKernel>(isa, shape);
  shape.streaming = streams_indices_;
  made.indices_stream = streams_indices_ ? std::make_shared<const IndexStoreKernel>(isa, shape) : made.indices;
  return made;
}

Status IndexPool::operator()(const RunArgs& args) const {
  const bool aligned = outputs_aligned(args);
  const int64_t blocks = (g_.channels + block_ - 1) / block_, tiles = (g_.dst[1] + tile_rows_ - 1) / tile_rows_;
  const auto part = [&](int64_t begin, int64_t end, int number) {
    float* scratch = scratch_.share<float>(args.scratch, number);
    const Work work{scratch,
                    scratch + winners_at_,
                    reinterpret_cast<int32_t*>(scratch + table_at_),
                    stages_ ? reinterpret_cast<std::byte*>(scratch + staged_at_) : nullptr,
                    may_stream_ && aligned,
                    streams_indices_ && aligned};
    std::fill_n(scratch, winners_at_, -std::numeric_limits<float>::infinity());
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t y = unit % tiles * tile_rows_, z = unit / tiles % g_.dst[0];
      const int64_t c = unit / tiles / g_.dst[0] % blocks * block_;
      run(args, work,
          {unit / tiles / g_.dst[0] / blocks, c, std::min(block_, g_.channels - c), z, y,
           std::min(tile_rows_, g_.dst[1] - y)});
    }
    if (work.streams_maxima || work.streams_indices || work.staged) end_streaming();
  };
  const int64_t units = g_.batch * blocks * g_.dst[0] * tiles;
  parallel_for(units, block_ * tile_rows_ * g_.dst[2] * elements(g_.kernel), part, threads_);
  return {};
}

void IndexPool::run(const RunArgs& args, const Work& work, const Tile& t) const {
  load(args, work, t);
  const WinnerKernel& winner = t.channels == block_ ? *winner_ : *last_winner_;
  winner({.source = reinterpret_cast<const std::byte*>(work.source),
          .winners = reinterpret_cast<std::byte*>(work.winners),
          .rows = work.table,
          .first = first_.data(),
          .row_count = t.rows,
          .windows = images_ ? g_.dst[2] : (g_.dst[2] + lanes_ - 1) / lanes_,
          .winners_row_bytes = 2 * window_floats_ * 4,
          .planes = 1,
          .source_plane_bytes = 0,
          .winners_plane_bytes = 0});
  if (any_empty_) fill_empty(work, t);
  store_maxima(args, work, t);
  indices_.dtype == Dtype::s64 ? store_indices<int64_t>(args, work, t) : store_indices<int32_t>(args, work, t);
}

void IndexPool::store_maxima(const RunArgs& args, const Work& work, const Tile& t) const {
  const Kernels& kernels = kernels_of(t);
  const FlatKernel& store = *(work.streams_maxima ? kernels.stream : kernels.store);
  std::array<const void*, kMaxOperands + 1> in;
  std::array<void*, kMaxOperands> out;
  const int64_t step = images_ ? 1 : t.rows;
  for (int64_t row = 0; row < t.rows; row += step) {
    const int64_t y = t.y + row;
    size_t k = 0;
    in[k++] = work.winners + (2 * row + 1) * window_floats_;
    for (int operand : back_in_)
      in[k++] = in_[static_cast<size_t>(operand)].at(args.in[static_cast<size_t>(operand)], t.n, t.c, t.z, y, 0);
    for (size_t o = 0; o < out_.size(); ++o)
      out[o] = const_cast<std::byte*>(out_[o].at(args.out[o == 0 ? 0 : o + 1], t.n, t.c, t.z, y, 0));
    void* const at = out[0];
    if (work.staged) out[0] = work.staged;
    store({in.data(), out.data(), nullptr, images_ ? g_.dst[2] : t.rows});
    if (work.staged) stream_copy(static_cast<std::byte*>(at), work.staged, static_cast<size_t>(t.rows * out_[0].y));
  }
}

/// Prepares the source rows under the tile, and says of each row of windows where its rows of taps are.
void IndexPool::load(const RunArgs& args, const Work& work, const Tile& t) const {
  const PoolGeometry::Taps tz = g_.taps(0, t.z);
  const int64_t begin = source_begin(t.y), end = std::max(begin, source_end(t.y + t.rows - 1));
  const FlatKernel& kernel = *kernels_of(t).load;
  std::array<const void*, kMaxOperands> in;
  const int64_t step = images_ ? 1 : end - begin;
  for (int64_t a = tz.begin; a < tz.end; ++a)
    for (int64_t y = begin; y < end; y += step) {
      for (size_t k = 0; k < front_in_.size(); ++k) {
        const auto o = static_cast<size_t>(front_in_[k]);
        in[k] = in_[o].at(args.in[o], t.n, t.c, g_.cell(0, t.z, a), y, 0);
      }
      void* to = work.source + (a * tile_sources_ + y - begin) * row_floats_ + g_.pads_begin[2] * cell_floats_;
      kernel({in.data(), &to, nullptr, images_ ? g_.src[2] : step});
    }
  int32_t* entry = work.table;
  for (int64_t y = t.y; y < t.y + t.rows; ++y) {
    const PoolGeometry::Taps ty = g_.taps(1, y);
    for (int64_t a = 0; a < g_.kernel[0]; ++a)
      for (int64_t b = 0; b < g_.kernel[1]; ++b) {
        const bool inside = a >= tz.begin && a < tz.end && b >= ty.begin && b < ty.end;
        const int64_t row = inside ? a * tile_sources_ + g_.cell(1, y, b) - begin : g_.kernel[0] * tile_sources_;
        *entry++ = static_cast<int32_t>(row * row_floats_ * 4);
      }
    *entry++ = static_cast<int32_t>((tz.begin * g_.dilations[0] * g_.src[1] + ty.begin * g_.dilations[1]) * g_.src[2]);
  }
}

/// Windows without cells.
void IndexPool::fill_empty(const Work& work, const Tile& t) const {
  for (int64_t row = 0; row < t.rows; ++row)
    for (int64_t x = 0; x < g_.dst[2]; ++x)
      if (g_.counted(0, t.z) * g_.counted(1, t.y + row) * g_.counted(2, x) == 0)
        std::fill_n(work.winners + (2 * row + 1) * window_floats_ + x * cell_floats_, cell_floats_, lowest_);
}

template <class Index>
void IndexPool::store_indices(const RunArgs& args, const Work& work, const Tile& t) const {
  const auto each = static_cast<int64_t>(sizeof(Index));
  const int64_t along_c = indices_.c / each, along_x = indices_.x / each, first = base_.first(t.n, t.c);
  for (int64_t row = 0; row < t.rows; ++row) {
    const int64_t y = t.y + row;
    const auto* winner = reinterpret_cast<const int32_t*>(work.winners + 2 * row * window_floats_);
    auto* to = reinterpret_cast<Index*>(const_cast<std::byte*>(indices_.at(args.out[1], t.n, t.c, t.z, y, 0)));
    const int64_t corner = (g_.cell(0, t.z, 0) * g_.src[1] + g_.cell(1, y, 0)) * g_.src[2] - g_.pads_begin[2];
    const int64_t step = g_.strides[2], cell = base_.cell;
    if (const auto& store = work.streams_indices ? kernels_of(t).indices_stream : kernels_of(t).indices;
        store && !any_empty_) {
      (*store)({.from = reinterpret_cast<const std::byte*>(winner),
                .to = reinterpret_cast<std::byte*>(to),
                .steps = index_steps_.data(),
                .first = corner * cell + first,
                .first_step = step * cell,
                .rows = images_ ? g_.dst[2] : 1,
                .from_bytes = cell_floats_ * 4,
                .to_bytes = indices_.x});
      continue;
    }
    if (images_)
      for (int64_t x = 0; x < g_.dst[2]; ++x)
        for (int64_t c = 0; c < t.channels; ++c)
          to[x * along_x + c * along_c] =
              static_cast<Index>((winner[x * cell_floats_ + c] + corner + x * step) * cell + first + c * base_.channel);
    else if (along_x == 1)
      for (int64_t x = 0; x < g_.dst[2]; ++x)
        to[x] = static_cast<Index>((winner[x] + corner + x * step) * cell + first);
    else
      for (int64_t x = 0; x < g_.dst[2]; ++x)
        to[x * along_x] = static_cast<Index>((winner[x] + corner + x * step) * cell + first);
    if (!any_empty_) continue;
    for (int64_t x = 0; x < g_.dst[2]; ++x)
      if (g_.counted(0, t.z) * g_.counted(1, y) * g_.counted(2, x) == 0)
        for (int64_t c = 0; c < t.channels; ++c) to[x * along_x + c * along_c] = -1;
  }
}

}  // namespace

const char* refuse_pool_indices(const Problem& p) {
  for (const auto* side : {&p.in, &p.out})
    for (const TensorDesc& desc : *side)
      if (elements(desc.dims) == 0) return "a tensor has no elements";
  const PoolGeometry g = with_three_axes(pool_geometry(p, p.in[0].dims, p.out[0].dims));
  if (elements(g.kernel) > kMaxTaps) return "the window has too many taps";
  const int64_t places = g.pads_begin[2] + g.src[2] + (g.dst[2] + 32) * g.strides[2] + g.kernel[2] * g.dilations[2];
  // A row of taps is named by the bytes before it: rows of a window, and one of padding, of vectors for each place.
  const int64_t rows = g.kernel[0] * (g.kernel[1] - 1) * g.dilations[1] + 2 * g.kernel[0];
  if (elements(g.src) > INT32_MAX / 4 || places * g.channels > INT32_MAX / 16 || places * rows > INT32_MAX / 64)
    return "a plane has too many cells";
  const Expr front = front_expression(p), back = back_expression(p);
  const bool images = g.channels > 1 && pool_view(p.out[0], g.channel_last).c == element_bytes(p.out[0].dtype);
  const auto refuse = [&](const TensorDesc& desc, bool pooled, bool output) -> const char* {
    const PoolView view = pool_view(desc, g.channel_last);
    if (output ? !Emitter::stores(view.dtype) : !Emitter::loads(view.dtype))
      return "an operand's type has no generated conversion";
    const auto walk = images ? row_walk(view, g.channels, view.c) : row_walk(view, (pooled ? g.dst : g.src)[2], view.x);
    return !walk || (output && *walk == RowWalk::same) ? "an operand's elements are not next to each other" : nullptr;
  };
  for (const Expr* e : {&front, &back}) {
    if (const char* reason = refuse_placeless(*e, p)) return reason;
    const std::vector<int> loaded = loaded_operands(*e);
    if (loaded.size() > kMaxOperands) return "too many operands";
    for (int k : loaded)
      if (const char* reason = refuse(p.in[static_cast<size_t>(k)], e == &back, false)) return reason;
  }
  if (p.out.size() > kMaxOperands) return "too many operands";
  for (size_t k = 0; k < p.out.size(); ++k)
    if (k != 1)
      if (const char* reason = refuse(p.out[k], true, true)) return reason;
  return nullptr;
}

Result<Run> make_pool_indices(const Problem& problem, const Target& target) {
  if (IndexWindowPool::fits(problem, target)) return run_of<IndexWindowPool>(problem, target);
  return run_of<IndexPool>(problem, target);
}

}  // namespace partita::jit
