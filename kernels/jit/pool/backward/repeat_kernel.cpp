// SPDX-License-Identifier: Apache-2.0
// Code of repeated gradients: rdi call, r8 units left, r9 the unit's first cell, r10 its gradients and r11 those of the
// next unit, rax and rdx for a moment; the stack holds the operands' places and both units' gradients. Vectors: two
// gradients, what is picked and what for, the numbers that are held, then what chooses. Between cells the next
// gradients are read, so that memory always has both to do.
#include "kernels/jit/pool/backward/repeat_kernel.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <numeric>

#include "kernels/jit/code/most_used.hpp"
#include "src/base/dtype.hpp"
#include "src/base/round.hpp"

namespace partita::jit {
namespace {

using Xbyak::Xmm;
using Xbyak::Zmm;

constexpr int kGradient = 0, kPicked = 2;  ///< vector registers
constexpr int kChosenBy = 3;
constexpr size_t kMostHeld = 8;

}  // namespace

int64_t RepeatKernel::together(Dtype dtype) { return int64_t{kCacheLine} * 8 / bits_of(dtype); }

bool RepeatKernel::fits(const std::vector<int32_t>& cells, Dtype dtype) {
  const auto count = static_cast<int64_t>(cells.size());
  for (int64_t begin = 0; begin < count; begin += together(dtype))
    if (!picked(cells, begin, together(dtype))) return false;
  return true;
}

/// `count` cells from `begin` on, of which the last ones may not exist; nothing where they lie too far from each other.
std::optional<RepeatKernel::Picked> RepeatKernel::picked(const std::vector<int32_t>& cells, int64_t begin,
                                                         int64_t count) {
  const auto end = std::min(begin + count, static_cast<int64_t>(cells.size()));
  Picked p{.first = *std::min_element(cells.begin() + begin, cells.begin() + end)};
  for (int64_t i = begin; i < end; ++i)
    if (const int32_t window = cells[static_cast<size_t>(i)]; window >= p.first + count)
      p.second = p.second < 0 ? window : std::min<int64_t>(p.second, window);
  for (int64_t i = begin; i < begin + count; ++i) {
    const int64_t window = cells[static_cast<size_t>(std::min(i, end - 1))];
    const bool later = window >= p.first + count;
    if (later && window >= p.second + count) return {};
    p.numbers.push_back(static_cast<int32_t>(later ? count + window - p.second : window - p.first));
  }
  return p;
}

RepeatKernel::RepeatKernel(const PoolPlan& plan, const Problem& problem, const RepeatUnit& unit)
    : PoolCode(Isa::avx512, plan),
      unit_(unit),
      bytes_(element_bytes(plan.out[0].dtype)),
      together_(together(plan.out[0].dtype)),
      choice_(choices_of(plan, problem).value()[0]) {
  for (int64_t begin = 0; begin < std::ssize(unit_.cells); begin += together_)
    picks_.push_back(picked(unit_.cells, begin, together_).value());
  std::vector<std::vector<int32_t>> reads;
  for (const Picked& p : picks_) reads.push_back(p.numbers);
  held_ = most_used(reads, kMostHeld);
  if (unit_.streaming) fetch_by(Fetching::in_turns());
  for (int k : p_.front_in) add_stream(unit_.windows * element_bytes(p_.in[static_cast<size_t>(k)].dtype));
  for (size_t k = 0; k <= p_.back_in.size(); ++k) add_stream(std::ssize(unit_.cells) * bytes_);
  keep_vectors(static_cast<int>(2 * kept_vectors()));
  entry_ = reinterpret_cast<void (*)(const RepeatCall*)>(reinterpret_cast<uintptr_t>(
      emit_all(problem, kHeld + static_cast<int>(held_.size()) + (choice_.empty() ? 0 : kChosenBy),
               [this](Body& front, Body&) { emit_units(front); })));
}

void RepeatKernel::emit_units(Body& front) {
  const size_t result = result_stream();
  for (size_t k = 0; k < held_.size(); ++k) vmovups(Zmm(kHeld + static_cast<int>(k)), address_of(held_[k]));
  if (!choice_.empty()) {
    broadcast_bits(chosen_by(1), bytes_ == 2 ? -1 : 0);
    if (bytes_ == 2) vmovdqu16(chosen_by(2), words(counted_infinity()));
  }
  mov(r8, ptr[rdi + offsetof(RepeatCall, steps)]);
  mov(r9, slot(result));
  lea(r10, ptr[kept_vector(0)]);
  lea(r11, ptr[kept_vector(static_cast<int>(kept_vectors()))]);
  for (int64_t k = 0; k < gradient_vectors(); ++k) emit_gradients(front, r10, k);
  Xbyak::Label unit, last;
  align(16);
  L(unit);
  cmp(r8, 1);
  je(last, T_NEAR);  // which reads its own gradients once more
  advance_streams(0, result);
  L(last);
  const int64_t cells = std::ssize(picks_);
  for (int64_t v = 0, read = 0; v < cells; ++v) {
    for (; read < gradient_vectors() * (v + 1) / cells; ++read) emit_gradients(front, r11, read);
    emit_cells(v);
  }
  add(r9, static_cast<int>(std::ssize(unit_.cells) * bytes_));
  advance_streams(result + 1, result + 1 + p_.back_in.size());
  xchg(r10, r11);
  dec(r8);
  jnz(unit, T_NEAR);
}

/// Those that make vector `number` of the unit's.
void RepeatKernel::emit_gradients(Body& front, const Xbyak::Reg64& to, int64_t number) {
  const Dtype dtype = p_.out[0].dtype;
  const int64_t begin = number * together_;
  const Xbyak::Address kept = ptr[to + static_cast<int>(number * kCacheLine)];
  const Xmm first = vec(kGradient), second = vec(kGradient + 1), both = scratch(0);
  load_gradient(front, first, begin);
  if (bytes_ == 4) return vmovaps(kept, first);
  if (begin + lanes() >= unit_.windows) {
    to_halves(both, first, dtype, false);
  } else {
    load_gradient(front, second, begin + lanes());
    compute({.op = LaneOp::pack, .imm = static_cast<int32_t>(dtype)}, both, first, second, first);
  }
  vmovaps(kept, both);
}

void RepeatKernel::load_gradient(Body& front, const Xmm& gradient, int64_t begin) {
  const auto count = static_cast<int>(std::min<int64_t>(unit_.windows - begin, lanes()));
  emit_gradient(front, gradient, [&](Xmm dst, const PoolOperand& o, size_t k) {
    mov(rdx, slot(k));
    const auto behind = static_cast<int>(begin * element_bytes(o.dtype));
    load_elements(dst, o, false, rdx + behind, count, o.begins_line(behind, lanes()));
  });
  if (p_.weight != 1) vmulps(gradient, gradient, Emitter::everywhere(std::bit_cast<int32_t>(p_.weight)));
}

void RepeatKernel::emit_cells(int64_t number) {
  const Zmm cells(kPicked);
  pick(cells, picks_[static_cast<size_t>(number)]);
  const int64_t begin = number * together_;
  const auto count = static_cast<int>(std::min(std::ssize(unit_.cells) - begin, together_));
  const auto behind = static_cast<int>(begin * bytes_);
  const Xbyak::RegExp at = r9 + behind;
  choose(cells, behind, count);
  bytes_ == 2 ? store_words(cells, at, count, unit_.streaming) : store_bytes(cells, 4, at, count, unit_.streaming);
}

/// Zeros where an operand that chooses is not positive.
void RepeatKernel::choose(const Zmm& cells, int behind, int count) {
  const Xbyak::Opmask chosen = k3;
  const Zmm elements = chosen_by(0);
  for (size_t c = 0; c < choice_.size(); ++c) {
    const auto stream = std::ranges::find(p_.back_in, choice_[c]) - p_.back_in.begin();
    mov(rdx, slot(result_stream() + 1 + static_cast<size_t>(stream)));
    const Xbyak::RegExp at = rdx + behind;
    fetch(at);
    if (bytes_ == 2) {
      load_words(elements, at, 0, count);
      find_positive(c == 0 ? chosen : chosen | k3, elements, chosen_by(1), chosen_by(2));
    } else {
      constexpr uint8_t kGreater = 30;  // false for NaN
      load_bytes(elements, 4, at, count);
      vcmpps(c == 0 ? chosen : chosen | k3, elements, chosen_by(1), kGreater);
    }
  }
  if (choice_.empty()) return;
  bytes_ == 2 ? vmovdqu16(cells | chosen | T_z, cells) : vmovaps(cells | chosen | T_z, cells);
}

Xbyak::Address RepeatKernel::address_of(const std::vector<int32_t>& numbers) {
  return bytes_ == 2 ? words(numbers) : pattern(numbers);
}

void RepeatKernel::pick(const Zmm& to, const Picked& from) {
  std::vector<int32_t> in_order(from.numbers.size());
  std::iota(in_order.begin(), in_order.end(), 0);
  if (from.numbers == in_order) return vmovups(to, kept(from.first));
  const auto k = std::ranges::find(held_, from.numbers) - held_.begin();
  const bool held = k < std::ssize(held_);
  const Zmm number(held ? kHeld + static_cast<int>(k) : to.getIdx());
  if (!held) vmovups(number, address_of(from.numbers));
  if (from.second < 0) {
    const Xbyak::Address at = kept(from.first);
    return bytes_ == 2 ? vpermw(to, number, at) : vpermps(to, number, at);
  }
  if (held) vmovaps(to, number);
  const Zmm first(kPicked + 1);
  vmovups(first, kept(from.first));
  const Xbyak::Address second = kept(from.second);
  bytes_ == 2 ? vpermi2w(to, first, second) : vpermi2ps(to, first, second);
}

}  // namespace partita::jit
