// SPDX-License-Identifier: Apache-2.0
// Checks one operator against its OpDef and fills in defaults.
#pragma once

#include "partita/op.hpp"
#include "partita/status.hpp"
#include "src/base/attrs.hpp"
#include "src/ir/op_def.hpp"

namespace partita {

/// The attributes with defaults filled and spellings made canonical, or the first rule the operator breaks
/// (invalid_graph_op), without the operator's own place. Order: kind, number of inputs, their types, number of outputs,
/// their types, rules for single tensors, required attributes, attribute types, allowed values, unknown attributes, the
/// operator's checks.
Result<Attrs> verify_op(const op& o);

/// The first of the operator's checks that fails, with the values found; before them, inputs that stand for an
/// attribute's list have one axis. Attributes have their defaults filled.
Status run_checks(const OpDef& def, const OpView& view, Code code);

/// "op 7 'sm' (SoftMax)"
std::string place_of(const op& o);

}  // namespace partita
