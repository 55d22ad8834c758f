// SPDX-License-Identifier: Apache-2.0
// Which inputs carry the batch: a walk from the results backwards, asking each operator about its ports.
#include <set>

#include "src/base/check.hpp"
#include "src/base/pool_axes.hpp"
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

bool in_batch_of_matrices(const op& o) { return o.inputs[1].rank() > 2 && same_batch(o.inputs[1], o.outputs[0]); }

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

bool has_batch_axis(const op& o) { return pool_axes(Attrs(o.attrs()), o.inputs[0].rank()).batch; }

Role role_of(const op& o, size_t port) {
  if (o.outputs.empty()) return Role::none;
  const bool first = port == 0;
  switch (o.kind) {
    case ConvolutionBackwardData:
    case ConvolutionBackwardWeights:
    case ConvTransposeBackwardWeights:
      return Role::none;  // their attributes fix the batch
    case AvgPool: case MaxPool: case AvgPoolBackward: case AdaptiveAvgPool: case AdaptiveAvgPoolBackward:
      return first && has_batch_axis(o) ? Role::batch : Role::none;
    case Convolution: case ConvTranspose: case ConvTransposeBackwardData: case Interpolate:
    case BatchNormInference: case BatchNormForwardTraining: case LayerNorm: case GroupNorm: case RMSNorm:
    case BiasAdd:
      return first ? Role::batch : Role::none;
    case MaxPoolBackward: case MaxPoolIndicesBackward:
      return port < 2 && has_batch_axis(o) ? Role::batch : Role::none;
    case InterpolateBackward: case BatchNormTrainingBackward:
      return port < 2 ? Role::batch : Role::none;
    case LayerNormBackward:
      return port < 4 ? Role::batch : Role::none;  // mean and variance are those of each row
    case PReLU: case PReLUBackward:
      // A slope of the full shape has one entry an element.
      return port != 1 || o.inputs[1].dims == o.inputs[0].dims ? Role::batch : Role::none;
    case MatMul:
      if (first) return o.inputs[0].rank() > 1 ? Role::batch : Role::none;
      if (port == 1) return in_batch_of_matrices(o) ? Role::batch : Role::none;
      return elementwise_role(o, port);
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

/// Tensors whose dim 0 can be the batch: all that an operator makes only of such.
std::set<uint64_t> possible_carriers(const std::vector<op>& ops, const GraphLinks& links) {
  std::set<uint64_t> possible;
  for (size_t i : links.order) {
    bool some = false, all = true;
    for (size_t port = 0; port < ops[i].inputs.size(); ++port) {
      const logical_tensor& t = ops[i].inputs[port];
      if (links.from_outside(t.id) && t.rank() > 0) possible.insert(t.id);
      if (role_of(ops[i], port) == Role::none) continue;
      some = true;
      all &= possible.count(t.id) > 0;
    }
    if (!some || !all || ops[i].outputs.empty()) continue;
    possible.insert(ops[i].outputs[0].id);
    if (ops[i].kind == MaxPool && ops[i].outputs.size() > 1) possible.insert(ops[i].outputs[1].id);
  }
  return possible;
}

/// From the results backwards: a tensor carries the batch where a reader of it says so. Shape attributes that repeat
/// the batch are changed on the way.
std::set<uint64_t> find_carriers(std::vector<op>& ops, const GraphLinks& links, int64_t batch) {
  const std::set<uint64_t> possible = possible_carriers(ops, links);
  std::set<uint64_t> carrying;
  for (auto it = links.order.rbegin(); it != links.order.rend(); ++it) {
    op& o = ops[*it];
    if (o.outputs.empty()) continue;
    const uint64_t result = o.outputs[0].id;
    const bool result_carries = possible.count(result) && (!links.consumed.count(result) || carrying.count(result));
    for (size_t port = 0; port < o.inputs.size(); ++port) {
      const logical_tensor& t = o.inputs[port];
      const Role role = role_of(o, port);
      if (!possible.count(t.id) || role == Role::none || (role == Role::as_result && !result_carries)) continue;
      carrying.insert(t.id);
      if (port != 0) continue;
      if (o.kind == StaticReshape) set_entry(o, Attr::shape, t.dims[0], batch);
      if (find_attr(op_def(o.kind), Attr::src_shape)) set_entry(o, Attr::src_shape, t.dims[0], batch);
    }
  }
  return carrying;
}

}  // namespace

Result<bool> set_batch(std::vector<op>& ops, int64_t batch) {
  PT_ASSIGN(const GraphLinks links, link_ops(ops));
  const std::set<uint64_t> carrying = find_carriers(ops, links, batch);
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
