// SPDX-License-Identifier: Apache-2.0
// --verify takes what small errors inside a partition lead to, and nothing else.
#include "src/harness/verify.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "src/base/text.hpp"
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

/// Element 0 of a product's source lies in the middle between two integers or not; 64 others lie a little below one,
/// and would lift the result far beyond 255, where it is cut off, if errors were large enough to move half of them.
Checked cut_off_behind_a_step(double first) {
  return Checked(
      "%2: f32[1,66] = Multiply(%0: f32[1,66], %1: f32[1]); %3: u8[1,66] = Quantize(%2) {scales=[0.5]}; "
      "%4: f32[1,66] = Dequantize(%3) {scales=[0.5]}; %6: f32[1,1] = MatMul(%4, %5: f32[66,1]); "
      "%7: u8[1,1] = Quantize(%6) {scales=[0.5]}",
      {{0, [=](int64_t i) { return i == 0    ? first
                                   : i == 65 ? 1
                                             : 1.25 - 1e-4; }},
       {1, [](int64_t) { return 1; }},
       {5, [](int64_t i) { return i == 0    ? -3
                                  : i == 65 ? 66.5
                                            : 1; }}});
}

TEST(verify, a_step_is_followed_where_large_errors_would_hide_it) {
  Checked run = cut_off_behind_a_step(1.25);
  ASSERT_EQ(run.get(7, 0), 255);
  run.set(7, 0, 252);
  EXPECT_EQ(run.mismatch(), "") << "1.25 is 2.5 steps, and is multiplied by -3";
  for (const double wrong : {246.0, 122.0, 0.0}) {
    run.set(7, 0, wrong);
    EXPECT_NE(run.mismatch(), "") << wrong;
  }
  Checked elsewhere = cut_off_behind_a_step(1.2);
  ASSERT_EQ(elsewhere.get(7, 0), 255);
  elsewhere.set(7, 0, 252);
  EXPECT_NE(elsewhere.mismatch(), "") << "nothing lies in the middle: no error leads there";
}

/// Three products whose results are quantized; `terms` of the 64 of each sum of the last one are there.
Checked quantized_layers(int64_t terms) {
  const auto noise = [](int64_t i) {
    const double x = 43758.5453 * std::sin(12.9898 * static_cast<double>(i));
    return 2 * (x - std::floor(x)) - 1;
  };
  const auto layer = [](int src, int first) {
    return str("; %", first, ": f32[8,64] = MatMul(%", src, ", %", first + 5, ": f32[64,64]); %", first + 1,
               ": u8[8,64] = Quantize(%", first, ") {scales=[0.05], zps=[100]}; %", first + 2,
               ": f32[8,64] = Dequantize(%", first + 1, ") {scales=[0.05], zps=[100]}");
  };
  return Checked(str("%1: f32[8,64] = ReLU(%0: f32[8,64])", layer(1, 10), layer(12, 20), layer(22, 30)),
                 {{0, noise},
                  {15, [=](int64_t i) { return 0.3 * noise(i + 7); }},
                  {25, [=](int64_t i) { return 0.3 * noise(i + 11); }},
                  {35, [=](int64_t i) { return i / 64 < terms ? 0.3 * noise(i + 13) : 0; }}});
}

TEST(verify, terms_that_are_left_out_are_found_behind_quantized_layers) {
  Checked run = quantized_layers(64);
  EXPECT_EQ(run.mismatch(), "");
  for (int64_t terms : {63, 32}) {
    Checked wrong = quantized_layers(terms);
    run.tensors[32] = std::move(wrong.tensors[32]);
    EXPECT_NE(run.mismatch(), "") << terms;
  }
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
