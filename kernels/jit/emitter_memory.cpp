// SPDX-License-Identifier: Apache-2.0
// Loads and stores of every element type, whole vectors and parts of them; nothing outside the named elements is
// touched.
#include <bit>

#include "kernels/jit/emitter.hpp"
#include "src/base/check.hpp"
#include "src/base/dtype.hpp"

namespace partita::jit {
namespace {

using Xbyak::RegExp;
using Xbyak::Xmm;

constexpr uint8_t kOrdered = 0x07, kNotEqual = 0x04, kGreaterEqual = 0x1d;

}  // namespace

bool Emitter::loads(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32:
    case Dtype::bf16:
    case Dtype::f16:
    case Dtype::s32:
    case Dtype::s8:
    case Dtype::u8:
    case Dtype::boolean:
    case Dtype::f8_e5m2: return true;
    default: return false;
  }
}

bool Emitter::stores(Dtype dtype) { return loads(dtype) && dtype != Dtype::f8_e5m2; }

/// k1 = the first `count` lanes.
void Emitter::use_mask(int count) {
  mov(eax, (1u << count) - 1);
  kmovd(k1, eax);
}

void Emitter::load(Xmm dst, Dtype dtype, Walk walk, const RegExp& address, int count) {
  if (walk == Walk::same) return load_same(dst, dtype, address);
  if (count < lanes()) return load_part(dst, dtype, address, count);
  switch (dtype) {
    case Dtype::bf16: vpmovzxwd(dst, ptr[address]); break;
    case Dtype::f16: return vcvtph2ps(dst, ptr[address]);
    case Dtype::s8: vpmovsxbd(dst, ptr[address]); break;
    case Dtype::u8:
    case Dtype::boolean: vpmovzxbd(dst, ptr[address]); break;
    case Dtype::f8_e5m2: vpmovzxbw(half(dst), ptr[address]); break;
    default: return vmovups(dst, ptr[address]);
  }
  widen(dst, dtype);
}

/// From what a widening move left to f32.
void Emitter::widen(Xmm dst, Dtype dtype) {
  switch (dtype) {
    case Dtype::bf16: return vpslld(dst, dst, 16);
    case Dtype::f16: return vcvtph2ps(dst, half(dst));
    case Dtype::f8_e5m2:  // the upper byte of an f16
      vpsllw(half(dst), half(dst), 8);
      return vcvtph2ps(dst, half(dst));
    case Dtype::boolean:
      broadcast_bits(scratch(0), 1);
      vpminsd(dst, dst, scratch(0));
      return vcvtdq2ps(dst, dst);
    case Dtype::s8:
    case Dtype::u8: return vcvtdq2ps(dst, dst);
    default: return;
  }
}

void Emitter::load_same(Xmm dst, Dtype dtype, const RegExp& address) {
  const Xmm one(dst.getIdx());
  switch (dtype) {
    case Dtype::f32:
    case Dtype::s32: return vbroadcastss(dst, dword[address]);
    case Dtype::bf16:
      movzx(eax, word[address]);
      shl(eax, 16);
      vmovd(one, eax);
      break;
    case Dtype::f16:
    case Dtype::f8_e5m2:
      if (dtype == Dtype::f16)
        movzx(eax, word[address]);
      else
        movzx(eax, byte[address]), shl(eax, 8);
      vmovd(one, eax);
      vcvtph2ps(one, one);
      break;
    default:
      dtype == Dtype::s8 ? movsx(eax, byte[address]) : movzx(eax, byte[address]);
      if (dtype == Dtype::boolean) {
        test(eax, eax);
        setne(al);
        movzx(eax, al);
      }
      vmovd(one, eax);
      vcvtdq2ps(one, one);
  }
  vbroadcastss(dst, one);
}

void Emitter::load_part(Xmm dst, Dtype dtype, const RegExp& address, int count) {
  if (wide_) {
    use_mask(count);
    switch (dtype) {
      case Dtype::bf16: vpmovzxwd(dst | k1 | T_z, ptr[address]); break;
      case Dtype::f16: return vcvtph2ps(dst | k1 | T_z, ptr[address]);
      case Dtype::s8: vpmovsxbd(dst | k1 | T_z, ptr[address]); break;
      case Dtype::u8:
      case Dtype::boolean: vpmovzxbd(dst | k1 | T_z, ptr[address]); break;
      case Dtype::f8_e5m2: vpmovzxbw(half(dst) | k1 | T_z, ptr[address]); break;
      default: return vmovups(dst | k1 | T_z, ptr[address]);
    }
    return widen(dst, dtype);
  }
  const Xmm one(dst.getIdx());
  const int bytes = bits_of(dtype) / 8;
  if (bytes == 4) {
    masks_used_ = true;
    vmovups(scratch(0), ptr[rip + masks_ + (8 - count) * 4]);
    return vmaskmovps(dst, scratch(0), ptr[address]);
  }
  vpxor(one, one, one);
  for (int j = 0; j < count; ++j)
    bytes == 2 ? vpinsrw(one, one, ptr[address + 2 * j], static_cast<uint8_t>(j))
               : vpinsrb(one, one, ptr[address + j], static_cast<uint8_t>(j));
  switch (dtype) {
    case Dtype::bf16: vpmovzxwd(dst, one); break;
    case Dtype::s8: vpmovsxbd(dst, one); break;
    case Dtype::u8:
    case Dtype::boolean: vpmovzxbd(dst, one); break;
    case Dtype::f8_e5m2: vpmovzxbw(one, one); break;
    default: break;
  }
  widen(dst, dtype);
}

void Emitter::store(Xmm value, Dtype dtype, bool integer, const RegExp& address, int count, bool streaming) {
  const Xmm v = scratch(2);
  switch (dtype) {
    case Dtype::f32:
      if (integer) vcvtdq2ps(v, value);
      return store_part(integer ? v : value, 4, address, count, streaming);
    case Dtype::s32:
      if (integer) return store_part(value, 4, address, count, streaming);
      vmovaps(v, value);
      return store_as_s32(v, address, count, streaming);
    case Dtype::bf16:
      integer ? vcvtdq2ps(v, value) : vmovaps(v, value);
      round_to_bf16(v);
      vpsrld(v, v, 16);
      return store_part(v, 2, address, count, streaming);
    case Dtype::f16:
      if (integer) vcvtdq2ps(v, value);
      vcvtps2ph(half(v), integer ? v : value, 0);
      vpmovzxwd(v, half(v));
      return store_part(v, 2, address, count, streaming);
    case Dtype::boolean:
      integer ? vcvtdq2ps(v, value) : vmovaps(v, value);
      vxorps(scratch(0), scratch(0), scratch(0));
      if (wide_) {
        vcmpps(k2, v, scratch(0), kNotEqual);
        vpmovm2d(v, k2);
      } else {
        vcmpps(v, v, scratch(0), kNotEqual);
      }
      vpsrld(v, v, 31);
      return store_part(v, 1, address, count, streaming);
    default:
      integer ? vcvtdq2ps(v, value) : vmovaps(v, value);
      to_integer(v, dtype == Dtype::s8 ? -128.0f : 0.0f, dtype == Dtype::s8 ? 127.0f : 255.0f);
      return store_part(v, 1, address, count, streaming);
  }
}

/// f32 to s32 with saturation; NaN gives 0.
void Emitter::store_as_s32(Xmm v, const RegExp& address, int count, bool streaming) {
  const Xmm whole = scratch(0), other = scratch(1);
  vcvtps2dq(whole, v);
  broadcast_bits(other, std::bit_cast<int32_t>(2147483648.0f));
  if (wide_) {
    vcmpps(k2, v, other, kGreaterEqual);
    broadcast_bits(other, INT32_MAX);
    vmovaps(whole | k2, other);
    vcmpps(k2, v, v, kOrdered);
    vmovaps(whole | k2 | T_z, whole);
  } else {
    // Too large gave 0x80000000; all ones where too large turn it into 0x7fffffff.
    vcmpps(other, v, other, kGreaterEqual);
    vxorps(whole, whole, other);
    vcmpps(other, v, v, kOrdered);
    vandps(whole, whole, other);
  }
  store_part(whole, 4, address, count, streaming);
}

/// Stores the low `bytes` bytes of each lane.
void Emitter::store_part(Xmm v, int bytes, const RegExp& address, int count, bool streaming) {
  const bool part = count < lanes();
  const auto to = ptr[address];
  if (wide_) {
    if (part) use_mask(count);
    if (bytes == 4) return part ? vmovups(to | k1, v) : streaming ? vmovntps(to, v) : vmovups(to, v);
    if (part) return bytes == 2 ? vpmovdw(to | k1, v) : vpmovdb(to | k1, v);
    if (!streaming) return bytes == 2 ? vpmovdw(to, v) : vpmovdb(to, v);
    const Xmm packed = bytes == 2 ? half(scratch(3)) : low(scratch(3));
    bytes == 2 ? vpmovdw(packed, v) : vpmovdb(packed, v);
    return vmovntdq(to, packed);
  }
  if (bytes == 4) {
    if (!part) return streaming ? vmovntps(to, v) : vmovups(to, v);
    masks_used_ = true;
    vmovups(scratch(3), ptr[rip + masks_ + (8 - count) * 4]);
    return vmaskmovps(to, scratch(3), v);
  }
  // The lanes' low bytes alone, packed in each 128 bits, then the two halves side by side.
  const Xmm packed = scratch(3), one = low(packed);
  vpslld(packed, v, 32 - 8 * bytes);
  vpsrld(packed, packed, 32 - 8 * bytes);
  vpackusdw(packed, packed, packed);
  vpermq(Xbyak::Ymm(packed.getIdx()), Xbyak::Ymm(packed.getIdx()), 0x08);
  if (bytes == 1) vpackuswb(one, one, one);
  if (!part) return bytes == 2 ? (streaming ? vmovntdq(to, one) : vmovdqu(to, one)) : vmovq(to, one);
  for (int j = 0; j < count; ++j)
    bytes == 2 ? vpextrw(ptr[address + 2 * j], one, static_cast<uint8_t>(j))
               : vpextrb(ptr[address + j], one, static_cast<uint8_t>(j));
}

}  // namespace partita::jit
