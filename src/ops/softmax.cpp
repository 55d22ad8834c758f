// SPDX-License-Identifier: Apache-2.0
// SoftMax, LogSoftmax and their gradients.
#include "src/base/check.hpp"
#include "src/ops/attributes.hpp"
#include "src/ops/families.hpp"
#include "src/ops/rules.hpp"

namespace partita {
namespace {

bool equal_or_f32(const OpView& v) {
  const Dtype src = v.in_type(0), dst = v.out_type(0);
  return src == dst || src == Dtype::f32 || dst == Dtype::f32;
}
bool gradient_equal_or_f32(const OpView& v) { return v.out_type(0) == v.in_type(0) || v.out_type(0) == Dtype::f32; }
bool same_shapes(const OpView& v) { return may_agree(v.in(0), v.in(1)); }

Status softmax_shapes(ShapeContext& c) {
  PT_TRY(c.set(0, c.in(0)));
  if (c.outputs() < 2) return {};
  PT_ASSIGN(const int axis, c.axis(Attr::axis, c.rank(0)));
  Dims stats = c.in(0);
  stats[axis] = 1;
  return c.set(1, stats);
}

constexpr AttrDef softmax_axis(int64_t fallback) {
  return number(Attr::axis, fallback, "axis that is normalised; negative counts from the end");
}
constexpr CheckDef kGradientShape = {"gradient_shape", "`dst` must have the shape of `diff_dst`", same_shapes};

}  // namespace

constexpr OpDef kSoftMax = {
    .kind = OpKind::SoftMax,
    .name = "SoftMax",
    .c_name = "softmax",
    .summary = "Turns each slice along an axis into probabilities that sum to one.",
    .inputs = {{"src", "T1", "values"}},
    .outputs = {{"dst", "T2", "probabilities"},
                {"stats", "T3", "logarithm of the sum of exponentials of each slice", Arity::optional}},
    .attrs = {softmax_axis(1), choice(Attr::mode, "none", {"none", "inf_as_zero"},
                                      "what a slice of -inf alone becomes: nan (none) or zeros (inf_as_zero)")},
    .types = {{"T1", kFloats}, {"T2", kFloats}, {"T3", kF32}},
    .checks = {{"dst_type", "`src` and `dst` must have one type, or one of them f32", equal_or_f32, true}, kAxisOfSrc},
    .infer = softmax_shapes,
    .step = StepKind::softmax,
};

constexpr OpDef kLogSoftmax = {
    .kind = OpKind::LogSoftmax,
    .name = "LogSoftmax",
    .c_name = "log_softmax",
    .summary = "Logarithm of the probabilities that SoftMax makes.",
    .inputs = {{"src", "T", "values"}},
    .outputs = {{"dst", "T", "logarithms of probabilities"}},
    .attrs = {softmax_axis(-1)},
    .types = {{"T", kFloats}},
    .checks = {kAxisOfSrc},
    .infer = same_shape,
    .step = StepKind::softmax,
};

constexpr OpDef kSoftMaxBackward = {
    .kind = OpKind::SoftMaxBackward,
    .name = "SoftMaxBackward",
    .c_name = "softmax_backward",
    .summary = "Gradient of SoftMax: dst * (diff_dst - the sum of diff_dst * dst over the slice).",
    .inputs = {{"diff_dst", "T1", "gradient of the forward result"}, {"dst", "T1", "the forward result"}},
    .outputs = {{"diff_src", "T2", "gradient of the forward source"}},
    .attrs = {softmax_axis(1)},
    .types = {{"T1", kFloats}, {"T2", kFloats}},
    .checks = {{"diff_src_type", "`diff_src` must have the type of `diff_dst` or f32", gradient_equal_or_f32, true},
               kAxisOfDiffDst,
               kGradientShape},
    .infer = same_shape,
    .step = StepKind::softmax_backward,
};

constexpr OpDef kLogSoftmaxBackward = {
    .kind = OpKind::LogSoftmaxBackward,
    .name = "LogSoftmaxBackward",
    .c_name = "log_softmax_backward",
    .summary = "Gradient of LogSoftmax: diff_dst - exp(dst) * the sum of diff_dst over the slice.",
    .inputs = {{"diff_dst", "T", "gradient of the forward result"}, {"dst", "T", "the forward result"}},
    .outputs = {{"diff_src", "T", "gradient of the forward source"}},
    .attrs = {softmax_axis(-1)},
    .types = {{"T", kFloats}},
    .checks = {kAxisOfDiffDst, kGradientShape},
    .infer = same_shape,
    .step = StepKind::softmax_backward,
};

}  // namespace partita
