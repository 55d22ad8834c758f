// SPDX-License-Identifier: Apache-2.0
// What stands behind a product and does not depend on it is computed before it, where that is little.
#pragma once

#include <vector>

#include "passes/program.hpp"

namespace partita {

/// Takes out of the expression behind `product` what does not depend on the product's value and has far fewer elements
/// than the result (gamma / sqrt(variance + epsilon), one a channel). Returns the loops that make these values, to
/// stand before it; their results are new temporaries of `program`.
std::vector<Step> hoist(Step& product, Program& program);

}  // namespace partita
