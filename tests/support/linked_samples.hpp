// SPDX-License-Identifier: Apache-2.0
// Graphs that tempt every pattern at once.
#pragma once

#include <vector>

#include "partita/op.hpp"
#include "tests/support/random.hpp"

namespace partita::test {

/// `count` samples of random patterns, the later ones on results of the earlier ones where types and shapes fit. Inner
/// values get further readers, operators of no pattern (End, Wildcard) stand in between, and the operators may be in
/// any order. The graph is valid.
std::vector<op> linked_samples(Random& random, int count);

}  // namespace partita::test
