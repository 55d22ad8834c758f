// SPDX-License-Identifier: Apache-2.0
// Select and GenIndex, the pieces that masks are made of.
#include "src/base/check.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "src/ops/attributes.hpp"
#include "src/ops/expressions.hpp"
#include "src/ops/families.hpp"
#include "src/ops/rules.hpp"

namespace partita {
namespace {

Value choose(ExprBuilder& b, const ExprInputs& x) { return b.select(x.in[0], x.in[1], x.in[2]); }

Value position(ExprBuilder& b, const ExprInputs& x) { return b.index(*normal_axis(x.attrs.i64(Attr::axis), x.rank)); }

Status select_shape(ShapeContext& c) {
  if (c.attrs().is(Attr::auto_broadcast, "none") && (c.in(1) != c.in(2) || c.in(0) != c.in(1))) {
    return c.wrong(str("without broadcast (auto_broadcast=none) the shapes must be equal: ", c.input_text(0), ", ",
                       both_texts(c, 1, 2)));
  }
  const std::optional<Dims> dims = broadcast(c.in(1), c.in(2));
  if (!dims) return c.wrong(str("aligned at the right, dims must be equal or one of them 1: ", both_texts(c, 1, 2)));
  PT_TRY(broadcasts_into(c, 0, *dims, "the shape of `src_0` with `src_1`,"));
  return c.set(0, *dims);
}

}  // namespace

constexpr OpDef kSelect = {
    .kind = OpKind::Select,
    .name = "Select",
    .c_name = "select",
    .summary = "Takes each element from src_0 where cond is true, from src_1 elsewhere.",
    .inputs = {{"cond", "T1", "which one to take; broadcasts to the shape of the other two"},
               {"src_0", "T2", "values where true"},
               {"src_1", "T2", "values where false"}},
    .outputs = {{"dst", "T2", "the chosen values"}},
    .attrs = {kAutoBroadcast},
    .types = {{"T1", {Dtype::boolean}}, {"T2", kFloats}},
    .infer = select_shape,
    .step = StepKind::loop,
    .expression = choose,
};

constexpr OpDef kGenIndex = {
    .kind = OpKind::GenIndex,
    .name = "GenIndex",
    .c_name = "gen_index",
    .summary = "Fills each element with its own position along an axis.",
    .inputs = {{"src", "T1", "gives the shape; its values are not read"}},
    .outputs = {{"dst", "T2", "positions from 0"}},
    .attrs = {required(Attr::axis, AttrType::s64, "the axis; negative counts from the end")},
    .types = {{"T1", kFloats}, {"T2", kS32}},
    .checks = {kAxisOfSrc},
    .infer = same_shape,
    .step = StepKind::loop,
    .expression = position,
};

}  // namespace partita
