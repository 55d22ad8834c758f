// SPDX-License-Identifier: Apache-2.0
// Code of planes: rcx first window, or first period of cells, of a group, r9 first cell of the group, r8 rows of
// periods left, rax and rdx for a moment. Vectors of the search: the best tap, a tap, the winners' numbers, source
// cells; of the cells: the sum of each cell of a period; from indices, what was found; then those of front and of back.
#include "kernels/jit/pool/backward/plane_period_kernel.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "kernels/jit/pool/names.hpp"
#include "src/base/cpu.hpp"
#include "src/base/dtype.hpp"
#include "src/base/round.hpp"

namespace partita::jit {
namespace {

using Xbyak::RegExp;
using Xbyak::Xmm;
using Xbyak::Ymm;
using Xbyak::Zmm;

}  // namespace

size_t PlanePeriodKernel::streams_of(const PoolPlan& p, Isa isa) {
  return (p.indices >= 0 ? 2 : 1) + p.front_in.size() + p.back_in.size() + (1 + kLineStreams) * p.out.size() +
         static_cast<size_t>(kept_rows(p) + shared_rows(p, isa));
}

/// Whether sums of two phases become a vector of elements of 16 bits.
bool PlanePeriodKernel::keeps_words() const {
  const auto is_like = [&](const PoolOperand& o) { return o.dtype == p_.in[0].dtype && o.x == 2; };
  return in_words_ && stride() == 2 && !p_.has_folds() && std::ranges::all_of(p_.out, is_like) &&
         std::ranges::all_of(p_.back_in, [&](int k) { return is_like(p_.in[static_cast<size_t>(k)]); });
}

/// Vectors of words are deinterleaved in one step.
bool PlanePeriodKernel::searches_words(const PoolPlan& p, Isa isa) {
  const PoolOperand& source = p.in[0];
  return isa == Isa::avx512 && p.indices < 0 && (source.dtype == Dtype::bf16 || source.dtype == Dtype::f16) &&
         source.x == 2 && (p.g.strides[2] == 1 || (p.g.strides[2] == 2 && p.g.dilations[2] == 1));
}

int64_t PlanePeriodKernel::shared_rows(const PoolPlan& p, Isa isa) {
  const bool in_floats = isa == Isa::avx512 && p.indices < 0 && p.in[0].dtype == Dtype::f32;
  if (!(in_floats || searches_words(p, isa)) || p.g.dilations[1] != 1) return 0;
  return std::max<int64_t>(0, p.g.kernel[1] - p.g.strides[1]);
}

int64_t PlanePeriodKernel::shared_row_bytes(const PoolPlan& p, Isa isa) {
  return windows_of_row(p, isa) * 4 * kSharedParts;
}

int64_t PlanePeriodKernel::windows_before(const PoolPlan& p, Isa isa) { return rounded_up(p.reach(2), lanes_of(isa)); }

/// Groups of cells read a vector of windows from each place that their last period sees.
int64_t PlanePeriodKernel::windows_of_row(const PoolPlan& p, Isa isa) {
  const int64_t periods = rounded_up(p.g.src[2], p.g.strides[2] * lanes_of(isa)) / p.g.strides[2];
  const int64_t behind = (p.g.strides[2] - 1 + p.g.pads_begin[2]) / p.g.strides[2];
  const int64_t together = side_by_side(p, isa) == 1 ? 0 : searches_words(p, isa) ? kWords : lanes_of(isa);
  return windows_before(p, isa) + rounded_up(std::max(std::max(periods, together) + behind, p.g.dst[2]), lanes_of(isa));
}

PlanePeriodKernel::PlanePeriodKernel(Isa isa, const PoolPlan& plan, const Problem& problem, const PlaneStores& stores)
    : PoolCode(isa, plan),
      streaming_(stores.piece > 0),
      staged_(stores.is_staged),
      planes_(stores.side_by_side),
      in_words_(searches_words(plan, isa)),
      shared_(shared_rows(plan, isa)),
      gradients_at_(windows_of_row(plan, isa) * 4),
      counts_(wide() ? reserve(from_indices() ? 1 : 0) : static_cast<int>(kMostStrideFromIndices)),
      folds_(*this, p_.out, 1, reserve(HeldFolds::registers(*this, p_.out, 1))) {
  if (keeps_words()) choices_ = choices_of(plan, problem);
  // Rows of several planes are many streams.
  if ((streaming_ || staged_) && planes_ == 1 && !reads_streams_alone()) fetch_by(Fetching::in_turns());
  if (stores.piece > 0 && stores.piece < kCacheLine) stream_in_pieces(stores.piece);
  add_streams();
  hold_streams(lines_stream(0));
  entry_ = reinterpret_cast<void (*)(const PlanePeriodCall*)>(reinterpret_cast<uintptr_t>(
      emit_all(problem, taken(), [&](Body& front, Body& back) { emit_planes(front, back); })));
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
  for (int64_t b = 0; b < kept_rows(p_) + shared_; ++b) add_stream(0);
  for (size_t k = 0; staged_ && k < kLineStreams * p_.out.size(); ++k) add_stream(0);
}

/// A row of windows is searched before the cells of the row above are stored: cells read neighbouring windows, which is
/// possible when they have left the processor's queue of stores, and those of cells leave it at the speed of memory.
void PlanePeriodKernel::emit_planes(Body& front, Body& back) {
  folds_.emit_start();
  prepare_words();
  hold_masks();
  if (from_indices()) {
    mov(rax, ptr[rdi + offsetof(PlanePeriodCall, counts)]);
    vmovups(counts(), ptr[rax]);
  }
  for (int64_t i = 0, end = 0; i < steps(); i = end) {
    const Step step = step_of(i);
    for (end = i + 1; end < steps() && step_of(end) == step;) ++end;
    Xbyak::Label next;
    mov(r8, end - i);
    align(16);
    L(next);
    emit_step(front, back, step);
    if (staged_) emit_lines();
    advance_streams(0, back_stream(0));
    if (i > 0) advance_streams(back_stream(0), kept_stream(0));
    rotate(kept_stream(0), kept_rows(p_), kept_rows(p_) - 1);
    rotate(shared_stream(0), shared_, p_.g.strides[1]);
    dec(r8);
    jnz(next, T_NEAR);
  }
  folds_.emit_end(1, folds_at(out_stream(0)));
  if (!from_indices()) return;
  mov(rax, ptr[rdi + offsetof(PlanePeriodCall, counts)]);
  vmovups(ptr[rax], counts());
}

/// Of parts of vectors that stand for planes side by side; the search has the masks up to k3.
void PlanePeriodKernel::hold_masks() {
  if (planes_ == 1) return;
  const auto width = static_cast<int>(p_.g.src[2]), windows = static_cast<int>(p_.g.dst[2]);
  const bool in_pairs = choices_ && width % 2 == 0;
  hold_mask(0, std::min(in_pairs ? width / 2 : width, choices_ ? kWords : lanes()));
  for (int q = 0; q < std::min(planes_of_vector(), 2); ++q)
    hold_mask(q * lanes_of_plane(), q * lanes_of_plane() + windows);
}

/// Of a plane before, so that stores to memory go on all the time.
void PlanePeriodKernel::emit_lines() {
  for (size_t k = 0; k < p_.out.size(); ++k)
    if (p_.out[k].fold == Fold::none) send_lines(lines_stream(k), lines_of_step(p_.out[k]));
}

int64_t PlanePeriodKernel::lines_of_step(const PoolOperand& o) const {
  return PoolCode::lines_of_step(planes_ * result_apart(o), steps());
}

int64_t PlanePeriodKernel::lines_sent(const PoolOperand& o, int64_t lines) const {
  return PoolCode::lines_sent(lines, lines_of_step(o), steps());
}

PlanePeriodKernel::Step PlanePeriodKernel::step_of(int64_t i) const {
  Step step;
  if (i < periods_of(p_, 1)) step.search = period_part(p_, 1, i);
  step.search_beside = planes_ > 1 && step.search.window() && reads_beside(step.search, i);
  if (i > 0) step.cells = period_part(p_, 1, i - 1);
  step.shares = i > 0;
  return step;
}

/// Whether what whole loads of the rows read before and behind them is of the same plane.
bool PlanePeriodKernel::reads_beside(const PeriodPart& rows, int64_t window) const {
  const PoolGeometry& g = p_.g;
  const PoolOperand& source = p_.in[0];
  const int64_t start = window * g.strides[1] * source.y;  // from the plane's first row to where the stream is
  const int64_t plane = (g.src[1] - 1) * source.y + g.src[2] * source.x;
  const int64_t last_tap = (g.kernel[2] - 1) * g.dilations[2], each = windows_together() * stride() / planes_;
  const int64_t first = start + source_row(rows.first_tap) - g.pads_begin[2] * source.x;
  const int64_t end = start + source_row(rows.end_tap - 1) + (last_tap - g.pads_begin[2] + each) * source.x;
  return source.y > 0 && first >= 0 && end <= plane;
}

/// Stream `first` + i becomes what `first` + i + by was, modulo `count`: rows that nothing needs any more are the next
/// ones'.
void PlanePeriodKernel::rotate(size_t first, int64_t count, int64_t by) {
  const auto n = static_cast<size_t>(count), step = static_cast<size_t>(count > 0 ? by % count : 0);
  if (step == 0) return;
  for (size_t start = 0; start < std::gcd(n, step); ++start) {
    mov(rax, at(first + start));
    size_t to = start;
    for (size_t from; (from = (to + step) % n) != start; to = from) {
      set_stream(first + to, at(first + from));
    }
    set_stream(first + to, rax);
  }
}

/// Windows and cells take turns, so that cells drain to memory while windows are searched.
void PlanePeriodKernel::emit_step(Body& front, Body& back, const Step& step) {
  // Rows of planes side by side are as wide as what is searched together.
  const int64_t together = windows_together();
  const int64_t windows = !step.search.window() ? 0 : planes_ > 1 ? together : p_.g.dst[2];
  const int64_t cells = !step.cells.cells() ? 0 : planes_ > 1 ? together * stride() : p_.g.src[2];
  const auto emit = [&](int64_t first) {
    imul(r9, rcx, static_cast<int>(stride()));
    if (first < windows) search_group(front, step, first);
    emit_cells(back, step.cells, std::min(together * stride(), cells - first * stride()));
  };
  const auto alike = [&](int64_t first) {
    const bool all_windows = inside_row(first, together) && first + together <= windows;
    return (windows == 0 || all_windows) && (cells == 0 || (first + together) * stride() <= cells);
  };
  for (int64_t first = 0, end = 0; first < windows || first * stride() < cells; first = end) {
    end = first + together;
    mov(rcx, first);
    if (!alike(first)) {
      emit(first);
      continue;
    }
    while (alike(end)) end += together;
    Xbyak::Label next;
    align(16);
    L(next);
    emit(first);
    if (end == first + together) continue;
    add(rcx, static_cast<uint32_t>(together));
    cmp(rcx, static_cast<uint32_t>(end));
    jl(next, T_NEAR);
  }
}

/// Windows from rcx on, which is `first` unless all of them are inside: a vector, or two of those that are searched as
/// words.
void PlanePeriodKernel::search_group(Body& front, const Step& step, int64_t first) {
  const int64_t most = windows_together(), count = planes_ > 1 ? most : std::min(most, p_.g.dst[2] - first);
  const Xmm winner = vec(search_registers());
  if (in_words_) {
    search_words(step, first, static_cast<int>(count));
  } else if (from_indices()) {
    load_winners(winner, static_cast<int>(count));
    keep_winners(winner, 0, static_cast<int>(count));
  } else {
    search_floats(step, first, 0, static_cast<int>(count), false);
  }
  for (int behind = 0; behind < count; behind += lanes())
    keep_gradients(front, behind, std::min(lanes(), static_cast<int>(count) - behind));
}

/// The windows `behind` those at rcx.
void PlanePeriodKernel::search_floats(const Step& step, int64_t first, int behind, int count, bool has_nan) {
  const PeriodPart& rows = step.search;
  const SharedRows of_windows{step.shares ? shared_ : 0, p_.g.strides[1], [&](int64_t row, int part) {
                                return at(shared_stream(row % shared_)) + rcx * 4 +
                                       static_cast<int>(behind * 4 + part * gradients_at_);
                              }};
  const SharedRows* const shared = shared_ > 0 && !has_nan ? &of_windows : nullptr;
  if (planes_ > 1) return search_planes(step, behind, has_nan, shared);
  const Xmm winner = vec(search_registers());
  const auto load = [&](int64_t row, int64_t tap) {
    load_row_tap(0, source_row(row), tap, first + behind, !has_nan && new_tap(row, tap));
  };
  find_row_maximum(winner, {rows.first_tap, rows.end_tap, 0, p_.g.kernel[2]}, first + behind, load, tap_numbers(),
                   has_nan, shared);
  keep_winners(winner, behind, count);
}

/// Bytes from where the stream of the source is to the row of taps.
int64_t PlanePeriodKernel::source_row(int64_t row) const {
  return (row * p_.g.dilations[1] - p_.g.pads_begin[1]) * p_.in[0].y;
}

void PlanePeriodKernel::keep_winners(const Xmm& winner, int behind, int count) {
  set_lanes(winner, no_windows(behind, count), -1);
  store_winners(winner, behind);
}

/// Whole vectors: stores under masks hand nothing on to loads.
void PlanePeriodKernel::store_winners(const Xmm& winner, int behind) {
  store_bytes(winner, 4, at(kept_stream(0)) + rcx * 4 + behind * 4, lanes(), false);
}

void PlanePeriodKernel::keep_gradients(Body& front, int behind, int count) {
  const Xmm gradient = vec(kBest);
  emit_gradient(front, gradient, [&](Xmm dst, const PoolOperand& o, size_t k) {
    const bool same = o.x == 0;
    const int each = element_bytes(o.dtype);
    const Xbyak::Reg64 windows = at(front_stream(k));
    if (planes_ > 1 && !same) return load_gradients_of_planes(dst, o, windows, behind);
    load_elements(dst, o, same, same ? RegExp(windows) : windows + rcx * each + behind * each, count,
                  o.begins_line(behind * each, lanes()));
  });
  store_bytes(gradient, 4, at(kept_stream(0)) + rcx * 4 + static_cast<int>(gradients_at_) + behind * 4, lanes(), false);
}

/// What is before the window's first tap becomes -1.
void PlanePeriodKernel::load_winners(const Xmm& winner, int count) {
  const PoolOperand& indices = p_.in[static_cast<size_t>(p_.indices)];
  const Xmm first = scratch(1), low(first.getIdx());
  imul(rax, r9, static_cast<int>(p_.base.cell));
  add(rax, at(1));
  vmovq(low, rax);
  indices.dtype == Dtype::s64 ? vpbroadcastq(first, low) : vpbroadcastd(first, low);
  load_names(*this, indices.dtype, {winner.getIdx(), first.getIdx(), {scratch(2).getIdx(), scratch(3).getIdx()}},
             at(0) + rcx * element_bytes(indices.dtype), count);
  std::vector<int32_t> starts;
  for (int64_t l = 0; l < lanes(); ++l) starts.push_back(static_cast<int32_t>(l * stride() * p_.base.cell));
  vpsubd(winner, winner, pattern(starts));
  vpmaxsd(winner, winner, pattern(everywhere(-1)));
}

/// What a winner is called where tap (y, x) won, for each cell of the phase among the group's first `cells`, whose
/// windows are `behind` the lane's; where there is no such cell or window, what no winner is called.
std::vector<int32_t> PlanePeriodKernel::names(int64_t y, int64_t x, int64_t phase, int64_t cells,
                                              int64_t behind) const {
  const PoolGeometry& g = p_.g;
  if (planes_ > 1) return names_of_planes(y * g.kernel[2] + x, behind);
  if (!from_indices()) return everywhere(y * g.kernel[2] + x);
  std::vector<int32_t> list = everywhere((y * g.dilations[1] * g.src[2] + x * g.dilations[2]) * p_.base.cell);
  for (int64_t l = 0; l < lanes(); ++l)
    if (l * stride() + phase >= cells) list[static_cast<size_t>(l)] = kNoWinner;
  return list;
}

/// `cells` cells of each row, from r9 on, those of as many windows from rcx on as a vector has lanes at a time.
void PlanePeriodKernel::emit_cells(Body& back, const PeriodPart& rows, int64_t cells) {
  const int64_t group = lanes() * stride();
  for (int64_t behind = 0; behind < cells; behind += group)
    for (int64_t row = rows.first_cell; row < rows.end_cell; row += rows_at_once())
      emit_group(back, rows,
                 {row, std::min(row + rows_at_once(), rows.end_cell), behind, std::min(group, cells - behind)});
}

/// Cells are stored in the order of memory, vectors of `stride` times as many as periods.
void PlanePeriodKernel::emit_group(Body& back, const PeriodPart& rows, const CellGroup& group) {
  std::vector<bool> any(static_cast<size_t>(rows_at_once() * stride()), false);
  for (int64_t back_y = rows.end_back; back_y-- > rows.first_back;) add_windows(back_y, group, any);
  for (int64_t row = group.row; row < group.end_row; ++row) {
    const auto sums = static_cast<int>((row - group.row) * stride());
    for (int sum = sums; sum < sums + stride(); ++sum)
      if (!any[static_cast<size_t>(sum)]) broadcast_bits(vec(sum), 0);
    if (choices_) pack_sums(sums);
    for (const PlanePart& part : parts_of(group)) {
      if (choices_) {
        store_chosen(sums, row, part);
        continue;
      }
      for (int64_t v = 0; v * lanes() < part.cells; ++v) emit_vector(back, sums, row, part, v);
    }
  }
}

std::vector<PlanePeriodKernel::PlanePart> PlanePeriodKernel::parts_of(const CellGroup& group) const {
  if (planes_ == 1) return {{0, 0, group.behind, group.cells}};
  std::vector<PlanePart> parts;
  const auto first = static_cast<int>(group.behind / stride() / lanes_of_plane());
  for (int q = 0; q < planes_of_vector(); ++q) parts.push_back({first + q, q * lanes_of_plane(), 0, p_.g.src[2]});
  return parts;
}

/// Adds to the cells' sums the gradients that they won in a row of windows. Windows are added in the order of
/// PeriodKernel. What several sums read stays in registers.
void PlanePeriodKernel::add_windows(int64_t back_y, const CellGroup& group, std::vector<bool>& any) {
  struct Read {
    int64_t at;
    Xmm winner;
    std::optional<Xmm> gradient;  // none: where registers do not suffice, it is read where it lies
  };
  const auto first_free = static_cast<int>(kMostStride);
  const int free = taken() - first_free;
  std::vector<Read> reads;
  Xbyak::Reg64 kept;
  const auto read = [&](int64_t place) {
    const auto before = std::ranges::find(reads, place, &Read::at);
    if (before != reads.end()) return *before;
    const int reg = first_free + 2 * static_cast<int>(reads.size());
    const bool stays = wide() && 2 * static_cast<int>(reads.size() + 1) <= free;
    kept = at(kept_stream(1 + back_y));
    Read made{place, stays ? vec(reg) : scratch(0), {}};
    vmovups(made.winner, ptr[kept + rcx * 4 + static_cast<int>(place)]);
    if (!stays) return made;
    vmovups(made.gradient.emplace(vec(reg + 1)), ptr[kept + rcx * 4 + static_cast<int>(place + gradients_at_)]);
    return reads.emplace_back(made);
  };
  const auto add_to = [&](int64_t row, int64_t phase, int64_t back_x) {
    const int64_t place = phase + p_.g.pads_begin[2], x = p_.tap_of(2, place % stride(), back_x);
    const int64_t y = p_.tap_of(1, row, back_y);
    if (x < 0 || y < 0) return;
    const int64_t behind = place / stride() - back_x;
    const Read r = read((group.behind / stride() + behind) * 4);
    const auto sum = static_cast<size_t>((row - group.row) * stride() + phase);
    const Xmm found = counts();
    const auto add = [&](const Xbyak::Operand& gradient) {
      add_won(vec(static_cast<int>(sum)), !any[sum], r.winner, gradient, names(y, x, phase, group.cells, behind),
              from_indices() ? &found : nullptr);
    };
    if (r.gradient)
      add(*r.gradient);
    else
      add(ptr[kept + rcx * 4 + static_cast<int>(r.at + gradients_at_)]);
    any[sum] = true;
  };
  // One after the other to different sums, each of which waits for what it had before.
  for (int64_t back_x = 0; back_x < p_.reach(2); ++back_x)
    for (int64_t row = group.row; row < group.end_row; ++row)
      for (int64_t phase = 0; phase < stride(); ++phase) add_to(row, phase, back_x);
}

/// The sums of a row of cells, of two phases, become elements of 16 bits in the order of memory, which is that of the
/// planes.
void PlanePeriodKernel::pack_sums(int sums) {
  const Zmm packed(sums);
  compute({.op = LaneOp::pack, .imm = static_cast<int32_t>(p_.out[0].dtype)}, packed, vec(sums), vec(sums + 1),
          vec(sums));
  vpermw(packed, held_vector(scratch(1), held_words(halves_in_turns())), packed);
}

void PlanePeriodKernel::store_chosen(int sums, int64_t row, const PlanePart& part) {
  const Zmm packed(sums);
  const auto count = static_cast<int>(part.cells);
  if (part.lane > 0) vextracti64x4(Ymm(packed.getIdx()), packed, 1);  // the second one of two planes
  for (size_t k = 0; k < p_.out.size(); ++k) {
    const Zmm chosen = chosen_words(packed, (*choices_)[k], count, [&](const PoolOperand& o, size_t number) {
      const RegExp from = cell_at(o, at(back_stream(number)), row, part.cell, part.plane * operand_apart(o));
      if (p_.back_in[number] != 0) fetch(from);  // the source has been read already
      return from;
    });
    const RegExp to = cell_at(p_.out[k], at(out_stream(k)), row, part.cell, part.plane * result_apart(p_.out[k]));
    store_words(chosen, to, count, streaming_);
  }
}

/// Vector `vector` of the part's cells.
void PlanePeriodKernel::emit_vector(Body& back, int sums, int64_t row, const PlanePart& part, int64_t vector) {
  const int64_t first = vector * lanes();
  const auto count = static_cast<int>(std::min<int64_t>(lanes(), part.cells - first));
  BodyHooks hooks;
  hooks.load = [&](Xmm dst, int operand) {
    const auto k = static_cast<size_t>(std::ranges::find(p_.back_in, operand) - p_.back_in.begin());
    const PoolOperand& o = p_.in[static_cast<size_t>(operand)];
    const RegExp from = cell_at(o, at(back_stream(k)), row, part.cell + first, part.plane * operand_apart(o));
    load_elements(dst, o, o.x == 0, from, count, o.begins_line((part.cell + first) * element_bytes(o.dtype), lanes()));
  };
  hooks.skeleton = [&](Xmm dst) {
    if (stride() == 1 && planes_ == 1) return vmovaps(dst, vec(sums));
    if (!wide() && stride() == 2 && planes_ == 1) return lanes_in_turns(dst, vec(sums), vec(sums + 1), first > 0);
    const auto place = [&](int l) {
      const int64_t cell = first + l, lane = std::min<int64_t>(part.lane + cell / stride(), lanes() - 1);
      return cell % stride() * lanes() + lane;
    };
    for (int phase = 0; phase < stride(); ++phase) {
      Xmm from = vec(sums + phase);
      if (!wide()) vmovaps(from = scratch(1), vec(sums + phase));
      merge_lanes(dst, from, phase, stride() == 1, place);
    }
  };
  hooks.store = [&](Xmm value, const Lane& lane) {
    const PoolOperand& o = p_.out[static_cast<size_t>(lane.imm)];
    if (o.fold != Fold::none)
      return folds_.emit_fold(static_cast<size_t>(lane.imm), 0, value, count, folds_at(out_stream(0)));
    const Xbyak::Reg64 cells = at(out_stream(static_cast<size_t>(lane.imm)));
    store(value, o.dtype, lane.flag, cell_at(o, cells, row, part.cell + first, part.plane * result_apart(o)), count,
          streaming_);
  };
  back.emit(hooks);
}

/// Of a cell of the group in row `row` of the period; `cells` has the place of row 0 as many periods further; `behind`:
/// bytes from the first plane to its own.
RegExp PlanePeriodKernel::cell_at(const PoolOperand& o, const Xbyak::Reg64& cells, int64_t row, int64_t cell,
                                  int64_t behind) const {
  const int each = element_bytes(o.dtype);
  const RegExp at = cells + static_cast<int>((row - p_.g.pads_begin[1]) * o.y + behind);
  return o.x == 0 ? at : at + r9 * each + static_cast<int>(cell * each);
}

}  // namespace partita::jit
