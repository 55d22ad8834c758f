// SPDX-License-Identifier: Apache-2.0
// Chooses and makes a kernel for each step.
#include "passes/select.hpp"

#include <algorithm>

#include "passes/optimize/widen.hpp"
#include "src/base/check.hpp"
#include "src/base/dtype.hpp"
#include "src/base/env.hpp"
#include "src/base/perf_map.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"

namespace partita {
namespace {

/// "loop_any_jit_avx512:ReLUBackward+Add"
std::string code_name(const Step& step) {
  std::string name = step.picked.kernel->name;
  for (const std::string& o : step.ops) name += (&o == &step.ops[0] ? ':' : '+') + o.substr(0, o.find(' '));
  return name;
}

/// A concatenation's steps, and tiles, write parts of one result, which as a whole is large or not.
int64_t result_bytes(const Program& program, const Step& step) {
  int64_t bytes = 0;
  for (int b : step.out) {
    if (b == Step::kNoBuffer) continue;
    const logical_tensor& desc = program.buffers[static_cast<size_t>(b)].desc;
    bytes += std::max(elements(desc.dims) * bits_of(desc.dtype) / 8,
                      static_cast<int64_t>(program.buffers[static_cast<size_t>(b)].whole_bytes));
  }
  return bytes;
}

std::vector<std::string_view> all_kernel_names() {
  std::vector<std::string_view> names;
  for (int step = 0; step <= static_cast<int>(StepKind::tiles); ++step)
    for (const Kernel& row : kernels_for(static_cast<StepKind>(step))) names.emplace_back(row.name);
  return names;
}

/// A name that no table has would force nothing, and a comparison of kernels would compare one with itself.
void check_forced_name(const std::string& name) {
  static const bool checked = [&] {
    const std::vector<std::string_view> names = all_kernel_names();
    if (std::ranges::count(names, name) == 0) warn_of_value(Env::force_kernel, name, suggestion(name, names));
    return true;
  }();
  (void)checked;
}

}  // namespace

bool is_made(const Step& step) { return static_cast<bool>(step.run.call); }

std::string_view forced_kernel(StepKind step) {
  const std::optional<std::string>& name = env(Env::force_kernel);
  if (!name) return {};
  check_forced_name(*name);
  for (const Kernel& row : kernels_for(step))
    if (row.name == *name) return *name;
  return {};
}

Status pick_kernel_of(const Program& program, Step& step, const Target& target) {
  PT_ASSERT(std::ranges::none_of(step.problem.in, &Dims::overflowed, &TensorDesc::dims));
  step.problem.result_bytes = result_bytes(program, step);
  auto picked = pick_kernel(step.problem, target, forced_kernel(step.problem.step));
  if (!picked.ok()) return std::move(picked).take_status().at(text_of(step));
  step.picked = std::move(picked).value();
  return {};
}

Status select_kernels(Program& program, const Target& target) {
  for (Step& step : program.steps)
    if (!is_made(step)) PT_TRY(pick_kernel_of(program, step, target));
  widen(program, target);
  for (Step& step : program.steps) {
    if (is_made(step)) continue;
    std::optional<CodeName> name;
    if (code_names_wanted()) name.emplace(code_name(step));
    PT_ASSIGN(step.run, step.picked.kernel->make(step.problem, target).at(step.picked.kernel->name));
  }
  return {};
}

}  // namespace partita
