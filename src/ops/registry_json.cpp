// SPDX-License-Identifier: Apache-2.0
// The operator table as JSON: for `partita ops --format=json` and for comparing it with other descriptions of the
// opset.
#include <nlohmann/json.hpp>

#include "partita/registry.hpp"
#include "src/base/text.hpp"
#include "src/ir/op_def.hpp"

namespace partita {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const AttrLiteral& literal) {
  if (const auto* flag = std::get_if<bool>(&literal)) return *flag;
  if (const auto* number = std::get_if<int64_t>(&literal)) return *number;
  // Through its own text, so that 1e-05f is not printed with the digits of a double.
  if (const auto* number = std::get_if<float>(&literal)) return Json::parse(text_of(*number));
  if (const auto* text = std::get_if<std::string_view>(&literal)) return *text;
  return nullptr;
}

Json json_of(const AttrDef& attr) {
  Json j;
  j["name"] = name_of(attr.key);
  j["enum"] = static_cast<int>(attr.key);
  j["type"] = name_of(attr.type);
  j["required"] = attr.need == Need::required;
  j["has_default"] = attr.fallback.index() != 0;
  j["default"] = json_of(attr.fallback);
  if (!attr.allowed.empty()) j["allowed"] = std::vector<std::string>(attr.allowed.begin(), attr.allowed.end());
  if (!attr.aliases.empty()) j["aliases"] = std::vector<std::string>(attr.aliases.begin(), attr.aliases.end());
  if (is_extension(attr)) j["extension"] = true;
  j["text"] = attr.text;
  return j;
}

template <size_t N>
Json json_of(const Few<PortDef, N>& ports) {
  Json list = Json::array();
  for (size_t i = 0; i < ports.size(); ++i) {
    Json j;
    j["index"] = i;
    j["name"] = ports[i].name;
    j["required"] = ports[i].arity == Arity::variadic ? Json("variadic") : Json(ports[i].arity == Arity::one);
    j["dtype_symbol"] = ports[i].type.empty() ? std::string_view("any") : ports[i].type;
    if (ports[i].value_of != Attr{0}) j["stands_for"] = name_of(ports[i].value_of);
    if (ports[i].extension) j["extension"] = true;
    j["text"] = ports[i].text;
    list.push_back(std::move(j));
  }
  return list;
}

std::vector<Dtype> types_of(DtypeSet set) {
  std::vector<Dtype> types;
  for (int i = 0; i < 32; ++i) {
    if (set.has(static_cast<Dtype>(i))) types.push_back(static_cast<Dtype>(i));
  }
  return types;
}

/// An operator with every port present, whose tensors have the types chosen for the symbols.
op typed_op(const OpDef& def, const std::vector<Dtype>& chosen) {
  const auto tensor = [&](const PortDef& port) {
    for (size_t s = 0; s < def.types.size(); ++s) {
      if (def.types[s].symbol == port.type) return logical_tensor(0, chosen[s]);
    }
    return logical_tensor(0, Dtype::undef);
  };
  op o(0, def.kind);
  for (const PortDef& port : def.inputs) o.add_input(tensor(port));
  for (const PortDef& port : def.outputs) o.add_output(tensor(port));
  return o;
}

bool accepted(const OpDef& def, const OpView& view) {
  for (const CheckDef& check : def.checks) {
    if (check.types_only && !check.holds(view)) return false;
  }
  return !def.documented || def.documented(view);
}

/// Every choice of types that the symbols and the checks on types allow, as far as it is documented.
Json combinations(const OpDef& def) {
  Json list = Json::array();
  std::vector<std::vector<Dtype>> choices{{}};
  for (const TypeDef& type : def.types) {
    std::vector<std::vector<Dtype>> longer;
    for (const auto& prefix : choices) {
      for (Dtype t : types_of(type.types)) {
        longer.push_back(prefix);
        longer.back().push_back(t);
      }
    }
    choices = std::move(longer);
  }
  const Attrs none;
  for (const auto& chosen : choices) {
    const op o = typed_op(def, chosen);
    if (!accepted(def, OpView(o, none))) continue;
    Json row = Json::object();
    for (size_t i = 0; i < def.inputs.size(); ++i) row[std::string(def.inputs[i].name)] = name_of(o.inputs[i].dtype);
    for (size_t i = 0; i < def.outputs.size(); ++i) row[std::string(def.outputs[i].name)] = name_of(o.outputs[i].dtype);
    list.push_back(std::move(row));
  }
  return list;
}

Json json_of(const OpDef& def) {
  Json j;
  j["name"] = def.name;
  j["enum"] = static_cast<int>(def.kind);
  if (is_extension(def.kind))
    j["extension"] = true;
  else
    j["c_enumerator"] = str("dnnl_graph_op_", def.c_name);
  j["summary"] = def.summary;
  j["attributes"] = Json::array();
  for (const AttrDef& attr : def.attrs) j["attributes"].push_back(json_of(attr));
  j["inputs"] = json_of(def.inputs);
  j["outputs"] = json_of(def.outputs);
  j["dtype_symbols"] = Json::object();
  for (const TypeDef& type : def.types) {
    Json& names = j["dtype_symbols"][std::string(type.symbol)] = Json::array();
    for (Dtype t : types_of(type.types)) names.push_back(name_of(t));
    for (Dtype t : types_of(type.extension)) j["dtype_extensions"][std::string(type.symbol)].push_back(name_of(t));
  }
  j["dtype_combinations"] = combinations(def);
  j["rules"] = Json::array();
  for (const CheckDef& check : def.checks) {
    j["rules"].push_back(Json{{"id", check.id}, {"sentence", check.sentence}});
  }
  return j;
}

}  // namespace

std::vector<OpKind> all_op_kinds() {
  std::vector<OpKind> kinds;
  for (const OpDef* def : all_ops()) kinds.push_back(def->kind);
  return kinds;
}

std::string registry_json() {
  Json root;
  root["op_count"] = all_ops().size();
  root["ops"] = Json::array();
  for (const OpDef* def : all_ops()) root["ops"].push_back(json_of(*def));
  return root.dump(2) + "\n";
}

}  // namespace partita
