// SPDX-License-Identifier: Apache-2.0
// Loads and stores of every element type, whole vectors and parts of them; nothing outside the named elements is
// touched.
#include <algorithm>
#include <bit>
#include <utility>

#include "kernels/jit/code/emitter.hpp"
#include "src/base/check.hpp"
#include "src/base/cpu.hpp"
#include "src/base/dtype.hpp"

namespace partita::jit {
namespace {

using Xbyak::RegExp;
using Xbyak::Xmm;

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
    case Dtype::f8_e5m2:
    case Dtype::f8_e4m3: return true;
    default: return false;
  }
}

bool Emitter::stores(Dtype dtype) { return loads(dtype); }

void Emitter::hold_mask(int begin, int end) {
  const std::pair elements(begin, end);
  if (std::ranges::find(held_masks_, elements) != held_masks_.end()) return;
  held_masks_.push_back(elements);
  set_mask(held_mask(held_masks_.size() - 1), begin, end);
}

/// mask = lanes, or other elements, [begin, end).
void Emitter::set_mask(const Xbyak::Opmask& mask, int begin, int end) {
  const auto below = [](int n) { return (uint64_t{1} << n) - 1; };
  mov(eax, static_cast<uint32_t>(below(end) & ~below(begin)));
  kmovd(mask, eax);
}

/// Of elements [begin, end): k1, unless it is held.
Xbyak::Opmask Emitter::mask_of(int begin, int end) {
  const auto k = static_cast<size_t>(std::ranges::find(held_masks_, std::pair(begin, end)) - held_masks_.begin());
  if (k < held_masks_.size()) return held_mask(k);
  set_mask(k1, begin, end);
  return k1;
}

void Emitter::load_masked(const Xmm& dst, int bytes, const RegExp& address) {
  const auto from = ptr[address];
  bytes == 4 ? vmovups(dst, from) : bytes == 2 ? vpmovzxwd(dst, from) : vpmovzxbd(dst, from);
}

void Emitter::load(Xmm dst, Dtype dtype, Walk walk, const RegExp& address, int count) {
  if (walk == Walk::same) return load_same(dst, dtype, address);
  if (unpacks(dtype)) return load_packed(dst, dtype, address, count);
  if (count == lanes()) {  // both moves at once
    if (dtype == Dtype::f16) return vcvtph2ps(dst, ptr[address]);
    if (dtype == Dtype::s8) return vpmovsxbd(dst, ptr[address]), vcvtdq2ps(dst, dst);
  }
  load_bytes(dst, element_bytes(dtype), address, count);
  widen(dst, dtype);
}

void Emitter::load_every_other(Xmm dst, const RegExp& address, bool odd) {
  constexpr int kBits = 16;
  if (!odd && wide_) return vpslld(dst, ptr[address], kBits);
  vmovups(dst, ptr[address]);
  constexpr int32_t kUpper = INT32_MIN >> (kBits - 1);
  if (!odd) return vpslld(dst, dst, kBits);
  wide_ ? vpandd(dst, dst, everywhere(kUpper)) : vpand(dst, dst, everywhere(kUpper));
}

namespace {

/// So many 32-bit lanes are one plain move, which what is read next need not wait for as for a masked one.
bool is_small_move(int count) { return count == 1 || count == 2 || count == 4; }

}  // namespace

void Emitter::load_bytes(Xmm dst, int bytes, const RegExp& address, int count) {
  const bool part = count < lanes();
  if (bytes == 4 && part && (!wide_ || is_small_move(count))) return load_first(dst, address, count * 4);
  if (wide_ || !part) return load_masked(part ? dst | mask_of(0, count) | T_z : dst, bytes, address);
  load_first(dst, address, count * bytes);
  bytes == 2 ? vpmovzxwd(dst, low(dst)) : vpmovzxbd(dst, low(dst));
}

void Emitter::load_first(const Xmm& dst, const RegExp& address, int bytes) {
  const Xmm v = low(dst);
  if (bytes > 16) {
    const Xbyak::Ymm all(dst.getIdx());
    load_first(v, address + 16, bytes - 16);
    vperm2f128(all, all, all, 0x08);  // they become the upper half
    return vinsertf128(all, all, ptr[address], 0);
  }
  for (int at = 0, size = 0; at < bytes; at += size) {
    size = static_cast<int>(std::bit_floor(static_cast<unsigned>(bytes - at)));
    const auto from = ptr[address + at];
    const auto place = static_cast<uint8_t>(at / size);
    if (size <= 2 && at == 0) vpxor(v, v, v);
    switch (size) {
      case 16: vmovups(v, from); break;
      case 8: vmovq(v, from); break;
      case 4: at == 0 ? vmovss(v, from) : vpinsrd(v, v, from, place); break;
      case 2: vpinsrw(v, v, from, place); break;
      default: vpinsrb(v, v, from, place);
    }
  }
}

void Emitter::store_first(Xmm v, const RegExp& address, int bytes) {
  const Xmm upper = low(scratch(3));
  for (int at = 0, size = 0; at < bytes; at += size) {
    size = std::min(16, static_cast<int>(std::bit_floor(static_cast<unsigned>(bytes - at))));
    if (at == 16) vextractf128(upper, Xbyak::Ymm(v.getIdx()), 1);
    const Xmm from = at < 16 ? low(v) : upper;
    const auto to = ptr[address + at];
    const auto place = static_cast<uint8_t>(at % 16 / size);
    switch (size) {
      case 16: vmovups(to, from); break;
      case 8: place == 0 ? vmovq(to, from) : vmovhps(to, from); break;
      case 4: place == 0 ? vmovss(to, from) : vextractps(to, from, place); break;
      case 2: vpextrw(to, from, place); break;
      default: vpextrb(to, from, place);
    }
  }
}

void Emitter::load_between(Xmm dst, Dtype dtype, const RegExp& address, int begin, int end) {
  if (begin == 0) return load(dst, dtype, Walk::next, address, end);
  load_masked(dst | mask_of(begin, std::max(begin, end)) | T_z, element_bytes(dtype), address);
  widen(dst, dtype);
}

void Emitter::load_halves_between(Xmm dst, const RegExp& address, int begin, int end) {
  vmovdqu16(dst | mask_of(begin, std::max(begin, end)) | T_z, ptr[address]);
}

void Emitter::each_piece(const std::vector<Xmm>& to, const std::vector<Piece>& pieces, int apart,
                         const std::function<void(const Xmm& masked, const RegExp& at)>& load) {
  for (const Piece& piece : pieces) {
    const Xbyak::Opmask mask = mask_of(piece.begin, piece.end);
    for (size_t k = 0; k < to.size(); ++k) load(to[k] | mask, piece.at + static_cast<int>(k) * apart);
  }
}

void Emitter::load_pieces(const std::vector<Xmm>& to, Dtype dtype, const std::vector<Piece>& pieces, int apart) {
  each_piece(to, pieces, apart, [&](const Xmm& v, const RegExp& at) { load_masked(v, element_bytes(dtype), at); });
  for (const Xmm& v : to) widen(v, dtype);
}

void Emitter::load_halves_pieces(const std::vector<Xmm>& to, const std::vector<Piece>& pieces, int apart) {
  each_piece(to, pieces, apart, [&](const Xmm& v, const RegExp& at) { vmovdqu16(v, ptr[at]); });
}

void Emitter::load_apart(Xmm dst, const RegExp& address, int step, int count) {
  std::vector<int32_t> places;
  for (int i = 0; i < lanes(); ++i) places.push_back(i * step);
  const Xmm at = scratch(0), mask = scratch(1);
  vmovups(at, pattern(places));
  vxorps(dst, dst, dst);  // it need not wait for what was there
  if (wide_) {
    set_mask(k1, 0, count);  // the instruction clears it
    return vgatherdps(Xbyak::Zmm(dst.getIdx()) | k1, ptr[address + Xbyak::Zmm(at.getIdx()) * 4]);
  }
  masks_used_ = true;
  vmovups(mask, ptr[rip + masks_ + (8 - count) * 4]);
  vgatherdps(Xbyak::Ymm(dst.getIdx()), ptr[address + Xbyak::Ymm(at.getIdx()) * 4], Xbyak::Ymm(mask.getIdx()));
}

/// From zero-extended elements to f32.
void Emitter::widen(Xmm dst, Dtype dtype) {
  switch (dtype) {
    case Dtype::bf16: return vpslld(dst, dst, 16);
    case Dtype::f16: return halves_to_f32(dst);
    case Dtype::f8_e5m2:  // the upper byte of an f16
      vpslld(dst, dst, 8);
      return halves_to_f32(dst);
    case Dtype::f8_e4m3: return widen_f8(dst, dtype);
    case Dtype::boolean: vpminsd(dst, dst, everywhere(1)); return vcvtdq2ps(dst, dst);
    case Dtype::s8:
      vpslld(dst, dst, 24);
      vpsrad(dst, dst, 24);
      return vcvtdq2ps(dst, dst);
    case Dtype::u8: return vcvtdq2ps(dst, dst);
    default: return;
  }
}

/// v = f32 of the f16 in the lanes' lower halves.
void Emitter::halves_to_f32(Xmm v) {
  if (wide_) {
    vpmovdw(half(v), v);
  } else {
    const Xbyak::Ymm all(v.getIdx());
    vpackusdw(all, all, all);
    vpermq(all, all, 0x08);
  }
  vcvtph2ps(v, half(v));
}

namespace {

/// Of elements of four bits: bits of each, and how many four bytes hold.
constexpr int kBits = 4, kOfFourBytes = 8;

}  // namespace

/// The bytes that hold `count` elements of four bits, zeros behind them.
void Emitter::load_bytes_of_bits(Xmm bytes, const RegExp& address, int count) {
  if (count == lanes()) return vmovq(bytes, ptr[address]);
  vmovdqu8(bytes | mask_of(0, (count + 1) / 2) | T_z, ptr[address]);
}

/// Each lane gets the four bytes that hold its element, and shifts.
void Emitter::load_packed(Xmm dst, Dtype dtype, const RegExp& address, int count) {
  const Xmm bytes = low(dst);
  const bool whole = count == lanes(), is_signed = dtype == Dtype::s4;
  std::vector<int32_t> fours, shifts;
  for (int i = 0; i < lanes(); ++i) {
    fours.push_back(i / kOfFourBytes);
    const int up = kBits * (i % kOfFourBytes);
    shifts.push_back(is_signed ? 32 - kBits - up : up);
  }
  if (wide_) {
    load_bytes_of_bits(bytes, address, count);
    vmovups(scratch(0), pattern(fours));
    vpermd(Xbyak::Zmm(dst.getIdx()), Xbyak::Zmm(scratch(0).getIdx()), Xbyak::Zmm(dst.getIdx()));
  } else if (whole) {
    vpbroadcastd(dst, ptr[address]);
  } else {
    load_first(bytes, address, (count + 1) / 2);
    vpbroadcastd(dst, bytes);
  }
  if (is_signed) {
    vpsllvd(dst, dst, pattern(shifts));
    vpsrad(dst, dst, 32 - kBits);
  } else {
    vpsrlvd(dst, dst, pattern(shifts));
    wide_ ? vpandd(dst, dst, everywhere(15)) : vpand(dst, dst, everywhere(15));
  }
  vcvtdq2ps(dst, dst);
}

/// Bytes that begin with each lane's bits, of the eight that hold all; without an instruction for them, which four of
/// these each lane gets, and shifts.
Xbyak::Address Emitter::bit_places() {
  std::vector<int32_t> places;
  for (int i = 0; i < lanes(); ++i) places.push_back(shifts_bits_ ? kBits * i : i / kOfFourBytes);
  return pattern(places);
}

void Emitter::load_four_bits(Xmm dst, Xmm places, const RegExp& address, int count) {
  const Xbyak::Zmm to(dst.getIdx()), order(places.getIdx());
  if (shifts_bits_ && count == lanes()) return vpmultishiftqb(to, order, ptr_b[address]);
  load_bytes_of_bits(low(dst), address, count);
  if (shifts_bits_) {
    vpbroadcastq(to, low(dst));
    return vpmultishiftqb(to, order, to);
  }
  std::vector<int32_t> shifts;
  for (int i = 0; i < lanes(); ++i) shifts.push_back(kBits * (i % kOfFourBytes));
  vpermd(to, order, to);
  vpsrlvd(to, to, pattern(shifts));
}

void Emitter::load_same(Xmm dst, Dtype dtype, const RegExp& address) {
  const Xmm one(dst.getIdx());
  switch (dtype) {
    case Dtype::s4:
    case Dtype::u4:
      movzx(eax, byte[address]);
      shl(eax, 28);
      dtype == Dtype::s4 ? sar(eax, 28) : shr(eax, 28);
      vmovd(one, eax);
      vcvtdq2ps(one, one);
      break;
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
    case Dtype::f8_e4m3:
      movzx(eax, byte[address]);
      vmovd(one, eax);
      widen_f8(dst, dtype);
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

void Emitter::store(Xmm value, Dtype dtype, bool integer, const RegExp& address, int count, bool streaming) {
  const Xmm v = scratch(2);
  switch (dtype) {
    case Dtype::f32:
      if (integer) vcvtdq2ps(v, value);
      return store_bytes(integer ? v : value, 4, address, count, streaming);
    case Dtype::s32:
      if (integer) return store_bytes(value, 4, address, count, streaming);
      vmovaps(v, value);
      to_s32(v);
      return store_bytes(v, 4, address, count, streaming);
    case Dtype::bf16:
    case Dtype::f16: to_halves(v, value, dtype, integer); return store_halves(half(v), address, count, streaming);
    default: break;
  }
  integer ? vcvtdq2ps(v, value) : vmovaps(v, value);
  switch (dtype) {
    case Dtype::boolean:
      is_not_zero(v);
      vpsrld(v, v, 31);
      break;
    case Dtype::f8_e5m2:
    case Dtype::f8_e4m3: narrow_f8(v, dtype); break;
    default: to_integer(v, dtype);
  }
  store_bytes(v, 1, address, count, streaming);
}

void Emitter::to_halves(Xmm dst, Xmm value, Dtype dtype, bool integer) {
  const Xmm from = integer ? scratch(2) : value;
  if (integer) vcvtdq2ps(from, value);
  if (dtype == Dtype::f16) return vcvtps2ph(half(dst), from, 0);
  convert_or(
      {from}, [=, this] { vcvtneps2bf16(half(dst), from); }, [=, this] { round_to_halves(dst, from); });
}

/// `instruction` of AVX512_BF16, if there is one, for f32 `values`; `otherwise`, also where one of them has denormals
/// that are to be kept: behind the code of the kernel. One or two values; uses k0, k2 and flags.
void Emitter::convert_or(std::initializer_list<Xmm> values, const std::function<void()>& instruction,
                         const std::function<void()>& otherwise) {
  constexpr uint8_t kDenormal = 0x20;
  if (!converts_bf16_) return otherwise();
  if (!keeps_denormals_) return instruction();
  Xbyak::Label denormal, done;
  const Xbyak::Opmask found[] = {k2, values.size() > 1 ? k0 : k2};
  for (size_t i = 0; i < values.size(); ++i) vfpclassps(found[i], values.begin()[i], kDenormal);
  kortestw(found[0], found[1]);
  jnz(denormal, T_NEAR);
  instruction();
  L(done);
  rare_.push_back([this, otherwise, denormal, done]() mutable {
    L(denormal);
    otherwise();
    jmp(done, T_NEAR);
  });
}

/// To bf16 without the instruction for it. Uses scratch 0 to 2.
void Emitter::round_to_halves(Xmm dst, Xmm value) {
  const Xmm v = scratch(2);
  if (value != v) vmovaps(v, value);
  round_to_bf16(v);
  vpsrld(v, v, 16);
  if (wide_) return vpmovdw(half(dst), v);
  vextracti128(low(scratch(0)), Xbyak::Ymm(v.getIdx()), 1);
  vpackusdw(low(dst), low(v), low(scratch(0)));
}

/// Uses all scratch.
void Emitter::pack(Xmm dst, Xmm a, Xmm b, Dtype dtype) {
  const auto halves = [=, this](const auto& to_half) {
    to_half(scratch(3), b);
    to_half(scratch(2), a);
    vinserti64x4(Xbyak::Zmm(dst.getIdx()), Xbyak::Zmm(scratch(2).getIdx()), half(scratch(3)), 1);
  };
  if (dtype == Dtype::f16) return halves([&](Xmm to, Xmm value) { vcvtps2ph(half(to), value, 0); });
  convert_or(
      {a, b}, [=, this] { vcvtne2ps2bf16(dst, b, a); },
      [=, this] { halves([this](Xmm to, Xmm value) { round_to_halves(to, value); }); });
}

/// The smallest part of the vector that has its first `bytes` bytes: some processors store a whole one in two steps,
/// whatever its mask says.
Xmm Emitter::reaching(Xmm v, int bytes) const {
  return bytes <= 16 ? low(v) : bytes <= 32 ? Xmm(Xbyak::Ymm(v.getIdx())) : v;
}

/// Stores the low `bytes` bytes of each lane.
void Emitter::store_bytes(Xmm v, int bytes, const RegExp& address, int count, bool streaming) {
  const bool part = count < lanes();
  const auto to = ptr[address];
  if (bytes == 4 && in_pieces(count * 4, streaming)) return stream(v, address, count * 4);
  if (wide_ && bytes == 2 && in_pieces(count * 2, streaming)) {
    vpmovdw(half(scratch(3)), v);
    return stream(half(scratch(3)), address, count * 2);
  }
  if (bytes == 4 && part && (!wide_ || is_small_move(count))) return store_first(v, address, count * 4);
  if (wide_) {
    if (part) {
      const auto masked = to | mask_of(0, count);
      return bytes == 4   ? vmovups(masked, reaching(v, count * 4))
             : bytes == 2 ? vpmovdw(masked, v)
                          : vpmovdb(masked, v);
    }
    if (bytes == 4) return streaming ? vmovntps(to, v) : vmovups(to, v);
    if (!streaming) return bytes == 2 ? vpmovdw(to, v) : vpmovdb(to, v);
    const Xmm packed = bytes == 2 ? half(scratch(3)) : low(scratch(3));
    bytes == 2 ? vpmovdw(packed, v) : vpmovdb(packed, v);
    return vmovntdq(to, packed);
  }
  if (bytes == 4) return streaming ? vmovntps(to, v) : vmovups(to, v);
  // The lanes' low bytes alone, packed in each 128 bits, then the two halves side by side.
  const Xmm packed = scratch(3), one = low(packed);
  vpslld(packed, v, 32 - 8 * bytes);
  vpsrld(packed, packed, 32 - 8 * bytes);
  vpackusdw(packed, packed, packed);
  vpermq(Xbyak::Ymm(packed.getIdx()), Xbyak::Ymm(packed.getIdx()), 0x08);
  if (bytes == 1) vpackuswb(one, one, one);
  if (!part) return bytes == 2 ? (streaming ? vmovntdq(to, one) : vmovdqu(to, one)) : vmovq(to, one);
  store_first(one, address, count * bytes);
}

void Emitter::store_words(Xmm v, const RegExp& address, int count, bool streaming) {
  if (count % 2 == 0) return store_bytes(v, 4, address, count / 2, streaming);
  vmovdqu16(ptr[address] | mask_of(0, count), reaching(v, count * 2));
}

/// Stores `count` elements of 16 bits that lie side by side.
void Emitter::store_halves(Xmm packed, const RegExp& address, int count, bool streaming) {
  const auto to = ptr[address];
  if (in_pieces(count * 2, streaming)) return stream(packed, address, count * 2);
  if (count == lanes()) return streaming ? vmovntdq(to, packed) : vmovups(to, packed);
  if (wide_) {
    return vmovdqu16(to | mask_of(0, count), reaching(packed, count * 2));
  }
  store_first(packed, address, count * 2);
}

/// The vector's first `bytes` bytes, as large pieces as may be.
void Emitter::stream(Xmm v, const RegExp& address, int bytes) {
  const Xmm upper = v.getIdx() == scratch(3).getIdx() ? scratch(0) : scratch(3);
  for (int at = 0; at < bytes;) {
    const int left = std::min(bytes - at, stream_piece_);
    const bool halves = left >= 32;
    const auto part = static_cast<uint8_t>(at / (halves ? 32 : 16));
    const Xmm from = at == 0 ? v : upper;
    if (at > 0 && wide_)
      halves ? vextractf32x8(Xbyak::Ymm(upper.getIdx()), Xbyak::Zmm(v.getIdx()), part)
             : vextractf32x4(low(upper), Xbyak::Zmm(v.getIdx()), part);
    else if (at > 0)
      vextractf128(low(upper), Xbyak::Ymm(v.getIdx()), part);
    const auto to = ptr[address + at];
    halves ? vmovntps(to, Xbyak::Ymm(from.getIdx())) : vmovntps(to, low(from));
    at += halves ? 32 : 16;
  }
}

void Emitter::move_bytes(int bytes, const RegExp& from, const RegExp& to, bool streaming) {
  const auto through = [&](const Xmm& v) {
    vmovups(v, ptr[from]);
    streaming ? vmovntps(ptr[to], v) : vmovups(ptr[to], v);
  };
  switch (bytes) {
    case 64: return through(Xbyak::Zmm(0));
    case 32: return through(Xbyak::Ymm(0));
    case 16: return through(Xmm(0));
    case 8: return mov(rcx, qword[from]), mov(qword[to], rcx);
    case 4: return mov(ecx, dword[from]), mov(dword[to], ecx);
    case 2: return movzx(ecx, word[from]), mov(word[to], cx);
    default: return movzx(ecx, byte[from]), mov(byte[to], cl);
  }
}

void Emitter::advance(const Xbyak::Operand& to, int64_t bytes) {
  if (bytes == 0) return;
  if (bytes == static_cast<int32_t>(bytes)) return add(to, static_cast<uint32_t>(bytes));
  mov(rax, bytes);
  add(to, rax);
}

void Emitter::fetch_line(const RegExp& from, Fetching fetching) {
  constexpr int kLineBits = 6, kWindow = 4 * 4096, kPages = 2;
  constexpr int kNear = 4096;  // what is read later does not stay in the nearest cache
  switch (fetching.how) {
    case Fetching::How::none: return;
    case Fetching::How::near: return prefetcht0(ptr[from + fetching.ahead]);
    case Fetching::How::second_level: return prefetcht1(ptr[from + fetching.ahead]);
    case Fetching::How::in_turns: break;
  }
  lea(rax, ptr[from]);
  shr(rax, kLineBits);
  ror(al, kPages);  // the low 8 bits number the lines of a window of four pages
  shl(rax, kLineBits);
  const auto line = ptr[rax + (fetching.ahead + kWindow - 1) / kWindow * kWindow + kWindow];
  fetching.ahead <= kNear ? prefetcht0(line) : prefetcht1(line);
}

}  // namespace partita::jit
