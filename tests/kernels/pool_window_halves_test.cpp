// SPDX-License-Identifier: Apache-2.0
// Gradients of maxima in elements of 16 bits that are chosen from: the same bytes as from the kernel that computes in
// f32, whatever bits the tensors hold.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <numeric>

#include "kernels/jit/pool/backward/window_halves.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/large_results.hpp"
#include "tests/support/maxima.hpp"

namespace partita::test {
namespace {

struct alignas(64) Line {
  std::array<std::byte, 64> bytes;
};

/// Memory from a cache line on.
class Tensor {
 public:
  explicit Tensor(const TensorDesc& desc)
      : bytes_(static_cast<size_t>(elements(desc.dims) * element_bytes(desc.dtype))) {
    lines_.resize(bytes_ / sizeof(Line) + 2);
  }
  void fill_with_any_bits(Random& random) {
    // Most are ordinary numbers; of the others each kind comes soon: zeros, denormals, infinities, NaN, both signs.
    auto* halves = reinterpret_cast<uint16_t*>(data());
    for (size_t i = 0; i < bytes_ / 2; ++i)
      halves[i] = static_cast<uint16_t>(random.whole(0, 3) > 0
                                            ? random.whole(0, 0xffff)
                                            : random.pick<int64_t>({0, 0x8000, 1, 0x8001, 0x7f, 0x7c00, 0xfc00, 0x7f80,
                                                                    0xff80, 0x7fff, 0xffff, 0x3f80, 0x3c00}));
  }
  std::byte* data() { return lines_[0].bytes.data(); }
  bool operator==(const Tensor& other) const {
    return std::memcmp(lines_.data(), other.lines_.data(), lines_.size() * sizeof(Line)) == 0;
  }

 private:
  size_t bytes_;
  std::vector<Line> lines_;
};

/// Behind the gradient, zeros where the source or another operand is not positive; a second result.
Problem with_choices(Problem p, Random& random) {
  p.ports_in = 2;
  p.ports_out = 1;
  ExprBuilder back(p.back);
  auto value = back.apply(ExprOp::cast, back.skeleton(), 0, 0, static_cast<int32_t>(p.in[0].dtype));
  const auto where_positive = [&](int operand) {
    const auto zero = back.constant(0);
    value = back.select(back.gt(back.load(operand), zero), value, zero);
  };
  if (random.coin()) where_positive(0);
  if (random.coin()) {
    p.in.push_back(p.in[0]);
    where_positive(2);
  }
  back.store(0, value);
  if (random.coin()) {
    p.out.push_back(p.out[0]);
    back.store(1, value);
  }
  return p;
}

/// One row of windows: a plane's, or with channels last.
Problem random_gradient(Random& random, bool channel_last) {
  const Dtype dtype = random.pick({Dtype::bf16, Dtype::f16});
  const int64_t channels = channel_last ? random.pick<int64_t>({8, 13, 31, 32, 33, 64, 70}) : 1;
  const int64_t rows = random.whole(1, 3), width = random.whole(1, 4), windows = random.whole(8, 80);
  const WindowSizes sizes{1, channels, {rows, windows * width}, {rows, width}, {rows, width}, {1, 1}, {0, 0}};
  return with_choices(maximum_gradient(dtype, sizes, channel_last), random);
}

/// Runs a kernel over the problem's only row of windows.
template <class Kernel>
std::vector<Tensor> results_of(const Kernel& kernel, const Problem& p, std::vector<Tensor>& in) {
  const jit::PoolPlan plan(p);
  std::vector<Tensor> out;
  for (const TensorDesc& desc : p.out) out.emplace_back(desc);
  std::vector<const void*> addresses;
  const auto row = [](const jit::PoolOperand& o, Tensor& tensor, int64_t r) {
    return static_cast<const void*>(tensor.data() + r * o.y);
  };
  for (int64_t r = 0; r < plan.g.kernel[1]; ++r) addresses.push_back(row(plan.in[0], in[0], r));
  addresses.push_back(in[1].data());
  for (int64_t r = 0; r < plan.g.kernel[1]; ++r)
    for (int k : plan.back_in) addresses.push_back(row(plan.in[static_cast<size_t>(k)], in[static_cast<size_t>(k)], r));
  for (int64_t r = 0; r < plan.g.kernel[1]; ++r)
    for (size_t k = 0; k < out.size(); ++k) addresses.push_back(row(plan.out[k], out[k], r));
  kernel({.addresses = addresses.data(), .steps = jit::WindowKernel::along_x(plan) ? 1 : plan.g.dst[2]});
  return out;
}

TEST(pool_window_halves, have_the_bytes_of_the_kernel_that_computes) {
  if (machine_isa() != Isa::avx512 || !generates_code()) GTEST_SKIP() << "needs AVX-512";
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    const bool channel_last = random.coin();
    const Problem p = random_gradient(random, channel_last);
    SCOPED_TRACE(str("seed ", seed, ": ", text_of(p)));
    const jit::PoolPlan plan(p);
    ASSERT_TRUE(jit::WindowHalvesKernel::fits(plan, p, Isa::avx512));
    std::vector<Tensor> in;
    for (const TensorDesc& desc : p.in) in.emplace_back(desc).fill_with_any_bits(random);
    const auto expected = results_of(jit::WindowKernel(Isa::avx512, plan, p, {}), p, in);
    std::vector<int> pieces{0};
    const auto piece = static_cast<int>(std::gcd(int64_t{64}, plan.g.src[2] * 2));
    if (!channel_last && piece >= 16) pieces.push_back(piece);
    if (channel_last && plan.streams_cells(Isa::avx512)) pieces.push_back(64);
    for (const int bytes : pieces)
      ASSERT_EQ(results_of(jit::WindowHalvesKernel(plan, p, {.piece = bytes}), p, in), expected) << bytes;
    if (jit::WindowHalvesKernel::rows_together(plan) != 1) continue;
    ASSERT_EQ(results_of(jit::WindowHalvesKernel(plan, p, {.piece = 64, .lines = true}), p, in), expected);
  }
}

/// Of planes or volumes: rows of cells that are no whole cache lines, some of which make some.
TEST(pool_window_halves, rows_that_share_lines_have_the_bytes_of_rows_alone) {
  if (machine_isa() != Isa::avx512 || !generates_code()) GTEST_SKIP() << "needs AVX-512";
  const Kernel& row = *generated_row(StepKind::pool_backward, Isa::avx512);
  int taken = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    const Dtype dtype = random.pick({Dtype::bf16, Dtype::f16});
    WindowSizes sizes{random.whole(1, 2), random.whole(1, 3), {}, {}, {}, {}, {}};
    const auto add = [&](int64_t kernel, int64_t windows) {
      sizes.kernel.push_back(kernel);
      sizes.strides.push_back(kernel);
      sizes.dilations.push_back(1);
      sizes.pads.push_back(0);
      sizes.spatial.push_back(kernel * windows);
    };
    if (random.coin()) add(random.whole(1, 3), random.whole(1, 3));
    add(random.whole(1, 3), random.pick<int64_t>({2, 4, 8, 6, 3}));
    add(random.whole(1, 4), random.pick<int64_t>({8, 10, 12, 14, 20, 28, 33, 36, 56}));
    Problem p = with_choices(maximum_gradient(dtype, sizes, false), random);
    SCOPED_TRACE(str("seed ", seed, ": ", text_of(p)));
    taken += jit::WindowHalvesKernel::rows_together(jit::PoolPlan(p)) > 0;
    std::vector<Buffer> in;
    for (const TensorDesc& desc : p.in) in.push_back(random_buffer(desc, random));
    const auto alone = run_kernel(row, p, in, 2);
    p.result_bytes = int64_t{1} << 40;  // a part of something that leaves the caches
    for (const int threads : {1, 2, 3}) ASSERT_EQ(byte_difference(run_kernel(row, p, in, threads), alone), "");
    expect_same_bits(Isa::avx512, p);
  }
  EXPECT_GT(taken, 50);
}

TEST(pool_window_halves, rows_that_cannot_share_lines_do_not) {
  const auto together = [](const WindowSizes& sizes, bool channel_last = false) {
    return jit::WindowHalvesKernel::rows_together(jit::PoolPlan(maximum_gradient(Dtype::bf16, sizes, channel_last)));
  };
  EXPECT_EQ(together({1, 2, {56, 56}, {2, 2}, {2, 2}, {1, 1}, {0, 0}}), 2) << "two rows of windows, seven lines";
  EXPECT_EQ(together({1, 2, {4, 56, 56}, {2, 2, 2}, {2, 2, 2}, {1, 1, 1}, {0, 0, 0}}), 2);
  EXPECT_EQ(together({1, 2, {6, 112}, {2, 2}, {2, 2}, {1, 1}, {0, 0}}), 1);
  EXPECT_EQ(together({1, 2, {64, 64}, {2, 2}, {2, 2}, {1, 1}, {0, 0}}), 0) << "whole lines already";
  EXPECT_EQ(together({1, 2, {54, 56}, {2, 2}, {2, 2}, {1, 1}, {0, 0}}), 0) << "a row of windows is left over";
  EXPECT_EQ(together({1, 4, {56, 56}, {2, 2}, {2, 2}, {1, 1}, {0, 0}}, true), 0);
  Problem apart = maximum_gradient(Dtype::bf16, {1, 2, {56, 56}, {2, 2}, {2, 2}, {1, 1}, {0, 0}}, false);
  apart.out[0].strides[2] += 8;  // gaps between rows
  EXPECT_EQ(jit::WindowHalvesKernel::rows_together(jit::PoolPlan(apart)), 0);
}

TEST(pool_window_halves, what_is_computed_with_does_not_fit) {
  Random random(1);
  const auto fits = [](const Problem& p) { return jit::WindowHalvesKernel::fits(jit::PoolPlan(p), p, Isa::avx512); };
  Problem p = maximum_gradient(Dtype::bf16, {1, 16, {4, 64}, {2, 2}, {2, 2}, {1, 1}, {0, 0}}, false);
  EXPECT_TRUE(fits(p));
  EXPECT_FALSE(jit::WindowHalvesKernel::fits(jit::PoolPlan(p), p, Isa::avx2));
  EXPECT_FALSE(fits(maximum_gradient(Dtype::f32, {1, 16, {4, 64}, {2, 2}, {2, 2}, {1, 1}, {0, 0}}, false)));
  Problem in_front = p;
  ExprBuilder front(in_front.front);
  in_front.front.result = front.mul(front.load(1), front.constant(2));
  EXPECT_FALSE(fits(in_front));
  const auto with_back = [&](const auto& write) {
    Problem q = p;
    q.ports_in = 2;
    q.ports_out = 1;
    ExprBuilder back(q.back);
    write(back);
    return q;
  };
  using Builder = ExprBuilder;
  EXPECT_FALSE(fits(with_back([](Builder& b) { b.store(0, b.mul(b.skeleton(), b.load(0))); })));
  EXPECT_FALSE(fits(with_back([](Builder& b) { b.store(0, b.load(0)); })));
  const auto chosen = [](Builder& b, Builder::Value yes, Builder::Value no, float bound) {
    b.store(0, b.select(b.gt(b.load(0), b.constant(bound)), yes, no));
  };
  EXPECT_TRUE(fits(with_back([&](Builder& b) { chosen(b, b.skeleton(), b.constant(0), 0); })));
  EXPECT_FALSE(fits(with_back([&](Builder& b) { chosen(b, b.skeleton(), b.constant(0), 1); })));
  EXPECT_FALSE(fits(with_back([&](Builder& b) { chosen(b, b.skeleton(), b.constant(1), 0); })));
  EXPECT_FALSE(fits(with_back([&](Builder& b) { chosen(b, b.skeleton(), b.constant(-0.0f), 0); })));
  EXPECT_FALSE(fits(with_back([&](Builder& b) { chosen(b, b.constant(0), b.skeleton(), 0); })));
}

}  // namespace
}  // namespace partita::test
