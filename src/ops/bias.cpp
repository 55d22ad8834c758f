// SPDX-License-Identifier: Apache-2.0
// BiasAdd and its gradient: one number a channel.
#include "src/base/axes.hpp"
#include "src/base/check.hpp"
#include "src/ops/attributes.hpp"
#include "src/ops/expressions.hpp"
#include "src/ops/families.hpp"
#include "src/ops/rules.hpp"

namespace partita {
namespace {

bool has_channels(const OpView& v) {
  const int rank = known_rank(v, 0);
  return rank < 0 || rank >= 2;
}

bool bias_fits(const OpView& v) { return is_vector(v, 1, known_channels(v)); }

Status bias_gradient_shape(ShapeContext& c) { return c.set(0, {c.in(0)[channel_axis(c.attrs(), c.rank(0))]}); }

}  // namespace

constexpr OpDef kBiasAdd = {
    .kind = OpKind::BiasAdd,
    .name = "BiasAdd",
    .c_name = "bias_add",
    .summary = "Adds one number to all elements of each channel.",
    .inputs = {{"src", "T", "values, rank 2 or more"}, {"bias", "T", "one number a channel"}},
    .outputs = {{"dst", "T", "sums, with the shape of src"}},
    .attrs = {kDataFormat},
    .types = {{"T", kFloats}},
    .checks = {{"channels_of_src", "`src` must have rank 2 or more", has_channels},
               {"bias_length", "`bias` must be 1-D with one entry a channel of `src` by `data_format`", bias_fits}},
    .infer = same_shape,
    .step = StepKind::loop,
    .expression = map2<ExprOp::add>,
    .operands = Operands::channel,
};

constexpr OpDef kBiasAddBackward = {
    .kind = OpKind::BiasAddBackward,
    .name = "BiasAddBackward",
    .c_name = "bias_add_backward",
    .summary = "Sums the gradient over everything but the channels.",
    .inputs = {{"diff_dst", "T", "gradient of the forward result, rank 2 or more"}},
    .outputs = {{"diff_bias", "T", "gradient of the bias, one number a channel"}},
    .attrs = {kDataFormat},
    .types = {{"T", kFloats}},
    .checks = {{"channels_of_diff_dst", "`diff_dst` must have rank 2 or more", has_channels}},
    .infer = bias_gradient_shape,
    .step = StepKind::reduce,
};

}  // namespace partita
