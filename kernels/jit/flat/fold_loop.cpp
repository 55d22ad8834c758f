// SPDX-License-Identifier: Apache-2.0
// Loops with folds: a call of generated code folds some rows into f32 numbers on the stack, which are then added to the
// task's doubles. So sums of any length keep their precision, and their order is the plan's.
#include "kernels/jit/flat/fold_loop.hpp"

#include <algorithm>
#include <array>
#include <memory>

#include "kernels/jit/code/expand.hpp"
#include "kernels/jit/code/run_of.hpp"
#include "kernels/jit/flat/flat_parts.hpp"
#include "kernels/jit/flat/side_by_side.hpp"
#include "kernels/loop/fold_plan.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/threads.hpp"

namespace partita::jit {
namespace {

constexpr int64_t kPlaces = 2048;  ///< numbers that one call folds into, for each output
constexpr int64_t kRowsOfACall = 256;
/// Rows that are folded upon each other in f32 are few beside all, so that sums of small tensors stay exact.
constexpr int64_t kLeastRowsOfACall = 32, kLeastCalls = 32;
constexpr int64_t kFarRows = 2048;  ///< bytes: of rows so far apart later ones are fetched, also of long rows
constexpr size_t kMaxFolds = 4;
static_assert(kMaxFolds <= size_t{FlatKernel::kMaxRowFolds});

/// How one fold lies over the rows of a call.
struct FoldWalk {
  int64_t row_places;     ///< places between two rows: 0, or as many as a row has
  int64_t places_of_row;  ///< 1, or the elements of a row
};

struct Part {
  FlatPart flat;
  int axis;              ///< that a call walks
  int64_t rows_of_call;  ///< at the most
  std::vector<FoldWalk> walks;
  std::shared_ptr<const FlatKernel> kernel;
  RowsAtOnce together = {};  ///< the same of some rows at once, where that is faster
};

void fill(float* numbers, int64_t n, float value) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) numbers[i] = value;
}

class FoldLoop {
 public:
  FoldLoop(const Problem& loop, const Target& target) {
    const Problem p = prepared(loop);
    const Lanes lanes = expanded(p.back, p, target.isa);
    coordinates_ = reads_coordinates(p.back);
    for (FlatPart& flat : parts_of(p)) parts_.push_back(part_of(std::move(flat), p, lanes, target));
    plan_ = FoldPlan(p, parts_[0].flat.rows);
  }

  size_t scratch_bytes() const { return plan_.scratch_bytes(); }

  Status operator()(const RunArgs& args) const {
    plan_.begin(args.scratch);
    for (const Part& part : parts_) {
      const int64_t extent = part.flat.rows[plan_.axis()], tasks = plan_.tasks(extent);
      const int64_t work = elements(part.flat.rows) * part.flat.length;
      parallel_for(tasks, work / std::max<int64_t>(tasks, 1), [&](int64_t begin, int64_t end) {
        Sums sums;  // once a thread: a stack is checked page by page
        if (&part == &parts_.front()) plan_.begin_tasks(args.scratch, begin, end);
        plan_.each_range(begin, end, extent,
                         [&](int64_t task, FoldPlan::Range range) { run(part, args, task, range, sums); });
      });
    }
    plan_.finish(args.scratch, args);
    return {};
  }

 private:
  Part part_of(FlatPart flat, const Problem& p, const Lanes& lanes, const Target& target) const {
    Part part;
    part.axis = call_axis(p, flat);
    RowShape shape = flat.shape(part.axis);
    int64_t most_places = 1;
    for (size_t k = 0; k < p.out.size(); ++k) {
      const Fold how = fold_of_output(p.back, k);
      if (how == Fold::none) continue;
      const int64_t places = flat.out_steps[k] ? flat.length : 1;
      const bool kept = flat.rows[part.axis] > 1 && flat.out[k].strides[part.axis] != 0;
      part.walks.push_back({kept ? places : 0, places});
      shape.out[k] = {Dtype::f32, flat.out_steps[k], part.walks.back().row_places * int64_t{sizeof(float)}, how};
      most_places = std::max(most_places, part.walks.back().row_places);
    }
    flat.fetch_in_turns(lanes, shape);
    for (RowOperand& o : shape.in) fetch_rows(o, flat.length);
    part.rows_of_call = coordinates_ ? 1 : std::min(kRowsOfACall, std::max<int64_t>(1, kPlaces / most_places));
    if (std::ranges::any_of(part.walks, [](const FoldWalk& walk) { return walk.row_places == 0; }))
      part.rows_of_call = std::min(part.rows_of_call, std::max(kLeastRowsOfACall, flat.rows[part.axis] / kLeastCalls));
    part.kernel = std::make_shared<const FlatKernel>(target.isa, lanes, shape, p.out[0].dims.size() - 1);
    // From memory, so many streams would be slower.
    if (!coordinates_ && !leaves_the_caches(flat.bytes_read()))
      part.together = row_folds(p.back, shape, flat.rows[part.axis], target.isa);
    part.flat = std::move(flat);
    return part;
  }

  static void fetch_rows(RowOperand& o, int64_t length) {
    const int64_t bytes = std::max<int64_t>(1, length * bits_of(o.dtype) / 8);
    const bool far = o.row_bytes >= std::max(kFarRows, 2 * bytes);  // rows behind each other are one stream
    if (far && !o.fetching) o.fetching = later_rows(o, length);
  }

  /// Folds that step along the row want an axis along which rows are folded upon each other.
  int call_axis(const Problem& p, const FlatPart& flat) const {
    for (int d = flat.rows.size() - 1; d >= 0; --d) {
      bool useful = flat.rows[d] > 1;
      for (size_t k = 0; k < p.out.size(); ++k)
        if (fold_of_output(p.back, k) != Fold::none && flat.out_steps[k])
          useful = useful && flat.out[k].strides[d] == 0;
      if (useful) return d;
    }
    return flat.last_axis();
  }

  using Sums = std::array<std::array<float, kPlaces>, kMaxFolds>;  ///< of a call

  void run(const Part& part, const RunArgs& args, int64_t task, FoldPlan::Range range, Sums& sums) const {
    Dims box = part.flat.rows;
    box[plan_.axis()] = range.end - range.begin;
    const int64_t along = box[part.axis];
    Dims starts = box;
    starts[part.axis] = 1;
    for (int64_t i = 0, n = elements(starts); i < n; ++i) {
      Dims at = coordinates(i, starts);
      at[plan_.axis()] += range.begin;
      run_along(part, args, task, at, along, sums);
    }
  }

  /// `along` rows from `at` on, call by call.
  void run_along(const Part& part, const RunArgs& args, int64_t task, Dims at, int64_t along, Sums& sums) const {
    std::array<const void*, kMaxLoopOperands> in;
    std::array<void*, kMaxLoopOperands> out;
    std::array<double*, kMaxFolds> results;
    const FlatPart& flat = part.flat;
    for (size_t k = 0; k < flat.in.size(); ++k) in[k] = flat.in_places[k].row(args.in[k], at);
    for (size_t k = 0; k < flat.out.size(); ++k)
      out[k] = const_cast<std::byte*>(flat.out_places[k].row(args.out[k], at));
    for (size_t f = 0; f < part.walks.size(); ++f) {
      const FoldPlan::Output& output = plan_.outputs()[f];
      const TensorDesc& desc = flat.out[output.port];
      results[f] = plan_.results(args.scratch, task, f) + desc.offset;
      for (int d = 0; d < at.size(); ++d) results[f] += at[d] * desc.strides[d];
      out[output.port] = sums[f].data();
    }
    for (int64_t rows = 0, left = along; left > 0; left -= rows) {
      rows = std::min(part.rows_of_call, left);
      for (size_t f = 0; f < part.walks.size(); ++f)
        fill(sums[f].data(), places(part.walks[f], rows), identity_of(plan_.outputs()[f].how));
      std::array<int32_t, kMaxRank> place{};
      if (coordinates_) place_of(flat, at, place.data());
      RowCall call{in.data(), out.data(), place.data(), rows};
      part.together.run(call, {in.data(), flat.in.size()}, {out.data(), flat.out.size()});
      if (call.rows > 0) (*part.kernel)(call);
      for (size_t f = 0; f < part.walks.size(); ++f) {
        keep(part, rows, f, sums[f].data(), results[f]);
        results[f] += rows * flat.out[plan_.outputs()[f].port].strides[part.axis];
      }
      // Addresses have passed the rows that went together.
      for (size_t k = 0; k < flat.in.size(); ++k) in[k] = behind(in[k], flat.in_places[k], part.axis, call.rows);
      for (size_t k = 0; k < flat.out.size(); ++k)
        if (fold_at(k) < 0) out[k] = const_cast<void*>(behind(out[k], flat.out_places[k], part.axis, call.rows));
      at[part.axis] += rows;
    }
  }

  static const void* behind(const void* row, const RowPlaces& places, int axis, int64_t rows) {
    return moved(row, rows * places.strides[axis]);
  }

  /// The number of the fold that output `port` is; -1: it is stored.
  int fold_at(size_t port) const {
    for (size_t f = 0; f < plan_.outputs().size(); ++f)
      if (plan_.outputs()[f].port == port) return static_cast<int>(f);
    return -1;
  }

  static int64_t places(const FoldWalk& walk, int64_t rows) {
    return walk.row_places != 0 ? rows * walk.row_places : walk.places_of_row;
  }

  /// Joins the numbers of a call with the task's results.
  void keep(const Part& part, int64_t rows, size_t f, const float* sums, double* results) const {
    const FoldPlan::Output& output = plan_.outputs()[f];
    const TensorDesc& desc = part.flat.out[output.port];
    const FoldWalk& walk = part.walks[f];
    const int64_t n = walk.row_places != 0 ? rows : 1;
    if (walk.row_places == walk.places_of_row && desc.strides[part.axis] == walk.places_of_row)
      return fold_numbers(output.how, results, sums, n * walk.places_of_row);
    for (int64_t r = 0; r < n; ++r)
      fold_numbers(output.how, results + r * desc.strides[part.axis], sums + r * walk.row_places, walk.places_of_row);
  }

  std::vector<Part> parts_;
  FoldPlan plan_;
  bool coordinates_ = false;
};

}  // namespace

const char* refuse_fold_loop(const Problem& problem) {
  if (const char* reason = refuse_folds(problem)) return reason;
  size_t folds = 0;
  for (size_t k = 0; k < problem.out.size(); ++k) folds += fold_of_output(problem.back, k) != Fold::none ? 1 : 0;
  if (folds > kMaxFolds) return "too many folds in one loop";
  return refuse_rows(prepared(problem));
}

Result<Run> make_fold_loop(const Problem& problem, const Target& target) { return run_of<FoldLoop>(problem, target); }

}  // namespace partita::jit
