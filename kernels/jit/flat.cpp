// SPDX-License-Identifier: Apache-2.0
// Flat loops: choice of the walk, then generated code over rows. Axes are put in the order of the result's memory and
// joined; a long innermost axis is cut into rows of kRow elements, so that threads can share it.
#include "kernels/jit/flat.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>

#include "kernels/jit/expand.hpp"
#include "kernels/jit/flat_kernel.hpp"
#include "kernels/jit/run_of.hpp"
#include "kernels/loop/collapse.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/threads.hpp"

namespace partita::jit {
namespace {

constexpr int64_t kRow = 2048;
constexpr size_t kMaxOperands = 160;
constexpr int64_t kAlignment = 64;
constexpr int64_t kFreeOperations = 32;  ///< operations that hide behind the loads and stores of a vector

/// Axes sorted so that the result is walked as it lies in memory.
Problem in_memory_order(const Problem& loop) {
  const TensorDesc& result = loop.out[0];
  std::array<int, kMaxRank> order{};
  const int rank = result.dims.size();
  std::iota(order.begin(), order.begin() + rank, 0);
  std::stable_sort(order.begin(), order.begin() + rank,
                   [&](int a, int b) { return result.strides[a] > result.strides[b]; });
  Dims axes;
  for (int d = 0; d < rank; ++d) axes.push_back(order[static_cast<size_t>(d)]);
  Problem p = loop;
  for (auto* side : {&p.in, &p.out})
    for (TensorDesc& desc : *side) {
      desc.dims = permuted(desc.dims, axes);
      desc.strides = permuted(desc.strides, axes);
    }
  for (Instr& in : p.back.code)
    if (in.op == ExprOp::index_s32)
      in.imm = static_cast<int32_t>(std::find(axes.begin(), axes.end(), int64_t{in.imm}) - axes.begin());
  return p;
}

/// The loop as generated code wants it: at least one axis, as few as possible.
Problem prepared(const Problem& loop) {
  Problem p = collapsed(in_memory_order(loop));
  for (auto* side : {&p.in, &p.out})
    for (TensorDesc& desc : *side)
      if (desc.dims.empty()) {
        desc.dims = {1};
        desc.strides = {1};
      }
  return p;
}

bool reads_coordinates(const Expr& expr) {
  return std::any_of(expr.code.begin(), expr.code.end(), [](const Instr& in) { return in.op == ExprOp::index_s32; });
}

const char* refuse_operand(const TensorDesc& desc, bool output) {
  if (output ? !Emitter::stores(desc.dtype) : !Emitter::loads(desc.dtype))
    return "an operand's type has no generated conversion";
  const int64_t step = desc.dims.back() == 1 ? 1 : desc.strides.back();
  if (step != 1 && (output || step != 0)) return "an operand's elements are not next to each other";
  return nullptr;
}

/// A block of rows of one length with its code.
struct Part {
  Dims rows;  ///< extents of the row axes
  int64_t length = 0;
  std::vector<TensorDesc> in, out;                     ///< over the row axes; offset of the part's first element
  std::shared_ptr<const FlatKernel> plain, streaming;  ///< streaming: null where the result may stay in the caches
};

class FlatLoop {
 public:
  FlatLoop(const Problem& loop, const Target& target)
      : problem_(prepared(loop)), lanes_(expanded(problem_.back, problem_)), target_(target) {
    cost_ = 1 + static_cast<int64_t>(lanes_.code.size()) / kFreeOperations;
    coordinates_ = reads_coordinates(problem_.back);
    const int64_t length = problem_.out[0].dims.back();
    const int64_t row = length > kRow ? kRow : length;
    add_part(0, length / row, row);
    if (length % row > 0) add_part(length / row * row, 1, length % row);
  }

  Status operator()(const RunArgs& args) const {
    for (const Part& part : parts_) run(part, args);
    return {};
  }

 private:
  /// Elements [start, start + rows * length) of the innermost axis.
  void add_part(int64_t start, int64_t rows, int64_t length) {
    Part part;
    part.length = length;
    RowShape shape{length, {}, {}, false};
    auto add = [&](const TensorDesc& desc, std::vector<TensorDesc>& views, std::vector<RowOperand>& operands) {
      TensorDesc view = desc;
      const int64_t step = desc.dims.back() == 1 ? 0 : desc.strides.back();
      view.offset += start * step;
      view.dims.back() = rows;
      view.strides.back() = step * length;
      const int inner_rows = row_axis(view.dims);
      operands.push_back({desc.dtype, step != 0, view.strides[inner_rows] * bits_of(desc.dtype) / 8});
      views.push_back(view);
    };
    for (const TensorDesc& desc : problem_.in) add(desc, part.in, shape.in);
    for (const TensorDesc& desc : problem_.out) add(desc, part.out, shape.out);
    part.rows = part.out[0].dims;
    const int inner_axis = problem_.out[0].dims.size() - 1;
    part.plain = std::make_shared<const FlatKernel>(target_.isa, lanes_, shape, inner_axis);
    shape.streaming = may_stream(part);
    if (shape.streaming) part.streaming = std::make_shared<const FlatKernel>(target_.isa, lanes_, shape, inner_axis);
    parts_.push_back(std::move(part));
  }

  /// The axis that a call walks: the last one with more than one row.
  static int row_axis(const Dims& rows) {
    int axis = rows.size() - 1;
    while (axis > 0 && rows[axis] == 1) --axis;
    return axis;
  }

  /// The result does not fit its share of the last-level cache, and every row starts where a streaming store may.
  bool may_stream(const Part& part) const {
    int64_t bytes = 0;
    for (const TensorDesc& desc : part.out) {
      const int64_t each = bits_of(desc.dtype) / 8;
      bytes += elements(part.rows) * part.length * each;
      if (desc.offset * each % kAlignment != 0) return false;
      for (int d = 0; d < part.rows.size(); ++d)
        if (part.rows[d] > 1 && desc.strides[d] * each % kAlignment != 0) return false;
    }
    return bytes > static_cast<int64_t>(last_level_cache_bytes() / 2);
  }

  static bool aligned(const RunArgs& args) {
    return std::all_of(args.out.begin(), args.out.end(),
                       [](void* p) { return reinterpret_cast<uintptr_t>(p) % kAlignment == 0; });
  }

  void run(const Part& part, const RunArgs& args) const {
    const FlatKernel& kernel = part.streaming && aligned(args) ? *part.streaming : *part.plain;
    const int axis = row_axis(part.rows);
    const int64_t run_length = coordinates_ ? 1 : part.rows[axis];
    parallel_for(elements(part.rows), part.length * cost_, [&](int64_t begin, int64_t end) {
      while (begin < end) {
        Dims at = coordinates(begin, part.rows);
        const int64_t left = part.rows[axis] - at[axis];
        const int64_t rows = std::min({run_length, left, end - begin});
        call(kernel, part, args, at, rows);
        begin += rows;
      }
    });
  }

  void call(const FlatKernel& kernel, const Part& part, const RunArgs& args, const Dims& at, int64_t rows) const {
    std::array<const void*, kMaxOperands> in;
    std::array<void*, kMaxOperands> out;
    auto address = [&](const void* base, const TensorDesc& desc) {
      int64_t element = desc.offset;
      for (int d = 0; d < at.size(); ++d) element += at[d] * desc.strides[d];
      return static_cast<const std::byte*>(base) + element * bits_of(desc.dtype) / 8;
    };
    for (size_t k = 0; k < part.in.size(); ++k) in[k] = address(args.in[k], part.in[k]);
    for (size_t k = 0; k < part.out.size(); ++k) out[k] = const_cast<std::byte*>(address(args.out[k], part.out[k]));
    std::array<int32_t, kMaxRank> place{};
    if (coordinates_) {
      for (int d = 0; d < at.size(); ++d) place[static_cast<size_t>(d)] = static_cast<int32_t>(at[d]);
      // The innermost axis was cut into rows.
      place[static_cast<size_t>(at.size() - 1)] = static_cast<int32_t>(start_of(part) + at.back() * part.length);
    }
    kernel({in.data(), out.data(), place.data(), rows});
  }

  int64_t start_of(const Part& part) const {
    return &part == &parts_[0] ? 0 : parts_[0].rows.back() * parts_[0].length;
  }

  Problem problem_;
  Lanes lanes_;
  Target target_;
  std::vector<Part> parts_;
  int64_t cost_ = 1;
  bool coordinates_ = false;
};

}  // namespace

const char* refuse_flat(const Problem& problem, const Target&) {
  if (problem.in.size() > kMaxOperands || problem.out.size() > kMaxOperands) return "too many operands";
  if (const char* reason = refuse_expansion(problem.back, problem)) return reason;
  const Problem p = prepared(problem);
  for (const TensorDesc& desc : p.in)
    if (const char* reason = refuse_operand(desc, false)) return reason;
  for (const TensorDesc& desc : p.out)
    if (const char* reason = refuse_operand(desc, true)) return reason;
  return nullptr;
}

Result<Run> make_flat(const Problem& problem, const Target& target) { return run_of<FlatLoop>(problem, target); }

}  // namespace partita::jit
