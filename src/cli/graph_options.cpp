// SPDX-License-Identifier: Apache-2.0
// Options for graphs, expansion of folders, loading.
#include "src/cli/graph_options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "src/base/check.hpp"

namespace partita::cli {
namespace {

constexpr const char* kChanges = "Changes to the graph before it is used";

}  // namespace

void add_graph_options(CLI::App& command, GraphOptions& options, bool one_file, bool required) {
  CLI::Option* files = command.add_option(
      "FILE", options.paths, one_file ? "A graph as JSON" : "Graphs as JSON; a folder means all *.json files below it");
  files->type_name("")->required(required);
  if (one_file) files->expected(1);
  Overrides& o = options.overrides;
  const auto add = [&](const char* name, std::string& text, const char* syntax, const char* about) {
    command.add_option(name, text, about)->type_name(syntax)->group(kChanges);
  };
  add("--in-shapes", o.in_shapes, "ID:2x3[+..]", "New dims of graph inputs, by tensor id; shapes behind them follow");
  add("--op-attrs", o.op_attrs, "ID:name:value[*..][+..]", "New attribute values, by operator id; lists as 1x2x3");
  add("--dt", o.dt, "TYPE or ID:TYPE[+..]", "f32, bf16 or f16 for the whole graph, or types of single tensors");
  add("--mb", o.mb, "N", "Batch size: dim 0 of every input that carries the batch");
  add("--op-kind", o.op_kind, "ID:Kind[+..]", "Another kind for an operator; undef removes it");
  add("--tensor-property", o.tensor_property, "ID:PROPERTY[+..]", "constant, variable or host_scalar, by tensor id");
  add("--attr-fpmath", o.attr_fpmath, "MODE[:BOOL]", "strict, bf16, f16, any or tf32; true: for integers as well");
}

void add_policy(CLI::App& command, Policy& policy) {
  command
      .add_option_function<std::string>(
          "--policy", [&policy](const std::string& name) { policy = name == "debug" ? Policy::debug : Policy::fusion; },
          "fusion: operators are grouped (the default); debug: each operator alone")
      ->type_name("fusion|debug")
      ->check(CLI::IsMember({"fusion", "debug"}).description(""));
}

Result<std::vector<std::string>> graph_files(const std::vector<std::string>& paths) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      files.push_back(path);  // a file that is not there is reported when it is read
      continue;
    }
    const size_t before = files.size();
    for (fs::recursive_directory_iterator at(path, error), end; !error && at != end; at.increment(error))
      if (at->path().extension() == ".json" && !at->is_directory(error)) files.push_back(at->path().string());
    if (error) return fail(Code::runtime_error, "the folder cannot be read: " + error.message()).at(path);
    if (files.size() == before) return fail(Code::invalid_arguments, "no *.json file in this folder or below").at(path);
    std::sort(files.begin() + static_cast<long>(before), files.end());
  }
  return files;
}

Result<LoadedGraph> load_graph(const std::string& file, const Overrides& overrides) {
  PT_ASSIGN(ReadGraph source, read_graph_file(file));
  if (overrides.empty()) {
    graph value = source.value;
    return LoadedGraph{std::move(value), std::move(source)};
  }
  Result<graph> changed = apply_overrides(source.value, overrides);
  if (!changed.ok()) return with_line(std::move(changed).take_status(), source);
  return LoadedGraph{std::move(changed).value(), std::move(source)};
}

}  // namespace partita::cli
