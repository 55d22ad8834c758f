// SPDX-License-Identifier: Apache-2.0
// Lowering of MatMul. A bias that is one row belongs to the product, any other bias is added by a loop. Where code is
// generated, a product with a vector is a loop that folds, and one of vectors a loop that multiplies: both are bound by
// memory, read each element once, in its own type, and take what stands around them.
#include <algorithm>

#include "passes/lower/lowering.hpp"
#include "src/base/shape.hpp"

namespace partita {
namespace {

using Value = ExprBuilder::Value;

/// One value for each column of the result: what product kernels add without cost.
bool is_row(const TensorDesc& bias, const TensorDesc& dst) {
  if (bias.dims.empty() || dst.dims.empty() || bias.dims.back() != dst.dims.back()) return false;
  for (int d = 0; d + 1 < bias.dims.size(); ++d)
    if (bias.dims[d] != 1) return false;
  return true;
}

/// `desc` with its last two axes exchanged where the attribute says so.
TensorDesc matrix(TensorDesc desc, bool transposed) {
  const int rank = desc.dims.size();
  return transposed && rank > 1 ? with_axis_moved(std::move(desc), rank - 1, rank - 2) : desc;
}

/// An axis of a matrix: the last one, or the one before it; what is not there has extent 1.
struct Axis {
  int64_t extent = 1, stride = 0;
  Axis(const TensorDesc& desc, int from_end) {
    const int d = desc.dims.size() - from_end;
    if (d < 0) return;
    extent = desc.dims[d];
    stride = desc.strides[d];
  }
};

constexpr int64_t kLargeMatrix = 1 << 21;  ///< elements, of all matrices of a batch
constexpr int64_t kLeastMatrix = 1 << 12;  ///< of each

class Product {
 public:
  explicit Product(Lowering& l)
      : l_(l),
        a_(matrix(l.input(0), l.op->attrs.flag(Attr::transpose_a))),
        b_(matrix(l.input(1), l.op->attrs.flag(Attr::transpose_b))),
        dst_(l.output(0)) {}

  /// Whether a factor is one vector, and the loop made.
  bool made_of_loops() {
    if (!l_.generates_code() || elements(dst_.dims) == 0 || a_.dims.size() < 2 || b_.dims.size() < 2) return false;
    const Axis inner(a_, 1), rows(a_, 2), columns(b_, 1);
    if (inner.extent == 1) return multiply(), true;
    if (inner.extent == 0) return false;
    const Axis outer(b_, 2);
    if (rows.extent == 1) return is_worth(b_, outer, columns) && (fold(1, outer, columns, 0, inner), true);
    if (columns.extent == 1) return is_worth(a_, inner, rows) && (fold(0, inner, rows, 1, outer), true);
    return false;
  }

 private:
  /// Sums of what lies side by side are quicker than oneDNN's products at any size; where a row is added to what the
  /// rows before gave, they are where the matrix comes from memory, or would be converted first.
  bool is_worth(const TensorDesc& matrix, const Axis& summed, const Axis& kept) const {
    if (repeats(matrix) || (!is_one_matrix(dst_) && summed.extent * kept.extent < kLeastMatrix)) return false;
    return summed.stride < kept.stride || (matrix.dtype != Dtype::f32 && matrix.dtype != Dtype::bf16) ||
           elements(matrix.dims) >= kLargeMatrix;
  }

  /// Whether several vectors share a matrix, which a product of few rows reads once.
  bool repeats(const TensorDesc& matrix) const {
    const Dims strides = batch_strides(matrix);
    return std::ranges::find(strides, 0) != strides.end();
  }

  Value with_bias(LoopStep& loop, Value x) const {
    if (l_.inputs() < 3) return x;
    const Value bias = loop.load(spread(l_.input(2), dst_.dims), l_.input_buffer(2));
    return loop.builder().add(x, bias);
  }

  /// Each row times each column.
  void multiply() {
    LoopStep loop;
    const Value a = loop.load(spread(a_, dst_.dims), l_.input_buffer(0));
    const Value b = loop.load(spread(b_, dst_.dims), l_.input_buffer(1));
    loop.store(dst_, l_.output_buffer(0), with_bias(loop, loop.builder().mul(a, b)));
    l_.add_step(loop.take());
  }

  /// Strides of a factor or of the result along the axes that tell matrices apart; 0 where it repeats.
  Dims batch_strides(const TensorDesc& desc) const {
    Dims strides;
    for (int d = 0; d + 2 < dst_.dims.size(); ++d) {
      if (dst_.dims[d] == 1) continue;
      const int own = d + desc.dims.size() - dst_.dims.size();
      strides.push_back(own < 0 || desc.dims[own] == 1 ? 0 : desc.strides[own]);
    }
    return strides;
  }

  /// Each matrix (an input with its summed and its other axis) times its vector, walked in the order of its memory.
  void fold(int matrix, const Axis& summed, const Axis& kept, int vector, const Axis& along) {
    const bool kept_inside = kept.stride <= summed.stride;
    const auto over = [&](TensorDesc desc, int64_t summed_stride, int64_t kept_stride) {
      desc.strides = batch_strides(desc);
      desc.dims = {};
      for (int d = 0; d + 2 < dst_.dims.size(); ++d)
        if (dst_.dims[d] > 1) desc.dims.push_back(dst_.dims[d]);
      for (const bool keeps : {!kept_inside, kept_inside}) {
        desc.dims.push_back(keeps ? kept.extent : summed.extent);
        desc.strides.push_back(keeps ? kept_stride : summed_stride);
      }
      return desc;
    };
    const bool finished = l_.inputs() < 3 && dst_.dtype == Dtype::f32 && is_dense(dst_.dims, dst_.strides);
    const int sums = finished ? l_.output_buffer(0) : l_.add_temporary(Dtype::f32, dst_.dims);
    LoopStep walk;
    const Value x = walk.load(over(l_.input(matrix), summed.stride, kept.stride), l_.input_buffer(matrix));
    const Value y = walk.load(over(l_.input(vector), along.stride, 0), l_.input_buffer(vector));
    walk.fold(Fold::sum, over(l_.buffer_desc(sums), 0, 1), sums, walk.builder().mul(x, y));
    l_.add_step(walk.take());
    if (finished) return;
    LoopStep finish;
    const Value sum = finish.load(l_.buffer_desc(sums), sums);
    finish.store(dst_, l_.output_buffer(0), with_bias(finish, sum));
    l_.add_step(finish.take());
  }

  Lowering& l_;
  TensorDesc a_, b_, dst_;
};

}  // namespace

Status lower_matmul(Lowering& l) {
  if (Product(l).made_of_loops()) return {};
  const TensorDesc dst = l.output(0);
  Step product = l.whole_op();
  if (l.inputs() < 3 || is_row(l.input(2), dst)) {
    l.add_step(std::move(product));
    return {};
  }
  const int sum = l.add_temporary(Dtype::f32, dst.dims);
  const TensorDesc sum_desc = l.buffer_desc(sum);
  product.problem.in.pop_back();
  product.in.pop_back();
  product.problem.out[0] = sum_desc;
  product.out[0] = sum;
  l.add_step(std::move(product));
  LoopStep loop;
  const auto x = loop.load(sum_desc, sum), bias = loop.load(spread(l.input(2), dst.dims), l.input_buffer(2));
  loop.store(dst, l.output_buffer(0), loop.builder().add(x, bias));
  l.add_step(loop.take());
  return {};
}

}  // namespace partita
