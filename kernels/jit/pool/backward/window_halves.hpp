// SPDX-License-Identifier: Apache-2.0
// WindowHalvesKernel: WindowKernel's work for elements of 16 bits that are never computed with: maxima are found by
// comparing integers, and each cell gets its window's gradient or zero. 32 elements are a vector. Sums are made of what
// a window's only winner got, once a window. AVX-512 alone.
#pragma once

#include <vector>

#include "kernels/jit/pool/backward/choices.hpp"
#include "kernels/jit/pool/backward/window_kernel.hpp"

namespace partita::jit {

class WindowHalvesKernel : private PoolCode {
 public:
  static bool fits(const PoolPlan& plan, const Problem& problem, Isa isa);
  /// Only where it fits. Throws Xbyak::Error where there is no memory for code.
  WindowHalvesKernel(const PoolPlan& plan, const Problem& problem, const WindowStores& stores);
  void operator()(const WindowCall& call) const { entry_(&call); }

 private:
  void emit_steps();
  void find_winners(int count);
  void search(int count, bool has_nan);
  void load_source(const Xbyak::Zmm& words, int64_t row, int64_t cell, int count, bool has_nan);
  void pick_tap(int64_t tap);
  void load_gradients(int count);
  void spread();
  void emit_cells(int64_t row, int64_t cell, int count);
  void choose(const PoolChoice& condition, int64_t row, int64_t cell, int count);
  void add_folds(int count);
  void widen_words(const Xbyak::Zmm& to, const Xbyak::Zmm& from, int half);
  Xbyak::RegExp cells_at(const PoolOperand& o, int64_t cell) const;
  int cells_of(int count, int64_t cell) const;
  /// What the windows' winners got, of each vector of cells along x.
  Xbyak::Zmm kept(int64_t cell) const;
  bool spreads() const { return along_x_ && width() > 1; }
  int64_t width() const { return p_.g.kernel[2]; }
  int64_t tap_number(int64_t row, int64_t tap) const { return row * width() + tap; }
  size_t gradient_stream() const { return static_cast<size_t>(p_.tap_rows()); }
  size_t back_stream(int64_t row, size_t k) const {
    return gradient_stream() + 1 + static_cast<size_t>(row) * p_.back_in.size() + k;
  }
  size_t out_stream(int64_t row, size_t k) const {
    return back_stream(p_.tap_rows(), 0) + static_cast<size_t>(row) * p_.out.size() + k;
  }

  bool streaming_, along_x_;
  std::vector<PoolChoice> results_;
  void (*entry_)(const WindowCall*) = nullptr;
};

}  // namespace partita::jit
