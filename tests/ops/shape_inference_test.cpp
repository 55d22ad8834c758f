// SPDX-License-Identifier: Apache-2.0
// Output shapes of every family without sliding windows.
#include <gtest/gtest.h>

#include "tests/support/shape_case.hpp"

namespace partita::test {
namespace {

TEST(shapes, of_element_wise_operators_are_those_of_the_source) {
  expect_all({
      {OpKind::ReLU, {}, "f32[2,0,3]", "f32", "f32[2,0,3]"},
      {OpKind::Exp, {}, "f32[]", "f32", "f32[]"},
      {OpKind::TanhBackward, {}, "bf16[4] bf16[4]", "bf16[?]", "bf16[4]"},
      {OpKind::Abs, {}, "f32[2,3]", "f32[2,4]", "!`dst` is f32[2,4], the operator makes [2,3]"},
      {OpKind::GenIndex, {{Attr::axis, int64_t{-1}}}, "f32[2,3]", "s32", "s32[2,3]"},
      {OpKind::TypeCast, {}, "f32[5]", "bf16", "bf16[5]"},
      {OpKind::Reorder, {}, "f16[5,1]", "f16", "f16[5,1]"},
      {OpKind::BiasAdd, {}, "f32[2,4,3] f32[3]", "f32", "f32[2,4,3]"},
      {OpKind::PReLU, {}, "f32[2,4,3] f32[3]", "f32", "f32[2,4,3]"},
      {OpKind::PReLUBackward, {}, "f32[2,4,3] f32[1,4,1] f32[2,4,3]", "f32 f32", "f32[2,4,3] f32[1,4,1]"},
      {OpKind::Quantize, {{Attr::scales, Floats{1}}}, "f32[3]", "u8", "u8[3]"},
      {OpKind::DynamicDequantize,
       {{Attr::qtype, std::string("per_group")}, {Attr::group_shape, Ints{1, 4}}},
       "s4[3,8] f16[3,2] s4[3,2]",
       "f16",
       "f16[3,8]"},
      {OpKind::Dropout, {}, "f32[2,3] s64[] s64[1] f32[]", "f32 u8", "f32[2,3] u8[2,3]"},
      {OpKind::BatchNormInference,
       {{Attr::epsilon, 0.1f}},
       "f32[2,4,3] f32[3] f32[3] f32[3] f32[3]",
       "f32",
       "f32[2,4,3]"},
  });
}

TEST(shapes, broadcast_as_in_numpy) {
  const AttrList none = {{Attr::auto_broadcast, std::string("none")}};
  expect_all({
      {OpKind::Add, {}, "f32[2,1,3] f32[4,1]", "f32", "f32[2,4,3]"},
      {OpKind::Maximum, {}, "f32[] f32[0,1]", "f32", "f32[0,1]"},
      {OpKind::GreaterEqual, {}, "s32[1,4] s32[3,1]", "boolean", "boolean[3,4]"},
      {OpKind::Add,
       {},
       "f32[2,3] f32[2]",
       "f32",
       "!aligned at the right, dims must be equal or one of them 1: `src_0` is f32[2,3], `src_1` is f32[2]"},
      {OpKind::Add, none, "f32[2,3] f32[1,3]", "f32",
       "!without broadcast (auto_broadcast=none) the shapes must be equal: `src_0`"},
      {OpKind::Subtract, none, "f32[2,3] f32[2,3]", "f32", "f32[2,3]"},
      {OpKind::Select,
       {},
       "boolean[1,3] f32[2,1] f32[1]",
       "f32",
       "!`cond` must broadcast to the shape of `src_0` with `src_1`, [2,1]"},
      {OpKind::Select, {}, "boolean[2,1] f32[2,3] f32[1]", "f32", "f32[2,3]"},
  });
}

TEST(shapes, of_matmul_follow_numpy) {
  const AttrList ta = {{Attr::transpose_a, true}}, tb = {{Attr::transpose_b, true}};
  expect_all({
      {OpKind::MatMul, {}, "f32[2,3] f32[3,4]", "f32", "f32[2,4]"},
      {OpKind::MatMul, ta, "f32[3,2] f32[3,4]", "f32", "f32[2,4]"},
      {OpKind::MatMul, tb, "f32[5,1,2,3] f32[6,4,3]", "f32", "f32[5,6,2,4]"},
      {OpKind::MatMul, {}, "f32[3] f32[3]", "f32", "f32[]"},
      {OpKind::MatMul, ta, "f32[3] f32[7,3,4]", "f32", "f32[7,4]"},
      {OpKind::MatMul, {}, "f32[7,2,3] f32[3]", "f32", "f32[7,2]"},
      {OpKind::MatMul, {}, "f32[2,0] f32[0,4] f32[4]", "f32", "f32[2,4]"},
      {OpKind::MatMul,
       {},
       "f32[2,3] f32[4,3]",
       "f32",
       "!the inner dims must be equal, found 3 and 4: `src` is f32[2,3], `weights` is f32[4,3], transpose_a=false"},
      {OpKind::MatMul, {}, "f32[2,2,3] f32[3,3,4]", "f32", "!the batch dims must be equal or one of them 1: `src`"},
      {OpKind::MatMul,
       {},
       "f32[2,3] f32[3,4] f32[3]",
       "f32",
       "!`bias` must broadcast to the result [2,4]: `bias` is f32[3]"},
  });
}

TEST(shapes, of_normalisations_carry_statistics) {
  const AttrList plain = {{Attr::keep_stats, false}, {Attr::use_affine, false}};
  const AttrList eps = {{Attr::epsilon, 0.1f}};
  expect_all({
      {OpKind::LayerNorm, {}, "f32[2,3,4] f32[4] f32[4]", "f32 f32 f32", "f32[2,3,4] f32[2,3] f32[2,3]"},
      {OpKind::LayerNorm,
       {{Attr::begin_norm_axis, int64_t{1}}},
       "f32[2,3,4] f32[3,4] f32[12]",
       "f32 f32 f32",
       "f32[2,3,4] f32[2] f32[2]"},
      {OpKind::LayerNorm, plain, "f32[2,3]", "f32", "f32[2,3]"},
      {OpKind::LayerNormBackward,
       {},
       "f32[2,4] f32[2,4] f32[2] f32[2] f32[4]",
       "f32 f32 f32",
       "f32[2,4] f32[4] f32[4]"},
      {OpKind::RMSNorm, {}, "f32[2,4] f32[4]", "f32", "f32[2,4]"},
      {OpKind::GroupNorm,
       {{Attr::groups, int64_t{2}}},
       "f32[5,3,4] f32[4] f32[4]",
       "f32 f32 f32",
       "f32[5,3,4] f32[5,2] f32[5,2]"},
      {OpKind::BatchNormForwardTraining, eps, "f32[5,4] f32[4] f32[4]", "f32 f32 f32 f32 f32",
       "f32[5,4] f32[4] f32[4] f32[4] f32[4]"},
      {OpKind::BatchNormTrainingBackward, eps, "f32[5,4] f32[5,4] f32[4] f32[4] f32[4]", "f32 f32 f32",
       "f32[5,4] f32[4] f32[4]"},
      {OpKind::BiasAddBackward, {{Attr::data_format, std::string("NCX")}}, "f32[5,4]", "f32", "f32[4]"},
      {OpKind::BiasAddBackward, {}, "f32[5,4,6]", "f32", "f32[6]"},
      {OpKind::SoftMax, {{Attr::axis, int64_t{-2}}}, "f32[2,3,4]", "f32 f32", "f32[2,3,4] f32[2,1,4]"},
      {OpKind::SoftMaxBackward, {}, "f32[2,3] f32[2,3]", "f32", "f32[2,3]"},
      {OpKind::LogSoftmax, {}, "f32[2]", "f32", "f32[2]"},
      {OpKind::LogSoftmaxBackward, {}, "f32[2] f32[2]", "f32", "f32[2]"},
  });
}

TEST(shapes, of_reductions_lose_or_keep_the_axes) {
  const AttrList outer = {{Attr::axes, Ints{0, -1}}};
  AttrList kept = outer;
  kept.emplace_back(Attr::keep_dims, true);
  expect_all({
      {OpKind::ReduceSum, outer, "f32[2,3,4]", "f32", "f32[3]"},
      {OpKind::ReduceMax, kept, "f32[2,3,4]", "f32", "f32[1,3,1]"},
      {OpKind::ReduceMean, outer, "f32[2,0,4]", "f32", "f32[0]"},
      {OpKind::ReduceL2, {}, "f32[2,3,4] s32[2]", "f32", "f32[?]"},
      {OpKind::ReduceL1, {{Attr::keep_dims, true}}, "f32[2,3,4] s32[2]", "f32[?,3,?]", "f32[?,3,?]"},
      {OpKind::ReduceProd, {{Attr::axes, Ints{}}}, "f32[2]", "f32", "!`axes` must be given as attribute or input"},
  });
}

TEST(shapes, of_interpolation_come_from_sizes_or_scales) {
  const AttrValue mode = std::string("linear"), ncx = std::string("NCX");
  const AttrList scaled = {{Attr::mode, mode}, {Attr::data_format, ncx}, {Attr::scales, Floats{2, 0.5f}}};
  const AttrList sized = {
      {Attr::mode, mode}, {Attr::data_format, ncx}, {Attr::sizes, Ints{6, 12}}, {Attr::scales, Floats{}}};
  const AttrList open = {{Attr::mode, mode}};
  expect_all({
      {OpKind::Interpolate, scaled, "f32[2,8,4,5]", "f32", "f32[2,8,8,2]"},
      {OpKind::Interpolate, sized, "f32[2,8,4,5]", "f32", "f32[2,8,6,12]"},
      {OpKind::Interpolate, open, "f32[2,4,8] s32[1]", "f32", "f32[2,?,8]"},
      {OpKind::Interpolate, scaled, "f32[2,8,4,1]", "f32",
       "!`scales` must leave from 1 to 2147483647 cells on each spatial axis"},
      {OpKind::Interpolate, sized, "f32[0,8,4,5]", "f32", "f32[0,8,6,12]"},
      {OpKind::Interpolate, scaled, "f32[2,8,0,5]", "f32", "f32[2,8,0,2]"},
      {OpKind::Interpolate, sized, "f32[2,8,4,0]", "f32", "![6,12] places need cells to take from"},
      {OpKind::InterpolateBackward, sized, "f32[2,8,0,5] f32[2,8,6,12]", "f32", "![6,12] places need cells"},
      {OpKind::InterpolateBackward, sized, "f32[2,8,4,5] f32[2,8,6,12]", "f32", "f32[2,8,4,5]"},
      {OpKind::InterpolateBackward, open, "f32[2,4,8] f32[2,9,8] s32[1]", "f32", "f32[2,4,8]"},
      {OpKind::InterpolateBackward, sized, "f32[2,8,4,5] f32[2,8,6,11]", "f32",
       "!`diff_dst` is f32[2,8,6,11], the forward result of"},
  });
}

TEST(shapes, of_layout_operators) {
  const auto reshape = [](Ints shape, bool zero) { return AttrList{{Attr::shape, shape}, {Attr::special_zero, zero}}; };
  const AttrList axis = {{Attr::axis, int64_t{-1}}};
  expect_all({
      {OpKind::StaticTranspose, {{Attr::order, Ints{1, -1, 0}}}, "f32[2,3,4]", "f32", "f32[3,4,2]"},
      {OpKind::StaticTranspose, {{Attr::order, Ints{}}}, "f32[2,3,4]", "f32", "f32[4,3,2]"},
      {OpKind::StaticReshape, reshape({0, -1}, true), "f32[2,3,4]", "f32", "f32[2,12]"},
      {OpKind::StaticReshape, reshape({0, 5}, false), "f32[2,0,4]", "f32", "f32[0,5]"},
      {OpKind::StaticReshape, reshape({}, true), "f32[1,1]", "f32", "f32[]"},
      {OpKind::StaticReshape, reshape({5}, true), "f32[2,3]", "f32",
       "!`shape` must keep the number of elements: shape=[5], `src` is f32[2,3]"},
      {OpKind::StaticReshape, reshape({4, -1}, true), "f32[2,3]", "f32",
       "!`shape` must divide the number of elements: shape=[4,-1]"},
      {OpKind::StaticReshape, reshape({0, -1}, false), "f32[0,3]", "f32", "!`shape` leaves the entry -1 undetermined"},
      {OpKind::StaticReshape, reshape({2, 3, 0}, true), "f32[2,3]", "f32",
       "!`shape` copies a dim (0 with special_zero) that `src` does not have"},
      {OpKind::Concat, axis, "f32[2,3] f32[2,0] f32[2,4]", "f32", "f32[2,7]"},
      {OpKind::Concat, axis, "f32[2,3]", "f32", "f32[2,3]"},
      {OpKind::Concat, axis, "f32[2,3] f32[3,3]", "f32",
       "!all inputs must have equal dims except along `axis` 1: `src_i` (input 0) is f32[2,3], `src_i` (input 1) is "
       "f32[3,3]"},
  });
}

TEST(shapes, of_control_operators_stay_as_given) {
  expect_all({{OpKind::End, {}, "f32[2]", "", ""}, {OpKind::Wildcard, {}, "f32[2] s8", "u8 f32[3]", "u8 f32[3]"}});
}

TEST(shapes, must_be_known_at_the_inputs) {
  const op o = op_of(OpKind::ReLU, {}, "f32[2,?]", "f32");
  EXPECT_EQ(infer(o).text, "`src` must have known dims, found f32[2,?]");
}

}  // namespace
}  // namespace partita::test
