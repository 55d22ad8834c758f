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
inline constexpr OpSet kPool = AvgPool | MaxPool | AdaptiveAvgPool;
/// Pooling gradients that read nothing of the source: entered at input 0.
inline constexpr OpSet kAverageBackward = AvgPoolBackward | AdaptiveAvgPoolBackward;

/// Element-wise operators whose further operand another one may make.
inline Pat elementwise_merges() { return many(either({op(kBinary).other(maybe(kElementwise)), op(kElementwise)})); }

/// A pooling gradient, entered by the gradient.
inline Pat pool_backward() {
  return either({op(MaxPoolBackward).at(1), op(kAverageBackward | MaxPoolIndicesBackward).at(0)});
}

}  // namespace partita::patterns
