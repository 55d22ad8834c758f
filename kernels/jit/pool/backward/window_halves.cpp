// SPDX-License-Identifier: Apache-2.0
// Code of whole windows in elements of 16 bits: rdi call, rcx the group's first channel or window, along x r9 its first
// cell, r8 steps left, rax and rdx for a moment; streams hold the operands' places. Floats of 16 bits are in the
// order of integers once those with a sign are counted from zero downwards.
#include "kernels/jit/pool/backward/window_halves.hpp"

#include <algorithm>
#include <cstddef>

#include "kernels/jit/pool/channel_groups.hpp"
#include "src/base/cpu.hpp"
#include "src/base/dtype.hpp"

namespace partita::jit {
namespace {

using Xbyak::RegExp;
using Xbyak::Zmm;

constexpr int64_t kMostTaps = 64, kMostWidth = 4;
const Xbyak::Opmask kChosen = Xbyak::util::k3;

}  // namespace

bool WindowHalvesKernel::fits(const PoolPlan& p, const Problem& problem, Isa isa) {
  constexpr int kGradientPort = 1;
  if (isa != Isa::avx512 || !p.maximum || p.indices >= 0 || !problem.front.empty()) return false;
  const bool along_x = WindowKernel::along_x(p);
  if (p.tap_rows() * p.g.kernel[2] > kMostTaps) return false;
  if (along_x && (WindowKernel::inner_of(p) > 1 || p.g.kernel[2] > kMostWidth)) return false;
  const Dtype dtype = p.in[0].dtype;
  if (dtype != Dtype::bf16 && dtype != Dtype::f16) return false;
  const auto is_like = [&](const PoolOperand& o) { return o.dtype == dtype && (along_x ? o.x : o.c) == 2; };
  const auto is_result = [&](const PoolOperand& o) { return o.fold != Fold::none || is_like(o); };
  return folds_of(p.out) <= 1 && is_like(p.in[0]) && is_like(p.in[kGradientPort]) &&
         std::ranges::all_of(p.out, is_result) &&
         std::ranges::all_of(p.back_in, [&](int k) { return is_like(p.in[static_cast<size_t>(k)]); }) &&
         choices_of(p, problem).has_value();
}

WindowHalvesKernel::WindowHalvesKernel(const PoolPlan& plan, const Problem& problem, const WindowStores& stores)
    : PoolCode(Isa::avx512, plan),
      streaming_(stores.piece > 0),
      along_x_(WindowKernel::along_x(plan)),
      rows_together_(stores.lines ? rows_together(plan) : 0),
      results_(choices_of(plan, problem).value()) {
  if (stores.piece > 0 && stores.piece < kCacheLine) stream_in_pieces(stores.piece);
  if (streaming_) fetch_by(WindowKernel::fetching(p_));
  const auto add = [&](const PoolOperand& o, bool cells, int64_t rows = 1) {
    const int axis = along_x_ ? 1 : 2;
    add_stream((along_x_ ? o.y : o.x) * (cells ? p_.g.strides[axis] : 1) * rows);
  };
  const int64_t rows = std::max<int64_t>(1, rows_together_);
  for (int64_t r = 0; r < p_.tap_rows(); ++r) add(p_.in[0], true);
  add(p_.in[static_cast<size_t>(p_.front_in[0])], false);
  for (int64_t r = 0; r < p_.tap_rows(); ++r)
    for (int k : p_.back_in) add(p_.in[static_cast<size_t>(k)], true, rows);
  for (int64_t r = 0; r < p_.tap_rows(); ++r)
    for (const PoolOperand& o : p_.out) add(o, true, rows);
  hold_streams(std::min(out_stream(p_.tap_rows(), 0), kStreamsBesideR10));
  keep_vectors(static_cast<int>(2 * kept_windows()));
  entry_ = reinterpret_cast<void (*)(const WindowCall*)>(reinterpret_cast<uintptr_t>(emit_all([&] { emit_steps(); })));
}

void WindowHalvesKernel::emit_steps() {
  vmovdqu16(kSigns, words(0x8000));
  vmovdqu16(kMinusOne, words(0xffff));
  vmovdqu16(kInfinity, words(counted_infinity()));
  vmovdqu16(kNan, words(0x7fff));
  Xbyak::Label step;
  mov(r8, ptr[rdi + offsetof(WindowCall, steps)]);
  if (rows_together_ > 0) return emit_steps_of_lines();
  align(16);
  L(step);
  emit_channel_groups(*this, along_x_ ? p_.g.dst[2] : p_.g.channels, 1, kWords, [&](int, int count) {
    if (along_x_) imul(r9, rcx, static_cast<int>(width()));
    find_winners(count);
    load_gradients(count);
    if (spreads()) spread();
    for (int64_t cell = 0; p_.has_folds() && cell < width(); ++cell) vpxord(kept(cell), kept(cell), kept(cell));
    for (int64_t row = 0; row < p_.tap_rows(); ++row)
      for (int64_t cell = 0; cell < width(); ++cell)
        if (const int cells = cells_of(count, cell); cells > 0) emit_cells(row_of_cells(row, cell, cells));
    if (p_.has_folds()) along_x_ ? add_folds_along_x(count) : add_folds(count);
  });
  advance_streams();
  dec(r8);
  jnz(step, T_NEAR);
}

/// As if there were no NaN, and where there was one, anew.
void WindowHalvesKernel::find_winners(int count) {
  Xbyak::Label done;
  search(count, false);
  vpcmpgtw(k1, kLargest, kInfinity);
  vmovdqu16(kNext, words(-counted_infinity()));
  vpcmpgtw(k2, kNext, kLeast);
  kortestd(k1, k2);
  jz(done, T_NEAR);
  search(count, true);
  L(done);
}

/// The first one of equal taps wins.
void WindowHalvesKernel::search(int count, bool has_nan) {
  for (int64_t row = 0; row < p_.tap_rows(); ++row) {
    for (int64_t cell = 0; spreads() && cell < width() && cells_of(count, cell) > 0; ++cell) {
      const Zmm cells(kCells + static_cast<int>(cell));
      load_source(cells, row, cell, cells_of(count, cell), has_nan);
      if (!has_nan) row == 0 && cell == 0 ? vmovdqa32(kLeast, cells) : vpminsw(kLeast, kLeast, cells);
    }
    for (int64_t tap = 0; tap < width(); ++tap) {
      const bool first = row == 0 && tap == 0;
      if (spreads()) {
        pick_tap(tap);
      } else {
        load_source(kNext, row, tap, count, has_nan);
        if (!has_nan) first ? vmovdqa32(kLeast, kNext) : vpminsw(kLeast, kLeast, kNext);
      }
      if (first) {
        vmovdqa32(kLargest, kNext);
        vpxord(kWinner, kWinner, kWinner);
        continue;
      }
      vmovdqu16(kNumber, words(tap_number(row, tap)));  // loaded apart: masked loads of words are slow here and there
      vpcmpgtw(k1, kNext, kLargest);
      vpmaxsw(kLargest, kLargest, kNext);
      vmovdqu16(kWinner | k1, kNumber);
    }
  }
}

/// Counted from zero, both zeros as 0; `has_nan`: any NaN as the largest number.
void WindowHalvesKernel::load_source(const Zmm& cells, int64_t row, int64_t cell, int count, bool has_nan) {
  const RegExp from = cells_at(p_.in[0], static_cast<size_t>(row), cell);
  if (!has_nan) fetch(from, WindowKernel::fetched_behind(p_, p_.in[0]));
  load_words(cells, from, 0, count);
  if (has_nan) {
    vpandd(kNumber, cells, kNan);  // the size
    vpcmpgtw(k2, kNumber, kInfinity);
  }
  count_from_zero(cells, kSigns);
  if (has_nan) vmovdqu16(cells | k2, kNan);
}

/// kNext = that tap of each window, from the row's vectors of cells.
void WindowHalvesKernel::pick_tap(int64_t tap) {
  std::vector<int32_t> places;
  uint32_t later = 0;
  for (int64_t window = 0; window < kWords; ++window) {
    const int64_t place = window * width() + tap;
    places.push_back(static_cast<int32_t>(place % (2 * kWords)));
    if (place >= 2 * kWords) later |= 1u << window;
  }
  const auto pick = [&](const Zmm& to, int pair) {
    vmovdqa32(to, Zmm(kCells + pair));
    vpermt2w(to, kNumber, Zmm(kCells + pair + 1));
  };
  vmovdqu16(kNumber, words(places));
  pick(kNext, 0);
  if (later == 0) return;
  pick(Zmm(kWinners), 2);  // not needed yet
  mov(eax, later);
  kmovd(k1, eax);
  vmovdqu16(kNext | k1, Zmm(kWinners));
}

/// As a store would round them, so that denormals of bf16 become what they do in any other kernel.
void WindowHalvesKernel::load_gradients(int count) {
  const PoolOperand& o = p_.in[static_cast<size_t>(p_.front_in[0])];
  const RegExp windows = at(gradient_stream()) + rcx * 2;
  fetch(windows);
  const auto half = [&](const Zmm& to, int begin) {
    load(to, o.dtype, Walk::next, windows + begin * 2, std::min(count - begin, lanes()));
    to_halves(to, to, o.dtype, false);
  };
  half(kGradient, 0);
  if (count <= lanes()) return;
  half(kNext, lanes());
  vinserti64x4(kGradient, kGradient, Xbyak::Ymm(kNext.getIdx()), 1);
}

/// Winners and gradients of the windows that each vector of cells lies in.
void WindowHalvesKernel::spread() {
  for (int64_t cell = 0; cell < width(); ++cell) {
    std::vector<int32_t> windows;
    for (int64_t l = 0; l < kWords; ++l) windows.push_back(static_cast<int32_t>((cell * kWords + l) / width()));
    vmovdqu16(kNumber, words(windows));
    vpermw(Zmm(kWinners + static_cast<int>(cell)), kNumber, kWinner);
    vpermw(Zmm(kGradients + static_cast<int>(cell)), kNumber, kGradient);
  }
}

/// Along x vector `cell` of a row of cells, else the cell of that number in the windows' row.
WindowHalvesKernel::Cells WindowHalvesKernel::row_of_cells(int64_t row, int64_t cell, int count) const {
  const int number = spreads() ? static_cast<int>(cell) : 0;
  Cells cells{spreads() ? Zmm(kWinners + number) : kWinner,
              spreads() ? Zmm(kGradients + number) : kGradient,
              kept(cell),
              {},
              row,
              cell,
              count};
  for (int64_t l = 0; l < kWords; ++l)
    cells.taps.push_back(static_cast<int32_t>(tap_number(row, along_x_ ? (cell * kWords + l) % width() : cell)));
  return cells;
}

void WindowHalvesKernel::emit_cells(const Cells& cells) {
  for (size_t k = 0; k < p_.out.size(); ++k) {
    if (k == 0 || results_[k] != results_[k - 1]) choose(results_[k], cells);
    if (p_.out[k].fold != Fold::none) {
      vpord(cells.kept, cells.kept, kNext);  // of a window's cells one alone is not zero
      continue;
    }
    const bool whole = along_x_ || cells.count == kWords;
    const RegExp to = cells_at(p_.out[k], out_stream(cells.row, k), cells.number);
    store_words(kNext, to, cells.count, streaming_ && whole);
  }
}

/// kNext = the gradients of the cells that are winners and fulfil the condition.
void WindowHalvesKernel::choose(const PoolChoice& condition, const Cells& cells) {
  vpcmpeqw(kChosen, cells.winners, words(cells.taps));
  const Xbyak::Opmask before = kChosen;
  for (int operand : condition) {
    const auto number = std::ranges::find(p_.back_in, operand) - p_.back_in.begin();
    const PoolOperand& o = p_.in[static_cast<size_t>(operand)];
    const RegExp from = cells_at(o, back_stream(cells.row, static_cast<size_t>(number)), cells.number);
    if (operand != 0) fetch(from, WindowKernel::fetched_behind(p_, o));  // the source has been read already
    load_words(kNext, from, 0, cells.count);
    find_positive(kChosen | before, kNext, kMinusOne, kInfinity);
  }
  vmovdqu16(kNext | kChosen | T_z, cells.gradients);
}

Zmm WindowHalvesKernel::kept(int64_t cell) const { return Zmm(kKept + (spreads() ? static_cast<int>(cell) : 0)); }

RegExp WindowHalvesKernel::fold_slot() {
  const auto folded = std::ranges::find_if(p_.out, [](const PoolOperand& o) { return o.fold != Fold::none; });
  return at(out_stream(0, static_cast<size_t>(folded - p_.out.begin())));
}

void WindowHalvesKernel::add_folds(int count) {
  const RegExp sums = fold_slot() + rcx * 4;
  for (int half = 0; half * lanes() < count; ++half) {
    widen_words(kNext, kept(0), half);
    fold_to_slot(kNext, Fold::sum, sums + half * vector_bytes(), lanes());
  }
}

void WindowHalvesKernel::add_folds_along_x(int count) {
  vpxord(kLargest, kLargest, kLargest);
  for (int64_t cell = 0; cell < width(); ++cell)
    for (int half = 0; half * lanes() < cells_of(count, cell); ++half) {
      widen_words(kNext, kept(cell), half);
      vaddps(kLargest, kLargest, kNext);
    }
  fold_to_slot(kLargest, Fold::sum, fold_slot(), lanes());
}

/// In a row where the stream is.
RegExp WindowHalvesKernel::cells_at(const PoolOperand& o, size_t stream, int64_t cell) {
  const Xbyak::Reg64 row = at(stream);
  return along_x_ ? row + r9 * 2 + static_cast<int>(cell * kWords * 2) : row + rcx * 2 + static_cast<int>(cell * o.x);
}

/// Elements of a vector of cells, where the group has `count` windows or channels.
int WindowHalvesKernel::cells_of(int count, int64_t cell) const {
  if (!along_x_) return count;
  return static_cast<int>(std::clamp<int64_t>(count * width() - cell * kWords, 0, kWords));
}

}  // namespace partita::jit
