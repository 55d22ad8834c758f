// SPDX-License-Identifier: Apache-2.0
// From a partition and concrete tensors to a subgraph; entry: specialize().
#include "passes/specialize.hpp"

#include <optional>
#include <unordered_map>

#include "passes/layout.hpp"
#include "src/base/addressable.hpp"
#include "src/base/check.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "src/ir/op_def.hpp"
#include "src/ir/shape_context.hpp"
#include "src/ir/tensor_rules.hpp"
#include "src/ir/verify_op.hpp"

namespace partita {
namespace {

const logical_tensor* find(std::span<const logical_tensor> list, uint64_t id) {
  for (const logical_tensor& t : list)
    if (t.id == id) return &t;
  return nullptr;
}

bool is_settled(const logical_tensor& t) { return t.layout == Layout::strided && t.strides_known(); }

void settle_layout(logical_tensor& t, const Dims& strides) {
  t.layout = Layout::strided;
  t.strides = strides;
}

Status check_given(const logical_tensor& port, const logical_tensor& t, bool input) {
  const auto refused = [&](auto... why) {
    return fail(Code::invalid_arguments,
                str(input ? "input" : "output", " tensor ", t.id, " (", t.text(), "): ", why...));
  };
  if (const std::string fault = rank_fault(t); !fault.empty()) return refused(fault);
  if (t.dtype == Dtype::undef) return refused("the data type must be set");
  if (t.dtype != port.dtype) return refused("the partition's port has type ", name_of(port.dtype));
  if (t.layout == Layout::undef) return refused("the layout must be strided or any");
  if (t.layout == Layout::opaque) return refused("layout id ", t.layout_id, " was not made by Partita");
  if (input && !t.shape_known()) return refused("every dim of an input must be known");
  if (t.shape_known() && !addressable(t.dims, t.strides_known() ? t.strides : dense_strides(t.dims)))
    return refused("a dim or stride is negative, or the tensor is larger than what can be addressed",
                   t.strides_known() ? str(" (strides ", text_of(t.strides), ")") : "");
  if (const std::string fault = host_scalar_fault(t); !fault.empty()) return refused(fault);
  return {};
}

class Specializer {
 public:
  Specializer(const Partition& partition, const Given& given) : p_(partition), given_(given) {}

  Result<Specialized> run() {
    PT_TRY(add_values());
    readers_.emplace(p_, graph());
    for (size_t i = 0; i < p_.ops.size(); ++i)
      if (Status s = add_op(i); !s.ok()) return std::move(s).at(place_of(p_.ops[i]));
    PT_TRY(check_sizes());
    return std::move(result_);
  }

 private:
  Subgraph& graph() { return result_.graph; }

  int value_of(const logical_tensor& t) {
    const auto [found, added] = by_id_.try_emplace(t.id, static_cast<int>(graph().values.size()));
    if (added) graph().values.push_back({t, -1, false});
    return found->second;
  }

  /// Ports first, with what the caller gave for them.
  Status add_values() {
    for (const logical_tensor& port : p_.inputs) {
      if (by_id_.count(port.id)) continue;
      const logical_tensor* t = find(given_.inputs, port.id);
      if (!t)
        return fail(Code::invalid_arguments,
                    str("no tensor is given for input port ", port.id, " (", port.text(), ")"));
      PT_TRY(check_given(port, *t, true));
      const int v = value_of(*t);
      logical_tensor& desc = graph().values[static_cast<size_t>(v)].desc;
      if (!is_settled(desc)) settle_layout(desc, dense_strides(desc.dims));
      graph().inputs.push_back(v);
    }
    for (const logical_tensor& port : p_.outputs) {
      const logical_tensor* t = find(given_.outputs, port.id);
      if (!t)
        return fail(Code::invalid_arguments,
                    str("no tensor is given for output port ", port.id, " (", port.text(), ")"));
      PT_TRY(check_given(port, *t, false));
      const int v = value_of(*t);
      graph().values[static_cast<size_t>(v)].output = true;
      graph().outputs.push_back(v);
    }
    return {};
  }

  Status add_op(size_t index) {
    const op& o = p_.ops[index];
    SubOp made{.id = o.id, .kind = o.kind, .name = o.name, .text = {}, .attrs = p_.attrs[index], .in = {}, .out = {}};
    for (const auto& t : o.inputs) made.in.push_back(value_of(t));
    for (const auto& t : o.outputs) {
      made.out.push_back(value_of(t));
      graph().values[static_cast<size_t>(made.out.back())].producer = static_cast<int>(graph().ops.size());
    }
    for (int v : made.in)
      if (!graph().values[static_cast<size_t>(v)].desc.shape_known()) return {};  // waits for a shape input further up
    const OpDef& def = op_def(o.kind);
    bool known = true;
    PT_TRY(read_value_inputs(def, o, made, known));
    if (!known) return {};
    if (def.infer) PT_TRY(infer(def, made));
    graph().ops.push_back(std::move(made));
    return {};
  }

  /// Moves the content of shape inputs into attributes; `known` is false where it must be waited for.
  Status read_value_inputs(const OpDef& def, const op& o, SubOp& made, bool& known) {
    for (size_t port = 0; port < made.in.size() && port < def.inputs.size(); ++port) {
      const PortDef& port_def = def.inputs[port];
      if (port_def.value_of == Attr{0}) continue;
      const logical_tensor& t = graph().values[static_cast<size_t>(made.in[port])].desc;
      std::vector<int64_t> content;
      if (const tensor* constant = find_constant(t.id); constant != nullptr) {
        for (int64_t i = 0; i < t.elements(); ++i) content.push_back(shape_entry(t, constant->data, i));
      } else if (!content_from_output(port_def.value_of, made, content)) {
        result_.waits_for.push_back(t.id);
        known = false;
        continue;
      } else {
        graph().checks.push_back({t.id, content, str(place_of(o), ": `", port_def.name, "`")});
      }
      made.attrs.set(port_def.value_of, std::move(content));
    }
    return {};
  }

  const tensor* find_constant(uint64_t id) const {
    for (const tensor& c : given_.constants)
      if (c.desc.id == id && c.data != nullptr) return &c;
    return nullptr;
  }

  /// A given output shape tells what the whole-shape inputs must say (not axes or sizes).
  bool content_from_output(Attr attr, const SubOp& made, std::vector<int64_t>& content) {
    if (attr != Attr::src_shape && attr != Attr::dst_shape && attr != Attr::weights_shape) return false;
    const logical_tensor& out = graph().values[static_cast<size_t>(made.out[0])].desc;
    if (!out.shape_known()) return false;
    content.assign(out.dims.begin(), out.dims.end());
    return true;
  }

  Status infer(const OpDef& def, SubOp& made) {
    std::vector<logical_tensor> in, out;
    for (int v : made.in) in.push_back(graph().values[static_cast<size_t>(v)].desc);
    for (int v : made.out) out.push_back(graph().values[static_cast<size_t>(v)].desc);
    PT_TRY(infer_shapes(def, made.attrs, in, out));
    for (size_t i = 0; i < made.out.size(); ++i) {
      SubValue& value = graph().values[static_cast<size_t>(made.out[i])];
      value.desc.rank_known = true;
      value.desc.dims = out[i].dims;
      // inner tensors lie as is best, whatever the graph says
      if (!value.output || !is_settled(value.desc))
        settle_layout(value.desc, open_strides(graph(), made, i, *readers_));
    }
    return {};
  }

  Status check_sizes() {
    for (const SubValue& value : graph().values)
      if (value.desc.shape_known() && !addressable(value.desc.dims, value.desc.strides))
        return fail(Code::invalid_shape,
                    str("tensor ", value.desc.id, " (", value.desc.text(), ") is larger than what can be addressed"));
    for (int v : graph().outputs) {
      const logical_tensor& t = graph().values[static_cast<size_t>(v)].desc;
      if (const std::string fault = overlap_fault(t); !fault.empty())
        return fail(Code::invalid_arguments, str("output tensor ", t.id, " (", t.text(), "): ", fault));
    }
    return {};
  }

  const Partition& p_;
  const Given& given_;
  Specialized result_;
  std::unordered_map<uint64_t, int> by_id_;
  std::optional<TensorReaders> readers_;  ///< there once the inputs are
};

}  // namespace

Result<Specialized> specialize(const Partition& partition, const Given& given) {
  return Specializer(partition, given).run();
}

}  // namespace partita
