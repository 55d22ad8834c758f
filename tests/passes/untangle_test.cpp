// SPDX-License-Identifier: Apache-2.0
// Steps whose tensors lie in different orders: which are copied, and that results stay the same.
#include "passes/optimize/untangle.hpp"

#include <gtest/gtest.h>

#include "passes/optimize/fuse_loops.hpp"
#include "passes/plan.hpp"
#include "passes/select.hpp"
#include "src/base/cpu.hpp"
#include "src/base/text.hpp"
#include "src/harness/compare.hpp"
#include "tests/support/graph_text.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/programs.hpp"

namespace partita::test {
namespace {

const Dims kSpace = {2, 16, 5, 7}, kChannelsLast = {560, 1, 112, 16}, kRowMajor = {560, 35, 7, 1};

/// Inputs that lie channels last; all others are row-major.
bool is_turned(uint64_t id) { return id == 0 || id == 7; }

/// The graph's program, fused for this machine, before and behind the pass.
struct Made {
  graph g;
  Partition partition;
  Ports ports;
  Program before, after;
};

Made made(const std::string& text) {
  Made m{final_graph_of(text), {}, {}, {}, {}};
  m.partition = one_partition(m.g);
  m.ports = ports_of(m.partition);
  for (logical_tensor& t : m.ports.inputs)
    if (is_turned(t.id)) t.strides = kChannelsLast;
  const Target target{.isa = machine_isa()};
  m.before = lowered(m.partition, m.ports);
  fuse_loops(m.before, target);
  m.after = lowered(m.partition, m.ports);
  fuse_loops(m.after, target);
  untangle(m.after, target);
  return m;
}

/// A program of one step whose result lies as `strides` say.
Made made_into(const Dims& strides, const std::string& text) {
  Made m = made(text);
  m.ports.outputs[0].strides = strides;
  m.before = lowered(m.partition, m.ports);
  m.after = lowered(m.partition, m.ports);
  untangle(m.after, {.isa = machine_isa()});
  return m;
}

Tensors results(Made& m, Program& program) {
  Tensors inputs = input_data(m.g, 7);
  for (const logical_tensor& t : m.ports.inputs) {
    if (t.strides == inputs.at(t.id).desc.strides) continue;
    Storage turned(t);
    const Storage& dense = inputs.at(t.id);
    for (int64_t i = 0; i < dense.desc.elements(); ++i) {
      int64_t at = 0, left = i;
      for (int d = t.rank() - 1; d >= 0; left /= t.dims[d--]) at += left % t.dims[d] * t.strides[d];
      static_cast<float*>(turned.data.get())[at] = static_cast<const float*>(dense.data.get())[i];
    }
    inputs[t.id] = std::move(turned);
  }
  EXPECT_TRUE(select_kernels(program, {.isa = machine_isa()}).ok());
  plan_memory(program);
  return executed(program, inputs);
}

void expect_same_results(Made& m) {
  const Tensors expected = results(m, m.before), got = results(m, m.after);
  for (const auto& [id, storage] : expected) EXPECT_EQ(compare(got.at(id), storage, 1e-5).first, "") << id;
}

/// Not to a primitive either, which knows no maximum that is NaN and reads f32 copies.
void expect_generated(const Program& program) {
  if (!generates_code()) return;
  for (const Step& step : program.steps) EXPECT_NE(step.picked.kernel->isa, Isa::any) << step.picked.kernel->name;
}

/// The step and its copies, `steps` in all where code is generated.
void expect_straightened(Made& m, size_t steps) {
  EXPECT_EQ(m.after.steps.size(), generates_code() ? steps : 1u);
  expect_same_results(m);
  expect_generated(m.after);
}

TEST(untangle, copies_what_a_folding_loop_cannot_read_across) {
  Made m = made(
      "%2 = Multiply(%0: f32[2,16,5,7], %1: f32[2,16,5,7]); %3: f32[1,16,1,1] = ReduceSum(%2) "
      "{axes=[0,2,3], keep_dims=true}");
  EXPECT_EQ(m.after.steps.size(), m.before.steps.size() + (generates_code() ? 1 : 0));
  expect_same_results(m);
}

/// The sums are made in the order that the source has, and copied into theirs.
TEST(untangle, copies_what_a_folding_loop_cannot_write_across) {
  for (const char* type : {"f32", "bf16"}) {
    Made m = made(str("%1 = StaticTranspose(%9: ", type, "[2,16,5,7]) {order=[0,2,3,1]}; %2: ", type,
                      "[2,7,16] = ReduceMax(%1) {axes=[1], keep_dims=false}"));
    EXPECT_EQ(m.after.steps.size(), m.before.steps.size() + (generates_code() ? 1 : 0)) << type;
    expect_same_results(m);
    expect_generated(m.after);
  }
}

/// The rarer order is that of fewer bytes: that of input 1.
TEST(untangle, reads_one_copy_twice) {
  Made m = made(
      "%2 = Multiply(%0: f32[2,16,5,7], %1: f32[2,16,5,7]); %8 = Add(%2, %7: f32[2,16,5,7]); "
      "%3: f32[1,16,1,1] = ReduceSum(%8) {axes=[0,2,3], keep_dims=true}; %4 = Subtract(%0, %3); %5 = Multiply(%4, %1)");
  const auto reads = [&](const Program& p) {
    const auto input = std::ranges::find(p.buffers, uint64_t{1}, &partita::Buffer::tensor) - p.buffers.begin();
    return std::ranges::count_if(p.steps, [&](const Step& s) { return s.reads(static_cast<int>(input)); });
  };
  EXPECT_EQ(reads(m.before), 2);
  EXPECT_EQ(reads(m.after), generates_code() ? 1 : 2);
  expect_same_results(m);
}

TEST(untangle, leaves_alone_what_kernels_can_read_across) {
  Made m = made("%2 = Multiply(%0: f32[2,16,5,7], %1: f32[2,16,5,7])");
  EXPECT_EQ(m.after.steps.size(), 1u);
  expect_same_results(m);
}

TEST(untangle, leaves_no_pooling_between_two_orders_to_a_slow_kernel) {
  Made m = made(
      "%1: f32 = AvgPool(%0: f32[2,16,5,7]) {strides=[1,1], kernel=[3,3], pads_begin=[1,1], pads_end=[1,1], "
      "exclude_pad=true, data_format=NCX}");
  EXPECT_EQ(m.after.steps.size(), 1u);
  m.ports.outputs[0] = logical_tensor(1, Dtype::f32, kSpace);
  m.before = lowered(m.partition, m.ports);
  m.after = lowered(m.partition, m.ports);
  untangle(m.after, {.isa = machine_isa()});
  expect_same_results(m);
  for (const Step& step : m.after.steps) EXPECT_FALSE(step.picked.kernel->slow && generates_code());
}

TEST(untangle, leaves_no_maximum_between_two_orders_to_a_primitive) {
  Made m = made_into(
      kRowMajor,
      "%1: f32[2,16,5,7] = MaxPool(%0: f32[2,16,5,7]) {strides=[1,1], kernel=[3,3], pads_begin=[1,1], pads_end=[1,1], "
      "data_format=NCX}");
  expect_straightened(m, 2);
}

/// As behind the gradient of a convolution, which lies channels last beside what the caller has.
TEST(untangle, copies_what_rows_cannot_read_across) {
  Made m = made_into(kRowMajor, "%3 = SoftMaxBackward(%0: f32[2,16,5,7], %1: f32[2,16,5,7]) {axis=1}");
  expect_straightened(m, 2);
}

/// What is normalised is no run of channels-last images beside scales that are row-major.
TEST(untangle, takes_the_order_of_the_axes_where_rows_lie_in_no_run) {
  Made m = made_into(
      kChannelsLast,
      "%1: f32[2,16,5,7] = LayerNorm(%0: f32[2,16,5,7], %2: f32[16,5,7], %3: f32[16,5,7]) {begin_norm_axis=1, "
      "keep_stats=false}");
  expect_straightened(m, 3);
}

TEST(untangle, leaves_alone_rows_of_one_order) {
  Made m = made_into(kChannelsLast, "%1: f32[2,16,5,7] = SoftMax(%0: f32[2,16,5,7]) {axis=2}");
  EXPECT_EQ(m.after.steps.size(), 1u);
}

/// Most bytes lie channel-last, which is not the pooling's data format: there its kernels are slow, too.
TEST(untangle, takes_another_order_where_that_of_most_bytes_does_not_help) {
  Made m = made_into(
      kRowMajor,
      "%2: f32[2,16,5,7] = MaxPoolBackward(%0: f32[2,16,5,7], %7: f32[2,16,5,7]) {strides=[1,1], kernel=[3,3], "
      "pads_begin=[1,1], pads_end=[1,1], data_format=NCX}");
  expect_straightened(m, 3);
}

/// All tensors lie in orders that are slow to pool in, and one row of gradients says nothing of rows.
TEST(untangle, takes_the_order_of_the_data_format_where_no_tensor_lies_in_it) {
  Made m = made(
      "%2: f32[2,16,5,7] = MaxPoolBackward(%1: f32[2,16,5,7], %3: f32[2,16,1,6]) {strides=[1,1], kernel=[5,2], "
      "pads_begin=[0,0], pads_end=[0,0], data_format=NCX}");
  const Dims rows_first{1, 14, 224, 2};
  for (logical_tensor& t : m.ports.inputs) t.strides = t.id == 1 ? rows_first : Dims{1, 12, 192, 2};
  m.ports.outputs[0].strides = rows_first;
  m.before = lowered(m.partition, m.ports);
  m.after = lowered(m.partition, m.ports);
  untangle(m.after, {.isa = machine_isa()});
  expect_straightened(m, 4);
}

/// Every second element along x: generated code reads neighbours.
TEST(untangle, copies_what_lies_apart_before_a_pooling) {
  Made m = made(
      "%2: f32[2,16,5,7] = MaxPoolBackward(%1: f32[2,16,5,7], %3: f32[2,16,4,6]) {strides=[1,1], kernel=[2,2], "
      "pads_begin=[0,0], pads_end=[0,0], data_format=NCX}");
  const auto is_source = [](const logical_tensor& t) { return t.id == 1; };
  std::ranges::find_if(m.ports.inputs, is_source)->strides = {1120, 70, 14, 2};
  const Target target{.isa = machine_isa()};
  Program program = lowered(m.partition, m.ports);
  untangle(program, target);
  EXPECT_EQ(program.steps.size(), generates_code() ? 2u : 1u);
  EXPECT_EQ(program.steps.back().problem.in[0].strides,
            (generates_code() ? Dims{560, 35, 7, 1} : Dims{1120, 70, 14, 2}));
  ASSERT_TRUE(select_kernels(program, target).ok());
  for (const Step& step : program.steps) EXPECT_FALSE(step.picked.kernel->slow && generates_code());
}

/// Two axes matter in each tensor, but not the same two: only the gradients, which generated code is slow to read, are
/// copied, in their own order.
TEST(untangle, leaves_alone_what_has_other_axes) {
  Made m = made(
      "%1: f32[2,1,2,1,1] = AvgPoolBackward(%5: f32[2,1,1,1,2]) {src_shape=[2,1,2,1,1], strides=[5,4,2], "
      "kernel=[1,1,4], pads_begin=[0,0,2], pads_end=[0,0,2], exclude_pad=false, rounding_type=ceil, "
      "divisor_override=7, data_format=NCX}");
  m.ports.inputs[0].strides = {5, 14, 16, 12, 2};
  m.before = lowered(m.partition, m.ports);
  m.after = lowered(m.partition, m.ports);
  untangle(m.after, {.isa = machine_isa()});
  ASSERT_EQ(m.after.steps.size(), generates_code() ? 2u : 1u);
  const Step &before = m.before.steps.back(), &after = m.after.steps.back();
  EXPECT_EQ(after.problem.out, before.problem.out);
  EXPECT_EQ(after.problem.in[0].strides[4], generates_code() ? 1 : 2);
}

}  // namespace
}  // namespace partita::test
