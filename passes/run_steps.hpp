// SPDX-License-Identifier: Apache-2.0
// Running of the steps of a program over memory that the caller has.
#pragma once

#include "passes/program.hpp"

namespace partita {

/// Points the addresses of temporaries, constants and kept buffers into their memory; those of ports are the caller's.
void place_buffers(const Program& program, void** pointers, std::byte* arena, std::byte* kept);
/// Runs the steps over `pointers` of the buffers, behind which there is room for the operands of one step
/// (Program::addresses in all). `kept`: memory of kept_bytes that make_kept has filled, or null.
Status run_steps(const Program& program, void** pointers, std::byte* arena, const std::byte* kept);
/// Fills `kept` from the constants alone.
Status make_kept(const Program& program, void** pointers, std::byte* arena, std::byte* kept);

}  // namespace partita
