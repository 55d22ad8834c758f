// SPDX-License-Identifier: Apache-2.0
// ShapeContext: setting output shapes, and the walk over one operator's shape rule.
#include "src/ir/shape_context.hpp"

#include "src/base/check.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "src/ir/verify_op.hpp"

namespace partita {

Status ShapeContext::set(int output, const Dims& dims) {
  logical_tensor& t = outputs_[static_cast<size_t>(output)];
  if (!agrees(output, dims)) {
    return wrong(str(output_text(output), ", the operator makes [", text_of(dims), "]"));
  }
  Dims merged = dims;
  for (int i = 0; i < dims.size(); ++i) {
    // What was given may know more than the rule does, where a shape arrives only at execution.
    if (t.rank_known && dims[i] == kUnknownDim) merged[i] = t.dims[i];
  }
  t.dims = merged;
  t.rank_known = true;
  if (t.layout == Layout::strided && t.strides.size() != dims.size()) t.strides = Dims(dims.size(), kUnknownDim);
  return {};
}

bool ShapeContext::agrees(int output, const Dims& dims) const {
  const logical_tensor& t = given(output);
  if (!t.rank_known) return true;
  if (t.rank() != dims.size()) return false;
  for (int i = 0; i < dims.size(); ++i) {
    if (t.dims[i] != dims[i] && t.dims[i] != kUnknownDim && dims[i] != kUnknownDim) return false;
  }
  return true;
}

Result<int> ShapeContext::axis(Attr key, int rank) const {
  const int64_t axis = attrs_.i64(key);
  if (const std::optional<int> normal = normal_axis(axis, rank)) return *normal;
  return wrong(str("`", name_of(key), "` must be in [-rank, rank): ", name_of(key), "=", axis, ", the rank is ", rank));
}

std::string ShapeContext::input_text(int i) const {
  return str(input_name(def_, i), " is ", inputs_[static_cast<size_t>(i)].text());
}

std::string ShapeContext::output_text(int o) const { return str(output_name(def_, o), " is ", given(o).text()); }

Status infer_shapes(const OpDef& def, Attrs& attrs, std::span<const logical_tensor> inputs,
                    std::span<logical_tensor> outputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].shape_known() || !def.infer) continue;
    return fail(Code::invalid_shape,
                str(input_name(def, static_cast<int>(i)), " must have known dims, found ", inputs[i].text()));
  }
  const op probe(0, def.kind, {inputs.begin(), inputs.end()}, {outputs.begin(), outputs.end()});
  PT_TRY(run_checks(def, OpView(probe, attrs), Code::invalid_shape));
  if (!def.infer) return {};
  ShapeContext context(def, attrs, inputs, outputs);
  return def.infer(context);
}

}  // namespace partita
