// SPDX-License-Identifier: Apache-2.0
// Average poolings and 1x1 convolutions change places where that is less work.
#pragma once

#include "src/ir/subgraph.hpp"

namespace partita {

/// A convolution with windows of one cell mixes channels, an average pooling mixes cells: their order does not matter.
/// Convolutions work on the smaller side of the pooling where both are in the subgraph:
///   gradient of the source:   product(spread(d))      =>  spread(product(d))
///   gradient of the weights:  product(src, spread(d)) =>  product(pooled(src), d)
///   forward:                  pooled(product(src))    =>  product(pooled(src))
///   sums of the gradient:     sum(spread(d))          =>  sum(d), where all that is shared out arrives
/// Inner tensors of these have a type that makes results no less accurate than in the order of the graph
/// (docs/numerics.md).
void commute_pools(Subgraph& graph);

}  // namespace partita
