// SPDX-License-Identifier: Apache-2.0
// The partition handle.
#pragma once

#include "partita/partition.hpp"
#include "src/compat/dnnl_graph/abi.hpp"

struct dnnl_graph_partition {
  partita::partition value;

  explicit dnnl_graph_partition(partita::partition p) : value(std::move(p)) {}
};
