// SPDX-License-Identifier: Apache-2.0
// Memory of a program: temporaries that live at different times share one arena; in-place pairs are found.
#include <algorithm>
#include <numeric>

#include "passes/program.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"

namespace partita {
namespace {

constexpr size_t kAlignment = 64;

size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

struct Lifetime {
  int buffer = 0;
  size_t bytes = 0;
  int first = -1, last = -1;  ///< steps
  bool meets(const Lifetime& o) const { return first <= o.last && o.first <= last; }
};

std::vector<Lifetime> lifetimes(const Program& p) {
  std::vector<Lifetime> list;
  for (size_t b = 0; b < p.buffers.size(); ++b) {
    if (p.buffers[b].role != Buffer::Role::temporary) continue;
    Lifetime life{static_cast<int>(b), aligned(p.buffers[b].desc.size_bytes()), -1, -1};
    for (size_t s = 0; s < p.steps.size(); ++s) {
      if (!p.steps[s].reads(life.buffer) && !p.steps[s].writes(life.buffer)) continue;
      if (life.first < 0) life.first = static_cast<int>(s);
      life.last = static_cast<int>(s);
    }
    if (life.first >= 0) list.push_back(life);
  }
  return list;
}

/// Largest first, each at the lowest place free during its life.
size_t place(std::vector<Lifetime> list, Program& p) {
  std::stable_sort(list.begin(), list.end(), [](const Lifetime& a, const Lifetime& b) { return a.bytes > b.bytes; });
  size_t end = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    std::vector<std::pair<size_t, size_t>> taken;
    for (size_t j = 0; j < i; ++j)
      if (list[j].meets(list[i])) {
        const size_t at = p.buffers[static_cast<size_t>(list[j].buffer)].offset;
        taken.emplace_back(at, at + list[j].bytes);
      }
    std::sort(taken.begin(), taken.end());
    size_t at = 0;
    for (const auto& [from, to] : taken) {
      if (at + list[i].bytes <= from) break;
      at = std::max(at, to);
    }
    p.buffers[static_cast<size_t>(list[i].buffer)].offset = at;
    end = std::max(end, at + list[i].bytes);
  }
  return end;
}

/// An output of a loop may take the place of an input that is read at the same places and never again. The loop loads
/// all operands of a run before it stores one.
void find_inplace(Program& p) {
  std::vector<bool> taken(p.buffers.size(), false);
  for (size_t s = 0; s < p.steps.size(); ++s) {
    const Step& step = p.steps[s];
    if (step.problem.step != StepKind::loop) continue;
    for (size_t o = 0; o < step.out.size(); ++o) {
      const TensorDesc& out = step.problem.out[o];
      const Buffer& to = p.buffers[static_cast<size_t>(step.out[o])];
      if (to.role != Buffer::Role::output || elements(out.dims) != to.desc.elements()) continue;
      for (size_t k = 0; k < step.in.size(); ++k) {
        const int b = step.in[k];
        const TensorDesc& in = step.problem.in[k];
        const Buffer& from = p.buffers[static_cast<size_t>(b)];
        const bool fits = from.role == Buffer::Role::input && !taken[static_cast<size_t>(b)] &&
                          from.desc.property != Property::constant && bits_of(in.dtype) == bits_of(out.dtype) &&
                          bits_of(in.dtype) >= 8 && in.dims == out.dims && in.strides == out.strides &&
                          in.offset == out.offset;
        if (!fits) continue;
        bool last_use = std::count(step.in.begin(), step.in.end(), b) == 1;
        for (size_t later = s + 1; later < p.steps.size(); ++later) last_use = last_use && !p.steps[later].reads(b);
        if (!last_use) continue;
        taken[static_cast<size_t>(b)] = true;
        p.inplace.emplace_back(from.tensor, to.tensor);
        break;
      }
    }
  }
}

}  // namespace

bool Step::reads(int buffer) const { return std::find(in.begin(), in.end(), buffer) != in.end(); }
bool Step::writes(int buffer) const { return std::find(out.begin(), out.end(), buffer) != out.end(); }

std::string text_of(const Step& step) {
  std::string text;
  for (const std::string& o : step.ops) text += (text.empty() ? "" : " + ") + o;
  if (!step.problem.front.empty()) text += " | in front: " + text_of(step.problem.front);
  if (!step.problem.back.empty())
    text += (step.problem.step == StepKind::loop ? " | each: " : " | behind: ") + text_of(step.problem.back);
  return text;
}

void plan_memory(Program& program) {
  program.scratch_offset = place(lifetimes(program), program);
  size_t scratch = 0;
  for (const Step& step : program.steps) scratch = std::max(scratch, aligned(step.run.scratch_bytes));
  program.arena_bytes = program.scratch_offset + scratch;
  find_inplace(program);
}

}  // namespace partita
