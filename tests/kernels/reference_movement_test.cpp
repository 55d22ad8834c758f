// SPDX-License-Identifier: Apache-2.0
// References of operators that move or quantize elements.
#include "tests/support/run_reference.hpp"

namespace partita::test {
namespace {

using enum OpKind;

const Sample kSrc = f32({2, 3}, {1, 2, 3, 4, 5, 6});

TEST(reference_movement, concat_lines_up_along_the_axis) {
  EXPECT_EQ(run(Concat, {{Attr::axis, int64_t{0}}}, {kSrc, f32({1, 3}, {7, 8, 9})}, {f32({3, 3})})[0],
            (Numbers{1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(run(Concat, {{Attr::axis, int64_t{-1}}}, {scattered(kSrc), f32({2, 1}, {7, 8}), f32({2, 0})},
                {scattered(f32({2, 4}))})[0],
            (Numbers{1, 2, 3, 7, 4, 5, 6, 8}));
}

TEST(reference_movement, transpose_permutes_axes) {
  const Numbers expected{1, 4, 2, 5, 3, 6};
  for (const Int64s& order : {Int64s{1, 0}, Int64s{-1, 0}, Int64s{}}) {
    EXPECT_EQ(run(StaticTranspose, {{Attr::order, order}}, {kSrc}, {f32({3, 2})})[0], expected);
  }
  EXPECT_EQ(run(StaticTranspose, {{Attr::order, Int64s{0, 1}}}, {kSrc}, {f32({2, 3})})[0], kSrc.values);
  const Sample cube = f32({1, 2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(run(StaticTranspose, {{Attr::order, Int64s{2, 0, 1}}}, {scattered(cube)}, {f32({3, 1, 2})})[0], expected);
}

TEST(reference_movement, reshape_keeps_the_row_major_order) {
  Numbers values(7 * 6 * 50);
  std::iota(values.begin(), values.end(), 0);
  const Sample src = f32({7, 6, 50}, values);
  EXPECT_EQ(run(StaticReshape, {}, {src}, {f32({42, 50})})[0], values);
  EXPECT_EQ(run(StaticReshape, {}, {scattered(src)}, {scattered(f32({21, 100}))})[0], values);
  EXPECT_EQ(run(StaticReshape, {}, {f32({1}, {5})}, {f32({})})[0], (Numbers{5}));
}

TEST(reference_movement, equal_types_are_copied_bit_by_bit) {
  // A signalling NaN with a payload survives a reorder.
  const uint32_t source = 0x7fa12345;
  uint32_t target = 0;
  Problem problem;
  problem.in = problem.out = {{Dtype::f32, {1}, {1}, 0}};
  const void* in[] = {&source};
  void* out[] = {&target};
  ASSERT_TRUE(reference_of(Reorder)(problem, {in, out}).ok());
  EXPECT_EQ(target, source);
}

TEST(reference_quantize, rounds_to_even_shifts_and_saturates) {
  const AttrList attrs{{Attr::qtype, "per_tensor"}, {Attr::scales, std::vector<float>{0.5f}}, {Attr::zps, Int64s{10}}};
  const Sample src = f32({5}, {0.25, 0.75, -1, 1000, -1000});
  EXPECT_EQ(run(Quantize, attrs, {src}, {sample(Dtype::u8, {5})})[0], (Numbers{10, 12, 8, 255, 0}));
  EXPECT_EQ(run(Quantize, attrs, {src}, {sample(Dtype::s8, {5})})[0], (Numbers{10, 12, 8, 127, -128}));
  EXPECT_EQ(run(Dequantize, attrs, {sample(Dtype::u8, {3}, {10, 12, 0})}, {f32({3})})[0], (Numbers{0, 1, -5}));
}

TEST(reference_quantize, f8_is_scaled_and_rounded_to_the_type) {
  const AttrList attrs{{Attr::qtype, "per_tensor"}, {Attr::scales, std::vector<float>{2}}};
  EXPECT_EQ(run(Quantize, attrs, {f32({3}, {1, 4.25, 2000})}, {sample(Dtype::f8_e4m3, {3})})[0],
            (Numbers{0.5, 2, 448}));
  EXPECT_EQ(run(Dequantize, attrs, {sample(Dtype::f8_e5m2, {2}, {0.5, -3})}, {f32({2})})[0], (Numbers{1, -6}));
}

TEST(reference_quantize, per_channel_lists_lie_along_the_axis) {
  const AttrList attrs{{Attr::qtype, "per_channel"},
                       {Attr::axis, int64_t{0}},
                       {Attr::scales, std::vector<float>{1, 10}},
                       {Attr::zps, Int64s{0, 1}}};
  EXPECT_EQ(run(Dequantize, attrs, {sample(Dtype::s8, {2, 3}, {1, 2, 3, 4, 5, 6})}, {f32({2, 3})})[0],
            (Numbers{1, 2, 3, 30, 40, 50}));
  const AttrList last{
      {Attr::qtype, "per_channel"}, {Attr::axis, int64_t{-1}}, {Attr::scales, std::vector<float>{1, 10, 100}}};
  EXPECT_EQ(run(Dequantize, last, {sample(Dtype::s8, {2, 3}, {1, 2, 3, 4, 5, 6})}, {f32({2, 3})})[0],
            (Numbers{1, 20, 300, 4, 50, 600}));
}

TEST(reference_quantize, dynamic_parameters_come_as_tensors) {
  const AttrList tensor{{Attr::qtype, "per_tensor"}};
  EXPECT_EQ(
      run(DynamicQuantize, tensor, {f32({2}, {1, -2}), f32({1}, {0.5}), s32({1}, {3})}, {sample(Dtype::s8, {2})})[0],
      (Numbers{5, -1}));
  EXPECT_EQ(run(DynamicQuantize, tensor, {f32({2}, {1, -2}), f32({1}, {0.5})}, {sample(Dtype::s8, {2})})[0],
            (Numbers{2, -4}));
  const AttrList channel{{Attr::qtype, "per_channel"}, {Attr::axis, int64_t{1}}};
  const Sample scales = f32({3}, {1, 10, 100});
  EXPECT_EQ(
      run(DynamicDequantize, channel,
          {sample(Dtype::u8, {2, 3}, {1, 2, 3, 4, 5, 6}), scales, sample(Dtype::u8, {3}, {0, 1, 2})}, {f32({2, 3})})[0],
      (Numbers{1, 10, 100, 4, 40, 400}));
  EXPECT_EQ(run(DynamicDequantize, channel,
                {sample(Dtype::u8, {2, 3}, {1, 2, 3, 4, 5, 6}), scales, sample(Dtype::u8, {1}, {1})}, {f32({2, 3})})[0],
            (Numbers{0, 10, 200, 3, 40, 500}));
}

TEST(reference_quantize, a_mask_names_the_axes_of_parameters) {
  const Sample src = sample(Dtype::u8, {2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Numbers expected{1, 2, 30, 40, 500, 600, 7000, 8000};
  const AttrList heads{{Attr::qtype, "per_tensor"}, {Attr::mask, int64_t{3}}};
  EXPECT_EQ(run(DynamicDequantize, heads, {src, f32({2, 2}, {1, 10, 100, 1000})}, {f32({2, 2, 2})})[0], expected);
  EXPECT_EQ(run(DynamicDequantize, heads, {src, f32({2, 2, 1}, {1, 10, 100, 1000})}, {f32({2, 2, 2})})[0], expected);
  EXPECT_EQ(run(DynamicDequantize, heads,
                {src, f32({2, 2}, {1, 10, 100, 1000}), sample(Dtype::u8, {2, 2}, {1, 3, 5, 7})}, {f32({2, 2, 2})})[0],
            (Numbers{0, 1, 0, 10, 0, 100, 0, 1000}));
  const AttrList outer{{Attr::qtype, "per_tensor"}, {Attr::mask, int64_t{5}}};
  EXPECT_EQ(run(DynamicDequantize, outer, {src, f32({2, 2}, {1, 10, 100, 1000})}, {f32({2, 2, 2})})[0],
            (Numbers{1, 20, 3, 40, 500, 6000, 700, 8000}));
  const AttrList none{{Attr::qtype, "per_tensor"}, {Attr::mask, int64_t{0}}};
  EXPECT_EQ(run(DynamicDequantize, none, {src, f32({}, {2})}, {f32({2, 2, 2})})[0],
            (Numbers{2, 4, 6, 8, 10, 12, 14, 16}));
  const AttrList groups{{Attr::qtype, "per_tensor"}, {Attr::mask, int64_t{6}}, {Attr::group_shape, Int64s{2, 1, 2}}};
  EXPECT_EQ(run(DynamicDequantize, groups, {src, f32({1, 2, 1}, {1, 10})}, {f32({2, 2, 2})})[0],
            (Numbers{1, 2, 30, 40, 5, 6, 70, 80}));
  EXPECT_EQ(run(DynamicDequantize, groups, {src, f32({2, 1}, {1, 10})}, {f32({2, 2, 2})})[0],
            (Numbers{1, 2, 30, 40, 5, 6, 70, 80}));
}

TEST(reference_quantize, groups_share_their_parameters) {
  const AttrList attrs{{Attr::qtype, "per_group"}, {Attr::axis, int64_t{0}}, {Attr::group_shape, Int64s{2, 1}}};
  const Sample src = sample(Dtype::s4, {4, 2}, {1, 2, 3, 4, 5, 6, 7, -8});
  const Sample scales = sample(Dtype::f16, {2, 2}, {1, 2, 10, 20}), zps = sample(Dtype::s4, {2, 2}, {0, 1, 0, -1});
  const Numbers expected{1, 2, 3, 6, 50, 140, 70, -140};
  EXPECT_EQ(run(DynamicDequantize, attrs, {src, scales, zps}, {sample(Dtype::f16, {4, 2})})[0], expected);
  EXPECT_EQ(run(DynamicDequantize, attrs, {src, scales}, {sample(Dtype::f16, {4, 2})})[0],
            (Numbers{1, 4, 3, 8, 50, 120, 70, -160}));
  Sample columns = src;  // the first axis innermost in memory, as compressed attention keys are stored
  columns.desc.strides = {1, 4};
  EXPECT_EQ(run(DynamicDequantize, attrs, {columns, scales, zps}, {sample(Dtype::f16, {4, 2})})[0], expected);
}

}  // namespace
}  // namespace partita::test
