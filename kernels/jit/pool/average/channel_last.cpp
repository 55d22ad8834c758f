// SPDX-License-Identifier: Apache-2.0
// Code of rows of cells: rdi call, r12 row, r13 rows left, rcx first channel of the vector, rsi operands of a row of
// windows, r9 its weight, r10 rows of windows left, r8 cells left, r11 number of the next column, rbx columns left
// before the first cell (adaptive windows: number of the cell), rax and rdx for a moment; where two rows of cells are
// made in straight code, kWindow and kColumn instead of the rows' and windows' registers. The stack holds how far the
// operands of the cells and of the windows have come, and where in their scratch memory the rows have the last columns'
// sums, newest first. Sums of columns are made where the first cell needs them: so loads, sums and stores take turns
// all the time, and what is written past the caches drains while the next cells are computed.
#include "kernels/jit/pool/average/channel_last.hpp"

#include <algorithm>
#include <array>

#include "kernels/jit/code/expand.hpp"
#include "kernels/jit/code/frame.hpp"
#include "kernels/jit/flat/exceeds_cache.hpp"
#include "kernels/jit/flat/flat_kernel.hpp"
#include "kernels/jit/pool/channel_groups.hpp"
#include "kernels/jit/pool/walk.hpp"
#include "src/base/cpu.hpp"
#include "src/base/dtype.hpp"
#include "src/base/round.hpp"
#include "src/base/threads.hpp"

namespace partita::jit {
namespace {

using Xbyak::Xmm;

/// Registers with the addresses of windows and of columns' sums, where two rows of cells are made.
constexpr int kMostPaired = 3;
const std::array<Xbyak::Reg64, kMostPaired + 1> kWindow = {Xbyak::util::rsi, Xbyak::util::r9, Xbyak::util::r10,
                                                           Xbyak::util::rbx};
const std::array<Xbyak::Reg64, kMostPaired> kColumn = {Xbyak::util::r13, Xbyak::util::r14, Xbyak::util::r15};

/// Columns that are complete before the first cell of a row (of a block).
int64_t columns_before(const AverageColumns& p) { return p.lead() == 0 ? p.reach(2) - 1 : p.reach(2); }

/// Whether registers hold what expressions around the pooling keep.
bool computes(const Problem& problem) { return !problem.front.empty() || !problem.back.empty(); }

/// Vectors of channels; sums of two kinds are held where rows are made together.
int vectors_together(bool wide, bool rows_together, bool computes) {
  if (wide) return 4;
  return (rows_together ? 1 : 2) * (computes ? 1 : 2);
}

}  // namespace

int64_t AverageLastKernel::column_bytes(Isa isa, const AverageColumns& plan) {
  return rounded_up(plan.g.channels, lanes_of(isa)) * 4;
}

AverageLastKernel::AverageLastKernel(Isa isa, const AverageColumns& plan, const Problem& problem, int64_t rows,
                                     bool streaming)
    : Emitter(isa),
      p_(plan),
      streaming_(streaming),
      together_(vectors_together(wide(), rows > 1, computes(problem))),
      sums_(rows > 1 ? together_ : 0),
      packs_(packs()),
      column_bytes_(column_bytes(isa, plan)) {
  const auto never = [](int) { return false; };
  const int taken = column_weight() + 1, each = wide() ? 2 * kLeastRegisters : kLeastRegisters;
  const int middle = taken + (wide() || computes(problem) ? each : 0);  // what keeps nothing shares its registers
  const int spill_at = aligned(static_cast<int>(rows_slot() + 1) * 8);
  Body front(*this, expanded_front(p_.front, problem, isa), {taken, taken + each, rsp + spill_at}, never);
  const int back_at = spill_at + front.spill_slots() * 64;
  Body back(*this, expanded(p_.back, problem, isa), {middle, value_registers(), rsp + back_at}, never);
  emit_in_frame(*this, {rbx, r12, r13, r14, r15}, back_at + back.spill_slots() * 64, [&] {
    emit_slots();
    const BodyHooks none;
    front.emit_constants();
    back.emit_constants();
    front.emit_row_values(none);
    back.emit_row_values(none);
    emit_cells(front, back);
  });
  emit_constants();
  entry_ = reinterpret_cast<void (*)(const AverageLastCall*)>(reinterpret_cast<uintptr_t>(finish()));
}

int64_t AverageLastKernel::column_scratch_bytes(Isa isa, const AverageColumns& p) {
  return aligned(p.reach(2) * column_bytes(isa, p));
}

int64_t AverageLastKernel::row_bytes(const AverageColumns& p) {
  return static_cast<int64_t>(sizeof(AverageLastRow) + (p.back_in.size() + p.out.size()) * sizeof(void*));
}

void AverageLastKernel::emit_slots() {
  xor_(eax, eax);
  for (size_t k = 0; k < column_slot(0); ++k) mov(slot(k), rax);
  for (int64_t back = 0; back < p_.reach(2); ++back) {
    mov(slot(column_slot(back)), rax);
    add(rax, static_cast<uint32_t>(column_bytes_));
  }
  if (p_.weights.empty())
    mov(rax, ptr[rdi + offsetof(AverageLastCall, column_weights)]);
  else
    xor_(eax, eax);  // how far the cells have come
  mov(slot(weight_slot()), rax);
  mov(r11, ptr[rdi + offsetof(AverageLastCall, column)]);
  mov(r8, ptr[rdi + offsetof(AverageLastCall, cell_count)]);
  if (p_.same_along_x && p_.weights.empty()) vbroadcastss(vec(column_weight()), dword[rax]);
}

/// For all channels of a cell or column: start(vectors, channels of the last one), then row(the same) for each row.
template <class Start, class Row>
void AverageLastKernel::emit_rows(const Start& start, const Row& row) {
  emit_channel_groups(*this, p_.g.channels, together_, lanes(), [&](int vectors, int last) {
    start(vectors, last);
    Xbyak::Label next;
    mov(r12, ptr[rdi + offsetof(AverageLastCall, rows)]);
    mov(r13, ptr[rdi + offsetof(AverageLastCall, row_count)]);
    L(next);
    row(vectors, last);
    add(r12, static_cast<uint32_t>(row_bytes(p_)));
    dec(r13);
    jnz(next, T_NEAR);
  });
}

/// The same with the newest column's sums, made before row().
template <class Row>
void AverageLastKernel::emit_summed_rows(Body& front, const Row& row) {
  emit_rows([&](int vectors, int last) { emit_shared(front, vectors, last); },
            [&](int vectors, int last) {
              emit_sums(front, vectors, last);
              row(vectors, last);
            });
}

/// Each phase is a cell of a period; the first cell that sees a new column makes its sum.
void AverageLastKernel::emit_cells(Body& front, Body& back) {
  if (p_.adaptive) return emit_adaptive_cells(front, back);
  if (columns_before(p_) > 0) {
    Xbyak::Label before;
    mov(ebx, static_cast<uint32_t>(columns_before(p_)));
    L(before);
    emit_column([&] { emit_summed_rows(front, [](int, int) {}); }, [] {});
    dec(ebx);
    jnz(before, T_NEAR);
  }
  Xbyak::Label rows, end;
  if (pairs_up()) {
    go_unless_pair(rows);
    emit_pairs(front, back);
    jmp(end, T_NEAR);
    L(rows);
  }
  Xbyak::Label period, done;
  align(16);
  L(period);
  for (int64_t phase = 0; phase < p_.g.strides[2]; ++phase) {
    const auto cell = [&](bool made) {
      return [&, made](int vectors, int last) { emit_cell(back, columns_over(phase), vectors, last, made); };
    };
    if ((p_.lead() + phase) % p_.g.strides[2] == 0)
      emit_column([&] { emit_summed_rows(front, cell(true)); }, [&] { emit_rows(cell(false)); });
    else
      emit_rows(cell(false));
    next_cell();
    dec(r8);
    jz(done, T_NEAR);
  }
  jmp(period, T_NEAR);
  L(done);
  L(end);
}

/// Whether two vectors of results are stored at once, as one conversion and a whole cache line.
bool AverageLastKernel::packs() const {
  const PoolOperand& o = p_.out[0];
  const bool whole_lines = !streaming_ || on_lines({o.offset, o.n, o.z, o.y, o.x});
  return wide() && p_.has_one_narrow_result() && whole_lines;
}

/// Whether there is code of its own for two rows of cells that have one row of windows each for themselves.
bool AverageLastKernel::pairs_up() const {
  return sums_ > 0 && !p_.adaptive && p_.g.strides[2] == 1 && p_.reach(1) > 1 && p_.reach(1) <= kMostPaired &&
         p_.reach(2) <= kMostPaired && p_.front_in.size() == 1;
}

void AverageLastKernel::go_unless_pair(Xbyak::Label& elsewhere) {
  const auto must_be = [&](const Xbyak::RegExp& at, int64_t n) {
    cmp(qword[at], static_cast<uint32_t>(n));
    jne(elsewhere, T_NEAR);
  };
  const auto count = offsetof(AverageLastRow, windows) + offsetof(AverageLastWindows, count);
  must_be(rdi + offsetof(AverageLastCall, row_count), 2);
  must_be(rdi + offsetof(AverageLastCall, shared) + offsetof(AverageLastWindows, count), p_.reach(1) - 1);
  mov(r12, ptr[rdi + offsetof(AverageLastCall, rows)]);
  must_be(r12 + count, 1);
  must_be(r12 + static_cast<size_t>(row_bytes(p_)) + count, 1);
}

/// All addresses of a column stay in registers, and no loop goes over rows: a processor looks few operations ahead.
void AverageLastKernel::emit_pairs(Body& front, Body& back) {
  const std::vector<int64_t> columns = columns_over(0);
  Xbyak::Label cell;
  align(16);
  L(cell);
  emit_column(
      [&] {
        load_pair();
        emit_channel_groups(*this, p_.g.channels, together_, lanes(), [&](int vectors, int last) {
          for (int64_t w = 0; w + 1 < p_.reach(1); ++w) {
            if (!p_.same_along_rows) broadcast_weight(rdi + offsetof(AverageLastCall, shared), w);
            add_windows(front, kWindow[w] + 0, w == 0 ? Sum::first : Sum::more, 0, vectors, last);
          }
          prefetch_pair(kWindow[p_.reach(1) - 2], vectors);
          for (row_ = 0; row_ < 2; ++row_) {
            const Xbyak::Reg64& window = kWindow[p_.reach(1) - 1 + row_];
            if (!p_.same_along_rows) broadcast_weight(row_at() + offsetof(AverageLastRow, windows), 0);
            add_windows(front, window + 0, Sum::behind_shared, sums_, vectors, last);
            if (row_ == 1) prefetch_pair(window, vectors);
            store_sums(vectors);
            emit_cell(back, columns, vectors, last, true);
          }
          row_ = kEachRow;
        });
      },
      [&] { emit_rows([&](int vectors, int last) { emit_cell(back, columns, vectors, last, false); }); });
  next_cell();
  dec(r8);
  jnz(cell, T_NEAR);
}

/// The addresses of the next column's windows, those over both rows first, and of the columns' sums of the first row.
/// rax: how much farther ahead windows are fetched.
void AverageLastKernel::load_pair() {
  mov(r12, ptr[rdi + offsetof(AverageLastCall, rows)]);
  mov(rax, ptr[rdi + offsetof(AverageLastCall, shared) + offsetof(AverageLastWindows, at)]);
  for (int64_t w = 0; w + 1 < p_.reach(1); ++w) mov(kWindow[w], ptr[rax + 8 * static_cast<int>(w)]);
  for (int row = 0; row < 2; ++row) {
    mov(rax, ptr[r12 + static_cast<int>(row * row_bytes(p_)) + offsetof(AverageLastRow, windows) +
                 offsetof(AverageLastWindows, at)]);
    mov(kWindow[p_.reach(1) - 1 + row], ptr[rax]);
  }
  for (int64_t w = 0; w <= p_.reach(1); ++w) add(kWindow[w], slot(front_slot(0)));
  for (int64_t back = 0; back < p_.reach(2); ++back) {
    mov(kColumn[back], slot(column_slot(back)));
    add(kColumn[back], ptr[r12 + offsetof(AverageLastRow, columns)]);
  }
  const PoolOperand& window = operand(p_.front_in[0]);
  const int64_t ahead = window.x == 0 ? 0 : kPrefetchFromMemory / window.x;
  xor_(eax, eax);
  mov(rdx, window.y);
  cmp(r11, static_cast<uint32_t>(std::max<int64_t>(0, p_.g.dst[2] - ahead)));
  cmovae(rax, rdx);
}

/// The weight of row `w` of these windows.
void AverageLastKernel::broadcast_weight(const Xbyak::RegExp& windows, int64_t w) {
  mov(rdx, ptr[windows + offsetof(AverageLastWindows, weights)]);
  vbroadcastss(vec(row_weight()), dword[rdx + 4 * static_cast<int>(w)]);
}

/// What lies ahead of the last columns is read already: there the rows after the next ones are fetched.
void AverageLastKernel::prefetch_pair(const Xbyak::Reg64& window, int vectors) {
  lea(rdx, ptr[window + rax]);
  prefetch_windows(0, rdx, vectors);
}

/// A table tells which cells see a new column, and which of these see the one before it too.
void AverageLastKernel::emit_adaptive_cells(Body& front, Body& back) {
  Xbyak::Label cell, first, shared, next;
  xor_(ebx, ebx);
  cmp(qword[rdi + offsetof(AverageLastCall, columns_before)], 0);
  je(cell, T_NEAR);
  emit_column([&] { emit_summed_rows(front, [](int, int) {}); }, [] {});
  align(16);
  L(cell);
  mov(rax, ptr[rdi + offsetof(AverageLastCall, cells)]);
  cmp(byte[rax + rbx], static_cast<uint32_t>(AdaptiveCell::first));
  je(first, T_NEAR);
  if (p_.reach(2) > 1) ja(shared, T_NEAR);
  emit_adaptive_cell(front, back, AdaptiveCell::inside);
  L(next);
  next_cell();
  inc(rbx);
  cmp(rbx, r8);
  jb(cell, T_NEAR);
  Xbyak::Label done;
  jmp(done, T_NEAR);
  L(first);
  emit_column([&] { emit_adaptive_cell(front, back, AdaptiveCell::first); }, [] {});
  jmp(next, T_NEAR);
  if (p_.reach(2) > 1) {
    L(shared);
    emit_column([&] { emit_adaptive_cell(front, back, AdaptiveCell::shared); }, [] {});
    jmp(next, T_NEAR);
  }
  L(done);
}

void AverageLastKernel::emit_adaptive_cell(Body& front, Body& back, AdaptiveCell kind) {
  const bool made = kind != AdaptiveCell::inside;
  const auto cell = [&](int vectors, int last) {
    const std::vector<int64_t> both = {0, 1}, alone = {0};
    emit_cell(back, kind == AdaptiveCell::shared ? both : alone, vectors, last, made);
  };
  made ? emit_summed_rows(front, cell) : emit_rows(cell);
}

void AverageLastKernel::next_cell() {
  for (size_t k = 0; k < front_slot(0); ++k) {
    const size_t inputs = p_.back_in.size();
    advance(slot(k), k < inputs ? operand(p_.back_in[k]).x : p_.out[k - inputs].x);
  }
  if (!p_.weights.empty()) advance(slot(weight_slot()), sizeof(float));
}

/// The next column becomes the newest; outside the windows its sums are 0.
template <class There, class Absent>
void AverageLastKernel::emit_column(const There& there, const Absent& absent) {
  Xbyak::Label outside, done;
  mov(rdx, slot(column_slot(p_.reach(2) - 1)));
  for (int64_t back = p_.reach(2) - 1; back > 0; --back) {
    mov(rax, slot(column_slot(back - 1)));
    mov(slot(column_slot(back)), rax);
  }
  mov(slot(column_slot(0)), rdx);
  cmp(r11, static_cast<uint32_t>(p_.g.dst[2]));
  jae(outside, T_NEAR);
  if (!p_.same_along_x) {
    mov(rax, slot(weight_slot()));
    vbroadcastss(vec(column_weight()), dword[rax]);
    add(slot(weight_slot()), 4);
  }
  there();
  for (size_t k = 0; k < p_.front_in.size(); ++k) advance(slot(front_slot(k)), operand(p_.front_in[k]).x);
  jmp(done, T_NEAR);
  L(outside);
  emit_zeros();
  absent();
  L(done);
  inc(r11);
}

void AverageLastKernel::emit_zeros() {
  emit_rows([&](int vectors, int) {
    broadcast_bits(vec(0), 0);
    const Xbyak::RegExp to = column_at(0);
    for (int v = 0; v < vectors; ++v) vmovups(ptr[to + v * vector_bytes()], vec(0));
  });
}

Xbyak::RegExp AverageLastKernel::row_at() const { return r12 + static_cast<int>(std::max(0, row_) * row_bytes(p_)); }

/// The sums of a column of channel rcx; of the only row that the loop is at, in rdx.
Xbyak::RegExp AverageLastKernel::column_at(int64_t back) {
  if (row_ != kEachRow) return kColumn[back] + rcx * 4 + static_cast<int>(row_ * column_scratch_bytes(isa(), p_));
  mov(rdx, slot(column_slot(back)));
  add(rdx, ptr[r12 + offsetof(AverageLastRow, columns)]);
  return rdx + rcx * 4;
}

/// rdx: the cell in operand `k` of back or, behind these, in a result.
void AverageLastKernel::to_cell(size_t k) {
  mov(rdx, slot(k));
  add(rdx, ptr[row_at() + static_cast<int>(sizeof(AverageLastRow) + k * sizeof(void*))]);
}

/// Adds the r10 rows of windows at rsi, with the weights at r9, of `vectors` vectors of channels, the last one with
/// `last` channels.
void AverageLastKernel::emit_windows(Body& front, int sums, int vectors, int last) {
  Xbyak::Label next, done;
  test(r10, r10);
  jz(done, T_NEAR);
  L(next);
  if (!p_.same_along_rows) vbroadcastss(vec(row_weight()), dword[r9]);
  add_windows(front, {}, Sum::more, sums, vectors, last);
  add(rsi, static_cast<uint32_t>(8 * p_.front_in.size()));
  add(r9, 4);
  dec(r10);
  jnz(next, T_NEAR);
  emit_prefetches(vectors);
  L(done);
}

/// Adds a row of windows, whose only operand is at `from`, or those of the row at rsi where there are more.
void AverageLastKernel::add_windows(Body& front, const Xbyak::RegExp& from, Sum sum, int sums, int vectors, int last) {
  const bool one = p_.front_in.size() == 1, at_rsi = !one || from.getBase().getBit() == 0;
  if (one && at_rsi) to_windows(0, 0);  // its address is the same for all vectors
  for (int v = 0; v < vectors; ++v) {
    BodyHooks hooks;
    hooks.load = [&](Xmm dst, int number) {
      const auto k = static_cast<size_t>(std::ranges::find(p_.front_in, number) - p_.front_in.begin());
      if (!one) to_windows(k, 0);
      load_at(dst, operand(number), at_rsi ? rdx : from, v, v + 1 == vectors ? last : lanes());
    };
    hooks.store = [&](Xmm value, const Lane& lane) {
      if (lane.flag) vcvtdq2ps(scratch(0), value);
      const Xmm window = lane.flag ? scratch(0) : value, to = vec(sums + v);
      if (sum == Sum::first) return p_.same_along_rows ? vmovaps(to, window) : vmulps(to, window, vec(row_weight()));
      if (!p_.same_along_rows) vmulps(scratch(1), window, vec(row_weight()));
      vaddps(to, sum == Sum::behind_shared ? vec(v) : to, p_.same_along_rows ? window : scratch(1));
    };
    front.emit(hooks);
  }
}

/// rdx: the next column in operand `k` of front, of the row of windows `back` rows before that at rsi.
void AverageLastKernel::to_windows(size_t k, int back) {
  mov(rdx, ptr[rsi + 8 * (static_cast<int>(k) - back * static_cast<int>(p_.front_in.size()))]);
  add(rdx, slot(front_slot(k)));
}

/// rsi, r9, r10: the rows of windows at `from`.
void AverageLastKernel::load_windows(const Xbyak::RegExp& from) {
  mov(rsi, ptr[from + offsetof(AverageLastWindows, at)]);
  mov(r9, ptr[from + offsetof(AverageLastWindows, weights)]);
  mov(r10, ptr[from + offsetof(AverageLastWindows, count)]);
}

/// Of the newest column, the sums of the windows over all rows.
void AverageLastKernel::emit_shared(Body& front, int vectors, int last) {
  for (int v = 0; v < vectors; ++v) broadcast_bits(vec(v), 0);
  load_windows(rdi + offsetof(AverageLastCall, shared));
  emit_windows(front, 0, vectors, last);
}

/// Of the newest column, a row's sums.
void AverageLastKernel::emit_sums(Body& front, int vectors, int last) {
  if (sums_ > 0) {
    for (int v = 0; v < vectors; ++v) vmovaps(vec(sums_ + v), vec(v));
    load_windows(r12 + offsetof(AverageLastRow, windows));
    emit_windows(front, sums_, vectors, last);
  }
  store_sums(vectors);
}

void AverageLastKernel::store_sums(int vectors) {
  const Xbyak::RegExp to = column_at(0);
  for (int v = 0; v < vectors; ++v) {
    const Xmm sum = vec(sums_ + v);
    if (p_.weighs_columns()) vmulps(sum, sum, vec(column_weight()));
    if (p_.reach(2) > 1 || p_.g.strides[2] > 1 || p_.adaptive) vmovups(ptr[to + v * vector_bytes()], sum);
  }
}

/// `columns` over the cell, the newest one 0. `made`: the registers hold the newest one's sums.
void AverageLastKernel::emit_cell(Body& back, const std::vector<int64_t>& columns, int vectors, int last, bool made) {
  bool started = made;
  for (int64_t column : columns) {
    if (made && column == 0) continue;
    const Xbyak::RegExp at = column_at(column);
    for (int v = 0; v < vectors; ++v) {
      const auto from = ptr[at + v * vector_bytes()];
      const Xmm sum = vec(sums_ + v);
      started ? vaddps(sum, sum, from) : vmovups(sum, from);
    }
    started = true;
  }
  if (!p_.weights.empty()) {
    mov(rdx, slot(weight_slot()));
    add(rdx, ptr[row_at() + offsetof(AverageLastRow, weights)]);
    vbroadcastss(vec(cell_weight()), dword[rdx]);
  }
  const bool one = p_.back_in.size() + p_.out.size() == 1;  // then its address is the same for all vectors
  if (one) to_cell(0);
  const int whole = last == lanes() ? vectors : vectors - 1, paired = packs_ ? whole / 2 * 2 : 0;
  for (int v = 0; v < vectors; ++v) {
    const int count = v + 1 == vectors ? last : lanes();
    if (!started) broadcast_bits(vec(sums_ + v), 0);
    if (p_.weighs_cells()) vmulps(vec(sums_ + v), vec(sums_ + v), vec(cell_weight()));
    BodyHooks hooks;
    hooks.load = [&](Xmm dst, int number) {
      to_cell(static_cast<size_t>(std::ranges::find(p_.back_in, number) - p_.back_in.begin()));
      const PoolOperand& o = operand(number);
      const int each = element_bytes(o.dtype), behind = v * lanes() * each;
      if (o.c != 0 && o.begins_line(behind, lanes())) fetch_line(rdx + rcx * each + behind, fetching());
      load_at(dst, o, rdx, v, count);
    };
    hooks.skeleton = [&](Xmm dst) { vmovaps(dst, vec(sums_ + v)); };
    hooks.store = [&](Xmm value, const Lane& lane) {
      const auto k = static_cast<size_t>(lane.imm);
      const PoolOperand& o = p_.out[k];
      const int each = element_bytes(o.dtype);
      const auto to = rdx + rcx * each + v * lanes() * each;
      if (!one) to_cell(p_.back_in.size() + k);
      if (o.fold != Fold::none) return fold_to_slot(value, o.fold, to, count);
      if (v < paired && !lane.flag) {
        const Xmm first = vec(sums_ + v / 2 * 2);  // the expression has read it
        if (v % 2 == 0) return vmovaps(first, value);
        compute({.op = LaneOp::pack, .imm = static_cast<int32_t>(o.dtype)}, first, first, value, first);
        return store_words(first, to - lanes() * each, 2 * lanes(), streaming_);
      }
      store(value, o.dtype, lane.flag, to, count, streaming_ && count == lanes());
    };
    back.emit(hooks);
  }
}

/// Of the rows of windows over a row of cells only the last one comes from memory.
void AverageLastKernel::emit_prefetches(int vectors) {
  for (size_t k = 0; k < p_.front_in.size(); ++k) {
    to_windows(k, 1);
    prefetch_windows(k, rdx, vectors);
  }
}

/// Without strides as much is read as written, and many rows at once.
Fetching AverageLastKernel::fetching() const {
  return p_.g.strides[2] == 1 ? Fetching::of_many_streams() : Fetching::near();
}

/// Loads alone keep too little under way, less still where much is stored for each window.
void AverageLastKernel::prefetch_windows(size_t k, const Xbyak::Reg64& from, int vectors) {
  const bool in_turns = streaming_ && p_.g.strides[2] > 1 && !reads_streams_alone();
  const PoolOperand& o = operand(p_.front_in[k]);
  if (o.c == 0) return;
  const int each = element_bytes(o.dtype);
  for (int at = 0; at < vectors * lanes() * each; at += static_cast<int>(kCacheLine)) {
    fetch_line(from + rcx * each + at, in_turns ? Fetching::in_turns() : fetching());
  }
}

/// Loads vector `vector` of the place `at`.
void AverageLastKernel::load_at(const Xmm& dst, const PoolOperand& o, const Xbyak::RegExp& at, int vector, int count) {
  if (o.c == 0) return load(dst, o.dtype, Walk::same, at, count);
  const int each = element_bytes(o.dtype);
  load(dst, o.dtype, Walk::next, at + rcx * each + vector * lanes() * each, count);
}

/// How far before a cell's last window those are that cover cell `phase` of a period.
std::vector<int64_t> AverageLastKernel::columns_over(int64_t phase) const {
  std::vector<int64_t> list;
  for (int64_t back = 0; back < p_.reach(2); ++back)
    if (p_.tap_of(2, (p_.lead() + phase) % p_.g.strides[2], back) >= 0) list.push_back(back);
  return list;
}

}  // namespace partita::jit
