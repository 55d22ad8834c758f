// SPDX-License-Identifier: Apache-2.0
// Generated SoftMax, LogSoftmax and their gradients against the reference: every axis, types, gaps between rows, very
// short and long slices, infinities and NaN, numbers of threads.
#include <gtest/gtest.h>

#include "kernels/narrow_results.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "tests/support/kernel_run.hpp"

namespace partita::test {
namespace {

struct Types {
  Dtype src, dst;
};

/// Rows with gaps behind them, or dense.
TensorDesc rows_desc(Dtype dtype, const Dims& dims, Random& random) {
  Dims padded = dims;
  if (dims.back() > 1 && random.coin()) padded.back() += random.whole(1, 3);
  TensorDesc desc = dense_desc(dtype, padded);
  desc.dims = dims;
  if (random.coin()) desc.offset = random.whole(0, 3);
  return desc;
}

Dims random_dims(Random& random) {
  if (random.whole(0, 5) == 0) return {random.whole(1, 3), random.whole(1, 5000)};
  if (random.whole(0, 9) == 0) return {2, random.whole(9000, 20000)};
  if (random.whole(0, 5) == 0) return {random.whole(1, 300), random.whole(1, 70)};
  Dims dims;
  for (int64_t i = random.whole(1, 4); i > 0; --i) dims.push_back(random.pick<int64_t>({1, 2, 3, 7, 19, 33}));
  return dims;
}

Problem random_forward(Random& random, Types types) {
  const Dims dims = random_dims(random);
  const bool logarithm = types.src == types.dst && random.coin();
  Problem p = problem_for(StepKind::softmax, logarithm ? OpKind::LogSoftmax : OpKind::SoftMax);
  const int64_t axis = random.whole(-dims.size(), dims.size() - 1);
  p.attrs.set(Attr::axis, axis);
  p.in = {rows_desc(types.src, dims, random)};
  p.out = {rows_desc(types.dst, dims, random)};
  p.narrow = has_narrow_results(p);
  if (random.coin()) p.result_bytes = int64_t{1} << 40;  // a part of something that leaves the caches
  if (logarithm) return p;
  p.attrs.set(Attr::mode, std::string(random.coin() ? "none" : "inf_as_zero"));
  if (random.coin()) return p;
  Dims stats = dims;
  stats[*normal_axis(axis, dims.size())] = 1;
  p.out.push_back(random.coin() ? rows_desc(Dtype::f32, stats, random) : scattered_desc(Dtype::f32, stats, random));
  p.narrow = false;
  return p;
}

Problem random_backward(Random& random, Types types) {
  const Dims dims = random_dims(random);
  const bool logarithm = types.src == types.dst && random.coin();
  Problem p = problem_for(StepKind::softmax_backward, logarithm ? OpKind::LogSoftmaxBackward : OpKind::SoftMaxBackward);
  p.attrs.set(Attr::axis, random.whole(-dims.size(), dims.size() - 1));
  p.in = {rows_desc(types.src, dims, random), rows_desc(types.src, dims, random)};
  p.out = {rows_desc(types.dst, dims, random)};
  p.narrow = has_narrow_results(p);
  if (random.coin()) p.result_bytes = int64_t{1} << 40;
  return p;
}

class jit_rows_softmax : public testing::TestWithParam<Types> {};

TEST_P(jit_rows_softmax, forward_agrees_with_the_reference) {
  const int rows = static_cast<int>(generated_isas().size());
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    const Problem p = random_forward(random, GetParam());
    const Target target{.isa = machine_isa(), .threads = 2};
    expect_rows_agree(p, random, {.ranges = {{-5, 5}}, .at_least = rows, .target = target});
    if (HasFailure()) return;
  }
}

TEST_P(jit_rows_softmax, gradient_agrees_with_the_reference) {
  const int rows = static_cast<int>(generated_isas().size());
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    const Problem p = random_backward(random, GetParam());
    const bool logarithm = p.op == OpKind::LogSoftmaxBackward;
    const Target target{.isa = machine_isa(), .threads = 2};
    // Sums of thousands of terms of either sign: the error follows their size, not the sum's.
    expect_rows_agree(p, random,
                      {.ranges = {{-1, 1}, logarithm ? Range{-9, -6} : Range{0, 0.1}},
                       .tolerance_factor = 4,
                       .at_least = rows,
                       .target = target});
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(types, jit_rows_softmax,
                         testing::Values(Types{Dtype::f32, Dtype::f32}, Types{Dtype::bf16, Dtype::bf16},
                                         Types{Dtype::f16, Dtype::f16}, Types{Dtype::bf16, Dtype::f32},
                                         Types{Dtype::f32, Dtype::f16}),
                         [](const auto& info) {
                           return std::string(name_of(info.param.src)) + "_" + std::string(name_of(info.param.dst));
                         });

/// Some elements, and some whole slices, become infinities and NaN.
void make_special(Buffer& buffer, int64_t axis, Random& random) {
  const Dims& dims = buffer.desc.dims;
  const double inf = std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < elements(dims); ++i) {
    const Dims at = coordinates(i, dims);
    int64_t place = buffer.desc.offset, slice = 0;
    for (int d = 0; d < dims.size(); ++d) {
      place += at[d] * buffer.desc.strides[d];
      if (d != axis) slice = slice * dims[d] + at[d];
    }
    double value = 0;
    switch (slice % 6) {
      case 0: value = -inf; break;
      case 1: value = random.coin() ? -inf : 1; break;
      case 2: value = random.whole(0, 3) == 0 ? inf : 1; break;
      case 3: value = random.whole(0, 3) == 0 ? std::numeric_limits<double>::quiet_NaN() : 1; break;
      case 4: value = 1e30; break;
      default: continue;
    }
    store_from_double(buffer.data(), buffer.desc.dtype, place, value);
  }
}

/// Results along the lanes: few rows in one piece of code, more in tiles; lanes of several pieces and a rest.
TEST_P(jit_rows_softmax, few_rows_of_many_lanes_agree_with_the_reference) {
  const auto [src, dst] = GetParam();
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    const Dims dims{random.whole(1, 3), random.pick<int64_t>({1, 2, 3, 16, 17, 24, 25}),
                    random.pick<int64_t>({1, 17, 64, 1023, 1024, 1025, 2500})};
    const bool backward = random.coin(), logarithm = src == dst && random.coin();
    Problem p = backward ? problem_for(StepKind::softmax_backward,
                                       logarithm ? OpKind::LogSoftmaxBackward : OpKind::SoftMaxBackward)
                         : problem_for(StepKind::softmax, logarithm ? OpKind::LogSoftmax : OpKind::SoftMax);
    p.attrs.set(Attr::axis, int64_t{1});
    p.in.insert(p.in.end(), backward ? 2 : 1, rows_desc(src, dims, random));
    p.out = {rows_desc(dst, dims, random)};
    if (!backward && !logarithm) {
      p.attrs.set(Attr::mode, std::string("inf_as_zero"));
      const Dims stats{dims[0], 1, dims[2]};
      if (random.coin())
        p.out.push_back(random.coin() ? rows_desc(Dtype::f32, stats, random)
                                      : scattered_desc(Dtype::f32, stats, random));
    }
    p.narrow = p.out.size() == 1 && has_narrow_results(p);
    if (random.coin()) p.result_bytes = int64_t{1} << 40;
    expect_rows_agree(p, random,
                      {.ranges = {{-1, 1}, logarithm ? Range{-9, -6} : Range{0, 0.1}},
                       .tolerance_factor = 4,
                       .at_least = static_cast<int>(generated_isas().size()),
                       .target = {.isa = machine_isa(), .threads = 2}});
    if (HasFailure()) return;
  }
}

TEST(jit_rows_softmax_values, infinities_and_nan_give_what_the_reference_gives) {
  for (const Isa isa : generated_isas())
    for (uint64_t seed = 1; seed <= 80; ++seed) {
      Random random(seed);
      const Dtype narrow = random.pick({Dtype::bf16, Dtype::f16});
      Problem p = random_forward(random, random.pick({Types{Dtype::f32, Dtype::f32}, Types{Dtype::f32, Dtype::f16},
                                                      Types{narrow, narrow}, Types{narrow, Dtype::f32}}));
      SCOPED_TRACE(str("seed ", seed, ": ", text_of(p)));
      std::vector<Buffer> in;
      in.push_back(random_buffer(p.in[0], random));
      make_special(in[0], *normal_axis(p.attrs.i64(Attr::axis), p.in[0].dims.size()), random);
      const auto expected = reference_results(p, in);
      const auto got = run_kernel(*generated_row(p.step, isa), p, in, 2);
      const double one_step = p.out[0].dtype == Dtype::bf16 ? 8e-3 : 1e-3;
      for (size_t k = 0; k < got.size(); ++k)
        EXPECT_EQ(difference(got[k], expected[k], p.out[k].dtype == Dtype::f32 ? 5e-5 : one_step), "")
            << "output " << k;
      if (testing::Test::HasFailure()) return;
    }
}

TEST(jit_rows_softmax_values, results_do_not_depend_on_the_number_of_threads) {
  const std::vector<std::pair<Dims, int64_t>> cases = {{{300, 200}, 1},   {{1, 70000}, 1}, {{3, 40000}, 1},
                                                       {{4, 50, 300}, 1}, {{60000, 2}, 1}, {{5003, 28}, 1}};
  for (const Isa isa : generated_isas())
    for (const auto& [dims, axis] : cases) {
      Random random(7);
      Problem forward = problem_for(StepKind::softmax, OpKind::SoftMax);
      forward.attrs.set(Attr::mode, std::string("none"));
      Problem backward = problem_for(StepKind::softmax_backward, OpKind::LogSoftmaxBackward);
      forward.in = forward.out = backward.out = {dense_desc(Dtype::f32, dims)};
      backward.in = {backward.out[0], backward.out[0]};
      for (Problem* p : {&forward, &backward}) {
        p->attrs.set(Attr::axis, axis);
        SCOPED_TRACE(text_of(*p));
        std::vector<Buffer> in;
        for (const TensorDesc& desc : p->in) in.push_back(random_buffer(desc, random));
        const Kernel& row = *generated_row(p->step, isa);
        const auto expected = run_kernel(row, *p, in, 1);
        for (int threads : {2, 3, 8}) EXPECT_EQ(byte_difference(run_kernel(row, *p, in, threads), expected), "");
      }
    }
}

}  // namespace
}  // namespace partita::test
