// SPDX-License-Identifier: Apache-2.0
// Code of blocks. A vector of the result takes its elements from one window of the source by a permutation, from each
// further one by a permutation of two vectors, which leaves what is in its place there.
//   rdi, rsi the block's first source and destination element; rdx, r9 blocks left along both axes; rcx is used by
//   short moves, rax by long distances. Vectors 0 to 3 are made in turns, 4 to 7 are windows, the others hold orders.
#include "kernels/jit/flat/block_kernel.hpp"

#include <algorithm>

namespace partita::jit {
namespace {

using Xbyak::Xmm;
using Xbyak::Ymm;
using Xbyak::Zmm;

constexpr int kTurns = 4, kFirstHeld = 8, kRegisters = 32;
constexpr int kVector = static_cast<int>(kCacheLine), kHalf = kVector / 2;

}  // namespace

BlockKernel::BlockKernel(const BlockPlan& plan, const BlockAxis& outer, const BlockAxis& inner, bool streaming,
                         Fetching fetching)
    : Emitter(Isa::avx512), halves_(plan.element_bytes == 2), streaming_(streaming), fetching_(fetching) {
  hold_orders(plan);
  Xbyak::Label next_outer, next_inner;
  align(16);
  L(next_outer);
  if (inner.extent > 1) {
    mov(r9, inner.extent);
    L(next_inner);
  }
  for (const BlockMove& move : plan.moves) emit(move);
  if (inner.extent > 1) {
    advance(rdi, inner.src);
    advance(rsi, inner.dst);
    dec(r9);
    jnz(next_inner, T_NEAR);
  }
  const int64_t passed = inner.extent > 1 ? inner.extent : 0;
  advance(rdi, outer.src - passed * inner.src);
  advance(rsi, outer.dst - passed * inner.dst);
  dec(rdx);
  jnz(next_outer, T_NEAR);
  vzeroupper();
  ret();
  emit_constants();
  entry_ = reinterpret_cast<void (*)(const void*, void*, int64_t)>(reinterpret_cast<uintptr_t>(finish()));
}

bool BlockKernel::is_wide(const BlockMove& move) {
  return move.bytes == kVector ||
         std::ranges::any_of(move.windows, [](const BlockMove::Window& w) { return w.bytes == kVector; });
}

/// What is done to the windows one after the other.
std::vector<BlockKernel::Step> BlockKernel::steps_of(const BlockMove& move) const {
  const int numbers = (is_wide(move) ? kVector : kHalf) / (halves_ ? 2 : 4);
  std::vector<Step> steps;
  if (move.in_order()) return steps;
  for (size_t w = move.windows.size() > 1 ? 1 : 0; w < move.windows.size(); ++w) {
    Order order(static_cast<size_t>(kVector / (halves_ ? 2 : 4)), 0);
    for (size_t i = 0; i < move.origins.size(); ++i) {
      const auto [window, element] = move.origins[i];
      if (static_cast<size_t>(window) == w)
        order[i] = element + (w > 0 ? numbers : 0);
      else
        order[i] = w > 1 ? static_cast<int32_t>(i) : element;  // where the first two have put it, or the first has it
    }
    steps.push_back({w, halves_ ? pairs_of(order) : order});
  }
  return steps;
}

/// Those that are needed most often.
void BlockKernel::hold_orders(const BlockPlan& plan) {
  std::map<Order, int> uses;
  for (const BlockMove& move : plan.moves)
    for (const Step& step : steps_of(move)) ++uses[step.order];
  std::vector<std::pair<int, const Order*>> by_uses;
  for (const auto& [order, count] : uses) by_uses.emplace_back(-count, &order);
  std::ranges::stable_sort(by_uses, std::less<>(), [](const auto& entry) { return entry.first; });
  for (int number = kFirstHeld; number < kRegisters; ++number) {
    const auto place = static_cast<size_t>(number - kFirstHeld);
    if (place >= by_uses.size()) return;
    held_[*by_uses[place].second] = number;
    vmovdqu32(Zmm(number), pattern(*by_uses[place].second));
  }
}

/// In its register, or brought into the last one of the windows.
Zmm BlockKernel::order(const Order& order) {
  const auto held = held_.find(order);
  if (held != held_.end()) return Zmm(held->second);
  const Zmm loaded(kFirstHeld - 1);
  vmovdqu32(loaded, pattern(order));
  return loaded;
}

void BlockKernel::load(const Zmm& to, const BlockMove::Window& window) {
  const auto from = ptr[rdi + static_cast<int>(window.src)];
  const int number = to.getIdx();
  switch (window.bytes) {
    case 64: return vmovdqu32(to, from);
    case 32: return vmovups(Ymm(number), from);
    case 16: return vmovups(Xmm(number), from);
    case 8: return vmovq(Xmm(number), from);
    case 4: return vmovd(Xmm(number), from);
    default: movzx(ecx, word[rdi + static_cast<int>(window.src)]); return vmovd(Xmm(number), ecx);
  }
}

/// Of one vector, or of `made` and another one.
template <class Vector>
void BlockKernel::permute(const Vector& made, const Vector& order, const Vector& from, bool both) {
  if (both)
    halves_ ? vpermt2w(made, order, from) : vpermt2d(made, order, from);
  else
    halves_ ? vpermw(made, order, from) : vpermd(made, order, from);
}

/// What later blocks read, line by line.
void BlockKernel::fetch(const BlockMove& move) {
  if (!fetching_) return;
  for (const BlockMove::Window& w : move.windows)
    if (fetched_.insert(w.src / kVector).second) fetch_line(rdi + static_cast<int>(w.src), fetching_);
}

void BlockKernel::emit(const BlockMove& move) {
  fetch(move);
  const Xbyak::RegExp to = rsi + static_cast<int>(move.dst);
  const std::vector<Step> steps = steps_of(move);
  if (steps.empty()) return move_bytes(move.bytes, rdi + static_cast<int>(move.windows[0].src), to, streaming_);
  const Zmm made(turn_), window(kTurns + turn_ % 3);
  turn_ = (turn_ + 1) % kTurns;
  const bool wide = is_wide(move);
  load(made, move.windows[0]);
  for (const auto& [number, numbers] : steps) {
    const Zmm from = number == 0 ? made : window, by = order(numbers);
    if (number > 0) load(from, move.windows[number]);
    wide ? permute(made, by, from, number > 0)
         : permute(Ymm(made.getIdx()), Ymm(by.getIdx()), Ymm(from.getIdx()), number > 0);
  }
  const int number = made.getIdx();
  switch (move.bytes) {
    case 64: return streaming_ ? vmovntps(ptr[to], made) : vmovups(ptr[to], made);
    case 32: return vmovups(ptr[to], Ymm(number));
    case 16: return vmovups(ptr[to], Xmm(number));
    case 8: return vmovq(ptr[to], Xmm(number));
    case 4: return vmovd(ptr[to], Xmm(number));
    default: return vpextrw(ptr[to], Xmm(number), 0);
  }
}

}  // namespace partita::jit
