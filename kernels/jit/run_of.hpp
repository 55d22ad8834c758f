// SPDX-License-Identifier: Apache-2.0
// Making of generated kernels: failures of the code generator become a Status.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "kernels/jit/xbyak.hpp"
#include "kernels/kernel.hpp"

namespace partita::jit {

/// A Run that calls a `Maker` made for the problem, with the scratch memory it asks for (a `scratch_bytes()`, if any).
/// Xbyak throws where it gets no memory for code.
template <class Maker>
Result<Run> run_of(const Problem& problem, const Target& target) {
  try {
    auto made = std::make_shared<const Maker>(problem, target);
    Run run;
    if constexpr (requires { made->scratch_bytes(); }) run.scratch_bytes = made->scratch_bytes();
    run.call = [made = std::move(made)](const RunArgs& args) { return (*made)(args); };
    return run;
  } catch (const Xbyak::Error& e) {
    return fail(Code::out_of_memory, std::string("no code could be generated: ") + e.what());
  }
}

}  // namespace partita::jit
