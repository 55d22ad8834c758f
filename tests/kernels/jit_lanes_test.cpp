// SPDX-License-Identifier: Apache-2.0
// Where comparisons go: beside the selects that read them as their condition, once for each of a few.
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/jit/code/lanes.hpp"

namespace partita::jit {
namespace {

Lane store_of(uint16_t value) { return {.op = LaneOp::store, .a = value}; }

/// select(x > 0, x, 0) and select(x > 0, 0, x), both stored; `reads_mask`: the mask as well.
Lanes two_selects(bool reads_mask) {
  Lanes lanes;
  LaneBuilder b(lanes);
  const auto x = b.emit({.op = LaneOp::load}), zero = b.constant(0), positive = b.op(LaneOp::gt, x, zero);
  b.emit(store_of(b.select(positive, x, zero)));
  if (reads_mask) b.emit(store_of(positive));
  b.emit(store_of(b.select(positive, zero, x)));
  return lanes;
}

size_t comparisons(const Lanes& lanes) {
  return static_cast<size_t>(std::ranges::count_if(lanes.code, [](const Lane& lane) { return compares(lane.op); }));
}

TEST(lanes, comparisons_stand_before_each_of_a_few_selects) {
  const Lanes lanes = conditions_beside_selects(two_selects(false), 2);
  EXPECT_EQ(comparisons(lanes), 2u);
  for (size_t i = 0; i < lanes.code.size(); ++i) {
    if (lanes.code[i].op != LaneOp::select) continue;
    ASSERT_GT(i, 0u);
    EXPECT_TRUE(compares(lanes.code[i - 1].op));
    EXPECT_EQ(lanes.code[i].a, i - 1);
    EXPECT_EQ(lanes.code[lanes.code[i - 1].a].op, LaneOp::load);
  }
}

TEST(lanes, comparisons_of_many_selects_or_that_others_read_are_made_once) {
  EXPECT_EQ(comparisons(conditions_beside_selects(two_selects(false), 1)), 1u);
  EXPECT_EQ(comparisons(conditions_beside_selects(two_selects(true), 3)), 1u);
}

TEST(lanes, what_nobody_stores_is_left_out) {
  Lanes lanes;
  LaneBuilder b(lanes);
  const auto x = b.emit({.op = LaneOp::load});
  b.select(b.op(LaneOp::gt, x, b.constant(0)), x, b.constant(1));
  b.emit(store_of(x));
  EXPECT_EQ(conditions_beside_selects(lanes, 3).code.size(), 2u);
}

}  // namespace
}  // namespace partita::jit
