// SPDX-License-Identifier: Apache-2.0
// Convolution and its two gradients.
#include "src/ops/convolution_rows.hpp"
#include "src/ops/convolution_shapes.hpp"
#include "src/ops/families.hpp"

namespace partita {

constexpr OpDef kConvolution = {
    .kind = OpKind::Convolution,
    .name = "Convolution",
    .c_name = "convolution",
    .summary = "Weighted sums over windows of the source, one for each filter.",
    .inputs = {{"src", "T", "values"},
               {"weights", "T", "filters, laid out as weights_format says"},
               {"bias", "T", "one number a result channel", Arity::optional}},
    .outputs = {{"dst", "T", "sums"}},
    .attrs = {kStrides, kPadsBegin, kPadsEnd, kDilations, kAutoPad, kGroups, kDataFormat, kFilterFormat},
    .types = {{"T", kFloats}},
    .checks = {kSrcRank, kPadsSign, kStepsSign, kGroupsSign, kConvLists},
    .infer = narrow_from_wide,
    .step = StepKind::convolution,
};

constexpr OpDef kConvolutionBackwardData = {
    .kind = OpKind::ConvolutionBackwardData,
    .name = "ConvolutionBackwardData",
    .c_name = "convolution_backward_data",
    .summary = "Gradient of a convolution for its source.",
    .inputs = {{"diff_dst", "T1", "gradient of the forward result"},
               {"weights", "T1", "the forward filters"},
               {"dst_shape", "T2", "shape of diff_src; wins over the attribute", Arity::optional, Attr::dst_shape}},
    .outputs = {{"diff_src", "T1", "gradient of the forward source"}},
    .attrs = {kStrides, kPadsBegin, kPadsEnd, kDilations, kAutoPad, kOutputPadding, kGroups,
              optional(Attr::dst_shape, AttrType::s64s, "full shape of diff_src, batch and channels included"),
              kDataFormat, kFilterFormat},
    .types = {{"T1", kFloats}, {"T2", kS32}},
    .checks = {kDiffDstRank,
               kPadsSign,
               kStepsSign,
               kGroupsSign,
               kOutputPaddingSign,
               kDataLists,
               {"dst_shape_entries", "`dst_shape` must have one entry, not negative, an axis of `diff_dst`",
                shape_entries_fit<Attr::dst_shape>},
               {"dst_shape_given",
                "`dst_shape` must be given as attribute or input, or `diff_src` must have a known shape",
                shape_is_given<Attr::dst_shape, 3>}},
    .infer = wide_as_wanted,
    .step = StepKind::convolution_backward_data,
};

constexpr OpDef kConvolutionBackwardWeights = {
    .kind = OpKind::ConvolutionBackwardWeights,
    .name = "ConvolutionBackwardWeights",
    .c_name = "convolution_backward_weights",
    .summary = "Gradient of a convolution for its filters.",
    .inputs = {{"src", "T1", "source of the forward operator"},
               {"diff_dst", "T1", "gradient of its result"},
               {"weights_shape", "T2", "shape of diff_weights; wins over the attribute", Arity::optional,
                Attr::weights_shape}},
    .outputs = {{"diff_weights", "T1", "gradient of the filters"}},
    .attrs = {kStrides, kPadsBegin, kPadsEnd, kDilations, kAutoPad, kGroups, kWeightsShape, kDataFormat, kFilterFormat},
    .types = {{"T1", kFloats}, {"T2", kS32}},
    .checks = {kSrcRank, kPadsSign, kStepsSign, kGroupsSign, kConvLists, kWeightsShapeEntries, kWeightsShapeGiven},
    .infer = filter_as_wanted,
    .step = StepKind::convolution_backward_weights,
};

}  // namespace partita
