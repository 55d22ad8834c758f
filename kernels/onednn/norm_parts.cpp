// SPDX-License-Identifier: Apache-2.0
// Vectors of normalisations.
#include "kernels/onednn/norm_parts.hpp"

#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"

namespace partita::onednn {

bool all_dense_floats(std::span<const TensorDesc> tensors) {
  return std::all_of(tensors.begin(), tensors.end(), [](const TensorDesc& tensor) {
    return tensor.dtype == Dtype::f32 && is_dense(tensor.dims, tensor.strides);
  });
}

Place ones(PrimitiveRun& run, int64_t count) {
  const Place place = run.scratch(bytes_for(Dtype::f32, count));
  run.add([place, count](const Addresses& addresses) {
    std::fill_n(static_cast<float*>(addresses.at(place)), count, 1.0f);
  });
  return place;
}

}  // namespace partita::onednn
