// SPDX-License-Identifier: Apache-2.0
// The tables of kernels: for each kind of step its rows, best first, the reference last.
#include <array>

#if PARTITA_JIT
#include "kernels/jit/flat/concat.hpp"
#include "kernels/jit/flat/flat.hpp"
#include "kernels/jit/flat/strided.hpp"
#include "kernels/jit/pool/backward/backward.hpp"
#include "kernels/jit/pool/forward/forward.hpp"
#include "kernels/jit/pool/indices/from_indices.hpp"
#include "kernels/jit/products/few_rows.hpp"
#include "kernels/jit/resample/resample.hpp"
#include "kernels/jit/rows/norm.hpp"
#include "kernels/jit/rows/softmax.hpp"
#endif
#include "kernels/kernel.hpp"
#include "kernels/loop/interpreter.hpp"
#include "kernels/onednn/rows.hpp"
#include "kernels/ref/reference.hpp"

namespace partita {
namespace {

using onednn::float_row;
using onednn::native_row;

const char* refuse_reference(const Problem& problem, const Target&) {
  if (problem.fused()) return "references compute single operators";
  return reference_of(problem.op) ? nullptr : "the operator has no reference";
}

Result<Run> make_reference(const Problem& problem, const Target&) {
  return Run{
      .call = [problem, compute = reference_of(problem.op)](const RunArgs& args) { return compute(problem, args); }};
}

constexpr Kernel reference_row(const char* name, StepKind step) {
  return {name, step, Isa::any, refuse_reference, make_reference, false, true};
}

constexpr Kernel interpreter_row(const char* name, StepKind step) {
  return {name, step, Isa::any, refuse_interpreted, make_interpreted, true, true};
}

#if PARTITA_JIT
Target narrowed(Target target, Isa isa) {
  target.isa = isa;
  return target;
}

/// A generated kernel in the instructions of its row, also where the target has better ones: what it takes depends on
/// them, too.
template <const char* (*refuse)(const Problem&, const Target&), Result<Run> (*make)(const Problem&, const Target&),
          Isa isa>
constexpr Kernel jit_row(const char* name, StepKind step, bool in_place = false) {
  return {name,
          step,
          isa,
          [](const Problem& problem, const Target& target) { return refuse(problem, narrowed(target, isa)); },
          [](const Problem& problem, const Target& target) { return make(problem, narrowed(target, isa)); },
          in_place};
}
#endif

constexpr std::array kLoop = {
#if PARTITA_JIT
    jit_row<jit::refuse_flat, jit::make_flat, Isa::avx512>("loop_any_jit_avx512", StepKind::loop, true),
    jit_row<jit::refuse_flat, jit::make_flat, Isa::avx2>("loop_any_jit_avx2", StepKind::loop, true),
    jit_row<jit::refuse_strided, jit::make_strided, Isa::avx512>("loop_any_jit_transpose_avx512", StepKind::loop, true),
    jit_row<jit::refuse_strided, jit::make_strided, Isa::avx2>("loop_any_jit_transpose_avx2", StepKind::loop, true),
#endif
    interpreter_row("loop_any_interpreter", StepKind::loop),
};

constexpr std::array kPoolForward = {
#if PARTITA_JIT
    jit_row<jit::refuse_pool_forward, jit::make_pool_forward, Isa::avx512>("pool_forward_any_jit_avx512",
                                                                           StepKind::pool_forward, true),
    jit_row<jit::refuse_pool_forward, jit::make_pool_forward, Isa::avx2>("pool_forward_any_jit_avx2",
                                                                         StepKind::pool_forward, true),
#endif
    native_row<onednn::plan_pool_forward>("pool_forward_float_onednn", StepKind::pool_forward),
    float_row<onednn::plan_pool_forward>("pool_forward_any_onednn_f32", StepKind::pool_forward),
    interpreter_row("pool_forward_any_interpreter", StepKind::pool_forward),
    reference_row("pool_forward_any_ref", StepKind::pool_forward),
};

constexpr std::array kPoolBackward = {
#if PARTITA_JIT
    jit_row<jit::refuse_pool_backward, jit::make_pool_backward, Isa::avx512>("pool_backward_any_jit_avx512",
                                                                             StepKind::pool_backward, true),
    jit_row<jit::refuse_pool_backward, jit::make_pool_backward, Isa::avx2>("pool_backward_any_jit_avx2",
                                                                           StepKind::pool_backward, true),
#endif
    native_row<onednn::plan_pool_backward>("pool_backward_float_onednn", StepKind::pool_backward),
    float_row<onednn::plan_pool_backward>("pool_backward_any_onednn_f32", StepKind::pool_backward),
    interpreter_row("pool_backward_any_interpreter", StepKind::pool_backward),
    reference_row("pool_backward_any_ref", StepKind::pool_backward),
};

constexpr std::array kMaxPoolBackward = {
#if PARTITA_JIT
    jit_row<jit::refuse_pool_backward, jit::make_pool_backward, Isa::avx512>("max_pool_backward_any_jit_avx512",
                                                                             StepKind::max_pool_backward, true),
    jit_row<jit::refuse_pool_backward, jit::make_pool_backward, Isa::avx2>("max_pool_backward_any_jit_avx2",
                                                                           StepKind::max_pool_backward, true),
    // Before oneDNN's kernels, for which NaN is no maximum.
    interpreter_row("max_pool_backward_any_interpreter", StepKind::max_pool_backward),
#endif
    native_row<onednn::plan_max_pool_backward>("max_pool_backward_float_onednn", StepKind::max_pool_backward),
    float_row<onednn::plan_max_pool_backward>("max_pool_backward_any_onednn_f32", StepKind::max_pool_backward),
#if !PARTITA_JIT
    interpreter_row("max_pool_backward_any_interpreter", StepKind::max_pool_backward),
#endif
    reference_row("max_pool_backward_any_ref", StepKind::max_pool_backward),
};

constexpr std::array kMaxPoolIndicesBackward = {
#if PARTITA_JIT
    jit_row<jit::refuse_pool_from_indices, jit::make_pool_from_indices, Isa::avx512>(
        "max_pool_indices_backward_any_jit_avx512", StepKind::max_pool_indices_backward, true),
    jit_row<jit::refuse_pool_from_indices, jit::make_pool_from_indices, Isa::avx2>(
        "max_pool_indices_backward_any_jit_avx2", StepKind::max_pool_indices_backward, true),
#endif
    reference_row("max_pool_indices_backward_any_ref", StepKind::max_pool_indices_backward),
};

constexpr std::array kConvolution = {
    native_row<onednn::plan_convolution>("convolution_float_onednn", StepKind::convolution),
    float_row<onednn::plan_convolution>("convolution_any_onednn_f32", StepKind::convolution),
    reference_row("convolution_any_ref", StepKind::convolution),
};

constexpr std::array kConvolutionBackwardData = {
    native_row<onednn::plan_convolution_backward_data>("convolution_backward_data_float_onednn",
                                                       StepKind::convolution_backward_data),
    float_row<onednn::plan_convolution_backward_data>("convolution_backward_data_any_onednn_f32",
                                                      StepKind::convolution_backward_data),
    reference_row("convolution_backward_data_any_ref", StepKind::convolution_backward_data),
};

constexpr std::array kConvolutionBackwardWeights = {
    native_row<onednn::plan_convolution_backward_weights>("convolution_backward_weights_float_onednn",
                                                          StepKind::convolution_backward_weights),
    float_row<onednn::plan_convolution_backward_weights>("convolution_backward_weights_any_onednn_f32",
                                                         StepKind::convolution_backward_weights),
    reference_row("convolution_backward_weights_any_ref", StepKind::convolution_backward_weights),
};

constexpr std::array kMatmul = {
#if PARTITA_JIT
    jit_row<jit::refuse_few_rows, jit::make_few_rows, Isa::avx512>("matmul_float_jit_few_rows_avx512",
                                                                   StepKind::matmul),
#endif
    native_row<onednn::plan_matmul>("matmul_float_onednn", StepKind::matmul),
    float_row<onednn::plan_matmul>("matmul_any_onednn_f32", StepKind::matmul),
    reference_row("matmul_any_ref", StepKind::matmul),
};

constexpr std::array kSoftmax = {
#if PARTITA_JIT
    jit_row<jit::refuse_softmax, jit::make_softmax, Isa::avx512>("softmax_any_jit_avx512", StepKind::softmax, true),
    jit_row<jit::refuse_softmax, jit::make_softmax, Isa::avx2>("softmax_any_jit_avx2", StepKind::softmax, true),
#endif
    native_row<onednn::plan_softmax>("softmax_float_onednn", StepKind::softmax),
    float_row<onednn::plan_softmax>("softmax_any_onednn_f32", StepKind::softmax),
    reference_row("softmax_any_ref", StepKind::softmax),
};

constexpr std::array kSoftmaxBackward = {
#if PARTITA_JIT
    jit_row<jit::refuse_softmax_backward, jit::make_softmax_backward, Isa::avx512>("softmax_backward_any_jit_avx512",
                                                                                   StepKind::softmax_backward, true),
    jit_row<jit::refuse_softmax_backward, jit::make_softmax_backward, Isa::avx2>("softmax_backward_any_jit_avx2",
                                                                                 StepKind::softmax_backward, true),
#endif
    native_row<onednn::plan_softmax_backward>("softmax_backward_float_onednn", StepKind::softmax_backward),
    float_row<onednn::plan_softmax_backward>("softmax_backward_any_onednn_f32", StepKind::softmax_backward),
    reference_row("softmax_backward_any_ref", StepKind::softmax_backward),
};

constexpr std::array kBatchNorm = {
    native_row<onednn::plan_batch_norm>("batch_norm_float_onednn", StepKind::batch_norm),
    float_row<onednn::plan_batch_norm>("batch_norm_any_onednn_f32", StepKind::batch_norm),
    reference_row("batch_norm_any_ref", StepKind::batch_norm),
};

constexpr std::array kBatchNormBackward = {
    native_row<onednn::plan_batch_norm_backward>("batch_norm_backward_float_onednn", StepKind::batch_norm_backward),
    float_row<onednn::plan_batch_norm_backward>("batch_norm_backward_any_onednn_f32", StepKind::batch_norm_backward),
    reference_row("batch_norm_backward_any_ref", StepKind::batch_norm_backward),
};

constexpr std::array kLayerNorm = {
#if PARTITA_JIT
    jit_row<jit::refuse_layer_norm, jit::make_layer_norm, Isa::avx512>("layer_norm_any_jit_avx512",
                                                                       StepKind::layer_norm, true),
    jit_row<jit::refuse_layer_norm, jit::make_layer_norm, Isa::avx2>("layer_norm_any_jit_avx2", StepKind::layer_norm,
                                                                     true),
#endif
    native_row<onednn::plan_layer_norm>("layer_norm_float_onednn", StepKind::layer_norm),
    float_row<onednn::plan_layer_norm>("layer_norm_any_onednn_f32", StepKind::layer_norm),
    reference_row("layer_norm_any_ref", StepKind::layer_norm),
};

constexpr std::array kLayerNormBackward = {
#if PARTITA_JIT
    jit_row<jit::refuse_layer_norm_backward, jit::make_layer_norm_backward, Isa::avx512>(
        "layer_norm_backward_any_jit_avx512", StepKind::layer_norm_backward, true),
    jit_row<jit::refuse_layer_norm_backward, jit::make_layer_norm_backward, Isa::avx2>(
        "layer_norm_backward_any_jit_avx2", StepKind::layer_norm_backward, true),
#endif
    native_row<onednn::plan_layer_norm_backward>("layer_norm_backward_float_onednn", StepKind::layer_norm_backward),
    float_row<onednn::plan_layer_norm_backward>("layer_norm_backward_any_onednn_f32", StepKind::layer_norm_backward),
    reference_row("layer_norm_backward_any_ref", StepKind::layer_norm_backward),
};

constexpr std::array kGroupNorm = {
#if PARTITA_JIT
    jit_row<jit::refuse_group_norm, jit::make_group_norm, Isa::avx512>("group_norm_any_jit_avx512",
                                                                       StepKind::group_norm, true),
    jit_row<jit::refuse_group_norm, jit::make_group_norm, Isa::avx2>("group_norm_any_jit_avx2", StepKind::group_norm,
                                                                     true),
#endif
    native_row<onednn::plan_group_norm>("group_norm_float_onednn", StepKind::group_norm),
    float_row<onednn::plan_group_norm>("group_norm_any_onednn_f32", StepKind::group_norm),
    reference_row("group_norm_any_ref", StepKind::group_norm),
};

constexpr std::array kReduce = {
    native_row<onednn::plan_reduce>("reduce_float_onednn", StepKind::reduce),
    float_row<onednn::plan_reduce>("reduce_any_onednn_f32", StepKind::reduce),
    reference_row("reduce_any_ref", StepKind::reduce),
};

constexpr std::array kResample = {
#if PARTITA_JIT
    jit_row<jit::refuse_resample, jit::make_resample, Isa::avx512>("resample_any_jit_avx512", StepKind::resample, true),
    jit_row<jit::refuse_resample, jit::make_resample, Isa::avx2>("resample_any_jit_avx2", StepKind::resample, true),
#endif
    native_row<onednn::plan_resample>("resample_float_onednn", StepKind::resample),
    float_row<onednn::plan_resample>("resample_any_onednn_f32", StepKind::resample),
    reference_row("resample_any_ref", StepKind::resample),
};

constexpr std::array kResampleBackward = {
#if PARTITA_JIT
    jit_row<jit::refuse_resample, jit::make_resample, Isa::avx512>("resample_backward_any_jit_avx512",
                                                                   StepKind::resample_backward, true),
    jit_row<jit::refuse_resample, jit::make_resample, Isa::avx2>("resample_backward_any_jit_avx2",
                                                                 StepKind::resample_backward, true),
#endif
    native_row<onednn::plan_resample_backward>("resample_backward_float_onednn", StepKind::resample_backward),
    float_row<onednn::plan_resample_backward>("resample_backward_any_onednn_f32", StepKind::resample_backward),
    reference_row("resample_backward_any_ref", StepKind::resample_backward),
};

constexpr std::array kPreluBackward = {
    native_row<onednn::plan_prelu_backward>("prelu_backward_float_onednn", StepKind::prelu_backward),
    float_row<onednn::plan_prelu_backward>("prelu_backward_any_onednn_f32", StepKind::prelu_backward),
    reference_row("prelu_backward_any_ref", StepKind::prelu_backward),
};

constexpr std::array kConcat = {
#if PARTITA_JIT
    jit_row<jit::refuse_concat, jit::make_concat, Isa::avx512>("concat_any_jit_avx512", StepKind::concat),
    jit_row<jit::refuse_concat, jit::make_concat, Isa::avx2>("concat_any_jit_avx2", StepKind::concat),
#endif
    reference_row("concat_any_ref", StepKind::concat),
};

constexpr std::array kDropout = {reference_row("dropout_any_ref", StepKind::dropout)};

}  // namespace

std::span<const Kernel> kernels_for(StepKind step) {
  switch (step) {
    case StepKind::none:
    case StepKind::tiles: return {};
    case StepKind::loop: return kLoop;
    case StepKind::pool_forward: return kPoolForward;
    case StepKind::pool_backward: return kPoolBackward;
    case StepKind::max_pool_backward: return kMaxPoolBackward;
    case StepKind::max_pool_indices_backward: return kMaxPoolIndicesBackward;
    case StepKind::convolution: return kConvolution;
    case StepKind::convolution_backward_data: return kConvolutionBackwardData;
    case StepKind::convolution_backward_weights: return kConvolutionBackwardWeights;
    case StepKind::matmul: return kMatmul;
    case StepKind::softmax: return kSoftmax;
    case StepKind::softmax_backward: return kSoftmaxBackward;
    case StepKind::batch_norm: return kBatchNorm;
    case StepKind::batch_norm_backward: return kBatchNormBackward;
    case StepKind::layer_norm: return kLayerNorm;
    case StepKind::layer_norm_backward: return kLayerNormBackward;
    case StepKind::group_norm: return kGroupNorm;
    case StepKind::reduce: return kReduce;
    case StepKind::resample: return kResample;
    case StepKind::resample_backward: return kResampleBackward;
    case StepKind::prelu_backward: return kPreluBackward;
    case StepKind::concat: return kConcat;
    case StepKind::dropout: return kDropout;
  }
  return {};
}

}  // namespace partita
