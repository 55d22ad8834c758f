// SPDX-License-Identifier: Apache-2.0
// Arithmetic on dims and strides, and logical tensors built on it.
#include "src/base/shape.hpp"

#include <gtest/gtest.h>

#include <set>

#include "partita/logical_tensor.hpp"
#include "src/base/addressable.hpp"
#include "src/base/shared_place.hpp"
#include "tests/support/random.hpp"

namespace partita {
namespace {

TEST(dims, hold_twelve_numbers_and_remember_that_more_were_given) {
  const std::vector<int64_t> twelve(12, 7), thirteen(13, 7);
  EXPECT_FALSE(Dims(twelve).overflowed());
  EXPECT_EQ(Dims(twelve), Dims(12, 7));
  const Dims from_list = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}, repeated(13, 7), from_span(thirteen);
  Dims pushed(12, 7), inserted(12, 7);
  pushed.push_back(7);
  inserted.insert(0, 8);
  for (const Dims& dims : {from_list, repeated, from_span, pushed, inserted}) {
    EXPECT_EQ(dims.size(), 12);
    EXPECT_TRUE(dims.overflowed());
    EXPECT_NE(dims, Dims(std::span(dims.begin(), dims.end()))) << "what was cut off is not what was given";
  }
  EXPECT_EQ(from_list.back(), 12);
  EXPECT_EQ(pushed, from_span);
  EXPECT_EQ(Dims(std::numeric_limits<int>::max(), 7), repeated);
  EXPECT_EQ(Dims(-1, 7), Dims());
  static_assert(Dims(13, 0).overflowed() && !Dims(12, 0).overflowed());
}

TEST(dims, are_put_in_and_taken_out_at_any_place) {
  Dims dims = {1, 3};
  dims.insert(1, 2);
  dims.insert(0, 0);
  EXPECT_EQ(dims, (Dims{0, 1, 2, 3}));
  dims.erase(2);
  EXPECT_EQ(dims, (Dims{0, 1, 3}));
}

TEST(shape, axes_are_ordered_by_their_strides) {
  EXPECT_EQ(axes_in_memory_order({}), Dims());
  EXPECT_EQ(axes_in_memory_order({12, 4, 1}), (Dims{0, 1, 2}));
  EXPECT_EQ(axes_in_memory_order({1, 40, 8}), (Dims{1, 2, 0}));
  EXPECT_EQ(axes_in_memory_order({0, 3, 3, 0}), (Dims{1, 2, 0, 3})) << "equal ones stay as they are";
}

TEST(shape, counting_elements_notices_overflow) {
  EXPECT_EQ(checked_elements({}), 1);
  EXPECT_EQ(checked_elements({2, 3}), 6);
  EXPECT_EQ(checked_elements({int64_t{1} << 32, int64_t{1} << 31}), std::nullopt);
  EXPECT_EQ(checked_elements({int64_t{1} << 32, (int64_t{1} << 31) - 1}),
            (int64_t{1} << 32) * ((int64_t{1} << 31) - 1));
  EXPECT_EQ(checked_elements({int64_t{1} << 62, 4, 0}), 0);
  EXPECT_EQ(checked_elements({2, -1}), std::nullopt);
  EXPECT_EQ(checked_elements({0, kUnknownDim}), std::nullopt);
}

TEST(shape, what_can_be_addressed_ends_at_47_bits) {
  const int64_t most = (int64_t{1} << 47) - 1, huge = int64_t{1} << 62;
  EXPECT_TRUE(addressable({}, {}));
  EXPECT_TRUE(addressable({most}, {1}));
  EXPECT_FALSE(addressable({most + 1}, {1}));
  EXPECT_TRUE(addressable({2, 3}, {0, 0}));
  EXPECT_TRUE(addressable({2}, {most}));
  EXPECT_FALSE(addressable({3}, {most}));
  EXPECT_FALSE(addressable({2, 2}, {most, 1}));
  EXPECT_TRUE(addressable({1, 2}, {huge, 1}));
  EXPECT_FALSE(addressable({2}, {-1}));
  EXPECT_FALSE(addressable({-2}, {1}));
  // Other products of the dims count, too.
  EXPECT_TRUE(addressable({0, most}, {1, 1}));
  EXPECT_FALSE(addressable({0, huge, 4}, {1, 1, 1}));
  EXPECT_FALSE(addressable({huge, huge, huge}, {huge, huge, huge}));
  EXPECT_FALSE(
      addressable(Dims(12, std::numeric_limits<int64_t>::max()), Dims(12, std::numeric_limits<int64_t>::max())));
}

TEST(shape, broadcasting_is_that_of_numpy) {
  struct Case {
    Dims a, b;
    std::optional<Dims> out;
  };
  const Case cases[] = {
      {{2, 3}, {2, 3}, Dims{2, 3}},
      {{2, 3}, {3}, Dims{2, 3}},
      {{2, 1}, {1, 3}, Dims{2, 3}},
      {{}, {4}, Dims{4}},
      {{}, {}, Dims{}},
      {{2}, {3}, std::nullopt},
      {{0}, {1}, Dims{0}},
      {{0}, {2}, std::nullopt},
      {{kUnknownDim, 3}, {2, 1}, Dims{kUnknownDim, 3}},
      {{5, 1, 2}, {4, 1}, Dims{5, 4, 2}},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(broadcast(c.a, c.b), c.out);
    EXPECT_EQ(broadcast(c.b, c.a), c.out);
  }
}

TEST(shape, strides_are_dense_when_axes_of_one_element_are_left_out) {
  EXPECT_EQ(dense_strides({2, 3, 4}), (Dims{12, 4, 1}));
  EXPECT_EQ(dense_strides({2, 0, 4}), (Dims{4, 4, 1}));
  EXPECT_EQ(dense_strides({}), Dims{});
  EXPECT_TRUE(is_dense({2, 3}, {3, 1}));
  EXPECT_TRUE(is_dense({2, 1, 3}, {3, 77, 1}));
  EXPECT_FALSE(is_dense({2, 3}, {1, 2}));
  EXPECT_FALSE(is_dense({2, 3}, {4, 1}));
  EXPECT_TRUE(is_dense({0, 3}, {9, 9}));
  EXPECT_FALSE(is_dense({2, 3}, {1}));
}

TEST(shape, the_span_reaches_to_the_last_element) {
  EXPECT_EQ(span_of({2, 3}, {3, 1}), 6);
  EXPECT_EQ(span_of({2, 3}, {10, 1}), 13);
  EXPECT_EQ(span_of({}, {}), 1);
  EXPECT_EQ(span_of({2, 0}, {3, 1}), 0);
}

TEST(shape, axes_and_permutations) {
  EXPECT_EQ(normal_axis(-1, 3), 2);
  EXPECT_EQ(normal_axis(2, 3), 2);
  EXPECT_EQ(normal_axis(3, 3), std::nullopt);
  EXPECT_EQ(normal_axis(-4, 3), std::nullopt);
  EXPECT_EQ(normal_axis(0, 0), std::nullopt);
  EXPECT_EQ(permuted({5, 6, 7}, {2, 0, 1}), (Dims{7, 5, 6}));
  EXPECT_TRUE(all_known({1, 2}) && !all_known({1, kUnknownDim}));
}

TEST(logical_tensor, constructors_fill_what_follows_from_their_arguments) {
  const logical_tensor unknown(3, Dtype::f32);
  EXPECT_FALSE(unknown.rank_known);
  EXPECT_EQ(unknown.text(), "f32[?]");
  const logical_tensor dense(3, Dtype::f32, {2, 3});
  EXPECT_EQ(dense.strides, (Dims{3, 1}));
  EXPECT_TRUE(dense.shape_known() && dense.strides_known());
  const logical_tensor partly(3, Dtype::bf16, {2, kUnknownDim});
  EXPECT_EQ(partly.strides, (Dims{kUnknownDim, kUnknownDim}));
  EXPECT_FALSE(partly.shape_known() || partly.strides_known());
  EXPECT_EQ(partly.text(), "bf16[2,?]");
  const logical_tensor any(3, Dtype::f32, {2, 3}, Layout::any);
  EXPECT_TRUE(any.shape_known() && !any.strides_known());
  const logical_tensor scalar(3, Dtype::s32, Dims{});
  EXPECT_TRUE(scalar.strides_known());
  EXPECT_EQ(scalar.elements(), 1);
  EXPECT_EQ(scalar.text(), "s32[]");
}

TEST(logical_tensor, the_size_covers_every_element) {
  EXPECT_EQ(logical_tensor(1, Dtype::f32, Dims{}).size_bytes(), 4u);
  EXPECT_EQ(logical_tensor(1, Dtype::f32, {2, 3}).size_bytes(), 24u);
  EXPECT_EQ(logical_tensor(1, Dtype::f32, {2, 3}, Layout::any).size_bytes(), 24u);
  EXPECT_EQ(logical_tensor(1, Dtype::f32, {2, 0}).size_bytes(), 0u);
  EXPECT_EQ(logical_tensor(1, Dtype::f32, {2, 3}, {10, 1}).size_bytes(), 80u);  // the largest dim times stride
  EXPECT_EQ(logical_tensor(1, Dtype::f32, {1, 3}, {99, 1}).size_bytes(), 12u);  // a dim of one has no distance
  EXPECT_EQ(logical_tensor(1, Dtype::f32, {4, 4}, {1, 1}).size_bytes(), 28u);   // overlapping rows: the last element
  EXPECT_EQ(logical_tensor(1, Dtype::s4, {3}).size_bytes(), 2u);
  EXPECT_EQ(logical_tensor(1, Dtype::u4, {5, 3}).size_bytes(), 8u);
  const int64_t big = int64_t{1} << 40;
  EXPECT_EQ(logical_tensor(1, Dtype::f32, {big, big}).size_bytes(), std::numeric_limits<size_t>::max());
}

TEST(shape, elements_that_share_a_place_are_found_and_no_others) {
  const auto shares = [](const Dims& dims, const Dims& strides) { return shared_place(dims, strides).has_value(); };
  EXPECT_FALSE(shares({}, {}));
  EXPECT_FALSE(shares({2, 3}, {3, 1}));
  EXPECT_FALSE(shares({2, 3}, {1, 2}));
  EXPECT_FALSE(shares({2, 3}, {3, 2})) << "axes may lie between each other";
  EXPECT_FALSE(shares({1, 3}, {0, 1})) << "there is one place along the axis";
  EXPECT_FALSE(shares({0, 3}, {0, 0}));
  EXPECT_TRUE(shares({2, 3}, {0, 1}));
  EXPECT_TRUE(shares({2, 3}, {2, 1}));
  EXPECT_TRUE(shares({4, 4}, {1, 1}));
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_TRUE(shares({most, most, most}, {most, most, most}));
  EXPECT_FALSE(shares({2, 2}, {most, 1}));
}

/// Every place, looked at.
bool shares_by_enumeration(const Dims& dims, const Dims& strides) {
  std::set<int64_t> places;
  const int64_t n = elements(dims);
  for (int64_t i = 0; i < n; ++i) {
    const Dims at = coordinates(i, dims);
    int64_t place = 0;
    for (int d = 0; d < dims.size(); ++d) place += at[d] * strides[d];
    places.insert(place);
  }
  return static_cast<int64_t>(places.size()) < n;
}

TEST(shape, shared_places_are_those_of_enumeration) {
  test::Random random(7);
  SCOPED_TRACE(testing::Message() << "seed " << random.seed());
  const auto number = [&](int64_t below) { return random.whole(0, below - 1); };
  int found = 0;
  for (int round = 0; round < 3000; ++round) {
    Dims dims, strides;
    for (int64_t d = number(4); d >= 0; --d) {
      dims.push_back(1 + number(4));
      strides.push_back(number(24));
    }
    const auto shared = shared_place(dims, strides);
    ASSERT_EQ(shared.has_value(), shares_by_enumeration(dims, strides));
    if (!shared) continue;
    ++found;
    EXPECT_NE(shared->first, shared->second);
    int64_t difference = 0;
    for (int d = 0; d < dims.size(); ++d) {
      for (int64_t at : {shared->first[d], shared->second[d]}) EXPECT_TRUE(at >= 0 && at < dims[d]);
      difference += (shared->first[d] - shared->second[d]) * strides[d];
    }
    EXPECT_EQ(difference, 0);
  }
  EXPECT_GT(found, 500);
}

TEST(logical_tensor, equality_ignores_fields_without_meaning) {
  logical_tensor a(1, Dtype::f32, {2, 3}), b = a;
  EXPECT_EQ(a, b);
  b.layout_id = 9;
  EXPECT_EQ(a, b);
  b.strides = {1, 2};
  EXPECT_FALSE(a == b);
  a.layout = b.layout = Layout::any;
  EXPECT_EQ(a, b);
  a.layout = b.layout = Layout::opaque;
  EXPECT_FALSE(a == b);
  logical_tensor c(1, Dtype::f32), d(1, Dtype::f32);
  d.dims = {7};
  EXPECT_EQ(c, d);
  d.property = Property::constant;
  EXPECT_FALSE(c == d);
}

}  // namespace
}  // namespace partita
