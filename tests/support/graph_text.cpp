// SPDX-License-Identifier: Apache-2.0
// Parser of the tests' graph text; entry: ops_of().
#include "tests/support/graph_text.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <map>

#include "src/base/dtype.hpp"
#include "src/base/text.hpp"
#include "src/ir/op_def.hpp"

namespace partita::test {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::vector<op> run() {
    std::vector<op> ops;
    for (skip_separators(); at_ < text_.size(); skip_separators()) ops.push_back(parse_op(ops.size() + 1));
    return ops;
  }

 private:
  [[noreturn]] void bad(std::string_view what) const {
    std::cerr << "graph text: " << what << " at '" << text_.substr(at_, 30) << "'\n";
    std::abort();
  }
  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  void skip_separators() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == ';')) ++at_;
  }
  bool take(char c) {
    skip_spaces();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void need(char c) {
    if (!take(c)) bad(str("expected '", c, "'"));
  }
  std::string word() {
    skip_spaces();
    const size_t start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_' ||
                                  text_[at_] == '.' || text_[at_] == '-' || text_[at_] == '+'))
      ++at_;
    if (start == at_) bad("expected a word");
    return std::string(text_.substr(start, at_ - start));
  }

  logical_tensor tensor(Dtype inherited) {
    need('%');
    const uint64_t id = std::stoull(word());
    if (!take(':')) {
      if (auto known = types_.find(id); known != types_.end()) return known->second;
      return types_[id] = logical_tensor(id, inherited);
    }
    const auto dtype = dtype_named(word());
    if (!dtype) bad("unknown type");
    logical_tensor t(id, *dtype);
    if (take('[')) {
      Dims dims;
      while (!take(']')) {
        dims.push_back(take('?') ? kUnknownDim : std::stoll(word()));
        take(',');
      }
      t = logical_tensor(id, *dtype, dims);
    }
    return types_[id] = t;
  }

  op parse_op(uint64_t id) {
    const size_t start = at_;
    while (text_[at_] != '=' && at_ < text_.size()) ++at_;  // outputs inherit from the inputs, so these come first
    const size_t equals = at_;
    need('=');
    const std::string name = word();
    const auto kind = op_kind_named(name);
    if (!kind) bad("unknown operator " + name);
    op made(id, *kind);
    need('(');
    while (!take(')')) {
      made.add_input(tensor(Dtype::f32));
      take(',');
    }
    if (take('{'))
      while (!take('}')) {
        attribute(made);
        take(',');
      }
    const size_t end = at_;
    at_ = start;
    const Dtype inherited = made.inputs.empty() ? Dtype::f32 : made.inputs[0].dtype;
    for (skip_spaces(); at_ < equals; skip_spaces()) {
      made.add_output(tensor(inherited));
      take(',');
    }
    at_ = end;
    return made;
  }

  void attribute(op& made) {
    const std::string name = word();
    const auto key = attr_named(name);
    if (!key) bad("unknown attribute " + name);
    need('=');
    std::vector<std::string> values;
    const bool list = take('[');
    if (!list) values.push_back(word());
    while (list && !take(']')) {
      values.push_back(word());
      take(',');
    }
    const AttrDef* def = find_attr(op_def(made.kind), *key);
    made.set_attr(*key, value_of(def ? def->type : AttrType::s64, values));
  }

  static AttrValue value_of(AttrType type, const std::vector<std::string>& values) {
    switch (type) {
      case AttrType::boolean: return values[0] == "true" || values[0] == "1";
      case AttrType::s64: return int64_t{std::stoll(values[0])};
      case AttrType::f32: return std::stof(values[0]);
      case AttrType::string: return values[0];
      case AttrType::s64s: {
        std::vector<int64_t> list;
        for (const auto& v : values) list.push_back(std::stoll(v));
        return list;
      }
      case AttrType::f32s: {
        std::vector<float> list;
        for (const auto& v : values) list.push_back(std::stof(v));
        return list;
      }
    }
    return {};
  }

  std::string_view text_;
  size_t at_ = 0;
  std::map<uint64_t, logical_tensor> types_;
};

}  // namespace

std::vector<op> ops_of(std::string_view text) { return Parser(text).run(); }

Result<graph> graph_of(std::string_view text) {
  graph g;
  for (const op& o : ops_of(text))
    if (Status s = g.add_op(o); !s.ok()) return s;
  return g;
}

graph final_graph_of(std::string_view text) {
  auto g = graph_of(text);
  EXPECT_TRUE(g.ok()) << g.status().text();
  if (!g.ok()) return graph();
  const Status s = g->finalize();
  EXPECT_TRUE(s.ok()) << s.text();
  return std::move(g).value();
}

std::string partition_text(std::string_view text) {
  const graph g = final_graph_of(text);
  auto partitions = g.get_partitions();
  if (!partitions.ok()) return partitions.status().text();
  std::vector<std::string> parts;
  for (const partition& p : *partitions) {
    std::string ids;
    for (uint64_t id : p.ops()) ids += str(ids.empty() ? "" : ",", id);
    parts.push_back(str("[", p.pattern(), ": ", ids, "]"));
  }
  return join(parts, " ");
}

std::string list_of(std::span<const int64_t> list) { return str("[", text_of(Dims(list)), "]"); }

}  // namespace partita::test
