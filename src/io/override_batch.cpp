// SPDX-License-Identifier: Apache-2.0
// Which inputs carry the batch: a walk from the results backwards, asking each operator about its ports.
#include <set>

#include "src/base/check.hpp"
#include "src/io/graph_links.hpp"
#include "src/io/override_shapes.hpp"
#include "src/ir/op_def.hpp"

namespace partita {
namespace {

using enum OpKind;

bool same_batch(const logical_tensor& in, const logical_tensor& out) {
  return in.rank() > 0 && out.rank() > 0 && in.rank() == out.rank() && in.dims[0] == out.dims[0];
}

int64_t int_at(const op& o, Attr attr, size_t i, int64_t fallback) {
  const auto* list = std::get_if<std::vector<int64_t>>(&o.attr(attr));
  return list && i < list->size() ? (*list)[i] : fallback;
}

bool reduces_axis_0(const op& o) {
  const auto* axes = std::get_if<std::vector<int64_t>>(&o.attr(Attr::axes));
  if (!axes) return true;
  for (int64_t axis : *axes) {
    if (axis == 0 || axis == -o.inputs[0].rank()) return true;
  }
  return false;
}

enum class Role {
  none,       ///< weights, statistics, lists
  batch,      ///< dim 0 is the batch
  as_result,  ///< dim 0 is the batch where it is the result's
};

/// Operators that treat every element alike: the operand has to reach the result's dim 0.
Role elementwise_role(const op& o, size_t port) {
  const logical_tensor &in = o.inputs[port], &out = o.outputs[0];
  // A dim of one is a broadcast operand's, unless the whole shape is the result's.
  return same_batch(in, out) && (out.dims[0] != 1 || in.dims == out.dims) ? Role::as_result : Role::none;
}

Role role_of(const op& o, size_t port) {
  if (o.outputs.empty()) return Role::none;
  const bool first = port == 0;
  switch (o.kind) {
    case ConvolutionBackwardData:
    case ConvolutionBackwardWeights:
    case ConvTransposeBackwardWeights:
      return Role::none;  // their attributes fix the batch
    case Convolution: case ConvTranspose: case ConvTransposeBackwardData:
    case AvgPool: case MaxPool: case AvgPoolBackward: case Interpolate:
    case BatchNormInference: case BatchNormForwardTraining: case LayerNorm: case GroupNorm: case RMSNorm:
    case BiasAdd: case PReLU:
      return first ? Role::batch : Role::none;
    case MaxPoolBackward: case InterpolateBackward: case BatchNormTrainingBackward: case LayerNormBackward:
      return port < 2 ? Role::batch : Role::none;
    case PReLUBackward:
      return port == 1 ? Role::none : Role::batch;
    case MatMul:
      if (first) return o.inputs[0].rank() > 1 ? Role::batch : Role::none;
      return o.inputs[port].rank() > 2 && same_batch(o.inputs[port], o.outputs[0]) ? Role::batch : Role::none;
    case ReduceL1: case ReduceL2: case ReduceMax: case ReduceMean: case ReduceMin: case ReduceProd: case ReduceSum:
      return first && !reduces_axis_0(o) ? Role::as_result : Role::none;
    case StaticReshape:
      return o.inputs[0].rank() > 0 && o.outputs[0].rank() > 0 && o.inputs[0].dims[0] == o.outputs[0].dims[0]
                 ? Role::as_result
                 : Role::none;
    case StaticTranspose:
      return int_at(o, Attr::order, 0, -1) == 0 ? Role::as_result : Role::none;
    case Quantize: case Dequantize: case DynamicQuantize: case DynamicDequantize: case Dropout:
      return first ? Role::as_result : Role::none;
    default:
      return elementwise_role(o, port);
  }
}

void set_entry(op& o, Attr attr, int64_t before, int64_t batch) {
  const auto* list = std::get_if<std::vector<int64_t>>(&o.attr(attr));
  if (!list || list->empty() || (*list)[0] != before) return;
  std::vector<int64_t> changed = *list;
  changed[0] = batch;
  o.set_attr(attr, std::move(changed));
}

}  // namespace

Result<bool> set_batch(std::vector<op>& ops, int64_t batch) {
  PT_ASSIGN(const GraphLinks links, link_ops(ops));
  std::set<uint64_t> carrying;
  for (auto it = links.order.rbegin(); it != links.order.rend(); ++it) {
    op& o = ops[*it];
    const bool result_carries =
        !o.outputs.empty() && (!links.consumed.count(o.outputs[0].id) || carrying.count(o.outputs[0].id));
    for (size_t port = 0; port < o.inputs.size(); ++port) {
      const logical_tensor& t = o.inputs[port];
      const Role role = role_of(o, port);
      if (t.rank() == 0 || role == Role::none || (role == Role::as_result && !result_carries)) continue;
      carrying.insert(t.id);
      if (port != 0) continue;
      if (o.kind == StaticReshape) set_entry(o, Attr::shape, t.dims[0], batch);
      if (o.kind == AvgPoolBackward) set_entry(o, Attr::src_shape, t.dims[0], batch);
    }
  }
  bool any = false;
  for (uint64_t id : carrying) {
    if (!links.from_outside(id)) continue;
    any = true;
    each_use(ops, id, [&](logical_tensor& t) {
      const logical_tensor before = t;
      t.dims[0] = batch;
      if (t.layout == Layout::strided) t.strides = strides_like(before, t.dims);
    });
  }
  return any;
}

}  // namespace partita
