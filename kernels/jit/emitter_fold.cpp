// SPDX-License-Identifier: Apache-2.0
// Folds: many elements into one f32, or row upon row into a row of f32.
#include <bit>

#include "kernels/jit/emitter.hpp"
#include "kernels/jit/predicates.hpp"

namespace partita::jit {
namespace {

using Xbyak::RegExp;
using Xbyak::Xmm;
using Xbyak::Ymm;

}  // namespace

/// dst = fold(a, b) for registers of one width. Max and min of the machine give b where either is NaN: a NaN in a needs
/// a second look. Uses scratch 1 and 3 on AVX2.
void Emitter::fold_pair(Xmm dst, Xmm a, Xmm b, Fold fold) {
  if (fold == Fold::sum) return vaddps(dst, a, b);
  if (fold == Fold::mul) return vmulps(dst, a, b);
  const bool max = fold == Fold::max;
  if (wide_) {
    if (dst == b) {
      vcmpps(k2, a, a, kUnordered);
      max ? vmaxps(dst, a, b) : vminps(dst, a, b);
      return vmovaps(dst | k2, a);
    }
    vcmpps(k2, a, a, kOrdered);
    if (dst != a) vmovaps(dst, a);
    return max ? vmaxps(dst | k2, a, b) : vminps(dst | k2, a, b);
  }
  const auto like_a = [&](Xmm r) { return a.isYMM() ? Xmm(Ymm(r.getIdx())) : Xmm(r.getIdx()); };
  const Xmm mask = like_a(scratch(1)), best = like_a(scratch(3));
  vcmpps(mask, a, a, kUnordered);
  max ? vmaxps(best, a, b) : vminps(best, a, b);
  vblendvps(dst, best, a, mask);
}

void Emitter::fold_into(Xmm acc, Xmm value, Fold fold, int count) {
  if (count == lanes()) return fold_pair(acc, acc, value, fold);
  // Lanes behind the last element get what changes nothing.
  const Xmm rest = scratch(0);
  broadcast_bits(rest, std::bit_cast<int32_t>(identity_of(fold)));
  if (wide_) {
    use_mask(count);
    vmovaps(rest | k1, value);
  } else {
    masks_used_ = true;
    vmovups(scratch(1), ptr[rip + masks_ + (8 - count) * 4]);
    vblendvps(rest, rest, value, scratch(1));
  }
  fold_pair(acc, acc, rest, fold);
}

void Emitter::fold_lanes_to_memory(Xmm acc, Fold fold, const RegExp& address) {
  const int a = acc.getIdx(), t = scratch(0).getIdx();
  if (wide_) {
    vextractf64x4(Ymm(t), Xbyak::Zmm(a), 1);
    fold_pair(Ymm(a), Ymm(a), Ymm(t), fold);
    vextractf32x4(Xmm(t), Ymm(a), 1);
  } else {
    vextractf128(Xmm(t), Ymm(a), 1);
  }
  fold_pair(Xmm(a), Xmm(a), Xmm(t), fold);
  vpshufd(Xmm(t), Xmm(a), 0x4e);
  fold_pair(Xmm(a), Xmm(a), Xmm(t), fold);
  vpshufd(Xmm(t), Xmm(a), 0xb1);
  fold_pair(Xmm(a), Xmm(a), Xmm(t), fold);
  vmovss(Xmm(t), dword[address]);
  fold_pair(Xmm(a), Xmm(a), Xmm(t), fold);
  vmovss(dword[address], Xmm(a));
}

/// Halves of the accumulators come side by side in fewer registers while they are folded, so that four rows take about
/// as many operations as one.
void Emitter::fold_rows_to_memory(int acc, Fold fold, const RegExp& address) {
  static_assert(kFoldedRows == 4);
  const Xmm t = scratch(0), all = vec(acc);
  const auto exchange = [&](int shuffle) {
    vpshufd(t, all, static_cast<uint8_t>(shuffle));
    fold_pair(all, all, t, fold);
  };
  if (wide_) {
    const auto halves = [&](int a, int b, uint8_t low, uint8_t high) {
      const Xbyak::Zmm za(a), zb(b), zt(t.getIdx());
      vshuff32x4(zt, za, zb, low);
      vshuff32x4(za, za, zb, high);
      fold_pair(za, zt, za, fold);
    };
    halves(acc, acc + 1, 0x44, 0xee);
    halves(acc + 2, acc + 3, 0x44, 0xee);
    halves(acc, acc + 2, 0x88, 0xdd);
    exchange(0x4e);
    exchange(0xb1);
    vmovups(t, pattern({0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  } else {
    const auto halves = [&](int a, int b) {
      const Ymm ya(a), yb(b), yt(t.getIdx());
      vperm2f128(yt, ya, yb, 0x20);
      vperm2f128(ya, ya, yb, 0x31);
      fold_pair(ya, yt, ya, fold);
    };
    halves(acc, acc + 1);
    halves(acc + 2, acc + 3);
    vunpcklpd(t, all, vec(acc + 2));
    vunpckhpd(all, all, vec(acc + 2));
    fold_pair(all, t, all, fold);
    exchange(0xb1);
    vmovups(t, pattern({0, 4, 2, 6, 0, 0, 0, 0}));
  }
  wide_ ? vpermps(Xbyak::Zmm(acc), Xbyak::Zmm(t.getIdx()), Xbyak::Zmm(acc))
        : vpermps(Ymm(acc), Ymm(t.getIdx()), Ymm(acc));
  vmovups(Xmm(acc + 1), ptr[address]);
  fold_pair(Xmm(acc), Xmm(acc), Xmm(acc + 1), fold);
  vmovups(ptr[address], Xmm(acc));
}

void Emitter::fold_to_memory(Xmm value, Fold fold, const RegExp& address, int count) {
  const Xmm so_far = scratch(2);
  load(so_far, Dtype::f32, Walk::next, address, count);
  fold_pair(so_far, so_far, value, fold);
  store_bytes(so_far, 4, address, count, false);
}

}  // namespace partita::jit
