// SPDX-License-Identifier: Apache-2.0
// What is known of each value: a type whose numbers it holds, and one that all who use it round it to.
#include "kernels/needless_casts.hpp"

#include "kernels/pool_geometry.hpp"
#include "src/base/dtype.hpp"

namespace partita {
namespace {

class Known {
 public:
  static Known none() { return {}; }
  static Known any() { return Known(State::any, Dtype::undef); }
  /// `rounded`: the machine made it of a number that may have been another one.
  static Known type(Dtype t, bool rounded = false) {
    return t == Dtype::f32 || t == Dtype::s32 || t == Dtype::undef ? none() : Known(State::type, t, rounded);
  }
  /// What is true of both.
  friend Known both(const Known& a, const Known& b) {
    if (a.state_ == State::any) return b;
    if (b.state_ == State::any) return a;
    return a.state_ == b.state_ && a.type_ == b.type_ ? Known(a.state_, a.type_, a.rounded_ && b.rounded_) : none();
  }
  bool is_rounded() const { return state_ == State::any || rounded_; }
  bool is(Dtype t) const { return state_ == State::any || (state_ == State::type && type_ == t); }
  /// Unless they are integers: their least number has no opposite, and NaN becomes one of them.
  Known if_floats() const { return state_ != State::type || is_floating(type_) ? *this : none(); }

 private:
  enum class State : uint8_t { none, type, any };
  Known() = default;
  Known(State state, Dtype type, bool rounded = false) : state_(state), type_(type), rounded_(rounded) {}

  State state_ = State::none;
  Dtype type_ = Dtype::undef;
  bool rounded_ = false;
};

/// Of windows that do not overlap each cell gets one gradient, or zero.
Known of_skeleton(const Problem& p, bool rounded) {
  if (p.step != StepKind::max_pool_backward || !p.front.empty()) return Known::none();
  const TensorDesc& diff_dst = p.in[static_cast<size_t>(front_port(p.step))];
  const PoolGeometry g = pool_geometry(p, p.out[0].dims, diff_dst.dims);
  for (int i = 0; i < g.axes(); ++i)
    if ((g.kernel[i] - 1) * g.dilations[i] >= g.strides[i]) return Known::none();
  return Known::type(diff_dst.dtype, rounded);
}

/// The type whose numbers each value holds.
std::vector<Known> held_types(const Expr& expr, const Problem& p, bool skeleton_is_rounded) {
  std::vector<Known> held;
  for (const Instr& in : expr.code) {
    switch (in.op) {
      case ExprOp::load: held.push_back(Known::type(p.in[static_cast<size_t>(in.imm)].dtype)); break;
      case ExprOp::cast: held.push_back(Known::type(static_cast<Dtype>(in.imm), true)); break;
      case ExprOp::constant: held.push_back(in.value == 0 ? Known::any() : Known::none()); break;
      case ExprOp::skeleton: held.push_back(of_skeleton(p, skeleton_is_rounded)); break;
      case ExprOp::select: held.push_back(both(held[in.b], held[in.c])); break;
      case ExprOp::max:
      case ExprOp::min: held.push_back(both(held[in.a], held[in.b])); break;
      case ExprOp::neg:
      case ExprOp::abs: held.push_back(held[in.a].if_floats()); break;
      default: held.push_back(Known::none());
    }
  }
  return held;
}

/// The type that each value is rounded to by all who use it.
std::vector<Known> wanted_types(const Expr& expr, const Problem& p) {
  std::vector<Known> wanted(expr.code.size(), Known::any());
  if (expr.code.empty()) return wanted;
  const bool hands_on = !writes(expr.code.back().op);
  if (hands_on) wanted[expr.result] = Known::none();
  for (size_t i = expr.code.size(); i-- > 0;) {
    const Instr& in = expr.code[i];
    const auto use = [&](uint16_t value, const Known& known) { wanted[value] = both(wanted[value], known); };
    switch (in.op) {
      case ExprOp::store: use(in.a, Known::type(p.out[static_cast<size_t>(in.imm)].dtype)); break;
      case ExprOp::cast: use(in.a, Known::type(static_cast<Dtype>(in.imm))); break;
      case ExprOp::neg:
      case ExprOp::abs: use(in.a, wanted[i].if_floats()); break;
      case ExprOp::select:
        use(in.a, Known::none());
        use(in.b, wanted[i]);
        use(in.c, wanted[i]);
        break;
      case ExprOp::max:
      case ExprOp::min:
        // Rounding keeps the order, so the larger number becomes the larger one.
        use(in.a, wanted[i].if_floats());
        use(in.b, wanted[i].if_floats());
        break;
      default: {
        const uint16_t read[] = {in.a, in.b, in.c};
        for (int k = 0; k < operand_count(in.op); ++k) use(read[k], Known::none());
      }
    }
  }
  return wanted;
}

/// The expression with what is cast in place of the casts that `needless` names, which nobody reads then.
template <class Needless>
Expr without_casts(const Expr& expr, const Needless& needless) {
  Expr made = expr;
  std::vector<uint16_t> stands_for(expr.code.size());
  for (size_t i = 0; i < expr.code.size(); ++i) {
    Instr& in = made.code[i];
    in.a = stands_for[in.a];
    in.b = stands_for[in.b];
    in.c = stands_for[in.c];
    const bool drops = in.op == ExprOp::cast && needless(i, static_cast<Dtype>(in.imm));
    stands_for[i] = drops ? in.a : static_cast<uint16_t>(i);
  }
  if (!expr.code.empty()) made.result = stands_for[expr.result];
  return made;
}

}  // namespace

Expr without_needless_casts(const Expr& expr, const Problem& problem, bool bf16_drops_denormals,
                            bool skeleton_is_rounded) {
  const std::vector<Known> wanted = wanted_types(expr, problem);
  const Expr later = without_casts(expr, [&](size_t i, Dtype type) { return wanted[i].is(type); });
  // What is rounded later is not held any more.
  const std::vector<Known> held = held_types(later, problem, skeleton_is_rounded);
  return without_casts(later, [&](size_t i, Dtype type) {
    const Known& value = held[later.code[i].a];
    return value.is(type) && (value.is_rounded() || !(bf16_drops_denormals && type == Dtype::bf16));
  });
}

}  // namespace partita
