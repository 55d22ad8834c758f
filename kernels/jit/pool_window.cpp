// SPDX-License-Identifier: Apache-2.0
// Code of whole windows: rdi call, rcx first channel of the vector, r8 windows left, rax and rdx for a moment; the
// stack holds the operands' places. Vectors: the best tap, its number, a tap, the gradient, then those of front and of
// back.
#include "kernels/jit/pool_window.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "kernels/jit/channel_groups.hpp"
#include "kernels/jit/expand.hpp"
#include "kernels/jit/pool_walk.hpp"
#include "src/base/dtype.hpp"
#include "src/base/threads.hpp"

namespace partita::jit {
namespace {

using Xbyak::Xmm;

constexpr int kBest = 0, kTap = 1, kWinners = 2, kLeastRegisters = 4;
constexpr uint8_t kOrdered = 0x07, kNotGreaterEqual = 0x19;
constexpr int64_t kMostTaps = 16;
constexpr int64_t kLeastChannels = 8;
constexpr size_t kMostStreams = 64;

size_t streams_of(const PoolPlan& p) {
  return p.front_in.size() + static_cast<size_t>(p.tap_rows()) * (1 + p.back_in.size() + p.out.size());
}

}  // namespace

WindowKernel::WindowKernel(Isa isa, const PoolPlan& plan, const Problem& problem, bool streaming)
    : Emitter(isa), p_(plan), streaming_(streaming), together_(wide() ? 2 : 1), gradients_(kWinners + together_) {
  const int64_t step = p_.g.strides[2];
  for (int64_t r = 0; r < tap_rows(); ++r) streams_.push_back({&p_.in[0], p_.in[0].x * step});
  for (int k : p_.front_in) streams_.push_back({&p_.in[static_cast<size_t>(k)], p_.in[static_cast<size_t>(k)].x});
  for (int64_t r = 0; r < tap_rows(); ++r)
    for (int k : p_.back_in)
      streams_.push_back({&p_.in[static_cast<size_t>(k)], p_.in[static_cast<size_t>(k)].x * step});
  for (int64_t r = 0; r < tap_rows(); ++r)
    for (const PoolOperand& o : p_.out) streams_.push_back({&o, o.x * step});

  const auto never = [](int) { return false; };
  const int taken = gradients_ + together_, middle = taken + (wide() ? 2 * kLeastRegisters : kLeastRegisters);
  const int spill_at = (static_cast<int>(streams_.size()) * 8 + 63) / 64 * 64;
  Body front(*this, expanded_front(p_.front, problem), {taken, middle, rsp + spill_at}, never);
  const int back_at = spill_at + front.spill_slots() * 64;
  Body back(*this, expanded(p_.back, problem), {middle, value_registers(), rsp + back_at}, never);
  push(rbp);
  mov(rbp, rsp);
  sub(rsp, back_at + back.spill_slots() * 64);
  and_(rsp, -64);
  mov(rax, ptr[rdi + offsetof(WindowCall, addresses)]);
  for (size_t k = 0; k < streams_.size(); ++k) {
    mov(rdx, ptr[rax + 8 * static_cast<int>(k)]);
    mov(slot(k), rdx);
  }
  mov(r8, ptr[rdi + offsetof(WindowCall, windows)]);
  const BodyHooks none;
  front.emit_constants();
  back.emit_constants();
  front.emit_row_values(none);
  back.emit_row_values(none);
  emit_window(front, back);
  vzeroupper();
  mov(rsp, rbp);
  pop(rbp);
  ret();
  emit_constants();
  align(64);
  L(numbers_);
  for (int64_t tap = 0; tap < tap_rows() * p_.g.kernel[2]; ++tap)
    for (int l = 0; l < (wide() ? 1 : lanes()); ++l) dd(static_cast<uint32_t>(tap));
  entry_ = reinterpret_cast<void (*)(const WindowCall*)>(reinterpret_cast<uintptr_t>(finish()));
}

void WindowKernel::emit_window(Body& front, Body& back) {
  Xbyak::Label window;
  align(16);
  L(window);
  emit_channel_groups(*this, p_.g.channels, together_, lanes(),
                      [&](int vectors, int last) { emit_group(front, back, vectors, last); });
  for (size_t k = 0; k < streams_.size(); ++k) {
    if (streams_[k].step == static_cast<int32_t>(streams_[k].step)) {
      add(slot(k), static_cast<uint32_t>(streams_[k].step));
    } else {
      mov(rax, streams_[k].step);
      add(slot(k), rax);
    }
  }
  dec(r8);
  jnz(window, T_NEAR);
}

/// `vectors` vectors of a window, the last one with `last` channels. A cell's vectors are stored one after the other,
/// so that 16-bit results make whole cache lines.
void WindowKernel::emit_group(Body& front, Body& back, int vectors, int last) {
  const auto count = [&](int v) { return v + 1 == vectors ? last : lanes(); };
  for (int v = 0; v < vectors; ++v) {
    find_winner(v, count(v));
    BodyHooks hooks;
    hooks.load = [&](Xmm dst, int operand) {
      const auto k = static_cast<size_t>(std::ranges::find(p_.front_in, operand) - p_.front_in.begin());
      load_at(dst, p_.in[static_cast<size_t>(operand)], front_stream(k), 0, v, count(v));
    };
    hooks.store = [&](Xmm value, const Lane& lane) {
      lane.flag ? vcvtdq2ps(vec(gradients_ + v), value) : vmovaps(vec(gradients_ + v), value);
    };
    front.emit(hooks);
  }
  for (int64_t row = 0; row < tap_rows(); ++row)
    for (int64_t tap = 0; tap < p_.g.kernel[2]; ++tap)
      for (int v = 0; v < vectors; ++v) emit_cell(back, row, tap, v, count(v));
}

/// The first maximum; NaN counts as one.
void WindowKernel::find_winner(int vector, int count) {
  broadcast_bits(vec(kBest), std::bit_cast<int32_t>(-std::numeric_limits<float>::infinity()));
  broadcast_bits(vec(kWinners + vector), 0);
  for (int64_t row = 0; row < tap_rows(); ++row)
    for (int64_t tap = 0; tap < p_.g.kernel[2]; ++tap) {
      load_at(vec(kTap), p_.in[0], static_cast<size_t>(row), tap, vector, count);
      compete(row * p_.g.kernel[2] + tap, vector);
    }
}

void WindowKernel::compete(int64_t tap, int vector) {
  const Xmm best = vec(kBest), winner = vec(kWinners + vector), value = vec(kTap);
  if (wide()) {
    vcmpps(k1, best, value, kNotGreaterEqual);
    vcmpps(k1 | k1, best, best, kOrdered);
    vmovaps(best | k1, value);
    vpbroadcastd(winner | k1, ptr[rip + numbers_ + static_cast<int>(tap) * 4]);
    return;
  }
  const Xmm wins = scratch(0), ordered = scratch(1);
  vcmpps(wins, best, value, kNotGreaterEqual);
  vcmpps(ordered, best, best, kOrdered);
  vandps(wins, wins, ordered);
  vblendvps(best, best, value, wins);
  vblendvps(winner, winner, ptr[rip + numbers_ + static_cast<int>(tap) * 32], wins);
}

void WindowKernel::emit_cell(Body& back, int64_t row, int64_t tap, int vector, int count) {
  const int number = static_cast<int>(row * p_.g.kernel[2] + tap);
  BodyHooks hooks;
  hooks.load = [&](Xmm dst, int operand) {
    const auto k = static_cast<size_t>(std::ranges::find(p_.back_in, operand) - p_.back_in.begin());
    load_at(dst, p_.in[static_cast<size_t>(operand)], back_stream(row, k), tap, vector, count);
  };
  hooks.skeleton = [&](Xmm dst) {
    if (wide()) {
      vpcmpeqd(k1, vec(kWinners + vector), ptr_b[rip + numbers_ + number * 4]);
      vmovaps(dst | k1 | T_z, vec(gradients_ + vector));
    } else {
      vpcmpeqd(scratch(0), vec(kWinners + vector), ptr[rip + numbers_ + number * 32]);
      vandps(dst, scratch(0), vec(gradients_ + vector));
    }
  };
  hooks.store = [&](Xmm value, const Lane& lane) {
    const auto k = static_cast<size_t>(lane.imm);
    const PoolOperand& o = p_.out[k];
    const int each = bits_of(o.dtype) / 8;
    mov(rdx, slot(out_stream(row, k)));
    store(value, o.dtype, lane.flag, rdx + rcx * each + static_cast<int>(tap * o.x) + vector * lanes() * each, count,
          streaming_ && count == lanes());
  };
  back.emit(hooks);
}

/// Loads what lies `tap` cells behind the stream's place. What comes later is asked for early: loads alone keep too
/// little under way.
void WindowKernel::load_at(const Xmm& dst, const PoolOperand& o, size_t stream, int64_t tap, int vector, int count) {
  const int each = bits_of(o.dtype) / 8, at = static_cast<int>(tap * o.x) + vector * lanes() * each;
  mov(rdx, slot(stream));
  if (o.c == 0) return load(dst, o.dtype, Walk::same, rdx + static_cast<int>(tap * o.x), count);
  prefetcht0(ptr[rdx + rcx * each + at + kPrefetchFromMemory]);
  load(dst, o.dtype, Walk::next, rdx + rcx * each + at, count);
}

bool WindowPool::fits(const Problem& problem) {
  const PoolPlan p(problem);
  const PoolGeometry& g = p.g;
  if (!p.maximum || !p.channel_last || g.channels < kLeastChannels || p.tap_rows() * g.kernel[2] > kMostTaps ||
      streams_of(p) > kMostStreams)
    return false;
  for (int i = 0; i < 3; ++i)
    if (g.kernel[i] != g.strides[i] || (g.dilations[i] != 1 && g.kernel[i] > 1) || g.pads_begin[i] != 0 ||
        g.src[i] != g.dst[i] * g.strides[i])
      return false;
  // Cells of a window are reached by immediate numbers.
  const auto near = [&](const PoolOperand& o) { return std::abs(o.x) * g.kernel[2] < INT32_MAX / 2; };
  return std::ranges::all_of(p.in, near) && std::ranges::all_of(p.out, near);
}

WindowPool::WindowPool(const Problem& problem, const Target& target) : p_(problem) {
  kernel_ = std::make_unique<const WindowKernel>(target.isa, p_, problem, false);
  // Many cells are written in turns, so streams pay only where each gets a whole cache line at a time.
  const int64_t together = target.isa == Isa::avx512 ? 32 : 8;
  if (exceeds_cache(problem) && std::ranges::all_of(p_.out, [&](const PoolOperand& o) {
        return on_lines({o.offset, o.n, o.z, o.y, o.x}) &&
               together * bits_of(o.dtype) / 8 >= (target.isa == Isa::avx512 ? kCacheLine : kCacheLine / 2);
      }))
    streaming_ = std::make_unique<const WindowKernel>(target.isa, p_, problem, true);
}

Status WindowPool::operator()(const RunArgs& args) const {
  const PoolGeometry& g = p_.g;
  const bool streaming = streaming_ && outputs_aligned(args);
  const auto part = [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      run(args, streaming ? *streaming_ : *kernel_, row / g.dst[1] / g.dst[0], row / g.dst[1] % g.dst[0],
          row % g.dst[1]);
    if (streaming) end_streaming();
  };
  parallel_for(g.batch * g.dst[0] * g.dst[1], g.src[2] * g.channels * p_.tap_rows(), part);
  return {};
}

/// A row of windows.
void WindowPool::run(const RunArgs& args, const WindowKernel& kernel, int64_t n, int64_t z, int64_t y) const {
  const PoolGeometry& g = p_.g;
  std::array<const void*, kMostStreams> addresses;
  size_t count = 0;
  const auto each_row = [&](auto add) {
    for (int64_t a = 0; a < g.kernel[0]; ++a)
      for (int64_t b = 0; b < g.kernel[1]; ++b) add(z * g.strides[0] + a, y * g.strides[1] + b);
  };
  each_row([&](int64_t az, int64_t ay) { addresses[count++] = p_.in[0].at(args.in[0], n, 0, az, ay, 0); });
  for (int k : p_.front_in) {
    const auto o = static_cast<size_t>(k);
    addresses[count++] = p_.in[o].at(args.in[o], n, 0, z, y, 0);
  }
  each_row([&](int64_t az, int64_t ay) {
    for (int k : p_.back_in) {
      const auto o = static_cast<size_t>(k);
      addresses[count++] = p_.in[o].at(args.in[o], n, 0, az, ay, 0);
    }
  });
  each_row([&](int64_t az, int64_t ay) {
    for (size_t o = 0; o < p_.out.size(); ++o) addresses[count++] = p_.out[o].at(args.out[o], n, 0, az, ay, 0);
  });
  kernel({addresses.data(), g.dst[2]});
}

}  // namespace partita::jit
