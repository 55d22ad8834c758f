// SPDX-License-Identifier: Apache-2.0
// Generated code on tensors whose rows, planes or cells lie gigabytes apart, or that have rows as long, which the 32
// bits of an instruction's operand do not name: it is right, or refuses. Memory is mapped, and only pages with elements
// are touched.
#include <gtest/gtest.h>

#include <algorithm>

#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/pool_case.hpp"
#include "tests/support/resampling.hpp"

namespace partita::test {
namespace {

/// The generated rows make of the first input, laid out with `strides`, what the last row makes of it as it is.
void expect_same_far_apart(const Problem& near, const Dims& strides) {
  Problem far = near;
  far.in[0].strides = strides;
  Random random(1);
  std::vector<Buffer> in;
  for (const TensorDesc& desc : near.in) in.push_back(random_buffer(desc, random));
  const std::vector<Buffer> expected = run_kernel(kernels_for(near.step).back(), near, in, 1);
  std::vector<Buffer> in_far;
  for (size_t k = 0; k < in.size(); ++k) in_far.push_back(with_strides(in[k], far.in[k].strides));
  for (const Isa isa : generated_isas()) {
    SCOPED_TRACE(str(name_of(isa), ": ", text_of(far)));
    const Kernel& row = *generated_row(far.step, isa);
    if (row.refuse(far, {.isa = isa})) continue;
    const std::vector<Buffer> got = run_kernel(row, far, in_far, 1);
    for (size_t k = 0; k < got.size(); ++k)
      EXPECT_EQ(difference(got[k], expected[k], tolerance_of(got[k].desc.dtype)), "") << "output " << k;
  }
}

Problem loop(const TensorDesc& in, const TensorDesc& out) {
  Problem p = problem_for(StepKind::loop, OpKind::Add);
  p.in = {in};
  p.out = {out};
  return p;
}

TEST(jit_far_apart, rows_that_are_copied_side_by_side) {
  const TensorDesc dense = dense_desc(Dtype::f32, {4, 2048});
  Problem p = loop(dense, dense);
  p.result_bytes = int64_t{1} << 40;  // past the caches
  ExprBuilder b(p.back);
  b.store(0, b.load(0));
  for (const int64_t apart : {60'000'000, 80'000'000, 140'000'000}) expect_same_far_apart(p, {apart, 1});
}

TEST(jit_far_apart, rows_that_are_folded) {
  for (const int64_t length : {16, 2048}) {
    Problem p = loop(dense_desc(Dtype::f32, {4, length}), {Dtype::f32, {4, length}, {0, 1}, 0});
    ExprBuilder b(p.back);
    b.fold(Fold::sum, 0, b.load(0));
    for (const int64_t apart : {15'000'000, 30'000'000, 160'000'000}) expect_same_far_apart(p, {apart, 1});
  }
}

TEST(jit_far_apart, rows_with_statistics) {
  Problem p = problem_for(StepKind::group_norm, OpKind::GroupNorm);
  p.in = p.out = {dense_desc(Dtype::f32, {1, 4, 64})};
  p.attrs.set(Attr::data_format, std::string("NXC"));
  p.attrs.set(Attr::epsilon, 0.01f);
  p.attrs.set(Attr::groups, int64_t{4});
  p.attrs.set(Attr::use_affine, false);
  p.attrs.set(Attr::keep_stats, false);
  expect_same_far_apart(p, {int64_t{1} << 31, int64_t{1} << 29, 1});
}

TEST(jit_far_apart, planes_of_poolings) {
  const Problem p = pool_problem({.op = OpKind::MaxPool,
                                  .windows = geometry_of({7, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}),
                                  .dtype = Dtype::f16,
                                  .channels = 64});
  expect_same_far_apart(p, {int64_t{64} * 36'000'000, 36'000'000, 7, 1});
}

TEST(jit_far_apart, places_of_poolings) {
  for (const OpKind op : {OpKind::MaxPool, OpKind::AvgPool})
    for (const Dtype dtype : {Dtype::f16, Dtype::f32}) {
      const Problem p = pool_problem({.op = op,
                                      .windows = geometry_of({2, 4}, {2, 2}, {2, 2}, {0, 0}, {1, 1}),
                                      .channel_last = true,
                                      .dtype = dtype,
                                      .channels = 64});
      expect_same_far_apart(p, {int64_t{1} << 32, 64, int64_t{1} << 30, 1});
    }
}

/// Whether one of the generated rows takes the problem.
bool is_taken(const Problem& p) {
  return std::ranges::any_of(generated_isas(),
                             [&](Isa isa) { return !generated_row(p.step, isa)->refuse(p, {.isa = isa}); });
}

TEST(jit_far_apart, rows_too_long_for_tables_are_refused) {
  for (const int64_t length : {1'000'000, 600'000'000}) {
    Problem p = resampling({.small = {8}, .large = {16}}, {.mode = "nearest", .dtype = Dtype::f16});
    p.in[0] = dense_desc(Dtype::f16, {1, 1, length});
    p.out[0] = dense_desc(Dtype::f16, {1, 1, 1000});
    EXPECT_EQ(is_taken(p), length == 1'000'000) << length;
  }
}

TEST(jit_far_apart, padding_counts_as_a_part_of_the_row) {
  for (const int64_t pad : {64, 550'000'000}) {
    Geometry g;
    g.add({.wide = 1, .narrow = 1, .kernel = 1, .stride = 1});
    g.add({.wide = 64, .narrow = (64 + pad) / 64, .kernel = 64, .stride = 64, .end = pad});
    EXPECT_EQ(is_taken(pool_problem({.op = OpKind::MaxPool, .windows = g, .dtype = Dtype::f16})), pad == 64) << pad;
  }
}

TEST(jit_far_apart, rows_of_taps_count_their_vectors) {
  for (const int64_t width : {1'000, 2'200'000}) {
    Problem p = pool_problem({.op = OpKind::MaxPool,
                              .windows = geometry_of({40, width}, {32, 1}, {1, 1}, {0, 0}, {1, 1}),
                              .channel_last = true,
                              .dtype = Dtype::f16,
                              .channels = 2});
    p.out.push_back(dense_desc(Dtype::s32, p.out[0].dims));
    EXPECT_EQ(is_taken(p), width == 1'000) << width;
  }
}

/// All cells of a plane are one row of a global pooling. Two gigabytes are read, so with one instruction set.
TEST(jit_far_apart, global_poolings_of_huge_planes) {
  if (!generates_code()) GTEST_SKIP() << "no code is generated here";
  constexpr int64_t kSide = 46341;  // more cells than 31 bits count
  const Problem p = pool_problem({.op = OpKind::MaxPool,
                                  .windows = geometry_of({kSide, kSide}, {kSide, kSide}, {1, 1}, {0, 0}, {1, 1}),
                                  .dtype = Dtype::u8});
  std::vector<Buffer> in;
  in.push_back({p.in[0], GuardedMemory(static_cast<size_t>(kSide * kSide), 0)});
  store_from_double(in[0].data(), Dtype::u8, kSide * kSide - 1, 2);
  const Isa isa = generated_isas().back();
  const Kernel& row = *generated_row(p.step, isa);
  if (row.refuse(p, {.isa = isa})) return;
  EXPECT_EQ(run_kernel(row, p, in, 1)[0].get(0), 2);
}

}  // namespace
}  // namespace partita::test
