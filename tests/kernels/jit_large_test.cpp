// SPDX-License-Identifier: Apache-2.0
// Generated code on results that are stored past the caches: loops walk some rows at once, sweeps of rows are joined.
#include <gtest/gtest.h>

#include <cstring>

#include "src/base/cpu.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "tests/support/large_results.hpp"

namespace partita::test {
namespace {

/// A loop over `rows` rows: a number for all, one for each row or each column, another tensor; stored once or twice.
Problem large_loop(int64_t bytes, Dtype dtype, Random& random) {
  const int64_t length = random.pick<int64_t>({16, 32, 48, 64, 160, 2048, 4096, 12544}), each = element_bytes(dtype);
  const Dims dims{bytes / (length * each) + random.whole(1, 9), length};
  Problem p = problem_for(StepKind::loop, OpKind::Add);
  p.in = {dense_desc(dtype, dims), dense_desc(random.pick({Dtype::f32, Dtype::bf16}), dims)};
  if (const auto repeats = random.whole(0, 2)) p.in[1].strides = repeats == 1 ? Dims{1, 0} : Dims{0, 1};
  p.out = {dense_desc(dtype, dims)};
  ExprBuilder back(p.back);
  auto value = back.load(0);
  if (random.coin()) value = back.mul(value, back.load(1));
  value = back.max(value, back.constant(0x1p-12f));
  back.store(0, value);
  if (random.coin()) {
    p.out.push_back(dense_desc(random.pick({Dtype::f32, Dtype::bf16, Dtype::f16}), dims));
    back.store(1, back.add(value, back.load(0)));
  }
  return p;
}

TEST(jit_large, loops_have_the_bits_of_stores_through_the_caches) {
  expect_same_bits_of_seeds(
      16, [](Random& random, Dtype dtype, int64_t bytes) { return large_loop(bytes, dtype, random); });
}

/// A loop over groups of a few short rows, which lie apart in what is read; a number for each group is added.
Problem large_groups(int64_t bytes, Dtype dtype, Random& random) {
  const int64_t few = random.whole(2, 16), length = random.pick<int64_t>({3, 4, 16, 21, 32, 64}), outer = 3,
                groups = bytes / (outer * few * length * element_bytes(dtype)) + random.whole(1, 9);
  Problem p = problem_for(StepKind::loop, OpKind::Add);
  p.out = {dense_desc(dtype, {outer, groups, few, length})};
  p.in = {p.out[0], p.out[0]};
  p.in[0].strides = {few * groups * length, length, groups * length, 1};
  p.in[1].strides = {groups, 1, 0, 0};
  ExprBuilder back(p.back);
  const auto value = back.max(back.load(0), back.constant(0x1p-12f));
  back.store(0, random.coin() ? back.add(value, back.load(1)) : value);
  return p;
}

TEST(jit_large, groups_of_few_rows_have_the_bits_of_stores_through_the_caches) {
  expect_same_bits_of_seeds(
      12, [](Random& random, Dtype dtype, int64_t bytes) { return large_groups(bytes, dtype, random); });
}

TEST(jit_large, copies_of_narrow_numbers_keep_their_bits) {
  const int64_t bytes = large_bytes(), length = 2048;
  if (bytes == 0) GTEST_SKIP() << "the last-level cache is very large";
  for (const Isa isa : generated_isas())
    for (const Dtype dtype : {Dtype::bf16, Dtype::f16}) {
      SCOPED_TRACE(str(name_of(isa), " ", name_of(dtype)));
      Problem p = problem_for(StepKind::loop, OpKind::Add);
      p.in = p.out = {dense_desc(dtype, {bytes / 2 / length + 3, length})};
      ExprBuilder back(p.back);
      back.store(0, back.load(0));
      std::vector<Buffer> in;
      in.push_back(nan_buffer(p.in[0]));
      auto* numbers = static_cast<uint16_t*>(in[0].data());
      const int infinity = dtype == Dtype::bf16 ? 0x7f80 : 0x7c00;
      for (int64_t i = 0; i < elements(p.in[0].dims); ++i)  // of either sign, denormals among them
        numbers[i] = static_cast<uint16_t>(i % infinity | i % 2 << 15);
      const auto got = run_kernel(*generated_row(p.step, isa), p, in, 2);
      EXPECT_EQ(std::memcmp(got[0].data(), in[0].data(), static_cast<size_t>(elements(p.in[0].dims) * 2)), 0);
    }
}

/// Softmax, layer norm and their gradients, over some rows of `length` elements.
std::vector<Problem> row_problems(Dtype dtype, int64_t rows, int64_t length) {
  const TensorDesc data = dense_desc(dtype, {rows, length}), vector = dense_desc(Dtype::f32, {length}),
                   statistic = dense_desc(Dtype::f32, {rows});
  std::vector<Problem> list;
  const auto add = [&](StepKind step, OpKind op, std::vector<TensorDesc> in, std::vector<TensorDesc> out) {
    Problem p = problem_for(step, op);
    p.attrs.set(Attr::axis, int64_t{1});
    p.attrs.set(Attr::mode, std::string("none"));
    p.attrs.set(Attr::epsilon, 0.01f);
    p.attrs.set(Attr::begin_norm_axis, int64_t{1});
    p.attrs.set(Attr::use_affine, true);
    p.attrs.set(Attr::keep_stats, true);
    p.in = std::move(in);
    p.out = std::move(out);
    list.push_back(std::move(p));
  };
  add(StepKind::softmax, OpKind::SoftMax, {data}, {data});
  add(StepKind::softmax, OpKind::LogSoftmax, {data}, {data});
  add(StepKind::softmax_backward, OpKind::SoftMaxBackward, {data, data}, {data});
  add(StepKind::softmax_backward, OpKind::LogSoftmaxBackward, {data, data}, {data});
  add(StepKind::layer_norm, OpKind::LayerNorm, {data, vector, vector}, {data, statistic, statistic});
  add(StepKind::layer_norm, OpKind::RMSNorm, {data, vector}, {data});
  add(StepKind::layer_norm_backward, OpKind::LayerNormBackward, {data, data, statistic, statistic, vector},
      {data, vector, vector});
  return list;
}

/// One that has a last tile with fewer rows, one in whole vectors, one in blocks.
TEST(jit_large, rows_have_the_bits_of_stores_through_the_caches) {
  const int64_t bytes = large_bytes();
  if (bytes == 0) GTEST_SKIP() << "the last-level cache is very large";
  for (const Isa isa : generated_isas())
    for (const Dtype dtype : {Dtype::f32, Dtype::bf16})
      for (const int64_t length : {112, 1024, 20000})
        for (const Problem& p : row_problems(dtype, bytes * 8 / bits_of(dtype) / length + 3, length)) {
          SCOPED_TRACE(str(name_of(isa), ": ", text_of(p)));
          expect_same_bits(isa, p);
          if (HasFailure()) return;
        }
}

/// Joined sweeps add in the order of sweeps that are not.
TEST(jit_large, rows_have_the_bits_of_fewer_rows) {
  const int64_t bytes = large_bytes(), length = 160, few = 100;
  if (bytes == 0) GTEST_SKIP() << "the last-level cache is very large";
  for (const Isa isa : generated_isas()) {
    const auto many = row_problems(Dtype::f32, bytes / 4 / length + 3, length),
               part = row_problems(Dtype::f32, few, length);
    for (size_t i = 0; i < many.size(); ++i) {
      SCOPED_TRACE(str(name_of(isa), ": ", text_of(many[i])));
      Random random(3);
      std::vector<Buffer> in, first;
      for (size_t k = 0; k < many[i].in.size(); ++k) {
        in.push_back(random_buffer(many[i].in[k], random, k == 3 ? Range{0.5, 2} : Range{}));
        first.push_back(nan_buffer(part[i].in[k]));
        std::memcpy(first[k].data(), in[k].data(), first[k].bytes.size());
      }
      const Kernel& row = *generated_row(many[i].step, isa);
      const auto all = run_kernel(row, many[i], in, 2), some = run_kernel(row, part[i], first, 2);
      EXPECT_EQ(std::memcmp(all[0].data(), some[0].data(), static_cast<size_t>(few * length * 4)), 0);
      EXPECT_EQ(byte_difference(run_kernel(row, many[i], in, 3), all), "");
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace partita::test
