// SPDX-License-Identifier: Apache-2.0
// What the rows of the six convolution operators have in common.
#pragma once

#include "src/ops/attributes.hpp"
#include "src/ops/rules.hpp"
#include "src/ops/windows.hpp"

namespace partita {

inline constexpr AttrDef kGroups =
    number(Attr::groups, 1, "parts that channels are split into; divides both channel counts");
inline constexpr AttrDef kDilations =
    required(Attr::dilations, AttrType::s64s, "step between the taps of a window, one positive integer a spatial axis");
inline constexpr AttrDef kFilterFormat = choice(Attr::weights_format, "XIO", {"XIO", "OIX"},
                                                "axis order of the filter: I source, O result channels, X spatial");
inline constexpr AttrDef kTransposedFilterFormat =
    choice(Attr::weights_format, "XOI", {"XOI", "IOX"},
           "axis order of the filter: I source, O result channels, X spatial", {"XIO", "OIX"});
inline constexpr AttrDef kWeightsShape =
    optional(Attr::weights_shape, AttrType::s64s, "full shape of the filter gradient; the input of that name wins");

inline constexpr CheckDef kStepsSign = {"steps_sign",
                                        "`strides` and `dilations` must hold numbers from 1 to 2147483647",
                                        positive<Attr::strides, Attr::dilations>};
inline constexpr CheckDef kGroupsSign = {"groups_sign", "`groups` must be from 1 to 2147483647",
                                         positive<Attr::groups>};
inline constexpr CheckDef kOutputPaddingSign = {"output_padding_sign",
                                                "`output_padding` must hold numbers from 0 to 2147483647",
                                                not_negative<Attr::output_padding>};
inline constexpr CheckDef kConvLists = {
    "one_entry_an_axis",
    "`strides`, `dilations`, `pads_begin` and `pads_end` must have one entry a spatial axis of `src`",
    one_entry_an_axis};
inline constexpr CheckDef kConvListsOfDiffDst = {
    "one_entry_an_axis",
    "`strides`, `dilations`, `pads_begin` and `pads_end` must have one entry a spatial axis of `diff_dst`",
    one_entry_an_axis};
inline constexpr CheckDef kTransposedLists = {
    "one_entry_an_axis",
    "`strides`, `dilations`, `output_padding`, `pads_begin` and `pads_end` must have one entry a spatial axis of `src`",
    one_entry_an_axis};
inline constexpr CheckDef kDataLists = {"one_entry_an_axis",
                                        "`strides`, `dilations`, `output_padding`, `pads_begin` and `pads_end` must "
                                        "have one entry a spatial axis of `diff_dst`",
                                        one_entry_an_axis};
inline constexpr CheckDef kWeightsShapeEntries = {"weights_shape_entries",
                                                  "`weights_shape` must have one entry, not negative, an axis of `src`",
                                                  shape_entries_fit<Attr::weights_shape>};
inline constexpr CheckDef kWeightsShapeGiven = {
    "weights_shape_given",
    "`weights_shape` must be given as attribute or input, or `diff_weights` must have a known shape",
    shape_is_given<Attr::weights_shape, 3>};

}  // namespace partita
