// SPDX-License-Identifier: Apache-2.0
// Making of generated kernels: failures of the code generator become a Status.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "kernels/jit/code/xbyak.hpp"
#include "kernels/kernel.hpp"

namespace partita::jit {

/// runtime_error where the system gives no memory for machine code, which is no lack of memory as such: then the whole
/// partition is compiled without any (src/compile/compile.cpp).
inline Status status_of(const Xbyak::Error& e) {
  return fail(Code::runtime_error, std::string("no machine code could be generated: ") + e.what());
}

/// A Run that calls a `Maker` made for the problem, and of the parts, with the scratch memory it asks for (a
/// `scratch_bytes()`, if any).
template <class Maker, class... Parts>
Result<Run> run_of(const Problem& problem, const Target& target, Parts... parts) {
  try {
    auto made = std::make_shared<const Maker>(problem, target, std::move(parts)...);
    Run run;
    if constexpr (requires { made->scratch_bytes(); }) run.scratch_bytes = made->scratch_bytes();
    run.call = [made = std::move(made)](const RunArgs& args) { return (*made)(args); };
    return run;
  } catch (const Xbyak::Error& e) {
    return status_of(e);
  }
}

}  // namespace partita::jit
