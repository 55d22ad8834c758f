// SPDX-License-Identifier: Apache-2.0
// Primitives of a chain that look at more than one element: normalisation, softmax, reduction, resampling.
#include "tests/bench/onednn_chain.hpp"

namespace partita::bench {
namespace {

using dnnl::normalization_flags;
using dnnl::prop_kind;

const normalization_flags kAffine = normalization_flags::use_scale | normalization_flags::use_shift;

int last_axis(const dnnl::memory::desc& desc) { return desc.get_ndims() - 1; }

}  // namespace

void Chain::reduce(dnnl::algorithm algorithm, Value src, Value dst) {
  step<dnnl::reduction>({engine_, algorithm, desc(src), desc(dst), 0.0f, 0.0f},
                        {{DNNL_ARG_SRC, memory(src)}, {DNNL_ARG_DST, memory(dst)}});
}

void Chain::resample(dnnl::algorithm algorithm, Value src, Value dst) {
  step<dnnl::resampling_forward>({engine_, prop_kind::forward_inference, algorithm, desc(src), desc(dst)},
                                 {{DNNL_ARG_SRC, memory(src)}, {DNNL_ARG_DST, memory(dst)}});
}

void Chain::resample_backward(dnnl::algorithm algorithm, Value diff_dst, Value diff_src) {
  const dnnl::resampling_forward::primitive_desc hint(engine_, prop_kind::forward_training, algorithm, desc(diff_src),
                                                      desc(diff_dst));
  step<dnnl::resampling_backward>({engine_, algorithm, desc(diff_src), desc(diff_dst), hint},
                                  {{DNNL_ARG_DIFF_DST, memory(diff_dst)}, {DNNL_ARG_DIFF_SRC, memory(diff_src)}});
}

void Chain::softmax(dnnl::algorithm algorithm, Value src, Value dst) {
  step<dnnl::softmax_forward>(
      {engine_, prop_kind::forward_inference, algorithm, desc(src), desc(dst), last_axis(desc(src))},
      {{DNNL_ARG_SRC, memory(src)}, {DNNL_ARG_DST, memory(dst)}});
}

void Chain::softmax_backward(dnnl::algorithm algorithm, Value diff_dst, Value dst, Value diff_src) {
  const int axis = last_axis(desc(dst));
  const dnnl::softmax_forward::primitive_desc hint(engine_, prop_kind::forward_training, algorithm, desc(dst),
                                                   desc(dst), axis);
  step<dnnl::softmax_backward>(
      {engine_, algorithm, desc(diff_src), desc(diff_dst), desc(dst), axis, hint},
      {{DNNL_ARG_DIFF_DST, memory(diff_dst)}, {DNNL_ARG_DST, memory(dst)}, {DNNL_ARG_DIFF_SRC, memory(diff_src)}});
}

void Chain::layer_norm(Value src, Affine affine, Value dst, Statistics statistics, float epsilon) {
  step<dnnl::layer_normalization_forward>(
      {engine_, prop_kind::forward_training, desc(src), desc(dst), desc(statistics.mean), epsilon, kAffine},
      {{DNNL_ARG_SRC, memory(src)},
       {DNNL_ARG_SCALE, memory(affine.scale)},
       {DNNL_ARG_SHIFT, memory(affine.shift)},
       {DNNL_ARG_DST, memory(dst)},
       {DNNL_ARG_MEAN, memory(statistics.mean)},
       {DNNL_ARG_VARIANCE, memory(statistics.variance)}});
}

void Chain::layer_norm_backward(Value src, Value diff_dst, Statistics statistics, Affine affine, Value diff_src,
                                Affine diffs, float epsilon) {
  const dnnl::layer_normalization_forward::primitive_desc hint(engine_, prop_kind::forward_training, desc(src),
                                                               desc(src), desc(statistics.mean), epsilon, kAffine);
  step<dnnl::layer_normalization_backward>({engine_, prop_kind::backward, desc(diff_src), desc(diff_dst), desc(src),
                                            desc(statistics.mean), epsilon, kAffine, hint},
                                           {{DNNL_ARG_SRC, memory(src)},
                                            {DNNL_ARG_DIFF_DST, memory(diff_dst)},
                                            {DNNL_ARG_MEAN, memory(statistics.mean)},
                                            {DNNL_ARG_VARIANCE, memory(statistics.variance)},
                                            {DNNL_ARG_SCALE, memory(affine.scale)},
                                            {DNNL_ARG_SHIFT, memory(affine.shift)},
                                            {DNNL_ARG_DIFF_SRC, memory(diff_src)},
                                            {DNNL_ARG_DIFF_SCALE, memory(diffs.scale)},
                                            {DNNL_ARG_DIFF_SHIFT, memory(diffs.shift)}});
}

void Chain::batch_norm(Value src, Affine affine, Value dst, Statistics statistics, float epsilon) {
  step<dnnl::batch_normalization_forward>(
      {engine_, prop_kind::forward_training, desc(src), desc(dst), epsilon, kAffine},
      {{DNNL_ARG_SRC, memory(src)},
       {DNNL_ARG_SCALE, memory(affine.scale)},
       {DNNL_ARG_SHIFT, memory(affine.shift)},
       {DNNL_ARG_DST, memory(dst)},
       {DNNL_ARG_MEAN, memory(statistics.mean)},
       {DNNL_ARG_VARIANCE, memory(statistics.variance)}});
}

void Chain::batch_norm_backward(Value src, Value diff_dst, Statistics statistics, Value scale, Value diff_src,
                                Affine diffs, float epsilon) {
  const dnnl::batch_normalization_forward::primitive_desc hint(engine_, prop_kind::forward_training, desc(src),
                                                               desc(src), epsilon, kAffine);
  step<dnnl::batch_normalization_backward>(
      {engine_, prop_kind::backward, desc(diff_src), desc(diff_dst), desc(src), epsilon, kAffine, hint},
      {{DNNL_ARG_SRC, memory(src)},
       {DNNL_ARG_DIFF_DST, memory(diff_dst)},
       {DNNL_ARG_MEAN, memory(statistics.mean)},
       {DNNL_ARG_VARIANCE, memory(statistics.variance)},
       {DNNL_ARG_SCALE, memory(scale)},
       {DNNL_ARG_DIFF_SRC, memory(diff_src)},
       {DNNL_ARG_DIFF_SCALE, memory(diffs.scale)},
       {DNNL_ARG_DIFF_SHIFT, memory(diffs.shift)}});
}

}  // namespace partita::bench
