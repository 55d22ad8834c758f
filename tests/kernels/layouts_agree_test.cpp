// SPDX-License-Identifier: Apache-2.0
// Channel-first and channel-last are two spellings of one problem: every kernel row that takes both must give the same
// results on transposed data. The list of operators is the registry.
#include <gtest/gtest.h>

#include <map>

#include "partita/partition.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "src/harness/compare.hpp"
#include "src/ir/op_def.hpp"
#include "tests/support/op_rows.hpp"
#include "tests/support/random_problem.hpp"
#include "tests/support/random_windows.hpp"

namespace partita::test {
namespace {

using enum OpKind;
using List = std::vector<int64_t>;

/// Draws operators with data_format NCX.
class Drawer {
 public:
  explicit Drawer(Random& random) : random_(random), dtype_(random.pick({Dtype::f32, Dtype::bf16, Dtype::f16})) {}

  op draw(OpKind kind) {
    op o(1, kind);
    switch (kind) {
      case AvgPool:
      case MaxPool:
      case AvgPoolBackward:
      case MaxPoolBackward: pool(o); break;
      case Convolution:
      case ConvolutionBackwardData:
      case ConvolutionBackwardWeights:
      case ConvTranspose:
      case ConvTransposeBackwardData:
      case ConvTransposeBackwardWeights: convolution(o); break;
      case Interpolate:
      case InterpolateBackward: resample(o); break;
      case AdaptiveAvgPool:
      case AdaptiveAvgPoolBackward:
      case MaxPoolIndicesBackward: given_windows(o); break;
      default: channels(o); break;
    }
    return o.set_attr(Attr::data_format, std::string("NCX"));
  }

 private:
  static bool is(OpKind kind, std::initializer_list<OpKind> kinds) { return std::ranges::count(kinds, kind) > 0; }
  static List list_of(const Dims& dims) { return {dims.begin(), dims.end()}; }

  void input(op& o, const Dims& dims) { input(o, dtype_, dims); }
  void input(op& o, Dtype dtype, const Dims& dims) { o.add_input(logical_tensor(o.inputs.size(), dtype, dims)); }
  void outputs(op& o, int count, Dtype rest = Dtype::f32) {
    for (int i = 0; i < count; ++i)
      o.add_output(logical_tensor(static_cast<uint64_t>(10 + i), i ? rest : dtype_, Layout::any));
  }

  static void set_windows(op& o, const Geometry& g) {
    const Attrs attrs = window_attrs(g, false);
    for (const auto& [attr, value] : attrs.all()) o.set_attr(attr, value);
  }

  void pool(op& o) {
    const bool average = is(o.kind, {AvgPool, AvgPoolBackward}), forward = is(o.kind, {AvgPool, MaxPool});
    const bool up = random_.coin();
    const Geometry g = random_geometry(random_, {.dilated = !average, .round_up = up});
    const int64_t batch = random_.whole(1, 2), channels = random_.whole(1, 19);
    const Dims wide = activation_dims(batch, channels, g.wide, false);
    const Dims narrow = activation_dims(batch, channels, g.narrow, false);
    set_windows(o, g);
    if (average) o.set_attr(Attr::dilations, {});
    o.set_attr(Attr::kernel, g.kernel);
    if (average) o.set_attr(Attr::exclude_pad, random_.coin());
    if (forward && up) o.set_attr(Attr::rounding_type, std::string("ceil"));
    if (average && random_.coin()) o.set_attr(Attr::exclude_overhang, true);
    if (average && random_.whole(0, 3) == 0) o.set_attr(Attr::divisor_override, int64_t{5});
    if (o.kind == AvgPoolBackward) o.set_attr(Attr::src_shape, list_of(wide));
    input(o, o.kind == AvgPoolBackward ? narrow : wide);
    if (o.kind == MaxPoolBackward) input(o, narrow);
    outputs(o, o.kind == MaxPool && random_.coin() ? 2 : 1, Dtype::s64);
  }

  /// Poolings that are given the number of windows alone.
  void given_windows(op& o) {
    List wide, narrow;
    for (int64_t axes = random_.whole(1, 3); axes > 0; --axes) {
      wide.push_back(random_.whole(1, 9));
      narrow.push_back(random_.whole(1, 9));
    }
    const int64_t batch = random_.whole(1, 2), channels = random_.whole(1, 19);
    const bool forward = o.kind == AdaptiveAvgPool;
    const Dims cells = activation_dims(batch, channels, wide, false);
    const Dims windows = activation_dims(batch, channels, narrow, false);
    forward ? o.set_attr(Attr::sizes, narrow) : o.set_attr(Attr::src_shape, list_of(cells));
    input(o, forward ? cells : windows);
    if (o.kind == MaxPoolIndicesBackward) input(o, random_.coin() ? Dtype::s64 : Dtype::s32, windows);
    outputs(o, 1);
  }

  void convolution(op& o) {
    const Geometry g = random_geometry(random_, {.max_axes = 2});
    const int64_t batch = random_.whole(1, 2), groups = random_.whole(1, 2);
    const int64_t from = groups * random_.whole(1, 5), to = groups * random_.whole(1, 5);
    const Dims wide = activation_dims(batch, from, g.wide, false), narrow = activation_dims(batch, to, g.narrow, false);
    Dims filter{to, from / groups};
    for (int64_t k : g.kernel) filter.push_back(k);
    const bool transposed = is(o.kind, {ConvTranspose, ConvTransposeBackwardData, ConvTransposeBackwardWeights});
    set_windows(o, g);
    o.set_attr(Attr::groups, groups).set_attr(Attr::weights_format, std::string(transposed ? "IOX" : "OIX"));
    if (o.kind == ConvTranspose) o.set_attr(Attr::output_padding, g.leftover);
    if (o.kind == ConvolutionBackwardData) o.set_attr(Attr::dst_shape, list_of(wide));
    const bool gradient_of_filter = is(o.kind, {ConvolutionBackwardWeights, ConvTransposeBackwardWeights});
    if (gradient_of_filter) o.set_attr(Attr::weights_shape, list_of(filter));
    const bool wide_first = is(o.kind, {Convolution, ConvTransposeBackwardData, ConvolutionBackwardWeights});
    input(o, wide_first ? wide : narrow);
    input(o, !gradient_of_filter ? filter : wide_first ? narrow : wide);
    outputs(o, 1);
  }

  void resample(op& o) {
    Dims src{random_.whole(1, 2), random_.whole(1, 9)}, dst = src;
    List sizes;
    for (int64_t axes = random_.whole(1, 3); axes > 0; --axes) {
      src.push_back(random_.whole(1, 6));
      dst.push_back(random_.whole(1, 9));
      sizes.push_back(dst.back());
    }
    const bool linear = random_.coin();
    o.set_attr(Attr::mode, std::string(linear ? "linear" : "nearest")).set_attr(Attr::sizes, sizes);
    if (random_.coin()) o.set_attr(Attr::coordinate_transformation_mode, std::string("align_corners"));
    input(o, src);
    if (o.kind == InterpolateBackward) input(o, dst);
    outputs(o, 1);
  }

  /// Normalisations and operators with one number a channel.
  void channels(op& o) {
    Dims src{random_.whole(1, 3), random_.whole(1, 5) * 4};
    for (int64_t axes = random_.whole(1, 3); axes > 0; --axes) src.push_back(random_.whole(1, 5));
    const Dims vector{src[1]};
    const bool statistics =
        is(o.kind, {BatchNormInference, BatchNormForwardTraining, BatchNormTrainingBackward, GroupNorm});
    const Dtype of_vector = statistics ? Dtype::f32 : dtype_;
    if (statistics) o.set_attr(Attr::epsilon, 0.01f);
    if (o.kind == GroupNorm) o.set_attr(Attr::groups, random_.pick<int64_t>({1, 2, 4}));
    input(o, src);
    if (o.kind == BatchNormTrainingBackward) input(o, src);
    const int vectors = is(o.kind, {BatchNormInference, BatchNormForwardTraining}) ? 4
                        : o.kind == BatchNormTrainingBackward                      ? 3
                        : o.kind == GroupNorm                                      ? 2
                        : o.kind == BiasAddBackward                                ? 0
                                                                                   : 1;
    for (int i = 0; i < vectors; ++i) input(o, of_vector, vector);
    if (o.kind == PReLUBackward) input(o, src);
    outputs(o,
            o.kind == BatchNormForwardTraining                   ? 5
            : is(o.kind, {BatchNormTrainingBackward, GroupNorm}) ? 3
            : o.kind == PReLUBackward                            ? 2
                                                                 : 1,
            of_vector);
  }

  Random& random_;
  Dtype dtype_;
};

bool has_channels(const PortDef& port) {
  return port.name == "src" || port.name == "dst" || port.name == "diff_src" || port.name == "diff_dst" ||
         port.name == "indices";
}

template <class List>
List channel_last(const List& ncx) {
  List moved = ncx;
  std::rotate(moved.begin() + 1, moved.begin() + 2, moved.end());
  return moved;
}

op channel_last(op o) {
  const OpDef& def = op_def(o.kind);
  for (size_t i = 0; i < o.inputs.size(); ++i) {
    logical_tensor& t = o.inputs[i];
    if (has_channels(def.inputs[i])) t = logical_tensor(t.id, t.dtype, channel_last(t.dims));
  }
  for (const Attr shape : {Attr::src_shape, Attr::dst_shape})
    if (const auto* list = std::get_if<List>(&o.attr(shape))) o.set_attr(shape, channel_last(*list));
  return o.set_attr(Attr::data_format, std::string("NXC"));
}

/// The same numbers with the channels last. Both dense.
Storage channel_last(const Storage& ncx) {
  Storage nxc(logical_tensor(ncx.desc.id, ncx.desc.dtype, channel_last(ncx.desc.dims)));
  const int64_t channels = ncx.desc.dims[1], cells = ncx.desc.elements() / (ncx.desc.dims[0] * channels);
  for (int64_t i = 0; i < ncx.desc.elements(); ++i) {
    const int64_t image = i / (channels * cells), channel = i / cells % channels, cell = i % cells;
    const Dims at = coordinates(i, ncx.desc.dims);
    int64_t from = 0;  // results may lie channels last already
    for (int d = 0; d < at.size(); ++d) from += at[d] * ncx.desc.strides[d];
    store_from_double(nxc.data.get(), ncx.desc.dtype, (image * cells + cell) * channels + channel,
                      load_as_double(ncx.data.get(), ncx.desc.dtype, from));
  }
  return nxc;
}

const Partition& form_of(const Result<partition>& single) {
  EXPECT_TRUE(single.ok()) << single.status().text();
  return *single->form();
}

/// Number of rows that ran both.
int expect_agreement(const op& first) {
  const op last = channel_last(first);
  const auto ncx = partition::of(first), nxc = partition::of(last);
  if (!ncx.ok() || !nxc.ok()) return ADD_FAILURE() << ncx.status().text() << nxc.status().text(), 0;
  const OpDef& def = op_def(first.kind);
  const Tensors inputs = input_data(first, 1);
  Tensors moved = input_data(first, 1);
  for (size_t i = 0; i < first.inputs.size(); ++i)
    if (has_channels(def.inputs[i])) moved[i] = channel_last(inputs.at(i));
  const OpRuns a = run_every_row(form_of(ncx), inputs), b = run_every_row(form_of(nxc), moved);
  EXPECT_EQ(a.refusal + b.refusal, "");
  int both = 0;
  for (const auto& [row, results] : a.rows) {
    if (!b.rows.contains(row)) continue;
    ++both;
    for (size_t port = 0; port < first.outputs.size(); ++port) {
      const Storage &expected = results.at(first.outputs[port].id), &got = b.rows.at(row).at(first.outputs[port].id);
      const double tolerance = tolerance_of(form_of(ncx));
      const Difference d = has_channels(def.outputs[port]) ? compare(got, channel_last(expected), tolerance)
                                                           : compare(got, expected, tolerance);
      EXPECT_EQ(d.wrong, 0) << row << ", output " << port << ": " << d.first;
    }
  }
  return both;
}

std::vector<OpKind> kinds_with_formats() {
  std::vector<OpKind> kinds;
  for (const OpDef* def : all_ops())
    if (find_attr(*def, Attr::data_format)) kinds.push_back(def->kind);
  return kinds;
}

class layouts_agree : public testing::TestWithParam<OpKind> {};

TEST_P(layouts_agree, in_every_row) {
  int both = 0, runs = 0;
  for (uint64_t seed = 1; seed <= 12 && !HasFailure(); ++seed) {
    Random random(seed);
    const op o = Drawer(random).draw(GetParam());
    std::string trace = str("seed ", seed, ": ", name_of(o.kind));
    for (const logical_tensor& t : o.inputs) trace += " " + t.text();
    for (const auto& [attr, value] : o.attrs()) trace += str(" ", name_of(attr), "=", partita::text_of(value));
    SCOPED_TRACE(trace);
    both += expect_agreement(o);
    ++runs;
  }
  EXPECT_GE(both, 3 * runs) << "besides the compiled form and the reference a row should take both";
}

INSTANTIATE_TEST_SUITE_P(registry, layouts_agree, testing::ValuesIn(kinds_with_formats()),
                         [](const auto& kind) { return std::string(name_of(kind.param)); });

}  // namespace
}  // namespace partita::test
