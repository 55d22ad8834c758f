// SPDX-License-Identifier: Apache-2.0
// No attribute is ignored: another value of it changes what each kernel row computes, the shapes, or what is accepted.
// The list of attributes is the registry, so one without a case fails.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "src/base/dtype.hpp"
#include "src/base/text.hpp"
#include "src/harness/compare.hpp"
#include "src/ir/op_def.hpp"
#include "tests/ops/attribute_cases.hpp"
#include "tests/support/graph_text.hpp"
#include "tests/support/op_rows.hpp"
#include "tests/support/programs.hpp"

namespace partita::test {
namespace {

using Name = std::pair<std::string, std::string>;

/// Far above what rounding does to small f32 problems, far below what the cases change.
constexpr double kTolerance = 1e-5;

/// A later attribute of one name wins over an earlier one.
std::string with(std::string text, const std::string& attribute, const std::string& value) {
  const bool list = text.ends_with('}');
  if (list) text.pop_back();
  return str(text, list ? ", " : " {", attribute, "=", value, "}");
}

op op_of(const std::string& text) { return ops_of(text).at(0); }

/// What "none" and "inf_as_zero" of SoftMax differ in.
void put_infinities(Tensors& inputs) {
  Storage& src = inputs.begin()->second;
  for (int64_t row = 0; row < 3; ++row)
    store_from_double(src.data.get(), src.desc.dtype, row * 3 + 1, -std::numeric_limits<double>::infinity());
}

/// Of two channels, last: cells by either index_base, though not the same ones.
void put_indices(Storage& indices) {
  for (int64_t i = 0; i < indices.desc.elements(); ++i)
    store_from_double(indices.data.get(), indices.desc.dtype, i, i % 2 == 0 ? 2 : 1);
}

OpRuns runs_of(const op& o, const Partition& single) {
  Tensors inputs = input_data(o, 1);
  if (o.kind == OpKind::MaxPoolIndicesBackward) put_indices(inputs.at(o.inputs[1].id));
  if (o.kind == OpKind::SoftMax && single.attrs[0].has(Attr::mode)) put_infinities(inputs);
  return run_every_row(single, inputs);
}

OpRuns runs_of(const std::string& text) {
  const op o = op_of(text);
  const auto single = partition::of(o);
  if (!single.ok()) return {single.status().text(), {}};
  return runs_of(o, *single->form());
}

/// The operator as it would be if everything behind the check lost the attribute and took its default, or where it has
/// none the first value of the case.
OpRuns runs_without_attribute(const AttributeCase& c, const std::string& value) {
  const op base = op_of(c.op), changed = op_of(with(c.op, c.attribute, value));
  const auto single = partition::of(changed);
  if (!single.ok()) return {single.status().text(), {}};
  const Attr attr = attr_named(c.attribute).value();
  const AttrValue fallback = value_of(find_attr(op_def(base.kind), attr)->fallback);
  Partition lost = *single->form();
  lost.attrs[0].set(attr, std::holds_alternative<std::monostate>(fallback) ? base.attr(attr) : fallback);
  return runs_of(changed, lost);
}

bool same_shapes(const Tensors& a, const Tensors& b) {
  for (const auto& [id, storage] : a)
    if (storage.desc.dims != b.at(id).desc.dims) return false;
  return true;
}

bool same_values(const Tensors& a, const Tensors& b) {
  for (const auto& [id, storage] : a)
    if (compare(storage, b.at(id), kTolerance).wrong > 0) return false;
  return true;
}

/// Empty where every row that ran both shows the effect, otherwise what does not.
std::string without_effect(const OpRuns& a, const OpRuns& b, Effect effect) {
  if (effect == Effect::refusal) return a.refusal.empty() == b.refusal.empty() ? "both are accepted or refused" : "";
  if (!a.refusal.empty() || !b.refusal.empty()) return "refused: " + a.refusal + b.refusal;
  int both = 0;
  for (const auto& [row, results] : a.rows) {
    const auto other = b.rows.find(row);
    if (other == b.rows.end()) continue;  // declining is a way to notice
    ++both;
    const bool shapes = same_shapes(results, other->second);
    // Not to the bit: oneDNN's order of additions may follow the alignment of memory.
    const bool same = shapes && same_values(results, other->second);
    if (effect == Effect::nothing && !same) return row + " differs";
    if (effect == Effect::shapes && shapes) return row + " gives the same shapes";
    if (effect == Effect::values && !shapes) return row + " gives another shape";
    if (effect == Effect::values && same) return row + " gives the same values";
  }
  return both > 2 ? "" : "no row took both";  // the compiled form and the reference always do
}

/// Results that differ could both be wrong.
void expect_agreement(const OpRuns& runs) {
  if (!runs.refusal.empty()) return;
  const Tensors& reference = runs.rows.at("reference");
  for (const auto& [row, results] : runs.rows) {
    ASSERT_TRUE(same_shapes(results, reference)) << row;
    for (const auto& [id, storage] : results) {
      const Difference d = compare(storage, reference.at(id), kTolerance);
      EXPECT_EQ(d.wrong, 0) << row << ": " << d.first;
    }
  }
}

std::string place_of(const AttributeCase& c, const std::string& value) {
  return str(c.op, " with ", c.attribute, "=", value);
}

TEST(attribute_sensitivity, covers_every_attribute_of_every_operator) {
  std::set<Name> known, covered;
  for (const OpDef* def : all_ops())
    for (const AttrDef& attr : def->attrs) known.emplace(def->name, name_of(attr.key));
  for (const AttributeCase& c : attribute_cases()) {
    const op o = op_of(c.op);
    covered.emplace(name_of(o.kind), c.attribute);
    EXPECT_EQ(c.effect == Effect::nothing, !c.why.empty()) << c.op;
    const AttrDef* attr = find_attr(op_def(o.kind), attr_named(c.attribute).value());
    ASSERT_NE(attr, nullptr) << c.op << " " << c.attribute;
    const AttrValue fallback = value_of(attr->fallback), &given = o.attr(attr->key);
    EXPECT_TRUE(std::holds_alternative<std::monostate>(fallback) || std::holds_alternative<std::monostate>(given))
        << c.op << ": " << c.attribute << " must have its default";
  }
  for (const auto& [op, attribute] : known)
    EXPECT_TRUE(covered.contains({op, attribute})) << op << "." << attribute << " has no case";
}

TEST(attribute_sensitivity, another_value_changes_the_results_of_every_row) {
  for (const AttributeCase& c : attribute_cases()) {
    std::vector<OpRuns> all;
    all.push_back(runs_of(c.op));
    expect_agreement(all[0]);
    for (const std::string& value : c.others) {
      SCOPED_TRACE(place_of(c, value));
      OpRuns runs = runs_of(with(c.op, c.attribute, value));
      expect_agreement(runs);
      const size_t compared = c.effect == Effect::refusal ? 1 : all.size();
      for (size_t i = 0; i < compared; ++i) EXPECT_EQ(without_effect(all[i], runs, c.effect), "");
      all.push_back(std::move(runs));
    }
  }
}

TEST(attribute_sensitivity, a_lost_attribute_would_be_noticed) {
  int lost = 0;
  for (const AttributeCase& c : attribute_cases()) {
    if (c.effect == Effect::nothing || !partition::of(op_of(c.op)).ok()) continue;
    const OpRuns base = runs_of(c.op);
    for (const std::string& value : c.others) {
      if (!partition::of(op_of(with(c.op, c.attribute, value))).ok()) continue;  // no kernel ever sees it
      SCOPED_TRACE(place_of(c, value));
      EXPECT_NE(without_effect(base, runs_without_attribute(c, value), c.effect), "");
      ++lost;
    }
  }
  EXPECT_GT(lost, 150);
}

}  // namespace
}  // namespace partita::test
