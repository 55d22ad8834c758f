// SPDX-License-Identifier: Apache-2.0
// Code of rows that are spread: rdi call, r8 steps of a loop that are left, r9 planes that are left, rcx weights of the
// row of windows that streams are at, rax and rdx for a moment. Vectors: rows of windows, windows as they are read, two
// sums, a sum that waits for the next row's first one, orders. Steps that are alike are a loop, unless there are few:
// others are spelled out, with immediate distances from where streams are.
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
constexpr int kMostTakenToPack = 20;     ///< where hardly anything is computed

}  // namespace

std::optional<RowSpread> RowSpread::of(const AveragePlan& p) {
  const PoolGeometry& g = p.g;
  const int64_t cells = g.src[2], count = vectors_of(p);
  RowSpread spread;
  spread.vectors.resize(static_cast<size_t>(count));
  std::vector<std::vector<std::vector<Cover>>> over(static_cast<size_t>(count));  // vector, lane
  int64_t most = g.dst[2] < kLanes ? g.dst[2] : 0;
  for (int64_t v = 0; v < count; ++v) {
    int64_t least = g.dst[2], last = -1;
    for (int64_t cell = v * kLanes; cell < std::min(cells, (v + 1) * kLanes); ++cell) {
      auto& lists = over[static_cast<size_t>(v)];
      lists.push_back(p.covers(2, cell));
      for (const Cover& cover : lists.back()) {
        least = std::min(least, cover.window);
        last = std::max(last, cover.window);
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
        const bool has = lane < over[v].size() && back < over[v][lane].size();
        order[lane] = has ? static_cast<int32_t>(over[v][lane][back].window - vector.first)
                          : std::max(static_cast<int32_t>(lane), spread.windows);
        any = any || has;
      }
      if (any) vector.orders.push_back(order);
    }
  }
  return spread;
}

size_t AverageRowsKernel::streams_of(const AveragePlan& p) {
  return p.front_in.size() + p.back_in.size() + (1 + kLineStreams) * p.out.size();
}

AverageRowsKernel::AverageRowsKernel(const AveragePlan& plan, const RowSpread& spread, const Problem& problem,
                                     AverageRowsStores stores)
    : PoolCode(Isa::avx512, plan),
      plan_(plan),
      spread_(spread),
      stores_(stores),
      joins_halves_(stores == AverageRowsStores::streaming && joins_halves(plan)),
      steps_(steps_of(plan)),
      folds_(*this, p_.out, 1, reserve(HeldFolds::registers(*this, p_.out, 1))) {
  for (size_t row = 0; row < static_cast<size_t>(plan.reach(1)); ++row) order_.push_back(row);
  for (int k : p_.front_in) add_stream(p_.in[static_cast<size_t>(k)].y);
  for (int k : p_.back_in) add_stream(p_.in[static_cast<size_t>(k)].y);
  for (const PoolOperand& o : p_.out) add_stream(o.y);
  for (size_t k = 0; is_staged() && k < p_.out.size(); ++k) {
    lines_of_step_.push_back(lines_of_step(StagedPlanes::plane_bytes(p_, p_.out[k]), std::ssize(steps_)));
    for (size_t part = 0; part < kLineStreams; ++part) add_stream(0);
  }
  hold_streams(lines_stream(0));
  const auto most = static_cast<size_t>(std::max(0, (packs(plan) ? kMostTakenToPack : kMostTaken) - orders_at()));
  for (const RowSpread::Vector& vector : spread.vectors)
    for (const RowSpread::Order& order : vector.orders)
      if (held_.size() < most && std::ranges::find(held_, order) == held_.end()) held_.push_back(order);
  const int taken = orders_at() + static_cast<int>(held_.size());
  entry_ = reinterpret_cast<void (*)(const AverageRowsCall*)>(reinterpret_cast<uintptr_t>(
      emit_all(problem, taken, [&](Body& front, Body& back) { emit_planes(front, back); })));
}

void AverageRowsKernel::emit_planes(Body& front, Body& back) {
  for (size_t k = 0; k < held_.size(); ++k)
    vmovups(vec(orders_at() + static_cast<int>(k)), pattern({held_[k].begin(), held_[k].end()}));
  hold_mask(0, spread_.windows);
  folds_.emit_start();
  mov(r9, ptr[rdi + offsetof(AverageRowsCall, planes)]);
  Xbyak::Label plane;
  align(16);
  L(plane);
  if (weighs()) mov(rcx, ptr[rdi + offsetof(AverageRowsCall, weights)]);
  for (size_t window = 0, end = 0; window < steps_.size(); window = end) {
    end = window + 1;
    if (std::ssize(steps_) > kMostSpelledOut)
      while (end < steps_.size() && steps_[end - 1].goes_on_as(steps_[end])) ++end;
    const Step& step = steps_[window];
    const auto at = static_cast<int64_t>(window), rows = std::ssize(step.over);
    std::rotate(order_.begin(), order_.end() - 1, order_.end());
    if (end == window + 1) {
      emit_step(front, back, at);
      continue;
    }
    advance_to(at, step.first_row);
    mov(r8, end - window);
    Xbyak::Label next;
    align(16);
    L(next);
    emit_step(front, back, at);
    for (auto row = std::ssize(order_); --row > 0;)
      for (size_t v = 0; v < spread_.vectors.size(); ++v) vmovaps(vec(row_of(row, v)), vec(row_of(row - 1, v)));
    go_on(1, rows);
    dec(r8);
    jnz(next, T_NEAR);
    window_ = static_cast<int64_t>(end);
    row_ = steps_[end - 1].first_row + rows;
    std::rotate(order_.begin(), order_.begin() + 1, order_.end());
  }
  next_plane();
  dec(r9);
  jnz(plane, T_NEAR);
  folds_.emit_end(1, folds_at(out_stream(0)));
}

/// Rows under no window, or under earlier ones alone, are those of the step before them.
std::vector<AverageRowsKernel::Step> AverageRowsKernel::steps_of(const AveragePlan& p) {
  std::vector<Step> steps(static_cast<size_t>(p.g.dst[1]));
  size_t latest = 0;
  for (int64_t row = 0; row < p.g.src[1]; ++row) {
    const std::vector<Cover> covers = p.covers(1, row);
    if (!covers.empty()) latest = std::max(latest, static_cast<size_t>(covers.back().window));
    Step& step = steps[latest];
    if (step.over.empty()) {
      step.first_row = row;
      step.starts_inside = joins_halves(p) && starts_inside(p, row);
    }
    std::vector<int64_t>& backs = step.over.emplace_back();
    for (const Cover& cover : covers) backs.push_back(static_cast<int64_t>(latest) - cover.window);
  }
  return steps;
}

void AverageRowsKernel::emit_step(Body& front, Body& back, int64_t window) {
  const Step& step = steps_[static_cast<size_t>(window)];
  emit_windows(front, window);
  for (size_t row = 0; row < step.over.size(); ++row)
    emit_cells(back, step.over[row], step.first_row + static_cast<int64_t>(row));
  if (is_staged()) emit_lines();
}

/// A row of windows, weighted, over the cells of a row.
void AverageRowsKernel::emit_windows(Body& front, int64_t row) {
  const Xmm windows = vec(windows_at());
  for (size_t v = 0; v < spread_.vectors.size(); ++v) {
    const int64_t first = spread_.vectors[v].first;
    if (v == 0 || first != spread_.vectors[v - 1].first) {
      emit_gradient(front, windows, [&](Xmm dst, const PoolOperand& o, size_t k) {
        const int64_t along_x = o.x == 0 ? 0 : first * element_bytes(o.dtype);
        load_elements(dst, o, o.x == 0, at(front_stream(k)) + static_cast<int>((row - window_) * o.y + along_x),
                      spread_.windows, v == 0 && begins_row_line(o, row));
      });
      // Zeros behind the windows, whatever front makes of those.
      const auto weights = weighs() ? ptr[rcx + static_cast<int>(((row - window_) * weights_of_row(plan_) + first) * 4)]
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
      places = Zmm(orders_at() + static_cast<int>(k));
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

void AverageRowsKernel::emit_cells(Body& back, const std::vector<int64_t>& backs, int64_t row) {
  const Xmm first = vec(sum_at()), second = vec(sum_at() + 1), pending = vec(pending_at());
  const size_t vectors = spread_.vectors.size();
  const auto store_pair = [&](const Xmm& low, const Xmm& high, int place, int count) {
    compute({.op = LaneOp::pack, .imm = static_cast<int32_t>(p_.out[0].dtype)}, first, low, high, first);
    store_words(first, at(out_stream(0)) + place, count, is_streaming());
  };
  size_t v = 0;
  if (joins_halves_ && starts_inside(plan_, row)) {
    const int half = lanes() * element_bytes(p_.out[0].dtype);
    store_pair(pending, sum(second, backs, v++), behind(p_.out[0], row, 0) - half, kWords);
  }
  for (; v < vectors; ++v) {
    const bool alone = v + 1 == vectors;
    if (alone && joins_halves_) {
      const Xmm last = sum(pending, backs, v);
      if (last.getIdx() != pending.getIdx()) vmovaps(pending, last);
    } else if (alone || !packs(plan_)) {
      emit_vector(back, sum(first, backs, v), row, v);
    } else {
      const Xmm low = sum(first, backs, v), high = sum(second, backs, v + 1);
      store_pair(low, high, behind(p_.out[0], row, v), lanes() + stored(v + 1));
      ++v;
    }
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

void AverageRowsKernel::emit_vector(Body& back, const Xmm& sum, int64_t row, size_t vector) {
  BodyHooks hooks;
  hooks.load = [&](Xmm dst, int operand) {
    const auto k = static_cast<size_t>(std::ranges::find(p_.back_in, operand) - p_.back_in.begin());
    const PoolOperand& o = p_.in[static_cast<size_t>(operand)];
    load_elements(dst, o, o.x == 0, at(back_stream(k)) + behind(o, row, vector), cells_of(vector),
                  vector == 0
                      ? begins_row_line(o, row)
                      : o.begins_line(static_cast<int64_t>(vector) * lanes() * element_bytes(o.dtype), lanes()));
  };
  hooks.skeleton = [&](Xmm dst) { vmovaps(dst, sum); };
  hooks.store = [&](Xmm value, const Lane& lane) {
    const auto k = static_cast<size_t>(lane.imm);
    if (p_.out[k].fold != Fold::none) return folds_.emit_fold(k, 0, value, cells_of(vector), folds_at(out_stream(0)));
    const auto to = at(out_stream(k)) + behind(p_.out[k], row, vector);
    store(value, p_.out[k].dtype, lane.flag, to, stored(vector), is_streaming());
  };
  back.emit(hooks);
}

/// Of planes before, so that stores to memory go on all the time.
void AverageRowsKernel::emit_lines() {
  for (size_t k = 0; k < p_.out.size(); ++k)
    if (p_.out[k].fold == Fold::none) send_lines(lines_stream(k), lines_of_step_[k]);
}

int64_t AverageRowsKernel::lines_sent(size_t result, int64_t lines, int64_t planes) const {
  return PoolCode::lines_sent(lines, lines_of_step_[result], std::ssize(steps_) * planes);
}

/// Streams do, over rows of windows and of cells.
void AverageRowsKernel::go_on(int64_t windows, int64_t rows) {
  for (size_t k = 0; k < lines_stream(0); ++k)
    advance_stream(k, step_of(k) * (k < p_.front_in.size() ? windows : rows));
  if (weighs()) add(rcx, static_cast<int>(windows * weights_of_row(plan_) * 4));
}

void AverageRowsKernel::advance_to(int64_t window, int64_t row) {
  if (window != window_ || row != row_) go_on(window - window_, row - row_);
  window_ = window;
  row_ = row;
}

void AverageRowsKernel::next_plane() {
  const auto next = [&](size_t k, const PoolOperand& o, int64_t rows) {
    advance_stream(k, *o.planes_apart(p_.g, /*inside_image=*/true) - rows * o.y);
  };
  for (size_t k = 0; k < p_.front_in.size(); ++k)
    next(front_stream(k), p_.in[static_cast<size_t>(p_.front_in[k])], window_);
  for (size_t k = 0; k < p_.back_in.size(); ++k) next(back_stream(k), p_.in[static_cast<size_t>(p_.back_in[k])], row_);
  for (size_t k = 0; k < p_.out.size(); ++k) next(out_stream(k), p_.out[k], row_);
  window_ = row_ = 0;
}

/// Whether two vectors of sums are stored at once, as elements of 16 bits.
bool AverageRowsKernel::packs(const AveragePlan& p) {
  return p.stores_alone() && p.has_one_narrow_result() && p.out[0].x == 2;
}

/// Whether rows that follow each other begin at lines or in the middle of one, and a loop over steps meets them so in
/// turns.
bool AverageRowsKernel::joins_halves(const AveragePlan& p) {
  const PoolOperand& o = p.out[0];
  const int64_t vectors = RowSpread::vectors_of(p), row_bytes = p.g.src[2] * 2;
  return packs(p) && p.g.src[2] % RowSpread::kLanes == 0 && p.streamed_piece() == kCacheLine / 2 && o.y == row_bytes &&
         p.g.src[1] * vectors % 2 == 0 && p.g.strides[1] * vectors % 2 == 0 && on_lines({o.offset, o.n, o.z, o.c});
}

bool AverageRowsKernel::stores_lines(const AveragePlan& p) {
  const auto is_wide = [](const PoolOperand& o) { return element_bytes(o.dtype) == 4; };
  return (p.streamed_piece() == kCacheLine && (packs(p) || std::ranges::all_of(p.out, is_wide))) || joins_halves(p);
}

int AverageRowsKernel::behind(const PoolOperand& o, int64_t row, size_t vector) const {
  const int64_t along_x = o.x == 0 ? 0 : static_cast<int64_t>(vector) * lanes() * element_bytes(o.dtype);
  return static_cast<int>((row - row_) * o.y + along_x);
}

/// Of several rows in a cache line one fetches what will be read.
bool AverageRowsKernel::begins_row_line(const PoolOperand& o, int64_t row) const {
  return o.x != 0 && begins_line(row * o.y, o.y);
}

int AverageRowsKernel::cells_of(size_t vector) const {
  return static_cast<int>(std::min<int64_t>(lanes(), p_.g.src[2] - static_cast<int64_t>(vector) * lanes()));
}

}  // namespace partita::jit
