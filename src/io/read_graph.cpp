// SPDX-License-Identifier: Apache-2.0
// JSON text -> graph. Every operator is checked while it is added; failures start with "file:line: op ..".
#include "src/io/read_graph.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "partita/json.hpp"
#include "src/base/check.hpp"
#include "src/base/guarded.hpp"
#include "src/base/text.hpp"
#include "src/io/graph_links.hpp"
#include "src/io/json_tree.hpp"
#include "src/io/read_values.hpp"
#include "src/ir/op_def.hpp"
#include "src/ir/unknown_names.hpp"
#include "src/ir/verify_op.hpp"

namespace partita {
namespace {

constexpr std::string_view kRootKeys[] = {"version",     "engine_kind",  "fpmath_mode", "fpmath_mode_apply_to_int",
                                          "input_ports", "output_ports", "graph"};
constexpr std::string_view kOpKeys[] = {"id", "name", "kind", "attrs", "inputs", "outputs"};
/// Written by dumps that follow partitioning, about the run that made them; nothing of the operator.
constexpr std::string_view kForeignAttrs[] = {"partition_id", "backend"};

class GraphReader {
 public:
  explicit GraphReader(std::string_view file) : file_(file) {}

  Result<ReadGraph> read(const JsonValue& root) {
    Result<graph> settings = read_settings(root);
    if (!settings.ok()) return placed(std::move(settings).take_status());
    graph_ = std::move(settings).value();
    Status status = read_ops(root);
    if (!status.ok()) return placed(std::move(status));
    return ReadGraph{std::move(graph_), std::move(lines_), std::string(file_)};
  }

 private:
  Status placed(Status status) const { return std::move(status).at(str(file_, ":", reader_.failed_line())); }

  Result<graph> read_settings(const JsonValue& root) {
    PT_TRY(reader_.only_keys(root, kRootKeys));
    if (const JsonValue* v = root.find("version")) PT_TRY(reader_.text(*v).at("`version`").take_status());
    for (std::string_view ports : {"input_ports", "output_ports"}) {
      if (const JsonValue* v = root.find(ports)) PT_TRY(check_ports(*v).at(str("`", ports, "`")));
    }
    EngineKind kind = EngineKind::cpu;
    if (const JsonValue* v = root.find("engine_kind")) {
      PT_ASSIGN(const std::string name, reader_.text(*v).at("`engine_kind`"));
      if (name != "any" && name != "cpu" && name != "gpu") {
        return reader_.wrong(*v, str("expected any, cpu or gpu, found `", name, "`")).at("`engine_kind`");
      }
      // A graph recorded on another device describes the same computation.
      kind = name == "any" ? EngineKind::any : EngineKind::cpu;
    }
    FpMath mode = FpMath::strict;
    if (const JsonValue* v = root.find("fpmath_mode")) {
      PT_ASSIGN(mode, read_mode(*v).at("`fpmath_mode`"));
    }
    bool apply_to_int = false;
    if (const JsonValue* v = root.find("fpmath_mode_apply_to_int")) {
      PT_ASSIGN(apply_to_int, read_flag(*v).at("`fpmath_mode_apply_to_int`"));
    }
    graph settings(kind, mode);
    PT_TRY(settings.set_fpmath_mode(mode, apply_to_int));
    return settings;
  }

  /// Checked and not used: which tensors are ports follows from the operators, and files carry stale lists.
  Status check_ports(const JsonValue& v) {
    PT_ASSIGN(const JsonValue::List* ids, reader_.list(v));
    for (const JsonValue& id : *ids) PT_TRY(reader_.id(id).take_status());
    return {};
  }

  Result<FpMath> read_mode(const JsonValue& v) {
    PT_ASSIGN(const std::string name, reader_.text(v));
    for (FpMath mode : {FpMath::strict, FpMath::bf16, FpMath::f16, FpMath::any, FpMath::tf32}) {
      if (name == name_of(mode)) return mode;
    }
    return reader_.wrong(v, str("expected strict, bf16, f16, any or tf32, found `", name, "`"));
  }

  /// Dumps write this one as a string.
  Result<bool> read_flag(const JsonValue& v) {
    const auto* text = v.as<std::string>();
    if (!text) return reader_.boolean(v);
    if (*text != "true" && *text != "false")
      return reader_.wrong(v, str("expected true or false, found `", *text, "`"));
    return *text == "true";
  }

  Status read_ops(const JsonValue& root) {
    PT_ASSIGN(const JsonValue* ops, reader_.member(root, "graph"));
    PT_ASSIGN(const JsonValue::List* list, reader_.list(*ops).at("`graph`"));
    std::vector<op> made;
    for (const JsonValue& v : *list) {
      Result<op> read = read_op(v);
      if (!read.ok()) return std::move(read).take_status().at(place_of(v));
      made.push_back(std::move(*read));
      lines_.push_back(v.line);
    }
    take_strides_of_producers(made);
    for (size_t i = 0; i < made.size(); ++i) PT_TRY(reader_.here((*list)[i], graph_.add_op(made[i])));
    return {};
  }

  /// As partita::place_of, from what the file says, however wrong.
  std::string place_of(const JsonValue& v) const {
    const JsonValue *id = v.find("id"), *name = v.find("name"), *kind = v.find("kind");
    const auto* number = id ? id->as<int64_t>() : nullptr;
    const auto* name_text = name ? name->as<std::string>() : nullptr;
    const auto* kind_text = kind ? kind->as<std::string>() : nullptr;
    return str("op ", number ? std::to_string(*number) : str("number ", lines_.size() + 1, " of the file"),
               name_text && !name_text->empty() ? str(" '", *name_text, "'") : "",
               kind_text ? str(" (", *kind_text, ")") : "");
  }

  Result<op> read_op(const JsonValue& v) {
    PT_TRY(reader_.only_keys(v, kOpKeys));
    op out;
    PT_ASSIGN(const JsonValue* id, reader_.member(v, "id"));
    PT_ASSIGN(out.id, reader_.id(*id).at("`id`"));
    if (const JsonValue* name = v.find("name")) {
      PT_ASSIGN(out.name, reader_.text(*name).at("`name`"));
    }
    PT_ASSIGN(const JsonValue* kind, reader_.member(v, "kind"));
    PT_ASSIGN(out.kind, read_kind(*kind));
    if (const JsonValue* attrs = v.find("attrs")) PT_TRY(read_attrs(*attrs, out));
    PT_ASSIGN(out.inputs, read_tensors(v, "inputs", "input "));
    PT_ASSIGN(out.outputs, read_tensors(v, "outputs", "output "));
    return out;
  }

  Result<OpKind> read_kind(const JsonValue& v) {
    PT_ASSIGN(const std::string name, reader_.text(v).at("`kind`"));
    if (const std::optional<OpKind> kind = op_kind_named(name)) return *kind;
    return reader_.wrong(v, str("unknown operator kind `", name, "`", similar_kind(name)), Code::invalid_graph_op);
  }

  Status read_attrs(const JsonValue& attrs, op& out) {
    const auto* members = attrs.as<JsonValue::Object>();
    if (!members) return reader_.expected(attrs, "an object").at("`attrs`");
    for (const auto& [key, value] : *members) {
      if (std::find(std::begin(kForeignAttrs), std::end(kForeignAttrs), key) != std::end(kForeignAttrs)) continue;
      const std::optional<Attr> attr = attr_named(key);
      if (!attr) {
        return reader_.wrong(value, no_attribute(op_def(out.kind), key), Code::invalid_graph_op);
      }
      PT_ASSIGN(AttrValue read, reader_.attribute(value).at(str("attribute `", key, "`")));
      out.set_attr(*attr, std::move(read));
    }
    return {};
  }

  Result<std::vector<logical_tensor>> read_tensors(const JsonValue& v, std::string_view key, std::string_view port) {
    std::vector<logical_tensor> tensors;
    const JsonValue* entries = v.find(key);
    if (!entries) return tensors;
    PT_ASSIGN(const JsonValue::List* list, reader_.list(*entries).at(str("`", key, "`")));
    for (const JsonValue& entry : *list) {
      PT_ASSIGN(logical_tensor t, reader_.tensor(entry).at(str(port, tensors.size())));
      tensors.push_back(t);
    }
    return tensors;
  }

  std::string_view file_;
  JsonReader reader_;
  graph graph_;
  std::vector<int> lines_;
};

Status cannot_read(const std::string& path, int error) {
  return fail(Code::runtime_error, str("cannot be read: ", std::strerror(error))).at(path);
}

}  // namespace

Result<ReadGraph> read_graph(std::string_view text, std::string_view file) {
  PT_ASSIGN(const JsonValue root, parse_json(text, file));
  return GraphReader(file).read(root);
}

Result<ReadGraph> read_graph_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file) return cannot_read(path, errno);
  std::string text;
  char block[1 << 16];
  // Read until the end instead of asking for the size: pipes have none. One byte too many is enough to refuse.
  while (text.size() <= kMaxJsonBytes) {
    const size_t got = std::fread(block, 1, sizeof block, file.get());
    text.append(block, got);
    if (got < sizeof block) break;
  }
  if (std::ferror(file.get())) return cannot_read(path, errno);
  return read_graph(text, path);
}

Status with_line(Status status, const ReadGraph& from) {
  if (status.ok()) return status;
  for (size_t i = 0; i < from.lines.size(); ++i) {
    if (status.error().where.starts_with(place_of(from.value.ops()[i]))) {
      return std::move(status).at(str(from.file, ":", from.lines[i]));
    }
  }
  return std::move(status).at(from.file);
}

Result<graph> graph_from_json(std::string_view text, std::string_view file) {
  return guarded([&]() -> Result<graph> {
    PT_ASSIGN(ReadGraph read, read_graph(text, file));
    return std::move(read.value);
  });
}

Result<graph> graph_from_json_file(const std::string& path) {
  return guarded([&]() -> Result<graph> {
    PT_ASSIGN(ReadGraph read, read_graph_file(path));
    return std::move(read.value);
  });
}

}  // namespace partita
