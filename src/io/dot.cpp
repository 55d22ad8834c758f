// SPDX-License-Identifier: Apache-2.0
// graph -> DOT, and graph -> one line an operator.
#include "src/io/dot.hpp"

#include <map>
#include <utility>

#include "src/base/shape.hpp"
#include "src/base/text.hpp"

namespace partita {
namespace {

/// A string of DOT: quotes and backslashes escaped, line ends kept as the escape DOT knows.
std::string dot_string(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out + '"';
}

/// Type and shape, and what is unusual of the rest.
std::string tensor_text(const logical_tensor& t) {
  std::string out = t.text();
  if (t.strides_known() && t.shape_known() && !is_dense(t.dims, t.strides)) out += str(" strides ", text_of(t.strides));
  if (t.layout == Layout::any || t.layout == Layout::opaque) out += str(" ", name_of(t.layout));
  if (t.property != Property::undef && t.property != Property::variable) out += str(" ", name_of(t.property));
  return out;
}

std::string attrs_text(const op& o) {
  std::vector<std::string> parts;
  for (const auto& [attr, value] : o.attrs()) parts.push_back(str(name_of(attr), "=", text_of(value)));
  return join(parts, ", ");
}

std::string op_label(const op& o) {
  std::string label = str(name_of(o.kind), "  #", o.id);
  if (!o.name.empty()) label += "\n" + o.name;
  for (const auto& [attr, value] : o.attrs()) label += str("\n", name_of(attr), "=", text_of(value));
  return label;
}

}  // namespace

std::string graph_to_dot(const graph& g) {
  std::string out =
      "digraph partita {\n"
      "  node [shape=box, fontname=\"monospace\"];\n"
      "  edge [fontname=\"monospace\"];\n";
  std::map<uint64_t, std::string> source;  // node a tensor comes out of
  for (size_t i = 0; i < g.ops().size(); ++i) {
    out += str("  op", i, " [label=", dot_string(op_label(g.ops()[i])), "];\n");
    for (const logical_tensor& t : g.ops()[i].outputs) source.emplace(t.id, str("op", i));
  }
  std::map<uint64_t, const logical_tensor*> results;
  for (const op& o : g.ops()) {
    for (const logical_tensor& t : o.outputs) results.emplace(t.id, &t);
  }
  for (size_t i = 0; i < g.ops().size(); ++i) {
    for (const logical_tensor& t : g.ops()[i].inputs) {
      const auto [from, outside] = source.emplace(t.id, str("t", t.id));
      if (outside) out += str("  ", from->second, " [shape=ellipse, label=\"%", t.id, "\"];\n");
      out += str("  ", from->second, " -> op", i, " [label=", dot_string(str("%", t.id, "\n", tensor_text(t))), "];\n");
      results.erase(t.id);
    }
  }
  for (const auto& [id, t] : results) {
    out += str("  t", id, " [shape=ellipse, label=\"%", id, "\"];\n  ", source.at(id), " -> t", id,
               " [label=", dot_string(tensor_text(*t)), "];\n");
  }
  return out + "}\n";
}

std::string op_to_text(const op& o) {
  std::vector<std::string> ids, inputs, results;
  for (const logical_tensor& t : o.outputs) {
    ids.push_back(str("%", t.id));
    results.push_back(tensor_text(t));
  }
  for (const logical_tensor& t : o.inputs) inputs.push_back(str("%", t.id, ": ", tensor_text(t)));
  std::string out = ids.empty() ? "" : join(ids, ", ") + " = ";
  out += str(name_of(o.kind), "(", join(inputs, ", "), ")");
  if (!o.attrs().empty()) out += str(" {", attrs_text(o), "}");
  return results.empty() ? out : str(out, " -> ", join(results, ", "));
}

std::string graph_to_text(const graph& g) {
  std::string out;
  for (const op& o : g.ops()) out += op_to_text(o) + "\n";
  return out;
}

}  // namespace partita
