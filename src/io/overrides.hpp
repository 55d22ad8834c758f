// SPDX-License-Identifier: Apache-2.0
// Changes to a graph before it runs: shapes, attributes, types and kinds, in the syntax users of benchdnn know.
#pragma once

#include <string>

#include "partita/graph.hpp"

namespace partita {

/// Each text as given on the command line; empty: no change. docs/json_format.md describes the syntax.
struct Overrides {
  std::string in_shapes = {};        ///< ID:SHAPE[*TAG or *STRIDES][+..]
  std::string op_attrs = {};         ///< ID:name:value[*name:value][+..]
  std::string dt = {};               ///< f32, bf16 or f16 for the whole graph, or ID:TYPE[+..]
  std::string mb = {};               ///< dim 0 of every input that carries the batch
  std::string op_kind = {};          ///< ID:Kind[+..]; undef removes the operator
  std::string tensor_property = {};  ///< ID:property[+..]
  std::string attr_fpmath = {};      ///< mode[:bool]

  bool empty() const;
};

/// The changed graph, checked and not finalized; shapes follow from the inputs again. Failures name the option and the
/// character, or the operator that does not fit any more.
Result<graph> apply_overrides(const graph& g, const Overrides& o);

}  // namespace partita
