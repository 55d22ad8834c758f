// SPDX-License-Identifier: Apache-2.0
// FoldPlan: how threads share a loop whose outputs fold elements together, so that every sum has one order.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/kernel.hpp"
#include "kernels/loop/fold_numbers.hpp"

namespace partita {

/// Whether any output of the loop is a fold.
bool has_folds(const Problem& loop);
/// Fold::none where output `port` is stored.
Fold fold_of_output(const Expr& back, size_t port);
/// Null where every fold has a form that plans know, otherwise the reason.
const char* refuse_folds(const Problem& loop);

/// Work is split along one axis of the rows. Where each fold keeps that axis, tasks fill different places of one copy
/// of the results; otherwise each task has a copy. Copies hold doubles, in scratch memory; `finish` joins them in
/// order. How many tasks there are, the loop's size alone says (small ones have one), never the number of threads.
class FoldPlan {
 public:
  struct Output {
    size_t port;
    Fold how;
    int64_t first, count;  ///< its place in a copy
  };

  FoldPlan() = default;
  /// `rows`: extents of the loop's axes, the innermost in rows instead of elements.
  FoldPlan(const Problem& loop, const Dims& rows);

  const std::vector<Output>& outputs() const { return outputs_; }
  size_t scratch_bytes() const { return static_cast<size_t>(copies_ * size_) * sizeof(double); }

  int axis() const { return axis_; }
  /// Tasks for rows whose split axis has this extent.
  int64_t tasks(int64_t extent) const { return std::min(extent, most_tasks_); }
  struct Range {
    int64_t begin, end;
  };
  /// What the task walks of the split axis.
  Range range(int64_t task, int64_t extent) const;
  /// Tasks [begin, end), one after the other: each(task, what it walks). Those that fill different places are walked as
  /// one, in the order of memory.
  template <class Each>
  void each_range(int64_t begin, int64_t end, int64_t extent, const Each& each) const {
    if (shared_ && begin < end) return each(begin, {range(begin, extent).begin, range(end - 1, extent).end});
    for (int64_t task = begin; task < end; ++task) each(task, range(task, extent));
  }
  /// Where the task's results of outputs()[k] are.
  double* results(void* scratch, int64_t task, size_t k) const {
    return static_cast<double*>(scratch) + (shared_ ? 0 : task) * size_ + outputs_[k].first;
  }

  /// Before the walk; then before its first tasks [begin, end), by who walks them.
  void begin(void* scratch) const;
  void begin_tasks(void* scratch, int64_t begin, int64_t end) const;
  void finish(void* scratch, const RunArgs& args) const;

 private:
  void fill_copies(void* scratch, int64_t begin, int64_t end) const;

  std::vector<Output> outputs_;
  int axis_ = 0;
  bool shared_ = false;
  int64_t most_tasks_ = 1, copies_ = 1, size_ = 0;
};

}  // namespace partita
