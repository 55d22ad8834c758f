// SPDX-License-Identifier: Apache-2.0
// Batches of small products as matrices times vectors: rows of the result that share a matrix are its vectors. They are
// copied to f32 first, results to their type last; both are few beside the matrix.
#include "kernels/jit/products/few_rows.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/float_copy.hpp"
#include "kernels/jit/code/run_of.hpp"
#include "kernels/jit/products/few_rows_kernel.hpp"
#include "src/base/check.hpp"
#include "src/base/cpu.hpp"
#include "src/base/dtype.hpp"
#include "src/base/round.hpp"
#include "src/base/shape.hpp"
#include "src/base/threads.hpp"

namespace partita::jit {
namespace {

using Form = FewRowsShape::Form;

constexpr int64_t kFewVectors = 4;
constexpr int64_t kLargeMatrix = 1 << 17, kLeastMatrix = 1 << 12;  ///< elements
constexpr int64_t kManyMatrices = 16;
constexpr int64_t kLeastRows = 16;
constexpr int64_t kChunkBytes = 16 << 10;  ///< of a matrix that is walked several times, for some columns each
constexpr int64_t kRowsOfTask = 256;
constexpr int64_t kLarge = int64_t{1} << 24;  ///< elements: distances in code have 32 bits

TensorDesc matrix_of(const TensorDesc& desc, bool transposed) {
  const int last = desc.dims.size() - 1;
  return transposed ? with_axis_moved(desc, last, last - 1) : desc;
}

/// One axis of the result.
struct Axis {
  int64_t extent, rows, matrix, result;  ///< strides: of the first factor, the second one and the result
};

/// The product as matrices times vectors.
struct Plan {
  Form form = Form::dots;
  std::vector<Axis> batch;          ///< a matrix each
  std::vector<Axis> vectors;        ///< that share a matrix
  int64_t matrices = 1, count = 1;  ///< and vectors of each
  int64_t summed = 1, columns = 1;
  int64_t rows_stride = 0;  ///< of the first factor along the summed axis
  int64_t row_stride = 0;   ///< of the matrix: of the axis that is not side by side
};

const char* plan(const Problem& p, Plan& plan) {
  if (p.fused() || p.in.size() != 2) return "more than a product of two tensors";
  const TensorDesc& dst = p.out[0];
  const int rank = dst.dims.size();
  if (p.in[0].dims.size() < 2 || p.in[1].dims.size() < 2 || rank < 3) return "no batch of matrices";
  const auto known = [](Dtype d) { return d == Dtype::f32 || d == Dtype::bf16 || d == Dtype::f16; };
  if (!known(p.in[0].dtype) || p.in[0].dtype != p.in[1].dtype || !known(dst.dtype)) return "other types than floats";
  if (elements(dst.dims) == 0) return "no elements";
  const TensorDesc a = matrix_of(p.in[0], p.attrs.flag_or(Attr::transpose_a, false)),
                   b = matrix_of(p.in[1], p.attrs.flag_or(Attr::transpose_b, false));
  const auto stride = [&](const TensorDesc& t, int d) {
    const int own = d + t.dims.size() - rank;
    return own < 0 || t.dims[own] == 1 ? 0 : t.strides[own];
  };
  for (int d = 0; d + 1 < rank; ++d) {
    if (dst.dims[d] == 1) continue;
    const bool row = d == rank - 2;
    const Axis axis{dst.dims[d], stride(a, d), row ? 0 : stride(b, d), dst.strides[d]};
    (axis.matrix == 0 ? plan.vectors : plan.batch).push_back(axis);
    (axis.matrix == 0 ? plan.count : plan.matrices) *= axis.extent;
  }
  const int rows = b.dims.size() - 2, columns = rows + 1;
  plan.summed = b.dims[rows];
  plan.columns = b.dims[columns];
  plan.rows_stride = a.strides[a.dims.size() - 1];
  if (plan.count > FewRowsKernel::kMostVectors) return "many rows share a matrix";
  if (plan.matrices == 1) return "no batch of matrices";
  if (std::max(plan.summed, plan.columns) > kLarge) return "large matrices";
  const int64_t least = plan.count > kFewVectors ? kLargeMatrix : kLeastMatrix;
  if (plan.summed * plan.columns < least) return "small matrices";
  plan.form = b.strides[rows] == 1 && plan.summed > 1 ? Form::dots : Form::sums;
  plan.row_stride = b.strides[plan.form == Form::dots ? columns : rows];
  const bool side_by_side = plan.form == Form::dots || b.strides[columns] == 1;
  const int64_t row = plan.form == Form::dots ? plan.summed : plan.columns;
  if (!side_by_side || row < lanes_of(Isa::avx512)) return "no axis of the matrix has neighbouring elements";
  if (plan.row_stride < row || plan.row_stride > kLarge) return "rows of the matrix lie in an unusual way";
  return nullptr;
}

class FewRows {
 public:
  explicit FewRows(const Problem& p) : dtype_(p.in[1].dtype), matrix_offset_(p.in[1].offset) {
    PT_ASSERT(plan(p, plan_) == nullptr);
    const bool dots = plan_.form == Form::dots;
    length_ = dots ? rounded_up(plan_.summed, lanes_of(Isa::avx512)) : plan_.summed;
    const int64_t each = element_bytes(dtype_);
    FewRowsShape shape{.form = plan_.form,
                       .dtype = dtype_,
                       .columns = dots ? plan_.summed : plan_.columns,
                       .row_bytes = plan_.row_stride * each,
                       .vectors = static_cast<int>(plan_.count),
                       .vector_bytes = length_ * int64_t{sizeof(float)},
                       .result_bytes = plan_.columns * int64_t{sizeof(float)}};
    if (!dots) {
      width_ = std::min(plan_.columns, FewRowsKernel::most_columns(shape.vectors));
      shape.columns = width_;
      if (const int64_t left = plan_.columns % width_; left != 0) {
        FewRowsShape narrow = shape;
        narrow.columns = left;
        narrow_ = std::make_shared<const FewRowsKernel>(narrow);
      }
    }
    kernel_ = std::make_shared<const FewRowsKernel>(shape);
  }

  /// Copies that bring vectors together and results apart: all axes in the order batch, vectors, elements.
  Status make_copies(const Problem& p, const Target& target) {
    TensorDesc from{p.in[0].dtype, {}, {}, p.in[0].offset}, vectors{Dtype::f32, {}, {}, 0};
    TensorDesc to{p.out[0].dtype, {}, {}, p.out[0].offset};
    for (const std::vector<Axis>* axes : {&plan_.batch, &plan_.vectors})
      for (const Axis& axis : *axes) {
        from.dims.push_back(axis.extent);
        from.strides.push_back(axis.rows);
        to.dims.push_back(axis.extent);
        to.strides.push_back(axis.result);
      }
    from.dims.push_back(plan_.summed);
    from.strides.push_back(plan_.rows_stride);
    vectors.dims = from.dims;
    Dims padded = from.dims;
    padded[padded.size() - 1] = length_;
    vectors.strides = dense_strides(padded);
    to.dims.push_back(plan_.columns);
    to.strides.push_back(p.out[0].strides[p.out[0].dims.size() - 1]);
    const TensorDesc sums{Dtype::f32, to.dims, dense_strides(to.dims), 0};
    direct_ = to.dtype == Dtype::f32 && same_strides(to, sums);
    result_offset_ = to.offset;
    PT_ASSIGN(to_floats_, float_copy(from, vectors, target));
    if (!direct_) {
      PT_ASSIGN(to_result_, float_copy(sums, to, target));
    }
    return {};
  }

  size_t scratch_bytes() const {
    return vectors_bytes() + sums_bytes() + std::max(to_floats_.scratch_bytes, to_result_.scratch_bytes);
  }

  Status operator()(const RunArgs& args) const {
    auto* memory = static_cast<std::byte*>(args.scratch);
    auto* vectors = reinterpret_cast<float*>(memory);
    void* rest = memory + vectors_bytes() + sums_bytes();
    if (length_ != plan_.summed) std::memset(vectors, 0, vectors_bytes());  // what stands behind a vector is read
    void* to = vectors;
    PT_TRY(to_floats_.call({{args.in.data(), 1}, {&to, 1}, rest}));
    auto* sums = direct_ ? static_cast<float*>(args.out[0]) + result_offset_
                         : reinterpret_cast<float*>(memory + vectors_bytes());
    multiply(static_cast<const std::byte*>(args.in[1]) + matrix_offset_ * element_bytes(dtype_), vectors, sums);
    if (direct_) return {};
    const void* from = sums;
    return to_result_.call({{&from, 1}, {args.out.data(), 1}, rest});
  }

 private:
  size_t vectors_bytes() const {
    return static_cast<size_t>(aligned(plan_.matrices * plan_.count * length_ * int64_t{sizeof(float)}));
  }
  size_t sums_bytes() const {
    return direct_
               ? 0
               : static_cast<size_t>(aligned(plan_.matrices * plan_.count * plan_.columns * int64_t{sizeof(float)}));
  }

  /// Adds to nothing: results of a task are cleared first. A task has rows of a matrix (dots), or columns of it (sums):
  /// all, if there are matrices enough.
  void multiply(const std::byte* matrices, const float* vectors, float* sums) const {
    const bool dots = plan_.form == Form::dots;
    const int64_t each = dots ? kRowsOfTask : plan_.matrices < kManyMatrices ? width_ : plan_.columns;
    const int64_t tasks = ceil_div(plan_.columns, each), work = plan_.summed * std::min(each, plan_.columns);
    const int64_t bytes = element_bytes(dtype_);
    parallel_for(plan_.matrices * tasks, work, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const int64_t m = t / tasks, first = t % tasks * each, count = std::min(each, plan_.columns - first);
        const float* of = vectors + m * plan_.count * length_;
        float* results = sums + m * plan_.count * plan_.columns;
        for (int64_t v = 0; v < plan_.count; ++v) std::fill_n(results + v * plan_.columns + first, count, 0.0F);
        const std::byte* at = matrices + matrix_at(m) * bytes;
        if (dots)
          (*kernel_)(at + first * plan_.row_stride * bytes, of, results + first, count);
        else
          add_rows(at, of, results, first, count);
      }
    });
  }

  /// Sums of `count` columns, some rows at a time, so that the columns that registers have no room for find them in the
  /// nearest cache.
  void add_rows(const std::byte* matrix, const float* vectors, float* results, int64_t first, int64_t count) const {
    const int64_t bytes = element_bytes(dtype_), row_bytes = plan_.row_stride * bytes;
    const int64_t rows = std::max<int64_t>(kLeastRows, kChunkBytes / row_bytes);
    for (int64_t row = 0; row < plan_.summed; row += rows)
      for (int64_t column = first; column < first + count; column += width_) {
        const FewRowsKernel& kernel = plan_.columns - column < width_ ? *narrow_ : *kernel_;
        kernel(matrix + row * row_bytes + column * bytes, vectors + row, results + column,
               std::min(rows, plan_.summed - row));
      }
  }

  /// Elements from the first matrix to number `m`.
  int64_t matrix_at(int64_t m) const {
    int64_t at = 0;
    for (size_t k = plan_.batch.size(); k-- > 0; m /= plan_.batch[k].extent)
      at += m % plan_.batch[k].extent * plan_.batch[k].matrix;
    return at;
  }

  Plan plan_;
  Dtype dtype_;
  int64_t matrix_offset_, result_offset_ = 0;
  int64_t length_ = 0;  // of a vector in the scratch memory
  int64_t width_ = 0;   // sums: columns of a task
  std::shared_ptr<const FewRowsKernel> kernel_, narrow_;
  bool direct_ = false;  // sums are the result
  Run to_floats_, to_result_;
};

}  // namespace

const char* refuse_few_rows(const Problem& problem, const Target& target) {
  if (target.isa != Isa::avx512) return "made for AVX-512";
  if (target.keeps_packs && problem.is_constant(1)) return "packed matrices are kept";
  Plan made;
  if (const char* reason = plan(problem, made)) return reason;
  const TensorDesc& matrices = problem.in[1];
  const auto bytes = static_cast<int64_t>(bytes_for(matrices.dtype, elements(matrices.dims)));
  // Here a general product needs no other order of the matrix, either.
  if (made.form == Form::sums && matrices.dtype == Dtype::f32 &&
      (made.count > kFewVectors || !leaves_the_caches(bytes)))
    return "rows of f32 in the caches, or many vectors";
  return nullptr;
}

Result<Run> make_few_rows(const Problem& problem, const Target& target) {
  try {
    auto made = std::make_shared<FewRows>(problem);
    PT_TRY(made->make_copies(problem, target));
    return Run{.call = [made](const RunArgs& args) { return (*made)(args); }, .scratch_bytes = made->scratch_bytes()};
  } catch (const Xbyak::Error& e) {
    return status_of(e);
  }
}

}  // namespace partita::jit
