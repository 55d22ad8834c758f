// SPDX-License-Identifier: Apache-2.0
// graph -> JSON text: equal graphs give equal text, and reading it gives an equal graph.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "partita/json.hpp"
#include "src/base/text.hpp"

namespace partita {
namespace {

/// The release of the dumps whose layout this is; readers ignore it.
constexpr std::string_view kVersion = "3.7.2";

std::string json_string(std::string_view text) {
  using nlohmann::json;
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string number_text(float value) {
  if (!std::isfinite(value)) return json_string(text_of(value));  // JSON has no such numbers
  return value == 0 && std::signbit(value) ? "-0.0" : text_of(value);
}

/// Text with two spaces a level and every key and element on its own line.
class Writer {
 public:
  std::string take() && { return std::move(out_) + "\n"; }

  void open(char bracket) {
    out_ += bracket;
    empty_.push_back(true);
  }
  void close(char bracket) {
    const bool empty = empty_.back();
    empty_.pop_back();
    if (!empty) new_line();
    out_ += bracket;
  }
  void item() {
    if (!empty_.back()) out_ += ',';
    empty_.back() = false;
    new_line();
  }
  void key(std::string_view name) {
    item();
    out_ += json_string(name) + ": ";
  }
  void raw(std::string_view text) { out_ += text; }
  void member(std::string_view name, std::string_view text) {
    key(name);
    raw(text);
  }
  template <class List, class Text>
  void list(const List& entries, Text text) {
    open('[');
    for (const auto& entry : entries) {
      item();
      raw(text(entry));
    }
    close(']');
  }
  template <class List>
  void integers(std::string_view name, const List& entries) {
    key(name);
    list(entries, [](auto n) { return std::to_string(n); });
  }

 private:
  void new_line() { out_.append("\n").append(2 * empty_.size(), ' '); }

  std::string out_;
  std::vector<bool> empty_;  ///< of each open bracket
};

void write_value(Writer& w, std::string_view type, const AttrValue& value) {
  w.member("type", json_string(type));
  w.key("value");
  if (const bool* b = std::get_if<bool>(&value)) w.raw(*b ? "1" : "0");
  if (const int64_t* i = std::get_if<int64_t>(&value)) w.raw(std::to_string(*i));
  if (const float* f = std::get_if<float>(&value)) w.raw(number_text(*f));
  if (const auto* s = std::get_if<std::string>(&value)) w.raw(json_string(*s));
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) {
    w.list(*list, [](int64_t n) { return std::to_string(n); });
  }
  if (const auto* list = std::get_if<std::vector<float>>(&value)) w.list(*list, number_text);
}

void write_attrs(Writer& w, const op& o) {
  constexpr std::string_view kTypes[] = {"", "bool", "s64", "f32", "string", "s64[]", "f32[]"};  // by index()
  std::vector<std::pair<std::string_view, const AttrValue*>> sorted;
  for (const auto& [attr, value] : o.attrs()) sorted.emplace_back(name_of(attr), &value);
  std::sort(sorted.begin(), sorted.end());
  w.key("attrs");
  w.open('{');
  for (const auto& [name, value] : sorted) {
    w.key(name);
    w.open('{');
    write_value(w, kTypes[value->index()], *value);
    w.close('}');
  }
  w.close('}');
}

void write_tensor(Writer& w, const logical_tensor& t) {
  static const Dims kMarker{kUnknownDim};
  w.open('{');
  w.member("id", std::to_string(t.id));
  w.member("dtype", json_string(name_of(t.dtype)));
  w.integers("shape", t.rank_known ? t.dims : kMarker);
  const bool said =
      t.layout == Layout::strided && t.rank_known && !(t.rank() > 0 && t.strides == Dims(t.rank(), kUnknownDim));
  // Without strides an open layout stays open when it is read; with them it would become strided.
  if (t.layout != Layout::undef) w.integers("stride", said ? t.strides : kMarker);
  w.member("layout_type", json_string(name_of(t.layout)));
  w.member("property_type", json_string(name_of(t.property)));
  if (t.layout == Layout::opaque) w.member("layout_id", std::to_string(t.layout_id));
  if (t.rank_known && t.dims == kMarker) w.member("rank", "1");
  w.close('}');
}

void write_tensors(Writer& w, std::string_view name, const std::vector<logical_tensor>& tensors) {
  w.key(name);
  w.open('[');
  for (const logical_tensor& t : tensors) {
    w.item();
    write_tensor(w, t);
  }
  w.close(']');
}

void write_op(Writer& w, const op& o) {
  w.open('{');
  w.member("id", std::to_string(o.id));
  w.member("name", json_string(o.name));
  w.member("kind", json_string(name_of(o.kind)));
  write_attrs(w, o);
  write_tensors(w, "inputs", o.inputs);
  write_tensors(w, "outputs", o.outputs);
  w.close('}');
}

/// Inputs: tensors without producer, one entry a use. Outputs: tensors that nobody or an End reads.
void write_ports(Writer& w, const std::vector<op>& ops) {
  std::unordered_set<uint64_t> produced, consumed;
  for (const op& o : ops) {
    for (const logical_tensor& t : o.outputs) produced.insert(t.id);
    for (const logical_tensor& t : o.inputs) {
      if (o.kind != OpKind::End) consumed.insert(t.id);
    }
  }
  std::vector<uint64_t> inputs, outputs;
  for (const op& o : ops) {
    for (const logical_tensor& t : o.inputs) {
      if (!produced.count(t.id)) inputs.push_back(t.id);
    }
    for (const logical_tensor& t : o.outputs) {
      if (!consumed.count(t.id)) outputs.push_back(t.id);
    }
  }
  w.integers("input_ports", inputs);
  w.integers("output_ports", outputs);
}

}  // namespace

std::string graph_to_json(const graph& g) {
  Writer w;
  w.open('{');
  w.member("version", json_string(kVersion));
  w.member("engine_kind", json_string(g.engine_kind() == EngineKind::any ? "any" : "cpu"));
  w.member("fpmath_mode", json_string(name_of(g.fpmath_mode())));
  w.member("fpmath_mode_apply_to_int", json_string(g.fpmath_apply_to_int() ? "true" : "false"));
  write_ports(w, g.ops());
  w.key("graph");
  w.open('[');
  for (const op& o : g.ops()) {
    w.item();
    write_op(w, o);
  }
  w.close(']');
  w.close('}');
  return std::move(w).take();
}

}  // namespace partita
