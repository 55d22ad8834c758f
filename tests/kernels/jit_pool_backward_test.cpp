// SPDX-License-Identifier: Apache-2.0
// Generated pooling gradients against the interpreter: random windows, types, expressions and both data formats, under
// every instruction set of the machine, on guarded memory; threads and layouts against each other.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "kernels/jit/pool/backward/backward.hpp"
#include "kernels/loop/interpreter.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "src/base/threads.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/pool_case.hpp"

namespace partita::test {
namespace {

using Value = ExprBuilder::Value;

/// One axis; false where the numbers give no window. Strides may exceed kernels, windows may lie in the padding alone.
bool add_axis(Random& random, Geometry& g, int64_t longest, bool dilated, bool round_up) {
  const int64_t wide = random.whole(1, longest), kernel = random.whole(1, random.whole(2, 6));
  const int64_t stride = random.coin() ? random.whole(1, 2) : random.whole(1, 5);
  const int64_t dilation = dilated ? random.pick<int64_t>({1, 1, 2, 3}) : 1;
  const int64_t begin = random.whole(0, 2), end = random.whole(0, 2);
  const int64_t room = wide + begin + end - (kernel - 1) * dilation - 1;
  if (room < 0) return false;
  g.add({wide, (round_up ? (room + stride - 1) / stride : room / stride) + 1, kernel, stride, dilation, begin, end});
  return true;
}

Geometry pool_windows(Random& random, bool maximum) {
  Geometry g;
  const int64_t axes = random.whole(1, 3);
  const bool round_up = random.coin();
  const int64_t longest = random.pick<int64_t>({9, 40, 90});
  while (static_cast<int64_t>(g.wide.size()) < axes)
    add_axis(random, g, static_cast<int64_t>(g.wide.size()) + 1 == axes ? longest : 7, maximum, round_up);
  if (axes == 1 && random.whole(0, 3) == 0) {  // rows that are cut into blocks of columns
    const int64_t more = random.whole(300, 3000) * g.strides[0];
    g.wide[0] += more;
    g.narrow[0] += more / g.strides[0];
  }
  return g;
}

/// An operand over `dims`: dense, one number a channel, one in all, or one for each row along the last axis.
TensorDesc extra_operand(Dtype dtype, const Dims& dims, bool channel_last, Random& random) {
  TensorDesc desc = dense_desc(dtype, dims);
  const int channel = channel_last ? dims.size() - 1 : 1;
  const int64_t kind = random.whole(0, 4);
  if (kind >= 3) return desc;
  desc.strides = Dims(dims.size(), 0);
  if (kind == 1) desc.strides[channel] = 1;
  if (kind == 2 && dims.size() > 3) desc.strides[dims.size() - (channel_last ? 3 : 2)] = 1;
  return desc;
}

/// front: the gradient, perhaps with an operand; back: up to two operands and outputs.
void random_expressions(Problem& p, bool channel_last, Random& random) {
  const int gradient = p.step == StepKind::max_pool_backward ? 1 : 0;
  const Dims wide = p.out[0].dims, narrow = p.in[static_cast<size_t>(gradient)].dims;
  const auto any_type = [&] { return random.pick({Dtype::f32, Dtype::bf16, Dtype::f16, Dtype::u8}); };
  if (random.coin()) {
    ExprBuilder b(p.front);
    Value value = b.load(gradient);
    p.in.push_back(extra_operand(any_type(), narrow, channel_last, random));
    const Value other = b.load(static_cast<int>(p.in.size()) - 1);
    value = random.coin() ? b.add(value, other) : b.mul(b.tanh(value), other);
    p.front.result = value;
  }
  if (random.coin()) return;
  ExprBuilder b(p.back);
  const Value made = b.skeleton();
  Value value = made;
  for (int64_t k = random.whole(0, 2); k > 0; --k) {
    p.in.push_back(extra_operand(any_type(), wide, channel_last, random));
    const Value other = b.load(static_cast<int>(p.in.size()) - 1);
    value = random.coin() ? b.select(b.gt(other, b.constant(0.25f)), value, b.constant(0)) : b.add(value, other);
  }
  b.store(0, value);
  if (random.coin()) {
    p.out.push_back(dense_desc(random.pick({Dtype::f32, Dtype::bf16, Dtype::f16}), wide));
    b.store(1, b.mul(made, b.constant(0.5f)));
  }
}

Problem random_pool(Random& random) {
  const bool maximum = random.coin(), channel_last = random.coin();
  const int64_t channels = random.pick<int64_t>({1, 3, 8, 16, 21, 40, 67});
  Problem p = pool_problem({.op = pool_gradient(maximum),
                            .windows = pool_windows(random, maximum),
                            .channel_last = channel_last,
                            .dtype = random.pick({Dtype::f32, Dtype::bf16, Dtype::f16}),
                            .batch = random.whole(1, 2),
                            .channels = channels,
                            .exclude_pad = random.coin()});
  random_expressions(p, channel_last, random);
  return p;
}

std::vector<Buffer> run(const Result<Run>& made, const Problem& p, const std::vector<Buffer>& in) {
  std::vector<Buffer> out;
  EXPECT_TRUE(made.ok()) << made.status().text();
  if (!made.ok()) return out;
  std::vector<const void*> sources;
  std::vector<void*> targets;
  for (const Buffer& b : in) sources.push_back(b.data());
  for (const TensorDesc& desc : p.out) out.push_back(nan_buffer(desc));
  for (Buffer& b : out) targets.push_back(b.data());
  GuardedMemory scratch((made->scratch_bytes + 63) / 64 * 64, 0xff);
  EXPECT_TRUE(made->call({sources, targets, scratch.data()}).ok());
  return out;
}

std::vector<Buffer> random_inputs(const Problem& p, Random& random) {
  std::vector<Buffer> in;
  for (const TensorDesc& desc : p.in) in.push_back(random_buffer(desc, random, {-2, 2}));
  return in;
}

bool same_bits(const Buffer& a, const Buffer& b) { return std::memcmp(a.data(), b.data(), a.bytes.size()) == 0; }

TEST(jit_pool_backward, agrees_with_the_interpreter) {
  constexpr uint64_t kSeeds = 400;
  int compared = 0;
  for (const Isa isa : generated_isas())
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      Random random(seed);
      const Problem p = random_pool(random);
      SCOPED_TRACE(
          str(name_of(isa), " seed ", seed, ": ", text_of(p), " front ", text_of(p.front), " back ", text_of(p.back)));
      const Target target{.isa = isa, .threads = 2};
      if (jit::refuse_pool_backward(p, target)) continue;
      ++compared;
      const auto in = random_inputs(p, random);
      const auto expected = run(make_interpreted(p, target), p, in);
      const auto got = run(jit::make_pool_backward(p, target), p, in);
      ASSERT_EQ(got.size(), expected.size());
      for (size_t k = 0; k < got.size(); ++k) {
        EXPECT_EQ(difference(got[k], expected[k], 2 * tolerance_of(got[k].desc.dtype)), "") << "output " << k;
        EXPECT_EQ(damage(got[k]), "");
      }
      if (HasFailure()) return;
    }
  EXPECT_GE(compared, static_cast<int>(generated_isas().size() * kSeeds * 9 / 10));
}

TEST(jit_pool_backward, agrees_with_the_reference) {
  for (const Isa isa : generated_isas())
    for (uint64_t seed = 1; seed <= 60; ++seed) {
      Random random(seed);
      const bool maximum = random.coin();
      const Problem p = pool_problem({.op = pool_gradient(maximum),
                                      .windows = pool_windows(random, maximum),
                                      .channel_last = random.coin(),
                                      .dtype = random.pick({Dtype::f32, Dtype::bf16, Dtype::f16}),
                                      .batch = random.whole(1, 2),
                                      .channels = random.whole(1, 20),
                                      .exclude_pad = random.coin()});
      expect_rows_agree(p, random, {.tolerance_factor = 2, .at_least = 2, .target = {.isa = isa, .threads = 2}});
      if (HasFailure()) return;
    }
}

TEST(jit_pool_backward, any_number_of_threads_gives_the_same_bits) {
  for (const Isa isa : generated_isas())
    for (uint64_t seed = 1; seed <= 40; ++seed) {
      Random random(seed);
      Problem p = random_pool(random);
      if (jit::refuse_pool_backward(p, {.isa = isa})) continue;
      SCOPED_TRACE(str(name_of(isa), " seed ", seed, ": ", text_of(p)));
      const auto in = random_inputs(p, random);
      std::vector<Buffer> first;
      for (int threads : {1, 2, 3, 8}) {
        const ThreadScope scope(threads);
        auto got = run(jit::make_pool_backward(p, {.isa = isa, .threads = threads}), p, in);
        if (threads == 1) {
          first = std::move(got);
          continue;
        }
        for (size_t k = 0; k < got.size(); ++k) EXPECT_TRUE(same_bits(got[k], first[k])) << threads << " threads";
      }
      if (HasFailure()) return;
    }
}

/// Element (batch, channel, position) of a dense f32 tensor in either data format.
float& element(Buffer& b, bool channel_last, int64_t n, int64_t c, int64_t position) {
  const Dims& dims = b.desc.dims;
  const int64_t channels = dims[channel_last ? dims.size() - 1 : 1], cells = elements(dims) / dims[0] / channels;
  const int64_t at = n * cells * channels + (channel_last ? position * channels + c : c * cells + position);
  return reinterpret_cast<float*>(b.data())[at];
}

TEST(jit_pool_backward, both_data_formats_give_the_same_values) {
  for (const Isa isa : generated_isas())
    for (uint64_t seed = 1; seed <= 60; ++seed) {
      Random random(seed);
      const bool maximum = random.coin(), exclude = random.coin();
      const Geometry g = pool_windows(random, maximum);
      const int64_t batch = random.whole(1, 2), channels = random.whole(1, 20);
      const Problem first = pool_problem(
          {.op = pool_gradient(maximum), .windows = g, .batch = batch, .channels = channels, .exclude_pad = exclude});
      const Problem last = pool_problem({.op = pool_gradient(maximum),
                                         .windows = g,
                                         .channel_last = true,
                                         .batch = batch,
                                         .channels = channels,
                                         .exclude_pad = exclude});
      SCOPED_TRACE(str(name_of(isa), " seed ", seed, ": ", text_of(first)));
      const auto each = [&](const TensorDesc& desc, auto visit) {
        for (int64_t n = 0; n < batch; ++n)
          for (int64_t c = 0; c < channels; ++c)
            for (int64_t k = 0; k < elements(desc.dims) / batch / channels; ++k) visit(n, c, k);
      };
      auto in_first = random_inputs(first, random), in_last = random_inputs(last, random);
      for (size_t k = 0; k < in_first.size(); ++k)
        each(first.in[k], [&](int64_t n, int64_t c, int64_t at) {
          element(in_last[k], true, n, c, at) = element(in_first[k], false, n, c, at);
        });
      const Target target{.isa = isa, .threads = 2};
      auto got_first = run(jit::make_pool_backward(first, target), first, in_first);
      auto got_last = run(jit::make_pool_backward(last, target), last, in_last);
      each(first.out[0], [&](int64_t n, int64_t c, int64_t at) {
        ASSERT_EQ(element(got_first[0], false, n, c, at), element(got_last[0], true, n, c, at))
            << "batch " << n << " channel " << c << " cell " << at;
      });
      if (HasFailure()) return;
    }
}

/// One kind of NaN in a problem: with both, each would hide that the other is missed.
TEST(jit_pool_backward, the_first_maximum_wins_and_nan_counts_as_maximum) {
  constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
  for (const Isa isa : generated_isas())
    for (uint64_t seed = 1; seed <= 240; ++seed) {
      Random random(seed);
      const Dtype dtype = random.pick({Dtype::f32, Dtype::bf16, Dtype::f16});
      const Problem p = pool_problem({.op = OpKind::MaxPoolBackward,
                                      .windows = pool_windows(random, true),
                                      .channel_last = random.coin(),
                                      .dtype = dtype,
                                      .channels = random.pick<int64_t>({1, 5, 16, 40})});
      SCOPED_TRACE(str(name_of(isa), " seed ", seed, ": ", text_of(p)));
      auto in = random_inputs(p, random);
      const double odd = random.pick({kNan, -kNan, kInf, 0.5});
      for (int64_t k = 0; k < elements(p.in[0].dims); ++k)
        store_from_double(in[0].data(), dtype, k, random.pick({-kInf, -kInf, odd, 0.0, -0.0, -1.0, -1.5}));
      const Target target{.isa = isa, .threads = 2};
      if (jit::refuse_pool_backward(p, target)) continue;
      const auto expected = run(make_interpreted(p, target), p, in);
      const auto got = run(jit::make_pool_backward(p, target), p, in);
      EXPECT_EQ(difference(got[0], expected[0], tolerance_of(dtype)), "");
      if (HasFailure()) return;
    }
}

/// Rows of windows of any length, so that vectors of windows begin, end and lie inside rows, two cells apart: elements
/// of 16 bits are searched in pairs there, as integers.
TEST(jit_pool_backward, maxima_over_planes_are_found_at_borders_and_among_equal_numbers) {
  constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
  for (const Isa isa : generated_isas())
    for (uint64_t seed = 1; seed <= 120; ++seed) {
      Random random(seed);
      const Dtype dtype = random.pick({Dtype::f32, Dtype::bf16, Dtype::f16});
      const int64_t kernel = random.whole(3, 5), width = random.whole(17, 110), height = random.whole(5, 9);
      const int64_t left = random.whole(0, kernel - 1), right = random.whole(0, kernel - 1);
      const auto windows = [&](int64_t cells, int64_t before, int64_t after) {
        return (cells + before + after - kernel) / 2 + 1;
      };
      const Geometry g{.wide = {height, width},
                       .narrow = {windows(height, 1, 1), windows(width, left, right)},
                       .kernel = {kernel, kernel},
                       .strides = {2, 2},
                       .dilations = {1, 1},
                       .pads_begin = {1, left},
                       .pads_end = {1, right},
                       .leftover = {0, 0}};
      const Problem p =
          pool_problem({.op = OpKind::MaxPoolBackward, .windows = g, .dtype = dtype, .batch = 2, .channels = 8});
      SCOPED_TRACE(str(name_of(isa), " seed ", seed, ": ", text_of(p)));
      auto in = random_inputs(p, random);
      const double odd = random.pick({kNan, -kNan, kInf, 0.5});
      if (random.coin())
        for (int64_t k = 0; k < elements(p.in[0].dims); ++k)
          store_from_double(in[0].data(), dtype, k, random.pick({-kInf, odd, 0.0, -0.0, -1.0, -1.5, 1.5, 1e-7}));
      const Target target{.isa = isa, .threads = 2};
      ASSERT_EQ(jit::refuse_pool_backward(p, target), nullptr);
      const auto expected = run(make_interpreted(p, target), p, in);
      const auto got = run(jit::make_pool_backward(p, target), p, in);
      EXPECT_EQ(difference(got[0], expected[0], tolerance_of(dtype)), "");
      if (HasFailure()) return;
    }
}

TEST(jit_pool_backward, refuses_what_it_cannot_walk) {
  Random random(1);
  Geometry g{.wide = {8, 8},
             .narrow = {4, 4},
             .kernel = {2, 2},
             .strides = {2, 2},
             .dilations = {1, 1},
             .pads_begin = {0, 0},
             .pads_end = {0, 0},
             .leftover = {0, 0}};
  for (const bool channel_last : {false, true}) {
    Problem p = pool_problem({.op = OpKind::AvgPoolBackward,
                              .windows = g,
                              .channel_last = channel_last,
                              .channels = 4,
                              .exclude_pad = false});
    EXPECT_EQ(jit::refuse_pool_backward(p, {}), nullptr);
    p.out[0].strides.back() = 2;
    EXPECT_NE(jit::refuse_pool_backward(p, {}), nullptr);
    p = pool_problem({.op = OpKind::AvgPoolBackward,
                      .windows = g,
                      .channel_last = channel_last,
                      .channels = 4,
                      .exclude_pad = false});
    ExprBuilder b(p.back);
    b.store(0, b.add(b.skeleton(), b.apply(ExprOp::to_f32, b.index(1))));
    EXPECT_STREQ(jit::refuse_pool_backward(p, {}), "an expression reads coordinates");
  }
}

TEST(jit_pool_backward, refuses_windows_apart_over_a_source_one_cell_wide) {
  const Geometry g{.wide = {8, 1},
                   .narrow = {4, 2},
                   .kernel = {2, 2},
                   .strides = {2, 1},
                   .dilations = {1, 1},
                   .pads_begin = {0, 1},
                   .pads_end = {0, 1},
                   .leftover = {0, 0}};
  Problem p = pool_problem({.op = OpKind::AvgPoolBackward, .windows = g, .channels = 4, .exclude_pad = false});
  EXPECT_EQ(jit::refuse_pool_backward(p, {}), nullptr);
  TensorDesc& diff_dst = p.in[static_cast<size_t>(front_port(p.step))];
  for (int64_t& stride : diff_dst.strides) stride *= 2;
  EXPECT_NE(jit::refuse_pool_backward(p, {}), nullptr);
}

}  // namespace
}  // namespace partita::test
