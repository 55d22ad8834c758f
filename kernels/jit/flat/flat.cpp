// SPDX-License-Identifier: Apache-2.0
// Flat loops in generated code: each part's rows are shared by the threads.
#include "kernels/jit/flat/flat.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "kernels/jit/code/expand.hpp"
#include "kernels/jit/code/run_of.hpp"
#include "kernels/jit/flat/block_copy.hpp"
#include "kernels/jit/flat/exceeds_cache.hpp"
#include "kernels/jit/flat/flat_parts.hpp"
#include "kernels/jit/flat/fold_loop.hpp"
#include "kernels/jit/flat/row_tables.hpp"
#include "kernels/jit/flat/side_by_side.hpp"
#include "kernels/loop/fold_plan.hpp"
#include "src/base/dtype.hpp"
#include "src/base/round.hpp"
#include "src/base/shape.hpp"
#include "src/base/threads.hpp"

namespace partita::jit {
namespace {

constexpr int64_t kLongestJoined = 512, kLeastJoined = 4096;  ///< elements of a row, of rows that follow each other
constexpr int64_t kFreeOperations = 32;  ///< operations that hide behind the loads and stores of a vector

/// A part with its code.
struct Part {
  FlatPart flat = {};
  std::shared_ptr<const FlatKernel> plain = nullptr;
  std::shared_ptr<const FlatKernel> streaming = nullptr;  ///< null where the result may stay in the caches
  int64_t together = 0;     ///< elements that streaming stores at once where it joins rows, else 0
  RowsAtOnce streams = {};  ///< the same as `streaming`
  RowsAtOnce sharing = {};  ///< the same as `plain`
};

class FlatLoop {
 public:
  FlatLoop(const Problem& loop, const Target& target) {
    const bool large = exceeds_cache(loop);
    coordinates_ = reads_coordinates(loop.back);
    const Problem rows = in_words(prepared(loop));
    tables_ = RowTables::of(rows, target.isa);
    const Problem& p = tables_ ? tables_->loop() : rows;
    const Lanes lanes = expanded(p.back, p, target.isa);
    cost_ = 1 + static_cast<int64_t>(lanes.code.size()) / kFreeOperations;
    const int inner_axis = p.out[0].dims.size() - 1;
    for (FlatPart& flat : parts_of(p)) {
      const auto kernel = [&](RowShape shape) {
        const Lanes code = two_vectors(p.back, lanes, shape, target.isa);
        return std::make_shared<const FlatKernel>(target.isa, code, shape, inner_axis);
      };
      RowShape shape = flat.shape(flat.last_axis());
      const bool aligned = rows_aligned(flat);
      const bool grouped = !coordinates_ && !tables_ && flat.group(shape, lanes.code.size());
      const bool row_by_row = coordinates_ || grouped;
      if (!coordinates_) flat.read_lines_once();
      RowShape in_caches = shape;
      flat.fetch_in_caches(in_caches);
      Part part{std::move(flat), kernel(in_caches)};
      if (!row_by_row)
        part.sharing = row_sharing(p.back, lanes, in_caches, part.flat.rows[part.flat.last_axis()], target.isa);
      shape.streaming = large && (aligned || may_join(part.flat, shape));
      shape.joined = shape.streaming && !aligned;
      shape.fenced = false;
      if (shape.joined) part.together = JoinedStores::together(target.isa, element_bytes(part.flat.out[0].dtype));
      if (shape.streaming && aligned && !row_by_row)
        part.streams = row_streams(p.back, lanes, shape, part.flat.rows[part.flat.last_axis()], target.isa);
      part.flat.fetch_in_turns(lanes, shape);
      if (shape.streaming) part.streaming = kernel(shape);
      parts_.push_back(std::move(part));
    }
  }

  Status operator()(const RunArgs& args) const {
    for (const Part& part : parts_) run(part, args);
    return {};
  }

 private:
  /// Every row starts where a streaming store may.
  static bool rows_aligned(const FlatPart& part) {
    return std::ranges::all_of(part.out, [&](const TensorDesc& desc) {
      const int64_t each = element_bytes(desc.dtype);
      if (desc.offset * each % kCacheLine != 0) return false;
      for (int d = 0; d < part.rows.size(); ++d)
        if (part.rows[d] > 1 && desc.strides[d] * each % kCacheLine != 0) return false;
      return true;
    });
  }

  /// Rows follow each other in calls long enough to bear what their ends cost.
  bool may_join(const FlatPart& part, const RowShape& shape) const {
    const TensorDesc& first = part.out[0];
    const int64_t each = element_bytes(first.dtype);
    if (coordinates_ || part.out.size() > JoinedStores::kMostOutputs || each == 1 || part.length > kLongestJoined ||
        part.rows[part.last_axis()] * part.elements() < kLeastJoined)
      return false;
    const auto follows = [&](const RowOperand& o) {
      return o.row_bytes == part.length * each && (shape.group == 1 || o.group_bytes == part.elements() * each);
    };
    return std::ranges::all_of(shape.out, follows) && std::ranges::all_of(part.out, [&](const TensorDesc& desc) {
             return element_bytes(desc.dtype) == each && desc.strides == first.strides &&
                    (desc.offset - first.offset) * each % kCacheLine == 0;
           });
  }

  void run(const Part& part, const RunArgs& args) const {
    const FlatKernel& kernel = part.streaming && outputs_aligned(args) ? *part.streaming : *part.plain;
    const Dims& extents = part.flat.rows;
    const int axis = part.flat.last_axis();
    const int64_t run_length = coordinates_ ? 1 : extents[axis];
    parallel_for(elements(extents), part.flat.elements() * cost_, [&](int64_t begin, int64_t end) {
      for (Dims at = coordinates(begin, extents); begin < end;) {
        const int64_t left = extents[axis] - at[axis];
        const int64_t rows = std::min({run_length, left, end - begin});
        tables_ ? run_with_tables(kernel, part, args, at, rows) : run_rows(kernel, part, args, at, rows, nullptr);
        begin += rows;
        at[axis] += rows;
        for (int d = axis; d > 0 && at[d] == extents[d]; --d) {
          at[d] = 0;
          ++at[d - 1];
        }
      }
      if (&kernel == part.streaming.get()) end_streaming();
    });
  }

  /// In a function of its own, because small loops do without the memory.
  [[gnu::noinline]] void run_with_tables(const FlatKernel& kernel, const Part& part, const RunArgs& args,
                                         const Dims& at, int64_t rows) const {
    alignas(kCacheLine) RowTables::Memory memory;
    run_rows(kernel, part, args, at, rows, &memory);
  }

  void run_rows(const FlatKernel& kernel, const Part& rows_of, const RunArgs& args, const Dims& at, int64_t rows,
                RowTables::Memory* memory) const {
    const FlatPart& part = rows_of.flat;
    std::array<const void*, kMaxLoopOperands> in;
    std::array<void*, kMaxLoopOperands> out;
    for (size_t k = 0; k < args.in.size(); ++k) in[k] = part.in_places[k].row(args.in[k], at);
    if (memory) tables_->fill(in.data(), *memory);
    for (size_t k = 0; k < part.out.size(); ++k)
      out[k] = const_cast<std::byte*>(part.out_places[k].row(args.out[k], at));
    std::array<int32_t, kMaxRank> place;
    if (coordinates_) place_of(part, at, place.data());
    RowCall call{in.data(), out.data(), place.data(), rows};
    const RowsAtOnce& at_once = &kernel == rows_of.streaming.get() ? rows_of.streams : rows_of.sharing;
    at_once.run(call, {in.data(), part.in.size()}, {out.data(), part.out.size()});
    if (call.rows == 0) return;
    if (&kernel != rows_of.streaming.get() || rows_of.together == 0) return kernel(call);
    const JoinedCall joined({out.data(), part.out.size()}, element_bytes(part.out[0].dtype), rows_of.together,
                            rows * part.elements());
    call.joined = joined.places();
    call.pending = joined.pending();
    kernel(call);
    joined.finish();
  }

  std::vector<Part> parts_;
  std::optional<RowTables> tables_;
  int64_t cost_ = 1;
  bool coordinates_ = false;
};

}  // namespace

const char* refuse_flat(const Problem& problem, const Target&) {
  if (const char* reason = refuse_expansion(problem.back, problem)) return reason;
  if (has_folds(problem)) return refuse_fold_loop(problem);
  return refuse_rows(prepared(problem));
}

Result<Run> make_flat(const Problem& problem, const Target& target) {
  if (auto blocks = block_copy_plan(problem, target)) return make_block_copy(problem, target, std::move(*blocks));
  return has_folds(problem) ? make_fold_loop(problem, target) : run_of<FlatLoop>(problem, target);
}

}  // namespace partita::jit
