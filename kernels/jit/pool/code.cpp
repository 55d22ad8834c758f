// SPDX-License-Identifier: Apache-2.0
// Frames, streams, and vectors put together.
#include "kernels/jit/pool/code.hpp"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "kernels/jit/code/expand.hpp"
#include "src/base/check.hpp"
#include "src/base/dtype.hpp"
#include "src/base/round.hpp"

namespace partita::jit {
namespace {

using Xbyak::RegExp;
using Xbyak::Xmm;
using Xbyak::Ymm;
using Xbyak::Zmm;

}  // namespace

const void* PoolCode::emit_all(const Problem& problem, int taken,
                               const std::function<void(Body& front, Body& back)>& steps,
                               const std::function<void()>& tables) {
  const int middle = taken + (wide() && taken <= kMostTaken - kLeastRegisters ? 2 * kLeastRegisters : kLeastRegisters);
  return emit_frame(problem, {taken, middle, middle, value_end_}, steps, tables);
}

/// What is never emitted needs no registers of its own.
const void* PoolCode::emit_all(const Problem& problem, int taken, const std::function<void(Body& back)>& steps,
                               const std::function<void()>& tables) {
  return emit_frame(
      problem, {taken, value_end_, taken, value_end_}, [&](Body&, Body& back) { steps(back); }, tables);
}

const void* PoolCode::emit_all(const std::function<void()>& steps) {
  enter_frame(kept_vectors_at() + kept_vectors_ * static_cast<int>(vector_bytes()));
  steps();
  leave_frame();
  emit_constants();
  return finish();
}

void PoolCode::enter_frame(int bytes) {
  push(rbp);
  mov(rbp, rsp);
  for (size_t k = kFreeRegisters; k < held_streams_; ++k) push(stream_register(k));
  sub(rsp, bytes);
  and_(rsp, -64);
  start_streams(0, steps_.size());
}

void PoolCode::start_streams(size_t first, size_t end) {
  mov(rax, ptr[rdi]);
  for (size_t k = first; k < end; ++k) {
    const auto from = ptr[rax + 8 * static_cast<int>(k)];
    if (k < held_streams_) {
      mov(stream_register(k), from);
    } else {
      mov(rdx, from);
      mov(slot(k), rdx);
    }
  }
}

Xbyak::Reg64 PoolCode::at(size_t stream) {
  if (stream < held_streams_) return stream_register(stream);
  mov(rdx, slot(stream));
  return rdx;
}

void PoolCode::set_stream(size_t stream, const Xbyak::Reg64& to) {
  stream < held_streams_ ? mov(stream_register(stream), to) : mov(slot(stream), to);
}

void PoolCode::leave_frame() {
  vzeroupper();
  const size_t end = std::max(held_streams_, kFreeRegisters);
  lea(rsp, ptr[rbp - 8 * static_cast<int>(end - kFreeRegisters)]);
  for (size_t k = end; k-- > kFreeRegisters;) pop(stream_register(k));
  pop(rbp);
  ret();
}

PoolCode::Bodies PoolCode::bodies(const Problem& problem, const Room& room) {
  const auto never = [](int) { return false; };
  const int spill_at = kept_vectors_at() + aligned(kept_vectors_ * static_cast<int>(vector_bytes()));
  Body front(*this, expanded_front(p_.front, problem, isa()), {room.taken, room.front_end, rsp + spill_at}, never);
  const int back_at = spill_at + front.spill_slots() * 64;
  Body back(*this, back_lanes(problem), {room.back_first, room.end, rsp + back_at}, never);
  const int bytes = back_at + back.spill_slots() * 64;
  return {std::move(front), std::move(back), bytes};
}

/// What the back expression need not round if each gradient is, once for all of its window's cells.
Lanes PoolCode::back_lanes(const Problem& problem) {
  Lanes lanes = expanded(p_.back, problem, isa());
  if (!p_.maximum) return lanes;
  Lanes fewer = expanded(p_.back, problem, isa(), /*skeleton_is_rounded=*/true);
  rounds_gradient_ = fewer.code != lanes.code;
  if (!rounds_gradient_) return lanes;
  gradient_type_ = static_cast<int32_t>(problem.in[static_cast<size_t>(front_port(problem.step))].dtype);
  return fewer;
}

/// The code asks for patterns as it is emitted, so it is behind it that they come to registers, on a way round.
const void* PoolCode::emit_frame(const Problem& problem, const Room& room,
                                 const std::function<void(Body& front, Body& back)>& steps,
                                 const std::function<void()>& tables) {
  // One is emitted behind the other, so they share registers, unless something stays in those of front.
  const bool has_front = room.back_first > room.taken;
  const int front_end = room.taken + kLeastRegisters;
  std::optional<Bodies> made;
  for (int back_first : {room.taken, front_end}) {
    const Room least{room.taken, front_end, back_first, back_first + kLeastRegisters + 1};  // a constant, often zero
    if (!wide() || !p_.maximum || least.end >= value_end_) break;
    made.emplace(bodies(problem, least));
    const bool fit = made->front.fits() && made->back.fits(), apart = back_first > room.taken || !has_front;
    if (fit && (apart || !made->front.pins())) {
      most_held_ = value_end_ - least.end;
      break;
    }
    made.reset();
    if (!fit) break;
  }
  if (!made) made.emplace(bodies(problem, room));
  Body &front = made->front, &back = made->back;
  Xbyak::Label hold, start;
  enter_frame(made->bytes);
  const BodyHooks none;
  front.emit_constants();
  back.emit_constants();
  front.emit_row_values(none);
  back.emit_row_values(none);
  if (most_held_ > 0) jmp(hold, T_NEAR);
  L(start);
  steps(front, back);
  leave_frame();
  if (most_held_ > 0) {
    L(hold);
    for (size_t k = 0; k < held_.size(); ++k) vmovups(holder(k), pattern(held_[k]));
    jmp(start, T_NEAR);
  }
  emit_constants();
  tables();
  return finish();
}

PoolCode::Held PoolCode::held(const std::vector<int32_t>& numbers) {
  const auto k = static_cast<size_t>(std::ranges::find(held_, numbers) - held_.begin());
  if (k == held_.size()) {
    if (seldom_ || std::ssize(held_) == most_held_) return Held(pattern(numbers));
    held_.push_back(numbers);
  }
  return Held(Zmm(holder(k).getIdx()));
}

Xmm PoolCode::held_vector(const Xmm& moment, const Held& numbers) {
  const Xbyak::Operand& at = numbers;
  if (!numbers.in_memory()) return vec(at.getIdx());
  vmovups(moment, at);
  return moment;
}

void PoolCode::emit_seldom(const std::function<void()>& code) {
  const bool before = std::exchange(seldom_, true);
  code();
  seldom_ = before;
}

void PoolCode::load_words(const Zmm& to, const RegExp& at, int begin, int end) {
  begin == 0 && end == kWords ? vmovdqu16(to, ptr[at]) : load_halves_between(to, at, begin, end);
}

void PoolCode::advance_streams(size_t first, size_t end) {
  for (size_t k = first; k < end; ++k) advance_stream(k, steps_[k]);
}

void PoolCode::advance_stream(size_t stream, int64_t bytes) {
  stream < held_streams_ ? advance(stream_register(stream), bytes) : advance(slot(stream), bytes);
}

/// Where they are, how much farther they go, and their end.
std::array<const void*, PoolCode::kLineStreams> PoolCode::line_streams(const StagedLines::Lines& lines) {
  return {lines.from, reinterpret_cast<const void*>(lines.to - lines.from), lines.from + lines.count * kCacheLine};
}

void PoolCode::send_lines(size_t first, int64_t count) {
  const Xmm line = scratch(0);
  Xbyak::Label none;
  mov(rax, slot(first));
  lea(rdx, ptr[rax + static_cast<int>(count * kCacheLine)]);
  cmp(rdx, slot(first + 2));
  ja(none, T_NEAR);
  mov(slot(first), rdx);
  mov(rdx, slot(first + 1));
  for (int64_t at = 0; at < count * kCacheLine; at += vector_bytes()) {
    vmovups(line, ptr[rax + static_cast<int>(at)]);
    vmovntps(ptr[rax + rdx + static_cast<int>(at)], line);
  }
  L(none);
}

void PoolCode::emit_gradient(Body& front, const Xmm& gradient, const Load& load) {
  BodyHooks hooks;
  hooks.load = [&](Xmm dst, int operand) {
    const auto k = static_cast<size_t>(std::ranges::find(p_.front_in, operand) - p_.front_in.begin());
    load(dst, p_.in[static_cast<size_t>(operand)], k);
  };
  hooks.store = [&](Xmm value, const Lane& lane) { lane.flag ? vcvtdq2ps(gradient, value) : vmovaps(gradient, value); };
  front.emit(hooks);
  if (rounds_gradient_) compute({.op = LaneOp::cast, .imm = gradient_type_}, gradient, gradient, gradient, gradient);
}

void PoolCode::fetch(const RegExp& at, int bytes_ahead) {
  fetch_line(at, fetching_.how == Fetching::How::near ? Fetching::near(bytes_ahead) : fetching_);
}

int PoolCode::next_rows_of(const PoolOperand& o) const {
  return p_.g.strides[1] == 1 ? kPrefetchFromMemory : ahead_in_rows(p_.g.strides[1] * o.y);
}

/// What comes later is asked for early: loads alone keep too little under way.
void PoolCode::load_elements(const Xmm& dst, const PoolOperand& o, bool repeats, const RegExp& at, int count,
                             bool ahead, int bytes_ahead) {
  if (repeats) return load(dst, o.dtype, Walk::same, at, count);
  if (ahead) fetch(at, bytes_ahead);
  load(dst, o.dtype, Walk::next, at, count);
}

bool PoolCode::inside_row(int64_t first, int64_t windows) const {
  const int64_t stride = p_.g.strides[2], cell = first * stride - p_.g.pads_begin[2];
  return cell >= 0 && cell + p_.span(2) - 1 + windows * stride <= p_.g.src[2];
}

std::vector<bool> PoolCode::outside_row(int64_t tap, int64_t first, int64_t windows) const {
  std::vector<bool> outside;
  for (int64_t window = first; window < first + windows; ++window) {
    const int64_t cell = window * p_.g.strides[2] + tap * p_.g.dilations[2] - p_.g.pads_begin[2];
    outside.push_back(cell < 0 || cell >= p_.g.src[2]);
  }
  return outside;
}

/// Cells outside the row are 0.
void PoolCode::load_pairs(const Xmm& pairs, size_t stream, int64_t displacement, int64_t tap, int64_t first,
                          bool ahead) {
  const int64_t away = tap * p_.g.dilations[2] - p_.g.pads_begin[2], cell = first * p_.g.strides[2] + away;
  const auto part = [&](int64_t place) { return static_cast<int>(std::clamp<int64_t>(place - cell, 0, 2 * lanes())); };
  const RegExp from = at(stream) + static_cast<int>(displacement) + r9 * 2 + static_cast<int>(away * 2);
  if (ahead) fetch(from);
  if (wide()) return load_words(Zmm(pairs.getIdx()), from, part(0), part(p_.g.src[2]));
  PT_ASSERT(part(0) == 0 && part(p_.g.src[2]) == 2 * lanes());
  vmovups(pairs, ptr[from]);
}

/// Source cells are loaded from the first window's on; without masks, where it lies before the row, from the row's
/// beginning.
void PoolCode::load_row_tap(size_t stream, int64_t displacement, int64_t tap, int64_t first, bool ahead) {
  const PoolGeometry& g = p_.g;
  const PoolOperand& source = p_.in[0];
  const int64_t stride = g.strides[2], away = tap * g.dilations[2] - g.pads_begin[2];  // of the first window's cell
  const bool inside = inside_row(first, lanes()), in_place = inside || wide();
  // Of two neighbours the second one is, one cell further, in what the first one brought. Loads of AVX2 are changed.
  const bool is_second = in_place && stride == 2 && g.dilations[2] == 1 && tap % 2 == 1, brought = wide() && is_second;
  const int64_t begin = first * stride + away - (brought ? 1 : 0);  // of what is loaded
  const int64_t outside = inside ? 0 : std::max<int64_t>(0, -begin), skipped = in_place ? 0 : outside;
  const int64_t end = inside ? lanes() * stride : std::min(g.src[2] - begin, lanes() * stride + skipped);
  const int each = element_bytes(source.dtype);
  const Xbyak::Reg64 base = at(stream);
  const auto cell_at = [&](int64_t cell) {
    const RegExp row = base + static_cast<int>(displacement);
    return source.x == 0 ? row : row + r9 * each + static_cast<int>(cell * each);
  };
  const auto inside_of = [&](int64_t from, int64_t count) {
    const auto part = [&](int64_t place) { return static_cast<int>(std::clamp<int64_t>(place - from, 0, count)); };
    return std::pair(part(outside), part(end));
  };
  const auto exclude = [&] { set_lanes(vec(kTap), outside_row(tap, first, lanes()), std::bit_cast<int32_t>(kLowest)); };
  if (in_place && stride == 2 && source.dtype == Dtype::bf16 && source.x != 0) {
    // Each lane is a tap and, in its upper half, the cell behind it.
    const Xmm pairs = vec(search_registers() + 1);
    if (is_second) {
      vandps(vec(kTap), pairs, held(everywhere(0xffff0000u)));
    } else {
      load_pairs(pairs, stream, displacement, tap, first, ahead);
      vpslld(vec(kTap), pairs, 16);
    }
    if (!inside) exclude();
    return;
  }
  if (!wide() && inside && stride == 2 && source.dtype == Dtype::f32 && source.x != 0) {
    const RegExp cells_at = cell_at(away);
    if (ahead) fetch(cells_at);
    vmovups(vec(kTap), ptr[cells_at]);
    return every_other_lane(vec(kTap), vec(kTap), ptr[cells_at + vector_bytes()], false);
  }
  const auto place = [&](int l) {
    return std::clamp<int64_t>(l * stride - skipped + (brought ? 1 : 0), 0, lanes() * stride - 1);
  };
  const auto vectors = std::clamp<int64_t>((end - skipped + lanes() - 1) / lanes(), 1, stride);
  for (int64_t v = 0; v < vectors && end > skipped; ++v) {
    const Xmm cells = vec(search_registers() + 1 + (wide() ? static_cast<int>(v) : 0)),
              to = stride == 1 ? vec(kTap) : cells;
    const auto [from, until] = inside_of(v * lanes() + skipped, lanes());
    const RegExp cells_at = cell_at(away + skipped + v * lanes());
    if (!brought && in_place && !inside && source.x != 0) {
      if (ahead) fetch(cells_at);
      load_between(to, source.dtype, cells_at, from, until);
    } else if (!brought) {
      load_elements(to, source, source.x == 0, cells_at, until, ahead);
    }
    if (stride > 1 || skipped > 0) merge_lanes(vec(kTap), to, static_cast<int>(v), vectors == 1, place);
  }
  if (!inside) exclude();
}

void PoolCode::add_won(const Xmm& sum, bool first, const Xmm& winner, const Xbyak::Operand& gradient,
                       const std::vector<int32_t>& names, const Xmm* counts) {
  if (wide()) {
    vpcmpeqd(k1, winner, held(names));
    if (counts != nullptr) vpsubd(*counts | k1, *counts, pattern(everywhere(-1)));
    return first ? vmovups(sum | k1 | T_z, gradient) : vaddps(sum | k1, sum, gradient);
  }
  const Xmm own = scratch(1);
  vpcmpeqd(own, winner, pattern(names));
  if (counts != nullptr) vpsubd(*counts, *counts, own);
  vandps(first ? sum : own, own, gradient);
  if (!first) vaddps(sum, sum, own);
}

void PoolCode::merge_lanes(const Xmm& to, const Xmm& from, int number, bool alone,
                           const std::function<int64_t(int lane)>& place) {
  if (wide() && number == 0 && !alone) return vmovaps(to, from);
  std::vector<int32_t> places;
  uint8_t here = 0;
  for (int l = 0; l < lanes(); ++l) {
    const auto vector = static_cast<int>(place(l) / lanes()), lane = static_cast<int>(place(l) % lanes());
    if (wide() && number > 0)  // of two vectors: what was put together (first all of vector 0), and this one
      places.push_back(vector == number ? lanes() + lane : number > 1 ? l : lane);
    else
      places.push_back(lane);
    if (vector == number) here = static_cast<uint8_t>(here | 1u << l % 8);
  }
  const Xmm index = scratch(0);
  if (wide()) {
    const Zmm dst(to.getIdx()), order(held_vector(index, held(places)).getIdx()), other(from.getIdx());
    return number == 0 ? vpermps(dst, order, other) : vpermt2ps(dst, order, other);
  }
  vmovups(index, pattern(places));
  const Ymm order(index.getIdx()), other(from.getIdx());
  vpermps(number == 0 ? Ymm(to.getIdx()) : other, order, other);
  if (number > 0) vblendps(to, to, from, here);
}

void PoolCode::every_other_lane(const Xmm& to, const Xmm& first, const Xbyak::Operand& second, bool odd) {
  const Ymm all(to.getIdx());
  vshufps(all, Ymm(first.getIdx()), second, odd ? 0xdd : 0x88);
  vpermpd(all, all, 0xd8);
}

void PoolCode::lanes_in_turns(const Xmm& to, const Xmm& first, const Xmm& second, bool upper) {
  const uint8_t half_twice = upper ? 0xfa : 0x50;  // pairs of lanes 0, 0, 1, 1 of the half
  const Ymm all(to.getIdx()), other(scratch(1).getIdx());
  vpermpd(all, Ymm(first.getIdx()), half_twice);
  vpermpd(other, Ymm(second.getIdx()), half_twice);
  vunpcklps(all, all, other);
}

uint32_t PoolCode::mask_of(const std::vector<bool>& which) {
  uint32_t mask = 0;
  for (size_t l = 0; l < which.size(); ++l) mask |= (which[l] ? 1u : 0u) << l;
  return mask;
}

void PoolCode::set_lanes(const Xmm& v, const std::vector<bool>& which, int32_t bits) {
  const uint32_t mask = mask_of(which);
  if (mask == 0) return;
  if (wide()) {
    mov(eax, mask);
    kmovw(k1, eax);
    return vmovups(v | k1, pattern(everywhere(bits)));
  }
  vblendps(v, v, pattern(everywhere(bits)), static_cast<uint8_t>(mask));
}

}  // namespace partita::jit
