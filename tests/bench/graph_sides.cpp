// SPDX-License-Identifier: Apache-2.0
// Both sides of a graph as parts.
#include "tests/bench/graph_sides.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "kernels/pool_geometry.hpp"
#include "passes/specialize.hpp"
#include "src/base/check.hpp"
#include "src/base/text.hpp"
#include "src/base/threads.hpp"
#include "src/ir/op_def.hpp"
#include "tests/bench/one_primitive.hpp"

namespace partita::bench {
namespace {

/// What is known of tensors while parts are made in order.
class Known {
 public:
  Known(const FinalGraph& graph, const GraphInputs& inputs) : graph_(graph), inputs_(inputs) {
    for (const auto& [id, storage] : inputs) descs_[id] = storage.desc;
  }

  std::vector<logical_tensor> of_inputs(const partition& p) const {
    std::vector<logical_tensor> list;
    for (const logical_tensor& port : p.input_ports()) list.push_back(descs_.at(port.id));
    return list;
  }
  /// Content of shape inputs.
  std::vector<tensor> constants(const partition& p) const {
    std::vector<tensor> list;
    for (const logical_tensor& port : p.input_ports())
      if (const auto input = inputs_.find(port.id); port.dtype == Dtype::s32 && input != inputs_.end())
        list.push_back(input->second.as_tensor());
    return list;
  }
  Status add(const std::vector<logical_tensor>& made) {
    for (const logical_tensor& t : made) {
      if (!t.shape_known()) return fail(Code::invalid_shape, str("the shape of tensor ", t.id, " is not known"));
      descs_[t.id] = t;
    }
    return {};
  }
  bool is_inner(const logical_tensor& t) const { return !is_result(graph_, t.id); }
  /// Known before the first execution: a constant input, or made of such alone.
  bool is_constant(const logical_tensor& t) const {
    return made_once_.contains(t.id) || (inputs_.contains(t.id) && t.property == Property::constant);
  }
  void add_constants(const std::vector<logical_tensor>& made) {
    for (const logical_tensor& t : made) made_once_.insert(t.id);
  }

 private:
  const FinalGraph& graph_;
  const GraphInputs& inputs_;
  std::unordered_map<uint64_t, logical_tensor> descs_;
  std::unordered_set<uint64_t> made_once_;
};

/// False where the partition makes nothing and so need not run.
Result<bool> shall_run(const partition& p) {
  if (p.supported()) return true;
  if (!p.output_ports().empty()) return fail(Code::unimplemented, p.reason());
  return false;
}

Result<Part> compiled_part(const partition& p, const Known& known, const std::vector<logical_tensor>& outputs,
                           int threads) {
  const stream on(engine(), threads);
  PT_ASSIGN(const compiled_partition compiled, p.compile(known.of_inputs(p), outputs, on.on(), known.constants(p)));
  Part part{.in = compiled.inputs(),
            .out = compiled.outputs(),
            .may_share = compiled.inplace_ports(),
            .scratch_bytes = compiled.scratchpad_bytes(),
            .bind = {},
            .kernel = {}};
  for (const step_info& step : compiled.steps()) part.kernel += str(part.kernel.empty() ? "" : " + ", step.kernel);
  part.bind = [compiled, on](const Bound& bound) {
    const std::vector<const void*> in(bound.in.begin(), bound.in.end());
    return Result<Call>([compiled, on, in, out = bound.out, scratch = bound.scratch] {
      return compiled.execute_at(on, in, out, scratch);
    });
  };
  return part;
}

bool is_pooling(StepKind step) {
  return step == StepKind::pool_forward || step == StepKind::pool_backward || step == StepKind::max_pool_backward;
}

Problem problem_of(const Subgraph& graph, const Known& known) {
  const SubOp& o = graph.ops[0];
  Problem problem;
  problem.step = op_def(o.kind).step;
  problem.op = o.kind;
  problem.attrs = o.attrs;
  const auto desc_of = [&](int v) {
    const logical_tensor& t = graph.values[static_cast<size_t>(v)].desc;
    return TensorDesc{t.dtype, t.dims, t.strides, 0};
  };
  for (size_t k = 0; k < o.in.size(); ++k) {
    problem.in.push_back(desc_of(o.in[k]));
    if (known.is_constant(graph.values[static_cast<size_t>(o.in[k])].desc)) problem.constant_ports |= uint64_t{1} << k;
  }
  for (int v : o.out) problem.out.push_back(desc_of(v));
  return is_pooling(problem.step) ? with_batch_axis(std::move(problem)) : problem;
}

/// A primitive on its addresses, what it makes of constants made.
struct BoundRun {
  Run run;
  Bound bound;
  std::vector<const void*> in, packed;
  std::vector<Storage> packs;

  RunArgs args() const { return {in, bound.out, bound.scratch, packed}; }
};

Result<Call> bound_run(const Run& run, const Bound& bound) {
  auto made = std::make_shared<BoundRun>(BoundRun{run, bound, {bound.in.begin(), bound.in.end()}, {}, {}});
  for (const Pack& pack : run.packs) {
    made->packs.emplace_back(logical_tensor(0, Dtype::u8, Dims{static_cast<int64_t>(pack.bytes)}));
    made->packed.push_back(made->packs.back().data.get());
    PT_TRY(pack.make(made->in[pack.port], made->packs.back().data.get(), bound.scratch));
  }
  return Call([made] { return made->run.call(made->args()); });
}

/// A reshaped tensor without gaps is the same memory.
bool is_view(const Problem& problem, const Known& known, const logical_tensor& dst) {
  if (problem.op != OpKind::StaticReshape || !known.is_inner(dst)) return false;
  const TensorDesc &from = problem.in[0], &to = problem.out[0];
  const auto row_major = [](const TensorDesc& t) { return t.strides == logical_tensor(0, t.dtype, t.dims).strides; };
  return row_major(from) && row_major(to);
}

/// Axis 1 innermost.
void put_channels_last(logical_tensor& t) {
  const Dims dims = t.dims;
  t.layout = Layout::strided;
  t.strides = dims;
  int64_t stride = dims[1];
  t.strides[1] = 1;
  for (int axis = dims.size() - 1; axis >= 0; --axis) {
    if (axis == 1) continue;
    t.strides[axis] = stride;
    stride *= dims[axis];
  }
}

Result<std::vector<logical_tensor>> outputs_of(const partition& p, const Known& known, InnerOrder order) {
  std::vector<logical_tensor> outputs = p.output_ports();
  for (logical_tensor& t : outputs) {
    if (t.layout == Layout::undef) t.layout = Layout::any;
    const bool image = t.shape_known() && t.rank() >= 4;
    if (order == InnerOrder::channels_last && image && known.is_inner(t)) put_channels_last(t);
  }
  return outputs;
}

}  // namespace

Result<std::vector<Part>> partita_parts(const graph& g, const GraphInputs& inputs, int threads) {
  Known known(*g.form(), inputs);
  PT_ASSIGN(const std::vector<partition> groups, g.get_partitions(Policy::fusion));
  std::vector<Part> parts;
  for (const partition& p : groups) {
    PT_ASSIGN(const bool runs, shall_run(p));
    if (!runs) continue;
    std::vector<logical_tensor> outputs = p.output_ports();
    for (logical_tensor& t : outputs)
      if (t.layout == Layout::undef || known.is_inner(t)) t.layout = Layout::any;
    PT_ASSIGN(parts.emplace_back(), compiled_part(p, known, outputs, threads));
    PT_TRY(known.add(parts.back().out));
  }
  return parts;
}

Result<OneByOne> onednn_parts(const graph& g, const GraphInputs& inputs, int threads, InnerOrder order) {
  Known known(*g.form(), inputs);
  PT_ASSIGN(const std::vector<partition> groups, g.get_partitions(Policy::debug));
  const ThreadScope scope(threads);
  OneByOne made;
  for (const partition& p : groups) {
    PT_ASSIGN(const bool runs, shall_run(p));
    if (!runs) continue;
    PT_ASSIGN(const std::vector<logical_tensor> outputs, outputs_of(p, known, order));
    const std::vector<logical_tensor> given_in = known.of_inputs(p);
    const std::vector<tensor> constants = known.constants(p);
    PT_ASSIGN(const Specialized specialized, specialize(*p.form(), {given_in, outputs, constants}));
    const Subgraph& subgraph = specialized.graph;
    if (subgraph.ops.empty() || subgraph.ops[0].kind == OpKind::End) continue;
    const Target target{Isa::any, thread_count(), p.form()->fpmath, true};  // no code of Partita's around primitives
    const Problem problem = problem_of(subgraph, known);
    Part part;
    for (int v : subgraph.ops[0].in) part.in.push_back(subgraph.values[static_cast<size_t>(v)].desc);
    for (int v : subgraph.ops[0].out) part.out.push_back(subgraph.values[static_cast<size_t>(v)].desc);
    const bool view = is_view(problem, known, part.out[0]);
    if (view) {
      part.kernel = "view";
    } else if (std::optional<Run> run = one_primitive(problem, target)) {
      part.scratch_bytes = run->scratch_bytes;
      part.kernel = "oneDNN";
      if (const int port = in_place_port(problem); port >= 0)
        part.may_share.emplace_back(part.in[static_cast<size_t>(port)].id, part.out[0].id);
      part.bind = [run = std::move(*run)](const Bound& bound) { return bound_run(run, bound); };
    } else {
      PT_ASSIGN(part, compiled_part(p, known, outputs, threads));
      ++made.own;
    }
    PT_TRY(known.add(part.out));
    const bool constant = !part.in.empty() &&
                          std::ranges::all_of(part.in, [&](const auto& t) { return known.is_constant(t); }) &&
                          std::ranges::all_of(part.out, [&](const auto& t) { return known.is_inner(t); });
    part.once = constant && !view;
    if (constant) known.add_constants(part.out);
    made.parts.push_back(std::move(part));
  }
  return made;
}

}  // namespace partita::bench
