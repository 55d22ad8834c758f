// SPDX-License-Identifier: Apache-2.0
// What verify_op accepts, and what it makes of attributes: defaults, spellings, absence.
#include "src/ir/verify_op.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/op_text.hpp"

namespace partita::test {
namespace {

Attrs accepted(OpKind kind, const AttrList& attrs, std::string_view inputs, std::string_view outputs) {
  const Result<Attrs> result = verify_op(op_of(kind, attrs, inputs, outputs));
  EXPECT_TRUE(result.ok()) << name_of(kind) << ": " << result.status().text();
  return result.ok() ? *result : Attrs();
}

const AttrList kPool = {{Attr::kernel, Ints{3, 3}},
                        {Attr::strides, Ints{2, 2}},
                        {Attr::pads_begin, Ints{0, 0}},
                        {Attr::pads_end, Ints{0, 0}},
                        {Attr::exclude_pad, true}};
const AttrList kConv = {{Attr::dilations, Ints{1, 1}},
                        {Attr::strides, Ints{2, 2}},
                        {Attr::pads_begin, Ints{0, 0}},
                        {Attr::pads_end, Ints{0, 0}}};

AttrList plus(AttrList attrs, const AttrList& more) {
  attrs.insert(attrs.end(), more.begin(), more.end());
  return attrs;
}

/// A value that fits each required attribute.
AttrValue plausible(const AttrDef& attr) {
  switch (attr.type) {
    case AttrType::boolean: return true;
    case AttrType::s64: return int64_t{1};
    case AttrType::f32: return 1.0f;
    case AttrType::string: return std::string(attr.allowed[0]);
    case AttrType::s64s: return Ints{1, 1};
    case AttrType::f32s: return Floats{1};
  }
  return {};
}

/// f32 where the port allows it, otherwise its type of the lowest number.
Dtype plausible(const OpDef& def, const PortDef& port) {
  const auto* row = std::ranges::find(def.types, port.type, &TypeDef::symbol);
  if (row == def.types.end() || row->types.has(Dtype::f32)) return Dtype::f32;
  int number = 0;
  while (!row->types.has(static_cast<Dtype>(number))) ++number;
  return static_cast<Dtype>(number);
}

TEST(verify, accepts_every_operator_whose_shapes_are_unknown) {
  for (const OpDef* def : all_ops()) {
    op o(1, def->kind);
    for (const PortDef& port : def->inputs) o.add_input(logical_tensor(o.inputs.size(), plausible(*def, port)));
    for (const PortDef& port : def->outputs)
      o.add_output(logical_tensor(100 + o.outputs.size(), plausible(*def, port)));
    if (def->kind == OpKind::TypeCast) o.outputs[0].dtype = Dtype::bf16;
    for (const AttrDef& attr : def->attrs) {
      if (attr.need == Need::required) o.set_attr(attr.key, plausible(attr));
    }
    const Result<Attrs> attrs = verify_op(o);
    EXPECT_TRUE(attrs.ok()) << def->name << ": " << attrs.status().text();
  }
}

TEST(verify, fills_defaults_and_leaves_the_rest_absent) {
  const Attrs attrs = accepted(OpKind::MaxPool, {kPool.begin(), kPool.end() - 1}, "f32[1,2,5,6]", "f32");
  EXPECT_TRUE(attrs.is(Attr::data_format, "NXC"));
  EXPECT_TRUE(attrs.is(Attr::rounding_type, "floor"));
  EXPECT_TRUE(attrs.is(Attr::auto_pad, "None"));
  EXPECT_FALSE(attrs.has(Attr::dilations));
  EXPECT_FALSE(accepted(OpKind::Quantize, {{Attr::scales, Floats{1}}}, "f32[2]", "u8").has(Attr::zps));
}

TEST(verify, makes_documented_spellings_canonical) {
  const Attrs pool =
      accepted(OpKind::AvgPool, plus(kPool, {{Attr::auto_pad, std::string("same_lower")}}), "f32", "f32");
  EXPECT_TRUE(pool.is(Attr::auto_pad, "SAME_LOWER"));
  const auto format = [](std::string text) {
    return accepted(OpKind::ConvTranspose, plus(kConv, {{Attr::weights_format, text}}), "f32 f32", "f32")
        .text(Attr::weights_format);
  };
  EXPECT_EQ(format("OIX"), "IOX");
  EXPECT_EQ(format("XIO"), "XOI");
  EXPECT_EQ(format("IOX"), "IOX");
}

TEST(verify, drops_what_only_stands_for_absent) {
  const AttrList dump = plus(kConv, {{Attr::dst_shape, Ints(12, 0)}, {Attr::output_padding, Ints(12, 0)}});
  const Attrs conv = accepted(OpKind::ConvolutionBackwardData, dump, "f32 f32 s32", "f32");
  EXPECT_FALSE(conv.has(Attr::dst_shape));
  EXPECT_FALSE(conv.has(Attr::output_padding));
  const AttrList empty = {{Attr::mode, std::string("nearest")}, {Attr::scales, Floats{}}, {Attr::sizes, Ints{4}}};
  EXPECT_FALSE(accepted(OpKind::Interpolate, empty, "f32[1,2,3]", "f32").has(Attr::scales));
}

TEST(verify, lets_the_input_win_over_its_attribute) {
  const AttrList both = plus(kPool, {{Attr::src_shape, Ints{1, 2, 3, 4}}});
  EXPECT_FALSE(accepted(OpKind::AvgPoolBackward, both, "f32[1,2,3,4] s32[4]", "f32").has(Attr::src_shape));
  EXPECT_TRUE(accepted(OpKind::AvgPoolBackward, both, "f32[1,2,3,4]", "f32").has(Attr::src_shape));
  EXPECT_FALSE(accepted(OpKind::ReduceSum, {{Attr::axes, Ints{0}}}, "f32[2] s32[1]", "f32").has(Attr::axes));
}

TEST(verify, accepts_what_is_unusual_but_valid) {
  accepted(OpKind::Add, {}, "f32[] bf16[0,3]", "f16");
  accepted(OpKind::Add, {}, "s32[2] f32[2]", "f32");
  accepted(OpKind::Dropout, {}, "f32[2] s64[] s64[] f32[]", "f32 u8");
  accepted(OpKind::Wildcard, {{Attr::axis, std::string("x")}}, "u4[2] undef boolean[]", "f64 s64");
  accepted(OpKind::Wildcard, {}, "", "");
  accepted(OpKind::End, {}, "undef", "");
  accepted(OpKind::End, {}, "s64[2]", "");
  accepted(OpKind::End, {}, "boolean[2]", "");
  accepted(OpKind::StaticTranspose, {{Attr::order, Ints{}}}, "f32[2,3,4]", "f32");
  accepted(OpKind::Quantize, {{Attr::scales, Floats{1}}}, "f32[]", "s8");
  accepted(OpKind::Dequantize, {{Attr::scales, Floats{1}}, {Attr::zps, Ints{0}}}, "f8_e5m2[2]", "f32");
  accepted(OpKind::MaxPool,
           {{Attr::strides, Ints{1, 1}},
            {Attr::pads_begin, Ints{0, 0}},
            {Attr::pads_end, Ints{0, 0}},
            {Attr::kernel, Ints{2, 2}},
            {Attr::dilations, Ints{}}},
           "f32[1,2,3,4]", "f32");
  accepted(OpKind::AvgPool, plus(kPool, {{Attr::auto_pad, std::string("VALID")}, {Attr::pads_begin, Ints{}}}),
           "f32[0,2,3,4]", "f32");
  accepted(OpKind::Reorder, {}, "f32[?,3]", "f32[2,?]");
}

}  // namespace
}  // namespace partita::test
