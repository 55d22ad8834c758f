// SPDX-License-Identifier: Apache-2.0
// Checks and shape rules that several families share.
#include "src/ops/rules.hpp"

#include "src/base/axes.hpp"
#include "src/base/check.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"

namespace partita {

int known_rank(const OpView& v, int i) { return i < v.inputs() && v.in(i).rank_known ? v.in(i).rank() : -1; }

bool entries_at_least(const OpView& v, Attr attr, int64_t least) {
  // The upper end keeps every later product of two entries within 64 bits.
  const auto fits = [&](int64_t n) { return n >= least && n <= std::numeric_limits<int32_t>::max(); };
  const AttrValue& value = v.attrs().get(attr);
  if (const auto* one = std::get_if<int64_t>(&value)) return fits(*one);
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) return std::ranges::all_of(*list, fits);
  return true;
}

bool axis_fits(const OpView& v, Attr attr) {
  const int rank = known_rank(v, 0);
  return rank < 0 || normal_axis(v.attrs().i64(attr), rank).has_value();
}

bool is_vector(const OpView& v, int i, int64_t length) {
  if (known_rank(v, i) < 0) return true;
  const Dims& dims = v.in(i).dims;
  return dims.size() == 1 && (dims[0] == kUnknownDim || length == kUnknownDim || dims[0] == length);
}

bool may_agree(const logical_tensor& a, const logical_tensor& b) {
  if (!a.rank_known || !b.rank_known) return true;
  if (a.rank() != b.rank()) return false;
  for (int i = 0; i < a.rank(); ++i) {
    if (a.dims[i] != b.dims[i] && a.dims[i] != kUnknownDim && b.dims[i] != kUnknownDim) return false;
  }
  return true;
}

int64_t known_channels(const OpView& v) {
  const int rank = known_rank(v, 0);
  return rank < 2 ? kUnknownDim : v.in(0).dims[channel_axis(v.attrs(), rank)];
}

bool statistics_type_fits(const OpView& v) {
  const Dtype type = v.inputs() > 2    ? v.in_type(2)
                     : v.inputs() > 1  ? v.in_type(1)
                     : v.outputs() > 1 ? v.out_type(1)
                                       : Dtype::f32;
  return type != Dtype::bf16 || v.in_type(0) == Dtype::bf16;
}

Status same_shape(ShapeContext& c) {
  for (int o = 0; o < c.outputs(); ++o) PT_TRY(c.set(o, c.in(0)));
  return {};
}

Status broadcast_shapes(ShapeContext& c) {
  if (c.attrs().is(Attr::auto_broadcast, "none") && c.in(0) != c.in(1)) {
    return c.wrong(str("without broadcast (auto_broadcast=none) the shapes must be equal: ", both_texts(c, 0, 1)));
  }
  const std::optional<Dims> dims = broadcast(c.in(0), c.in(1));
  if (!dims) {
    return c.wrong(str("aligned at the right, dims must be equal or one of them 1: ", both_texts(c, 0, 1)));
  }
  return c.set(0, *dims);
}

std::string both_texts(const ShapeContext& c, int a, int b) { return str(c.input_text(a), ", ", c.input_text(b)); }

Status broadcasts_into(const ShapeContext& c, int i, const Dims& dims, std::string_view what) {
  const std::optional<Dims> both = broadcast(c.in(i), dims);
  if (both && *both == dims) return {};
  return c.wrong(str(input_name(c.def(), i), " must broadcast to ", what, " [", text_of(dims), "]: ", c.input_text(i)));
}

}  // namespace partita
