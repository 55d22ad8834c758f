// SPDX-License-Identifier: Apache-2.0
// What has the same content in every execution.
#pragma once

#include "passes/program.hpp"

namespace partita {

/// Marks the inputs of steps that have the same content in every execution, and the steps that read nothing else, whose
/// results the constant cache keeps.
void mark_constants(Program& program);

}  // namespace partita
