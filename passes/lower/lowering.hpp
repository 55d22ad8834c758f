// SPDX-License-Identifier: Apache-2.0
// Lowering: what the lowering of one operator needs: its operator, the program under construction, views of values.
#pragma once

#include "passes/program.hpp"
#include "src/ir/op_def.hpp"

namespace partita {

/// Whether loops become machine code on the target.
bool generates_loops(const Target& target);

class Lowering {
 public:
  Lowering(Program& program, const Target& target) : program_(program), target_(target) {}

  const SubOp* op = nullptr;
  const OpDef* def = nullptr;

  TensorDesc input(int port) const { return buffer_desc(op->in[static_cast<size_t>(port)]); }
  TensorDesc output(int port) const { return buffer_desc(op->out[static_cast<size_t>(port)]); }
  int input_buffer(int port) const { return op->in[static_cast<size_t>(port)]; }
  int output_buffer(int port) const { return op->out[static_cast<size_t>(port)]; }
  int inputs() const { return static_cast<int>(op->in.size()); }

  /// A temporary like `dims`, dense.
  int add_temporary(Dtype dtype, const Dims& dims);
  /// An f32 constant of one axis.
  int add_constant(const std::vector<float>& values);
  void add_step(Step step);
  bool empty_outputs() const;
  /// Without generated loops reductions are better left to oneDNN's primitives.
  bool generates_code() const { return generates_loops(target_); }
  /// The operator as one step, ports in order.
  Step whole_op() const;
  TensorDesc buffer_desc(int buffer) const;

 private:
  Program& program_;
  const Target& target_;
};

/// A loop under construction: operands are added with their buffers, then the expression is built on them.
class LoopStep {
 public:
  LoopStep() { step_.problem.step = StepKind::loop; }
  /// The loaded value of a new operand; integers of type s32 stay integers unless `as_float`.
  ExprBuilder::Value load(const TensorDesc& desc, int buffer, bool as_float = true);
  /// The random numbers of elements with the numbers that `numbers` is the operand of (ExprOp::uniform).
  ExprBuilder::Value draw(const TensorDesc& numbers, ExprBuilder::Value seed, ExprBuilder::Value offset);
  void store(const TensorDesc& desc, int buffer, ExprBuilder::Value value);
  /// `buffer` is a dense f32 tensor; `desc` repeats it along the axes that are folded.
  void fold(Fold how, const TensorDesc& desc, int buffer, ExprBuilder::Value value);
  ExprBuilder builder() { return ExprBuilder(step_.problem.back); }
  Step take();

 private:
  Step step_;
};

/// `desc` seen over `space`: right-aligned, axes of extent 1 repeated.
TensorDesc spread(const TensorDesc& desc, const Dims& space);
/// A 1-D `desc` along one axis of `space`.
TensorDesc spread_along(const TensorDesc& desc, const Dims& space, int axis);

Status lower_elementwise(Lowering& l);  ///< operators with an expression
Status lower_matmul(Lowering& l);
Status lower_reduction(Lowering& l);   ///< Reduce.. and BiasAddBackward, as a loop with a fold
Status lower_average(Lowering& l);     ///< AvgPoolBackward and adaptive average poolings
Status lower_batch_norm(Lowering& l);  ///< training, forward and backward
Status lower_prelu_backward(Lowering& l);
Status lower_dropout(Lowering& l);
Status lower_movement(Lowering& l);      ///< StaticTranspose, StaticReshape, Concat
Status lower_quantization(Lowering& l);  ///< Quantize, Dequantize and their dynamic forms

}  // namespace partita
