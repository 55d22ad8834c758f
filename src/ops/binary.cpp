// SPDX-License-Identifier: Apache-2.0
// Element-wise operators of two inputs with numpy broadcast.
#include "src/ops/attributes.hpp"
#include "src/ops/expressions.hpp"
#include "src/ops/families.hpp"
#include "src/ops/rules.hpp"

namespace partita {
namespace {

/// One type for all three tensors.
constexpr OpDef binary(OpKind kind, std::string_view name, std::string_view c_name, std::string_view summary,
                       Expression expression, bool commutative) {
  return {.kind = kind,
          .name = name,
          .c_name = c_name,
          .summary = summary,
          .inputs = {{"src_0", "T", "left operand"}, {"src_1", "T", "right operand"}},
          .outputs = {{"dst", "T", "results, with the broadcast shape"}},
          .attrs = {kAutoBroadcast},
          .types = {{"T", kFloats}},
          .infer = broadcast_shapes,
          .step = StepKind::loop,
          .expression = expression,
          .commutative = commutative};
}

/// oneDNN documents equal types, and results in f32 where one operand is f32; the others are computed in f32 all the
/// same.
bool documented_types(const OpView& v) {
  const Dtype a = v.in_type(0), b = v.in_type(1), to = v.out_type(0);
  if (a == Dtype::s32 || b == Dtype::s32 || to == Dtype::s32) return a == b && b == to;
  return (a == b && b == to) || (to == Dtype::f32 && (a == Dtype::f32 || b == Dtype::f32));
}

/// Each tensor has its own type.
constexpr OpDef mixed(OpDef def, DtypeSet types) {
  def.inputs = {{"src_0", "T1", "left operand"}, {"src_1", "T2", "right operand"}};
  def.outputs = {{"dst", "T3", "results, with the broadcast shape"}};
  def.types = {{"T1", types}, {"T2", types}, {"T3", types}};
  def.documented = documented_types;
  return def;
}

template <ExprOp real, ExprOp integer>
Value either(ExprBuilder& b, const ExprInputs& x) {
  return b.apply(x.integer ? integer : real, x.in[0], x.in[1]);
}

Value squared_difference(ExprBuilder& b, const ExprInputs& x) { return square(b, b.sub(x.in[0], x.in[1])); }

constexpr DtypeSet kFloatsOrS32{Dtype::f32, Dtype::bf16, Dtype::f16, Dtype::s32};

constexpr OpDef greater_equal() {
  OpDef def = binary(OpKind::GreaterEqual, "GreaterEqual", "greater_equal", "dst is true where src_0 >= src_1.",
                     either<ExprOp::ge, ExprOp::ge_s32>, false);
  def.inputs = {{"src_0", "T1", "left operand"}, {"src_1", "T1", "right operand"}};
  def.outputs = {{"dst", "T2", "one byte an element, 0 or 1"}};
  def.types = {{"T1", kFloatsOrS32}, {"T2", {Dtype::boolean}}};
  return def;
}

}  // namespace

constexpr OpDef kAdd = mixed(
    binary(OpKind::Add, "Add", "add", "dst = src_0 + src_1", either<ExprOp::add, ExprOp::add_s32>, true), kFloatsOrS32);
constexpr OpDef kSubtract = mixed(binary(OpKind::Subtract, "Subtract", "subtract", "dst = src_0 - src_1",
                                         either<ExprOp::sub, ExprOp::sub_s32>, false),
                                  kFloatsOrS32);
constexpr OpDef kMultiply =
    mixed(binary(OpKind::Multiply, "Multiply", "multiply", "dst = src_0 * src_1", map2<ExprOp::mul>, true), kFloats);
constexpr OpDef kDivide =
    mixed(binary(OpKind::Divide, "Divide", "divide", "dst = src_0 / src_1", map2<ExprOp::div>, false), kFloats);
constexpr OpDef kMaximum =
    binary(OpKind::Maximum, "Maximum", "maximum", "dst = the greater of src_0 and src_1", map2<ExprOp::max>, true);
constexpr OpDef kMinimum =
    binary(OpKind::Minimum, "Minimum", "minimum", "dst = the smaller of src_0 and src_1", map2<ExprOp::min>, true);
constexpr OpDef kSquaredDifference = binary(OpKind::SquaredDifference, "SquaredDifference", "squared_difference",
                                            "dst = (src_0 - src_1) squared", squared_difference, true);
constexpr OpDef kGreaterEqual = greater_equal();

}  // namespace partita
