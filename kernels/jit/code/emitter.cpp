// SPDX-License-Identifier: Apache-2.0
// Lane operations as AVX2 or AVX-512 instructions. k1 masks the last, partial vector, or k6 does where it is held; k2
// holds comparisons; k3 the upper words of lanes, where there are pairs; eax is free for single elements.
#include "kernels/jit/code/emitter.hpp"

#include <algorithm>
#include <bit>

#include "kernels/jit/code/predicates.hpp"
#include "kernels/jit/code/vector_pieces.hpp"
#include "src/base/perf_map.hpp"
#include "src/base/philox.hpp"

namespace partita::jit {
namespace {

using Xbyak::Xmm;

constexpr int kNearestEven = 0, kDown = 1;

uint8_t predicate_of(LaneOp op) {
  switch (op) {
    case LaneOp::gt: return kGreater;
    case LaneOp::ge: return kGreaterEqual;
    case LaneOp::eq: return kEqual;
    default: return kUnordered;
  }
}

/// Operations of two vectors that are one instruction; false for all others.
bool emit_pair(Emitter& e, LaneOp op, const Xmm& dst, const Xmm& a, const Xbyak::Operand& b) {
  switch (op) {
    case LaneOp::add: return e.vaddps(dst, a, b), true;
    case LaneOp::sub: return e.vsubps(dst, a, b), true;
    case LaneOp::mul: return e.vmulps(dst, a, b), true;
    case LaneOp::div: return e.vdivps(dst, a, b), true;
    case LaneOp::max: return e.vmaxps(dst, a, b), true;
    case LaneOp::min: return e.vminps(dst, a, b), true;
    case LaneOp::and_: return e.vandps(dst, a, b), true;
    case LaneOp::or_: return e.vorps(dst, a, b), true;
    case LaneOp::xor_: return e.vxorps(dst, a, b), true;
    case LaneOp::andnot: return e.vandnps(dst, a, b), true;
    case LaneOp::iadd: return e.vpaddd(dst, a, b), true;
    case LaneOp::isub: return e.vpsubd(dst, a, b), true;
    case LaneOp::imul: return e.vpmulld(dst, a, b), true;
    case LaneOp::imax: return e.vpmaxsd(dst, a, b), true;
    case LaneOp::imin: return e.vpminsd(dst, a, b), true;
    case LaneOp::iadd64: return e.vpaddq(dst, a, b), true;
    default: return false;
  }
}

std::vector<int32_t> bits_of(std::span<const float> numbers) {
  std::vector<int32_t> bits(numbers.size());
  std::ranges::transform(numbers, bits.begin(), [](float number) { return std::bit_cast<int32_t>(number); });
  return bits;
}

}  // namespace

Xbyak::Address Emitter::constant(int32_t bits) { return ptr[rip + constants_[bits]]; }

Xbyak::Address Emitter::everywhere(int32_t bits) {
  return wide_ ? ptr_b[rip + constants_[bits]] : ptr[rip + vectors_[bits]];
}

void Emitter::broadcast_bits(Xmm dst, int32_t bits) {
  if (bits == 0) return wide_ ? vpxord(dst, dst, dst) : vxorps(dst, dst, dst);
  vbroadcastss(dst, constant(bits));
}

Xbyak::Address Emitter::pattern(const std::vector<int32_t>& numbers) { return ptr[rip + patterns_[numbers]]; }

std::vector<int32_t> Emitter::pairs_of(const std::vector<int32_t>& words) {
  std::vector<int32_t> pairs;
  for (size_t l = 0; l < words.size(); l += 2) pairs.push_back((words[l] & 0xffff) | words[l + 1] << 16);
  return pairs;
}

std::vector<int32_t> Emitter::halves_in_turns() {
  std::vector<int32_t> order;
  for (int32_t l = 0; l < kWords; ++l) order.push_back(l / 2 + l % 2 * (kWords / 2));
  return order;
}

Xbyak::Address Emitter::upper_words(int half) {
  std::vector<int32_t> places;
  for (int32_t l = 0; l < kWords; ++l) places.push_back(half * (kWords / 2) + l / 2);
  return words(places);
}

void Emitter::prepare_unpack() {
  mov(eax, 0xaaaaaaaau);
  kmovd(k3, eax);
}

void Emitter::emit_constants() {
  for (const auto& emit : rare_) emit();
  rare_.clear();
  instructions_ = getSize();
  align(4);
  for (auto& [bits, label] : constants_) {
    L(label);
    dd(static_cast<uint32_t>(bits));
  }
  if (!vectors_.empty()) align(32);
  for (auto& [bits, label] : vectors_) {
    L(label);
    for (int i = 0; i < lanes(); ++i) dd(static_cast<uint32_t>(bits));
  }
  if (!patterns_.empty()) align(64);
  for (auto& [numbers, label] : patterns_) {
    L(label);
    for (int32_t number : numbers) dd(static_cast<uint32_t>(number));
  }
  if (lane_numbers_used_) {
    align(64);
    L(lane_numbers_);
    for (int i = 0; i < lanes(); ++i) dd(static_cast<uint32_t>(i));
  }
  if (masks_used_) {
    L(masks_);
    for (int i = 0; i < 16; ++i) dd(i < 8 ? 0xffffffffu : 0);
  }
}

const uint8_t* Emitter::finish() {
  readyRE();
  add_to_perf_map(getCode(), getSize());
  add_to_code_file(getCode(), instructions_ > 0 ? instructions_ : getSize());
  return getCode();
}

void Emitter::compare(const Lane& lane, Xmm a, Xmm b) {
  lane.op == LaneOp::igt ? vpcmpgtd(k2, a, b) : vcmpps(k2, a, b, predicate_of(lane.op));
}

void Emitter::compare(Xmm dst, Xmm a, Xmm b, uint8_t predicate) {
  if (!wide_) return vcmpps(dst, a, b, predicate);
  vcmpps(k2, a, b, predicate);
  vpmovm2d(dst, k2);
}

void Emitter::select(Xmm dst, Xmm yes, Xmm no) { vblendmps(dst | k2, no, yes); }

void Emitter::select_or_zero(Xmm dst, Xmm yes) { vmovaps(dst | k2 | T_z, yes); }

bool Emitter::takes_memory(const Lane& lane, int k) const {
  switch (lane.op) {
    case LaneOp::add:
    case LaneOp::mul:
    case LaneOp::and_:
    case LaneOp::or_:
    case LaneOp::xor_:
    case LaneOp::iadd:
    case LaneOp::imul:
    case LaneOp::imax:
    case LaneOp::imin:
    case LaneOp::fma:
    case LaneOp::fnma: return true;
    case LaneOp::sub:
    case LaneOp::div:
    case LaneOp::andnot:
    case LaneOp::isub:
    case LaneOp::lookup:
    case LaneOp::philox: return k == 1;
    case LaneOp::lookup_in_two: return k == 2;
    case LaneOp::max:
    case LaneOp::min: return k == 1 && !lane.flag;
    case LaneOp::gt:
    case LaneOp::ge:
    case LaneOp::eq:
    case LaneOp::igt:
    case LaneOp::select: return k == 1 && !wide_;
    default: return false;
  }
}

void Emitter::compute(const Lane& lane, Xmm dst, const Xmm (&in)[3], int k, const Xbyak::Address& memory) {
  const Xmm a = in[k == 0 ? 1 : 0];  // the other operand, or the other factor
  if (emit_pair(*this, lane.op, dst, a, memory)) return;
  switch (lane.op) {
    case LaneOp::gt:
    case LaneOp::ge:
    case LaneOp::eq: return vcmpps(dst, a, memory, predicate_of(lane.op));
    case LaneOp::igt: return vpcmpgtd(dst, a, memory);
    case LaneOp::lookup: return vpermps(Xbyak::Zmm(dst.getIdx()), Xbyak::Zmm(a.getIdx()), memory);
    case LaneOp::lookup_in_two: return lookup_in_two(dst, a, in[1], memory);
    case LaneOp::philox: return philox_round(dst, a, memory);
    case LaneOp::select: return vblendvps(dst, in[2], memory, a);
    default: break;
  }
  const bool negated = lane.op == LaneOp::fnma;
  if (k == 2) {
    const Xmm other = dst == in[1] ? a : in[1];
    if (dst != a && dst != in[1]) vmovaps(dst, a);
    return negated ? vfnmadd213ps(dst, other, memory) : vfmadd213ps(dst, other, memory);
  }
  if (dst == in[2]) return negated ? vfnmadd231ps(dst, a, memory) : vfmadd231ps(dst, a, memory);
  if (dst != a) vmovaps(dst, a);
  negated ? vfnmadd132ps(dst, in[2], memory) : vfmadd132ps(dst, in[2], memory);
}

Xbyak::Address Emitter::half_of_table(int32_t imm) {
  const auto half = static_cast<size_t>(imm % 2), count = static_cast<size_t>(lanes());
  return pattern(bits_of(looked_up(imm / 2).subspan(half * count, count)));
}

/// dst = number a of those in `first` and `rest`. May use scratch 0.
void Emitter::lookup_in_two(Xmm dst, Xmm a, Xmm first, const Xbyak::Operand& rest) {
  if (dst == a) return vpermi2ps(dst, first, rest);
  const bool keeps_rest = !rest.isMEM() && rest.getIdx() == dst.getIdx();
  const Xmm picked = keeps_rest ? scratch(0) : dst;
  if (picked != first) vmovaps(picked, first);
  vpermt2ps(picked, a, rest);
  if (keeps_rest) vmovaps(dst, picked);
}

/// Words 0 and 2 of the counters are multiplied; the products' upper words, with words 1 and 3, and the key become
/// words 0 and 2 of the next ones, crosswise, the lower words 1 and 3.
void Emitter::philox_round(Xmm dst, Xmm counter, const Xbyak::Operand& key) {
  constexpr uint8_t kBackwards = 0x1b, kXor = 0x96;
  std::vector<int32_t> multipliers;
  for (int i = 0; i < lanes(); ++i) multipliers.push_back(static_cast<int32_t>(kPhiloxMultipliers[(i / 2) % 2]));
  const Xmm products = scratch(0);
  vpmuludq(products, counter, pattern(multipliers));
  vpshufd(products, products, kBackwards);
  const Xmm odd = dst.getIdx() == key.getIdx() && !key.isMEM() ? scratch(1) : dst;
  vpsrlq(odd, counter, 32);
  if (wide_) {
    vpternlogd(odd, products, key, kXor);
    if (odd.getIdx() != dst.getIdx()) vmovdqa32(dst, odd);
    return;
  }
  vpxor(products, products, key);
  vpxor(dst, odd, products);
}

void Emitter::rectify(Xmm dst, Xmm a) {
  // A digit for each class of numbers: 4 is minus infinity, 6 other negative numbers. Digit 0 leaves dst, 3 is NaN, 8
  // is zero.
  constexpr int32_t kAnswers = 0x08030000;
  if (dst != a) vmovaps(dst, a);
  vfixupimmps(dst, a, everywhere(kAnswers), 0);
}

void Emitter::compute(const Lane& lane, Xmm dst, Xmm a, Xmm b, Xmm c) {
  const auto imm = static_cast<uint8_t>(lane.imm);
  const bool folds = (lane.op == LaneOp::max || lane.op == LaneOp::min) && lane.flag;
  if (!folds && emit_pair(*this, lane.op, dst, a, b)) return;
  switch (lane.op) {
    case LaneOp::max: return fold_pair(dst, a, b, Fold::max);
    case LaneOp::min: return fold_pair(dst, a, b, Fold::min);
    case LaneOp::sqrt: return vsqrtps(dst, a);
    case LaneOp::fma:
      if (dst == a) return vfmadd213ps(dst, b, c);
      if (dst == b) return vfmadd213ps(dst, a, c);
      if (dst != c) vmovaps(dst, c);
      return vfmadd231ps(dst, a, b);
    case LaneOp::fnma:
      if (dst == a) return vfnmadd213ps(dst, b, c);
      if (dst == b) return vfnmadd213ps(dst, a, c);
      if (dst != c) vmovaps(dst, c);
      return vfnmadd231ps(dst, a, b);
    case LaneOp::round: return wide_ ? vrndscaleps(dst, a, kNearestEven) : vroundps(dst, a, kNearestEven);
    case LaneOp::floor: return wide_ ? vrndscaleps(dst, a, kDown) : vroundps(dst, a, kDown);
    case LaneOp::gt:
    case LaneOp::ge:
    case LaneOp::eq:
    case LaneOp::unordered: return compare(dst, a, b, predicate_of(lane.op));
    case LaneOp::select:
      if (!wide_) return vblendvps(dst, c, b, a);
      take_condition(a);
      return select(dst, b, c);
    case LaneOp::igt:
      if (!wide_) return vpcmpgtd(dst, a, b);
      compare(lane, a, b);
      return vpmovm2d(dst, k2);
    case LaneOp::shl: return vpslld(dst, a, imm);
    case LaneOp::shr: return vpsrld(dst, a, imm);
    case LaneOp::sra: return vpsrad(dst, a, imm);
    case LaneOp::shr64: return vpsrlq(dst, a, imm);
    case LaneOp::philox: return philox_round(dst, a, b);
    case LaneOp::word: return vpermilps(dst, a, b);
    case LaneOp::lane_number: return vmovups(dst, ptr[rip + lane_numbers()]);
    case LaneOp::to_int: return vcvtps2dq(dst, a);
    case LaneOp::to_float: return vcvtdq2ps(dst, a);
    case LaneOp::cast: return cast(dst, a, static_cast<Dtype>(lane.imm));
    case LaneOp::scale: return vscalefps(dst, a, b);
    case LaneOp::fraction: return vreduceps(dst, a, kDown);
    case LaneOp::table: return vmovups(dst, half_of_table(lane.imm));
    case LaneOp::lookup: return vpermps(Xbyak::Zmm(dst.getIdx()), Xbyak::Zmm(a.getIdx()), b);
    case LaneOp::lookup_in_two: return lookup_in_two(dst, a, b, c);
    case LaneOp::inverse: return vrcp14ps(dst, a);
    case LaneOp::rectified: return rectify(dst, a);
    case LaneOp::keep: return keep_lanes(dst, a, b, lane.imm);
    case LaneOp::across: return fold_lanes(dst, a, static_cast<Fold>(lane.imm));
    case LaneOp::halves:
    case LaneOp::quarters: return fold_parts(dst, a, b, static_cast<Fold>(lane.imm), lane.op == LaneOp::halves);
    case LaneOp::across_quarters: return fold_inside_quarters(dst, a, static_cast<Fold>(lane.imm));
    case LaneOp::spread:
      if (imm == 0) return vbroadcastss(dst, low(a));
      vpshufd(low(dst), low(a), static_cast<uint8_t>(imm * 0x55));
      return vbroadcastss(dst, low(dst));
    case LaneOp::pack: return pack(dst, a, b, static_cast<Dtype>(lane.imm));
    case LaneOp::unpack: return vpermw(dst | k3 | T_z, b, a);
    case LaneOp::word_places: return vmovups(dst, upper_words(lane.imm));
    case LaneOp::bit_places: return vmovups(dst, bit_places());
    case LaneOp::add:
    case LaneOp::sub:
    case LaneOp::mul:
    case LaneOp::div:
    case LaneOp::and_:
    case LaneOp::or_:
    case LaneOp::xor_:
    case LaneOp::andnot:
    case LaneOp::iadd:
    case LaneOp::isub:
    case LaneOp::imul:
    case LaneOp::imax:
    case LaneOp::imin:
    case LaneOp::iadd64:
    case LaneOp::load:
    case LaneOp::store:
    case LaneOp::skeleton:
    case LaneOp::constant:
    case LaneOp::index:
    case LaneOp::number:
    case LaneOp::four_bits: return;
  }
}

}  // namespace partita::jit
