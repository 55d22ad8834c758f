// SPDX-License-Identifier: Apache-2.0
// Operator by operator, each through its reference.
#include "src/harness/reference_run.hpp"

#include "kernels/ref/reference.hpp"
#include "src/base/check.hpp"
#include "src/base/dtype.hpp"
#include "src/base/text.hpp"
#include "src/ir/op_def.hpp"

namespace partita {
namespace {

TensorDesc desc_of(const logical_tensor& t) { return {t.dtype, t.dims, t.strides, 0}; }

Problem problem_of(const Subgraph& g, const SubOp& o) {
  Problem p;
  p.step = op_def(o.kind).step;
  p.op = o.kind;
  p.attrs = o.attrs;
  for (int v : o.in) p.in.push_back(desc_of(g.values[static_cast<size_t>(v)].desc));
  for (int v : o.out) p.out.push_back(desc_of(g.values[static_cast<size_t>(v)].desc));
  return p;
}

/// The operator after which no one reads value `v` any more.
std::vector<size_t> last_readers(const Subgraph& g) {
  std::vector<size_t> last(g.values.size(), 0);
  for (size_t i = 0; i < g.ops.size(); ++i)
    for (int v : g.ops[i].in) last[static_cast<size_t>(v)] = i;
  return last;
}

void widen_inner_values(Subgraph& g) {
  for (SubValue& value : g.values)
    if (value.producer >= 0 && !value.output && is_floating(value.desc.dtype))
      value.desc = logical_tensor(value.desc.id, Dtype::f32, value.desc.dims);
}

}  // namespace

Result<Tensors> run_reference(const Partition& partition, const Given& given, const Tensors& inputs,
                              InnerValues inner) {
  PT_ASSIGN(Specialized specialized, specialize(partition, given));
  if (inner == InnerValues::wide) widen_inner_values(specialized.graph);
  const Subgraph& g = specialized.graph;
  const std::vector<size_t> last = last_readers(g);
  std::vector<Storage> made(g.values.size());
  auto data_of = [&](int v) -> void* {
    const SubValue& value = g.values[static_cast<size_t>(v)];
    return value.producer < 0 ? inputs.at(value.desc.id).data.get() : made[static_cast<size_t>(v)].data.get();
  };
  for (size_t i = 0; i < g.ops.size(); ++i) {
    const SubOp& o = g.ops[i];
    if (o.kind == OpKind::End) continue;
    std::vector<const void*> in;
    std::vector<void*> out;
    bool empty = true;
    for (int v : o.in) in.push_back(data_of(v));
    for (int v : o.out) {
      Storage& to = made[static_cast<size_t>(v)] = Storage(g.values[static_cast<size_t>(v)].desc);
      if (!to.data) return fail(Code::out_of_memory, str("no memory for the reference's tensor ", to.desc.id));
      out.push_back(to.data.get());
      empty = empty && to.bytes == 0;
    }
    const Reference reference = reference_of(o.kind);
    if (!reference) return fail(Code::unimplemented, str("no reference for ", name_of(o.kind)));
    if (!empty) PT_TRY(reference(problem_of(g, o), {in, out, nullptr}).at(str("reference of op ", o.id)));
    for (int v : o.in)
      if (last[static_cast<size_t>(v)] == i && !g.values[static_cast<size_t>(v)].output)
        made[static_cast<size_t>(v)] = Storage();
  }
  Tensors outputs;
  for (int v : g.outputs) outputs[g.values[static_cast<size_t>(v)].desc.id] = std::move(made[static_cast<size_t>(v)]);
  return outputs;
}

}  // namespace partita
