// SPDX-License-Identifier: Apache-2.0
// Walks the f32 copy of a tensor in the order of its memory and converts piece by piece.
#include "kernels/onednn/float_copy.hpp"

#include "kernels/onednn/view.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/threads.hpp"

namespace partita::onednn {
namespace {

constexpr int64_t kPiece = 1 << 14;  ///< elements converted in one go, so that a long run is shared by the threads

/// A tensor along its copy: `inner` elements a stride apart lie side by side in the copy, for each place of the outer
/// axes.
struct Rows {
  Dims outer, outer_strides;
  int64_t inner = 1, inner_stride = 1;
};

Rows rows_of(const TensorDesc& tensor, const TensorDesc& copy) {
  Dims dims, strides;
  for (int axis : axes_in_memory_order(copy)) {
    if (tensor.dims[axis] == 1) continue;
    const int64_t dim = tensor.dims[axis], stride = tensor.strides[axis];
    if (!dims.empty() && strides.back() == dim * stride) {
      dims.back() *= dim;
      strides.back() = stride;
    } else {
      dims.push_back(dim);
      strides.push_back(stride);
    }
  }
  if (dims.empty()) return {};
  Rows rows{.outer = dims, .outer_strides = strides, .inner = dims.back(), .inner_stride = strides.back()};
  rows.outer.erase(rows.outer.size() - 1);
  rows.outer_strides.erase(rows.outer_strides.size() - 1);
  return rows;
}

int64_t start_of(const Rows& rows, int64_t row) {
  int64_t at = 0;
  for (int axis = rows.outer.size() - 1; axis >= 0; --axis) {
    at += row % rows.outer[axis] * rows.outer_strides[axis];
    row /= rows.outer[axis];
  }
  return at;
}

/// Calls piece(element of the tensor, element of the copy, count) for all pieces; count is 1 where elements have gaps.
template <class Piece>
void for_each_piece(const TensorDesc& tensor, const TensorDesc& copy, const Piece& piece) {
  const Rows rows = rows_of(tensor, copy);
  const int64_t pieces = (rows.inner + kPiece - 1) / kPiece;
  parallel_for(elements(rows.outer) * pieces, std::min(rows.inner, kPiece), [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t first = item % pieces * kPiece, last = std::min(first + kPiece, rows.inner);
      const int64_t row = tensor.offset + start_of(rows, item / pieces), copy_row = item / pieces * rows.inner;
      if (rows.inner_stride == 1) {
        piece(row + first, copy_row + first, last - first);
      } else {
        for (int64_t i = first; i < last; ++i) piece(row + i * rows.inner_stride, copy_row + i, int64_t{1});
      }
    }
  });
}

}  // namespace

void copy_to_floats(const TensorDesc& from_desc, const void* from, const TensorDesc& to_desc, float* to) {
  for_each_piece(from_desc, to_desc, [&](int64_t at, int64_t copy_at, int64_t count) {
    load_floats(from, from_desc.dtype, at, count, to + copy_at);
  });
}

void copy_from_floats(const TensorDesc& from_desc, const float* from, const TensorDesc& to_desc, void* to) {
  for_each_piece(to_desc, from_desc, [&](int64_t at, int64_t copy_at, int64_t count) {
    store_floats(to, to_desc.dtype, at, count, from + copy_at);
  });
}

}  // namespace partita::onednn
