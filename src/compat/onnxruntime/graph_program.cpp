// SPDX-License-Identifier: Apache-2.0
// Planning and execution of whole graphs over dense tensors.
#include "src/compat/onnxruntime/graph_program.hpp"

#include <algorithm>
#include <unordered_map>

#include "partita/json.hpp"
#include "src/base/check.hpp"
#include "src/base/round.hpp"
#include "src/base/text.hpp"
#include "src/ir/finalize.hpp"

namespace partita::compat::onnxruntime {
namespace {

bool is_end(const FinalGraph& g, const Use& use) { return g.ops[static_cast<size_t>(use.op)].kind == OpKind::End; }

bool is_output(const FinalGraph& g, const Value& v) {
  return v.producer >= 0 &&
         (v.uses.empty() || std::ranges::any_of(v.uses, [&](const Use& use) { return is_end(g, use); }));
}

Status check_dense(const logical_tensor& t) {
  if (t.layout == Layout::opaque || (t.shape_known() && t.strides_known() && t.strides != dense_strides(t.dims)))
    return fail(Code::invalid_arguments, str("tensor ", t.id, " (", t.text(), ") must be dense"));
  return {};
}

/// Dense, with the given dims if there are any.
logical_tensor dense(const logical_tensor& t) {
  if (t.shape_known()) return {t.id, t.dtype, t.dims, Layout::strided, t.property};
  logical_tensor open = t;
  open.layout = Layout::strided;
  open.strides = Dims(t.rank(), kUnknownDim);
  return open;
}

}  // namespace

Result<std::shared_ptr<GraphProgram>> GraphProgram::of(std::string_view json) {
  PT_ASSIGN(graph g, graph_from_json(json));
  PT_TRY(g.finalize());
  auto made = std::make_shared<GraphProgram>();
  PT_ASSIGN(made->partitions_, g.get_partitions());
  for (const Value& v : g.form()->values) {
    const bool input = v.producer < 0, output = is_output(*g.form(), v);
    if (input || output) PT_TRY(check_dense(v.desc));
    if (input) made->inputs_.push_back(v.desc);
    if (output) made->outputs_.push_back(v.desc);
  }
  std::erase_if(made->partitions_, [](const partition& p) { return p.output_ports().empty(); });  // End
  for (const partition& p : made->partitions_)
    if (!p.supported()) return fail(Code::unimplemented, p.reason());
  return made;
}

Result<std::shared_ptr<const GraphPlan>> GraphProgram::plan(std::span<const Dims> input_dims) {
  {
    const std::lock_guard lock(mutex_);
    if (last_ && std::ranges::equal(last_->inputs(), input_dims, {}, &logical_tensor::dims)) return last_;
  }
  PT_ASSIGN(auto made, make_plan(input_dims));
  const std::lock_guard lock(mutex_);
  last_ = made;
  return made;
}

Result<std::shared_ptr<const GraphPlan>> GraphProgram::make_plan(std::span<const Dims> input_dims) const {
  if (input_dims.size() != inputs_.size())
    return fail(Code::invalid_arguments, str("the graph has ", inputs_.size(), " inputs, got ", input_dims.size()));
  auto plan = std::make_shared<GraphPlan>();
  std::unordered_map<uint64_t, size_t> slots;
  std::vector<logical_tensor> descs;
  const auto slot_of = [&](const logical_tensor& t) {
    const auto [at, fresh] = slots.try_emplace(t.id, descs.size());
    if (fresh) descs.push_back(t);
    return at->second;
  };
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const logical_tensor given(inputs_[i].id, inputs_[i].dtype, input_dims[i], Layout::strided, inputs_[i].property);
    plan->inputs_.push_back(given);
    plan->input_slots_.push_back(slot_of(given));
  }
  const engine cpu;
  size_t scratchpad = 0;
  for (const partition& p : partitions_) {
    std::vector<logical_tensor> in, out;
    for (const logical_tensor& t : p.input_ports()) in.push_back(descs[slots.at(t.id)]);
    for (const logical_tensor& t : p.output_ports()) out.push_back(dense(t));
    GraphPlan::Step step;
    PT_ASSIGN(step.compiled, p.compile(in, out, cpu));
    for (const logical_tensor& t : step.compiled.inputs()) step.in.push_back(slots.at(t.id));
    for (const logical_tensor& t : step.compiled.outputs()) {
      if (!t.shape_known())
        return fail(Code::invalid_shape, str("the shape of tensor ", t.id, " depends on the content of another"));
      step.out.push_back(slot_of(t));
    }
    scratchpad = std::max(scratchpad, step.compiled.scratchpad_bytes());
    plan->steps_.push_back(std::move(step));
  }
  for (const logical_tensor& t : outputs_) {
    plan->output_slots_.push_back(slots.at(t.id));
    plan->outputs_.push_back(descs[plan->output_slots_.back()]);
  }
  for (const logical_tensor& t : descs) {
    plan->offsets_.push_back(plan->scratchpad_offset_);
    const bool outside = std::ranges::find(plan->inputs_, t.id, &logical_tensor::id) != plan->inputs_.end() ||
                         std::ranges::find(plan->outputs_, t.id, &logical_tensor::id) != plan->outputs_.end();
    if (!outside) plan->scratchpad_offset_ += aligned(t.size_bytes());
  }
  plan->workspace_bytes_ = plan->scratchpad_offset_ + scratchpad;
  return std::shared_ptr<const GraphPlan>(std::move(plan));
}

Status GraphPlan::execute(std::span<const void* const> inputs, std::span<void* const> outputs, void* workspace) const {
  auto* const memory = static_cast<std::byte*>(workspace);
  std::vector<void*> data(offsets_.size());
  for (size_t s = 0; s < data.size(); ++s) data[s] = memory + offsets_[s];
  for (size_t i = 0; i < inputs.size(); ++i) data[input_slots_[i]] = const_cast<void*>(inputs[i]);
  for (size_t i = 0; i < outputs.size(); ++i) data[output_slots_[i]] = outputs[i];
  const stream on{engine()};
  std::vector<const void*> in;
  std::vector<void*> out;
  for (const Step& step : steps_) {
    in.clear(), out.clear();
    for (size_t slot : step.in) in.push_back(data[slot]);
    for (size_t slot : step.out) out.push_back(data[slot]);
    void* const scratchpad = step.compiled.scratchpad_bytes() ? memory + scratchpad_offset_ : nullptr;
    PT_TRY(step.compiled.execute_at(on, in, out, scratchpad));
  }
  return {};
}

}  // namespace partita::compat::onnxruntime
