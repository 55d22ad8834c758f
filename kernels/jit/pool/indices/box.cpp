// SPDX-License-Identifier: Apache-2.0
// Boxes as rows: axes are joined from the innermost on, as far as all operands allow.
#include "kernels/jit/pool/indices/box.hpp"

#include "src/base/dtype.hpp"

namespace partita::jit {
namespace {

int64_t distance(const PoolView& view, BoxAxis::Which which) {
  switch (which) {
    case BoxAxis::c: return view.c;
    case BoxAxis::z: return view.z;
    case BoxAxis::y: return view.y;
    case BoxAxis::x: return view.x;
  }
  return 0;
}

}  // namespace

BoxKernel BoxKernel::loading(Isa isa, const Box& box, const Expr& front, const std::vector<int>& loaded,
                             const std::vector<PoolView>& views) {
  BoxKernel made;
  for (int k : loaded) made.add(box, views[static_cast<size_t>(k)], false);
  made.inputs_ = made.operands_.size();
  made.scratch_is_output_ = true;
  made.add_scratch(box, true);
  made.split(box);
  std::vector<RowOperand> operands;
  for (size_t k = 0; k < made.inputs_; ++k) operands.push_back(made.row_operand(k));
  RowKernelWriter w;
  w.store(made.row_operand(made.inputs_), w.splice(front, loaded, operands));
  made.kernel_ = w.make(isa, made.length_, false);
  return made;
}

BoxKernel BoxKernel::storing(Isa isa, const Box& box, const Expr& back, const std::vector<int>& loaded,
                             const std::vector<PoolView>& in, const std::vector<PoolView>& out, bool streaming) {
  BoxKernel made;
  made.add_scratch(box, false);
  for (int k : loaded) made.add(box, in[static_cast<size_t>(k)], false);
  made.inputs_ = made.operands_.size();
  for (const PoolView& view : out) made.add(box, view, true);
  made.split(box);
  std::vector<RowOperand> operands, outputs;
  for (size_t k = 1; k < made.inputs_; ++k) operands.push_back(made.row_operand(k));
  for (size_t k = made.inputs_; k < made.operands_.size(); ++k) outputs.push_back(made.row_operand(k));
  RowKernelWriter w;
  const auto value = w.load(made.row_operand(0));
  w.splice(back, loaded, operands, outputs, value);
  made.kernel_ = w.make(isa, made.length_, streaming);
  return made;
}

void BoxKernel::add(const Box& box, const PoolView& view, bool output) {
  Operand o{view.dtype, {}, output};
  for (size_t k = 0; k < 4; ++k) o.bytes[k] = distance(view, box.axes[k].which);
  operands_.push_back(o);
}

void BoxKernel::add_scratch(const Box& box, bool output) {
  Operand o{Dtype::f32, {4, 0, 0, 0}, output};
  o.bytes[1] = 4 * (box.row_floats > 0 ? box.row_floats : box.axes[0].extent);
  for (size_t k = 2; k < 4; ++k) o.bytes[k] = o.bytes[k - 1] * box.axes[k - 1].extent;
  operands_.push_back(o);
}

void BoxKernel::split(const Box& box) {
  size_t axis = 0;
  const auto joins = [&](const Operand& o) {
    const int64_t each = element_bytes(o.dtype);
    if (o.bytes[axis] == each * length_) return length_ == 1 || o.steps;
    return o.bytes[axis] == 0 && !o.output && (length_ == 1 || !o.steps);
  };
  for (; axis < 4; ++axis) {
    const int64_t extent = box.axes[axis].extent;
    if (extent == 1) continue;
    bool all = true;
    for (const Operand& o : operands_) all = all && joins(o);
    if (!all) break;
    for (Operand& o : operands_) o.steps = o.bytes[axis] != 0;
    length_ *= extent;
  }
  if (length_ == 1)
    for (Operand& o : operands_) o.steps = o.output;
  for (; axis < 4; ++axis) {
    const int64_t extent = box.axes[axis].extent;
    if (extent == 1) continue;
    bool all = true;
    for (const Operand& o : operands_)
      all = all && (row_axis_ == 4 || o.bytes[axis] == o.bytes[static_cast<size_t>(row_axis_)] * rows_);
    if (!all) break;
    if (row_axis_ == 4) row_axis_ = static_cast<int>(axis);
    rows_ *= extent;
  }
  for (; axis < 4; ++axis) loops_[axis] = box.axes[axis].extent;
}

RowOperand BoxKernel::row_operand(size_t k) const {
  const Operand& o = operands_[k];
  return {o.dtype, o.steps, row_axis_ == 4 ? 0 : o.bytes[static_cast<size_t>(row_axis_)]};
}

void BoxKernel::run(float* scratch, const void* const* in, void* const* out) const {
  std::array<const void*, kMaxOperands> inputs;
  std::array<void*, kMaxOperands> outputs;
  // The innermost axis is always a row, or rows of one element.
  for (int64_t i3 = 0; i3 < loops_[3]; ++i3)
    for (int64_t i2 = 0; i2 < loops_[2]; ++i2)
      for (int64_t i1 = 0; i1 < loops_[1]; ++i1) {
        const auto place = [&](const Operand& o) { return i3 * o.bytes[3] + i2 * o.bytes[2] + i1 * o.bytes[1]; };
        size_t next_in = 0, next_out = 0;
        for (size_t k = 0; k < operands_.size(); ++k) {
          const Operand& o = operands_[k];
          const bool own = k == (scratch_is_output_ ? inputs_ : 0);
          if (k < inputs_)
            inputs[k] = static_cast<const std::byte*>(own ? scratch : in[next_in++]) + place(o);
          else
            outputs[k - inputs_] = static_cast<std::byte*>(own ? scratch : out[next_out++]) + place(o);
        }
        (*kernel_)({inputs.data(), outputs.data(), nullptr, rows_});
      }
}

}  // namespace partita::jit
