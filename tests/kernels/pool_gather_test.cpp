// SPDX-License-Identifier: Apache-2.0
// Gradients from the indices of real poolings: cells gather what names them, and where an index lies anywhere else the
// result is the same; random shapes, types and memory orders on guarded memory.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/jit/pool/backward/plane_period.hpp"
#include "kernels/jit/pool/backward/window.hpp"
#include "kernels/pool_geometry.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "src/base/threads.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/pool_case.hpp"

namespace partita::test {
namespace {

struct Sizes {
  bool channel_last;
  int64_t batch, channels;
};

/// Dense, or dense in the other data format's memory order.
TensorDesc dense_view(Dtype dtype, const Sizes& s, const std::vector<int64_t>& spatial, bool swapped) {
  const Dims dims = activation_dims(s.batch, s.channels, spatial, s.channel_last);
  return swapped ? other_format_desc(dtype, dims, s.channel_last) : dense_desc(dtype, dims);
}

struct Gradient {
  Problem problem;
  Buffer indices;  ///< of a maximum pooling of random numbers
};

Gradient gradient_of(const Geometry& g, const Sizes& s, bool swapped, Random& random) {
  const Dtype dtype = random.pick({Dtype::f32, Dtype::bf16, Dtype::f16});
  Problem forward = pool_without_tensors({.op = OpKind::MaxPool, .windows = g, .channel_last = s.channel_last});
  Problem p = problem_for(StepKind::max_pool_indices_backward, OpKind::MaxPoolIndicesBackward);
  p.attrs.set(Attr::data_format, std::string(s.channel_last ? "NXC" : "NCX"));
  if (random.coin()) {
    const std::string base = random.pick({"plane", "tensor"});
    for (Attrs* attrs : {&forward.attrs, &p.attrs}) attrs->set(Attr::index_base, base);
  }
  p.in = {dense_view(dtype, s, g.narrow, swapped),
          dense_view(random.pick({Dtype::s64, Dtype::s32}), s, g.narrow, swapped)};
  p.out = {dense_view(dtype, s, g.wide, swapped)};
  forward.in = {dense_view(Dtype::f32, s, g.wide, swapped)};
  forward.out = {dense_view(Dtype::f32, s, g.narrow, swapped), p.in[1]};
  std::vector<Buffer> source;
  source.push_back(random_buffer(forward.in[0], random));
  return {p, std::move(reference_results(forward, source)[1])};
}

Gradient random_gradient(Random& random) {
  const Geometry g = random_geometry(random, {.round_up = true});
  const Sizes s{random.coin(), random.whole(1, 3), random.pick<int64_t>({1, 3, 8, 16, 21, 40, 70, 130})};
  return gradient_of(g, s, /*swapped=*/random.whole(0, 3) == 0, random);
}

/// Channel-first; windows of one size cover every cell once.
Gradient random_whole_windows(Random& random) {
  Geometry g;
  for (int64_t axes = random.whole(1, 3); axes > 0; --axes) {
    const int64_t kernel = random.whole(1, axes == 1 ? 4 : 2);
    const int64_t narrow = axes == 1 ? random.whole(8, 70) : random.whole(1, 6);
    g.add({.wide = narrow * kernel, .narrow = narrow, .kernel = kernel, .stride = kernel});
  }
  return gradient_of(g, {false, random.whole(1, 2), random.whole(1, 4)}, /*swapped=*/false, random);
}

/// Channel-first; windows are a cell longer than their stride, and the last ones may hang over the border.
Gradient random_overlapping_windows(int64_t pad, Random& random) {
  Geometry g;
  const int64_t all = random.whole(1, 3);
  for (int64_t axes = all; axes > 0; --axes) {
    const bool pooled = axes < 3;
    const int64_t stride = pooled ? random.whole(2, 3) : 1, kernel = pooled ? stride + 1 : 1;
    const int64_t pads = pooled ? pad : 0;
    const int64_t narrow = axes == 1 ? random.whole(8, 70) : random.whole(pooled ? 2 : 1, 7);
    const int64_t whole = (narrow - 1) * stride + kernel - 2 * pads;
    g.add({.wide = whole + (pooled ? random.whole(-1, stride - 1) : 0),
           .narrow = narrow,
           .kernel = kernel,
           .stride = stride,
           .begin = pads,
           .end = pads});
  }
  return gradient_of(g, {false, random.whole(1, 2), random.whole(8, 10)}, /*swapped=*/false, random);
}

int64_t position_of(const TensorDesc& desc, int64_t element) {
  const Dims at = coordinates(element, desc.dims);
  int64_t position = desc.offset;
  for (int d = 0; d < at.size(); ++d) position += at[d] * desc.strides[d];
  return position;
}

/// Some indices name no cell, or one far from their windows.
void scatter_some(Gradient& gradient, Random& random) {
  const Problem& p = gradient.problem;
  const PoolGeometry g = pool_geometry(p, p.out[0].dims, p.in[1].dims);
  const PoolIndex base = pool_index(p.attrs, g);
  for (int64_t k = random.whole(1, 3); k > 0; --k) {
    const int64_t element = random.whole(0, elements(p.in[1].dims) - 1);
    const Dims at = coordinates(element, p.in[1].dims);
    const int64_t index = random.whole(0, 3) == 0 ? -1
                                                  : base.first(at[0], at[g.channel_axis()]) +
                                                        random.whole(0, elements(g.src) - 1) * base.cell;
    store_from_double(gradient.indices.data(), p.in[1].dtype, position_of(p.in[1], element),
                      static_cast<double>(index));
  }
}

TEST(pool_gather, gradients_of_poolings_are_those_of_the_reference) {
  for (const Isa isa : generated_isas())
    for (uint64_t seed = 1; seed <= 80; ++seed) {
      Random random(seed);
      Gradient gradient = random_gradient(random);
      const Problem& p = gradient.problem;
      SCOPED_TRACE(str(name_of(isa), " seed ", seed, ": ", text_of(p)));
      if (random.whole(0, 2) == 0) scatter_some(gradient, random);
      std::vector<Buffer> in;
      in.push_back(random_buffer(p.in[0], random));
      in.push_back(std::move(gradient.indices));
      const auto expected = reference_results(p, in);
      const Kernel* row = generated_row(p.step, isa);
      ASSERT_NE(row, nullptr);
      const auto got = run_kernel(*row, p, in, 2);
      EXPECT_EQ(difference(got[0], expected[0], tolerance_of(p.out[0].dtype)), "");
      if (HasFailure()) return;
    }
}

/// Indices name cells of their windows, some of them perhaps others; with expressions around in half of the runs.
void expect_gradients(Gradient gradient, Isa isa, Random& random) {
  Problem p = gradient.problem;
  if (random.whole(0, 2) == 0) scatter_some(gradient, random);
  std::vector<Buffer> in;
  in.push_back(random_buffer(p.in[0], random));
  for (int64_t i = 0; i < elements(p.in[0].dims); ++i)  // sums are exact in every order
    store_from_double(in[0].data(), p.in[0].dtype, position_of(p.in[0], i), static_cast<double>(random.whole(-3, 3)));
  in.push_back(std::move(gradient.indices));
  const auto expected = reference_results(p, in);
  const bool around = random.coin();
  if (around) {
    p.ports_in = 2;
    p.ports_out = 1;
    p.in.push_back(dense_desc(Dtype::f32, p.out[0].dims));
    p.out.push_back(p.out[0]);
    in.push_back(random_buffer(p.in[2], random));
    ExprBuilder front(p.front);
    p.front.result = front.mul(front.load(0), front.constant(2));
    ExprBuilder back(p.back);
    back.store(0, back.skeleton());
    back.store(1, back.select(back.gt(back.load(2), back.constant(0)), back.skeleton(), back.constant(0)));
  }
  const Kernel* row = generated_row(p.step, isa);
  ASSERT_NE(row, nullptr);
  const auto got = run_kernel(*row, p, in, Target{.isa = isa, .threads = 2});
  EXPECT_EQ(damage(got[0]), "");
  for (int64_t i = 0; i < elements(p.out[0].dims); ++i) {
    ASSERT_EQ(got[0].get(i), (around ? 2 : 1) * expected[0].get(i)) << "element " << i;
    if (!around) continue;
    ASSERT_EQ(got[1].get(i), in[2].get(i) > 0 ? got[0].get(i) : 0) << "element " << i;
  }
}

TEST(pool_gather, whole_windows_take_their_gradients_from_indices) {
  for (const Isa isa : generated_isas())
    for (uint64_t seed = 1; seed <= 120; ++seed) {
      Random random(seed);
      Gradient gradient = random_whole_windows(random);
      SCOPED_TRACE(str(name_of(isa), " seed ", seed, ": ", text_of(gradient.problem)));
      EXPECT_TRUE(jit::WindowPool::fits(gradient.problem, {.isa = isa}));
      expect_gradients(std::move(gradient), isa, random);
      if (HasFatalFailure()) return;
    }
}

TEST(pool_gather, windows_that_overlap_by_a_cell_take_their_gradients_from_indices) {
  for (const Isa isa : generated_isas()) {
    int fitting = 0;
    constexpr uint64_t kSeeds = 150;
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      Random random(seed);
      const int64_t pad = random.whole(0, 1);
      Gradient gradient = random_overlapping_windows(pad, random);
      SCOPED_TRACE(str(name_of(isa), " seed ", seed, ": ", text_of(gradient.problem)));
      fitting += jit::PlanePeriodPool::fits(gradient.problem, {.isa = isa, .threads = 2}, {.overlap = 1, .pad = pad});
      expect_gradients(std::move(gradient), isa, random);
      if (HasFatalFailure()) return;
    }
    EXPECT_GT(fitting, static_cast<int>(kSeeds) / 2);
  }
}

/// Twice the gradient plus an operand, over which the result lies in half of the runs.
TEST(pool_gather, a_result_may_lie_over_what_is_added) {
  for (const Isa isa : generated_isas())
    for (uint64_t seed = 1; seed <= 50; ++seed) {
      Random random(seed);
      Gradient gradient = random_gradient(random);
      Problem p = gradient.problem;
      SCOPED_TRACE(str(name_of(isa), " seed ", seed, ": ", text_of(p)));
      if (random.coin()) scatter_some(gradient, random);
      p.ports_in = 2;
      p.ports_out = 1;
      p.in.push_back(p.out[0]);
      ExprBuilder front(p.front);
      p.front.result = front.mul(front.load(0), front.constant(2));
      ExprBuilder back(p.back);
      back.store(0, back.add(back.skeleton(), back.load(2)));
      const Kernel* row = generated_row(p.step, isa);
      ASSERT_NE(row, nullptr);
      std::vector<Buffer> in;
      in.push_back(random_buffer(p.in[0], random));
      in.push_back(std::move(gradient.indices));
      in.push_back(random_buffer(p.in[2], random));
      const auto apart = run_kernel(*row, p, in, 2);
      for (int64_t i = 0; i < elements(p.out[0].dims); ++i) ASSERT_FALSE(std::isnan(apart[0].get(i)));
      const auto made = row->make(p, {.isa = isa, .threads = 2});
      ASSERT_TRUE(made.ok());
      GuardedMemory scratch((made->scratch_bytes + 63) / 64 * 64, 0xff);
      const void* sources[] = {in[0].data(), in[1].data(), in[2].data()};
      void* targets[] = {in[2].data()};
      const ThreadScope scope(2);
      ASSERT_TRUE(made->call({sources, targets, scratch.data()}).ok());
      EXPECT_EQ(difference(in[2], apart[0], 0), "");
      if (HasFailure()) return;
    }
}

}  // namespace
}  // namespace partita::test
