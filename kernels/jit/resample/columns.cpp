// SPDX-License-Identifier: Apache-2.0
// Code and tables of resampling along the innermost axis.
//   rdi call, r8 source row 0, r9 result row 0, r10 bases, r11 numbers and weights, rcx vectors left;
//   within a vector: rax, rdx, rbx, r12 offsets of the taps' sources, rsi source row, r13 result, r14 rows left, r15
//   gather
// Registers: 0 sum, 1 picked, 2 picked from the upper windows, 3 mask, 4.. numbers, 8.. weights, 12 the number 32,
// 13 zero. k1..k4 say which results have the tap.
#include "kernels/jit/resample/columns.hpp"

#include <algorithm>
#include <bit>

#include "kernels/jit/code/imm32.hpp"
#include "kernels/jit/code/predicates.hpp"

namespace partita::jit {
namespace {

using Xbyak::Opmask;
using Xbyak::RegExp;
using Xbyak::Ymm;

int windows_for(int64_t reach, int lanes) {
  if (reach < lanes) return 1;
  if (reach < 2 * lanes) return 2;
  return reach < 4 * lanes && lanes == 16 ? 4 : 0;
}

}  // namespace

bool picks_by_permutation(Isa isa, const AxisMap& map) {
  const int lanes = lanes_of(isa);
  for (int64_t first = 0; first < map.to(); first += lanes)
    for (int64_t k = 0; k < map.most_taps(); ++k) {
      int32_t lowest = INT32_MAX, highest = 0;
      for (int64_t place = first; place < std::min(map.to(), first + lanes); ++place) {
        const auto taps = map.taps(place);
        if (k >= static_cast<int64_t>(taps.size())) continue;
        lowest = std::min(lowest, taps[static_cast<size_t>(k)].source);
        highest = std::max(highest, taps[static_cast<size_t>(k)].source);
      }
      if (highest >= lowest && windows_for(highest - lowest, lanes) == 0) return false;
    }
  return true;
}

ColumnKernel::ColumnKernel(Isa isa, const ColumnShape& shape) : Emitter(isa), shape_(shape) {
  const Xbyak::Reg64 offsets[kMaxTaps] = {rax, rdx, rbx, r12};
  for (const auto& r : {rbx, r12, r13, r14, r15}) push(r);
  mov(r8, ptr[rdi + offsetof(ColumnCall, from)]);
  mov(r9, ptr[rdi + offsetof(ColumnCall, to)]);
  mov(r10, ptr[rdi + offsetof(ColumnCall, bases)]);
  mov(r11, ptr[rdi + offsetof(ColumnCall, numbers)]);
  mov(rcx, ptr[rdi + offsetof(ColumnCall, vectors)]);
  broadcast_bits(reg(12), 32);
  broadcast_bits(reg(13), 0);

  Xbyak::Label vector, row;
  align(16);
  L(vector);
  for (int k = 0; k < shape_.taps; ++k) {
    movsxd(offsets[k], dword[r10 + 4 * k]);
    vmovups(numbers(k), ptr[r11 + 2 * k * vector_bytes()]);
    vmovups(weights(k), ptr[r11 + (2 * k + 1) * vector_bytes()]);
    if (shape_.gaps && wide()) vcmpps(Opmask(1 + k), weights(k), reg(13), kNotEqual);
  }
  mov(rsi, r8);
  mov(r13, r9);
  mov(r14, ptr[rdi + offsetof(ColumnCall, rows)]);
  align(16);
  L(row);
  emit_row();
  add(rsi, imm32(shape_.from_bytes));
  add(r13, imm32(shape_.to_bytes));
  dec(r14);
  jnz(row, T_NEAR);
  add(r9, vector_bytes());
  add(r10, 4 * shape_.taps);
  add(r11, 2 * shape_.taps * vector_bytes());
  dec(rcx);
  jnz(vector, T_NEAR);

  vzeroupper();
  for (const auto& r : {r15, r14, r13, r12, rbx}) pop(r);
  ret();
  emit_constants();
  entry_ = reinterpret_cast<void (*)(const ColumnCall*)>(reinterpret_cast<uintptr_t>(finish()));
}

/// One vector of one row.
void ColumnKernel::emit_row() {
  const Ymm sum = reg(0), picked = reg(1), mask = reg(3);
  if (shape_.accumulate) vmovups(sum, ptr[r13]);
  for (int k = 0; k < shape_.taps; ++k) {
    const bool first = k == 0 && !shape_.accumulate;
    pick(k);
    if (shape_.gaps && wide()) {
      first ? vmulps(sum | Opmask(1 + k) | T_z, picked, weights(k))
            : vfmadd231ps(sum | Opmask(1 + k), picked, weights(k));
      continue;
    }
    if (shape_.gaps) {
      // A place without the tap must not turn an infinity of its neighbours into NaN.
      vcmpps(mask, weights(k), reg(13), kNotEqual);
      vandps(picked, picked, mask);
    }
    first ? vmulps(sum, picked, weights(k)) : vfmadd231ps(sum, picked, weights(k));
  }
  vmovups(ptr[r13], sum);
}

RegExp ColumnKernel::source(int tap, int window) const {
  const Xbyak::Reg64 offsets[kMaxTaps] = {rax, rdx, rbx, r12};
  return rsi + offsets[tap] + window * vector_bytes();
}

/// Register 1 = the tap's source of each result.
void ColumnKernel::pick(int tap) {
  const Ymm picked = reg(1), upper = reg(2), mask = reg(3);
  if (shape_.windows == 0) return gather(tap);
  if (shape_.windows == 1) return vpermps(picked, numbers(tap), ptr[source(tap, 0)]);
  if (wide()) return pick_wide(tap);
  vpermps(picked, numbers(tap), ptr[source(tap, 0)]);
  vpermps(upper, numbers(tap), ptr[source(tap, 1)]);
  vpslld(mask, numbers(tap), 28);  // the bit that tells the windows apart becomes the sign
  vblendvps(picked, picked, upper, mask);
}

void ColumnKernel::pick_wide(int tap) {
  const Ymm picked = reg(1), upper = reg(2);
  vmovups(picked, ptr[source(tap, 0)]);
  vpermt2ps(picked, numbers(tap), ptr[source(tap, 1)]);
  if (shape_.windows == 2) return;
  vmovups(upper, ptr[source(tap, 2)]);
  vpermt2ps(upper, numbers(tap), ptr[source(tap, 3)]);
  vptestmd(k5, numbers(tap), reg(12));
  vmovaps(picked | k5, upper);
}

void ColumnKernel::gather(int tap) {
  const Ymm picked = reg(1), mask = reg(3);
  lea(r15, ptr[source(tap, 0)]);
  const auto from = ptr[r15 + numbers(tap) * 4];
  if (wide()) {
    kxnorw(k5, k5, k5);
    return vgatherdps(picked | k5, from);
  }
  vpcmpeqd(mask, mask, mask);
  vgatherdps(picked, from, mask);
}

ColumnGroup::ColumnGroup(Isa isa, const AxisMap& map, int64_t channels, const std::vector<Chunk>& chunks, int first_tap,
                         int64_t from_bytes, int64_t to_bytes)
    : lanes_(lanes_of(isa)) {
  shape_.taps = std::min(ColumnKernel::kMaxTaps, static_cast<int>(map.most_taps()) - first_tap);
  shape_.accumulate = first_tap > 0;
  shape_.from_bytes = from_bytes;
  shape_.to_bytes = to_bytes;
  for (const Chunk& chunk : chunks) add_table(map, channels, chunk, first_tap);
  shape_.windows = windows_for(reach_, lanes_);
  kernel_ = std::make_shared<const ColumnKernel>(isa, shape_);
}

void ColumnGroup::add_table(const AxisMap& map, int64_t channels, const Chunk& chunk, int first_tap) {
  const int64_t results = (chunk.end - chunk.begin) * channels;
  ColumnTable table;
  table.vectors = (results + lanes_ - 1) / lanes_;
  std::vector<int64_t> sources(static_cast<size_t>(lanes_));
  std::vector<float> weights(static_cast<size_t>(lanes_));
  for (int64_t v = 0; v < table.vectors; ++v)
    for (int k = 0; k < shape_.taps; ++k) {
      for (size_t lane = 0; lane < sources.size(); ++lane) {
        const int64_t result = v * lanes_ + static_cast<int64_t>(lane);
        sources[lane] = -1;
        weights[lane] = 0;
        if (result >= results) continue;
        const auto taps = map.taps(chunk.begin + result / channels);
        const auto tap = static_cast<size_t>(first_tap) + static_cast<size_t>(k);
        if (tap < taps.size()) {
          sources[lane] = (taps[tap].source - chunk.start) * channels + result % channels;
          weights[lane] = taps[tap].weight;
        } else {
          shape_.gaps = true;
        }
      }
      add_vector(sources, weights, table);
    }
  tables_.push_back(std::move(table));
}

void ColumnGroup::add_vector(const std::vector<int64_t>& sources, const std::vector<float>& weights,
                             ColumnTable& table) {
  int64_t base = INT64_MAX;
  for (int64_t s : sources)
    if (s >= 0) base = std::min(base, s);
  if (base == INT64_MAX) base = 0;
  table.bases.push_back(imm32(base * 4));
  for (int64_t s : sources) {
    const int64_t number = s < 0 ? 0 : s - base;
    reach_ = std::max(reach_, number);
    table.numbers.push_back(static_cast<int32_t>(number));
  }
  for (float w : weights) table.numbers.push_back(std::bit_cast<int32_t>(w));
}

void ColumnGroup::run(size_t chunk, const float* from, float* to, int64_t rows) const {
  const ColumnTable& t = tables_[chunk];
  (*kernel_)({from, to, t.bases.data(), t.numbers.data(), t.vectors, rows});
}

}  // namespace partita::jit
