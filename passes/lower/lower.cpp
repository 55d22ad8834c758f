// SPDX-License-Identifier: Apache-2.0
// Lowering of a subgraph to a program: each operator becomes one step or a few loops.

#include "passes/lower/lower.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/narrow_results.hpp"
#include "kernels/pool_geometry.hpp"
#include "passes/layout.hpp"
#include "passes/lower/lowering.hpp"
#include "src/base/check.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"

namespace partita {
namespace {

bool is_pooling(OpKind kind) {
  switch (kind) {
    case OpKind::AvgPool:
    case OpKind::AvgPoolBackward:
    case OpKind::MaxPool:
    case OpKind::MaxPoolBackward:
    case OpKind::MaxPoolIndicesBackward:
    case OpKind::AdaptiveAvgPool:
    case OpKind::AdaptiveAvgPoolBackward: return true;
    default: return false;
  }
}

Status lower_op(Lowering& l) {
  if (l.empty_outputs()) return {};
  switch (l.op->kind) {
    case OpKind::StaticTranspose:
    case OpKind::StaticReshape:
    case OpKind::Concat: return lower_movement(l);
    case OpKind::Quantize:
    case OpKind::Dequantize:
    case OpKind::DynamicQuantize:
    case OpKind::DynamicDequantize: return lower_quantization(l);
    case OpKind::MatMul: return lower_matmul(l);
    case OpKind::Dropout: return lower_dropout(l);
    case OpKind::End: return {};  // what it reads is an output of the partition
    case OpKind::AvgPoolBackward:
    case OpKind::AdaptiveAvgPool:
    case OpKind::AdaptiveAvgPoolBackward: return lower_average(l);
    default: break;
  }
  if (l.generates_code()) {
    if (l.def->step == StepKind::reduce) return lower_reduction(l);
    if (l.def->step == StepKind::prelu_backward) return lower_prelu_backward(l);
    if (l.def->step == StepKind::batch_norm || l.def->step == StepKind::batch_norm_backward) return lower_batch_norm(l);
  }
  if (l.def->expression) return lower_elementwise(l);
  if (l.def->step == StepKind::none)
    return fail(Code::unimplemented, str(l.def->name, " computes nothing and cannot be compiled"));
  l.add_step(l.whole_op());
  return {};
}

}  // namespace

Step Lowering::whole_op() const {
  Step step;
  step.problem.step = def->step;
  step.problem.op = op->kind;
  step.problem.attrs = op->attrs;
  for (int i = 0; i < inputs(); ++i) {
    step.problem.in.push_back(input(i));
    step.in.push_back(input_buffer(i));
  }
  for (int o = 0; o < static_cast<int>(op->out.size()); ++o) {
    step.problem.out.push_back(output(o));
    step.out.push_back(output_buffer(o));
  }
  step.problem.narrow = has_narrow_results(step.problem);
  if (is_pooling(op->kind)) step.problem = with_batch_axis(std::move(step.problem));
  step.problem = in_data_format_of_memory(std::move(step.problem));
  return step;
}

TensorDesc Lowering::buffer_desc(int buffer) const {
  const logical_tensor& t = program_.buffers[static_cast<size_t>(buffer)].desc;
  return {t.dtype, t.dims, t.strides, 0};
}

int Lowering::add_temporary(Dtype dtype, const Dims& dims) {
  program_.buffers.push_back({.role = Buffer::Role::temporary, .desc = logical_tensor(0, dtype, dims), .content = {}});
  return static_cast<int>(program_.buffers.size()) - 1;
}

int Lowering::add_constant(const std::vector<float>& values) {
  Buffer b{.role = Buffer::Role::constant,
           .desc = logical_tensor(0, Dtype::f32, Dims{static_cast<int64_t>(values.size())}),
           .content = std::vector<std::byte>(values.size() * sizeof(float))};
  std::memcpy(b.content.data(), values.data(), b.content.size());
  program_.buffers.push_back(std::move(b));
  return static_cast<int>(program_.buffers.size()) - 1;
}

void Lowering::add_step(Step step) {
  step.ops.push_back(op->text.empty() ? str(def->name, " ", op->id) : op->text);
  program_.steps.push_back(std::move(step));
}

bool Lowering::empty_outputs() const {
  for (int v : op->out)
    if (program_.buffers[static_cast<size_t>(v)].desc.elements() > 0) return false;
  return !op->out.empty();
}

bool generates_loops(const Target& target) {
  const auto rows = kernels_for(StepKind::loop);
  return std::any_of(rows.begin(), rows.end(),
                     [&](const Kernel& row) { return row.isa != Isa::any && row.isa <= target.isa; });
}

ExprBuilder::Value LoopStep::load(const TensorDesc& desc, int buffer, bool as_float) {
  step_.problem.in.push_back(desc);
  step_.in.push_back(buffer);
  ExprBuilder b = builder();
  const auto value = b.load(static_cast<int>(step_.in.size()) - 1);
  return as_float && desc.dtype == Dtype::s32 ? b.apply(ExprOp::to_f32, value) : value;
}

ExprBuilder::Value LoopStep::draw(const TensorDesc& numbers, ExprBuilder::Value seed, ExprBuilder::Value offset) {
  step_.problem.in.push_back(numbers);
  step_.in.push_back(Step::kNoBuffer);
  return builder().apply(ExprOp::uniform, seed, offset, 0, static_cast<int32_t>(step_.in.size()) - 1);
}

void LoopStep::store(const TensorDesc& desc, int buffer, ExprBuilder::Value value) {
  step_.problem.out.push_back(desc);
  step_.out.push_back(buffer);
  builder().store(static_cast<int>(step_.out.size()) - 1, value);
}

Step LoopStep::take() {
  mark_narrow_results(step_.problem);
  return std::move(step_);
}

void LoopStep::fold(Fold how, const TensorDesc& desc, int buffer, ExprBuilder::Value value) {
  step_.problem.out.push_back(desc);
  step_.out.push_back(buffer);
  builder().fold(how, static_cast<int>(step_.out.size()) - 1, value);
}

TensorDesc spread(const TensorDesc& desc, const Dims& space) {
  TensorDesc made{desc.dtype, space, Dims(space.size(), 0), desc.offset};
  const int shift = space.size() - desc.dims.size();
  PT_ASSERT(shift >= 0);
  for (int d = 0; d < desc.dims.size(); ++d)
    made.strides[d + shift] = desc.dims[d] == 1 && space[d + shift] != 1 ? 0 : desc.strides[d];
  return made;
}

TensorDesc spread_along(const TensorDesc& desc, const Dims& space, int axis) {
  TensorDesc made{desc.dtype, space, Dims(space.size(), 0), desc.offset};
  made.strides[axis] = desc.dims[0] == 1 && space[axis] != 1 ? 0 : desc.strides[0];
  return made;
}

Result<Program> lower(const Subgraph& graph, const Target& target) {
  Program program;
  for (const SubValue& v : graph.values) {
    Buffer b;
    b.role = v.output ? Buffer::Role::output : v.producer < 0 ? Buffer::Role::input : Buffer::Role::temporary;
    b.tensor = v.desc.id;
    b.desc = v.desc;
    program.buffers.push_back(std::move(b));
  }
  program.inputs = graph.inputs;
  program.outputs = graph.outputs;
  Lowering l(program, target);
  for (const SubOp& o : graph.ops) {
    l.op = &o;
    l.def = &op_def(o.kind);
    if (Status s = lower_op(l); !s.ok()) return std::move(s).at(str("op ", o.id, " (", l.def->name, ")"));
  }
  return program;
}

}  // namespace partita
