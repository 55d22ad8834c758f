// SPDX-License-Identifier: Apache-2.0
// The error of every operator, type and kernel against arithmetic in f64: worst and mean, within the bounds of
// docs/generated/accuracy.md. PARTITA_TEST_PRINT_ACCURACY=1 prints what was measured.
#include "src/harness/accuracy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>

#include "kernels/ref/reference.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "src/ir/op_def.hpp"
#include "tests/support/graph_text.hpp"
#include "tests/support/op_rows.hpp"
#include "tests/support/programs.hpp"
#include "tests/support/random_problem.hpp"

namespace partita::test {
namespace {

constexpr uint64_t kSeed = 20261122;
constexpr Dtype kTypes[] = {Dtype::f32, Dtype::bf16, Dtype::f16, Dtype::f8_e5m2, Dtype::f8_e4m3};

/// Operators that are not element-wise; T is the type under test.
constexpr std::string_view kOperators[] = {
    "%2 = AvgPool(%0: T[2,3,18,17]) {kernel=[3,3], strides=[2,2], pads_begin=[1,1], pads_end=[1,1], "
    "exclude_pad=true, data_format=NCX}",
    "%2 = AdaptiveAvgPool(%0: T[2,17,19,5]) {sizes=[4,5]}",
    "%2 = AvgPoolBackward(%0: T[2,9,9,5]) {kernel=[3,3], strides=[2,2], pads_begin=[1,1], pads_end=[1,1], "
    "exclude_pad=true, src_shape=[2,17,17,5]}",
    "%2 = AdaptiveAvgPoolBackward(%0: T[2,5,4,5]) {src_shape=[2,17,16,5]}",
    "%2 = MaxPoolBackward(%0: T[2,17,17,5], %1: T[2,9,9,5]) {kernel=[3,3], strides=[2,2], pads_begin=[1,1], "
    "pads_end=[1,1]}",
    "%2 = MaxPoolIndicesBackward(%0: T[2,9,9,5], %1: s64[2,9,9,5]) {src_shape=[2,17,17,5]}",
    "%2 = Convolution(%0: T[2,9,8,16], %1: T[3,3,16,12]) {strides=[1,1], pads_begin=[1,1], pads_end=[1,1], "
    "dilations=[1,1]}",
    "%2 = ConvolutionBackwardData(%0: T[2,9,8,12], %1: T[3,3,16,12]) {strides=[1,1], pads_begin=[1,1], "
    "pads_end=[1,1], dilations=[1,1], dst_shape=[2,9,8,16]}",
    "%2 = ConvolutionBackwardWeights(%0: T[2,9,8,16], %1: T[2,9,8,12]) {strides=[1,1], pads_begin=[1,1], "
    "pads_end=[1,1], dilations=[1,1], weights_shape=[3,3,16,12]}",
    "%2 = ConvTranspose(%0: T[2,9,8,12], %1: T[3,3,16,12]) {strides=[1,1], pads_begin=[1,1], pads_end=[1,1], "
    "dilations=[1,1]}",
    "%2 = ConvTransposeBackwardData(%0: T[2,9,8,16], %1: T[3,3,16,12]) {strides=[1,1], pads_begin=[1,1], "
    "pads_end=[1,1], dilations=[1,1]}",
    "%2 = ConvTransposeBackwardWeights(%0: T[2,9,8,12], %1: T[2,9,8,16]) {strides=[1,1], pads_begin=[1,1], "
    "pads_end=[1,1], dilations=[1,1], weights_shape=[3,3,16,12]}",
    "%2 = MatMul(%0: T[17,600], %1: T[600,19])",
    "%1 = SoftMax(%0: T[30,130])",
    "%1 = SoftMax(%0: T[3,40,10]) {axis=1}",
    "%1 = LogSoftmax(%0: T[30,130])",
    "%2 = SoftMaxBackward(%0: T[30,130], %1: T[30,130])",
    "%2 = LogSoftmaxBackward(%0: T[30,130], %1: T[30,130])",
    "%3, %4: f32, %5: f32 = LayerNorm(%0: T[30,130], %1: f32[130], %2: f32[130])",
    "%5, %6: f32, %7: f32 = LayerNormBackward(%0: T[30,130], %1: T[30,130], %2: f32[30], %3: f32[30], %4: f32[130])",
    "%2 = RMSNorm(%0: T[30,130], %1: f32[130])",
    "%3, %4: f32, %5: f32 = GroupNorm(%0: T[3,9,8,20], %1: f32[20], %2: f32[20]) {groups=4}",
    "%5 = BatchNormInference(%0: T[3,9,8,20], %1: f32[20], %2: f32[20], %3: f32[20], %4: f32[20]) {epsilon=0.01}",
    "%5, %6: f32, %7: f32, %8: f32, %9: f32 = BatchNormForwardTraining(%0: T[3,9,8,20], %1: f32[20], %2: f32[20], "
    "%3: f32[20], %4: f32[20]) {epsilon=0.01}",
    "%5, %6: f32, %7: f32 = BatchNormTrainingBackward(%0: T[3,9,8,20], %1: T[3,9,8,20], %2: f32[20], %3: f32[20], "
    "%4: f32[20]) {epsilon=0.01}",
    "%1 = BiasAddBackward(%0: T[3,9,8,20])",
    "%1 = ReduceL1(%0: T[30,130]) {axes=[0]}",
    "%1 = ReduceL2(%0: T[30,130]) {axes=[1]}",
    "%1 = ReduceMean(%0: T[30,130]) {axes=[0,1]}",
    "%1 = ReduceProd(%0: T[30,13]) {axes=[1]}",
    "%1 = ReduceSum(%0: T[30,130]) {axes=[0]}",
    "%1 = Interpolate(%0: T[2,7,8,5]) {mode=linear, sizes=[11,13]}",
    "%2 = InterpolateBackward(%0: T[2,7,8,5], %1: T[2,11,13,5]) {mode=linear, sizes=[11,13]}",
    "%3, %4 = PReLUBackward(%0: T[3,9,8,20], %1: T[20], %2: T[3,9,8,20])",
    "%1: T = Dequantize(%0: s8[30,130]) {scales=[0.01]}",
    "%2: T = DynamicDequantize(%0: s8[30,130], %1: f32[1])",
    "%4, %5: u8 = Dropout(%0: T[30,130], %1: s64[1], %2: s64[1], %3: f32[1])",
};

std::string with_type(std::string_view text, Dtype type) {
  std::string made;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool alone = text[i] == 'T' && i >= 2 && text[i - 1] == ' ' && text[i - 2] == ':';
    made += alone ? std::string(name_of(type)) : std::string(1, text[i]);
  }
  return made;
}

/// An element-wise operator on all its floating-point inputs in that type.
std::optional<op> elementwise(const OpDef& def, Dtype type) {
  const Dims dims{19, 211};
  op o(1, def.kind);
  if (std::ranges::none_of(def.types, [&](const TypeDef& t) { return t.types.has(type); })) return std::nullopt;
  const auto type_of = [&](std::string_view symbol) {
    for (const TypeDef& t : def.types)
      if (t.symbol == symbol) return t.types.has(type) ? type : t.types.has(Dtype::f32) ? Dtype::f32 : Dtype::boolean;
    return type;
  };
  for (size_t i = 0; i < def.inputs.size(); ++i) {
    const bool vector = i > 0 && def.operands == Operands::channel;
    o.add_input(logical_tensor(i, type_of(def.inputs[i].type), vector ? Dims{dims.back()} : dims));
  }
  for (const AttrDef& attr : def.attrs) {
    if (attr.need != Need::required) continue;
    if (attr.type == AttrType::s64) o.set_attr(attr.key, int64_t{1});
    if (attr.type == AttrType::f32) o.set_attr(attr.key, attr.key == Attr::min ? -0.25f : 0.25f);
  }
  return o.add_output(logical_tensor(9, type_of(def.outputs[0].type), Layout::any));
}

struct Sizes {
  int mantissa, least_exponent;
};

Sizes sizes_of(Dtype type) {
  switch (type) {
    case Dtype::bf16: return {7, -126};
    case Dtype::f16: return {10, -14};
    case Dtype::f8_e5m2: return {2, -14};
    case Dtype::f8_e4m3: return {3, -6};
    default: return {23, -126};
  }
}

/// The distance between neighbouring numbers of the type about `size`.
double place(Dtype type, double size) {
  const Sizes s = sizes_of(type);
  const int exponent = size > 0 ? std::max(std::ilogb(size), s.least_exponent) : s.least_exponent;
  return std::ldexp(1, exponent - s.mantissa);
}

double largest(Dtype type) {
  switch (type) {
    case Dtype::f16: return 65504;
    case Dtype::f8_e5m2: return 57344;
    case Dtype::f8_e4m3: return 448;
    case Dtype::bf16: return 0x1.fep127;
    default: return 0x1.fffffep127;
  }
}

/// Numbers of many sizes for element-wise operators, moderate ones for sums; positive where it has to be.
void fill(const OpDef& def, const op& o, Tensors& inputs, bool elementwise_op) {
  Random random(kSeed + static_cast<uint64_t>(o.kind));
  for (size_t i = 0; i < o.inputs.size(); ++i) {
    Storage& s = inputs.at(o.inputs[i].id);
    const std::string_view name = def.inputs[std::min(i, def.inputs.size() - 1)].name;
    if (!is_floating(s.desc.dtype) || name.find("variance") != name.npos || name == "probability") continue;
    for (int64_t k = 0; k < s.desc.elements(); ++k) {
      double x = random.real(-1, 1);
      if (elementwise_op) x = std::ldexp(x, static_cast<int>(random.whole(-12, 4)));
      if (o.kind == OpKind::ReduceProd) x = random.real(0.5, 1.5);
      if (o.kind == OpKind::SoftMaxBackward && name == "dst") x = random.real(0, 0.02);
      store_from_double(s.data.get(), s.desc.dtype, k, x);
    }
  }
}

/// The reference with results in f64; of the absolute values of the inputs, where asked for.
std::vector<std::vector<double>> exact(const Partition& single, const Tensors& inputs, bool absolute) {
  const Ports ports = ports_of(single);
  const auto specialized = specialize(single, ports.given());
  EXPECT_TRUE(specialized.ok()) << specialized.status().text();
  if (!specialized.ok()) return {};
  const Subgraph& g = specialized->graph;
  const SubOp& sub = g.ops[0];
  Problem p = problem_for(op_def(sub.kind).step, sub.kind);
  p.attrs = sub.attrs;
  std::vector<Storage> copies;
  std::vector<const void*> from;
  std::vector<void*> to;
  std::vector<std::vector<double>> results;
  for (int v : sub.in) {
    const logical_tensor& t = g.values[static_cast<size_t>(v)].desc;
    const Storage& given = inputs.at(t.id);
    Storage& copy = copies.emplace_back(t);
    std::memcpy(copy.data.get(), given.data.get(), copy.bytes);
    if (absolute && is_floating(t.dtype))
      for (int64_t k = 0; k < t.elements(); ++k)
        store_from_double(copy.data.get(), t.dtype, k, std::fabs(load_as_double(copy.data.get(), t.dtype, k)));
    p.in.push_back({t.dtype, t.dims, t.strides, 0});
    from.push_back(copy.data.get());
  }
  for (int v : sub.out) {
    const logical_tensor& t = g.values[static_cast<size_t>(v)].desc;
    results.emplace_back(static_cast<size_t>(t.elements()));
    p.out.push_back({is_floating(t.dtype) ? Dtype::f64 : t.dtype, t.dims, dense_strides(t.dims), 0});
  }
  for (auto& r : results) to.push_back(r.data());
  const Status status = reference_of(sub.kind)(p, {from, to, nullptr});
  EXPECT_TRUE(status.ok()) << status.text();
  return results;
}

struct Measured {
  double worst = 0, sum = 0;
  int64_t count = 0;
  std::string where;
  double mean() const { return count ? sum / static_cast<double>(count) : 0; }
};

/// By the type of the result: operators on narrow tensors have f32 statistics.
using ByType = std::map<Dtype, Measured>;

/// What an operator's results were compared with.
struct Expected {
  std::vector<std::vector<double>> results, terms;
  ErrorScale scale;
  double least = 0;  ///< size that counts for narrow results that are smaller
};

ByType measured(const Tensors& got, const op& o, const Expected& expected) {
  ByType by_type;
  for (size_t i = 0; i < o.outputs.size(); ++i) {
    const auto found = got.find(o.outputs[i].id);
    if (found == got.end() || !is_floating(found->second.desc.dtype)) continue;
    const Storage& s = found->second;
    const Dtype type = s.desc.dtype;
    Measured& m = by_type[type];
    double most = 0;
    for (double x : expected.results[i])
      if (std::isfinite(x)) most = std::max(most, std::fabs(x));
    for (int64_t k = 0; k < s.desc.elements(); ++k) {
      const double e = expected.results[i][static_cast<size_t>(k)], g = load_as_double(s.data.get(), type, k);
      if (std::isnan(e) && std::isnan(g)) continue;
      const double limit = largest(type);
      if (std::fabs(e) >= limit && std::fabs(g) >= limit && std::signbit(e) == std::signbit(g)) continue;
      const double least = type == Dtype::f32 ? 0 : expected.least;
      const double size = expected.scale == ErrorScale::result  ? std::fabs(e)
                          : expected.scale == ErrorScale::terms ? expected.terms[i][static_cast<size_t>(k)]
                                                                : most;
      double error = std::fabs(g - e) / place(type, std::max(size, least));
      if (std::isnan(error)) error = INFINITY;
      m.sum += error;
      ++m.count;
      if (error > m.worst) {
        m.worst = error;
        m.where = str("output ", i, ", element ", k, ": got ", g, ", exact ", e);
      }
    }
  }
  return by_type;
}

const Accuracy* accuracy_of(OpKind kind) {
  for (const Accuracy& a : accuracy_table())
    if (a.kind == kind) return &a;
  return nullptr;
}

/// False where the operator does not take the type.
bool check(op o, Dtype type, bool elementwise_op) {
  auto single = partition::of(o);
  if (!single.ok() || !single->supported()) return false;
  const Accuracy* bound = accuracy_of(o.kind);
  EXPECT_NE(bound, nullptr) << name_of(o.kind) << " is not in the table of accuracies";
  if (!bound) return true;
  o = single->form()->ops[0];
  Tensors inputs = input_data(o, kSeed);
  fill(op_def(o.kind), o, inputs, elementwise_op);
  Expected expected{exact(*single->form(), inputs, false), {}, bound->scale};
  if (bound->least_exponent) expected.least = std::ldexp(1, *bound->least_exponent);
  if (bound->scale == ErrorScale::terms) expected.terms = exact(*single->form(), inputs, true);
  if (expected.results.empty()) return true;  // a failure that has been told
  const OpRuns runs = run_every_row(*single->form(), inputs);
  EXPECT_EQ(runs.refusal, "");
  for (const auto& [row, tensors] : runs.rows)
    for (const auto& [of, m] : measured(tensors, o, expected)) {
      const ErrorBound& allowed = of == Dtype::f32 ? bound->f32 : bound->narrow;
      const std::string what = str(name_of(o.kind), " on ", name_of(type), ", result ", name_of(of), ", ", row, ": ");
      if (std::getenv("PARTITA_TEST_PRINT_ACCURACY"))
        std::printf("%sworst %.3g mean %.3g\n", what.c_str(), m.worst, m.mean());
      EXPECT_LE(m.worst, allowed.worst) << what << m.where;
      EXPECT_LE(m.mean(), allowed.mean) << what;
    }
  return true;
}

TEST(accuracy, of_elementwise_operators) {
  SCOPED_TRACE(str("seed ", kSeed));
  for (const OpDef* def : all_ops()) {
    if (!def->expression || !accuracy_of(def->kind)) continue;
    int types = 0;
    for (const Dtype type : kTypes)
      if (const auto o = elementwise(*def, type)) types += check(*o, type, true);
    EXPECT_GE(types, 1) << def->name;
  }
}

TEST(accuracy, of_all_others) {
  SCOPED_TRACE(str("seed ", kSeed));
  for (const std::string_view text : kOperators) {
    SCOPED_TRACE(text);
    int types = 0;
    for (const Dtype type : kTypes) types += check(ops_of(with_type(text, type)).at(0), type, false);
    EXPECT_GE(types, 1);
  }
}

TEST(accuracy, is_stated_for_every_operator_that_computes) {
  std::set<OpKind> listed;
  for (const std::string_view text : kOperators) listed.insert(ops_of(with_type(text, Dtype::f32)).at(0).kind);
  for (const OpDef* def : all_ops()) {
    const bool tested = listed.contains(def->kind) || (def->expression && accuracy_of(def->kind));
    EXPECT_EQ(accuracy_of(def->kind) != nullptr, tested) << def->name;
  }
}

}  // namespace
}  // namespace partita::test
