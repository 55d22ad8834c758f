// SPDX-License-Identifier: Apache-2.0
// Transposing generated code on guarded memory: the copy of tiles against plain loops, and loops whose operands and
// outputs lie in any order, with gaps or repeated, against the interpreter.
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/jit/flat/transpose.hpp"
#include "src/base/text.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/random_loop.hpp"

namespace partita::test {
namespace {

void check_transpose(Isa isa, const jit::TransposeShape& s) {
  const auto bytes = static_cast<size_t>(s.bytes);
  const int64_t apart = int64_t{s.step} * s.bytes;
  GuardedMemory src(static_cast<size_t>((s.a - 1) * s.src_row + (s.b - 1) * apart + s.bytes), 0);
  GuardedMemory dst(static_cast<size_t>((s.b - 1) * s.dst_row + s.a * s.bytes), 0xee);
  for (size_t i = 0; i < src.size(); ++i) src.data()[i] = static_cast<std::byte>(i * 37 + i / 251);
  const jit::TransposeKernel kernel(isa, s);
  kernel(src.data(), dst.data());
  std::vector<bool> written(dst.size());
  for (int64_t a = 0; a < s.a; ++a)
    for (int64_t b = 0; b < s.b; ++b) {
      const int64_t from = a * s.src_row + b * apart, to = b * s.dst_row + a * s.bytes;
      ASSERT_EQ(std::memcmp(src.data() + from, dst.data() + to, bytes), 0) << "element " << a << ", " << b;
      std::fill_n(written.begin() + to, s.bytes, true);
    }
  for (size_t i = 0; i < dst.size(); ++i) ASSERT_TRUE(written[i] || dst.data()[i] == std::byte{0xee}) << "byte " << i;
}

TEST(jit_strided, tiles_of_every_size_are_transposed) {
  for (Isa isa : generated_isas())
    for (int bytes : {1, 2, 4})
      for (int64_t a = 1; a <= 67; a += a < 18 ? 1 : 7)
        for (int64_t b = 1; b <= 35; b += b < 18 ? 1 : 4) {
          SCOPED_TRACE(str(name_of(isa), " ", bytes, " bytes, ", a, " x ", b));
          Random random(static_cast<uint64_t>(a * 100 + b));
          check_transpose(isa, {bytes, a, b, (b + random.whole(0, 3)) * bytes, (a + random.whole(0, 3)) * bytes});
          jit::TransposeShape runs{bytes, a, b, (b + random.whole(0, 3)) * bytes, (a + random.whole(0, 3)) * bytes};
          runs.writes_runs = true;
          check_transpose(isa, runs);
          runs.src_row = b * bytes;
          runs.fetches_next = true;
          check_transpose(isa, runs);
          if (HasFailure()) return;
        }
}

/// Few rows whose elements take turns in a run, and a run that becomes few rows.
TEST(jit_strided, few_rows_and_runs_are_transposed) {
  for (Isa isa : generated_isas())
    for (int bytes : {1, 2, 4})
      for (int64_t few = 1; few <= 9; ++few)
        for (int64_t many : {15, 16, 17, 31, 32, 33, 64, 95, 130}) {
          SCOPED_TRACE(str(name_of(isa), " ", bytes, " bytes, ", few, " rows of ", many));
          check_transpose(isa, {bytes, few, many, (many + 3) * bytes, few * bytes});
          check_transpose(isa, {bytes, many, few, few * bytes, (many + 5) * bytes});
          if (many * bytes % 64 == 0) check_transpose(isa, {bytes, many, few, few * bytes, many * bytes, true});
          if (HasFailure()) return;
        }
}

TEST(jit_strided, elements_that_lie_apart_are_transposed) {
  for (Isa isa : generated_isas())
    for (int step : {2, 3, 4})
      for (int64_t a : {1, 7, 9, 16, 19})
        for (int64_t b : {1, 5, 8, 16, 23, 33}) {
          SCOPED_TRACE(str(name_of(isa), " step ", step, ", ", a, " x ", b));
          check_transpose(isa, {4, a, b, (b * step + 1) * 4, (a + 2) * 4, false, step});
          if (HasFailure()) return;
        }
}

/// A source whose neighbours lie along an axis of few places, a result that ends in another one.
TEST(jit_strided, short_innermost_axes_agree_with_the_interpreter) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    const int64_t few = random.whole(2, 4), many = random.whole(1, 70), rows = random.whole(1, 40);
    Problem p = problem_for(StepKind::loop, OpKind::Wildcard);
    const Dtype dtype = random.pick({Dtype::f32, Dtype::f32, Dtype::s32, Dtype::bf16});
    p.out = {dense_desc(dtype, {few, many, rows})};
    p.in = {p.out[0]};
    p.in[0].strides = {1, few, few * many};
    ExprBuilder b(p.back);
    const auto x = b.load(0);
    b.store(0, dtype == Dtype::f32 && random.coin() ? b.add(x, b.constant(1)) : x);
    const int compared = expect_generated_rows_agree(p, random, Closeness::equal, "transpose");
    EXPECT_TRUE(compared > 0 || !generates_code()) << "seed " << seed;
    if (HasFailure()) return;
  }
}

/// Generated code takes the loop, and gives the interpreter's results.
void expect_taken_and_equal(const Problem& p, Random& random) {
  const int compared = expect_generated_rows_agree(p, random, Closeness::equal, "loop_any_jit");
  EXPECT_TRUE(compared > 0 || !generates_code()) << "seed " << random.seed();
}

/// Axes of rows in any order: few rows are a group of the axis around them.
TEST(jit_strided, few_rows_behind_many_agree_with_the_interpreter) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Random random(seed);
    const int64_t outer = random.whole(1, 3), many = random.whole(1, 90), few = random.whole(1, 18),
                  length = random.whole(2, 40);
    const Dtype dtype = random.pick({Dtype::f32, Dtype::bf16, Dtype::s8});
    Problem p = problem_for(StepKind::loop, OpKind::Wildcard);
    p.out = {dense_desc(dtype, {outer, many, few, length})};
    p.in = {p.out[0], p.out[0]};
    p.in[0].strides = {few * many * length, length, many * length, 1};
    if (random.coin()) p.in[1].strides[static_cast<int>(random.whole(0, 2))] = 0;
    ExprBuilder b(p.back);
    const auto x = b.load(0);
    b.store(0, random.coin() ? b.add(x, b.load(1)) : b.max(b.load(1), x));
    expect_taken_and_equal(p, random);
    if (HasFailure()) return;
  }
}

/// Rows that are pieces of a line, whose neighbours lie along an axis far out; also with an operand along that axis.
TEST(jit_strided, rows_that_share_lines_agree_with_the_interpreter) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Random random(seed);
    const int64_t outer = random.whole(2, 12), between = random.whole(1, 9), many = random.whole(10, 60),
                  length = random.whole(2, 8);
    const Dtype dtype = random.pick({Dtype::f32, Dtype::bf16});
    Problem p = problem_for(StepKind::loop, OpKind::Wildcard);
    p.out = {dense_desc(dtype, {outer, between, many, length})};
    p.in = {p.out[0], p.out[0]};
    p.in[0].strides = {length, outer * length, between * outer * length, 1};
    p.in[1].strides = random.coin() ? Dims{1, 0, 0, 0} : Dims{between, 1, 0, 0};
    ExprBuilder b(p.back);
    const auto x = b.load(0);
    b.store(0, random.coin() ? b.sub(x, b.load(1)) : x);
    expect_taken_and_equal(p, random);
    if (HasFailure()) return;
  }
}

/// Any order of axes, of which some are short: tiles are small, and neighbours have parts of the same cache lines.
TEST(jit_strided, copies_of_any_order_of_axes_agree_with_the_interpreter) {
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    Random random(seed);
    const auto rank = random.whole(3, 5);
    const auto long_axis = random.whole(0, rank - 1);
    Dims dims, order;
    for (int64_t d = 0; d < rank; ++d) {
      dims.push_back(d == long_axis ? random.whole(20, 300) : random.whole(1, 9));
      order.push_back(d);
    }
    std::shuffle(order.begin(), order.end(), random.engine());
    Problem p = problem_for(StepKind::loop, OpKind::StaticTranspose);
    p.out = {dense_desc(random.pick({Dtype::f32, Dtype::bf16, Dtype::s8}), dims)};
    p.in = p.out;
    int64_t stride = 1;
    for (int64_t d : order) {
      p.in[0].strides[static_cast<int>(d)] = stride;
      stride *= dims[static_cast<int>(d)] + (random.whole(0, 3) == 0 ? random.whole(1, 3) : 0);
    }
    if (random.coin()) std::swap(p.in[0].strides, p.out[0].strides);
    ExprBuilder b(p.back);
    b.store(0, b.load(0));
    expect_taken_and_equal(p, random);
    if (HasFailure()) return;
  }
}

TEST(jit_strided, streaming_transposes_write_the_same) {
  for (Isa isa : generated_isas())
    for (int bytes : {2, 4})
      for (const bool runs : {false, true}) {
        jit::TransposeShape shape{bytes, 192 / bytes, 21, int64_t{21} * bytes, 256, true};
        shape.writes_runs = shape.fetches_next = runs;
        check_transpose(isa, shape);
      }
}

/// Images from one data format to the other, whole or with channels left out, as if they left the caches.
TEST(jit_strided, large_images_change_their_format_to_the_bit) {
  int compared = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    const Dtype dtype = random.pick({Dtype::f32, Dtype::bf16, Dtype::f16});
    const int64_t channels = random.pick<int64_t>({8, 32, 64, 96}), places = random.pick<int64_t>({64, 160, 384});
    const int64_t left_out = random.pick<int64_t>({0, 0, 32}), batch = random.whole(1, 3);
    Problem p = problem_for(StepKind::loop, OpKind::Wildcard);
    const bool first = random.coin();  // what the result is
    p.out = {dense_desc(dtype, first ? Dims{batch, channels, places} : Dims{batch, places, channels})};
    p.in = {p.out[0]};
    const int64_t whole = channels + left_out;
    p.in[0].strides = first ? Dims{places * whole, 1, whole} : Dims{places * whole, 1, places};
    p.result_bytes = int64_t{1} << 40;
    ExprBuilder b(p.back);
    b.store(0, b.load(0));
    SCOPED_TRACE(str("seed ", seed));
    compared += expect_generated_rows_agree(p, random, Closeness::equal, "transpose");
    if (HasFailure()) return;
  }
  EXPECT_TRUE(compared > 0 || !generates_code());
}

TEST(jit_strided, loops_agree_with_the_interpreter_to_the_bit) {
  constexpr uint64_t kSeeds = 400;
  int compared = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Random random(seed);
    compared += expect_generated_rows_agree(random_strided_loop(random), random, Closeness::equal, "transpose");
    if (HasFailure()) return;
  }
  if (generates_code()) {
    EXPECT_GE(compared, static_cast<int>(kSeeds) / 2);
  }
}

}  // namespace
}  // namespace partita::test
