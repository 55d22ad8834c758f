// SPDX-License-Identifier: Apache-2.0
// Each instruction of an expression as lane operations; entry: expanded().
#include "kernels/jit/code/expand.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "kernels/jit/code/emitter.hpp"
#include "kernels/jit/code/vector_math.hpp"
#include "kernels/jit/code/vector_random.hpp"
#include "kernels/narrow_results.hpp"
#include "kernels/needless_casts.hpp"

namespace partita::jit {
namespace {

constexpr float kTwo31 = 2147483648.0f;
/// Whole exponents from the one to the other are products within 4 ulp.
constexpr float kLeastWholePower = -2, kMostWholePower = 5;

bool simple_power(const Instr& exponent) {
  const float p = exponent.value;
  if (exponent.op != ExprOp::constant) return false;
  return std::fabs(p) == 0.5f || (p == std::floor(p) && p >= kLeastWholePower && p <= kMostWholePower);
}

class Expander {
 public:
  Expander(const Expr& expr, const Problem& problem, Isa isa, bool skeleton_is_rounded)
      : expr_(without_needless_casts(expr, problem, isa == Isa::avx512 && converts_to_bf16(), skeleton_is_rounded)),
        problem_(problem),
        b_(lanes_),
        value_(expr.code.size()),
        mask_(expr.code.size()),
        integer_(expr.code.size()) {
    b_.wide = isa == Isa::avx512;
  }

  Lanes run() {
    for (size_t i = 0; i < expr_.code.size(); ++i) {
      const Instr& in = expr_.code[i];
      b_.precision = is_narrow_function(in) ? Precision::narrow : Precision::full;
      value_[i] = instruction(i, in);
    }
    lanes_.result = expr_.code.empty() ? Value{0} : value_[expr_.result];
    return std::move(lanes_);
  }

 private:
  Value instruction(size_t i, const Instr& in) {
    const Value a = value_[in.a], b = value_[in.b], c = value_[in.c];
    switch (in.op) {
      case ExprOp::load:
        integer_[i] = problem_.in[static_cast<size_t>(in.imm)].dtype == Dtype::s32;
        return b_.op(LaneOp::load, 0, 0, 0, in.imm);
      case ExprOp::store:
      case ExprOp::fold_sum:
      case ExprOp::fold_max:
      case ExprOp::fold_min:
      case ExprOp::fold_mul: return b_.emit({LaneOp::store, a, 0, 0, in.imm, integer_[in.a]});
      case ExprOp::skeleton: return b_.op(LaneOp::skeleton, 0);
      case ExprOp::constant: return b_.constant(in.value);
      case ExprOp::index_s32: return integer(i, b_.op(LaneOp::index, 0, 0, 0, in.imm));
      case ExprOp::pair_s32: return a;
      case ExprOp::uniform: return uniform(in);
      case ExprOp::add: return b_.add(a, b);
      case ExprOp::sub: return b_.sub(a, b);
      case ExprOp::mul: return b_.mul(a, b);
      case ExprOp::div: return b_.div(a, b);
      case ExprOp::max: return extreme(LaneOp::max, in);
      case ExprOp::min: return extreme(LaneOp::min, in);
      case ExprOp::neg: return b_.op(LaneOp::xor_, a, b_.bits(INT32_MIN));
      case ExprOp::abs: return b_.op(LaneOp::and_, a, b_.bits(INT32_MAX));
      case ExprOp::square: return b_.mul(a, a);
      case ExprOp::sqrt: return b_.op(LaneOp::sqrt, a);
      case ExprOp::reciprocal: return b_.div(b_.constant(1), a);
      case ExprOp::exp: return (in.imm & kNotPositive) != 0 ? exp_not_positive_of(b_, a) : exp_of(b_, a);
      case ExprOp::log: return log_of(b_, a);
      case ExprOp::tanh: return tanh_of(b_, a);
      case ExprOp::erf: return erf_of(b_, a);
      case ExprOp::round: return b_.op(LaneOp::round, a);
      case ExprOp::floor: return b_.op(LaneOp::floor, a);
      case ExprOp::sigmoid: return sigmoid_of(b_, a);
      case ExprOp::softplus: return softplus_of(b_, a);
      case ExprOp::expm1: return expm1_of(b_, a);
      case ExprOp::gelu_erf: return gelu_erf_of(b_, a);
      case ExprOp::gelu_tanh: return gelu_tanh_of(b_, a);
      case ExprOp::mish: return mish_of(b_, a);
      case ExprOp::gelu_erf_slope: return gelu_erf_slope_of(b_, a);
      case ExprOp::gelu_tanh_slope: return gelu_tanh_slope_of(b_, a);
      case ExprOp::mish_slope: return mish_slope_of(b_, a);
      case ExprOp::pow: return simple_power(expr_.code[in.b]) ? simple(a, expr_.code[in.b].value) : pow_of(b_, a, b);
      case ExprOp::ge: return truth(i, b_.op(LaneOp::ge, a, b));
      case ExprOp::gt: return truth(i, b_.op(LaneOp::gt, a, b));
      case ExprOp::eq: return truth(i, b_.op(LaneOp::eq, a, b));
      case ExprOp::select: return b_.select(condition(in.a), b, c);
      case ExprOp::fma: return b_.fma(a, b, c);
      case ExprOp::add_s32: return integer(i, b_.op(LaneOp::iadd, a, b));
      case ExprOp::sub_s32: return integer(i, b_.op(LaneOp::isub, a, b));
      case ExprOp::mul_s32: return integer(i, b_.op(LaneOp::imul, a, b));
      case ExprOp::max_s32: return integer(i, b_.op(LaneOp::imax, a, b));
      case ExprOp::min_s32: return integer(i, b_.op(LaneOp::imin, a, b));
      case ExprOp::ge_s32: return truth(i, inverted(b_.op(LaneOp::igt, b, a)));
      case ExprOp::to_s32: return integer(i, saturated(a));
      case ExprOp::to_f32: return b_.op(LaneOp::to_float, a);
      case ExprOp::cast: return static_cast<Dtype>(in.imm) == Dtype::f32 ? a : b_.op(LaneOp::cast, a, 0, 0, in.imm);
    }
    return 0;
  }

  Value uniform(const Instr& in) {
    const auto words = [&](uint16_t pair) { return Words{value_[expr_.code[pair].a], value_[expr_.code[pair].b]}; };
    return uniform_of(b_, in.imm, problem_.in[static_cast<size_t>(in.imm)], words(in.a), words(in.b));
  }

  Value integer(size_t i, Value v) {
    integer_[i] = true;
    return v;
  }
  Value inverted(Value mask) { return b_.op(LaneOp::xor_, mask, b_.bits(-1)); }

  /// A comparison's 1.0 or 0.0; its mask is kept for selects.
  Value truth(size_t i, Value mask) {
    mask_[i] = mask;
    return b_.op(LaneOp::and_, mask, b_.constant(1));
  }
  Value condition(uint16_t i) {
    if (mask_[i]) return *mask_[i];
    return inverted(b_.op(LaneOp::eq, value_[i], b_.constant(0)));
  }

  /// NaN in either operand gives NaN; the machine gives its second operand.
  Value extreme(LaneOp op, const Instr& in) {
    const auto plain = [&](uint16_t k) {
      const Instr& made_by = expr_.code[k];
      return made_by.op == ExprOp::constant && !std::isnan(made_by.value);
    };
    const Value a = value_[in.a], b = value_[in.b];
    if (plain(in.a)) return b_.op(op, a, b);
    if (plain(in.b)) return b_.op(op, b, a);
    return b_.emit({op, a, b, 0, 0, true});
  }

  Value saturated(Value x) {
    const Value whole = b_.op(LaneOp::to_int, x);
    const Value high = b_.select(b_.op(LaneOp::ge, x, b_.constant(kTwo31)), b_.bits(INT32_MAX), whole);
    return b_.select(b_.op(LaneOp::unordered, x, x), b_.bits(0), high);
  }

  Value simple(Value x, float p) {
    const Value one = b_.constant(1);
    if (std::fabs(p) == 0.5f) {
      // Unlike a root, a power makes a negative zero positive, and so an infinity.
      const Value lowest = b_.bits(INT32_MIN | 0x7f800000);
      const Value positive = b_.select(b_.op(LaneOp::eq, x, lowest), b_.bits(0x7f800000), b_.add(x, b_.constant(0)));
      const Value root = b_.op(LaneOp::sqrt, positive);
      return p > 0 ? root : b_.div(one, root);
    }
    std::optional<Value> product;
    Value square = p < 0 ? b_.div(one, x) : x;
    for (auto n = static_cast<unsigned>(std::fabs(p)); n > 0; n >>= 1) {
      if (n & 1) product = product ? b_.mul(*product, square) : square;
      if (n > 1) square = b_.mul(square, square);
    }
    return product ? *product : one;
  }

  const Expr expr_;
  const Problem& problem_;
  Lanes lanes_;
  LaneBuilder b_;
  std::vector<Value> value_;
  std::vector<std::optional<Value>> mask_;
  std::vector<bool> integer_;
};

}  // namespace

const char* refuse_expansion(const Expr& expr, const Problem& problem) {
  for (const Instr& in : expr.code) {
    if (in.op == ExprOp::cast && !Emitter::casts(static_cast<Dtype>(in.imm)))
      return "an inner value has a type without generated rounding";
    if (in.op != ExprOp::uniform) continue;
    if (const char* reason = refuse_numbers(problem.in[static_cast<size_t>(in.imm)])) return reason;
  }
  return nullptr;
}

const char* refuse_placeless(const Expr& expr, const Problem& problem) {
  const bool places = std::ranges::any_of(expr.code, [](const Instr& in) { return reads_place(in.op); });
  return places ? "an expression reads coordinates" : refuse_expansion(expr, problem);
}

Lanes expanded(const Expr& expr, const Problem& problem, Isa isa, bool skeleton_is_rounded) {
  return Expander(expr, problem, isa, skeleton_is_rounded).run();
}

Lanes expanded_front(Expr front, const Problem& problem, Isa isa) {
  ExprBuilder(front).store(0, front.result);
  Problem types;
  types.in = problem.in;
  types.out = {{Dtype::f32, {}, {}, 0}};
  return expanded(front, types, isa);
}

}  // namespace partita::jit
