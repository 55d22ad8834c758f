// SPDX-License-Identifier: Apache-2.0
// The tables of patterns, one a family; all.cpp puts them in order.
#pragma once

#include <vector>

#include "passes/pattern.hpp"

namespace partita::patterns {

std::vector<Pattern> pooling_backward_patterns();
std::vector<Pattern> compute_patterns();
std::vector<Pattern> neighbourhood_patterns();
std::vector<Pattern> elementwise_patterns();

}  // namespace partita::patterns
