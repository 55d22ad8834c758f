// SPDX-License-Identifier: Apache-2.0
// ONNX Runtime's MaxPoolGrad and AveragePoolGrad in our terms. Knows nothing of ONNX Runtime's headers.
#pragma once

#include <string>
#include <vector>

#include "src/compat/pooling.hpp"

namespace partita::compat::onnxruntime {

/// The attributes of a node as they stand there; empty lists where they are absent.
struct GradientNode {
  bool maximum = false;  ///< MaxPoolGrad, else AveragePoolGrad
  std::vector<int64_t> kernel_shape, strides, pads, dilations;
  std::string auto_pad = "NOTSET";
  bool ceil_mode = false, count_include_pad = false;
  int64_t storage_order = 0;
};

/// What of a node's attributes does not depend on tensors. Errors: invalid_arguments with the attribute's name.
Status check(const GradientNode& node);

/// The gradient of a pooling of `source` (batch, channels, spatial dims; the batch may be unknown and is then that of
/// `pooled`) to `pooled`, both dense. `node` is checked. Errors: invalid_shape.
Result<Pooling> pooling_of(const GradientNode& node, Dtype dtype, const Dims& pooled, const Dims& source);

}  // namespace partita::compat::onnxruntime
