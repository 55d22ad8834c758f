// SPDX-License-Identifier: Apache-2.0
// Every pattern. The order is the priority.
#include "passes/patterns/tables.hpp"

namespace partita {

const std::vector<patterns::Pattern>& all_patterns() {
  static const std::vector<patterns::Pattern> all = [] {
    std::vector<patterns::Pattern> list;
    for (const auto& table : {patterns::attention_patterns(), patterns::squeeze_excite_patterns(),
                              patterns::convolution_patterns(), patterns::gradient_patterns()})
      list.insert(list.end(), table.begin(), table.end());
    return list;
  }();
  return all;
}

}  // namespace partita
