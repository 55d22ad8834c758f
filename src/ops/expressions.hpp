// SPDX-License-Identifier: Apache-2.0
// Short ways to write the expressions of element-wise operators.
#pragma once

#include "src/ir/op_def.hpp"

namespace partita {

using Value = ExprBuilder::Value;
using Expression = Value (*)(ExprBuilder&, const ExprInputs&);

/// One instruction on the first input, or on the first two.
template <ExprOp instruction>
Value map1(ExprBuilder& b, const ExprInputs& x) {
  return b.apply(instruction, x.in[0]);
}
template <ExprOp instruction>
Value map2(ExprBuilder& b, const ExprInputs& x) {
  return b.apply(instruction, x.in[0], x.in[1]);
}

inline Value copy(ExprBuilder&, const ExprInputs& x) { return x.in[0]; }
inline Value scale(ExprBuilder& b, Value a, float factor) { return b.mul(a, b.constant(factor)); }
inline Value offset(ExprBuilder& b, Value a, float term) { return b.add(a, b.constant(term)); }
/// factor * a + term
inline Value linear(ExprBuilder& b, Value a, float factor, float term) { return offset(b, scale(b, a, factor), term); }
inline Value square(ExprBuilder& b, Value a) { return b.apply(ExprOp::square, a); }
inline Value one_minus(ExprBuilder& b, Value a) { return b.sub(b.constant(1), a); }
inline Value clip(ExprBuilder& b, Value a, float low, float high) {
  return b.min(b.max(a, b.constant(low)), b.constant(high));
}
/// `yes` where a > limit, otherwise `no`.
inline Value where_above(ExprBuilder& b, Value a, float limit, Value yes, Value no) {
  return b.select(b.gt(a, b.constant(limit)), yes, no);
}
/// `value` where low < a < high, otherwise 0.
inline Value inside(ExprBuilder& b, Value a, float low, float high, Value value) {
  const Value zero = b.constant(0);
  return where_above(b, a, low, b.select(b.gt(b.constant(high), a), value, zero), zero);
}

}  // namespace partita
