// SPDX-License-Identifier: Apache-2.0
// A net's operators with the attributes that follow from its variant.
#include "tests/bench/net.hpp"

#include <numeric>

#include "src/base/check.hpp"

namespace partita::bench {
namespace {

bool has_data_format(OpKind kind) {
  switch (kind) {
    case OpKind::AvgPool:
    case OpKind::AvgPoolBackward:
    case OpKind::MaxPool:
    case OpKind::MaxPoolBackward:
    case OpKind::MaxPoolIndicesBackward:
    case OpKind::AdaptiveAvgPool:
    case OpKind::AdaptiveAvgPoolBackward:
    case OpKind::BatchNormForwardTraining:
    case OpKind::BatchNormTrainingBackward:
    case OpKind::BiasAdd:
    case OpKind::BiasAddBackward:
    case OpKind::Interpolate:
    case OpKind::InterpolateBackward: return true;
    default: return false;
  }
}

}  // namespace

std::vector<int64_t> Net::spatial_axes(int rank) const {
  std::vector<int64_t> axes(static_cast<size_t>(rank - 2));
  std::iota(axes.begin(), axes.end(), variant_.order == Order::nxc ? 1 : 2);
  return axes;
}

Value Net::add(const Shape& shape) {
  shapes_.push_back(shape);
  return values() - 1;
}

Value Net::input(const Dims& dims, Content content) {
  const Dtype dtype = content.dtype == Dtype::undef ? variant_.dtype : content.dtype;
  const Value value = add({dims, dtype, variant_.order});
  inputs_.push_back({value, content.range});
  return value;
}

Value Net::op(OpKind kind, std::vector<Value> inputs, const Dims& dims, Attributes attributes, Dtype dtype) {
  const Shape result{dims, dtype == Dtype::undef ? variant_.dtype : dtype, variant_.order};
  return ops(kind, std::move(inputs), {result}, std::move(attributes)).front();
}

std::vector<Value> Net::ops(OpKind kind, std::vector<Value> inputs, std::vector<Shape> results, Attributes attributes) {
  partita::op added(ops_.size(), kind);
  for (Value input : inputs) added.add_input(logical(input));
  std::vector<Value> values;
  for (const Shape& result : results) {
    values.push_back(add(result));
    added.add_output(logical(values.back()));
  }
  for (auto& [name, value] : attributes) added.set_attr(name, std::move(value));
  if (has_data_format(kind))
    added.set_attr(Attr::data_format, std::string(variant_.order == Order::ncx ? "NCX" : "NXC"));
  ops_.push_back(std::move(added));
  return values;
}

logical_tensor Net::logical(Value value) const {
  return {static_cast<uint64_t>(value), shape(value).dtype, shape(value).stored(), Layout::strided};
}

Result<graph> Net::build() const {
  graph made;
  for (const partita::op& o : ops_) PT_TRY(made.add_op(o));
  // What is read inside, too, is a result where an End says so.
  for (Value output : outputs_) {
    partita::op end(ops_.size() + static_cast<size_t>(output), OpKind::End);
    end.add_input(logical(output));
    PT_TRY(made.add_op(end));
  }
  PT_TRY(made.finalize());
  return made;
}

Attributes pool_attributes(const Window& window, bool average) {
  const auto pads = window.each_axis(window.pad);
  Attributes attributes = {{Attr::kernel, window.each_axis(window.kernel)},
                           {Attr::strides, window.each_axis(window.stride)},
                           {Attr::pads_begin, pads},
                           {Attr::pads_end, pads}};
  if (average) attributes.emplace_back(Attr::exclude_pad, !window.counts_padding);
  return attributes;
}

}  // namespace partita::bench
