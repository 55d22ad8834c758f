// SPDX-License-Identifier: Apache-2.0
// Output shapes of pooling and convolution, where windows slide over the spatial axes.
#include <gtest/gtest.h>

#include "tests/support/shape_case.hpp"

namespace partita::test {
namespace {

AttrList pool(Ints kernel, Ints strides, Ints begin, Ints end, AttrList more = {}) {
  AttrList attrs = {{Attr::kernel, kernel},
                    {Attr::strides, strides},
                    {Attr::pads_begin, begin},
                    {Attr::pads_end, end},
                    {Attr::data_format, std::string("NCX")}};
  attrs.insert(attrs.end(), more.begin(), more.end());
  return attrs;
}
AttrList avg(Ints kernel, Ints strides, Ints begin, Ints end, AttrList more = {}) {
  more.emplace_back(Attr::exclude_pad, true);
  return pool(kernel, strides, begin, end, more);
}
AttrList conv(Ints strides, Ints begin, Ints end, Ints dilations, std::string filter, AttrList more = {}) {
  AttrList attrs = {{Attr::strides, strides},       {Attr::pads_begin, begin},
                    {Attr::pads_end, end},          {Attr::dilations, dilations},
                    {Attr::weights_format, filter}, {Attr::data_format, std::string("NCX")}};
  attrs.insert(attrs.end(), more.begin(), more.end());
  return attrs;
}
const std::string kCeil = "ceil", kUpper = "SAME_UPPER", kLower = "SAME_LOWER", kValid = "VALID", kLast = "NXC";

TEST(shapes, of_pooling_follow_both_conventions_of_ceil) {
  const AttrList ceil = {{Attr::rounding_type, kCeil}};
  expect_all({
      {OpKind::AvgPool, avg({3, 3}, {2, 2}, {1, 1}, {0, 0}), "f32[1,64,600,600]", "f32", "f32[1,64,300,300]"},
      {OpKind::MaxPool, pool({3}, {2}, {0}, {0}), "f32[1,1,6]", "f32", "f32[1,1,2]"},
      {OpKind::MaxPool, pool({3}, {2}, {0}, {0}, ceil), "f32[1,1,6]", "f32", "f32[1,1,3]"},
      // The fourth window starts behind the source: oneDNN counts it, PyTorch does not.
      {OpKind::MaxPool, pool({1}, {2}, {0}, {0}, ceil), "f32[1,1,6]", "f32", "f32[1,1,4]"},
      {OpKind::MaxPool, pool({1}, {2}, {0}, {0}, ceil), "f32[1,1,6]", "f32[1,1,3]", "f32[1,1,3]"},
      {OpKind::MaxPool, pool({1}, {2}, {0}, {0}, ceil), "f32[1,1,6]", "f32[1,1,2]",
       "!`dst` is f32[1,1,2], the operator makes [1,1,4]"},
      {OpKind::MaxPool, pool({1}, {2}, {0}, {0}), "f32[1,1,6]", "f32[1,1,4]",
       "!`dst` is f32[1,1,4], the operator makes [1,1,3]"},
      {OpKind::MaxPool, pool({2}, {1}, {}, {}, {{Attr::dilations, Ints{3}}}), "f32[1,1,6]", "f32", "f32[1,1,3]"},
      {OpKind::AvgPool, avg({2}, {1}, {}, {}, {{Attr::data_format, kLast}}), "f32[5,6,7]", "f32", "f32[5,5,7]"},
      {OpKind::AvgPool, avg({7}, {1}, {1}, {1}), "f32[1,1,4]", "f32",
       "!spatial dims must be 1 or more, found [0]: `src` is f32[1,1,4], window [7]"},
      {OpKind::AvgPool, avg({2}, {1}, {0}, {0}), "f32[0,1,4]", "f32", "f32[0,1,3]"},
      {OpKind::AvgPool, avg({2}, {1}, {0}, {0}), "f32[1,1,0]", "f32", "f32[1,1,0]"},
  });
}

TEST(shapes, resolve_auto_pad_into_explicit_pads) {
  struct Pads {
    std::string mode;
    Ints begin, end;
    std::string_view dst;
  };
  for (const Pads& p :
       {Pads{kUpper, {0, 1}, {1, 1}, "f32[1,1,4,5]"}, Pads{kLower, {1, 1}, {0, 1}, "f32[1,1,4,5]"},
        Pads{kValid, {0, 0}, {0, 0}, "f32[1,1,3,4]"}, Pads{"same_upper", {0, 1}, {1, 1}, "f32[1,1,4,5]"}}) {
    SCOPED_TRACE(p.mode);
    const Inferred got = infer(op_of(OpKind::MaxPool, pool({3, 3}, {2, 2}, {9, 9}, {9, 9}, {{Attr::auto_pad, p.mode}}),
                                     "f32[1,1,8,9]", "f32"));
    EXPECT_EQ(got.text, p.dst);
    EXPECT_EQ(got.attrs.ints(Attr::pads_begin), p.begin);
    EXPECT_EQ(got.attrs.ints(Attr::pads_end), p.end);
    EXPECT_EQ(got.attrs.ints(Attr::dilations), (Ints{1, 1}));
    EXPECT_TRUE(got.attrs.is(Attr::auto_pad, "None"));
  }
}

TEST(shapes, empty_pads_become_zeros) {
  const Inferred got = infer(op_of(OpKind::AvgPool, avg({2, 2}, {1, 1}, {}, {}), "f32[1,1,3,3]", "f32"));
  EXPECT_EQ(got.text, "f32[1,1,2,2]");
  EXPECT_EQ(got.attrs.ints(Attr::pads_begin), (Ints{0, 0}));
  EXPECT_EQ(got.attrs.ints(Attr::pads_end), (Ints{0, 0}));
}

TEST(shapes, of_pooling_backward_are_those_of_the_forward_source) {
  const AttrList with_shape = avg({3, 3}, {2, 2}, {1, 1}, {0, 0}, {{Attr::src_shape, Ints{1, 2, 6, 6}}});
  const AttrList without = avg({3, 3}, {2, 2}, {1, 1}, {0, 0});
  const AttrList narrow = avg({1}, {2}, {0}, {0}, {{Attr::src_shape, Ints{1, 1, 6}}});
  expect_all({
      {OpKind::AvgPoolBackward, with_shape, "f32[1,2,3,3]", "f32", "f32[1,2,6,6]"},
      {OpKind::AvgPoolBackward, without, "f32[1,2,3,3]", "f32[1,2,6,6]", "f32[1,2,6,6]"},
      {OpKind::AvgPoolBackward, without, "f32[1,2,3,3]", "f32", "!`src_shape` must be given as attribute or input"},
      {OpKind::AvgPoolBackward, without, "f32[1,2,3,3] s32[4]", "f32", "f32[1,2,?,?]"},
      {OpKind::AvgPoolBackward, with_shape, "f32[1,2,3,3] s32[4]", "f32", "f32[1,2,?,?]"},
      {OpKind::AvgPoolBackward, with_shape, "f32[1,2,3,3]", "f32[1,2,5,6]", "!the operator makes [1,2,6,6]"},
      {OpKind::AvgPoolBackward, narrow, "f32[1,1,3]", "f32", "f32[1,1,6]"},
      {OpKind::AvgPoolBackward, narrow, "f32[1,1,4]", "f32", "f32[1,1,6]"},
      {OpKind::AvgPoolBackward, narrow, "f32[1,1,5]", "f32",
       "!`diff_dst` is f32[1,1,5], pooling [1,1,6] makes [1,1,3]"},
      {OpKind::AvgPoolBackward, with_shape, "f32[1,3,3,3]", "f32",
       "!`diff_dst` is f32[1,3,3,3], pooling [1,2,6,6] makes [1,2,3,3]"},
      {OpKind::MaxPoolBackward, pool({3}, {2}, {1}, {0}), "f32[2,3,8] f32[2,3,4]", "f32", "f32[2,3,8]"},
      {OpKind::MaxPoolBackward, pool({3}, {2}, {1}, {0}), "f32[2,3,8] f32[2,3,3]", "f32",
       "!`diff_dst` is f32[2,3,3], pooling [2,3,8] makes [2,3,4]"},
      {OpKind::MaxPoolBackward, pool({3}, {2}, {0}, {0}), "f32[1,1,6] f32[1,1,3]", "f32", "f32[1,1,6]"},
  });
}

TEST(shapes, of_pooling_by_a_given_rule) {
  const auto rounded = [](const char* rule) { return AttrList{{Attr::rounding_type, std::string(rule)}}; };
  const auto backward = [&](const char* rule) {
    AttrList more = rounded(rule);
    more.emplace_back(Attr::src_shape, Ints{1, 1, 6});
    return avg({1}, {2}, {0}, {0}, more);
  };
  expect_all({
      {OpKind::MaxPool, pool({1}, {2}, {0}, {0}, rounded("ceil_inside")), "f32[1,1,6]", "f32", "f32[1,1,3]"},
      {OpKind::MaxPool, pool({1}, {2}, {0}, {0}, rounded("ceil_inside")), "f32[1,1,6]", "f32[1,1,4]",
       "!the operator makes [1,1,3]"},
      {OpKind::MaxPool, pool({3}, {2}, {0}, {0}, rounded("ceil_inside")), "f32[1,1,6]", "f32", "f32[1,1,3]"},
      {OpKind::AvgPoolBackward, backward("floor"), "f32[1,1,4]", "f32", "!pooling [1,1,6] makes [1,1,3]"},
      {OpKind::AvgPoolBackward, backward("ceil"), "f32[1,1,4]", "f32", "f32[1,1,6]"},
      {OpKind::AvgPoolBackward, backward("ceil"), "f32[1,1,3]", "f32", "f32[1,1,6]"},
      {OpKind::AvgPoolBackward, backward("ceil_inside"), "f32[1,1,4]", "f32", "!pooling [1,1,6] makes [1,1,3]"},
      {OpKind::AvgPoolBackward, backward("ceil_inside"), "f32[1,1,3]", "f32", "f32[1,1,6]"},
      {OpKind::MaxPoolBackward, pool({3}, {2}, {0}, {0}, rounded("floor")), "f32[1,1,6] f32[1,1,3]", "f32",
       "!pooling [1,1,6] makes [1,1,2]"},
  });
}

TEST(shapes, of_poolings_may_lack_the_batch) {
  const AttrList last = {{Attr::data_format, kLast}};
  AttrList indices = {{Attr::data_format, std::string("NCX")}, {Attr::src_shape, Ints{2, 6, 8}}};
  const AttrList batched = indices;
  indices.emplace_back(Attr::spatial_axes, int64_t{2});
  expect_all({
      {OpKind::MaxPool, pool({2, 2}, {2, 2}, {0, 0}, {0, 0}), "f32[3,8,6]", "f32 s64", "f32[3,4,3] s64[3,4,3]"},
      {OpKind::AvgPool, avg({2, 2}, {2, 2}, {0, 0}, {0, 0}, last), "f32[8,6,3]", "f32", "f32[4,3,3]"},
      {OpKind::AvgPool, avg({2}, {2}, {0}, {0}), "f32[3,8]", "f32", "f32[3,4]"},
      {OpKind::MaxPoolBackward, pool({2, 2}, {2, 2}, {0, 0}, {0, 0}), "f32[3,8,6] f32[3,4,3]", "f32", "f32[3,8,6]"},
      {OpKind::AvgPoolBackward, avg({2, 2}, {2, 2}, {0, 0}, {0, 0}), "f32[3,4,3]", "f32[3,8,6]", "f32[3,8,6]"},
      {OpKind::MaxPoolIndicesBackward, indices, "f32[2,3,4] s64[2,3,4]", "f32", "f32[2,6,8]"},
      {OpKind::MaxPoolIndicesBackward, batched, "f32[2,3,4] s64[2,3,4]", "f32",
       "!its batch and channels must be those of [2,6,8]"},
      {OpKind::MaxPoolIndicesBackward, indices, "f32[2,3,4] s64[2,3,5]", "f32",
       "!it must have the shape of `diff_dst`"},
      {OpKind::AdaptiveAvgPool,
       {{Attr::sizes, Ints{5, 7}}, {Attr::data_format, std::string("NCX")}},
       "f32[3,8,6]",
       "f32",
       "f32[3,5,7]"},
      {OpKind::AdaptiveAvgPool, {{Attr::sizes, Ints{5, 7}}}, "f32[2,8,6,3]", "f32", "f32[2,5,7,3]"},
      {OpKind::AdaptiveAvgPoolBackward, batched, "f32[2,6,3]", "f32", "f32[2,6,8]"},
      {OpKind::AdaptiveAvgPoolBackward, batched, "f32[2,5,3]", "f32", "!its batch and channels"},
      {OpKind::AdaptiveAvgPoolBackward, indices, "f32[2,5,3]", "f32", "f32[2,6,8]"},
  });
}

TEST(shapes, of_empty_poolings_are_empty) {
  const AttrList sizes = {{Attr::sizes, Ints{5}}};
  const AttrList empty = {{Attr::src_shape, Ints{0, 4, 2}}}, no_cells = {{Attr::src_shape, Ints{1, 0, 2}}};
  expect_all({
      {OpKind::MaxPool, pool({2}, {1}, {0}, {0}), "f32[0,1,4]", "f32 s64", "f32[0,1,3] s64[0,1,3]"},
      {OpKind::MaxPoolIndicesBackward, empty, "f32[0,3,2] s32[0,3,2]", "f32", "f32[0,4,2]"},
      {OpKind::MaxPoolIndicesBackward, no_cells, "f32[1,0,2] s32[1,0,2]", "f32", "f32[1,0,2]"},
      {OpKind::AdaptiveAvgPool, sizes, "f32[0,3,2]", "f32", "f32[0,5,2]"},
      {OpKind::AdaptiveAvgPool, sizes, "f32[1,0,2]", "f32", "!windows need cells"},
      {OpKind::AdaptiveAvgPoolBackward, empty, "f32[0,3,2]", "f32", "f32[0,4,2]"},
  });
}

TEST(shapes, of_convolutions_follow_windows_and_filters) {
  expect_all({
      {OpKind::Convolution, conv({2, 2}, {1, 1}, {1, 1}, {1, 1}, "OIX"), "f32[2,3,8,9] f32[4,3,3,3] f32[4]", "f32",
       "f32[2,4,4,5]"},
      {OpKind::Convolution, conv({1}, {0}, {0}, {2}, "XIO", {{Attr::data_format, kLast}}), "f32[2,9,3] f32[3,3,5]",
       "f32", "f32[2,5,5]"},
      {OpKind::Convolution, conv({1}, {}, {}, {1}, "OIX", {{Attr::groups, int64_t{2}}}), "f32[1,6,4] f32[4,3,1]", "f32",
       "f32[1,4,4]"},
      {OpKind::Convolution, conv({2}, {5}, {5}, {1}, "OIX", {{Attr::auto_pad, kUpper}}), "f32[1,1,7] f32[1,1,3]", "f32",
       "f32[1,1,4]"},
      {OpKind::Convolution, conv({1}, {0}, {0}, {1}, "OIX"), "f32[1,6,4] f32[4,3,1]", "f32",
       "!the filter must have 6 channels a group for this tensor, found 3: `src` is f32[1,6,4], `weights` is "
       "f32[4,3,1], groups=1"},
      {OpKind::Convolution, conv({1}, {0}, {0}, {1}, "OIX", {{Attr::groups, int64_t{4}}}), "f32[1,6,4] f32[4,3,1]",
       "f32", "!`groups` must divide the channels (6): groups=4, `src` is f32[1,6,4]"},
      {OpKind::Convolution, conv({1}, {0}, {0}, {1}, "OIX"), "f32[1,3,4] f32[4,3,1] f32[3]", "f32",
       "!`bias` must be 1-D with 4 entries: `bias` is f32[3]"},
      {OpKind::Convolution, conv({1}, {0}, {0}, {1}, "OIX"), "f32[1,3,4] f32[4,3,1,1]", "f32",
       "!the filter must have rank 3: `src`"},
  });
}

TEST(shapes, of_convolution_gradients_are_checked_against_the_forward_result) {
  const AttrList shape = {{Attr::dst_shape, Ints{1, 3, 6}}};
  const AttrList filter = {{Attr::weights_shape, Ints{4, 3, 3}}};
  expect_all({
      {OpKind::ConvolutionBackwardData, conv({2}, {1}, {1}, {1}, "OIX", shape), "f32[1,4,3] f32[4,3,3]", "f32",
       "f32[1,3,6]"},
      {OpKind::ConvolutionBackwardData, conv({2}, {1}, {1}, {1}, "OIX"), "f32[1,4,3] f32[4,3,3]", "f32[1,3,5]",
       "f32[1,3,5]"},
      {OpKind::ConvolutionBackwardData, conv({2}, {1}, {1}, {1}, "OIX"), "f32[1,4,3] f32[4,3,3] s32[3]", "f32",
       "f32[1,3,?]"},
      {OpKind::ConvolutionBackwardData, conv({2}, {1}, {1}, {1}, "OIX"), "f32[1,4,3] f32[4,3,3]", "f32",
       "!`dst_shape` must be given as attribute or input, or `diff_src` must have a known shape"},
      {OpKind::ConvolutionBackwardData, conv({2}, {1}, {1}, {1}, "OIX", shape), "f32[1,4,4] f32[4,3,3]", "f32",
       "!`diff_dst` is f32[1,4,4], windows over `dst_shape` is [1,3,6] make spatial dims [3]"},
      {OpKind::ConvolutionBackwardWeights, conv({2}, {1}, {1}, {1}, "OIX", filter), "f32[1,3,6] f32[1,4,3]", "f32",
       "f32[4,3,3]"},
      {OpKind::ConvolutionBackwardWeights, conv({2}, {1}, {1}, {1}, "OIX"), "f32[1,3,6] f32[1,4,3]", "f32[4,3,3]",
       "f32[4,3,3]"},
      {OpKind::ConvolutionBackwardWeights, conv({2}, {1}, {1}, {1}, "OIX"), "f32[1,3,6] f32[1,4,3] s32[3]", "f32",
       "f32[?,?,?]"},
      {OpKind::ConvolutionBackwardWeights, conv({2}, {1}, {1}, {1}, "OIX", filter), "f32[2,3,6] f32[1,4,3]", "f32",
       "!the batch must be the same: `src` is f32[2,3,6], `diff_dst` is f32[1,4,3]"},
  });
}

TEST(shapes, of_transposed_convolutions_are_the_other_way_round) {
  const AttrList filter = {{Attr::weights_shape, Ints{4, 3, 3}}};
  expect_all({
      {OpKind::ConvTranspose, conv({2, 2}, {0, 0}, {41, 41}, {1, 1}, "IOX"), "f32[1,32,28,28] f32[32,128,3,3]", "f32",
       "f32[1,128,16,16]"},
      {OpKind::ConvTranspose, conv({2}, {1}, {1}, {1}, "OIX", {{Attr::output_padding, Ints{1}}}),
       "f32[1,4,3] f32[4,3,3]", "f32", "f32[1,3,6]"},
      {OpKind::ConvTranspose, conv({1}, {0}, {0}, {1}, "IOX", {{Attr::groups, int64_t{4}}}),
       "f32[1,4,3] f32[4,2,1] f32[8]", "f32", "f32[1,8,3]"},
      {OpKind::ConvTranspose, conv({2}, {0}, {0}, {1}, "XOI", {{Attr::auto_pad, kLower}}), "f32[1,4,3] f32[3,5,4]",
       "f32", "f32[1,5,6]"},
      {OpKind::ConvTranspose, conv({1}, {9}, {0}, {1}, "IOX"), "f32[1,4,3] f32[4,2,1]", "f32",
       "!the result's spatial dims must be 1 or more, found [-6]: `src`"},
      {OpKind::ConvTransposeBackwardData, conv({2}, {1}, {1}, {1}, "IOX"), "f32[1,3,6] f32[4,3,3]", "f32",
       "f32[1,4,3]"},
      {OpKind::ConvTransposeBackwardWeights, conv({2}, {1}, {1}, {1}, "IOX", filter), "f32[1,4,3] f32[1,3,6]", "f32",
       "f32[4,3,3]"},
      {OpKind::ConvTransposeBackwardWeights, conv({2}, {1}, {1}, {1}, "IOX", filter), "f32[1,3,6] f32[1,4,3]", "f32",
       "!the filter must have 3 channels for this tensor, found 4: `src`"},
  });
}

TEST(shapes, twelve_placeholders_of_a_dump_count_as_absent) {
  const AttrList zeros = {{Attr::src_shape, Ints(12, 0)}};
  const AttrList ones = {{Attr::dilations, Ints(12, 1)}};
  const AttrList padding = {{Attr::output_padding, Ints(12, 0)}};
  expect_all({
      {OpKind::AvgPoolBackward, avg({2}, {2}, {0}, {0}, zeros), "f32[1,1,2]", "f32[1,1,4]", "f32[1,1,4]"},
      {OpKind::MaxPool, pool({2}, {2}, {0}, {0}, ones), "f32[1,1,4]", "f32", "f32[1,1,2]"},
      {OpKind::ConvTranspose, conv({1}, {0}, {0}, {1}, "IOX", padding), "f32[1,4,3] f32[4,2,1]", "f32", "f32[1,2,3]"},
  });
}

TEST(shapes, of_huge_tensors_do_not_overflow) {
  expect_all({
      {OpKind::MaxPool, pool({1}, {1}, {0}, {0}), "f32[1,1,9223372036854775807]", "f32",
       "!spatial axes must have at most 2147483647 cells"},
      {OpKind::ConvTranspose, conv({2147483647}, {0}, {0}, {2147483647}, "IOX"),
       "f32[1,1,2147483647] f32[1,1,2147483647]", "f32", "f32[1,1,9223372023969873925]"},
      {OpKind::StaticReshape,
       {{Attr::shape, Ints{1}}, {Attr::special_zero, false}},
       "f32[4294967296,4294967296]",
       "f32",
       "!`shape` is too large"},
      {OpKind::Concat,
       {{Attr::axis, int64_t{0}}},
       "f32[9223372036854775807] f32[1]",
       "f32",
       "!all inputs must have equal dims except along `axis` 0"},
  });
}

}  // namespace
}  // namespace partita::test
