// SPDX-License-Identifier: Apache-2.0
// Sessions and the graphs they run.
#include "tests/support/session.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "src/base/check.hpp"
#include "tests/support/graph_text.hpp"

namespace partita::test {

const std::vector<NamedGraph> kSmallGraphs = {
    {"flat_loop", "%2 = ReLUBackward(%0: f32[8,16], %1: f32[8,16]); %4 = Add(%2, %3: f32[8,16])"},
    {"transposed_loop", "%1: f32[40,30] = StaticTranspose(%0: f32[30,40]) {order=[1,0]}; %2 = Exp(%1)"},
    {"pooling_backward",
     "%2 = ReLUBackward(%0: f32[2,4,4,16], %1: f32[2,4,4,16]); %3: f32[2,8,8,16] = AvgPoolBackward(%2) "
     "{src_shape=[2,8,8,16], strides=[2,2], kernel=[3,3], pads_begin=[1,1], pads_end=[0,0], exclude_pad=true, "
     "data_format=NXC}; %4 = Abs(%3)"},
    {"maximum_backward",
     "%2: f32[2,3,8,8] = MaxPoolBackward(%0: f32[2,3,8,8], %1: f32[2,3,4,4]) {strides=[2,2], kernel=[2,2], "
     "pads_begin=[0,0], pads_end=[0,0], data_format=NCX}; %3 = ReLUBackward(%0, %2)"},
    {"convolution_with_reorders",
     "%2: f32[1,16,10,10] = Convolution(%0: f32[1,16,10,10], %1: f32[16,16,3,3]) {strides=[1,1], pads_begin=[1,1], "
     "pads_end=[1,1], dilations=[1,1], data_format=NCX, weights_format=OIX}; %3 = ReLU(%2)"},
    {"softmax", "%1 = SoftMax(%0: f32[16,40]) {axis=-1}; %2: bf16 = TypeCast(%1)"},
    {"attention_in_tiles",
     "%3 = MatMul(%0: f32[2,3,150,16], %1: f32[2,3,150,16]) {transpose_b=true}; %4 = SoftMax(%3) {axis=-1}; "
     "%5 = MatMul(%4, %2: f32[2,3,150,16])"},
};

const std::vector<NamedGraph> kSharedGraphs = {
    {"loop", "%2 = ReLUBackward(%0: f32[512,512], %1: f32[512,512]); %4 = Add(%2, %3: f32[512,512])"},
    {"pooling_backward",
     "%2: f32[8,32,32,32] = AvgPoolBackward(%0: f32[8,16,16,32]) {src_shape=[8,32,32,32], strides=[2,2], kernel=[3,3], "
     "pads_begin=[1,1], pads_end=[0,0], exclude_pad=true, data_format=NXC}; %4 = Multiply(%2, %2)"},
    {"softmax", "%1 = SoftMax(%0: f32[300,500]) {axis=-1}"},
    {"convolution",
     "%2: f32[2,32,20,20] = Convolution(%0: f32[2,32,20,20], %1: f32[32,32,3,3]) {strides=[1,1], pads_begin=[1,1], "
     "pads_end=[1,1], dilations=[1,1], data_format=NCX, weights_format=OIX}; %3 = ReLU(%2)",
     {1}},
    {"convolution_backward_weights",
     "%2: f32[32,32,3,3] = ConvolutionBackwardWeights(%0: f32[8,32,20,20], %1: f32[8,32,20,20]) {strides=[1,1], "
     "pads_begin=[1,1], pads_end=[1,1], dilations=[1,1], weights_shape=[32,32,3,3], data_format=NCX, "
     "weights_format=OIX}"},
    {"products", "%2: f32[64,64] = MatMul(%0: f32[64,2000], %1: f32[2000,64]); %4 = MatMul(%2, %3: f32[64,300])"},
    {"attention_in_tiles",
     "%3 = MatMul(%0: f32[2,3,150,16], %1: f32[2,3,150,16]) {transpose_b=true}; %4 = SoftMax(%3) {axis=-1}; "
     "%5 = MatMul(%4, %2: f32[2,3,150,16])"},
};

Session::Session(std::string_view text, const engine& on, int threads, const std::vector<uint64_t>& constants)
    : stream_(on, threads), ops_(ops_of(text)) {
  for (op& o : ops_)
    for (logical_tensor& t : o.inputs)
      if (std::ranges::find(constants, t.id) != constants.end()) t.property = Property::constant;
  graph g;
  for (const op& o : ops_) {
    const Status s = g.add_op(o);
    EXPECT_TRUE(s.ok()) << s.text();
  }
  EXPECT_TRUE(g.finalize().ok());
  const auto partitions = g.get_partitions();
  EXPECT_TRUE(partitions.ok());
  for (const partition& p : *partitions) prepare(p);
  const Status first = run();
  EXPECT_TRUE(first.ok()) << first.text();
  for (const Work& work : work_)
    for (const tensor& t : work.outputs) {
      const auto* bytes = static_cast<const std::byte*>(t.data);
      expected_.emplace_back(bytes, bytes + t.desc.size_bytes());
    }
}

/// Memory for the partition's tensors. Those between partitions are the same for both.
void Session::prepare(const partition& p) {
  Work work;
  work.given = p.output_ports();
  for (logical_tensor& t : work.given)
    if (t.layout == Layout::undef) t.layout = Layout::any;
  auto compiled = p.compile(p.input_ports(), work.given, stream_.on());
  EXPECT_TRUE(compiled.ok()) << compiled.status().text();
  if (!compiled.ok()) return;
  for (const logical_tensor& t : compiled->inputs()) work.inputs.emplace_back(t, memory(t));
  for (const logical_tensor& t : compiled->outputs()) work.outputs.emplace_back(t, memory(t));
  work.compiled = std::move(compiled).value();
  work_.push_back(std::move(work));
}

void* Session::memory(const logical_tensor& t) {
  auto& bytes = storage_[t.id];
  if (!bytes.empty()) return bytes.data();
  bytes.resize(t.size_bytes() + 1);
  auto* values = reinterpret_cast<float*>(bytes.data());
  if (t.dtype == Dtype::f32)
    for (int64_t i = 0; i < t.elements(); ++i) values[i] = static_cast<float>(i * 37 % 101) / 50.0f - 1.0f;
  return bytes.data();
}

void Session::clear_results() const {
  for (const Work& work : work_)
    for (const tensor& t : work.outputs) std::memset(t.data, 0xff, t.desc.size_bytes());
}

Status Session::execute() const {
  clear_results();
  for (const Work& work : work_) PT_TRY(work.compiled.execute(stream_, work.inputs, work.outputs));
  return {};
}

Status Session::run() {
  clear_results();
  graph g;
  for (const op& o : ops_) PT_TRY(g.add_op(o));
  PT_TRY(g.finalize());
  PT_ASSIGN(const auto partitions, g.get_partitions());
  if (partitions.size() != work_.size()) return fail(Code::runtime_error, "the number of partitions has changed");
  for (size_t i = 0; i < partitions.size(); ++i) {
    PT_ASSIGN(const auto compiled, partitions[i].compile(partitions[i].input_ports(), work_[i].given, stream_.on()));
    PT_TRY(compiled.execute(stream_, work_[i].inputs, work_[i].outputs));
  }
  return {};
}

bool Session::same_results() const {
  size_t i = 0;
  for (const Work& work : work_)
    for (const tensor& t : work.outputs)
      if (std::memcmp(t.data, expected_[i++].data(), t.desc.size_bytes()) != 0) return false;
  return true;
}

bool Session::close_results() const {
  size_t i = 0;
  for (const Work& work : work_)
    for (const tensor& t : work.outputs) {
      const auto* got = static_cast<const float*>(t.data);
      const auto* expected = reinterpret_cast<const float*>(expected_[i++].data());
      if (t.desc.dtype != Dtype::f32) {
        if (std::memcmp(got, expected, t.desc.size_bytes()) != 0) return false;
        continue;
      }
      const int64_t n = t.desc.elements();
      float most = 0;
      for (int64_t k = 0; k < n; ++k) most = std::max(most, std::abs(expected[k]));
      for (int64_t k = 0; k < n; ++k)
        if (!(std::abs(got[k] - expected[k]) <= 1e-4f * most)) return false;
    }
  return true;
}

}  // namespace partita::test
