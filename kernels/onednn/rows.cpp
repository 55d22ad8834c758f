// SPDX-License-Identifier: Apache-2.0
// What the two kinds of oneDNN rows share: asking the planner, and the row that works on f32 copies.
#include "kernels/onednn/rows.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "kernels/float_copy.hpp"
#include "kernels/onednn/shares.hpp"
#include "kernels/onednn/soundness.hpp"
#include "src/base/check.hpp"
#include "src/base/dtype.hpp"
#include "src/base/round.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "src/base/threads.hpp"

namespace partita::onednn {
namespace {

const char* refuse_always(const Problem& problem) {
  if (problem.fused() && !is_product(problem.step)) return "expressions around the primitive are not supported";
  if (problem.in.empty() || problem.out.empty()) return "the operator has no input or no output";
  if (std::max(problem.in.size(), problem.out.size()) > Problem::kMostPorts) return "the operator has too many tensors";
  const Dtype dtype = problem.in[0].dtype;
  if (!is_floating(dtype) || dtype == Dtype::f64) return "the input is not of a floating-point type of at most 32 bits";
  for (const std::vector<TensorDesc>* side : {&problem.in, &problem.out}) {
    for (const TensorDesc& tensor : *side) {
      if (std::find(tensor.dims.begin(), tensor.dims.end(), 0) != tensor.dims.end()) return "a tensor has no elements";
    }
  }
  return nullptr;
}

/// Refusals are texts that last. Those of oneDNN are few: one for each kind of primitive and each way to refuse.
const char* lasting(std::string text) {
  static std::mutex mutex;
  static std::set<std::string>& texts = *new std::set<std::string>;
  const std::lock_guard lock(mutex);
  return texts.insert(std::move(text)).first->c_str();
}

/// Invalid arguments are mostly ours: a refusal, for slower rows do the work, but one that explain tells apart.
const char* refusal_of(const dnnl::error& error) {
  const char* why = error.status == dnnl_unimplemented
                        ? "oneDNN has no implementation for these types, sizes or layouts on this machine"
                        : "oneDNN calls the arguments of the primitive invalid";
  const std::string_view what = error.what();  // may go on with advice on variables of oneDNN's
  return lasting(str(why, " (", what.substr(0, what.find('.')), ")"));
}

/// Fails where oneDNN does, for another reason than that it does not do such work; a refusal is no failure.
Result<const char*> planned(Planner plan, const Problem& problem, const Target& target, PrimitiveRun& run) {
  try {
    if (const char* reason = refuse_machine()) return reason;
    const Shares shares(problem, target);
    const ThreadScope threads(shares.threads());
    return plan(shares.piece(), target, run);
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_unimplemented || error.status == dnnl_invalid_arguments) return refusal_of(error);
    if (error.status == dnnl_out_of_memory) throw std::bad_alloc();  // ends the public call like any other
    return status_of(error);
  }
}

/// A row whose planning failed accepts the problem, so that it is made, which tells the failure.
const char* refusal_in(const Result<const char*>& planned) { return planned.ok() ? *planned : nullptr; }

Result<Run> finished(PrimitiveRun run, const Problem& problem, const Target& target) {
  const Shares shares(problem, target);
  const ThreadScope threads(shares.threads());
  PT_ASSIGN(Run of_piece, std::move(run).finish(target));
  return shares.whole(std::move(of_piece));
}

/// A tensor and its f32 copy in scratch memory.
struct Copy {
  size_t port;
  TensorDesc user, copy;
  size_t offset_bytes;
  size_t pack = kNoPack;  ///< of a constant: number of the row's pack that takes its place
  Run run = {};

  static constexpr size_t kNoPack = static_cast<size_t>(-1);
};

struct Copies {
  Problem problem;  ///< the same work on the copies
  std::vector<Copy> in, out;
  size_t bytes = 0;
};

using Layout = TensorDesc (*)(TensorDesc);

/// The tensor with one place along the axes that repeat its elements.
TensorDesc distinct(TensorDesc tensor) {
  for (int axis = 0; axis < tensor.dims.size(); ++axis)
    if (tensor.strides[axis] == 0) tensor.dims[axis] = 1;
  return tensor;
}

/// `desc`, of a tensor's distinct elements, repeated as `tensor` repeats them.
TensorDesc repeated(TensorDesc desc, const TensorDesc& tensor) {
  for (int axis = 0; axis < tensor.dims.size(); ++axis)
    if (tensor.strides[axis] == 0) desc.strides[axis] = 0;
  desc.dims = tensor.dims;
  return desc;
}

/// Behind the operator's own `ports` tensors come operands of expressions: what is repeated in them is copied once.
void copy_side(Layout layout, size_t ports, std::vector<TensorDesc>& tensors, std::vector<Copy>& copies,
               size_t& bytes) {
  for (size_t port = 0; port < tensors.size(); ++port) {
    TensorDesc& tensor = tensors[port];
    const TensorDesc user = port < ports ? tensor : distinct(tensor);
    TensorDesc copy = layout(user);
    copy.dtype = Dtype::f32;
    const TensorDesc whole = port < ports ? copy : repeated(copy, tensor);
    if (!is_floating(tensor.dtype) || whole == tensor) continue;
    copies.push_back({port, user, copy, bytes});
    bytes += aligned(bytes_for(Dtype::f32, elements(copy.dims)));
    tensor = whole;
  }
}

Copies copies_of(const Problem& problem, Layout layout) {
  Copies copies{.problem = problem, .in = {}, .out = {}};
  const auto inputs = static_cast<size_t>(problem.in_ports());
  copy_side(layout, inputs, copies.problem.in, copies.in, copies.bytes);
  copy_side(layout, problem.out.size(), copies.problem.out, copies.out, copies.bytes);
  return copies;
}

struct PlanInFloats {
  Copies copies;
  PrimitiveRun run;
};

/// Copies that keep the order of memory are made fastest; where oneDNN has nothing fast for that, row-major ones.
Result<const char*> plan_in_floats(Planner plan, const Problem& problem, const Target& target, PlanInFloats& result) {
  const char* reason = nullptr;
  bool found = false;
  for (const Layout layout : {compact, dense}) {
    PlanInFloats candidate{copies_of(problem, layout), {}};
    PT_ASSIGN(reason, planned(plan, candidate.copies.problem, target, candidate.run));
    if (reason || (found && candidate.run.slow())) continue;
    found = true;
    result = std::move(candidate);
    if (!result.run.slow()) break;
  }
  return found ? nullptr : reason;
}

/// Makes the copies' code. Returns the scratch memory that the most demanding one needs.
Result<size_t> make_copies(Copies& copies, const Target& target) {
  size_t bytes = 0;
  const auto make = [&](Copy& copy, const TensorDesc& from, const TensorDesc& to) -> Status {
    PT_ASSIGN(copy.run, float_copy(from, to, target));
    bytes = std::max(bytes, copy.run.scratch_bytes);
    return {};
  };
  for (Copy& copy : copies.in) PT_TRY(make(copy, copy.user, copy.copy));
  for (Copy& copy : copies.out) PT_TRY(make(copy, copy.copy, copy.user));
  return bytes;
}

Status run_copy(const Copy& copy, const void* from, void* to, void* scratch) {
  return copy.run.call({{&from, 1}, {&to, 1}, scratch});
}

/// The packs of the work on copies come first. What it packs of a port that is copied is made of the tensor itself, by
/// way of a copy; where it packs nothing of a constant port, the copy is the pack.
std::vector<Pack> packs_of(Copies& copies, const Run& inner) {
  const auto behind_copies = [skip = copies.bytes](void* scratch) { return static_cast<char*>(scratch) + skip; };
  std::vector<Pack> packs;
  for (const Pack& pack : inner.packs) {
    const auto copied = std::ranges::find(copies.in, pack.port, &Copy::port);
    const bool copies_first = copied != copies.in.end();
    if (copies_first) copied->pack = packs.size();
    packs.push_back({pack.port, pack.bytes,
                     [make = pack.make, behind_copies, copy = copies_first ? std::optional(*copied) : std::nullopt](
                         const void* from, void* to, void* scratch) {
                       if (!copy) return make(from, to, behind_copies(scratch));
                       char* const floats = static_cast<char*>(scratch) + copy->offset_bytes;
                       PT_TRY(run_copy(*copy, from, floats, behind_copies(scratch)));
                       return make(floats, to, behind_copies(scratch));
                     }});
  }
  for (Copy& copy : copies.in) {
    if (!copies.problem.is_constant(copy.port) || copy.pack != Copy::kNoPack) continue;
    copy.pack = packs.size();
    packs.push_back({copy.port, bytes_for(Dtype::f32, elements(copy.copy.dims)),
                     [copy, behind_copies](const void* from, void* to, void* scratch) {
                       return run_copy(copy, from, to, behind_copies(scratch));
                     }});
  }
  return packs;
}

Status run_on_copies(const Copies& copies, const Run& inner, const RunArgs& args) {
  char* const scratch = static_cast<char*>(args.scratch);
  char* const rest = scratch + copies.bytes;
  std::array<const void*, Problem::kMostPorts> in{};
  std::array<void*, Problem::kMostPorts> out{};
  std::copy(args.in.begin(), args.in.end(), in.begin());
  std::copy(args.out.begin(), args.out.end(), out.begin());
  for (const Copy& copy : copies.in) {
    const void* const packed = copy.pack < args.packed.size() ? args.packed[copy.pack] : nullptr;
    char* const floats = scratch + copy.offset_bytes;
    if (!packed) PT_TRY(run_copy(copy, in[copy.port], floats, rest));
    in[copy.port] = packed ? packed : floats;
  }
  for (const Copy& copy : copies.out) out[copy.port] = scratch + copy.offset_bytes;
  PT_TRY(inner.call({{in.data(), args.in.size()}, {out.data(), args.out.size()}, rest, args.packed}));
  for (const Copy& copy : copies.out) PT_TRY(run_copy(copy, out[copy.port], args.out[copy.port], rest));
  return {};
}

}  // namespace

const char* refuse_planned(Planner plan, const Problem& problem, const Target& target) {
  if (const char* reason = refuse_always(problem)) return reason;
  PrimitiveRun run;
  if (const char* reason = refusal_in(planned(plan, problem, target, run))) return reason;
  return run.slow() ? "oneDNN has only plain loops for these types or layouts" : nullptr;
}

Result<Run> make_planned(Planner plan, const Problem& problem, const Target& target) {
  PrimitiveRun run;
  PT_ASSIGN(const char* const reason, planned(plan, problem, target, run));
  if (reason) return fail(Code::unimplemented, reason);
  return finished(std::move(run), problem, target);
}

const char* refuse_in_floats(Planner plan, const Problem& problem, const Target& target) {
  if (const char* reason = refuse_always(problem)) return reason;
  if (!problem.front.empty() || !problem.weights_front.empty()) return "copies are made of tensors, not of expressions";
  PlanInFloats planned_run;
  if (const char* reason = refusal_in(plan_in_floats(plan, problem, target, planned_run))) return reason;
  // alone it may have fast code, and if not, what stands behind it has better loops of its own
  return planned_run.run.slow() && !problem.back.empty() ? "oneDNN has only plain loops for this with what follows"
                                                         : nullptr;
}

Result<Run> make_in_floats(Planner plan, const Problem& problem, const Target& target) {
  PlanInFloats planned_run;
  PT_ASSIGN(const char* const reason, plan_in_floats(plan, problem, target, planned_run));
  if (reason) return fail(Code::unimplemented, reason);
  Copies& copies = planned_run.copies;
  PT_ASSIGN(Run inner, finished(std::move(planned_run.run), copies.problem, target));
  if (copies.in.empty() && copies.out.empty()) return inner;
  PT_ASSIGN(const size_t copies_scratch, make_copies(copies, target));
  const size_t bytes = copies.bytes + std::max(inner.scratch_bytes, copies_scratch);
  const int team = inner.team;
  std::vector<Pack> packs = packs_of(copies, inner);
  return Run{.call = [copies = std::move(copies),
                      inner = std::move(inner)](const RunArgs& args) { return run_on_copies(copies, inner, args); },
             .scratch_bytes = bytes,
             .packs = std::move(packs),
             .team = team};
}

}  // namespace partita::onednn
