// SPDX-License-Identifier: Apache-2.0
#include "tests/support/maxima.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/pool_case.hpp"

namespace partita::test {

Problem maximum_gradient(Dtype dtype, const WindowSizes& s, bool channel_last) {
  return pool_problem({.op = OpKind::MaxPoolBackward,
                       .windows = geometry_of(s.spatial, s.kernel, s.strides, s.pads, s.dilations),
                       .channel_last = channel_last,
                       .dtype = dtype,
                       .batch = s.batch,
                       .channels = s.channels});
}

std::vector<Buffer> maximum_inputs(const Problem& p, Random& random) {
  constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  std::vector<Buffer> in;
  in.push_back(random_buffer(p.in[0], random));
  in.push_back(nan_buffer(p.in[1]));
  if (random.coin())
    for (int64_t i = 0; i < elements(p.in[0].dims); ++i)
      store_from_double(in[0].data(), p.in[0].dtype, i,
                        random.pick({-kInf, -kInf, kNan, -kNan, kInf, -0.0f, 0.0f, 1.0f, 1.0f, 2.0f}));
  for (int64_t i = 0; i < elements(p.in[1].dims); ++i)
    store_from_double(in[1].data(), p.in[1].dtype, i, static_cast<double>(random.whole(-3, 3)));
  return in;
}

void expect_reference_bytes(const Problem& p, Random& random, const Target& target) {
  const auto in = maximum_inputs(p, random);
  const Kernel* row = generated_row(p.step, target.isa);
  ASSERT_NE(row, nullptr);
  ASSERT_EQ(byte_difference(run_kernel(*row, p, in, target), reference_results(p, in)), "");
}

void expect_expressions_around(const Problem& plain, Random& random, const Target& target) {
  Problem p = plain;
  p.ports_in = 2;
  p.ports_out = 1;
  p.in.push_back(plain.in[1]);
  p.in.push_back(dense_desc(Dtype::bf16, plain.in[0].dims));
  p.out.push_back(dense_desc(Dtype::bf16, plain.out[0].dims));
  ExprBuilder front(p.front);
  p.front.result = front.mul(front.load(1), front.load(2));
  ExprBuilder back(p.back);
  const auto kept = back.select(back.gt(back.load(3), back.load(0)), back.skeleton(), back.constant(0));
  back.store(0, kept);
  back.store(1, kept);
  std::vector<Buffer> in = maximum_inputs(plain, random);
  in.push_back(nan_buffer(p.in[2]));
  for (int64_t i = 0; i < elements(p.in[2].dims); ++i)
    store_from_double(in[2].data(), Dtype::f32, i, static_cast<double>(random.whole(-2, 2)));
  in.push_back(random_buffer(p.in[3], random));
  std::vector<Buffer> prepared;
  for (size_t k : {0, 1}) {
    prepared.push_back(nan_buffer(plain.in[k]));
    for (int64_t i = 0; i < elements(plain.in[k].dims); ++i)
      store_from_double(prepared[k].data(), Dtype::f32, i, k == 0 ? in[0].get(i) : in[1].get(i) * in[2].get(i));
  }
  const auto pooled = reference_results(plain, prepared);
  const Kernel* row = generated_row(p.step, target.isa);
  ASSERT_NE(row, nullptr);
  const auto got = run_kernel(*row, p, in, target);
  for (int64_t i = 0; i < elements(plain.out[0].dims); ++i) {
    const double value = in[3].get(i) > in[0].get(i) ? pooled[0].get(i) : 0;
    ASSERT_EQ(got[0].get(i), value) << "element " << i;
    ASSERT_EQ(got[1].get(i), value) << "element " << i;
  }
}

void expect_choices_behind(const Problem& plain, Random& random, const Target& target) {
  Problem p = plain;
  p.ports_in = 2;
  p.ports_out = 1;
  const bool by_source = random.coin(), by_other = random.coin(), twice = random.coin();
  ExprBuilder back(p.back);
  const auto zero = back.constant(0), pooled = back.skeleton();
  const auto where_positive = [&](int operand, auto value) {
    return back.select(back.gt(back.load(operand), zero), value, zero);
  };
  auto value = by_source ? where_positive(0, pooled) : pooled;
  if (by_other) p.in.push_back(plain.in[0]);
  if (twice) {  // what the other operand does not choose
    p.out.push_back(plain.out[0]);
    back.store(1, value);
  }
  if (by_other) value = where_positive(2, value);
  back.store(0, value);
  std::vector<Buffer> in = maximum_inputs(plain, random);
  const auto gradients = reference_results(plain, in);
  if (by_other) in.push_back(std::move(maximum_inputs(plain, random)[0]));
  const Kernel* row = generated_row(p.step, target.isa);
  ASSERT_NE(row, nullptr);
  const auto got = run_kernel(*row, p, in, target);
  for (int64_t i = 0; i < elements(plain.out[0].dims); ++i) {
    const double first = !by_source || in[0].get(i) > 0 ? gradients[0].get(i) : 0;
    ASSERT_EQ(got[0].get(i), !by_other || in[2].get(i) > 0 ? first : 0) << "element " << i;
    if (twice) {
      ASSERT_EQ(got[1].get(i), first) << "element " << i;
    }
  }
}

void expect_threads_change_no_byte(const Problem& p, Random& random, Isa isa) {
  std::vector<Buffer> in;
  for (const TensorDesc& desc : p.in) in.push_back(random_buffer(desc, random));
  const Kernel* row = generated_row(p.step, isa);
  ASSERT_NE(row, nullptr);
  const auto alone = run_kernel(*row, p, in, Target{.isa = isa, .threads = 1});
  for (const int threads : {2, 3, 8})
    EXPECT_EQ(byte_difference(run_kernel(*row, p, in, Target{.isa = isa, .threads = threads}), alone), "") << threads;
}

}  // namespace partita::test
