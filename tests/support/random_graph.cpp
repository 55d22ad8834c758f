// SPDX-License-Identifier: Apache-2.0
// Growing of random graphs; entry: random_graph(). Each operator reads a value made before, or a new input.
#include "tests/support/random_graph.hpp"

#include "src/base/shape.hpp"
#include "src/ir/op_def.hpp"

namespace partita::test {
namespace {

using enum OpKind;

constexpr OpKind kUnary[] = {Abs,  Clamp, Elu,        Exp,  GELU,    HardSigmoid, HardSwish, LeakyReLU, Log,  Mish,
                             Pow,  ReLU,  Reciprocal, Round, Sigmoid, SoftPlus,    Sqrt,      Square,    Tanh, Reorder};
constexpr OpKind kGradients[] = {AbsBackward,       ClampBackward, EluBackward,     GELUBackward,     HardSigmoidBackward,
                                 HardSwishBackward, MishBackward,  ReLUBackward,    SigmoidBackward,  SoftPlusBackward,
                                 SqrtBackward,      TanhBackward};
constexpr OpKind kBinary[] = {Add, Subtract, Multiply, Divide, Maximum, Minimum, SquaredDifference};

class Grower {
 public:
  explicit Grower(Random& random) : random_(random) {
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
    return kinds[random_.whole(0, static_cast<int64_t>(n) - 1)];
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

  void finish(op made, Dtype dtype, const Dims& dims) {
    for (const AttrDef& a : op_def(made.kind).attrs) {
      if (a.need != Need::required || a.type != AttrType::f32) continue;
      made.set_attr(a.key, a.key == Attr::min ? -0.25f : a.key == Attr::max ? 0.5f : a.key == Attr::beta ? 2.0f : 0.5f);
    }
    made.id = made_.ops.size() + 1;
    const logical_tensor out(next_id_++, dtype, dims);
    made.add_output(out);
    made_.ops.push_back(std::move(made));
    results_.push_back(out);
  }

  void grow() {
    const logical_tensor x = start();
    if (x.dtype == Dtype::boolean) return choose(x);
    if (x.dtype == Dtype::s32) return integers(x);
    if (!(x.dtype == Dtype::f32 || x.dtype == Dtype::bf16 || x.dtype == Dtype::f16)) return dequantize(x);
    switch (random_.whole(0, 11)) {
      case 0: case 1: return finish(op(0, one_of(kUnary)).add_input(x), x.dtype, x.dims);
      case 2: return gradient(x);
      case 3: case 4: return binary(x);
      case 5: return random_.coin() ? cast(x) : to_integers(x);
      case 6: return quantize(x);
      case 7: return channels(x);
      case 8: return move(x);
      case 9: case 10: return pool(x);
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
    else made.add_input(value(x.dtype, {count}));
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
        return finish(op(0, StaticReshape).add_input(x).set_attr(Attr::shape, std::vector<int64_t>{-1, 1})
                          .set_attr(Attr::special_zero, false), x.dtype, {x.elements(), 1});
      default: {
        const logical_tensor other = value(x.dtype, x.dims);
        dims[last] *= 2;
        if (elements(dims) > 20000) return binary(x);
        return finish(op(0, Concat).add_input(x).add_input(other).set_attr(Attr::axis, int64_t{-1}), x.dtype, dims);
      }
    }
  }

  void set_windows(op& made, int64_t kernel, int64_t stride, int64_t pad, bool last) {
    made.set_attr(Attr::kernel, std::vector<int64_t>(2, kernel)).set_attr(Attr::strides, std::vector<int64_t>(2, stride));
    made.set_attr(Attr::pads_begin, std::vector<int64_t>(2, pad)).set_attr(Attr::pads_end, std::vector<int64_t>(2, pad));
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
    if (elements(dims) > 20000) return binary(x);
    op made(0, forward ? (average ? AvgPool : MaxPool) : average ? AvgPoolBackward : MaxPoolBackward);
    set_windows(made, overlap ? 3 : 2, overlap ? 1 : 2, overlap ? 1 : 0, last);
    if (average) made.set_attr(Attr::exclude_pad, random_.coin());
    if (made.kind == AvgPoolBackward) made.set_attr(Attr::src_shape, std::vector<int64_t>(dims.begin(), dims.end()));
    if (made.kind == MaxPoolBackward) made.add_input(value(x.dtype, dims));
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
    finish(op(0, Subtract).add_input(x).add_input(operand(random_.coin() ? Dtype::s32 : any_float(), x.dims)), Dtype::s32, x.dims);
  }

  void integers(const logical_tensor& x) {
    if (random_.whole(0, 3) == 0)
      return finish(op(0, GreaterEqual).add_input(x).add_input(operand(Dtype::s32, x.dims)), Dtype::boolean, x.dims);
    op made(0, random_.coin() ? Add : Subtract);
    const Dtype other = random_.coin() ? Dtype::s32 : any_float();
    finish(made.add_input(x).add_input(operand(other, x.dims)), random_.coin() ? Dtype::s32 : any_float(), x.dims);
  }

  Random& random_;
  Dims dims_;
  uint64_t next_id_ = 100;
  std::vector<logical_tensor> inputs_, results_;
  RandomGraph made_;
};

}  // namespace

RandomGraph random_graph(Random& random, int ops) { return Grower(random).run(ops); }

}  // namespace partita::test
