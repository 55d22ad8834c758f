// SPDX-License-Identifier: Apache-2.0
// Lists, automatic padding and shapes of ONNX's pooling gradients.
#include "src/compat/onnxruntime/pool_gradient.hpp"

#include <algorithm>

#include "src/base/check.hpp"
#include "src/base/text.hpp"

namespace partita::compat::onnxruntime {
namespace {

Status check_list(const char* name, const std::vector<int64_t>& list, size_t entries, int64_t least) {
  if (list.size() != entries)
    return fail(Code::invalid_arguments, str(name, " has ", list.size(), " entries, it must have ", entries));
  for (int64_t v : list)
    if (v < least || v > std::numeric_limits<int32_t>::max())
      return fail(Code::invalid_arguments, str(name, " has an entry ", v, ", it must be at least ", least));
  return {};
}

Dims dims_of(const std::vector<int64_t>& list, int count) {
  return list.empty() ? Dims(count, 1) : Dims(std::span(list));
}

/// Cells to be added on one axis so that there are ceil(cells / stride) windows.
int64_t same_padding(int64_t cells, int64_t extent, int64_t stride) {
  return std::max<int64_t>(0, ((cells + stride - 1) / stride - 1) * stride + extent - cells);
}

void set_pads(const GradientNode& node, const Dims& source, Pooling& p) {
  const int spatial = p.kernel.size();
  p.pads_begin = p.pads_end = Dims(spatial, 0);
  for (int i = 0; i < spatial; ++i) {
    const auto axis = static_cast<size_t>(i);
    if (node.auto_pad == "NOTSET" && !node.pads.empty()) {
      p.pads_begin[i] = node.pads[axis];
      p.pads_end[i] = node.pads[axis + static_cast<size_t>(spatial)];
    } else if (node.auto_pad == "SAME_UPPER" || node.auto_pad == "SAME_LOWER") {
      const int64_t both = same_padding(source[i + 2], (p.kernel[i] - 1) * p.dilations[i] + 1, p.strides[i]);
      p.pads_begin[i] = node.auto_pad == "SAME_UPPER" ? both / 2 : both - both / 2;
      p.pads_end[i] = both - p.pads_begin[i];
    }
  }
}

bool counts_fit(const Pooling& p, const Dims& source, const Dims& pooled, LastWindow rule) {
  for (int i = 0; i < p.kernel.size(); ++i)
    if (source[i + 2] > 0 && pooled[i + 2] != window_count(source[i + 2], p.kernel[i], p.strides[i], p.pads_begin[i],
                                                           p.pads_end[i], p.dilations[i], rule))
      return false;
  return true;
}

}  // namespace

Status check(const GradientNode& node) {
  const size_t spatial = node.kernel_shape.size();
  if (spatial < 1 || spatial > 3)
    return fail(Code::invalid_arguments, str("kernel_shape has ", spatial, " entries, it must have 1 to 3"));
  PT_TRY(check_list("kernel_shape", node.kernel_shape, spatial, 1));
  if (!node.strides.empty()) PT_TRY(check_list("strides", node.strides, spatial, 1));
  if (!node.dilations.empty()) PT_TRY(check_list("dilations", node.dilations, spatial, 1));
  if (!node.pads.empty()) PT_TRY(check_list("pads", node.pads, 2 * spatial, 0));
  constexpr std::string_view kAutoPads[] = {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"};
  if (std::ranges::find(kAutoPads, node.auto_pad) == std::end(kAutoPads))
    return fail(Code::invalid_arguments,
                str("auto_pad is `", node.auto_pad, "`, it must be NOTSET, VALID, SAME_UPPER or SAME_LOWER"));
  if (node.maximum && node.storage_order != 0)
    return fail(Code::unimplemented, "storage_order must be 0: indices that count down columns are not taken");
  if (!node.maximum && std::ranges::any_of(node.dilations, [](int64_t d) { return d != 1; }))
    return fail(Code::unimplemented, "dilations of an average must be 1");
  return {};
}

Result<Pooling> pooling_of(const GradientNode& node, Dtype dtype, const Dims& pooled, const Dims& given_source) {
  const int spatial = static_cast<int>(node.kernel_shape.size());
  Dims source = given_source;
  if (pooled.size() != spatial + 2 || source.size() != spatial + 2)
    return fail(Code::invalid_shape, str("dY is [", text_of(pooled), "] and dX [", text_of(source),
                                         "], both must have batch, channels and ", spatial, " spatial dims"));
  source[0] = pooled[0];
  if (std::ranges::any_of(source, [](int64_t d) { return d < 0; }))
    return fail(Code::invalid_shape,
                str("the graph must tell the shape of dX but for the batch, got [", text_of(given_source), "]"));
  Pooling p;
  p.kind = node.maximum ? OpKind::MaxPoolIndicesBackward : OpKind::AvgPoolBackward;
  p.kernel = dims_of(node.kernel_shape, spatial);
  p.strides = dims_of(node.strides, spatial);
  p.dilations = dims_of(node.dilations, spatial);
  set_pads(node, source, p);
  p.ceil = node.ceil_mode;
  p.divisor = node.count_include_pad ? Divisor::kernel : Divisor::valid;
  p.index_base = IndexBase::tensor;
  const bool fits =
      p.ceil ? counts_fit(p, source, pooled, LastWindow::kept_inside) || counts_fit(p, source, pooled, LastWindow::kept)
             : counts_fit(p, source, pooled, LastWindow::dropped);
  if (!fits || source[1] != pooled[1])
    return fail(Code::invalid_shape,
                str("dY is [", text_of(pooled), "], which is not what pooling [", text_of(source), "] makes"));
  const auto dense = [](Dtype type, const Dims& dims) { return View{type, dims, dense_strides(dims)}; };
  p.inputs[0] = dense(dtype, pooled);
  if (node.maximum) p.inputs[static_cast<size_t>(p.input_count++)] = dense(Dtype::s64, pooled);
  p.output = dense(dtype, source);
  return p;
}

}  // namespace partita::compat::onnxruntime
