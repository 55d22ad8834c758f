// SPDX-License-Identifier: Apache-2.0
// Chain: the same work as a case's graph, written by hand as oneDNN primitives, one for each operator.
#pragma once

#include <dnnl.hpp>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/bench/net.hpp"

namespace partita::bench {

/// Builds primitives on tensors as they lie in memory and runs them in order. What oneDNN does not implement here
/// throws dnnl::error while the chain is built. Element-wise primitives may work in place, as a careful user would have
/// them do.
class Chain {
 public:
  /// A tensor of the case; the chain does not own its memory.
  struct Place {
    Shape shape;
    void* data;
  };

  Chain(Variant variant, std::span<const Place> inputs, std::span<const Place> outputs);

  Value in(int i) const { return i; }
  Value out(int i) const { return inputs_ + i; }
  /// Memory between two primitives, of the variant's type or of `dtype`.
  Value temporary(const Dims& dims, Dtype dtype = Dtype::undef);
  /// The tensor with its axes permuted: axis i of the result is axis order[i].
  Value permuted(Value value, const std::vector<int>& order);
  /// The tensor as one of the given dims; without gaps.
  Value reshaped(Value value, const dnnl::memory::dims& dims);

  void pool(dnnl::algorithm algorithm, Value src, const Window& window, Value dst);
  void average_pool(Value src, const Window& window, Value dst) { pool(average_of(window), src, window, dst); }
  /// With the forward pass that tells where the maxima are: the graph's operator has no workspace from outside either.
  void max_pool_backward(Value src, Value diff_dst, const Window& window, Value diff_src);
  void average_pool_backward(Value diff_dst, const Window& window, Value diff_src);

  void eltwise(dnnl::algorithm algorithm, Value src, Value dst, float alpha = 0, float beta = 0);
  void eltwise_backward(dnnl::algorithm algorithm, Value src, Value diff_dst, Value diff_src);
  /// For algorithms that work from the forward result.
  void eltwise_backward_from_dst(dnnl::algorithm algorithm, Value dst, Value diff_dst, Value diff_src);
  void relu_backward(Value dst, Value diff_dst, Value diff_src) {
    eltwise_backward_from_dst(dnnl::algorithm::eltwise_relu_use_dst_for_bwd, dst, diff_dst, diff_src);
  }
  void binary(dnnl::algorithm algorithm, Value a, Value b, Value dst);
  void add(Value a, Value b, Value dst) { binary(dnnl::algorithm::binary_add, a, b, dst); }
  void multiply(Value a, Value b, Value dst) { binary(dnnl::algorithm::binary_mul, a, b, dst); }
  /// dst = weight_a * a + weight_b * b
  void weighted_sum(float weight_a, Value a, float weight_b, Value b, Value dst);
  /// Copies into the type and layout of `dst`.
  void reorder(Value src, Value dst);

  void reduce(dnnl::algorithm algorithm, Value src, Value dst);
  void resample(dnnl::algorithm algorithm, Value src, Value dst);
  void resample_backward(dnnl::algorithm algorithm, Value diff_dst, Value diff_src);

  /// Over the last axis.
  void softmax(dnnl::algorithm algorithm, Value src, Value dst);
  void softmax_backward(dnnl::algorithm algorithm, Value diff_dst, Value dst, Value diff_src);

  struct Affine {
    Value scale, shift;
  };
  struct Statistics {
    Value mean, variance;
  };
  void layer_norm(Value src, Affine affine, Value dst, Statistics statistics, float epsilon);
  void layer_norm_backward(Value src, Value diff_dst, Statistics statistics, Affine affine, Value diff_src,
                           Affine diffs, float epsilon);
  void batch_norm(Value src, Affine affine, Value dst, Statistics statistics, float epsilon);
  void batch_norm_backward(Value src, Value diff_dst, Statistics statistics, Value scale, Value diff_src, Affine diffs,
                           float epsilon);

  /// Throws dnnl::error.
  void run();
  /// What oneDNN calls the implementations, in order.
  const std::vector<std::string>& kernels() const { return kernels_; }

 private:
  using Arguments = std::unordered_map<int, dnnl::memory>;
  struct Step {
    dnnl::primitive primitive;
    Arguments arguments;
  };

  static dnnl::algorithm average_of(const Window& window);
  dnnl::memory::desc desc(Value value) const { return memories_[static_cast<size_t>(value)].get_desc(); }
  dnnl::memory& memory(Value value) { return memories_[static_cast<size_t>(value)]; }
  Value add_memory(const dnnl::memory::desc& desc, void* data);
  template <class Primitive>
  void step(const typename Primitive::primitive_desc& desc, Arguments arguments) {
    kernels_.emplace_back(desc.impl_info_str());
    steps_.push_back({Primitive(desc), std::move(arguments)});
  }
  dnnl::pooling_forward::primitive_desc pool_desc(dnnl::algorithm algorithm, const dnnl::memory::desc& wide,
                                                  const Window& window, const dnnl::memory::desc& narrow,
                                                  dnnl::prop_kind kind) const;
  void pool_backward(dnnl::algorithm algorithm, const dnnl::pooling_forward::primitive_desc& forward, Value diff_dst,
                     const Window& window, Value diff_src, Arguments more);
  void eltwise_backward_step(dnnl::algorithm algorithm, int argument, Value data, Value diff_dst, Value diff_src);

  Variant variant_;
  int inputs_;
  dnnl::engine engine_;
  dnnl::stream stream_;
  std::vector<dnnl::memory> memories_;
  std::vector<Memory> owned_;
  std::vector<Step> steps_;
  std::vector<std::string> kernels_;
};

/// The descriptor of a tensor without gaps.
dnnl::memory::desc desc_of(const Shape& shape);

}  // namespace partita::bench
