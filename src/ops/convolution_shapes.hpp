// SPDX-License-Identifier: Apache-2.0
// Shapes of the six convolution operators. In all of them windows slide over the wide side (src of a convolution, dst
// of a transposed one), and each makes one cell of the narrow side.
#pragma once

#include "src/ir/shape_context.hpp"

namespace partita {

/// Inputs wide, filter; output narrow (Convolution, ConvTransposeBackwardData).
Status narrow_from_wide(ShapeContext& c);
/// Inputs narrow, filter; output wide, by the formula of the transposed convolution (ConvTranspose).
Status wide_from_narrow(ShapeContext& c);
/// Inputs narrow, filter; output wide as dst_shape says (ConvolutionBackwardData).
Status wide_as_wanted(ShapeContext& c);
/// Inputs wide and narrow; output filter as weights_shape says (ConvolutionBackwardWeights).
Status filter_as_wanted(ShapeContext& c);
/// Inputs narrow and wide; output filter as weights_shape says (ConvTransposeBackwardWeights).
Status transposed_filter_as_wanted(ShapeContext& c);

}  // namespace partita
