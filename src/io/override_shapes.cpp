// SPDX-License-Identifier: Apache-2.0
// Inference through the whole graph after overrides, and what follows from new shapes: scales, groups, layouts.
#include "src/io/override_shapes.hpp"

#include <map>

#include "src/base/check.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "src/io/graph_links.hpp"
#include "src/ir/op_def.hpp"
#include "src/ir/shape_context.hpp"
#include "src/ir/verify_op.hpp"

namespace partita {
namespace {

/// Scales for more channels than this are a mistake in a shape, not a model.
constexpr int64_t kMaxChannels = int64_t{1} << 24;

bool is_text(const op& o, Attr attr, std::string_view text) {
  const auto* value = std::get_if<std::string>(&o.attr(attr));
  return value && *value == text;
}

/// Nothing but the given result tells what these operators make.
bool needs_output_shape(const op& o) {
  if (o.kind == OpKind::Wildcard) return true;
  for (Attr shape : {Attr::dst_shape, Attr::weights_shape, Attr::src_shape}) {
    if (find_attr(op_def(o.kind), shape) && std::holds_alternative<std::monostate>(o.attr(shape))) return true;
  }
  return false;
}

bool is_laid_out_dense(OpKind kind) {
  return kind == OpKind::Reorder || kind == OpKind::StaticReshape || kind == OpKind::StaticTranspose;
}

bool same_memory(const logical_tensor& a, const logical_tensor& b) {
  return a.rank_known == b.rank_known && a.dims == b.dims && a.layout == b.layout && a.strides == b.strides;
}

class Inference {
 public:
  Inference(std::vector<op>& ops, const std::vector<op>& before, const std::set<uint64_t>& fixed)
      : ops_(ops), before_(tensors_of(before)), now_(tensors_of(ops)), fixed_(fixed) {}

  Status run() {
    PT_ASSIGN(const GraphLinks links, link_ops(ops_));
    for (size_t i : links.order) PT_TRY(infer(ops_[i]).at(place_of(ops_[i])));
    return {};
  }

 private:
  bool changed(const logical_tensor& t) const {
    const auto it = before_.find(t.id);
    return it == before_.end() || !same_memory(it->second, t);
  }

  Status infer(op& o) {
    bool inputs_changed = false;
    for (logical_tensor& t : o.inputs) {
      take_shape(now_.at(t.id), t);
      PT_TRY(check_size(t));
      inputs_changed |= changed(t);
    }
    PT_TRY(resize_scales(o));
    if (inputs_changed) link_group_shape(o);
    const std::vector<logical_tensor> given = o.outputs;
    for (logical_tensor& t : o.outputs) {
      if (fixed_.count(t.id) || needs_output_shape(o)) continue;
      t.rank_known = false;
      t.dims = t.strides = {};
    }
    PT_ASSIGN(Attrs attrs, verify_op(o));
    PT_TRY(infer_shapes(op_def(o.kind), attrs, o.inputs, o.outputs));
    for (size_t i = 0; i < o.outputs.size(); ++i) {
      PT_TRY(check_size(o.outputs[i]));
      lay_out(o, given[i], inputs_changed, o.outputs[i]);
      now_[o.outputs[i].id] = o.outputs[i];
    }
    return {};
  }

  static Status check_size(const logical_tensor& t) {
    const bool fits = !t.shape_known() || t.size_bytes() <= static_cast<size_t>(std::numeric_limits<int64_t>::max());
    return fits ? Status() : fail(Code::invalid_shape, str("tensor ", t.id, " is too large: ", t.text()));
  }

  static void take_shape(const logical_tensor& from, logical_tensor& to) {
    to.rank_known = from.rank_known;
    to.dims = from.dims;
    to.layout = from.layout;
    to.strides = from.strides;
    to.layout_id = from.layout_id;
  }

  void lay_out(const op& o, const logical_tensor& given, bool inputs_changed, logical_tensor& t) const {
    if (fixed_.count(t.id) || !t.shape_known()) return take_shape(given, t);
    if (given.rank_known && given.dims == t.dims && !inputs_changed) return take_shape(given, t);
    if (t.layout != Layout::strided) return;
    const bool dense = is_laid_out_dense(o.kind) || o.inputs.empty();
    t.strides = dense ? dense_strides(t.dims) : strides_like(o.inputs[0], t.dims);
  }

  /// Scales are repeated cyclically and zero points filled up with 0 to one a channel.
  static Status resize_scales(op& o) {
    const bool quantizes = o.kind == OpKind::Quantize || o.kind == OpKind::Dequantize;
    if (!quantizes || !is_text(o, Attr::qtype, "per_channel")) return {};
    if (o.inputs.empty() || !o.inputs[0].shape_known()) return {};
    const auto* given_axis = std::get_if<int64_t>(&o.attr(Attr::axis));
    const std::optional<int> axis = normal_axis(given_axis ? *given_axis : 1, o.inputs[0].rank());
    if (!axis) return {};
    const int64_t channels = o.inputs[0].dims[*axis];
    if (channels > kMaxChannels) {
      return fail(Code::invalid_shape, str("scales for ", channels, " channels, expected at most ", kMaxChannels));
    }
    const auto count = static_cast<size_t>(channels);
    const auto* scales = std::get_if<std::vector<float>>(&o.attr(Attr::scales));
    if (scales && !scales->empty() && scales->size() != count) {
      std::vector<float> repeated(count);
      for (size_t i = 0; i < count; ++i) repeated[i] = (*scales)[i % scales->size()];
      o.set_attr(Attr::scales, std::move(repeated));
    }
    const auto* zps = std::get_if<std::vector<int64_t>>(&o.attr(Attr::zps));
    if (zps && !zps->empty() && zps->size() != count) {
      std::vector<int64_t> filled = *zps;
      filled.resize(count, 0);
      o.set_attr(Attr::zps, std::move(filled));
    }
    return {};
  }

  /// The extent of a group follows from the source and its scales.
  static void link_group_shape(op& o) {
    if (o.kind != OpKind::DynamicDequantize || !is_text(o, Attr::qtype, "per_group") || o.inputs.size() < 2) return;
    const Dims &src = o.inputs[0].dims, &scales = o.inputs[1].dims;
    if (src.size() != scales.size()) return;
    std::vector<int64_t> groups;
    for (int i = 0; i < src.size(); ++i) {
      if (scales[i] <= 0 || src[i] % scales[i] != 0) return;
      groups.push_back(src[i] / scales[i]);
    }
    o.set_attr(Attr::group_shape, std::move(groups));
  }

  std::vector<op>& ops_;
  std::map<uint64_t, logical_tensor> before_;
  std::map<uint64_t, logical_tensor> now_;
  const std::set<uint64_t>& fixed_;
};

}  // namespace

Status infer_again(std::vector<op>& ops, const std::vector<op>& before, const std::set<uint64_t>& fixed) {
  return Inference(ops, before, fixed).run();
}

}  // namespace partita
