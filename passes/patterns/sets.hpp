// SPDX-License-Identifier: Apache-2.0
// Sets of operator kinds that several patterns use.
#pragma once

#include "passes/pattern.hpp"

namespace partita::patterns {

using enum OpKind;

inline constexpr OpSet kUnary = Abs | Clamp | Elu | Exp | GELU | HardSigmoid | HardSwish | LeakyReLU | Log | Mish |
                                Pow | Reciprocal | ReLU | Round | Sigmoid | SoftPlus | Sqrt | Square | Tanh;
inline constexpr OpSet kBinary = Add | Multiply | Maximum | Minimum | Divide | Subtract | SquaredDifference;
inline constexpr OpSet kActivationBackward = AbsBackward | ClampBackward | EluBackward | GELUBackward |
                                             HardSigmoidBackward | HardSwishBackward | MishBackward | ReLUBackward |
                                             SigmoidBackward | SoftPlusBackward | SqrtBackward | TanhBackward;
inline constexpr OpSet kPostOp = kUnary | kBinary;
/// Everything that computes each element of its result from the elements at the same place.
inline constexpr OpSet kElementwise = kPostOp | kActivationBackward | BiasAdd | BatchNormInference | PReLU | Select |
                                      GreaterEqual | TypeCast | Quantize | Dequantize;
inline constexpr OpSet kReduction = ReduceL1 | ReduceL2 | ReduceMax | ReduceMean | ReduceMin | ReduceProd | ReduceSum;
/// Normalise rows of their source: each result depends on a whole row.
inline constexpr OpSet kRows = SoftMax | LogSoftmax | LayerNorm | RMSNorm | GroupNorm;
inline constexpr OpSet kAverage = AvgPool | AdaptiveAvgPool;
inline constexpr OpSet kAverageBackward = AvgPoolBackward | AdaptiveAvgPoolBackward;
inline constexpr OpSet kPool = kAverage | MaxPool;
inline constexpr OpSet kPoolBackward = kAverageBackward | MaxPoolBackward | MaxPoolIndicesBackward;
inline constexpr OpSet kRowsBackward = SoftMaxBackward | LogSoftmaxBackward | LayerNormBackward;
inline constexpr OpSet kResample = Interpolate | InterpolateBackward;
inline constexpr OpSet kMovement = StaticReshape | StaticTranspose | Reorder | Concat;
inline constexpr OpSet kConvolution = Convolution | ConvTranspose;
inline constexpr OpSet kDataGradient = ConvolutionBackwardData | ConvTransposeBackwardData;
inline constexpr OpSet kWeightsGradient = ConvolutionBackwardWeights | ConvTransposeBackwardWeights;
inline constexpr OpSet kConvolutionGradient = kDataGradient | kWeightsGradient;
/// Bound by arithmetic: worth more than a walk over memory.
inline constexpr OpSet kCompute = MatMul | kConvolution | kConvolutionGradient;
inline constexpr OpSet kMemoryBound = OpSet::all() - kCompute - Wildcard;
/// Integers become floating point numbers of two or four times their size.
inline constexpr OpSet kWidening = Dequantize | DynamicDequantize;
inline constexpr OpSet kNarrowing = Quantize | DynamicQuantize;

}  // namespace partita::patterns
