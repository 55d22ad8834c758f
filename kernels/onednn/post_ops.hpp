// SPDX-License-Identifier: Apache-2.0
// From expressions around a product (convolution, matmul) to what oneDNN's primitives do themselves: post-operations
// on the result, scales and zero points on the operands.
#pragma once

#include <optional>
#include <vector>

#include "kernels/onednn/primitive_run.hpp"

namespace partita::onednn {

/// value = algorithm(value) with alpha and beta, or value = algorithm(value, operand).
struct PostOp {
  dnnl::algorithm algorithm = dnnl::algorithm::undef;
  float alpha = 0, beta = 0;
  int operand = -1;  ///< of the problem; -1: element-wise on the value alone
};

/// The result of the product, post-operation by post-operation, as `back` stores it. Roundings to 16-bit types on the
/// way are left out, as oneDNN keeps f32 there. Empty list where `back` is empty; nullopt where oneDNN has no such
/// operation.
std::optional<std::vector<PostOp>> post_ops_of(const Problem& problem);

/// A number that is known, or the operand that holds it.
struct Factor {
  float value = 0;
  int operand = -1;
};

/// (operand - zero_point) * scale: how a product's input is made of a narrow tensor.
struct Dequantized {
  int operand = -1;
  std::optional<Factor> scale, zero_point;
};

/// The meaning of `front` or `weights_front`; nullopt where it is no dequantization.
std::optional<Dequantized> dequantized(const Expr& front);

/// The ports of a product as a primitive sees them: narrow tensors stand in the place of what a front makes of them.
struct Product {
  int src_at = 0, weights_at = 1;  ///< operands of the problem
  TensorDesc src, weights;         ///< in the user's order of axes
  std::optional<Dequantized> src_front, weights_front;
  std::vector<PostOp> post_ops;
  bool has_bias = false;
};

/// Null, or the reason why oneDNN's primitives do not compute what stands around the product.
const char* read_product(const Problem& problem, Product& product);

/// Something stands behind the product, and the target has generated loops for what primitives do slower.
bool leaves_to_loops(const Product& product, const Target& target);

/// Null, or the reason why what stands behind the product takes less time in a loop of its own.
const char* slower_than_loops(const Problem& problem, const Product& product, const Target& target);

/// Axes along which an operand of `back` repeats, with size 1.
TensorDesc with_unit_axes(TensorDesc operand);

/// Where a list of scales of the weights may lie.
struct ScaleAxis {
  int axis = 0;         ///< of the weights in the user's order
  int mask = 0;         ///< the axes of the primitive's weights
  int64_t entries = 1;  ///< as many as the list must have
};

/// What stands around one product, told to a primitive: first its attributes, then its arguments.
class Around {
 public:
  /// `operands`: of the post-operations that have one, in the primitive's order of axes, in order. `dst` is the result
  /// there.
  Around(const Problem& problem, const Product& product, const TensorDesc& dst, std::vector<TensorDesc> operands,
         const ScaleAxis& scales)
      : problem_(problem), product_(product), dst_(dst), operands_(std::move(operands)), scales_(scales) {}

  /// False where scales or zero points lie in a way that primitives do not take. `free`: the result's layout is left to
  /// the primitive, and so is that of the operands.
  bool describe(dnnl::primitive_attr& attr, bool free) const;
  void arguments(const dnnl::primitive_desc_base& desc, PrimitiveRun& run, std::vector<Operand>& arguments) const;

 private:
  bool describe(dnnl::primitive_attr& attr, int arg, const std::optional<Dequantized>& front) const;
  dnnl::memory::desc wanted(size_t k) const;
  void argument(PrimitiveRun& run, int arg, const Factor& factor, bool integer, std::vector<Operand>& list) const;

  const Problem& problem_;
  const Product& product_;
  TensorDesc dst_;
  std::vector<TensorDesc> operands_;
  ScaleAxis scales_;
};

}  // namespace partita::onednn
