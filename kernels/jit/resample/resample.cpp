// SPDX-License-Identifier: Apache-2.0
// Resampling in two steps for each block of result rows: the source rows that the block needs are resampled along x,
// with the front expression applied, into scratch memory as f32; then each result row is the weighted sum of some of
// them, and ends in the back expression. Sums never depend on how the work is cut.
#include "kernels/jit/resample/resample.hpp"

#include "kernels/jit/code/expand.hpp"
#include "kernels/jit/code/run_of.hpp"
#include "kernels/jit/pool/backward/backward.hpp"
#include "kernels/jit/pool/forward/forward.hpp"
#include "kernels/jit/resample/as_pooling.hpp"
#include "kernels/jit/resample/blocks.hpp"
#include "kernels/jit/resample/direct.hpp"
#include "kernels/jit/resample/linear.hpp"
#include "kernels/jit/resample/nearest.hpp"
#include "kernels/jit/resample/picked.hpp"
#include "kernels/jit/resample/rows.hpp"
#include "kernels/jit/resample/shrink.hpp"
#include "kernels/thread_scratch.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/threads.hpp"

namespace partita::jit {
namespace {

constexpr int64_t kMostRowTaps = int64_t{1} << 22;  ///< results along x times channels times taps: size of tables

class Resample {
 public:
  Resample(const Problem& p, const Target& target)
      : walk_(walk_of(p, target.isa)),
        blocks_(resample_blocks(walk_, p.attrs, target.threads)),
        rows_(p, target.isa, walk_, blocks_),
        sums_(p, target.isa, walk_, blocks_) {
    const int64_t planes = walk_.outer * walk_.inner;
    items_ = planes * static_cast<int64_t>(blocks_.chunks.size() * blocks_.blocks.size()) * walk_.z.to();
    parts_ = std::min<int64_t>(target.threads, items_);
    cost_ = (elements(p.out[0].dims) + rows_.work()) / std::max<int64_t>(1, parts_);
    slot_floats_ = blocks_.rows * blocks_.row_floats;
    const int64_t floats = rows_.scratch_floats() + blocks_.z_slots * slot_floats_ + sums_.scratch_floats();
    scratch_ = {parts_, floats * static_cast<int64_t>(sizeof(float))};
  }

  size_t scratch_bytes() const { return scratch_.bytes(); }

  Status operator()(const RunArgs& args) const {
    const bool streaming = sums_.streams(args);
    parallel_for(parts_, cost_, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) run_part(args, part, streaming);
      if (streaming || sums_.stages()) end_streaming();
    });
    return {};
  }

 private:
  static PlaneWalk walk_of(const Problem& p, Isa isa) {
    bool channel_last = false;
    refuse_resample_walk(p, channel_last);
    return joined_plane_walk(p, channel_last, isa);
  }

  /// Items are walked z first, so that prepared planes are used again.
  void run_part(const RunArgs& args, int64_t part, bool streaming) const {
    float* const scratch = scratch_.share<float>(args.scratch, part);
    float* const slots = scratch + rows_.scratch_floats();
    float* const sums = slots + blocks_.z_slots * slot_floats_;
    const int64_t chunks = static_cast<int64_t>(blocks_.chunks.size());
    const int64_t blocks = static_cast<int64_t>(blocks_.blocks.size());
    int64_t column = -1;  // plane, chunk and block
    int64_t prepared_end = 0;
    for (int64_t item = items_ * part / parts_; item < items_ * (part + 1) / parts_; ++item) {
      const int64_t z = item % walk_.z.to(), now = item / walk_.z.to();
      ResamplePiece piece{.plane = now / blocks / chunks,
                          .chunk = static_cast<size_t>(now / blocks % chunks),
                          .block = static_cast<size_t>(now % blocks),
                          .z = z,
                          .streaming = streaming};
      if (now != column) prepared_end = 0;
      column = now;
      // Sources never go back while z grows.
      for (const Tap& tap : walk_.z.taps(z)) {
        if (tap.source < prepared_end) continue;
        rows_.prepare(args, piece, tap.source, scratch, slots + tap.source % blocks_.z_slots * slot_floats_);
        prepared_end = tap.source + 1;
      }
      sums_.run(args, piece, {slots, slot_floats_, sums});
    }
  }

  PlaneWalk walk_;
  ResampleBlocks blocks_;
  ResampleRows rows_;
  ResampleSums sums_;
  int64_t items_ = 0, parts_ = 1, cost_ = 0, slot_floats_ = 0;
  ThreadScratch scratch_;
};

}  // namespace

const char* refuse_resample(const Problem& p, const Target&) {
  for (const TensorDesc* desc : {&p.in[static_cast<size_t>(front_port(p.step))], &p.out[0]})
    if (elements(desc->dims) == 0) return "a tensor has no elements";
  const Expr front = front_expression(p), back = back_expression(p);
  for (const Expr* e : {&front, &back})
    if (const char* reason = refuse_placeless(*e, p)) return reason;
  bool channel_last = false;
  if (const char* reason = refuse_resample_walk(p, channel_last)) return reason;
  const PlaneWalk walk = resample_walk(p, channel_last);
  const int64_t channels = std::min(walk.channels, kPermutedChannels);
  if (walk.x.to() * walk.x.most_taps() * channels > kMostRowTaps || walk.x.from() * channels > INT32_MAX / 16)
    return "the rows are too long for tables";
  return refuse_resample_operands(p);
}

Result<Run> make_resample(const Problem& problem, const Target& target) {
  if (fits_adaptive_average(problem, target)) return make_pool_backward(problem, target);
  const bool copies = NearestCopy::fits(problem);
  // What is repeated is read once there; smaller elements would be converted and back.
  if (const auto pooling = copies && bits_of(problem.out[0].dtype) < 32 ? std::nullopt : as_pooling(problem, target))
    return (pooling->step == StepKind::pool_forward ? make_pool_forward : make_pool_backward)(*pooling, target);
  if (PickedResample::fits(problem, target.isa)) return run_of<PickedResample>(problem, target);
  if (copies) return run_of<NearestCopy>(problem, target);
  if (ResampleLinear::fits(problem, target.isa)) return run_of<ResampleLinear>(problem, target);
  if (ResampleDirect::fits(problem)) return run_of<ResampleDirect>(problem, target);
  if (ResampleShrink::fits(problem, target.isa)) return run_of<ResampleShrink>(problem, target);
  return run_of<Resample>(problem, target);
}

}  // namespace partita::jit
