// SPDX-License-Identifier: Apache-2.0
// Results that take few places along each axis (interpolation to about as many places or more, its gradients to about
// half as many, poolings of few cells): picked from registers, row after row. Channel-first, or channel-last with so
// few channels that those of a place fill no vector.
#pragma once

#include <memory>
#include <vector>

#include "kernels/jit/taps/picks_view.hpp"
#include "kernels/kernel.hpp"

namespace partita::jit {

class PickedResults {
 public:
  static constexpr int64_t kFewChannels = 24;  ///< channel-last, at the most

  /// For a problem with an empty front, its source and outputs of types with generated conversions; `walk` says what
  /// each result takes, channel-last with the channels in its rows.
  static bool fits(const Problem& p, const PlaneWalk& walk, Isa isa);

  /// Results are sums, or maxima of what has weight 1. Throws Xbyak::Error where there is no memory for code.
  PickedResults(const Problem& p, const PlaneWalk& walk, Fold fold, const Target& target);
  Status operator()(const RunArgs& args) const;

 private:
  /// Planes, and the kernels for them.
  struct Part {
    PicksView view;
    int64_t blocks = 1;  ///< of turns of a plane
    std::unique_ptr<const PicksKernel> plain = nullptr, streaming = nullptr;
    bool joined = false;  ///< the stores of `streaming`

    void run(const RunArgs& args, bool streams) const;
    /// Turns [begin, end) of a plane.
    void run(const RunArgs& args, int64_t plane, int64_t z, int64_t begin, int64_t end, bool streams) const;
  };

  static Part make_part(const Problem& p, PicksView view, Fold fold, int threads, bool streams);

  std::vector<Part> parts_;
};

}  // namespace partita::jit
