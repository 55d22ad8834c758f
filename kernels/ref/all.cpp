// SPDX-License-Identifier: Apache-2.0
// The table of references, one row an operator kind that computes something.
#include "kernels/ref/reference.hpp"
#include "kernels/ref/references.hpp"

namespace partita {
namespace {

struct Row {
  OpKind kind;
  Reference reference;
};

using enum OpKind;

constexpr Row kReferences[] = {
    {Abs, ref::abs},
    {AbsBackward, ref::abs_backward},
    {Add, ref::add},
    {AvgPool, ref::avg_pool},
    {AvgPoolBackward, ref::avg_pool_backward},
    {BatchNormTrainingBackward, ref::batch_norm_training_backward},
    {BatchNormForwardTraining, ref::batch_norm_forward_training},
    {BatchNormInference, ref::batch_norm_inference},
    {BiasAdd, ref::bias_add},
    {BiasAddBackward, ref::bias_add_backward},
    {Clamp, ref::clamp},
    {ClampBackward, ref::clamp_backward},
    {Concat, ref::concat},
    {Convolution, ref::convolution},
    {ConvolutionBackwardData, ref::convolution_backward_data},
    {ConvolutionBackwardWeights, ref::convolution_backward_weights},
    {ConvTranspose, ref::conv_transpose},
    {ConvTransposeBackwardData, ref::conv_transpose_backward_data},
    {ConvTransposeBackwardWeights, ref::conv_transpose_backward_weights},
    {Dequantize, ref::dequantize},
    {Divide, ref::divide},
    {DynamicDequantize, ref::dynamic_dequantize},
    {DynamicQuantize, ref::dynamic_quantize},
    {Elu, ref::elu},
    {EluBackward, ref::elu_backward},
    {Exp, ref::exp},
    {GELU, ref::gelu},
    {GELUBackward, ref::gelu_backward},
    {HardSwish, ref::hard_swish},
    {HardSwishBackward, ref::hard_swish_backward},
    {Interpolate, ref::interpolate},
    {InterpolateBackward, ref::interpolate_backward},
    {LayerNorm, ref::layer_norm},
    {LayerNormBackward, ref::layer_norm_backward},
    {LeakyReLU, ref::leaky_relu},
    {Log, ref::log},
    {LogSoftmax, ref::log_softmax},
    {LogSoftmaxBackward, ref::log_softmax_backward},
    {MatMul, ref::matmul},
    {Maximum, ref::maximum},
    {MaxPool, ref::max_pool},
    {MaxPoolBackward, ref::max_pool_backward},
    {Minimum, ref::minimum},
    {Mish, ref::mish},
    {MishBackward, ref::mish_backward},
    {Multiply, ref::multiply},
    {PReLU, ref::prelu},
    {PReLUBackward, ref::prelu_backward},
    {Quantize, ref::quantize},
    {Reciprocal, ref::reciprocal},
    {ReduceL1, ref::reduce_l1},
    {ReduceL2, ref::reduce_l2},
    {ReduceMax, ref::reduce_max},
    {ReduceMean, ref::reduce_mean},
    {ReduceMin, ref::reduce_min},
    {ReduceProd, ref::reduce_prod},
    {ReduceSum, ref::reduce_sum},
    {ReLU, ref::relu},
    {ReLUBackward, ref::relu_backward},
    {Reorder, ref::convert},
    {Round, ref::round},
    {Sigmoid, ref::sigmoid},
    {SigmoidBackward, ref::sigmoid_backward},
    {SoftMax, ref::softmax},
    {SoftMaxBackward, ref::softmax_backward},
    {SoftPlus, ref::softplus},
    {SoftPlusBackward, ref::softplus_backward},
    {Sqrt, ref::sqrt},
    {SqrtBackward, ref::sqrt_backward},
    {Square, ref::square},
    {SquaredDifference, ref::squared_difference},
    {StaticReshape, ref::reshape},
    {StaticTranspose, ref::transpose},
    {Subtract, ref::subtract},
    {Tanh, ref::tanh},
    {TanhBackward, ref::tanh_backward},
    {TypeCast, ref::convert},
    {HardSigmoid, ref::hard_sigmoid},
    {HardSigmoidBackward, ref::hard_sigmoid_backward},
    {Select, ref::select},
    {Pow, ref::pow},
    {GroupNorm, ref::group_norm},
    {GenIndex, ref::gen_index},
    {GreaterEqual, ref::greater_equal},
    {RMSNorm, ref::rms_norm},
    {Dropout, ref::dropout},
    {AdaptiveAvgPool, ref::adaptive_avg_pool},
    {AdaptiveAvgPoolBackward, ref::adaptive_avg_pool_backward},
    {MaxPoolIndicesBackward, ref::max_pool_indices_backward},
};

}  // namespace

Reference reference_of(OpKind kind) {
  for (const Row& row : kReferences) {
    if (row.kind == kind) return row.reference;
  }
  return nullptr;
}

}  // namespace partita
