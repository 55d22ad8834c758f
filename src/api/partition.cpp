// SPDX-License-Identifier: Apache-2.0
// The C++ interface's partition and compiled_partition.
#include "partita/partition.hpp"

#include <algorithm>

#include "partita/graph.hpp"
#include "src/api/compiled_form.hpp"
#include "src/api/verbose.hpp"
#include "src/base/check.hpp"
#include "src/base/guarded.hpp"
#include "src/base/text.hpp"
#include "src/base/threads.hpp"
#include "src/compile/compile.hpp"
#include "src/ir/finalize.hpp"

namespace partita {
namespace {

const logical_tensor* find(const std::vector<logical_tensor>& list, uint64_t id) {
  for (const logical_tensor& t : list)
    if (t.id == id) return &t;
  return nullptr;
}

/// The tensors that arrived, as given at compile time where they say nothing themselves.
std::vector<logical_tensor> described(const std::vector<logical_tensor>& compiled, std::span<const tensor> arrived) {
  std::vector<logical_tensor> list = compiled;
  for (logical_tensor& t : list)
    for (const tensor& a : arrived)
      if (a.desc.id == t.id && a.desc.shape_known()) t = a.desc;
  return list;
}

/// Compiles with the content of the shape inputs that just arrived, and runs.
Status execute_waiting(const CompiledForm& form, const stream& on, std::span<const tensor> inputs,
                       std::span<const tensor> outputs) {
  std::vector<tensor> constants;
  for (uint64_t id : form.waits_for)
    for (const tensor& t : inputs)
      if (t.desc.id == id) constants.emplace_back(*find(form.inputs(), id), t.data);
  const auto in = described(form.inputs(), inputs), out = described(form.outputs(), outputs);
  PT_ASSIGN(const Compiled compiled, compile(*form.partition, {in, out, constants}, 0, form.compiled_for));
  if (!compiled.executable)
    return fail(Code::invalid_arguments, str("no data is given for shape input ", compiled.waits_for[0]));
  for (const logical_tensor& made : compiled.executable->outputs)
    for (const tensor& t : outputs)
      if (t.desc.id == made.id && !t.desc.shape_known())
        return fail(Code::invalid_arguments, str("output tensor ", made.id, " must come with its dims: its shape ",
                                                 made.text(), " is known only now"));
  // A scratchpad of the caller was sized before the shapes were known, so it is not used.
  return run(*compiled.executable, on, inputs, outputs, nullptr);
}

/// The same program for this thread alone, where it cannot have the team that the program counts on.
Status execute_alone(const CompiledForm& form, const stream& on, std::span<const tensor> inputs,
                     std::span<const tensor> outputs, void* scratchpad) {
  std::shared_ptr<const Executable> alone;
  {
    const std::lock_guard lock(form.making_alone);
    alone = form.alone;
  }
  if (!alone) {
    std::vector<tensor> constants;  // the content that the program was compiled for, which it demands again
    for (const ShapeCheck& check : form.executable->checks)
      for (const tensor& t : inputs)
        if (t.desc.id == check.tensor) constants.emplace_back(*find(form.inputs(), check.tensor), t.data);
    PT_ASSIGN(const Compiled compiled,
              compile(*form.partition, {form.inputs(), form.outputs(), constants}, 1, form.compiled_for));
    alone = compiled.executable;
    const std::lock_guard lock(form.making_alone);
    form.alone = alone;
  }
  if (!alone) return fail(Code::invalid_arguments, "no data is given for a shape input");
  const bool fits = alone->program.arena_bytes <= form.executable->program.arena_bytes;
  return run(*alone, on, inputs, outputs, fits ? scratchpad : nullptr);
}

Status execute_form(const CompiledForm& form, const stream& on, std::span<const tensor> inputs,
                    std::span<const tensor> outputs, void* scratchpad) {
  if (!form.executable) return execute_waiting(form, on, inputs, outputs);
  if (form.executable->team > 1 && works_alone()) return execute_alone(form, on, inputs, outputs, scratchpad);
  return run(*form.executable, on, inputs, outputs, scratchpad);
}

template <class Address>
std::vector<tensor> tensors_at(const std::vector<logical_tensor>& ports, std::span<Address> addresses) {
  std::vector<tensor> made;
  for (size_t i = 0; i < std::min(ports.size(), addresses.size()); ++i)
    made.emplace_back(ports[i], const_cast<void*>(addresses[i]));
  return made;
}

Status execute_form(const CompiledForm& form, const stream& on, std::span<const void* const> inputs,
                    std::span<void* const> outputs, void* scratchpad) {
  if (form.executable && (form.executable->team == 1 || !works_alone()))
    return run(*form.executable, on, inputs, outputs, scratchpad);
  const std::vector<tensor> in = tensors_at(form.inputs(), inputs), out = tensors_at(form.outputs(), outputs);
  return execute_form(form, on, std::span<const tensor>(in), std::span<const tensor>(out), scratchpad);
}

/// Ports are given as tensors or as addresses.
template <class Input, class Output>
Status execute_guarded(const CompiledForm* form, const stream& on, std::span<Input> inputs, std::span<Output> outputs,
                       void* scratchpad) {
  return guarded([&]() -> Status {
    if (!form) return fail(Code::invalid_arguments, "the compiled partition is empty");
    if (!verbose()) return execute_form(*form, on, inputs, outputs, scratchpad);
    const Stopwatch watch;
    PT_TRY(execute_form(*form, on, inputs, outputs, scratchpad));
    print_verbose("exec", form->about, watch.milliseconds(), scratchpad ? ",scratchpad:user" : ",scratchpad:library");
    return {};
  });
}

/// What handles that were made by default answer for.
const Partition& empty_partition() {
  static const Partition empty = [] {
    Partition p;
    p.supported = false;
    p.reason = "the partition is empty";
    p.kind = EngineKind::any;
    return p;
  }();
  return empty;
}

const Partition& form_or_empty(const std::shared_ptr<const Partition>& form) {
  return form ? *form : empty_partition();
}

}  // namespace

Result<partition> partition::of(const op& single, EngineKind kind) {
  return guarded([&]() -> Result<partition> {
    graph g(kind);
    PT_TRY(g.add_op(single));
    PT_TRY(g.finalize());
    PT_ASSIGN(auto partitions, g.get_partitions());
    return partitions[0];
  });
}

uint64_t partition::id() const { return form_or_empty(form_).id; }
std::string_view partition::pattern() const { return form_or_empty(form_).pattern; }
bool partition::supported() const { return form_or_empty(form_).supported; }
const std::string& partition::reason() const { return form_or_empty(form_).reason; }
const std::vector<logical_tensor>& partition::input_ports() const { return form_or_empty(form_).inputs; }
const std::vector<logical_tensor>& partition::output_ports() const { return form_or_empty(form_).outputs; }
EngineKind partition::engine_kind() const { return form_or_empty(form_).kind; }

std::vector<uint64_t> partition::ops() const {
  std::vector<uint64_t> ids;
  for (const op& o : form_or_empty(form_).ops) ids.push_back(o.id);
  return ids;
}

Result<compiled_partition> partition::compile(std::span<const logical_tensor> inputs,
                                              std::span<const logical_tensor> outputs, const engine& on,
                                              std::span<const tensor> constants) const {
  return guarded([&]() -> Result<compiled_partition> {
    if (!form_) return fail(Code::invalid_arguments, reason());
    if (on.kind() != form_->kind && form_->kind != EngineKind::any)
      return fail(Code::invalid_arguments, "the engine's kind differs from the graph's");
    auto form = std::make_shared<CompiledForm>(form_, on);
    const Stopwatch watch;
    bool hit = false;
    PT_ASSIGN(Compiled compiled, partita::compile(*form_, {inputs, outputs, constants}, 0, on, &hit));
    form->executable = std::move(compiled.executable);
    form->waits_for = std::move(compiled.waits_for);
    if (!form->executable) {
      form->given_inputs.assign(inputs.begin(), inputs.end());
      form->given_outputs.assign(outputs.begin(), outputs.end());
    }
    if (verbose()) {
      form->about = about(*form);
      print_verbose(hit ? "compile:cache_hit" : "compile:cache_miss", form->about, watch.milliseconds());
    }
    compiled_partition made;
    made.form_ = std::move(form);
    return made;
  });
}

Result<logical_tensor> compiled_partition::query_logical_tensor(uint64_t id) const {
  return guarded([&]() -> Result<logical_tensor> {
    if (form_)
      for (const auto* list : {&form_->inputs(), &form_->outputs()})
        if (const logical_tensor* t = find(*list, id)) return *t;
    return fail(Code::invalid_arguments, str("tensor ", id, " is no port of the compiled partition"));
  });
}

std::vector<std::pair<uint64_t, uint64_t>> compiled_partition::inplace_ports() const {
  return form_ && form_->executable ? form_->executable->program.inplace : std::vector<std::pair<uint64_t, uint64_t>>{};
}

size_t compiled_partition::scratchpad_bytes() const {
  return form_ && form_->executable ? form_->executable->program.arena_bytes : 0;
}

const std::vector<logical_tensor>& compiled_partition::inputs() const {
  return form_ ? form_->inputs() : empty_partition().inputs;
}
const std::vector<logical_tensor>& compiled_partition::outputs() const {
  return form_ ? form_->outputs() : empty_partition().outputs;
}

std::vector<step_info> compiled_partition::steps() const {
  std::vector<step_info> list;
  if (form_ && form_->executable)
    for (const Step& step : form_->executable->program.steps)
      list.push_back({text_of(step), step.picked.kernel->name, step.picked.refused});
  return list;
}

Status compiled_partition::execute(const stream& on, std::span<const tensor> inputs, std::span<const tensor> outputs,
                                   void* scratchpad) const {
  return execute_guarded(form_.get(), on, inputs, outputs, scratchpad);
}

Status compiled_partition::execute_at(const stream& on, std::span<const void* const> inputs,
                                      std::span<void* const> outputs, void* scratchpad) const {
  return execute_guarded(form_.get(), on, inputs, outputs, scratchpad);
}

}  // namespace partita
