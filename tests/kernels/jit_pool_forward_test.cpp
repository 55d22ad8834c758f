// SPDX-License-Identifier: Apache-2.0
// Generated forward poolings against the reference, and against the interpreter where expressions stand around them:
// random windows, types, both data formats, every instruction set of the machine, guarded memory, any number of
// threads.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "src/base/threads.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/large_results.hpp"
#include "tests/support/pool_case.hpp"

namespace partita::test {
namespace {

/// Rows of generated code that an instruction set allows, and the interpreter.
int rows_under(Isa isa) { return !PARTITA_JIT ? 1 : isa == Isa::avx512 ? 3 : 2; }

struct Shape {
  bool maximum = true, channel_last = true, exclude_pad = true;
  int64_t batch = 1, channels = 1;
  Dtype dtype = Dtype::f32;
};

Problem pool_over(const Shape& shape, const Geometry& g) {
  return pool_problem({.op = shape.maximum ? OpKind::MaxPool : OpKind::AvgPool,
                       .windows = g,
                       .channel_last = shape.channel_last,
                       .dtype = shape.dtype,
                       .batch = shape.batch,
                       .channels = shape.channels,
                       .exclude_pad = shape.exclude_pad});
}

Shape random_shape(Random& random) {
  return {.maximum = random.coin(),
          .channel_last = random.coin(),
          .exclude_pad = random.coin(),
          .batch = random.whole(1, 2),
          .channels = random.pick<int64_t>({1, 2, 3, 8, 16, 21, 40}),
          .dtype = random.pick({Dtype::f32, Dtype::bf16, Dtype::f16, Dtype::s8, Dtype::u8})};
}

void expect_agreement(const Problem& p, Random& random, Isa isa) {
  const Range range = is_integer(p.in[0].dtype) ? Range{-130, 260} : Range{};
  expect_rows_agree(p, random, {.ranges = {range}, .at_least = rows_under(isa), .target = {.isa = isa, .threads = 2}});
}

/// Calls check(row, its results, the interpreter's results) for every row of generated code.
template <class Check>
void each_generated(const Problem& p, const std::vector<Buffer>& in, int threads, Check check) {
  const auto rows = kernels_for(p.step);
  const Kernel* interpreter = nullptr;
  for (const Kernel& row : rows)
    if (std::string_view(row.name) == "pool_forward_any_interpreter") interpreter = &row;
  const auto expected = run_kernel(*interpreter, p, in, threads);
  for (const Kernel& row : rows) {
    if (std::string_view(row.name).find("_jit_") == std::string_view::npos || machine_isa() < row.isa) continue;
    SCOPED_TRACE(row.name);
    ASSERT_EQ(row.refuse(p, {.isa = row.isa}), nullptr);
    check(row, run_kernel(row, p, in, threads), expected);
  }
}

TEST(jit_pool_forward, random_windows_agree_with_the_reference) {
  for (const Isa isa : generated_isas())
    for (uint64_t seed = 1; seed <= 250; ++seed) {
      Random random(seed);
      const Shape shape = random_shape(random);
      const Geometry g = random_geometry(random, {.dilated = shape.maximum, .round_up = random.coin()});
      expect_agreement(pool_over(shape, g), random, isa);
      if (HasFailure()) return;
    }
}

/// Whole vectors, several tiles, many rows and taps, long strides.
TEST(jit_pool_forward, large_windows_agree_with_the_reference) {
  const Geometry cases[] = {
      geometry_of({23, 37}, {3, 3}, {2, 2}, {1, 1}, {1, 1}),
      geometry_of({40, 50}, {2, 2}, {2, 2}, {0, 0}, {1, 1}),
      geometry_of({7, 7}, {7, 7}, {1, 1}, {0, 0}, {1, 1}),
      geometry_of({6, 5, 4}, {6, 5, 4}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}),
      geometry_of({9, 11}, {13, 15}, {1, 1}, {2, 2}, {1, 1}),
      geometry_of({12, 45}, {11, 20}, {1, 3}, {3, 4}, {1, 1}),
      geometry_of({3, 90}, {1, 12}, {1, 11}, {0, 0}, {1, 1}),
      geometry_of({130}, {40}, {17}, {11}, {1}),
      geometry_of({5, 6, 35}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}),
      geometry_of({10, 9}, {10, 2}, {1, 1}, {0, 0}, {1, 1}),
      geometry_of({8, 40}, {2, 40}, {2, 1}, {0, 0}, {1, 1}),
      geometry_of({70, 20}, {3, 3}, {3, 4}, {1, 1}, {1, 1}),
      geometry_of({9, 80}, {1, 1}, {1, 5}, {0, 0}, {1, 1}),
  };
  for (const Isa isa : generated_isas())
    for (const Geometry& g : cases)
      for (const bool maximum : {true, false})
        for (const bool channel_last : {true, false}) {
          Random random(7);
          const Shape shape{.maximum = maximum,
                            .channel_last = channel_last,
                            .exclude_pad = random.coin(),
                            .batch = 2,
                            .channels = random.pick<int64_t>({5, 33}),
                            .dtype = random.pick({Dtype::f32, Dtype::bf16, Dtype::u8})};
          expect_agreement(pool_over(shape, g), random, isa);
          if (HasFailure()) return;
        }
}

TEST(jit_pool_forward, dilated_maxima_agree_with_the_reference) {
  for (const Isa isa : generated_isas())
    for (const bool channel_last : {true, false}) {
      Random random(11);
      const Geometry g = geometry_of({20, 41}, {3, 4}, {2, 3}, {2, 3}, {2, 5});
      expect_agreement(pool_over({.channel_last = channel_last, .batch = 2, .channels = 18}, g), random, isa);
    }
}

/// Memory in another order: taken where the rows' elements lie side by side, else left to other rows of the table.
TEST(jit_pool_forward, scattered_tensors_agree_with_the_reference) {
  for (const Isa isa : generated_isas())
    for (uint64_t seed = 1; seed <= 120; ++seed) {
      Random random(seed);
      const Shape shape = random_shape(random);
      Problem p = pool_over(shape, random_geometry(random, {.dilated = shape.maximum}));
      for (auto* side : {&p.in, &p.out})
        for (TensorDesc& desc : *side) {
          if (random.coin()) {
            desc = scattered_desc(desc.dtype, desc.dims, random);
            continue;
          }
          // A view: rows with gaps between them.
          Dims padded = desc.dims;
          for (int64_t& extent : padded) extent += random.whole(0, 1);
          desc.strides = dense_desc(desc.dtype, padded).strides;
          desc.offset = random.whole(0, 3);
        }
      const Range range = is_integer(shape.dtype) ? Range{-130, 260} : Range{};
      expect_rows_agree(p, random, {.ranges = {range}, .target = {.isa = isa, .threads = 2}});
      if (HasFailure()) return;
    }
}

/// Windows that lie wholly in the padding give the type's lowest value, or 0; others do not notice the padding.
TEST(jit_pool_forward, windows_without_cells_agree_with_the_reference) {
  for (const Isa isa : generated_isas())
    for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16, Dtype::s8, Dtype::u8})
      for (const bool maximum : {true, false})
        for (const bool channel_last : {true, false}) {
          Random random(5);
          Geometry g = geometry_of({4, 5}, {2, 2}, {1, 1}, {3, 3}, {1, 1});
          Problem p = pool_over({.maximum = maximum, .channel_last = channel_last, .channels = 3, .dtype = dtype}, g);
          expect_rows_agree(p, random, {.at_least = rows_under(isa), .target = {.isa = isa, .threads = 1}});
        }
}

TEST(jit_pool_forward, nan_counts_as_maximum_and_infinities_pass) {
  for (const bool channel_last : {true, false})
    for (const int64_t stride : {1, 2})
      for (uint64_t seed = 1; seed <= 20; ++seed) {
        Random random(seed);
        const Geometry g = geometry_of({9, 19}, {3, 3}, {stride, stride}, {1, 1}, {1, 1});
        const Problem p = pool_over({.channel_last = channel_last, .channels = 5}, g);
        std::vector<Buffer> in;
        in.push_back(random_buffer(p.in[0], random));
        auto* values = static_cast<float*>(in[0].data());
        for (int64_t i = 0; i < elements(p.in[0].dims); ++i) {
          const int64_t kind = random.whole(0, 11);
          if (kind == 0) values[i] = std::numeric_limits<float>::quiet_NaN();
          if (kind > 6) values[i] = -std::numeric_limits<float>::infinity();
        }
        each_generated(p, in, 1,
                       [&](const Kernel&, const std::vector<Buffer>& got, const std::vector<Buffer>& expected) {
                         EXPECT_EQ(difference(got[0], expected[0], 0), "") << "seed " << seed;
                       });
        if (HasFailure()) return;
      }
}

/// An operand over `dims`: of any type, repeated along some axes.
TensorDesc extra_operand(const Dims& dims, Random& random) {
  const Dtype dtype = random.pick({Dtype::f32, Dtype::bf16, Dtype::s8});
  TensorDesc desc = dense_desc(dtype, dims);
  if (random.coin()) return desc;
  Dims kept = dims;
  for (int64_t& extent : kept)
    if (random.coin()) extent = 1;
  const Dims strides = dense_desc(dtype, kept).strides;
  for (int d = 0; d < dims.size(); ++d) desc.strides[d] = kept[d] == 1 ? 0 : strides[d];
  return desc;
}

/// |x| + f in front, x * x - s behind, stored twice.
void add_expressions(Problem& p, Random& random) {
  if (random.coin()) {
    p.in.push_back(extra_operand(p.in[0].dims, random));
    ExprBuilder b(p.front);
    p.front.result = b.add(b.apply(ExprOp::abs, b.load(0)), b.load(static_cast<int>(p.in.size()) - 1));
    if (random.coin()) return;
  }
  p.in.push_back(extra_operand(p.out[0].dims, random));
  p.out.push_back(dense_desc(random.pick({Dtype::f32, Dtype::bf16}), p.out[0].dims));
  ExprBuilder b(p.back);
  const auto squared = b.apply(ExprOp::square, b.skeleton());
  b.store(1, squared);
  b.store(0, b.sub(squared, b.load(static_cast<int>(p.in.size()) - 1)));
}

TEST(jit_pool_forward, expressions_around_the_pooling_agree_with_the_interpreter) {
  for (uint64_t seed = 1; seed <= 250; ++seed) {
    Random random(seed);
    Shape shape = random_shape(random);
    shape.dtype = random.pick({Dtype::f32, Dtype::bf16, Dtype::f16});
    const Geometry g = seed % 5 == 0 ? geometry_of({7, 6}, {7, 6}, {1, 1}, {0, 0}, {1, 1})
                                     : random_geometry(random, {.dilated = shape.maximum, .round_up = random.coin()});
    Problem p = pool_over(shape, g);
    add_expressions(p, random);
    SCOPED_TRACE(str("seed ", seed, ": ", text_of(p)));
    std::vector<Buffer> in;
    for (const TensorDesc& desc : p.in) in.push_back(random_buffer(desc, random, {-2, 2}));
    each_generated(p, in, 2, [&](const Kernel&, const std::vector<Buffer>& got, const std::vector<Buffer>& expected) {
      for (size_t k = 0; k < got.size(); ++k) {
        EXPECT_EQ(difference(got[k], expected[k], tolerance_of(got[k].desc.dtype)), "") << "output " << k;
        EXPECT_EQ(damage(got[k]), "");
      }
    });
    if (HasFailure()) return;
  }
}

TEST(jit_pool_forward, results_do_not_depend_on_the_number_of_threads) {
  const Geometry cases[] = {geometry_of({33, 35}, {3, 3}, {2, 2}, {1, 1}, {1, 1}),
                            geometry_of({14, 14}, {3, 3}, {1, 1}, {1, 1}, {1, 1}),
                            geometry_of({13, 12}, {13, 12}, {1, 1}, {0, 0}, {1, 1})};
  for (const Geometry& g : cases)
    for (const bool channel_last : {true, false}) {
      Random random(3);
      const Problem p = pool_over({.maximum = false, .channel_last = channel_last, .batch = 3, .channels = 70}, g);
      std::vector<Buffer> in;
      in.push_back(random_buffer(p.in[0], random));
      for (const Kernel& row : kernels_for(p.step)) {
        if (std::string_view(row.name).find("_jit_") == std::string_view::npos || machine_isa() < row.isa) continue;
        std::vector<Buffer> first;
        for (const int threads : {1, 2, 3, 8}) {
          const ThreadScope scope(threads);
          auto out = run_kernel(row, p, in, threads);
          if (threads == 1)
            first = std::move(out);
          else
            EXPECT_EQ(std::memcmp(out[0].data(), first[0].data(), out[0].bytes.size()), 0)
                << row.name << " with " << threads << " threads";
        }
      }
    }
}

/// Channel-last cells here are whole cache lines, channel-first rows are not always.
TEST(jit_pool_forward, large_results_have_the_bits_of_stores_through_the_caches) {
  expect_same_bits_of_seeds(10, [](Random& random, Dtype dtype, int64_t bytes) {
    const Shape shape{.maximum = random.coin(),
                      .channel_last = random.whole(0, 3) > 0,
                      .exclude_pad = random.coin(),
                      .channels = random.pick<int64_t>({32, 64, 160}),
                      .dtype = dtype};
    const int64_t kernel = random.whole(2, 3), stride = random.whole(1, 2),
                  columns = random.pick<int64_t>({16, 21, 64});
    const int64_t rows = bytes * 8 / (shape.channels * columns * bits_of(dtype)) + 2;
    return pool_over(shape, geometry_of({(rows - 1) * stride + kernel, (columns - 1) * stride + kernel},
                                        {kernel, kernel}, {stride, stride}, {0, 0}, {1, 1}));
  });
}

TEST(jit_pool_forward, coordinates_and_empty_tensors_are_refused) {
  Problem p = pool_over({.channels = 4}, geometry_of({4, 4}, {2, 2}, {2, 2}, {0, 0}, {1, 1}));
  const Kernel& row = kernels_for(StepKind::pool_forward).front();
  if (std::string_view(row.name).find("_jit_") == std::string_view::npos)
    GTEST_SKIP() << "built without generated code";
  EXPECT_EQ(row.refuse(p, {.isa = row.isa}), nullptr);
  Problem reads = p;
  ExprBuilder b(reads.back);
  b.store(0, b.add(b.skeleton(), b.apply(ExprOp::to_f32, b.index(1))));
  EXPECT_NE(row.refuse(reads, {.isa = row.isa}), nullptr);
  p.in[0].dims[0] = p.out[0].dims[0] = 0;
  EXPECT_NE(row.refuse(p, {.isa = row.isa}), nullptr);
}

}  // namespace
}  // namespace partita::test
