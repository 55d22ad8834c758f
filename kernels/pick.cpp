// SPDX-License-Identifier: Apache-2.0
// Chooses the kernel of a step: the first row of its table that accepts the problem on the target.
#include "kernels/kernel.hpp"
#include "src/base/text.hpp"

namespace partita {
namespace {

const char* refusal_of(const Kernel& row, const Problem& problem, const Target& target, std::string_view forced) {
  if (!forced.empty() && forced != row.name) return "another kernel is forced";
  if (target.isa < row.isa) return "the target lacks the instructions";
  if (!target.generates_code && !row.slow) return "there is no memory for machine code";
  return row.refuse(problem, target);
}

}  // namespace

Result<Picked> pick_kernel(const Problem& problem, const Target& target, std::string_view forced) {
  Picked picked;
  for (const Kernel& row : kernels_for(problem.step)) {
    const char* refusal = refusal_of(row, problem, target, forced);
    if (!refusal) {
      picked.kernel = &row;
      return picked;
    }
    picked.refused.emplace_back(row.name, refusal);
  }
  std::string message = str("no kernel for this ", name_of(problem.step), " step");
  if (!forced.empty()) message += str(" with the forced name `", forced, "`");
  for (const auto& [name, reason] : picked.refused) {
    if (forced.empty() || forced == name) message += str("; ", name, ": ", reason);
  }
  return fail(Code::unimplemented, std::move(message));
}

}  // namespace partita
