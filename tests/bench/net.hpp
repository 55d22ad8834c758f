// SPDX-License-Identifier: Apache-2.0
// Net: writes the graph of a case with few words, in the types and layout of a variant.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "partita/graph.hpp"
#include "tests/bench/memory.hpp"
#include "tests/bench/shape.hpp"

namespace partita::bench {

/// A tensor of a net or of a chain.
using Value = int;
using Attributes = std::vector<std::pair<Attr, AttrValue>>;

/// What an input holds, where it is not numbers from -1 to 1 of the variant's type.
struct Content {
  Range range;
  Dtype dtype = Dtype::undef;  ///< undef: the variant's
};

class Net {
 public:
  struct Input {
    Value value;
    Range range;
  };

  explicit Net(Variant variant) : variant_(variant) {}

  Dtype dtype() const { return variant_.dtype; }
  /// In the order of memory: what ReduceSum needs to sum over an image.
  std::vector<int64_t> spatial_axes(int rank) const;

  Value input(const Dims& dims, Content content = {});
  /// One f32 a channel (statistics and affine tensors of normalisation).
  Value vector(int64_t size, Range range = {0.5f, 1.5f}) { return input({size}, {range, Dtype::f32}); }

  /// An operator with one result of the variant's type, or of `dtype`.
  Value op(OpKind kind, std::vector<Value> inputs, const Dims& dims, Attributes attributes = {},
           Dtype dtype = Dtype::undef);
  /// With several results.
  std::vector<Value> ops(OpKind kind, std::vector<Value> inputs, std::vector<Shape> results,
                         Attributes attributes = {});
  /// A result of the variant's type and layout, and one f32 vector, for `ops`.
  Shape like(const Dims& dims) const { return {dims, variant_.dtype, variant_.order}; }
  static Shape floats(const Dims& dims) { return {dims, Dtype::f32, Order::plain}; }

  /// Marks a result; outputs are numbered in this order.
  void output(Value value) { outputs_.push_back(value); }

  const Shape& shape(Value value) const { return shapes_[static_cast<size_t>(value)]; }
  logical_tensor logical(Value value) const;
  const std::vector<Input>& inputs() const { return inputs_; }
  const std::vector<Value>& outputs() const { return outputs_; }
  int values() const { return static_cast<int>(shapes_.size()); }
  /// The finalized graph.
  Result<graph> build() const;

 private:
  Value add(const Shape& shape);

  Variant variant_;
  std::vector<Shape> shapes_;
  std::vector<Input> inputs_;
  std::vector<Value> outputs_;
  std::vector<partita::op> ops_;
};

/// Attributes of a pooling operator; AvgPool and AvgPoolBackward want `average`.
Attributes pool_attributes(const Window& window, bool average);

}  // namespace partita::bench
