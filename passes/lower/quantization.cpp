// SPDX-License-Identifier: Apache-2.0
// Lowering of Quantize, Dequantize, DynamicQuantize and DynamicDequantize to loops.
//   quantize:   dst = saturate(round(src / scale) + zp)        dequantize: dst = (src - zp) * scale
#include <algorithm>

#include "passes/lower/lowering.hpp"
#include "src/base/check.hpp"
#include "src/base/dtype.hpp"
#include "src/base/scale_axes.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"

namespace partita {
namespace {

using Value = ExprBuilder::Value;

/// A scale or zero point: one value, one along an axis, or a tensor with one entry a group.
struct Factor {
  TensorDesc desc;
  int buffer = Step::kNoBuffer;
  bool uniform = false;
  float value = 0;
};

/// `desc` over a space in which every grouped axis of the result is split into (groups, group extent).
class GroupedSpace {
 public:
  GroupedSpace(const Dims& dims, const Dims& group) : group_(group) {
    for (int d = 0; d < dims.size(); ++d) {
      space_.push_back(dims[d] / group[d]);
      if (group[d] > 1) space_.push_back(group[d]);
    }
  }
  const Dims& dims() const { return space_; }

  /// A tensor with one element for every element of the result.
  TensorDesc full(const TensorDesc& desc) const {
    TensorDesc made{desc.dtype, space_, {}, desc.offset};
    for (int d = 0; d < desc.dims.size(); ++d) {
      made.strides.push_back(desc.strides[d] * group_[d]);
      if (group_[d] > 1) made.strides.push_back(desc.strides[d]);
    }
    return made;
  }

  /// A tensor with one element for every group.
  TensorDesc by_group(const TensorDesc& desc) const {
    TensorDesc made{desc.dtype, space_, {}, desc.offset};
    for (int d = 0; d < desc.dims.size(); ++d) {
      made.strides.push_back(desc.dims[d] == 1 ? 0 : desc.strides[d]);
      if (group_[d] > 1) made.strides.push_back(0);
    }
    return made;
  }

 private:
  Dims group_, space_;
};

/// Splitting must not lead beyond the axes that Dims can hold.
Status check_split(const Dims& group) {
  const auto split = group.size() + std::count_if(group.begin(), group.end(), [](int64_t g) { return g > 1; });
  if (split <= kMaxRank) return {};
  return fail(Code::unimplemented, str("groups along so many axes of a rank ", group.size(),
                                       " tensor need a space of rank ", split, ", the most is ", kMaxRank));
}

/// One value, one for each index of `axis`, or (weights of a grouped ConvTranspose, whose groups lie along axis 0) one
/// for each index of `axis` in each group.
Factor from_list(Lowering& l, const std::vector<float>& list, const GroupedSpace& grouped, const Dims& dims, int axis) {
  if (std::count(list.begin(), list.end(), list[0]) == static_cast<long>(list.size()))
    return {{}, Step::kNoBuffer, true, list[0]};
  const int64_t in_group = dims[axis], groups = static_cast<int64_t>(list.size()) / in_group;
  TensorDesc desc{Dtype::f32, Dims(dims.size(), 1), Dims(dims.size(), 0), 0};
  if (groups > 1) {
    desc.dims[0] = groups;
    desc.strides[0] = in_group;
  }
  desc.dims[axis] = in_group;
  desc.strides[axis] = 1;
  return {grouped.by_group(desc), l.add_constant(list), false, 0};
}

Value value_of(LoopStep& loop, const Factor& f) {
  return f.uniform ? loop.builder().constant(f.value) : loop.load(f.desc, f.buffer);
}

bool quantizes(OpKind kind) { return kind == OpKind::Quantize || kind == OpKind::DynamicQuantize; }

void emit(Lowering& l, const TensorDesc& src, const TensorDesc& dst, const Factor& scale, const Factor* zp) {
  LoopStep loop;
  Value x = loop.load(src, l.input_buffer(0));
  const Value s = value_of(loop, scale);
  ExprBuilder b = loop.builder();
  const bool shift = zp && !(zp->uniform && zp->value == 0);
  if (quantizes(l.op->kind)) {
    x = b.div(x, s);
    // Rounding happens before the zero point is added: f8 types have none and round at the store.
    if (is_integer(dst.dtype)) x = b.apply(ExprOp::round, x);
    if (shift) x = b.add(x, value_of(loop, *zp));
  } else {
    if (shift) x = b.sub(x, value_of(loop, *zp));
    x = b.mul(x, s);
  }
  loop.store(dst, l.output_buffer(0), x);
  l.add_step(loop.take());
}

/// Scales and zero points are attributes.
Status lower_static(Lowering& l) {
  const Dims dims = l.output(0).dims;
  const Attrs& a = l.op->attrs;
  const auto& scales = a.floats(Attr::scales);
  const bool by_channel = a.is(Attr::qtype, "per_channel") && !dims.empty();
  const int axis = by_channel ? *normal_axis(a.i64(Attr::axis), dims.size()) : 0;
  Dims group(dims.size(), 1);
  if (by_channel && axis > 0 && static_cast<int64_t>(scales.size()) > dims[axis])
    group[0] = dims[0] * dims[axis] / static_cast<int64_t>(scales.size());
  PT_TRY(check_split(group));
  const GroupedSpace grouped(dims, group);
  const Factor scale = from_list(l, scales, grouped, dims, axis);
  Factor zp{{}, Step::kNoBuffer, true, 0};
  if (a.has(Attr::zps) && !a.ints(Attr::zps).empty()) {
    const auto& list = a.ints(Attr::zps);
    zp = from_list(l, std::vector<float>(list.begin(), list.end()), grouped, dims, axis);
  }
  emit(l, grouped.full(l.input(0)), grouped.full(l.output(0)), scale, &zp);
  return {};
}

/// Zero points of 4 bits as bytes, in the same order: one for many elements begins in the middle of a byte, where loops
/// have no generated code.
Factor in_bytes(Lowering& l, int port) {
  const TensorDesc packed = l.input(port);
  TensorDesc bytes = packed;
  bytes.dtype = packed.dtype == Dtype::u4 ? Dtype::u8 : Dtype::s8;
  bytes.offset = 0;
  int64_t extent = 1;
  for (int d = 0; d < bytes.dims.size(); ++d) extent += (bytes.dims[d] - 1) * bytes.strides[d];
  const int made = l.add_temporary(bytes.dtype, {extent});
  LoopStep loop;
  loop.store(bytes, made, loop.load(packed, l.input_buffer(port)));
  l.add_step(loop.take());
  return {bytes, made, false, 0};
}

/// Scales and zero points are tensors, which the attributes spread over the source's axes.
Status lower_dynamic(Lowering& l) {
  const TensorDesc src = l.input(0), dst = l.output(0);
  const ScaleAxes axes = scale_axes(l.op->attrs, dst.dims);
  PT_TRY(check_split(axes.group));
  const GroupedSpace grouped(dst.dims, axes.group);
  auto factor = [&](int port) -> Factor {
    Factor f{l.input(port), l.input_buffer(port), false, 0};
    const int64_t entries = elements(f.desc.dims);
    if (bits_of(f.desc.dtype) < 8 && entries > 1 && entries < elements(src.dims)) f = in_bytes(l, port);
    const Dims strides =
        entries == 1 ? Dims(dst.dims.size(), 0) : *strides_of_scales(axes, f.desc.dims, f.desc.strides);
    f.desc = grouped.by_group({f.desc.dtype, axes.dims, strides, f.desc.offset});
    return f;
  };
  const Factor scale = factor(1), zp = l.inputs() > 2 ? factor(2) : Factor{{}, -1, true, 0};
  emit(l, grouped.full(src), grouped.full(dst), scale, &zp);
  return {};
}

}  // namespace

Status lower_quantization(Lowering& l) {
  const bool fixed = l.op->kind == OpKind::Quantize || l.op->kind == OpKind::Dequantize;
  return fixed ? lower_static(l) : lower_dynamic(l);
}

}  // namespace partita
