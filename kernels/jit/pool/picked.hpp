// SPDX-License-Identifier: Apache-2.0
// Poolings of few cells along each axis, channel-last with few channels, and there averages' gradients, too: a
// resampling whose results are picked from registers.
#pragma once

#include "kernels/jit/taps/picks.hpp"

namespace partita::jit {

class PickedPool {
 public:
  /// False for what PickedResults does not take, and where a window has no cell; the pooling must not be refused.
  static bool fits(const Problem& problem, Isa isa);

  /// Throws Xbyak::Error where there is no memory for code.
  PickedPool(const Problem& problem, const Target& target);
  Status operator()(const RunArgs& args) const { return picks_(args); }

 private:
  PickedResults picks_;
};

}  // namespace partita::jit
