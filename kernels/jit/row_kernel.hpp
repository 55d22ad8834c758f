// SPDX-License-Identifier: Apache-2.0
// RowKernel: a flat kernel written as an expression over named operands, and tensors seen as rows of channels.
#pragma once

#include <memory>
#include <vector>

#include "kernels/expr.hpp"
#include "kernels/jit/flat_kernel.hpp"
#include "kernels/problem.hpp"

namespace partita::jit {

/// A channel-last tensor with three spatial axes: byte distances along n, z, y, x; channels are next to each other or
/// one.
struct ChannelRows {
  Dtype dtype = Dtype::undef;
  bool steps = true;
  int64_t offset = 0, n = 0, z = 0, y = 0, x = 0;

  RowOperand rows(int64_t row_bytes) const { return {dtype, steps, row_bytes}; }
  const std::byte* at(const void* base, int64_t in, int64_t iz, int64_t iy, int64_t ix) const {
    return static_cast<const std::byte*>(base) + offset + in * n + iz * z + iy * y + ix * x;
  }
};

/// `desc` has the axes n, spatial .., c. Null text where it fits, else why not.
const char* refuse_channel_rows(const TensorDesc& desc, bool output);
ChannelRows channel_rows(const TensorDesc& desc);

/// Collects operands while an expression is written, then makes the code.
class RowKernelWriter {
 public:
  ExprBuilder builder() { return ExprBuilder(expr_); }
  /// The loaded value of a new input / the place of a new output; operands are numbered in this order.
  ExprBuilder::Value load(const RowOperand& operand);
  void store(const RowOperand& operand, ExprBuilder::Value value);
  /// The same for an output with a fold.
  void fold(const RowOperand& operand, ExprBuilder::Value value);
  /// Copies `from` with its loads (and, for back expressions, stores) as new operands in the order of `in` and `out`;
  /// its skeleton value is `skeleton`. Returns the value of its result.
  ExprBuilder::Value splice(const Expr& from, const std::vector<int>& in, const std::vector<RowOperand>& operands,
                            const std::vector<RowOperand>& outputs = {}, int skeleton = -1);
  std::shared_ptr<const FlatKernel> make(Isa isa, int64_t length, bool streaming, int prefetch = 0,
                                         bool fenced = true) const;

 private:
  Expr expr_;
  std::vector<RowOperand> in_, out_;
};

/// Operands that an expression loads, ascending.
std::vector<int> loaded_operands(const Expr& expr);

}  // namespace partita::jit
