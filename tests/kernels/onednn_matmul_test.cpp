// SPDX-License-Identifier: Apache-2.0
// MatMul on oneDNN against the reference: ranks 1 to 5, transposes, broadcast batches, bias, mixed types.
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "src/base/shape.hpp"
#include "tests/support/random_problem.hpp"

namespace partita::test {
namespace {

struct Types {
  Dtype src, dst;
};

/// Batch dims of one operand: some axes of `batch` are 1, some leading ones are missing.
Dims random_batch(const Dims& batch, Random& random) {
  Dims dims;
  for (int i = static_cast<int>(random.whole(0, batch.size())); i < batch.size(); ++i) {
    dims.push_back(random.whole(0, 3) == 0 ? 1 : batch[i]);
  }
  return dims;
}

Dims with_matrix(Dims batch, int64_t rows, int64_t columns, bool transposed) {
  batch.push_back(transposed ? columns : rows);
  batch.push_back(transposed ? rows : columns);
  return batch;
}

Problem random_matmul(Random& random, Types types) {
  const int64_t m = random.whole(1, 9), k = random.whole(1, 20), n = random.whole(1, 17);
  Dims batch;
  for (int64_t i = random.whole(0, 3); i > 0; --i) batch.push_back(random.whole(1, 3));
  const bool transpose_a = random.coin(), transpose_b = random.coin();
  const bool row_vector = random.whole(0, 5) == 0, column_vector = random.whole(0, 5) == 0;
  const Dims a_batch = random_batch(batch, random), b_batch = random_batch(batch, random);
  const Dims a = row_vector ? Dims{k} : with_matrix(a_batch, m, k, transpose_a);
  const Dims b = column_vector ? Dims{k} : with_matrix(b_batch, k, n, transpose_b);
  Dims dst = *broadcast(row_vector ? Dims{} : a_batch, column_vector ? Dims{} : b_batch);
  if (!row_vector) dst.push_back(m);
  if (!column_vector) dst.push_back(n);
  const bool scattered = random.whole(0, 2) == 0;
  const auto desc = [&](Dtype dtype, const Dims& dims) {
    return scattered ? scattered_desc(dtype, dims, random) : dense_desc(dtype, dims);
  };
  Problem problem = problem_for(StepKind::matmul, OpKind::MatMul);
  problem.attrs.set(Attr::transpose_a, transpose_a);
  problem.attrs.set(Attr::transpose_b, transpose_b);
  problem.attrs.set(Attr::accumulation_mode, std::string("strict"));
  problem.in = {desc(types.src, a), desc(types.src, b)};
  if (!column_vector && random.coin()) problem.in.push_back(dense_desc(types.src, {n}));
  problem.out = {desc(types.dst, dst)};
  return problem;
}

class onednn_matmul : public testing::TestWithParam<Types> {};

TEST_P(onednn_matmul, agrees_with_the_reference) {
  for (uint64_t seed = 100; seed < 200; ++seed) {
    Random random(seed);
    expect_rows_agree(random_matmul(random, GetParam()), random);
    if (HasFailure()) return;
  }
}

/// [batch, heads, rows, columns] where heads stand beside each other in a row.
TensorDesc heads_in_rows(Dtype dtype, const Dims& dims) {
  TensorDesc desc = dense_desc(dtype, dims);
  desc.strides[1] = dims[3];
  desc.strides[2] = dims[1] * dims[3];
  return desc;
}

/// oneDNN multiplies such matrices wrongly; copies in their own type stand between.
TEST_P(onednn_matmul, takes_heads_that_stand_beside_each_other) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    const int64_t batch = random.whole(1, 3), heads = random.whole(2, 4), m = random.whole(1, 20),
                  k = random.whole(2, 32), n = random.whole(2, 20);
    const bool transposed = random.coin();
    Problem p = problem_for(StepKind::matmul, OpKind::MatMul);
    p.attrs.set(Attr::transpose_b, transposed);
    p.attrs.set(Attr::accumulation_mode, std::string("strict"));
    p.in = {heads_in_rows(GetParam().src, {batch, heads, m, k}),
            heads_in_rows(GetParam().src, transposed ? Dims{batch, heads, n, k} : Dims{batch, heads, k, n})};
    p.out = {random.coin() ? heads_in_rows(GetParam().dst, {batch, heads, m, n})
                           : dense_desc(GetParam().dst, {batch, heads, m, n})};
    if (GetParam().src == Dtype::f32) {
      const auto rows = kernels_for(StepKind::matmul);
      const auto native = std::ranges::find(rows, std::string_view("matmul_float_onednn"), &Kernel::name);
      EXPECT_STREQ(native->refuse(p, {}), nullptr) << "seed " << seed;
    }
    expect_rows_agree(p, random);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(types, onednn_matmul,
                         testing::Values(Types{Dtype::f32, Dtype::f32}, Types{Dtype::bf16, Dtype::bf16},
                                         Types{Dtype::f16, Dtype::f16}, Types{Dtype::bf16, Dtype::f32},
                                         Types{Dtype::f16, Dtype::f32}),
                         [](const auto& info) {
                           return std::string(name_of(info.param.src)) + "_" + std::string(name_of(info.param.dst));
                         });

}  // namespace
}  // namespace partita::test
