// SPDX-License-Identifier: Apache-2.0
// Machine code for maxima of windows that reach far over each other, of as many channels as a vector has lanes: maxima
// of rows of cells, then of columns of these; and each window's gradient added to its cell.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/jit/code/emitter.hpp"

namespace partita::jit {

/// One row of cells. A place is a vector: a cell, or a window, of all lanes.
struct RowMaximaCall {
  const std::byte* cells;     ///< f32; the first tap of the first window
  std::byte* maxima;          ///< of each window: the greatest of its cells in the row, f32
  std::byte* names;           ///< of each window: where that cell's gradient lies behind `gradients`, s32 bytes
  const int32_t* first;       ///< of each window: bytes from its first tap to the first one inside the source
  int64_t windows;            ///< not 0
  int64_t first_window_name;  ///< what the first window's first tap is called
};

/// The first of the greatest cells, for windows of `kernel` cells, `dilation` cells apart, each `stride` cells behind
/// the one before. NaN counts as greatest; what is lower than all numbers outside of the source never wins.
class RowMaximaKernel : private Emitter {
 public:
  /// Throws Xbyak::Error where there is no memory for code.
  RowMaximaKernel(Isa isa, int64_t kernel, int64_t stride, int64_t dilation);
  void operator()(const RowMaximaCall& call) const { entry_(&call); }

 private:
  void emit_windows(int count);
  Xbyak::Xmm best(int window) const { return vec(3 * window); }
  Xbyak::Xmm winner(int window) const { return vec(3 * window + 1); }
  Xbyak::Xmm value(int window) const { return vec(3 * window + 2); }

  int64_t kernel_, stride_, dilation_;
  void (*entry_)(const RowMaximaCall*) = nullptr;
};

/// One row of windows.
struct WindowSumsCall {
  const std::byte* maxima;   ///< of the rows of cells, at the first window
  int64_t names_at;          ///< from maxima to their names
  const int64_t* rows;       ///< where the rows that the windows reach begin behind `maxima`, from the first one on
  int64_t row_count;         ///< not 0
  const std::byte* windows;  ///< their gradients, f32
  int64_t window_count;      ///< not 0
  std::byte* gradients;      ///< of the cells, f32
};

/// Adds each window's gradient to that of the first of its greatest cells.
class WindowSumsKernel : private Emitter {
 public:
  /// Throws Xbyak::Error where there is no memory for code.
  explicit WindowSumsKernel(Isa isa);
  void operator()(const WindowSumsCall& call) const { entry_(&call); }

 private:
  void emit_window();

  void (*entry_)(const WindowSumsCall*) = nullptr;
};

}  // namespace partita::jit
