// SPDX-License-Identifier: Apache-2.0
// Operators written down in tests: tensors as text ("f32[2,?]", "f32[]" for a scalar, "f32" where the rank is unknown)
// and attributes as pairs.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "partita/op.hpp"

namespace partita::test {

using AttrList = std::vector<std::pair<Attr, AttrValue>>;
using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;

logical_tensor tensor_of(std::string_view text, uint64_t id = 0);
/// Tensors get ids 0, 1, ..; inputs first. `tensors` are separated by blanks.
op op_of(OpKind kind, const AttrList& attrs, std::string_view inputs, std::string_view outputs);
/// "f32[2,3] f32[3]"
std::string text_of(const std::vector<logical_tensor>& tensors);

}  // namespace partita::test
