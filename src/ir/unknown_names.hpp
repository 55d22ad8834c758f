// SPDX-License-Identifier: Apache-2.0
// What is said about a name that no operator, or not this one, has.
#pragma once

#include <string>
#include <string_view>

#include "src/ir/op_def.hpp"

namespace partita {

/// "MatMul has no attribute `axis`, it has transpose_a, transpose_b, did you mean ..?": only what the operator has is
/// suggested.
std::string no_attribute(const OpDef& def, std::string_view name);

/// ", did you mean `MatMul`?", or nothing where no operator has a similar name.
std::string similar_kind(std::string_view name);

}  // namespace partita
