// SPDX-License-Identifier: Apache-2.0
// What the two kinds of oneDNN rows share: asking the planner, and the row that works on f32 copies.
#include "kernels/onednn/rows.hpp"

#include "kernels/onednn/float_copy.hpp"
#include "src/base/check.hpp"
#include "src/base/dtype.hpp"

namespace partita::onednn {
namespace {

const char* refuse_always(const Problem& problem) {
  if (problem.fused()) return "expressions around the primitive are not supported";
  if (problem.in.empty() || problem.out.empty()) return "the operator has no input or no output";
  if (!is_floating(problem.in[0].dtype)) return "the input is not of a floating-point type";
  for (const std::vector<TensorDesc>* side : {&problem.in, &problem.out}) {
    for (const TensorDesc& tensor : *side) {
      if (std::find(tensor.dims.begin(), tensor.dims.end(), 0) != tensor.dims.end()) return "a tensor has no elements";
    }
  }
  return nullptr;
}

const char* planned(Planner plan, const Problem& problem, const Target& target, PrimitiveRun& run) {
  try {
    return plan(problem, target, run);
  } catch (const dnnl::error&) {
    return "oneDNN has no implementation for these types, sizes or layouts on this machine";
  }
}

/// A tensor and its dense f32 copy in scratch memory.
struct Copy {
  size_t port;
  TensorDesc user, copy;
  size_t offset_bytes;
};

struct Copies {
  Problem problem;  ///< the same work on the copies
  std::vector<Copy> in, out;
  size_t bytes = 0;
};

void copy_side(std::vector<TensorDesc>& tensors, std::vector<Copy>& copies, size_t& bytes) {
  for (size_t port = 0; port < tensors.size(); ++port) {
    TensorDesc& tensor = tensors[port];
    const TensorDesc copy = float_copy_of(tensor);
    if (!is_floating(tensor.dtype) || copy == tensor) continue;
    copies.push_back({port, tensor, copy, bytes});
    bytes += (float_copy_bytes(copy) + 63) / 64 * 64;
    tensor = copy;
  }
}

Copies copies_of(const Problem& problem) {
  Copies copies{.problem = problem, .in = {}, .out = {}};
  copy_side(copies.problem.in, copies.in, copies.bytes);
  copy_side(copies.problem.out, copies.out, copies.bytes);
  return copies;
}

Status run_on_copies(const Copies& copies, const Run& inner, const RunArgs& args) {
  char* scratch = static_cast<char*>(args.scratch);
  std::vector<const void*> in(args.in.begin(), args.in.end());
  std::vector<void*> out(args.out.begin(), args.out.end());
  for (const Copy& copy : copies.in) {
    float* floats = reinterpret_cast<float*>(scratch + copy.offset_bytes);
    copy_to_floats(copy.user, in[copy.port], floats);
    in[copy.port] = floats;
  }
  for (const Copy& copy : copies.out) out[copy.port] = scratch + copy.offset_bytes;
  PT_TRY(inner.call({in, out, scratch + copies.bytes}));
  for (const Copy& copy : copies.out) {
    copy_from_floats(copy.user, static_cast<const float*>(out[copy.port]), args.out[copy.port]);
  }
  return {};
}

}  // namespace

const char* refuse_planned(Planner plan, const Problem& problem, const Target& target) {
  if (const char* reason = refuse_always(problem)) return reason;
  PrimitiveRun run;
  if (const char* reason = planned(plan, problem, target, run)) return reason;
  return run.slow() ? "oneDNN has only plain loops for these types or layouts" : nullptr;
}

Result<Run> make_planned(Planner plan, const Problem& problem, const Target& target) {
  PrimitiveRun run;
  if (const char* reason = planned(plan, problem, target, run)) return fail(Code::unimplemented, reason);
  return std::move(run).finish();
}

const char* refuse_in_floats(Planner plan, const Problem& problem, const Target& target) {
  if (const char* reason = refuse_always(problem)) return reason;
  PrimitiveRun run;
  return planned(plan, copies_of(problem).problem, target, run);
}

Result<Run> make_in_floats(Planner plan, const Problem& problem, const Target& target) {
  Copies copies = copies_of(problem);
  PT_ASSIGN(Run inner, make_planned(plan, copies.problem, target));
  if (copies.in.empty() && copies.out.empty()) return inner;
  const size_t bytes = copies.bytes + inner.scratch_bytes;
  return Run{.call = [copies = std::move(copies), inner = std::move(inner)](
                         const RunArgs& args) { return run_on_copies(copies, inner, args); },
             .scratch_bytes = bytes};
}

}  // namespace partita::onednn
