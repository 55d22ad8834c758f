// SPDX-License-Identifier: Apache-2.0
// Operator by operator, each through its reference.
#include "src/harness/reference_run.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/ref/reference.hpp"
#include "src/base/check.hpp"
#include "src/base/dtype.hpp"
#include "src/base/hash.hpp"
#include "src/base/text.hpp"
#include "src/base/threads.hpp"
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

double root_mean_square(const void* data, Dtype dtype, int64_t n) {
  double sum = 0;
  int64_t finite = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double x = load_as_double(data, dtype, i);
    if (!std::isfinite(x)) continue;
    sum += x * x;
    ++finite;
  }
  return finite > 0 ? std::sqrt(sum / static_cast<double>(finite)) : 0;
}

/// Whether sums are made of what an operator reads there.
bool adds_up(OpKind kind, size_t port) {
  const StepTraits& step = traits_of(op_def(kind).step);
  const bool chooses = kind == OpKind::MaxPoolBackward && static_cast<int>(port) != step.front_port;
  return step.adds_up && !chooses;
}

/// What operator `o` reads at `port`, with errors; without data where it is exact.
Result<Storage> with_errors(const SmallErrors& errors, const SubOp& o, size_t port, const SubValue& value,
                            const void* data) {
  const Dtype dtype = value.desc.dtype;
  const bool exact = value.producer < 0 && !adds_up(o.kind, port);
  if (errors.share == 0 || exact || !is_floating(dtype)) return Storage();
  Storage moved(value.desc);
  if (!moved.data) return fail(Code::out_of_memory, str("no memory for errors in tensor ", value.desc.id));
  const auto n = static_cast<int64_t>(moved.bytes * 8 / static_cast<size_t>(bits_of(dtype)));
  const bool quantized = port == 0 && (o.kind == OpKind::Quantize || o.kind == OpKind::DynamicQuantize);
  const double least = quantized ? root_mean_square(data, dtype, n) : 0;
  // Element by element as they lie in memory: gaps do no harm, and one that repeats moves once.
  parallel_for(n, 8, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const double x = load_as_double(data, dtype, i);
      const bool up = Hasher().add(errors.seed).add(value.desc.id).add(static_cast<uint64_t>(i)).value() >> 63;
      const double error = errors.share * std::max(std::fabs(x), least);
      store_from_double(moved.data.get(), dtype, i, up ? x + error : x - error);
    }
  });
  return moved;
}

}  // namespace

Result<Tensors> run_reference(const Partition& partition, const Given& given, const Tensors& inputs,
                              const ReferenceRun& how) {
  PT_ASSIGN(Specialized specialized, specialize(partition, given));
  if (how.inner == InnerValues::wide) widen_inner_values(specialized.graph);
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
    std::vector<Storage> moved;  // inputs with errors
    for (int v : o.in) {
      const void* data = data_of(v);
      PT_ASSIGN(Storage with, with_errors(how.errors, o, in.size(), g.values[static_cast<size_t>(v)], data));
      in.push_back(with.data ? with.data.get() : data);
      moved.push_back(std::move(with));
    }
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
