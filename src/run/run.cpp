// SPDX-License-Identifier: Apache-2.0
// Running of an executable: bind pointers, check shape inputs, loop over the steps.
#include <algorithm>

#include "src/base/check.hpp"
#include "src/base/dtype.hpp"
#include "src/base/text.hpp"
#include "src/base/threads.hpp"
#include "src/run/executable.hpp"

namespace partita {
namespace {

/// Memory from an allocator for the time of one execution.
class Arena {
 public:
  Arena(const allocator& memory, size_t bytes) : memory_(memory), data_(bytes ? memory.allocate(bytes, 64) : nullptr) {}
  ~Arena() {
    if (data_) memory_.deallocate(data_);
  }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  void* data() const { return data_; }

 private:
  const allocator& memory_;
  void* data_;
};

Result<void*> bind(const logical_tensor& port, std::span<const tensor> given, const char* side) {
  for (const tensor& t : given) {
    if (t.desc.id != port.id) continue;
    const std::string what = str(side, " tensor ", port.id);
    if (t.desc.dtype != port.dtype || (t.desc.rank_known && t.desc.dims != port.dims))
      return fail(Code::invalid_arguments, str(what, " is ", t.desc.text(), ", compiled was ", port.text()));
    if (t.desc.strides_known() && t.desc.strides != port.strides && port.elements() > 1)
      return fail(Code::invalid_arguments, str(what, " has strides [", text_of(t.desc.strides), "], compiled were [",
                                               text_of(port.strides), "]"));
    if (t.data == nullptr && port.elements() > 0) return fail(Code::invalid_arguments, what + " has no data");
    return t.data;
  }
  return fail(Code::invalid_arguments, str("no ", side, " tensor ", port.id, " (", port.text(), ") is given"));
}

Status check_shapes(const Executable& e, std::span<const void* const> pointers) {
  for (const ShapeCheck& check : e.checks)
    for (size_t i = 0; i < e.inputs.size(); ++i) {
      if (e.inputs[i].id != check.tensor) continue;
      const logical_tensor& t = e.inputs[i];
      const void* data = pointers[static_cast<size_t>(e.program.inputs[i])];
      std::vector<int64_t> found;
      for (int64_t k = 0; k < t.elements(); ++k)
        found.push_back(static_cast<int64_t>(load_as_double(data, t.dtype, k * (t.rank() ? t.strides[0] : 0))));
      if (found != check.expected)
        return fail(Code::invalid_shape, str(check.place, " says ", text_of(AttrValue(found)),
                                             ", the partition was compiled for ", text_of(AttrValue(check.expected))));
    }
  return {};
}

Status run_steps(const Program& p, std::span<void* const> pointers, void* scratch) {
  std::vector<const void*> in;
  std::vector<void*> out;
  for (const Step& step : p.steps) {
    in.clear();
    out.clear();
    for (int b : step.in) in.push_back(b == Step::kNoBuffer ? nullptr : pointers[static_cast<size_t>(b)]);
    for (int b : step.out) out.push_back(pointers[static_cast<size_t>(b)]);
    PT_TRY(step.run.call({in, out, scratch}).at(step.picked.kernel->name));
  }
  return {};
}

}  // namespace

Status run(const Executable& e, const stream& on, std::span<const tensor> inputs, std::span<const tensor> outputs,
           void* scratchpad) {
  const Program& p = e.program;
  std::vector<void*> pointers(p.buffers.size(), nullptr);
  for (size_t i = 0; i < e.inputs.size(); ++i) {
    PT_ASSIGN(pointers[static_cast<size_t>(p.inputs[i])], bind(e.inputs[i], inputs, "input"));
  }
  for (size_t i = 0; i < e.outputs.size(); ++i) {
    PT_ASSIGN(pointers[static_cast<size_t>(p.outputs[i])], bind(e.outputs[i], outputs, "output"));
  }
  PT_TRY(check_shapes(e, pointers));
  const Arena own(on.on().memory(), scratchpad ? 0 : p.arena_bytes);
  auto* arena = static_cast<std::byte*>(scratchpad ? scratchpad : own.data());
  if (arena == nullptr && p.arena_bytes > 0)
    return fail(Code::out_of_memory, str("the allocator gave no ", p.arena_bytes, " bytes for temporaries"));
  for (size_t b = 0; b < p.buffers.size(); ++b) {
    const Buffer& buffer = p.buffers[b];
    if (buffer.role == Buffer::Role::temporary) pointers[b] = arena + buffer.offset;
    if (buffer.role == Buffer::Role::constant) pointers[b] = const_cast<std::byte*>(buffer.content.data());
  }
  const ThreadScope threads(on.threads() > 0 ? std::min(on.threads(), e.threads) : e.threads);
  return run_steps(p, pointers, arena ? arena + p.scratch_offset : nullptr);
}

}  // namespace partita
