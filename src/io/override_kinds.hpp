// SPDX-License-Identifier: Apache-2.0
// Overrides of operator kinds and of data types.
#pragma once

#include <vector>

#include "partita/op.hpp"
#include "partita/status.hpp"
#include "src/io/override_syntax.hpp"

namespace partita {

/// Only between kinds that read and make the same: element-wise with one source, with two, or a gradient of one.
/// Attributes the new kind does not know are dropped.
Status change_kind(op& o, const Piece& kind);
/// Wires the readers of the result to the source. Two sources: one of them must be made inside the graph.
Status remove_op(std::vector<op>& ops, size_t index, const Piece& why);

Result<Dtype> parse_dtype(const Piece& piece);
/// Every f32, bf16 and f16 tensor gets the type, where its port allows it; statistics and weights of norms keep theirs.
Status set_all_types(std::vector<op>& ops, const Piece& piece);

}  // namespace partita
