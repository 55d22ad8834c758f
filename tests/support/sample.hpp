// SPDX-License-Identifier: Apache-2.0
// Random graphs that a pattern must match, built from the pattern itself.
#pragma once

#include <cstdint>
#include <vector>

#include "passes/pattern.hpp"
#include "tests/support/random.hpp"

namespace partita::test {

/// Operators (ids 1, 2, ..) of one random instance of the pattern on small 4-D tensors; the same seed gives the same
/// one.
std::vector<op> sample(const patterns::Pattern& pattern, Random& random);
std::vector<op> sample(const patterns::Pattern& pattern, uint64_t seed);

/// All patterns, then the chains of neighbourhoods().
const std::vector<patterns::Pattern>& sampled_patterns();

}  // namespace partita::test

namespace partita::patterns {

/// Chains that the rule must make one group of, by the name the group gets.
const std::vector<Pattern>& neighbourhoods();

}  // namespace partita::patterns
