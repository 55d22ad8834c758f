// SPDX-License-Identifier: Apache-2.0
// Lowering of Dropout to a loop whose random numbers are those of the elements' row-major places.
#include "passes/lower/lowering.hpp"
#include "src/base/shape.hpp"

namespace partita {
namespace {

/// The 64-bit integer in a buffer, as two words.
ExprBuilder::Value load_s64(LoopStep& loop, int buffer, const Dims& space) {
  const auto word = [&](int64_t which) {
    return loop.load({Dtype::s32, space, Dims(space.size(), 0), which}, buffer, false);
  };
  const auto low = word(0), high = word(1);
  return loop.builder().apply(ExprOp::pair_s32, low, high);
}

}  // namespace

Status lower_dropout(Lowering& l) {
  const TensorDesc dst = l.output(0);
  const Dims& space = dst.dims;
  LoopStep loop;
  const auto x = loop.load(l.input(0), l.input_buffer(0));
  const auto seed = load_s64(loop, l.input_buffer(1), space), offset = load_s64(loop, l.input_buffer(2), space);
  const auto probability = loop.load({Dtype::f32, space, Dims(space.size(), 0), 0}, l.input_buffer(3));
  ExprBuilder b = loop.builder();
  const auto kept = b.ge(loop.draw({Dtype::u8, space, dense_strides(space), 0}, seed, offset), probability);
  const auto zero = b.constant(0), scaled = b.div(x, b.sub(b.constant(1), probability));
  loop.store(dst, l.output_buffer(0), b.select(kept, scaled, zero));
  if (l.op->out.size() > 1) loop.store(l.output(1), l.output_buffer(1), kept);
  l.add_step(loop.take());
  return {};
}

}  // namespace partita
