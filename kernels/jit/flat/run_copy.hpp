// SPDX-License-Identifier: Apache-2.0
// Code that copies a run of bytes whose length is known.
#pragma once

#include "kernels/jit/code/emitter.hpp"

namespace partita::jit {

struct RunCopy {
  int64_t bytes;           ///< not 0
  bool streaming = false;  ///< past the caches: a run of whole vectors, to an address that is a multiple of theirs
  Fetching fetching = {};  ///< of each vector; not in turns
};

/// From `from` to `to` + `at`, registers other than rcx, which keep their values. Whole vectors, or what parts of them
/// fit into the run, follow each other; the last move, as small as it can be, ends with the run. Nothing beside it is
/// touched. Uses rcx and vector register 0.
void emit_run_copy(Emitter& e, const Xbyak::Reg64& from, const Xbyak::Reg64& to, int64_t at, const RunCopy& run);

}  // namespace partita::jit
