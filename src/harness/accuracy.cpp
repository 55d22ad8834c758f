// SPDX-License-Identifier: Apache-2.0
// The table of accuracies.
#include "src/harness/accuracy.hpp"

namespace partita {
namespace {

using enum ErrorScale;

constexpr Accuracy kTable[] = {
    {OpKind::Abs, result, {0, 0}, {0, 0}},
    {OpKind::AbsBackward, result, {0, 0}, {0, 0}},
    {OpKind::AdaptiveAvgPool, terms, {2, 0.25}, {0.51, 0.1}},
    {OpKind::AdaptiveAvgPoolBackward, terms, {2, 0.15}, {0.51, 0.1}},
    {OpKind::Add, result, {0.5, 0.3}, {0.51, 0.3}},
    {OpKind::AvgPool, terms, {3, 0.5}, {0.51, 0.15}},
    {OpKind::AvgPoolBackward, terms, {3, 0.75}, {2, 0.3}},
    {OpKind::BatchNormForwardTraining, tensor, {16, 1.5}, {0.51, 0.1}},
    {OpKind::BatchNormInference, tensor, {2, 0.15}, {0.51, 0.1}},
    {OpKind::BatchNormTrainingBackward, tensor, {8, 1}, {0.51, 0.1}},
    {OpKind::BiasAdd, result, {0.5, 0.3}, {0.51, 0.3}},
    {OpKind::BiasAddBackward, terms, {0.5, 0.1}, {0.51, 0.05}},
    {OpKind::Clamp, result, {0, 0}, {0, 0}},
    {OpKind::ClampBackward, result, {0, 0}, {0, 0}},
    {OpKind::ConvTranspose, terms, {6, 0.4}, {0.51, 0.05}},
    {OpKind::ConvTransposeBackwardData, terms, {6, 0.3}, {0.51, 0.05}},
    {OpKind::ConvTransposeBackwardWeights, terms, {6, 0.4}, {0.51, 0.05}},
    {OpKind::Convolution, terms, {6, 0.3}, {0.51, 0.05}},
    {OpKind::ConvolutionBackwardData, terms, {6, 0.4}, {0.51, 0.05}},
    {OpKind::ConvolutionBackwardWeights, terms, {6, 0.4}, {0.51, 0.05}},
    {OpKind::Dequantize, result, {0, 0}, {}},
    {OpKind::Divide, result, {0.5, 0.3}, {0.51, 0.4}},
    {OpKind::Dropout, result, {1.5, 0.5}, {0.51, 0.25}},
    {OpKind::DynamicDequantize, result, {0, 0}, {}},
    {OpKind::Elu, result, {4, 0.75}, {0.6, 0.4}},
    {OpKind::EluBackward, result, {4, 0.75}, {0.6, 0.4}},
    {OpKind::Exp, result, {4, 0.75}, {0.6, 0.4}},
    {OpKind::GELU, result, {4, 0.75}, {0.6, 0.4}, -18},
    {OpKind::GELUBackward, terms, {6, 1}, {0.6, 0.4}},
    {OpKind::GroupNorm, tensor, {4, 0.75}, {0.51, 0.1}},
    {OpKind::HardSigmoid, result, {0.5, 0.3}, {0.51, 0.25}},
    {OpKind::HardSigmoidBackward, result, {0.5, 0.3}, {0.51, 0.05}},
    {OpKind::HardSwish, result, {4, 0.75}, {0.6, 0.4}},
    {OpKind::HardSwishBackward, result, {4, 0.75}, {0.6, 0.4}},
    {OpKind::Interpolate, terms, {3, 0.5}, {0.51, 0.2}},
    {OpKind::InterpolateBackward, terms, {3, 0.5}, {0.51, 0.15}},
    {OpKind::LayerNorm, tensor, {2, 0.5}, {0.51, 0.1}},
    {OpKind::LayerNormBackward, tensor, {3, 0.2}, {0.51, 0.1}},
    {OpKind::LeakyReLU, result, {0.5, 0.3}, {0.51, 0.05}},
    {OpKind::Log, result, {4, 0.75}, {0.6, 0.4}},
    {OpKind::LogSoftmax, tensor, {12, 5}, {0.51, 0.4}},
    {OpKind::LogSoftmaxBackward, tensor, {3, 0.3}, {0.51, 0.05}},
    {OpKind::MatMul, terms, {6, 0.3}, {0.51, 0.05}},
    {OpKind::MaxPoolBackward, tensor, {2, 0.05}, {0.51, 0.05}},
    {OpKind::MaxPoolIndicesBackward, terms, {1, 0.05}, {0.51, 0.05}},
    {OpKind::Mish, result, {6, 0.75}, {0.6, 0.4}},
    {OpKind::MishBackward, terms, {6, 1}, {0.6, 0.4}},
    {OpKind::Multiply, result, {0.5, 0.3}, {0.51, 0.3}},
    {OpKind::PReLU, result, {0.5, 0.3}, {0.51, 0.2}},
    {OpKind::PReLUBackward, tensor, {3, 0.1}, {0.51, 0.1}},
    {OpKind::Pow, result, {4, 0.75}, {0.6, 0.4}},
    {OpKind::RMSNorm, tensor, {3, 0.25}, {0.51, 0.15}},
    {OpKind::ReLUBackward, result, {0, 0}, {0, 0}},
    {OpKind::Reciprocal, result, {0.5, 0.3}, {0.51, 0.3}},
    {OpKind::ReduceL1, terms, {8, 1.5}, {0.51, 0.4}},
    {OpKind::ReduceL2, result, {4, 1}, {0.51, 0.4}},
    {OpKind::ReduceMean, terms, {0.5, 0.3}, {0.51, 0.05}},
    {OpKind::ReduceProd, result, {4, 1}, {0.51, 0.4}},
    {OpKind::ReduceSum, terms, {2, 0.3}, {0.51, 0.05}},
    {OpKind::Sigmoid, result, {4, 0.75}, {0.6, 0.4}},
    {OpKind::SigmoidBackward, result, {4, 0.75}, {0.6, 0.4}},
    {OpKind::SoftMax, tensor, {4, 0.75}, {0.51, 0.15}},
    {OpKind::SoftMaxBackward, tensor, {2, 0.15}, {0.51, 0.1}},
    {OpKind::SoftPlus, result, {4, 0.75}, {0.6, 0.4}},
    {OpKind::SoftPlusBackward, result, {4, 0.75}, {0.6, 0.4}},
    {OpKind::Sqrt, result, {0.5, 0.3}, {0.51, 0.4}},
    {OpKind::SqrtBackward, result, {0.5, 0.3}, {0.51, 0.3}},
    {OpKind::Square, result, {0.5, 0.3}, {0.51, 0.3}},
    {OpKind::SquaredDifference, result, {4, 0.75}, {0.6, 0.4}},
    {OpKind::Subtract, result, {0.5, 0.3}, {0.51, 0.3}},
    {OpKind::Tanh, result, {4, 0.75}, {0.6, 0.4}},
    {OpKind::TanhBackward, result, {4, 0.75}, {0.6, 0.4}},
};

}  // namespace

std::string_view text_of(ErrorScale scale) {
  switch (scale) {
    case result: return "the result";
    case terms: return "the sum of the terms' absolute values";
    case tensor: return "the largest result of the tensor";
  }
  return {};
}

std::span<const Accuracy> accuracy_table() { return kTable; }

}  // namespace partita
