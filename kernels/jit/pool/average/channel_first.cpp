// SPDX-License-Identifier: Apache-2.0
// Code of rows of cells: rdi call, rsi stretch of rows that is summed next, r8 rows left of the one that is stored, r9
// its stretches left, r10 sums of its windows, r11 sums that are made next, r12 planes left, r13 row of windows, r14
// stretches to sum before the first is stored, r15 waiting elements of joined rows, rcx element of the row, rbx rows of
// windows left or the row's byte among the sums (adaptive windows: in their table), rax and rdx for a moment. The stack
// holds the places of the cells' operands in the row and in the plane, those of the windows' in the plane that is
// summed, those of joined results, and how much is left to sum. Summing and storing take turns row by row, so that what
// is written past the caches drains while the next sums are made. Sums are made some stretches ahead, so that no cell
// reads across sums that were stored a moment ago.
#include "kernels/jit/pool/average/channel_first.hpp"

#include <algorithm>
#include <numeric>

#include "kernels/jit/code/expand.hpp"
#include "kernels/jit/code/frame.hpp"
#include "kernels/jit/flat/flat_kernel.hpp"
#include "kernels/jit/pool/channel_groups.hpp"
#include "kernels/jit/pool/walk.hpp"
#include "src/base/dtype.hpp"
#include "src/base/round.hpp"

namespace partita::jit {
namespace {

using Xbyak::Xmm;
using Xbyak::Ymm;
using Xbyak::Zmm;

constexpr int64_t kMostVectors = 8;  ///< of a row that is spelled out
constexpr int64_t kCellsAhead = 1024, kMostRowsAhead = 16;

Ymm perm(const Emitter& e, const Xmm& v) { return e.wide() ? Ymm(Zmm(v.getIdx())) : Ymm(v.getIdx()); }

/// Vectors of cells made in one step: whole periods, and pairs.
int64_t vectors_of_step(const AveragePlan& p) { return std::lcm(p.g.strides[2], int64_t{2}); }

/// Stretches that are summed before their cells are stored.
int64_t rows_ahead(const AveragePlan& p) { return std::clamp<int64_t>(kCellsAhead / p.g.src[2], 1, kMostRowsAhead); }

}  // namespace

int64_t AverageFirstKernel::rows_of_sums(const AveragePlan& p) { return rows_ahead(p) + 1; }

int64_t AverageFirstKernel::sums_bytes(Isa isa, const AveragePlan& p) {
  const int64_t lanes = lanes_of(isa);
  const int64_t cells = p.g.src[2] + (vectors_of_step(p) + 1) * lanes;
  return aligned((std::max(cells / p.g.strides[2], p.g.dst[2]) + 2 * p.reach(2) + 2 * lanes) * 4) + 2 * kCacheLine;
}

bool AverageFirstKernel::packs() const {
  if (!wide() || !p_.stores_alone() || !p_.has_one_narrow_result()) return false;
  const PoolOperand& o = p_.out[0];
  return stores_ != AverageFirstStores::streaming || on_lines({o.offset, o.n, o.c, o.z, o.y});
}

AverageFirstKernel::AverageFirstKernel(Isa isa, const AveragePlan& plan, const Problem& problem,
                                       AverageFirstStores stores)
    : Emitter(isa),
      p_(plan),
      block_(plan.column_blocks(plan.g.src[2])[0]),
      stores_(stores),
      packs_(packs()),
      together_(wide() ? 4 : 2),
      sums_bytes_(sums_bytes(isa, plan)) {
  const auto never = [](int) { return false; };
  const bool joins = stores == AverageFirstStores::joined;
  const int end = value_registers() -
                  (joins ? JoinedStores::registers(*this, p_.out.size()) : HeldFolds::registers(*this, p_.out, 1));
  const int taken = column_weight() + 1;
  const int spill_at = aligned(static_cast<int>(slots()) * 8);
  // Where registers are few, sums and cells share them, and each brings its constants anew.
  const int front_end = wide() ? taken + 2 * kLeastRegisters : end, back_first = wide() ? front_end : taken;
  Body front(*this, expanded_front(p_.front, problem, isa), {taken, front_end, rsp + spill_at}, never);
  const int back_at = spill_at + front.spill_slots() * 64;
  Body back(*this, expanded(p_.back, problem, isa), {back_first, end, rsp + back_at}, never);
  if (joins)
    joined_.emplace(static_cast<Emitter&>(*this), types_of(p_.out), end, r15d,
                    rsp + static_cast<int>(8 * joined_slot()));
  folds_.emplace(static_cast<Emitter&>(*this), p_.out, 1, end);
  emit_in_frame(*this, {rbx, r12, r13, r14, r15}, back_at + back.spill_slots() * 64, [&] {
    emit_start();
    folds_->emit_start();
    if (wide()) start_bodies({&front, &back});
    emit_planes(front, back);
    folds_->emit_end(1, fold_slots());
    if (joins) joined_->emit_finish();
  });
  emit_constants();
  if (joins) joined_->emit_tables();
  if (p_.adaptive) emit_adaptive_table();
  entry_ = reinterpret_cast<void (*)(const AverageFirstCall*)>(reinterpret_cast<uintptr_t>(finish()));
}

void AverageFirstKernel::emit_start() {
  const auto copy = [&](size_t from, size_t to) {
    mov(rdx, ptr[rax + 8 * static_cast<int>(from)]);
    mov(slot(to), rdx);
  };
  mov(rax, ptr[rdi + offsetof(AverageFirstCall, cells)]);
  for (size_t k = 0; k < cell_operands(); ++k) copy(k, plane_slot(k));
  mov(rax, ptr[rdi + offsetof(AverageFirstCall, windows)]);
  for (size_t k = 0; k < p_.front_in.size(); ++k) copy(k, front_slot(k));
  mov(rax, ptr[rdi + offsetof(AverageFirstCall, column_weights)]);
  if (p_.same_along_x) vbroadcastss(vec(column_weight()), dword[rax]);
  mov(r11, ptr[rdi + offsetof(AverageFirstCall, sums)]);
  const int64_t first = block_.window_at * 4;
  add(r11, static_cast<uint32_t>(aligned(first) - first));  // stores across two lines are very slow
  mov(r10, r11);
  mov(r12, ptr[rdi + offsetof(AverageFirstCall, planes)]);
  mov(slot(planes_slot()), r12);
  start_plane();
  if (!joined_) return;
  mov(rax, ptr[rdi + offsetof(AverageFirstCall, joined)]);
  for (size_t k = 0; k < 3 * p_.out.size(); ++k) copy(k, joined_slot() + k);
  mov(r15, ptr[rdi + offsetof(AverageFirstCall, pending)]);
  joined_->emit_start();
}

void AverageFirstKernel::start_bodies(std::initializer_list<Body*> bodies) {
  for (Body* body : bodies) body->emit_constants();
  for (Body* body : bodies) body->emit_row_values({});
}

void AverageFirstKernel::emit_planes(Body& front, Body& back) {
  Xbyak::Label plane, stretch, go, row;
  mov(r14d, static_cast<uint32_t>(rows_ahead(p_)));
  L(plane);
  mov(r9, ptr[rdi + offsetof(AverageFirstCall, stretch_count)]);
  for (size_t k = 0; k < cell_operands(); ++k) {
    mov(rax, slot(plane_slot(k)));
    mov(slot(k), rax);
  }
  L(stretch);
  emit_sums(front);
  test(r14, r14);
  jz(go, T_NEAR);
  dec(r14);
  jmp(stretch, T_NEAR);
  L(go);
  if (!wide()) start_bodies({&back});
  mov(r8, ptr[r10 + count_at()]);
  L(row);
  emit_row(back);
  for (size_t k = 0; k < cell_operands(); ++k) advance(slot(k), cell_operand(k).y);
  dec(r8);
  jnz(row, T_NEAR);
  next_sums(r10);
  dec(r9);
  jnz(stretch, T_NEAR);
  for (size_t k = 0; k < cell_operands(); ++k) advance(slot(plane_slot(k)), cell_operand(k).c);
  dec(r12);
  jnz(plane, T_NEAR);
}

/// Sums of the stretch rsi, which moves on to the next, also in the next plane; nothing behind the last one.
void AverageFirstKernel::emit_sums(Body& front) {
  Xbyak::Label done;
  cmp(slot(planes_slot()), 0);
  je(done, T_NEAR);
  if (!wide()) start_bodies({&front});
  if (block_.windows > 0)
    emit_channel_groups(*this, block_.windows, together_, lanes(),
                        [&](int vectors, int last) { emit_sums_of(front, vectors, last); });
  mov(rax, ptr[rsi]);
  mov(ptr[r11 + count_at()], rax);
  next_sums(r11);
  imul(rax, ptr[rsi + 8], static_cast<int>(8 * (p_.front_in.size() + 1)));
  lea(rsi, ptr[rsi + rax + 16]);
  dec(slot(stretches_slot()));
  jnz(done, T_NEAR);
  start_plane();
  for (size_t k = 0; k < p_.front_in.size(); ++k) advance(slot(front_slot(k)), operand(p_.front_in[k]).c);
  dec(slot(planes_slot()));
  L(done);
}

/// Sums begin with the first stretch.
void AverageFirstKernel::start_plane() {
  mov(rsi, ptr[rdi + offsetof(AverageFirstCall, stretches)]);
  mov(rax, ptr[rdi + offsetof(AverageFirstCall, stretch_count)]);
  mov(slot(stretches_slot()), rax);
}

/// The next row of sums, behind the last one the first.
void AverageFirstKernel::next_sums(const Xbyak::Reg64& sums) {
  const auto all = static_cast<int>(rows_of_sums(p_) * sums_bytes_);
  Xbyak::Label inside;
  add(sums, static_cast<uint32_t>(sums_bytes_));
  mov(rdx, ptr[rdi + offsetof(AverageFirstCall, sums)]);
  add(rdx, all);
  cmp(sums, rdx);
  jb(inside);
  sub(sums, all);
  L(inside);
}

void AverageFirstKernel::emit_sums_of(Body& front, int vectors, int last) {
  const auto count = [&](int v) { return v + 1 == vectors ? last : lanes(); };
  Xbyak::Label next, done;
  for (int v = 0; v < vectors; ++v) broadcast_bits(vec(v), 0);
  lea(r13, ptr[rsi + 16]);
  mov(rbx, ptr[rsi + 8]);
  test(rbx, rbx);
  jz(done, T_NEAR);
  L(next);
  if (!p_.same_along_rows) vbroadcastss(vec(row_weight()), dword[r13 + static_cast<int>(8 * p_.front_in.size())]);
  for (int v = 0; v < vectors; ++v) {
    BodyHooks hooks;
    hooks.load = [&](Xmm dst, int number) {
      const auto k = static_cast<size_t>(std::ranges::find(p_.front_in, number) - p_.front_in.begin());
      const PoolOperand& o = operand(number);
      const int each = element_bytes(o.dtype), at = v * lanes() * each;
      if (v == 0 || p_.front_in.size() > 1) {  // else rdx is the same for all vectors
        mov(rdx, ptr[r13 + 8 * static_cast<int>(k)]);
        add(rdx, slot(front_slot(k)));
      }
      if (o.x == 0) return load(dst, o.dtype, Walk::same, rdx, count(v));
      if (o.begins_line(at, lanes())) fetch_line(rdx + rcx * each + at, Fetching::near());
      load(dst, o.dtype, Walk::next, rdx + rcx * each + at, count(v));
    };
    hooks.store = [&](Xmm value, const Lane& lane) {
      if (lane.flag) vcvtdq2ps(scratch(0), value);
      const Xmm window = lane.flag ? scratch(0) : value;
      if (!p_.same_along_rows) vmulps(scratch(1), window, vec(row_weight()));
      vaddps(vec(v), vec(v), p_.same_along_rows ? window : scratch(1));
    };
    front.emit(hooks);
  }
  add(r13, static_cast<uint32_t>(8 * (p_.front_in.size() + 1)));
  dec(rbx);
  jnz(next, T_NEAR);
  L(done);
  if (!p_.same_along_x) mov(rdx, ptr[rdi + offsetof(AverageFirstCall, column_weights)]);
  const int first = static_cast<int>(block_.window_at * 4);
  for (int v = 0; v < vectors; ++v) {
    const int at = v * vector_bytes();
    if (!p_.same_along_x)
      vmulps(vec(v), vec(v), ptr[rdx + rcx * 4 + at]);
    else if (p_.weight != 1)
      vmulps(vec(v), vec(v), vec(column_weight()));
    store_bytes(vec(v), 4, r11 + rcx * 4 + first + at, count(v), false);
  }
}

void AverageFirstKernel::emit_row(Body& back) {
  const int64_t total = (p_.g.src[2] + lanes() - 1) / lanes(), each = vectors_of_step(p_);
  const int last = static_cast<int>((p_.g.src[2] - 1) % lanes()) + 1;
  xor_(ecx, ecx);
  xor_(ebx, ebx);
  int64_t left = total;
  // The last vector is not among those of the loop.
  if (const int64_t steps = (total - 1) / each; total > kMostVectors && steps > 0) {
    left = total - steps * each;
    Xbyak::Label next;
    align(16);
    L(next);
    emit_vectors(back, each, lanes());
    add(rcx, static_cast<uint32_t>(each * lanes()));
    add(rbx, static_cast<uint32_t>(p_.adaptive ? each * entry_bytes() : each * lanes() / step() * 4));
    cmp(rcx, static_cast<uint32_t>(steps * each * lanes()));
    jb(next, T_NEAR);
  }
  emit_vectors(back, left, last);
  if (joined_) joined_->emit_row_end(p_.g.src[2]);
}

/// `vectors` vectors from cell rcx on, the last one with `last` cells.
void AverageFirstKernel::emit_vectors(Body& back, int64_t vectors, int last) {
  if (packs_) return emit_packed(vectors, last);
  const auto count = [&](int64_t v) { return v + 1 == vectors ? last : lanes(); };
  for (int64_t v = 0; v < vectors; ++v) {
    if (in_pairs()) {
      sum_period(0, v / 2, vec(0));
      sum_period(1, v / 2, vec(1));
      interleave(vec(0), vec(1));
      emit_cells(back, v, v + 1 == vectors, count(v));
      if (++v == vectors) return;
      vmovaps(vec(0), vec(1));
    } else {
      sum_cells(v, vec(0));
    }
    emit_cells(back, v, v + 1 == vectors, count(v));
  }
}

/// The same where sums are stored as they are.
void AverageFirstKernel::emit_packed(int64_t vectors, int last) {
  const Xmm first = vec(0), second = vec(1);
  const Dtype dtype = p_.out[0].dtype;
  for (int64_t v = 0; v < vectors; v += 2) {
    const bool alone = v + 1 == vectors;
    if (in_pairs()) {
      sum_period(0, v / 2, first);
      sum_period(1, v / 2, second);
    } else {
      sum_cells(v, first);
      if (!alone) sum_cells(v + 1, second);
    }
    compute({.op = LaneOp::pack, .imm = static_cast<int32_t>(dtype)}, first, first, second, first);
    if (in_pairs()) {
      vmovups(second, words(halves_in_turns()));
      vpermw(Zmm(first.getIdx()), Zmm(second.getIdx()), Zmm(first.getIdx()));
    }
    const int count = (alone ? 0 : lanes()) + (v + 2 < vectors ? lanes() : last);
    if (joined_) {
      joined_->emit_words(0, first, count);
      continue;
    }
    mov(rdx, slot(p_.back_in.size()));
    const auto to = rdx + rcx * 2 + static_cast<int>(v * lanes() * 2);
    store_words(first, to, count, stores_ == AverageFirstStores::streaming && count == kWords);
  }
}

void AverageFirstKernel::sum_cells(int64_t vector, const Xmm& sum) {
  if (p_.adaptive) return sum_adaptive(vector, sum);
  step() == 1 ? sum_period(0, vector, sum) : sum_lanes(vector, sum);
}

/// Cell `cell` of each period of a vector of periods.
void AverageFirstKernel::sum_period(int64_t cell, int64_t vector, const Xmm& sum) {
  bool started = false;
  for (int64_t back = 0; back < p_.reach(2); ++back) {
    if (tap_of(cell, back) < 0) continue;
    const auto windows = window_at(window_of(cell) - back + p_.reach(2) - 1 + vector * lanes());
    started ? vaddps(sum, sum, windows) : vmovups(sum, windows);
    started = true;
  }
  if (!started) broadcast_bits(sum, 0);
}

/// Vector `vector` of the cells of some periods: each lane has its own window.
void AverageFirstKernel::sum_lanes(int64_t vector, const Xmm& sum) {
  const int64_t first = vector * lanes();
  const Xmm order = scratch(0), to = scratch(1);
  std::vector<int32_t> windows;
  for (int l = 0; l < lanes(); ++l) windows.push_back(static_cast<int32_t>(window_of(first + l) - window_of(first)));
  vmovups(order, pattern(windows));
  bool started = false;
  for (int64_t back = 0; back < p_.reach(2); ++back) {
    std::vector<int32_t> covered;
    for (int l = 0; l < lanes(); ++l) covered.push_back(tap_of(first + l, back) < 0 ? 0 : -1);
    const auto live = std::ranges::count(covered, -1);
    if (live == 0) continue;
    vpermps(perm(*this, to), perm(*this, order), window_at(window_of(first) - back + p_.reach(2) - 1));
    if (live < lanes()) vandps(to, to, pattern(covered));
    started ? vaddps(sum, sum, to) : vmovaps(sum, to);
    started = true;
  }
  if (!started) broadcast_bits(sum, 0);
}

/// Vector `vector` of cells under windows of any places, by the table.
void AverageFirstKernel::sum_adaptive(int64_t vector, const Xmm& sum) {
  const Xmm order = scratch(0), to = scratch(1);
  const auto entry = rdx + rbx + static_cast<int>(vector * entry_bytes());
  lea(rdx, ptr[rip + table_]);
  vmovups(order, ptr[entry]);
  movsxd(rax, dword[entry + vector_bytes()]);
  vpermps(perm(*this, sum), perm(*this, order), ptr[r10 + rax]);
  for (int64_t k = 1; k < p_.reach(2); ++k) {
    vpermps(perm(*this, to), perm(*this, order), ptr[r10 + rax + static_cast<int>(k * 4)]);
    vandps(to, to, ptr[entry + static_cast<int>((k + 1) * vector_bytes())]);
    vaddps(sum, sum, to);
  }
}

/// For each vector of cells: how far behind its first window each cell's first one is, where among the sums that one
/// is, and which cells lie under so many more.
void AverageFirstKernel::emit_adaptive_table() {
  const auto cell = [&](int64_t x) { return p_.covers(2, std::min(x, p_.g.src[2] - 1)); };
  const auto lane = [&](const auto& number) {
    for (int l = 0; l < lanes(); ++l) dd(static_cast<uint32_t>(number(l)));
  };
  align(64);
  L(table_);
  for (int64_t first = 0; first < p_.g.src[2]; first += lanes()) {
    const int64_t window = cell(first)[0].window;
    lane([&](int l) { return cell(first + l)[0].window - window; });
    lane([&](int) { return (block_.window_at + window) * 4; });
    for (size_t k = 1; k < static_cast<size_t>(p_.reach(2)); ++k)
      lane([&](int l) { return cell(first + l).size() > k ? -1 : 0; });
  }
}

/// even[0], odd[0], even[1], ..: the first half in `even`, the second one in `odd`.
void AverageFirstKernel::interleave(const Xmm& even, const Xmm& odd) {
  const Xmm low = scratch(0), high = scratch(1);
  if (!wide()) {
    vunpcklps(low, even, odd);
    vunpckhps(high, even, odd);
    vperm2f128(perm(*this, even), perm(*this, low), perm(*this, high), 0x20);
    return vperm2f128(perm(*this, odd), perm(*this, low), perm(*this, high), 0x31);
  }
  std::vector<int32_t> order[2];
  for (int32_t l = 0; l < lanes(); ++l)
    for (int32_t half : {0, 1}) order[half].push_back((l + half * lanes()) / 2 + (l % 2) * lanes());
  vmovups(low, pattern(order[0]));
  vmovups(high, pattern(order[1]));
  vpermi2ps(Zmm(low.getIdx()), Zmm(even.getIdx()), Zmm(odd.getIdx()));
  vpermi2ps(Zmm(high.getIdx()), Zmm(even.getIdx()), Zmm(odd.getIdx()));
  vmovaps(even, low);
  vmovaps(odd, high);
}

/// The back expression over vec(0), which lies `vector` vectors behind cell rcx.
void AverageFirstKernel::emit_cells(Body& back, int64_t vector, bool last, int count) {
  BodyHooks hooks;
  const auto place = [&](size_t k) {
    const int each = element_bytes(cell_operand(k).dtype);
    mov(rdx, slot(k));
    return rdx + rcx * each + static_cast<int>(vector * lanes() * each);
  };
  hooks.load = [&](Xmm dst, int number) {
    const auto k = static_cast<size_t>(std::ranges::find(p_.back_in, number) - p_.back_in.begin());
    const PoolOperand& o = cell_operand(k);
    const auto from = place(k);
    if (o.x == 0) return load(dst, o.dtype, Walk::same, rdx, count);
    if (o.begins_line(vector * lanes() * element_bytes(o.dtype), lanes())) fetch_line(from, Fetching::near());
    load(dst, o.dtype, Walk::next, from, count);
  };
  hooks.skeleton = [&](Xmm dst) { vmovaps(dst, vec(0)); };
  hooks.store = [&](Xmm value, const Lane& lane) {
    const auto k = static_cast<size_t>(lane.imm);
    if (joined_) return joined_->emit_store(k, value, lane.flag, vector, last, count);
    if (p_.out[k].fold != Fold::none) return folds_->emit_fold(k, 0, value, count, fold_slots());
    const auto to = place(p_.back_in.size() + k);
    store(value, p_.out[k].dtype, lane.flag, to, count, stores_ == AverageFirstStores::streaming && count == lanes());
  };
  back.emit(hooks);
}

}  // namespace partita::jit
