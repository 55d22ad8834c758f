// SPDX-License-Identifier: Apache-2.0
// partita explain: what is grouped, what each group was compiled to, and why patterns and kernels said no.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <unordered_map>

#include "passes/claims.hpp"
#include "src/base/check.hpp"
#include "src/base/text.hpp"
#include "src/cli/commands.hpp"
#include "src/cli/diagnostics.hpp"
#include "src/cli/graph_options.hpp"
#include "src/harness/prepared_graph.hpp"
#include "src/ir/verify_op.hpp"

namespace partita::cli {
namespace {

struct ExplainOptions {
  GraphOptions graphs;
  Policy policy = Policy::fusion;
  int threads = 0;
};

std::string text_of(const std::vector<logical_tensor>& tensors) {
  std::vector<std::string> parts;
  for (const logical_tensor& t : tensors) parts.push_back(str("%", t.id, ": ", t.text()));
  return parts.empty() ? "nothing" : join(parts, ", ");
}

/// A step's operators, and each of its expressions on a line of its own.
std::string text_of(const step_info& step, size_t number) {
  std::string text = str("  step ", number, ": ");
  for (size_t at = 0; at < step.text.size();) {
    constexpr std::string_view kBetween = " | ";
    const size_t end = std::min(step.text.find(kBetween, at), step.text.size());
    text += str(at > 0 ? "    " : "", std::string_view(step.text).substr(at, end - at), "\n");
    at = std::min(end + kBetween.size(), step.text.size());
  }
  text += str("    kernel ", step.kernel, "\n");
  for (const auto& [kernel, reason] : step.refused) text += str("      not ", kernel, ": ", reason, "\n");
  return text;
}

std::string text_of(const PreparedGraph::Part& part, size_t number, size_t count) {
  const partition& p = part.group;
  std::vector<std::string> ops;
  for (const op& o : p.form()->ops) ops.push_back(str(name_of(o.kind), " ", o.id));
  std::string text =
      str("partition ", number, " of ", count, ": ", p.pattern(), "\n  operators ", join(ops, ", "), "\n");
  if (!p.supported()) return str(text, "  not compiled: ", p.reason(), "\n");
  const compiled_partition& compiled = part.bound.compiled;
  text += str("  reads ", text_of(compiled.inputs()), "\n  writes ", text_of(compiled.outputs()), "\n");
  const auto steps = compiled.steps();
  for (size_t i = 0; i < steps.size(); ++i) text += text_of(steps[i], i + 1);
  for (const auto& [in, out] : compiled.inplace_ports()) text += str("  %", in, " and %", out, " may share memory\n");
  if (compiled.scratchpad_bytes() > 0) text += str("  scratchpad of ", compiled.scratchpad_bytes(), " bytes\n");
  return text;
}

std::string refusals(const graph& g, Policy policy) {
  if (policy == Policy::debug) return "patterns: none is tried with --policy=debug\n";
  std::vector<PatternNote> notes;
  (void)partition_graph(*g.form(), {policy, g.engine_kind(), g.fpmath_mode(), g.fpmath_apply_to_int()}, &notes);
  if (notes.empty()) return "everything that is connected is fused\n";
  std::unordered_map<uint64_t, std::string> by_op;
  for (const PatternNote& note : notes) {
    std::string& text = by_op[note.op];
    if (note.pattern == kRule)
      text += str("    ", note.refusal.reason, "\n");
    else
      text += str("    not ", note.pattern, ", ", note.refusal.matched,
                  note.refusal.matched == 1 ? " operator" : " operators", " matched: ", note.refusal.reason, "\n");
  }
  std::string text = "why operators are not fused with those before them, and what patterns missed\n";
  for (const op& o : g.ops())
    if (const auto found = by_op.find(o.id); found != by_op.end()) text += str("  ", place_of(o), "\n", found->second);
  return text;
}

Result<std::string> explained(const ExplainOptions& options) {
  PT_ASSIGN(LoadedGraph loaded, load_graph(options.graphs.paths[0], options.graphs.overrides));
  if (Status s = loaded.value.finalize(); !s.ok()) return with_line(std::move(s), loaded.source);
  auto prepared = PreparedGraph::make(loaded.value, options.policy, options.threads);
  if (!prepared.ok()) return with_line(std::move(prepared).take_status(), loaded.source);
  std::string text;
  const auto& parts = prepared->parts();
  for (size_t i = 0; i < parts.size(); ++i) text += text_of(parts[i], i + 1, parts.size()) + "\n";
  return text + refusals(loaded.value, options.policy);
}

}  // namespace

void add_explain(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<ExplainOptions>();
  CLI::App* command = app.add_subcommand(
      "explain", "Show what is fused, the compiled steps with their kernels, and every refusal's reason");
  add_graph_options(*command, options->graphs, /*one_file=*/true);
  add_policy(*command, options->policy);
  command->add_option("--threads", options->threads, "Threads to compile for; 0 means as many as OpenMP gives (0)")
      ->type_name("N")
      ->check(CLI::Range(0, 4096).description(""));
  command->footer(
      "The graph is compiled as `partita run` would do it, and not executed. %3 is the tensor with id 3.\n\n"
      "Example:\n"
      "  partita explain model.json --in-shapes 0:8x64x56x56");
  command->callback([options, &exit_code] {
    const auto text = explained(*options);
    if (text.ok())
      std::cout << *text;
    else
      report(text.status());
    exit_code = text.ok() ? kSuccess : kFailure;
  });
}

}  // namespace partita::cli
