// SPDX-License-Identifier: Apache-2.0
// Global poolings of planes.
#include "kernels/jit/pool/forward/global.hpp"

#include <algorithm>
#include <limits>

#include "src/base/shape.hpp"
#include "src/base/threads.hpp"

namespace partita::jit {
namespace {

constexpr int64_t kBlock = 128;  ///< planes of a block
constexpr int64_t kTiles = 16;   ///< blocks, at least, so that threads share the work evenly
constexpr size_t kMaxOperands = 16;

/// How the cells of a plane follow each other.
std::optional<RowWalk> plane_walk(const PoolView& view, const PoolGeometry& g) {
  const auto distance = even_distance(view, g.src);
  return distance ? row_walk(view, elements(g.src), *distance) : std::nullopt;
}

}  // namespace

bool GlobalPool::fits(const ForwardPool& p) {
  const PoolGeometry& g = p.g;
  if (g.channel_last || !g.covers_all() || elements(g.src) > INT32_MAX) return false;
  const auto input = [&](int k) { return p.in[static_cast<size_t>(k)]; };
  return std::all_of(p.front_in.begin(), p.front_in.end(), [&](int k) { return plane_walk(input(k), g); }) &&
         std::all_of(p.back_in.begin(), p.back_in.end(),
                     [&](int k) { return row_walk(input(k), g.channels, input(k).c); }) &&
         std::all_of(p.out.begin(), p.out.end(),
                     [&](const PoolView& view) { return row_walk(view, g.channels, view.c) == RowWalk::next; });
}

GlobalPool::GlobalPool(const Problem& problem, const Target& target)
    : p_(forward_pool(problem)), threads_(std::max(1, target.threads)) {
  const PoolGeometry& g = p_.g;
  block_ = std::min(kBlock, g.channels);
  while (block_ > 16 && g.batch * ((g.channels + block_ - 1) / block_) < kTiles) block_ = (block_ + 1) / 2;
  folded_ = {threads_, block_ * static_cast<int64_t>(sizeof(float))};
  fold_ = make_fold(target.isa);
  back_ = make_back(target.isa, block_);
  if (g.channels % block_ > 0) last_back_ = make_back(target.isa, g.channels % block_);
}

GlobalPool::Kernel GlobalPool::make_fold(Isa isa) const {
  std::vector<RowOperand> operands;
  for (int k : p_.front_in) {
    const PoolView& view = p_.in[static_cast<size_t>(k)];
    operands.push_back({view.dtype, plane_walk(view, p_.g) == RowWalk::next, view.c});
  }
  RowKernelWriter w;
  w.fold({Dtype::f32, false, 4, p_.g.maximum ? Fold::max : Fold::sum}, w.splice(p_.front, p_.front_in, operands));
  return w.make(isa, elements(p_.g.src), false);
}

GlobalPool::Kernel GlobalPool::make_back(Isa isa, int64_t planes) const {
  RowKernelWriter w;
  auto value = w.load({Dtype::f32, true, 0});
  if (!p_.g.maximum) {
    ExprBuilder b = w.builder();
    const double divisor = p_.g.divisor({0, 0, 0});
    value = p_.divides ? b.div(value, b.constant(static_cast<float>(divisor)))
                       : b.mul(value, b.constant(static_cast<float>(1 / divisor)));
  }
  const auto operand = [&](const PoolView& view) {
    return RowOperand{view.dtype, row_walk(view, p_.g.channels, view.c) == RowWalk::next, 0};
  };
  std::vector<RowOperand> operands, outputs;
  for (int k : p_.back_in) operands.push_back(operand(p_.in[static_cast<size_t>(k)]));
  for (const PoolView& view : p_.out) outputs.push_back(operand(view));
  w.splice(p_.back, p_.back_in, operands, outputs, value);
  return w.make(isa, planes, false);
}

Status GlobalPool::operator()(const RunArgs& args) const {
  const PoolGeometry& g = p_.g;
  const int64_t blocks = (g.channels + block_ - 1) / block_, units = g.batch * blocks;
  const auto part = [&](int64_t begin, int64_t end, int number) {
    float* folded = folded_.share<float>(args.scratch, number);
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t plane = unit % blocks * block_;
      run(args, folded, unit / blocks, plane, std::min(block_, g.channels - plane));
    }
  };
  parallel_for(units, block_ * elements(g.src), part, threads_);
  return {};
}

void GlobalPool::run(const RunArgs& args, float* folded, int64_t n, int64_t plane, int64_t planes) const {
  std::array<const void*, kMaxOperands> in;
  std::array<void*, kMaxOperands> out;
  const auto at = [&](int operand) {
    return p_.in[static_cast<size_t>(operand)].at(args.in[static_cast<size_t>(operand)], n, plane, 0, 0, 0);
  };
  std::fill_n(folded, planes, p_.g.maximum ? -std::numeric_limits<float>::infinity() : 0.0f);
  for (size_t k = 0; k < p_.front_in.size(); ++k) in[k] = at(p_.front_in[k]);
  out[0] = folded;
  (*fold_)({in.data(), out.data(), nullptr, planes});
  in[0] = folded;
  for (size_t k = 0; k < p_.back_in.size(); ++k) in[k + 1] = at(p_.back_in[k]);
  for (size_t k = 0; k < p_.out.size(); ++k)
    out[k] = const_cast<std::byte*>(p_.out[k].at(args.out[k], n, plane, 0, 0, 0));
  (*(planes == block_ ? back_ : last_back_))({in.data(), out.data(), nullptr, 1});
}

}  // namespace partita::jit
