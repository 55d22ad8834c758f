// SPDX-License-Identifier: Apache-2.0
// Gradients of maximum poolings, channel-last, whose windows cover every cell exactly once: a window is read, and its
// cells are written, in one step.
#pragma once

#include <memory>

#include "kernels/jit/body.hpp"
#include "kernels/jit/pool_plan.hpp"
#include "kernels/kernel.hpp"

namespace partita::jit {

struct WindowCall {
  /// Addresses at the first window, tap row by tap row where cells are meant: the source; operands of front; those of
  /// back; results.
  const void* const* addresses;
  int64_t windows;
};

/// A row of windows.
class WindowKernel : private Emitter {
 public:
  /// Throws Xbyak::Error where there is no memory for code.
  WindowKernel(Isa isa, const PoolPlan& plan, const Problem& problem, bool streaming);
  void operator()(const WindowCall& call) const { entry_(&call); }

 private:
  /// Where an operand advances by, bytes a window.
  struct Stream {
    const PoolOperand* operand;
    int64_t step;
  };
  void emit_window(Body& front, Body& back);
  void emit_group(Body& front, Body& back, int vectors, int last);
  void find_winner(int vector, int count);
  void compete(int64_t tap, int vector);
  void emit_cell(Body& back, int64_t row, int64_t tap, int vector, int count);
  void load_at(const Xbyak::Xmm& dst, const PoolOperand& o, size_t stream, int64_t tap, int vector, int count);
  Xbyak::Address slot(size_t stream) { return qword[rsp + 8 * static_cast<int>(stream)]; }
  int64_t tap_rows() const { return p_.tap_rows(); }
  size_t front_stream(size_t k) const { return static_cast<size_t>(tap_rows()) + k; }
  size_t back_stream(int64_t row, size_t k) const {
    return front_stream(p_.front_in.size()) + static_cast<size_t>(row) * p_.back_in.size() + k;
  }
  size_t out_stream(int64_t row, size_t k) const {
    return back_stream(tap_rows(), 0) + static_cast<size_t>(row) * p_.out.size() + k;
  }

  const PoolPlan& p_;
  bool streaming_;
  int together_;   // vectors of channels
  int gradients_;  // first of their registers
  std::vector<Stream> streams_;
  Xbyak::Label numbers_;  // of taps; AVX2: in every lane
  void (*entry_)(const WindowCall*) = nullptr;
};

class WindowPool {
 public:
  static bool fits(const Problem& problem);
  /// Throws Xbyak::Error where there is no memory for code.
  WindowPool(const Problem& problem, const Target& target);
  WindowPool(const WindowPool&) = delete;
  WindowPool& operator=(const WindowPool&) = delete;
  Status operator()(const RunArgs& args) const;

 private:
  void run(const RunArgs& args, const WindowKernel& kernel, int64_t n, int64_t z, int64_t y) const;

  PoolPlan p_;
  std::unique_ptr<const WindowKernel> kernel_, streaming_;
};

}  // namespace partita::jit
