// SPDX-License-Identifier: Apache-2.0
// What a step reads and writes, and its text.
#include "passes/program.hpp"

#include <algorithm>

namespace partita {

bool Step::reads(int buffer) const { return std::find(in.begin(), in.end(), buffer) != in.end(); }
bool Step::writes(int buffer) const { return std::find(out.begin(), out.end(), buffer) != out.end(); }

std::string text_of(const Step& step) {
  std::string text;
  for (const std::string& o : step.ops) text += (text.empty() ? "" : " + ") + o;
  if (!step.note.empty()) text += " | " + step.note;
  if (!step.problem.weights_front.empty()) text += " | in front of the weights: " + text_of(step.problem.weights_front);
  if (!step.problem.front.empty()) text += " | in front: " + text_of(step.problem.front);
  if (!step.problem.back.empty())
    text += (step.problem.step == StepKind::loop ? " | each: " : " | behind: ") + text_of(step.problem.back);
  return text;
}

}  // namespace partita
