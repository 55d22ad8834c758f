// SPDX-License-Identifier: Apache-2.0
// The operator table: its own order and consistency, and its agreement with a description of oneDNN's opset.
#include "partita/registry.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>

#include "src/ir/op_def.hpp"
#include "tests/support/op_text.hpp"

namespace partita::test {
namespace {

using Json = nlohmann::json;

const Json& ours() {
  static const Json root = Json::parse(registry_json());
  return root;
}

/// Null where the description is not beside this checkout.
const Json& upstream() {
  static const Json root = [] {
    std::ifstream file(PARTITA_SOURCE_DIR "/../shared/spec/opset.json");
    return file ? Json::parse(file) : Json();
  }();
  return root;
}

Json by_name(const Json& list) {
  Json map = Json::object();
  for (const Json& entry : list) map[entry.at("name").get<std::string>()] = entry;
  return map;
}

/// What is not marked as an extension.
Json without_extensions(const Json& list) {
  Json rest = Json::array();
  for (Json entry : list) {
    if (entry.contains("extension")) continue;
    for (const char* side : {"inputs", "outputs"}) {
      if (!entry.contains(side)) continue;
      const Json ports = entry.at(side);
      entry[side] = without_extensions(ports);
      for (const Json& port : ports) {
        if (!port.contains("extension")) continue;
        entry["dtype_symbols"].erase(port.at("dtype_symbol").get<std::string>());
        for (Json& row : entry["dtype_combinations"]) row.erase(port.at("name").get<std::string>());
      }
    }
    if (entry.contains("attributes")) entry["attributes"] = without_extensions(Json(entry["attributes"]));
    rest.push_back(std::move(entry));
  }
  return rest;
}

std::set<std::string> as_set(const Json& list) {
  std::set<std::string> set;
  for (const Json& entry : list) set.insert(entry.dump());
  return set;
}

/// "absent" is a state of its own: no placeholder lists as defaults.
const std::set<std::string> kNoPlaceholder = {"src_shape",      "dst_shape", "weights_shape",
                                              "output_padding", "dilations", "axes"};
/// Any text was accepted, and all but one spelling silently meant something else.
const std::set<std::string> kTokensChecked = {"rounding_type", "qtype"};

/// Attributes of later versions than the description, which are not in it.
const std::set<std::string> kLater = {"mask"};

class registry_against_upstream : public testing::Test {
 protected:
  void SetUp() override {
    if (upstream().is_null()) GTEST_SKIP() << "../shared/spec/opset.json is not there to compare with";
  }
};

TEST(registry, lists_every_operator_at_its_number) {
  ASSERT_EQ(all_ops().size(), size_t{kOpKinds});
  for (int i = 0; i < kOpKinds; ++i) {
    const OpDef* def = all_ops()[static_cast<size_t>(i)];
    const int extension = i - kUpstreamOpKinds;
    EXPECT_EQ(static_cast<int>(def->kind), extension < 0 ? i : kFirstExtension + extension) << def->name;
    EXPECT_EQ(op_kind_at(i), def->kind);
    EXPECT_EQ(position_of(def->kind), i);
    EXPECT_EQ(find_op(def->kind), def);
  }
  for (int number : {kUpstreamOpKinds, kFirstExtension - 1, kFirstExtension + kOpKinds - kUpstreamOpKinds, 0xffff})
    EXPECT_EQ(find_op(static_cast<OpKind>(number)), nullptr) << number;
}

TEST(registry, extensions_never_appear_unless_asked_for) {
  int attributes = 0, ports = 0;
  for (const OpDef* def : all_ops()) {
    SCOPED_TRACE(def->name);
    EXPECT_EQ(is_extension(def->kind), def->c_name.empty());
    for (const AttrDef& attr : def->attrs) {
      if (!is_extension(attr)) continue;
      ++attributes;
      EXPECT_EQ(attr.need, Need::optional) << name_of(attr.key);
      EXPECT_EQ(attr.fallback.index(), 0u) << name_of(attr.key);
    }
    for (const auto* side : {def->inputs.begin(), def->outputs.begin()}) {
      const size_t count = side == def->inputs.begin() ? def->inputs.size() : def->outputs.size();
      for (size_t i = 0; i < count; ++i) {
        if (!side[i].extension) continue;
        ++ports;
        EXPECT_EQ(side[i].arity, Arity::optional);
      }
    }
  }
  EXPECT_EQ(attributes, 10);
  EXPECT_EQ(ports, 1);
}

TEST(registry, marks_extensions_for_a_person) {
  EXPECT_EQ(describe_op(OpKind::MaxPoolIndicesBackward).find("MaxPoolIndicesBackward (16386, extension)\n"), 0u);
  const std::string text = describe_op(OpKind::MaxPool);
  EXPECT_NE(text.find("(optional) (extension)  [T_indices: s32 s64]"), text.npos) << text;
  EXPECT_NE(text.find("optional, extension; what indices count"), text.npos) << text;
}

TEST(registry, names_and_kinds_map_to_each_other) {
  std::set<std::string_view> names;
  for (const OpDef* def : all_ops()) {
    EXPECT_EQ(op_kind_named(def->name), def->kind);
    EXPECT_EQ(name_of(def->kind), def->name);
    names.insert(def->name);
  }
  EXPECT_EQ(names.size(), size_t{kOpKinds});
  EXPECT_EQ(op_kind_named("relu"), std::nullopt);
  EXPECT_EQ(attr_named("data_format"), Attr::data_format);
  EXPECT_EQ(name_of(Attr::accumulation_mode), "accumulation_mode");
  EXPECT_EQ(attr_named("Axis"), std::nullopt);
}

TEST(registry, rows_are_complete) {
  for (const OpDef* def : all_ops()) {
    SCOPED_TRACE(def->name);
    const bool control = def->kind == OpKind::End || def->kind == OpKind::Wildcard;
    EXPECT_FALSE(def->summary.empty());
    EXPECT_EQ(def->infer == nullptr, control);
    EXPECT_EQ(def->step == StepKind::none, control);
    EXPECT_TRUE(def->expression == nullptr || def->step == StepKind::loop);
    for (const AttrDef& attr : def->attrs) {
      EXPECT_FALSE(attr.text.empty()) << name_of(attr.key);
      EXPECT_NE(name_of(attr.key), "unknown");
      EXPECT_LE(attr.aliases.size(), attr.allowed.size());
    }
    for (const CheckDef& check : def->checks) EXPECT_NE(check.sentence.find('`'), check.sentence.npos) << check.id;
  }
}

TEST(registry, ports_use_declared_type_symbols) {
  for (const OpDef* def : all_ops()) {
    std::set<std::string_view> declared, used;
    for (const TypeDef& type : def->types) declared.insert(type.symbol);
    for (const PortDef& port : def->inputs) used.insert(port.type);
    for (const PortDef& port : def->outputs) used.insert(port.type);
    used.erase("");
    EXPECT_EQ(declared, used) << def->name;
  }
}

TEST(registry, end_keeps_results_of_every_type) {
  const TypeDef& kept = op_def(OpKind::End).types[0];
  for (const OpDef* def : all_ops()) {
    for (const PortDef& port : def->outputs) {
      const auto* row = std::ranges::find(def->types, port.type, &TypeDef::symbol);
      if (row == def->types.end()) continue;
      const uint32_t left = row->types.bits & ~(kept.types | kept.extension).bits;
      EXPECT_EQ(left, 0u) << def->name << "." << port.name;
    }
  }
  const std::string text = describe_op(OpKind::End);
  EXPECT_NE(text.find("[T: undef f16 bf16 f32 s32 s8 u8; extension: boolean f8_e5m2 f8_e4m3 s4 u4 s64]"), text.npos)
      << text;
}

TEST(registry, shape_inputs_stand_for_an_attribute_of_their_operator) {
  int count = 0;
  for (const OpDef* def : all_ops()) {
    for (const PortDef& port : def->inputs) {
      if (port.value_of == Attr{0}) continue;
      EXPECT_NE(find_attr(*def, port.value_of), nullptr) << def->name;
      EXPECT_EQ(port.name, name_of(port.value_of));
      ++count;
    }
  }
  EXPECT_EQ(count, 15);
}

TEST(registry, describes_an_operator_for_a_person) {
  const std::string text = describe_op(OpKind::SoftMax);
  EXPECT_EQ(text.find("SoftMax (64, dnnl_graph_op_softmax)\n"), 0u);
  EXPECT_NE(text.find("default 1; axis that is normalised"), text.npos) << text;
  EXPECT_NE(text.find("one of none, inf_as_zero"), text.npos);
  EXPECT_NE(text.find("`axis` must be in [-rank, rank) of `src`"), text.npos);
}

TEST_F(registry_against_upstream, has_the_same_names_numbers_and_ports) {
  const Json mine = by_name(without_extensions(ours().at("ops")));
  ASSERT_EQ(mine.size(), upstream().at("ops").size());
  for (const Json& theirs : upstream().at("ops")) {
    SCOPED_TRACE(theirs.at("name"));
    const Json& op = mine.at(theirs.at("name").get<std::string>());
    EXPECT_EQ(op.at("enum"), theirs.at("enum"));
    EXPECT_EQ(op.at("c_enumerator"), theirs.at("c_enumerator"));
    for (const char* side : {"inputs", "outputs"}) {
      ASSERT_EQ(op.at(side).size(), theirs.at(side).size());
      for (size_t i = 0; i < op.at(side).size(); ++i) {
        for (const auto& [key, value] : theirs.at(side)[i].items())
          EXPECT_EQ(op.at(side)[i].at(key), value) << side << key;
      }
    }
  }
}

TEST_F(registry_against_upstream, has_the_same_attributes_but_for_the_improvements) {
  const Json mine = by_name(without_extensions(ours().at("ops")));
  for (const Json& theirs : upstream().at("ops")) {
    Json attrs = by_name(mine.at(theirs.at("name").get<std::string>()).at("attributes"));
    for (const std::string& later : kLater) attrs.erase(later);
    EXPECT_EQ(attrs.size(), theirs.at("attributes").size()) << theirs.at("name");
    for (const Json& attr : theirs.at("attributes")) {
      const std::string name = attr.at("name");
      SCOPED_TRACE(theirs.at("name").get<std::string>() + "." + name);
      ASSERT_TRUE(attrs.contains(name));
      const Json& own = attrs.at(name);
      for (const char* key : {"enum", "type", "required"}) EXPECT_EQ(own.at(key), attr.at(key));
      const bool placeholder = kNoPlaceholder.contains(name) && attr.at("has_default").get<bool>();
      EXPECT_EQ(own.at("default"), placeholder ? Json() : attr.at("default"));
      EXPECT_EQ(own.at("has_default"), Json(!placeholder && attr.at("has_default").get<bool>()));
      if (!kTokensChecked.contains(name)) {
        EXPECT_EQ(as_set(own.value("allowed", Json::array())), as_set(attr.value("allowed", Json::array())));
      }
    }
  }
}

TEST_F(registry_against_upstream, has_the_same_types) {
  const Json mine = by_name(without_extensions(ours().at("ops")));
  for (const Json& theirs : upstream().at("ops")) {
    const std::string name = theirs.at("name");
    SCOPED_TRACE(name);
    const Json& symbols = mine.at(name).at("dtype_symbols");
    EXPECT_EQ(symbols.size(), theirs.at("dtype_symbols").size());
    for (const auto& [symbol, types] : theirs.at("dtype_symbols").items()) {
      EXPECT_EQ(as_set(symbols.at(symbol)), as_set(types)) << symbol;
    }
    Json rows = theirs.at("dtype_combinations");
    for (Json& row : rows) {
      // The page lists a result that End does not have, and an unsigned type that the opset lacks.
      if (name == "End") row.erase("dst");
      if (name == "Dropout") row["seed"] = row["offset"] = "s64";
    }
    EXPECT_EQ(as_set(mine.at(name).at("dtype_combinations")), as_set(rows));
  }
}

TEST_F(registry_against_upstream, knows_every_attribute_number) {
  for (const Json& entry : upstream().at("attribute_enum")) {
    if (entry.at("name") == "undef" || entry.at("name") == "end") continue;
    const std::optional<Attr> attr = attr_named(entry.at("name").get<std::string>());
    ASSERT_TRUE(attr.has_value()) << entry;
    EXPECT_EQ(static_cast<int>(*attr), entry.at("enum").get<int>());
  }
}

}  // namespace
}  // namespace partita::test
