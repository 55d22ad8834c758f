// SPDX-License-Identifier: Apache-2.0
// ScaleAxes: over which axes of a quantized tensor its scales and zero points vary, where these are tensors.
#pragma once

#include <optional>

#include "src/base/attrs.hpp"

namespace partita {

/// What qtype, axis, group_shape and mask of DynamicQuantize and DynamicDequantize say about a source of given dims.
struct ScaleAxes {
  Dims dims;             ///< of scales with the source's rank: 1 where one scale serves the whole axis
  Dims group;            ///< elements along each axis that share a scale; 1 also where one serves the whole axis
  uint64_t varying = 0;  ///< bit d: scales vary along axis d
};

/// The attributes fit `src`, all dims of which are known.
ScaleAxes scale_axes(const Attrs& attrs, const Dims& src);

/// Strides over ScaleAxes::dims of a tensor that has those dims, or of them only those along which scales vary (or that
/// are not 1); 0 along axes of 1. Where one scale serves all, it may have any number of axes of 1. Absent where it has
/// other dims.
std::optional<Dims> strides_of_scales(const ScaleAxes& axes, const Dims& dims, const Dims& strides);

}  // namespace partita
