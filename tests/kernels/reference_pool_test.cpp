// SPDX-License-Identifier: Apache-2.0
// References of pooling and interpolation, forward and backward: hand-computed windows, layouts, adjointness.
#include "tests/support/run_reference.hpp"

namespace partita::test {
namespace {

using enum OpKind;

AttrList pool_attrs(const Int64s& kernel, const Int64s& strides, const Int64s& begin, const Int64s& end) {
  return {{Attr::kernel, kernel},
          {Attr::strides, strides},
          {Attr::pads_begin, begin},
          {Attr::pads_end, end},
          {Attr::data_format, "NCX"}};
}

AttrList plus(AttrList list, Attr attr, AttrValue value) {
  for (auto& entry : list) {
    if (entry.first == attr) return entry.second = std::move(value), list;
  }
  list.emplace_back(attr, std::move(value));
  return list;
}

const Sample kLine = f32({1, 1, 5}, {1, 5, 3, 2, 4});

TEST(reference_pool, maximum_ignores_padding) {
  const AttrList attrs = pool_attrs({3}, {2}, {1}, {1});
  EXPECT_EQ(run(MaxPool, attrs, {kLine}, {f32({1, 1, 3})})[0], (Numbers{5, 5, 4}));
  EXPECT_EQ(run(MaxPool, attrs, {f32({1, 1, 3}, {-4, -5, -6})}, {f32({1, 1, 2})})[0], (Numbers{-4, -5}));
}

TEST(reference_pool, dilation_spreads_the_taps_of_the_maximum) {
  const AttrList attrs = plus(pool_attrs({2}, {1}, {0}, {0}), Attr::dilations, Int64s{3});
  EXPECT_EQ(run(MaxPool, attrs, {kLine}, {f32({1, 1, 2})})[0], (Numbers{2, 5}));
}

TEST(reference_pool, average_divides_by_the_valid_cells_or_by_the_kernel) {
  const AttrList attrs = pool_attrs({3}, {2}, {1}, {1});
  expect_near(run(AvgPool, plus(attrs, Attr::exclude_pad, true), {kLine}, {f32({1, 1, 3})})[0], {3, 10.0 / 3, 3});
  expect_near(run(AvgPool, plus(attrs, Attr::exclude_pad, false), {kLine}, {f32({1, 1, 3})})[0], {2, 10.0 / 3, 2});
}

TEST(reference_pool, a_ceil_window_that_overhangs_divides_by_the_full_kernel) {
  // 6 elements, kernel 3, stride 2, ceil: the last window starts at 4 and has two valid cells.
  const Sample src = f32({1, 1, 6}, {1, 2, 3, 4, 5, 6});
  const AttrList attrs = plus(pool_attrs({3}, {2}, {0}, {0}), Attr::rounding_type, "ceil");
  expect_near(run(AvgPool, plus(attrs, Attr::exclude_pad, false), {src}, {f32({1, 1, 3})})[0], {2, 4, 11.0 / 3});
  expect_near(run(AvgPool, plus(attrs, Attr::exclude_pad, true), {src}, {f32({1, 1, 3})})[0], {2, 4, 5.5});
  EXPECT_EQ(run(MaxPool, attrs, {src}, {f32({1, 1, 3})})[0], (Numbers{3, 5, 6}));
}

TEST(reference_pool, a_window_without_valid_cells_contributes_nothing) {
  // Kernel 1, stride 3, six elements: a ceil window starts at 6, behind the source.
  const Sample src = f32({1, 1, 6}, {1, 2, 3, 4, 5, 6}), dy = f32({1, 1, 3}, {10, 20, 30});
  const AttrList attrs = pool_attrs({1}, {3}, {0}, {0});
  for (bool exclude : {true, false}) {
    const AttrList avg = plus(attrs, Attr::exclude_pad, exclude);
    EXPECT_EQ(run(AvgPool, avg, {src}, {f32({1, 1, 3})})[0], (Numbers{1, 4, 0}));
    EXPECT_EQ(run(AvgPoolBackward, avg, {dy}, {f32({1, 1, 6})})[0], (Numbers{10, 0, 0, 20, 0, 0}));
  }
  EXPECT_EQ(run(MaxPool, attrs, {src}, {f32({1, 1, 3})})[0][2], std::numeric_limits<float>::lowest());
  EXPECT_EQ(run(MaxPool, attrs, {sample(Dtype::f16, {1, 1, 6}, src.values)}, {sample(Dtype::f16, {1, 1, 3})})[0][2],
            -65504);
  EXPECT_EQ(run(MaxPoolBackward, attrs, {src, dy}, {f32({1, 1, 6})})[0], (Numbers{10, 0, 0, 20, 0, 0}));
}

TEST(reference_pool, the_first_of_equal_maxima_gets_the_gradient) {
  const Sample src = f32({1, 1, 2, 2}, {7, 7, 7, 7});
  EXPECT_EQ(run(MaxPoolBackward, pool_attrs({2, 2}, {1, 1}, {0, 0}, {0, 0}), {src, f32({1, 1, 1, 1}, {3})},
                {f32({1, 1, 2, 2})})[0],
            (Numbers{3, 0, 0, 0}));
}

TEST(reference_pool, the_first_nan_is_the_maximum) {
  const Sample src = f32({1, 1, 4}, {1, kNan, kInf, kNan}), dy = f32({1, 1, 1}, {3});
  const AttrList attrs = pool_attrs({4}, {1}, {0}, {0});
  EXPECT_TRUE(std::isnan(run(MaxPool, attrs, {src}, {f32({1, 1, 1})})[0][0]));
  EXPECT_EQ(run(MaxPoolBackward, attrs, {src, dy}, {f32({1, 1, 4})})[0], (Numbers{0, 3, 0, 0}));
}

TEST(reference_pool, a_window_of_minus_infinity_gives_minus_infinity) {
  const Sample src = f32({1, 1, 2}, {-kInf, -kInf});
  EXPECT_EQ(run(MaxPool, pool_attrs({2}, {1}, {0}, {0}), {src}, {f32({1, 1, 1})})[0][0], -kInf);
  EXPECT_EQ(run(MaxPoolBackward, pool_attrs({2}, {1}, {0}, {0}), {src, f32({1, 1, 1}, {3})}, {f32({1, 1, 2})})[0],
            (Numbers{3, 0}));
}

TEST(reference_pool, overlapping_windows_add_their_gradients) {
  const AttrList attrs = pool_attrs({3}, {1}, {1}, {1});
  const Sample dy = f32({1, 1, 5}, {1, 2, 3, 4, 5});
  EXPECT_EQ(run(MaxPoolBackward, attrs, {kLine, dy}, {f32({1, 1, 5})})[0], (Numbers{0, 6, 0, 0, 9}));
  expect_near(run(AvgPoolBackward, plus(attrs, Attr::exclude_pad, false), {dy}, {f32({1, 1, 5})})[0], {1, 2, 3, 4, 3});
  expect_near(run(AvgPoolBackward, plus(attrs, Attr::exclude_pad, true), {dy}, {f32({1, 1, 5})})[0],
              {0.5 + 2.0 / 3, 0.5 + 5.0 / 3, 3, 7.0 / 3 + 2.5, 4.0 / 3 + 2.5});
}

struct RandomPool {
  AttrList attrs;
  Dims src, dst;
};

RandomPool random_pool(Random& random) {
  RandomPool pool{{}, {2, 3}, {2, 3}};
  Int64s kernel, strides, begin, end, dilations;
  for (int64_t axis = 0, rank = random.whole(1, 3); axis < rank; ++axis) {
    kernel.push_back(random.whole(1, 3));
    strides.push_back(random.whole(1, 4));
    begin.push_back(random.whole(0, kernel.back()));
    end.push_back(random.whole(0, 2));
    dilations.push_back(random.whole(1, 2));
    const int64_t extent = (kernel.back() - 1) * dilations.back() + 1, size = extent + random.whole(0, 4);
    pool.src.push_back(size);
    pool.dst.push_back(
        (size + begin.back() + end.back() - extent + random.whole(0, strides.back() - 1)) / strides.back() + 1);
  }
  pool.attrs = pool_attrs(kernel, strides, begin, end);
  pool.attrs.emplace_back(Attr::dilations, dilations);
  pool.attrs.emplace_back(Attr::exclude_pad, random.coin());
  return pool;
}

TEST(reference_pool, backward_is_the_transpose_of_average_and_layouts_agree) {
  Random random(21);
  SCOPED_TRACE(random.seed());
  for (int round = 0; round < 60; ++round) {
    const RandomPool pool = random_pool(random);
    const AttrList nxc = plus(pool.attrs, Attr::data_format, "NXC");
    const Sample x = random_f32(pool.src, random), dy = random_f32(pool.dst, random);
    const Numbers y = run(AvgPool, pool.attrs, {x}, {f32(pool.dst)})[0];
    const Numbers dx = run(AvgPoolBackward, pool.attrs, {dy}, {f32(pool.src)})[0];
    EXPECT_NEAR(dot(y, dy.values), dot(x.values, dx), 1e-4);
    const Numbers other = run(AvgPoolBackward, nxc, {as_nxc(dy)}, {as_nxc(scattered(f32(pool.src)))})[0];
    EXPECT_EQ(from_nxc(as_nxc(f32(pool.src)).desc.dims, other), dx);
    const Numbers best = run(MaxPool, pool.attrs, {scattered(x)}, {f32(pool.dst)})[0];
    EXPECT_EQ(from_nxc(as_nxc(f32(pool.dst)).desc.dims, run(MaxPool, nxc, {as_nxc(x)}, {as_nxc(f32(pool.dst))})[0]),
              best);
  }
}

TEST(reference_pool, the_gradient_of_the_maximum_lands_where_the_maximum_is) {
  Random random(22);
  SCOPED_TRACE(random.seed());
  for (int round = 0; round < 60; ++round) {
    const RandomPool pool = random_pool(random);
    const Sample x = random_f32(pool.src, random), dy = random_f32(pool.dst, random);
    const Numbers y = run(MaxPool, pool.attrs, {x}, {f32(pool.dst)})[0];
    const Numbers dx = run(MaxPoolBackward, pool.attrs, {x, dy}, {f32(pool.src)})[0];
    double expected = 0;  // x is the maximum of each window its gradient came from, so <x, dx> = <y, dy>
    for (size_t i = 0; i < y.size(); ++i)
      expected += y[i] == std::numeric_limits<float>::lowest() ? 0 : y[i] * dy.values[i];
    EXPECT_NEAR(dot(x.values, dx), expected, 1e-4);
  }
}

AttrList resample(const char* mode, const char* coordinates = "half_pixel") {
  return {{Attr::mode, mode}, {Attr::coordinate_transformation_mode, coordinates}, {Attr::data_format, "NCX"}};
}

TEST(reference_interpolate, nearest_takes_the_closest_centre) {
  const Sample src = f32({1, 1, 2}, {1, 2});
  EXPECT_EQ(run(Interpolate, resample("nearest"), {src}, {f32({1, 1, 4})})[0], (Numbers{1, 1, 2, 2}));
  EXPECT_EQ(run(Interpolate, resample("nearest"), {f32({1, 1, 5}, {1, 2, 3, 4, 5})}, {f32({1, 1, 3})})[0],
            (Numbers{1, 3, 5}));
}

TEST(reference_interpolate, linear_mixes_neighbours_and_clamps_at_the_edges) {
  const Sample src = f32({1, 1, 2}, {1, 2});
  expect_near(run(Interpolate, resample("linear"), {src}, {f32({1, 1, 4})})[0], {1, 1.25, 1.75, 2});
  expect_near(run(Interpolate, resample("linear", "align_corners"), {src}, {f32({1, 1, 4})})[0],
              {1, 4.0 / 3, 5.0 / 3, 2});
  const Sample square = f32({1, 1, 2, 2}, {0, 1, 2, 3});
  expect_near(run(Interpolate, resample("bilinear"), {square}, {f32({1, 1, 1, 1})})[0], {1.5});
  expect_near(run(Interpolate, resample("bilinear", "align_corners"), {square}, {f32({1, 1, 3, 3})})[0],
              {0, 0.5, 1, 1, 1.5, 2, 2, 2.5, 3});
  const Sample cube = f32({1, 1, 2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  expect_near(run(Interpolate, resample("trilinear"), {cube}, {f32({1, 1, 1, 1, 1})})[0], {3.5});
}

TEST(reference_interpolate, backward_is_the_transpose) {
  Random random(23);
  SCOPED_TRACE(random.seed());
  for (int round = 0; round < 60; ++round) {
    Dims src{2, 2}, dst{2, 2};
    for (int64_t axis = 0, rank = random.whole(1, 3); axis < rank; ++axis) {
      src.push_back(random.whole(1, 6));
      dst.push_back(random.whole(1, 6));
    }
    const AttrList attrs = resample(random.pick({"nearest", "linear"}), random.pick({"half_pixel", "align_corners"}));
    const Sample x = random_f32(src, random), dy = random_f32(dst, random);
    const Numbers y = run(Interpolate, attrs, {x}, {f32(dst)})[0];
    const Numbers dx = run(InterpolateBackward, attrs, {x, dy}, {f32(src)})[0];
    EXPECT_NEAR(dot(y, dy.values), dot(x.values, dx), 1e-4);
    const AttrList nxc = plus(attrs, Attr::data_format, "NXC");
    EXPECT_EQ(from_nxc(as_nxc(f32(dst)).desc.dims, run(Interpolate, nxc, {as_nxc(x)}, {as_nxc(f32(dst))})[0]), y);
  }
}

}  // namespace
}  // namespace partita::test
