// SPDX-License-Identifier: Apache-2.0
// The table of special values in docs/numerics.md: what each operator of one operand makes of NaN, the infinities, both
// zeros and a denormal, by every kernel.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>

#include "partita/partition.hpp"
#include "src/base/text.hpp"
#include "src/ir/op_def.hpp"
#include "tests/support/op_rows.hpp"

namespace partita::test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr std::array kSpecial = {std::numeric_limits<float>::quiet_NaN(), kInf, -kInf, 0.0f, -0.0f, 0x1p-140f};
/// Vectors of each width and a part of one.
constexpr int64_t kCount = 37;

/// Alpha, beta and limits of the table's operators.
op operator_of(const OpDef& def) {
  op o(1, def.kind);
  o.add_input(logical_tensor(0, Dtype::f32, Dims{kCount}));
  for (const AttrDef& attr : def.attrs)
    if (attr.need == Need::required && attr.type == AttrType::f32)
      o.set_attr(attr.key, attr.key == Attr::min ? -0.25f : 0.25f);
  return o.add_output(logical_tensor(9, Dtype::f32, Layout::any));
}

/// Every pair of special values.
constexpr size_t kPairs = kSpecial.size() * kSpecial.size();

op pair_operator(OpKind kind) {
  op o(1, kind);
  for (uint64_t id : {0, 1}) o.add_input(logical_tensor(id, Dtype::f32, Dims{int64_t{kPairs}}));
  return o.add_output(logical_tensor(9, Dtype::f32, Layout::any));
}

/// Element-wise on one operand, from f32 to f32.
bool belongs(const OpDef& def) {
  return def.expression && def.inputs.size() == 1 && def.inputs[0].arity == Arity::one && def.kind != OpKind::Reorder &&
         def.kind != OpKind::TypeCast && partition::of(operator_of(def)).ok();
}

std::string text_of(float value, float source) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  if (value == 0) return std::signbit(value) ? "-0" : "0";
  if (value == source) return "x";
  std::ostringstream text;
  text.precision(4);
  text << value;
  return text.str();
}

using Row = std::vector<std::string>;

/// Operator -> what becomes of the special values, as the page says.
std::map<std::string, Row> documented() {
  std::map<std::string, Row> rows;
  std::ifstream page(PARTITA_SOURCE_DIR "/docs/numerics.md");
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("| x ")) inside = true;
    if (!line.starts_with("|")) inside = false;
    if (!inside || line.starts_with("| x ") || line.starts_with("|---")) continue;
    Row cells;
    std::istringstream text(line);
    for (std::string cell; std::getline(text, cell, '|');) {
      const size_t from = cell.find_first_not_of(' '), to = cell.find_last_not_of(' ');
      if (from != cell.npos) cells.push_back(cell.substr(from, to - from + 1));
    }
    rows[cells.at(0)] = Row(cells.begin() + 1, cells.end());
  }
  return rows;
}

Row made_by(const Storage& result) {
  Row row(kSpecial.size());
  const auto* values = static_cast<const float*>(result.data.get());
  for (size_t i = 0; i < static_cast<size_t>(kCount); ++i) {
    const size_t k = i % kSpecial.size();
    const std::string text = text_of(values[i], kSpecial[k]);
    if (!row[k].empty() && row[k] != text)
      row[k] += " or " + text;
    else
      row[k] = text;
  }
  return row;
}

TEST(special_values, are_as_documented) {
  const auto table = documented();
  std::map<std::string, Row> seen;
  for (const OpDef* def : all_ops()) {
    if (!belongs(*def)) continue;
    const auto single = partition::of(operator_of(*def));
    ASSERT_TRUE(single.ok()) << single.status().text();
    const auto listed = table.find(std::string(def->name));
    Tensors inputs = input_data(single->form()->ops[0], 1);
    auto* values = static_cast<float*>(inputs.at(0).data.get());
    for (size_t i = 0; i < static_cast<size_t>(kCount); ++i) values[i] = kSpecial[i % kSpecial.size()];
    for (const auto& [name, tensors] : run_every_row(*single->form(), inputs).rows) {
      const Row row = made_by(tensors.at(9));
      std::string line = str("| ", def->name);
      for (const std::string& cell : row) line += " | " + cell;
      EXPECT_TRUE(listed != table.end() && listed->second == row) << name << ":\n" << line << " |";
    }
    seen[std::string(def->name)] = {};
  }
  for (const auto& [name, row] : table) EXPECT_TRUE(seen.contains(name)) << name << " is no such operator";
  EXPECT_GT(seen.size(), 15u);
}

TEST(special_values, of_two_operands_meet_as_in_the_references) {
  for (const OpKind kind : {OpKind::Add, OpKind::Subtract, OpKind::Multiply, OpKind::Divide, OpKind::Maximum,
                            OpKind::Minimum, OpKind::SquaredDifference}) {
    SCOPED_TRACE(name_of(kind));
    const auto single = partition::of(pair_operator(kind));
    ASSERT_TRUE(single.ok()) << single.status().text();
    Tensors inputs = input_data(single->form()->ops[0], 1);
    for (size_t i = 0; i < kPairs; ++i) {
      static_cast<float*>(inputs.at(0).data.get())[i] = kSpecial[i / kSpecial.size()];
      static_cast<float*>(inputs.at(1).data.get())[i] = kSpecial[i % kSpecial.size()];
    }
    const OpRuns runs = run_every_row(*single->form(), inputs);
    const auto* expected = static_cast<const float*>(runs.rows.at("reference").at(9).data.get());
    for (const auto& [name, tensors] : runs.rows) {
      const auto* got = static_cast<const float*>(tensors.at(9).data.get());
      for (size_t i = 0; i < kPairs; ++i)
        EXPECT_EQ(text_of(got[i], 0), text_of(expected[i], 0))
            << name << " of " << kSpecial[i / kSpecial.size()] << " and " << kSpecial[i % kSpecial.size()];
    }
  }
}

}  // namespace
}  // namespace partita::test
