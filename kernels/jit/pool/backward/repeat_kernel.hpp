// SPDX-License-Identifier: Apache-2.0
// RepeatKernel: machine code for gradients of averages whose cells repeat the gradient of their window, channels first.
#pragma once

#include <optional>
#include <vector>

#include "kernels/jit/pool/backward/choices.hpp"
#include "kernels/jit/pool/code.hpp"

namespace partita::jit {

struct RepeatCall {
  const void* const* addresses;  ///< of the operands of front, then of the result and of the operands of back
  int64_t steps;                 ///< units
};

/// A unit: windows and cells that follow each other in memory.
struct RepeatUnit {
  int64_t windows = 0;
  std::vector<int32_t> cells = {};  ///< the window of each
  bool streaming = false;           ///< past the caches: cells begin at cache lines and make whole ones
};

/// The windows' gradients are put side by side in the frame, in the result's type; then each vector of cells is picked
/// from there, from one vector or two.
class RepeatKernel : private PoolCode {
 public:
  /// AVX-512 alone. Throws Xbyak::Error where there is no memory for code.
  RepeatKernel(const PoolPlan& plan, const Problem& problem, const RepeatUnit& unit);
  void operator()(const RepeatCall& call) const { entry_(&call); }

  static constexpr int64_t kMostWindows = 4096, kMostVectors = 512;
  /// Elements of a vector of results.
  static int64_t together(Dtype dtype);
  /// Whether each vector of the unit's cells can be picked.
  static bool fits(const std::vector<int32_t>& cells, Dtype dtype);

 private:
  /// A vector of cells: `first` and `second` (-1: none) window of what it is picked from, `numbers` of elements there.
  struct Picked {
    int64_t first = 0, second = -1;
    std::vector<int32_t> numbers = {};
  };
  static std::optional<Picked> picked(const std::vector<int32_t>& cells, int64_t begin, int64_t count);
  void emit_units(Body& front);
  void emit_gradients(Body& front, const Xbyak::Reg64& to, int64_t number);
  void load_gradient(Body& front, const Xbyak::Xmm& gradient, int64_t begin);
  void emit_cells(int64_t number);
  void pick(const Xbyak::Zmm& to, const Picked& from);
  void choose(const Xbyak::Zmm& cells, int behind, int count);
  Xbyak::Address address_of(const std::vector<int32_t>& numbers);
  Xbyak::Address kept(int64_t window) const { return ptr[r10 + static_cast<int>(window * bytes_)]; }
  int64_t gradient_vectors() const { return (unit_.windows + together_ - 1) / together_; }
  int64_t kept_vectors() const { return gradient_vectors() + 1; }  ///< what is picked from starts at any window
  /// Registers: a condition's elements, and what they are compared with.
  Xbyak::Zmm chosen_by(int number) const { return Xbyak::Zmm(kHeld + static_cast<int>(held_.size()) + number); }
  size_t result_stream() const { return p_.front_in.size(); }

  static constexpr int kHeld = 4;  ///< first register of the numbers that are held

  RepeatUnit unit_;
  int64_t bytes_, together_;  ///< of an element; elements of a vector
  std::vector<Picked> picks_;
  PoolChoice choice_;
  std::vector<std::vector<int32_t>> held_;  ///< what most vectors are picked by, in registers
  void (*entry_)(const RepeatCall*) = nullptr;
};

}  // namespace partita::jit
