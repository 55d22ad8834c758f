// SPDX-License-Identifier: Apache-2.0
// Names that oneDNN Graph had once lead to the names of today; only what an operator has is suggested.
#include "src/ir/unknown_names.hpp"

#include <gtest/gtest.h>

namespace partita::test {
namespace {

std::string refusal(OpKind kind, std::string_view name) { return no_attribute(op_def(kind), name); }

TEST(unknown_names, attributes_that_were_renamed_are_told_by_their_name_of_today) {
  EXPECT_EQ(refusal(OpKind::Convolution, "filter_format"),
            "Convolution has no attribute `filter_format`, it has strides, pads_begin, pads_end, dilations, auto_pad, "
            "groups, data_format, weights_format, did you mean `weights_format`?");
  EXPECT_TRUE(refusal(OpKind::ConvolutionBackwardWeights, "filter_shape").ends_with("did you mean `weights_shape`?"));
  EXPECT_TRUE(refusal(OpKind::ConvolutionBackwardData, "output_shape").ends_with("did you mean `dst_shape`?"));
  EXPECT_TRUE(refusal(OpKind::AvgPoolBackward, "input_shape").ends_with("did you mean `src_shape`?"));
}

TEST(unknown_names, only_attributes_of_the_operator_are_suggested) {
  EXPECT_EQ(refusal(OpKind::MatMul, "filter_format"),
            "MatMul has no attribute `filter_format`, it has transpose_a, transpose_b, accumulation_mode");
  EXPECT_EQ(refusal(OpKind::ReLU, "input_shape"), "ReLU has no attribute `input_shape`, it has none");
  for (const OpDef* def : all_ops())
    for (std::string_view name : {"filter_format", "output_shape", "weights_formats", "axs", "stride"}) {
      const std::string text = no_attribute(*def, name);
      const size_t at = text.find("did you mean `");
      if (at == text.npos) continue;
      const std::string meant = text.substr(at + 14, text.size() - at - 16);
      EXPECT_TRUE(attr_named(meant) && find_attr(*def, *attr_named(meant))) << text;
    }
}

TEST(unknown_names, kinds_that_were_renamed_are_told_by_their_name_of_today) {
  EXPECT_EQ(similar_kind("EluBackprop"), ", did you mean `EluBackward`?");
  EXPECT_EQ(similar_kind("ConvolutionBackpropFilters"), ", did you mean `ConvolutionBackwardWeights`?");
  EXPECT_EQ(similar_kind("ConvTransposeBackwardFilters"), ", did you mean `ConvTransposeBackwardWeights`?");
  EXPECT_EQ(similar_kind("HardTanh"), ", did you mean `Clamp`?");
  EXPECT_EQ(similar_kind("HardTanhBackprop"), ", did you mean `ClampBackward`?");
  EXPECT_EQ(similar_kind("Softmaxx"), ", did you mean `SoftMax`?");
  EXPECT_EQ(similar_kind("Quicksort12345"), "");
}

}  // namespace
}  // namespace partita::test
