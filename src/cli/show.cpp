// SPDX-License-Identifier: Apache-2.0
// partita show: a graph as text, as a drawing, or as the JSON that Partita writes.
#include <CLI/CLI.hpp>
#include <iostream>

#include "partita/json.hpp"
#include "src/cli/commands.hpp"
#include "src/cli/diagnostics.hpp"
#include "src/cli/graph_options.hpp"
#include "src/io/dot.hpp"

namespace partita::cli {
namespace {

struct ShowOptions {
  GraphOptions graphs;
  std::string format = "text";
};

int show(const ShowOptions& options) {
  const auto loaded = load_graph(options.graphs.paths[0], options.graphs.overrides);
  if (!loaded.ok()) {
    report(loaded.status());
    return kFailure;
  }
  const graph& g = loaded->value;
  std::cout << (options.format == "dot"    ? graph_to_dot(g)
                : options.format == "json" ? graph_to_json(g)
                                           : graph_to_text(g));
  return kSuccess;
}

}  // namespace

void add_show(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<ShowOptions>();
  CLI::App* command = app.add_subcommand("show", "Print a graph as text, as DOT for Graphviz, or as JSON");
  add_graph_options(*command, options->graphs, /*one_file=*/true);
  command
      ->add_option("--format", options->format,
                   "text: one line an operator (the default); dot: for Graphviz; json: in Partita's stable layout")
      ->type_name("text|dot|json")
      ->check(CLI::IsMember({"text", "dot", "json"}).description(""));
  command->footer(
      "Examples:\n"
      "  partita show model.json\n"
      "  partita show --format=dot model.json | dot -Tsvg > model.svg\n"
      "  partita show --format=json model.json --mb 8 > batch8.json");
  command->callback([options, &exit_code] { exit_code = show(*options); });
}

}  // namespace partita::cli
