// SPDX-License-Identifier: Apache-2.0
// Results do not depend on the number of threads, to the bit: every operator of the registry on work large enough to be
// shared, and the graphs of tests/data with their fusions.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "partita/json.hpp"
#include "src/base/cpu.hpp"
#include "src/base/text.hpp"
#include "src/base/threads.hpp"
#include "src/harness/compare.hpp"
#include "src/harness/prepared_graph.hpp"
#include "src/io/overrides.hpp"
#include "src/ir/op_def.hpp"
#include "tests/support/graph_files.hpp"
#include "tests/support/graph_text.hpp"
#include "tests/support/programs.hpp"

namespace partita::test {
namespace {

const std::string kFolder = PARTITA_SOURCE_DIR "/tests/data";

/// Compiled for so many threads and run on so many.
struct Threads {
  int compiled, run;
};
constexpr Threads kOther[] = {{2, 2}, {3, 3}, {8, 8}, {8, 3}, {8, 2}, {8, 1}};

Tensors results(const PreparedGraph::Part& part, Threads threads, std::vector<step_info>& steps) {
  const ThreadScope scope(threads.compiled);
  const auto compiled = part.group.compile(part.bound.given_in, part.bound.given_out, engine(), part.bound.constants);
  EXPECT_TRUE(compiled.ok()) << compiled.status().text();
  if (!compiled.ok()) return {};
  Tensors made;
  std::vector<tensor> out;
  for (const logical_tensor& t : compiled->outputs()) out.push_back((made[t.id] = Storage(t)).as_tensor());
  steps = compiled->steps();
  const Status status = compiled->execute(stream(engine(), threads.run), part.bound.inputs, out);
  EXPECT_TRUE(status.ok()) << status.text();
  return made;
}

/// oneDNN primitives that sum over several threads' shares, as many as there were when they were made. The same program
/// gives the same bits on any number of threads all the same, and programs made for different numbers agree closely.
/// Everything else, and each kernel of our own, gives the same bits whatever it was made for.
constexpr std::string_view kSumsOfShares[] = {
    "batch_norm_", "convolution_backward_weights_", "group_norm_", "layer_norm_backward_", "prelu_backward_",
};

bool sums_shares(const std::vector<step_info>& steps) {
  for (const step_info& step : steps)
    for (const std::string_view name : kSumsOfShares)
      if (step.kernel.starts_with(name) && step.kernel.find("_onednn") != step.kernel.npos) return true;
  return false;
}

/// Without AVX-512 oneDNN multiplies matrices of f32 by its GEMM, which cuts sums by the threads that run it.
bool multiplies_by_gemm(const std::vector<step_info>& steps) {
  if (machine_isa() == Isa::avx512) return false;
  return std::ranges::any_of(steps, [](const step_info& step) {
    return step.kernel.starts_with("matmul_") && step.kernel.find("_onednn") != step.kernel.npos;
  });
}

std::string far_apart(const Tensors& got, const Tensors& expected, double tolerance) {
  for (const auto& [id, storage] : expected)
    if (const Difference d = compare(got.at(id), storage, tolerance); d.wrong > 0)
      return str("tensor ", id, ": ", d.first);
  return {};
}

void expect_same_bits(const PreparedGraph::Part& part) {
  std::vector<step_info> steps;
  const Tensors one = results(part, {1, 1}, steps), eight = results(part, {8, 8}, steps);
  const bool gemm = multiplies_by_gemm(steps), shares = gemm || sums_shares(steps);
  for (const Threads threads : kOther) {
    const Tensors several = results(part, threads, steps);
    std::string trace = str("compiled for ", threads.compiled, " threads, run on ", threads.run, ":");
    for (const step_info& step : steps) trace += str(" [", step.text, "] ", step.kernel);
    EXPECT_EQ(shares ? "" : bit_difference(several, one), "") << trace;
    EXPECT_EQ(threads.compiled == 8 && !gemm ? bit_difference(several, eight) : "", "") << trace;
    EXPECT_EQ(far_apart(several, one, tolerance_of(*part.group.form())), "") << trace;
  }
}

/// Each partition on the inputs that one thread made, so that one partition's freedom does not reach the next.
void expect_same_bits(graph g) {
  auto prepared = PreparedGraph::make(std::move(g), Policy::fusion, 1);
  ASSERT_TRUE(prepared.ok()) << prepared.status().text();
  const Status status = prepared->execute();
  ASSERT_TRUE(status.ok()) << status.text();
  for (const PreparedGraph::Part& part : prepared->parts())
    if (part.group.supported()) expect_same_bits(part);
}

/// An element-wise operator on 36 009 elements.
op elementwise(const OpDef& def) {
  const Dims dims{9, 4001};
  op o(1, def.kind);
  const auto type = [&](std::string_view symbol) {
    for (const TypeDef& t : def.types)
      if (t.symbol == symbol)
        return t.types.has(Dtype::f32) ? Dtype::f32 : t.types.has(Dtype::s32) ? Dtype::s32 : Dtype::boolean;
    return Dtype::f32;
  };
  for (size_t i = 0; i < def.inputs.size(); ++i) {
    const bool vector = i > 0 && def.operands == Operands::channel;
    o.add_input(logical_tensor(i, type(def.inputs[i].type), vector ? Dims{dims.back()} : dims));
  }
  for (const AttrDef& attr : def.attrs) {
    if (attr.need != Need::required) continue;
    if (attr.type == AttrType::s64) o.set_attr(attr.key, int64_t{1});
    if (attr.type == AttrType::f32) o.set_attr(attr.key, attr.key == Attr::min ? -0.25f : 0.25f);
  }
  if (def.kind == OpKind::TypeCast) return o.add_output(logical_tensor(9, Dtype::bf16, Layout::any));
  return o.add_output(logical_tensor(9, type(def.outputs[0].type), Layout::any));
}

/// The others, one line each; every one has more than 32768 element operations to share.
constexpr std::string_view kOperators[] = {
    "%2 = AvgPool(%0: f32[2,35,34,20]) {kernel=[3,3], strides=[2,2], pads_begin=[1,1], pads_end=[1,1], "
    "exclude_pad=true}",
    "%2 = AvgPool(%0: f32[2,20,35,34]) {kernel=[3,3], strides=[2,2], pads_begin=[1,1], pads_end=[1,1], "
    "exclude_pad=false, data_format=NCX}",
    "%2, %3: s64 = MaxPool(%0: f32[2,35,34,20]) {kernel=[3,3], strides=[2,2], pads_begin=[1,1], pads_end=[1,1]}",
    "%2, %3: s32 = MaxPool(%0: f32[2,20,35,34]) {kernel=[3,3], strides=[2,2], pads_begin=[1,1], pads_end=[1,1], "
    "data_format=NCX}",
    "%2 = MaxPoolIndicesBackward(%0: f32[2,18,17,20], %1: s64[2,18,17,20]) {src_shape=[2,35,34,20]}",
    "%2 = MaxPoolIndicesBackward(%0: f32[2,20,18,17], %1: s32[2,20,18,17]) {src_shape=[2,20,35,34], data_format=NCX}",
    "%2 = AdaptiveAvgPool(%0: f32[2,35,34,20]) {sizes=[18,17]}",
    "%2 = AdaptiveAvgPoolBackward(%0: f32[2,20,16,15]) {src_shape=[2,20,35,34], data_format=NCX}",
    "%2 = MaxPool(%0: f32[2,35,34,20]) {kernel=[3,3], strides=[2,2], pads_begin=[1,1], pads_end=[1,1]}",
    "%2 = AvgPoolBackward(%0: f32[2,18,17,20]) {kernel=[3,3], strides=[2,2], pads_begin=[1,1], pads_end=[1,1], "
    "exclude_pad=true, src_shape=[2,35,34,20]}",
    "%2 = AvgPoolBackward(%0: f32[2,20,18,17]) {kernel=[3,3], strides=[2,2], pads_begin=[1,1], pads_end=[1,1], "
    "exclude_pad=true, src_shape=[2,20,35,34], data_format=NCX}",
    "%2 = AvgPoolBackward(%0: f32[1,35,34,40]) {kernel=[3,3], strides=[1,1], pads_begin=[1,1], pads_end=[1,1], "
    "exclude_pad=true, src_shape=[1,35,34,40]}",
    "%2 = MaxPoolBackward(%0: f32[2,35,34,20], %1: f32[2,18,17,20]) {kernel=[3,3], strides=[2,2], pads_begin=[1,1], "
    "pads_end=[1,1]}",
    "%2 = MaxPoolBackward(%0: f32[2,20,35,34], %1: f32[2,20,18,17]) {kernel=[3,3], strides=[2,2], pads_begin=[1,1], "
    "pads_end=[1,1], data_format=NCX}",
    "%2 = Convolution(%0: f32[2,17,18,16], %1: f32[3,3,16,24]) {strides=[1,1], pads_begin=[1,1], pads_end=[1,1], "
    "dilations=[1,1]}",
    "%2 = ConvolutionBackwardData(%0: f32[2,17,18,24], %1: f32[3,3,16,24]) {strides=[1,1], pads_begin=[1,1], "
    "pads_end=[1,1], dilations=[1,1], dst_shape=[2,17,18,16]}",
    "%2 = ConvolutionBackwardWeights(%0: f32[2,17,18,16], %1: f32[2,17,18,24]) {strides=[1,1], pads_begin=[1,1], "
    "pads_end=[1,1], dilations=[1,1], weights_shape=[3,3,16,24]}",
    "%2 = ConvTranspose(%0: f32[2,17,18,24], %1: f32[3,3,16,24]) {strides=[1,1], pads_begin=[1,1], pads_end=[1,1], "
    "dilations=[1,1]}",
    "%2 = ConvTransposeBackwardData(%0: f32[2,17,18,16], %1: f32[3,3,16,24]) {strides=[1,1], pads_begin=[1,1], "
    "pads_end=[1,1], dilations=[1,1]}",
    "%2 = ConvTransposeBackwardWeights(%0: f32[2,17,18,24], %1: f32[2,17,18,16]) {strides=[1,1], pads_begin=[1,1], "
    "pads_end=[1,1], dilations=[1,1], weights_shape=[3,3,16,24]}",
    "%2 = MatMul(%0: f32[70,600], %1: f32[600,70])",
    "%1 = SoftMax(%0: f32[300,130])",
    "%1 = SoftMax(%0: f32[30,130,10]) {axis=1}",
    "%1 = LogSoftmax(%0: f32[300,130])",
    "%2 = SoftMaxBackward(%0: f32[300,130], %1: f32[300,130])",
    "%2 = LogSoftmaxBackward(%0: f32[300,130], %1: f32[300,130])",
    "%3, %4, %5 = LayerNorm(%0: f32[300,130], %1: f32[130], %2: f32[130])",
    "%5, %6, %7 = LayerNormBackward(%0: f32[300,130], %1: f32[300,130], %2: f32[300], %3: f32[300], %4: f32[130])",
    "%2 = RMSNorm(%0: f32[300,130], %1: f32[130])",
    "%3, %4, %5 = GroupNorm(%0: f32[3,20,30,20], %1: f32[20], %2: f32[20]) {groups=4}",
    "%5, %6, %7, %8, %9 = BatchNormForwardTraining(%0: f32[3,20,30,20], %1: f32[20], %2: f32[20], %3: f32[20], "
    "%4: f32[20]) {epsilon=0.01}",
    "%5, %6, %7 = BatchNormTrainingBackward(%0: f32[3,20,30,20], %1: f32[3,20,30,20], %2: f32[20], %3: f32[20], "
    "%4: f32[20]) {epsilon=0.01}",
    "%5, %6, %7 = BatchNormTrainingBackward(%0: f32[3,20,30,20], %1: f32[3,20,30,20], %2: f32[20], %3: f32[20], "
    "%4: f32[20]) {epsilon=0.01, data_format=NCX}",
    "%1 = BiasAddBackward(%0: f32[3,20,30,20])",
    "%1 = BiasAddBackward(%0: f32[3,20,30,20]) {data_format=NCX}",
    "%1 = ReduceL1(%0: f32[300,130]) {axes=[0]}",
    "%1 = ReduceL2(%0: f32[300,130]) {axes=[1]}",
    "%1 = ReduceMax(%0: f32[300,130]) {axes=[0]}",
    "%1 = ReduceMean(%0: f32[300,130]) {axes=[0,1]}",
    "%1 = ReduceMin(%0: f32[300,130]) {axes=[1]}",
    "%1 = ReduceProd(%0: f32[300,130]) {axes=[0]}",
    "%1 = ReduceSum(%0: f32[300,130]) {axes=[0]}",
    "%1 = ReduceSum(%0: f32[300,130]) {axes=[0,1]}",
    "%1 = Interpolate(%0: f32[2,20,21,20]) {mode=linear, sizes=[33,35]}",
    "%2 = InterpolateBackward(%0: f32[2,20,21,20], %1: f32[2,33,35,20]) {mode=linear, sizes=[33,35]}",
    "%3, %4 = PReLUBackward(%0: f32[3,20,30,20], %1: f32[20], %2: f32[3,20,30,20])",
    "%1: s8 = Quantize(%0: f32[300,130]) {scales=[0.01]}",
    "%1: f32 = Dequantize(%0: s8[300,130]) {scales=[0.01]}",
    "%2: s8 = DynamicQuantize(%0: f32[300,130], %1: f32[1])",
    "%2: f32 = DynamicDequantize(%0: s8[300,130], %1: f32[1])",
    "%2 = Concat(%0: f32[300,70], %1: f32[300,60]) {axis=1}",
    "%1 = StaticReshape(%0: f32[300,130]) {shape=[130,300], special_zero=false}",
    "%1 = StaticTranspose(%0: f32[300,130]) {order=[1,0]}",
    "%4, %5: u8 = Dropout(%0: f32[300,130], %1: s64[1], %2: s64[1], %3: f32[1])",
};

class threads_identity : public testing::TestWithParam<std::string> {};

TEST(threads_identity_of_operators, covers_the_registry) {
  std::set<OpKind> listed;
  for (const std::string_view text : kOperators) listed.insert(ops_of(text).at(0).kind);
  for (const OpDef* def : all_ops()) {
    EXPECT_TRUE(def->step == StepKind::none || def->expression || listed.contains(def->kind)) << def->name;
  }
}

TEST(threads_identity_of_operators, of_elementwise_operators) {
  for (const OpDef* def : all_ops()) {
    if (!def->expression) continue;
    SCOPED_TRACE(def->name);
    graph g;
    const Status status = g.add_op(elementwise(*def));
    ASSERT_TRUE(status.ok()) << status.text();
    expect_same_bits(std::move(g));
  }
}

TEST(threads_identity_of_operators, of_all_others) {
  for (const std::string_view text : kOperators) {
    SCOPED_TRACE(text);
    auto g = graph_of(text);
    ASSERT_TRUE(g.ok()) << g.status().text();
    expect_same_bits(std::move(g).value());
  }
}

TEST_P(threads_identity, of_fused_programs) {
  auto g = graph_from_json_file(kFolder + "/" + GetParam());
  ASSERT_TRUE(g.ok()) << g.status().text();
  // The graphs are small; a larger batch gives the threads something to share.
  const bool large = GetParam().starts_with("training/");
  auto batched = apply_overrides(*g, {.mb = large ? "2" : "100"});
  expect_same_bits(batched.ok() ? std::move(batched).value() : std::move(g).value());
}

/// The operators alone are above; networks for training have all that those for inference have.
std::vector<std::string> fused_graphs() {
  std::vector<std::string> files = json_files(kFolder);
  std::erase_if(files,
                [](const std::string& file) { return file.starts_with("op/") || file.ends_with("_inference.json"); });
  return files;
}

INSTANTIATE_TEST_SUITE_P(tests_data, threads_identity, testing::ValuesIn(fused_graphs()), file_test_name);

}  // namespace
}  // namespace partita::test
