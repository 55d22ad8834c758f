// SPDX-License-Identifier: Apache-2.0
// BoxKernel: an expression over a box of elements of pooling operands and of scratch memory, whatever their strides.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "kernels/jit/flat/row_kernel.hpp"
#include "kernels/jit/pool/view.hpp"

namespace partita::jit {

/// One axis of a box: its extent, and which axis of the tensors it is.
struct BoxAxis {
  enum Which : uint8_t { c, z, y, x } which;
  int64_t extent;
};

/// Axes from the innermost on; scratch memory is dense in their order but for `row_floats`, the distance of its second
/// axis where that is not the extent of the first.
struct Box {
  std::array<BoxAxis, 4> axes;
  int64_t row_floats = 0;
};

/// Code for one box; may be called from several threads at once. Elements that follow each other in all operands become
/// long rows.
class BoxKernel {
 public:
  static constexpr size_t kMaxOperands = 32;

  BoxKernel() = default;
  /// scratch = front(operands). Throws Xbyak::Error where there is no memory for code.
  static BoxKernel loading(Isa isa, const Box& box, const Expr& front, const std::vector<int>& loaded,
                           const std::vector<PoolView>& views);
  /// outputs = back(scratch, operands)
  static BoxKernel storing(Isa isa, const Box& box, const Expr& back, const std::vector<int>& loaded,
                           const std::vector<PoolView>& in, const std::vector<PoolView>& out, bool streaming);

  /// `in` and `out`: addresses of the box's first element in the operands that are loaded and stored, in their order.
  void run(float* scratch, const void* const* in, void* const* out) const;

 private:
  struct Operand {
    Dtype dtype;
    std::array<int64_t, 4> bytes;  ///< distance along each axis of the box
    bool output;
    bool steps = true;
  };
  void add(const Box& box, const PoolView& view, bool output);
  void add_scratch(const Box& box, bool output);
  void split(const Box& box);
  RowOperand row_operand(size_t k) const;

  std::vector<Operand> operands_;  ///< inputs, then outputs
  size_t inputs_ = 0;
  bool scratch_is_output_ = false;
  int64_t length_ = 1, rows_ = 1;
  int row_axis_ = 4;                             ///< first axis that rows follow; 4: one row
  std::array<int64_t, 4> loops_ = {1, 1, 1, 1};  ///< extents of the axes that are looped over
  std::shared_ptr<const FlatKernel> kernel_;
};

}  // namespace partita::jit
