// SPDX-License-Identifier: Apache-2.0
// What the oneDNN rows share: precision modes, use from several threads, and problems on which oneDNN 3.7 itself fails.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "kernels/onednn/rows.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/random_windows.hpp"

namespace partita::test {
namespace {

Problem matmul(Dtype dtype, const TensorDesc& a, const TensorDesc& b, const TensorDesc& dst) {
  Problem problem = problem_for(StepKind::matmul, OpKind::MatMul);
  problem.in = {a, b};
  problem.out = {dst};
  for (TensorDesc* tensor : {&problem.in[0], &problem.in[1], &problem.out[0]}) tensor->dtype = dtype;
  return problem;
}

Problem convolution(Dtype dtype, const Geometry& geometry, int64_t groups, int64_t inputs, int64_t outputs) {
  Problem problem = problem_for(StepKind::convolution, OpKind::Convolution);
  problem.attrs = window_attrs(geometry, /*channel_last=*/false);
  problem.attrs.set(Attr::groups, groups);
  problem.attrs.set(Attr::weights_format, std::string("OIX"));
  Dims weights{outputs, inputs / groups};
  for (int64_t size : geometry.kernel) weights.push_back(size);
  problem.in = {dense_desc(dtype, activation_dims(2, inputs, geometry.wide, false)), dense_desc(dtype, weights)};
  problem.out = {dense_desc(dtype, activation_dims(2, outputs, geometry.narrow, false))};
  return problem;
}

TEST(onednn_run, lower_precision_modes_stay_within_their_precision) {
  Random random(1);
  for (const FpMath mode : {FpMath::bf16, FpMath::f16, FpMath::any, FpMath::tf32}) {
    const Target target{.fpmath = mode};
    const TensorDesc square = dense_desc(Dtype::f32, {16, 16});
    expect_rows_agree(matmul(Dtype::f32, square, square, square), random,
                      {.tolerance_factor = 1000, .target = target});
    const Geometry same{.wide = {6, 6}, .narrow = {6, 6}, .kernel = {3, 3}, .strides = {1, 1}, .dilations = {1, 1},
                        .pads_begin = {1, 1}, .pads_end = {1, 1}, .leftover = {0, 0}};
    expect_rows_agree(convolution(Dtype::f32, same, 1, 16, 16), random, {.tolerance_factor = 1000, .target = target});
  }
}

/// A product of f16 divided by an operand.
Problem quotient(const TensorDesc& divisor) {
  const TensorDesc square = dense_desc(Dtype::f16, {64, 64});
  Problem problem = matmul(Dtype::f16, square, square, square);
  problem.ports_in = 2;
  problem.in.push_back(divisor);
  ExprBuilder b(problem.back);
  b.store(0, b.div(b.skeleton(), b.load(2)));
  return problem;
}

TEST(onednn_run, operands_that_repeat_a_number_are_copied_once) {
  const auto rows = kernels_for(StepKind::matmul);
  const auto row = std::ranges::find(rows, std::string_view("matmul_any_onednn_f32"), &Kernel::name);
  ASSERT_NE(row, rows.end());
  TensorDesc matrix = dense_desc(Dtype::f16, {64, 64}), number = matrix;
  number.strides = {0, 0};
  Random random(3);
  std::vector<Buffer> in;
  for (int factor = 0; factor < 2; ++factor) in.push_back(random_buffer(matrix, random));
  std::vector<std::vector<Buffer>> results;
  std::vector<size_t> bytes;
  for (const TensorDesc& divisor : {matrix, number}) {
    const Problem problem = quotient(divisor);
    in.push_back(random_buffer(divisor, random, {1.5, 1.5}));
    results.push_back(run_kernel(*row, problem, in, 2));
    bytes.push_back(row->make(problem, {})->scratch_bytes);
    in.pop_back();
  }
  EXPECT_EQ(byte_difference(results[1], results[0]), "");
  EXPECT_LE(bytes[1] + 64 * 63 * sizeof(float), bytes[0]);
}

/// Two scalings in one would be infinite, and 0 times that no number.
TEST(onednn_run, scalings_are_not_joined_where_their_product_overflows) {
  const TensorDesc square = dense_desc(Dtype::f32, {8, 8});
  Problem problem = matmul(Dtype::f32, square, square, square);
  ExprBuilder b(problem.back);
  b.store(0, b.mul(b.mul(b.skeleton(), b.constant(1e30f)), b.constant(1e30f)));
  Random random(5);
  std::vector<Buffer> in;
  in.push_back(random_buffer(square, random, {0, 0}));
  in.push_back(random_buffer(square, random));
  const Buffer zeros = random_buffer(square, random, {0, 0});
  for (const Kernel& row : kernels_for(StepKind::matmul)) {
    if (row.refuse(problem, {}) != nullptr) continue;
    EXPECT_EQ(difference(run_kernel(row, problem, in, 1)[0], zeros, 0), "") << row.name;
  }
}

TEST(onednn_run, what_follows_a_product_never_makes_it_plain_loops) {
  const auto rows = kernels_for(StepKind::matmul);
  const auto row = std::ranges::find(rows, std::string_view("matmul_any_onednn_f32"), &Kernel::name);
  ASSERT_NE(row, rows.end());
  // exp(product * scale + mask - maximum), as in the gradient of attention
  const auto scores_of = [](Dtype dtype) {
    const TensorDesc square = dense_desc(dtype, {64, 64});
    TensorDesc number = square, maximum = square;
    number.strides = {0, 0};
    maximum.strides = {1, 0};
    Problem problem = matmul(dtype, square, square, square);
    problem.ports_in = 2;
    problem.in.insert(problem.in.end(), {number, square, maximum});
    ExprBuilder b(problem.back);
    const auto scores = b.add(b.mul(b.skeleton(), b.load(2)), b.load(3));
    b.store(0, b.exp(b.sub(scores, b.load(4))));
    return problem;
  };
  if (row->refuse(scores_of(Dtype::f16), {})) return;
  onednn::PrimitiveRun run;
  ASSERT_EQ(onednn::plan_matmul(scores_of(Dtype::f32), {}, run), nullptr);
  EXPECT_FALSE(run.slow());
}

/// Two types, of which the second one's matrix is kept in the primitive's order.
TEST(onednn_run, long_sums_over_packed_matrices_are_right) {
  Random random(4);
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16})
    for (const int64_t length : {512, 513, 1000}) {
      Problem problem = matmul(Dtype::f32, dense_desc(Dtype::f32, {32, length}), dense_desc(dtype, {length, 64}),
                               dense_desc(Dtype::f32, {32, 64}));
      problem.in[1].dtype = dtype;
      problem.constant_ports = 2;
      expect_rows_agree(problem, random, {.tolerance_factor = 16, .at_least = 0, .target = {.keeps_packs = true}});
    }
}

TEST(onednn_run, one_kernel_serves_several_threads_at_once) {
  Random random(2);
  const Problem problem = matmul(Dtype::f16, dense_desc(Dtype::f16, {24, 32}), dense_desc(Dtype::f16, {32, 40}),
                                 dense_desc(Dtype::f16, {24, 40}));
  std::vector<std::thread> threads;
  const Result<Picked> picked = pick_kernel(problem, {});
  ASSERT_TRUE(picked.ok());
  const auto run = picked->kernel->make(problem, {});
  ASSERT_TRUE(run.ok()) << run.status().text();
  const Buffer a = random_buffer(problem.in[0], random), b = random_buffer(problem.in[1], random);
  const auto compute = [&](Buffer& dst) {
    GuardedMemory scratch((run->scratch_bytes + 63) / 64 * 64, 0);
    const void* in[] = {a.data(), b.data()};
    void* out[] = {dst.data()};
    return run->call({in, out, scratch.data()});
  };
  Buffer expected = nan_buffer(problem.out[0]);
  ASSERT_TRUE(compute(expected).ok());
  std::vector<Buffer> results;
  for (int i = 0; i < 4; ++i) results.push_back(nan_buffer(problem.out[0]));
  for (Buffer& result : results) {
    threads.emplace_back([&] {
      for (int repeat = 0; repeat < 20; ++repeat) EXPECT_TRUE(compute(result).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Buffer& result : results) EXPECT_EQ(difference(result, expected, 0), "");
}

TEST(onednn_run, a_batch_axis_of_size_1_beside_shared_weights_is_merged) {
  Random random(3);
  expect_rows_agree(matmul(Dtype::f32, dense_desc(Dtype::f32, {3, 1, 7, 13}), dense_desc(Dtype::f32, {1, 1, 13, 4}),
                           dense_desc(Dtype::f32, {3, 1, 7, 4})), random);
}

TEST(onednn_run, matrices_that_interleave_are_copied) {
  Random random(4);
  TensorDesc b = dense_desc(Dtype::f32, {3, 17, 10});
  b.strides = {10, 30, 1};
  const Problem problem = matmul(Dtype::f32, dense_desc(Dtype::f32, {3, 4, 17}), b, dense_desc(Dtype::f32, {3, 4, 10}));
  expect_rows_agree(problem, random);
  const Result<Picked> picked = pick_kernel(problem, {});
  ASSERT_TRUE(picked.ok());
  EXPECT_STREQ(picked->kernel->name, "matmul_float_onednn");  // in their own type
}

TEST(onednn_run, groups_of_one_input_channel_are_computed_right_in_bf16) {
  Random random(5);
  const std::vector<int64_t> ones = {1, 1, 1};
  const Geometry geometry{.wide = {1, 9, 4}, .narrow = {1, 9, 4}, .kernel = {3, 3, 3}, .strides = ones,
                          .dilations = ones, .pads_begin = ones, .pads_end = ones, .leftover = {0, 0, 0}};
  expect_rows_agree(convolution(Dtype::bf16, geometry, 3, 3, 15), random, {.tolerance_factor = 2});
}

TEST(onednn_run, windows_without_a_cell_are_left_to_the_reference) {
  Random random(6);
  const Geometry geometry{.wide = {1}, .narrow = {2}, .kernel = {1}, .strides = {3}, .dilations = {1},
                          .pads_begin = {2}, .pads_end = {2}, .leftover = {0}};
  const Problem problem = convolution(Dtype::f32, geometry, 1, 16, 16);
  const Result<Picked> picked = pick_kernel(problem, {});
  ASSERT_TRUE(picked.ok());
  EXPECT_STREQ(picked->kernel->name, "convolution_any_ref");
  EXPECT_EQ(picked->refused[0].second, "a window lies completely in the padding");
}

}  // namespace
}  // namespace partita::test
