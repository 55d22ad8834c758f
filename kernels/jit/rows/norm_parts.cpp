// SPDX-License-Identifier: Apache-2.0
// Vectors of gamma and beta.
#include "kernels/jit/rows/norm_parts.hpp"

#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"

namespace partita::jit {

bool has_affine(const Problem& problem, int port) {
  return problem.in_ports() > port && problem.attrs.flag_or(Attr::use_affine, true);
}

const char* refuse_vector(const TensorDesc& desc, int64_t count) {
  if (!Emitter::loads(desc.dtype) || !Emitter::stores(desc.dtype)) return "a vector's type has no generated conversion";
  const bool fits = elements(desc.dims) == count && is_dense(desc.dims, desc.strides);
  return fits ? nullptr : "a vector's elements are not next to each other";
}

RowView vector_view(RowView::From from, int port, const TensorDesc& desc, int64_t block) {
  const int64_t each = element_bytes(desc.dtype);
  return {.from = from,
          .port = port,
          .dtype = desc.dtype,
          .offset = desc.offset * each,
          .lane = each,
          .block = block * each};
}

}  // namespace partita::jit
