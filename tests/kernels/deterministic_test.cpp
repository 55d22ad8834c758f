// SPDX-License-Identifier: Apache-2.0
// Kernels for a deterministic target: the same bits whatever number of threads they are made for and run on, and the
// numbers of the reference.
#include <gtest/gtest.h>

#include "src/base/text.hpp"
#include "src/base/threads.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/random_windows.hpp"

namespace partita::test {
namespace {

constexpr int kOtherThreads[] = {2, 3, 8};

/// Every row that accepts, made for one thread and for others; compared with the reference by expect_rows_agree.
void expect_same_bits(const Problem& problem, Random& random, double tolerance_factor,
                      const std::vector<Range>& ranges = {}) {
  SCOPED_TRACE(str("seed ", random.seed(), ": ", text_of(problem)));
  std::vector<Buffer> in;
  for (const TensorDesc& desc : problem.in)
    in.push_back(random_buffer(desc, random, in.size() < ranges.size() ? ranges[in.size()] : Range{}));
  for (const Kernel& row : kernels_for(problem.step)) {
    Target target{.isa = machine_isa(), .threads = 1, .deterministic = true};
    if (row.slow || row.isa > target.isa || row.refuse(problem, target)) continue;
    const auto one = run_kernel(row, problem, in, target);
    for (const int threads : kOtherThreads) {
      const ThreadScope scope(threads);
      target.threads = threads;
      ASSERT_EQ(row.refuse(problem, target), nullptr) << row.name;
      EXPECT_EQ(byte_difference(run_kernel(row, problem, in, target), one), "") << row.name << ", " << threads;
    }
  }
  const Target three{.isa = machine_isa(), .threads = 3, .deterministic = true};
  expect_rows_agree(problem, random, {.ranges = ranges, .tolerance_factor = tolerance_factor, .target = three});
}

class deterministic_rows : public testing::TestWithParam<Dtype> {};

/// A convolution with enough work for several threads.
struct Conv {
  int64_t batch, wide_channels, narrow_channels;
  Dims wide, narrow, weights;
  Attrs attrs;
};

Conv random_conv(Random& random) {
  Conv c{};
  c.batch = random.pick<int64_t>({1, 2, 3, 4, 7, 20});
  c.wide_channels = random.pick<int64_t>({3, 16, 32});
  c.narrow_channels = random.pick<int64_t>({8, 16, 48});
  const int64_t kernel = random.pick<int64_t>({1, 3}), stride = random.pick<int64_t>({1, 2}),
                size = random.whole(5, 17);
  const int64_t pad = kernel / 2, windows = (size + 2 * pad - kernel) / stride + 1;
  const bool last = random.coin();
  c.wide = activation_dims(c.batch, c.wide_channels, {size, size}, last);
  c.narrow = activation_dims(c.batch, c.narrow_channels, {windows, windows}, last);
  c.weights = {c.narrow_channels, c.wide_channels, kernel, kernel};
  for (const Attr attr : {Attr::pads_begin, Attr::pads_end}) c.attrs.set(attr, std::vector<int64_t>{pad, pad});
  c.attrs.set(Attr::strides, std::vector<int64_t>{stride, stride});
  c.attrs.set(Attr::dilations, std::vector<int64_t>{1, 1});
  c.attrs.set(Attr::groups, int64_t{1});
  c.attrs.set(Attr::data_format, std::string(last ? "NXC" : "NCX"));
  c.attrs.set(Attr::weights_format, std::string("OIX"));
  return c;
}

TEST_P(deterministic_rows, gradient_of_a_convolutions_weights) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Random random(seed);
    const Conv c = random_conv(random);
    Problem p = problem_for(StepKind::convolution_backward_weights, OpKind::ConvolutionBackwardWeights);
    p.attrs = c.attrs;
    p.in = {any_desc(GetParam(), c.wide, random), any_desc(GetParam(), c.narrow, random)};
    p.out = {any_desc(GetParam(), c.weights, random)};
    expect_same_bits(p, random, 8);
    if (HasFailure()) return;
  }
}

TEST_P(deterministic_rows, convolution_and_the_gradient_of_its_data) {
  for (uint64_t seed = 101; seed <= 106; ++seed) {
    Random random(seed);
    const Conv c = random_conv(random);
    const TensorDesc wide = dense_desc(GetParam(), c.wide), narrow = dense_desc(GetParam(), c.narrow);
    const TensorDesc weights = dense_desc(GetParam(), c.weights);
    Problem p = problem_for(StepKind::convolution, OpKind::Convolution);
    p.attrs = c.attrs;
    p.in = {wide, weights};
    p.out = {narrow};
    expect_same_bits(p, random, 8);
    p.step = StepKind::convolution_backward_data;
    p.op = OpKind::ConvolutionBackwardData;
    p.in = {narrow, weights};
    p.out = {wide};
    expect_same_bits(p, random, 8);
    if (HasFailure()) return;
  }
}

TEST_P(deterministic_rows, products_with_long_sums) {
  for (uint64_t seed = 201; seed <= 218; ++seed) {
    Random random(seed);
    const int64_t m = random.pick<int64_t>({1, 5, 16, 64, 120});
    const int64_t n = random.pick<int64_t>({1, 3, 16, 70});
    const int64_t k = random.pick<int64_t>({64, 700, 3000});
    Problem p = problem_for(StepKind::matmul, OpKind::MatMul);
    const bool transpose_a = random.coin(), transpose_b = random.coin();
    p.attrs.set(Attr::transpose_a, transpose_a);
    p.attrs.set(Attr::transpose_b, transpose_b);
    p.attrs.set(Attr::accumulation_mode, std::string("strict"));
    const auto matrix = [&](bool transposed, int64_t rows, int64_t columns) {
      return dense_desc(GetParam(), transposed ? Dims{columns, rows} : Dims{rows, columns});
    };
    p.in = {matrix(transpose_a, m, k), matrix(transpose_b, k, n)};
    if (random.coin()) p.in.push_back(dense_desc(GetParam(), {n}));
    p.out = {matrix(false, m, n)};
    if (random.coin() && k < 1000)  // a batch, which one side repeats
      for (TensorDesc* t : {&p.in[random.coin()], &p.out[0]}) {
        t->dims.insert(0, int64_t{6});
        t->strides.insert(0, t->dims[1] * t->dims[2]);
      }
    expect_same_bits(p, random, 20);
    if (HasFailure()) return;
  }
}

TEST_P(deterministic_rows, normalisations_and_slopes) {
  for (uint64_t seed = 301; seed <= 303; ++seed) {
    Random random(seed);
    const int64_t batch = random.whole(2, 9), channels = 4 * random.whole(1, 9), size = random.whole(9, 25);
    const bool last = random.coin();
    const TensorDesc image = dense_desc(GetParam(), activation_dims(batch, channels, {size, size}, last));
    const TensorDesc vector = dense_desc(Dtype::f32, {channels});
    const auto with = [&](StepKind step, OpKind op) {
      Problem p = problem_for(step, op);
      p.attrs.set(Attr::epsilon, 0.01f);
      p.attrs.set(Attr::data_format, std::string(last ? "NXC" : "NCX"));
      return p;
    };
    Problem p = with(StepKind::batch_norm, OpKind::BatchNormForwardTraining);
    p.in = {image, vector, vector, vector, vector};
    p.out = {image, vector, vector, vector, vector};
    expect_same_bits(p, random, 20);
    p = with(StepKind::group_norm, OpKind::GroupNorm);
    p.attrs.set(Attr::groups, int64_t{2});
    p.in = {image, vector, vector};
    p.out = {image};
    expect_same_bits(p, random, 20);
    p = with(StepKind::prelu_backward, OpKind::PReLUBackward);
    TensorDesc slope = dense_desc(GetParam(), {channels});
    p.in = {image, slope, image};
    p.out = {image, slope};
    expect_same_bits(p, random, 20);
    p = with(StepKind::layer_norm_backward, OpKind::LayerNormBackward);
    const TensorDesc rows = dense_desc(GetParam(), {batch * size, channels});
    const TensorDesc statistics = dense_desc(Dtype::f32, {batch * size});
    p.attrs.set(Attr::begin_norm_axis, int64_t{-1});
    p.in = {rows, rows, statistics, statistics, vector};
    p.out = {rows, vector, vector};
    const Range any{}, variances{0.5, 2};
    expect_same_bits(p, random, 20, {any, any, any, variances});
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(types, deterministic_rows, testing::Values(Dtype::f32, Dtype::bf16, Dtype::f16),
                         [](const auto& info) { return std::string(name_of(info.param)); });

}  // namespace
}  // namespace partita::test
