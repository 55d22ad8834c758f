// SPDX-License-Identifier: Apache-2.0
// The operator table: every row, listed by number, extensions last (tests/ops/registry_test.cpp proves the order).
#include <array>

#include "src/base/check.hpp"
#include "src/ops/families.hpp"

namespace partita {
namespace {

constexpr std::array<const OpDef*, kOpKinds> kAllOps = {
    &kAbs,
    &kAbsBackward,
    &kAdd,
    &kAvgPool,
    &kAvgPoolBackward,
    &kBatchNormTrainingBackward,
    &kBatchNormForwardTraining,
    &kBatchNormInference,
    &kBiasAdd,
    &kBiasAddBackward,
    &kClamp,
    &kClampBackward,
    &kConcat,
    &kConvolution,
    &kConvolutionBackwardData,
    &kConvolutionBackwardWeights,
    &kConvTranspose,
    &kConvTransposeBackwardData,
    &kConvTransposeBackwardWeights,
    &kDequantize,
    &kDivide,
    &kDynamicDequantize,
    &kDynamicQuantize,
    &kElu,
    &kEluBackward,
    &kEnd,
    &kExp,
    &kGELU,
    &kGELUBackward,
    &kHardSwish,
    &kHardSwishBackward,
    &kInterpolate,
    &kInterpolateBackward,
    &kLayerNorm,
    &kLayerNormBackward,
    &kLeakyReLU,
    &kLog,
    &kLogSoftmax,
    &kLogSoftmaxBackward,
    &kMatMul,
    &kMaximum,
    &kMaxPool,
    &kMaxPoolBackward,
    &kMinimum,
    &kMish,
    &kMishBackward,
    &kMultiply,
    &kPReLU,
    &kPReLUBackward,
    &kQuantize,
    &kReciprocal,
    &kReduceL1,
    &kReduceL2,
    &kReduceMax,
    &kReduceMean,
    &kReduceMin,
    &kReduceProd,
    &kReduceSum,
    &kReLU,
    &kReLUBackward,
    &kReorder,
    &kRound,
    &kSigmoid,
    &kSigmoidBackward,
    &kSoftMax,
    &kSoftMaxBackward,
    &kSoftPlus,
    &kSoftPlusBackward,
    &kSqrt,
    &kSqrtBackward,
    &kSquare,
    &kSquaredDifference,
    &kStaticReshape,
    &kStaticTranspose,
    &kSubtract,
    &kTanh,
    &kTanhBackward,
    &kTypeCast,
    &kWildcard,
    &kHardSigmoid,
    &kHardSigmoidBackward,
    &kSelect,
    &kPow,
    &kGroupNorm,
    &kGenIndex,
    &kGreaterEqual,
    &kRMSNorm,
    &kDropout,
    &kAdaptiveAvgPool,
    &kAdaptiveAvgPoolBackward,
    &kMaxPoolIndicesBackward,
};

}  // namespace

std::span<const OpDef* const> all_ops() { return kAllOps; }

const OpDef* find_op(OpKind kind) {
  const auto position = static_cast<size_t>(position_of(kind));
  return position < kAllOps.size() ? kAllOps[position] : nullptr;
}

const OpDef& op_def(OpKind kind) {
  const OpDef* def = find_op(kind);
  PT_ASSERT(def != nullptr);
  return *def;
}

}  // namespace partita
