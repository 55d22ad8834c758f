// SPDX-License-Identifier: Apache-2.0
// Growing of random graphs; entries: random_graph(), random_training_graph(). Each operator reads a value made before,
// or a new input.
#include "tests/support/random_graph.hpp"

#include <algorithm>
#include <iterator>

#include "src/base/shape.hpp"
#include "src/ir/op_def.hpp"
#include "src/ir/verify_op.hpp"

namespace partita::test {
namespace {

using enum OpKind;

constexpr OpKind kUnary[] = {Abs, Clamp, Elu,        Exp,   GELU,    HardSigmoid, HardSwish, LeakyReLU, Log,  Mish,
                             Pow, ReLU,  Reciprocal, Round, Sigmoid, SoftPlus,    Sqrt,      Square,    Tanh, Reorder};
constexpr OpKind kGradients[] = {AbsBackward,         ClampBackward,     EluBackward,  GELUBackward,
                                 HardSigmoidBackward, HardSwishBackward, MishBackward, ReLUBackward,
                                 SigmoidBackward,     SoftPlusBackward,  SqrtBackward, TanhBackward};
constexpr OpKind kBinary[] = {Add, Subtract, Multiply, Divide, Maximum, Minimum, SquaredDifference};
constexpr OpKind kReductions[] = {ReduceL1, ReduceL2, ReduceMax, ReduceMean, ReduceMin, ReduceSum};
/// Where a sum of terms that cancel is next to 0, these make something else of its last bits, or no number.
constexpr OpKind kSteep[] = {Divide, Exp, Log, Reciprocal, Sqrt, SqrtBackward};
constexpr int64_t kMostElements = 20000;  ///< of a result that is larger than what it is made of

class Grower {
 public:
  Grower(Random& random, bool training) : random_(random), training_(training) {
    const int64_t rank = random_.whole(0, 4);
    for (int64_t d = 0; d < rank; ++d) dims_.push_back(random_.pick<int64_t>({1, 2, 3, 4, 5, 8}));
    if (random_.coin()) dims_ = {2, random_.whole(1, 19), 4, random_.whole(1, 3) * 2};
  }

  RandomGraph run(int ops) {
    while (static_cast<int>(made_.ops.size()) < ops) grow();
    for (const logical_tensor& t : results_)
      if (random_.whole(0, 4) == 0) made_.kept.push_back(t.id);
    return std::move(made_);
  }

 private:
  template <size_t n>
  OpKind one_of(const OpKind (&kinds)[n]) {
    const OpKind kind = kinds[random_.whole(0, static_cast<int64_t>(n) - 1)];
    return training_ && std::ranges::find(kSteep, kind) != std::end(kSteep) ? kinds[0] : kind;
  }

  Dtype any_float() { return random_.pick({Dtype::f32, Dtype::f32, Dtype::bf16, Dtype::f16}); }

  logical_tensor input(Dtype dtype, const Dims& dims) {
    const bool plain = dims.empty() || random_.coin();
    const TensorDesc desc = plain ? dense_desc(dtype, dims) : scattered_desc(dtype, dims, random_);
    return logical_tensor(next_id_++, dtype, dims, desc.strides);
  }

  /// A value made before (the newest ones most), or a new input.
  logical_tensor value(Dtype dtype, const Dims& dims) {
    std::vector<logical_tensor> fit;
    for (const auto* list : {&inputs_, &results_})
      for (const logical_tensor& t : *list)
        if (t.dtype == dtype && t.dims == dims) fit.push_back(t);
    if (fit.empty() || random_.whole(0, 5) == 0) return inputs_.emplace_back(input(dtype, dims));
    const int64_t last = static_cast<int64_t>(fit.size()) - 1;
    return fit[static_cast<size_t>(std::max(random_.whole(0, last), random_.whole(0, last)))];
  }

  /// Broadcasts to `dims`.
  logical_tensor operand(Dtype dtype, const Dims& dims) {
    Dims less = dims;
    if (random_.whole(0, 2) == 0) {
      while (!less.empty() && random_.coin()) less.erase(0);
      for (int64_t& d : less)
        if (random_.coin()) d = 1;
    }
    return value(dtype, less);
  }

  /// The result of the last operators, or something else.
  logical_tensor start() {
    if (results_.empty() || random_.whole(0, 5) == 0) return value(any_float(), dims_);
    const auto n = static_cast<int64_t>(results_.size());
    return results_[static_cast<size_t>(random_.whole(std::max<int64_t>(0, n - 4), n - 1))];
  }

  void finish(op made, Dtype dtype, const Dims& dims) { finish(std::move(made), {{dtype, dims}}); }

  struct Made {
    Dtype dtype;
    Dims dims;
  };
  /// The results, of which the first is the one that others read most.
  std::vector<logical_tensor> finish(op made, const std::vector<Made>& outs) {
    for (const AttrDef& a : op_def(made.kind).attrs) {
      if (a.need != Need::required || a.type != AttrType::f32) continue;
      made.set_attr(a.key, a.key == Attr::min ? -0.25f : a.key == Attr::max ? 0.5f : a.key == Attr::beta ? 2.0f : 0.5f);
    }
    made.id = made_.ops.size() + 1;
    for (const Made& out : outs) made.add_output(logical_tensor(next_id_++, out.dtype, out.dims));
    std::vector<logical_tensor> results = made.outputs;
    made_.ops.push_back(std::move(made));
    results_.insert(results_.end(), results.rbegin(), results.rend());
    return results;
  }

  void grow() {
    const logical_tensor x = start();
    if (x.dtype == Dtype::boolean) return choose(x);
    if (x.dtype == Dtype::s32) return integers(x);
    if (!(x.dtype == Dtype::f32 || x.dtype == Dtype::bf16 || x.dtype == Dtype::f16)) return dequantize(x);
    if (training_ && random_.coin()) return rows(x);
    switch (random_.whole(0, 11)) {
      case 0:
      case 1: return finish(op(0, one_of(kUnary)).add_input(x), x.dtype, x.dims);
      case 2: return gradient(x);
      case 3:
      case 4: return binary(x);
      case 5: return random_.coin() ? cast(x) : to_integers(x);
      case 6: return quantize(x);
      case 7: return channels(x);
      case 8: return move(x);
      case 9:
      case 10: return pool(x);
      default: return compare(x);
    }
  }

  void gradient(const logical_tensor& x) {
    op made(0, one_of(kGradients));
    const bool first = random_.coin();
    const logical_tensor other = value(x.dtype, x.dims);
    finish(made.add_input(first ? x : other).add_input(first ? other : x), x.dtype, x.dims);
  }

  void binary(const logical_tensor& x) {
    op made(0, one_of(kBinary));
    const bool one_type = made.kind == Maximum || made.kind == Minimum || made.kind == SquaredDifference;
    const logical_tensor other = operand(one_type ? x.dtype : any_float(), x.dims);
    const bool first = random_.coin();
    const Dtype to = one_type ? x.dtype : any_float();
    finish(made.add_input(first ? x : other).add_input(first ? other : x), to, x.dims);
  }

  void cast(const logical_tensor& x) {
    const Dtype to = x.dtype == Dtype::f32 ? random_.pick({Dtype::bf16, Dtype::f16}) : Dtype::f32;
    finish(op(0, TypeCast).add_input(x), to, x.dims);
  }

  void set_scales(op& made, const Dims& dims) {
    const bool channel = !dims.empty() && random_.coin();
    const int64_t axis = channel ? random_.whole(0, dims.size() - 1) : 0;
    const int64_t count = channel ? dims[static_cast<int>(axis)] : 1;
    std::vector<float> scales;
    std::vector<int64_t> zps;
    for (int64_t i = 0; i < count; ++i) {
      scales.push_back(static_cast<float>(random_.real(0.01, 0.1)));
      zps.push_back(random_.whole(-3, 3));
    }
    made.set_attr(Attr::scales, scales).set_attr(Attr::axis, axis);
    made.set_attr(Attr::qtype, std::string(channel ? "per_channel" : "per_tensor"));
    if (random_.coin()) made.set_attr(Attr::zps, zps);
  }

  void quantize(const logical_tensor& x) {
    if (x.dtype != Dtype::f32) return cast(x);
    op made(0, Quantize);
    set_scales(made, x.dims);
    finish(made.add_input(x), random_.pick({Dtype::s8, Dtype::u8}), x.dims);
  }

  void dequantize(const logical_tensor& x) {
    op made(0, Dequantize);
    set_scales(made, x.dims);
    finish(made.add_input(x), Dtype::f32, x.dims);
  }

  void channels(const logical_tensor& x) {
    if (x.rank() < 2) return binary(x);
    const bool last = random_.coin();
    op made(0, random_.pick({BiasAdd, PReLU, BatchNormInference}));
    made.set_attr(Attr::data_format, std::string(last ? "NXC" : "NCX")).add_input(x);
    const int64_t count = x.dims[last ? x.rank() - 1 : 1];
    if (made.kind == BatchNormInference)
      for (int port = 0; port < 4; ++port) made.add_input(value(Dtype::f32, {count}));
    else
      made.add_input(value(x.dtype, {count}));
    if (made.kind == BatchNormInference) made.set_attr(Attr::epsilon, 1.0f);
    finish(made, x.dtype, x.dims);
  }

  void move(const logical_tensor& x) {
    if (x.rank() == 0) return binary(x);
    const int last = x.rank() - 1;
    Dims dims = x.dims;
    switch (random_.whole(0, 2)) {
      case 0:
        std::swap(dims[0], dims[last]);
        {
          std::vector<int64_t> order;
          for (int64_t d = 0; d <= last; ++d) order.push_back(d == 0 ? last : d == last ? 0 : d);
          return finish(op(0, StaticTranspose).add_input(x).set_attr(Attr::order, order), x.dtype, dims);
        }
      case 1:
        return finish(op(0, StaticReshape)
                          .add_input(x)
                          .set_attr(Attr::shape, std::vector<int64_t>{-1, 1})
                          .set_attr(Attr::special_zero, false),
                      x.dtype, {x.elements(), 1});
      default: {
        const logical_tensor other = value(x.dtype, x.dims);
        dims[last] *= 2;
        if (elements(dims) > kMostElements) return binary(x);
        return finish(op(0, Concat).add_input(x).add_input(other).set_attr(Attr::axis, int64_t{-1}), x.dtype, dims);
      }
    }
  }

  void set_windows(op& made, int64_t kernel, int64_t stride, int64_t pad, bool last) {
    made.set_attr(Attr::kernel, std::vector<int64_t>(2, kernel))
        .set_attr(Attr::strides, std::vector<int64_t>(2, stride));
    made.set_attr(Attr::pads_begin, std::vector<int64_t>(2, pad))
        .set_attr(Attr::pads_end, std::vector<int64_t>(2, pad));
    made.set_attr(Attr::data_format, std::string(last ? "NXC" : "NCX"));
  }

  /// Windows of 2 or 3 cells a step of 2 or 1 apart.
  void pool(const logical_tensor& x) {
    if (x.rank() != 4) return binary(x);
    const bool last = random_.coin(), overlap = random_.coin(), average = random_.coin();
    const bool forward = random_.whole(0, 3) == 0;
    Dims dims = x.dims;
    for (int d = last ? 1 : 2; d < (last ? 3 : 4) && !overlap; ++d) {
      if (forward && x.dims[d] % 2) return binary(x);
      dims[d] = forward ? x.dims[d] / 2 : x.dims[d] * 2;
    }
    if (elements(dims) > kMostElements) return binary(x);
    op made(0, forward ? (average ? AvgPool : MaxPool) : average ? AvgPoolBackward : MaxPoolBackward);
    set_windows(made, overlap ? 3 : 2, overlap ? 1 : 2, overlap ? 1 : 0, last);
    if (average) made.set_attr(Attr::exclude_pad, random_.coin());
    if (made.kind == AvgPoolBackward) made.set_attr(Attr::src_shape, std::vector<int64_t>(dims.begin(), dims.end()));
    if (made.kind == MaxPoolBackward) made.add_input(value(x.dtype, dims));
    finish(made.add_input(x), x.dtype, dims);
  }

  /// What sums or searches over more than a window, and what undoes it.
  void rows(const logical_tensor& x) {
    if (x.rank() == 0) return binary(x);
    switch (random_.whole(0, 7)) {
      case 0:
      case 1: return softmax(x);
      case 2: return layer_norm(x);
      case 3: return reduce(x);
      case 4: return batch_norm(x);
      case 5: return group_norm(x);
      case 6: return channel_sums(x);
      default: return interpolate(x);
    }
  }

  void softmax(const logical_tensor& x) {
    const bool log = random_.coin();
    const int64_t axis = random_.coin() ? -1 : random_.whole(0, x.rank() - 1);
    const auto made_from = [&](const logical_tensor& src) {
      return finish(op(0, log ? LogSoftmax : SoftMax).add_input(src).set_attr(Attr::axis, axis),
                    {{x.dtype, x.dims}})[0];
    };
    if (random_.coin()) return void(made_from(x));
    const logical_tensor dst = made_from(value(x.dtype, x.dims));
    op made(0, log ? LogSoftmaxBackward : SoftMaxBackward);
    finish(made.add_input(x).add_input(dst).set_attr(Attr::axis, axis), x.dtype, x.dims);
  }

  /// Forward and backward share attributes, gamma and beta.
  void layer_norm(const logical_tensor& x) {
    const int64_t axis = random_.coin() ? x.rank() - 1 : random_.whole(0, x.rank() - 1);
    Dims outer, inner;
    for (int d = 0; d < x.rank(); ++d) (d < axis ? outer : inner).push_back(x.dims[d]);
    const bool affine = random_.coin();
    std::vector<logical_tensor> weights;
    for (int i = 0; i < 2 && affine; ++i) weights.push_back(value(Dtype::f32, inner));
    const auto described = [&](OpKind kind) {
      op made(0, kind);
      return made.set_attr(Attr::begin_norm_axis, random_.coin() ? axis : axis - x.rank())
          .set_attr(Attr::epsilon, 0.5f);
    };
    if (random_.whole(0, 3) == 0) {
      op made = described(RMSNorm).add_input(x);
      if (affine) made.add_input(weights[0]);
      return finish(made, x.dtype, x.dims);
    }
    const bool backward = axis > 0 && random_.coin(), stats = backward || (axis > 0 && random_.coin());
    const logical_tensor src = backward ? value(x.dtype, x.dims) : x;
    op forward = described(LayerNorm).add_input(src);
    for (const logical_tensor& w : weights) forward.add_input(w);
    forward.set_attr(Attr::use_affine, affine).set_attr(Attr::keep_stats, stats);
    std::vector<Made> outs{{x.dtype, x.dims}};
    if (stats) outs.insert(outs.end(), 2, {Dtype::f32, outer});
    const auto results = finish(forward, outs);
    if (!backward) return;
    op made = described(LayerNormBackward).add_input(src).add_input(x).add_input(results[1]).add_input(results[2]);
    for (const logical_tensor& w : weights) made.add_input(w);
    outs = {{x.dtype, x.dims}};
    if (affine) outs.insert(outs.end(), 2, {Dtype::f32, inner});
    finish(made.set_attr(Attr::use_affine, affine), outs);
  }

  void reduce(const logical_tensor& x) {
    const bool keep = random_.coin();
    std::vector<int64_t> axes;
    Dims dims;
    for (int d = 0; d < x.rank(); ++d) {
      const bool gone = random_.coin();
      if (gone) axes.push_back(random_.coin() ? d : d - x.rank());
      if (keep || !gone) dims.push_back(gone ? 1 : x.dims[d]);
    }
    if (axes.empty()) return binary(x);
    const logical_tensor sums =
        finish(op(0, one_of(kReductions)).add_input(x).set_attr(Attr::axes, axes).set_attr(Attr::keep_dims, keep),
               {{x.dtype, dims}})[0];
    if (keep && random_.coin())
      finish(op(0, random_.pick({Subtract, Multiply})).add_input(x).add_input(sums), x.dtype, x.dims);
  }

  void batch_norm(const logical_tensor& x) {
    if (x.rank() < 2) return binary(x);
    const bool last = random_.coin(), affine = random_.coin(), backward = random_.coin();
    const Made channels{Dtype::f32, {x.dims[last ? x.rank() - 1 : 1]}};
    const auto described = [&](OpKind kind, const logical_tensor& src) {
      op made(0, kind);
      made.set_attr(Attr::data_format, std::string(last ? "NXC" : "NCX")).set_attr(Attr::epsilon, 0.5f);
      return made.add_input(src);
    };
    const logical_tensor src = backward ? value(x.dtype, x.dims) : x;
    op forward = described(BatchNormForwardTraining, src).set_attr(Attr::momentum, 0.75f);
    for (int port = 0; port < (affine ? 4 : 2); ++port) forward.add_input(value(Dtype::f32, channels.dims));
    const auto results = finish(forward, {{x.dtype, x.dims}, channels, channels, channels, channels});
    if (!backward) return;
    op made = described(BatchNormTrainingBackward, src).add_input(x).add_input(results[3]).add_input(results[4]);
    if (affine) made.add_input(forward.inputs[3]);
    std::vector<Made> outs{{x.dtype, x.dims}};
    if (affine) outs.insert(outs.end(), 2, channels);
    finish(made, outs);
  }

  void group_norm(const logical_tensor& x) {
    if (x.rank() < 3) return binary(x);
    const bool last = random_.coin(), affine = random_.coin();
    const int64_t channels = x.dims[last ? x.rank() - 1 : 1];
    int64_t groups = random_.whole(1, channels);
    while (channels % groups) --groups;
    op made(0, GroupNorm);
    made.set_attr(Attr::groups, groups).set_attr(Attr::data_format, std::string(last ? "NXC" : "NCX"));
    made.set_attr(Attr::use_affine, affine)
        .set_attr(Attr::keep_stats, false)
        .set_attr(Attr::epsilon, 0.5f)
        .add_input(x);
    for (int i = 0; i < 2 && affine; ++i) made.add_input(value(Dtype::f32, {channels}));
    finish(made, x.dtype, x.dims);
  }

  void channel_sums(const logical_tensor& x) {
    if (x.rank() < 4) return reduce(x);
    const bool last = random_.coin();
    const Dims channels{x.dims[last ? x.rank() - 1 : 1]};
    op made(0, random_.pick({BiasAddBackward, PReLUBackward}));
    made.set_attr(Attr::data_format, std::string(last ? "NXC" : "NCX"));
    if (made.kind == BiasAddBackward) return finish(made.add_input(x), x.dtype, channels);
    made.add_input(value(x.dtype, x.dims)).add_input(value(x.dtype, channels)).add_input(x);
    finish(made, {{x.dtype, x.dims}, {x.dtype, channels}});
  }

  void interpolate(const logical_tensor& x) {
    if (x.rank() < 3) return reduce(x);
    const bool last = random_.coin(), backward = random_.coin();
    Dims dims = x.dims;
    std::vector<int64_t> sizes, own;
    for (int d = last ? 1 : 2; d < (last ? x.rank() - 1 : x.rank()); ++d) {
      dims[d] = random_.coin() ? x.dims[d] * 2 : std::max<int64_t>(1, x.dims[d] + random_.whole(-2, 2));
      sizes.push_back(dims[d]);
      own.push_back(x.dims[d]);
    }
    if (elements(dims) > kMostElements) return reduce(x);
    op made(0, backward ? InterpolateBackward : Interpolate);
    made.set_attr(Attr::mode, std::string(random_.coin() ? "nearest" : "linear"));
    made.set_attr(Attr::data_format, std::string(last ? "NXC" : "NCX")).set_attr(Attr::sizes, backward ? own : sizes);
    if (backward) made.add_input(value(x.dtype, dims));
    finish(made.add_input(x), x.dtype, dims);
  }

  void compare(const logical_tensor& x) {
    finish(op(0, GreaterEqual).add_input(x).add_input(operand(x.dtype, x.dims)), Dtype::boolean, x.dims);
  }

  void choose(const logical_tensor& condition) {
    const Dtype dtype = any_float();
    const logical_tensor yes = value(dtype, condition.dims), no = operand(dtype, condition.dims);
    finish(op(0, Select).add_input(condition).add_input(yes).add_input(no), dtype, condition.dims);
  }

  void to_integers(const logical_tensor& x) {
    if (x.rank() > 0 && random_.coin()) {
      const int64_t axis = random_.whole(0, x.rank() - 1);
      return finish(op(0, GenIndex).add_input(x).set_attr(Attr::axis, axis), Dtype::s32, x.dims);
    }
    finish(op(0, Subtract).add_input(x).add_input(operand(random_.coin() ? Dtype::s32 : any_float(), x.dims)),
           Dtype::s32, x.dims);
  }

  void integers(const logical_tensor& x) {
    if (random_.whole(0, 3) == 0)
      return finish(op(0, GreaterEqual).add_input(x).add_input(operand(Dtype::s32, x.dims)), Dtype::boolean, x.dims);
    op made(0, random_.coin() ? Add : Subtract);
    const Dtype other = random_.coin() ? Dtype::s32 : any_float();
    finish(made.add_input(x).add_input(operand(other, x.dims)), random_.coin() ? Dtype::s32 : any_float(), x.dims);
  }

  Random& random_;
  const bool training_;
  Dims dims_;
  uint64_t next_id_ = 100;
  std::vector<logical_tensor> inputs_, results_;
  RandomGraph made_;
};

}  // namespace

RandomGraph random_graph(Random& random, int ops) { return Grower(random, false).run(ops); }
RandomGraph random_training_graph(Random& random, int ops) { return Grower(random, true).run(ops); }

Result<graph> finalized(const std::vector<op>& ops) {
  graph g;
  for (const op& o : ops)
    if (Status s = g.add_op(o); !s.ok()) return std::move(s).at(place_of(o));
  if (Status s = g.finalize(); !s.ok()) return s;
  return g;
}

}  // namespace partita::test
