// SPDX-License-Identifier: Apache-2.0
// Ranks take four operations. With I the bits of infinity and signs counted from zero downwards, floats from minus
// infinity up become y = -I .. I, NaN what lies beyond on both sides. -1 - I - y then falls from -1 (the highest, where
// there are no signs) to -1 - 2 I, and NaN are what lies below that.
#include "kernels/jit/pool/backward/ranks.hpp"

#include "src/base/check.hpp"
#include "src/base/dtype.hpp"

namespace partita::jit {
namespace {

constexpr int kPositive = 0, kNegative = 1, kNan = 2, kOutside = 3;

uint32_t infinity_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::bf16: return 0x7f80;
    case Dtype::f16: return 0x7c00;
    default: PT_ASSERT(dtype == Dtype::f32); return 0x7f800000;
  }
}

}  // namespace

RankCode::RankCode(Dtype dtype, int constants)
    : Emitter(Isa::avx512),
      bytes_(partita::element_bytes(dtype)),
      constants_(constants),
      infinity_(infinity_of(dtype)) {}

void RankCode::fill(const Vector& to, uint32_t integer) {
  if (words()) integer = (integer & 0xffff) * 0x10001;
  broadcast_bits(to, static_cast<int32_t>(integer));
}

void RankCode::emit_rank_constants(int partial) {
  const uint32_t sign = words() ? 0x8000 : 0x80000000;
  fill(constant(kPositive), -1 - infinity_);
  fill(constant(kNegative), -1 - infinity_ - sign);
  fill(constant(kNan), -2 - 2 * infinity_);
  mov(rax, (uint64_t{1} << partial) - 1);
  kmovq(k7, rax);
  fill(constant(kOutside), UINT32_MAX);
  const Vector zeros = constant(kOutside) | k7;
  words() ? vpsubw(zeros, zeros, zeros) : vpsubd(zeros, zeros, zeros);
}

void RankCode::rank(const Vector& rank, const Vector& elements, bool partial) {
  if (words()) {
    vpmovw2m(k1, elements);
    vpsubw(rank, constant(kPositive), elements);
    vpaddw(rank | k1, elements, constant(kNegative));
    vpmaxuw(rank, rank, constant(kNan));
  } else {
    vpmovd2m(k1, elements);
    vpsubd(rank, constant(kPositive), elements);
    vpaddd(rank | k1, elements, constant(kNegative));
    vpmaxud(rank, rank, constant(kNan));
  }
  if (partial) vpord(rank, rank, constant(kOutside));
}

void RankCode::load_elements(const Vector& to, const Xbyak::RegExp& at, bool partial) {
  if (!partial) return vmovups(to, ptr[at]);
  words() ? vmovdqu16(to | k7 | T_z, ptr[at]) : vmovdqu32(to | k7 | T_z, ptr[at]);
}

void RankCode::store_elements(const Xbyak::RegExp& at, const Vector& elements, bool partial, bool streaming) {
  if (!partial) return streaming ? vmovntps(ptr[at], elements) : vmovups(ptr[at], elements);
  words() ? vmovdqu16(ptr[at] | k7, elements) : vmovdqu32(ptr[at] | k7, elements);
}

void RankCode::least(const Xbyak::Xmm& to, const Xbyak::Xmm& a, const Xbyak::Xmm& b) {
  words() ? vpminuw(to, a, b) : vpminud(to, a, b);
}

void RankCode::less(const Xbyak::Opmask& to, const Vector& a, const Vector& b) {
  constexpr uint8_t kLess = 1;
  words() ? vpcmpuw(to, a, b, kLess) : vpcmpud(to, a, b, kLess);
}

void RankCode::equal(const Xbyak::Opmask& to, const Vector& a, const Vector& b) {
  words() ? vpcmpeqw(to, a, b) : vpcmpeqd(to, a, b);
}

void RankCode::plus(const Vector& to, const Vector& a, const Xbyak::Operand& b) {
  words() ? vpaddw(to, a, b) : vpaddd(to, a, b);
}

void RankCode::take(const Vector& to, const Xbyak::Opmask& mask, const Vector& from, bool or_zero) {
  const Vector masked = or_zero ? to | mask | T_z : to | mask;
  words() ? vmovdqu16(masked, from) : vmovdqu32(masked, from);
}

}  // namespace partita::jit
