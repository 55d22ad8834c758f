// SPDX-License-Identifier: Apache-2.0
// Names that operators and attributes had before oneDNN 3.0, and near misses.
#include "src/ir/unknown_names.hpp"

#include <algorithm>
#include <vector>

#include "src/base/text.hpp"

namespace partita {
namespace {

struct Renamed {
  std::string_view former, now;
};

constexpr Renamed kRenamedAttrs[] = {
    {"filter_format", "weights_format"},
    {"filter_shape", "weights_shape"},
    {"input_shape", "src_shape"},
    {"output_shape", "dst_shape"},
};

/// Parts of kinds; the gradients had another ending.
constexpr Renamed kRenamedKinds[] = {
    {"BackpropFilters", "BackwardWeights"},
    {"BackwardFilters", "BackwardWeights"},
    {"Backprop", "Backward"},
    {"HardTanh", "Clamp"},
};

std::string_view renamed_attr(std::string_view name) {
  const auto* row = std::ranges::find(kRenamedAttrs, name, &Renamed::former);
  return row != std::end(kRenamedAttrs) ? row->now : std::string_view();
}

std::string renamed_kind(std::string_view name) {
  std::string now(name);
  for (const Renamed& part : kRenamedKinds)
    if (const size_t at = now.find(part.former); at != now.npos) now.replace(at, part.former.size(), part.now);
  return now;
}

}  // namespace

std::string no_attribute(const OpDef& def, std::string_view name) {
  std::vector<std::string_view> names;
  for (const AttrDef& a : def.attrs) names.push_back(name_of(a.key));
  const std::string_view now = renamed_attr(name);
  const bool renamed = std::ranges::count(names, now) > 0;
  return str(def.name, " has no attribute `", name, "`, it has ", names.empty() ? "none" : join(names, ", "),
             renamed ? str(", did you mean `", now, "`?") : suggestion(name, names));
}

std::string similar_kind(std::string_view name) {
  const std::string now = renamed_kind(name);
  if (now != name && op_kind_named(now)) return str(", did you mean `", now, "`?");
  std::vector<std::string_view> names;
  for (const OpDef* def : all_ops()) names.push_back(def->name);
  return suggestion(name, names);
}

}  // namespace partita
