// SPDX-License-Identifier: Apache-2.0
// The comparison behind --verify notices each kind of wrong result, and only those.
#include "src/harness/compare.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace partita::test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

Storage storage_of(Dtype dtype, const std::vector<double>& values, int64_t stride = 1) {
  const auto n = static_cast<int64_t>(values.size());
  Storage made(logical_tensor(0, dtype, Dims{n}, Dims{stride}));
  for (int64_t i = 0; i < n; ++i) store_from_double(made.data.get(), dtype, i * stride, values[static_cast<size_t>(i)]);
  return made;
}

int64_t wrong(Dtype dtype, const std::vector<double>& got, const std::vector<double>& expected) {
  return compare(storage_of(dtype, got), storage_of(dtype, expected), 1e-3).wrong;
}

TEST(compare, counts_numbers_outside_the_tolerance) {
  EXPECT_EQ(wrong(Dtype::f32, {1, 2, 3}, {1, 2, 3}), 0);
  EXPECT_EQ(wrong(Dtype::f32, {1.0005, 2, 3}, {1, 2, 3}), 0);
  EXPECT_EQ(wrong(Dtype::f32, {1.01, 2, 3.1}, {1, 2, 3}), 2);
  EXPECT_EQ(wrong(Dtype::f32, {-1, 2, 3}, {1, 2, 3}), 1);
}

TEST(compare, measures_small_numbers_by_the_size_of_all) {
  EXPECT_EQ(wrong(Dtype::f32, {1e-4, 1, 1}, {0, 1, 1}), 0);
  EXPECT_EQ(wrong(Dtype::f32, {1e-4, 1e-6, 1e-6}, {0, 1e-6, 1e-6}), 1);
  EXPECT_EQ(wrong(Dtype::f32, {1e-7, 0}, {0, 0}), 0) << "a reference of zeros is compared absolutely";
}

TEST(compare, the_smallest_numbers_of_narrow_types_may_differ_by_one_step) {
  EXPECT_EQ(wrong(Dtype::f16, {0x11p-24, 0x2p-24}, {0x10p-24, 0x2p-24}), 0);
  EXPECT_EQ(wrong(Dtype::f16, {0x12p-24, 0x2p-24}, {0x10p-24, 0x2p-24}), 1);
  EXPECT_EQ(wrong(Dtype::f16, {0x1.1p-4, 0x1p-4}, {0x1p-4, 0x1p-4}), 1);
  EXPECT_EQ(wrong(Dtype::f8_e5m2, {0x2p-16, 0}, {0x1p-16, 0}), 0);
  EXPECT_EQ(wrong(Dtype::f32, {0x11p-24, 0x2p-24}, {0x10p-24, 0x2p-24}), 1);
}

TEST(compare, an_element_that_was_not_written_is_wrong) {
  EXPECT_EQ(wrong(Dtype::f32, {kNan, 2}, {1, 2}), 1);
  EXPECT_EQ(wrong(Dtype::bf16, {kNan, 2}, {1, 2}), 1);
  EXPECT_EQ(wrong(Dtype::f32, {1, 2}, {kNan, 2}), 1);
  EXPECT_EQ(wrong(Dtype::f32, {kNan, 2}, {kNan, 2}), 0);
}

TEST(compare, infinities_must_be_the_same) {
  EXPECT_EQ(wrong(Dtype::f32, {kInf, 2}, {kInf, 2}), 0);
  EXPECT_EQ(wrong(Dtype::f32, {-kInf, 2}, {kInf, 2}), 1);
  EXPECT_EQ(wrong(Dtype::f32, {1e30, 2}, {kInf, 2}), 1);
}

TEST(compare, a_reference_without_finite_numbers_proves_nothing) {
  const Difference d = compare(storage_of(Dtype::f32, {kNan}), storage_of(Dtype::f32, {kNan}), 1);
  EXPECT_EQ(d.wrong, 1);
  EXPECT_TRUE(std::isnan(d.max_error));
}

TEST(compare, quantized_integers_may_differ_by_one_and_others_not_at_all) {
  EXPECT_EQ(wrong(Dtype::s8, {5, -128}, {6, -127}), 0);
  EXPECT_EQ(wrong(Dtype::u8, {5, 100}, {7, 100}), 1);
  EXPECT_EQ(wrong(Dtype::s32, {5, 100000}, {5, 100001}), 1);
  EXPECT_EQ(wrong(Dtype::boolean, {0, 1}, {1, 1}), 1);
}

TEST(compare, names_the_first_wrong_element_and_counts_all) {
  const Difference d = compare(storage_of(Dtype::f32, {1, 5, 6}, 3), storage_of(Dtype::f32, {1, 2, 3}), 1e-3);
  EXPECT_EQ(d.first, "element 1 is 5, expected 2 (2 of 3 differ)");
  EXPECT_DOUBLE_EQ(d.max_error, 3 / std::sqrt(14.0 / 3));
}

}  // namespace
}  // namespace partita::test
