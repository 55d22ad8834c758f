// SPDX-License-Identifier: Apache-2.0
// Lowering of batch normalisation in training, N elements a channel, each direction in two walks over memory:
//   forward:   s = sum(x - x0), q = sum((x - x0)^2), x0 the channel's first element, so that q - s^2/N does not cancel
//              mean = x0 + s / N, variance = q / N - (s / N)^2;   dst = (x - mean) * gamma / sqrt(variance + epsilon) +
//              beta
//   backward:  s = sum(dy), d = sum(dy * (x - mean)), r = 1 / sqrt(variance + epsilon)
//              diff_src = gamma * r * (dy - s / N - (x - mean) * r^2 * d / N),   diff_gamma = r * d,   diff_beta = s
// (Ioffe and Szegedy 2015, with the variance computed from shifted data: Chan, Golub and LeVeque 1983.)
#include "passes/lower/lowering.hpp"
#include "src/base/axes.hpp"
#include "src/base/shape.hpp"

namespace partita {
namespace {

using Value = ExprBuilder::Value;

class BatchNorm {
 public:
  explicit BatchNorm(Lowering& l)
      : l_(l), space_(l.input(0).dims), axis_(channel_axis(l.op->attrs, space_.size())), channels_{space_[axis_]} {
    const int64_t places = elements(space_) / std::max<int64_t>(1, channels_[0]);
    places_ = static_cast<float>(places);
  }

  void forward();
  void backward();

 private:
  int temporary() { return l_.add_temporary(Dtype::f32, channels_); }
  TensorDesc over_space(int buffer) const { return spread_along(l_.buffer_desc(buffer), space_, axis_); }
  Value load_channel(LoopStep& loop, int buffer) { return loop.load(over_space(buffer), buffer); }
  Value load_number(LoopStep& loop, int buffer) { return loop.load(l_.buffer_desc(buffer), buffer); }
  void store_number(LoopStep& loop, int buffer, Value value) { loop.store(l_.buffer_desc(buffer), buffer, value); }
  /// The first element of each channel of the source, over `space`.
  TensorDesc first_elements(const Dims& space, int axis) const {
    const TensorDesc src = l_.input(0);
    TensorDesc first{src.dtype, space, Dims(space.size(), 0), src.offset};
    first.strides[axis] = src.strides[axis_];
    return first;
  }
  Value reciprocal_deviation(ExprBuilder b, Value variance) {
    const Value shifted = b.add(variance, b.constant(l_.op->attrs.f32(Attr::epsilon)));
    return b.apply(ExprOp::reciprocal, b.apply(ExprOp::sqrt, shifted));
  }

  Lowering& l_;
  Dims space_;
  int axis_;
  Dims channels_;
  float places_;
};

void BatchNorm::forward() {
  const int src = l_.input_buffer(0), sums = temporary(), squares = temporary(), mean = temporary(),
            scale = temporary();
  {
    LoopStep walk;
    const Value x = walk.load(l_.input(0), src), first = walk.load(first_elements(space_, axis_), src);
    ExprBuilder b = walk.builder();
    const Value d = b.sub(x, first);
    walk.fold(Fold::sum, over_space(sums), sums, d);
    walk.fold(Fold::sum, over_space(squares), squares, b.apply(ExprOp::square, d));
    l_.add_step(walk.take());
  }
  const bool affine = l_.inputs() > 3;
  {
    LoopStep loop;
    const Value s = load_number(loop, sums), q = load_number(loop, squares);
    ExprBuilder b = loop.builder();
    // An empty source has no first elements to read, and perhaps no address.
    const Value first = places_ > 0 ? loop.load(first_elements(channels_, 0), src) : b.constant(0);
    const Value running_mean = load_number(loop, l_.input_buffer(1));
    const Value running_variance = load_number(loop, l_.input_buffer(2));
    const Value places = b.constant(places_);
    const Value shift = b.div(s, places);
    const Value m = b.add(first, shift);
    const Value variance = b.max(b.sub(b.div(q, places), b.mul(shift, shift)), b.constant(0));
    Value factor = reciprocal_deviation(b, variance);
    if (affine) factor = b.mul(factor, load_number(loop, l_.input_buffer(3)));
    const float momentum = l_.op->attrs.f32_or(Attr::momentum, 0.5f);
    const auto mixed = [&](Value before, Value now) {
      return b.add(b.mul(b.constant(momentum), before), b.mul(b.constant(1 - momentum), now));
    };
    store_number(loop, mean, m);
    store_number(loop, scale, factor);
    store_number(loop, l_.output_buffer(1), mixed(running_mean, m));
    store_number(loop, l_.output_buffer(2), mixed(running_variance, variance));
    store_number(loop, l_.output_buffer(3), m);
    store_number(loop, l_.output_buffer(4), variance);
    l_.add_step(loop.take());
  }
  LoopStep map;
  const Value x = map.load(l_.input(0), src), m = load_channel(map, mean), factor = load_channel(map, scale);
  ExprBuilder b = map.builder();
  Value y = b.mul(b.sub(x, m), factor);
  if (affine) y = b.add(y, load_channel(map, l_.input_buffer(4)));
  map.store(l_.output(0), l_.output_buffer(0), y);
  l_.add_step(map.take());
}

void BatchNorm::backward() {
  const int src = l_.input_buffer(0), diff_dst = l_.input_buffer(1), mean = l_.input_buffer(2);
  const int sums = temporary(), products = temporary(), scale = temporary(), term = temporary(), slope = temporary();
  {
    LoopStep walk;
    const Value x = walk.load(l_.input(0), src), dy = walk.load(l_.input(1), diff_dst), m = load_channel(walk, mean);
    ExprBuilder b = walk.builder();
    walk.fold(Fold::sum, over_space(sums), sums, dy);
    walk.fold(Fold::sum, over_space(products), products, b.mul(dy, b.sub(x, m)));
    l_.add_step(walk.take());
  }
  {
    LoopStep loop;
    const Value s = load_number(loop, sums), d = load_number(loop, products);
    ExprBuilder b = loop.builder();
    const Value r = reciprocal_deviation(b, load_number(loop, l_.input_buffer(3)));
    const Value places = b.constant(places_), diff_gamma = b.mul(r, d);
    store_number(loop, scale, l_.inputs() > 4 ? b.mul(r, load_number(loop, l_.input_buffer(4))) : r);
    store_number(loop, term, b.div(s, places));
    store_number(loop, slope, b.div(b.mul(r, diff_gamma), places));
    if (l_.op->out.size() > 1) {
      store_number(loop, l_.output_buffer(1), diff_gamma);
      store_number(loop, l_.output_buffer(2), s);
    }
    l_.add_step(loop.take());
  }
  LoopStep map;
  const Value x = map.load(l_.input(0), src), dy = map.load(l_.input(1), diff_dst), m = load_channel(map, mean);
  ExprBuilder b = map.builder();
  const Value lifted = b.sub(dy, load_channel(map, term));
  const Value dx = b.sub(lifted, b.mul(b.sub(x, m), load_channel(map, slope)));
  map.store(l_.output(0), l_.output_buffer(0), b.mul(dx, load_channel(map, scale)));
  l_.add_step(map.take());
}

}  // namespace

Status lower_batch_norm(Lowering& l) {
  BatchNorm norm(l);
  if (l.op->kind == OpKind::BatchNormForwardTraining)
    norm.forward();
  else
    norm.backward();
  return {};
}

}  // namespace partita
