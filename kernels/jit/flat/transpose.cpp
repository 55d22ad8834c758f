// SPDX-License-Identifier: Apache-2.0
// Code of a transposing copy: blocks of as many rows as a vector has 32-bit lanes are exchanged in registers; elements
// of 16 bits travel in pairs, those of two rows in one lane, where there are rows enough. Blocks of one group of source
// rows follow each other, so that a source is read in runs; or those of one group of destination rows do, and the
// source is fetched in runs.
//   rdi, rsi first source and destination element of the group; r10, r11 those of the block; r8, r9 groups and blocks
//   left; rdx what is fetched; rcx tiles left; eax is used by partial vectors.
#include "kernels/jit/flat/transpose.hpp"

#include <algorithm>

#include "kernels/jit/code/imm32.hpp"
#include "src/base/round.hpp"

namespace partita::jit {
namespace {

using Xbyak::Xmm;

constexpr uint8_t kEven = 0x88, kOdd = 0xdd;  // 128-bit parts of two vectors
constexpr uint8_t kLowHalves = 0x20, kHighHalves = 0x31;
constexpr int kFetched = 256;  ///< bytes ahead in a source row

}  // namespace

TransposeKernel::TransposeKernel(Isa isa, const TransposeShape& shape) : Emitter(isa), shape_(shape) {
  if (interleaves() || separates()) {
    emit_interleaved();
  } else {
    emit_tiles([&] { shape.writes_runs ? emit_columns_of_tile() : emit_rows_of_tile(); });
  }
  vzeroupper();
  ret();
  emit_constants();
  entry_ = reinterpret_cast<void (*)(const void*, void*, int64_t)>(reinterpret_cast<uintptr_t>(finish()));
}

/// `emit` may change rdi and rsi.
void TransposeKernel::emit_tiles(const std::function<void()>& emit) {
  Xbyak::Label tile;
  mov(rcx, rdx);
  L(tile);
  push(rdi);
  push(rsi);
  emit();
  pop(rsi);
  pop(rdi);
  advance(rdi, shape_.next_src);
  advance(rsi, shape_.next_dst);
  dec(rcx);
  jnz(tile, T_NEAR);
}

void TransposeKernel::emit_columns_of_tile() {
  if (shape_.fetches_next) {
    mov(rdx, shape_.a * shape_.src_row);
    add(rdx, rdi);
  }
  emit_all_columns(rdi, rsi, [&](int columns) { emit_column(columns); });
}

void TransposeKernel::emit_rows_of_tile() {
  emit_all_rows([&](int rows) {
    emit_rows(rows);
    for (int passed = 0; passed < rows; passed += lanes()) add(rdi, static_cast<uint32_t>(lanes() * shape_.src_row));
    add(rsi, rows * shape_.bytes);
  });
}

/// All source rows, in groups.
void TransposeKernel::emit_all_rows(const std::function<void(int rows)>& emit) {
  const int64_t groups = shape_.a / rows_of_group();
  const int left = static_cast<int>(shape_.a % rows_of_group()), rest = left % lanes();
  if (groups > 0) {
    Xbyak::Label group;
    mov(r8, groups);
    align(16);
    L(group);
    emit(rows_of_group());
    dec(r8);
    jnz(group, T_NEAR);
  }
  if (left >= lanes()) emit(lanes());
  if (rest > 0) emit(rest);
}

/// All columns of a source, and rows of a destination, in blocks; both registers go on.
void TransposeKernel::emit_all_columns(const Xbyak::Reg64& from, const Xbyak::Reg64& to,
                                       const std::function<void(int columns)>& emit) {
  const int64_t blocks = shape_.b / lanes();
  const int rest = static_cast<int>(shape_.b % lanes());
  if (blocks > 0) {
    Xbyak::Label block;
    mov(r9, blocks);
    align(16);
    L(block);
    emit(lanes());
    add(from, lanes() * shape_.bytes * shape_.step);
    add(to, static_cast<uint32_t>(lanes() * shape_.dst_row));
    dec(r9);
    jnz(block, T_NEAR);
  }
  if (rest > 0) emit(rest);
}

/// `count` source rows.
void TransposeKernel::emit_rows(int count) {
  mov(r10, rdi);
  mov(r11, rsi);
  emit_all_columns(r10, r11, [&](int columns) { emit_block(count, columns); });
}

/// All source rows, `count` columns of them.
void TransposeKernel::emit_column(int count) {
  mov(r10, rdi);
  mov(r11, rsi);
  emit_all_rows([&](int rows) {
    if (shape_.fetches_next) fetch(rows, count);
    emit_block(rows, count);
    add(r10, static_cast<uint32_t>(rows * shape_.src_row));
    add(r11, rows * shape_.bytes);
  });
}

/// As many bytes of the next tile, in the order of memory, as a block has.
void TransposeKernel::fetch(int rows, int columns) {
  const int bytes = rows * columns * shape_.bytes;
  for (int line = 0; line < bytes; line += kCacheLine) prefetcht1(ptr[rdx + line]);
  add(rdx, bytes);
}

void TransposeKernel::emit_block(int a, int b) {
  const bool pairs = a > lanes();
  for (int i = 0; i < std::min(a, lanes()); ++i) {
    load_row(i, pairs ? 2 * i : i, b);
    if (!pairs) continue;
    const int other = lanes() + i;
    load_row(other, 2 * i + 1, b);
    vpslld(vec(other), vec(other), 16);
    vorps(vec(i), vec(i), vec(other));
  }
  const int rows = std::min(a, lanes());
  wide() ? exchange_wide(rows, b) : exchange_narrow(rows, b);
  const int bytes = pairs ? 4 : shape_.bytes, count = pairs ? lanes() : a;
  for (int i = 0; i < b; ++i) {
    const auto to = r11 + imm32(i * shape_.dst_row);
    store_bytes(column(i), bytes, to, count, shape_.streaming && count == lanes() && bytes == 4);
  }
}

void TransposeKernel::load_row(int number, int row, int b) {
  const Xbyak::RegExp from = r10 + imm32(row * shape_.src_row);
  if (shape_.streaming && !shape_.writes_runs) prefetcht1(ptr[from + kFetched]);
  shape_.step == 1 ? load_bytes(vec(number), shape_.bytes, from, b) : load_apart(vec(number), from, shape_.step, b);
}

/// Of each four rows, each 128 bits become one column's four lanes: register to + 4 g + c holds columns c, c + 4, .. of
/// rows 4 g to 4 g + 3. Changes the registers `from` too. As the exchanges, only as far as `a` rows and `b` columns.
void TransposeKernel::pairs_and_fours(int from, int to, int a, int b) {
  for (int i = 0; i < a; i += 2) {
    vunpcklps(vec(to + i), vec(from + i), vec(from + i + 1));
    if (b > 2) vunpckhps(vec(to + i + 1), vec(from + i), vec(from + i + 1));
  }
  for (int g = 0; g < a; g += 4)
    for (int c = 0; c < std::min(b, 4); ++c) {
      const Xmm low = vec(to + g + c / 2), high = vec(to + g + c / 2 + 2);
      c % 2 == 0 ? vunpcklpd(vec(from + g + c), low, high) : vunpckhpd(vec(from + g + c), low, high);
    }
}

void TransposeKernel::exchange_wide(int a, int b) {
  pairs_and_fours(0, 16, a, b);
  // Twice, parts of two vectors side by side: eight rows, then sixteen.
  for (int c = 0; c < std::min(b, 4); ++c)
    for (int g = 0; 8 * g < a; ++g) {
      const Xbyak::Zmm low(8 * g + c), high(8 * g + 4 + c);
      vshuff32x4(Xbyak::Zmm(16 + 4 * g + c), low, high, kEven);
      if (b > 4) vshuff32x4(Xbyak::Zmm(24 + 4 * g + c), low, high, kOdd);
    }
  for (int i = 0; i < b; ++i) {
    const int from = 16 + 8 * (i / 4 % 2) + i % 4;
    vshuff32x4(Xbyak::Zmm(i), Xbyak::Zmm(from), Xbyak::Zmm(from + 4), i < 8 ? kEven : kOdd);
  }
}

void TransposeKernel::exchange_narrow(int a, int b) {
  pairs_and_fours(0, 8, a, b);
  for (int c = 0; c < std::min(b, 4); ++c) {
    const Xbyak::Ymm low(c), high(4 + c);
    vperm2f128(Xbyak::Ymm(8 + c), low, high, kLowHalves);
    if (b > 4) vperm2f128(high, low, high, kHighHalves);
  }
}

/// Where a column is after the exchange.
Xmm TransposeKernel::column(int i) const { return vec(wide() || i >= 4 ? i : 8 + i); }

}  // namespace partita::jit
