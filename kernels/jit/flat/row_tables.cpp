// SPDX-License-Identifier: Apache-2.0
// What rows have in common is found, computed by a kernel of its own, and loaded by the loop.
#include "kernels/jit/flat/row_tables.hpp"

#include "kernels/jit/code/expand.hpp"
#include "kernels/jit/flat/flat_parts.hpp"
#include "src/base/dtype.hpp"
#include "src/base/round.hpp"

namespace partita::jit {
namespace {

/// Of a call: tables cost about as much as a row, and some nanoseconds.
constexpr int64_t kLeastRows = 8, kLeastElements = 4096;

/// What is known of the loop's values along the axis that a call walks.
struct Values {
  std::vector<bool> same;   ///< in all rows
  std::vector<bool> steps;  ///< but not for all elements of one
};

Values values_of(const Problem& loop, const FlatPart& part) {
  const int axis = part.last_axis();
  Values v;
  for (const Instr& in : loop.back.code) {
    bool same = !writes(in.op) && in.op != ExprOp::skeleton && !reads_place(in.op) && !makes_integer(in, loop);
    bool steps = false;
    const uint16_t read[] = {in.a, in.b, in.c};
    for (int k = 0; k < operand_count(in.op); ++k) {
      same = same && v.same[read[k]];
      steps = steps || v.steps[read[k]];
    }
    if (in.op == ExprOp::load) {
      const auto k = static_cast<size_t>(in.imm);
      same = same && part.in[k].strides[axis] == 0;
      steps = part.in_steps[k];
    }
    v.same.push_back(same);
    v.steps.push_back(steps);
  }
  return v;
}

/// Values that rows have in common, are read by what they have not, and take more than a load.
std::vector<uint16_t> worth_tables(const Problem& loop, const Values& v) {
  const std::vector<Instr>& code = loop.back.code;
  std::vector<bool> read_by_rows(code.size(), false);
  for (size_t i = 0; i < code.size(); ++i) {
    const uint16_t read[] = {code[i].a, code[i].b, code[i].c};
    for (int k = 0; !v.same[i] && k < operand_count(code[i].op); ++k) read_by_rows[read[k]] = true;
  }
  std::vector<uint16_t> list;
  for (size_t i = 0; i < code.size(); ++i) {
    const bool loads = code[i].op == ExprOp::load && loop.in[static_cast<size_t>(code[i].imm)].dtype == Dtype::f32;
    if (read_by_rows[i] && v.same[i] && v.steps[i] && !loads) list.push_back(static_cast<uint16_t>(i));
  }
  return list;
}

TensorDesc row_of_f32(const Dims& dims) {
  TensorDesc desc{Dtype::f32, dims, Dims(dims.size(), 0), 0};
  desc.strides.back() = 1;
  return desc;
}

}  // namespace

std::optional<RowTables> RowTables::of(const Problem& loop, Isa isa) {
  const std::vector<FlatPart> parts = parts_of(loop);
  const FlatPart& part = parts[0];
  const int64_t rows = part.rows[part.last_axis()];
  if (parts.size() > 1 || rows < kLeastRows || rows * part.length < kLeastElements) return {};
  const Values values = values_of(loop, part);
  const std::vector<uint16_t> tabled = worth_tables(loop, values);
  if (tabled.empty() || tabled.size() > kMost || loop.in.size() + kMost > kMaxLoopOperands) return {};

  RowTables made;
  made.inputs_ = loop.in.size();
  made.tables_ = tabled.size();
  made.length_ = static_cast<size_t>(rounded_up(part.length, lanes_of(isa)));
  if (made.tables_ * made.length_ > kElements) return {};
  made.loop_ = loop;
  Problem once = loop;
  once.out.clear();
  RowShape shape{.length = part.length};
  for (size_t k = 0; k < loop.in.size(); ++k) shape.in.push_back({loop.in[k].dtype, part.in_steps[k], 0});
  // Both expressions keep the numbers of values; what one of them does not need nobody reads there.
  for (size_t t = 0; t < tabled.size(); ++t) {
    made.loop_.back.code[tabled[t]] = {.op = ExprOp::load, .imm = static_cast<int32_t>(made.inputs_ + t)};
    made.loop_.in.push_back(row_of_f32(loop.out[0].dims));
    once.out.push_back(row_of_f32(loop.out[0].dims));
    shape.out.push_back({Dtype::f32, true, 0});
  }
  for (size_t i = 0; i < once.back.code.size(); ++i)
    if (!values.same[i]) once.back.code[i] = {.op = ExprOp::constant};
  for (size_t t = 0; t < tabled.size(); ++t) ExprBuilder(once.back).store(static_cast<int>(t), tabled[t]);
  made.kernel_ =
      std::make_shared<const FlatKernel>(isa, expanded(once.back, once, isa), shape, loop.out[0].dims.size() - 1);
  return made;
}

void RowTables::fill(const void** in, Memory& memory) const {
  std::array<void*, kMost> out;
  for (size_t t = 0; t < tables_; ++t) in[inputs_ + t] = out[t] = memory.data() + t * length_;
  (*kernel_)({in, out.data(), nullptr, 1});
}

}  // namespace partita::jit
