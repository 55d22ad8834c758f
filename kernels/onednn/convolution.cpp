// SPDX-License-Identifier: Apache-2.0
// Convolution in its three directions, for the operators of the Convolution and of the ConvTranspose family: a
// transposed convolution is a convolution's gradient, so each operator is one of four oneDNN primitives.
#include <algorithm>
#include <span>

#include "kernels/onednn/post_ops.hpp"
#include "kernels/onednn/rows.hpp"
#include "src/base/axes.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"

namespace partita::onednn {
namespace {

using dnnl::memory;
using dnnl::prop_kind;

/// The tensors of a convolution by their role, whatever the operator calls them; layouts still the user's.
struct Roles {
  TensorDesc wide;     ///< what the windows move over (src of a forward convolution)
  TensorDesc narrow;   ///< one entry a window (its dst)
  TensorDesc weights;  ///< [G,] O, I, X
  int added = -1;      ///< a spatial axis of size 1 that the operator does not have; -1: none
};

/// One channel a group: oneDNN has fast code for images alone, not for the rows that windows along one axis move over.
/// These are images of one line, or of one column.
enum class AsImage : uint8_t { line, column };

TensorDesc with_spatial_axis(TensorDesc tensor, AsImage as) {
  const int last = tensor.dims.size() - 1;
  if (as == AsImage::line) return with_unit_axis(std::move(tensor), last);
  tensor.strides.push_back(tensor.strides[last]);
  tensor.dims.push_back(1);
  return tensor;
}

struct Descs {
  memory::desc wide, narrow, weights;
};

/// Strides of axes of size 1 mean nothing, but oneDNN's kernels for integers, which want the channels last, take an
/// image for row-major that could be either, and compute something else then.
TensorDesc channel_last_where_the_same(TensorDesc image, const TensorDesc& weights) {
  if (!is_integer(weights.dtype)) return image;
  int64_t pixels = 1;
  for (int axis = 2; axis < image.dims.size(); ++axis) pixels *= image.dims[axis];
  if (image.dims[1] == 1) image.strides[1] = 1;
  if (pixels == 1)
    for (int axis = 2; axis < image.dims.size(); ++axis) image.strides[axis] = image.dims[1] * image.strides[1];
  return image;
}

Roles roles_of(const Attrs& attrs, const TensorDesc& wide, const TensorDesc& narrow, const TensorDesc& weights,
               AsImage as = AsImage::line) {
  Roles roles{channel_last_where_the_same(channel_first(wide, attrs), weights),
              channel_last_where_the_same(channel_first(narrow, attrs), weights), weights_oix(weights, attrs)};
  const Dims& dims = roles.weights.dims;
  const bool rows = roles.wide.dims.size() == 3 && dims.size() == 4 && dims[1] == 1 && dims[2] == 1;
  if (!rows) return roles;
  for (TensorDesc* tensor : {&roles.wide, &roles.narrow, &roles.weights}) *tensor = with_spatial_axis(*tensor, as);
  roles.added = as == AsImage::line ? 0 : 1;
  return roles;
}

Descs descs_of(const Roles& roles) { return {desc_of(roles.wide), desc_of(roles.narrow), desc_of(roles.weights)}; }

Descs free_descs(const Descs& have) {
  return {any_layout(have.wide), any_layout(have.narrow), any_layout(have.weights)};
}

Windows windows_of(const Attrs& attrs, const Roles& roles) {
  const int spatial = roles.wide.dims.size() - 2, rank = roles.weights.dims.size();
  Dims kernel(std::span<const int64_t>(roles.weights.dims).subspan(static_cast<size_t>(rank - spatial)));
  if (roles.added < 0) return onednn::windows_of(attrs, roles.wide.dims, roles.narrow.dims, kernel);
  Dims wide = roles.wide.dims, narrow = roles.narrow.dims;
  kernel.erase(roles.added);
  for (Dims* dims : {&wide, &narrow}) dims->erase(2 + roles.added);
  Windows windows = onednn::windows_of(attrs, wide, narrow, kernel);
  windows.strides.insert(windows.strides.begin() + roles.added, 1);
  for (auto* list : {&windows.dilations, &windows.begin, &windows.end}) list->insert(list->begin() + roles.added, 0);
  return windows;
}

constexpr bool kAllowEmpty = true;
constexpr const char* kUnusualWindows = "oneDNN reads out of bounds for such windows in this type";
constexpr const char* kNoPrimitive = "oneDNN has no implementation for these types or sizes on this machine";
constexpr const char* kEmptyWindow = "a window lies completely in the padding";
constexpr const char* kNarrowGroups = "groups of so few channels take longer in this type than in f32";

/// Whether the one channel of each group is filled up to whole vectors: work and weights grow by the square of that.
bool pads_channels(const dnnl::primitive_desc_base& desc, const Roles& roles) {
  constexpr size_t kTooMuch = 4;
  const TensorDesc& weights = roles.weights;
  const bool depthwise = weights.dims.size() > roles.wide.dims.size() && weights.dims[1] == 1 && weights.dims[2] == 1;
  return depthwise && is_floating(weights.dtype) &&
         desc.query_md(dnnl::query::weights_md).get_size() >=
             kTooMuch * bytes_for(weights.dtype, elements(weights.dims));
}

/// Types below 32 bits whose groups are multiplied one after the other: as matrices, or in vectors that a few channels
/// leave nearly empty. f32 takes less (between four fifths and a fortieth), with what converts to it and back.
bool multiplies_by_group(const dnnl::primitive_desc_base& desc, const Roles& roles) {
  constexpr int64_t kFewChannels = 8;
  const Dims& weights = roles.weights.dims;
  const bool grouped = weights.size() > roles.wide.dims.size() && weights[0] > 1;
  if (!grouped || roles.weights.dtype == Dtype::f32) return false;
  const std::string_view name = desc.impl_info_str();
  const auto is = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  const bool of_weights =
      desc.get_kind() == dnnl::primitive::kind::convolution && desc.get_prop_kind() == prop_kind::backward_weights;
  return is("gemm") ||
         (std::min(weights[1], weights[2]) < kFewChannels && (is("brgconv_strided") || (of_weights && is("jit_bf16"))));
}

bool is_slow(const dnnl::primitive_desc_base& desc, const Roles& roles) {
  return is_reference(desc) || std::string_view(desc.impl_info_str()).find("gemm:") != std::string_view::npos ||
         pads_channels(desc, roles) || multiplies_by_group(desc, roles);
}

/// Windows of one cell over row-major images, multiplied as f32 though they may be rounded to bf16: with AMX a copy in
/// another order and a product of tiles take less time.
bool leaves_tiles_idle(const dnnl::primitive_desc_base& desc, const Target& target) {
  const std::string_view name = desc.impl_info_str();
  return (target.fpmath == FpMath::bf16 || target.fpmath == FpMath::any) && has_isa(dnnl::cpu_isa::avx512_core_amx) &&
         name.find("ncsp_convolution:matmul") != std::string_view::npos && name.find("amx") == std::string_view::npos;
}

/// The gradient of weights with AVX2: images whose channels lie last take up to twice as long as blocks of channels,
/// and where there are many channels, the copies take less.
bool walks_channels_slowly(const dnnl::primitive_desc_base& desc, const Roles& roles, const Descs& asked) {
  constexpr int64_t kManyChannels = 64;
  const bool free = asked.wide.get_format_kind() == memory::format_kind::any &&
                    asked.narrow.get_format_kind() == memory::format_kind::any;
  return !free && roles.narrow.dims[1] >= kManyChannels && std::string_view(desc.impl_info_str()) == "jit:avx2";
}

/// Faults of oneDNN 3.7's brgemm kernel, found by the differential tests: groups with one input channel where some
/// other axis is 1 too; with AMX, windows that move by more than one where there are only a
/// few of them, and taps that meet padding only.
bool is_faulty(const dnnl::primitive_desc_base& desc, const Roles& roles, const Windows& windows) {
  constexpr int64_t kFew = 4;
  const std::string_view name = desc.impl_info_str();
  if (name.find("brg_conv_fwd") == std::string_view::npos) return false;
  const int input_axis = roles.weights.dims.size() - roles.wide.dims.size() + 1;
  if (roles.weights.dims[input_axis] == 1) return true;
  if (name.find("amx") == std::string_view::npos) return false;
  return !windows.each_tap_has_a_cell || (windows.strides.back() > 1 && roles.narrow.dims.back() <= kFew);
}

/// Transposed convolutions that run as the gradient of a convolution have what stands around them done by plain loops,
/// tens of times slower than the product. Those of a few channels a group run in code for older machines.
bool does_surroundings_slowly(const dnnl::primitive_desc_base& desc, const Product& product) {
  const bool surrounded = !product.post_ops.empty() || product.src_front || product.weights_front;
  const std::string_view name = desc.impl_info_str();
  const bool older = has_isa(dnnl::cpu_isa::avx512_core) && name.find("brg_deconv:avx2") != std::string_view::npos;
  return surrounded && (older || name.find("conv:any") != std::string_view::npos);
}

/// Faults of oneDNN 3.7 with 8-bit integers, found by random graphs: depthwise convolutions take a zero point of their
/// weights for another one, transposed ones leave something else where no tap reaches.
bool misreads_integers(const dnnl::primitive_desc_base& desc, const Product& product, const Windows& windows,
                       bool transposed) {
  if (!is_integer(product.src.dtype)) return false;
  const std::string_view name = desc.impl_info_str();
  if (name.find("brdgmm") != std::string_view::npos) return product.weights_front && product.weights_front->zero_point;
  // Those of generated code; plain loops are slow, but right.
  if (name.find("jit_uni_int8") != std::string_view::npos && product.src_front && product.src_front->zero_point)
    return true;
  return name.find("jit_") != std::string_view::npos && transposed && !windows.each_cell_has_a_tap;
}

/// Images in row-major order that windows of one cell move over are matrices where they lie; with something behind the
/// product oneDNN copies them into another order and back, which costs more than a loop over the result.
template <class Desc, class Describe>
bool copies_instead_of_multiplying(const Desc& desc, const Describe& describe_alone) {
  constexpr std::string_view kCopies = "ncsp_convolution:conv", kMultiplies = "ncsp_convolution:matmul";
  if (std::string_view(desc.impl_info_str()).find(kCopies) == std::string_view::npos) return false;
  const Desc alone = describe_alone();
  return alone && std::string_view(alone.impl_info_str()).find(kMultiplies) != std::string_view::npos;
}

/// Whether an operand as large as the result lies otherwise than the primitive wants it.
bool copies_a_large_one(std::span<const Operand> operands, const TensorDesc& dst) {
  return std::ranges::any_of(operands, [&](const Operand& operand) {
    return operand.have != operand.want && operand.have.get_dims() == dims_of(dst.dims);
  });
}

/// The first sound implementation oneDNN offers for the layouts, empty where there is none.
template <class Describe>
auto first_sound(const Roles& roles, const Windows& windows, const Descs& layouts, const Describe& describe)
    -> decltype(describe(layouts)) {
  auto desc = describe(layouts);
  while (desc && is_faulty(desc, roles, windows)) {
    if (!desc.next_impl()) return {};
  }
  return desc;
}

/// Layouts to ask for, best first. Weights always lie as the primitive likes them (they are small, a reorder costs
/// little). Activations stay where they are as long as there is fast code for that; otherwise the smaller one of two
/// that lie differently is copied, or the primitive chooses for both. Tensors with gaps are always copied: no fast code
/// takes them, and oneDNN's deconvolution with bias writes out of bounds there.
std::vector<Descs> wishes(const Roles& roles, const Descs& have) {
  const TensorDesc wide = channel_last_where_the_same(compact(roles.wide), roles.weights);
  const TensorDesc narrow = channel_last_where_the_same(compact(roles.narrow), roles.weights);
  const Descs stay{desc_of(wide), desc_of(narrow), any_layout(have.weights)}, free = free_descs(have);
  std::vector<Descs> list = {stay};
  if (axes_in_memory_order(wide.strides) != axes_in_memory_order(narrow.strides)) {
    list.push_back({stay.wide, free.narrow, stay.weights});
    list.push_back({free.wide, stay.narrow, stay.weights});
    if (elements(wide.dims) < elements(narrow.dims)) std::swap(list[1], list[2]);
  }
  list.push_back(free);
  return list;
}

template <class Describe>
auto fastest(const Roles& roles, const Windows& windows, const Descs& have, const Target& target,
             const Describe& describe) -> decltype(describe(have)) {
  decltype(describe(have)) slow;
  for (const Descs& layouts : wishes(roles, have)) {
    auto desc = first_sound(roles, windows, layouts, describe);
    if (desc && !is_slow(desc, roles) && !leaves_tiles_idle(desc, target)) return desc;
    if (!slow) slow = std::move(desc);
  }
  return slow;
}

/// Why the fastest there is will not do.
template <class Desc>
const char* refuse(const Desc& desc, const Roles& roles) {
  if (!desc) return kNoPrimitive;
  return multiplies_by_group(desc, roles) ? kNarrowGroups : nullptr;
}

/// oneDNN's bf16 kernels multiply scratch memory they have not written by zero: what is left there must not be NaN.
PrimitiveRun::Scratchpad scratchpad_for(const Roles& roles, const Target& target) {
  const bool f32_only = roles.wide.dtype == Dtype::f32 && target.fpmath == FpMath::strict;
  return f32_only ? PrimitiveRun::Scratchpad::anything : PrimitiveRun::Scratchpad::zeros;
}

memory::desc bias_desc(const Problem& problem) {
  return problem.in_ports() > 2 ? desc_of(problem.in[2]) : memory::desc();
}

/// The bias as the primitive takes it, one number behind the other: oneDNN 3.7 reads one of 16 bits beside integers as
/// if it had 32.
memory::desc bias_wanted(const Problem& problem, const Product& product) {
  memory::desc have = bias_desc(problem);
  if (have.is_zero()) return have;
  const auto type = is_integer(product.weights.dtype) ? memory::data_type::f32 : have.get_data_type();
  return {have.get_dims(), type, memory::format_tag::a};
}

/// The post-operations' operands, channel first.
std::vector<TensorDesc> operands_of(const Problem& problem, const Product& product, const Roles& roles) {
  std::vector<TensorDesc> list;
  for (const PostOp& op : product.post_ops) {
    if (op.operand < 0) continue;
    TensorDesc operand = channel_first(problem.in[static_cast<size_t>(op.operand)], problem.attrs);
    if (roles.added >= 0) operand = with_spatial_axis(std::move(operand), AsImage::line);
    list.push_back(with_unit_axes(std::move(operand)));
  }
  return list;
}

/// Scales of the weights lie along their output channels, over all groups.
ScaleAxis scale_axis(const Problem& problem, const Product& product, bool transposed) {
  const Attrs& attrs = problem.attrs;
  const bool grouped = attrs.i64_or(Attr::groups, 1) > 1;
  const FilterAxes axes = filter_axes(attrs, product.weights.dims.size());
  const int axis = transposed ? axes.wide : axes.narrow;
  return {axis, grouped ? 3 : 1, transposed && grouped ? -1 : product.weights.dims[axis]};
}

/// The layout that operands of post-operations follow. No primitive has a result whose batch is not its outermost axis.
TensorDesc batch_outermost(const TensorDesc& dst) {
  return dst.dims[0] == 1 || axes_in_memory_order(dst.strides)[0] == 0 ? dst : dense(dst);
}

/// Convolution and ConvTranspose forward: the primitive with what stands around it.
template <class Desc, class Describe>
const char* plan_forward(const Problem& problem, const Target& target, PrimitiveRun& run, const Product& product,
                         const Roles& roles, const Descs& have, const TensorDesc& dst, bool transposed,
                         const Describe& describe) {
  const Windows w = windows_of(problem.attrs, roles);
  if (!w.each_has_a_cell) return kEmptyWindow;
  if (const char* reason = slower_than_loops(problem, product, target)) return reason;
  const Around around(problem, product, batch_outermost(dst), operands_of(problem, product, roles),
                      scale_axis(problem, product, transposed));
  bool understood = true;
  const Desc desc = fastest(roles, w, have, target, [&](const Descs& d) {
    const bool free = (transposed ? d.wide : d.narrow).get_format_kind() == memory::format_kind::any;
    dnnl::primitive_attr attr = math_attr(target);
    understood = around.describe(attr, free);
    Desc made = understood ? describe(d, w, attr) : Desc();
    while (made && (does_surroundings_slowly(made, product) || misreads_integers(made, product, w, transposed)))
      if (!made.next_impl()) return Desc();
    return made;
  });
  if (!understood) return "scales or zero points lie in an unusual way";
  if (const char* reason = refuse(desc, roles)) return reason;
  const memory::desc &from = transposed ? have.narrow : have.wide, &to = transposed ? have.wide : have.narrow;
  std::vector<Operand> operands = {
      run.reads(DNNL_ARG_SRC, run.in(problem, product.src_at), from, desc.src_desc()),
      run.reads(DNNL_ARG_WEIGHTS, run.in(problem, product.weights_at), have.weights, desc.weights_desc()),
      run.writes(DNNL_ARG_DST, run.out(problem, 0), to, desc.dst_desc())};
  if (product.has_bias)
    operands.push_back(run.reads(DNNL_ARG_BIAS, run.in(problem, 2), bias_desc(problem), bias_wanted(problem, product)));
  const size_t own = operands.size();
  around.arguments(desc, run, operands);
  const dnnl::primitive_attr plain = math_attr(target);
  const bool may_leave = leaves_to_loops(product, target);
  if (may_leave && copies_a_large_one(std::span(operands).subspan(own), dst))
    return "an operand of a post-operation would be copied, which a loop reads where it lies";
  const auto alone = [&] { return describe({desc.src_desc(), desc.dst_desc(), any_layout(have.weights)}, w, plain); };
  if (may_leave && !transposed && copies_instead_of_multiplying(desc, alone))
    return "images are multiplied where they lie if nothing stands behind the product";
  run.add(desc, std::move(operands), scratchpad_for(roles, target));
  return nullptr;
}

dnnl::convolution_forward::primitive_desc forward_desc(const Descs& d, const memory::desc& bias, const Windows& w,
                                                       const dnnl::primitive_attr& attr, prop_kind kind,
                                                       bool allow_empty) {
  return {cpu_engine(), kind,      dnnl::algorithm::convolution_direct,
          d.wide,       d.weights, bias,
          d.narrow,     w.strides, w.dilations,
          w.begin,      w.end,     attr,
          allow_empty};
}

/// A transposed convolution, or a convolution's gradient, which is one without bias.
const char* plan_transposed(const Problem& problem, const Target& target, PrimitiveRun& run) {
  Product product;
  if (const char* reason = read_product(problem, product)) return reason;
  product.has_bias = product.has_bias && problem.op == OpKind::ConvTranspose;
  const Roles roles = roles_of(problem.attrs, problem.out[0], product.src, product.weights);
  // oneDNN's deconvolution names the weights' axes from the side of the transposed convolution
  TensorDesc weights = roles.weights;
  const int output_axis = weights.dims.size() - roles.wide.dims.size();
  std::swap(weights.dims[output_axis], weights.dims[output_axis + 1]);
  std::swap(weights.strides[output_axis], weights.strides[output_axis + 1]);
  const Descs have{desc_of(roles.wide), desc_of(roles.narrow), desc_of(weights)};
  const memory::desc bias = bias_wanted(problem, product);
  using Desc = dnnl::deconvolution_forward::primitive_desc;
  return plan_forward<Desc>(problem, target, run, product, roles, have, roles.wide, true,
                            [&](const Descs& d, const Windows& w, const dnnl::primitive_attr& attr) {
                              return Desc(cpu_engine(), prop_kind::forward_inference,
                                          dnnl::algorithm::deconvolution_direct, d.narrow, d.weights, bias, d.wide,
                                          w.strides, w.dilations, w.begin, w.end, attr, kAllowEmpty);
                            });
}

}  // namespace

const char* plan_convolution(const Problem& problem, const Target& target, PrimitiveRun& run) {
  Product product;
  if (const char* reason = read_product(problem, product)) return reason;
  const Roles roles = roles_of(problem.attrs, product.src, problem.out[0], product.weights);
  const memory::desc bias = bias_wanted(problem, product);
  return plan_forward<dnnl::convolution_forward::primitive_desc>(
      problem, target, run, product, roles, descs_of(roles), roles.narrow, false,
      [&](const Descs& d, const Windows& w, const dnnl::primitive_attr& attr) {
        return forward_desc(d, bias, w, attr, prop_kind::forward_inference, kAllowEmpty);
      });
}

const char* plan_convolution_backward_data(const Problem& problem, const Target& target, PrimitiveRun& run) {
  // Only forward primitives do what stands around them.
  if (problem.op == OpKind::ConvTranspose || problem.fused()) return plan_transposed(problem, target, run);
  const Roles roles = roles_of(problem.attrs, problem.out[0], problem.in[0], problem.in[1]);
  const Descs have = descs_of(roles);
  const Windows w = windows_of(problem.attrs, roles);
  if (!w.each_has_a_cell) return kEmptyWindow;
  const auto attr = math_attr(target);
  Descs hinted = free_descs(have);  // forward there is no source of another type than the weights
  hinted.wide = memory::desc(have.wide.get_dims(), have.weights.get_data_type(), memory::format_tag::any);
  const auto hint = forward_desc(hinted, {}, w, attr, prop_kind::forward_training, false);
  const auto desc = fastest(roles, w, have, target, [&](const Descs& d) {
    return dnnl::convolution_backward_data::primitive_desc(cpu_engine(), dnnl::algorithm::convolution_direct, d.wide,
                                                           d.weights, d.narrow, w.strides, w.dilations, w.begin, w.end,
                                                           hint, attr, kAllowEmpty);
  });
  if (const char* reason = refuse(desc, roles)) return reason;
  run.add(desc,
          {run.reads(DNNL_ARG_DIFF_DST, run.in(problem, 0), have.narrow, desc.diff_dst_desc()),
           run.reads(DNNL_ARG_WEIGHTS, run.in(problem, 1), have.weights, desc.weights_desc()),
           run.writes(DNNL_ARG_DIFF_SRC, run.out(problem, 0), have.wide, desc.diff_src_desc())},
          scratchpad_for(roles, target));
  return nullptr;
}

const char* plan_convolution_backward_weights(const Problem& problem, const Target& target, PrimitiveRun& run) {
  const int wide = problem.op == OpKind::ConvTransposeBackwardWeights ? 1 : 0, narrow = 1 - wide;
  const Roles roles = roles_of(problem.attrs, problem.in[static_cast<size_t>(wide)],
                               problem.in[static_cast<size_t>(narrow)], problem.out[0], AsImage::column);
  const Descs have = descs_of(roles);
  const Windows w = windows_of(problem.attrs, roles);
  if (!w.each_has_a_cell) return kEmptyWindow;
  if (roles.wide.dtype != Dtype::f32 && !(w.each_tap_has_a_cell && w.steps_stay_inside)) return kUnusualWindows;
  const auto attr = math_attr(target);
  const auto hint = forward_desc(free_descs(have), {}, w, attr, prop_kind::forward_training, false);
  using Desc = dnnl::convolution_backward_weights::primitive_desc;
  const auto desc = fastest(roles, w, have, target, [&](const Descs& d) {
    Desc made(cpu_engine(), dnnl::algorithm::convolution_direct, d.wide, d.weights, d.narrow, w.strides, w.dilations,
              w.begin, w.end, hint, attr, kAllowEmpty);
    return made && walks_channels_slowly(made, roles, d) ? Desc() : made;
  });
  if (const char* reason = refuse(desc, roles)) return reason;
  run.add(desc,
          {run.reads(DNNL_ARG_SRC, run.in(problem, wide), have.wide, desc.src_desc()),
           run.reads(DNNL_ARG_DIFF_DST, run.in(problem, narrow), have.narrow, desc.diff_dst_desc()),
           run.writes(DNNL_ARG_DIFF_WEIGHTS, run.out(problem, 0), have.weights, desc.diff_weights_desc())},
          scratchpad_for(roles, target));
  return nullptr;
}

}  // namespace partita::onednn
