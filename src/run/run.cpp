// SPDX-License-Identifier: Apache-2.0
// Running of an executable: bind pointers, check shape inputs, loop over the steps. Takes no memory from the heap where
// the caller gives the scratchpad; texts are made for failures alone.
#include <algorithm>
#include <array>
#include <optional>

#include "passes/run_steps.hpp"
#include "src/base/check.hpp"
#include "src/base/text.hpp"
#include "src/base/threads.hpp"
#include "src/run/arena.hpp"
#include "src/run/executable.hpp"

namespace partita {
namespace {

/// The tensor of a port: mostly the one at the port's own place.
const tensor* find(std::span<const tensor> given, uint64_t id, size_t place) {
  if (place < given.size() && given[place].desc.id == id) return &given[place];
  for (const tensor& t : given)
    if (t.desc.id == id) return &t;
  return nullptr;
}

Status misfit(const logical_tensor& port, const tensor* t, const char* side) {
  if (!t) return fail(Code::invalid_arguments, str("no ", side, " tensor ", port.id, " (", port.text(), ") is given"));
  const std::string what = str(side, " tensor ", port.id);
  if (t->desc.dtype != port.dtype || (t->desc.rank_known && t->desc.dims != port.dims))
    return fail(Code::invalid_arguments, str(what, " is ", t->desc.text(), ", but was compiled as ", port.text()));
  if (t->data == nullptr && port.elements() > 0) return fail(Code::invalid_arguments, what + " has no data");
  return fail(Code::invalid_arguments, str(what, " has strides [", text_of(t->desc.strides),
                                           "], but was compiled with [", text_of(port.strides), "]"));
}

bool fits(const logical_tensor& port, const tensor& t) {
  return t.desc.dtype == port.dtype && !(t.desc.rank_known && t.desc.dims != port.dims) &&
         !(t.desc.strides_known() && t.desc.strides != port.strides && port.elements() > 1) &&
         (t.data != nullptr || port.elements() == 0);
}

/// Puts the addresses of the ports' tensors into `pointers`.
Status bind(const std::vector<logical_tensor>& ports, const std::vector<int>& buffers, std::span<const tensor> given,
            const char* side, void** pointers) {
  for (size_t i = 0; i < ports.size(); ++i) {
    const tensor* t = find(given, ports[i].id, i);
    if (!t || !fits(ports[i], *t)) return misfit(ports[i], t, side);
    pointers[buffers[i]] = t->data;
  }
  return {};
}

Status unbound(const std::vector<logical_tensor>& ports, size_t given, size_t place, const char* side) {
  if (given != ports.size())
    return fail(Code::invalid_arguments,
                str(given, " ", side, " addresses are given, the partition has ", ports.size(), " ", side, "s"));
  return fail(Code::invalid_arguments, str(side, " tensor ", ports[place].id, " has no data"));
}

/// The same with an address for each port.
template <class Address>
Status bind(const std::vector<logical_tensor>& ports, const std::vector<int>& buffers, std::span<Address> given,
            const char* side, void** pointers) {
  if (given.size() != ports.size()) return unbound(ports, given.size(), 0, side);
  for (size_t i = 0; i < given.size(); ++i) {
    if (!given[i] && ports[i].elements() > 0) return unbound(ports, given.size(), i, side);
    pointers[buffers[i]] = const_cast<void*>(given[i]);
  }
  return {};
}

Status check_shape(const ShapeCheck& check, const logical_tensor& t, const void* data) {
  const auto count = static_cast<size_t>(t.elements());
  bool equal = count == check.expected.size();
  for (size_t k = 0; equal && k < count; ++k)
    equal = shape_entry(t, data, static_cast<int64_t>(k)) == check.expected[k];
  if (equal) return {};
  std::vector<int64_t> found;
  for (int64_t k = 0; k < t.elements(); ++k) found.push_back(shape_entry(t, data, k));
  return fail(Code::invalid_shape, str(check.place, " says ", text_of(AttrValue(found)),
                                       ", the partition was compiled for ", text_of(AttrValue(check.expected))));
}

Status check_shapes(const Executable& e, void* const* pointers) {
  for (const ShapeCheck& check : e.checks)
    for (size_t i = 0; i < e.inputs.size(); ++i)
      if (e.inputs[i].id == check.tensor) PT_TRY(check_shape(check, e.inputs[i], pointers[e.program.inputs[i]]));
  return {};
}

/// What the constant cache has for the constant inputs of this execution, made now where it has nothing yet.
std::shared_ptr<const KeptConstants::Block> kept_for(const Executable& e, const allocator& memory, void** pointers,
                                                     std::byte* arena) {
  const Program& p = e.program;
  if (!e.kept) return nullptr;
  // Their addresses stand where the operands of a step will stand.
  void** const addresses = pointers + p.buffers.size();
  size_t count = 0;
  for (size_t i = 0; i < e.inputs.size(); ++i)
    if (e.inputs[i].property == Property::constant) addresses[count++] = pointers[p.inputs[i]];
  const auto fill = [&](std::byte* made) {
    place_buffers(p, pointers, arena, made);
    return make_kept(p, pointers, arena, made);
  };
  return e.kept->get({addresses, count}, p.kept_bytes, memory, fill);
}

/// Ports are given as tensors or as addresses.
template <class Input, class Output>
Status run_with(const Executable& e, const stream& on, std::span<Input> inputs, std::span<Output> outputs,
                void* scratchpad) {
  const Program& p = e.program;
  if (reinterpret_cast<uintptr_t>(scratchpad) % kArenaAlignment != 0) scratchpad = nullptr;
  const Arena own(on.on(), scratchpad ? 0 : p.arena_bytes);
  auto* arena = static_cast<std::byte*>(scratchpad ? scratchpad : own.data());
  if (arena == nullptr && p.arena_bytes > 0)
    return fail(Code::out_of_memory, str("the allocator gave no ", p.arena_bytes, " bytes for temporaries"));
  std::array<void*, Program::kPointersOnStack> few;
  void** pointers = p.addresses > few.size() ? reinterpret_cast<void**>(arena + p.pointers_offset) : few.data();
  std::fill_n(pointers, p.buffers.size(), nullptr);
  PT_TRY(bind(e.inputs, p.inputs, inputs, "input", pointers));
  PT_TRY(bind(e.outputs, p.outputs, outputs, "output", pointers));
  PT_TRY(check_shapes(e, pointers));
  std::optional<ExecutorScope> runs_on;
  if (on.runs_on()) runs_on.emplace(*on.runs_on());
  const ThreadScope threads(on.threads() > 0 ? std::min(on.threads(), e.threads) : e.threads);
  if (e.team > 1) has_team();
  const auto block = kept_for(e, on.on().memory(), pointers, arena);
  std::byte* const kept = block ? KeptConstants::data_of(*block) : nullptr;
  place_buffers(p, pointers, arena, kept);
  return run_steps(p, pointers, arena, kept);
}

}  // namespace

Status run(const Executable& e, const stream& on, std::span<const tensor> inputs, std::span<const tensor> outputs,
           void* scratchpad) {
  return run_with(e, on, inputs, outputs, scratchpad);
}

Status run(const Executable& e, const stream& on, std::span<const void* const> inputs, std::span<void* const> outputs,
           void* scratchpad) {
  return run_with(e, on, inputs, outputs, scratchpad);
}

}  // namespace partita
