// SPDX-License-Identifier: Apache-2.0
// MatMul: schema and the numpy rules of its shape.
#include <utility>

#include "src/base/check.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "src/ops/attributes.hpp"
#include "src/ops/families.hpp"
#include "src/ops/rules.hpp"

namespace partita {
namespace {

bool equal_or_f32(const OpView& v) { return v.out_type(0) == v.in_type(0) || v.out_type(0) == Dtype::f32; }

bool has_axes(const OpView& v) { return known_rank(v, 0) != 0 && known_rank(v, 1) != 0; }

/// A vector becomes a row at the left and a column at the right; transposition leaves it alone.
Dims as_matrix(Dims dims, bool transpose, bool left) {
  if (dims.size() == 1) {
    dims.insert(left ? 0 : 1, 1);
  } else if (transpose) {
    std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
  }
  return dims;
}

Dims batch_of(Dims dims) {
  dims.erase(dims.size() - 1);
  dims.erase(dims.size() - 1);
  return dims;
}

Status matmul_shape(ShapeContext& c) {
  const Dims a = as_matrix(c.in(0), c.attrs().flag(Attr::transpose_a), true);
  const Dims b = as_matrix(c.in(1), c.attrs().flag(Attr::transpose_b), false);
  const int64_t k = a.back(), k_of_b = b[b.size() - 2];
  if (k != k_of_b) {
    return c.wrong(str("the inner dims must be equal, found ", k, " and ", k_of_b, ": ", both_texts(c, 0, 1),
                       ", transpose_a=", text_of(c.attrs().get(Attr::transpose_a)),
                       ", transpose_b=", text_of(c.attrs().get(Attr::transpose_b))));
  }
  std::optional<Dims> dst = broadcast(batch_of(a), batch_of(b));
  if (!dst) return c.wrong(str("the batch dims must be equal or one of them 1: ", both_texts(c, 0, 1)));
  if (c.rank(0) > 1) dst->push_back(a[a.size() - 2]);
  if (c.rank(1) > 1) dst->push_back(b.back());
  if (c.inputs() > 2) PT_TRY(broadcasts_into(c, 2, *dst, "the result"));
  return c.set(0, *dst);
}

}  // namespace

constexpr OpDef kMatMul = {
    .kind = OpKind::MatMul,
    .name = "MatMul",
    .c_name = "matmul",
    .summary = "Matrix product over the last two axes, with batch axes broadcast as in numpy.",
    .inputs = {{"src", "T", "left matrices, [.., M, K]; a vector is a row"},
               {"weights", "T", "right matrices, [.., K, N]; a vector is a column"},
               {"bias", "T", "added to the result, broadcast to its shape", Arity::optional}},
    .outputs = {{"dst", "T1", "products, [.., M, N]"}},
    .attrs = {flag(Attr::transpose_a, false, "swap the last two axes of src"),
              flag(Attr::transpose_b, false, "swap the last two axes of weights"),
              choice(Attr::accumulation_mode, "strict", {"strict", "relaxed", "any", "f32", "s32", "f16"},
                     "precision of the sums that the caller allows")},
    .types = {{"T", kFloats}, {"T1", kFloats}},
    .checks = {{"dst_type", "`dst` must have the type of `src` or f32", equal_or_f32, true},
               {"matrix_rank", "`src` and `weights` must have rank 1 or more", has_axes}},
    .infer = matmul_shape,
    .step = StepKind::matmul,
};

}  // namespace partita
