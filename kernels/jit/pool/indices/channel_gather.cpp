// SPDX-License-Identifier: Apache-2.0
// The walk over rows of cells.
#include "kernels/jit/pool/indices/channel_gather.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "kernels/jit/code/expand.hpp"
#include "kernels/jit/flat/exceeds_cache.hpp"
#include "kernels/jit/flat/row_kernel.hpp"
#include "kernels/jit/pool/walk.hpp"
#include "kernels/jit/pool/windows.hpp"
#include "src/base/shape.hpp"
#include "src/base/threads.hpp"

namespace partita::jit {
namespace {

PoolGeometry geometry(const Problem& p) { return with_three_axes(pool_geometry(p, p.out[0].dims, p.in[0].dims)); }

}  // namespace

bool ChannelGather::fits(const Problem& p) {
  const PoolGeometry g = geometry(p);
  if (g.channels == 1) return false;
  const auto neighbours = [&](const TensorDesc& desc, bool repeats) {
    const PoolView view = pool_view(desc, g.channel_last);
    return view.c == view.element_bytes() || (repeats && view.c == 0);
  };
  const std::vector<int> front = loaded_operands(front_expression(p)), back = loaded_operands(back_expression(p));
  const auto reads = [&](int k) { return neighbours(p.in[static_cast<size_t>(k)], true); };
  if (front.size() >= kMaxOperands || back.size() > kMaxOperands || p.out.size() > kMaxOperands) return false;
  // Indices of 32 bits are compared as such.
  if (p.in[1].dtype == Dtype::s32 && elements(p.out[0].dims) > INT32_MAX) return false;
  return neighbours(p.in[1], false) && std::ranges::all_of(front, reads) && std::ranges::all_of(back, reads) &&
         std::ranges::all_of(p.out, [&](const TensorDesc& desc) { return neighbours(desc, false); });
}

ChannelGather::ChannelGather(const Problem& problem, const Target& target)
    : g_(geometry(problem)),
      base_(pool_index(problem.attrs, g_)),
      shape_(shape(problem, target.isa)),
      threads_(std::max(1, target.threads)) {
  if (shape_.channels_step) {
    const auto each = static_cast<size_t>(shape_.in[1].element_bytes());
    steps_.resize((static_cast<size_t>(g_.channels) + 16) * each);
    for (int64_t c = 0; c < g_.channels; ++c) {
      const int64_t step = c * base_.channel;  // little-endian: narrow numbers are the first bytes of wide ones
      std::memcpy(steps_.data() + static_cast<size_t>(c) * each, &step, each);
    }
  }
  kernel_ = std::make_unique<const GatherKernel>(target.isa, shape_);
  GatherShape other = shape_;
  other.streaming = exceeds_cache(problem) && std::ranges::all_of(shape_.out, [](const PoolView& o) {
                      return on_lines({o.offset, o.n, o.z, o.y, o.x});
                    });
  if (other.streaming) streaming_ = std::make_unique<const GatherKernel>(target.isa, other);
  other.stores = false;
  counts_ = std::make_unique<const GatherKernel>(target.isa, other);
}

GatherShape ChannelGather::shape(const Problem& problem, Isa isa) const {
  GatherShape made{.channels = g_.channels, .cell_step = base_.cell, .channels_step = base_.channel != 0};
  for (const TensorDesc& desc : problem.in) made.in.push_back(pool_view(desc, g_.channel_last));
  for (const TensorDesc& desc : problem.out) made.out.push_back(pool_view(desc, g_.channel_last));
  const Expr front = front_expression(problem), back = back_expression(problem);
  made.front_in = loaded_operands(front);
  made.back_in = loaded_operands(back);
  made.front = expanded_front(front, problem, isa);
  made.back = expanded(back, problem, isa);
  return made;
}

bool ChannelGather::operator()(const RunArgs& args, const IndexReach& reach, bool stores) const {
  auto* columns = static_cast<int32_t*>(args.scratch);
  for (int64_t x = 0; x < g_.src[2]; ++x) {
    const IndexReach::Windows over = reach.over(2, g_.dst[2], x);
    columns[2 * x] = static_cast<int32_t>(over.first);
    columns[2 * x + 1] = static_cast<int32_t>(over.count);
  }
  const bool streaming = stores && streaming_ && outputs_aligned(args);
  const GatherKernel& kernel = !stores ? *counts_ : streaming ? *streaming_ : *kernel_;
  const int64_t rows = g_.src[0] * g_.src[1];
  std::atomic<int64_t> found = 0;
  const auto part = [&](int64_t begin, int64_t end) {
    int64_t own = 0;
    for (int64_t i = begin; i < end; ++i) own += row(args, kernel, reach, i / rows, i % rows);
    found += own;
    if (streaming) end_streaming();
  };
  parallel_for(g_.batch * rows, g_.src[2] * g_.channels * reach.most(), part, threads_);
  return found == g_.batch * g_.channels * elements(g_.dst);
}

int64_t ChannelGather::row(const RunArgs& args, const GatherKernel& kernel, const IndexReach& reach, int64_t n,
                           int64_t row) const {
  const int64_t z = row / g_.src[1], y = row % g_.src[1];
  const IndexReach::Windows oz = reach.over(0, g_.dst[0], z), oy = reach.over(1, g_.dst[1], y);
  std::array<const std::byte*, kMostWindows*(kMaxOperands + 1)> windows;
  std::array<const void*, kMaxOperands> in;
  std::array<void*, kMaxOperands> out;
  const auto at = [&](const PoolView& view, const void* base, int64_t az, int64_t ay) {
    return view.at(base, n, 0, az, ay, 0);
  };
  size_t k = 0;
  for (int64_t a = oz.first; a < oz.first + oz.count; ++a)
    for (int64_t b = oy.first; b < oy.first + oy.count; ++b) {
      windows[k++] = at(shape_.in[1], args.in[1], a, b);
      for (int operand : shape_.front_in) {
        const auto o = static_cast<size_t>(operand);
        windows[k++] = at(shape_.in[o], args.in[o], a, b);
      }
    }
  for (size_t j = 0; j < shape_.back_in.size(); ++j) {
    const auto o = static_cast<size_t>(shape_.back_in[j]);
    in[j] = at(shape_.in[o], args.in[o], z, y);
  }
  for (size_t o = 0; o < shape_.out.size(); ++o) out[o] = const_cast<std::byte*>(at(shape_.out[o], args.out[o], z, y));
  GatherCall call{.windows = windows.data(),
                  .in = in.data(),
                  .out = out.data(),
                  .columns = static_cast<const int32_t*>(args.scratch),
                  .steps = steps_.data(),
                  .name = base_.first(n, 0) + row * g_.src[2] * base_.cell,
                  .window_rows = oz.count * oy.count,
                  .cells = g_.src[2]};
  kernel(call);
  return call.found;
}

}  // namespace partita::jit
