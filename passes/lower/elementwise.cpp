// SPDX-License-Identifier: Apache-2.0
// Lowering of element-wise operators to loops over their result.
#include "passes/lower/lowering.hpp"
#include "src/base/axes.hpp"

namespace partita {
namespace {

/// Where input `port` lies over the result.
TensorDesc operand(const Lowering& l, int port, const Dims& space) {
  const TensorDesc desc = l.input(port);
  const bool channels = l.def->operands == Operands::channel && port > 0 && desc.dims.size() == 1;
  if (!channels) return spread(desc, space);
  const bool last = !l.op->attrs.flag_or(Attr::per_channel_broadcast, true);
  return spread_along(desc, space, last ? space.size() - 1 : channel_axis(l.op->attrs, space.size()));
}

}  // namespace

Status lower_elementwise(Lowering& l) {
  const TensorDesc result = l.output(0);
  // Integers stay integers only from end to end; a result of another type is computed in f32.
  bool integer = l.inputs() > 0 && (result.dtype == Dtype::s32 || result.dtype == Dtype::boolean);
  for (int i = 0; i < l.inputs(); ++i) integer = integer && l.input(i).dtype == Dtype::s32;
  LoopStep loop;
  std::vector<ExprBuilder::Value> values;
  // GenIndex reads no element of its input, only the shape.
  if (l.op->kind != OpKind::GenIndex)
    for (int i = 0; i < l.inputs(); ++i)
      values.push_back(loop.load(operand(l, i, result.dims), l.input_buffer(i), !integer));
  ExprBuilder b = loop.builder();
  auto value = l.def->expression(b, {values, l.op->attrs, result.dims.size(), integer});
  // A stored s32 must be an s32 in the expression too: whoever is fused behind reads it as one.
  if (result.dtype == Dtype::s32 && !integer && l.op->kind != OpKind::GenIndex) value = b.apply(ExprOp::to_s32, value);
  loop.store(result, l.output_buffer(0), value);
  l.add_step(loop.take());
  return {};
}

}  // namespace partita
