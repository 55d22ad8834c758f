// SPDX-License-Identifier: Apache-2.0
// What the InfiniCore door computes: random calls against the definitions, in every type, over strided tensors.
#include "src/compat/pooling.hpp"

#include <gtest/gtest.h>

#include "tests/compat/infiniop/client.hpp"

namespace partita::test {
namespace {

struct Case {
  NaivePooling p;
  bool ceil = false;
};

bool set_pooled(Case& c) {
  NaivePooling& p = c.p;
  p.pooled = {p.source[0], p.source[1]};
  bool fits = true;
  for (int i = 0; i < p.spatial(); ++i) {
    const auto rule = c.ceil ? compat::LastWindow::kept_inside : compat::LastWindow::dropped;
    p.pooled.push_back(
        compat::window_count(p.source[i + 2], p.kernel[i], p.strides[i], p.pads_begin[i], p.pads_end[i], 1, rule));
    fits = fits && p.pooled[i + 2] > 0;
  }
  return fits;
}

Case random_case(Random& random) {
  for (;;) {
    Case c;
    NaivePooling& p = c.p;
    c.ceil = random.coin();
    p.divides_by = DividesBy::padded_box;
    p.source = {random.whole(1, 2), random.whole(1, 3)};
    const int spatial = static_cast<int>(random.whole(1, 3));
    for (int i = 0; i < spatial; ++i) {
      p.source.push_back(random.whole(1, 8));
      p.kernel.push_back(random.whole(1, 4));
      p.strides.push_back(random.whole(1, 5));
      p.pads_begin.push_back(random.whole(0, p.kernel[i] / 2));
    }
    p.pads_end = p.pads_begin;
    p.dilations = Dims(spatial, 1);
    if (set_pooled(c)) return c;
  }
}

Image image(Dtype dtype, const Dims& dims, Random& random) {
  return random.coin() ? Image::dense(dtype, dims) : Image::scattered(dtype, dims, random);
}

std::string text(const Case& c) {
  return str("source [", text_of(c.p.source), "] pooled [", text_of(c.p.pooled), "] kernel [", text_of(c.p.kernel),
             "] strides [", text_of(c.p.strides), "] pads [", text_of(c.p.pads_begin), "] ceil ", c.ceil);
}

/// Both forward poolings and both gradients of one case; the first difference.
std::string difference(const Case& c, Dtype dtype, Random& random) {
  Image source = image(dtype, c.p.source, random), pooled = image(dtype, c.p.pooled, random);
  Image maxima = image(dtype, c.p.pooled, random), gradient = image(dtype, c.p.pooled, random);
  Image dx_average = image(dtype, c.p.source, random), dx_maximum = image(dtype, c.p.source, random);
  const Reals x = source.fill(random), dy = gradient.fill(random);
  Lists lists(c.p.kernel, c.p.strides, c.p.pads_begin, c.ceil);

  infiniStatus_t s = forward(kAveragePool, pooled, source, lists);
  if (s != INFINI_STATUS_SUCCESS) return str("AvgPool: ", static_cast<int>(s));
  if (std::string d = pooled.difference(naive_average(c.p, x)); !d.empty()) return "AvgPool: " + d;
  s = backward(kAveragePoolBackward, dx_average, gradient, source, lists);
  if (s != INFINI_STATUS_SUCCESS) return str("AvgPoolBackward: ", static_cast<int>(s));
  if (std::string d = dx_average.difference(naive_average_gradient(c.p, dy)); !d.empty())
    return "AvgPoolBackward: " + d;
  const std::vector<int64_t> winners = naive_winners(c.p, x);
  s = forward(kMaximumPool, maxima, source, lists);
  if (s != INFINI_STATUS_SUCCESS) return str("MaxPool: ", static_cast<int>(s));
  if (std::string d = maxima.difference(naive_maximum(c.p, x)); !d.empty()) return "MaxPool: " + d;
  s = backward(kMaximumPoolBackward, dx_maximum, gradient, source, lists);
  if (s != INFINI_STATUS_SUCCESS) return str("MaxPoolBackward: ", static_cast<int>(s));
  if (std::string d = dx_maximum.difference(naive_scatter(c.p, winners, dy)); !d.empty())
    return "MaxPoolBackward: " + d;
  return {};
}

TEST(infiniop_pooling, is_what_the_definition_says) {
  Random random(11);
  for (int round = 0; round < 60; ++round) {
    const Case c = random_case(random);
    const Dtype dtype = random.pick({Dtype::f32, Dtype::f32, Dtype::f16, Dtype::bf16});
    ASSERT_EQ(difference(c, dtype, random), "") << text(c) << ' ' << name_of(dtype) << " seed " << random.seed();
  }
}

TEST(infiniop_pooling, takes_ceil_mode_and_strides_as_they_are_said) {
  Random random(1);
  Case c;
  c.ceil = true;  // others ignore it on some devices
  c.p.source = {1, 2, 6, 6};
  c.p.kernel = {3, 3};
  c.p.strides = {2, 2};
  c.p.pads_begin = c.p.pads_end = {1, 1};
  c.p.dilations = {1, 1};
  c.p.divides_by = DividesBy::padded_box;
  ASSERT_TRUE(set_pooled(c));
  EXPECT_EQ(c.p.pooled, (Dims{1, 2, 4, 4}));
  for (int round = 0; round < 8; ++round) EXPECT_EQ(difference(c, Dtype::f32, random), "");
}

TEST(infiniop_pooling, of_three_axes_adds_what_overlaps_and_keeps_axes_apart) {
  Random random(2);
  Case c;
  c.p = three_unequal_axes();
  ASSERT_TRUE(set_pooled(c));
  EXPECT_EQ(difference(c, Dtype::f32, random), "");
}

TEST(infiniop_pooling, gives_equal_maxima_to_the_first) {
  Case c;
  c.p.source = {1, 1, 4};
  c.p.kernel = {2};
  c.p.strides = {2};
  c.p.pads_begin = c.p.pads_end = {0};
  c.p.dilations = {1};
  ASSERT_TRUE(set_pooled(c));
  Image source = Image::dense(Dtype::f32, c.p.source), gradient = Image::dense(Dtype::f32, c.p.pooled);
  Image result = Image::dense(Dtype::f32, c.p.source);
  source.fill({5, 5, 5, 5});
  gradient.fill({1, 2});
  Lists lists(c.p.kernel, c.p.strides, c.p.pads_begin, false);
  ASSERT_EQ(backward(kMaximumPoolBackward, result, gradient, source, lists), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(result.values(), (Reals{1, 0, 2, 0}));
}

TEST(infiniop_pooling, of_empty_tensors_succeeds) {
  Image source = Image::dense(Dtype::f32, {0, 2, 4, 4}), pooled = Image::dense(Dtype::f32, {0, 2, 2, 2});
  Image result = Image::dense(Dtype::f32, {0, 2, 4, 4});
  Lists lists({2, 2}, {2, 2}, {0, 0}, false);
  for (const Forward& f : {kAveragePool, kMaximumPool})
    EXPECT_EQ(forward(f, pooled, source, lists), INFINI_STATUS_SUCCESS);
  for (const Backward& b : {kAveragePoolBackward, kMaximumPoolBackward})
    EXPECT_EQ(backward(b, result, pooled, source, lists), INFINI_STATUS_SUCCESS);
}

}  // namespace
}  // namespace partita::test
