// SPDX-License-Identifier: Apache-2.0
// The interpreter's kernels: one for the flat skeleton, one for the pooling skeletons.
#include "kernels/loop/interpreter.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "kernels/loop/collapse.hpp"
#include "kernels/loop/fold_plan.hpp"
#include "kernels/loop/pool_planes.hpp"
#include "kernels/loop/row_program.hpp"
#include "src/base/dtype.hpp"
#include "src/base/round.hpp"
#include "src/base/shape.hpp"
#include "src/base/threads.hpp"

namespace partita {
namespace {

constexpr size_t kMaxOutputs = 160;

/// Neighbouring elements of packed types share a byte, so only one thread may store them.
bool packs_bits(const Problem& p) {
  for (const TensorDesc& desc : p.out)
    if (bits_of(desc.dtype) < 8) return true;
  return false;
}

Result<Run> make_flat(const Problem& problem, const Target& target) {
  const Problem p = collapsed(problem);
  const Dims space = p.out[0].dims;
  const int64_t length = space.empty() ? 1 : space.back();
  Dims rows = space;
  if (!rows.empty()) rows.erase(rows.size() - 1);
  const int64_t runs_a_row = (length + RowProgram::kRun - 1) / RowProgram::kRun;
  const int64_t runs = elements(rows) * runs_a_row;
  const auto cost = static_cast<int64_t>(p.back.code.size()) * std::min(length, RowProgram::kRun);
  const bool serial = packs_bits(p);
  const RowProgram program(p.back, p, space);
  Run run;
  run.scratch_bytes = static_cast<size_t>(target.threads) * program.work_size() * sizeof(float);
  run.call = [=, threads = target.threads](const RunArgs& args) -> Status {
    auto part = [&](int64_t begin, int64_t end, int number) {
      float* work = static_cast<float*>(args.scratch) + static_cast<size_t>(number) * program.work_size();
      for (int64_t r = begin; r < end; ++r) {
        Dims at = coordinates(r / runs_a_row, rows);
        const int64_t start = r % runs_a_row * RowProgram::kRun;
        if (!space.empty()) at.push_back(start);
        program.run(work, args, at, std::min(RowProgram::kRun, length - start), nullptr);
      }
    };
    parallel_for(runs, cost, part, serial ? 1 : threads);
    return {};
  };
  return run;
}

/// A loop with folds: tasks of the plan, each in rows of at most kRun elements.
class FoldingLoop {
 public:
  FoldingLoop(const Problem& loop, const Target& target)
      : problem_(collapsed(loop)),
        space_(problem_.out[0].dims),
        program_(problem_.back, problem_, space_),
        threads_(target.threads) {
    rows_ = space_;
    if (!rows_.empty()) rows_.back() = (space_.back() + RowProgram::kRun - 1) / RowProgram::kRun;
    plan_ = FoldPlan(problem_, rows_);
    work_at_ = aligned(plan_.scratch_bytes());
  }

  size_t scratch_bytes() const {
    return work_at_ + static_cast<size_t>(threads_) * program_.work_size() * sizeof(float);
  }

  Status operator()(const RunArgs& args) const {
    const int64_t extent = rows_.empty() ? 1 : rows_[plan_.axis()];
    plan_.begin(args.scratch);
    const auto part = [&](int64_t begin, int64_t end, int number) {
      float* work = reinterpret_cast<float*>(static_cast<std::byte*>(args.scratch) + work_at_) +
                    static_cast<size_t>(number) * program_.work_size();
      plan_.begin_tasks(args.scratch, begin, end);
      plan_.each_range(begin, end, extent, [&](int64_t task, FoldPlan::Range range) { run(args, work, task, range); });
    };
    const int64_t tasks = plan_.tasks(extent);
    parallel_for(tasks,
                 elements(space_) / std::max<int64_t>(tasks, 1) * static_cast<int64_t>(problem_.back.code.size()), part,
                 threads_);
    plan_.finish(args.scratch, args);
    return {};
  }

 private:
  void run(const RunArgs& args, float* work, int64_t task, FoldPlan::Range range) const {
    std::array<void*, kMaxOutputs> out;
    std::copy(args.out.begin(), args.out.end(), out.begin());
    for (size_t k = 0; k < plan_.outputs().size(); ++k)
      out[plan_.outputs()[k].port] = plan_.results(args.scratch, task, k);
    const RunArgs own{args.in, {out.data(), args.out.size()}, args.scratch};
    if (space_.empty()) return program_.run(work, own, {}, 1, nullptr);
    Dims box = rows_;
    box[plan_.axis()] = range.end - range.begin;
    for (int64_t r = 0, n = elements(box); r < n; ++r) {
      Dims at = coordinates(r, box);
      at[plan_.axis()] += range.begin;
      at.back() *= RowProgram::kRun;
      program_.run(work, own, at, std::min(RowProgram::kRun, space_.back() - at.back()), nullptr);
    }
  }

  Problem problem_;
  Dims space_, rows_;
  RowProgram program_;
  FoldPlan plan_;
  size_t work_at_ = 0;
  int threads_;
};

Result<Run> make_folding(const Problem& problem, const Target& target) {
  const FoldingLoop loop(problem, target);
  return Run{.call = loop, .scratch_bytes = loop.scratch_bytes()};
}

/// Moves planes [spatial][lanes] between memory and expressions, for one batch item and a block of channels.
class PlaneWalk {
 public:
  PlaneWalk(const PoolGeometry& g, const Dims& spatial) : g_(g), spatial_(spatial), positions_(elements(spatial)) {}

  /// Calls f(at, first lane of the plane, count) for runs along the last axis that cover the block.
  template <class F>
  void each_run(int64_t batch, int64_t channel, int64_t lanes, F f) const {
    const int64_t row = g_.channel_last ? 1 : spatial_.back();
    for (int64_t position = 0; position < positions_; position += row) {
      const Dims where = coordinates(position, spatial_);
      for (int64_t start = 0; start < (g_.channel_last ? lanes : row); start += RowProgram::kRun) {
        const int64_t n = std::min(RowProgram::kRun, (g_.channel_last ? lanes : row) - start);
        Dims at{batch};
        if (!g_.channel_last) at.push_back(channel);
        for (int64_t w : where) at.push_back(w);
        if (g_.channel_last) at.push_back(channel);
        at.back() += start;
        f(at, position * lanes + start, n);
      }
    }
  }

 private:
  const PoolGeometry& g_;
  Dims spatial_;
  int64_t positions_;
};

Expr load_of_source() {
  Expr e;
  e.result = ExprBuilder(e).load(0);
  return e;
}

float lowest_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f16: return -65504.0f;
    case Dtype::bf16: return -3.38953139e38f;  // 0xff7f
    default: return std::numeric_limits<float>::lowest();
  }
}

/// The pooling skeletons: planes are filled by expressions, pooled, and handed to an expression.
class PoolLoop {
 public:
  PoolLoop(const Problem& p, const Target& target)
      : forward_(p.step == StepKind::pool_forward),
        from_src_(p.step == StepKind::max_pool_backward),
        g_(forward_ ? pool_geometry(p, read_dims(p), p.out[0].dims) : pool_geometry(p, p.out[0].dims, read_dims(p))),
        front_(front_expression(p), p, read_dims(p)),
        source_(load_of_source(), p, p.in[0].dims),
        back_(back_expression(p), p, p.out[0].dims),
        empty_(lowest_of(p.in[0].dtype)),
        lanes_(g_.channel_last ? std::min<int64_t>(g_.channels, kMaxLanes) : 1),
        threads_(target.threads) {
    const Dims &read = forward_ ? g_.src : g_.dst, &write = forward_ ? g_.dst : g_.src;
    read_plane_ = static_cast<size_t>(elements(read) * lanes_);
    made_plane_ = static_cast<size_t>(elements(write) * lanes_);
    source_plane_ = from_src_ ? static_cast<size_t>(elements(g_.src) * lanes_) : 0;
    work_ = std::max({front_.work_size(), source_.work_size(), back_.work_size()});
  }

  size_t scratch_bytes() const { return static_cast<size_t>(threads_) * part_size() * sizeof(float); }

  Status operator()(const RunArgs& args) const {
    const int64_t blocks = (g_.channels + lanes_ - 1) / lanes_;
    auto part = [&](int64_t begin, int64_t end, int number) {
      float* scratch = static_cast<float*>(args.scratch) + static_cast<size_t>(number) * part_size();
      for (int64_t item = begin; item < end; ++item) {
        const int64_t channel = item % blocks * lanes_;
        run(args, scratch, item / blocks, channel, std::min(lanes_, g_.channels - channel));
      }
    };
    parallel_for(g_.batch * blocks, elements(g_.src) * lanes_ * 8, part, threads_);
    return {};
  }

 private:
  /// Ports: pool forward reads src; average backward reads diff_dst; max backward reads src and diff_dst.
  static const Dims& read_dims(const Problem& p) { return p.in[static_cast<size_t>(front_port(p.step))].dims; }

  /// Numbers in the scratch memory of one thread.
  size_t part_size() const { return work_ + read_plane_ + made_plane_ + source_plane_; }

  /// One batch item, `lanes` channels from `channel` on.
  void run(const RunArgs& args, float* work, int64_t batch, int64_t channel, int64_t lanes) const {
    float *read = work + work_, *made = read + read_plane_, *source = made + made_plane_;
    auto fill = [&](const RowProgram& from, const Dims& space, float* plane) {
      PlaneWalk(g_, space).each_run(batch, channel, lanes, [&](const Dims& at, int64_t first, int64_t n) {
        from.run(work, args, at, n, nullptr);
        std::copy_n(from.result(work), n, plane + first);
      });
    };
    fill(front_, forward_ ? g_.src : g_.dst, read);
    if (from_src_) fill(source_, g_.src, source);
    if (forward_)
      pool_forward_plane(g_, lanes, read, made, empty_);
    else if (from_src_)
      max_backward_plane(g_, lanes, source, read, made);
    else
      average_backward_plane(g_, lanes, read, made);
    PlaneWalk(g_, forward_ ? g_.dst : g_.src)
        .each_run(batch, channel, lanes,
                  [&](const Dims& at, int64_t first, int64_t n) { back_.run(work, args, at, n, made + first); });
  }

  bool forward_, from_src_;
  PoolGeometry g_;
  RowProgram front_, source_, back_;
  float empty_;  ///< maximum over nothing, in the pooling's own type: what stands behind it may store another one
  int64_t lanes_;
  int threads_;
  size_t work_ = 0, read_plane_ = 0, made_plane_ = 0, source_plane_ = 0;
};

Result<Run> make_pool(const Problem& problem, const Target& target) {
  const PoolLoop loop(problem, target);
  return Run{.call = loop, .scratch_bytes = loop.scratch_bytes()};
}

}  // namespace

const char* refuse_interpreted(const Problem& problem, const Target&) {
  switch (problem.step) {
    case StepKind::loop: return problem.out.size() > kMaxOutputs ? "too many outputs" : refuse_folds(problem);
    case StepKind::pool_forward:
    case StepKind::pool_backward:
    case StepKind::max_pool_backward:
      if (lacks_batch_axis(problem)) return "the interpreter wants a batch axis";
      if (has_folds(problem)) return "the interpreter folds loops only";
      return has_indices(problem) ? "the interpreter finds no indices" : nullptr;
    default: return "the interpreter runs loops and pooling only";
  }
}

Result<Run> make_interpreted(const Problem& problem, const Target& target) {
  if (problem.step != StepKind::loop) return make_pool(problem, target);
  return has_folds(problem) ? make_folding(problem, target) : make_flat(problem, target);
}

}  // namespace partita
