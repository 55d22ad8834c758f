// SPDX-License-Identifier: Apache-2.0
// Code of rows that are spread: rdi call, r8 steps of a loop that are left, r9 planes that are left, r10 weights of the
// row of windows that streams are at, rax and rdx for a moment. Vectors: rows of windows, windows as they are read, two
// sums, orders. A step is a row of windows, and the rows of cells from where it begins to where the next one does;
// steps at both ends are spelled out, as are all where they are few, with immediate distances from where streams are.
#include "kernels/jit/pool/average/rows.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>

#include "kernels/jit/pool/walk.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"

namespace partita::jit {
namespace {

using Xbyak::Xmm;
using Xbyak::Zmm;

constexpr int64_t kMostSpelledOut = 16;  ///< steps

}  // namespace

std::optional<RowSpread> RowSpread::of(const PoolPlan& p) {
  const PoolGeometry& g = p.g;
  const int64_t cells = g.src[2], stride = g.strides[2], count = vectors_of(p);
  const auto windows_over = [&](int64_t cell) {
    std::vector<int64_t> list;
    const int64_t period = (cell + g.pads_begin[2]) / stride, inside = (cell + g.pads_begin[2]) % stride;
    for (int64_t back = 0; back < p.reach(2); ++back)
      list.push_back(p.tap_of(2, inside, back) >= 0 && period >= back && period - back < g.dst[2] ? period - back : -1);
    return list;
  };
  RowSpread spread;
  spread.vectors.resize(static_cast<size_t>(count));
  std::vector<std::vector<std::vector<int64_t>>> over(static_cast<size_t>(count));  // vector, lane, back
  int64_t most = g.dst[2] < kLanes ? g.dst[2] : 0;
  for (int64_t v = 0; v < count; ++v) {
    int64_t least = g.dst[2], last = -1;
    for (int64_t cell = v * kLanes; cell < std::min(cells, (v + 1) * kLanes); ++cell) {
      auto& lists = over[static_cast<size_t>(v)];
      lists.push_back(windows_over(cell));
      for (const int64_t window : lists.back()) {
        if (window < 0) continue;
        least = std::min(least, window);
        last = std::max(last, window);
      }
    }
    spread.vectors[static_cast<size_t>(v)].first = least;
    most = std::max(most, last + 1 - least);
  }
  // A lane of zeros is left.
  if (most < 1 || most >= kLanes) return std::nullopt;
  spread.windows = static_cast<int>(most);
  for (size_t v = 0; v < spread.vectors.size(); ++v) {
    Vector& vector = spread.vectors[v];
    vector.first = std::min(vector.first, g.dst[2] - most);
    for (size_t back = 0; back < static_cast<size_t>(p.reach(2)); ++back) {
      Order order;
      bool any = false;
      for (size_t lane = 0; lane < order.size(); ++lane) {
        const int64_t window = lane < over[v].size() ? over[v][lane][back] : -1;
        order[lane] = window >= 0 ? static_cast<int32_t>(window - vector.first)
                                  : std::max(static_cast<int32_t>(lane), spread.windows);
        any = any || window >= 0;
      }
      if (any) vector.orders.push_back(order);
    }
  }
  return spread;
}

size_t AverageRowsKernel::streams_of(const PoolPlan& p) {
  return p.front_in.size() + p.back_in.size() + (1 + kLineStreams) * p.out.size();
}

AverageRowsKernel::AverageRowsKernel(const PoolPlan& plan, const RowSpread& spread, const Problem& problem,
                                     AverageRowsStores stores)
    : PoolCode(Isa::avx512, plan),
      spread_(spread),
      stores_(stores),
      folds_(*this, p_.out, 1, reserve(HeldFolds::registers(*this, p_.out, 1))) {
  for (size_t row = 0; row < static_cast<size_t>(p_.reach(1)); ++row) order_.push_back(row);
  for (int k : p_.front_in) add_stream(p_.in[static_cast<size_t>(k)].y);
  for (int k : p_.back_in) add_stream(p_.in[static_cast<size_t>(k)].y * p_.g.strides[1]);
  for (const PoolOperand& o : p_.out) add_stream(o.y * p_.g.strides[1]);
  for (size_t k = 0; is_staged() && k < p_.out.size(); ++k) {
    const int64_t lines = p_.g.src[1] * p_.g.src[2] * element_bytes(p_.out[k].dtype) / kCacheLine;
    lines_of_step_.push_back(lines / steps() + 1);  // so that all but a few leave in a call
    for (size_t part = 0; part < kLineStreams; ++part) add_stream(0);
  }
  const auto most = static_cast<size_t>(std::max(0, kMostTaken - rows_end() - 3));
  for (const RowSpread::Vector& vector : spread.vectors)
    for (const RowSpread::Order& order : vector.orders)
      if (held_.size() < most && std::ranges::find(held_, order) == held_.end()) held_.push_back(order);
  const int taken = rows_end() + 3 + static_cast<int>(held_.size());
  entry_ = reinterpret_cast<void (*)(const AverageRowsCall*)>(reinterpret_cast<uintptr_t>(
      emit_all(problem, taken, [&](Body& front, Body& back) { emit_planes(front, back); })));
}

void AverageRowsKernel::emit_planes(Body& front, Body& back) {
  for (size_t k = 0; k < held_.size(); ++k)
    vmovups(vec(rows_end() + 3 + static_cast<int>(k)), pattern({held_[k].begin(), held_[k].end()}));
  hold_mask(spread_.windows);
  folds_.emit_start();
  mov(r9, ptr[rdi + offsetof(AverageRowsCall, planes)]);
  Xbyak::Label plane;
  align(16);
  L(plane);
  if (weighs()) mov(r10, ptr[rdi + offsetof(AverageRowsCall, weights)]);
  for (int64_t step = 0, end = 0; step < steps(); step = end) {
    end = step + 1;
    if (steps() > kMostSpelledOut)
      while (is_inside(step) && end < steps() && is_inside(end)) ++end;
    if (end == step + 1) {
      std::rotate(order_.begin(), order_.end() - 1, order_.end());
      emit_step(front, back, step);
      continue;
    }
    go_to(step);
    mov(r8, end - step);
    std::rotate(order_.begin(), order_.end() - 1, order_.end());
    Xbyak::Label next;
    align(16);
    L(next);
    emit_step(front, back, step);
    for (auto row = std::ssize(order_); --row > 0;)
      for (size_t v = 0; v < spread_.vectors.size(); ++v) vmovaps(vec(row_of(row, v)), vec(row_of(row - 1, v)));
    advance_streams(0, lines_stream(0));
    if (weighs()) add(r10, static_cast<uint32_t>(weights_of_row(p_) * 4));
    dec(r8);
    jnz(next, T_NEAR);
    at_ = end;
    std::rotate(order_.begin(), order_.begin() + 1, order_.end());
  }
  next_plane();
  dec(r9);
  jnz(plane, T_NEAR);
  folds_.emit_end(1, slots());
}

HeldFolds::Place AverageRowsKernel::slots() {
  return [this](size_t k, int) {
    mov(rdx, slot(out_stream(k)));
    return Xbyak::RegExp(rdx);
  };
}

void AverageRowsKernel::emit_step(Body& front, Body& back, int64_t step) {
  if (step < p_.g.dst[1]) emit_windows(front, step);
  for (int64_t row = 0; row < p_.g.strides[1]; ++row)
    if (has_cells(step, row)) emit_cells(back, step, row);
  if (is_staged()) emit_lines();
}

/// A row of windows, weighted, over the cells of a row.
void AverageRowsKernel::emit_windows(Body& front, int64_t row) {
  const Xmm windows = vec(windows_at());
  for (size_t v = 0; v < spread_.vectors.size(); ++v) {
    const int64_t first = spread_.vectors[v].first;
    if (v == 0 || first != spread_.vectors[v - 1].first) {
      emit_gradient(front, windows, [&](Xmm dst, const PoolOperand& o, size_t k) {
        const int64_t at = o.x == 0 ? 0 : first * element_bytes(o.dtype);
        mov(rdx, slot(front_stream(k)));
        load_elements(dst, o, o.x == 0, rdx + static_cast<int>((row - at_) * o.y + at), spread_.windows,
                      v == 0 && begins_row_line(o, row));
      });
      // Zeros behind the windows, whatever front makes of those.
      const auto weights = weighs() ? ptr[r10 + static_cast<int>(((row - at_) * weights_of_row(p_) + first) * 4)]
                                    : pattern(everywhere(std::bit_cast<int32_t>(p_.weight)));
      vmulps(windows | k6 | T_z, windows, weights);
    }
    spread(spread_.vectors[v], vec(row_of(0, v)));
  }
}

void AverageRowsKernel::spread(const RowSpread::Vector& vector, const Xmm& to) {
  const Zmm windows(windows_at());
  const auto in_order = [&](const RowSpread::Order& order, const Xmm& moved) -> Xmm {
    if (std::ranges::equal(order, numbers(lanes()))) return windows;
    Zmm places(scratch(0).getIdx());
    if (const auto k = std::ranges::find(held_, order) - held_.begin(); k < std::ssize(held_))
      places = Zmm(rows_end() + 3 + static_cast<int>(k));
    else
      vmovups(places, pattern({order.begin(), order.end()}));
    vpermps(Zmm(moved.getIdx()), places, windows);
    return moved;
  };
  if (vector.orders.empty()) return broadcast_bits(to, 0);
  Xmm so_far = in_order(vector.orders[0], to);
  for (size_t k = 1; k < vector.orders.size(); ++k) {
    vaddps(to, so_far, in_order(vector.orders[k], scratch(1)));
    so_far = to;
  }
  if (so_far.getIdx() != to.getIdx()) vmovaps(to, so_far);
}

void AverageRowsKernel::emit_cells(Body& back, int64_t step, int64_t row) {
  const std::vector<int64_t> backs = windows_over(step, row);
  const Xmm first = vec(sum_at()), second = vec(sum_at() + 1);
  for (size_t v = 0; v < spread_.vectors.size(); ++v) {
    if (!packs(p_) || v + 1 == spread_.vectors.size()) {
      emit_vector(back, sum(first, backs, v), step, row, v);
      continue;
    }
    const Xmm low = sum(first, backs, v), high = sum(second, backs, v + 1);
    compute({.op = LaneOp::pack, .imm = static_cast<int32_t>(p_.out[0].dtype)}, first, low, high, first);
    mov(rdx, slot(out_stream(0)));
    store_words(first, rdx + behind(p_.out[0], step, row, v), lanes() + stored(v + 1), is_streaming());
    ++v;
  }
}

/// Of the rows of windows so many steps back; in `to`, unless it is one of them.
Xmm AverageRowsKernel::sum(const Xmm& to, const std::vector<int64_t>& backs, size_t vector) {
  if (backs.empty()) {
    broadcast_bits(to, 0);
    return to;
  }
  Xmm so_far = vec(row_of(backs[0], vector));
  for (size_t k = 1; k < backs.size(); ++k) {
    vaddps(to, so_far, vec(row_of(backs[k], vector)));
    so_far = to;
  }
  return so_far;
}

void AverageRowsKernel::emit_vector(Body& back, const Xmm& sum, int64_t step, int64_t row, size_t vector) {
  BodyHooks hooks;
  hooks.load = [&](Xmm dst, int operand) {
    const auto k = static_cast<size_t>(std::ranges::find(p_.back_in, operand) - p_.back_in.begin());
    const PoolOperand& o = p_.in[static_cast<size_t>(operand)];
    const int64_t y = step * p_.g.strides[1] + row - p_.g.pads_begin[1];
    mov(rdx, slot(back_stream(k)));
    load_elements(dst, o, o.x == 0, rdx + behind(o, step, row, vector), cells_of(vector),
                  vector == 0
                      ? begins_row_line(o, y)
                      : o.begins_line(static_cast<int64_t>(vector) * lanes() * element_bytes(o.dtype), lanes()));
  };
  hooks.skeleton = [&](Xmm dst) { vmovaps(dst, sum); };
  hooks.store = [&](Xmm value, const Lane& lane) {
    const auto k = static_cast<size_t>(lane.imm);
    if (p_.out[k].fold != Fold::none) return folds_.emit_fold(k, 0, value, cells_of(vector), slots());
    mov(rdx, slot(out_stream(k)));
    store(value, p_.out[k].dtype, lane.flag, rdx + behind(p_.out[k], step, row, vector), stored(vector),
          is_streaming());
  };
  back.emit(hooks);
}

/// Of planes before, so that stores to memory go on all the time.
void AverageRowsKernel::emit_lines() {
  for (size_t k = 0; k < p_.out.size(); ++k)
    if (p_.out[k].fold == Fold::none) send_lines(lines_stream(k), lines_of_step_[k]);
}

int64_t AverageRowsKernel::lines_sent(size_t result, int64_t lines, int64_t planes) const {
  const int64_t each = lines_of_step_[result];
  return std::min(lines / each, steps() * planes) * each;
}

/// Streams go to a step of the same plane.
void AverageRowsKernel::go_to(int64_t step) {
  const int64_t by = step - at_;
  if (by == 0) return;
  for (size_t k = 0; k < lines_stream(0); ++k) advance(slot(k), by * step_of(k));
  if (weighs()) add(r10, static_cast<int>(by * weights_of_row(p_) * 4));
  at_ = step;
}

void AverageRowsKernel::next_plane() {
  const auto next = [&](size_t k, const PoolOperand& o) {
    advance(slot(k), *o.planes_apart(p_.g, /*inside_image=*/true) - at_ * step_of(k));
  };
  for (size_t k = 0; k < p_.front_in.size(); ++k) next(front_stream(k), p_.in[static_cast<size_t>(p_.front_in[k])]);
  for (size_t k = 0; k < p_.back_in.size(); ++k) next(back_stream(k), p_.in[static_cast<size_t>(p_.back_in[k])]);
  for (size_t k = 0; k < p_.out.size(); ++k) next(out_stream(k), p_.out[k]);
  at_ = 0;
}

/// Whether two vectors of sums are stored at once, as elements of 16 bits.
bool AverageRowsKernel::packs(const PoolPlan& p) {
  return p.stores_alone() && p.has_one_narrow_result() && p.out[0].x == 2;
}

bool AverageRowsKernel::stores_lines(const PoolPlan& p) {
  const auto is_wide = [](const PoolOperand& o) { return element_bytes(o.dtype) == 4; };
  return p.streamed_piece() == kCacheLine && (packs(p) || std::ranges::all_of(p.out, is_wide));
}

bool AverageRowsKernel::has_cells(int64_t step, int64_t row) const {
  const int64_t y = step * p_.g.strides[1] + row - p_.g.pads_begin[1];
  return y >= 0 && y < p_.g.src[1];
}

/// Whether a step has all its windows and cells.
bool AverageRowsKernel::is_inside(int64_t step) const {
  return step + 1 >= p_.reach(1) && step < p_.g.dst[1] && has_cells(step, 0) && has_cells(step, p_.g.strides[1] - 1);
}

std::vector<int64_t> AverageRowsKernel::windows_over(int64_t step, int64_t row) const {
  std::vector<int64_t> backs;
  for (int64_t back = 0; back < p_.reach(1); ++back)
    if (p_.tap_of(1, row, back) >= 0 && step >= back && step - back < p_.g.dst[1]) backs.push_back(back);
  return backs;
}

int AverageRowsKernel::behind(const PoolOperand& o, int64_t step, int64_t row, size_t vector) const {
  const int64_t rows = (step - at_) * p_.g.strides[1] + row - p_.g.pads_begin[1];
  return static_cast<int>(rows * o.y +
                          (o.x == 0 ? 0 : static_cast<int64_t>(vector) * lanes() * element_bytes(o.dtype)));
}

/// Of several rows in a cache line one fetches what will be read.
bool AverageRowsKernel::begins_row_line(const PoolOperand& o, int64_t row) const {
  return o.x != 0 && begins_line(row * o.y, o.y);
}

int AverageRowsKernel::cells_of(size_t vector) const {
  return static_cast<int>(std::min<int64_t>(lanes(), p_.g.src[2] - static_cast<int64_t>(vector) * lanes()));
}

}  // namespace partita::jit
