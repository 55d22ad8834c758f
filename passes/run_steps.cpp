// SPDX-License-Identifier: Apache-2.0
// Running of the steps of a program over memory that the caller has. Takes nothing from the heap.
#include "passes/run_steps.hpp"

#include "src/base/check.hpp"

namespace partita {

void place_buffers(const Program& p, void** pointers, std::byte* arena, std::byte* kept) {
  for (size_t b = 0; b < p.buffers.size(); ++b) {
    const Buffer& buffer = p.buffers[b];
    if (buffer.role == Buffer::Role::temporary)
      pointers[b] = buffer.kept && kept ? kept + buffer.kept_offset : arena + buffer.offset;
    if (buffer.role == Buffer::Role::constant) pointers[b] = const_cast<std::byte*>(buffer.content.data());
  }
}

namespace {

Status run_step(const Program& p, const Step& step, void** pointers, std::byte* arena, const std::byte* kept) {
  void** const arguments = pointers + p.buffers.size();
  void** next = arguments;
  for (int b : step.in) *next++ = b == Step::kNoBuffer ? nullptr : pointers[b];
  for (int b : step.out) *next++ = pointers[b];
  void** const packed = next;
  if (kept)
    for (size_t at : step.packs_at) *next++ = at == Step::kNotKept ? nullptr : const_cast<std::byte*>(kept) + at;
  Status s = step.run.call({{arguments, step.in.size()},
                            {arguments + step.in.size(), step.out.size()},
                            arena ? arena + p.scratch_offset : nullptr,
                            {packed, static_cast<size_t>(next - packed)}});
  return s.ok() ? Status() : std::move(s).at(step.picked.kernel->name);
}

}  // namespace

Status run_steps(const Program& p, void** pointers, std::byte* arena, const std::byte* kept) {
  for (const Step& step : p.steps)
    if (!kept || !step.constant) PT_TRY(run_step(p, step, pointers, arena, kept));
  return {};
}

Status make_kept(const Program& p, void** pointers, std::byte* arena, std::byte* kept) {
  for (const Step& step : p.steps)
    if (step.constant) PT_TRY(run_step(p, step, pointers, arena, nullptr));
  for (const Step& step : p.steps)
    for (size_t k = 0; k < step.packs_at.size(); ++k) {
      if (step.packs_at[k] == Step::kNotKept) continue;
      const Pack& pack = step.run.packs[k];
      Status s =
          pack.make(pointers[step.in[pack.port]], kept + step.packs_at[k], arena ? arena + p.scratch_offset : nullptr);
      if (!s.ok()) return std::move(s).at(step.picked.kernel->name);
    }
  return {};
}

}  // namespace partita
