// SPDX-License-Identifier: Apache-2.0
// Rules for single tensors.
#include "src/ir/tensor_rules.hpp"

#include <algorithm>
#include <vector>

#include "src/base/shared_place.hpp"
#include "src/base/text.hpp"

namespace partita {

std::string rank_fault(const logical_tensor& t) {
  const bool dims = t.rank_known && t.dims.overflowed(),
             strides = t.layout == Layout::strided && t.strides.overflowed();
  if (!dims && !strides) return {};
  return str("a tensor has at most ", kMaxRank, " ", dims ? "dims" : "strides", ", more were given");
}

std::string host_scalar_fault(const logical_tensor& t) {
  if (t.property != Property::host_scalar) return {};
  if (t.rank_known && t.rank() > 0) return str("a host scalar must have rank 0, found ", t.text());
  const bool known = t.dtype == Dtype::s32 || t.dtype == Dtype::s64 || t.dtype == Dtype::f32;
  return known ? "" : str("a host scalar must be of type s32, s64 or f32, found ", name_of(t.dtype));
}

std::string overlap_fault(const logical_tensor& result) {
  if (!result.shape_known() || !result.strides_known()) return {};
  const auto negative = [](int64_t n) { return n < 0; };
  if (std::ranges::any_of(result.dims, negative) || std::ranges::any_of(result.strides, negative)) return {};
  const std::optional<SharedPlace> shared = shared_place(result.dims, result.strides);
  if (!shared) return {};
  std::vector<std::string> axes;
  for (int d = 0; d < result.rank(); ++d)
    if (shared->first[d] != shared->second[d]) axes.push_back(std::to_string(d));
  return str("strides [", text_of(result.strides), "] put elements [", text_of(shared->first), "] and [",
             text_of(shared->second), "] in one place, along ", axes.size() == 1 ? "axis " : "axes ", join(axes, ", "),
             "; only inputs may repeat elements");
}

}  // namespace partita
