// SPDX-License-Identifier: Apache-2.0
// The interpreter's kernels: one for the flat skeleton, one for the pooling skeletons.
#include "kernels/loop/interpreter.hpp"

#include <limits>

#include "kernels/loop/collapse.hpp"
#include "kernels/loop/pool_planes.hpp"
#include "kernels/loop/row_program.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/threads.hpp"

namespace partita {
namespace {

/// Neighbouring elements of packed types share a byte, so only one thread may store them.
bool packs_bits(const Problem& p) {
  for (const TensorDesc& desc : p.out)
    if (bits_of(desc.dtype) < 8) return true;
  return false;
}

Result<Run> make_flat(const Problem& problem) {
  const Problem p = collapsed(problem);
  const Dims space = p.out[0].dims;
  const int64_t length = space.empty() ? 1 : space.back();
  Dims rows = space;
  if (!rows.empty()) rows.erase(rows.size() - 1);
  const int64_t runs_a_row = (length + RowProgram::kRun - 1) / RowProgram::kRun;
  const int64_t runs = elements(rows) * runs_a_row;
  const auto cost = static_cast<int64_t>(p.back.code.size()) * std::min(length, RowProgram::kRun);
  const bool serial = packs_bits(p);
  Run run;
  run.call = [=, program = RowProgram(p.back, p, space)](const RunArgs& args) -> Status {
    auto part = [&](int64_t begin, int64_t end) {
      auto work = program.work();
      for (int64_t r = begin; r < end; ++r) {
        Dims at = coordinates(r / runs_a_row, rows);
        const int64_t start = r % runs_a_row * RowProgram::kRun;
        if (!space.empty()) at.push_back(start);
        program.run(work, args, at, std::min(RowProgram::kRun, length - start), nullptr);
      }
    };
    serial ? part(0, runs) : parallel_for(runs, cost, part);
    return {};
  };
  return run;
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

Expr load_of(int operand) {
  Expr e;
  e.result = ExprBuilder(e).load(operand);
  return e;
}

Expr store_of_skeleton() {
  Expr e;
  ExprBuilder b(e);
  b.store(0, b.skeleton());
  return e;
}

float lowest_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f16: return -65504.0f;
    case Dtype::bf16: return -3.38953139e38f;  // 0xff7f
    default: return std::numeric_limits<float>::lowest();
  }
}

Result<Run> make_pool(const Problem& p) {
  const bool forward = p.step == StepKind::pool_forward;
  const bool from_src = p.step == StepKind::max_pool_backward;
  const TensorDesc& result = p.out[0];
  // Ports: pool forward reads src; average backward reads diff_dst; max backward reads src and diff_dst.
  const int read_port = from_src ? 1 : 0;
  const Dims read = p.in[static_cast<size_t>(read_port)].dims;
  const PoolGeometry g = forward ? pool_geometry(p, read, result.dims) : pool_geometry(p, result.dims, read);
  const Expr front = p.front.empty() ? load_of(read_port) : p.front;
  const Expr back = p.back.empty() ? store_of_skeleton() : p.back;
  const int64_t lanes = g.channel_last ? std::min<int64_t>(g.channels, 16) : 1;
  const int64_t blocks = (g.channels + lanes - 1) / lanes;
  const Dims read_space = forward ? g.src : g.dst, write_space = forward ? g.dst : g.src;
  // The pooling's own type: what stands behind it may store another one.
  const float empty = lowest_of(p.in[0].dtype);
  Run run;
  run.call = [=, front = RowProgram(front, p, read), source = RowProgram(load_of(0), p, p.in[0].dims),
              back = RowProgram(back, p, result.dims)](const RunArgs& args) -> Status {
    parallel_for(g.batch * blocks, elements(g.src) * lanes * 8, [&](int64_t begin, int64_t end) {
      auto front_work = front.work(), source_work = source.work(), back_work = back.work();
      std::vector<float> pooled_plane(static_cast<size_t>(elements(read_space) * lanes)),
          made_plane(static_cast<size_t>(elements(write_space) * lanes)),
          source_plane(from_src ? static_cast<size_t>(elements(g.src) * lanes) : 0);
      for (int64_t item = begin; item < end; ++item) {
        const int64_t batch = item / blocks, channel = item % blocks * lanes;
        const int64_t n_lanes = std::min(lanes, g.channels - channel);
        auto fill = [&](const RowProgram& from, RowProgram::Work& work, const Dims& space, std::vector<float>& plane) {
          PlaneWalk(g, space).each_run(batch, channel, n_lanes, [&](const Dims& at, int64_t first, int64_t n) {
            from.run(work, args, at, n, nullptr);
            std::copy_n(from.result(work), n, plane.data() + first);
          });
        };
        fill(front, front_work, read_space, pooled_plane);
        if (from_src) fill(source, source_work, g.src, source_plane);
        if (forward)
          pool_forward_plane(g, n_lanes, pooled_plane.data(), made_plane.data(), empty);
        else if (from_src)
          max_backward_plane(g, n_lanes, source_plane.data(), pooled_plane.data(), made_plane.data());
        else
          average_backward_plane(g, n_lanes, pooled_plane.data(), made_plane.data());
        PlaneWalk(g, write_space).each_run(batch, channel, n_lanes, [&](const Dims& at, int64_t first, int64_t n) {
          back.run(back_work, args, at, n, made_plane.data() + first);
        });
      }
    });
    return {};
  };
  return run;
}

}  // namespace

const char* refuse_interpreted(const Problem& problem, const Target&) {
  switch (problem.step) {
    case StepKind::loop:
    case StepKind::pool_forward:
    case StepKind::pool_backward:
    case StepKind::max_pool_backward: return nullptr;
    default: return "the interpreter runs loops and pooling only";
  }
}

Result<Run> make_interpreted(const Problem& problem, const Target&) {
  return problem.step == StepKind::loop ? make_flat(problem) : make_pool(problem);
}

}  // namespace partita
