// SPDX-License-Identifier: Apache-2.0
// MatMul with bias.
#include <algorithm>
#include <string_view>

#include "kernels/onednn/matmul_views.hpp"
#include "kernels/onednn/post_ops.hpp"
#include "kernels/onednn/rows.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"

namespace partita::onednn {
namespace {

using dnnl::memory;

/// oneDNN 3.7 walks the matrices of a batch as if they followed each other where the largest of the batch axes' strides
/// is as many times the smallest as there are matrices, though there are gaps between those of two axes: a slice of the
/// keys of several heads that have their values behind them.
bool is_taken_for_dense(const TensorDesc& tensor) {
  int64_t least = INT64_MAX, most = 0, count = 1;
  int axes = 0;
  for (int axis = 0; axis < tensor.dims.size() - 2; ++axis) {
    if (tensor.dims[axis] <= 1) continue;
    least = std::min(least, tensor.strides[axis]);
    most = std::max(most, tensor.strides[axis]);
    count *= tensor.dims[axis];
    ++axes;
  }
  return axes > 1 && least > 0 && most / least == count;
}

/// True where the matrices of a batch interleave in memory, as those of heads do that stand beside each other in a row,
/// or no axis of a matrix is contiguous: oneDNN 3.7 accepts such operands and multiplies them wrongly.
bool is_unusual(const TensorDesc& tensor) {
  if (is_taken_for_dense(tensor)) return true;
  const int row = tensor.dims.size() - 2, column = row + 1;
  const int64_t matrix =
      (tensor.dims[row] - 1) * tensor.strides[row] + (tensor.dims[column] - 1) * tensor.strides[column] + 1;
  for (int axis = 0; axis < row; ++axis) {
    if (tensor.dims[axis] > 1 && tensor.strides[axis] < matrix) return true;
  }
  const auto contiguous = [&](int axis) { return tensor.dims[axis] > 1 && tensor.strides[axis] == 1; };
  return matrix > 1 && !contiguous(row) && !contiguous(column);
}

/// Matrices that primitives take: `tensor`, or where it is unusual, matrices one behind another, by columns where that
/// is how they lie, so that a copy moves runs of elements.
TensorDesc usual(const TensorDesc& tensor) {
  if (!is_unusual(tensor)) return tensor;
  const int row = tensor.dims.size() - 2, column = row + 1;
  TensorDesc made = dense(tensor);
  if (tensor.dims[row] == 1 || tensor.strides[row] != 1) return made;
  made.strides[row] = 1;
  made.strides[column] = tensor.dims[row];
  return made;
}

bool lies_by_columns(const TensorDesc& tensor) {
  const int row = tensor.dims.size() - 2, column = row + 1;
  return tensor.dims[row] > 1 && tensor.dims[column] > 1 && tensor.strides[row] < tensor.strides[column];
}

/// Less than this much along an axis, and a copy costs more than it saves.
constexpr int64_t kWorthCopy = 256;

/// Larger matrices (the projection to a vocabulary) are not held twice.
bool has_room_for_copy(const TensorDesc& tensor) {
  constexpr size_t kMostBytes = size_t{1} << 28;
  return bytes_for(tensor.dtype, elements(tensor.dims)) <= kMostBytes;
}

/// A matrix that lies by columns is turned by the primitive piece by piece where tiles (AMX) multiply, which takes
/// longer than turning all of it before.
bool is_turned_before(const MatmulViews& v) {
  return v.a.dtype == Dtype::bf16 && has_isa(dnnl::cpu_isa::avx512_core_amx) && lies_by_columns(v.a) &&
         is_one_matrix(v.dst) && v.dst.dims.back() >= kWorthCopy && has_room_for_copy(v.a);
}

/// One matrix that many rows are multiplied with is brought into the primitive's order for each execution: where it
/// lies by rows, those rows are far apart for what walks them in blocks.
bool is_packed_each_time(const MatmulViews& v) {
  constexpr int64_t kManyRows = 768;
  const int64_t columns = v.dst.dims.back(), rows = elements(v.dst.dims) / std::max<int64_t>(columns, 1);
  return (v.b.dtype == Dtype::f32 || v.b.dtype == Dtype::bf16) && v.a.dtype == v.b.dtype && is_one_matrix(v.b) &&
         !lies_by_columns(v.b) && rows >= kManyRows && columns >= kWorthCopy && v.a.dims.back() >= kWorthCopy &&
         has_room_for_copy(v.b);
}

/// Faults of oneDNN 3.7's brgemm kernels, found by differential tests. With AVX2 those of two types leave out results
/// where matrices of a few rows lie by columns. With AMX it reads something else of an operand that has a number for
/// each row and repeats along a batch axis before one along which it does not.
bool is_faulty(const dnnl::matmul::primitive_desc& desc, const MatmulViews& v) {
  constexpr int64_t kFewRows = 8;
  const std::string_view name = desc.impl_info_str();
  if (name.find("brg_matmul") == std::string_view::npos) return false;
  if (name.find("avx2") != std::string_view::npos && v.a.dtype != v.b.dtype && v.a.dims.back() < kFewRows) return true;
  if (name.find("amx") == std::string_view::npos) return false;
  const int row = v.dst.dims.size() - 2, column = row + 1;
  return std::ranges::any_of(v.operands, [&](const TensorDesc& operand) {
    if (operand.dims[row] == 1 || operand.dims[column] != 1) return false;
    bool repeats = false;
    for (int axis = 0; axis < row; ++axis) {
      if (repeats && operand.dims[axis] > 1) return true;
      repeats = repeats || operand.dims[axis] != v.dst.dims[axis];
    }
    return false;
  });
}

/// A fault of oneDNN 3.7's brgemm kernel, found by random graphs: f32 times 16 bits in the primitive's own order,
/// summed over more than it takes at once.
bool is_faulty_packed(const dnnl::matmul::primitive_desc& desc, const MatmulViews& v) {
  constexpr int64_t kMostAtOnce = 512;
  return v.a.dtype != v.b.dtype && is_floating(v.b.dtype) && v.a.dims.back() > kMostAtOnce &&
         desc.weights_desc().get_inner_nblks() > 0;
}

/// The bias as primitives read it: one number behind the other.
memory::desc bias_wanted(const TensorDesc& bias) {
  return desc_of(bias.dims.back() == 1 || bias.strides.back() == 1 ? bias : dense(bias));
}

/// How the result lies for the primitive. Operands of post-operations are found by where a result lies, as if there
/// were no gaps.
TensorDesc made_as(const MatmulViews& v) {
  const TensorDesc made = usual(v.dst);
  return v.operands.empty() ? made : compact(made);
}

/// What stands behind the product keeps its batch axes apart: each matrix of a few rows reads all weights anew, while a
/// loop behind one matrix of all rows reads its result from the caches.
bool is_cut_into_few_rows(const Problem& problem, const Product& product, const MatmulViews& v) {
  constexpr int64_t kFewRows = 8;
  const int row = v.dst.dims.size() - 2;
  if (row == 0 || v.dst.dims[row] >= kFewRows || !is_floating(problem.out[0].dtype)) return false;
  return matmul_views(problem, product.src, product.weights, {}).dst.dims.size() == 2;
}

/// Products of the BLAS kind, most that there are of f32 without AVX-512: post-operations run over the finished result,
/// and keep its batch axes apart. A loop that reads the result from the caches takes less time.
bool has_slow_post_ops(const dnnl::matmul::primitive_desc& desc) {
  return !has_isa(dnnl::cpu_isa::avx512_core) && std::string_view(desc.impl_info_str()).starts_with("gemm");
}

dnnl::accumulation_mode accumulation_of(const Attrs& attrs) {
  if (attrs.is(Attr::accumulation_mode, "relaxed")) return dnnl::accumulation_mode::relaxed;
  if (attrs.is(Attr::accumulation_mode, "any")) return dnnl::accumulation_mode::any;
  if (attrs.is(Attr::accumulation_mode, "f32")) return dnnl::accumulation_mode::f32;
  if (attrs.is(Attr::accumulation_mode, "s32")) return dnnl::accumulation_mode::s32;
  if (attrs.is(Attr::accumulation_mode, "f16")) return dnnl::accumulation_mode::f16;
  return dnnl::accumulation_mode::strict;
}

/// The axis of the columns of b, in the user's order.
int column_axis(const Problem& problem, const TensorDesc& b) {
  const int rank = b.dims.size();
  return rank > 1 && problem.attrs.flag_or(Attr::transpose_b, false) ? rank - 2 : rank - 1;
}

dnnl::primitive_attr attr_of(const Problem& problem, const Target& target, const Product& product) {
  dnnl::primitive_attr attr = math_attr(target);
  attr.set_accumulation_mode(accumulation_of(problem.attrs));
  const bool decompresses =
      product.weights_front && !is_floating(product.weights.dtype) && is_floating(product.src.dtype);
  if (!decompresses) return attr;
  // integers that stand for numbers are multiplied in the type of the other side
  const Dtype type = product.src.dtype;
  const auto mode = type == Dtype::bf16  ? dnnl::fpmath_mode::bf16
                    : type == Dtype::f16 ? dnnl::fpmath_mode::f16
                                         : attr.get_fpmath_mode();
  attr.set_fpmath_mode(mode, true);
  return attr;
}

}  // namespace

const char* plan_matmul(const Problem& problem, const Target& target, PrimitiveRun& run) {
  Product product;
  if (const char* reason = read_product(problem, product)) return reason;
  if (const char* reason = slower_than_loops(problem, product, target)) return reason;
  if (product.src.dims.empty() || product.weights.dims.empty()) return "an operand is a scalar";
  std::vector<TensorDesc> operands;
  for (const PostOp& op : product.post_ops)
    if (op.operand >= 0) operands.push_back(with_unit_axes(problem.in[static_cast<size_t>(op.operand)]));
  const MatmulViews v = matmul_views(problem, product.src, product.weights, std::move(operands));
  if (leaves_to_loops(product, target) && is_cut_into_few_rows(problem, product, v))
    return "what stands behind the product would cut it into products of a few rows";
  const TensorDesc made = made_as(v);
  const memory::desc a = desc_of(is_turned_before(v) ? dense(v.a) : usual(v.a)), b = desc_of(usual(v.b)),
                     dst = desc_of(made);
  const memory::desc bias = v.bias.empty() ? memory::desc() : bias_wanted(v.bias[0]);
  const int axis = column_axis(problem, product.weights);
  const Around around(problem, product, made, v.operands,
                      {axis, 1 << (v.b.dims.size() - 1), product.weights.dims.size() > 1 ? v.b.dims.back() : -1});
  dnnl::primitive_attr attr = attr_of(problem, target, product);
  if (!around.describe(attr, false)) return "scales or zero points lie in an unusual way";
  const bool packs =
      (target.keeps_packs && problem.is_constant(static_cast<size_t>(product.weights_at))) || is_packed_each_time(v);
  dnnl::matmul::primitive_desc desc(cpu_engine(), a, packs ? any_layout(b) : b, bias, dst, attr);
  if (packs && is_faulty_packed(desc, v)) desc = {cpu_engine(), a, b, bias, dst, attr};
  while (is_faulty(desc, v))
    if (!desc.next_impl()) return "oneDNN misreads an operand of a post-operation";
  if (leaves_to_loops(product, target) && is_floating(problem.out[0].dtype) && has_slow_post_ops(desc))
    return "the primitive would compute what stands behind after the product, a loop does it faster";
  std::vector<Operand> arguments = {
      run.reads(DNNL_ARG_SRC, run.in(problem, product.src_at), desc_of(v.a), a),
      run.reads(DNNL_ARG_WEIGHTS, run.in(problem, product.weights_at), desc_of(v.b), desc.weights_desc()),
      run.writes(DNNL_ARG_DST, run.out(problem, 0), same_strides(v.dst, made) ? dst : desc_of(v.dst), dst)};
  if (!v.bias.empty()) arguments.push_back(run.reads(DNNL_ARG_BIAS, run.in(problem, 2), desc_of(v.bias[0]), bias));
  around.arguments(desc, run, arguments);
  run.add(desc, std::move(arguments));
  return nullptr;
}

}  // namespace partita::onednn
