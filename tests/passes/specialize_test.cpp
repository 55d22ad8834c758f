// SPDX-License-Identifier: Apache-2.0
// specialize: what it refuses, what it waits for, and how tensors lie afterwards.
#include "passes/specialize.hpp"

#include <gtest/gtest.h>

#include <map>

#include "src/base/text.hpp"
#include "tests/support/graph_text.hpp"
#include "tests/support/programs.hpp"

namespace partita::test {
namespace {

Partition relu() { return one_partition(final_graph_of("%1 = ReLU(%0: f32[4])")); }

std::string refusal(const Partition& p, const std::vector<logical_tensor>& in, const std::vector<logical_tensor>& out) {
  const auto made = specialize(p, {in, out, {}});
  return made.ok() ? "accepted" : made.status().text();
}

const logical_tensor kIn(0, Dtype::f32, Dims{4}), kOut(1, Dtype::f32, Layout::any);

logical_tensor with_layout(logical_tensor t, Layout layout) {
  t.layout = layout;
  t.layout_id = 5;
  return t;
}

TEST(specialize, refuses_tensors_that_do_not_fit_their_ports) {
  const Partition p = relu();
  EXPECT_EQ(refusal(p, {kIn}, {kOut}), "accepted");
  EXPECT_EQ(refusal(p, {}, {kOut}), "no tensor is given for input port 0 (f32[4])");
  EXPECT_EQ(refusal(p, {kIn}, {}), "no tensor is given for output port 1 (f32[?])");
  EXPECT_EQ(refusal(p, {logical_tensor(0, Dtype::undef, Dims{4})}, {kOut}),
            "input tensor 0 (undef[4]): the data type must be set");
  EXPECT_EQ(refusal(p, {logical_tensor(0, Dtype::f16, Dims{4})}, {kOut}),
            "input tensor 0 (f16[4]): the partition's port has type f32");
  EXPECT_EQ(refusal(p, {with_layout(kIn, Layout::undef)}, {kOut}),
            "input tensor 0 (f32[4]): the layout must be strided or any");
  EXPECT_EQ(refusal(p, {with_layout(kIn, Layout::opaque)}, {kOut}),
            "input tensor 0 (f32[4]): layout id 5 was not made by Partita");
  EXPECT_EQ(refusal(p, {logical_tensor(0, Dtype::f32, Dims{kUnknownDim})}, {kOut}),
            "input tensor 0 (f32[?]): every dim of an input must be known");
  EXPECT_EQ(refusal(p, {logical_tensor(0, Dtype::f32, Layout::any)}, {kOut}).substr(0, 14), "input tensor 0");
  EXPECT_EQ(
      refusal(p, {logical_tensor(0, Dtype::f32, Dims{-4}, Layout::any)}, {kOut}),
      "input tensor 0 (f32[-4]): a dim or stride is negative, or the tensor is larger than what can be addressed");
  EXPECT_EQ(
      refusal(p, {logical_tensor(0, Dtype::f32, Dims{int64_t{1} << 40, int64_t{1} << 40}, Layout::any)}, {kOut}),
      "input tensor 0 (f32[1099511627776,1099511627776]): a dim or stride is negative, or the tensor is larger than "
      "what can be addressed");
  EXPECT_EQ(refusal(p, {logical_tensor(0, Dtype::f32, Dims{4}, Dims{-1})}, {kOut}),
            "input tensor 0 (f32[4]): a dim or stride is negative, or the tensor is larger than what can be addressed "
            "(strides -1)");
}

TEST(specialize, refuses_strides_that_reach_further_than_can_be_addressed) {
  const Partition p = one_partition(final_graph_of("%1 = ReLU(%0: f32[4,2])"));
  const int64_t far = int64_t{1} << 46;
  const auto with_strides = [](uint64_t id, const Dims& strides) {
    return logical_tensor(id, Dtype::f32, Dims{4, 2}, strides);
  };
  const logical_tensor any(1, Dtype::f32, Layout::any);
  EXPECT_EQ(refusal(p, {with_strides(0, {2, far})}, {any}), "accepted");
  EXPECT_NE(refusal(p, {with_strides(0, {far, 1})}, {any}).find("can be addressed"), std::string::npos);
  EXPECT_NE(refusal(p, {with_strides(0, {int64_t{1} << 62, 1})}, {any}).find("can be addressed"), std::string::npos);
  EXPECT_NE(refusal(p, {with_strides(0, {2, 1})}, {with_strides(1, {far, 1})}).find("output tensor 1"),
            std::string::npos);
}

TEST(specialize, refuses_outputs_whose_elements_overwrite_each_other) {
  const Partition p = one_partition(final_graph_of("%1 = ReLU(%0: f32[2,3])"));
  const logical_tensor in(0, Dtype::f32, Dims{2, 3});
  const auto out = [](const Dims& dims, const Dims& strides) { return logical_tensor(1, Dtype::f32, dims, strides); };
  EXPECT_EQ(refusal(p, {in}, {out({2, 3}, {0, 1})}),
            "output tensor 1 (f32[2,3]): strides [0,1] put elements [1,0] and [0,0] in one place, along axis 0; only "
            "inputs may repeat elements");
  EXPECT_EQ(
      refusal(p, {in}, {out({2, 3}, {2, 1})}),
      "output tensor 1 (f32[2,3]): strides [2,1] put elements [1,0] and [0,2] in one place, along axes 0, 1; only "
      "inputs may repeat elements");
  EXPECT_NE(refusal(p, {in}, {out({kUnknownDim, kUnknownDim}, {2, 1})}).find("along axes 0, 1"), std::string::npos)
      << "dims that are inferred";
  EXPECT_EQ(refusal(p, {in}, {out({2, 3}, {4, 1})}), "accepted");
  EXPECT_EQ(refusal(p, {logical_tensor(0, Dtype::f32, Dims{2, 3}, Dims{0, 1})}, {out({2, 3}, {3, 1})}), "accepted")
      << "inputs may repeat elements";
}

TEST(specialize, refuses_host_scalars_with_axes) {
  logical_tensor in = kIn;
  in.property = Property::host_scalar;
  EXPECT_EQ(refusal(relu(), {in}, {kOut}), "input tensor 0 (f32[4]): a host scalar must have rank 0, found f32[4]");
}

TEST(specialize, refuses_outputs_of_another_shape) {
  const std::string text = refusal(relu(), {kIn}, {logical_tensor(1, Dtype::f32, Dims{5})});
  EXPECT_EQ(text, "op 1 (ReLU): `dst` is f32[5], the operator makes [4]");
}

TEST(specialize, refuses_inner_tensors_that_are_too_large) {
  const Partition p = one_partition(final_graph_of("%2 = Add(%0: f32[4,1], %1: f32[4]); %3 = ReLU(%2)"));
  const int64_t big = int64_t{1} << 40;
  const std::vector<logical_tensor> in = {logical_tensor(0, Dtype::f32, Dims{big, 1}),
                                          logical_tensor(1, Dtype::f32, Dims{big})};
  EXPECT_NE(refusal(p, in, {logical_tensor(3, Dtype::f32, Layout::any)}).find("larger than what can be addressed"),
            std::string::npos);
}

TEST(specialize, keeps_strides_of_ports_and_makes_inner_tensors_dense) {
  const Partition p = one_partition(final_graph_of("%1 = Abs(%0: f32[2,3]); %2 = ReLU(%1)"));
  const std::vector<logical_tensor> in = {logical_tensor(0, Dtype::f32, Dims{2, 3}, Dims{1, 2})};
  const auto made = specialize(p, {in, std::vector{logical_tensor(2, Dtype::f32, Dims{2, 3}, Dims{1, 7})}, {}});
  ASSERT_TRUE(made.ok()) << made.status().text();
  const Subgraph& g = made->graph;
  ASSERT_EQ(g.values.size(), 3u);
  for (const SubValue& v : g.values)
    EXPECT_EQ(v.desc.strides, v.desc.id == 0   ? Dims({1, 2})
                              : v.desc.id == 2 ? Dims({1, 7})
                                               : Dims({3, 1}))
        << v.desc.id;
}

TEST(specialize, gives_outputs_with_an_open_layout_dense_strides) {
  const auto made = specialize(one_partition(final_graph_of("%1 = Abs(%0: f32[2,3])")),
                               {std::vector{logical_tensor(0, Dtype::f32, Dims{2, 3})}, std::vector{kOut}, {}});
  ASSERT_TRUE(made.ok()) << made.status().text();
  const logical_tensor& out = made->graph.values[static_cast<size_t>(made->graph.outputs[0])].desc;
  EXPECT_EQ(out.layout, Layout::strided);
  EXPECT_EQ(out.strides, Dims({3, 1}));
}

constexpr std::string_view kConvolution =
    "Convolution(%0: f32[2,3,6,6], %1: f32[4,3,3,3]) {strides=[1,1], pads_begin=[1,1], pads_end=[1,1], "
    "dilations=[1,1], data_format=NCX, weights_format=OIX}";
const Dims kChannelsLast = {144, 1, 24, 4}, kRowMajor = {144, 36, 6, 1};

/// Strides by tensor id, for what is left open.
std::map<uint64_t, Dims> chosen_strides(const std::string& text) {
  const Partition p = one_partition(final_graph_of(text));
  const auto made = specialize(p, ports_of(p).given());
  EXPECT_TRUE(made.ok()) << made.status().text();
  std::map<uint64_t, Dims> strides;
  if (made.ok())
    for (const SubValue& v : made->graph.values) strides[v.desc.id] = v.desc.strides;
  return strides;
}

TEST(specialize, lays_results_of_convolutions_channels_last_and_what_follows_alike) {
  const auto strides = chosen_strides(
      "%2 = " + std::string(kConvolution) +
      "; %3 = ReLU(%2); %4: f32 = MaxPool(%3) {strides=[1,1], kernel=[3,3], pads_begin=[1,1], pads_end=[1,1], "
      "data_format=NCX}; %6 = Add(%5: f32[2,4,6,6], %4); %7 = Add(%6, %8: f32[1,4,1,1])");
  for (uint64_t id : {2, 3, 4, 6, 7}) EXPECT_EQ(strides.at(id), kChannelsLast) << id;
  EXPECT_EQ(strides.at(5), kRowMajor) << "a given tensor lies where it lies";
}

constexpr std::string_view kProduct =
    "%2 = Convolution(%0: f32[2,3,6,6], %1: f32[4,3,1,1]) {strides=[1,1], pads_begin=[0,0], pads_end=[0,0], "
    "dilations=[1,1], data_format=NCX, weights_format=OIX}; %3 = ReLU(%2)";

TEST(specialize, leaves_products_of_matrices_row_major_where_they_lie) {
  EXPECT_EQ(chosen_strides(std::string(kProduct)).at(2), kRowMajor);
  const auto strides = chosen_strides(
      std::string(kProduct) +
      "; %5 = Convolution(%3, %4: f32[4,4,1,1]) {strides=[1,1], pads_begin=[0,0], pads_end=[0,0], dilations=[1,1], "
      "data_format=NCX, weights_format=OIX}");
  EXPECT_EQ(strides.at(2), kRowMajor);
  EXPECT_EQ(chosen_strides(std::string(kProduct) +
                           "; %5 = Convolution(%3, %4: f32[4,4,1,1]) {strides=[1,1], pads_begin=[1,1], pads_end=[1,1], "
                           "auto_pad=SAME_UPPER, dilations=[1,1], data_format=NCX, weights_format=OIX}")
                .at(2),
            kRowMajor)
      << "auto_pad looks at no list";
  const auto transposed = [](const char* step) {
    return chosen_strides(str("%2 = ConvTranspose(%0: f32[2,3,6,6], %1: f32[3,4,1,1]) {strides=[", step,
                              "], pads_begin=[0,0], pads_end=[0,0], dilations=[1,1], data_format=NCX, "
                              "weights_format=IOX}; %3 = ReLU(%2)"));
  };
  EXPECT_EQ(transposed("1,1").at(2), kRowMajor);
  EXPECT_EQ(transposed("2,2").at(2)[1], 1) << "windows that move by two: channels last";
}

TEST(specialize, lays_products_of_matrices_channels_last_for_convolutions_with_windows) {
  for (const char* next :
       {"; %5 = Convolution(%3, %4: f32[4,1,3,3]) {strides=[1,1], pads_begin=[1,1], pads_end=[1,1], dilations=[1,1], "
        "groups=4, data_format=NCX, weights_format=OIX}",
        "; %5 = Convolution(%3, %4: f32[3,3,4,4]) {strides=[1,1], pads_begin=[1,1], pads_end=[1,1], dilations=[1,1], "
        "data_format=NCX, weights_format=XIO}",
        "; %5 = Convolution(%3, %4: f32[4,4,1,1]) {strides=[2,2], pads_begin=[0,0], pads_end=[0,0], dilations=[1,1], "
        "data_format=NCX, weights_format=OIX}",
        "; %5 = Convolution(%3, %4: f32[4,4,1,1]) {strides=[1,1], pads_begin=[1,0], pads_end=[0,0], dilations=[1,1], "
        "data_format=NCX, weights_format=OIX}"}) {
    const auto strides = chosen_strides(std::string(kProduct) + next);
    EXPECT_EQ(strides.at(2), kChannelsLast) << next;
    EXPECT_EQ(strides.at(3), kChannelsLast) << next;
  }
}

TEST(specialize, leaves_gradients_of_products_row_major_where_rows_are_long) {
  const auto innermost = [](const char* op, const char* sides, const char* attributes) {
    const auto strides =
        chosen_strides(str("%2 = ", op, "(%0: f32[2,3,", sides, "], %1: f32[3,4,1,1]) {strides=[1,1], ",
                           "pads_begin=[0,0], pads_end=[0,0], dilations=[1,1], data_format=NCX, ",
                           "weights_format=OIX, ", attributes, "}; %3 = ReLU(%2)"));
    return strides.at(2)[1] == 1 ? "channels" : "pixels";
  };
  EXPECT_STREQ(innermost("ConvolutionBackwardData", "16,8", "dst_shape=[2,4,16,8]"), "pixels");
  EXPECT_STREQ(innermost("ConvolutionBackwardData", "16,7", "dst_shape=[2,4,16,7]"), "channels");
}

/// A gradient of a convolution, that of ReLU, and what reads it.
std::map<uint64_t, Dims> strides_behind_a_gradient(const std::string& next) {
  return chosen_strides(
      "%2 = ConvolutionBackwardData(%0: f32[2,3,6,6], %1: f32[3,4,3,3]) {strides=[1,1], pads_begin=[1,1], "
      "pads_end=[1,1], dilations=[1,1], data_format=NCX, weights_format=OIX, dst_shape=[2,4,6,6]}; "
      "%4 = ReLUBackward(%3: f32[2,4,6,6], %2); " +
      next);
}

std::string normalized_beside(const char* src) {
  return str("%5, %6, %7 = BatchNormTrainingBackward(", src,
             ", %4, %12: f32[4], %13: f32[4], %14: f32[4]) {epsilon=0.001, data_format=NCX}");
}

TEST(specialize, lays_gradients_beside_a_row_major_source_of_a_batch_norm_alike) {
  const auto strides = strides_behind_a_gradient(normalized_beside("%8: f32[2,4,6,6]"));
  for (uint64_t id : {2, 4, 5}) EXPECT_EQ(strides.at(id), kRowMajor) << id;
}

TEST(specialize, lays_gradients_of_batch_norms_channels_last_elsewhere) {
  const auto made = strides_behind_a_gradient("%8 = Square(%4); " + normalized_beside("%8"));
  for (uint64_t id : {2, 4, 5}) EXPECT_EQ(made.at(id), kChannelsLast) << "its source is made here: " << id;
  const auto other = strides_behind_a_gradient("%5 = Multiply(%8: f32[2,4,6,6], %4)");
  for (uint64_t id : {2, 4, 5}) EXPECT_EQ(other.at(id), kChannelsLast) << "no batch norm: " << id;
  const auto read = strides_behind_a_gradient(
      normalized_beside("%8: f32[2,4,6,6]") +
      "; %10 = Convolution(%4, %11: f32[3,4,3,3]) {strides=[1,1], pads_begin=[1,1], pads_end=[1,1], "
      "dilations=[1,1], data_format=NCX, weights_format=OIX}");
  for (uint64_t id : {2, 4}) EXPECT_EQ(read.at(id), kChannelsLast) << "a convolution reads it: " << id;
}

TEST(specialize, leaves_results_row_major_whose_axes_are_others) {
  const auto strides = chosen_strides("%2 = " + std::string(kConvolution) +
                                      "; %3: f32[2,4,36] = StaticReshape(%2) {shape=[2,4,36], special_zero=false}; "
                                      "%4: f32[2,6,6,4] = StaticTranspose(%2) {order=[0,2,3,1]}; "
                                      "%5: f32[2,4,6,6] = SoftMax(%2) {axis=3}");
  EXPECT_EQ(strides.at(3), Dims({144, 36, 1}));
  EXPECT_EQ(strides.at(4), Dims({144, 24, 4, 1}));
  EXPECT_EQ(strides.at(5), kRowMajor);
}

TEST(specialize, takes_the_order_that_data_format_names_where_it_names_channels_last) {
  const auto strides = chosen_strides(
      "%2 = Convolution(%0: f32[2,6,6,3], %1: f32[3,3,3,4]) {strides=[1,1], pads_begin=[1,1], pads_end=[1,1], "
      "dilations=[1,1], data_format=NXC, weights_format=XIO}");
  EXPECT_EQ(strides.at(2), Dims({144, 24, 4, 1}));
}

constexpr std::string_view kAxes = "%2: f32 = ReduceSum(%0: f32[2,3], %1: s32[1]) {keep_dims=true}; %3: f32 = Abs(%2)";

TEST(specialize, waits_for_axes_that_nothing_tells) {
  const Partition p = one_partition(final_graph_of(kAxes));
  const auto made = specialize(p, ports_of(p).given());
  ASSERT_TRUE(made.ok()) << made.status().text();
  EXPECT_EQ(made->waits_for, std::vector<uint64_t>{1});
}

TEST(specialize, takes_the_content_of_constants) {
  const Partition p = one_partition(final_graph_of(kAxes));
  int32_t axes[1] = {1};
  const Ports ports = ports_of(p);
  const std::vector<tensor> constants = {{logical_tensor(1, Dtype::s32, Dims{1}), axes}};
  const auto made = specialize(p, {ports.inputs, ports.outputs, constants});
  ASSERT_TRUE(made.ok()) << made.status().text();
  EXPECT_TRUE(made->waits_for.empty());
  EXPECT_EQ(made->graph.ops[0].attrs.ints(Attr::axes), std::vector<int64_t>{1});
  EXPECT_EQ(made->graph.values[static_cast<size_t>(made->graph.outputs[0])].desc.dims, Dims({2, 1}));
  axes[0] = 2;
  EXPECT_EQ(specialize(p, {ports.inputs, ports.outputs, constants}).status().code(), Code::invalid_shape);
}

}  // namespace
}  // namespace partita::test
