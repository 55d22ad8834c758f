// SPDX-License-Identifier: Apache-2.0
// The reference functions, one an operator; kernels/ref/all.cpp ties them to operator kinds.
#pragma once

#include "kernels/kernel.hpp"

namespace partita::ref {

using Args = const RunArgs&;

// unary.cpp
Status abs(const Problem& problem, Args args);
Status clamp(const Problem& problem, Args args);
Status elu(const Problem& problem, Args args);
Status exp(const Problem& problem, Args args);
Status gelu(const Problem& problem, Args args);
Status hard_sigmoid(const Problem& problem, Args args);
Status hard_swish(const Problem& problem, Args args);
Status leaky_relu(const Problem& problem, Args args);
Status log(const Problem& problem, Args args);
Status mish(const Problem& problem, Args args);
Status pow(const Problem& problem, Args args);
Status reciprocal(const Problem& problem, Args args);
Status relu(const Problem& problem, Args args);
Status round(const Problem& problem, Args args);
Status sigmoid(const Problem& problem, Args args);
Status softplus(const Problem& problem, Args args);
Status sqrt(const Problem& problem, Args args);
Status square(const Problem& problem, Args args);
Status tanh(const Problem& problem, Args args);

// unary_backward.cpp
Status abs_backward(const Problem& problem, Args args);
Status clamp_backward(const Problem& problem, Args args);
Status elu_backward(const Problem& problem, Args args);
Status gelu_backward(const Problem& problem, Args args);
Status hard_sigmoid_backward(const Problem& problem, Args args);
Status hard_swish_backward(const Problem& problem, Args args);
Status mish_backward(const Problem& problem, Args args);
Status relu_backward(const Problem& problem, Args args);
Status sigmoid_backward(const Problem& problem, Args args);
Status softplus_backward(const Problem& problem, Args args);
Status sqrt_backward(const Problem& problem, Args args);
Status tanh_backward(const Problem& problem, Args args);

// binary.cpp
Status add(const Problem& problem, Args args);
Status bias_add(const Problem& problem, Args args);
Status divide(const Problem& problem, Args args);
Status greater_equal(const Problem& problem, Args args);
Status maximum(const Problem& problem, Args args);
Status minimum(const Problem& problem, Args args);
Status multiply(const Problem& problem, Args args);
Status select(const Problem& problem, Args args);
Status squared_difference(const Problem& problem, Args args);
Status subtract(const Problem& problem, Args args);

// prelu.cpp
Status prelu(const Problem& problem, Args args);
Status prelu_backward(const Problem& problem, Args args);

// movement.cpp
Status concat(const Problem& problem, Args args);
Status convert(const Problem& problem, Args args);
Status reshape(const Problem& problem, Args args);
Status transpose(const Problem& problem, Args args);

// generate.cpp
Status dropout(const Problem& problem, Args args);
Status gen_index(const Problem& problem, Args args);

// quantize.cpp
Status quantize(const Problem& problem, Args args);
Status dequantize(const Problem& problem, Args args);
Status dynamic_quantize(const Problem& problem, Args args);
Status dynamic_dequantize(const Problem& problem, Args args);

// pool.cpp
Status avg_pool(const Problem& problem, Args args);
Status avg_pool_backward(const Problem& problem, Args args);
Status max_pool(const Problem& problem, Args args);
Status max_pool_backward(const Problem& problem, Args args);
Status max_pool_indices_backward(const Problem& problem, Args args);
// adaptive_pool.cpp
Status adaptive_avg_pool(const Problem& problem, Args args);
Status adaptive_avg_pool_backward(const Problem& problem, Args args);

// interpolate.cpp
Status interpolate(const Problem& problem, Args args);
Status interpolate_backward(const Problem& problem, Args args);

// matmul.cpp
Status matmul(const Problem& problem, Args args);

// convolution.cpp
Status convolution(const Problem& problem, Args args);
Status convolution_backward_data(const Problem& problem, Args args);
Status convolution_backward_weights(const Problem& problem, Args args);
Status conv_transpose(const Problem& problem, Args args);
Status conv_transpose_backward_data(const Problem& problem, Args args);
Status conv_transpose_backward_weights(const Problem& problem, Args args);

// softmax.cpp
Status softmax(const Problem& problem, Args args);
Status softmax_backward(const Problem& problem, Args args);
Status log_softmax(const Problem& problem, Args args);
Status log_softmax_backward(const Problem& problem, Args args);

// batch_norm.cpp
Status batch_norm_inference(const Problem& problem, Args args);
Status batch_norm_forward_training(const Problem& problem, Args args);
Status batch_norm_training_backward(const Problem& problem, Args args);

// layer_norm.cpp
Status layer_norm(const Problem& problem, Args args);
Status layer_norm_backward(const Problem& problem, Args args);
Status rms_norm(const Problem& problem, Args args);

// group_norm.cpp
Status group_norm(const Problem& problem, Args args);

// reduce.cpp
Status bias_add_backward(const Problem& problem, Args args);
Status reduce_l1(const Problem& problem, Args args);
Status reduce_l2(const Problem& problem, Args args);
Status reduce_max(const Problem& problem, Args args);
Status reduce_mean(const Problem& problem, Args args);
Status reduce_min(const Problem& problem, Args args);
Status reduce_prod(const Problem& problem, Args args);
Status reduce_sum(const Problem& problem, Args args);

}  // namespace partita::ref
