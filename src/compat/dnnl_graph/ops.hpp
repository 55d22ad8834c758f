// SPDX-License-Identifier: Apache-2.0
// The operator handle.
#pragma once

#include "partita/op.hpp"
#include "src/compat/dnnl_graph/abi.hpp"

struct dnnl_graph_op {
  partita::op value;          ///< a kind that no operator has is a Wildcard here
  dnnl_graph_op_kind_t kind;  ///< as it was given
};
