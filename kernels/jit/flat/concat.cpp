// SPDX-License-Identifier: Apache-2.0
// Concatenations as rows of bytes that consist of a piece of each source, so that a result is written from its first
// line to its last one. Rows of short pieces are copied by generated code; large results, whose rows may begin inside
// lines, leave through lines in scratch memory. Long pieces are copied one by one, and threads share their bytes.
#include "kernels/jit/flat/concat.hpp"

#include <algorithm>
#include <array>
#include <memory>

#include "kernels/jit/code/run_of.hpp"
#include "kernels/jit/flat/concat_kernel.hpp"
#include "kernels/jit/flat/each_run.hpp"
#include "kernels/jit/flat/exceeds_cache.hpp"
#include "kernels/jit/flat/flat_parts.hpp"
#include "kernels/jit/flat/staging.hpp"
#include "kernels/loop/collapse.hpp"
#include "src/base/check.hpp"
#include "src/base/dtype.hpp"
#include "src/base/round.hpp"
#include "src/base/shape.hpp"
#include "src/base/threads.hpp"

namespace partita::jit {
namespace {

constexpr int64_t kLongPiece = 4096;  ///< bytes of pieces, on average, to which a call of their own is nothing
constexpr int64_t kUnit = 4096;       ///< bytes: what is shared out of long pieces

struct Plan {
  std::vector<int64_t> pieces;  ///< bytes of each source in a row of the result
  Problem rows;                 ///< the tensors over rows; at least one axis
  int64_t row_bytes = 0;
};

/// The tensor without axes but `axes`.
TensorDesc over(const TensorDesc& desc, const Dims& axes) {
  TensorDesc rows{desc.dtype, {}, {}, desc.offset};
  for (int64_t d : axes) {
    rows.dims.push_back(desc.dims[static_cast<int>(d)]);
    rows.strides.push_back(desc.strides[static_cast<int>(d)]);
  }
  if (axes.empty()) rows.dims = {1}, rows.strides = {0};
  return rows;
}

const char* plan_of(const Problem& p, Plan& plan) {
  constexpr const char* kNotARun = "the elements of a piece are not next to each other";
  const TensorDesc& out = p.out[0];
  const auto axis = normal_axis(p.attrs.i64(Attr::axis), out.dims.size());
  if (!axis) return "`axis` is out of range";
  if (bits_of(out.dtype) < 8) return "elements are less than bytes";
  if (p.in.size() > kMaxLoopOperands) return "too many operands";
  const auto lies = [&](const TensorDesc& desc, int d, int64_t stride) {
    return desc.dims[d] == 1 || desc.strides[d] == stride;
  };
  const auto all_lie = [&](int d, int64_t stride) {
    return lies(out, d, stride) && std::ranges::all_of(p.in, [&](const TensorDesc& in) { return lies(in, d, stride); });
  };
  Dims order = axes_in_memory_order(out.strides);
  int64_t run = 1;  // elements that one index along the axis has
  while (order.back() != *axis) {
    const int d = static_cast<int>(order.back());
    if (!all_lie(d, run)) return kNotARun;
    run *= out.dims[d];
    order.erase(order.size() - 1);
  }
  order.erase(order.size() - 1);
  if (!all_lie(*axis, run)) return kNotARun;
  for (const TensorDesc& in : p.in) {
    if (elements(in.dims) == 0) return "a tensor has no elements";
    plan.pieces.push_back(in.dims[*axis] * run * element_bytes(in.dtype));
    plan.row_bytes += plan.pieces.back();
    plan.rows.in.push_back(over(in, order));
  }
  plan.rows.out.push_back(over(out, order));
  plan.rows = collapsed(plan.rows);
  return nullptr;
}

class Concat {
 public:
  Concat(const Problem& p, const Target& target) : threads_(std::max(target.threads, 1)) {
    PT_ASSERT(plan_of(p, plan_) == nullptr);
    rows_ = plan_.rows.out[0].dims;
    for (const TensorDesc& desc : plan_.rows.in) in_.emplace_back(desc);
    out_.emplace(plan_.rows.out[0]);
    each_ = element_bytes(p.out[0].dtype);
    large_ = exceeds_cache(p);
    long_ = plan_.row_bytes / static_cast<int64_t>(plan_.pieces.size()) >= kLongPiece;
    if (!long_) make_kernels(target.isa);
  }

  size_t scratch_bytes() const { return staging_.scratch_bytes(); }

  Status operator()(const RunArgs& args) const {
    const int64_t rows = elements(rows_);
    if (long_) {
      const int64_t bytes = rows * plan_.row_bytes, units = (bytes + kUnit - 1) / kUnit;
      parallel_for(units, kUnit / each_, [&](int64_t begin, int64_t end) {
        if (rows < threads_)
          copy_shares(args, begin, end, units);
        else
          copy_bytes(args, begin * kUnit, std::min(end * kUnit, bytes));
        if (large_) end_streaming();
      });
      return {};
    }
    const bool streams = streaming_ && outputs_aligned(args);
    const auto part = [&](int64_t begin, int64_t end, int number) {
      StagedLines lines = staging_.lines(args.scratch, number);
      each_run(begin, end, rows_, [&](const Dims& at, int64_t n) {
        if (staging_)
          stage(args, at, n, lines);
        else
          run(streams ? *streaming_ : *plain_, args, at, n);
      });
      lines.finish();
      if (streams || staging_) end_streaming();
    };
    parallel_for(rows, plan_.row_bytes / each_, part, static_cast<int>(threads_));
    return {};
  }

 private:
  using Sources = std::array<const void*, kMaxLoopOperands>;

  void make_kernels(Isa isa) {
    const int last = rows_.size() - 1;
    ConcatShape shape{.pieces = {}, .dst_row = plan_.rows.out[0].strides[last] * each_};
    if (large_) shape.fetching = Fetching::of_many_streams();
    for (size_t k = 0; k < plan_.pieces.size(); ++k)
      shape.pieces.push_back({plan_.pieces[k], plan_.rows.in[k].strides[last] * each_});
    plain_ = std::make_shared<const ConcatKernel>(isa, shape);
    if (!large_) return;
    if (lines_alone()) {
      shape.streaming = true;
      streaming_ = std::make_shared<const ConcatKernel>(isa, shape);
    } else if (shape.dst_row == plan_.row_bytes || rows_[last] == 1) {
      staging_ = Staging(threads_, plan_.row_bytes, rows_[last]);
    }
  }

  /// Pieces are whole cache lines of the result.
  bool lines_alone() const {
    const TensorDesc& out = plan_.rows.out[0];
    const auto whole = [](int64_t bytes) { return bytes % kCacheLine == 0; };
    return std::ranges::all_of(plan_.pieces, whole) && whole(out.offset * each_) &&
           std::ranges::all_of(out.strides, [&](int64_t stride) { return whole(stride * each_); });
  }

  std::byte* result(const RunArgs& args, const Dims& at) const {
    return const_cast<std::byte*>(out_->row(args.out[0], at));
  }

  Sources sources(const RunArgs& args, const Dims& at) const {
    Sources from;
    for (size_t k = 0; k < in_.size(); ++k) from[k] = in_[k].row(args.in[k], at);
    return from;
  }

  void run(const ConcatKernel& kernel, const RunArgs& args, const Dims& at, int64_t n) const {
    Sources from = sources(args, at);
    kernel(from.data(), result(args, at), n);
  }

  void stage(const RunArgs& args, Dims at, int64_t n, StagedLines& lines) const {
    staging_.run(lines, result(args, at), n, [&](int64_t, int64_t some, std::byte* to) {
      Sources from = sources(args, at);
      (*plain_)(from.data(), to, some);
      at.back() += some;
    });
  }

  /// Of all rows as if they followed each other.
  void copy_bytes(const RunArgs& args, int64_t begin, int64_t end) const {
    while (begin < end) {
      const Dims at = coordinates(begin / plan_.row_bytes, rows_);
      std::byte* const to = result(args, at);
      int64_t done = begin % plan_.row_bytes, piece = 0;
      const int64_t stop = std::min(plan_.row_bytes, done + end - begin);
      begin += stop - done;
      for (size_t k = 0; k < in_.size() && done < stop; piece += plan_.pieces[k++]) {
        const int64_t some = std::min(piece + plan_.pieces[k], stop) - done;
        if (some <= 0) continue;
        copy(to + done, in_[k].row(args.in[k], at) + (done - piece), static_cast<size_t>(some));
        done += some;
      }
    }
  }

  /// Of each piece from this share on to that one of so many: the thread that made a part of a source has it at hand.
  void copy_shares(const RunArgs& args, int64_t begin, int64_t end, int64_t shares) const {
    const auto start = [&](int64_t bytes, int64_t share) {
      return share == shares ? bytes : bytes * share / shares / kCacheLine * kCacheLine;
    };
    for (int64_t row = 0; row < elements(rows_); ++row) {
      const Dims at = coordinates(row, rows_);
      std::byte* to = result(args, at);
      for (size_t k = 0; k < in_.size(); to += plan_.pieces[k++]) {
        const int64_t from = start(plan_.pieces[k], begin), stop = start(plan_.pieces[k], end);
        if (from < stop) copy(to + from, in_[k].row(args.in[k], at) + from, static_cast<size_t>(stop - from));
      }
    }
  }

  void copy(std::byte* to, const std::byte* from, size_t bytes) const {
    large_ ? stream_copy(to, from, bytes, from + Fetching::kFewStreams) : cached_copy(to, from, bytes);
  }

  Plan plan_;
  int64_t threads_;
  Dims rows_;
  std::vector<RowPlaces> in_;
  std::optional<RowPlaces> out_;
  int64_t each_ = 1;  ///< bytes of an element
  bool large_ = false, long_ = false;
  Staging staging_;
  std::shared_ptr<const ConcatKernel> plain_, streaming_;
};

}  // namespace

const char* refuse_concat(const Problem& problem, const Target&) {
  Plan plan;
  return plan_of(problem, plan);
}

Result<Run> make_concat(const Problem& problem, const Target& target) { return run_of<Concat>(problem, target); }

}  // namespace partita::jit
