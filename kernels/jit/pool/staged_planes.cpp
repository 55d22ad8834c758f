// SPDX-License-Identifier: Apache-2.0
// Shares of scratch memory, a thread's results one behind the other.
#include "kernels/jit/pool/staged_planes.hpp"

#include <algorithm>

namespace partita::jit {

bool StagedPlanes::fit(const PoolPlan& p, int64_t most_bytes) {
  const auto fits = [&](const PoolOperand& o) {
    const int64_t each = element_bytes(o.dtype), bytes = plane_bytes(p, o);
    const bool rows_follow = o.x == each && (p.g.src[1] == 1 || o.y == p.g.src[2] * each);
    return rows_follow && bytes <= most_bytes && (p.planes() == 1 || o.planes_apart(p.g) == bytes);
  };
  return p.out.size() <= kMostResults &&
         std::ranges::all_of(p.out, [&](const PoolOperand& o) { return o.fold != Fold::none || fits(o); });
}

StagedPlanes::StagedPlanes(const PoolPlan& p, int64_t planes, int64_t behind, int threads) : results_(p.out.size()) {
  size_t all = 0;
  for (size_t k = 0; k < results_; ++k) {
    if (p.out[k].fold != Fold::none) continue;
    plane_bytes_[k] = plane_bytes(p, p.out[k]);
    each_[k] = static_cast<size_t>(planes * plane_bytes_[k] + behind);
    all += StagedLines::scratch_bytes(each_[k]);
  }
  scratch_ = {threads, static_cast<int64_t>(all)};
}

StagedPlanes::Part::Part(const StagedPlanes* staged, std::byte* scratch, int number) : staged_(staged) {
  if (staged == nullptr) return;
  std::byte* at = staged->scratch_.share(scratch, number);
  for (size_t k = 0; k < staged->results_; ++k) {
    if (!stages(k)) continue;
    lines_[k] = StagedLines(at, staged->each_[k]);
    at += StagedLines::scratch_bytes(staged->each_[k]);
  }
}

void StagedPlanes::Part::made(size_t result, std::byte* to, int64_t planes, int64_t lines) {
  lines_[result].sent(lines);
  lines_[result].written(to, static_cast<size_t>(planes * staged_->plane_bytes_[result]));
}

void StagedPlanes::Part::finish() {
  for (StagedLines& lines : lines_) lines.finish();
}

}  // namespace partita::jit
