// SPDX-License-Identifier: Apache-2.0
// Every row of the operator table, by the file that defines it. all.cpp lists them by number.
#pragma once

#include "src/ir/op_def.hpp"

namespace partita {

// eltwise.cpp
extern const OpDef kAbs, kClamp, kElu, kExp, kGELU, kHardSigmoid, kHardSwish, kLeakyReLU, kLog, kMish, kPow,
    kReciprocal, kReLU, kRound, kSigmoid, kSoftPlus, kSqrt, kSquare, kTanh;
// eltwise_backward.cpp
extern const OpDef kAbsBackward, kClampBackward, kEluBackward, kGELUBackward, kHardSigmoidBackward, kHardSwishBackward,
    kMishBackward, kReLUBackward, kSigmoidBackward, kSoftPlusBackward, kSqrtBackward, kTanhBackward;
// binary.cpp
extern const OpDef kAdd, kDivide, kGreaterEqual, kMaximum, kMinimum, kMultiply, kSquaredDifference, kSubtract;
// bias.cpp
extern const OpDef kBiasAdd, kBiasAddBackward;
// prelu.cpp
extern const OpDef kPReLU, kPReLUBackward;
// select.cpp
extern const OpDef kGenIndex, kSelect;
// convolution.cpp
extern const OpDef kConvolution, kConvolutionBackwardData, kConvolutionBackwardWeights;
// conv_transpose.cpp
extern const OpDef kConvTranspose, kConvTransposeBackwardData, kConvTransposeBackwardWeights;
// pooling.cpp
extern const OpDef kAvgPool, kAvgPoolBackward, kMaxPool, kMaxPoolBackward, kMaxPoolIndicesBackward;
// adaptive_pooling.cpp
extern const OpDef kAdaptiveAvgPool, kAdaptiveAvgPoolBackward;
// batch_norm.cpp
extern const OpDef kBatchNormForwardTraining, kBatchNormInference, kBatchNormTrainingBackward;
// normalisation.cpp
extern const OpDef kGroupNorm, kLayerNorm, kLayerNormBackward, kRMSNorm;
// softmax.cpp
extern const OpDef kLogSoftmax, kLogSoftmaxBackward, kSoftMax, kSoftMaxBackward;
// matmul.cpp
extern const OpDef kMatMul;
// reduction.cpp
extern const OpDef kReduceL1, kReduceL2, kReduceMax, kReduceMean, kReduceMin, kReduceProd, kReduceSum;
// resample.cpp
extern const OpDef kInterpolate, kInterpolateBackward;
// quantization.cpp
extern const OpDef kDequantize, kDynamicDequantize, kDynamicQuantize, kQuantize;
// layout.cpp
extern const OpDef kConcat, kReorder, kStaticReshape, kStaticTranspose, kTypeCast;
// dropout.cpp
extern const OpDef kDropout;
// control.cpp
extern const OpDef kEnd, kWildcard;

}  // namespace partita
