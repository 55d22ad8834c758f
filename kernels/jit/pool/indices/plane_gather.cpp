// SPDX-License-Identifier: Apache-2.0
// The walk over tiles of planes.
#include "kernels/jit/pool/indices/plane_gather.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <numeric>

#include "kernels/jit/flat/exceeds_cache.hpp"
#include "kernels/jit/pool/walk.hpp"
#include "kernels/jit/pool/windows.hpp"
#include "src/base/shape.hpp"
#include "src/base/threads.hpp"

namespace partita::jit {
namespace {

constexpr int64_t kTileCells = 1024;  ///< they stay in the nearest cache with what they are made from
constexpr int64_t kMostWindows = 7;   ///< over a cell along y or x
constexpr int64_t kMostPlanes = 4;    ///< the same along z
constexpr int64_t kLeastCells = 16;   ///< of a row, so that vectors are worth their work
constexpr int64_t kMostBand = std::max(kCacheLine, kTileCells / kLeastCells);  ///< rows of a tile
constexpr int64_t kMostNames = 1 << 30;
constexpr int32_t kNone = -1;                                     ///< a window's name that no cell has
constexpr int32_t kNoCell = std::numeric_limits<int32_t>::min();  ///< what makes any row's name one no window has

PoolGeometry geometry(const Problem& p) { return with_three_axes(pool_geometry(p, p.out[0].dims, p.in[0].dims)); }

}  // namespace

bool PlaneGather::fits(const Problem& p) {
  const PoolGeometry g = geometry(p);
  const PoolIndex base = pool_index(p.attrs, g);
  // Rows of windows over a band of rows of cells are named by the bytes before them.
  const int64_t slots = std::min(g.dst[1], kMostBand + kMostWindows) * std::min(g.dst[0], kMostPlanes);
  if (g.src[2] < kLeastCells || g.dst[2] * slots > INT32_MAX / 64 || elements(g.src) * base.cell > kMostNames)
    return false;
  // Names are differences of indices of their own type.
  if (p.in[1].dtype == Dtype::s32 && elements(p.out[0].dims) > kMostNames) return false;
  const std::vector<int> front = loaded_operands(front_expression(p)), back = loaded_operands(back_expression(p));
  if (front.size() > kMaxOperands || back.size() > kMaxOperands || p.out.size() > kMaxOperands) return false;
  const auto neighbours = [&](const TensorDesc& desc, int64_t extent) {
    const PoolView view = pool_view(desc, g.channel_last);
    return row_walk(view, extent, view.x) == RowWalk::next;
  };
  return neighbours(p.in[1], g.dst[2]) &&
         std::ranges::all_of(front,
                             [&](int k) {
                               const PoolView view = pool_view(p.in[static_cast<size_t>(k)], g.channel_last);
                               return row_walk(view, g.dst[2], view.x).has_value();
                             }) &&
         std::ranges::all_of(p.out, [&](const TensorDesc& desc) { return neighbours(desc, g.src[2]); });
}

PlaneGather::PlaneGather(const Problem& problem, const Target& target)
    : g_(geometry(problem)),
      base_(pool_index(problem.attrs, g_)),
      front_(front_expression(problem)),
      back_(back_expression(problem)),
      front_in_(loaded_operands(front_)),
      back_in_(loaded_operands(back_)),
      threads_(std::max(1, target.threads)),
      lanes_(lanes_of(target.isa)) {
  for (const TensorDesc& desc : problem.in) in_.push_back(pool_view(desc, g_.channel_last));
  for (const TensorDesc& desc : problem.out) out_.push_back(pool_view(desc, g_.channel_last));
  lay_out();
  make_kernels(problem, target.isa);
}

void PlaneGather::lay_out() {
  const int64_t height = g_.src[1], width = g_.src[2], planes = g_.batch * g_.channels * g_.src[0];
  int64_t lines = 1;  // rows that make whole cache lines
  for (const PoolView& view : out_)
    lines = std::lcm(lines, kCacheLine / std::gcd(kCacheLine, width * view.element_bytes()));
  band_rows_ = std::min(height, std::max(lines, kTileCells / width / lines * lines));
  while (band_rows_ > lines && planes * ((height + band_rows_ - 1) / band_rows_) < threads_)
    band_rows_ = (band_rows_ / 2 + lines - 1) / lines * lines;
  vectors_ = (width + lanes_ - 1) / lanes_;
  // Sampled steps are at least what the extents say, so a tile has few more windows than cells.
  slots_ = std::min(g_.dst[1], band_rows_ + kMostWindows) * std::min(g_.dst[0], kMostPlanes);
  gradients_at_ = aligned((g_.dst[2] + 4 * lanes_) * 4);
  pitch_ = 2 * gradients_at_;
  row_entries_ = 2 + std::min(g_.dst[1], kMostWindows) * std::min(g_.dst[0], kMostPlanes);
  orders_at_ = 0;
  bases_at_ = aligned(vectors_ * lanes_ * 4);
  over_at_ = aligned(bases_at_ + vectors_ * 4);
  tables_bytes_ = aligned(over_at_ + height * 8);
  cells_at_ = aligned(slots_ * pitch_);
  rows_at_ = aligned(cells_at_ + (band_rows_ * width + 2 * lanes_) * 4);
  scratch_ = {threads_, rows_at_ + band_rows_ * row_entries_ * 4};
  for (int64_t x = 0; x < vectors_ * lanes_; ++x)
    numbers_.push_back(x < width ? static_cast<int32_t>(x * base_.cell) : kNoCell);
}

/// Rows of all operands behind the gather follow each other.
bool PlaneGather::dense_rows() const {
  const auto dense = [&](const PoolView& v) { return v.y == g_.src[2] * v.element_bytes() || (v.y == 0 && v.x == 0); };
  return std::ranges::all_of(out_, dense) &&
         std::ranges::all_of(back_in_, [&](int k) { return dense(in_[static_cast<size_t>(k)]); });
}

void PlaneGather::make_kernels(const Problem& problem, Isa isa) {
  names_ = std::make_unique<const NamesKernel>(isa, in_[1].dtype, g_.dst[2]);
  RowKernelWriter w;
  std::vector<RowOperand> operands;
  for (int k : front_in_) {
    const PoolView& view = in_[static_cast<size_t>(k)];
    operands.push_back({view.dtype, row_walk(view, g_.dst[2], view.x) == RowWalk::next, view.y});
  }
  w.store({Dtype::f32, true, pitch_}, w.splice(front_, front_in_, operands));
  gradients_ = w.make(isa, g_.dst[2], false, Fetching::near());
  gather_ = std::make_unique<const RowGatherKernel>(
      isa, RowGatherShape{.cells = g_.src[2], .gradients_at = gradients_at_, .row_entries = row_entries_});
  may_stream_ = exceeds_cache(problem);
  const bool joined = dense_rows();
  for (const PoolView& view : out_)
    may_stream_ = may_stream_ && on_lines({view.offset, view.n, view.c, view.z,
                                           joined ? (band_rows_ < g_.src[1] ? band_rows_ * view.y : 0) : view.y});
  const auto box = [&](int64_t rows, bool streaming) {
    const Box cells{{{{BoxAxis::x, g_.src[2]}, {BoxAxis::y, rows}, {BoxAxis::z, 1}, {BoxAxis::c, 1}}}, 0};
    return BoxKernel::storing(isa, cells, back_, back_in_, in_, out_, streaming);
  };
  const int64_t rest = g_.src[1] % band_rows_;
  whole_ = box(band_rows_, false);
  if (rest > 0) last_ = box(rest, false);
  if (!may_stream_) return;
  whole_streaming_ = box(band_rows_, true);
  if (rest > 0) last_streaming_ = box(rest, true);
}

bool PlaneGather::takes(const IndexReach& reach) const {
  return reach.most(0) <= kMostPlanes && reach.most(1) <= kMostWindows && reach.most(2) <= kMostWindows;
}

/// Where vectors of cells find their windows along x, and rows theirs along y. Windows that do not exist are those at
/// the margins.
void PlaneGather::make_tables(const RunArgs& args, const IndexReach& reach) const {
  auto* tables = static_cast<std::byte*>(args.scratch);
  auto* orders = reinterpret_cast<int32_t*>(tables + orders_at_);
  auto* bases = reinterpret_cast<int32_t*>(tables + bases_at_);
  const int64_t most = reach.most(2), step = reach.step[2];
  const auto first = [&](int64_t x) {
    const int64_t distance = x - reach.high[2] + step - 1;
    return std::clamp(distance >= 0 ? distance / step : -((step - 1 - distance) / step), -most, g_.dst[2]);
  };
  for (int64_t v = 0; v < vectors_; ++v) {
    const int64_t base = first(v * lanes_);
    bases[v] = static_cast<int32_t>((base + lanes_) * 4);
    for (int64_t l = 0; l < lanes_; ++l) orders[v * lanes_ + l] = static_cast<int32_t>(first(v * lanes_ + l) - base);
  }
  auto* over = reinterpret_cast<int32_t*>(tables + over_at_);
  for (int64_t y = 0; y < g_.src[1]; ++y) {
    const IndexReach::Windows windows = reach.over(1, g_.dst[1], y);
    *over++ = static_cast<int32_t>(std::min(windows.first, g_.dst[1]));
    *over++ = static_cast<int32_t>(windows.count);
  }
}

bool PlaneGather::operator()(const RunArgs& args, const IndexReach& reach, bool stores) const {
  make_tables(args, reach);
  const bool streaming = stores && may_stream_ && outputs_aligned(args);
  const int64_t bands = (g_.src[1] + band_rows_ - 1) / band_rows_;
  std::atomic<int64_t> found = 0;
  const auto part = [&](int64_t begin, int64_t end, int number) {
    std::byte* scratch = scratch_.share(static_cast<std::byte*>(args.scratch) + tables_bytes_, number);
    const Work work{scratch, scratch + cells_at_, reinterpret_cast<int32_t*>(scratch + rows_at_)};
    for (int64_t slot = 0; slot < slots_; ++slot) {
      fill_words(scratch + slot * pitch_, gradients_at_, kNone);
      fill_words(scratch + slot * pitch_ + gradients_at_, gradients_at_, 0.0f);
    }
    int64_t own = 0;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t y = i % bands * band_rows_, z = i / bands % g_.src[0], plane = i / bands / g_.src[0];
      const Band band{plane / g_.channels, plane % g_.channels, z, y, std::min(band_rows_, g_.src[1] - y)};
      own += run(args, work, band, reach, stores, streaming);
    }
    found += own;
    if (streaming) end_streaming();
  };
  parallel_for(g_.batch * g_.channels * g_.src[0] * bands, band_rows_ * g_.src[2] * reach.most(), part, threads_);
  return found == g_.batch * g_.channels * elements(g_.dst);
}

int64_t PlaneGather::run(const RunArgs& args, const Work& work, const Band& band, const IndexReach& reach, bool stores,
                         bool streaming) const {
  if (prepare(args, work, band, reach) < 0) return 0;
  const auto* tables = static_cast<const std::byte*>(args.scratch);
  RowGatherCall call{.windows = work.windows,
                     .cells = work.cells,
                     .rows = work.rows,
                     .numbers = numbers_.data(),
                     .orders = reinterpret_cast<const int32_t*>(tables + orders_at_),
                     .bases = reinterpret_cast<const int32_t*>(tables + bases_at_),
                     .row_count = band.rows,
                     .along = reach.most(2)};
  (*gather_)(call);
  if (!stores) return call.found;
  std::array<const void*, kMaxOperands> in;
  std::array<void*, kMaxOperands> out;
  for (size_t k = 0; k < back_in_.size(); ++k) {
    const auto o = static_cast<size_t>(back_in_[k]);
    in[k] = in_[o].at(args.in[o], band.n, band.c, band.z, band.y, 0);
  }
  for (size_t o = 0; o < out_.size(); ++o)
    out[o] = const_cast<std::byte*>(out_[o].at(args.out[o], band.n, band.c, band.z, band.y, 0));
  const bool whole = band.rows == band_rows_;
  const BoxKernel& store = streaming ? (whole ? whole_streaming_ : last_streaming_) : (whole ? whole_ : last_);
  store.run(reinterpret_cast<float*>(work.cells), in.data(), out.data());
  return call.found;
}

/// Names and gradients of the rows of windows over the tile, and the table of its rows; -1 where scratch memory does
/// not hold them.
int64_t PlaneGather::prepare(const RunArgs& args, const Work& work, const Band& band, const IndexReach& reach) const {
  const IndexReach::Windows oz = reach.over(0, g_.dst[0], band.z);
  const auto* over =
      reinterpret_cast<const int32_t*>(static_cast<const std::byte*>(args.scratch) + over_at_) + 2 * band.y;
  const int32_t* last = over + 2 * (band.rows - 1);
  const int64_t first = over[0], rows = std::max<int64_t>(0, last[0] + last[1] - first);
  if (oz.count * rows > slots_) return -1;
  std::array<const void*, kMaxOperands> in;
  for (int64_t a = 0; a < oz.count && rows > 0; ++a) {
    const int64_t z = oz.first + a;
    std::byte* to = work.windows + a * rows * pitch_ + lanes_ * 4;
    (*names_)(
        {in_[1].at(args.in[1], band.n, band.c, z, first, 0), to, base_.first(band.n, band.c), rows, in_[1].y, pitch_});
    for (size_t k = 0; k < front_in_.size(); ++k) {
      const auto o = static_cast<size_t>(front_in_[k]);
      in[k] = in_[o].at(args.in[o], band.n, band.c, z, first, 0);
    }
    void* gradients = to + gradients_at_;
    (*gradients_)({in.data(), &gradients, nullptr, rows});
  }
  for (int64_t row = 0; row < band.rows; ++row, over += 2) {
    int32_t* entry = work.rows + row * row_entries_;
    *entry++ = static_cast<int32_t>((band.z * g_.src[1] + band.y + row) * g_.src[2] * base_.cell);
    *entry++ = static_cast<int32_t>(oz.count * over[1]);
    for (int64_t a = 0; a < oz.count; ++a)
      for (int64_t b = 0; b < over[1]; ++b) *entry++ = static_cast<int32_t>((a * rows + over[0] - first + b) * pitch_);
  }
  return rows;
}

}  // namespace partita::jit
