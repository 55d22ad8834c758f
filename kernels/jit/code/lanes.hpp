// SPDX-License-Identifier: Apache-2.0
// Lanes: a straight-line vector program, what an expression becomes before machine code is made of it. Every value is a
// vector of 32-bit lanes (f32, s32, or a mask of all ones and all zeros); how many lanes is the emitter's business.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string_view>
#include <vector>

namespace partita::jit {

enum class LaneOp : uint8_t {
  load,         ///< operand `imm` of the loop, converted to f32 (s32 operands stay integers)
  store,        ///< a to output `imm`, converted to its type; a is an integer where `flag` is set
  skeleton,     ///< the value the skeleton computed
  constant,     ///< `imm` as bits in every lane
  index,        ///< s32 coordinate along axis `imm` of the loop's space
  number,       ///< 64 bits, then 64 zeros: the number of the vector's first element, which is operand `imm`'s address
  lane_number,  ///< 0, 1, 2, ..
  table,        ///< half `imm` % 2 of the numbers looked_up(`imm` / 2); where LaneBuilder::wide
  word_places,  ///< what unpack wants of half `imm` of a pair; where LaneBuilder::wide
  bit_places,   ///< what four_bits wants; where LaneBuilder::wide
  four_bits,  ///< elements of operand `imm`, which has four bits each, in the lowest ones of lanes whose others may be
              ///< anything; a is bit_places
  add,        ///< from here to sra, from to_int to fraction and from inverse to rectified: each lane by itself
  sub,
  mul,
  div,
  fma,   ///< a * b + c with one rounding
  fnma,  ///< c - a * b with one rounding
  max,
  min,  ///< as the machine does: b where either is NaN, or both are zero; NaN where either is, if `flag` is set
  sqrt,
  round,  ///< to nearest even
  floor,
  and_,
  or_,
  xor_,
  andnot,  ///< ~a & b
  gt,
  ge,
  eq,         ///< ordered comparisons of f32: false where either is NaN
  unordered,  ///< either is NaN
  select,     ///< mask a ? b : c
  iadd,
  isub,
  imul,
  imax,
  imin,
  igt,
  shl,
  shr,
  sra,              ///< integer shifts of a by `imm` bits; shr fills with zeros
  iadd64,           ///< of pairs of lanes
  shr64,            ///< the same of pairs; fills with zeros
  philox,           ///< one round: counters a, keys in lanes 0 and 2 of each quarter of b
  word,             ///< of each quarter of a: number b modulo 4
  to_int,           ///< f32 to s32, round to nearest even; out of range gives 0x80000000
  to_float,         ///< s32 to f32
  cast,             ///< a rounded to the precision of type `imm` (a Dtype) and back
  scale,            ///< a times 2 to the power of floor(b), with one rounding; where LaneBuilder::wide
  fraction,         ///< a - floor(a), 0 where a is infinite; where LaneBuilder::wide
  lookup,           ///< number a modulo 16 of b, table looked_up(`imm`); where LaneBuilder::wide
  lookup_in_two,    ///< the same modulo 32 of b and c
  inverse,          ///< 1 / a, at most 2^-14 of that from it; where LaneBuilder::wide
  rectified,        ///< 0 where a < 0, NaN where that is minus infinity, else a; where LaneBuilder::wide
  keep,             ///< a in the first `imm` lanes, b in the others
  across,           ///< a number: all lanes of a, folded (`imm` is a Fold)
  halves,           ///< both halves of a folded, and of b, side by side
  quarters,         ///< of two such: what is left of four vectors, side by side
  across_quarters,  ///< four numbers: each quarter of a, folded
  spread,           ///< number `imm` of a in every lane
  pack,    ///< a, then b, rounded to type `imm` of 16 bits: a pair, two elements a lane; where LaneBuilder::wide
  unpack,  ///< the elements of bf16 of pair a that are at the places b as f32; where LaneBuilder::wide
};

struct Lane {
  LaneOp op;
  uint16_t a = 0, b = 0, c = 0;  ///< earlier values
  int32_t imm = 0;
  bool flag = false;
  bool number = false;  ///< only the lowest four lanes matter
  friend bool operator==(const Lane&, const Lane&) = default;
};

/// Value i is what code[i] makes.
struct Lanes {
  std::vector<Lane> code;
  uint16_t result = 0;
  /// Loads and stores stay in this order; otherwise loads come first, so that an output may lie over an input.
  bool in_order = false;
};

/// How many operations each waits for, one behind the other.
std::vector<int> levels_of(const Lanes& lanes);

/// The same in the order of how many operations each waits for, so that independent ones take turns.
Lanes by_level(const Lanes& lanes);

/// The same with stores that stand before a load behind the last load.
Lanes loads_first(const Lanes& lanes);

/// The same, without what no store needs, with each comparison that selects alone read, as their condition, and no more
/// than so many of them, right before each.
Lanes conditions_beside_selects(const Lanes& lanes, int most_selects);

/// Makes a mask of two values.
bool compares(LaneOp op);
/// True where elements are loaded and stored as they are, at most in another type.
bool only_moves(const Lanes& lanes);
/// How many of a, b, c an operation reads.
int lane_operands(LaneOp op);
inline std::array<uint16_t, 3> operands_of(const Lane& lane) { return {lane.a, lane.b, lane.c}; }

/// How near elementary functions come to the exact result.
enum class Precision : uint8_t {
  full,  ///< within 4 ulp of f32
  /// For results that are rounded to 16 bits or fewer: within 1.5e-4 of their size (2^-14 without AVX-512), below
  /// 2^-118 perhaps 0. With AVX-512 2^-25 of GELU and its derivatives is 0, too.
  narrow,
};

/// Appends operations; equal pure ones are made once.
class LaneBuilder {
 public:
  using Value = uint16_t;
  Precision precision = Precision::full;  ///< of the elementary functions appended next
  bool wide = false;  ///< vectors have 16 lanes, and the machine LaneOp::scale, fraction, ..: AVX-512
  explicit LaneBuilder(Lanes& lanes) : lanes_(lanes) {}
  /// Whether results are narrow and AVX-512 is there to make them.
  bool narrow_and_wide() const { return wide && precision == Precision::narrow; }

  Value emit(const Lane& lane);
  Value op(LaneOp o, Value a, Value b = 0, Value c = 0, int32_t imm = 0) { return emit({o, a, b, c, imm, false}); }
  Value constant(float value) { return bits(std::bit_cast<int32_t>(value)); }
  Value bits(int32_t value) { return emit({LaneOp::constant, 0, 0, 0, value, false}); }
  Value add(Value a, Value b) { return op(LaneOp::add, a, b); }
  Value sub(Value a, Value b) { return op(LaneOp::sub, a, b); }
  Value mul(Value a, Value b) { return op(LaneOp::mul, a, b); }
  Value div(Value a, Value b) { return op(LaneOp::div, a, b); }
  Value fma(Value a, Value b, Value c) { return op(LaneOp::fma, a, b, c); }
  Value fnma(Value a, Value b, Value c) { return op(LaneOp::fnma, a, b, c); }
  Value select(Value mask, Value yes, Value no) { return op(LaneOp::select, mask, yes, no); }

 private:
  Lanes& lanes_;
};

}  // namespace partita::jit
