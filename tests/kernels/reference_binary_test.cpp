// SPDX-License-Identifier: Apache-2.0
// References of element-wise operators of several inputs, PReLU, and operators that know where an element is.
#include "src/base/philox.hpp"
#include "tests/support/run_reference.hpp"

namespace partita::test {
namespace {

using enum OpKind;

Numbers binary(OpKind kind, const Numbers& a, const Numbers& b) {
  const Dims dims{static_cast<int64_t>(a.size())};
  return run(kind, {}, {f32(dims, a), f32(dims, b)}, {f32(dims)})[0];
}

TEST(reference_binary, computes_the_definitions) {
  EXPECT_EQ(binary(Add, {1, 2}, {3, -5}), (Numbers{4, -3}));
  EXPECT_EQ(binary(Subtract, {1, 2}, {3, -5}), (Numbers{-2, 7}));
  EXPECT_EQ(binary(Multiply, {1, 2}, {3, -5}), (Numbers{3, -10}));
  EXPECT_EQ(binary(Divide, {1, 2}, {4, -8}), (Numbers{0.25, -0.25}));
  EXPECT_EQ(binary(Maximum, {1, 2}, {3, -5}), (Numbers{3, 2}));
  EXPECT_EQ(binary(Minimum, {1, 2}, {3, -5}), (Numbers{1, -5}));
  EXPECT_EQ(binary(SquaredDifference, {1, 2}, {3, -5}), (Numbers{4, 49}));
}

TEST(reference_binary, maximum_and_minimum_of_nan_are_nan) {
  for (OpKind kind : {Maximum, Minimum}) {
    EXPECT_TRUE(std::isnan(binary(kind, {kNan}, {1})[0]));
    EXPECT_TRUE(std::isnan(binary(kind, {1}, {kNan})[0]));
  }
}

TEST(reference_binary, broadcasts_from_the_right) {
  const Sample a = f32({2, 1, 3}, {1, 2, 3, 4, 5, 6}), b = f32({2, 1}, {10, 20});
  const Numbers expected{11, 12, 13, 21, 22, 23, 14, 15, 16, 24, 25, 26};
  EXPECT_EQ(run(Add, {}, {a, b}, {f32({2, 2, 3})})[0], expected);
  EXPECT_EQ(run(Add, {}, {b, scattered(a)}, {scattered(f32({2, 2, 3}))})[0], expected);
  EXPECT_EQ(run(Add, {}, {f32({}, {1}), f32({2}, {1, 2})}, {f32({2})})[0], (Numbers{2, 3}));
}

TEST(reference_binary, s32_is_exact_and_wraps_around_and_rounded_to_f32_beside_other_types) {
  const Sample a = s32({3}, {2147483647, 16777217, -2147483648.0}), b = s32({3}, {1, 2, 1});
  EXPECT_EQ(run(Add, {}, {a, b}, {s32({3})})[0], (Numbers{-2147483648.0, 16777219, -2147483647.0}));
  EXPECT_EQ(run(Subtract, {}, {a, b}, {s32({3})})[0], (Numbers{2147483646, 16777215, 2147483647}));
  EXPECT_EQ(run(Add, {}, {a, f32({3}, {0.5, 0.5, 0.5})}, {s32({3})})[0],
            (Numbers{2147483647, 16777216, -2147483648.0}));
}

/// The exact difference of the last two is more than a half.
TEST(reference_binary, of_mixed_types_is_rounded_to_f32_before_it_becomes_an_integer) {
  const Sample a = f32({2}, {16777216, 0.5}), b = s32({2}, {1, 0});
  EXPECT_EQ(run(Add, {}, {a, b}, {s32({2})})[0], (Numbers{16777216, 0}));
  EXPECT_EQ(run(Subtract, {}, {f32({1}, {0.5}), f32({1}, {-0x1p-26})}, {s32({1})})[0], (Numbers{0}));
}

TEST(reference_binary, greater_equal_compares_s32_exactly) {
  const Sample a = s32({3}, {16777217, 16777216, -1}), b = s32({3}, {16777216, 16777217, -1});
  EXPECT_EQ(run(GreaterEqual, {}, {a, b}, {sample(Dtype::boolean, {3})})[0], (Numbers{1, 0, 1}));
  EXPECT_EQ(run(GreaterEqual, {}, {f32({2}, {kNan, 1}), f32({1}, {1})}, {sample(Dtype::boolean, {2})})[0],
            (Numbers{0, 1}));
}

TEST(reference_binary, select_takes_the_first_where_the_condition_holds) {
  const Sample condition = sample(Dtype::boolean, {1, 3}, {1, 0, 1});
  EXPECT_EQ(run(Select, {}, {condition, f32({1}, {9}), f32({2, 3}, {1, 2, 3, 4, 5, 6})}, {f32({2, 3})})[0],
            (Numbers{9, 2, 9, 9, 5, 9}));
}

TEST(reference_binary, bias_lies_along_the_channels) {
  const Sample src = f32({1, 2, 2}, {1, 2, 3, 4}), bias = f32({2}, {10, 20});
  EXPECT_EQ(run(BiasAdd, {{Attr::data_format, "NCX"}}, {src, bias}, {f32({1, 2, 2})})[0], (Numbers{11, 12, 23, 24}));
  EXPECT_EQ(run(BiasAdd, {{Attr::data_format, "NXC"}}, {src, bias}, {f32({1, 2, 2})})[0], (Numbers{11, 22, 13, 24}));
}

TEST(reference_prelu, slope_lies_along_the_channels_the_last_axis_or_broadcasts) {
  const Sample src = f32({1, 2, 2}, {-1, -2, -3, 4}), slope = f32({2}, {10, 100});
  const auto with = [&](const char* format, bool per_channel, const Sample& s) {
    return run(PReLU, {{Attr::data_format, format}, {Attr::per_channel_broadcast, per_channel}}, {src, s},
               {f32({1, 2, 2})})[0];
  };
  EXPECT_EQ(with("NCX", true, slope), (Numbers{-10, -20, -300, 4}));
  EXPECT_EQ(with("NXC", true, slope), (Numbers{-10, -200, -30, 4}));
  EXPECT_EQ(with("NCX", false, slope), (Numbers{-10, -200, -30, 4}));
  EXPECT_EQ(with("NCX", true, f32({1}, {2})), (Numbers{-2, -4, -6, 4}));
  EXPECT_EQ(with("NCX", true, f32({1, 2, 1}, {10, 100})), (Numbers{-10, -20, -300, 4}));
}

TEST(reference_prelu, the_slope_gradient_sums_over_the_axes_the_slope_does_not_have) {
  const Sample src = f32({2, 2, 2}, {-1, 2, -3, 4, 5, -6, -7, -8}), dy = f32({2, 2, 2}, {1, 1, 1, 1, 2, 2, 2, 2});
  const auto with = [&](const char* format, const Sample& slope) {
    return run(PReLUBackward, {{Attr::data_format, format}}, {src, slope, dy}, {f32({2, 2, 2}), f32(slope.desc.dims)});
  };
  const std::vector<Numbers> channel_first = with("NCX", f32({2}, {10, 100}));
  EXPECT_EQ(channel_first[0], (Numbers{10, 1, 100, 1, 2, 20, 200, 200}));
  EXPECT_EQ(channel_first[1], (Numbers{-1 - 12, -3 - 14 - 16}));
  EXPECT_EQ(with("NXC", f32({2}, {10, 100}))[1], (Numbers{-1 - 3 - 14, -12 - 16}));
  EXPECT_EQ(with("NCX", f32({1, 1, 1}, {10}))[1], (Numbers{-1 - 3 - 12 - 14 - 16}));
  EXPECT_EQ(with("NCX", f32({2, 2, 2}, {1, 1, 1, 1, 1, 1, 1, 1}))[1], (Numbers{-1, 0, -3, 0, 0, -12, -14, -16}));
}

TEST(reference_gen_index, gives_the_coordinate_along_the_axis) {
  const Sample src = f32({2, 3}, {9, 9, 9, 9, 9, 9});
  EXPECT_EQ(run(GenIndex, {{Attr::axis, int64_t{0}}}, {src}, {s32({2, 3})})[0], (Numbers{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(run(GenIndex, {{Attr::axis, int64_t{-1}}}, {src}, {scattered(s32({2, 3}))})[0],
            (Numbers{0, 1, 2, 0, 1, 2}));
}

TEST(philox, matches_the_published_vectors) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

std::vector<Numbers> dropped(double seed, double offset, double probability, const Sample& out, int64_t n = 4000) {
  const Sample ones = f32({n}, Numbers(static_cast<size_t>(n), 1));
  return run(Dropout, {},
             {ones, sample(Dtype::s64, {}, {seed}), sample(Dtype::s64, {}, {offset}), f32({}, {probability})},
             {out, sample(Dtype::u8, {n})});
}

TEST(reference_dropout, keeps_the_share_it_should_and_scales_it) {
  const std::vector<Numbers> result = dropped(7, 0, 0.25, f32({4000}));
  const double kept = std::accumulate(result[1].begin(), result[1].end(), 0.0);
  EXPECT_NEAR(kept / 4000, 0.75, 0.03);
  for (size_t i = 0; i < result[0].size(); ++i) EXPECT_FLOAT_EQ(result[0][i], result[1][i] != 0 ? 1 / 0.75 : 0);
  EXPECT_EQ(dropped(7, 0, 0, f32({4000}))[0], Numbers(4000, 1));
  EXPECT_EQ(dropped(7, 0, 1, f32({4000}))[0], Numbers(4000, 0));
}

TEST(reference_dropout, depends_on_seed_and_offset_but_not_on_layout) {
  const Numbers base = dropped(7, 0, 0.5, f32({4000}))[0];
  EXPECT_EQ(dropped(7, 0, 0.5, scattered(f32({4000})))[0], base);
  EXPECT_NE(dropped(8, 0, 0.5, f32({4000}))[0], base);
  // An offset of one skips one block of four numbers.
  const Numbers later = dropped(7, 1, 0.5, f32({4000}))[0];
  EXPECT_TRUE(std::equal(base.begin() + 4, base.end(), later.begin()));
  EXPECT_EQ(base[0] != 0, unit_float(dropout_words(7, 0, 0)[0]) >= 0.5f);
}

}  // namespace
}  // namespace partita::test
