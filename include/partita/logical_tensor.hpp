// SPDX-License-Identifier: Apache-2.0
// logical_tensor: what is known of a tensor before there is data.
#pragma once

#include <cstdint>

#include "partita/types.hpp"

namespace partita {

/// Id, data type, shape and layout of one tensor of a graph. Equal ids connect operators. A plain value: nothing is
/// checked before it is given to graph::add_op or partition::compile.
struct logical_tensor {
  uint64_t id = std::numeric_limits<uint64_t>::max();
  Dtype dtype = Dtype::undef;
  Layout layout = Layout::undef;
  Property property = Property::undef;
  bool rank_known = false;
  Dims dims;               ///< one entry an axis, kUnknownDim where unknown; a scalar has none
  Dims strides;            ///< in elements, only for Layout::strided; kUnknownDim where unknown
  uint64_t layout_id = 0;  ///< only for Layout::opaque, which Partita never makes: carried from and to JSON alone

  logical_tensor() = default;
  /// Rank unknown.
  logical_tensor(uint64_t id, Dtype dtype, Layout layout = Layout::undef);
  /// Dense row-major where `layout` is strided and every dim is known.
  logical_tensor(uint64_t id, Dtype dtype, const Dims& dims, Layout layout = Layout::strided,
                 Property property = Property::undef);
  logical_tensor(uint64_t id, Dtype dtype, const Dims& dims, const Dims& strides, Property property = Property::undef);

  int rank() const { return dims.size(); }
  /// Rank and every dim are known.
  bool shape_known() const;
  /// Layout::strided with every stride known (or a known scalar).
  bool strides_known() const;
  /// Product of dims; only where shape_known().
  int64_t elements() const;
  /// Bytes of a buffer with room for every element and the gaps between them: up to the last one's end, or the largest
  /// product of a dim and its stride, which may be more; 0 where a dim is 0. Only where shape_known(); dense where
  /// strides are not known.
  size_t size_bytes() const;
  /// "f32[2,3]", with "?" for what is unknown.
  std::string text() const;

  friend bool operator==(const logical_tensor&, const logical_tensor&);
};

/// Row-major strides without gaps; a dim of 0 counts as 1.
Dims dense_strides(const Dims& dims);

}  // namespace partita
