// SPDX-License-Identifier: Apache-2.0
// Which tensors carry the batch: walks from the results backwards, asking each operator about its ports.
#include <set>

#include "src/base/check.hpp"
#include "src/base/pool_axes.hpp"
#include "src/base/scale_axes.hpp"
#include "src/io/graph_links.hpp"
#include "src/io/override_shapes.hpp"
#include "src/ir/op_def.hpp"

namespace partita {
namespace {

using enum OpKind;

bool is_constant(const logical_tensor& t) { return t.property == Property::constant; }

bool one_source(const op& o) { return o.inputs.size() == 1 || o.kind == Dequantize || o.kind == DynamicDequantize; }

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

/// Rows of the left matrix and of the right one are multiplied with each other: x^T * dy, the gradient of weights.
bool adds_up_rows(const op& o) {
  const auto set = [&](Attr attr) {
    const bool* flag = std::get_if<bool>(&o.attr(attr));
    return flag && *flag;
  };
  return o.inputs[0].rank() == 2 && o.inputs[1].rank() == 2 && set(Attr::transpose_a) && !set(Attr::transpose_b);
}

enum class Role {
  none,       ///< weights, statistics, lists
  batch,      ///< dim 0 is the batch, that of the result as well
  summed,     ///< dim 0 is the batch, over which the result adds up
  as_result,  ///< dim 0 is the batch where it is the result's
  as_others,  ///< dim 0 is the batch where it is that of another such input; the result adds up over it
};

/// Operators that treat every element alike: the operand has to reach the result's dim 0.
Role elementwise_role(const op& o, size_t port) {
  const logical_tensor &in = o.inputs[port], &out = o.outputs[0];
  // A dim of one is a broadcast operand's, unless the whole shape is the result's.
  const bool broadcast = out.dims.empty() || (out.dims[0] == 1 && (in.dims != out.dims || is_constant(in)));
  return same_batch(in, out) && !broadcast ? Role::as_result : Role::none;
}

/// Trained numbers that broadcast over the batch, unless there is one for each of its items.
Role parameter_role(const op& o, size_t port) {
  return o.inputs[port].rank() > 0 && o.inputs[port].dims[0] != 1 ? elementwise_role(o, port) : Role::none;
}

/// Scales and zero points that differ from item to item.
Role scales_role(const op& o, size_t port) {
  const logical_tensor &src = o.inputs[0], &in = o.inputs[port];
  if (!src.shape_known() || src.rank() == 0 || in.rank() == 0) return Role::none;
  const ScaleAxes axes = scale_axes(Attrs(o.attrs()), src.dims);
  const bool by_item = axes.dims[0] == src.dims[0] && src.dims[0] != 1 && in.dims[0] == src.dims[0];
  return by_item ? Role::as_result : Role::none;
}

bool has_batch_axis(const op& o) { return pool_axes(Attrs(o.attrs()), o.inputs[0].rank()).batch; }

Role role_of(const op& o, size_t port) {
  if (o.outputs.empty()) return Role::none;
  const bool first = port == 0;
  switch (o.kind) {
    case ConvolutionBackwardWeights:
    case ConvTransposeBackwardWeights: return port < 2 ? Role::summed : Role::none;
    case BiasAddBackward: return Role::summed;
    case AvgPool:
    case MaxPool:
    case AvgPoolBackward:
    case AdaptiveAvgPool:
    case AdaptiveAvgPoolBackward: return first && has_batch_axis(o) ? Role::batch : Role::none;
    case Convolution:
    case ConvTranspose:
    case ConvolutionBackwardData:
    case ConvTransposeBackwardData:
    case Interpolate:
    case BatchNormInference:
    case BatchNormForwardTraining:
    case LayerNorm:
    case GroupNorm:
    case RMSNorm:
    case BiasAdd: return first ? Role::batch : Role::none;
    case MaxPoolBackward:
    case MaxPoolIndicesBackward: return port < 2 && has_batch_axis(o) ? Role::batch : Role::none;
    case InterpolateBackward:
    case BatchNormTrainingBackward: return port < 2 ? Role::batch : Role::none;
    case LayerNormBackward: return port < 4 ? Role::batch : Role::none;  // mean and variance are those of each row
    case PReLU:
    case PReLUBackward:
      // A slope of the full shape has one entry an element.
      return port != 1 ? Role::batch : parameter_role(o, port);
    case MatMul:
      if (port == 2) return parameter_role(o, port);
      if (adds_up_rows(o)) return Role::as_others;
      if (first) return o.inputs[0].rank() > 1 ? Role::batch : Role::none;
      return in_batch_of_matrices(o) ? Role::batch : Role::none;
    case ReduceL1:
    case ReduceL2:
    case ReduceMax:
    case ReduceMean:
    case ReduceMin:
    case ReduceProd:
    case ReduceSum: return first && !reduces_axis_0(o) ? Role::as_result : Role::none;
    case StaticReshape:
      return o.inputs[0].rank() > 0 && o.outputs[0].rank() > 0 && o.inputs[0].dims[0] == o.outputs[0].dims[0]
                 ? Role::as_result
                 : Role::none;
    case StaticTranspose: return int_at(o, Attr::order, 0, -1) == 0 ? Role::as_result : Role::none;
    case DynamicQuantize:
    case DynamicDequantize: return first ? Role::as_result : scales_role(o, port);
    case Quantize:
    case Dequantize:
    case Dropout: return first ? Role::as_result : Role::none;
    default: return elementwise_role(o, port);
  }
}

/// What is read as weights, a bias or a factor of a norm somewhere, itself or behind operators with one source. An
/// update of weights computes with them like with any other numbers.
std::set<uint64_t> find_parameters(const std::vector<op>& ops, const GraphLinks& links) {
  std::set<uint64_t> parameters;
  for (auto it = links.order.rbegin(); it != links.order.rend(); ++it) {
    const op& o = ops[*it];
    const OpDef& def = op_def(o.kind);
    if (o.outputs.empty()) continue;
    for (size_t port = 0; port < o.inputs.size() && port < def.inputs.size(); ++port) {
      const std::string_view name = def.inputs[port].name;
      const bool trained = name == "weights" || name == "bias" || name == "gamma" || name == "beta" || name == "slope";
      const bool prepared = port == 0 && one_source(o) && parameters.count(o.outputs[0].id);
      if ((trained && role_of(o, port) == Role::none) || prepared) parameters.insert(o.inputs[port].id);
    }
  }
  return parameters;
}

void set_entry(op& o, Attr attr, int64_t before, int64_t batch) {
  const auto* list = std::get_if<std::vector<int64_t>>(&o.attr(attr));
  if (!list || list->empty() || (*list)[0] != before) return;
  std::vector<int64_t> changed = *list;
  changed[0] = batch;
  o.set_attr(attr, std::move(changed));
}

class Carriers {
 public:
  Carriers(const std::vector<op>& ops, const GraphLinks& links)
      : ops_(ops), links_(links), parameters_(find_parameters(ops, links)) {
    find_possible();
    // What a walk finds tells the next one more of tensors that are read together.
    while (walk()) {
    }
  }

  /// Tensors whose dim 0 is the batch.
  const std::set<uint64_t>& all() const { return carrying_; }

 private:
  bool claims(const op& o, size_t port) const {
    const Role role = role_of(o, port);
    return role == Role::batch || role == Role::as_result;
  }

  /// Tensors whose dim 0 can be the batch: all that an operator makes only of such.
  void find_possible() {
    for (size_t i : links_.order) {
      const op& o = ops_[i];
      bool some = false, all = true;
      for (size_t port = 0; port < o.inputs.size(); ++port) {
        const logical_tensor& t = o.inputs[port];
        if (links_.from_outside(t.id) && t.rank() > 0) possible_.insert(t.id);
        if (!claims(o, port)) continue;
        some = true;
        all &= possible_.count(t.id) > 0 && !(role_of(o, port) == Role::as_result && parameters_.count(t.id));
      }
      if (!some || !all || o.outputs.empty()) continue;
      possible_.insert(o.outputs[0].id);
      if (o.kind == MaxPool && o.outputs.size() > 1) possible_.insert(o.outputs[1].id);
    }
  }

  /// From the results backwards: a tensor carries the batch where a reader of it says so. True where some were found.
  bool walk() {
    const size_t before = carrying_.size();
    for (auto it = links_.order.rbegin(); it != links_.order.rend(); ++it) {
      const op& o = ops_[*it];
      if (o.outputs.empty()) continue;
      const uint64_t result = o.outputs[0].id;
      const bool result_carries =
          possible_.count(result) && (!links_.consumed.count(result) || carrying_.count(result));
      bool another_carries = false;
      for (size_t port = 0; port < o.inputs.size(); ++port)
        another_carries |= role_of(o, port) == Role::as_others && carrying_.count(o.inputs[port].id);
      for (size_t port = 0; port < o.inputs.size(); ++port) {
        const uint64_t id = o.inputs[port].id;
        if (!possible_.count(id)) continue;
        switch (role_of(o, port)) {
          case Role::none: continue;
          case Role::as_result:
            if (!result_carries || parameters_.count(id)) continue;
            break;
          case Role::as_others:
            if (!another_carries || parameters_.count(id)) continue;
            break;
          case Role::batch:
          case Role::summed: break;
        }
        carrying_.insert(id);
        if (claims(o, port) && possible_.count(result)) carrying_.insert(result);
      }
    }
    return carrying_.size() > before;
  }

  const std::vector<op>& ops_;
  const GraphLinks& links_;
  const std::set<uint64_t> parameters_;
  std::set<uint64_t> possible_, carrying_;
};

/// Shape attributes that repeat the batch.
void set_attributes(op& o, const std::set<uint64_t>& carrying, int64_t batch) {
  if (o.inputs.empty() || !carrying.count(o.inputs[0].id)) return;
  const int64_t before = o.inputs[0].dims[0];
  if (o.kind == StaticReshape && role_of(o, 0) == Role::as_result) set_entry(o, Attr::shape, before, batch);
  for (Attr shape : {Attr::src_shape, Attr::dst_shape})
    if (find_attr(op_def(o.kind), shape)) set_entry(o, shape, before, batch);
}

}  // namespace

Result<bool> set_batch(std::vector<op>& ops, int64_t batch) {
  PT_ASSIGN(const GraphLinks links, link_ops(ops));
  const std::set<uint64_t> carrying = Carriers(ops, links).all();
  for (op& o : ops) set_attributes(o, carrying, batch);
  bool any = false;
  for (uint64_t id : carrying) {
    any |= links.from_outside(id);
    // Results, too: shapes of some gradients are not inferred but given.
    each_use(ops, id, [&](logical_tensor& t) {
      if (t.rank() == 0) return;
      const logical_tensor before = t;
      t.dims[0] = batch;
      if (t.layout == Layout::strided) t.strides = strides_like(before, t.dims);
    });
  }
  return any;
}

}  // namespace partita
