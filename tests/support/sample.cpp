// SPDX-License-Identifier: Apache-2.0
// Sampling of patterns; entry: sample(). A chain is built item by item around the current tensor.
#include "tests/support/sample.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "passes/patterns/sets.hpp"
#include "src/base/shape.hpp"
#include "src/ir/op_def.hpp"

namespace partita::test {
namespace {

using patterns::Item;
using patterns::Pat;
using enum OpKind;

/// These enlarge rounding errors until nothing can be compared.
constexpr OpSet kAmplifying = Log | Reciprocal | Divide | Pow | Exp | Sqrt | SqrtBackward | Round;
constexpr OpSet kWithChannels = BiasAdd | BatchNormInference | PReLU;
constexpr OpSet kTransposedLists = ConvTranspose | ConvTransposeBackwardData | ConvTransposeBackwardWeights;

class Sampler {
 public:
  explicit Sampler(Random& random) : random_(random) {}

  std::vector<op> run(const patterns::Pattern& pattern) {
    depthwise_ = pattern.refuse != nullptr;
    std::optional<logical_tensor> start;
    forward(pattern.chain.items, start);
    for (const Pat& chain : pattern.with) {
      std::optional<logical_tensor> none;
      forward(chain.items, none);
    }
    return std::move(ops_);
  }

 private:
  int64_t pick(int64_t low, int64_t high) { return random_.whole(low, high); }
  bool coin() { return pick(0, 1) == 1; }

  logical_tensor fresh(Dtype dtype, const Dims& dims) { return logical_tensor(next_id_++, dtype, dims); }
  logical_tensor image(Dtype dtype = Dtype::f32) { return fresh(dtype, start_dims_); }

  /// How often an item is repeated.
  int count(const Item& item) { return static_cast<int>(pick(item.min, std::min(item.max, item.min + 2))); }

  void forward(const std::vector<Item>& items, std::optional<logical_tensor>& now) {
    for (const Item& item : items) {
      if (!item.bind.empty()) {
        if (!now) now = image(start_dtype_);
        names_[item.bind] = *now;
        continue;
      }
      if (!item.same.empty()) {
        now = names_.at(item.same);
        continue;
      }
      for (int k = count(item); k > 0; --k) {
        if (!item.either.empty()) {
          forward(item.either[static_cast<size_t>(pick(0, static_cast<int64_t>(item.either.size()) - 1))].items, now);
        } else if (auto kind = choose(item.kinds, now)) {
          now = add(item, *kind, now);
        } else if (item.min > 0 && now && whole(now->dtype)) {
          now = add(patterns::op(Dequantize).items[0], Dequantize, now);
          kind = choose(item.kinds, now);
          if (kind) now = add(item, *kind, now);
        }
      }
    }
  }

  static bool whole(Dtype type) { return type == Dtype::s8 || type == Dtype::u8; }

  /// A kind that can read the current tensor.
  std::optional<OpKind> choose(OpSet kinds, const std::optional<logical_tensor>& now) {
    if (kinds == OpSet(Exp)) return Exp;
    std::vector<OpKind> fit;
    const Dtype type = now ? now->dtype : Dtype::undef;
    for (int k = 0; k < kOpKinds; ++k) {
      const OpKind kind = op_kind_at(k);
      if (!kinds.has(kind) || kind == GreaterEqual) continue;  // nothing but Select reads a boolean
      const int rank = now ? now->dims.size() : start_dims_.size();
      if (kAmplifying.has(kind) || (rank < 4 && kWithChannels.has(kind))) continue;
      if (keeps_type_ && kinds.has(Add) && (kind == Quantize || kind == TypeCast)) continue;
      if (whole(type) != patterns::kWidening.has(kind) && type != Dtype::undef) continue;
      if (patterns::kNarrowing.has(kind) && type != Dtype::f32 && type != Dtype::undef) continue;
      if (kind == TypeCast && type != Dtype::f32 && type != Dtype::bf16 && type != Dtype::undef) continue;
      fit.push_back(kind);
    }
    if (fit.empty()) return std::nullopt;
    return fit[static_cast<size_t>(pick(0, static_cast<int64_t>(fit.size()) - 1))];
  }

  /// The tensor a side chain feeds: built backwards in the pattern, so forwards here.
  logical_tensor side(const Pat& chain, Dtype wanted) {
    if (chain.items.size() == 1 && !chain.items[0].same.empty()) return names_.at(chain.items[0].same);
    std::optional<logical_tensor> now;
    keeps_type_ = true;
    start_dtype_ = wanted;
    forward(chain.items, now);
    keeps_type_ = false;
    start_dtype_ = Dtype::f32;
    if (!now) return image(wanted);
    // What the chain that it meets reads.
    if (whole(now->dtype) && !whole(wanted)) now = add(patterns::op(Dequantize).items[0], Dequantize, now);
    if (now->dtype != wanted && !whole(wanted)) now = add(patterns::op(TypeCast).items[0], TypeCast, now);
    return *now;
  }

  logical_tensor add(const Item& item, OpKind kind, const std::optional<logical_tensor>& now) {
    const Dtype dtype = now ? now->dtype : patterns::kWidening.has(kind) ? Dtype::s8 : start_dtype_;
    std::map<int, logical_tensor> in;
    const bool begins = !now && !item.sides.empty() && item.sides[0].port < patterns::kOther;
    op made(0, kind);
    const int entry = port_of(made, begins ? item.sides[0].port : item.at);
    if (now)
      in[entry] = *now;
    else if (!begins && (item.sides.empty() || item.sides[0].port != entry))
      in[entry] = image(dtype);
    const bool weights = (Convolution | ConvTranspose).has(kind);
    for (const auto& [port, chain] : item.sides) {
      const int at = port == patterns::kOther ? 1 - entry : begins ? entry : port;
      if (at >= static_cast<int>(op_def(kind).inputs.size())) continue;
      // Weights of convolutions have a shape of their own.
      start_dims_ = at == 1 && weights ? Dims{4, 4, 3, 3} : now ? now->dims : kImage;
      in[at] = side(chain, dtype);
      start_dims_ = kImage;
    }
    all_cells_ = !item.sides.empty();
    const logical_tensor out = fill(made, in, entry);
    made.id = ops_.size() + 1;
    made.add_output(out);
    for (const logical_tensor& further : further_outputs_) made.add_output(further);
    further_outputs_.clear();
    ops_.push_back(made);
    return out;
  }

  /// The port that a pattern names: of a product by what it sums either, with the factors transposed to suit.
  int port_of(op& made, int wanted) {
    if (wanted == patterns::kAny) return entry_port(made.kind);
    if (wanted >= 0) return wanted;
    const int port = coin() ? 1 : 0;
    const bool transposed = (port == 0) == (wanted == patterns::kSummedRows), other = coin();
    made.set_attr(Attr::transpose_a, port == 0 ? transposed : other);
    made.set_attr(Attr::transpose_b, port == 0 ? other : transposed);
    return port;
  }
  static int entry_port(OpKind kind) { return is_backward(kind) || kind == Select ? 1 : 0; }
  static bool is_backward(OpKind kind) {
    constexpr OpSet kFromGradient =
        AvgPoolBackward | AdaptiveAvgPoolBackward | MaxPoolIndicesBackward | BiasAddBackward;
    return name_of(kind).ends_with("Backward") && !kFromGradient.has(kind);
  }

  void spatial(op& made, int64_t kernel, int64_t stride, int64_t pad, bool pool) {
    made.set_attr(Attr::strides, std::vector<int64_t>(2, stride))
        .set_attr(Attr::pads_begin, std::vector<int64_t>(2, pad));
    made.set_attr(Attr::pads_end, std::vector<int64_t>(2, pad)).set_attr(Attr::data_format, std::string("NCX"));
    if (pool)
      made.set_attr(Attr::kernel, std::vector<int64_t>(2, kernel));
    else
      made.set_attr(Attr::dilations, std::vector<int64_t>(2, 1));
  }

  /// Attributes and the remaining inputs; returns the output.
  logical_tensor fill(op& made, std::map<int, logical_tensor>& in, int entry) {
    const logical_tensor x = in.at(entry);
    const int64_t channels = x.dims[1];
    logical_tensor out = fresh(x.dtype, x.dims);
    switch (made.kind) {
      case MatMul: product(made, in, x, entry, out); break;
      case ConvolutionBackwardData:
      case ConvTransposeBackwardData:
      case ConvolutionBackwardWeights:
      case ConvTransposeBackwardWeights: convolution_gradient(made, in, x, out); break;
      case Convolution:
      case ConvTranspose: {
        const bool transposed = kTransposedLists.has(made.kind);
        const bool depthwise = depthwise_ && !ops_.empty();
        in.try_emplace(1, fresh(x.dtype, {4, depthwise ? 1 : channels, 3, 3}));
        if (depthwise) made.set_attr(Attr::groups, channels);
        spatial(made, 3, 1, 1, false);
        made.set_attr(Attr::weights_format, std::string(transposed ? "IOX" : "OIX"));
        out.dims[1] = in[1].dims[transposed ? 1 : 0];
        break;
      }
      case AvgPool:
      case MaxPool:
      case AvgPoolBackward:
      case MaxPoolBackward: pooling(made, in, x, out); break;
      case AdaptiveAvgPool:
        for (int axis : {2, 3}) out.dims[axis] = all_cells_ ? 1 : pick(1, x.dims[axis]);
        made.set_attr(Attr::sizes, std::vector<int64_t>{out.dims[2], out.dims[3]})
            .set_attr(Attr::data_format, std::string("NCX"));
        break;
      case AdaptiveAvgPoolBackward:
      case MaxPoolIndicesBackward:
        for (int axis : {2, 3}) out.dims[axis] = x.dims[axis] + pick(0, 4);
        made.set_attr(Attr::src_shape, std::vector<int64_t>(out.dims.begin(), out.dims.end()))
            .set_attr(Attr::data_format, std::string("NCX"));
        if (made.kind == MaxPoolIndicesBackward) in.try_emplace(1, fresh(coin() ? Dtype::s64 : Dtype::s32, x.dims));
        break;
      case BiasAdd:
        in.try_emplace(1, fresh(x.dtype, {channels}));
        made.set_attr(Attr::data_format, std::string("NCX"));
        break;
      case BatchNormInference:
        for (int p = 1; p < 5; ++p) in.try_emplace(p, fresh(Dtype::f32, {channels}));
        made.set_attr(Attr::data_format, std::string("NCX")).set_attr(Attr::epsilon, 0.01f);
        break;
      case BatchNormForwardTraining:
      case BatchNormTrainingBackward:
        for (int p = made.kind == BatchNormForwardTraining ? 1 : 2; p < 5; ++p)
          in.try_emplace(p, fresh(Dtype::f32, {channels}));
        in.try_emplace(0, fresh(x.dtype, x.dims));
        made.set_attr(Attr::data_format, std::string("NCX")).set_attr(Attr::epsilon, 0.01f);
        for (int o = made.kind == BatchNormForwardTraining ? 4 : 2; o > 0; --o)
          further_outputs_.push_back(fresh(Dtype::f32, {channels}));
        break;
      case SoftMax:
      case LogSoftmax:
      case SoftMaxBackward:
      case LogSoftmaxBackward:
        made.set_attr(Attr::axis, pick(-1, 1));
        if (made.kind == SoftMaxBackward || made.kind == LogSoftmaxBackward) in.try_emplace(1, fresh(x.dtype, x.dims));
        break;
      case LayerNorm:
      case RMSNorm:
      case GroupNorm:
      case LayerNormBackward: normalisation(made, in, x); break;
      case Interpolate:
        made.set_attr(Attr::mode, std::string(coin() ? "nearest" : "linear"))
            .set_attr(Attr::scales, std::vector<float>{2, 2})
            .set_attr(Attr::data_format, std::string("NCX"));
        out.dims[2] *= 2;
        out.dims[3] *= 2;
        break;
      case InterpolateBackward:
        made.set_attr(Attr::mode, std::string(coin() ? "nearest" : "linear"))
            .set_attr(Attr::sizes, std::vector<int64_t>{x.dims[2], x.dims[3]})
            .set_attr(Attr::data_format, std::string("NCX"));
        out.dims[2] = (x.dims[2] + 1) / 2;
        out.dims[3] = (x.dims[3] + 1) / 2;
        in.try_emplace(0, fresh(x.dtype, out.dims));
        break;
      case BiasAddBackward:
        made.set_attr(Attr::data_format, std::string("NCX"));
        out.dims = {channels};
        break;
      case PReLU:
        in.try_emplace(1, fresh(x.dtype, {channels}));
        made.set_attr(Attr::data_format, std::string("NCX"));
        break;
      case Select:
        in.try_emplace(0, fresh(Dtype::boolean, x.dims));
        in.try_emplace(entry == 1 ? 2 : 1, fresh(x.dtype, coin() ? x.dims : Dims{1}));
        break;
      case StaticReshape:
        std::swap(out.dims[2], out.dims[3]);
        made.set_attr(Attr::shape, std::vector<int64_t>(out.dims.begin(), out.dims.end()))
            .set_attr(Attr::special_zero, false);
        break;
      case StaticTranspose:
        std::swap(out.dims[2], out.dims[3]);
        made.set_attr(Attr::order, std::vector<int64_t>{0, 1, 3, 2});
        break;
      case Dropout:
        for (int p : {1, 2}) in.try_emplace(p, fresh(Dtype::s64, {1}));
        in.try_emplace(3, fresh(Dtype::f32, {1}));
        break;
      case TypeCast: out.dtype = x.dtype == Dtype::f32 ? Dtype::bf16 : Dtype::f32; break;
      case DynamicQuantize:
      case DynamicDequantize:
        out.dtype = made.kind == DynamicQuantize ? (coin() ? Dtype::s8 : Dtype::u8) : Dtype::f32;
        made.set_attr(Attr::qtype, std::string("per_tensor"));
        in.try_emplace(1, fresh(Dtype::f32, {1}));
        break;
      case Quantize:
      case Dequantize:
        out.dtype = made.kind == Quantize ? (coin() ? Dtype::s8 : Dtype::u8) : Dtype::f32;
        made.set_attr(Attr::scales, std::vector<float>{0.25f}).set_attr(Attr::zps, std::vector<int64_t>{pick(0, 3)});
        break;
      default:
        if (op_def(made.kind).step == StepKind::reduce) {
          const int64_t axis = pick(0, 3);
          const std::vector<int64_t> axes = all_cells_ ? std::vector<int64_t>{2, 3} : std::vector<int64_t>{axis};
          made.set_attr(Attr::axes, axes).set_attr(Attr::keep_dims, true);
          for (const int64_t reduced : axes) out.dims[static_cast<int>(reduced)] = 1;
          break;
        }
        elementwise(made, in, x);
        if (patterns::kBinary.has(made.kind)) out.dims = *broadcast(in.at(0).dims, in.at(1).dims);
    }
    for (const auto& [port, t] : in) made.add_input(t);
    return logical_tensor(out.id, out.dtype, out.dims);
  }

  void product(op& made, std::map<int, logical_tensor>& in, const logical_tensor& x, int entry, logical_tensor& out) {
    const auto is = [&](Attr attr) {
      return std::any_of(made.attrs().begin(), made.attrs().end(),
                         [&](const auto& given) { return given.first == attr && given.second == AttrValue(true); });
    };
    const bool a = is(Attr::transpose_a), b = is(Attr::transpose_b), first = entry == 0;
    const int summed = first == (first ? a : b) ? 2 : 3, summed_other = first == (first ? b : a) ? 3 : 2;
    Dims other = x.dims;
    other[summed_other] = x.dims[summed];
    other[5 - summed_other] = 6;
    in.try_emplace(1 - entry, fresh(x.dtype, other));
    out.dims[2] = in[0].dims[a ? 3 : 2];
    out.dims[3] = in[1].dims[b ? 2 : 3];
  }

  void normalisation(op& made, std::map<int, logical_tensor>& in, const logical_tensor& x) {
    const Dims row{x.dims.back()};
    Dims rows = x.dims;
    rows.erase(rows.size() - 1);
    if (made.kind == GroupNorm) {
      made.set_attr(Attr::groups, int64_t{2}).set_attr(Attr::keep_stats, false);
      made.set_attr(Attr::data_format, std::string("NCX"));
      for (int p : {1, 2}) in.try_emplace(p, fresh(Dtype::f32, {x.dims[1]}));
    } else if (made.kind == LayerNormBackward) {
      in.try_emplace(0, fresh(x.dtype, x.dims));
      for (int p : {2, 3}) in.try_emplace(p, fresh(Dtype::f32, rows));
      for (int p : {4, 5}) in.try_emplace(p, fresh(Dtype::f32, row));
      for (int o = 0; o < 2; ++o) further_outputs_.push_back(fresh(Dtype::f32, row));
    } else {
      if (made.kind == LayerNorm) made.set_attr(Attr::keep_stats, false);
      for (int p = 1; p <= (made.kind == LayerNorm ? 2 : 1); ++p) in.try_emplace(p, fresh(Dtype::f32, row));
    }
  }

  /// Both gradients read the gradient of a result as large as the source.
  void convolution_gradient(op& made, std::map<int, logical_tensor>& in, const logical_tensor& x, logical_tensor& out) {
    const bool weights = (ConvolutionBackwardWeights | ConvTransposeBackwardWeights).has(made.kind);
    const Dims filter{4, x.dims[1], 3, 3};
    spatial(made, 3, 1, 1, false);
    made.set_attr(Attr::weights_format, std::string(kTransposedLists.has(made.kind) ? "IOX" : "OIX"));
    in.try_emplace(weights ? 0 : 1, fresh(x.dtype, weights ? x.dims : filter));
    if (weights) out.dims = filter;
    if (weights || made.kind == ConvolutionBackwardData)
      made.set_attr(weights ? Attr::weights_shape : Attr::dst_shape,
                    std::vector<int64_t>(out.dims.begin(), out.dims.end()));
  }

  void pooling(op& made, std::map<int, logical_tensor>& in, const logical_tensor& x, logical_tensor& out) {
    const bool average = made.kind == AvgPool || made.kind == AvgPoolBackward;
    spatial(made, 2, 2, 0, true);
    if (made.kind == AvgPool && all_cells_) {
      made.set_attr(Attr::kernel, std::vector<int64_t>{x.dims[2], x.dims[3]}).set_attr(Attr::exclude_pad, coin());
      out.dims[2] = out.dims[3] = 1;
      return;
    }
    if (average) made.set_attr(Attr::exclude_pad, coin());
    if (made.kind == AvgPool || made.kind == MaxPool) {
      out.dims[2] = x.dims[2] / 2;
      out.dims[3] = x.dims[3] / 2;
      if (made.kind == MaxPool && coin()) further_outputs_.push_back(fresh(Dtype::s64, out.dims));
      return;
    }
    out.dims[2] = x.dims[2] * 2;
    out.dims[3] = x.dims[3] * 2;
    if (average)
      made.set_attr(Attr::src_shape, std::vector<int64_t>(out.dims.begin(), out.dims.end()));
    else
      in.try_emplace(0, fresh(x.dtype, out.dims));
  }

  void elementwise(op& made, std::map<int, logical_tensor>& in, const logical_tensor& x) {
    const OpDef& def = op_def(made.kind);
    for (const AttrDef& a : def.attrs) {
      if (a.need != Need::required || a.type != AttrType::f32) continue;
      made.set_attr(a.key, a.key == Attr::min    ? -0.25f
                           : a.key == Attr::max  ? 0.25f
                           : a.key == Attr::beta ? 2.0f
                                                 : 0.5f);
    }
    for (int p = 0; p < static_cast<int>(def.inputs.size()); ++p) {
      const bool broadcast = p == 1 && x.dims.size() == 4 && find_attr(def, Attr::auto_broadcast) && coin();
      in.try_emplace(p, fresh(x.dtype, broadcast ? Dims{1, x.dims[1], 1, 1} : x.dims));
    }
  }

  static constexpr Dims kImage{2, 4, 6, 6};

  Random& random_;
  Dims start_dims_ = kImage;
  Dtype start_dtype_ = Dtype::f32;
  uint64_t next_id_ = 100;
  std::map<std::string_view, logical_tensor> names_;
  std::vector<op> ops_;
  bool depthwise_ = false;                       // convolutions behind the first have one group a channel
  bool all_cells_ = false;                       // what is averaged or summed is read again beside the result
  bool keeps_type_ = false;                      // the chain feeds an operator that reads one type
  std::vector<logical_tensor> further_outputs_;  // of the operator being made
};

}  // namespace

const std::vector<patterns::Pattern>& sampled_patterns() {
  static const std::vector<patterns::Pattern> list = [] {
    std::vector<patterns::Pattern> both = all_patterns();
    both.insert(both.end(), patterns::neighbourhoods().begin(), patterns::neighbourhoods().end());
    return both;
  }();
  return list;
}

std::vector<op> sample(const patterns::Pattern& pattern, Random& random) { return Sampler(random).run(pattern); }

std::vector<op> sample(const patterns::Pattern& pattern, uint64_t seed) {
  Random random(seed);
  return sample(pattern, random);
}

}  // namespace partita::test
