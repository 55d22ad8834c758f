// SPDX-License-Identifier: Apache-2.0
// Which poolings change places with convolutions, and that results stay the same.
#include "passes/commute.hpp"

#include <gtest/gtest.h>

#include <map>

#include "src/base/dtype.hpp"
#include "src/base/text.hpp"
#include "src/harness/compare.hpp"
#include "src/harness/reference_run.hpp"
#include "tests/support/compiled_run.hpp"
#include "tests/support/graph_text.hpp"
#include "tests/support/random.hpp"

namespace partita::test {
namespace {

#define POOL_OF(divisor) "kernel=[2,2], strides=[2,2], pads_begin=[0,0], pads_end=[0,0], data_format=NCX, " divisor
#define POOL POOL_OF("exclude_pad=true")
#define CONV_BODY \
  "strides=[1,1], pads_begin=[0,0], pads_end=[0,0], dilations=[1,1], data_format=NCX, weights_format=OIX"
#define CONV " {" CONV_BODY "}"
#define DATA " {" CONV_BODY ", dst_shape=[2,4,6,8]}"
#define WEIGHTS " {" CONV_BODY ", weights_shape=[4,4,1,1]}"
#define SPREAD_BY(pool) "AvgPoolBackward(%0: f32[2,4,3,4]) {" pool ", src_shape=[2,4,6,8]}; "
#define SPREAD "%1: f32[2,4,6,8] = " SPREAD_BY(POOL)
#define DATA_GRADIENT "%3: f32[2,4,6,8] = ConvolutionBackwardData(%1, %2: f32[4,4,1,1])" DATA "; "
#define WEIGHTS_GRADIENT "%5: f32[4,4,1,1] = ConvolutionBackwardWeights(%4: f32[2,4,6,8], %1)" WEIGHTS "; "
#define PRODUCT "%2: f32[2,4,6,8] = Convolution(%0: f32[2,4,6,8], %1: f32[4,4,1,1])" CONV "; "

Subgraph subgraph_of(std::string_view text, const std::vector<uint64_t>& kept = {}) {
  const Partition partition = one_partition(final_graph_of(text), kept);
  auto specialized = specialize(partition, ports_of(partition).given());
  EXPECT_TRUE(specialized.ok()) << specialized.status().text();
  return specialized.ok() ? std::move(specialized->graph) : Subgraph();
}

std::string ops_text(const Subgraph& graph) {
  std::vector<std::string> ops;
  for (const SubOp& op : graph.ops) ops.push_back(op.text.empty() ? str(name_of(op.kind), " ", op.id) : op.text);
  return join(ops, ", ");
}

/// The operators behind the pass, and those before it.
struct Both {
  std::string commuted, plain;
};
Both both(std::string_view text, const std::vector<uint64_t>& kept = {}) {
  Subgraph graph = subgraph_of(text, kept);
  const std::string plain = ops_text(graph);
  commute_pools(graph);
  return {ops_text(graph), plain};
}

/// What the text's graph becomes; fails the test where results are not those of the references.
std::string commuted(std::string_view text) {
  const CompiledGraph compiled = compiled_graph(text, 1);
  EXPECT_NE(compiled.executable, nullptr) << text;
  if (!compiled.executable) return {};
  EXPECT_EQ(compiled.difference(compiled.run()), "") << text << "\n" << compiled.steps();
  return both(text).commuted;
}

void expect_unchanged(std::string_view text, const std::vector<uint64_t>& kept = {}) {
  const Both ops = both(text, kept);
  EXPECT_EQ(ops.commuted, ops.plain) << text;
}

TEST(commute, gradients_of_a_transition_are_computed_on_windows) {
  EXPECT_EQ(commuted(SPREAD DATA_GRADIENT),
            "ConvolutionBackwardData 2 (on windows of AvgPoolBackward 1), AvgPoolBackward 1 (behind "
            "ConvolutionBackwardData 2)");
  EXPECT_EQ(commuted(SPREAD WEIGHTS_GRADIENT),
            "AvgPool (of the source of ConvolutionBackwardWeights 2), ConvolutionBackwardWeights 2 (on windows of "
            "AvgPoolBackward 1)");
  EXPECT_EQ(commuted(SPREAD DATA_GRADIENT WEIGHTS_GRADIENT "%6: f32[4] = BiasAddBackward(%1) {data_format=NCX}"),
            "ConvolutionBackwardData 2 (on windows of AvgPoolBackward 1), AvgPoolBackward 1 (behind "
            "ConvolutionBackwardData 2), AvgPool (of "
            "the source of ConvolutionBackwardWeights 3), ConvolutionBackwardWeights 3 (on windows of AvgPoolBackward "
            "1), BiasAddBackward 4 (on windows of AvgPoolBackward 1)");
}

TEST(commute, a_gradient_that_others_read_is_made_beside) {
  const std::string behind =
      "AvgPoolBackward 1, ConvolutionBackwardData 2 (on windows of AvgPoolBackward 1), AvgPoolBackward 1 (behind "
      "ConvolutionBackwardData 2)";
  EXPECT_EQ(commuted(SPREAD DATA_GRADIENT "%8: f32[2,4,6,8] = Abs(%1)"), behind + ", Abs 3");
  EXPECT_EQ(both(SPREAD DATA_GRADIENT, {1}).commuted, behind);
  // A 3x3 convolution beside the 1x1 one.
  EXPECT_EQ(
      commuted(SPREAD DATA_GRADIENT "%7: f32[2,4,8,10] = ConvolutionBackwardData(%1, %6: f32[4,4,3,3]) {" CONV_BODY
                                    ", dst_shape=[2,4,8,10]}"),
      behind + ", ConvolutionBackwardData 3");
}

TEST(commute, adaptive_windows_of_any_size) {
  EXPECT_EQ(commuted("%1: f32[2,4,7,5] = AdaptiveAvgPoolBackward(%0: f32[2,4,3,2]) {data_format=NCX, spatial_axes=2, "
                     "src_shape=[2,4,7,5]}; %3: f32[2,4,7,5] = ConvolutionBackwardData(%1, %2: f32[4,4,1,1]) "
                     "{" CONV_BODY ", dst_shape=[2,4,7,5]}; %5: f32[4,4,1,1] = ConvolutionBackwardWeights("
                     "%4: f32[2,4,7,5], %1)" WEIGHTS "; %6: f32[1,4,1,1] = ReduceSum(%1) "
                     "{axes=[0,2,3], keep_dims=true}"),
            "ConvolutionBackwardData 2 (on windows of AdaptiveAvgPoolBackward 1), AdaptiveAvgPoolBackward 1 (behind "
            "ConvolutionBackwardData 2), "
            "AdaptiveAvgPool (of the source of ConvolutionBackwardWeights 3), ConvolutionBackwardWeights 3 (on windows "
            "of AdaptiveAvgPoolBackward 1), "
            "ReduceSum 4 (on windows of AdaptiveAvgPoolBackward 1)");
}

TEST(commute, sums_of_shares_that_are_not_all_of_the_gradient_stay) {
  const auto sum_behind = [](const char* pool) {
    return both(str("%1: f32[2,4,6,8] = AvgPoolBackward(%0: f32[2,4,3,4]) {", pool,
                    ", src_shape=[2,4,6,8]}; %6: f32[4] = BiasAddBackward(%1) {data_format=NCX}"))
        .commuted;
  };
  const std::string stays = "AvgPoolBackward 1, BiasAddBackward 2",
                    moves = "BiasAddBackward 2 (on windows of AvgPoolBackward 1)";
  EXPECT_EQ(sum_behind(POOL), moves);
  EXPECT_EQ(sum_behind(POOL_OF("exclude_pad=true, divisor_override=4")), moves);
  EXPECT_EQ(sum_behind(POOL_OF("exclude_pad=true, divisor_override=3")), stays);
  const std::string padded = "kernel=[3,3], strides=[2,2], pads_begin=[1,1], pads_end=[0,0], data_format=NCX, ";
  EXPECT_EQ(sum_behind((padded + "exclude_pad=true").c_str()), moves);
  EXPECT_EQ(sum_behind((padded + "exclude_pad=false").c_str()), stays);
  // A sum over rows alone.
  expect_unchanged(SPREAD "%6: f32[2,4,8] = ReduceSum(%1) {axes=[2]}");
}

TEST(commute, what_is_no_smaller_on_windows_stays) {
  // As many windows as cells; many more channels behind the convolution than before it.
  expect_unchanged(
      "%1: f32[2,4,6,8] = AvgPoolBackward(%0: f32[2,4,6,8]) {kernel=[3,3], strides=[1,1], pads_begin=[1,1], "
      "pads_end=[1,1], data_format=NCX, exclude_pad=true, src_shape=[2,4,6,8]}; " DATA_GRADIENT);
  expect_unchanged(SPREAD "%3: f32[2,20,6,8] = ConvolutionBackwardData(%1, %2: f32[4,20,1,1]) {" CONV_BODY
                          ", dst_shape=[2,20,6,8]}");
}

TEST(commute, convolutions_that_mix_cells_stay) {
  expect_unchanged(SPREAD "%3: f32[2,4,8,10] = ConvolutionBackwardData(%1, %2: f32[4,4,3,3]) {" CONV_BODY
                          ", dst_shape=[2,4,8,10]}");
  expect_unchanged(SPREAD
                   "%3: f32[2,4,11,15] = ConvolutionBackwardData(%1, %2: f32[4,4,1,1]) {strides=[2,2], "
                   "pads_begin=[0,0], pads_end=[0,0], dilations=[1,1], data_format=NCX, weights_format=OIX, "
                   "dst_shape=[2,4,11,15]}");
  expect_unchanged(SPREAD
                   "%3: f32[2,4,4,8] = ConvolutionBackwardData(%1, %2: f32[4,4,1,1]) {strides=[1,1], "
                   "pads_begin=[1,0], pads_end=[1,0], dilations=[1,1], data_format=NCX, weights_format=OIX, "
                   "dst_shape=[2,4,4,8]}");
}

TEST(commute, other_channels_stay) {
  // Channels of the pooling are a spatial axis of the convolution.
  expect_unchanged(SPREAD
                   "%3: f32[2,4,6,8] = ConvolutionBackwardData(%1, %2: f32[8,8,1,1]) {strides=[1,1], pads_begin=[0,0], "
                   "pads_end=[0,0], dilations=[1,1], data_format=NXC, weights_format=OIX, dst_shape=[2,4,6,8]}");
}

TEST(commute, what_stands_between_keeps_both_in_place) {
  expect_unchanged(SPREAD
                   "%7: f32[2,4,6,8] = ReLUBackward(%1, %8: f32[2,4,6,8]); "
                   "%3: f32[2,4,6,8] = ConvolutionBackwardData(%7, %2: f32[4,4,1,1])" DATA);
  expect_unchanged(PRODUCT "%3: f32[2,4,6,8] = ReLU(%2); %4: f32[2,4,3,4] = AvgPool(%3) {" POOL "}");
}

TEST(commute, a_product_is_computed_behind_the_average) {
  EXPECT_EQ(commuted(PRODUCT "%3: f32[2,4,3,4] = AvgPool(%2) {" POOL "}; %4: f32[2,4,3,4] = ReLU(%3)"),
            "AvgPool 2 (before Convolution 1), Convolution 1 (on windows of AvgPool 2), ReLU 3");
  EXPECT_EQ(commuted("%3: f32[2,4,6,8] = Convolution(%0: f32[2,4,6,8], %1: f32[4,4,1,1], %2: f32[4])" CONV
                     "; %4: f32[2,4,1,3] = AdaptiveAvgPool(%3) {data_format=NCX, sizes=[1,3]}"),
            "AdaptiveAvgPool 2 (before Convolution 1), Convolution 1 (on windows of AdaptiveAvgPool 2)");
}

TEST(commute, products_that_are_needed_themselves_stay) {
  const char* pooled = PRODUCT "%3: f32[2,4,3,4] = AvgPool(%2) {" POOL "}";
  expect_unchanged(pooled, {2});
  expect_unchanged(str(pooled, "; %4: f32[2,4,6,8] = Abs(%2)"));
}

TEST(commute, a_bias_that_padding_dilutes_stays) {
  const auto pooled = [](const char* pads) {
    return str("%3: f32[2,4,6,8] = Convolution(%0: f32[2,4,6,8], %1: f32[4,4,1,1], %2: f32[4])" CONV
               "; %4: f32[2,4,3,4] = AvgPool(%3) {kernel=[3,3], strides=[2,2], pads_begin=[1,1], pads_end=[0,0], "
               "data_format=NCX, ",
               pads, "}");
  };
  EXPECT_EQ(commuted(pooled("exclude_pad=true")),
            "AvgPool 2 (before Convolution 1), Convolution 1 (on windows of AvgPool 2)");
  expect_unchanged(pooled("exclude_pad=false"));
}

TEST(commute, products_of_integers_and_of_bf16_keep_their_source) {
  expect_unchanged("%0: f32[2,4,6,8] = Dequantize(%9: u8[2,4,6,8]) {scales=[0.1], zps=[0]}; " PRODUCT
                   "%3: f32[2,4,3,4] = AvgPool(%2) {" POOL "}");
  expect_unchanged("%2: bf16[2,4,6,8] = Convolution(%0: bf16[2,4,6,8], %1: bf16[4,4,1,1])" CONV
                   "; %3: bf16[2,4,3,4] = AvgPool(%2) {" POOL "}");
}

TEST(commute, inner_tensors_are_f32_where_16_bits_might_lose_something) {
  const auto inner_type = [](const char* pool, const std::string& type = "bf16") {
    Subgraph graph = subgraph_of(str("%1: ", type, "[2,4,6,8] = AvgPoolBackward(%0: ", type, "[2,4,3,4]) {", pool,
                                     ", src_shape=[2,4,6,8]}; %3: ", type,
                                     "[2,4,6,8] = ConvolutionBackwardData(%1, %2: ", type, "[4,4,1,1])" DATA));
    commute_pools(graph);
    EXPECT_EQ(graph.ops.size(), 2U);
    return graph.values[static_cast<size_t>(graph.ops[1].in[0])].desc.dtype;
  };
  EXPECT_EQ(inner_type(POOL), Dtype::bf16);
  EXPECT_EQ(inner_type(POOL, "f16"), Dtype::f32);  // might overflow before the division
  EXPECT_EQ(inner_type(POOL_OF("exclude_pad=true, divisor_override=-8")), Dtype::bf16);
  EXPECT_EQ(inner_type(POOL_OF("exclude_pad=true, divisor_override=3")), Dtype::f32);
  // Windows that overlap: a cell is a sum of shares.
  EXPECT_EQ(inner_type("kernel=[4,4], strides=[2,2], pads_begin=[1,1], pads_end=[1,1], data_format=NCX, "
                       "exclude_pad=false"),
            Dtype::f32);
}

TEST(commute, sources_are_pooled_to_f32) {
  Subgraph graph = subgraph_of(
      "%1: bf16[2,4,6,8] = AvgPoolBackward(%0: bf16[2,4,3,4]) {" POOL
      ", src_shape=[2,4,6,8]}; %5: bf16[4,4,1,1] = ConvolutionBackwardWeights(%4: bf16[2,4,6,8], %1)" WEIGHTS);
  commute_pools(graph);
  ASSERT_EQ(graph.ops.size(), 2U);
  EXPECT_EQ(graph.values[static_cast<size_t>(graph.ops[0].out[0])].desc.dtype, Dtype::f32);
}

/// Large gradients of f16 whose shares are small enough: nothing overflows on the way.
TEST(commute, large_gradients_of_f16_stay_finite) {
  const CompiledGraph compiled =
      compiled_graph("%1: f16[2,4,6,8] = AvgPoolBackward(%0: f16[2,4,3,4]) {" POOL
                     ", src_shape=[2,4,6,8]}; %3: f16[2,4,6,8] = ConvolutionBackwardData(%1, %2: f16[4,4,1,1])" DATA,
                     1);
  ASSERT_NE(compiled.executable, nullptr);
  for (const auto& [id, value] : {std::pair<uint64_t, double>{0, 24000}, {2, 1}}) {
    const Storage& input = compiled.inputs.at(id);
    for (int64_t i = 0; i < input.desc.elements(); ++i) store_from_double(input.data.get(), Dtype::f16, i, value);
  }
  const Tensors results = compiled.run();
  const Storage& diff_src = results.at(3);
  for (int64_t i = 0; i < diff_src.desc.elements(); ++i)
    ASSERT_EQ(load_as_double(diff_src.data.get(), Dtype::f16, i), 24000) << i;
}

/// Sum of the squares of what `got` is off, over all tensors by their ids. Tensors are dense.
void add_errors(const Tensors& got, const Tensors& exact, std::map<uint64_t, double>& sums) {
  for (const auto& [id, storage] : exact)
    for (int64_t i = 0; i < storage.desc.elements(); ++i) {
      const Storage& mine = got.at(id);
      const double off = load_as_double(mine.data.get(), mine.desc.dtype, i) -
                         load_as_double(storage.data.get(), storage.desc.dtype, i);
      sums[id] += off * off;
    }
}

TEST(commute, results_of_16_bits_are_no_less_accurate) {
  const std::string overlapping =
      "kernel=[3,3], strides=[2,2], pads_begin=[1,1], pads_end=[0,0], data_format=NCX, exclude_pad=true";
  const auto text_of = [](const std::string& t, const std::string& pool) {
    return str("%1: ", t, "[2,4,6,8] = AvgPoolBackward(%0: ", t, "[2,4,3,4]) {", pool,
               ", src_shape=[2,4,6,8]}; %3: ", t, "[2,4,6,8] = ConvolutionBackwardData(%1, %2: ", t,
               "[4,4,1,1])" DATA "; %5: ", t, "[4,4,1,1] = ConvolutionBackwardWeights(%4: ", t,
               "[2,4,6,8], %1)" WEIGHTS "; %6: ", t, "[4] = BiasAddBackward(%1) {data_format=NCX}");
  };
  for (const std::string type : {"bf16", "f16"})
    for (const std::string& pool : {std::string(POOL), overlapping}) {
      std::map<uint64_t, double> commuted, in_order;
      for (uint64_t seed = 1; seed <= 20; ++seed) {
        CompiledGraph narrow = compiled_graph(text_of(type, pool), 1, seed),
                      exact = compiled_graph(text_of("f32", pool), 1, seed);
        ASSERT_NE(narrow.executable, nullptr);
        for (auto* side : {&narrow.ports, &exact.ports})
          for (logical_tensor& t : side->outputs) t = logical_tensor(t.id, t.dtype, t.dims);
        for (auto& [id, storage] : exact.inputs)
          for (int64_t i = 0; i < storage.desc.elements(); ++i) {
            const Storage& from = narrow.inputs.at(id);
            store_from_double(storage.data.get(), Dtype::f32, i, load_as_double(from.data.get(), from.desc.dtype, i));
          }
        const auto truth = run_reference(exact.partition, exact.ports.given(), exact.inputs);
        const auto plain = run_reference(narrow.partition, narrow.ports.given(), narrow.inputs);
        const auto compiled = compile_uncached(narrow.partition, narrow.ports.given(), {.threads = 1});
        ASSERT_TRUE(truth.ok() && plain.ok() && compiled.ok());
        narrow.executable = compiled->executable;
        add_errors(narrow.run(), *truth, commuted);
        add_errors(*plain, *truth, in_order);
      }
      for (const auto& [id, error] : commuted)
        EXPECT_LE(error, in_order[id] * 1.1) << type << ", " << pool << ", " << id;
    }
}

/// A transition with random geometry, types and readers of the pooling's gradient.
struct Transition {
  std::string text;
  std::vector<uint64_t> kept;
};

std::vector<int64_t> tensor_dims(int64_t channels, const std::vector<int64_t>& spatial, bool last) {
  std::vector<int64_t> dims = spatial;
  dims.insert(last ? dims.end() : dims.begin(), channels);
  dims.insert(dims.begin(), 2);
  return dims;
}

struct Axes {
  std::vector<int64_t> cells, windows, kernel, strides, begin, end;
  bool ceil = false;
};

Axes random_axes(Random& random) {
  Axes a;
  a.ceil = random.coin();
  for (int64_t i = random.whole(1, 3); i > 0; --i) {
    const int64_t kernel = random.whole(1, 3), stride = random.whole(2, 3);
    const int64_t begin = random.whole(0, kernel - 1), end = random.whole(0, kernel - 1);
    const int64_t cells = random.whole(kernel, 9), room = cells + begin + end - kernel;
    a.cells.push_back(cells);
    a.windows.push_back((a.ceil ? (room + stride - 1) / stride : room / stride) + 1);
    a.kernel.push_back(kernel);
    a.strides.push_back(stride);
    a.begin.push_back(begin);
    a.end.push_back(end);
  }
  return a;
}

std::string divisor_of(Random& random) {
  switch (random.whole(0, 3)) {
    case 0: return "exclude_pad=true";
    case 1: return "exclude_pad=false";
    case 2: return "exclude_pad=false, exclude_overhang=true";
    default: return str("exclude_pad=true, divisor_override=", random.pick<int64_t>({-3, 2, 5}));
  }
}

Transition random_transition(Random& random) {
  const Axes a = random_axes(random);
  const bool last = random.coin(), filters_first = random.coin();
  const int64_t groups = random.pick<int64_t>({1, 1, 2}), src = random.pick<int64_t>({2, 4, 6}),
                dst = random.pick<int64_t>({4, 8});
  const char* type = random.pick({"f32", "f32", "bf16", "f16"});
  const std::string format = last ? "NXC" : "NCX";
  const auto tensor = [&](const std::vector<int64_t>& dims) { return str(type, list_of(dims)); };
  const auto wide = tensor_dims(dst, a.cells, last), small = tensor_dims(dst, a.windows, last),
             large_src = tensor_dims(src, a.cells, last);
  std::vector<int64_t> filters(a.cells.size(), 1);
  filters.insert(filters_first ? filters.begin() : filters.end(), {src / groups, dst});
  if (filters_first) std::swap(filters[0], filters[1]);
  const std::vector<int64_t> ones(a.cells.size(), 1), zeros(a.cells.size(), 0);
  const std::string pool =
      str("kernel=", list_of(a.kernel), ", strides=", list_of(a.strides), ", pads_begin=", list_of(a.begin),
          ", pads_end=", list_of(a.end), ", data_format=", format, ", rounding_type=", a.ceil ? "ceil" : "floor", ", ",
          divisor_of(random));
  const std::string conv = str("strides=", list_of(ones), ", dilations=", list_of(ones),
                               ", pads_begin=", list_of(zeros), ", pads_end=", list_of(zeros), ", groups=", groups,
                               ", data_format=", format, ", weights_format=", filters_first ? "OIX" : "XIO");
  Transition t;
  if (random.whole(0, 3) == 0) {
    const bool bias = random.coin();
    t.text = str("%2: ", tensor(wide), " = Convolution(%0: ", tensor(large_src), ", %1: ", tensor(filters),
                 bias ? str(", %9: ", tensor({dst})) : "", ") {", conv, "}; %3: ", tensor(small), " = AvgPool(%2) {",
                 pool, "}; %4: ", tensor(small), " = ReLU(%3)");
    return t;
  }
  t.text = str("%1: ", tensor(wide), " = AvgPoolBackward(%0: ", tensor(small), ") {", pool,
               ", src_shape=", list_of(wide), "}; ");
  const int64_t readers = random.whole(1, 7);
  if (readers & 1)
    t.text += str("%3: ", tensor(large_src), " = ConvolutionBackwardData(%1, %2: ", tensor(filters), ") {", conv,
                  ", dst_shape=", list_of(large_src), "}; %4: ", tensor(large_src),
                  " = ReLUBackward(%5: ", tensor(large_src), ", %3); ");
  if (readers & 2)
    t.text += str("%7: ", tensor(filters), " = ConvolutionBackwardWeights(%6: ", tensor(large_src), ", %1) {", conv,
                  ", weights_shape=", list_of(filters), "}; ");
  if (readers & 4) t.text += str("%8: ", tensor({dst}), " = BiasAddBackward(%1) {data_format=", format, "}; ");
  if (random.whole(0, 3) == 0) t.text += str("%10: ", tensor(wide), " = Abs(%1); ");
  return t;
}

TEST(commute, random_transitions_agree_with_the_references) {
  constexpr uint64_t kSeeds = 150;
  size_t changed = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Random random(seed);
    const Transition t = random_transition(random);
    SCOPED_TRACE(str("seed ", seed, ": ", t.text));
    const Both ops = both(t.text);
    changed += ops.commuted != ops.plain;
    const CompiledGraph compiled = compiled_graph(t.text, 1, seed);
    ASSERT_NE(compiled.executable, nullptr);
    EXPECT_EQ(compiled.difference(compiled.run(2)), "") << compiled.steps();
    if (HasFailure()) return;
  }
  EXPECT_GT(changed, kSeeds / 3);
}

}  // namespace
}  // namespace partita::test
