// SPDX-License-Identifier: Apache-2.0
// Which roundings of an expression change nothing.
#include "kernels/needless_casts.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/transplant.hpp"
#include "tests/support/maxima.hpp"

namespace partita::test {
namespace {

using Value = ExprBuilder::Value;

/// A loop over one element; operands get the types in their order.
Problem loop(std::initializer_list<Dtype> in, std::initializer_list<Dtype> out) {
  Problem p;
  p.step = StepKind::loop;
  for (const Dtype dtype : in) p.in.push_back(dense_desc(dtype, {1}));
  for (const Dtype dtype : out) p.out.push_back(dense_desc(dtype, {1}));
  return p;
}

Value cast(ExprBuilder b, Value value, Dtype dtype) {
  return b.apply(ExprOp::cast, value, 0, 0, static_cast<int32_t>(dtype));
}

int64_t casts_left(const Problem& p, bool bf16_drops_denormals = false, bool skeleton_is_rounded = false) {
  const Expr left = without_unused(without_needless_casts(p.back, p, bf16_drops_denormals, skeleton_is_rounded));
  return std::ranges::count(left.code, ExprOp::cast, &Instr::op);
}

/// select(x > 0, cast(x + y), 0), with the sum as often as `outputs` has types.
Problem chosen_sum(Dtype rounded, std::initializer_list<Dtype> outputs) {
  Problem p = loop({Dtype::f32, Dtype::f32}, outputs);
  ExprBuilder b(p.back);
  const Value x = b.load(0), zero = b.constant(0);
  const Value chosen = b.select(b.gt(x, zero), cast(b, b.add(x, b.load(1)), rounded), zero);
  for (size_t k = 0; k < outputs.size(); ++k) b.store(static_cast<int>(k), chosen);
  return p;
}

TEST(needless_casts, what_is_stored_in_the_type_is_rounded_there) {
  for (const Dtype dtype : {Dtype::bf16, Dtype::f16, Dtype::f8_e4m3, Dtype::s8})
    for (const bool drops : {false, true}) {
      EXPECT_EQ(casts_left(chosen_sum(dtype, {dtype}), drops), 0);
      EXPECT_EQ(casts_left(chosen_sum(dtype, {dtype, dtype}), drops), 0);
    }
  EXPECT_EQ(casts_left(chosen_sum(Dtype::bf16, {Dtype::f32})), 1);
  EXPECT_EQ(casts_left(chosen_sum(Dtype::bf16, {Dtype::f16})), 1);
  EXPECT_EQ(casts_left(chosen_sum(Dtype::bf16, {Dtype::bf16, Dtype::f32})), 1);
}

TEST(needless_casts, what_is_computed_with_is_rounded_before) {
  Problem p = loop({Dtype::f32, Dtype::f32}, {Dtype::bf16});
  ExprBuilder b(p.back);
  const Value sum = cast(b, b.add(b.load(0), b.load(1)), Dtype::bf16);
  b.store(0, b.mul(sum, b.load(1)));
  EXPECT_EQ(casts_left(p), 1);
}

/// Rounding keeps the order of numbers; only that to integers makes one of NaN.
TEST(needless_casts, the_larger_and_the_lesser_number_are_rounded_later) {
  for (const ExprOp op : {ExprOp::max, ExprOp::min})
    for (const bool constant : {false, true}) {
      const auto left = [&](Dtype rounded, Dtype stored) {
        Problem p = loop({Dtype::f32, Dtype::f32}, {stored});
        ExprBuilder b(p.back);
        const Value sum = cast(b, b.add(b.load(0), b.load(1)), rounded);
        b.store(0, b.apply(op, sum, constant ? b.constant(0.3f) : b.load(1)));
        return casts_left(p, /*bf16_drops_denormals=*/true);
      };
      for (const Dtype dtype : {Dtype::bf16, Dtype::f16, Dtype::f8_e5m2}) {
        EXPECT_EQ(left(dtype, dtype), 0);
        EXPECT_EQ(left(dtype, Dtype::f32), 1);
      }
      EXPECT_EQ(left(Dtype::f16, Dtype::bf16), 1);
      EXPECT_EQ(left(Dtype::s8, Dtype::s8), 1);
    }
}

TEST(needless_casts, a_condition_is_rounded_before) {
  Problem p = loop({Dtype::f32, Dtype::f32}, {Dtype::bf16});
  ExprBuilder b(p.back);
  const Value sum = cast(b, b.add(b.load(0), b.load(1)), Dtype::bf16);
  b.store(0, b.select(sum, b.load(0), b.load(1)));
  EXPECT_EQ(casts_left(p), 1);
}

TEST(needless_casts, a_fold_takes_what_is_rounded) {
  Problem p = loop({Dtype::f32, Dtype::f32}, {Dtype::f32});
  ExprBuilder b(p.back);
  b.fold(Fold::sum, 0, cast(b, b.add(b.load(0), b.load(1)), Dtype::bf16));
  EXPECT_EQ(casts_left(p), 1);
}

TEST(needless_casts, what_was_loaded_in_the_type_has_its_precision) {
  for (const Dtype dtype : {Dtype::bf16, Dtype::f16}) {
    Problem p = loop({dtype, dtype}, {Dtype::f32});
    ExprBuilder b(p.back);
    const Value x = b.load(0);
    const Value chosen = b.select(b.gt(b.load(1), b.constant(0)), b.apply(ExprOp::neg, x), b.constant(0));
    b.store(0, b.add(cast(b, chosen, dtype), x));
    EXPECT_EQ(casts_left(p), 0);
    EXPECT_EQ(casts_left(p, /*bf16_drops_denormals=*/true), dtype == Dtype::bf16 ? 1 : 0);
    p.in[0].dtype = Dtype::f32;
    EXPECT_EQ(casts_left(p), 1);
  }
}

TEST(needless_casts, the_larger_of_two_has_their_precision) {
  const auto left = [](Dtype other) {
    Problem p = loop({Dtype::f16, other}, {Dtype::f32});
    ExprBuilder b(p.back);
    const Value larger = b.max(b.load(0), b.load(1)), positive = b.max(b.load(0), b.constant(0));
    b.store(0, b.mul(cast(b, larger, Dtype::f16), cast(b, positive, Dtype::f16)));
    return casts_left(p);
  };
  EXPECT_EQ(left(Dtype::f16), 0);
  EXPECT_EQ(left(Dtype::bf16), 1);
}

/// The least s8 has no opposite.
TEST(needless_casts, a_negated_integer_is_rounded_again) {
  Problem p = loop({Dtype::s8}, {Dtype::f32});
  ExprBuilder b(p.back);
  b.store(0, cast(b, b.apply(ExprOp::neg, b.load(0)), Dtype::s8));
  EXPECT_EQ(casts_left(p), 1);
}

/// Each of the two alone is needless for the other's sake.
TEST(needless_casts, one_of_two_stays) {
  Problem p = loop({Dtype::f32, Dtype::f32}, {Dtype::f32});
  ExprBuilder b(p.back);
  const Value sum = cast(b, b.add(b.load(0), b.load(1)), Dtype::bf16);
  b.store(0, cast(b, b.apply(ExprOp::abs, sum), Dtype::bf16));
  EXPECT_EQ(casts_left(p), 1);
}

/// What is folded takes the place of what would have been stored and read again.
TEST(needless_casts, what_is_chosen_from_rounded_gradients_is_rounded) {
  Problem p = maximum_gradient(Dtype::bf16, {1, 1, {8, 8}, {2, 2}, {2, 2}, {1, 1}, {0, 0}}, false);
  p.out.push_back(dense_desc(Dtype::f32, {1, 1, 1, 1}));
  ExprBuilder b(p.back);
  const Value zero = b.constant(0);
  const Value chosen = b.select(b.gt(b.load(0), zero), cast(b, b.skeleton(), Dtype::bf16), zero);
  b.store(0, chosen);
  b.fold(Fold::sum, 1, cast(b, chosen, Dtype::bf16));
  EXPECT_EQ(casts_left(p, /*bf16_drops_denormals=*/false), 0);
  EXPECT_EQ(casts_left(p, /*bf16_drops_denormals=*/true), 1);
  EXPECT_EQ(casts_left(p, /*bf16_drops_denormals=*/true, /*skeleton_is_rounded=*/true), 0);
}

TEST(needless_casts, gradients_of_maxima_have_the_precision_of_what_comes_in_unless_they_are_summed) {
  const auto left = [](int64_t kernel, bool in_front) {
    Problem p = maximum_gradient(Dtype::f16, {1, 1, {8, 8}, {2, kernel}, {2, 2}, {1, 1}, {0, 0}}, false);
    if (in_front) {
      ExprBuilder front(p.front);
      p.front.result = front.apply(ExprOp::exp, front.load(1));
    }
    ExprBuilder b(p.back);
    b.store(0, b.add(cast(b, b.skeleton(), Dtype::f16), b.load(0)));
    return casts_left(p);
  };
  EXPECT_EQ(left(2, false), 0);
  EXPECT_EQ(left(3, false), 1);
  EXPECT_EQ(left(2, true), 1);
}

}  // namespace
}  // namespace partita::test
