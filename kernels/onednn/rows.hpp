// SPDX-License-Identifier: Apache-2.0
// The rows that run on oneDNN. Each step has one planner, which says how oneDNN computes a problem; two rows are made
// of it: one on the tensors as they are, and one that converts them to dense f32 copies first, so that types and
// layouts oneDNN has no fast code for on this machine (f16 above all) run fast as well.
#pragma once

#include "kernels/onednn/primitive_run.hpp"

namespace partita::onednn {

/// Adds to `run` what computes the problem. Null, or the reason why not; throws dnnl::error where oneDNN refuses.
using Planner = const char* (*)(const Problem& problem, const Target& target, PrimitiveRun& run);

const char* plan_convolution(const Problem& problem, const Target& target, PrimitiveRun& run);
const char* plan_convolution_backward_data(const Problem& problem, const Target& target, PrimitiveRun& run);
const char* plan_convolution_backward_weights(const Problem& problem, const Target& target, PrimitiveRun& run);
const char* plan_matmul(const Problem& problem, const Target& target, PrimitiveRun& run);
const char* plan_pool_forward(const Problem& problem, const Target& target, PrimitiveRun& run);
const char* plan_pool_backward(const Problem& problem, const Target& target, PrimitiveRun& run);
const char* plan_max_pool_backward(const Problem& problem, const Target& target, PrimitiveRun& run);
const char* plan_softmax(const Problem& problem, const Target& target, PrimitiveRun& run);
const char* plan_softmax_backward(const Problem& problem, const Target& target, PrimitiveRun& run);
const char* plan_batch_norm(const Problem& problem, const Target& target, PrimitiveRun& run);
const char* plan_batch_norm_backward(const Problem& problem, const Target& target, PrimitiveRun& run);
const char* plan_layer_norm(const Problem& problem, const Target& target, PrimitiveRun& run);
const char* plan_layer_norm_backward(const Problem& problem, const Target& target, PrimitiveRun& run);
const char* plan_group_norm(const Problem& problem, const Target& target, PrimitiveRun& run);
const char* plan_reduce(const Problem& problem, const Target& target, PrimitiveRun& run);
const char* plan_resample(const Problem& problem, const Target& target, PrimitiveRun& run);
const char* plan_resample_backward(const Problem& problem, const Target& target, PrimitiveRun& run);
const char* plan_prelu_backward(const Problem& problem, const Target& target, PrimitiveRun& run);

/// Declines, beside what the planner declines, what oneDNN runs with plain loops only.
const char* refuse_planned(Planner plan, const Problem& problem, const Target& target);
Result<Run> make_planned(Planner plan, const Problem& problem, const Target& target);
const char* refuse_in_floats(Planner plan, const Problem& problem, const Target& target);
Result<Run> make_in_floats(Planner plan, const Problem& problem, const Target& target);

template <Planner plan>
constexpr Kernel native_row(const char* name, StepKind step) {
  return {name, step, Isa::any,
          [](const Problem& problem, const Target& target) { return refuse_planned(plan, problem, target); },
          [](const Problem& problem, const Target& target) { return make_planned(plan, problem, target); }};
}

template <Planner plan>
constexpr Kernel float_row(const char* name, StepKind step) {
  Kernel row = {name, step, Isa::any,
                [](const Problem& problem, const Target& target) { return refuse_in_floats(plan, problem, target); },
                [](const Problem& problem, const Target& target) { return make_in_floats(plan, problem, target); }};
  row.in_floats = true;
  return row;
}

}  // namespace partita::onednn
