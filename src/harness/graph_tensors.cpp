// SPDX-License-Identifier: Apache-2.0
// Allocation and filling of tensors, compilation of partitions for them.
#include "src/harness/graph_tensors.hpp"

#include <algorithm>
#include <chrono>

#include "src/base/check.hpp"
#include "src/base/text.hpp"
#include "src/harness/fill.hpp"

namespace partita {
namespace {

Status no_memory(const logical_tensor& t) {
  return fail(Code::out_of_memory, str("no memory for tensor ", t.id, " (", t.text(), ")"));
}

/// Frameworks leave the layout of results open; compilation wants that said.
logical_tensor with_open_layout(logical_tensor t) {
  if (t.layout == Layout::undef) t.layout = Layout::any;
  return t;
}

}  // namespace

double now_ms() {
  using namespace std::chrono;
  return duration<double, std::milli>(steady_clock::now().time_since_epoch()).count();
}

size_t BoundPartition::bytes() const {
  size_t sum = 0;
  for (const auto* side : {&inputs, &outputs})
    for (const tensor& t : *side) sum += t.desc.size_bytes();
  return sum;
}

Status GraphTensors::fill_inputs(uint64_t seed) {
  for (size_t v = 0; v < graph_.values.size(); ++v) {
    const Value& value = graph_.values[v];
    if (value.producer >= 0 && graph_.ops[static_cast<size_t>(value.producer)].kind != OpKind::Wildcard) continue;
    logical_tensor desc = value.desc;
    if (!desc.shape_known())
      return fail(Code::invalid_shape, str(value.producer < 0 ? "graph input " : "result of a Wildcard, tensor ",
                                           desc.id, " (", desc.text(), ") needs a known shape"));
    if (!desc.strides_known()) desc = logical_tensor(desc.id, desc.dtype, desc.dims, Layout::strided, desc.property);
    Storage storage(desc);
    if (!storage.data) return no_memory(desc);
    PT_TRY(fill_input(graph_, static_cast<int>(v), seed, storage));
    tensors_[desc.id] = std::move(storage);
    filled_.push_back(desc.id);
  }
  std::sort(filled_.begin(), filled_.end());
  return {};
}

std::vector<tensor> GraphTensors::known_content(const partition& p) const {
  std::vector<tensor> list;
  for (const logical_tensor& port : p.input_ports())
    if (port.dtype == Dtype::s32 && std::binary_search(filled_.begin(), filled_.end(), port.id))
      list.push_back(tensors_.at(port.id).as_tensor());
  return list;
}

bool GraphTensors::is_read(uint64_t id) const {
  return std::any_of(graph_.values.begin(), graph_.values.end(), [&](const Value& value) {
    return value.desc.id == id && std::any_of(value.uses.begin(), value.uses.end(), [&](const Use& use) {
             return graph_.ops[static_cast<size_t>(use.op)].kind != OpKind::End;
           });
  });
}

Result<BoundPartition> GraphTensors::bind(const partition& p, const engine& on, bool open) {
  BoundPartition bound;
  for (const logical_tensor& port : p.input_ports())
    bound.given_in.push_back(with_open_layout(tensors_.at(port.id).desc));
  for (const logical_tensor& port : p.output_ports()) {
    bound.given_out.push_back(with_open_layout(port));
    if (open && is_read(port.id)) bound.given_out.back().layout = Layout::any;
  }
  bound.constants = known_content(p);
  const double start = now_ms();
  PT_ASSIGN(bound.compiled, p.compile(bound.given_in, bound.given_out, on, bound.constants));
  bound.compile_ms = now_ms() - start;
  for (const logical_tensor& t : bound.compiled.inputs()) bound.inputs.push_back(tensors_.at(t.id).as_tensor());
  for (const logical_tensor& t : bound.compiled.outputs()) {
    if (!t.shape_known())
      return fail(Code::invalid_shape,
                  str("the shape of tensor ", t.id, " (", t.text(), ") is known only at execution"));
    Storage storage(t);
    if (!storage.data) return no_memory(t);
    bound.outputs.push_back(storage.as_tensor());
    tensors_[t.id] = std::move(storage);
  }
  return bound;
}

}  // namespace partita
