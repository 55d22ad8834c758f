// SPDX-License-Identifier: Apache-2.0
// LinearKernel: a row of results with linear weights along x, some channels of each. Source places are summed over z
// and y once each, and stay in registers while the results between two of them are made.
#pragma once

#include <vector>

#include "kernels/jit/code/body.hpp"

namespace partita::jit {

/// A result along x: of the two newest places, or of the newest one alone.
struct LinearPlace {
  int32_t moves;   ///< so many places are read before
  int32_t single;  ///< not 0: of one place, with the weight 1
  float older, newer;
};

struct LinearOperand {
  Dtype dtype;
  bool steps;  ///< one element for each channel, else one for all
  int64_t x_bytes;
};

struct LinearShape {
  Dtype source = Dtype::undef;
  int64_t source_bytes = 0;  ///< from place to place along x
  size_t rows = 0;           ///< that are summed over z and y
  bool weighted = false;     ///< by weights
  int64_t channels = 0;
  std::vector<LinearOperand> in = {}, out = {};  ///< of the back expression
  int fetched = 0;  ///< so many bytes ahead of the last row lines are fetched, which are read next; 0: none
  bool streaming = false;
};

/// Addresses of the first place of rows and operands.
struct LinearCall {
  const void* const* rows;
  const float* weights;  ///< of the rows
  const LinearPlace* places;
  int64_t count;  ///< of places
  const void* const* in;
  void* const* out;
};

class LinearKernel : private Emitter {
 public:
  static constexpr size_t kMostRows = 4, kMostOperands = 5;
  /// Channels that one kernel takes at the most, so that their vectors have registers; these fill cache lines.
  static int64_t most_channels(size_t rows);

  /// AVX-512 alone. `back` has no coordinates. Throws Xbyak::Error where there is no memory for code.
  LinearKernel(const Lanes& back, const LinearShape& shape);
  void operator()(const LinearCall& call) const { entry_(&call); }

 private:
  int vectors() const { return static_cast<int>((s_.channels + lanes() - 1) / lanes()); }
  int channels_of(int vector) const;
  Xbyak::Zmm weight(size_t row) const { return Xbyak::Zmm(static_cast<int>(row)); }
  Xbyak::Zmm moment() const { return Xbyak::Zmm(static_cast<int>(s_.rows)); }
  Xbyak::Zmm older(int vector) const { return Xbyak::Zmm(moment().getIdx() + 1 + vector); }
  Xbyak::Zmm newer(int vector) const { return Xbyak::Zmm(older(vectors()).getIdx() + vector); }
  const LinearOperand& operand(size_t k) const { return k < s_.in.size() ? s_.in[k] : s_.out[k - s_.in.size()]; }
  size_t operands() const { return s_.in.size() + s_.out.size(); }
  Xbyak::RegExp elements(size_t k, int vector) const;
  void emit_start();
  void emit_move();
  void emit_results(Body& body, bool single);
  BodyHooks hooks(int vector, bool single);

  LinearShape s_;
  void (*entry_)(const LinearCall*) = nullptr;
};

}  // namespace partita::jit
