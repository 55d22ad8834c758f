// SPDX-License-Identifier: Apache-2.0
// Whole windows in elements of 16 bits where rows of cells are no whole cache lines: of some rows of windows it is
// found first what becomes of them, and kept; then their cells, which follow each other in memory, are made line by
// line, wherever rows begin. r10 counts the bytes that are kept of each kind.
#include <algorithm>
#include <cstddef>
#include <numeric>

#include "kernels/jit/pool/backward/window_halves.hpp"
#include "kernels/jit/pool/channel_groups.hpp"
#include "kernels/jit/pool/walk.hpp"
#include "src/base/dtype.hpp"

namespace partita::jit {
namespace {

using Xbyak::Zmm;

constexpr int64_t kMostKept = 16, kMostLines = 64;
const Zmm kSum(25), kUpperSum(26);

}  // namespace

std::vector<WindowHalvesKernel::Line> WindowHalvesKernel::lines_of(const PoolPlan& p, int64_t rows) {
  const PoolGeometry& g = p.g;
  std::vector<Line> lines;
  for (int64_t begin = 0; begin < rows * g.kernel[1] * g.src[2]; begin += kWords) {
    Line& line = lines.emplace_back();
    for (int64_t cell = begin; cell < begin + kWords; ++cell) {
      const int64_t y = cell / g.src[2], x = cell % g.src[2];
      const int64_t place = y / g.kernel[1] * groups(p) * kWords + x / g.kernel[2];
      line.windows.push_back(static_cast<int32_t>(place));
      line.taps.push_back(static_cast<int32_t>(y % g.kernel[1] * g.kernel[2] + x % g.kernel[2]));
    }
    const auto [least, most] = std::ranges::minmax(line.windows);
    line.first = least / kWords;
    if (most / kWords != line.first) line.second = most / kWords;
  }
  return lines;
}

int64_t WindowHalvesKernel::rows_together(const PoolPlan& p) {
  const PoolGeometry& g = p.g;
  const int64_t row = g.src[2] * 2;
  if (!WindowKernel::along_x(p) || p.channel_last || row % kCacheLine == 0) return 0;
  const auto follow = [&](const PoolOperand& o) { return o.fold != Fold::none || o.y == row; };
  if (!std::ranges::all_of(p.out, follow)) return 0;
  if (!std::ranges::all_of(p.back_in, [&](int k) { return follow(p.in[static_cast<size_t>(k)]); })) return 0;
  for (const PoolOperand& o : p.out)
    if (o.fold == Fold::none && !on_lines({o.offset, o.n, o.c, o.z})) return 0;
  const int64_t rows = kCacheLine / std::gcd(row * g.kernel[1], int64_t{kCacheLine});
  if (g.dst[1] % rows != 0 || rows * groups(p) > kMostKept || rows * g.kernel[1] * row > kMostLines * kCacheLine)
    return 0;
  const auto near = [](const Line& line) {
    return std::ranges::all_of(
        line.windows, [&](int32_t window) { return window / kWords == line.first || window / kWords == line.second; });
  };
  return std::ranges::all_of(lines_of(p, rows), near) ? rows : 0;
}

void WindowHalvesKernel::emit_steps_of_lines() {
  const size_t windows_end = gradient_stream() + 1;
  const auto row_bytes = static_cast<int>(groups(p_) * kCacheLine);
  Xbyak::Label step, row;
  align(16);
  L(step);
  xor_(r10d, r10d);
  L(row);
  emit_channel_groups(*this, p_.g.dst[2], 1, kWords, [&](int, int count) {
    imul(r9, rcx, static_cast<int>(width()));
    find_winners(count);
    load_gradients(count);
    lea(rdx, ptr[kept_vector(0) + r10]);
    const auto at = rdx + rcx * 2;
    vmovups(ptr[at], kWinner);
    vmovups(ptr[at + static_cast<int>(kept_windows() * kCacheLine)], kGradient);
  });
  advance_streams(0, windows_end);
  add(r10, row_bytes);
  cmp(r10, static_cast<int>(rows_together_) * row_bytes);
  jb(row, T_NEAR);
  xor_(r9d, r9d);
  if (p_.has_folds())
    for (const Zmm& sum : {kSum, kUpperSum}) vpxord(sum, sum, sum);
  const std::vector<Line> lines = lines_of(p_, rows_together_);
  for (size_t line = 0; line < lines.size(); ++line) emit_line(lines[line], static_cast<int64_t>(line));
  if (p_.has_folds()) {
    vaddps(kSum, kSum, kUpperSum);
    fold_to_slot(kSum, Fold::sum, fold_slot(), lanes());
  }
  advance_streams(windows_end, out_stream(p_.tap_rows(), 0));
  dec(r8);
  jnz(step, T_NEAR);
}

/// Of all slices: their cells have the same windows.
void WindowHalvesKernel::emit_line(const Line& line, int64_t number) {
  std::vector<int32_t> places;
  for (const int32_t window : line.windows)
    places.push_back(window % kWords + (window / kWords == line.first ? 0 : kWords));
  vmovdqu16(kNumber, words(places));
  const auto pick = [&](const Zmm& to, int64_t kept) {
    const auto at = [&](int64_t vector) { return ptr[kept_vector(static_cast<int>(kept + vector))]; };
    if (line.second < 0) return vpermw(to, kNumber, at(line.first));
    vmovdqu16(to, at(line.first));
    vpermt2w(to, kNumber, at(line.second));
  };
  const Zmm winners(kWinners), gradients(kGradients), got(kKept);
  pick(winners, 0);
  pick(gradients, kept_windows());
  if (p_.has_folds()) vpxord(got, got, got);
  for (int64_t slice = 0; slice < p_.g.kernel[0]; ++slice) {
    Cells cells{winners, gradients, got, line.taps, slice * p_.g.kernel[1], number, kWords};
    for (int32_t& tap : cells.taps) tap += static_cast<int32_t>(tap_number(cells.row, 0));
    emit_cells(cells);
  }
  if (!p_.has_folds()) return;
  for (const int half : {0, 1}) {
    const Zmm& sum = half == 0 ? kSum : kUpperSum;
    widen_words(kNext, got, half);
    vaddps(sum, sum, kNext);
  }
}

}  // namespace partita::jit
