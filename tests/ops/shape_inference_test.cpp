// SPDX-License-Identifier: Apache-2.0
// Output shapes of every family: operator, attributes and input shapes -> output shapes, or the text of the refusal.
#include <gtest/gtest.h>

#include <set>

#include "src/ir/shape_context.hpp"
#include "src/ir/verify_op.hpp"
#include "tests/support/op_text.hpp"

namespace partita::test {
namespace {

struct Case {
  OpKind kind;
  AttrList attrs;
  std::string_view inputs;
  std::string_view given;     ///< outputs before
  std::string_view expected;  ///< outputs after, or ! and what the refusal says
};

struct Inferred {
  std::string text;  ///< outputs, or the failure
  Attrs attrs;
};

Inferred infer(const op& o) {
  Result<Attrs> attrs = verify_op(o);
  if (!attrs.ok()) return {attrs.status().text(), {}};
  std::vector<logical_tensor> outputs = o.outputs;
  const Status status = infer_shapes(op_def(o.kind), *attrs, o.inputs, outputs);
  return {status.ok() ? text_of(outputs) : status.text(), *attrs};
}

void expect_all(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    SCOPED_TRACE(std::string(name_of(c.kind)) + "(" + std::string(c.inputs) + ") -> " + std::string(c.given));
    const Inferred got = infer(op_of(c.kind, c.attrs, c.inputs, c.given));
    if (c.expected.starts_with('!')) {
      EXPECT_NE(got.text.find(c.expected.substr(1)), got.text.npos) << got.text;
    } else {
      EXPECT_EQ(got.text, c.expected);
    }
  }
}

AttrList pool(Ints kernel, Ints strides, Ints begin, Ints end, AttrList more = {}) {
  AttrList attrs = {{Attr::kernel, kernel}, {Attr::strides, strides}, {Attr::pads_begin, begin}, {Attr::pads_end, end},
                    {Attr::data_format, std::string("NCX")}};
  attrs.insert(attrs.end(), more.begin(), more.end());
  return attrs;
}
AttrList avg(Ints kernel, Ints strides, Ints begin, Ints end, AttrList more = {}) {
  more.emplace_back(Attr::exclude_pad, true);
  return pool(kernel, strides, begin, end, more);
}
AttrList conv(Ints strides, Ints begin, Ints end, Ints dilations, std::string filter, AttrList more = {}) {
  AttrList attrs = {{Attr::strides, strides}, {Attr::pads_begin, begin}, {Attr::pads_end, end},
                    {Attr::dilations, dilations}, {Attr::weights_format, filter}, {Attr::data_format, std::string("NCX")}};
  attrs.insert(attrs.end(), more.begin(), more.end());
  return attrs;
}
const std::string kCeil = "ceil", kUpper = "SAME_UPPER", kLower = "SAME_LOWER", kValid = "VALID", kLast = "NXC";

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
      {OpKind::DynamicDequantize, {{Attr::qtype, std::string("per_group")}, {Attr::group_shape, Ints{1, 4}}},
       "s4[3,8] f16[3,2] s4[3,2]", "f16", "f16[3,8]"},
      {OpKind::Dropout, {}, "f32[2,3] s64[] s64[1] f32[]", "f32 u8", "f32[2,3] u8[2,3]"},
      {OpKind::BatchNormInference, {{Attr::epsilon, 0.1f}}, "f32[2,4,3] f32[3] f32[3] f32[3] f32[3]", "f32", "f32[2,4,3]"},
  });
}

TEST(shapes, broadcast_as_in_numpy) {
  const AttrList none = {{Attr::auto_broadcast, std::string("none")}};
  expect_all({
      {OpKind::Add, {}, "f32[2,1,3] f32[4,1]", "f32", "f32[2,4,3]"},
      {OpKind::Maximum, {}, "f32[] f32[0,1]", "f32", "f32[0,1]"},
      {OpKind::GreaterEqual, {}, "s32[1,4] s32[3,1]", "boolean", "boolean[3,4]"},
      {OpKind::Add, {}, "f32[2,3] f32[2]", "f32",
       "!aligned at the right, dims must be equal or one of them 1: `src_0` is f32[2,3], `src_1` is f32[2]"},
      {OpKind::Add, none, "f32[2,3] f32[1,3]", "f32", "!without broadcast (auto_broadcast=none) the shapes must be equal: `src_0`"},
      {OpKind::Subtract, none, "f32[2,3] f32[2,3]", "f32", "f32[2,3]"},
      {OpKind::Select, {}, "boolean[1,3] f32[2,1] f32[1]", "f32", "!`cond` must broadcast to the shape of `src_0` with `src_1`, [2,1]"},
      {OpKind::Select, {}, "boolean[2,1] f32[2,3] f32[1]", "f32", "f32[2,3]"},
  });
}

TEST(shapes, of_pooling_follow_both_conventions_of_ceil) {
  const AttrList ceil = {{Attr::rounding_type, kCeil}};
  expect_all({
      {OpKind::AvgPool, avg({3, 3}, {2, 2}, {1, 1}, {0, 0}), "f32[1,64,600,600]", "f32", "f32[1,64,300,300]"},
      {OpKind::MaxPool, pool({3}, {2}, {0}, {0}), "f32[1,1,6]", "f32", "f32[1,1,2]"},
      {OpKind::MaxPool, pool({3}, {2}, {0}, {0}, ceil), "f32[1,1,6]", "f32", "f32[1,1,3]"},
      // The fourth window starts behind the source: oneDNN counts it, PyTorch does not.
      {OpKind::MaxPool, pool({1}, {2}, {0}, {0}, ceil), "f32[1,1,6]", "f32", "f32[1,1,4]"},
      {OpKind::MaxPool, pool({1}, {2}, {0}, {0}, ceil), "f32[1,1,6]", "f32[1,1,3]", "f32[1,1,3]"},
      {OpKind::MaxPool, pool({1}, {2}, {0}, {0}, ceil), "f32[1,1,6]", "f32[1,1,2]",
       "!`dst` is f32[1,1,2], the operator makes [1,1,4]"},
      {OpKind::MaxPool, pool({1}, {2}, {0}, {0}), "f32[1,1,6]", "f32[1,1,4]", "!`dst` is f32[1,1,4], the operator makes [1,1,3]"},
      {OpKind::MaxPool, pool({2}, {1}, {}, {}, {{Attr::dilations, Ints{3}}}), "f32[1,1,6]", "f32", "f32[1,1,3]"},
      {OpKind::AvgPool, avg({2}, {1}, {}, {}, {{Attr::data_format, kLast}}), "f32[5,6,7]", "f32", "f32[5,5,7]"},
      {OpKind::AvgPool, avg({7}, {1}, {1}, {1}), "f32[1,1,4]", "f32",
       "!spatial dims must be 1 or more, found [0]: `src` is f32[1,1,4], window [7]"},
      {OpKind::AvgPool, avg({2}, {1}, {0}, {0}), "f32[0,1,4]", "f32", "f32[0,1,3]"},
      {OpKind::AvgPool, avg({2}, {1}, {0}, {0}), "f32[1,1,0]", "f32", "f32[1,1,0]"},
  });
}

TEST(shapes, resolve_auto_pad_into_explicit_pads) {
  struct Pads {
    std::string mode;
    Ints begin, end;
    std::string_view dst;
  };
  for (const Pads& p : {Pads{kUpper, {0, 1}, {1, 1}, "f32[1,1,4,5]"}, Pads{kLower, {1, 1}, {0, 1}, "f32[1,1,4,5]"},
                        Pads{kValid, {0, 0}, {0, 0}, "f32[1,1,3,4]"}, Pads{"same_upper", {0, 1}, {1, 1}, "f32[1,1,4,5]"}}) {
    SCOPED_TRACE(p.mode);
    const Inferred got = infer(op_of(OpKind::MaxPool, pool({3, 3}, {2, 2}, {9, 9}, {9, 9}, {{Attr::auto_pad, p.mode}}),
                                     "f32[1,1,8,9]", "f32"));
    EXPECT_EQ(got.text, p.dst);
    EXPECT_EQ(got.attrs.ints(Attr::pads_begin), p.begin);
    EXPECT_EQ(got.attrs.ints(Attr::pads_end), p.end);
    EXPECT_EQ(got.attrs.ints(Attr::dilations), (Ints{1, 1}));
    EXPECT_TRUE(got.attrs.is(Attr::auto_pad, "None"));
  }
}

TEST(shapes, empty_pads_become_zeros) {
  const Inferred got = infer(op_of(OpKind::AvgPool, avg({2, 2}, {1, 1}, {}, {}), "f32[1,1,3,3]", "f32"));
  EXPECT_EQ(got.text, "f32[1,1,2,2]");
  EXPECT_EQ(got.attrs.ints(Attr::pads_begin), (Ints{0, 0}));
  EXPECT_EQ(got.attrs.ints(Attr::pads_end), (Ints{0, 0}));
}

TEST(shapes, of_pooling_backward_are_those_of_the_forward_source) {
  const AttrList with_shape = avg({3, 3}, {2, 2}, {1, 1}, {0, 0}, {{Attr::src_shape, Ints{1, 2, 6, 6}}});
  const AttrList without = avg({3, 3}, {2, 2}, {1, 1}, {0, 0});
  const AttrList narrow = avg({1}, {2}, {0}, {0}, {{Attr::src_shape, Ints{1, 1, 6}}});
  expect_all({
      {OpKind::AvgPoolBackward, with_shape, "f32[1,2,3,3]", "f32", "f32[1,2,6,6]"},
      {OpKind::AvgPoolBackward, without, "f32[1,2,3,3]", "f32[1,2,6,6]", "f32[1,2,6,6]"},
      {OpKind::AvgPoolBackward, without, "f32[1,2,3,3]", "f32", "!`src_shape` must be given as attribute or input"},
      {OpKind::AvgPoolBackward, without, "f32[1,2,3,3] s32[4]", "f32", "f32[1,2,?,?]"},
      {OpKind::AvgPoolBackward, with_shape, "f32[1,2,3,3] s32[4]", "f32", "f32[1,2,?,?]"},
      {OpKind::AvgPoolBackward, with_shape, "f32[1,2,3,3]", "f32[1,2,5,6]", "!the operator makes [1,2,6,6]"},
      {OpKind::AvgPoolBackward, narrow, "f32[1,1,3]", "f32", "f32[1,1,6]"},
      {OpKind::AvgPoolBackward, narrow, "f32[1,1,4]", "f32", "f32[1,1,6]"},
      {OpKind::AvgPoolBackward, narrow, "f32[1,1,5]", "f32", "!`diff_dst` is f32[1,1,5], pooling [1,1,6] makes [1,1,3]"},
      {OpKind::AvgPoolBackward, with_shape, "f32[1,3,3,3]", "f32", "!`diff_dst` is f32[1,3,3,3], pooling [1,2,6,6] makes [1,2,3,3]"},
      {OpKind::MaxPoolBackward, pool({3}, {2}, {1}, {0}), "f32[2,3,8] f32[2,3,4]", "f32", "f32[2,3,8]"},
      {OpKind::MaxPoolBackward, pool({3}, {2}, {1}, {0}), "f32[2,3,8] f32[2,3,3]", "f32",
       "!`diff_dst` is f32[2,3,3], pooling [2,3,8] makes [2,3,4]"},
      {OpKind::MaxPoolBackward, pool({3}, {2}, {0}, {0}), "f32[1,1,6] f32[1,1,3]", "f32", "f32[1,1,6]"},
  });
}

TEST(shapes, of_convolutions_follow_windows_and_filters) {
  expect_all({
      {OpKind::Convolution, conv({2, 2}, {1, 1}, {1, 1}, {1, 1}, "OIX"), "f32[2,3,8,9] f32[4,3,3,3] f32[4]", "f32", "f32[2,4,4,5]"},
      {OpKind::Convolution, conv({1}, {0}, {0}, {2}, "XIO", {{Attr::data_format, kLast}}), "f32[2,9,3] f32[3,3,5]", "f32", "f32[2,5,5]"},
      {OpKind::Convolution, conv({1}, {}, {}, {1}, "OIX", {{Attr::groups, int64_t{2}}}), "f32[1,6,4] f32[4,3,1]", "f32", "f32[1,4,4]"},
      {OpKind::Convolution, conv({2}, {5}, {5}, {1}, "OIX", {{Attr::auto_pad, kUpper}}), "f32[1,1,7] f32[1,1,3]", "f32", "f32[1,1,4]"},
      {OpKind::Convolution, conv({1}, {0}, {0}, {1}, "OIX"), "f32[1,6,4] f32[4,3,1]", "f32",
       "!the filter must have 6 channels a group for this tensor, found 3: `src` is f32[1,6,4], `weights` is f32[4,3,1], groups=1"},
      {OpKind::Convolution, conv({1}, {0}, {0}, {1}, "OIX", {{Attr::groups, int64_t{4}}}), "f32[1,6,4] f32[4,3,1]", "f32",
       "!`groups` must divide the channels (6): groups=4, `src` is f32[1,6,4]"},
      {OpKind::Convolution, conv({1}, {0}, {0}, {1}, "OIX"), "f32[1,3,4] f32[4,3,1] f32[3]", "f32",
       "!`bias` must be 1-D with 4 entries: `bias` is f32[3]"},
      {OpKind::Convolution, conv({1}, {0}, {0}, {1}, "OIX"), "f32[1,3,4] f32[4,3,1,1]", "f32", "!the filter must have rank 3: `src`"},
  });
}

TEST(shapes, of_convolution_gradients_are_checked_against_the_forward_result) {
  const AttrList shape = {{Attr::dst_shape, Ints{1, 3, 6}}};
  const AttrList filter = {{Attr::weights_shape, Ints{4, 3, 3}}};
  expect_all({
      {OpKind::ConvolutionBackwardData, conv({2}, {1}, {1}, {1}, "OIX", shape), "f32[1,4,3] f32[4,3,3]", "f32", "f32[1,3,6]"},
      {OpKind::ConvolutionBackwardData, conv({2}, {1}, {1}, {1}, "OIX"), "f32[1,4,3] f32[4,3,3]", "f32[1,3,5]", "f32[1,3,5]"},
      {OpKind::ConvolutionBackwardData, conv({2}, {1}, {1}, {1}, "OIX"), "f32[1,4,3] f32[4,3,3] s32[3]", "f32", "f32[1,3,?]"},
      {OpKind::ConvolutionBackwardData, conv({2}, {1}, {1}, {1}, "OIX"), "f32[1,4,3] f32[4,3,3]", "f32",
       "!`dst_shape` must be given as attribute or input, or `diff_src` must have a known shape"},
      {OpKind::ConvolutionBackwardData, conv({2}, {1}, {1}, {1}, "OIX", shape), "f32[1,4,4] f32[4,3,3]", "f32",
       "!`diff_dst` is f32[1,4,4], windows over `dst_shape` is [1,3,6] make spatial dims [3]"},
      {OpKind::ConvolutionBackwardWeights, conv({2}, {1}, {1}, {1}, "OIX", filter), "f32[1,3,6] f32[1,4,3]", "f32", "f32[4,3,3]"},
      {OpKind::ConvolutionBackwardWeights, conv({2}, {1}, {1}, {1}, "OIX"), "f32[1,3,6] f32[1,4,3]", "f32[4,3,3]", "f32[4,3,3]"},
      {OpKind::ConvolutionBackwardWeights, conv({2}, {1}, {1}, {1}, "OIX"), "f32[1,3,6] f32[1,4,3] s32[3]", "f32", "f32[?,?,?]"},
      {OpKind::ConvolutionBackwardWeights, conv({2}, {1}, {1}, {1}, "OIX", filter), "f32[2,3,6] f32[1,4,3]", "f32",
       "!the batch must be the same: `src` is f32[2,3,6], `diff_dst` is f32[1,4,3]"},
  });
}

TEST(shapes, of_transposed_convolutions_are_the_other_way_round) {
  const AttrList filter = {{Attr::weights_shape, Ints{4, 3, 3}}};
  expect_all({
      {OpKind::ConvTranspose, conv({2, 2}, {0, 0}, {41, 41}, {1, 1}, "IOX"), "f32[1,32,28,28] f32[32,128,3,3]", "f32", "f32[1,128,16,16]"},
      {OpKind::ConvTranspose, conv({2}, {1}, {1}, {1}, "OIX", {{Attr::output_padding, Ints{1}}}), "f32[1,4,3] f32[4,3,3]", "f32", "f32[1,3,6]"},
      {OpKind::ConvTranspose, conv({1}, {0}, {0}, {1}, "IOX", {{Attr::groups, int64_t{4}}}), "f32[1,4,3] f32[4,2,1] f32[8]", "f32", "f32[1,8,3]"},
      {OpKind::ConvTranspose, conv({2}, {0}, {0}, {1}, "XOI", {{Attr::auto_pad, kLower}}), "f32[1,4,3] f32[3,5,4]", "f32", "f32[1,5,6]"},
      {OpKind::ConvTranspose, conv({1}, {9}, {0}, {1}, "IOX"), "f32[1,4,3] f32[4,2,1]", "f32",
       "!the result's spatial dims must be 1 or more, found [-6]: `src`"},
      {OpKind::ConvTransposeBackwardData, conv({2}, {1}, {1}, {1}, "IOX"), "f32[1,3,6] f32[4,3,3]", "f32", "f32[1,4,3]"},
      {OpKind::ConvTransposeBackwardWeights, conv({2}, {1}, {1}, {1}, "IOX", filter), "f32[1,4,3] f32[1,3,6]", "f32", "f32[4,3,3]"},
      {OpKind::ConvTransposeBackwardWeights, conv({2}, {1}, {1}, {1}, "IOX", filter), "f32[1,3,6] f32[1,4,3]", "f32",
       "!the filter must have 3 channels for this tensor, found 4: `src`"},
  });
}

TEST(shapes, twelve_placeholders_of_a_dump_count_as_absent) {
  const AttrList zeros = {{Attr::src_shape, Ints(12, 0)}};
  const AttrList ones = {{Attr::dilations, Ints(12, 1)}};
  const AttrList padding = {{Attr::output_padding, Ints(12, 0)}};
  expect_all({
      {OpKind::AvgPoolBackward, avg({2}, {2}, {0}, {0}, zeros), "f32[1,1,2]", "f32[1,1,4]", "f32[1,1,4]"},
      {OpKind::MaxPool, pool({2}, {2}, {0}, {0}, ones), "f32[1,1,4]", "f32", "f32[1,1,2]"},
      {OpKind::ConvTranspose, conv({1}, {0}, {0}, {1}, "IOX", padding), "f32[1,4,3] f32[4,2,1]", "f32", "f32[1,2,3]"},
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
      {OpKind::MatMul, {}, "f32[2,3] f32[4,3]", "f32",
       "!the inner dims must be equal, found 3 and 4: `src` is f32[2,3], `weights` is f32[4,3], transpose_a=false"},
      {OpKind::MatMul, {}, "f32[2,2,3] f32[3,3,4]", "f32", "!the batch dims must be equal or one of them 1: `src`"},
      {OpKind::MatMul, {}, "f32[2,3] f32[3,4] f32[3]", "f32", "!`bias` must broadcast to the result [2,4]: `bias` is f32[3]"},
  });
}

TEST(shapes, of_normalisations_carry_statistics) {
  const AttrList plain = {{Attr::keep_stats, false}, {Attr::use_affine, false}};
  const AttrList eps = {{Attr::epsilon, 0.1f}};
  expect_all({
      {OpKind::LayerNorm, {}, "f32[2,3,4] f32[4] f32[4]", "f32 f32 f32", "f32[2,3,4] f32[2,3] f32[2,3]"},
      {OpKind::LayerNorm, {{Attr::begin_norm_axis, int64_t{1}}}, "f32[2,3,4] f32[3,4] f32[12]", "f32 f32 f32", "f32[2,3,4] f32[2] f32[2]"},
      {OpKind::LayerNorm, plain, "f32[2,3]", "f32", "f32[2,3]"},
      {OpKind::LayerNormBackward, {}, "f32[2,4] f32[2,4] f32[2] f32[2] f32[4]", "f32 f32 f32", "f32[2,4] f32[4] f32[4]"},
      {OpKind::RMSNorm, {}, "f32[2,4] f32[4]", "f32", "f32[2,4]"},
      {OpKind::GroupNorm, {{Attr::groups, int64_t{2}}}, "f32[5,3,4] f32[4] f32[4]", "f32 f32 f32", "f32[5,3,4] f32[5,2] f32[5,2]"},
      {OpKind::BatchNormForwardTraining, eps, "f32[5,4] f32[4] f32[4]", "f32 f32 f32 f32 f32", "f32[5,4] f32[4] f32[4] f32[4] f32[4]"},
      {OpKind::BatchNormTrainingBackward, eps, "f32[5,4] f32[5,4] f32[4] f32[4] f32[4]", "f32 f32 f32", "f32[5,4] f32[4] f32[4]"},
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
  const AttrList sized = {{Attr::mode, mode}, {Attr::data_format, ncx}, {Attr::sizes, Ints{6, 12}}, {Attr::scales, Floats{}}};
  const AttrList open = {{Attr::mode, mode}};
  expect_all({
      {OpKind::Interpolate, scaled, "f32[2,8,4,5]", "f32", "f32[2,8,8,2]"},
      {OpKind::Interpolate, sized, "f32[2,8,4,5]", "f32", "f32[2,8,6,12]"},
      {OpKind::Interpolate, open, "f32[2,4,8] s32[1]", "f32", "f32[2,?,8]"},
      {OpKind::Interpolate, scaled, "f32[2,8,4,1]", "f32", "!`scales` must leave from 1 to 2147483647 cells on each spatial axis"},
      {OpKind::InterpolateBackward, sized, "f32[2,8,4,5] f32[2,8,6,12]", "f32", "f32[2,8,4,5]"},
      {OpKind::InterpolateBackward, open, "f32[2,4,8] f32[2,9,8] s32[1]", "f32", "f32[2,4,8]"},
      {OpKind::InterpolateBackward, sized, "f32[2,8,4,5] f32[2,8,6,11]", "f32", "!`diff_dst` is f32[2,8,6,11], the forward result of"},
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
      {OpKind::StaticReshape, reshape({5}, true), "f32[2,3]", "f32", "!`shape` must keep the number of elements: shape=[5], `src` is f32[2,3]"},
      {OpKind::StaticReshape, reshape({4, -1}, true), "f32[2,3]", "f32", "!`shape` must divide the number of elements: shape=[4,-1]"},
      {OpKind::StaticReshape, reshape({0, -1}, false), "f32[0,3]", "f32", "!`shape` leaves the entry -1 undetermined"},
      {OpKind::StaticReshape, reshape({2, 3, 0}, true), "f32[2,3]", "f32", "!`shape` copies a dim (0 with special_zero) that `src` does not have"},
      {OpKind::Concat, axis, "f32[2,3] f32[2,0] f32[2,4]", "f32", "f32[2,7]"},
      {OpKind::Concat, axis, "f32[2,3]", "f32", "f32[2,3]"},
      {OpKind::Concat, axis, "f32[2,3] f32[3,3]", "f32",
       "!all inputs must have equal dims except along `axis` 1: `src_i` (input 0) is f32[2,3], `src_i` (input 1) is f32[3,3]"},
  });
}

TEST(shapes, of_control_operators_stay_as_given) {
  expect_all({{OpKind::End, {}, "f32[2]", "", ""}, {OpKind::Wildcard, {}, "f32[2] s8", "u8 f32[3]", "u8 f32[3]"}});
}

TEST(shapes, must_be_known_at_the_inputs) {
  const op o = op_of(OpKind::ReLU, {}, "f32[2,?]", "f32");
  EXPECT_EQ(infer(o).text, "`src` must have known dims, found f32[2,?]");
}

TEST(shapes, of_huge_tensors_do_not_overflow) {
  expect_all({
      {OpKind::MaxPool, pool({1}, {1}, {0}, {0}), "f32[1,1,9223372036854775807]", "f32", "!spatial axes must have at most 2147483647 cells"},
      {OpKind::ConvTranspose, conv({2147483647}, {0}, {0}, {2147483647}, "IOX"), "f32[1,1,2147483647] f32[1,1,2147483647]", "f32",
       "f32[1,1,9223372023969873925]"},
      {OpKind::StaticReshape, {{Attr::shape, Ints{1}}, {Attr::special_zero, false}}, "f32[4294967296,4294967296]", "f32",
       "!`shape` is too large"},
      {OpKind::Concat, {{Attr::axis, int64_t{0}}}, "f32[9223372036854775807] f32[1]", "f32", "!all inputs must have equal dims except along `axis` 0"},
  });
}

}  // namespace
}  // namespace partita::test
