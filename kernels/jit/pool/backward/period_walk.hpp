// SPDX-License-Identifier: Apache-2.0
// The walk over channel-last rows of periods, whatever is made of them.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/jit/pool/backward/period_rows.hpp"
#include "kernels/jit/pool/folds.hpp"
#include "kernels/jit/pool/walk.hpp"
#include "kernels/kernel.hpp"
#include "kernels/thread_scratch.hpp"
#include "src/base/threads.hpp"

namespace partita::jit {

/// The kernels of a plane's rows of periods; rows that are alike share them.
template <class Kernel>
class PeriodRows {
 public:
  /// make(part, streaming) gives a kernel.
  template <class Make>
  PeriodRows(const PoolPlan& p, bool streams, const Make& make) : reach_(p.reach(1)) {
    std::vector<std::pair<PeriodPart, Row>> made;
    for (int64_t period = 0; period < periods_of(p, 1); ++period) {
      const PeriodPart part = period_part(p, 1, period);
      auto known = std::ranges::find(made, part, &std::pair<PeriodPart, Row>::first);
      if (known == made.end()) {
        Row row{make(part, false), nullptr, nullptr};
        if (streams) row.streaming = make(part, true);
        PeriodPart alone = part;
        alone.end_cell = alone.first_cell;
        if (reach_ > 1 && part.window()) row.search = make(alone, false);
        made.emplace_back(part, std::move(row));
        known = made.end() - 1;
      }
      rows_.push_back(known->second);
    }
  }

  int64_t count() const { return std::ssize(rows_); }
  bool streams() const { return !rows_.empty() && rows_[0].streaming; }

  /// Rows [begin, end) of all planes, in order: store(kernel, plane, period, number of the row) each, and before the
  /// first one search(kernel, plane, period) for those above it whose windows it needs.
  template <class Search, class Store>
  void run(int64_t begin, int64_t end, bool streaming, const Search& search, const Store& store) const {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t plane = i / count(), period = i % count();
      for (int64_t above = std::max<int64_t>(0, period - reach_ + 1); i == begin && above < period; ++above)
        if (const auto& kernel = rows_[static_cast<size_t>(above)].search) search(*kernel, plane, above);
      const Row& row = rows_[static_cast<size_t>(period)];
      store(streaming && row.streaming ? *row.streaming : *row.plain, plane, period, i);
    }
  }

 private:
  struct Row {
    std::shared_ptr<const Kernel> plain, streaming, search;  // search: of windows alone, stores nothing
  };
  int64_t reach_;
  std::vector<Row> rows_;
};

/// One row of periods after the other. What is found in the windows of a row is kept while rows below them need it; a
/// part that starts inside a plane looks for it in those above once more.
template <class Kernel>
class PeriodWalk {
 public:
  PeriodWalk(const PeriodWalk&) = delete;
  PeriodWalk& operator=(const PeriodWalk&) = delete;
  virtual ~PeriodWalk() = default;
  size_t scratch_bytes() const { return std::max(kept_.bytes(), folds_.scratch_bytes()); }
  Status operator()(const RunArgs& args) const {
    const bool streaming = rows_.streams() && outputs_aligned(args);
    const auto part = [&](int64_t begin, int64_t end, int number) {
      const PoolFolds::Part folds(folds_, args, number);
      std::byte* kept = kept_.share(args.scratch, number);
      const auto search = [&](const Kernel& kernel, int64_t plane, int64_t period) {
        run(args, kernel, plane, period, kept);
      };
      rows_.run(begin, end, streaming, search, [&](const Kernel& kernel, int64_t plane, int64_t period, int64_t i) {
        folds.unit(i, [&](const RunArgs& to) { run(to, kernel, plane, period, kept); });
      });
      if (streaming) end_streaming();
    };
    const PoolGeometry& g = p_.g;
    parallel_for(g.batch * g.src[0] * rows_.count(), g.strides[1] * g.src[2] * g.channels, part, threads_);
    folds_.finish(args);
    return {};
  }

 protected:
  /// `kept_bytes`: scratch memory of a thread. make(plan, rows, streaming) gives a kernel.
  template <class Make>
  PeriodWalk(const Problem& problem, const PoolPlan& plan, const Target& target, int64_t kept_bytes, bool streams,
             const Make& make)
      : p_(plan),
        threads_(std::max(1, target.threads)),
        kept_(threads_, kept_bytes),
        folds_(problem, p_, target, p_.g.batch * p_.g.src[0] * periods_of(p_, 1), kept_.bytes()),
        rows_(p_, streams, [&](const PeriodPart& rows, bool streaming) { return make(p_, rows, streaming); }) {}

  const PoolPlan& plan() const { return p_; }

 private:
  virtual void run(const RunArgs& args, const Kernel& kernel, int64_t plane, int64_t period, std::byte* kept) const = 0;

  PoolPlan p_;
  int threads_;
  ThreadScratch kept_;
  PoolFolds folds_;
  PeriodRows<Kernel> rows_;
};

}  // namespace partita::jit
