// SPDX-License-Identifier: Apache-2.0
// Input data by type and reader.
#include "src/harness/fill.hpp"

#include <algorithm>

#include "kernels/pool_geometry.hpp"
#include "src/base/axes.hpp"
#include "src/base/check.hpp"
#include "src/base/hash.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "src/base/threads.hpp"
#include "src/ir/op_def.hpp"
#include "src/ir/verify_op.hpp"

namespace partita {
namespace {

struct Range {
  double low, high;
};

/// In [0, 1), from the position alone, so that threads need no order.
double uniform(uint64_t seed, uint64_t index) {
  return static_cast<double>(Hasher().add(seed).add(index).value() >> 11) * 0x1p-53;
}

bool contains(std::string_view name, std::string_view part) { return name.find(part) != std::string_view::npos; }

/// The range that keeps a reader's result finite and meaningful.
Range range_for(const FinalGraph& graph, const Value& value) {
  Range range{-0.5, 0.5};
  for (const Use& use : value.uses) {
    const op& o = graph.ops[static_cast<size_t>(use.op)];
    const OpDef& def = op_def(o.kind);
    const size_t port = std::min(static_cast<size_t>(use.port), def.inputs.size() - 1);
    const std::string_view name = def.inputs.empty() ? std::string_view() : def.inputs[port].name;
    switch (o.kind) {
      case OpKind::Log:
      case OpKind::Sqrt:
      case OpKind::SqrtBackward:
      case OpKind::Pow:
      case OpKind::Reciprocal:
        if (use.port == 0) range = {0.5, 1.5};
        break;
      case OpKind::Divide:
        if (use.port == 1) range = {0.5, 1.5};
        break;
      case OpKind::ReduceProd: range = {0.9, 1.1}; break;
      case OpKind::SoftMaxBackward:
        if (name == "dst") range = {0.0, 0.1};
        break;
      case OpKind::Dropout:
        if (name == "probability") range = {0.25, 0.75};
        break;
      default: break;
    }
    if (contains(name, "variance")) range = {0.5, 1.5};
    if (name == "scales") range = {0.01, 0.05};
  }
  return range;
}

Range integer_range(Dtype dtype) {
  switch (dtype) {
    case Dtype::s8:
    case Dtype::s32:
    case Dtype::s64: return {-8, 8};
    case Dtype::s4: return {-8, 8};
    default: return {0, 8};
  }
}

/// Quantized values lie around their zero point: far from it, numbers would be large and nearly equal.
Range quantized_range(const FinalGraph& graph, const Value& value, Dtype dtype) {
  const Range plain = integer_range(dtype);
  if (dtype != Dtype::u8 && dtype != Dtype::s8) return plain;
  for (const Use& use : value.uses) {
    const Attrs& attrs = graph.attrs[static_cast<size_t>(use.op)];
    if (graph.ops[static_cast<size_t>(use.op)].kind != OpKind::Dequantize || !attrs.has(Attr::zps)) continue;
    const auto& zps = attrs.ints(Attr::zps);
    const double zero = zps.empty() ? 0 : static_cast<double>(zps[0]);
    const double least = dtype == Dtype::u8 ? 0 : -128, most = dtype == Dtype::u8 ? 255 : 127;
    if (zero > plain.high) return {std::max(least, zero - 8), std::min(most, zero + 8)};
  }
  return plain;
}

/// What the operator makes, or of what a gradient is the gradient.
const Value& forward_result(const FinalGraph& graph, size_t index) {
  const OpDef& def = op_def(graph.ops[index].kind);
  for (size_t i = 0; i < def.inputs.size() && i < graph.in[index].size(); ++i)
    if (def.inputs[i].name == "diff_dst") return graph.values[static_cast<size_t>(graph.in[index][i])];
  return graph.values[static_cast<size_t>(graph.out[index][0])];
}

/// A shape input must say what the given output shape says, `sizes` what the forward result's says; axes are those that
/// the output lacks or has as 1.
Result<std::vector<int64_t>> shape_content(const FinalGraph& graph, const Use& use, Attr attr, int64_t entries) {
  const op& o = graph.ops[static_cast<size_t>(use.op)];
  const Attrs& attrs = graph.attrs[static_cast<size_t>(use.op)];
  const auto index = static_cast<size_t>(use.op);
  const Value& out =
      attr == Attr::sizes ? forward_result(graph, index) : graph.values[static_cast<size_t>(graph.out[index][0])];
  if (!out.desc.shape_known())
    return fail(Code::invalid_shape,
                str(place_of(o), ": the shape of ", attr == Attr::sizes ? "the forward result" : "the output",
                    " must be known to choose a content for input ", use.port));
  std::vector<int64_t> content;
  if (attr == Attr::sizes) {
    const Dims spatial = spatial_dims(attrs, out.desc.dims);
    content.assign(spatial.begin(), spatial.end());
  } else if (attr == Attr::axes) {
    const Dims& src = graph.values[static_cast<size_t>(graph.in[static_cast<size_t>(use.op)][0])].desc.dims;
    const bool keep = attrs.flag_or(Attr::keep_dims, false);
    for (int d = 0, kept = 0; d < src.size(); ++d) {
      const int left = out.desc.rank() - kept;
      if (keep ? src[d] != out.desc.dims[d] : left < src.size() - d && (left == 0 || src[d] != out.desc.dims[kept]))
        content.push_back(d);
      else
        ++kept;
    }
  } else {
    content.assign(out.desc.dims.begin(), out.desc.dims.end());
  }
  if (static_cast<int64_t>(content.size()) != entries)
    return fail(Code::invalid_shape, str(place_of(o), ": input ", use.port, " has ", entries,
                                         " entries, the output shape asks for ", content.size()));
  return content;
}

/// Indices name cells of their own batch item and channel; some windows have none.
void fill_indices(const op& o, const Attrs& attrs, uint64_t seed, Storage& storage) {
  const Dims narrow = storage.desc.dims;
  Dims wide = narrow;
  if (o.outputs[0].shape_known())
    wide = o.outputs[0].dims;
  else if (attrs.has(Attr::src_shape))
    wide = Dims(std::span<const int64_t>(attrs.ints(Attr::src_shape)));
  const Problem problem{.step = StepKind::max_pool_indices_backward,
                        .op = OpKind::MaxPoolIndicesBackward,
                        .attrs = attrs,
                        .in = {{storage.desc.dtype, narrow, storage.desc.strides}},
                        .out = {{o.outputs[0].dtype, wide, Dims(wide.size(), 0)}},
                        .front = {},
                        .weights_front = {},
                        .back = {}};
  const Problem whole = with_batch_axis(problem);
  const TensorDesc& indices = whole.in[0];
  const PoolGeometry g = pool_geometry(whole, whole.out[0].dims, indices.dims);
  const PoolIndex base = pool_index(attrs, g);
  const auto cells = static_cast<double>(elements(g.src));
  for (int64_t i = 0, n = elements(indices.dims); i < n; ++i) {
    const Dims at = coordinates(i, indices.dims);
    int64_t position = 0;
    for (int d = 0; d < at.size(); ++d) position += at[d] * indices.strides[d];
    const double chosen = uniform(seed, static_cast<uint64_t>(i));
    const auto cell = static_cast<int64_t>(chosen * cells);
    const int64_t index = base.first(at[0], at[g.channel_axis()]) + cell * base.cell;
    store_from_double(storage.data.get(), storage.desc.dtype, position,
                      chosen < 0.02 || cells == 0 ? -1.0 : static_cast<double>(index));
  }
}

}  // namespace

Status fill_input(const FinalGraph& graph, int v, uint64_t seed, Storage& storage) {
  const Value& value = graph.values[static_cast<size_t>(v)];
  const Dtype dtype = storage.desc.dtype;
  void* data = storage.data.get();
  for (const Use& use : value.uses) {
    const OpDef& def = op_def(graph.ops[static_cast<size_t>(use.op)].kind);
    if (static_cast<size_t>(use.port) >= def.inputs.size() ||
        def.inputs[static_cast<size_t>(use.port)].value_of == Attr{0})
      continue;
    PT_ASSIGN(const auto content,
              shape_content(graph, use, def.inputs[static_cast<size_t>(use.port)].value_of, storage.desc.elements()));
    for (size_t i = 0; i < content.size(); ++i)
      store_from_double(data, dtype, static_cast<int64_t>(i), static_cast<double>(content[i]));
    return {};
  }
  for (const Use& use : value.uses) {
    const op& o = graph.ops[static_cast<size_t>(use.op)];
    if (o.kind != OpKind::MaxPoolIndicesBackward || use.port != 1) continue;
    fill_indices(o, graph.attrs[static_cast<size_t>(use.op)], Hasher().add(seed).add(value.desc.id).value(), storage);
    return {};
  }
  // The whole span, gaps between strided elements too.
  const int64_t n = span_of(storage.desc.dims, storage.desc.strides);
  const uint64_t own = Hasher().add(seed).add(value.desc.id).value();
  if (dtype == Dtype::boolean || !is_floating(dtype)) {
    const Range r = dtype == Dtype::boolean ? Range{0, 2} : quantized_range(graph, value, dtype);
    for (int64_t i = 0; i < n; ++i)
      store_from_double(data, dtype, i,
                        static_cast<int64_t>(r.low + uniform(own, static_cast<uint64_t>(i)) * (r.high - r.low)));
    return {};
  }
  const Range r = range_for(graph, value);
  constexpr int64_t kRun = 1024;
  parallel_for((n + kRun - 1) / kRun, kRun, [&](int64_t begin, int64_t end) {
    float numbers[kRun];
    for (int64_t run = begin; run < end; ++run) {
      const int64_t first = run * kRun, count = std::min(kRun, n - first);
      for (int64_t i = 0; i < count; ++i)
        numbers[i] = static_cast<float>(r.low + uniform(own, static_cast<uint64_t>(first + i)) * (r.high - r.low));
      store_floats(data, dtype, first, count, numbers);
    }
  });
  return {};
}

}  // namespace partita
