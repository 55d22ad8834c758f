// SPDX-License-Identifier: Apache-2.0
// Generated normalisations against the reference: optional ports, types, several normalised axes, both formats, short
// and long rows, numbers of threads.
#include <gtest/gtest.h>

#include <cmath>

#include "src/base/dtype.hpp"
#include "src/base/text.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/random_windows.hpp"
#include "tests/support/streams_alone.hpp"

namespace partita::test {
namespace {

struct Types {
  Dtype data, vectors;
};

constexpr Range kPositive{0.5, 2};

/// Rows with gaps behind them, or dense. Axes from `first` on stay one run.
TensorDesc rows_desc(Dtype dtype, const Dims& dims, int64_t first, Random& random) {
  TensorDesc desc = dense_desc(dtype, dims);
  if (random.coin()) return desc;
  const int64_t gap = random.whole(1, 3);
  int64_t stride = 1;
  for (int d = dims.size() - 1; d >= 0; --d) {
    if (d + 1 == first) stride += gap;
    desc.strides[d] = stride;
    stride *= dims[d];
  }
  desc.offset = random.whole(0, 3);
  return desc;
}

struct RandomRows {
  Dims dims;
  int64_t first;  ///< normalised axis

  explicit RandomRows(Random& random) {
    if (random.whole(0, 3) == 0) {
      dims = {random.whole(1, 4), random.whole(1, 5000)};
      first = 1;
    } else if (random.whole(0, 9) == 0) {
      dims = {random.whole(1, 2), random.whole(8000, 20000)};
      first = 1;
    } else {
      for (int64_t i = random.whole(1, 3); i > 0; --i) dims.push_back(random.pick<int64_t>({1, 2, 3, 5, 40}));
      first = dims.size();
      for (int64_t i = random.whole(1, 2); i > 0; --i) dims.push_back(random.pick<int64_t>({1, 2, 7, 16, 33}));
    }
  }
  Dims leading() const { return Dims(std::span<const int64_t>(dims).first(static_cast<size_t>(first))); }
  Dims trailing() const { return Dims(std::span<const int64_t>(dims).subspan(static_cast<size_t>(first))); }
};

Expectation expectation(double factor, std::vector<Range> ranges = {}) {
  Expectation e;
  e.ranges = std::move(ranges);
  e.tolerance_factor = factor;
  e.at_least = static_cast<int>(generated_isas().size());
  e.target = {.isa = machine_isa(), .threads = 2};
  return e;
}

void expect_generated_rows_agree(const Problem& p, Random& random) {
  SCOPED_TRACE(str("seed ", random.seed(), ": ", text_of(p)));
  std::vector<Buffer> in;
  for (const TensorDesc& desc : p.in) in.push_back(random_buffer(desc, random));
  const auto expected = reference_results(p, in);
  for (const Isa isa : generated_isas()) {
    const auto got = run_kernel(*generated_row(p.step, isa), p, in, 2);
    for (size_t k = 0; k < got.size(); ++k)
      EXPECT_EQ(difference(got[k], expected[k], 4 * tolerance_of(p.in[0].dtype)), "")
          << name_of(isa) << " output " << k;
  }
}

class jit_rows_norm : public testing::TestWithParam<Types> {};

TEST_P(jit_rows_norm, layer_norm_agrees_with_the_reference) {
  const auto [data, vectors] = GetParam();
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    const RandomRows rows(random);
    const bool affine = random.coin(), statistics = random.coin(), root_mean_square = random.whole(0, 3) == 0;
    Problem p = problem_for(StepKind::layer_norm, root_mean_square ? OpKind::RMSNorm : OpKind::LayerNorm);
    p.attrs.set(Attr::epsilon, 0.01f);
    p.attrs.set(Attr::begin_norm_axis, random.coin() ? rows.first : rows.first - rows.dims.size());
    p.in = {rows_desc(data, rows.dims, rows.first, random)};
    p.out = {rows_desc(data, rows.dims, rows.first, random)};
    const TensorDesc vector = dense_desc(vectors, rows.trailing());
    if (affine) p.in.insert(p.in.end(), root_mean_square ? 1 : 2, vector);
    if (!root_mean_square) {
      p.attrs.set(Attr::use_affine, affine);
      p.attrs.set(Attr::keep_stats, statistics);
      if (statistics) p.out.insert(p.out.end(), 2, dense_desc(vectors, rows.leading()));
    }
    if (random.coin()) p.result_bytes = int64_t{1} << 40;  // a part of something that leaves the caches
    const StreamsAlone assumed(random.coin());
    expect_rows_agree(p, random, expectation(4));
    if (HasFailure()) return;
  }
}

TEST_P(jit_rows_norm, layer_norm_of_rows_far_from_zero_agrees_with_the_reference) {
  const auto [data, vectors] = GetParam();
  for (const Dims& dims : {Dims{7, 5}, Dims{5, 300}, Dims{3, 4096}, Dims{3, 4097}})
    for (const bool statistics : {false, true}) {
      Problem p = problem_for(StepKind::layer_norm, OpKind::LayerNorm);
      p.attrs.set(Attr::epsilon, 0.01f);
      p.attrs.set(Attr::begin_norm_axis, int64_t{1});
      p.attrs.set(Attr::use_affine, false);
      p.attrs.set(Attr::keep_stats, statistics);
      p.in = {dense_desc(data, dims)};
      p.out = {dense_desc(data, dims)};
      if (statistics) p.out.insert(p.out.end(), 2, dense_desc(vectors, {dims[0]}));
      Random random(static_cast<uint64_t>(dims[1]));
      expect_rows_agree(p, random, expectation(4, {{1000, 1004}}));
    }
}

/// Row `far` of a few begins with elements that say nothing about the others; -1: none does.
struct MisleadingRows {
  Problem p = problem_for(StepKind::layer_norm, OpKind::LayerNorm);
  std::vector<Buffer> in;

  MisleadingRows(Dtype data, int64_t length, int64_t far) {
    p.attrs.set(Attr::epsilon, 1e-5f);
    p.attrs.set(Attr::begin_norm_axis, int64_t{1});
    p.attrs.set(Attr::use_affine, false);
    p.attrs.set(Attr::keep_stats, true);
    const Dims dims{5, length};
    p.in = {dense_desc(data, dims)};
    p.out = {dense_desc(data, dims), dense_desc(Dtype::f32, {dims[0]}), dense_desc(Dtype::f32, {dims[0]})};
    Random random(static_cast<uint64_t>(length));
    in.push_back(random_buffer(p.in[0], random, {-1, 1}));
    for (int64_t i = 0; far >= 0 && i < 40; ++i)
      store_from_double(in[0].data(), data, far * length + i, 1000 + static_cast<double>(i % 2));
  }
};

/// Statistics of a row whose first elements are a thousand deviations of the others away, to 2^-20 of their size; its
/// neighbours have the bits that they have without it.
TEST_P(jit_rows_norm, layer_norm_of_rows_with_misleading_beginnings_agrees_with_the_reference) {
  constexpr int64_t kFar = 2;
  const auto [data, vectors] = GetParam();
  struct Way {
    const char* name;
    bool leaves_caches, streams_alone;
  };
  constexpr Way kWays[] = {{"in the caches", false, true}, {"past them", true, true}, {"in tiles", true, false}};
  for (const Isa isa : generated_isas())
    for (const int64_t length : {300, 768, 5000})
      for (const Way& way : kWays) {
        SCOPED_TRACE(str(name_of(isa), ", rows of ", length, ", ", way.name));
        const StreamsAlone assumed(way.streams_alone);
        MisleadingRows all(data, length, kFar), others(data, length, -1);
        if (way.leaves_caches) all.p.result_bytes = others.p.result_bytes = int64_t{1} << 40;
        const Kernel& row = *generated_row(all.p.step, isa);
        const auto got = run_kernel(row, all.p, all.in, 2), without = run_kernel(row, others.p, others.in, 2);
        const auto expected = reference_results(all.p, all.in);
        EXPECT_EQ(difference(got[0], expected[0], 4 * tolerance_of(data)), "");
        for (size_t k : {size_t{1}, size_t{2}})
          for (int64_t r = 0; r < 5; ++r) {
            EXPECT_NEAR(got[k].get(r), expected[k].get(r),
                        std::ldexp(std::abs(expected[k].get(r)) + (k == 1 ? 1 : 0), -20));
            if (r == kFar) continue;
            EXPECT_EQ(got[k].get(r), without[k].get(r)) << "row " << r;
          }
      }
}

TEST_P(jit_rows_norm, gradient_of_layer_norm_agrees_with_the_reference) {
  const auto [data, vectors] = GetParam();
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    const RandomRows rows(random);
    const bool affine = random.coin();
    const TensorDesc statistic = dense_desc(vectors, rows.leading()), vector = dense_desc(vectors, rows.trailing());
    Problem p = problem_for(StepKind::layer_norm_backward, OpKind::LayerNormBackward);
    p.attrs.set(Attr::epsilon, 0.01f);
    p.attrs.set(Attr::begin_norm_axis, rows.first);
    p.attrs.set(Attr::use_affine, affine);
    p.in = {rows_desc(data, rows.dims, rows.first, random), rows_desc(data, rows.dims, rows.first, random), statistic,
            statistic};
    p.out = {rows_desc(data, rows.dims, rows.first, random)};
    if (affine) {
      p.in.insert(p.in.end(), random.whole(1, 2), vector);
      p.out.insert(p.out.end(), 2, vector);
    }
    if (random.coin()) p.result_bytes = int64_t{1} << 40;
    const StreamsAlone assumed(random.coin());
    expect_rows_agree(p, random, expectation(8, {{-1, 1}, {-1, 1}, {-0.1, 0.1}, kPositive}));
    if (HasFailure()) return;
  }
}

TEST_P(jit_rows_norm, group_norm_agrees_with_the_reference) {
  const auto [data, vectors] = GetParam();
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    const int64_t groups = random.whole(1, 3), channels = groups * random.pick<int64_t>({1, 2, 5, 16});
    const bool affine = random.coin(), statistics = random.coin(), channel_last = random.coin();
    std::vector<int64_t> spatial;
    for (int64_t i = random.whole(0, 3); i > 0; --i) spatial.push_back(random.whole(1, 5));
    if (random.whole(0, 5) == 0) spatial = {random.whole(300, 3000)};
    const Dims dims = activation_dims(random.whole(1, 3), channels, spatial, channel_last);
    Problem p = problem_for(StepKind::group_norm, OpKind::GroupNorm);
    p.attrs.set(Attr::data_format, std::string(channel_last ? "NXC" : "NCX"));
    p.attrs.set(Attr::epsilon, 0.01f);
    p.attrs.set(Attr::groups, groups);
    p.attrs.set(Attr::use_affine, affine);
    p.attrs.set(Attr::keep_stats, statistics);
    p.in = {rows_desc(data, dims, 1, random)};
    if (affine) p.in.insert(p.in.end(), 2, dense_desc(vectors, {channels}));
    p.out = {rows_desc(data, dims, 1, random)};
    if (statistics) p.out.insert(p.out.end(), 2, any_desc(vectors, {dims[0], groups}, random));
    // Not all rows: oneDNN's channel-last kernel reads behind long samples.
    expect_generated_rows_agree(p, random);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(types, jit_rows_norm,
                         testing::Values(Types{Dtype::f32, Dtype::f32}, Types{Dtype::bf16, Dtype::f32},
                                         Types{Dtype::f16, Dtype::f32}, Types{Dtype::bf16, Dtype::bf16}),
                         [](const auto& info) {
                           const Types types = info.param;
                           return std::string(name_of(types.data)) + "_" + std::string(name_of(types.vectors));
                         });

void expect_same_for_all_threads(const Problem& p, Isa isa) {
  SCOPED_TRACE(text_of(p));
  Random random(11);
  std::vector<Buffer> in;
  for (size_t k = 0; k < p.in.size(); ++k) in.push_back(random_buffer(p.in[k], random, k == 3 ? kPositive : Range{}));
  const Kernel& row = *generated_row(p.step, isa);
  const auto expected = run_kernel(row, p, in, 1);
  for (int threads : {2, 3, 8}) EXPECT_EQ(byte_difference(run_kernel(row, p, in, threads), expected), "") << threads;
}

TEST(jit_rows_norm_threads, layer_norm_does_not_depend_on_their_number) {
  for (const Isa isa : generated_isas())
    for (const Dims& dims :
         {Dims{700, 96}, Dims{1, 70000}, Dims{5, 20000}, Dims{9000, 5}, Dims{5003, 28}, Dims{2001, 100}}) {
      const TensorDesc data = dense_desc(Dtype::f32, dims), vector = dense_desc(Dtype::f32, {dims[1]}),
                       statistic = dense_desc(Dtype::f32, {dims[0]});
      Problem forward = problem_for(StepKind::layer_norm, OpKind::LayerNorm);
      forward.in = {data, vector, vector};
      forward.out = {data, statistic, statistic};
      Problem backward = problem_for(StepKind::layer_norm_backward, OpKind::LayerNormBackward);
      backward.in = {data, data, statistic, statistic, vector};
      backward.out = {data, vector, vector};
      for (Problem* p : {&forward, &backward}) {
        p->attrs.set(Attr::epsilon, 0.01f);
        p->attrs.set(Attr::begin_norm_axis, int64_t{1});
        p->attrs.set(Attr::use_affine, true);
        p->attrs.set(Attr::keep_stats, true);
        expect_same_for_all_threads(*p, isa);
      }
    }
}

TEST(jit_rows_norm_threads, group_norm_does_not_depend_on_their_number) {
  for (const Isa isa : generated_isas())
    for (const bool channel_last : {false, true})
      for (const int64_t batch : {1, 9}) {
        const TensorDesc data = dense_desc(Dtype::f32, activation_dims(batch, 12, {90, 91}, channel_last));
        Problem p = problem_for(StepKind::group_norm, OpKind::GroupNorm);
        p.in = {data};
        p.out = {data};
        p.attrs.set(Attr::data_format, std::string(channel_last ? "NXC" : "NCX"));
        p.attrs.set(Attr::epsilon, 0.01f);
        p.attrs.set(Attr::groups, int64_t{3});
        p.attrs.set(Attr::use_affine, false);
        p.attrs.set(Attr::keep_stats, false);
        expect_same_for_all_threads(p, isa);
      }
}

}  // namespace
}  // namespace partita::test
