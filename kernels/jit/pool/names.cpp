// SPDX-License-Identifier: Apache-2.0
// Code of the names: rdi call, rsi and rdx rows, r8 rows left, rcx element. Vector 0: the first name; 1 and 2: names.
#include "kernels/jit/pool/names.hpp"

#include <algorithm>

#include "kernels/jit/flat/flat_kernel.hpp"

namespace partita::jit {

using Xbyak::RegExp;
using Xbyak::Xmm;
using Xbyak::Ymm;
using Xbyak::Zmm;

namespace {

/// AVX2: the lower halves, or all ones where the upper ones do not follow from their signs.
void load_narrow(Emitter& e, const NameRegisters& r, const RegExp& from, int count) {
  const Ymm low(r.name), high(r.other[0]), lower(r.other[1]), fits(e.scratch(0).getIdx());
  for (const Ymm& to : {low, high}) {
    const int half = to.getIdx() == low.getIdx() ? 0 : 1, here = std::min(4, count - 4 * half);
    if (here <= 0) {
      e.vpxor(to, to, to);
      continue;
    }
    e.load_bytes(to, 4, from + 32 * half, 2 * here);
    e.vpsubq(to, to, e.vec(r.first));
  }
  e.vshufps(lower, low, high, 0x88);
  e.vshufps(high, low, high, 0xdd);
  e.vpsrad(fits, lower, 31);
  e.vpcmpeqd(fits, fits, high);
  e.vpcmpeqd(high, high, high);
  e.vpandn(fits, fits, high);
  e.vpor(lower, lower, fits);
  e.vpermq(low, lower, 0xd8);
}

}  // namespace

void load_names(Emitter& e, Dtype dtype, const NameRegisters& r, const RegExp& from, int count) {
  const bool s64 = dtype == Dtype::s64;
  for (int at = 0; at < e.lanes() * (s64 ? 8 : 4); at += 64) e.fetch_line(from + at, Fetching::near());
  const Xmm name = e.vec(r.name), first = e.vec(r.first), upper = e.vec(r.other[0]);
  if (!s64) {
    e.load_bytes(name, 4, from, count);
    return e.vpsubd(name, name, first);
  }
  if (!e.wide()) return load_narrow(e, r, from, count);
  for (const Xmm& half : {name, upper}) {
    const int skipped = half.getIdx() == name.getIdx() ? 0 : 8, here = std::min(8, count - skipped);
    if (here <= 0) break;
    e.load_bytes(half, 4, from + 8 * skipped, 2 * here);
    e.vpsubq(half, half, first);
    e.vpmovsqd(Ymm(half.getIdx()), Zmm(half.getIdx()));
  }
  if (count > 8) e.vinserti64x4(Zmm(r.name), Zmm(r.name), Ymm(r.other[0]), 1);
}

NamesKernel::NamesKernel(Isa isa, Dtype dtype, int64_t length) : Emitter(isa), dtype_(dtype) {
  const bool s64 = dtype == Dtype::s64;
  const int each = s64 ? 8 : 4;
  const int64_t whole = length / lanes() * lanes();
  const int rest = static_cast<int>(length - whole);
  mov(rsi, ptr[rdi + offsetof(NamesCall, from)]);
  mov(rdx, ptr[rdi + offsetof(NamesCall, to)]);
  mov(r8, ptr[rdi + offsetof(NamesCall, rows)]);
  s64 ? vpbroadcastq(vec(0), ptr[rdi + offsetof(NamesCall, first)])
      : vpbroadcastd(vec(0), ptr[rdi + offsetof(NamesCall, first)]);
  Xbyak::Label row;
  L(row);
  xor_(ecx, ecx);
  if (whole > 0) {
    Xbyak::Label next;
    align(16);
    L(next);
    emit_vector(rsi + rcx * each, rdx + rcx * 4, lanes());
    add(rcx, lanes());
    cmp(rcx, static_cast<uint32_t>(whole));
    jl(next, T_NEAR);
  }
  if (rest > 0) emit_vector(rsi + rcx * each, rdx + rcx * 4, rest);
  add(rsi, ptr[rdi + offsetof(NamesCall, from_bytes)]);
  add(rdx, ptr[rdi + offsetof(NamesCall, to_bytes)]);
  dec(r8);
  jnz(row, T_NEAR);
  vzeroupper();
  ret();
  emit_constants();
  entry_ = reinterpret_cast<void (*)(const NamesCall*)>(reinterpret_cast<uintptr_t>(finish()));
}

void NamesKernel::emit_vector(const RegExp& from, const RegExp& to, int count) {
  load_names(*this, dtype_, {.name = 1, .first = 0, .other = {2, 3}}, from, count);
  store_bytes(vec(1), 4, to, count, false);
}

}  // namespace partita::jit
