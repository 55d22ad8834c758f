// SPDX-License-Identifier: Apache-2.0
// Channel-last resampling with few taps: each result is computed from its sources at once, without prepared rows.
#pragma once

#include <array>
#include <memory>

#include "kernels/jit/resample/walk.hpp"
#include "kernels/kernel.hpp"

namespace partita::jit {

class ResampleDirect {
 public:
  /// Whether the problem is of that kind; it must not be refused.
  static bool fits(const Problem& p);

  ResampleDirect(const Problem& p, const Target& target);
  Status operator()(const RunArgs& args) const;

 private:
  static constexpr size_t kMaxTaps = 4;  ///< of one result, over all axes
  using Kernel = std::shared_ptr<const FlatKernel>;
  /// Numbers of taps along z, y and x.
  template <class T>
  using ByTaps = std::array<std::array<std::array<T, kMaxTaps + 1>, kMaxTaps + 1>, kMaxTaps + 1>;

  void make_kernels(Isa isa);
  Kernel make(Isa isa, size_t z_taps, size_t y_taps, size_t x_taps, bool streaming) const;
  void run_row(const RunArgs& args, int64_t plane, int64_t z, int64_t y, bool streaming) const;
  void run_stretch(const RunArgs& args, const TapStretch& s, int64_t plane, int64_t z, int64_t y, bool streaming) const;

  PlaneWalk walk_;
  Expr front_, back_;
  std::vector<int> front_in_, back_in_;
  std::vector<WalkedTensor> front_tensors_, back_tensors_, out_;
  AxisStep x_step_;
  std::vector<TapStretch> stretches_;
  bool may_stream_ = false;
  std::array<ByTaps<Kernel>, 2> kernels_;  // [streaming]
};

}  // namespace partita::jit
