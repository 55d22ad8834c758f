// SPDX-License-Identifier: Apache-2.0
// Choice of the axis that tasks share, and the life of the results.
#include "kernels/loop/fold_plan.hpp"

#include <algorithm>

#include "src/base/shape.hpp"
#include "src/base/threads.hpp"

namespace partita {
namespace {

constexpr int64_t kEnoughTasks = 16;  ///< extent of a kept axis that is split without more ado
constexpr int64_t kMostCopies = 64;
constexpr int64_t kLeastWork = 8192;                ///< elements of a task, where there is more than one
constexpr int64_t kMostDoubles = int64_t{1} << 20;  ///< of all copies together, where there is more than one
/// Elements for each number of a copy, so that filling and joining it cost little. Whoever joins copies reads what
/// others have written, so more than a few want more.
constexpr int64_t kLeastFolds = 64, kFewCopies = 4, kFoldsOfMany = 256;

/// Distance from the first to one past the last place.
int64_t places(const TensorDesc& desc) {
  int64_t last = 0;
  for (int d = 0; d < desc.dims.size(); ++d) last += (desc.dims[d] - 1) * desc.strides[d];
  return last + 1;
}

}  // namespace

bool has_folds(const Problem& loop) {
  return std::any_of(loop.back.code.begin(), loop.back.code.end(),
                     [](const Instr& in) { return fold_of(in.op) != Fold::none; });
}

Fold fold_of_output(const Expr& back, size_t port) {
  for (const Instr& in : back.code)
    if (fold_of(in.op) != Fold::none && in.imm == static_cast<int32_t>(port)) return fold_of(in.op);
  return Fold::none;
}

const char* refuse_folds(const Problem& loop) {
  for (size_t k = 0; k < loop.out.size(); ++k) {
    if (fold_of_output(loop.back, k) == Fold::none) continue;
    const TensorDesc& out = loop.out[k];
    if (out.dtype != Dtype::f32 || out.offset != 0) return "a folded output is not a whole f32 tensor";
    int64_t kept = 1;
    for (int d = 0; d < out.dims.size(); ++d)
      if (out.strides[d] != 0) kept *= out.dims[d];
    if (kept != places(out)) return "a folded output has gaps";
  }
  return nullptr;
}

FoldPlan::FoldPlan(const Problem& loop, const Dims& rows) {
  for (size_t k = 0; k < loop.out.size(); ++k) {
    const Fold how = fold_of_output(loop.back, k);
    if (how == Fold::none) continue;
    outputs_.push_back({k, how, size_, places(loop.out[k])});
    size_ += outputs_.back().count;
  }
  const auto keeps = [&](int d) {
    return std::all_of(outputs_.begin(), outputs_.end(),
                       [&](const Output& o) { return loop.out[o.port].strides[d] != 0; });
  };
  int kept = -1, folded_away = -1;
  for (int d = 0; d < rows.size(); ++d) {
    int& best = keeps(d) ? kept : folded_away;
    if (best < 0 || rows[d] > rows[best]) best = d;
  }
  const int64_t walked = elements(loop.out[0].dims);
  most_tasks_ = std::max<int64_t>(walked / kLeastWork, 1);
  const int64_t numbers = std::max<int64_t>(size_, 1), each = walked / numbers;
  const int64_t worth =
      std::min(kMostDoubles / numbers, std::max(std::min(each / kLeastFolds, kFewCopies), each / kFoldsOfMany));
  const int64_t copies =
      folded_away < 0 ? 1 : std::clamp(std::min({worth, rows[folded_away], most_tasks_}), int64_t{1}, kMostCopies);
  // A loop over nothing has no tasks that would fill copies of their own.
  shared_ = folded_away < 0 || walked == 0 || (kept >= 0 && (rows[kept] >= kEnoughTasks || rows[kept] >= copies));
  axis_ = std::max(0, shared_ ? kept : folded_away);
  if (!shared_) most_tasks_ = copies_ = copies;
}

FoldPlan::Range FoldPlan::range(int64_t task, int64_t extent) const {
  const int64_t n = tasks(extent);
  return {extent * task / n, extent * (task + 1) / n};
}

void FoldPlan::begin(void* scratch) const {
  if (shared_) fill_copies(scratch, 0, 1);
}

void FoldPlan::begin_tasks(void* scratch, int64_t begin, int64_t end) const {
  if (!shared_) fill_copies(scratch, begin, end);
}

void FoldPlan::fill_copies(void* scratch, int64_t begin, int64_t end) const {
  for (int64_t copy = begin; copy < end; ++copy)
    for (const Output& o : outputs_)
      std::fill_n(static_cast<double*>(scratch) + copy * size_ + o.first, o.count, identity_of(o.how));
}

void FoldPlan::finish(void* scratch, const RunArgs& args) const {
  for (const Output& o : outputs_) {
    double* results = static_cast<double*>(scratch) + o.first;
    auto* out = static_cast<float*>(args.out[o.port]);
    parallel_for(o.count, copies_, [&](int64_t begin, int64_t end) {
      for (int64_t copy = 1; copy < copies_; ++copy)
        fold_numbers(o.how, results + begin, results + copy * size_ + begin, end - begin);
      round_numbers(out + begin, results + begin, end - begin);
    });
  }
}

}  // namespace partita
