// SPDX-License-Identifier: Apache-2.0
// The tables of patterns, one a family; all.cpp puts them in order.
#pragma once

#include <vector>

#include "passes/pattern.hpp"

namespace partita::patterns {

std::vector<Pattern> attention_patterns();
std::vector<Pattern> squeeze_excite_patterns();
std::vector<Pattern> convolution_patterns();
std::vector<Pattern> gradient_patterns();

}  // namespace partita::patterns
