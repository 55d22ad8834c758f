// SPDX-License-Identifier: Apache-2.0
// Chains of element-wise operators.
#include "passes/patterns/sets.hpp"
#include "passes/patterns/tables.hpp"

namespace partita::patterns {

std::vector<Pattern> elementwise_patterns() {
  return {
      {.name = "elementwise_chain",
       .text = "element-wise operators that follow each other",
       .chain = op(kElementwise) >> some(kElementwise),
       .inner_outputs = true},
  };
}

}  // namespace partita::patterns
