// SPDX-License-Identifier: Apache-2.0
// What stands around products and runs inside their primitives: what is taken, and that results stay what the
// references compute.
#include <gtest/gtest.h>

#include "kernels/onednn/primitive_run.hpp"
#include "src/base/cpu.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "tests/support/compiled_run.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/random_problem.hpp"

namespace partita::test {
namespace {

constexpr const char* kConvolution =
    "= Convolution(%0: T[2,16,9,9], %1: T[24,16,3,3]) {strides=[1,1], pads_begin=[1,1], pads_end=[1,1], "
    "dilations=[1,1], data_format=NCX, weights_format=OIX};";
constexpr const char* kTransposed =
    "= ConvTranspose(%0: T[2,9,9,16], %1: T[3,3,24,16]) {strides=[2,2], pads_begin=[1,1], pads_end=[1,1], "
    "dilations=[1,1], data_format=NXC, weights_format=XOI};";
constexpr const char* kGradient =
    "= ConvolutionBackwardData(%0: T[2,9,9,16], %1: T[3,3,24,16]) {strides=[1,1], pads_begin=[1,1], pads_end=[1,1], "
    "dilations=[1,1], data_format=NXC, weights_format=XIO, dst_shape=[2,9,9,24]};";
constexpr const char* kMatmul = "= MatMul(%0: T[3,20,33], %1: T[3,33,40]);";

std::string with_type(std::string text, std::string_view dtype) {
  for (size_t at = text.find("T["); at != std::string::npos; at = text.find("T[", at + 1))
    if (at > 0 && text[at - 1] == ' ') text.replace(at, 1, dtype);
  return text;
}

/// Others multiply integers, too, but whether with all that stands around them depends on the machine.
bool primitives_take_integers() {
  return machine_isa() == Isa::avx512 && onednn::has_isa(dnnl::cpu_isa::avx512_core_vnni);
}

/// Most steps of a product with something behind it: without AVX-512 oneDNN has some that compute what stands behind
/// after all sums, which loops do faster.
size_t most_steps(const char* product, size_t steps) {
  const bool may_leave = product == kMatmul && generates_code() && !onednn::has_isa(dnnl::cpu_isa::avx512_core);
  return may_leave ? 2 : steps;
}

void expect_steps(const std::string& text, size_t least, size_t most) {
  const CompiledGraph g = compiled_graph(text, 2);
  ASSERT_TRUE(g.executable);
  const size_t steps = g.executable->program.steps.size();
  EXPECT_TRUE(steps >= least && steps <= most) << steps << " instead of " << most << ": " << text << "\n" << g.steps();
  EXPECT_EQ(g.difference(g.run()), "") << text << "\n" << g.steps();
}

void expect_one_step(const std::string& text, size_t steps = 1) { expect_steps(text, steps, steps); }

void expect_behind_products(std::initializer_list<const char*> activations, size_t steps) {
  for (const char* product : {kConvolution, kMatmul})
    for (const char* activation : activations)
      expect_steps(with_type(str("%3 ", product, " %4 = ", activation), "f32"), steps, most_steps(product, steps));
}

TEST(post_ops, activations_run_inside_every_product) {
  expect_behind_products(
      {"Abs(%3)", "Clamp(%3) {min=-0.5, max=0.75}", "GELU(%3)", "HardSigmoid(%3) {alpha=0.25, beta=0.5}",
       "HardSwish(%3)", "LeakyReLU(%3) {alpha=0.125}", "ReLU(%3)", "Square(%3)"},
      1);
}

/// Generated code computes them in less time, behind the product; without it they run inside.
TEST(post_ops, exponentials_and_logarithms_are_left_to_loops) {
  const size_t steps = generates_code() ? 2 : 1;
  expect_behind_products({"Elu(%3) {alpha=0.5}", "Exp(%3)", "GELU(%3) {mode=gelu_tanh}", "Mish(%3)", "Sigmoid(%3)",
                          "SoftPlus(%3) {beta=2}", "Tanh(%3)"},
                         steps);
  // Where no primitive multiplies bf16, what converts the result may compute the activation, too.
  const size_t least = onednn::has_isa(dnnl::cpu_isa::avx512_core_bf16) ? steps : 1;
  expect_steps(with_type(str("%3 ", kMatmul, " %4: T[3,20,40] = GELU(%3)"), "bf16"), least, steps);
}

/// What a loop would read is four times as large as what it stores.
TEST(post_ops, exponentials_in_front_of_integers_stay_inside) {
  if (!primitives_take_integers()) GTEST_SKIP() << "which products of integers primitives take depends on the machine";
  expect_one_step(
      "%2: f32 = Dequantize(%0: u8[20,32]) {scales=[0.05], zps=[0], qtype=per_tensor}; "
      "%3: f32 = Dequantize(%1: s8[32,48]) {scales=[0.02], zps=[0], qtype=per_tensor}; %4 = MatMul(%2, %3); "
      "%5 = Sigmoid(%4); %6: u8 = Quantize(%5) {scales=[0.01], zps=[3], qtype=per_tensor}");
}

/// An operand as large as the result that lies in another order than the primitive's result would be copied; generated
/// code reads it where it lies.
TEST(post_ops, large_operands_are_not_copied) {
  const std::string text = with_type(str("%3 ", kConvolution, "%4 = Add(%3, %8: f32[2,24,9,9]); %5 = ReLU(%4)"), "f32");
  expect_one_step(text, generates_code() ? 2 : 1);
}

/// One product of all rows, unless an operand behind repeats otherwise than the rows do and each matrix has enough.
TEST(post_ops, operands_do_not_cut_products_into_some_of_few_rows) {
  const auto expect_behind = [](int64_t rows, const char* operand, size_t least, size_t most) {
    expect_steps(with_type(str("%3 = MatMul(%0: T[6,", rows, ",20], %1: T[20,24]); %4: T[6,", rows,
                               ",24] = Multiply(%3, %5: T", operand, ")"),
                           "f32"),
                 least, most);
  };
  const size_t apart = generates_code() ? 2 : 1;
  expect_behind(4, "[6,1,1]", apart, apart);
  expect_behind(2, "[1,2,1]", apart, apart);
  expect_behind(9, "[6,1,1]", 1, most_steps(kMatmul, 1));
  expect_behind(4, "[1,1,24]", 1, most_steps(kMatmul, 1));
}

/// Windows of one cell over images in row-major order are products where the images lie; what oneDNN would copy them
/// for is a loop behind. Which implementation it has depends on the machine, but nothing is transposed on the way.
TEST(post_ops, row_major_images_are_multiplied_where_they_lie) {
  const CompiledGraph g = compiled_graph(
      "%3 = Convolution(%0: f32[2,16,9,9], %1: f32[24,16,1,1], %2: f32[24]) {strides=[1,1], pads_begin=[0,0], "
      "pads_end=[0,0], dilations=[1,1], data_format=NCX, weights_format=OIX}; %4 = Sigmoid(%3); %5 = Multiply(%3, %4)",
      2);
  ASSERT_TRUE(g.executable);
  const Program& program = g.executable->program;
  EXPECT_LE(program.steps.size(), 2u) << g.steps();
  for (const Step& step : program.steps) {
    const TensorDesc& made = step.problem.out[0];
    EXPECT_TRUE(is_dense(made.dims, made.strides)) << g.steps();
  }
  EXPECT_EQ(g.difference(g.run()), "") << g.steps();
}

/// Those that oneDNN runs as gradients leave what stands behind to a loop; which these are depends on the machine.
TEST(post_ops, transposed_convolutions_that_are_gradients_take_nothing) {
  const std::string depthwise =
      "= ConvTranspose(%0: f32[2,16,9,9], %1: f32[16,1,3,3]) {groups=16, strides=[1,1], pads_begin=[1,1], "
      "pads_end=[1,1], dilations=[1,1], data_format=NCX, weights_format=IOX};";
  expect_one_step(str("%3 ", depthwise, " %4 = ReLU(%3)"), 2);
  expect_one_step(str("%3 ", depthwise, " %4 = Add(%3, %8: f32[2,16,9,9]); %5 = Tanh(%4)"), 2);
  const CompiledGraph g = compiled_graph(with_type(str("%3 ", kTransposed, " %4 = Elu(%3) {alpha=0.5}"), "f32"), 2);
  ASSERT_TRUE(g.executable);
  EXPECT_EQ(g.difference(g.run()), "") << g.steps();
}

/// Gradients of convolutions are transposed convolutions where something stands behind them, and oneDNN has fast code
/// for these; how many steps there are elsewhere depends on the machine.
TEST(post_ops, gradients_of_convolutions_take_what_stands_behind) {
  for (const char* dtype : {"f32", "bf16", "f16"})
    for (const char* behind : {"%4: T[2,9,9,24] = Add(%3, %8: T[2,9,9,24])",
                               "%4: T[2,9,9,24] = Add(%8: T[2,9,9,24], %3); %5 = Multiply(%4, %9: T[1])"}) {
      const CompiledGraph g = compiled_graph(with_type(str("%3 ", kGradient, behind), dtype), 2);
      ASSERT_TRUE(g.executable);
      EXPECT_EQ(g.difference(g.run()), "") << g.steps();
      if (machine_isa() == Isa::avx512 && std::string_view(dtype) == "f32") {
        EXPECT_EQ(g.executable->program.steps.size(), 1u) << g.steps();
      }
    }
}

/// What oneDNN has no post-operation for, and what would be copied.
TEST(post_ops, gradients_of_convolutions_leave_other_things_to_loops) {
  if (!generates_code()) GTEST_SKIP() << "without generated code loops are slow";
  expect_one_step(with_type(str("%3 ", kGradient, "%4 = ReLUBackward(%8: T[2,9,9,24], %3)"), "f32"), 2);
  expect_one_step(
      "%3 = ConvolutionBackwardData(%0: f32[2,16,9,9], %1: f32[16,24,3,3]) {strides=[1,1], pads_begin=[1,1], "
      "pads_end=[1,1], dilations=[1,1], data_format=NCX, weights_format=OIX, dst_shape=[2,24,9,9]}; "
      "%4 = Add(%3, %8: f32[2,24,9,9])",
      2);
}

TEST(post_ops, chains_with_operands_of_every_shape) {
  expect_one_step(
      "%3 = Convolution(%0: f32[2,9,9,16], %1: f32[3,3,16,24]) {strides=[1,1], pads_begin=[1,1], pads_end=[1,1], "
      "dilations=[1,1], data_format=NXC, weights_format=XIO}; %4 = Add(%3, %8: f32[2,9,9,24]); %5 = ReLU(%4); "
      "%6 = Multiply(%5, %9: f32[1,1,1,24]); %7 = Maximum(%6, %10: f32[1])");
  expect_one_step(with_type(str("%3 ", kMatmul,
                                "%4 = Divide(%3, %8: f32[1]); %5 = Add(%4, %9: f32[20,40]); %6 = "
                                "Subtract(%10: f32[3,20,40], %5); %7 = Minimum(%6, %11: f32[40])"),
                            "f32"));
  expect_one_step(
      with_type(str("%3 ", kConvolution, "%4 = Sigmoid(%3); %5 = Multiply(%3, %4); %6 = Add(%5, %5)"), "f32"),
      2);  // a value added to itself is no post-operation
}

TEST(post_ops, batch_norm_behind_a_convolution_needs_one_small_loop) {
  expect_one_step(with_type(str("%3 ", kConvolution,
                                "%4 = BatchNormInference(%3, %5: f32[24], %6: f32[24], %7: f32[24],"
                                " %8: f32[24]) {epsilon=0.001, data_format=NCX}; %9 = ReLU(%4)"),
                            "f32"),
                  2);
}

TEST(post_ops, integers_are_multiplied_as_integers) {
  const char* quantized =
      "%10: f32 = Dequantize(%0: u8[4,20,64]) {scales=[0.02], zps=[7], qtype=per_tensor};"
      "%11: f32 = Dequantize(%1: s8[64,32]) {scales=LIST, zps=ZEROS, qtype=per_channel, axis=1};"
      "%12 = MatMul(%10, %11, %2: f32[32]); %13 = ReLU(%12);"
      "%14: f32 = Dequantize(%3: s8[4,20,32]) {scales=[0.05], zps=[3], qtype=per_tensor};"
      "%15 = Add(%13, %14); %16: u8 = Quantize(%15) {scales=[0.1], zps=[100], qtype=per_tensor}";
  std::string text = quantized, list = "[", zeros = "[";
  for (int i = 0; i < 32; ++i) {
    list += str(i ? "," : "", 0.01 + 0.001 * i);
    zeros += i ? ",0" : "0";
  }
  text.replace(text.find("LIST"), 4, list + "]");
  text.replace(text.find("ZEROS"), 5, zeros + "]");
  const CompiledGraph g = compiled_graph(text, 2);
  EXPECT_EQ(g.difference(g.run()), "") << g.steps();
  if (primitives_take_integers()) {
    EXPECT_EQ(g.executable->program.steps.size(), 1u) << g.steps();
  }
}

TEST(post_ops, quantized_convolutions) {
  for (const char* zero : {"0", "5"}) {
    const CompiledGraph g = compiled_graph(
        str("%10: f32 = Dequantize(%0: u8[2,9,9,16]) {scales=[0.02], zps=[", zero,
            "], qtype=per_tensor};"
            "%11: f32 = Dequantize(%1: s8[3,3,16,24]) {scales=[0.03], zps=[0], qtype=per_tensor};"
            "%12 = Convolution(%10, %11) {strides=[1,1], pads_begin=[1,1], pads_end=[1,1], dilations=[1,1], "
            "data_format=NXC, weights_format=XIO};"
            "%13 = BiasAdd(%12, %2: f32[24]) {data_format=NXC}; %14 = ReLU(%13);"
            "%15: s8 = Quantize(%14) {scales=[0.1], zps=[-3], qtype=per_tensor}"),
        2);
    EXPECT_EQ(g.difference(g.run()), "") << g.steps();
    if (primitives_take_integers()) {
      EXPECT_EQ(g.executable->program.steps.size(), 1u) << g.steps();
    }
  }
}

TEST(post_ops, a_narrow_tensor_with_two_readers_is_still_multiplied_as_it_is) {
  const CompiledGraph g = compiled_graph(
      "%10: f32 = Dequantize(%0: u8[20,32]) {scales=[0.02], zps=[3], qtype=per_tensor};"
      "%11: f32 = Dequantize(%1: s8[32,32]) {scales=[0.03], zps=[0], qtype=per_tensor};"
      "%12 = MatMul(%10, %11); %13 = Tanh(%10); %14 = Multiply(%12, %13)",
      2);
  EXPECT_EQ(g.difference(g.run()), "") << g.steps();
}

/// Legal, but more than s32 sums of integers hold.
TEST(post_ops, zero_points_beyond_the_integers_are_subtracted_in_f32) {
  for (const char* zero : {"256", "2000000000", "-9000000000000000000"}) {
    const CompiledGraph g = compiled_graph(str("%10: f32 = Dequantize(%0: u8[20,320]) {scales=[0.02], zps=[", zero,
                                               "], qtype=per_tensor};"
                                               "%11: f32 = Dequantize(%1: s8[320,32]) {scales=[0.03], zps=[0]};"
                                               "%12 = MatMul(%10, %11)"),
                                           2);
    EXPECT_EQ(g.difference(g.run()), "") << zero << g.steps();
    EXPECT_GT(g.executable->program.steps.size(), 1u) << g.steps();
  }
}

/// A random chain of element-wise operators behind a product.
std::string random_chain(Random& random) {
  const char* products[] = {kConvolution, kTransposed, kGradient, kMatmul};
  const auto which = random.whole(0, 3);
  const char* dtypes[] = {"f32", "bf16", "f16"};
  const std::string dtype = dtypes[random.whole(0, 2)];
  const std::string whole = which == 0   ? "[2,24,9,9]"
                            : which == 1 ? "[2,17,17,24]"
                            : which == 2 ? "[2,9,9,24]"
                                         : "[3,20,40]";
  const std::string channel = which == 0 ? "[1,24,1,1]" : which < 3 ? "[24]" : "[40]";
  std::string text = with_type(str("%3 ", products[which]), dtype);
  const char* unary[] = {"ReLU", "Sigmoid", "Tanh", "Abs", "HardSwish", "GELU", "Square"};
  const char* binary[] = {"Add", "Multiply", "Subtract", "Maximum", "Minimum"};
  int last = 3, operand = 30;
  for (auto n = random.whole(1, 6); n > 0; --n, ++last) {
    const auto kind = random.whole(0, 3);
    if (kind < 2) {
      text += str("%", last + 1, " = ", unary[random.whole(0, 6)], "(%", last, ");");
      continue;
    }
    const std::string other = str("%", operand++, ": ", dtype, kind == 2 ? whole : channel);
    const bool swapped = random.whole(0, 1) == 1;
    text += str("%", last + 1, ": ", dtype, " = ", binary[random.whole(0, 4)], "(", swapped ? other : str("%", last),
                ", ", swapped ? str("%", last) : other, ");");
  }
  return text;
}

/// A random gradient of a convolution, and what changes each element of it.
std::string random_gradient(Random& random) {
  const int64_t groups = random.whole(1, 2), narrow = groups * random.whole(1, 20), wide = groups * random.whole(1, 20),
                kernel = random.pick<int64_t>({1, 2, 3}), stride = random.whole(1, 2), rows = random.whole(3, 9),
                cells = (rows - 1) * stride + kernel;
  const bool last = random.coin(), spatial_first = random.coin();
  const std::string dtype = random.coin() ? "f32" : "bf16";
  const auto image = [&](int64_t channels, int64_t size) {
    return last ? str(dtype, "[2,", size, ",", size, ",", channels, "]")
                : str(dtype, "[2,", channels, ",", size, ",", size, "]");
  };
  const std::string weights = spatial_first ? str("[", kernel, ",", kernel, ",", wide / groups, ",", narrow, "]")
                                            : str("[", narrow, ",", wide / groups, ",", kernel, ",", kernel, "]");
  const std::string made = image(wide, cells), operand = random.coin() ? made : dtype + "[1]";
  const std::string changed = str(random.coin() ? "Add" : "Multiply", "(%3, %8: ", operand, ")");
  const std::string last_op = random.coin() ? "Abs(%4)" : "Add(%4, %9: " + made + ")";
  return str("%3 = ConvolutionBackwardData(%0: ", image(narrow, rows), ", %1: ", dtype, weights, ") {groups=", groups,
             ", strides=[", stride, ",", stride,
             "], pads_begin=[0,0], pads_end=[0,0], dilations=[1,1], data_format=", last ? "NXC" : "NCX",
             ", weights_format=", spatial_first ? "XIO" : "OIX", ", dst_shape=", made.substr(made.find('[')),
             "}; %4 = ", changed, "; %5 = ", last_op);
}

void expect_what_the_references_compute(uint64_t seeds, std::string (*random_text)(Random&)) {
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    Random random(seed);
    const std::string text = random_text(random);
    SCOPED_TRACE(str("seed ", seed, ": ", text));
    const CompiledGraph g = compiled_graph(text, static_cast<int>(random.whole(1, 3)), seed);
    ASSERT_TRUE(g.executable);
    ASSERT_EQ(g.difference(g.run()), "") << g.steps();
  }
}

TEST(post_ops, random_chains_are_what_the_references_compute) { expect_what_the_references_compute(80, random_chain); }

TEST(post_ops, random_gradients_are_what_the_references_compute) {
  expect_what_the_references_compute(60, random_gradient);
}

}  // namespace
}  // namespace partita::test
