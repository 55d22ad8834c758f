// SPDX-License-Identifier: Apache-2.0
// Problem: what a kernel has to compute, as plain data. One operator with concrete tensors, or a loop: a skeleton
// (how to walk the data) with expressions (what to compute for each element).
#pragma once

#include <string>
#include <vector>

#include "kernels/expr.hpp"
#include "partita/types.hpp"
#include "src/base/attrs.hpp"

namespace partita {

/// A tensor in memory: strides in elements, 0 where an operand is broadcast along that axis; `offset` elements are
/// skipped at the start (a view into a larger tensor).
struct TensorDesc {
  Dtype dtype = Dtype::undef;
  Dims dims;
  Dims strides;
  int64_t offset = 0;
  friend bool operator==(const TensorDesc&, const TensorDesc&) = default;
};

std::string text_of(const TensorDesc& desc);
/// Whether elements lie equally far from the first one along every axis of `a`, which has the rank of `b`: strides of
/// axes of extent 1 say nothing.
bool same_strides(const TensorDesc& a, const TensorDesc& b);
/// The tensor with axis `from` at place `to`, the others in their order.
TensorDesc with_axis_moved(TensorDesc desc, int from, int to);
/// Whether all axes but the last two have extent 1.
bool is_one_matrix(const TensorDesc& desc);

/// The kinds of work; each has one table of kernels (kernels/tables.cpp) and a row of traits (kernels/problem.cpp).
enum class StepKind : uint8_t {
  none,  ///< nothing to do (End)
  loop,  ///< element-wise over the space of its first output, any number of operands
  pool_forward,
  pool_backward,
  max_pool_backward,
  max_pool_indices_backward,
  convolution,
  convolution_backward_data,
  convolution_backward_weights,
  matmul,
  softmax,
  softmax_backward,
  batch_norm,
  batch_norm_backward,
  layer_norm,
  layer_norm_backward,
  group_norm,
  reduce,
  resample,
  resample_backward,
  prelu_backward,
  concat,  ///< along Attr::axis of out[0]; loops that copy make it (passes/optimize/join_copies)
  dropout,
  tiles,  ///< a program for each tile of a space (passes/tile); made by its pass, no kernel table
};

/// What passes ask of a kind of step.
struct StepTraits {
  std::string_view name;
  /// The main input: the source of a forward step, the gradient of the result of a backward step.
  int front_port = 0;
  /// Two main inputs, and kernels that take expressions only where their primitives do what they say.
  bool product = false;
  bool skeleton = false;     ///< takes expressions in front of its main input and behind its main result
  bool takes_folds = false;  ///< skeleton: its kernels fold what they make
  /// Walks images whose channels are second or last, as data_format says, and is slow in another order of memory.
  bool images = false;
  bool rows = false;        ///< walks slices along some axes, and is slow where its tensors lie in different orders
  bool keeps_axes = false;  ///< the result has the axes of the inputs, and may lie as they do
  bool adds_up = false;     ///< makes sums of elements, which rounding may leave with an error where they cancel
};
const StepTraits& traits_of(StepKind kind);
inline std::string_view name_of(StepKind kind) { return traits_of(kind).name; }
inline int front_port(StepKind kind) { return traits_of(kind).front_port; }
inline bool is_product(StepKind kind) { return traits_of(kind).product; }

/// `in` and `out` start with the ports of operator `op` in port order, as the user laid them out (data_format is an
/// attribute); further operands of `front` and `back` follow. For StepKind::loop there is no `op`: `in`/`out` are the
/// operands of `back`, all with the dims of the loop's space.
struct Problem {
  /// So many inputs can be marked constant, and so many tensors of a side have primitives.
  static constexpr size_t kMostPorts = 64;

  StepKind step = StepKind::none;
  OpKind op = OpKind::Wildcard;
  Attrs attrs;  ///< complete: defaults filled, auto_pad resolved to pads, value inputs moved into attributes
  std::vector<TensorDesc> in;
  std::vector<TensorDesc> out;
  /// Ports of `op` at the start of `in` and `out`; -1: all are ports (nothing is fused).
  int ports_in = -1, ports_out = -1;
  /// Applied to each element the skeleton reads of its main input (front_port). That input is not read itself then.
  Expr front;
  /// The same for the second input of a product (convolution, matmul): a dequantization of its weights.
  Expr weights_front;
  /// Applied to each element of the skeleton's main result, instead of storing it to out[0]. Then out[0] is the first
  /// output of `back`; the operator's other outputs keep their places, further outputs of `back` follow them.
  Expr back;

  /// Whether the operator's results are rounded to 16 bits or fewer at once, whatever is joined (narrow_results.hpp).
  bool narrow = false;

  /// Bit k: in[k] has the same content in every execution, so what a kernel makes of it alone may be kept (Run::packs).
  uint64_t constant_ports = 0;

  /// Of all the memory that results are parts of, where that is known: other steps may write the rest.
  int64_t result_bytes = 0;

  bool fused() const { return !front.empty() || !weights_front.empty() || !back.empty(); }
  bool is_constant(size_t port) const { return port < kMostPorts && (constant_ports >> port & 1) != 0; }
  int in_ports() const { return ports_in < 0 ? static_cast<int>(in.size()) : ports_in; }
  int out_ports() const { return ports_out < 0 ? static_cast<int>(out.size()) : ports_out; }
  friend bool operator==(const Problem&, const Problem&) = default;
};

/// Whether the problem is a loop that does nothing but to copy the elements of a tensor as they are.
bool is_copy(const Problem& problem);
/// Whether the instruction of an expression of `problem` makes a 32-bit integer rather than an f32.
bool makes_integer(const Instr& in, const Problem& problem);
/// A loop that copies in[0], which lies as `from` says, to out[0], which lies as `to` says; both have the same dims.
Problem copy_loop(const TensorDesc& from, const TensorDesc& to);
/// The problem's expressions; where they are absent, the ones that read the main input and store the main result.
Expr front_expression(const Problem& problem);
Expr back_expression(const Problem& problem);

}  // namespace partita
