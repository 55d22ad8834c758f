// SPDX-License-Identifier: Apache-2.0
// Code of averages over whole planes: rdi call, r12 planes behind the group, r13 planes of the group, r14 of the next
// one, r8 and r9 of these what is left, r10 sums of the plane that is read, r11 of the one that is stored, rcx element
// of the plane, rsi bits of moves, rbx byte among them, r15 waiting elements of joined planes, rax and rdx for a
// moment; the stack holds the places of the operands, of the sums, and of joined results. A group of planes is read
// and summed along x in registers; while the next one is, it is summed along y and stored: what is loaded again was
// stored long before, so that no load has to wait for two stores.
#include "kernels/jit/pool/average/plane.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>

#include "kernels/jit/code/expand.hpp"
#include "kernels/jit/code/frame.hpp"
#include "kernels/jit/flat/flat_kernel.hpp"
#include "kernels/jit/pool/channel_groups.hpp"
#include "kernels/jit/pool/walk.hpp"
#include "src/base/dtype.hpp"
#include "src/base/round.hpp"

namespace partita::jit {

using Xbyak::Xmm;
using Xbyak::Ymm;
using Xbyak::Zmm;

namespace {

constexpr int kKept = 2;                     ///< vectors of elements before those of the group
constexpr int64_t kGroupElements = 1 << 10;  ///< between a store of sums and their load

}  // namespace

AveragePlaneKernel::Section AveragePlaneKernel::section(Isa isa, const AveragePlanes& p) {
  const int64_t reach = std::max({int64_t{0}, -p.moves_y.front(), p.moves_y.back()}) * p.width();
  const int64_t margin = aligned(std::max<int64_t>(reach, lanes_of(isa)) * 4);
  return {margin, margin + aligned((p.size() + lanes_of(isa)) * 4) + margin};
}

int64_t AveragePlaneKernel::planes_together(const AveragePlanes& p) {
  return std::max<int64_t>(1, kGroupElements / p.size());
}

int64_t AveragePlaneKernel::sums_bytes(Isa isa, const AveragePlanes& p) {
  return 2 * planes_together(p) * section(isa, p).bytes;
}

AveragePlaneKernel::AveragePlaneKernel(Isa isa, const AveragePlanes& planes, const Problem& problem, Stores stores)
    : Emitter(isa), p_(planes), stores_(stores), together_(wide() ? 4 : 2), section_(section(isa, planes)) {
  const auto repeats = [&](int k) { return p_.in[static_cast<size_t>(k)].x == 0; };
  const bool joins = stores == Stores::joined;
  const int end = value_registers() -
                  (joins ? JoinedStores::registers(*this, p_.out.size()) : HeldFolds::registers(*this, p_.out, 1));
  const int spill_at = aligned(static_cast<int>(slots()) * 8);
  const int front_first = together_ + kKept, front_end = wide() ? front_first + 2 * kLeastRegisters : end;
  const int back_first = wide() ? front_end : together_;
  Body front(*this, expanded_front(p_.front, problem, isa), {front_first, front_end, rsp + spill_at}, repeats);
  const int back_at = spill_at + front.spill_slots() * 64;
  Body back(*this, expanded(p_.back, problem, isa), {back_first, end, rsp + back_at}, repeats);
  if (joins)
    joined_.emplace(static_cast<Emitter&>(*this), types_of(p_.out), end, r15d,
                    rsp + static_cast<int>(8 * joined_slot()));
  folds_.emplace(static_cast<Emitter&>(*this), p_.out, 1, end);
  emit_in_frame(*this, {rbx, r12, r13, r14, r15}, back_at + back.spill_slots() * 64, [&] {
    emit_start();
    folds_->emit_start();
    emit_groups(front, back);
    folds_->emit_end(1, fold_slots());
    if (joins) joined_->emit_finish();
  });
  emit_constants();
  if (joins) joined_->emit_tables();
  entry_ = reinterpret_cast<void (*)(const AveragePlaneCall*)>(reinterpret_cast<uintptr_t>(finish()));
}

void AveragePlaneKernel::emit_start() {
  const auto copy = [&](size_t offset, size_t count, size_t to) {
    mov(rax, ptr[rdi + offset]);
    for (size_t k = 0; k < count; ++k) {
      mov(rdx, ptr[rax + 8 * static_cast<int>(k)]);
      mov(slot(to + k), rdx);
    }
  };
  copy(offsetof(AveragePlaneCall, windows), p_.front_in.size(), front_slot(0));
  copy(offsetof(AveragePlaneCall, cells), cell_operands(), 0);
  mov(r10, ptr[rdi + offsetof(AveragePlaneCall, sums)]);
  mov(slot(read_slot()), r10);
  lea(r11, ptr[r10 + static_cast<int>(planes_together(p_) * section_.bytes)]);
  mov(slot(stored_slot()), r11);
  mov(r12, ptr[rdi + offsetof(AveragePlaneCall, planes)]);
  mov(rsi, ptr[rdi + offsetof(AveragePlaneCall, inside)]);
  if (!joined_) return;
  copy(offsetof(AveragePlaneCall, joined), 3 * p_.out.size(), joined_slot());
  mov(r15, ptr[rdi + offsetof(AveragePlaneCall, pending)]);
  joined_->emit_start();
}

/// What one group stores and the next one reads take turns, so that what is written past the caches drains meanwhile.
/// Where registers are few, the next group is read behind them.
void AveragePlaneKernel::emit_groups(Body& front, Body& back) {
  const auto start = [](Body& body, const BodyHooks& hooks) {
    body.emit_constants();
    body.emit_row_values(hooks);
  };
  const auto start_front = [&] {
    for (int v = -kKept; v < 0; ++v) broadcast_bits(kept(v), 0);
    start(front, front_hooks(0, lanes()));
  };
  const auto start_back = [&] { start(back, back_hooks(0, lanes(), false)); };
  const auto elements = [&](int vectors, int last) { emit_elements(front, vectors, last); };
  const auto cells = [&](int vectors, int last) { emit_cells(back, vectors, last); };
  const auto read = [&] {
    emit_last_sums();
    for (size_t k = 0; k < p_.front_in.size(); ++k) advance(slot(front_slot(k)), front_operand(k).c);
    add(r10, static_cast<uint32_t>(section_.bytes));
  };
  const auto stored = [&] {
    for (size_t k = 0; k < cell_operands(); ++k) advance(slot(k), cell_operand(k).c);
    add(r11, static_cast<uint32_t>(section_.bytes));
    if (joined_) joined_->emit_row_end(p_.size());
  };
  Xbyak::Label group;
  next_group();
  mov(r13, r9);
  emit_planes(r9, start_front, elements, read);
  L(group);
  sub(r12, r13);
  next_group();
  mov(r14, r9);
  mov(r8, r13);
  exchange_sums();
  if (wide()) {
    sub(r8, r9);
    emit_planes(
        r9,
        [&] {
          start_front();
          start_back();
        },
        [&](int vectors, int last) {
          elements(vectors, last);
          cells(vectors, last);
        },
        [&] {
          read();
          stored();
        });
  }
  emit_planes(r8, start_back, cells, stored);
  if (!wide()) emit_planes(r9, start_front, elements, read);
  mov(r13, r14);
  test(r13, r13);
  jnz(group, T_NEAR);
}

/// r9 = planes of the next group, of the r12 that are left.
void AveragePlaneKernel::next_group() {
  mov(r9d, static_cast<uint32_t>(planes_together(p_)));
  cmp(r12, r9);
  cmovb(r9, r12);
}

/// What was read is stored next.
void AveragePlaneKernel::exchange_sums() {
  mov(r11, slot(read_slot()));
  mov(r10, slot(stored_slot()));
  mov(slot(stored_slot()), r11);
  mov(slot(read_slot()), r10);
}

/// group(vectors, elements of the last one) for all elements of each of the next `planes` planes, if any.
template <class Start, class Group, class End>
void AveragePlaneKernel::emit_planes(const Xbyak::Reg64& planes, const Start& start, const Group& group,
                                     const End& end) {
  Xbyak::Label plane, done;
  test(planes, planes);
  jz(done, T_NEAR);
  L(plane);
  start();
  emit_channel_groups(*this, p_.size(), together_, lanes(), group);
  end();
  dec(planes);
  jnz(plane, T_NEAR);
  L(done);
}

BodyHooks AveragePlaneKernel::front_hooks(int vector, int count) {
  BodyHooks hooks;
  hooks.load = [this, vector, count](Xmm dst, int number) {
    const auto k = static_cast<size_t>(std::ranges::find(p_.front_in, number) - p_.front_in.begin());
    const PoolOperand& o = front_operand(k);
    mov(rdx, slot(front_slot(k)));
    if (o.x == 0) return load(dst, o.dtype, Walk::same, rdx, count);
    const int each = element_bytes(o.dtype), at = vector * lanes() * each;
    if (at % kCacheLine == 0)
      fetch_line(rdx + rcx * each + at, stores_ == Stores::plain ? Fetching::near() : Fetching::in_turns());
    load(dst, o.dtype, Walk::next, rdx + rcx * each + at, count);
  };
  hooks.store = [this, vector](Xmm value, const Lane& lane) {
    const Xmm weighted = scratch(0);
    if (lane.flag) vcvtdq2ps(weighted, value);
    const Xmm element_value = lane.flag ? weighted : value;
    const bool weighs = p_.backward && !p_.weights.empty();
    if (weighs) {
      mov(rdx, ptr[rdi + offsetof(AveragePlaneCall, weights)]);
      vmulps(weighted, element_value, ptr[rdx + rcx * 4 + vector * vector_bytes()]);
    }
    vmovaps(vec(vector), weighs ? weighted : element_value);
  };
  return hooks;
}

/// The elements of the group, and the sums of each vector that has its neighbours now.
void AveragePlaneKernel::emit_elements(Body& front, int vectors, int last) {
  for (int v = 0; v < vectors; ++v) front.emit(front_hooks(v, v + 1 == vectors ? last : lanes()));
  mov(rbx, rcx);
  shr(rbx, 3);
  const auto elements = [&](int v) { return v < 0 ? kept(v) : vec(v); };
  for (int v = 0; v < vectors; ++v) emit_sums({elements(v - 2), elements(v - 1), elements(v)}, v - 1, lanes());
  for (int v = -kKept; v < 0; ++v) vmovaps(kept(v), elements(vectors + v));
}

/// Of the plane's last vector.
void AveragePlaneKernel::emit_last_sums() {
  const int64_t first = (p_.size() - 1) / lanes() * lanes();
  mov(ecx, static_cast<uint32_t>(first));
  mov(ebx, static_cast<uint32_t>(first / 8));
  broadcast_bits(vec(0), 0);
  emit_sums({kept(-2), kept(-1), vec(0)}, 0, static_cast<int>(p_.size() - first));
}

/// Along x of a vector, from its elements between those before and behind. Sums behind the plane keep their zeros, and
/// those before it become zeros: none of their elements is inside.
void AveragePlaneKernel::emit_sums(const Neighbours& elements, int vector, int count) {
  const Xmm sum = scratch(0);
  const auto still = std::ranges::find(p_.moves_x, 0);
  still == p_.moves_x.end() ? broadcast_bits(sum, 0) : vmovaps(sum, elements.own);
  for (size_t move = 0; move < p_.moves_x.size(); ++move)
    if (p_.moves_x[move] != 0) add_moved(sum, elements, move, vector);
  store_bytes(sum, 4, sums(r10, 0, vector), count, false);
}

void AveragePlaneKernel::add_moved(const Xmm& sum, const Neighbours& elements, size_t move, int vector) {
  const auto by = static_cast<int>(p_.moves_x[move]);
  const Xmm moved = scratch(1), inside = scratch(2);
  by > 0 ? take_between(moved, elements.own, elements.behind, by)
         : take_between(moved, elements.before, elements.own, lanes() + by);
  const auto bits = rsi + rbx + static_cast<int>(static_cast<int64_t>(move) * inside_bytes(p_) + vector * lanes() / 8);
  if (wide()) {
    kmovw(k1, ptr[bits]);
    return vaddps(sum | k1, sum, moved);
  }
  std::vector<int32_t> own;
  for (int l = 0; l < lanes(); ++l) own.push_back(1 << l);
  vpbroadcastd(inside, ptr[bits]);
  vandps(inside, inside, pattern(own));
  vpcmpeqd(inside, inside, pattern(own));
  vandps(inside, inside, moved);
  vaddps(sum, sum, inside);
}

/// dst = elements `by`, `by` + 1, .. of those of low and high.
void AveragePlaneKernel::take_between(const Xmm& dst, const Xmm& low, const Xmm& high, int by) {
  if (by == 0 || by == lanes()) return vmovaps(dst, by == 0 ? low : high);
  if (wide()) return valignd(Zmm(dst.getIdx()), Zmm(high.getIdx()), Zmm(low.getIdx()), static_cast<uint8_t>(by));
  const int half = lanes() / 2;
  const auto bytes = static_cast<uint8_t>(by % half * 4);
  vperm2f128(Ymm(dst.getIdx()), Ymm(low.getIdx()), Ymm(high.getIdx()), 0x21);  // low's upper half, high's lower
  if (by < half) vpalignr(dst, dst, low, bytes);
  if (by > half) vpalignr(dst, high, dst, bytes);
}

/// `end`: of the plane.
BodyHooks AveragePlaneKernel::back_hooks(int vector, int count, bool end) {
  BodyHooks hooks;
  const auto place = [this, vector](size_t k) {
    const int each = element_bytes(cell_operand(k).dtype);
    mov(rdx, slot(k));
    return rdx + rcx * each + vector * lanes() * each;
  };
  hooks.load = [this, place, vector, count](Xmm dst, int number) {
    const auto k = static_cast<size_t>(std::ranges::find(p_.back_in, number) - p_.back_in.begin());
    const PoolOperand& o = cell_operand(k);
    const auto from = place(k);
    if (o.x == 0) return load(dst, o.dtype, Walk::same, rdx, count);
    if (o.begins_line(vector * lanes() * element_bytes(o.dtype), lanes())) fetch_line(from, Fetching::near());
    load(dst, o.dtype, Walk::next, from, count);
  };
  hooks.skeleton = [this, vector](Xmm dst) { vmovaps(dst, vec(vector)); };
  hooks.store = [this, place, vector, count, end](Xmm value, const Lane& lane) {
    const auto k = static_cast<size_t>(lane.imm);
    if (joined_) return joined_->emit_store(k, value, lane.flag, vector, end, count);
    if (p_.out[k].fold != Fold::none) return folds_->emit_fold(k, 0, value, count, fold_slots());
    store(value, p_.out[k].dtype, lane.flag, place(p_.back_in.size() + k), count,
          stores_ == Stores::streaming && count == lanes());
  };
  return hooks;
}

void AveragePlaneKernel::emit_cells(Body& back, int vectors, int last) {
  for (int v = 0; v < vectors; ++v) {
    const Xmm sum = vec(v);
    bool started = false;
    for (int64_t move : p_.moves_y) {
      const auto from = ptr[sums(r11, move * p_.width(), v)];
      started ? vaddps(sum, sum, from) : vmovups(sum, from);
      started = true;
    }
    emit_weights(sum, v);
  }
  const bool whole = vectors == together_ && last == lanes();
  for (int v = 0; v < vectors; ++v) {
    const bool end = !whole && v + 1 == vectors;
    back.emit(back_hooks(v, end ? last : lanes(), end));
  }
}

void AveragePlaneKernel::emit_weights(const Xmm& sum, int vector) {
  if (!p_.backward && !p_.weights.empty()) {
    mov(rdx, ptr[rdi + offsetof(AveragePlaneCall, weights)]);
    vmulps(sum, sum, ptr[rdx + rcx * 4 + vector * vector_bytes()]);
  } else if (p_.weights.empty() && p_.weight != 1) {
    vmulps(sum, sum, pattern(std::vector<int32_t>(static_cast<size_t>(lanes()), std::bit_cast<int32_t>(p_.weight))));
  }
}

}  // namespace partita::jit
