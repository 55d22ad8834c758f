// SPDX-License-Identifier: Apache-2.0
// Expr: what a loop computes for each element, as a short list of scalar instructions in SSA form.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace partita {

/// Instructions over f32 values; those named with _s32 compute on 32-bit integers with wrap-around.
enum class ExprOp : uint8_t {
  load,      ///< element of Problem::in[imm] at the current place; s32 value where that operand is s32, else f32
  store,     ///< a to Problem::out[imm], converted to its type (round to nearest even, integers saturate)
  skeleton,  ///< the value the skeleton computed (back) or read (front)
  constant,  ///< the f32 in `value`
  index_s32, ///< coordinate along axis imm of the loop's space
  pair_s32,  ///< the 64-bit integer with the words a (low) and b, which all elements share; only `uniform` reads it
  uniform,   ///< random f32 in [0, 1) of the element that Problem::in[imm] numbers; seed a and offset b are pairs
  add, sub, mul, div, max, min,  ///< max/min: NaN in either gives NaN
  neg, abs, square, sqrt, reciprocal, exp, log, tanh, erf, round, floor, sigmoid,
  expm1,     ///< exp(a) - 1
  softplus,  ///< log(1 + exp(a))
  gelu_erf,  ///< a times the normal distribution function at a
  gelu_tanh, ///< a * sigmoid(2 sqrt(2 / pi) (a + 0.044715 a^3))
  mish,      ///< a * tanh(log(1 + exp(a)))
  gelu_erf_slope, gelu_tanh_slope, mish_slope,  ///< derivatives of the three
  pow,       ///< a to the power of b
  ge, gt, eq,                    ///< 1.0 or 0.0
  select,    ///< a != 0 ? b : c
  fma,       ///< a b + c, rounded once
  add_s32, sub_s32, mul_s32, max_s32, min_s32, ge_s32,  ///< ge_s32 gives f32 1.0 or 0.0
  to_s32,    ///< f32 to s32, round to nearest even, saturating
  to_f32,    ///< s32 to f32
  cast,      ///< rounds an f32 to the precision of type imm (a Dtype) and back
  fold_sum, fold_max, fold_min, fold_mul,  ///< a folded into Problem::out[imm], see Fold
};

/// How the elements of a loop that lie at one place of an f32 output (its stride is 0 along the folded axes) become one
/// value. Max and min: NaN in any element gives NaN. The order of additions is fixed by the loop, not by the threads.
enum class Fold : uint8_t { none, sum, max, min, mul };

/// `none` for everything but fold_sum, ...
Fold fold_of(ExprOp op);
/// The value that changes nothing.
float identity_of(Fold fold);
/// One step of the fold. Nothing branches on values (NaN is unlike itself), so loops over one fold become vectors.
inline double folded(Fold fold, double a, double b) {
  switch (fold) {
    case Fold::max: return ((a != a) | (a > b)) ? a : b;
    case Fold::min: return ((a != a) | (a < b)) ? a : b;
    case Fold::mul: return a * b;
    default: return a + b;
  }
}
/// Whether the instruction reads Problem::in[imm]: what lies there, or, `uniform`, where that is. An operand of numbers
/// has no memory: its elements have one byte (u8), and their addresses are the numbers, of 64 bits. So strides number
/// elements in any order, and whatever moves operands moves numbers. Where its offset is a multiple of four, so is the
/// address it is given.
inline bool reads_operand(ExprOp op) { return op == ExprOp::load || op == ExprOp::uniform; }
/// Whether the value depends on where the element is.
inline bool reads_place(ExprOp op) { return op == ExprOp::index_s32 || op == ExprOp::uniform; }
/// Whether the instruction writes an output.
inline bool writes(ExprOp op) { return op == ExprOp::store || fold_of(op) != Fold::none; }

struct Instr {
  ExprOp op;
  uint16_t a = 0, b = 0, c = 0;  ///< earlier instructions
  int32_t imm = 0;
  float value = 0;
  friend bool operator==(const Instr&, const Instr&) = default;
};

/// Instruction i defines value i. `result` is the value handed on (front); `back` expressions end in stores.
struct Expr {
  std::vector<Instr> code;
  uint16_t result = 0;

  bool empty() const { return code.empty(); }
  friend bool operator==(const Expr&, const Expr&) = default;
};

/// Number of operands (a, b, c) the instruction reads.
int operand_count(ExprOp op);
std::string_view name_of(ExprOp op);
/// Whether the expression reads the numbers that the operand's addresses are.
bool counts(const Expr& expr, int operand);
/// Whether the expression reads the coordinates of its elements.
bool reads_coordinates(const Expr& expr);
/// "%0 = load in0; %1 = constant 0; %2 = max %0 %1; store out0 %2"
std::string text_of(const Expr& expr);

/// Appends instructions to an Expr; equal pure instructions are made once.
class ExprBuilder {
 public:
  using Value = uint16_t;
  explicit ExprBuilder(Expr& expr) : expr_(expr) {}

  Value load(int operand) { return emit({.op = ExprOp::load, .imm = operand}); }
  void store(int operand, Value a) { emit({.op = ExprOp::store, .a = a, .imm = operand}); }
  void fold(Fold how, int operand, Value a);
  Value skeleton() { return emit({.op = ExprOp::skeleton}); }
  Value constant(float value) { return emit({.op = ExprOp::constant, .value = value}); }
  Value apply(ExprOp op, Value a, Value b = 0, Value c = 0, int32_t imm = 0) {
    return emit({.op = op, .a = a, .b = b, .c = c, .imm = imm});
  }
  Value index(int axis) { return emit({.op = ExprOp::index_s32, .imm = axis}); }

  Value add(Value a, Value b) { return apply(ExprOp::add, a, b); }
  Value sub(Value a, Value b) { return apply(ExprOp::sub, a, b); }
  Value mul(Value a, Value b) { return apply(ExprOp::mul, a, b); }
  Value div(Value a, Value b) { return apply(ExprOp::div, a, b); }
  Value max(Value a, Value b) { return apply(ExprOp::max, a, b); }
  Value min(Value a, Value b) { return apply(ExprOp::min, a, b); }
  Value gt(Value a, Value b) { return apply(ExprOp::gt, a, b); }
  Value ge(Value a, Value b) { return apply(ExprOp::ge, a, b); }
  Value select(Value condition, Value yes, Value no) { return apply(ExprOp::select, condition, yes, no); }
  Value fma(Value a, Value b, Value c) { return apply(ExprOp::fma, a, b, c); }
  Value exp(Value a) { return apply(ExprOp::exp, a); }
  Value tanh(Value a) { return apply(ExprOp::tanh, a); }

 private:
  Value emit(const Instr& instr);
  Expr& expr_;
};

}  // namespace partita
