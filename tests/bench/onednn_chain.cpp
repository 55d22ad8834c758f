// SPDX-License-Identifier: Apache-2.0
// Memory of a chain, pooling and element-wise primitives.
#include "tests/bench/onednn_chain.hpp"

namespace partita::bench {
namespace {

using dnnl::memory;
using dnnl::prop_kind;

memory::data_type type_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f16: return memory::data_type::f16;
    case Dtype::bf16: return memory::data_type::bf16;
    default: return memory::data_type::f32;
  }
}

memory::dims dims_of(const Dims& dims) { return {dims.begin(), dims.end()}; }

}  // namespace

memory::desc desc_of(const Shape& shape) {
  return {dims_of(shape.dims), type_of(shape.dtype), dims_of(shape.strides())};
}

Chain::Chain(Variant variant, std::span<const Place> inputs, std::span<const Place> outputs)
    : variant_(variant),
      inputs_(static_cast<int>(inputs.size())),
      engine_(dnnl::engine::kind::cpu, 0),
      stream_(engine_) {
  for (std::span<const Place> places : {inputs, outputs})
    for (const Place& place : places) add_memory(desc_of(place.shape), place.data);
}

Value Chain::add_memory(const memory::desc& desc, void* data) {
  memories_.emplace_back(desc, engine_, data);
  return static_cast<Value>(memories_.size()) - 1;
}

Value Chain::temporary(const Dims& dims, Dtype dtype) {
  const Shape shape{dims, dtype == Dtype::undef ? variant_.dtype : dtype, variant_.order};
  owned_.emplace_back(shape.bytes());
  return add_memory(desc_of(shape), owned_.back().data());
}

Value Chain::permuted(Value value, const std::vector<int>& order) {
  // oneDNN names for each axis of the original its place in the result
  std::vector<int> places(order.size());
  for (size_t i = 0; i < order.size(); ++i) places[static_cast<size_t>(order[i])] = static_cast<int>(i);
  return add_memory(desc(value).permute_axes(places), memory(value).get_data_handle());
}

Value Chain::reshaped(Value value, const memory::dims& dims) {
  return add_memory(desc(value).reshape(dims), memory(value).get_data_handle());
}

void Chain::run() {
  for (const Step& step : steps_) step.primitive.execute(stream_, step.arguments);
  stream_.wait();
}

dnnl::algorithm Chain::average_of(const Window& window) {
  return window.counts_padding ? dnnl::algorithm::pooling_avg_include_padding
                               : dnnl::algorithm::pooling_avg_exclude_padding;
}

dnnl::pooling_forward::primitive_desc Chain::pool_desc(dnnl::algorithm algorithm, const memory::desc& wide,
                                                       const Window& window, const memory::desc& narrow,
                                                       prop_kind kind) const {
  const memory::dims pads = window.each_axis(window.pad);
  return {engine_,
          kind,
          algorithm,
          wide,
          narrow,
          window.each_axis(window.stride),
          window.each_axis(window.kernel),
          window.each_axis(0),
          pads,
          pads};
}

void Chain::pool(dnnl::algorithm algorithm, Value src, const Window& window, Value dst) {
  step<dnnl::pooling_forward>(pool_desc(algorithm, desc(src), window, desc(dst), prop_kind::forward_inference),
                              {{DNNL_ARG_SRC, memory(src)}, {DNNL_ARG_DST, memory(dst)}});
}

void Chain::pool_backward(dnnl::algorithm algorithm, const dnnl::pooling_forward::primitive_desc& forward,
                          Value diff_dst, const Window& window, Value diff_src, Arguments more) {
  const memory::dims pads = window.each_axis(window.pad);
  more.emplace(DNNL_ARG_DIFF_DST, memory(diff_dst));
  more.emplace(DNNL_ARG_DIFF_SRC, memory(diff_src));
  step<dnnl::pooling_backward>({engine_, algorithm, desc(diff_src), desc(diff_dst), window.each_axis(window.stride),
                                window.each_axis(window.kernel), window.each_axis(0), pads, pads, forward},
                               std::move(more));
}

void Chain::max_pool_backward(Value src, Value diff_dst, const Window& window, Value diff_src) {
  constexpr auto kMax = dnnl::algorithm::pooling_max;
  const auto forward = pool_desc(kMax, desc(src), window, desc(diff_dst), prop_kind::forward_training);
  owned_.emplace_back(forward.dst_desc().get_size());
  const Value maxima = add_memory(forward.dst_desc(), owned_.back().data());
  owned_.emplace_back(forward.workspace_desc().get_size());
  const Value places = add_memory(forward.workspace_desc(), owned_.back().data());
  step<dnnl::pooling_forward>(
      forward, {{DNNL_ARG_SRC, memory(src)}, {DNNL_ARG_DST, memory(maxima)}, {DNNL_ARG_WORKSPACE, memory(places)}});
  pool_backward(kMax, forward, diff_dst, window, diff_src, {{DNNL_ARG_WORKSPACE, memory(places)}});
}

void Chain::average_pool_backward(Value diff_dst, const Window& window, Value diff_src) {
  const auto forward =
      pool_desc(average_of(window), desc(diff_src), window, desc(diff_dst), prop_kind::forward_training);
  pool_backward(average_of(window), forward, diff_dst, window, diff_src, {});
}

void Chain::eltwise(dnnl::algorithm algorithm, Value src, Value dst, float alpha, float beta) {
  step<dnnl::eltwise_forward>({engine_, prop_kind::forward_inference, algorithm, desc(src), desc(dst), alpha, beta},
                              {{DNNL_ARG_SRC, memory(src)}, {DNNL_ARG_DST, memory(dst)}});
}

void Chain::eltwise_backward_step(dnnl::algorithm algorithm, int argument, Value data, Value diff_dst, Value diff_src) {
  const dnnl::eltwise_forward::primitive_desc hint(engine_, prop_kind::forward_training, algorithm, desc(data),
                                                   desc(data), 0.0f, 0.0f);
  step<dnnl::eltwise_backward>(
      {engine_, algorithm, desc(diff_src), desc(diff_dst), desc(data), 0.0f, 0.0f, hint},
      {{argument, memory(data)}, {DNNL_ARG_DIFF_DST, memory(diff_dst)}, {DNNL_ARG_DIFF_SRC, memory(diff_src)}});
}

void Chain::eltwise_backward(dnnl::algorithm algorithm, Value src, Value diff_dst, Value diff_src) {
  eltwise_backward_step(algorithm, DNNL_ARG_SRC, src, diff_dst, diff_src);
}

void Chain::eltwise_backward_from_dst(dnnl::algorithm algorithm, Value dst, Value diff_dst, Value diff_src) {
  eltwise_backward_step(algorithm, DNNL_ARG_DST, dst, diff_dst, diff_src);
}

void Chain::binary(dnnl::algorithm algorithm, Value a, Value b, Value dst) {
  step<dnnl::binary>({engine_, algorithm, desc(a), desc(b), desc(dst)},
                     {{DNNL_ARG_SRC_0, memory(a)}, {DNNL_ARG_SRC_1, memory(b)}, {DNNL_ARG_DST, memory(dst)}});
}

void Chain::weighted_sum(float weight_a, Value a, float weight_b, Value b, Value dst) {
  step<dnnl::sum>(
      {engine_, desc(dst), {weight_a, weight_b}, {desc(a), desc(b)}},
      {{DNNL_ARG_MULTIPLE_SRC, memory(a)}, {DNNL_ARG_MULTIPLE_SRC + 1, memory(b)}, {DNNL_ARG_DST, memory(dst)}});
}

void Chain::reorder(Value src, Value dst) {
  step<dnnl::reorder>({engine_, desc(src), engine_, desc(dst)},
                      {{DNNL_ARG_FROM, memory(src)}, {DNNL_ARG_TO, memory(dst)}});
}

}  // namespace partita::bench
