// SPDX-License-Identifier: Apache-2.0
// Nearest neighbours, channels last, with nothing in front or behind: rows of places that are copied.
#pragma once

#include <memory>
#include <vector>

#include "kernels/jit/flat/staging.hpp"
#include "kernels/jit/resample/walk.hpp"
#include "kernels/kernel.hpp"

namespace partita::jit {

class PlacesKernel;

class NearestCopy {
 public:
  /// Whether the problem is of that kind; it must not be refused.
  static bool fits(const Problem& p);

  NearestCopy(const Problem& p, const Target& target);
  size_t scratch_bytes() const { return staging_.scratch_bytes(); }
  Status operator()(const RunArgs& args) const;

 private:
  PlaneWalk walk_;
  WalkedTensor src_, dst_;
  int64_t bytes_;  ///< of a place
  int64_t threads_;
  std::vector<int64_t> sources_;  ///< of each place along x: bytes from the row's first source
  Staging staging_;               ///< of places
  std::shared_ptr<const PlacesKernel> plain_, streaming_;
};

}  // namespace partita::jit
