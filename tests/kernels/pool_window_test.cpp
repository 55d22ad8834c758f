// SPDX-License-Identifier: Apache-2.0
// Gradients of poolings whose windows cover each cell once: against the reference, with ties and NaN, with expressions
// around them against the same problem without, and streamed in every way.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "kernels/jit/pool/backward/window.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/large_results.hpp"
#include "tests/support/pool_case.hpp"

namespace partita::test {
namespace {

struct Wanted {
  bool maximum, channel_last;
};

Wanted any_kind(Random& random) { return {random.coin(), random.coin()}; }

/// Rows are long enough for vectors, whichever way these go.
Problem whole_windows(Dtype dtype, Wanted wanted, Random& random) {
  Geometry g;
  const int64_t axes = random.whole(1, 3);
  const int64_t channels =
      wanted.channel_last ? random.pick<int64_t>({1, 3, 6, 7, 8, 13, 16, 31, 32, 40, 70}) : random.whole(1, 5);
  const bool across = wanted.channel_last && channels >= 8;
  for (int64_t i = 0; i < axes; ++i) {
    const int64_t kernel = random.whole(1, axes == 1 ? 6 : axes == 2 ? (across ? 8 : 4) : 2);
    const int64_t narrow = i + 1 < axes || across ? random.whole(1, 5) : random.whole(8, 70);
    g.add({.wide = narrow * kernel, .narrow = narrow, .kernel = kernel, .stride = kernel});
  }
  return pool_problem({.op = pool_gradient(wanted.maximum),
                       .windows = g,
                       .channel_last = wanted.channel_last,
                       .dtype = dtype,
                       .batch = random.whole(1, 3),
                       .channels = channels,
                       .exclude_pad = random.coin()});
}

TEST(pool_window, gradients_are_those_of_the_reference) {
  constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  for (const Isa isa : generated_isas())
    for (uint64_t seed = 1; seed <= 160; ++seed) {
      Random random(seed);
      const Problem p = whole_windows(random.pick({Dtype::f32, Dtype::bf16, Dtype::f16}), any_kind(random), random);
      SCOPED_TRACE(str(name_of(isa), " seed ", seed, ": ", text_of(p)));
      ASSERT_TRUE(jit::WindowPool::fits(p, {.isa = isa}));
      std::vector<Buffer> in;
      for (const TensorDesc& desc : p.in) in.push_back(random_buffer(desc, random));
      if (p.in.size() > 1 && random.coin())
        for (int64_t i = 0; i < elements(p.in[0].dims); ++i)
          store_from_double(in[0].data(), p.in[0].dtype, i, random.pick({-kInf, -kInf, kNan, kInf, 0.0f, 0.0f, 1.0f}));
      const Kernel* row = generated_row(p.step, isa);
      ASSERT_NE(row, nullptr);
      const auto got = run_kernel(*row, p, in, 2), expected = reference_results(p, in);
      if (p.in.size() > 1)
        EXPECT_EQ(byte_difference(got, expected), "");
      else  // a reciprocal instead of a division
        EXPECT_EQ(difference(got[0], expected[0], tolerance_of(p.out[0].dtype)), "");
      if (HasFailure()) return;
    }
}

/// front: the gradient times an operand; back: a second operand, which for a maximum is compared with the source, else
/// with zero, decides what stays, to which an average's may be added, and which is stored twice.
TEST(pool_window, expressions_are_computed_in_the_same_step) {
  for (const Isa isa : generated_isas())
    for (uint64_t seed = 1; seed <= 120; ++seed) {
      Random random(seed);
      const Wanted kind = any_kind(random);
      const Problem plain = whole_windows(Dtype::f32, kind, random);
      Problem p = plain;
      SCOPED_TRACE(str(name_of(isa), " seed ", seed, ": ", text_of(p)));
      const int gradient = kind.maximum ? 1 : 0, scale = gradient + 1, other = gradient + 2, more = gradient + 3;
      const bool adds = !kind.maximum && random.coin();
      if (random.coin()) p.result_bytes = int64_t{1} << 40;  // as if it was part of something that leaves the caches
      p.ports_in = scale;
      p.ports_out = 1;
      p.in.push_back(plain.in[static_cast<size_t>(gradient)]);
      p.in.push_back(dense_desc(Dtype::bf16, plain.out[0].dims));
      if (adds) p.in.push_back(plain.out[0]);
      p.out.push_back(dense_desc(Dtype::bf16, plain.out[0].dims));
      ExprBuilder front(p.front);
      p.front.result = front.mul(front.load(gradient), front.load(scale));
      ExprBuilder back(p.back);
      const auto bound = kind.maximum ? back.load(0) : back.constant(0);
      auto kept = back.select(back.gt(back.load(other), bound), back.skeleton(), back.constant(0));
      if (adds) kept = back.add(kept, back.load(more));
      back.store(0, kept);
      back.store(1, kept);
      std::vector<Buffer> in;
      for (const TensorDesc& desc : p.in) in.push_back(random_buffer(desc, random));
      std::vector<Buffer> prepared;
      for (int k = 0; k <= gradient; ++k) {
        const auto at = static_cast<size_t>(k);
        prepared.push_back(nan_buffer(plain.in[at]));
        for (int64_t i = 0; i < elements(plain.in[at].dims); ++i)
          store_from_double(
              prepared[at].data(), Dtype::f32, i,
              k < gradient ? in[at].get(i) : static_cast<float>(in[at].get(i) * in[static_cast<size_t>(scale)].get(i)));
      }
      const auto pooled = reference_results(plain, prepared);
      const Kernel* row = generated_row(p.step, isa);
      ASSERT_NE(row, nullptr);
      const auto got = run_kernel(*row, p, in, 2);
      for (int64_t i = 0; i < elements(plain.out[0].dims); ++i) {
        const bool stays = in[static_cast<size_t>(other)].get(i) > (kind.maximum ? in[0].get(i) : 0);
        const double left = stays ? pooled[0].get(i) : 0, added = adds ? in[static_cast<size_t>(more)].get(i) : 0;
        const double value = left + added, terms = std::abs(left) + std::abs(added);
        ASSERT_NEAR(got[0].get(i), value, kind.maximum ? 0 : terms / (1 << 22)) << "element " << i;
        ASSERT_NEAR(got[1].get(i), value, std::abs(value) / 128 + (adds ? terms / (1 << 22) : 0)) << "element " << i;
      }
    }
}

/// Rows of whole cache lines, of halves and of quarters of them; the same bytes as without streaming.
TEST(pool_window, streamed_pieces_make_whole_rows) {
  for (const Isa isa : generated_isas())
    for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16})
      for (const int64_t narrow : {32, 28, 20})
        for (const bool maximum : {false, true}) {
          Random random(static_cast<uint64_t>(narrow));
          constexpr int64_t kRows = 5;
          const int64_t each = element_bytes(dtype), row_bytes = 2 * narrow * each;
          Geometry g;
          for (const int64_t windows : {kRows, narrow})
            g.add({.wide = 2 * windows, .narrow = windows, .kernel = 2, .stride = 2});
          const Problem p = pool_problem({.op = pool_gradient(maximum), .windows = g, .dtype = dtype});
          SCOPED_TRACE(str(name_of(isa), " ", text_of(p)));
          std::vector<Buffer> in;
          for (const TensorDesc& desc : p.in) in.push_back(random_buffer(desc, random));
          const jit::PoolPlan plan(p);
          const auto run = [&](int piece, std::byte* out) {
            std::vector<const void*> addresses;
            if (maximum)
              for (int64_t row : {0, 1}) addresses.push_back(static_cast<std::byte*>(in[0].data()) + row * row_bytes);
            addresses.push_back(in.back().data());
            for (int64_t row : {0, 1}) addresses.push_back(out + row * row_bytes);
            jit::WindowKernel(isa, plan, p, {.piece = piece})({addresses.data(), kRows});
          };
          struct alignas(64) Line {
            std::array<std::byte, 64> bytes;
          };
          const auto bytes = static_cast<size_t>(2 * kRows * row_bytes);
          std::vector<Line> kept(bytes / 64 + 2), streamed(kept.size());
          run(0, kept[0].bytes.data());
          run(static_cast<int>(std::gcd(64, row_bytes)), streamed[0].bytes.data());
          EXPECT_EQ(std::memcmp(kept.data(), streamed.data(), kept.size() * 64), 0);
        }
}

/// Rows of averages' gradients that are no whole cache lines.
TEST(pool_window, joined_rows_have_the_bits_of_stores_through_the_caches) {
  expect_same_bits_of_seeds(24, [](Random& random, Dtype dtype, int64_t bytes) {
    Geometry g;
    const int64_t axes = random.whole(1, 2);
    for (int64_t i = 0; i < axes; ++i) {
      const int64_t kernel = random.whole(2, 3);
      const int64_t narrow = i + 1 < axes ? random.whole(1, 6) : random.pick<int64_t>({9, 14, 16, 28, 48, 49, 75, 90});
      g.add({.wide = narrow * kernel, .narrow = narrow, .kernel = kernel, .stride = kernel});
    }
    constexpr int64_t kChannels = 37;
    int64_t item = kChannels * element_bytes(dtype);
    for (const int64_t wide : g.wide) item *= wide;
    Problem p = pool_problem({.op = OpKind::AvgPoolBackward,
                              .windows = g,
                              .dtype = dtype,
                              .batch = bytes / item + 2,
                              .channels = kChannels});
    if (random.coin()) add_and_store_twice(p);
    return p;
  });
}

/// Rows of any number of cells and channels, as parts of something that leaves the caches: cells of 3 or 6 channels
/// make vectors that begin nowhere in particular.
TEST(pool_window, parts_of_large_results_have_the_bits_of_stores_through_the_caches) {
  for (const Isa isa : generated_isas())
    for (uint64_t seed = 1; seed <= 120; ++seed) {
      Random random(seed);
      const Dtype dtype = random.pick({Dtype::f32, Dtype::bf16, Dtype::f16});
      Problem p = whole_windows(dtype, any_kind(random), random);
      if (p.step == StepKind::pool_backward && random.coin()) add_and_store_twice(p);
      p.result_bytes = int64_t{1} << 40;
      SCOPED_TRACE(str("seed ", seed, ": ", text_of(p)));
      expect_same_bits(isa, p);
      if (HasFailure()) return;
    }
}

/// Channel-last, whole vectors and parts of them.
TEST(pool_window, cells_have_the_bits_of_stores_through_the_caches) {
  expect_same_bits_of_seeds(12, [](Random& random, Dtype dtype, int64_t bytes) {
    const int64_t channels = random.pick<int64_t>({16, 32, 48, 64, 160}), kernel = random.whole(1, 3);
    const int64_t narrow = 12, wide = narrow * kernel;
    Geometry g;
    for (int i = 0; i < 2; ++i) g.add({.wide = wide, .narrow = narrow, .kernel = kernel, .stride = kernel});
    const bool maximum = random.coin();
    Problem p = pool_problem({.op = pool_gradient(maximum),
                              .windows = g,
                              .channel_last = true,
                              .dtype = dtype,
                              .batch = bytes / (wide * wide * channels * element_bytes(dtype)) + 2,
                              .channels = channels});
    if (!maximum && random.coin()) add_and_store_twice(p);
    return p;
  });
}

/// Windows that overlap, leave cells out or hang over go another way.
TEST(pool_window, other_windows_do_not_fit) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    const Wanted kind = any_kind(random);
    const Problem whole = whole_windows(Dtype::f32, kind, random);
    SCOPED_TRACE(str("seed ", seed, ": ", text_of(whole)));
    const size_t axes = static_cast<size_t>(whole.out[0].dims.size()) - 2;
    const Target target{.isa = machine_isa()};
    ASSERT_TRUE(jit::WindowPool::fits(whole, target));
    for (const Attr attr : {Attr::kernel, Attr::strides, Attr::pads_begin}) {
      Problem p = whole;
      std::vector<int64_t> list(axes);
      for (size_t i = 0; i < axes; ++i) {
        const Dims given = p.attrs.dims(attr);
        list[i] = given[static_cast<int>(i)] + 1;
      }
      p.attrs.set(attr, list);
      EXPECT_FALSE(jit::WindowPool::fits(p, target)) << static_cast<int>(attr);
    }
  }
}

}  // namespace
}  // namespace partita::test
