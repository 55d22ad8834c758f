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
inline constexpr OpSet kPool = AvgPool | MaxPool;
inline constexpr OpSet kPoolBackward = AvgPoolBackward | MaxPoolBackward;

}  // namespace partita::patterns
