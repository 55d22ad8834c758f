// SPDX-License-Identifier: Apache-2.0
// The interpreter's pooling skeletons with expressions in front and behind, against the reference of the pooling alone
// with the same arithmetic done before and after it.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/loop/interpreter.hpp"
#include "kernels/ref/reference.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "tests/support/pool_case.hpp"

namespace partita::test {
namespace {

constexpr OpKind kKinds[] = {OpKind::AvgPool, OpKind::MaxPool, OpKind::AvgPoolBackward, OpKind::MaxPoolBackward};

Status execute(const Run& run, const std::vector<Buffer>& in, std::vector<Buffer>& out) {
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  for (const Buffer& b : in) inputs.push_back(b.data());
  for (Buffer& b : out) outputs.push_back(b.data());
  GuardedMemory scratch((run.scratch_bytes + 63) / 64 * 64, 0xff);
  return run.call({inputs, outputs, scratch.data()});
}

int64_t position(const TensorDesc& desc, int64_t index) {
  int64_t at = desc.offset;
  for (int d = desc.dims.size(); d-- > 0; index /= desc.dims[d]) at += index % desc.dims[d] * desc.strides[d];
  return at;
}

Problem random_pool(OpKind kind, Random& random) {
  const bool last = random.coin();
  const bool average = kind == OpKind::AvgPool || kind == OpKind::AvgPoolBackward;
  Problem p = pool_problem({.op = kind,
                            .windows = random_geometry(random, {.dilated = !average, .round_up = random.coin()}),
                            .channel_last = last,
                            .batch = random.whole(1, 2),
                            .channels = random.whole(1, 20),
                            .exclude_pad = random.coin()});
  for (auto* side : {&p.in, &p.out})
    for (TensorDesc& desc : *side) desc = any_desc(desc.dtype, desc.dims, random);
  return p;
}

/// x -> |x| + f in front, x -> x * x - s behind, with f and s in tensors of the same dims.
void expect_fused(OpKind kind, Random& random) {
  const Problem plain = random_pool(kind, random);
  SCOPED_TRACE(str("seed ", random.seed(), ": ", text_of(plain)));
  const size_t port = plain.in.size() - 1;
  Problem fused = plain;
  const bool front = random.coin(), back = random.coin() || !front;
  if (front) {
    fused.in.push_back(any_desc(Dtype::f32, plain.in[port].dims, random));
    ExprBuilder b(fused.front);
    fused.front.result =
        b.add(b.apply(ExprOp::abs, b.load(static_cast<int>(port))), b.load(static_cast<int>(fused.in.size()) - 1));
  }
  if (back) {
    fused.in.push_back(any_desc(Dtype::f32, plain.out[0].dims, random));
    ExprBuilder b(fused.back);
    b.store(0, b.sub(b.apply(ExprOp::square, b.skeleton()), b.load(static_cast<int>(fused.in.size()) - 1)));
  }
  std::vector<Buffer> in, expected, got;
  for (const TensorDesc& desc : fused.in) in.push_back(random_buffer(desc, random, {-2, 2}));
  expected.push_back(nan_buffer(plain.out[0]));
  got.push_back(nan_buffer(plain.out[0]));
  const auto run = make_interpreted(fused, {});
  ASSERT_TRUE(run.ok());
  const Status status = execute(*run, in, got);
  ASSERT_TRUE(status.ok()) << status.text();
  if (front)
    for (int64_t i = 0, n = elements(plain.in[port].dims); i < n; ++i)
      store_from_double(in[port].data(), Dtype::f32, position(plain.in[port], i),
                        std::fabs(in[port].get(i)) + in[port + 1].get(i));
  const Run oracle{.call = [&](const RunArgs& args) { return reference_of(plain.op)(plain, args); }};
  const Status made = execute(oracle, in, expected);
  ASSERT_TRUE(made.ok()) << made.text();
  if (back)
    for (int64_t i = 0, n = elements(plain.out[0].dims); i < n; ++i) {
      const double x = expected[0].get(i);
      store_from_double(expected[0].data(), Dtype::f32, position(plain.out[0], i), x * x - in.back().get(i));
    }
  EXPECT_EQ(difference(got[0], expected[0], 5e-5), "");
  EXPECT_EQ(damage(got[0]), "");
}

TEST(loop_interpreter, poolings_apply_expressions_in_front_and_behind) {
  for (const OpKind kind : kKinds)
    for (uint64_t seed = 1; seed <= 150 && !testing::Test::HasFailure(); ++seed) {
      Random random(seed);
      expect_fused(kind, random);
    }
}

/// The type that stands behind a pooling must not change what a window without cells gives.
TEST(loop_interpreter, an_empty_window_gives_the_lowest_value_of_the_poolings_own_type) {
  Problem p = problem_for(StepKind::pool_forward, OpKind::MaxPool);
  p.attrs.set(Attr::kernel, std::vector<int64_t>{1});
  p.attrs.set(Attr::strides, std::vector<int64_t>{1});
  p.attrs.set(Attr::pads_begin, std::vector<int64_t>{1});
  p.attrs.set(Attr::pads_end, std::vector<int64_t>{0});
  p.attrs.set(Attr::data_format, std::string("NCX"));
  p.in = {dense_desc(Dtype::f16, {1, 1, 1})};
  p.out = {dense_desc(Dtype::f32, {1, 1, 2})};
  ExprBuilder b(p.back);
  b.store(0, b.apply(ExprOp::cast, b.skeleton(), 0, 0, static_cast<int32_t>(Dtype::f16)));
  Random random(1);
  std::vector<Buffer> in, out;
  in.push_back(random_buffer(p.in[0], random));
  out.push_back(nan_buffer(p.out[0]));
  const auto run = make_interpreted(p, {});
  ASSERT_TRUE(run.ok() && execute(*run, in, out).ok());
  EXPECT_EQ(out[0].get(0), -65504);
  EXPECT_EQ(out[0].get(1), in[0].get(0));
}

}  // namespace
}  // namespace partita::test
