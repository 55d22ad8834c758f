// SPDX-License-Identifier: Apache-2.0
// What the Ascend door computes: random calls against the definitions, and cases that others get wrong.
#include <gtest/gtest.h>

#include "aclnnop/aclnn_adaptive_avg_pool2d_backward.h"
#include "aclnnop/aclnn_avgpool2d_backward.h"
#include "aclnnop/aclnn_avgpool3d_backward.h"
#include "aclnnop/aclnn_max_pool2d_with_indices_backward.h"
#include "src/compat/pooling.hpp"
#include "tests/compat/ascend/client.hpp"

namespace partita::test {
namespace {

/// A pooling that the vendor's rules allow: symmetric padding of at most half a kernel, PyTorch's rounding.
struct Case {
  NaivePooling p;
  bool ceil = false;
  bool batch = true;
};

int64_t windows(const NaivePooling& p, int i, bool ceil) {
  return compat::window_count(p.source[i + 2], p.kernel[i], p.strides[i], p.pads_begin[i], p.pads_end[i],
                              p.dilations[i], ceil ? compat::LastWindow::kept_inside : compat::LastWindow::dropped);
}

Case random_case(Random& random, int spatial, bool dilated) {
  for (;;) {
    Case c;
    NaivePooling& p = c.p;
    c.ceil = random.coin();
    c.batch = random.coin();
    p.source = p.pooled = {c.batch ? random.whole(1, 2) : 1, random.whole(1, 3)};
    for (int i = 0; i < spatial; ++i) {
      p.source.push_back(random.whole(1, spatial == 2 ? 12 : 6));
      p.kernel.push_back(random.whole(1, 4));
      p.strides.push_back(random.whole(1, 5));
      p.pads_begin.push_back(random.whole(0, p.kernel[i] / 2));
      p.dilations.push_back(dilated ? random.whole(1, 2) : 1);
    }
    p.pads_end = p.pads_begin;
    bool fits = true;
    for (int i = 0; i < spatial; ++i) {
      p.pooled.push_back(windows(p, i, c.ceil));
      fits = fits && p.pooled[i + 2] > 0;
    }
    if (fits) return c;
  }
}

Image image(Dtype dtype, Dims dims, bool batch, Random& random) {
  if (!batch) dims.erase(0);
  return random.coin() ? Image::dense(dtype, dims) : Image::scattered(dtype, dims, random);
}

aclFormat format_of(int spatial, bool batch) {
  return spatial == 3 ? ACL_FORMAT_NCDHW : batch ? ACL_FORMAT_NCHW : ACL_FORMAT_NCL;
}

std::string text(const Case& c) {
  return str("source [", text_of(c.p.source), "] pooled [", text_of(c.p.pooled), "] kernel [", text_of(c.p.kernel),
             "] strides [", text_of(c.p.strides), "] pads [", text_of(c.p.pads_begin), "] dilations [",
             text_of(c.p.dilations), "] ceil ", c.ceil, " batch ", c.batch, " divides_by ",
             static_cast<int>(c.p.divides_by), " override ", c.p.divisor_override);
}

/// Runs the average's gradient of two or three axes through both calls.
std::string average_difference(const Case& c, Dtype dtype, Random& random, Image result) {
  const int spatial = c.p.spatial();
  const aclFormat format = format_of(spatial, c.batch);
  Image gradient = image(dtype, c.p.pooled, c.batch, random), self = image(dtype, c.p.source, c.batch, random);
  const Reals dy = gradient.fill(random);
  const TensorPtr g = acl_tensor(gradient, format), s = acl_tensor(self, format), r = acl_tensor(result, format);
  const ListPtr kernel = acl_list(c.p.kernel), stride = acl_list(c.p.strides), padding = acl_list(c.p.pads_begin);
  const bool include = c.p.divides_by == DividesBy::padded_box;
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  const aclnnStatus first =
      spatial == 2
          ? aclnnAvgPool2dBackwardGetWorkspaceSize(g.get(), s.get(), kernel.get(), stride.get(), padding.get(), c.ceil,
                                                   include, c.p.divisor_override, 0, r.get(), &size, &executor)
          : aclnnAvgPool3dBackwardGetWorkspaceSize(g.get(), s.get(), kernel.get(), stride.get(), padding.get(), c.ceil,
                                                   include, c.p.divisor_override, r.get(), &size, &executor);
  if (first != ACLNN_SUCCESS) return last_error();
  const aclnnStatus second = spatial == 2 ? run_second(aclnnAvgPool2dBackward, size, executor)
                                          : run_second(aclnnAvgPool3dBackward, size, executor);
  if (second != ACLNN_SUCCESS) return last_error();
  return result.difference(naive_average_gradient(c.p, dy));
}

std::string average_difference(const Case& c, Dtype dtype, Random& random) {
  return average_difference(c, dtype, random, image(dtype, c.p.source, c.batch, random));
}

TEST(ascend_gradient, of_an_average_is_what_the_definition_says) {
  Random random(11);
  for (int round = 0; round < 120; ++round) {
    Case c = random_case(random, random.pick({2, 3}), /*dilated=*/false);
    c.p.divides_by = random.coin() ? DividesBy::padded_box : DividesBy::valid;
    if (random.whole(0, 3) == 0) c.p.divisor_override = random.pick<int64_t>({1, 7, 300, -3});
    const Dtype dtype = random.pick({Dtype::f32, Dtype::f32, Dtype::f16, Dtype::bf16});
    ASSERT_EQ(average_difference(c, dtype, random), "")
        << text(c) << ' ' << name_of(dtype) << " seed " << random.seed();
  }
}

/// Six cells, three wide, two apart, rounded up: the last window has two cells inside and one that hangs over.
Case overhanging(int64_t pad) {
  Case c;
  c.ceil = true;
  c.p.source = {1, 2, 6, 6};
  c.p.kernel = {3, 3};
  c.p.strides = {2, 2};
  c.p.pads_begin = c.p.pads_end = {pad, pad};
  c.p.dilations = {1, 1};
  c.p.pooled = {1, 2, windows(c.p, 0, true), windows(c.p, 1, true)};
  return c;
}

TEST(ascend_gradient, divides_by_the_padded_box_where_a_window_hangs_over) {
  Random random(1);
  for (int64_t pad : {0, 1})
    for (DividesBy by : {DividesBy::valid, DividesBy::padded_box}) {
      Case c = overhanging(pad);
      c.p.divides_by = by;
      EXPECT_EQ(average_difference(c, Dtype::f32, random), "") << text(c);
      NaivePooling whole = c.p;
      whole.divides_by = DividesBy::kernel;
      const Reals ones(static_cast<size_t>(whole.planes() * whole.cells(whole.pooled)), 1.0);
      EXPECT_NE(naive_average_gradient(whole, ones), naive_average_gradient(c.p, ones)) << "the case shows nothing";
    }
}

TEST(ascend_gradient, keeps_an_override_of_255_without_counted_padding) {
  Random random(2);
  for (int64_t divisor : {255, -255, 256}) {
    Case c = overhanging(1);
    c.p.divisor_override = divisor;
    EXPECT_EQ(average_difference(c, Dtype::f32, random), "") << text(c);
  }
}

TEST(ascend_gradient, of_a_source_one_cell_wide_reads_windows_that_lie_apart) {
  Random random(6);
  Case c;
  c.p.source = {1, 3, 4, 1};
  c.p.kernel = {2, 2};
  c.p.strides = {3, 1};
  c.p.pads_begin = c.p.pads_end = {0, 1};
  c.p.dilations = {1, 1};
  c.p.pooled = {1, 3, 1, 2};
  c.p.divides_by = DividesBy::padded_box;
  for (int round = 0; round < 8; ++round) EXPECT_EQ(average_difference(c, Dtype::f32, random), "");
}

/// Cells of the second row lie between those of the first, and no two of them in one place.
TEST(ascend_gradient, goes_to_rows_that_lie_between_each_other) {
  Random random(8);
  Case c;
  c.p.source = {1, 2, 2, 4};
  c.p.kernel = c.p.strides = {2, 2};
  c.p.pads_begin = c.p.pads_end = {0, 0};
  c.p.dilations = {1, 1};
  c.p.pooled = {1, 2, 1, 2};
  EXPECT_EQ(average_difference(c, Dtype::f32, random, Image::with_strides(Dtype::f32, c.p.source, {32, 16, 3, 2})), "");
}

TEST(ascend_gradient, of_three_axes_adds_what_overlaps_and_keeps_axes_apart) {
  Random random(3);
  Case c;
  c.p = three_unequal_axes();
  c.p.pooled = {1, 2, windows(c.p, 0, false), windows(c.p, 1, false), windows(c.p, 2, false)};
  EXPECT_EQ(average_difference(c, Dtype::f32, random), "") << text(c);
}

TEST(ascend_gradient, adds_overlapping_16_bit_shares_in_f32) {
  Random random(4);
  Case c;
  c.p.source = {1, 1, 32, 32};
  c.p.kernel = {13, 13};
  c.p.strides = {1, 1};
  c.p.pads_begin = c.p.pads_end = {6, 6};
  c.p.dilations = {1, 1};
  c.p.pooled = {1, 1, 32, 32};
  for (Dtype dtype : {Dtype::f16, Dtype::bf16}) EXPECT_EQ(average_difference(c, dtype, random), "") << name_of(dtype);
}

TEST(ascend_gradient, takes_more_channels_than_some_devices_count) {
  Random random(7);
  Case c;
  c.p.source = {1, 65537, 1, 2};
  c.p.kernel = c.p.strides = {1, 2};
  c.p.pads_begin = c.p.pads_end = {0, 0};
  c.p.dilations = {1, 1};
  c.p.pooled = {1, 65537, 1, 1};
  EXPECT_EQ(average_difference(c, Dtype::f32, random), "");
}

TEST(ascend_gradient, of_adaptive_bins_is_what_the_definition_says) {
  Random random(12);
  for (int round = 0; round < 60; ++round) {
    const bool batch = random.coin();
    const Dims source{batch ? random.whole(1, 2) : 1, random.whole(1, 3), random.whole(1, 13), random.whole(1, 13)};
    const Dims pooled{source[0], source[1], random.whole(1, 9), random.whole(1, 9)};
    const Dtype dtype = random.pick({Dtype::f32, Dtype::f16, Dtype::bf16});
    Image gradient = image(dtype, pooled, batch, random), self = image(dtype, source, batch, random);
    Image result = image(dtype, source, batch, random);
    const Reals dy = gradient.fill(random);
    const aclFormat format = format_of(2, batch);
    const TensorPtr g = acl_tensor(gradient, format), s = acl_tensor(self, format), r = acl_tensor(result, format);
    uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    ASSERT_EQ(aclnnAdaptiveAvgPool2dBackwardGetWorkspaceSize(g.get(), s.get(), r.get(), &size, &executor),
              ACLNN_SUCCESS)
        << last_error();
    ASSERT_EQ(run_second(aclnnAdaptiveAvgPool2dBackward, size, executor), ACLNN_SUCCESS) << last_error();
    ASSERT_EQ(result.difference(naive_adaptive_gradient(source, pooled, dy)), "")
        << text_of(source) << " to " << text_of(pooled) << " seed " << random.seed();
  }
}

struct Maximum {
  Case c;
  Dtype dtype = Dtype::f32, index_dtype = Dtype::s64;
  std::vector<int64_t> winners;
};

std::string maximum_difference(const Maximum& m, Random& random) {
  const Case& c = m.c;
  Image gradient = image(m.dtype, c.p.pooled, c.batch, random), self = image(m.dtype, c.p.source, c.batch, random);
  Image indices = image(m.index_dtype, c.p.pooled, c.batch, random);
  Image result = image(m.dtype, c.p.source, c.batch, random);
  const Reals dy = gradient.fill(random);
  indices.fill(Reals(m.winners.begin(), m.winners.end()));
  const aclFormat format = format_of(2, c.batch);
  const TensorPtr g = acl_tensor(gradient, format), s = acl_tensor(self, format), i = acl_tensor(indices, format),
                  r = acl_tensor(result, format);
  const ListPtr kernel = acl_list(c.p.kernel), stride = acl_list(c.p.strides), padding = acl_list(c.p.pads_begin),
                dilation = acl_list(c.p.dilations);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  if (aclnnMaxPool2dWithIndicesBackwardGetWorkspaceSize(g.get(), s.get(), i.get(), kernel.get(), stride.get(),
                                                        padding.get(), dilation.get(), c.ceil, r.get(), &size,
                                                        &executor) != ACLNN_SUCCESS)
    return last_error();
  const aclnnStatus status = run_second(aclnnMaxPool2dWithIndicesBackward, size, executor);
  if (status != ACLNN_SUCCESS) return str(status, ' ', last_error());
  return result.difference(naive_scatter(c.p, m.winners, dy));
}

TEST(ascend_gradient, of_a_maximum_goes_where_the_indices_say) {
  Random random(13);
  for (int round = 0; round < 80; ++round) {
    Maximum m;
    m.c = random_case(random, 2, /*dilated=*/true);
    m.dtype = random.pick({Dtype::f32, Dtype::f16, Dtype::bf16});
    m.index_dtype = random.pick({Dtype::s32, Dtype::s64});
    Image source = Image::dense(Dtype::f32, m.c.p.source);
    m.winners = naive_winners(m.c.p, source.fill(random));
    if (std::ranges::count(m.winners, -1) > 0) continue;  // the forward pooling would have no index to give
    ASSERT_EQ(maximum_difference(m, random), "") << text(m.c) << " seed " << random.seed();
  }
}

TEST(ascend_gradient, refuses_an_index_outside_its_plane) {
  Random random(5);
  for (int64_t wrong : {int64_t{-2}, int64_t{36}, int64_t{1} << 31}) {
    Maximum m;
    m.c = overhanging(0);
    m.winners.assign(static_cast<size_t>(m.c.p.planes() * m.c.p.cells(m.c.p.pooled)), 3);
    m.winners.back() = wrong;
    EXPECT_NE(maximum_difference(m, random).find("361001 aclnnMaxPool2dWithIndicesBackward: "), std::string::npos)
        << wrong << ": " << maximum_difference(m, random);
  }
}

}  // namespace
}  // namespace partita::test
