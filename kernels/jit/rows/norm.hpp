// SPDX-License-Identifier: Apache-2.0
// Generated normalisation over the last axes: LayerNorm with its gradient, RMSNorm; and over groups of channels.
#pragma once

#include "kernels/kernel.hpp"

namespace partita::jit {

const char* refuse_layer_norm(const Problem& problem, const Target& target);
Result<Run> make_layer_norm(const Problem& problem, const Target& target);

const char* refuse_layer_norm_backward(const Problem& problem, const Target& target);
Result<Run> make_layer_norm_backward(const Problem& problem, const Target& target);

const char* refuse_group_norm(const Problem& problem, const Target& target);
Result<Run> make_group_norm(const Problem& problem, const Target& target);

}  // namespace partita::jit
