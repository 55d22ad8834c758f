// SPDX-License-Identifier: Apache-2.0
// Shapes of a case's tensors: always written channel-first, and laid out as the variant of the case says.
#pragma once

#include <vector>

#include "partita/types.hpp"

namespace partita::bench {

/// plain: as written. ncx, nxc: images with their channels second or last; only tensors of rank 3 and more differ.
enum class Order : uint8_t { plain, ncx, nxc };
const char* name_of(Order order);

/// What a case is run in: the type of its tensors (where it does not name another), and their layout.
struct Variant {
  Dtype dtype = Dtype::f32;
  Order order = Order::plain;
};

/// A tensor without gaps.
struct Shape {
  Dims dims;  ///< batch, channels and spatial axes, whatever the layout
  Dtype dtype = Dtype::f32;
  Order order = Order::plain;

  bool channels_last() const { return order == Order::nxc && dims.size() >= 3; }
  /// In the order of memory.
  Dims stored() const;
  /// Of `dims`, in elements.
  Dims strides() const;
  int64_t elements() const;
  size_t bytes() const;
};

/// A pooling window, the same along each of `axes` spatial axes.
struct Window {
  int axes = 2;
  int64_t kernel = 2;
  int64_t stride = 2;
  int64_t pad = 0;
  bool counts_padding = false;  ///< average: divide by the cells of the window, padding included

  std::vector<int64_t> each_axis(int64_t value) const { return std::vector<int64_t>(static_cast<size_t>(axes), value); }
  /// Shape of the pooled tensor.
  Dims pooled(const Dims& dims) const;
};

/// `dims` with every spatial axis multiplied.
Dims scaled(Dims dims, int64_t factor);
/// `dims` with 1 for every spatial axis.
Dims one_cell(Dims dims);

}  // namespace partita::bench
