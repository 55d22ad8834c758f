// SPDX-License-Identifier: Apache-2.0
// --verify takes what small errors inside a partition lead to, and nothing else.
#include "src/harness/verify.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "tests/support/graph_text.hpp"
#include "tests/support/programs.hpp"

namespace partita::test {
namespace {

/// A partition with inputs and the results of its references, which a test may change.
struct Checked {
  Partition partition;
  std::vector<logical_tensor> in, out;
  Tensors tensors;

  Checked(std::string_view text, const std::map<uint64_t, std::function<double(int64_t)>>& inputs)
      : partition(one_partition(final_graph_of(text))), in(partition.inputs), out(partition.outputs) {
    for (const logical_tensor& port : in) {
      Storage& made = tensors[port.id] = Storage(port);
      for (int64_t i = 0; i < port.elements(); ++i)
        store_from_double(made.data.get(), port.dtype, i, inputs.at(port.id)(i));
    }
    auto results = run_reference(partition, given(), tensors);
    EXPECT_TRUE(results.ok()) << results.status().text();
    for (auto& [id, storage] : *results) tensors[id] = std::move(storage);
  }
  Given given() const { return {in, out, {}}; }
  double get(uint64_t id, int64_t i) const {
    return load_as_double(tensors.at(id).data.get(), tensors.at(id).desc.dtype, i);
  }
  void set(uint64_t id, int64_t i, double x) {
    store_from_double(tensors.at(id).data.get(), tensors.at(id).desc.dtype, i, x);
  }
  std::string mismatch() const {
    const auto verdict = verify_results(partition, given(), tensors);
    EXPECT_TRUE(verdict.ok()) << verdict.status().text();
    return verdict->mismatch;
  }
};

/// x * 1 is quantized in the middle, in steps of 0.5: element 3 lies in the middle between two of them.
Checked quantized_in_the_middle() {
  return Checked(
      "%2: f32[8] = Multiply(%0: f32[8], %1: f32[1]); %3: s8[8] = Quantize(%2) {scales=[0.5]}; "
      "%4: f32[8] = Dequantize(%3) {scales=[0.5]}; %6: f32[8] = Multiply(%4, %5: f32[8])",
      {{0, [](int64_t i) { return i == 3 ? 1.25 : 0.1 * static_cast<double>(i); }},
       {1, [](int64_t) { return 1; }},
       {5, [](int64_t i) { return i % 2 ? 3 : -3; }}});
}

TEST(verify, a_quantized_value_may_be_rounded_either_way_in_the_middle_of_a_graph) {
  Checked run = quantized_in_the_middle();
  EXPECT_EQ(run.mismatch(), "");
  ASSERT_EQ(run.get(6, 3), 3) << "1.25 is 2.5 steps: the even two are 1, three times";
  run.set(6, 3, 4.5);
  EXPECT_EQ(run.mismatch(), "") << "or three steps";
}

TEST(verify, other_errors_of_quantized_graphs_are_found) {
  for (const double wrong : {7.5, 6.5, -3.0, 0.0}) {
    Checked run = quantized_in_the_middle();
    run.set(6, 3, wrong);
    EXPECT_NE(run.mismatch(), "") << wrong;
  }
  for (int64_t i = 0; i < 8; ++i) {
    if (i == 3) continue;
    Checked run = quantized_in_the_middle();
    run.set(6, i, run.get(6, i) + 1.5);
    EXPECT_NE(run.mismatch(), "") << "element " << i << " is not in the middle: a whole step is wrong";
  }
  Checked forgotten = quantized_in_the_middle();
  for (int64_t i = 0; i < 8; ++i)
    forgotten.set(6, i, (i == 3 ? 1.25 : 0.1 * static_cast<double>(i)) * forgotten.get(5, i));
  EXPECT_NE(forgotten.mismatch(), "") << "not quantized at all";
}

TEST(verify, a_step_travels_on_through_products) {
  const auto made = [] {
    return Checked(
        "%2: f32[4,16] = Multiply(%0: f32[4,16], %1: f32[1]); %3: u8[4,16] = Quantize(%2) {scales=[0.25], zps=[9]}; "
        "%4: f32[4,16] = Dequantize(%3) {scales=[0.25], zps=[9]}; %6: f32[4,3] = MatMul(%4, %5: f32[16,3])",
        {{0, [](int64_t i) { return i == 20 ? 0.625 : 0.02 * static_cast<double>(i % 7); }},
         {1, [](int64_t) { return 1; }},
         {5, [](int64_t i) { return i % 3 == 0   ? 8
                                    : i % 3 == 1 ? -8
                                                 : 0; }}});
  };
  Checked flipped = made();
  flipped.set(6, 3, flipped.get(6, 3) + 2);
  flipped.set(6, 4, flipped.get(6, 4) - 2);
  EXPECT_EQ(flipped.mismatch(), "") << "0.625 is 2.5 steps, and its row is multiplied by 8, -8 and 0";
  Checked wrong = made();
  wrong.set(6, 5, 2);
  EXPECT_NE(wrong.mismatch(), "") << "nothing leads from the step to the third column";
  Checked elsewhere = made();
  elsewhere.set(6, 0, elsewhere.get(6, 0) + 2);
  EXPECT_NE(elsewhere.mismatch(), "") << "nor to another row";
}

/// SoftMax depends on no constant that is added to its source, so the gradients of a row add up to zero: what is left
/// is made of roundings.
Checked zero_gradients() {
  const auto weight = [](int64_t i) { return 2 + std::cos(static_cast<double>(i)); };
  const auto probability = [=](int64_t i) {
    double sum = 0;
    for (int64_t k = i / 64 * 64; k < i / 64 * 64 + 64; ++k) sum += weight(k);
    return weight(i) / sum;
  };
  return Checked(
      "%2: f32[4,64] = SoftMaxBackward(%0: f32[4,64], %1: f32[4,64]) {axis=1}; "
      "%3: f32[4] = ReduceSum(%2) {axes=[1], keep_dims=false}",
      {{0, [](int64_t i) { return std::sin(static_cast<double>(i)); }}, {1, probability}});
}

TEST(verify, of_numbers_that_cancel_errors_remain) {
  Checked run = zero_gradients();
  for (int64_t i = 0; i < 4; ++i) {
    ASSERT_LT(std::fabs(run.get(3, i)), 1e-7);
    run.set(3, i, run.get(3, i) + 1e-7);
  }
  EXPECT_EQ(run.mismatch(), "");
  Checked wrong = zero_gradients();
  wrong.set(3, 1, 0.01);
  EXPECT_NE(wrong.mismatch(), "") << "as much as a gradient or two";
}

TEST(verify, a_sum_that_cancels_in_its_own_operator_is_measured_by_its_terms) {
  const auto made = [] {
    return Checked("%1: f32[4] = ReduceSum(%0: f32[4,64]) {axes=[1], keep_dims=false}",
                   {{0, [](int64_t i) { return (i % 2 ? -1 : 1) * (1 + static_cast<double>(i / 2 % 5)); }}});
  };
  Checked run = made();
  for (int64_t i = 0; i < 4; ++i) {
    ASSERT_EQ(run.get(1, i), 0);
    run.set(1, i, 3e-6);
  }
  EXPECT_EQ(run.mismatch(), "");
  Checked wrong = made();
  wrong.set(1, 2, 1);
  EXPECT_NE(wrong.mismatch(), "") << "a term was left out";
}

}  // namespace
}  // namespace partita::test
