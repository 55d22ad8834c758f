// SPDX-License-Identifier: Apache-2.0
// What every door does with a pooling: describes it as plain data, has it compiled once, runs it on addresses.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>

#include "partita/partition.hpp"

namespace partita::compat {

/// A tensor without its data: batch, channels, then 1 to 3 spatial axes; strides in elements.
struct View {
  Dtype dtype = Dtype::undef;
  Dims dims, strides;

  bool empty() const { return std::ranges::count(dims, 0) > 0; }
  friend bool operator==(const View&, const View&) = default;
};

/// A batch axis of one item in front. Only for views that are addressable.
View with_batch(View view);

/// What averages divide by: the cells inside the source, those inside source and padding, or the whole kernel.
enum class Divisor : uint8_t { valid, padded_box, kernel };
/// What an index counts through: one plane, or the whole tensor.
enum class IndexBase : uint8_t { plane, tensor };

/// One pooling call. Lists have one entry a spatial axis (adaptive kinds: none); tensors stand in the operator's order.
struct Pooling {
  OpKind kind = OpKind::AvgPoolBackward;
  Dims kernel, strides, pads_begin, pads_end, dilations;
  bool ceil = false;
  Divisor divisor = Divisor::valid;
  int64_t divisor_override = 0;  ///< 0: none
  IndexBase index_base = IndexBase::plane;
  std::array<View, 2> inputs;
  int input_count = 1;
  View output;

  friend bool operator==(const Pooling&, const Pooling&) = default;
};

/// How a last window that does not fit is counted: dropped, kept, kept unless it starts behind the left padding and the
/// source (PyTorch's rule).
enum class LastWindow : uint8_t { dropped, kept, kept_inside };
/// Windows along one axis; 0 or less where none fits.
int64_t window_count(int64_t cells, int64_t kernel, int64_t stride, int64_t pad_begin, int64_t pad_end,
                     int64_t dilation, LastWindow rule);

/// A compiled pooling. Immutable, shared between threads.
class PoolingProgram {
 public:
  /// The program for a pooling, from a table in front of the compiled-partition cache or compiled anew; nothing is
  /// allocated where it is found. Thread-safe. Errors: those of graph::add_op and partition::compile.
  static Result<std::shared_ptr<const PoolingProgram>> of(const Pooling& pooling);

  size_t scratchpad_bytes() const { return compiled_.scratchpad_bytes(); }
  const Pooling& pooling() const { return pooling_; }
  const compiled_partition& compiled() const { return compiled_; }
  /// `inputs` as many as the pooling has. A scratchpad that is null or not aligned to 64 bytes is replaced by memory of
  /// our own. Errors: invalid_arguments (null data, an index outside its base), out_of_memory.
  Status execute(std::span<const void* const> inputs, void* output, void* scratchpad) const;

 private:
  Pooling pooling_;
  compiled_partition compiled_;
};

}  // namespace partita::compat
