// SPDX-License-Identifier: Apache-2.0
// Code of planes: rcx first window, or first period of cells, of a group, r9 first cell of the group, r8 rows of
// periods left, rax and rdx for a moment. Vectors of the search: the best tap, a tap, the winners' numbers, source
// cells; of the cells: the sum of each cell of a period; from indices, what was found; then those of front and of back.
#include "kernels/jit/pool_plane_period_kernel.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "kernels/jit/pool_names.hpp"
#include "src/base/cpu.hpp"
#include "src/base/dtype.hpp"

namespace partita::jit {
namespace {

using Xbyak::RegExp;
using Xbyak::Xmm;

constexpr int32_t kNoWinner = std::numeric_limits<int32_t>::min();

int64_t rounded_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

}  // namespace

size_t PlanePeriodKernel::streams_of(const PoolPlan& p) {
  return (p.indices >= 0 ? 2 : 1) + p.front_in.size() + p.back_in.size() + p.out.size() +
         static_cast<size_t>(p.reach(1));
}

int64_t PlanePeriodKernel::windows_before(const PoolPlan& p, Isa isa) { return rounded_up(p.reach(2), lanes_of(isa)); }

/// Groups of cells read a vector of windows from each place that their last period sees.
int64_t PlanePeriodKernel::windows_of_row(const PoolPlan& p, Isa isa) {
  const int64_t periods = rounded_up(p.g.src[2], p.g.strides[2] * lanes_of(isa)) / p.g.strides[2];
  const int64_t behind = (p.g.strides[2] - 1 + p.g.pads_begin[2]) / p.g.strides[2];
  return windows_before(p, isa) + rounded_up(std::max(periods + behind, p.g.dst[2]), lanes_of(isa));
}

PlanePeriodKernel::PlanePeriodKernel(Isa isa, const PoolPlan& plan, const Problem& problem, int piece)
    : PoolCode(isa, plan),
      streaming_(piece > 0),
      gradients_at_(windows_of_row(plan, isa) * 4),
      folds_(*this, p_.out, 1, reserve(HeldFolds::registers(*this, p_.out, 1))) {
  if (streaming_ && !reads_streams_alone()) fetch_in_turns();
  if (piece > 0 && piece < 64) stream_in_pieces(piece);
  add_streams();
  const int taken = search_registers() + 1 + row_tap_registers();
  entry_ = reinterpret_cast<void (*)(const PlanePeriodCall*)>(reinterpret_cast<uintptr_t>(
      emit_all(problem, taken, [&](Body& front, Body& back) { emit_planes(front, back); })));
}

void PlanePeriodKernel::add_streams() {
  const int64_t step = p_.g.strides[1];
  if (from_indices()) {
    add_stream(p_.in[static_cast<size_t>(p_.indices)].y);
    add_stream(p_.g.src[2] * step * p_.base.cell);
  } else {
    add_stream(p_.in[0].y * step);
  }
  for (int k : p_.front_in) add_stream(p_.in[static_cast<size_t>(k)].y);
  for (int k : p_.back_in) add_stream(p_.in[static_cast<size_t>(k)].y * step);
  for (const PoolOperand& o : p_.out) add_stream(o.y * step);
  for (int64_t b = 0; b < p_.reach(1); ++b) add_stream(0);
}

/// Rows of periods that are alike are a loop.
void PlanePeriodKernel::emit_planes(Body& front, Body& back) {
  const int64_t periods = periods_of(p_, 1);
  folds_.emit_start();
  if (from_indices()) {
    mov(rax, ptr[rdi + offsetof(PlanePeriodCall, counts)]);
    vmovups(counts(), ptr[rax]);
  }
  for (int64_t period = 0, end = 0; period < periods; period = end) {
    const PeriodPart rows = period_part(p_, 1, period);
    for (end = period + 1; end < periods && period_part(p_, 1, end) == rows;) ++end;
    Xbyak::Label next;
    mov(r8, end - period);
    align(16);
    L(next);
    if (rows.window()) emit_search(front, rows);
    emit_cells(back, rows);
    advance_streams();
    rotate_kept();
    dec(r8);
    jnz(next, T_NEAR);
  }
  folds_.emit_end(1, slots());
  if (!from_indices()) return;
  mov(rax, ptr[rdi + offsetof(PlanePeriodCall, counts)]);
  vmovups(ptr[rax], counts());
}

HeldFolds::Place PlanePeriodKernel::slots() {
  return [this](size_t k, int) {
    mov(rdx, slot(out_stream(k)));
    return Xbyak::RegExp(rdx);
  };
}

/// The row that nothing needs any more is the next one's.
void PlanePeriodKernel::rotate_kept() {
  mov(rax, slot(kept_stream(0)));
  for (int64_t b = 1; b < p_.reach(1); ++b) {
    mov(rdx, slot(kept_stream(b)));
    mov(slot(kept_stream(b)), rax);
    mov(rax, rdx);
  }
  mov(slot(kept_stream(0)), rax);
}

void PlanePeriodKernel::emit_search(Body& front, const PeriodPart& rows) {
  const int64_t windows = p_.g.dst[2];
  for (int64_t first = 0, end = 0; first < windows; first = end) {
    end = first + lanes();
    mov(rcx, first);
    if (!inside_row(first) || end > windows) {
      search_group(front, rows, first);
      continue;
    }
    while (inside_row(end) && end + lanes() <= windows) end += lanes();
    Xbyak::Label next;
    align(16);
    L(next);
    search_group(front, rows, first);
    add(rcx, lanes());
    cmp(rcx, static_cast<uint32_t>(end));
    jl(next, T_NEAR);
  }
}

/// A vector of windows from rcx on, which is `first` unless all of them are inside.
void PlanePeriodKernel::search_group(Body& front, const PeriodPart& rows, int64_t first) {
  const PoolGeometry& g = p_.g;
  const auto count = static_cast<int>(std::min<int64_t>(lanes(), g.dst[2] - first));
  imul(r9, rcx, static_cast<int>(stride()));
  const Xmm winner = vec(search_registers()), gradient = vec(kBest);
  if (from_indices())
    load_winners(winner, count);
  else
    find_row_winner(winner, {rows.first_tap, rows.end_tap, 0, g.kernel[2]}, first, 0,
                    [&](int64_t row) { return (row * g.dilations[1] - g.pads_begin[1]) * p_.in[0].y; });
  // Whole vectors: stores under masks hand nothing on to loads.
  if (count < lanes()) {
    std::vector<bool> missing(static_cast<size_t>(lanes()), false);
    std::fill(missing.begin() + count, missing.end(), true);
    set_lanes(winner, missing, -1);
  }
  mov(rdx, slot(kept_stream(0)));
  store_bytes(winner, 4, rdx + rcx * 4, lanes(), false);
  emit_gradient(front, gradient, [&](Xmm dst, const PoolOperand& o, size_t k) {
    const bool same = o.x == 0;
    mov(rdx, slot(front_stream(k)));
    load_elements(dst, o, same, same ? RegExp(rdx) : rdx + rcx * (bits_of(o.dtype) / 8), count, true);
  });
  mov(rdx, slot(kept_stream(0)));
  store_bytes(gradient, 4, rdx + rcx * 4 + static_cast<int>(gradients_at_), lanes(), false);
}

/// What is before the window's first tap becomes -1.
void PlanePeriodKernel::load_winners(const Xmm& winner, int count) {
  const PoolOperand& indices = p_.in[static_cast<size_t>(p_.indices)];
  const Xmm first = scratch(1), low(first.getIdx());
  imul(rax, r9, static_cast<int>(p_.base.cell));
  add(rax, slot(1));
  vmovq(low, rax);
  indices.dtype == Dtype::s64 ? vpbroadcastq(first, low) : vpbroadcastd(first, low);
  mov(rdx, slot(0));
  load_names(*this, indices.dtype, {winner.getIdx(), first.getIdx(), {scratch(2).getIdx(), scratch(3).getIdx()}},
             rdx + rcx * (bits_of(indices.dtype) / 8), count);
  std::vector<int32_t> starts;
  for (int64_t l = 0; l < lanes(); ++l) starts.push_back(static_cast<int32_t>(l * stride() * p_.base.cell));
  vpsubd(winner, winner, pattern(starts));
  vpmaxsd(winner, winner, pattern(everywhere(-1)));
}

/// What a winner is called where tap (y, x) won, for each cell of the phase among the group's first `cells`; where
/// there is no such cell, what no winner is called.
std::vector<int32_t> PlanePeriodKernel::names(int64_t y, int64_t x, int64_t phase, int64_t cells) const {
  const PoolGeometry& g = p_.g;
  if (!from_indices()) return everywhere(y * g.kernel[2] + x);
  std::vector<int32_t> list = everywhere((y * g.dilations[1] * g.src[2] + x * g.dilations[2]) * p_.base.cell);
  for (int64_t l = 0; l < lanes(); ++l)
    if (l * stride() + phase >= cells) list[static_cast<size_t>(l)] = kNoWinner;
  return list;
}

/// Cells are stored in the order of memory, vectors of `stride` times as many as periods.
void PlanePeriodKernel::emit_cells(Body& back, const PeriodPart& rows) {
  const int64_t group = lanes() * stride(), whole = p_.g.src[2] / group, rest = p_.g.src[2] % group;
  for (int64_t row = rows.first_cell; row < rows.end_cell; ++row) {
    xor_(ecx, ecx);
    xor_(r9d, r9d);
    Xbyak::Label next;
    if (whole > 0) {
      align(16);
      L(next);
      emit_group(back, rows, row, group);
      add(rcx, lanes());
      add(r9, static_cast<uint32_t>(group));
      if (whole > 1) {
        cmp(rcx, static_cast<uint32_t>(whole * lanes()));
        jl(next, T_NEAR);
      }
    }
    if (rest > 0) emit_group(back, rows, row, rest);
  }
}

void PlanePeriodKernel::emit_group(Body& back, const PeriodPart& rows, int64_t row, int64_t cells) {
  std::vector<bool> any(static_cast<size_t>(stride()), false);
  for (int64_t back_y = rows.end_back; back_y-- > rows.first_back;)
    if (const int64_t y = p_.tap_of(1, row, back_y); y >= 0) add_windows(back_y, y, cells, any);
  for (int64_t phase = 0; phase < stride(); ++phase)
    if (!any[static_cast<size_t>(phase)]) broadcast_bits(vec(static_cast<int>(phase)), 0);
  for (int64_t v = 0; v * lanes() < cells; ++v)
    emit_vector(back, row, v, static_cast<int>(std::min<int64_t>(lanes(), cells - v * lanes())));
}

/// Adds to vec(phase) the gradients that every stride-th cell won in a row of windows, whose taps of row `y` lie on the
/// cells. Windows are added in the order of PeriodKernel. What several phases read stays in registers.
void PlanePeriodKernel::add_windows(int64_t back_y, int64_t y, int64_t cells, std::vector<bool>& any) {
  struct Read {
    int64_t at;
    Xmm winner;
    std::optional<Xmm> gradient;  // none: where registers do not suffice, it is read where it lies
  };
  const auto first_free = static_cast<int>(kMostStride);
  const int free = search_registers() + 1 + row_tap_registers() - first_free;
  std::vector<Read> reads;
  const auto read = [&](int64_t at) {
    const auto before = std::ranges::find(reads, at, &Read::at);
    if (before != reads.end()) return *before;
    const int reg = first_free + 2 * static_cast<int>(reads.size());
    const bool stays = wide() && 2 * static_cast<int>(reads.size() + 1) <= free;
    mov(rdx, slot(kept_stream(back_y)));
    Read made{at, stays ? vec(reg) : scratch(0), {}};
    vmovups(made.winner, ptr[rdx + rcx * 4 + static_cast<int>(at)]);
    if (!stays) return made;
    vmovups(made.gradient.emplace(vec(reg + 1)), ptr[rdx + rcx * 4 + static_cast<int>(at + gradients_at_)]);
    return reads.emplace_back(made);
  };
  const Xmm found = counts();
  for (int64_t phase = 0; phase < stride(); ++phase)
    for (int64_t back_x = 0; back_x < p_.reach(2); ++back_x) {
      const int64_t place = phase + p_.g.pads_begin[2], x = p_.tap_of(2, place % stride(), back_x);
      if (x < 0) continue;
      const Read r = read((place / stride() - back_x) * 4);
      const auto add = [&](const Xbyak::Operand& gradient) {
        add_won(vec(static_cast<int>(phase)), !any[static_cast<size_t>(phase)], r.winner, gradient,
                names(y, x, phase, cells), from_indices() ? &found : nullptr);
      };
      if (r.gradient)
        add(*r.gradient);
      else
        add(ptr[rdx + rcx * 4 + static_cast<int>(r.at + gradients_at_)]);
      any[static_cast<size_t>(phase)] = true;
    }
}

void PlanePeriodKernel::emit_vector(Body& back, int64_t row, int64_t vector, int count) {
  BodyHooks hooks;
  hooks.load = [&](Xmm dst, int operand) {
    const auto k = static_cast<size_t>(std::ranges::find(p_.back_in, operand) - p_.back_in.begin());
    const PoolOperand& o = p_.in[static_cast<size_t>(operand)];
    mov(rdx, slot(back_stream(k)));
    load_elements(dst, o, o.x == 0, cell_at(o, row, vector * lanes()), count,
                  o.begins_line(vector * lanes() * bits_of(o.dtype) / 8, lanes()));
  };
  hooks.skeleton = [&](Xmm dst) {
    if (stride() == 1) return vmovaps(dst, vec(0));
    const auto place = [&](int l) {
      const int64_t cell = vector * lanes() + l;
      return cell % stride() * lanes() + cell / stride();
    };
    for (int phase = 0; phase < stride(); ++phase) {
      Xmm from = vec(phase);
      if (!wide()) vmovaps(from = scratch(1), vec(phase));
      merge_lanes(dst, from, phase, false, place);
    }
  };
  hooks.store = [&](Xmm value, const Lane& lane) {
    const PoolOperand& o = p_.out[static_cast<size_t>(lane.imm)];
    if (o.fold != Fold::none) return folds_.emit_fold(static_cast<size_t>(lane.imm), 0, value, count, slots());
    mov(rdx, slot(out_stream(static_cast<size_t>(lane.imm))));
    store(value, o.dtype, lane.flag, cell_at(o, row, vector * lanes()), count, streaming_);
  };
  back.emit(hooks);
}

/// Of a cell of the group in row `row` of the period, from rdx on, which holds the place of row 0 as many periods
/// further.
RegExp PlanePeriodKernel::cell_at(const PoolOperand& o, int64_t row, int64_t cell) const {
  const int each = bits_of(o.dtype) / 8;
  const RegExp at = rdx + static_cast<int>((row - p_.g.pads_begin[1]) * o.y);
  return o.x == 0 ? at : at + r9 * each + static_cast<int>(cell * each);
}

}  // namespace partita::jit
