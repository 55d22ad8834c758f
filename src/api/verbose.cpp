// SPDX-License-Identifier: Apache-2.0
// The lines of PARTITA_VERBOSE. Fields are parted by commas, entries of a field by semicolons or blanks, as readers of
// oneDNN's lines expect.
#include "src/api/verbose.hpp"

#include <algorithm>
#include <cstdio>

#include "src/base/env.hpp"
#include "src/base/text.hpp"

namespace partita {
namespace {

/// Without the characters that part fields and entries.
std::string plain(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return c == ',' || c == ';' || c == '\n'; }, '_');
  return text;
}

std::string crossed(const Dims& dims, std::string_view between) {
  std::vector<std::string> words;
  for (int64_t d : dims) words.push_back(d == kUnknownDim ? "?" : std::to_string(d));
  return join(words, between);
}

std::string tensor_text(std::string_view side, size_t number, const logical_tensor& t) {
  return str(side, number, "_", name_of(t.dtype), ":", t.id, ":", name_of(t.layout), ":", name_of(t.property), ":",
             t.rank_known ? crossed(t.dims, "x") : "?", ":", t.strides_known() ? crossed(t.strides, "s") : "");
}

std::string tensors_text(const CompiledForm& form) {
  std::vector<std::string> words;
  for (size_t i = 0; i < form.inputs().size(); ++i) words.push_back(tensor_text("in", i, form.inputs()[i]));
  for (size_t i = 0; i < form.outputs().size(); ++i) words.push_back(tensor_text("out", i, form.outputs()[i]));
  return join(words, " ");
}

/// Those of the operators that have one.
std::string formats_text(const Partition& p) {
  std::vector<std::string> words;
  for (const Attrs& attrs : p.attrs)
    for (const auto& [attr, word] : {std::pair(Attr::data_format, "data:"), std::pair(Attr::weights_format, "filter:")})
      if (attrs.has(attr)) words.push_back(word + text_of(attrs.get(attr)));
  return join(words, ";");
}

std::string kernels_text(const CompiledForm& form) {
  if (!form.executable) return "when_the_shape_inputs_arrive";
  std::vector<std::string> words;
  for (const Step& step : form.executable->program.steps) words.emplace_back(step.picked.kernel->name);
  return words.empty() ? "nothing_to_do" : join(words, ";");
}

}  // namespace

bool verbose() {
  static const bool on = env_flag(Env::verbose);
  return on;
}

std::string about(const CompiledForm& form) {
  const Partition& p = *form.partition;
  std::vector<std::string> names;
  for (const op& o : p.ops) names.push_back(plain(o.name.empty() ? str(name_of(o.kind), "_", o.id) : o.name));
  return str("cpu,", p.id, ",", p.pattern, ",", join(names, ";"), ",", formats_text(p), ",", tensors_text(form),
             ",fpm:", name_of(p.fpmath), p.apply_to_int ? ":true" : "", ",", kernels_text(form), ",partita");
}

void print_verbose(std::string_view event, const std::string& about, double milliseconds, std::string_view rest) {
  char time[32];
  std::snprintf(time, sizeof(time), "%.4g", milliseconds);
  const std::string line = str("partita_verbose,v1,graph,", event, ",", about, ",", time, rest, "\n");
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

}  // namespace partita
