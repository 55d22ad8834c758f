// SPDX-License-Identifier: Apache-2.0
// Subgraph: a private copy of one partition's operators for concrete tensors. The only form of a graph that is
// rewritten.
#pragma once

#include <string>
#include <vector>

#include "partita/op.hpp"
#include "src/base/attrs.hpp"

namespace partita {

struct SubValue {
  logical_tensor desc;  ///< dims known; strides known for ports, dense for inner values
  int producer = -1;    ///< operator index; -1: an input port
  bool output = false;  ///< an output port
};

struct SubOp {
  uint64_t id = 0;
  OpKind kind = OpKind::Wildcard;
  std::string name;
  std::string text;  ///< what a rewritten operator does, for a person; empty: its kind and id tell
  Attrs attrs;       ///< complete, auto_pad resolved, value inputs moved into attributes
  std::vector<int> in, out;
};

/// Entry `i` of a shape input, a tensor of one axis or a single number.
int64_t shape_entry(const logical_tensor& t, const void* data, int64_t i);

/// A shape input whose content was taken from given output dims at compile time: execution compares it.
struct ShapeCheck {
  uint64_t tensor = 0;  ///< id of the input port
  std::vector<int64_t> expected;
  std::string place;  ///< "op 3 (AvgPoolBackward): `src_shape`"
};

struct Subgraph {
  std::vector<SubOp> ops;  ///< producers first
  std::vector<SubValue> values;
  std::vector<int> inputs;  ///< values of the input ports, each tensor once
  std::vector<int> outputs;
  std::vector<ShapeCheck> checks;
};

}  // namespace partita
