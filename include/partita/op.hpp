// SPDX-License-Identifier: Apache-2.0
// op: one operator of a graph, and the names of operator kinds and attributes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "partita/logical_tensor.hpp"
#include "partita/status.hpp"
#include "partita/types.hpp"

namespace partita {

/// Kinds and attributes with numbers from here on are extensions: the oneDNN Graph C ABI does not have them.
inline constexpr uint16_t kFirstExtension = 0x4000;

/// Operator kinds; the numbers are those of the oneDNN Graph C ABI (extensions: our own) and never change.
enum class OpKind : uint16_t {
  Abs = 0, AbsBackward = 1, Add = 2, AvgPool = 3, AvgPoolBackward = 4, BatchNormTrainingBackward = 5,
  BatchNormForwardTraining = 6, BatchNormInference = 7, BiasAdd = 8, BiasAddBackward = 9, Clamp = 10,
  ClampBackward = 11, Concat = 12, Convolution = 13, ConvolutionBackwardData = 14, ConvolutionBackwardWeights = 15,
  ConvTranspose = 16, ConvTransposeBackwardData = 17, ConvTransposeBackwardWeights = 18, Dequantize = 19,
  Divide = 20, DynamicDequantize = 21, DynamicQuantize = 22, Elu = 23, EluBackward = 24, End = 25, Exp = 26,
  GELU = 27, GELUBackward = 28, HardSwish = 29, HardSwishBackward = 30, Interpolate = 31, InterpolateBackward = 32,
  LayerNorm = 33, LayerNormBackward = 34, LeakyReLU = 35, Log = 36, LogSoftmax = 37, LogSoftmaxBackward = 38,
  MatMul = 39, Maximum = 40, MaxPool = 41, MaxPoolBackward = 42, Minimum = 43, Mish = 44, MishBackward = 45,
  Multiply = 46, PReLU = 47, PReLUBackward = 48, Quantize = 49, Reciprocal = 50, ReduceL1 = 51, ReduceL2 = 52,
  ReduceMax = 53, ReduceMean = 54, ReduceMin = 55, ReduceProd = 56, ReduceSum = 57, ReLU = 58, ReLUBackward = 59,
  Reorder = 60, Round = 61, Sigmoid = 62, SigmoidBackward = 63, SoftMax = 64, SoftMaxBackward = 65, SoftPlus = 66,
  SoftPlusBackward = 67, Sqrt = 68, SqrtBackward = 69, Square = 70, SquaredDifference = 71, StaticReshape = 72,
  StaticTranspose = 73, Subtract = 74, Tanh = 75, TanhBackward = 76, TypeCast = 77, Wildcard = 78, HardSigmoid = 79,
  HardSigmoidBackward = 80, Select = 81, Pow = 82, GroupNorm = 83, GenIndex = 84, GreaterEqual = 85, RMSNorm = 86,
  Dropout = 87,
  AdaptiveAvgPool = kFirstExtension, AdaptiveAvgPoolBackward = kFirstExtension + 1,
  MaxPoolIndicesBackward = kFirstExtension + 2,
};
inline constexpr int kUpstreamOpKinds = 88;
inline constexpr int kOpKinds = kUpstreamOpKinds + 3;

/// Place of a kind among all kinds, in [0, kOpKinds); kOpKinds for a number that is none.
constexpr int position_of(OpKind kind) {
  const int number = static_cast<int>(kind), from_extensions = number - kFirstExtension;
  const bool upstream = from_extensions < 0;
  const bool known = upstream ? number < kUpstreamOpKinds : from_extensions < kOpKinds - kUpstreamOpKinds;
  return !known ? kOpKinds : upstream ? number : kUpstreamOpKinds + from_extensions;
}
/// The kind at a place in [0, kOpKinds).
constexpr OpKind op_kind_at(int position) {
  return static_cast<OpKind>(position < kUpstreamOpKinds ? position : position - kUpstreamOpKinds + kFirstExtension);
}

/// Attribute names; the numbers are those of the oneDNN Graph C ABI (extensions: our own) and never change.
enum class Attr : uint16_t {
  alpha = 1, beta = 2, epsilon = 3, max = 4, min = 5, momentum = 6, scales = 32, axis = 48, begin_norm_axis = 49,
  groups = 50, mask = 51, axes = 64, dilations = 65, dst_shape = 66, kernel = 67, order = 68, output_padding = 69,
  pads_begin = 70, pads_end = 71, shape = 72, sizes = 73, src_shape = 74, strides = 75, weights_shape = 76, zps = 77,
  group_shape = 78, exclude_pad = 96, keep_dims = 97, keep_stats = 98, per_channel_broadcast = 99,
  special_zero = 100, transpose_a = 101, transpose_b = 102, use_affine = 103, use_dst = 104, auto_broadcast = 128,
  auto_pad = 129, coordinate_transformation_mode = 130, data_format = 131, mode = 132, qtype = 133,
  rounding_type = 134, weights_format = 135, accumulation_mode = 136,
  divisor_override = kFirstExtension, exclude_overhang = kFirstExtension + 1, index_base = kFirstExtension + 2,
  spatial_axes = kFirstExtension + 3,
};

std::string_view name_of(OpKind kind);
std::string_view name_of(Attr attr);
/// Absent where no kind (attribute) has that name; spelling is exact.
std::optional<OpKind> op_kind_named(std::string_view name);
std::optional<Attr> attr_named(std::string_view name);

/// One operator: a plain value that owns copies of its logical tensors. It is checked when it is added to a graph.
class op {
 public:
  uint64_t id = 0;
  OpKind kind = OpKind::Wildcard;
  std::string name;  ///< only for messages and dumps
  std::vector<logical_tensor> inputs;
  std::vector<logical_tensor> outputs;

  op() = default;
  op(uint64_t id, OpKind kind, std::string name = {}) : id(id), kind(kind), name(std::move(name)) {}
  op(uint64_t id, OpKind kind, std::vector<logical_tensor> inputs, std::vector<logical_tensor> outputs,
     std::string name = {})
      : id(id), kind(kind), name(std::move(name)), inputs(std::move(inputs)), outputs(std::move(outputs)) {}

  op& add_input(const logical_tensor& t) { return inputs.push_back(t), *this; }
  op& add_output(const logical_tensor& t) { return outputs.push_back(t), *this; }
  /// Sets or overwrites; monostate removes. Whether kind and value fit is checked by graph::add_op.
  op& set_attr(Attr attr, AttrValue value);
  /// monostate where the attribute was not set.
  const AttrValue& attr(Attr attr) const;
  /// Sorted by attribute number.
  const std::vector<std::pair<Attr, AttrValue>>& attrs() const { return attrs_; }

  friend bool operator==(const op&, const op&) = default;

 private:
  std::vector<std::pair<Attr, AttrValue>> attrs_;
};

}  // namespace partita
