// SPDX-License-Identifier: Apache-2.0
// LinearKernel: a row of results with linear weights along x, some channels of each. Source places are summed over z
// and y once each. Those of an interpolation stay in registers while the results between two of them are made; in the
// gradient results stay there while places of the interpolation's result are added to them.
#pragma once

#include <vector>

#include "kernels/jit/code/body.hpp"
#include "kernels/jit/taps/operand_code.hpp"

namespace partita::jit {

/// A place of an interpolation's result along x: it takes of the two newest places of the interpolated, or of the
/// newest one alone. In the gradient it adds to them.
struct LinearPlace {
  int32_t moves;        ///< so many places of the interpolated are passed before
  int32_t skipped = 0;  ///< of an interpolation: so many more before those, which nothing takes of
  int32_t made;         ///< of the gradient: so many of them complete a result, the last ones
  int32_t single;       ///< not 0: of one place, with the weight 1
  float older, newer;
};

struct LinearShape {
  bool gradient = false;
  bool skips = false;        ///< some LinearPlace::skipped is not 0
  SourceRows rows = {};      ///< summed over z and y; a gradient's may be none
  int64_t source_bytes = 0;  ///< from place to place along x
  int64_t channels = 0;
  std::vector<TurnOperand> in = {}, out = {};  ///< of the back expression; a turn is a place
  bool streaming = false;
};

/// Addresses of the first place of rows and operands.
struct LinearCall {
  const void* const* rows;
  const float* weights;  ///< of the rows
  const LinearPlace* places;
  int64_t count;  ///< of places; the last one of a gradient only completes results
  const void* const* in;
  void* const* out;
};

class LinearKernel : private OperandCode {
 public:
  using OperandCode::kMostOperands;
  using OperandCode::kMostRows;
  /// Channels that one kernel takes at the most, so that their vectors have registers; these fill cache lines.
  static int64_t most_channels(size_t rows);

  /// AVX-512 alone. `back` has no coordinates. Throws Xbyak::Error where there is no memory for code.
  LinearKernel(const Lanes& back, const LinearShape& shape);
  void operator()(const LinearCall& call) const { entry_(&call); }

 private:
  Xbyak::Zmm moment() const { return Xbyak::Zmm(static_cast<int>(s_.rows.count)); }  ///< behind the rows' weights
  Xbyak::Zmm sum() const { return Xbyak::Zmm(moment().getIdx() + 1); }               ///< of the gradient
  Xbyak::Zmm older(int vector) const { return Xbyak::Zmm(moment().getIdx() + (s_.gradient ? 2 : 1) + vector); }
  Xbyak::Zmm newer(int vector) const { return Xbyak::Zmm(older(vectors()).getIdx() + vector); }
  enum class Taken : uint8_t { both, newer, older_sum };  ///< by a result
  void emit_start();
  void emit_interpolation(Body& body);
  void emit_gradient(Body& body);
  void emit_source(Xbyak::Zmm to, int vector) {
    OperandCode::emit_source(s_.rows, to, vector, count_of(vector), 0, moment());
  }
  void emit_next_source();
  void emit_skip();
  void emit_additions(bool single);
  void emit_results(Body& body, Taken taken);
  BodyHooks hooks(int vector, Taken taken);

  LinearShape s_;
  void (*entry_)(const LinearCall*) = nullptr;
};

}  // namespace partita::jit
