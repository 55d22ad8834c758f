// SPDX-License-Identifier: Apache-2.0
// Kernel: one way to compute one kind of step. Rows of a table are tried in order, best first.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/problem.hpp"
#include "partita/status.hpp"
#include "src/base/cpu.hpp"

namespace partita {

/// What one execution of a step gets. Addresses are those of the first element of in[i] / out[i] before its offset;
/// null for a tensor without elements. `scratch` has Run::scratch_bytes bytes, aligned to 64.
struct RunArgs {
  std::span<const void* const> in;
  std::span<void* const> out;
  void* scratch = nullptr;
  /// What Run::packs made, in their order; an absent or null one is made in the scratch memory by the call itself.
  std::span<const void* const> packed = {};
};

/// Another form of a constant input (weights in the layout of a primitive) that may be kept between executions.
struct Pack {
  size_t port = 0;
  size_t bytes = 0;
  /// `from` is the address of the port's tensor, `to` is aligned to 64, `scratch` as in RunArgs.
  std::function<Status(const void* from, void* to, void* scratch)> make;
};

/// A kernel made for one problem: immutable, callable from several threads at once.
struct Run {
  std::function<Status(const RunArgs&)> call;
  size_t scratch_bytes = 0;
  std::vector<Pack> packs = {};
  /// Threads that `call` counts on: it was made for a team of OpenMP of that size and is wrong with a smaller one.
  /// 1: it takes what it gets.
  int team = 1;
};

/// What kernels are made for.
struct Target {
  Isa isa = Isa::any;  ///< best instruction set to use
  int threads = 1;     ///< threads that will execute
  FpMath fpmath = FpMath::strict;
  bool keeps_packs = false;  ///< what Run::packs makes is kept between executions, so it may cost something
  /// The same bits whatever `threads` is: no sum may be split by it.
  bool deterministic = false;
  bool generates_code = true;  ///< false: the system gives no memory for machine code, so only slow rows can do it
};

struct Kernel {
  const char* name;  ///< <step>_<types>_<how>[_<isa>]
  StepKind step;
  Isa isa;
  /// Null where the kernel can do it, otherwise the reason.
  const char* (*refuse)(const Problem&, const Target&);
  Result<Run> (*make)(const Problem&, const Target&);
  /// An output of `back` may lie over an operand that only `back` loads, at the same places: an element's operands are
  /// loaded before the element is stored, and never again. Over slices (StepTraits::rows) also over one that `front`
  /// loads.
  bool in_place = false;
  bool slow = false;       ///< computes everything, element by element: the interpreter, references
  bool in_floats = false;  ///< works on f32 copies of its operands
};

/// The table of one kind of step, best row first (kernels/tables.cpp).
std::span<const Kernel> kernels_for(StepKind step);

struct Picked {
  const Kernel* kernel = nullptr;
  std::vector<std::pair<std::string, std::string>> refused;  ///< better rows and why they declined
};

/// First row that accepts the problem on the target. `forced` (or empty) names the only row allowed.
Result<Picked> pick_kernel(const Problem& problem, const Target& target, std::string_view forced = {});

}  // namespace partita
