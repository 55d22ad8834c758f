// SPDX-License-Identifier: Apache-2.0
// Gradients of poolings that fold what they make into one number a channel: against sums and maxima, in double, of what
// the same kernel stores without folds; the same bytes for all numbers of threads.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/jit/pool/backward/window_halves.hpp"
#include "kernels/jit/pool/folds.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/maxima.hpp"
#include "tests/support/random_loop.hpp"

namespace partita::test {
namespace {

enum class Windows : uint8_t { whole, overlapping };
struct Kind {
  Windows windows;
  bool maximum, channel_last;
};

WindowSizes random_sizes(const Kind& kind, Random& random) {
  WindowSizes s;
  s.batch = random.whole(1, 3);
  // Averages of fewer channels last are picked where nothing is folded, and rounded otherwise.
  s.channels = !kind.channel_last ? random.whole(16, 21)
               : kind.maximum     ? random.pick<int64_t>({8, 13, 16, 31, 33, 40})
                                  : random.pick<int64_t>({31, 32, 33, 40});
  const int64_t axes = random.whole(1, 2);
  for (int64_t i = 0; i < axes; ++i) {
    const bool whole = kind.windows == Windows::whole;
    const int64_t kernel = random.whole(2, 4), windows = random.whole(8, 20);
    s.kernel.push_back(kernel);
    s.dilations.push_back(1);
    s.strides.push_back(whole ? kernel : random.whole(1, 3));
    s.pads.push_back(whole ? 0 : random.whole(0, 1));
    s.spatial.push_back(whole ? windows * kernel : windows * s.strides.back() + random.whole(kernel, kernel + 1));
  }
  return s;
}

Problem gradient_of(Dtype dtype, const WindowSizes& sizes, const Kind& kind, bool exclude_pad) {
  Problem p = maximum_gradient(dtype, sizes, kind.channel_last);
  if (kind.maximum) return p;
  p.step = StepKind::pool_backward;
  p.op = OpKind::AvgPoolBackward;
  p.in = {p.in[1]};
  p.attrs.set(Attr::exclude_pad, exclude_pad);
  return p;
}

Problem random_gradient(Dtype dtype, const Kind& kind, Random& random) {
  const WindowSizes sizes = random_sizes(kind, random);
  return gradient_of(dtype, sizes, kind, random.coin());
}

int channel_axis(const Problem& p) { return p.attrs.is(Attr::data_format, "NXC") ? p.out[0].dims.size() - 1 : 1; }

TensorDesc one_a_channel(const Problem& p) {
  std::vector<bool> kept(static_cast<size_t>(p.out[0].dims.size()), false);
  kept[static_cast<size_t>(channel_axis(p))] = true;
  return folded_desc(p.out[0].dims, kept);
}

/// Of what the pooling makes, what belongs to positive elements of another tensor: folded, and its product with that
/// tensor less a number of the channel's; and the maximum; or the first of these alone. `stores`: written, too.
Problem with_folds(const Problem& plain, bool stores, bool sum_alone = false) {
  Problem p = plain;
  const int other = static_cast<int>(plain.in.size()), number = other + 1;
  p.ports_in = other;
  p.ports_out = 1;
  p.in.push_back(dense_desc(plain.out[0].dtype, plain.out[0].dims));
  p.in.push_back(one_a_channel(plain));
  p.out.clear();
  if (stores) p.out.push_back(plain.out[0]);
  ExprBuilder back(p.back);
  const auto x = back.load(other);
  const auto made = back.apply(ExprOp::cast, back.skeleton(), 0, 0, static_cast<int32_t>(plain.out[0].dtype));
  const auto kept = back.select(back.gt(x, back.constant(0)), made, back.constant(0));
  if (stores) back.store(0, kept);
  const auto fold = [&](Fold how, ExprBuilder::Value value) {
    p.out.push_back(one_a_channel(plain));
    back.fold(how, static_cast<int>(p.out.size()) - 1, value);
  };
  fold(Fold::sum, kept);
  if (sum_alone) return p;
  fold(Fold::sum, back.mul(kept, back.sub(x, back.load(number))));
  fold(Fold::max, kept);
  return p;
}

/// A buffer of the numbers that a tensor with one a channel has.
Buffer numbers_of(const TensorDesc& desc, int axis) { return nan_buffer(dense_desc(desc.dtype, {desc.dims[axis]})); }

std::vector<Buffer> run(const Kernel& row, const Problem& p, const std::vector<Buffer>& in, int threads) {
  std::vector<Buffer> out;
  std::vector<const void*> sources;
  std::vector<void*> targets;
  for (const Buffer& b : in) sources.push_back(b.data());
  for (const TensorDesc& desc : p.out)
    out.push_back(desc == one_a_channel(p) ? numbers_of(desc, channel_axis(p)) : nan_buffer(desc));
  for (Buffer& b : out) targets.push_back(b.data());
  const Result<Run> made = row.make(p, {.isa = row.isa, .threads = threads});
  EXPECT_TRUE(made.ok()) << made.status().text();
  if (!made.ok()) return out;
  Buffer scratch = nan_buffer(dense_desc(Dtype::u8, {static_cast<int64_t>(made->scratch_bytes) + 64}));
  const auto start = (reinterpret_cast<uintptr_t>(scratch.data()) + 63) / 64 * 64;
  EXPECT_TRUE(made->call({sources, targets, reinterpret_cast<void*>(start)}).ok());
  return out;
}

class Folded {
 public:
  Folded(const Problem& plain, bool stores, Random& random)
      : plain_(plain), sum_alone_(random.coin()), problem_(with_folds(plain, stores, sum_alone_)) {
    for (const TensorDesc& desc : plain.in) in_.push_back(random_buffer(desc, random));
    in_.push_back(random_buffer(problem_.in[plain.in.size()], random));
    in_.push_back(numbers_of(problem_.in.back(), channel_axis(plain)));
    for (int64_t c = 0; c < in_.back().desc.dims[0]; ++c)
      store_from_double(in_.back().data(), Dtype::f32, c, random.real(-0.5, 0.5));
  }

  const Problem& problem() const { return problem_; }
  const std::vector<Buffer>& in() const { return in_; }

  void expect_agreement(const Kernel& row) const {
    std::vector<Buffer> got = run(row, problem_, in_, 2);
    const Buffer pooled = std::move(run(row, plain_, in_, 1)[0]);
    const Dims& dims = plain_.out[0].dims;
    const int64_t channels = dims[channel_axis(plain_)];
    struct Sums {
      double sum = 0, size = 0, product = 0, products = 0, most = -INFINITY;
    };
    std::vector<Sums> expected(static_cast<size_t>(channels));
    const size_t folds = sum_alone_ ? 1 : 3;
    const bool stores = problem_.out.size() > folds;
    for (int64_t i = 0; i < elements(dims); ++i) {
      const int64_t c = coordinates(i, dims)[channel_axis(plain_)];
      const double x = in_[plain_.in.size()].get(i), kept = x > 0 ? pooled.get(i) : 0;
      const double product = kept * (x - in_.back().get(c));
      Sums& s = expected[static_cast<size_t>(c)];
      s.sum += kept;
      s.size += std::fabs(kept);
      s.product += product;
      s.products += std::fabs(product);
      s.most = std::max(s.most, kept);
      if (stores) {
        ASSERT_EQ(got[0].get(i), kept) << "element " << i;
      }
    }
    const size_t first = got.size() - folds;
    for (int64_t c = 0; c < channels; ++c) {
      const Sums& s = expected[static_cast<size_t>(c)];
      ASSERT_NEAR(got[first].get(c), s.sum, 1e-6 * s.size + 1e-30) << "channel " << c;
      if (sum_alone_) continue;
      ASSERT_NEAR(got[first + 1].get(c), s.product, 1e-6 * s.products + 1e-30) << "channel " << c;
      ASSERT_EQ(got[first + 2].get(c), s.most) << "channel " << c;
    }
  }

 private:
  Problem plain_;
  bool sum_alone_;
  Problem problem_;
  std::vector<Buffer> in_;
};

template <class Test>
void for_each_kind(const Test& test) {
  for (const Isa isa : generated_isas())
    for (const Windows windows : {Windows::whole, Windows::overlapping})
      for (const bool maximum : {false, true})
        for (const bool channel_last : {false, true}) {
          const Kind kind{windows, maximum, channel_last};
          const Kernel* row = generated_row(maximum ? StepKind::max_pool_backward : StepKind::pool_backward, isa);
          ASSERT_NE(row, nullptr);
          test(kind, *row);
          if (testing::Test::HasFailure()) return;
        }
}

TEST(pool_folds, are_those_of_what_is_stored_without_them) {
  for_each_kind([](const Kind& kind, const Kernel& row) {
    int folded = 0;
    constexpr uint64_t kSeeds = 40;
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      Random random(seed);
      const Dtype dtype = random.pick({Dtype::f32, Dtype::bf16, Dtype::f16});
      const Folded f(random_gradient(dtype, kind, random), random.coin(), random);
      SCOPED_TRACE(str(row.name, " seed ", seed, ": ", text_of(f.problem())));
      if (row.refuse(f.problem(), {.isa = row.isa}) != nullptr) continue;
      ++folded;
      f.expect_agreement(row);
      if (testing::Test::HasFailure()) return;
    }
    EXPECT_GT(folded, static_cast<int>(kSeeds) * 3 / 4) << row.name;
  });
}

TEST(pool_folds, threads_change_no_byte) {
  for_each_kind([](const Kind& kind, const Kernel& row) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      Random random(seed);
      WindowSizes s{3, 24, {61, 70}, {3, 3}, {2, 2}, {1, 1}, {1, 1}};
      if (kind.windows == Windows::whole) s = {3, 24, {60, 72}, {2, 3}, {2, 3}, {1, 1}, {0, 0}};
      const Folded f(gradient_of(Dtype::f32, s, kind, true), random.coin(), random);
      SCOPED_TRACE(str(row.name, ": ", text_of(f.problem())));
      for (const int threads : {1, 2, 3, 8})
        ASSERT_EQ(row.refuse(f.problem(), {.isa = row.isa, .threads = threads}), nullptr);
      const auto expected = run(row, f.problem(), f.in(), 1);
      for (const int threads : {2, 3, 8})
        ASSERT_EQ(byte_difference(run(row, f.problem(), f.in(), threads), expected), "") << threads << " threads";
    }
  });
}

/// Maxima of 16 bits whose rows of cells are stored line by line (WindowHalvesKernel), past the caches.
TEST(pool_folds, of_rows_that_share_lines) {
  if (machine_isa() != Isa::avx512 || !generates_code()) GTEST_SKIP() << "needs AVX-512";
  const Kernel& row = *generated_row(StepKind::max_pool_backward, Isa::avx512);
  int in_lines = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Random random(seed);
    const Dtype dtype = random.pick({Dtype::bf16, Dtype::f16});
    WindowSizes s{2, 16, {8, 56}, {2, 2}, {2, 2}, {1, 1}, {0, 0}};
    if (random.coin()) s = {2, 16, {4, 12, 40}, {2, 3, 2}, {2, 3, 2}, {1, 1, 1}, {0, 0, 0}};
    Problem plain = maximum_gradient(dtype, s, false);
    plain.result_bytes = int64_t{1} << 40;  // a part of something that leaves the caches
    const Folded f(plain, random.coin(), random);
    SCOPED_TRACE(str("seed ", seed, ": ", text_of(f.problem())));
    const jit::PoolPlan plan(f.problem());
    in_lines += jit::WindowHalvesKernel::fits(plan, f.problem(), Isa::avx512) &&
                jit::WindowHalvesKernel::rows_together(plan) > 0;
    f.expect_agreement(row);
    const auto expected = run(row, f.problem(), f.in(), 1);
    for (const int threads : {2, 3, 8})
      ASSERT_EQ(byte_difference(run(row, f.problem(), f.in(), threads), expected), "") << threads << " threads";
  }
  EXPECT_GT(in_lines, 10);
}

/// Along other axes than those of the cells; in another type; with a gap between channels of a step with one channel.
TEST(pool_folds, of_another_form_are_refused) {
  for (const Isa isa : generated_isas()) {
    Random random(1);
    const Problem p = with_folds(random_gradient(Dtype::f32, {Windows::whole, true, true}, random), true);
    const Kernel* row = generated_row(p.step, isa);
    ASSERT_NE(row, nullptr);
    ASSERT_EQ(row->refuse(p, {.isa = isa}), nullptr);
    Problem of_examples = p;
    for (size_t k = 1; k < p.out.size(); ++k) of_examples.out[k].strides[0] = p.out[0].dims[channel_axis(p)];
    if (p.out[0].dims[0] > 1) {
      EXPECT_NE(row->refuse(of_examples, {.isa = isa}), nullptr);
    }
    Problem narrow = p;
    narrow.out.back().dtype = Dtype::bf16;
    EXPECT_NE(row->refuse(narrow, {.isa = isa}), nullptr);
  }
}

}  // namespace
}  // namespace partita::test
