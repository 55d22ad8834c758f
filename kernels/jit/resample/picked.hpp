// SPDX-License-Identifier: Apache-2.0
// Resampling whose results are picked from registers, channel-last with few channels.
#pragma once

#include "kernels/jit/taps/picks.hpp"

namespace partita::jit {

class PickedResample {
 public:
  /// False for what PickedResults does not take; the problem must not be refused.
  static bool fits(const Problem& p, Isa isa);

  /// Throws Xbyak::Error where there is no memory for code.
  PickedResample(const Problem& p, const Target& target);
  Status operator()(const RunArgs& args) const { return picks_(args); }

 private:
  PickedResults picks_;
};

}  // namespace partita::jit
