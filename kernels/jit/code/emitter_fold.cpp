// SPDX-License-Identifier: Apache-2.0
// Folds: many elements into one f32, or row upon row into a row of f32.
#include <bit>

#include "kernels/jit/code/emitter.hpp"
#include "kernels/jit/code/predicates.hpp"

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
  if (wide_ && (fold == Fold::sum || fold == Fold::mul)) return fold_pair(acc | mask_of(0, count), acc, value, fold);
  // Lanes behind the last element get what changes nothing.
  const Xmm rest = scratch(0);
  broadcast_bits(rest, std::bit_cast<int32_t>(identity_of(fold)));
  keep_lanes(rest, value, rest, count);
  fold_pair(acc, acc, rest, fold);
}

void Emitter::keep_lanes(Xmm dst, Xmm a, Xmm others, int count) {
  if (wide_) return vblendmps(dst | mask_of(0, count), others, a);
  masks_used_ = true;
  vmovups(scratch(1), ptr[rip + masks_ + (8 - count) * 4]);
  vblendvps(dst, others, a, scratch(1));
}

void Emitter::fold_lanes(Xmm dst, Xmm a, Fold fold) {
  const int d = dst.getIdx(), t = scratch(0).getIdx();
  int from = a.getIdx();
  if (wide_) {
    vextractf64x4(Ymm(t), Xbyak::Zmm(from), 1);
    fold_pair(Ymm(d), Ymm(from), Ymm(t), fold);
    vextractf32x4(Xmm(t), Ymm(d), 1);
    from = d;
  } else {
    vextractf128(Xmm(t), Ymm(from), 1);
  }
  fold_pair(Xmm(d), Xmm(from), Xmm(t), fold);
  vpshufd(Xmm(t), Xmm(d), 0x4e);
  fold_pair(Xmm(d), Xmm(d), Xmm(t), fold);
  vpshufd(Xmm(t), Xmm(d), 0xb1);
  fold_pair(Xmm(d), Xmm(d), Xmm(t), fold);
}

void Emitter::fold_lanes_to_memory(Xmm acc, Fold fold, const RegExp& address) {
  const int a = acc.getIdx(), t = scratch(0).getIdx();
  fold_lanes(acc, acc, fold);
  vmovss(Xmm(t), dword[address]);
  fold_pair(Xmm(a), Xmm(a), Xmm(t), fold);
  vmovss(dword[address], Xmm(a));
}

void Emitter::fold_parts(Xmm dst, Xmm a, Xmm b, Fold fold, bool halves) {
  const Xmm low = scratch(0), high = scratch(2);
  const int l = low.getIdx(), h = high.getIdx();
  if (wide_) {
    const Xbyak::Zmm za(a.getIdx()), zb(b.getIdx());
    vshuff32x4(Xbyak::Zmm(l), za, zb, halves ? 0x44 : 0x88);
    vshuff32x4(Xbyak::Zmm(h), za, zb, halves ? 0xee : 0xdd);
  } else if (halves) {
    vperm2f128(Ymm(l), Ymm(a.getIdx()), Ymm(b.getIdx()), 0x20);
    vperm2f128(Ymm(h), Ymm(a.getIdx()), Ymm(b.getIdx()), 0x31);
  } else {
    vunpcklpd(low, a, b);
    vunpckhpd(high, a, b);
  }
  fold_pair(dst, low, high, fold);
}

void Emitter::fold_inside_quarters(Xmm dst, Xmm a, Fold fold) {
  const Xmm t = scratch(0);
  if (wide_) {
    vpshufd(t, a, 0x4e);
    fold_pair(dst, a, t, fold);
    a = dst;
  }
  vpshufd(t, a, 0xb1);
  fold_pair(dst, a, t, fold);
  vmovups(t, wide_ ? pattern({0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}) : pattern({0, 4, 2, 6, 0, 0, 0, 0}));
  wide_ ? vpermps(Xbyak::Zmm(dst.getIdx()), Xbyak::Zmm(t.getIdx()), Xbyak::Zmm(dst.getIdx()))
        : vpermps(Ymm(dst.getIdx()), Ymm(t.getIdx()), Ymm(dst.getIdx()));
}

/// Halves of the accumulators come side by side in fewer registers while they are folded, so that four rows take about
/// as many operations as one.
void Emitter::fold_rows_to_memory(int acc, Fold fold, const RegExp& address) {
  static_assert(kFoldedRows == 4);
  const Xmm all = vec(acc);
  fold_parts(all, all, vec(acc + 1), fold, true);
  fold_parts(vec(acc + 2), vec(acc + 2), vec(acc + 3), fold, true);
  fold_parts(all, all, vec(acc + 2), fold, false);
  fold_inside_quarters(all, all, fold);
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

void Emitter::fold_to_slot(Xmm value, Fold fold, const RegExp& address, int count) {
  const Xmm so_far = scratch(2);
  vmovups(so_far, ptr[address]);
  fold_into(so_far, value, fold, count);
  vmovups(ptr[address], so_far);
}

}  // namespace partita::jit
