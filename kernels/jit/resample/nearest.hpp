// SPDX-License-Identifier: Apache-2.0
// Nearest neighbours, channels last, with nothing in front or behind: rows of places that are copied.
#pragma once

#include <memory>
#include <vector>

#include "kernels/jit/flat/stream_copy.hpp"
#include "kernels/jit/resample/walk.hpp"
#include "kernels/kernel.hpp"
#include "kernels/thread_scratch.hpp"

namespace partita::jit {

class PlacesKernel;

class NearestCopy {
 public:
  /// Whether the problem is of that kind; it must not be refused.
  static bool fits(const Problem& p);

  NearestCopy(const Problem& p, const Target& target);
  size_t scratch_bytes() const { return staged_places_ > 0 ? scratch().bytes() : 0; }
  Status operator()(const RunArgs& args) const;

 private:
  size_t staged_bytes() const { return static_cast<size_t>(staged_places_ * bytes_); }
  ThreadScratch scratch() const { return {threads_, static_cast<int64_t>(StagedLines::scratch_bytes(staged_bytes()))}; }
  void stage_row(const std::byte* src, std::byte* dst, StagedLines& lines) const;

  PlaneWalk walk_;
  WalkedTensor src_, dst_;
  int64_t bytes_;  ///< of a place
  int64_t threads_;
  std::vector<int64_t> sources_;  ///< of each place along x: bytes from the row's first source
  int64_t staged_places_ = 0;     ///< 0: rows are written where they belong
  std::shared_ptr<const PlacesKernel> plain_, streaming_;
};

}  // namespace partita::jit
