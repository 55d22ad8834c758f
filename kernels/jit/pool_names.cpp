// SPDX-License-Identifier: Apache-2.0
// Code of the names: rdi call, rsi and rdx rows, r8 rows left, rcx element. Vector 0: the first name; 1 and 2: names.
#include "kernels/jit/pool_names.hpp"

#include <algorithm>

#include "kernels/jit/flat_kernel.hpp"

namespace partita::jit {

using Xbyak::RegExp;
using Xbyak::Xmm;
using Xbyak::Ymm;
using Xbyak::Zmm;

NamesKernel::NamesKernel(Isa isa, Dtype dtype, int64_t length) : Emitter(isa), s64_(dtype == Dtype::s64) {
  const int each = s64_ ? 8 : 4;
  const int64_t whole = length / lanes() * lanes();
  const int rest = static_cast<int>(length - whole);
  mov(rsi, ptr[rdi + offsetof(NamesCall, from)]);
  mov(rdx, ptr[rdi + offsetof(NamesCall, to)]);
  mov(r8, ptr[rdi + offsetof(NamesCall, rows)]);
  s64_ ? vpbroadcastq(vec(0), ptr[rdi + offsetof(NamesCall, first)])
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
  for (int at = 0; at < lanes() * (s64_ ? 8 : 4); at += 64) prefetcht0(ptr[from + at + kPrefetchFromMemory]);
  if (!s64_) {
    load_bytes(vec(1), 4, from, count);
    vpsubd(vec(1), vec(1), vec(0));
  } else if (wide()) {
    for (int half : {0, 1}) {
      const int here = std::min(8, count - 8 * half);
      if (here <= 0) break;
      load_bytes(vec(1 + half), 4, from + 64 * half, 2 * here);
      vpsubq(vec(1 + half), vec(1 + half), vec(0));
      vpmovsqd(Ymm(1 + half), Zmm(1 + half));
    }
    if (count > 8) vinserti64x4(Zmm(1), Zmm(1), Ymm(2), 1);
  } else {
    emit_narrow(from, count);
  }
  store_bytes(vec(1), 4, to, count, false);
}

/// AVX2: the lower halves, or all ones where the upper ones do not follow from their signs.
void NamesKernel::emit_narrow(const RegExp& from, int count) {
  const Ymm low(1), high(2), lower(3), fits(4);
  for (int half : {0, 1}) {
    const Xmm to = vec(1 + half);
    const int here = std::min(4, count - 4 * half);
    if (here <= 0) {
      vpxor(to, to, to);
      continue;
    }
    load_bytes(to, 4, from + 32 * half, 2 * here);
    vpsubq(to, to, vec(0));
  }
  vshufps(lower, low, high, 0x88);
  vshufps(high, low, high, 0xdd);
  vpsrad(fits, lower, 31);
  vpcmpeqd(fits, fits, high);
  vpcmpeqd(high, high, high);
  vpandn(fits, fits, high);
  vpor(lower, lower, fits);
  vpermq(low, lower, 0xd8);
}

}  // namespace partita::jit
