// SPDX-License-Identifier: Apache-2.0
// Products of a few rows with matrices that are read once: every number of vectors, tails of rows and columns, matrices
// by rows and by columns, vectors that share a matrix, strides; what is left to general products.
#include <gtest/gtest.h>

#include <algorithm>

#include "src/base/text.hpp"
#include "tests/support/kernel_run.hpp"

namespace partita::test {
namespace {

const Kernel& row() { return *generated_row(StepKind::matmul, Isa::avx512); }

Problem product(Dtype dtype, Dtype result, const Dims& a, const Dims& b, const Dims& dst, bool transpose_b) {
  Problem p = problem_for(StepKind::matmul, OpKind::MatMul);
  p.attrs.set(Attr::transpose_a, false);
  p.attrs.set(Attr::transpose_b, transpose_b);
  p.attrs.set(Attr::accumulation_mode, std::string("strict"));
  p.in = {dense_desc(dtype, a), dense_desc(dtype, b)};
  p.out = {dense_desc(result, dst)};
  return p;
}

Problem queries_on_keys(Dtype dtype, int64_t heads, int64_t group, int64_t rows, int64_t length, int64_t size) {
  return product(dtype, dtype, {heads, group, rows, size}, {heads, 1, length, size}, {heads, group, rows, length},
                 true);
}

class few_rows : public testing::Test {
 protected:
  void SetUp() override {
    if (std::ranges::count(generated_isas(), Isa::avx512) == 0) GTEST_SKIP() << "no AVX-512 here";
  }
};

TEST_F(few_rows, random_products_are_what_the_reference_computes) {
  constexpr Dtype kTypes[] = {Dtype::f32, Dtype::bf16, Dtype::f16};
  int taken = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Random random(seed);
    const Dtype dtype = kTypes[random.whole(0, 2)], result = random.coin() ? dtype : Dtype::f32;
    const int64_t batch = random.whole(1, 2), heads = random.whole(2, 3);
    const int64_t group = random.whole(1, 3), rows = random.whole(1, 4 / group);
    const int64_t k = random.whole(16, 140), n = random.whole(4096 / k + 1, 4096 / k + 200);
    const bool transposed = random.coin(), turned = random.coin();
    Problem p = product(dtype, result, {batch, heads, group, rows, k},
                        transposed ? Dims{1, heads, 1, n, k} : Dims{batch, heads, 1, k, n},
                        {batch, heads, group, rows, n}, transposed);
    if (turned) {
      p.attrs.set(Attr::transpose_a, true);
      p.in[0] = dense_desc(dtype, {batch, heads, group, k, rows});
    }
    if (random.whole(0, 3) == 0) p.in[0] = scattered_desc(dtype, p.in[0].dims, random);
    if (random.whole(0, 3) == 0) p.out[0] = scattered_desc(result, p.out[0].dims, random);
    if (random.whole(0, 3) == 0) {  // gaps between the matrix's rows, and before it
      for (int d = 0; d < p.in[1].dims.size() - 1; ++d) p.in[1].strides[d] *= 2;
      p.in[1].offset = random.whole(0, 9);
    }
    taken += row().refuse(p, {}) == nullptr;
    expect_rows_agree(p, random, {.tolerance_factor = 4});
    if (HasFailure()) return;
  }
  EXPECT_GT(taken, 80);
}

TEST_F(few_rows, up_to_eight_vectors_of_large_matrices) {
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16})
    for (int64_t vectors = 1; vectors <= 8; ++vectors) {
      Random random(static_cast<uint64_t>(vectors));
      const Problem keys = queries_on_keys(dtype, 2, 1, vectors, 2053, 72);
      ASSERT_STREQ(row().refuse(keys, {}), nullptr);
      expect_rows_agree(keys, random, {.tolerance_factor = 4});
      const Problem values = product(dtype, dtype, {2, vectors, 2053}, {2, 2053, 72}, {2, vectors, 72}, false);
      EXPECT_EQ(row().refuse(values, {}) == nullptr, dtype != Dtype::f32) << "f32 in the caches";
      expect_rows_agree(values, random, {.tolerance_factor = 32});
      if (HasFailure()) return;
    }
}

TEST_F(few_rows, the_number_of_threads_changes_no_bit) {
  for (const bool keys : {true, false}) {
    Random random(7);
    const Problem p = keys ? queries_on_keys(Dtype::bf16, 3, 2, 1, 700, 40)
                           : product(Dtype::bf16, Dtype::f32, {3, 2, 700}, {3, 700, 140}, {3, 2, 140}, false);
    const std::vector<Buffer> in = [&] {
      std::vector<Buffer> made;
      for (const TensorDesc& desc : p.in) made.push_back(random_buffer(desc, random));
      return made;
    }();
    const std::vector<Buffer> one = run_kernel(row(), p, in, 1);
    for (int threads : {2, 3, 8}) EXPECT_EQ(byte_difference(run_kernel(row(), p, in, threads), one), "") << threads;
  }
}

TEST_F(few_rows, what_general_products_do_better) {
  const auto taken = [](const Problem& p, const Target& target = {}) { return row().refuse(p, target) == nullptr; };
  EXPECT_TRUE(taken(queries_on_keys(Dtype::bf16, 2, 4, 1, 512, 64)));
  EXPECT_FALSE(taken(queries_on_keys(Dtype::bf16, 2, 5, 1, 512, 64))) << "many vectors of a small matrix";
  EXPECT_FALSE(taken(queries_on_keys(Dtype::bf16, 2, 9, 1, 5000, 64))) << "many vectors";
  EXPECT_FALSE(taken(queries_on_keys(Dtype::bf16, 1, 4, 1, 512, 64))) << "one matrix";
  EXPECT_FALSE(taken(queries_on_keys(Dtype::bf16, 2, 4, 1, 32, 64))) << "small matrices";
  EXPECT_FALSE(taken(queries_on_keys(Dtype::bf16, 2, 4, 1, 5000, 8))) << "short rows";
  EXPECT_FALSE(taken(queries_on_keys(Dtype::f64, 2, 4, 1, 512, 64)));
  Problem kept = queries_on_keys(Dtype::bf16, 2, 4, 1, 512, 64);
  kept.constant_ports = 2;
  EXPECT_TRUE(taken(kept));
  EXPECT_FALSE(taken(kept, {.keeps_packs = true})) << "a packed matrix is kept";
  Problem biased = queries_on_keys(Dtype::f32, 2, 4, 1, 512, 64);
  biased.in.push_back(dense_desc(Dtype::f32, {512}));
  EXPECT_FALSE(taken(biased));
  Problem scattered = queries_on_keys(Dtype::f32, 2, 4, 1, 512, 64);
  for (int d = 0; d < 4; ++d) scattered.in[1].strides[d] *= 3;
  EXPECT_FALSE(taken(scattered)) << "no neighbouring elements";
}

}  // namespace
}  // namespace partita::test
