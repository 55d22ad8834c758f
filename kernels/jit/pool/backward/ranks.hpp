// SPDX-License-Identifier: Apache-2.0
// RankCode: floats of 16 or 32 bits compared as integers, a vector of them in one register.
#pragma once

#include "kernels/jit/code/emitter.hpp"

namespace partita::jit {

/// A float's rank is an unsigned integer of its size: the larger the float, the lower the rank; that of NaN, which is a
/// maximum, is the lowest; both zeros have the same. AVX-512 alone. Where vectors are partial, all that are have as
/// many elements.
class RankCode : protected Emitter {
 public:
  static bool ranks(Dtype dtype) { return dtype == Dtype::f32 || dtype == Dtype::bf16 || dtype == Dtype::f16; }

 protected:
  static constexpr int kConstants = 4;
  using Vector = Xbyak::Zmm;

  /// `constants` is the first of kConstants vector registers.
  RankCode(Dtype dtype, int constants);
  int element_bytes() const { return bytes_; }
  int vector_elements() const { return static_cast<int>(kCacheLine) / bytes_; }

  /// Once, with how many elements partial vectors have. Uses rax; k7 is taken from there on.
  void emit_rank_constants(int partial);
  /// rank = those of `elements`, another register, of elements outside a partial vector the highest. Uses k1.
  void rank(const Vector& rank, const Vector& elements, bool partial);
  void load_elements(const Vector& to, const Xbyak::RegExp& at, bool partial);
  void store_elements(const Xbyak::RegExp& at, const Vector& elements, bool partial, bool streaming);
  /// Operations on elements as integers.
  void least(const Xbyak::Xmm& to, const Xbyak::Xmm& a, const Xbyak::Xmm& b);
  void less(const Xbyak::Opmask& to, const Vector& a, const Vector& b);
  void equal(const Xbyak::Opmask& to, const Vector& a, const Vector& b);
  void plus(const Vector& to, const Vector& a, const Xbyak::Operand& b);
  /// to = from where the mask is set; elsewhere it stays, or is zero.
  void take(const Vector& to, const Xbyak::Opmask& mask, const Vector& from, bool or_zero);
  /// The integer in all elements.
  void fill(const Vector& to, uint32_t integer);

 private:
  bool words() const { return bytes_ == 2; }
  Vector constant(int k) const { return Vector(constants_ + k); }

  int bytes_, constants_;
  uint32_t infinity_;  ///< its bits
};

}  // namespace partita::jit
