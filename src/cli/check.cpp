// SPDX-License-Identifier: Apache-2.0
// partita check: everything that can be said about graphs without compiling them.
#include "src/base/check.hpp"

#include <CLI/CLI.hpp>
#include <iostream>

#include "passes/specialize.hpp"
#include "src/base/text.hpp"
#include "src/cli/commands.hpp"
#include "src/cli/diagnostics.hpp"
#include "src/cli/graph_options.hpp"

namespace partita::cli {
namespace {

/// Ids of graph inputs without a shape; while there are any, shapes cannot be checked.
std::vector<std::string> shapeless_inputs(const FinalGraph& graph) {
  std::vector<std::string> ids;
  for (const Value& value : graph.values)
    if (value.producer < 0 && !value.desc.shape_known()) ids.push_back(std::to_string(value.desc.id));
  return ids;
}

/// Infers every shape and compares with the given ones.
Status check_shapes(const FinalGraph& graph) {
  const Partition whole = whole_partition(graph, {});
  std::vector<logical_tensor> in = whole.inputs, out = whole.outputs;
  for (auto* side : {&in, &out})
    for (logical_tensor& t : *side)
      if (t.layout == Layout::undef) t.layout = Layout::any;
  auto specialized = specialize(whole, {in, out, {}});
  return std::move(specialized).take_status();
}

/// What to print after "ok".
Result<std::string> check_file(const std::string& file, const Overrides& overrides) {
  PT_ASSIGN(LoadedGraph loaded, load_graph(file, overrides));
  if (Status s = loaded.value.finalize(); !s.ok()) return with_line(std::move(s), loaded.source);
  const FinalGraph& form = *loaded.value.form();
  if (const auto ids = shapeless_inputs(form); !ids.empty())
    return str(", but shapes are not checked: graph input ", join(ids, ", "), " has none (--in-shapes gives one)");
  if (Status s = check_shapes(form); !s.ok()) return with_line(std::move(s), loaded.source);
  return std::string();
}

int check_files(const GraphOptions& options) {
  const auto files = graph_files(options.paths);
  if (!files.ok()) {
    report(files.status());
    return kFailure;
  }
  int exit_code = kSuccess;
  for (const std::string& file : *files) {
    const auto found = check_file(file, options.overrides);
    if (found.ok()) {
      std::cout << file << ": ok" << *found << "\n" << std::flush;
    } else {
      report(found.status());
      exit_code = kFailure;
    }
  }
  return exit_code;
}

}  // namespace

void add_check(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<GraphOptions>();
  CLI::App* command = app.add_subcommand("check", "Check graphs without compiling: operators, connections, shapes");
  add_graph_options(*command, *options);
  command->footer(
      "Prints \"ok\" for each good graph; an error names the line, the operator, and what is wrong with it.\n"
      "Exit code: 0 all graphs are good, 2 one is not.\n\n"
      "Examples:\n"
      "  partita check model.json\n"
      "  partita check graphs/");
  command->callback([options, &exit_code] { exit_code = check_files(*options); });
}

}  // namespace partita::cli
