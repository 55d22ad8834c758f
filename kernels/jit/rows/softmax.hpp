// SPDX-License-Identifier: Apache-2.0
// Generated SoftMax, LogSoftmax and their gradients, along any axis, with expressions around them.
#pragma once

#include "kernels/kernel.hpp"

namespace partita::jit {

const char* refuse_softmax(const Problem& problem, const Target& target);
Result<Run> make_softmax(const Problem& problem, const Target& target);

const char* refuse_softmax_backward(const Problem& problem, const Target& target);
Result<Run> make_softmax_backward(const Problem& problem, const Target& target);

}  // namespace partita::jit
