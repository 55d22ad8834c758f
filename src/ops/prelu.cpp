// SPDX-License-Identifier: Apache-2.0
// PReLU and its gradients: the slope below 0 is a tensor.
#include "src/base/axes.hpp"
#include "src/base/check.hpp"
#include "src/base/shape.hpp"
#include "src/ops/attributes.hpp"
#include "src/ops/expressions.hpp"
#include "src/ops/families.hpp"
#include "src/ops/rules.hpp"

namespace partita {
namespace {

/// A 1-D slope holds one number a channel (or one in all); any other broadcasts to src as in numpy.
bool slope_fits(const OpView& v) {
  if (!v.in(0).shape_known() || !v.in(1).shape_known()) return true;
  const Dims &src = v.in(0).dims, &slope = v.in(1).dims;
  if (slope.size() == 1 && src.size() >= 2 && v.attrs().flag_or(Attr::per_channel_broadcast, true)) {
    return slope[0] == 1 || slope[0] == known_channels(v);
  }
  const std::optional<Dims> both = broadcast(src, slope);
  return both && *both == src;
}

bool gradient_shape(const OpView& v) { return may_agree(v.in(0), v.in(2)); }

Value prelu(ExprBuilder& b, const ExprInputs& x) {
  return where_above(b, x.in[0], 0, x.in[0], b.mul(x.in[0], x.in[1]));
}

Status prelu_backward_shapes(ShapeContext& c) {
  PT_TRY(c.set(0, c.in(0)));
  return c.set(1, c.in(1));
}

constexpr CheckDef kSlopeShape = {
    "slope_shape", "`slope` must hold one entry a channel of `src`, or broadcast to `src` without changing its shape",
    slope_fits};

}  // namespace

constexpr OpDef kPReLU = {
    .kind = OpKind::PReLU,
    .name = "PReLU",
    .c_name = "prelu",
    .summary = "dst = src where src > 0, slope * src elsewhere.",
    .inputs = {{"src", "T", "values"},
               {"slope", "T", "slope below 0: one number a channel, or a shape that broadcasts to src"}},
    .outputs = {{"dst", "T", "results, with the shape of src"}},
    .attrs = {kDataFormat, flag(Attr::per_channel_broadcast, true,
                                "a 1-D slope lies along the channels (true) or along the last axis (false)")},
    .types = {{"T", kFloats}},
    .checks = {kSlopeShape},
    .infer = same_shape,
    .step = StepKind::loop,
    .expression = prelu,
    .operands = Operands::channel,
};

constexpr OpDef kPReLUBackward = {
    .kind = OpKind::PReLUBackward,
    .name = "PReLUBackward",
    .c_name = "prelu_backward",
    .summary = "Gradients of PReLU for its source and its slope.",
    .inputs = {{"src", "T", "source of the forward operator"},
               {"slope", "T", "its slope"},
               {"diff_dst", "T", "gradient of its result"}},
    .outputs = {{"diff_src", "T", "gradient of the source"},
                {"diff_slope", "T", "gradient of the slope, with its shape"}},
    .attrs = {kDataFormat},
    .types = {{"T", kFloats}},
    .checks = {kSlopeShape, {"gradient_shape", "`diff_dst` must have the shape of `src`", gradient_shape}},
    .infer = prelu_backward_shapes,
    .step = StepKind::prelu_backward,
};

}  // namespace partita
