// SPDX-License-Identifier: Apache-2.0
// Sums stay in registers while a row is read (dots), or while all rows are (sums). Rows ahead are fetched: one stream
// of reads by itself uses half of what a core gets from memory.
//   rdi the matrix's next row, rsi the vectors (sums: their next number), rdx the results, rcx rows left,
//   r8 where in the row
#include "kernels/jit/products/few_rows_kernel.hpp"

#include <algorithm>

#include "src/base/check.hpp"
#include "src/base/dtype.hpp"
#include "src/base/round.hpp"

namespace partita::jit {
namespace {

using Xbyak::RegExp;
using Xbyak::Xmm;

constexpr int kSums = 24;  ///< registers for sums; beside them four rows or vectors of the matrix
constexpr int kBeside = 4;

}  // namespace

int64_t FewRowsKernel::most_columns(int vectors) {
  return int64_t{std::min(kBeside, kSums / vectors)} * lanes_of(Isa::avx512);
}

FewRowsKernel::FewRowsKernel(const FewRowsShape& shape)
    : Emitter(Isa::avx512), shape_(shape), bytes_(element_bytes(shape.dtype)) {
  PT_ASSERT(shape.vectors >= 1 && shape.vectors <= kMostVectors);
  static_assert(kSums + kBeside <= 32 - kScratch);
  if (shape_.form == FewRowsShape::Form::dots)
    emit_dots();
  else
    emit_sums();
  vzeroupper();
  ret();
  emit_constants();
  entry_ =
      reinterpret_cast<void (*)(const void*, const float*, float*, int64_t)>(reinterpret_cast<uintptr_t>(finish()));
}

void FewRowsKernel::load_row(Xmm to, const RegExp& at, int64_t column) {
  const auto count = static_cast<int>(std::min<int64_t>(lanes(), shape_.columns - column));
  load(to, shape_.dtype, Walk::next, at, count);
}

/// The same places of later rows, of which `rows` are read at once.
Fetching FewRowsKernel::later(int rows) const {
  return Fetching::second_level(static_cast<int>(rounded_up(int64_t{Fetching::kFewStreams}, rows * shape_.row_bytes)));
}

void FewRowsKernel::emit_dots() {
  Xbyak::Label together, one, done;
  align(16);
  L(together);
  cmp(rcx, kFoldedRows);
  jl(one, T_NEAR);
  emit_rows(kFoldedRows);
  advance(rdi, kFoldedRows * shape_.row_bytes);
  add(rdx, kFoldedRows * static_cast<int>(sizeof(float)));
  sub(rcx, kFoldedRows);
  jmp(together, T_NEAR);
  L(one);
  test(rcx, rcx);
  jz(done, T_NEAR);
  emit_rows(1);
  advance(rdi, shape_.row_bytes);
  add(rdx, static_cast<int>(sizeof(float)));
  dec(rcx);
  jmp(one, T_NEAR);
  L(done);
}

/// `rows` rows times all vectors, as many vectors at once as there are registers.
void FewRowsKernel::emit_rows(int rows) {
  const int most = std::min(shape_.vectors, kSums / rows);
  const int groups = (shape_.vectors + most - 1) / most;
  const int64_t whole = shape_.columns / lanes() * lanes();
  const auto row = [&](int r) { return vec(kSums + r); };
  for (int g = 0; g < groups; ++g) {
    const int begin = shape_.vectors * g / groups, end = shape_.vectors * (g + 1) / groups;
    const auto place = [&](int v) { return static_cast<int>(v * shape_.vector_bytes); };
    for (int i = 0; i < (end - begin) * rows; ++i) vpxord(sum(i), sum(i), sum(i));
    const auto columns = [&](int64_t column, bool fetches) {
      for (int r = 0; r < rows; ++r) {
        const int64_t from = r * shape_.row_bytes;
        load_row(row(r), rdi + r8 * bytes_ + static_cast<int>(from), column);
        if (fetches) fetch_line(rdi + r8 * bytes_ + static_cast<int>(from), later(rows));
      }
      for (int v = begin; v < end; ++v) {
        const Xmm vector = scratch(v % 2);
        vmovups(vector, ptr[rsi + r8 * 4 + place(v)]);
        for (int r = 0; r < rows; ++r) vfmadd231ps(sum((v - begin) * rows + r), row(r), vector);
      }
    };
    xor_(r8d, r8d);
    if (whole > 0) {
      Xbyak::Label next;
      align(16);
      L(next);
      columns(0, g == 0);
      add(r8, lanes());
      cmp(r8, static_cast<int>(whole));
      jl(next, T_NEAR);
    }
    if (whole < shape_.columns) columns(whole, false);
    for (int v = begin; v < end; ++v) {
      const RegExp to = rdx + static_cast<int>(v * shape_.result_bytes);
      if (rows == kFoldedRows)
        fold_rows_to_memory((v - begin) * rows, Fold::sum, to);
      else
        fold_lanes_to_memory(sum(v - begin), Fold::sum, to);
    }
  }
}

void FewRowsKernel::emit_sums() {
  const auto parts = static_cast<int>((shape_.columns + lanes() - 1) / lanes());
  const auto result = [&](int v, int part) {
    return rdx + static_cast<int>(v * shape_.result_bytes + part * vector_bytes());
  };
  const auto count = [&](int part) {
    return static_cast<int>(std::min<int64_t>(lanes(), shape_.columns - part * lanes()));
  };
  for (int v = 0; v < shape_.vectors; ++v)
    for (int part = 0; part < parts; ++part)
      load(sum(v * parts + part), Dtype::f32, Walk::next, result(v, part), count(part));
  Xbyak::Label next, done;
  test(rcx, rcx);
  jz(done, T_NEAR);
  align(16);
  L(next);
  for (int part = 0; part < parts; ++part) {
    const int64_t behind = int64_t{part} * lanes() * bytes_;
    load_row(vec(kSums + part), rdi + static_cast<int>(behind), int64_t{part} * lanes());
    if (begins_line(behind, int64_t{lanes()} * bytes_)) fetch_line(rdi + static_cast<int>(behind), later(1));
  }
  for (int v = 0; v < shape_.vectors; ++v) {
    const Xmm number = scratch(v % 2);
    vbroadcastss(number, ptr[rsi + static_cast<int>(v * shape_.vector_bytes)]);
    for (int part = 0; part < parts; ++part) vfmadd231ps(sum(v * parts + part), vec(kSums + part), number);
  }
  advance(rdi, shape_.row_bytes);
  add(rsi, static_cast<int>(sizeof(float)));
  dec(rcx);
  jnz(next, T_NEAR);
  L(done);
  for (int v = 0; v < shape_.vectors; ++v)
    for (int part = 0; part < parts; ++part) store_bytes(sum(v * parts + part), 4, result(v, part), count(part), false);
}

}  // namespace partita::jit
