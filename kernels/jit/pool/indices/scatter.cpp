// SPDX-License-Identifier: Apache-2.0
// Gradients go where their indices say, tile by tile: a tile of zeros in the caches (planes, or an image with as many
// channels as fit where channels are neighbours in memory) takes the gradients of its windows, prepared by the front
// expression, and the back expression stores it. So each element of the result is written once. Indices are checked
// before they are used.
#include "kernels/jit/pool/indices/scatter.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>

#include "kernels/jit/code/expand.hpp"
#include "kernels/jit/code/run_of.hpp"
#include "kernels/jit/flat/exceeds_cache.hpp"
#include "kernels/jit/pool/indices/box.hpp"
#include "kernels/jit/pool/walk.hpp"
#include "kernels/jit/pool/windows.hpp"
#include "kernels/thread_scratch.hpp"
#include "src/base/shape.hpp"
#include "src/base/threads.hpp"

namespace partita::jit {
namespace {

constexpr int64_t kPlaneFloats = 8192;    ///< of a tile of planes: the nearest caches
constexpr int64_t kImageFloats = 196608;  ///< of a tile of an image: three eighths of the usual second-level cache
constexpr int64_t kLeastChannels = 16;    ///< of a tile of an image: whole cache lines
constexpr size_t kMaxOperands = 12;
constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

__extension__ using Wide = unsigned __int128;

/// Division of numbers below 2^32 by a constant.
struct Divisor {
  uint64_t by, inverse;
  explicit Divisor(int64_t divisor) : by(static_cast<uint64_t>(divisor)), inverse(UINT64_MAX / by + 1) {}
  uint64_t operator()(uint64_t n) const {
    return by == 1 ? n : static_cast<uint64_t>(static_cast<Wide>(n) * inverse >> 64);
  }
};

class ScatterPool {
 public:
  ScatterPool(const Problem& problem, const Target& target);
  size_t scratch_bytes() const { return scratch_.bytes(); }
  Status operator()(const RunArgs& args) const;

 private:
  /// Code for tiles of so many channels.
  struct Kernels {
    BoxKernel front, back, streaming;
  };
  Kernels make(const Problem& problem, Isa isa, int64_t channels) const;
  void run(const RunArgs& args, float* tile, int64_t n, int64_t c, int64_t channels, bool streaming,
           std::atomic<int64_t>& bad) const;
  template <class Index>
  void scatter(const RunArgs& args, float* tile, const float* gradients, int64_t n, int64_t c, int64_t channels,
               std::atomic<int64_t>& bad) const;
  /// Windows along x, or the channels of a window: gradient i goes to cell (its index - first - i * first_step) / (step
  /// of cells in indices) of the tile, i * step_floats behind the cell's begin. Its number is for errors.
  struct Places {
    int64_t first, first_step;
    float* tile;
    int64_t cell_floats, step_floats;
    const float* gradients;
    int64_t number, number_step;
  };
  template <class Index, bool by_cells>
  void scatter_row(const Index* index, int64_t count, int64_t step, const Places& to, std::atomic<int64_t>& bad) const;
  Status error(const RunArgs& args, int64_t bad) const;

  PoolGeometry given_, g_;  ///< as the user knows it; with three axes
  Attrs attrs_;
  Expr front_, back_;
  std::vector<int> front_in_, back_in_;
  std::vector<PoolView> in_, out_;
  PoolIndex base_;
  Divisor by_cell_;
  bool images_;  ///< tiles are images, with channels innermost
  int threads_;
  int64_t cells_, windows_, block_ = 1, gradients_at_ = 0;
  ThreadScratch scratch_;
  bool may_stream_ = false;
  Kernels whole_, last_;
};

ScatterPool::ScatterPool(const Problem& problem, const Target& target)
    : given_(pool_geometry(problem, problem.out[0].dims, problem.in[0].dims)),
      g_(with_three_axes(given_)),
      attrs_(problem.attrs),
      front_(front_expression(problem)),
      back_(back_expression(problem)),
      front_in_(loaded_operands(front_)),
      back_in_(loaded_operands(back_)),
      base_(pool_index(problem.attrs, g_)),
      by_cell_(base_.cell),
      threads_(std::max(1, target.threads)),
      cells_(elements(g_.src)),
      windows_(elements(g_.dst)) {
  for (const TensorDesc& desc : problem.in) in_.push_back(pool_view(desc, g_.channel_last));
  for (const TensorDesc& desc : problem.out) out_.push_back(pool_view(desc, g_.channel_last));
  images_ = g_.channels > 1 && out_[0].c == out_[0].element_bytes();
  block_ =
      std::min(g_.channels, images_ ? std::max(kLeastChannels, kImageFloats / cells_ / kLeastChannels * kLeastChannels)
                                    : std::max<int64_t>(1, kPlaneFloats / cells_));
  const int64_t least = images_ ? kLeastChannels : 1;
  while (block_ > least && g_.batch * ((g_.channels + block_ - 1) / block_) < threads_)
    block_ = std::max(least, (block_ / 2 + least - 1) / least * least);
  gradients_at_ = (block_ * cells_ + 15) / 16 * 16;
  scratch_ = {threads_, (gradients_at_ + block_ * windows_) * 4};
  may_stream_ = exceeds_cache(problem);
  for (const PoolView& view : out_)
    may_stream_ = may_stream_ && on_lines({view.offset, view.n, images_ ? view.x : view.c, view.y, view.z,
                                           images_ && block_ < g_.channels ? block_ * view.c : 0});
  whole_ = make(problem, target.isa, block_);
  if (g_.channels % block_ > 0) last_ = make(problem, target.isa, g_.channels % block_);
}

ScatterPool::Kernels ScatterPool::make(const Problem&, Isa isa, int64_t channels) const {
  const auto box = [&](const Dims& extents) {
    const BoxAxis c{BoxAxis::c, channels}, x{BoxAxis::x, extents[2]}, y{BoxAxis::y, extents[1]},
        z{BoxAxis::z, extents[0]};
    return images_ ? Box{{c, x, y, z}, 0} : Box{{x, y, z, c}, 0};
  };
  Kernels made;
  made.front = BoxKernel::loading(isa, box(g_.dst), front_, front_in_, in_);
  made.back = BoxKernel::storing(isa, box(g_.src), back_, back_in_, in_, out_, false);
  if (may_stream_) made.streaming = BoxKernel::storing(isa, box(g_.src), back_, back_in_, in_, out_, true);
  return made;
}

Status ScatterPool::operator()(const RunArgs& args) const {
  const bool streaming = may_stream_ && outputs_aligned(args);
  const int64_t blocks = (g_.channels + block_ - 1) / block_;
  std::atomic<int64_t> bad = kNone;
  const auto part = [&](int64_t begin, int64_t end, int number) {
    float* tile = scratch_.share<float>(args.scratch, number);
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t c = unit % blocks * block_;
      run(args, tile, unit / blocks, c, std::min(block_, g_.channels - c), streaming, bad);
    }
    if (streaming) end_streaming();
  };
  parallel_for(g_.batch * blocks, block_ * (cells_ + 2 * windows_), part, threads_);
  return bad == kNone ? Status{} : error(args, bad);
}

void ScatterPool::run(const RunArgs& args, float* tile, int64_t n, int64_t c, int64_t channels, bool streaming,
                      std::atomic<int64_t>& bad) const {
  float* gradients = tile + gradients_at_;
  const Kernels& kernels = channels == block_ ? whole_ : last_;
  std::array<const void*, kMaxOperands> in;
  std::array<void*, kMaxOperands> out;
  const auto addresses = [&](const std::vector<int>& loaded) {
    size_t count = 0;
    for (int k : loaded) {
      const auto o = static_cast<size_t>(k);
      in[count++] = in_[o].at(args.in[o], n, c, 0, 0, 0);
    }
  };
  std::fill_n(tile, cells_ * channels, 0.0f);
  addresses(front_in_);
  kernels.front.run(gradients, in.data(), nullptr);
  in_[1].dtype == Dtype::s64 ? scatter<int64_t>(args, tile, gradients, n, c, channels, bad)
                             : scatter<int32_t>(args, tile, gradients, n, c, channels, bad);
  addresses(back_in_);
  for (size_t k = 0; k < out_.size(); ++k) out[k] = const_cast<std::byte*>(out_[k].at(args.out[k], n, c, 0, 0, 0));
  (streaming ? kernels.streaming : kernels.back).run(tile, in.data(), out.data());
}

template <class Index, bool by_cells>
void ScatterPool::scatter_row(const Index* index, int64_t count, int64_t step, const Places& to,
                              std::atomic<int64_t>& bad) const {
  const auto cells = static_cast<uint64_t>(cells_);
  for (int64_t i = 0; i < count; ++i) {
    const auto found = static_cast<int64_t>(index[i * step]);
    const auto distance = static_cast<uint64_t>(found - to.first - i * to.first_step);
    uint64_t cell = distance;
    if constexpr (by_cells) {
      cell = distance < cells * by_cell_.by ? by_cell_(distance) : cells;
      if (cell * by_cell_.by != distance) cell = cells;
    }
    if (cell < cells) [[likely]] {
      to.tile[static_cast<int64_t>(cell) * to.cell_floats + i * to.step_floats] += to.gradients[i];
    } else if (found != -1) {
      const int64_t here = to.number + i * to.number_step;
      for (int64_t least = bad; here < least && !bad.compare_exchange_weak(least, here);) {
      }
    }
  }
}

template <class Index>
void ScatterPool::scatter(const RunArgs& args, float* tile, const float* gradients, int64_t n, int64_t c,
                          int64_t channels, std::atomic<int64_t>& bad) const {
  const PoolView& view = in_[1];
  const auto each = static_cast<int64_t>(sizeof(Index));
  const auto row = [&](const Index* index, int64_t count, int64_t step, const Places& places) {
    base_.cell == 1 ? scatter_row<Index, false>(index, count, step, places, bad)
                    : scatter_row<Index, true>(index, count, step, places, bad);
  };
  const int64_t plane = n * g_.channels + c;
  if (images_) {
    Places to{base_.first(n, c), base_.channel, tile, channels, 1, gradients, plane * windows_, windows_};
    for (int64_t z = 0; z < g_.dst[0]; ++z)
      for (int64_t y = 0; y < g_.dst[1]; ++y) {
        const std::byte* index = view.at(args.in[1], n, c, z, y, 0);
        for (int64_t x = 0; x < g_.dst[2]; ++x, index += view.x, to.gradients += channels, ++to.number)
          row(reinterpret_cast<const Index*>(index), channels, view.c / each, to);
      }
    return;
  }
  const auto even = even_distance(view, g_.dst);
  const int64_t length = even ? windows_ : g_.dst[2], step = (even ? *even : view.x) / each;
  for (int64_t k = 0; k < channels; ++k)
    for (int64_t w = 0; w < windows_; w += length)
      row(reinterpret_cast<const Index*>(
              view.at(args.in[1], n, c + k, w / g_.dst[2] / g_.dst[1], w / g_.dst[2] % g_.dst[1], 0)),
          length, step,
          {base_.first(n, c + k), 0, tile + k * cells_, 1, 0, gradients + k * windows_ + w, (plane + k) * windows_ + w,
           1});
}

Status ScatterPool::error(const RunArgs& args, int64_t bad) const {
  const int64_t plane = bad / windows_, window = bad % windows_;
  const int64_t x = window % g_.dst[2], y = window / g_.dst[2] % g_.dst[1], z = window / g_.dst[2] / g_.dst[1];
  const std::byte* at = in_[1].at(args.in[1], plane / g_.channels, plane % g_.channels, z, y, x);
  const int64_t index = in_[1].dtype == Dtype::s64 ? *reinterpret_cast<const int64_t*>(at)
                                                   : int64_t{*reinterpret_cast<const int32_t*>(at)};
  return bad_pool_index(attrs_, given_, plane, window, index);
}

}  // namespace

const char* refuse_pool_scatter(const Problem& p, const Target&) {
  for (const TensorDesc* desc : {&p.in[0], &p.out[0]})
    if (elements(desc->dims) == 0) return "a tensor has no elements";
  const Expr front = front_expression(p), back = back_expression(p);
  for (const Expr* e : {&front, &back}) {
    if (const char* reason = refuse_placeless(*e, p)) return reason;
    for (const Instr& in : e->code) {
      if (in.op == ExprOp::load && !Emitter::loads(p.in[static_cast<size_t>(in.imm)].dtype))
        return "an operand's type has no generated conversion";
    }
    if (loaded_operands(*e).size() > kMaxOperands) return "too many operands";
  }
  if (p.out.size() > kMaxOperands) return "too many operands";
  for (const TensorDesc& desc : p.out)
    if (!Emitter::stores(desc.dtype)) return "a result's type has no generated conversion";
  const PoolGeometry g = pool_geometry(p, p.out[0].dims, p.in[0].dims);
  if (elements(g.src) * g.channels > UINT32_MAX / 2) return "an image has too many elements";
  return nullptr;
}

Result<Run> make_pool_scatter(const Problem& problem, const Target& target) {
  return run_of<ScatterPool>(problem, target);
}

}  // namespace partita::jit
