// SPDX-License-Identifier: Apache-2.0
// ConvTranspose and its two gradients: a convolution the other way round.
#include "src/ops/convolution_rows.hpp"
#include "src/ops/convolution_shapes.hpp"
#include "src/ops/families.hpp"

namespace partita {

constexpr OpDef kConvTranspose = {
    .kind = OpKind::ConvTranspose,
    .name = "ConvTranspose",
    .c_name = "conv_transpose",
    .summary = "Spreads each source cell over a window of the result, weighted by the filters.",
    .inputs = {{"src", "T", "values"},
               {"weights", "T", "filters, laid out as weights_format says"},
               {"bias", "T", "one number a result channel", Arity::optional}},
    .outputs = {{"dst", "T", "sums"}},
    .attrs = {kStrides, kPadsBegin, kPadsEnd, kDilations, kAutoPad, kOutputPadding, kGroups, kDataFormat,
              kTransposedFilterFormat},
    .types = {{"T", kFloats}},
    .checks = {kSrcRank, kPadsSign, kStepsSign, kGroupsSign, kOutputPaddingSign, kTransposedLists},
    .infer = wide_from_narrow,
    .step = StepKind::convolution_backward_data,
};

constexpr OpDef kConvTransposeBackwardData = {
    .kind = OpKind::ConvTransposeBackwardData,
    .name = "ConvTransposeBackwardData",
    .c_name = "conv_transpose_backward_data",
    .summary = "Gradient of a transposed convolution for its source.",
    .inputs = {{"diff_dst", "T", "gradient of the forward result"}, {"weights", "T", "the forward filters"}},
    .outputs = {{"diff_src", "T", "gradient of the forward source"}},
    .attrs = {kStrides, kPadsBegin, kPadsEnd, kDilations, kAutoPad, kGroups, kDataFormat, kTransposedFilterFormat},
    .types = {{"T", kFloats}},
    .checks = {kDiffDstRank, kPadsSign, kStepsSign, kGroupsSign, kConvListsOfDiffDst},
    .infer = narrow_from_wide,
    .step = StepKind::convolution,
};

constexpr OpDef kConvTransposeBackwardWeights = {
    .kind = OpKind::ConvTransposeBackwardWeights,
    .name = "ConvTransposeBackwardWeights",
    .c_name = "conv_transpose_backward_weights",
    .summary = "Gradient of a transposed convolution for its filters.",
    .inputs = {{"src", "T1", "source of the forward operator"},
               {"diff_dst", "T1", "gradient of its result"},
               {"weights_shape", "T2", "shape of diff_weights; wins over the attribute", Arity::optional,
                Attr::weights_shape}},
    .outputs = {{"diff_weights", "T1", "gradient of the filters"}},
    .attrs = {kStrides, kPadsBegin, kPadsEnd, kDilations, kAutoPad, kGroups, kWeightsShape, kDataFormat,
              kTransposedFilterFormat},
    .types = {{"T1", kFloats}, {"T2", kS32}},
    .checks = {kSrcRank, kPadsSign, kStepsSign, kGroupsSign, kConvLists, kWeightsShapeEntries, kWeightsShapeGiven},
    .infer = transposed_filter_as_wanted,
    .step = StepKind::convolution_backward_weights,
};

}  // namespace partita
