// SPDX-License-Identifier: Apache-2.0
// Loops with folds: every row of the table against sums, extremes and products taken one by one in double, on random
// spaces and layouts, with outputs that keep different axes, and the same bits for every number of threads.
#include <gtest/gtest.h>

#include <cmath>

#include "src/base/cpu.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "src/base/threads.hpp"
#include "tests/support/random_loop.hpp"

namespace partita::test {
namespace {

int64_t place(const TensorDesc& desc, const Dims& at) {
  int64_t index = desc.offset;
  for (int d = 0; d < at.size(); ++d) index += at[d] * desc.strides[d];
  return index;
}

/// The memory of an operand that is repeated along some axes.
TensorDesc memory_of(const TensorDesc& desc) {
  int64_t last = 0;
  for (int d = 0; d < desc.dims.size(); ++d) last += (desc.dims[d] - 1) * desc.strides[d];
  return dense_desc(desc.dtype, {last + 1});
}

std::vector<std::vector<double>> expected_of(const FoldLoop& f, const std::vector<Buffer>& in) {
  const Problem& p = f.problem;
  std::vector<std::vector<double>> results;
  for (size_t k = 0; k < p.out.size(); ++k)
    results.emplace_back(static_cast<size_t>(memory_of(p.out[k]).dims[0]), identity_of(f.how[k]));
  const Dims& space = p.out[0].dims;
  for (int64_t i = 0; i < elements(space); ++i) {
    const Dims at = coordinates(i, space);
    const double x = load_as_double(in[0].data(), p.in[0].dtype, place(p.in[0], at));
    const double product = x * load_as_double(in[1].data(), p.in[1].dtype, place(p.in[1], at));
    for (size_t k = 0; k < p.out.size(); ++k) {
      double& result = results[k][static_cast<size_t>(place(p.out[k], at))];
      result = f.how[k] == Fold::none ? product : folded(f.how[k], result, product);
    }
  }
  return results;
}

std::vector<Buffer> run(const Kernel& row, const Problem& p, const std::vector<Buffer>& in, int threads) {
  std::vector<Buffer> out;
  std::vector<const void*> sources;
  std::vector<void*> targets;
  for (const Buffer& b : in) sources.push_back(b.data());
  for (const TensorDesc& desc : p.out) out.push_back(nan_buffer(memory_of(desc)));
  for (Buffer& b : out) targets.push_back(b.data());
  const ThreadScope scope(threads);
  const Result<Run> made = row.make(p, {.isa = row.isa, .threads = threads});
  EXPECT_TRUE(made.ok()) << made.status().text();
  if (!made.ok()) return out;
  std::vector<double> scratch(made->scratch_bytes / sizeof(double) + 1);
  EXPECT_TRUE(made->call({sources, targets, scratch.data()}).ok());
  return out;
}

TEST(fold_loop, agrees_with_folding_one_by_one) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    const FoldLoop f = random_fold_loop(random);
    SCOPED_TRACE(str("seed ", seed, ": ", text_of(f.problem.back), " over ", text_of(f.problem.out[0].dims)));
    std::vector<Buffer> in;
    for (const TensorDesc& desc : f.problem.in) in.push_back(random_buffer(memory_of(desc), random, {-1.2, 1.2}));
    const auto expected = expected_of(f, in);
    for (const Kernel& row : kernels_for(StepKind::loop)) {
      if (machine_isa() < row.isa || row.refuse(f.problem, {.isa = row.isa})) continue;
      SCOPED_TRACE(row.name);
      const auto got = run(row, f.problem, in, 2);
      for (size_t k = 0; k < got.size(); ++k)
        for (size_t i = 0; i < expected[k].size(); ++i) {
          const double e = expected[k][i], g = got[k].get(static_cast<int64_t>(i));
          ASSERT_NEAR(g, e, 1e-4 * std::max(1.0, std::fabs(e))) << "output " << k << ", element " << i;
        }
    }
    ASSERT_FALSE(HasFailure());
  }
}

TEST(fold_loop, gives_the_same_bits_for_every_number_of_threads) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Random random(seed);
    FoldLoop f = random_fold_loop(random);
    SCOPED_TRACE(str("seed ", seed, ": ", text_of(f.problem.back), " over ", text_of(f.problem.out[0].dims)));
    std::vector<Buffer> in;
    for (const TensorDesc& desc : f.problem.in) in.push_back(random_buffer(memory_of(desc), random));
    for (const Kernel& row : kernels_for(StepKind::loop)) {
      if (machine_isa() < row.isa || row.refuse(f.problem, {.isa = row.isa})) continue;
      const auto one = run(row, f.problem, in, 1);
      for (int threads : {2, 3, 8}) {
        const auto many = run(row, f.problem, in, threads);
        for (size_t k = 0; k < one.size(); ++k)
          ASSERT_EQ(std::memcmp(one[k].data(), many[k].data(), one[k].bytes.size()), 0) << row.name << ", " << threads;
      }
    }
  }
}

TEST(fold_loop, over_nothing_gives_what_folding_starts_from) {
  for (const Fold how : {Fold::sum, Fold::mul, Fold::max, Fold::min})
    for (const Dims& dims : {Dims{0}, Dims{0, 4}, Dims{3, 0}}) {
      Problem p;
      p.step = StepKind::loop;
      p.in = {dense_desc(Dtype::f32, dims)};
      p.out = {folded_desc(dims, std::vector<bool>(static_cast<size_t>(dims.size()), false))};
      ExprBuilder b(p.back);
      b.fold(how, 0, b.load(0));
      std::vector<Buffer> in;
      in.push_back(nan_buffer(p.in[0]));
      for (const Kernel& row : kernels_for(StepKind::loop)) {
        if (machine_isa() < row.isa || row.refuse(p, {.isa = row.isa})) continue;
        EXPECT_EQ(run(row, p, in, 1)[0].get(0), identity_of(how)) << row.name << " over " << text_of(dims);
      }
    }
}

TEST(fold_loop, not_a_number_reaches_extremes) {
  for (const Fold how : {Fold::max, Fold::min})
    for (const bool keep : {false, true}) {
      Problem p;
      p.step = StepKind::loop;
      p.in = {dense_desc(Dtype::f32, {5, 37})};
      p.out = {folded_desc({5, 37}, {!keep, keep})};
      ExprBuilder b(p.back);
      b.fold(how, 0, b.load(0));
      Random random(1);
      for (int64_t at = 0; at < 5 * 37; at += 7) {
        std::vector<Buffer> in;
        in.push_back(random_buffer(p.in[0], random));
        store_from_double(in[0].data(), Dtype::f32, at, std::nan(""));
        for (const Kernel& row : kernels_for(StepKind::loop)) {
          if (machine_isa() < row.isa || row.refuse(p, {.isa = row.isa})) continue;
          const auto got = run(row, p, in, 1);
          EXPECT_TRUE(std::isnan(got[0].get(keep ? at % 37 : at / 37))) << row.name;
          EXPECT_FALSE(std::isnan(got[0].get(keep ? (at + 1) % 37 : (at / 37 + 1) % 5))) << row.name;
        }
      }
    }
}

}  // namespace
}  // namespace partita::test
