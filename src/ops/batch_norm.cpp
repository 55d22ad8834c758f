// SPDX-License-Identifier: Apache-2.0
// Batch normalisation: inference, training, and its gradient.
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

template <int first>
bool channel_vectors(const OpView& v) {
  for (int i = first; i < v.inputs(); ++i) {
    if (!is_vector(v, i, known_channels(v))) return false;
  }
  return true;
}

bool affine_pair(const OpView& v) { return v.inputs() != 4; }
bool gradient_pair(const OpView& v) { return v.outputs() != 2; }
bool same_shapes(const OpView& v) { return may_agree(v.in(0), v.in(1)); }

constexpr CheckDef kRank = {"channels_of_src", "`src` must have rank 2 or more", has_channels};
constexpr CheckDef kType = {"statistics_type",
                            "`mean`, `variance`, `gamma` and `beta` may be bf16 only where `src` is bf16",
                            statistics_type_fits, true};
constexpr std::string_view kVectorsText =
    "`mean`, `variance`, `gamma` and `beta` must be 1-D with one entry a channel of `src` by `data_format`";

/// (src - mean) * (gamma / sqrt(variance + epsilon)) + beta
Value normalise(ExprBuilder& b, const ExprInputs& x) {
  const Value deviation = b.apply(ExprOp::sqrt, offset(b, x.in[4], x.attrs.f32(Attr::epsilon)));
  return b.add(b.mul(b.sub(x.in[0], x.in[3]), b.div(x.in[1], deviation)), x.in[2]);
}

/// Output 0 like src, the others one number a channel.
Status src_and_channel_shapes(ShapeContext& c) {
  const Dims channels{c.in(0)[channel_axis(c.attrs(), c.rank(0))]};
  for (int o = 0; o < c.outputs(); ++o) PT_TRY(c.set(o, o == 0 ? c.in(0) : channels));
  return {};
}

}  // namespace

constexpr OpDef kBatchNormInference = {
    .kind = OpKind::BatchNormInference,
    .name = "BatchNormInference",
    .c_name = "batch_norm_inference",
    .summary = "dst = (src - mean) * gamma / sqrt(variance + epsilon) + beta, with one of each a channel.",
    .inputs = {{"src", "T1", "values"},
               {"gamma", "T2", "factor of each channel"},
               {"beta", "T2", "term of each channel"},
               {"mean", "T2", "mean of each channel"},
               {"variance", "T2", "variance of each channel"}},
    .outputs = {{"dst", "T1", "normalised values"}},
    .attrs = {kEpsilonRequired, kDataFormat},
    .types = {{"T1", kFloats}, {"T2", kF32OrBf16}},
    .checks = {kType, kRank, {"channel_vectors", kVectorsText, channel_vectors<1>}, kEpsilonSign},
    .infer = same_shape,
    .step = StepKind::loop,
    .expression = normalise,
    .operands = Operands::channel,
};

constexpr OpDef kBatchNormForwardTraining = {
    .kind = OpKind::BatchNormForwardTraining,
    .name = "BatchNormForwardTraining",
    .c_name = "batch_norm_forward_training",
    .summary = "Normalises each channel by the statistics of the batch and updates the running ones.",
    .inputs = {{"src", "T1", "values"},
               {"mean", "T2", "running mean before"},
               {"variance", "T2", "running variance before"},
               {"gamma", "T2", "factor of each channel; given together with beta", Arity::optional},
               {"beta", "T2", "term of each channel", Arity::optional}},
    .outputs = {{"dst", "T1", "normalised values"},
                {"running_mean", "T2", "momentum * mean + (1 - momentum) * batch_mean"},
                {"running_variance", "T2", "momentum * variance + (1 - momentum) * batch_variance"},
                {"batch_mean", "T2", "mean of each channel in this batch"},
                {"batch_variance", "T2", "variance of each channel in this batch"}},
    .attrs = {kEpsilonRequired,
              optional(Attr::momentum, AttrType::f32, "weight of the statistics before; absent means 0.5"),
              kDataFormat},
    .types = {{"T1", kFloats}, {"T2", kF32OrBf16}},
    .checks = {kType,
               kRank,
               {"channel_vectors", kVectorsText, channel_vectors<1>},
               {"affine_pair", "`gamma` and `beta` must be given together or not at all", affine_pair},
               kEpsilonSign,
               {"momentum_sign", "`momentum` must not be negative", real_not_negative<Attr::momentum>}},
    .infer = src_and_channel_shapes,
    .step = StepKind::batch_norm,
};

constexpr OpDef kBatchNormTrainingBackward = {
    .kind = OpKind::BatchNormTrainingBackward,
    .name = "BatchNormTrainingBackward",
    .c_name = "batch_norm_backward",
    .summary = "Gradients of batch normalisation for its source and its affine tensors.",
    .inputs = {{"src", "T1", "source of the forward operator"},
               {"diff_dst", "T1", "gradient of its result"},
               {"mean", "T2", "mean of each channel in the batch"},
               {"variance", "T2", "variance of each channel in the batch"},
               {"gamma", "T2", "factor of each channel; absent means 1", Arity::optional}},
    .outputs = {{"diff_src", "T1", "gradient of the source"},
                {"diff_gamma", "T2", "gradient of gamma; given together with diff_beta", Arity::optional},
                {"diff_beta", "T2", "gradient of beta", Arity::optional}},
    .attrs = {kEpsilonRequired, kDataFormat},
    .types = {{"T1", kFloats}, {"T2", kF32OrBf16}},
    .checks = {kType,
               kRank,
               {"gradient_shape", "`diff_dst` must have the shape of `src`", same_shapes},
               {"channel_vectors", kVectorsText, channel_vectors<2>},
               {"gradient_pair", "`diff_gamma` and `diff_beta` must be given together or not at all", gradient_pair},
               kEpsilonSign},
    .infer = src_and_channel_shapes,
    .step = StepKind::batch_norm_backward,
};

}  // namespace partita
