// SPDX-License-Identifier: Apache-2.0
// Code of rows of cells: rdi call, r12 row, r13 rows left, rcx first channel of the vector, rsi operands of a row of
// windows, r9 its weight, r10 rows of windows left, r8 cells left, r11 number of the next column, rbx columns left
// before the first cell (adaptive windows: number of the cell), rax and rdx for a moment. The stack holds how far the
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
#include "src/base/threads.hpp"

namespace partita::jit {
namespace {

using Xbyak::Xmm;

constexpr int kLeastRegisters = 4;
constexpr size_t kMostOperands = 32;
constexpr int64_t kMostReach = 32, kMostPhases = 16;
constexpr int64_t kBlockElements = 1 << 15;  ///< of a row: some rows of windows stay in the second-level cache
constexpr int64_t kRowsTogether = 2;         ///< of cells, where all rows read as many windows: less to do for a column
constexpr int64_t kColumnBytes = 1 << 15;    ///< sums of columns stay in the nearest cache
constexpr int64_t kLeastPeriods = 8;         ///< of a block: columns over its border are summed twice

/// Columns that are complete before the first cell of a row (of a block).
int64_t columns_before(const AveragePlan& p) { return p.lead() == 0 ? p.reach(2) - 1 : p.reach(2); }

}  // namespace

int64_t AverageLastKernel::column_bytes(Isa isa, const AveragePlan& plan) {
  const int64_t lanes = lanes_of(isa);
  return (plan.g.channels + lanes - 1) / lanes * lanes * 4;
}

AverageLastKernel::AverageLastKernel(Isa isa, const AveragePlan& plan, const Problem& problem, bool streaming)
    : Emitter(isa), p_(plan), streaming_(streaming), together_(wide() ? 4 : 2), column_bytes_(column_bytes(isa, plan)) {
  const auto never = [](int) { return false; };
  const int taken = column_weight() + 1, middle = taken + (wide() ? 2 * kLeastRegisters : kLeastRegisters);
  const int spill_at = (static_cast<int>(rows_slot() + 1) * 8 + 63) / 64 * 64;
  Body front(*this, expanded_front(p_.front, problem, isa), {taken, middle, rsp + spill_at}, never);
  const int back_at = spill_at + front.spill_slots() * 64;
  Body back(*this, expanded(p_.back, problem, isa), {middle, value_registers(), rsp + back_at}, never);
  emit_in_frame(*this, {rbx, r12, r13}, back_at + back.spill_slots() * 64, [&] {
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

int64_t AverageLastKernel::row_bytes(const AveragePlan& p) {
  return static_cast<int64_t>(sizeof(AverageLastRow) + (p.back_in.size() + p.out.size()) * sizeof(void*));
}

void AverageLastKernel::emit_slots() {
  xor_(eax, eax);
  for (size_t k = 0; k < column_slot(0); ++k) mov(slot(k), rax);
  for (int64_t back = 0; back < p_.reach(2); ++back) {
    mov(slot(column_slot(back)), rax);
    add(rax, static_cast<uint32_t>(column_bytes_));
  }
  mov(rax, ptr[rdi + offsetof(AverageLastCall, column_weights)]);
  mov(slot(weight_slot()), rax);
  mov(r11, ptr[rdi + offsetof(AverageLastCall, column)]);
  mov(r8, ptr[rdi + offsetof(AverageLastCall, cell_count)]);
  if (p_.same_along_x) vbroadcastss(vec(column_weight()), dword[rax]);
}

/// group(vectors, channels of the last one) for all channels of a cell or column of each row.
template <class Group>
void AverageLastKernel::emit_rows(const Group& group) {
  Xbyak::Label row;
  mov(r12, ptr[rdi + offsetof(AverageLastCall, rows)]);
  mov(r13, ptr[rdi + offsetof(AverageLastCall, row_count)]);
  L(row);
  emit_channel_groups(*this, p_.g.channels, together_, lanes(), group);
  add(r12, static_cast<uint32_t>(row_bytes(p_)));
  dec(r13);
  jnz(row, T_NEAR);
}

/// Each phase is a cell of a period; the first cell that sees a new column makes its sum.
void AverageLastKernel::emit_cells(Body& front, Body& back) {
  if (p_.adaptive) return emit_adaptive_cells(front, back);
  const auto sums = [&](int vectors, int last) { emit_sums(front, vectors, last); };
  if (columns_before(p_) > 0) {
    Xbyak::Label before;
    mov(ebx, static_cast<uint32_t>(columns_before(p_)));
    L(before);
    emit_column([&] { emit_rows(sums); }, [] {});
    dec(ebx);
    jnz(before, T_NEAR);
  }
  Xbyak::Label period, done;
  align(16);
  L(period);
  for (int64_t phase = 0; phase < p_.g.strides[2]; ++phase) {
    const auto cells = [&](bool made) {
      emit_rows([&](int vectors, int last) {
        if (made) sums(vectors, last);
        emit_cell(back, columns_over(phase), vectors, last, made);
      });
    };
    if ((p_.lead() + phase) % p_.g.strides[2] == 0)
      emit_column([&] { cells(true); }, [&] { cells(false); });
    else
      cells(false);
    next_cell();
    dec(r8);
    jz(done, T_NEAR);
  }
  jmp(period, T_NEAR);
  L(done);
}

/// A table tells which cells see a new column, and which of these see the one before it too.
void AverageLastKernel::emit_adaptive_cells(Body& front, Body& back) {
  Xbyak::Label cell, first, shared, next;
  xor_(ebx, ebx);
  cmp(qword[rdi + offsetof(AverageLastCall, columns_before)], 0);
  je(cell, T_NEAR);
  emit_column([&] { emit_rows([&](int vectors, int last) { emit_sums(front, vectors, last); }); }, [] {});
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
  emit_rows([&](int vectors, int last) {
    if (kind != AdaptiveCell::inside) emit_sums(front, vectors, last);
    const std::vector<int64_t> shared = {0, 1}, alone = {0};
    emit_cell(back, kind == AdaptiveCell::shared ? shared : alone, vectors, last, kind != AdaptiveCell::inside);
  });
}

void AverageLastKernel::next_cell() {
  for (size_t k = 0; k < front_slot(0); ++k) {
    const size_t inputs = p_.back_in.size();
    advance(slot(k), k < inputs ? operand(p_.back_in[k]).x : p_.out[k - inputs].x);
  }
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
    to_column(0);
    for (int v = 0; v < vectors; ++v) vmovups(ptr[rdx + rcx * 4 + v * vector_bytes()], vec(0));
  });
}

/// rdx: the sums of a column, of its first channel.
void AverageLastKernel::to_column(int64_t back) {
  mov(rdx, slot(column_slot(back)));
  add(rdx, ptr[r12 + offsetof(AverageLastRow, columns)]);
}

/// rdx: the cell in operand `k` of back or, behind these, in a result.
void AverageLastKernel::to_cell(size_t k) {
  mov(rdx, slot(k));
  add(rdx, ptr[r12 + static_cast<int>(sizeof(AverageLastRow) + k * sizeof(void*))]);
}

/// Of `vectors` vectors of the newest column's channels, the last one with `last` channels.
void AverageLastKernel::emit_sums(Body& front, int vectors, int last) {
  Xbyak::Label next, done;
  for (int v = 0; v < vectors; ++v) broadcast_bits(vec(v), 0);
  mov(rsi, ptr[r12 + offsetof(AverageLastRow, windows)]);
  mov(r9, ptr[r12 + offsetof(AverageLastRow, weights)]);
  mov(r10, ptr[r12 + offsetof(AverageLastRow, window_rows)]);
  test(r10, r10);
  jz(done, T_NEAR);
  L(next);
  if (!p_.same_along_rows) vbroadcastss(vec(row_weight()), dword[r9]);
  for (int v = 0; v < vectors; ++v) {
    BodyHooks hooks;
    hooks.load = [&](Xmm dst, int number) {
      const auto k = static_cast<size_t>(std::ranges::find(p_.front_in, number) - p_.front_in.begin());
      mov(rdx, ptr[rsi + 8 * static_cast<int>(k)]);
      add(rdx, slot(front_slot(k)));
      load_at(dst, operand(number), v, v + 1 == vectors ? last : lanes());
    };
    hooks.store = [&](Xmm value, const Lane& lane) {
      if (lane.flag) vcvtdq2ps(scratch(0), value);
      const Xmm window = lane.flag ? scratch(0) : value;
      if (!p_.same_along_rows) vmulps(scratch(1), window, vec(row_weight()));
      vaddps(vec(v), vec(v), p_.same_along_rows ? window : scratch(1));
    };
    front.emit(hooks);
  }
  add(rsi, static_cast<uint32_t>(8 * p_.front_in.size()));
  add(r9, 4);
  dec(r10);
  jnz(next, T_NEAR);
  emit_prefetches(vectors);
  L(done);
  to_column(0);
  for (int v = 0; v < vectors; ++v) {
    if (weighs_columns()) vmulps(vec(v), vec(v), vec(column_weight()));
    if (p_.reach(2) > 1 || p_.g.strides[2] > 1 || p_.adaptive) vmovups(ptr[rdx + rcx * 4 + v * vector_bytes()], vec(v));
  }
}

/// `columns` over the cell, the newest one 0. `made`: the registers hold the newest one's sums.
void AverageLastKernel::emit_cell(Body& back, const std::vector<int64_t>& columns, int vectors, int last, bool made) {
  bool started = made;
  for (int64_t column : columns) {
    if (made && column == 0) continue;
    to_column(column);
    for (int v = 0; v < vectors; ++v) {
      const auto from = ptr[rdx + rcx * 4 + v * vector_bytes()];
      started ? vaddps(vec(v), vec(v), from) : vmovups(vec(v), from);
    }
    started = true;
  }
  for (int v = 0; v < vectors; ++v) {
    const int count = v + 1 == vectors ? last : lanes();
    if (!started) broadcast_bits(vec(v), 0);
    BodyHooks hooks;
    hooks.load = [&](Xmm dst, int number) {
      to_cell(static_cast<size_t>(std::ranges::find(p_.back_in, number) - p_.back_in.begin()));
      const PoolOperand& o = operand(number);
      const int each = bits_of(o.dtype) / 8, behind = v * lanes() * each;
      if (o.c != 0 && o.begins_line(behind, lanes())) prefetcht0(ptr[rdx + rcx * each + behind + kPrefetchFromMemory]);
      load_at(dst, o, v, count);
    };
    hooks.skeleton = [&](Xmm dst) { vmovaps(dst, vec(v)); };
    hooks.store = [&](Xmm value, const Lane& lane) {
      const auto k = static_cast<size_t>(lane.imm);
      const PoolOperand& o = p_.out[k];
      const int each = bits_of(o.dtype) / 8;
      const auto to = rdx + rcx * each + v * lanes() * each;
      to_cell(p_.back_in.size() + k);
      if (o.fold != Fold::none) return fold_to_slot(value, o.fold, to, count);
      store(value, o.dtype, lane.flag, to, count, streaming_ && count == lanes());
    };
    back.emit(hooks);
  }
}

/// Of the rows of windows only the last one comes from memory. Loads alone keep too little under way, less still where
/// much is stored for each window.
void AverageLastKernel::emit_prefetches(int vectors) {
  const bool in_turns = streaming_ && p_.g.strides[2] > 1 && !reads_streams_alone();
  for (size_t k = 0; k < p_.front_in.size(); ++k) {
    const PoolOperand& o = operand(p_.front_in[k]);
    if (o.c == 0) continue;
    const int each = bits_of(o.dtype) / 8;
    mov(rdx, ptr[rsi - 8 * static_cast<int>(p_.front_in.size() - k)]);
    add(rdx, slot(front_slot(k)));
    for (int at = 0; at < vectors * lanes() * each; at += static_cast<int>(kCacheLine)) {
      const auto from = rdx + rcx * each + at;
      in_turns ? fetch_ahead(from) : prefetcht0(ptr[from + kPrefetchFromMemory]);
    }
  }
}

/// Loads vector `vector` of the place rdx.
void AverageLastKernel::load_at(const Xmm& dst, const PoolOperand& o, int vector, int count) {
  if (o.c == 0) return load(dst, o.dtype, Walk::same, rdx, count);
  const int each = bits_of(o.dtype) / 8, at = vector * lanes() * each;
  load(dst, o.dtype, Walk::next, rdx + rcx * each + at, count);
}

/// How far before a cell's last window those are that cover cell `phase` of a period.
std::vector<int64_t> AverageLastKernel::columns_over(int64_t phase) const {
  std::vector<int64_t> list;
  for (int64_t back = 0; back < p_.reach(2); ++back)
    if (p_.tap_of(2, (p_.lead() + phase) % p_.g.strides[2], back) >= 0) list.push_back(back);
  return list;
}

bool AverageLastPool::fits(const Problem& problem) {
  const AveragePlan p(problem);
  if (p.adaptive && p.g.dst[2] > p.g.src[2]) return false;
  return !p.maximum && p.channel_last && p.reach(2) <= kMostReach && p.g.strides[2] <= kMostPhases &&
         p.g.dst[2] <= INT32_MAX && p.back_in.size() + p.out.size() <= kMostOperands &&
         p.front_in.size() <= kMostOperands;
}

AverageLastPool::AverageLastPool(const Problem& problem, const Target& target)
    : p_(problem), threads_(std::max(1, target.threads)), column_weights_(p_.column_weights()) {
  const PoolGeometry& g = p_.g;
  const int64_t periods = (g.src[2] - 1) / g.strides[2] + 1;
  blocks_ = p_.column_blocks(g.strides[2] * even_part(periods, std::max(kLeastPeriods * p_.reach(2),
                                                                        kBlockElements / (g.strides[2] * g.channels))));
  for (int64_t x = 0; x < g.src[2] && p_.adaptive; ++x) {
    const std::vector<Cover> over = p_.covers(2, x);
    cells_.push_back(over.size() > 1        ? AdaptiveCell::shared
                     : over.back().tap == 0 ? AdaptiveCell::first
                                            : AdaptiveCell::inside);
  }
  size_t covers = 0;
  for (int64_t z = 0; z < g.src[0]; ++z)
    for (int64_t y = 0; y < g.src[1]; ++y) {
      over_.push_back({p_.row_covers(z, y), {}});
      for (const RowCover& c : over_.back().covers) over_.back().weights.push_back(c.weight);
      covers = std::max(covers, over_.back().covers.size());
    }
  column_bytes_ = aligned(p_.reach(2) * AverageLastKernel::column_bytes(target.isa, p_));
  together_ = g.strides[1] > 1 ? 1 : std::clamp<int64_t>(kColumnBytes / column_bytes_, 1, kRowsTogether);
  record_bytes_ = aligned(together_ * AverageLastKernel::row_bytes(p_));
  table_bytes_ = aligned(static_cast<int64_t>(covers * p_.front_in.size() * sizeof(void*)));
  scratch_ = {threads_, record_bytes_ + together_ * (table_bytes_ + column_bytes_)};
  folds_ = {problem, p_, target, std::ssize(blocks_) * calls(), scratch_.bytes()};
  kernel_ = std::make_unique<const AverageLastKernel>(target.isa, p_, problem, false);
  const int lanes = lanes_of(target.isa);
  // Cells follow each other, so whole vectors make whole cache lines.
  const auto on_vectors = [&](const PoolOperand& o) {
    const int64_t vector = lanes * bits_of(o.dtype) / 8;
    return std::ranges::all_of(std::array{o.offset, o.n, o.z, o.y, o.x}, [&](int64_t at) { return at % vector == 0; });
  };
  if (exceeds_cache(problem) && std::ranges::all_of(p_.out, on_vectors))
    streaming_ = std::make_unique<const AverageLastKernel>(target.isa, p_, problem, true);
}

Status AverageLastPool::operator()(const RunArgs& args) const {
  const bool streaming = streaming_ && outputs_aligned(args);
  const int64_t rows = p_.g.batch * p_.rows(), calls = this->calls();
  const auto part = [&](int64_t begin, int64_t end, int number) {
    const PoolFolds::Part folds(folds_, args, number);
    std::byte* scratch = scratch_.share(args.scratch, number);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % calls * together_;
      folds.unit(i, [&](const RunArgs& to) {
        run(to, streaming ? *streaming_ : *kernel_, blocks_[static_cast<size_t>(i / calls)], first,
            std::min(together_, rows - first), scratch);
      });
    }
    if (streaming) end_streaming();
  };
  parallel_for(std::ssize(blocks_) * calls, blocks_[0].cells * p_.g.channels * together_, part, threads_);
  folds_.finish(args);
  return {};
}

/// Rows [first, first + count) of a block, all batch items' in order.
void AverageLastPool::run(const RunArgs& args, const AverageLastKernel& kernel, const ColumnBlock& block, int64_t first,
                          int64_t count, std::byte* scratch) const {
  for (int64_t k = 0; k < count; ++k)
    place_row(args, block, first + k, scratch + record_bytes_ + k * (table_bytes_ + column_bytes_),
              reinterpret_cast<AverageLastRow*>(scratch + k * AverageLastKernel::row_bytes(p_)));
  const AdaptiveCell* cells = p_.adaptive ? cells_.data() + block.cell : nullptr;
  kernel({.rows = reinterpret_cast<const AverageLastRow*>(scratch),
          .row_count = count,
          .column_weights = column_weights_.data() + (p_.same_along_x ? 0 : block.window),
          .column = block.window - block.window_at,
          .cell_count = block.cells,
          .cells = cells,
          .columns_before = cells != nullptr && *cells != AdaptiveCell::first ? 1 : 0});
}

void AverageLastPool::place_row(const RunArgs& args, const ColumnBlock& block, int64_t row, std::byte* scratch,
                                AverageLastRow* to) const {
  const int64_t n = row / p_.rows(), z = row % p_.rows() / p_.g.src[1], y = row % p_.g.src[1];
  const Over& over = over_[static_cast<size_t>(row % p_.rows())];
  const void** windows = reinterpret_cast<const void**>(scratch);
  *to = {windows, over.weights.data(), std::ssize(over.covers), scratch + table_bytes_};
  const auto operand = [&](int k) -> const PoolOperand& { return p_.in[static_cast<size_t>(k)]; };
  const auto base = [&](int k) { return args.in[static_cast<size_t>(k)]; };
  for (const RowCover& c : over.covers)
    for (int k : p_.front_in) *windows++ = operand(k).at(base(k), n, 0, c.z, c.y, block.window);
  const void** cells = reinterpret_cast<const void**>(to + 1);
  for (int k : p_.back_in) *cells++ = operand(k).at(base(k), n, 0, z, y, block.cell);
  for (size_t k = 0; k < p_.out.size(); ++k) *cells++ = p_.out[k].at(args.out[k], n, 0, z, y, block.cell);
}

}  // namespace partita::jit
