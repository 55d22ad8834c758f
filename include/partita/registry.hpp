// SPDX-License-Identifier: Apache-2.0
// The operator registry from outside: what Partita knows of each operator, as text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "partita/op.hpp"

namespace partita {

/// Every operator kind, in the order of their numbers.
std::vector<OpKind> all_op_kinds();
/// The whole registry as JSON ("ops": name, enum, attributes, inputs, outputs, dtype_combinations, ..).
std::string registry_json();
/// One operator for a person: summary, ports, types, attributes with defaults, rules.
std::string describe_op(OpKind kind);

}  // namespace partita
