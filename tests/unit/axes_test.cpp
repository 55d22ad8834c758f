// SPDX-License-Identifier: Apache-2.0
// Which axes are channels and space, and which windows are single cells.
#include "src/base/axes.hpp"

#include <gtest/gtest.h>

namespace partita {
namespace {

using Ints = std::vector<int64_t>;

Attrs with(std::initializer_list<std::pair<Attr, AttrValue>> entries) {
  Attrs attrs;
  for (const auto& [attr, value] : entries) attrs.set(attr, value);
  return attrs;
}

TEST(axes, channels_are_last_unless_data_format_names_them_second) {
  const Attrs first = with({{Attr::data_format, std::string("NCX")}}),
              last = with({{Attr::data_format, std::string("NXC")}});
  EXPECT_EQ(channel_axis(first, 4), 1);
  EXPECT_EQ(first_spatial_axis(first), 2);
  for (const Attrs& attrs : {last, Attrs()}) {
    EXPECT_EQ(channel_axis(attrs, 4), 3);
    EXPECT_EQ(first_spatial_axis(attrs), 1);
  }
  for (const Attrs& attrs : {first, last, Attrs()}) EXPECT_EQ(channel_axis(attrs, 1), 0) << "the only axis there is";
}

TEST(axes, pointwise_windows_have_one_cell_each_and_stand_for_one_each) {
  const Attrs plain =
      with({{Attr::weights_format, std::string("OIX")}, {Attr::strides, Ints{1, 1}}, {Attr::pads_begin, Ints{0, 0}}});
  EXPECT_TRUE(is_pointwise(plain, {4, 3, 1, 1}));
  EXPECT_FALSE(is_pointwise(plain, {1, 1, 3, 4})) << "the spatial axes are the last ones";
  const auto changed = [&](Attr attr, AttrValue value) {
    Attrs attrs = plain;
    attrs.set(attr, std::move(value));
    return attrs;
  };
  EXPECT_TRUE(is_pointwise(changed(Attr::weights_format, std::string("XIO")), {1, 1, 3, 4}));
  EXPECT_TRUE(is_pointwise(changed(Attr::groups, int64_t{2}), {4, 3, 1, 1}));
  EXPECT_FALSE(is_pointwise(changed(Attr::strides, Ints{1, 2}), {4, 3, 1, 1}));
  EXPECT_FALSE(is_pointwise(changed(Attr::pads_end, Ints{0, 1}), {4, 3, 1, 1}));
  EXPECT_FALSE(is_pointwise(changed(Attr::output_padding, Ints{0, 1}), {4, 3, 1, 1}));
  Attrs automatic = changed(Attr::pads_begin, Ints{1, 1});
  EXPECT_FALSE(is_pointwise(automatic, {4, 3, 1, 1}));
  automatic.set(Attr::auto_pad, std::string("SAME_LOWER"));
  EXPECT_TRUE(is_pointwise(automatic, {4, 3, 1, 1})) << "lists are not looked at";
}

}  // namespace
}  // namespace partita
