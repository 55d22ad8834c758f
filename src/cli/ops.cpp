// SPDX-License-Identifier: Apache-2.0
// partita ops: the operator registry for a person and for programs.
#include <CLI/CLI.hpp>
#include <iostream>

#include "partita/registry.hpp"
#include "src/base/text.hpp"
#include "src/cli/commands.hpp"
#include "src/cli/diagnostics.hpp"
#include "src/ir/unknown_names.hpp"

namespace partita::cli {
namespace {

struct OpsOptions {
  std::string name;
  bool json = false;
};

std::string list_of_operators() {
  size_t width = 0;
  for (const OpDef* def : all_ops()) width = std::max(width, def->name.size());
  std::string text;
  for (const OpDef* def : all_ops())
    text += str(def->name, std::string(width + 2 - def->name.size(), ' '), def->summary,
                is_extension(def->kind) ? " (extension)" : "", "\n");
  return text;
}

int print_operators(const OpsOptions& options) {
  if (options.json && !options.name.empty()) {
    report("--format=json prints the whole registry; leave the name out");
    return kFailure;
  }
  if (options.json) {
    std::cout << registry_json();
    return kSuccess;
  }
  if (options.name.empty()) {
    std::cout << list_of_operators();
    return kSuccess;
  }
  const auto kind = op_kind_named(options.name);
  if (!kind) {
    report(str("no operator is named `", options.name, "`", similar_kind(options.name)));
    return kFailure;
  }
  std::cout << describe_op(*kind);
  return kSuccess;
}

}  // namespace

void add_ops(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<OpsOptions>();
  CLI::App* command = app.add_subcommand("ops", "List the operators, or print everything about one");
  command->add_option("NAME", options->name, "Name of an operator, e.g. SoftMax; without it all are listed")
      ->type_name("");
  command
      ->add_option_function<std::string>(
          "--format", [options](const std::string& format) { options->json = format == "json"; },
          "text: for a person (the default); json: the whole registry")
      ->type_name("text|json")
      ->check(CLI::IsMember({"text", "json"}).description(""));
  command->footer(
      "Examples:\n"
      "  partita ops\n"
      "  partita ops AvgPoolBackward\n"
      "  partita ops --format=json > registry.json");
  command->callback([options, &exit_code] { exit_code = print_operators(*options); });
}

}  // namespace partita::cli
