// SPDX-License-Identifier: Apache-2.0
// Channels last in memory, whatever data_format names.
#include "passes/layout.hpp"

#include <algorithm>

#include "kernels/pool_geometry.hpp"
#include "src/base/axes.hpp"
#include "src/base/shape.hpp"
#include "src/ir/op_def.hpp"

namespace partita {
namespace {

constexpr int kLeastRankOfImages = 3;

bool is_convolution(StepKind step) {
  return step == StepKind::convolution || step == StepKind::convolution_backward_data;
}

/// Operators whose result has the axes of their inputs and may lie as they do.
bool keeps_axes(const OpDef& def) {
  if (def.step == StepKind::loop) return def.kind != OpKind::StaticTranspose && def.kind != OpKind::StaticReshape;
  return traits_of(def.step).keeps_axes;
}

/// Axis 1 innermost, the others row-major, and not row-major as well.
bool is_channels_last(const Dims& dims, const Dims& strides) {
  if (dims.size() < kLeastRankOfImages || is_dense(dims, strides)) return false;
  const TensorDesc last = with_axis_moved({Dtype::undef, dims, strides, 0}, 1, dims.size() - 1);
  return is_dense(last.dims, last.strides);
}

/// Dense, with its axes in another order.
bool is_permuted(const Dims& dims, const Dims& strides) {
  const Dims axes = axes_in_memory_order(strides);
  return is_dense(permuted(dims, axes), permuted(strides, axes)) && !is_dense(dims, strides);
}

Dims channels_last_strides(Dims dims) {
  const int last = dims.size() - 1;
  move_axis(dims, 1, last);
  Dims strides = dense_strides(dims);
  move_axis(strides, last, 1);
  return strides;
}

/// The tensor whose lie decides; null where the step has no images.
const TensorDesc* main_tensor(const Problem& p) {
  if (!is_convolution(p.step) && !traits_of(p.step).images) return nullptr;
  const bool forward = p.step == StepKind::pool_forward || p.step == StepKind::resample;
  return forward ? &p.in[0] : &p.out[0];
}

/// Each window is a cell of its own, with all channels.
bool windows_are_cells(const Attrs& attrs, const logical_tensor& weights) {
  return attrs.i64_or(Attr::groups, 1) == 1 && is_pointwise(attrs, weights.dims);
}

/// Images are matrices where they lie. A gradient's rows of fewer pixels take longer than copies into another order.
bool multiplies_in_place(const Subgraph& graph, const SubOp& op) {
  constexpr int64_t kLeastPixels = 128;
  const auto desc = [&](size_t k) -> const logical_tensor& { return graph.values[static_cast<size_t>(op.in[k])].desc; };
  const logical_tensor &src = desc(0), &weights = desc(1);
  if (channels_last(op.attrs) || src.dtype != Dtype::f32) return false;
  int64_t pixels = 1;
  for (int axis = 2; axis < src.dims.size(); ++axis) pixels *= src.dims[axis];
  if (op.kind == OpKind::ConvolutionBackwardData && pixels < kLeastPixels) return false;
  return windows_are_cells(op.attrs, weights) && is_dense(src.dims, src.strides);
}

/// A convolution that is no product of matrices as they lie.
bool has_windows(const op& o, const Attrs& attrs) {
  if (o.kind != OpKind::Convolution || channels_last(attrs) || o.inputs.size() < 2) return false;
  const logical_tensor& weights = o.inputs[1];
  if (!weights.shape_known() || weights.rank() < kLeastRankOfImages) return false;
  return !windows_are_cells(attrs, weights);
}

/// An input of the partition that is an image in row-major order.
bool is_row_major(const Subgraph& inputs, uint64_t id) {
  return std::ranges::any_of(inputs.inputs, [&](int v) {
    const logical_tensor& desc = inputs.values[static_cast<size_t>(v)].desc;
    return desc.id == id && desc.dims.size() >= kLeastRankOfImages && is_dense(desc.dims, desc.strides);
  });
}

}  // namespace

TensorReaders::TensorReaders(const Partition& partition, const Subgraph& inputs) {
  for (size_t i = partition.ops.size(); i-- > 0;) {  // producers first, so readers are known already
    const op& o = partition.ops[i];
    if (has_windows(o, partition.attrs[i])) convolved.insert(o.inputs[0].id);
    if (o.kind == OpKind::BatchNormTrainingBackward && is_row_major(inputs, o.inputs[0].id))
      normalized.insert(o.inputs[1].id);
    if (!keeps_axes(op_def(o.kind)) || o.outputs.empty()) continue;
    for (auto* found : {&convolved, &normalized}) {
      if (!found->count(o.outputs[0].id)) continue;
      for (const logical_tensor& t : o.inputs) found->insert(t.id);
    }
  }
}

Dims open_strides(const Subgraph& graph, const SubOp& op, size_t out, const TensorReaders& readers) {
  const OpDef& def = op_def(op.kind);
  const logical_tensor& result = graph.values[static_cast<size_t>(op.out[out])].desc;
  const Dims& dims = result.dims;
  if (dims.size() < kLeastRankOfImages) return dense_strides(dims);
  if (!readers.convolved.count(result.id)) {
    if (readers.normalized.count(result.id)) return dense_strides(dims);
    if (is_convolution(def.step) && multiplies_in_place(graph, op)) return dense_strides(dims);
  }
  if (is_convolution(def.step)) return channels_last(op.attrs) ? dense_strides(dims) : channels_last_strides(dims);
  if (!keeps_axes(def)) return dense_strides(dims);
  // Rows of 4 bits in another order than those of what is made of them have no generated code.
  if (op.kind == OpKind::Dequantize || op.kind == OpKind::DynamicDequantize) {
    const logical_tensor& packed = graph.values[static_cast<size_t>(op.in[0])].desc;
    if (is_permuted(packed.dims, packed.strides)) return packed.strides;
  }
  for (int v : op.in) {
    const logical_tensor& from = graph.values[static_cast<size_t>(v)].desc;
    if (from.dims.size() == dims.size() && is_channels_last(from.dims, from.strides))
      return channels_last_strides(dims);
  }
  return dense_strides(dims);
}

Dims strides_in_order_of(const logical_tensor& like, const Dims& dims) {
  return is_channels_last(like.dims, like.strides) ? channels_last_strides(dims) : dense_strides(dims);
}

Problem in_data_format_of_memory(Problem problem) {
  const TensorDesc* main = main_tensor(problem);
  if (!main || has_indices(problem) || problem.attrs.has(Attr::spatial_axes)) return problem;
  const int rank = main->dims.size(), last = rank - 1;
  const bool product = is_convolution(problem.step), named_second = !channels_last(problem.attrs);
  const bool second_lies_last = named_second && is_channels_last(main->dims, main->strides);
  const bool last_is_one = !named_second && !product && rank >= kLeastRankOfImages && main->dims[last] == 1;
  if (!second_lies_last && !last_is_one) return problem;
  const int from = second_lies_last ? 1 : last, to = second_lies_last ? last : 1;
  const size_t images = product ? 1 : problem.in.size();  // weights and biases stay
  for (size_t k = 0; k < images; ++k)
    if (problem.in[k].dims.size() == rank) problem.in[k] = with_axis_moved(std::move(problem.in[k]), from, to);
  for (TensorDesc& desc : problem.out) desc = with_axis_moved(std::move(desc), from, to);
  problem.attrs.set(Attr::data_format, std::string(second_lies_last ? "NXC" : "NCX"));
  return problem;
}

bool reorder_axes(Problem& loop, const TensorDesc& mine, const TensorDesc& theirs) {
  const int last = mine.dims.size() - 1;
  if (last < kLeastRankOfImages - 1 || theirs.dims.size() != mine.dims.size() || mine == theirs) return false;
  for (const auto& [from, to] : {std::pair{1, last}, std::pair{last, 1}}) {
    if (with_axis_moved(mine, from, to) != theirs) continue;
    for (auto* side : {&loop.in, &loop.out})
      for (TensorDesc& desc : *side) desc = with_axis_moved(std::move(desc), from, to);
    return true;
  }
  return false;
}

namespace {

/// Each axis as many as there are extents for it.
TensorDesc with_parts(const TensorDesc& desc, const std::vector<Dims>& extents) {
  TensorDesc made{desc.dtype, {}, {}, desc.offset};
  for (int d = 0; d < desc.dims.size(); ++d) {
    const Dims& parts = extents[static_cast<size_t>(d)];
    const Dims steps = dense_strides(parts);
    for (int k = 0; k < parts.size(); ++k) {
      made.dims.push_back(parts[k]);
      made.strides.push_back(steps[k] * desc.strides[d]);
    }
  }
  return made;
}

}  // namespace

bool split_axes(Problem& loop, const TensorDesc& mine, const TensorDesc& theirs) {
  if (mine.dims.size() >= theirs.dims.size() || mine.dims != loop.out[0].dims) return false;
  std::vector<Dims> extents;
  int next = 0;
  for (int64_t extent : mine.dims) {
    Dims& parts = extents.emplace_back();
    int64_t left = extent;
    for (; next < theirs.dims.size() && (left > 1 || parts.empty()); ++next) {
      if (theirs.dims[next] == 0 || left % theirs.dims[next] != 0) return false;
      left /= theirs.dims[next];
      parts.push_back(theirs.dims[next]);
    }
    if (left != 1) return false;
  }
  if (const TensorDesc split = with_parts(mine, extents); split.dims != theirs.dims || split.strides != theirs.strides)
    return false;
  for (auto* side : {&loop.in, &loop.out})
    for (TensorDesc& desc : *side) desc = with_parts(desc, extents);
  return true;
}

}  // namespace partita
