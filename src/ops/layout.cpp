// SPDX-License-Identifier: Apache-2.0
// Operators that move elements without changing them: reorder, cast, transpose, reshape, concat.
#include "src/base/check.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "src/ops/attributes.hpp"
#include "src/ops/expressions.hpp"
#include "src/ops/families.hpp"
#include "src/ops/rules.hpp"

namespace partita {
namespace {

bool cast_types(const OpView& v) {
  const Dtype from = v.in_type(0), to = v.out_type(0);
  return from != to && (from == Dtype::f32 || to == Dtype::f32);
}

bool order_permutes(const OpView& v) {
  const int rank = known_rank(v, 0);
  const std::vector<int64_t>& order = v.attrs().ints(Attr::order);
  if (rank < 0 || order.empty()) return true;
  if (static_cast<int>(order.size()) != rank) return false;
  std::vector<bool> seen(kMaxRank, false);
  for (int64_t axis : order) {
    const std::optional<int> normal = normal_axis(axis, rank);
    if (!normal || seen[static_cast<size_t>(*normal)]) return false;
    seen[static_cast<size_t>(*normal)] = true;
  }
  return true;
}

Status transpose_shape(ShapeContext& c) {
  const int rank = c.rank(0);
  Dims order;
  for (int i = 0; i < rank; ++i) order.push_back(rank - 1 - i);
  const Dims given = c.attrs().dims(Attr::order);
  for (int i = 0; i < given.size(); ++i) order[i] = *normal_axis(given[i], rank);
  c.attrs().set(Attr::order, std::vector<int64_t>(order.begin(), order.end()));
  return c.set(0, permuted(c.in(0), order));
}

bool shape_entries(const OpView& v) {
  const std::vector<int64_t>& shape = v.attrs().ints(Attr::shape);
  return std::ranges::count(shape, -1) <= 1 && std::ranges::all_of(shape, [](int64_t d) { return d >= -1; });
}

Status reshape_shape(ShapeContext& c) {
  const Dims& src = c.in(0);
  Dims dst = c.attrs().dims(Attr::shape);
  const auto wrong = [&](std::string_view rule) {
    return c.wrong(str("`shape` ", rule, ": shape=[", text_of(c.attrs().dims(Attr::shape)), "], ", c.input_text(0)));
  };
  int open = -1;
  for (int i = 0; i < dst.size(); ++i) {
    if (dst[i] == -1) open = i;
    if (dst[i] != 0 || !c.attrs().flag(Attr::special_zero)) continue;
    if (i >= src.size()) return wrong("copies a dim (0 with special_zero) that `src` does not have");
    dst[i] = src[i];
  }
  const std::optional<int64_t> count = checked_elements(src);
  if (open >= 0) dst[open] = 1;
  const std::optional<int64_t> rest = checked_elements(dst);
  if (!count || !rest) return wrong("is too large");
  if (open >= 0) {
    if (*rest == 0) return wrong("leaves the entry -1 undetermined beside a dim of 0");
    if (*count % *rest != 0) return wrong("must divide the number of elements");
    dst[open] = *count / *rest;
  } else if (*rest != *count) {
    return wrong("must keep the number of elements");
  }
  return c.set(0, dst);
}

Status concat_shape(ShapeContext& c) {
  PT_ASSIGN(const int axis, c.axis(Attr::axis, c.rank(0)));
  Dims dst = c.in(0);
  for (int i = 1; i < c.inputs(); ++i) {
    Dims other = c.in(i);
    if (other.size() == dst.size() && !__builtin_add_overflow(dst[axis], other[axis], &dst[axis])) {
      other[axis] = dst[axis];
      if (other == dst) continue;
    }
    return c.wrong(str("all inputs must have equal dims except along `axis` ", axis, ": ", both_texts(c, 0, i)));
  }
  return c.set(0, dst);
}

/// One type, one input, one output.
constexpr OpDef mover(OpKind kind, std::string_view name, std::string_view c_name, std::string_view summary) {
  return {.kind = kind,
          .name = name,
          .c_name = c_name,
          .summary = summary,
          .inputs = {{"src", "T", "values"}},
          .outputs = {{"dst", "T", "the same values"}},
          .types = {{"T", kFloats}},
          .infer = same_shape,
          .step = StepKind::loop};
}

constexpr OpDef reorder() {
  OpDef def = mover(OpKind::Reorder, "Reorder", "reorder", "Copies the values into the layout of dst.");
  def.expression = copy;
  return def;
}

constexpr OpDef type_cast() {
  OpDef def = mover(OpKind::TypeCast, "TypeCast", "type_cast",
                    "Converts to another floating-point type, rounding to nearest even.");
  def.inputs = {{"src", "T1", "values"}};
  def.outputs = {{"dst", "T2", "converted values"}};
  def.types = {{"T1", kFloats}, {"T2", kFloats}};
  def.checks = {{"cast_types", "`src` and `dst` must have different types, one of them f32", cast_types, true}};
  def.expression = copy;
  return def;
}

constexpr OpDef static_transpose() {
  OpDef def = mover(OpKind::StaticTranspose, "StaticTranspose", "static_transpose", "Permutes the axes.");
  def.attrs = {
      required(Attr::order, AttrType::s64s,
               "source axis of each result axis; negative counts from the end; an empty list reverses all axes")};
  def.checks = {{"order_permutes", "`order` must name each axis of `src` once, in [-rank, rank)", order_permutes}};
  def.infer = transpose_shape;
  return def;
}

constexpr OpDef static_reshape() {
  OpDef def = mover(OpKind::StaticReshape, "StaticReshape", "static_reshape",
                    "Gives the elements, in row-major order, new dims.");
  def.attrs = {required(Attr::shape, AttrType::s64s, "dims of the result; one may be -1 and follows from the others"),
               required(Attr::special_zero, AttrType::boolean,
                        "true: an entry 0 copies the dim of src; false: it is a dim of 0")};
  def.checks = {{"shape_entries", "`shape` must hold dims, not negative, except for one -1", shape_entries}};
  def.infer = reshape_shape;
  return def;
}

constexpr OpDef concat() {
  OpDef def = mover(OpKind::Concat, "Concat", "concat", "Joins tensors along an axis.");
  def.inputs = {{"src_i", "T", "1 to 64 tensors, equal in all other dims", Arity::variadic}};
  def.max_variadic = 64;
  def.attrs = {required(Attr::axis, AttrType::s64, "the axis; negative counts from the end")};
  def.checks = {{"axis_in_range", "`axis` must be in [-rank, rank) of `src_i`", axis_in_range<Attr::axis>}};
  def.infer = concat_shape;
  return def;
}

}  // namespace

constexpr OpDef kReorder = reorder();
constexpr OpDef kTypeCast = type_cast();
constexpr OpDef kStaticTranspose = static_transpose();
constexpr OpDef kStaticReshape = static_reshape();
constexpr OpDef kConcat = concat();

}  // namespace partita
