// SPDX-License-Identifier: Apache-2.0
// Code of maxima with indices: rdi call, rcx first channel, or window along x, of the group, r9 its first cell along x,
// r8 windows or rows left, r10 waiting elements of joined rows, rax and rdx for a moment; streams hold the operands'
// places. Vectors: the best tap, a tap, the winners' names, source cells, waiting maxima, then those of back.
#include "kernels/jit/pool/indices/index_kernel.hpp"

#include <algorithm>

#include "kernels/jit/pool/channel_groups.hpp"
#include "kernels/jit/pool/walk.hpp"
#include "src/base/dtype.hpp"

namespace partita::jit {
namespace {

using Xbyak::RegExp;
using Xbyak::Xmm;
using Xbyak::Ymm;
using Xbyak::Zmm;

constexpr int kPlaces = 3;  ///< of a joined result

}  // namespace

size_t IndexKernel::streams_of(const PoolPlan& p) {
  return static_cast<size_t>(p.tap_rows()) + p.back_in.size() + (1 + kPlaces) * p.out.size() + 1;
}

IndexKernel::IndexKernel(Isa isa, const PoolPlan& plan, const Problem& problem, std::vector<TapRow> rows,
                         const IndexStores& stores)
    : PoolCode(isa, plan),
      rows_(std::move(rows)),
      stores_(stores),
      base_(pool_index(problem.attrs, pool_geometry(problem, problem.in[0].dims, problem.out[0].dims))),
      together_(along_x() ? 1 : 2),
      stores_as_they_are_(p_.out.size() == 2 && jit::stores_alone(p_.back) && p_.out[0].dtype == p_.in[0].dtype),
      winners_(search_registers()) {
  fetch_by(Fetching::of_few_streams());
  add_streams();
  int taken = winners_ + together_ + (along_x() ? row_tap_registers() : 0);
  if (stores.joined) {
    std::vector<Dtype> results;
    for (size_t k = 0; k < p_.out.size(); ++k)
      if (k != kIndices) results.push_back(p_.out[k].dtype);
    const auto places = static_cast<int>(8 * (first_stream() + 1));
    joined_.emplace(static_cast<Emitter&>(*this), results, taken, r10d, rsp + places);
    taken += JoinedStores::registers(*this, results.size());
    for (size_t k = 0; k < kPlaces * results.size(); ++k) add_stream(0);
  }
  hold_streams(std::min(first_stream() + 1, kStreamsBesideR10));
  const auto steps = [&](Body& back) { along_x() ? emit_rows(back) : emit_windows(back); };
  const auto tables = [&] {
    if (joined_) joined_->emit_tables();
  };
  entry_ = reinterpret_cast<void (*)(const IndexCall*)>(
      reinterpret_cast<uintptr_t>(emit_all(problem, taken, steps, tables)));
}

void IndexKernel::add_streams() {
  const PoolGeometry& g = p_.g;
  const auto step = [&](const PoolOperand& o) { return along_x() ? o.y : o.x; };
  const int64_t stride = g.strides[along_x() ? 1 : 2];
  for (size_t r = 0; r < rows_.size(); ++r) add_stream(step(p_.in[0]) * stride);
  for (int k : p_.back_in) add_stream(step(p_.in[static_cast<size_t>(k)]));
  for (const PoolOperand& o : p_.out) add_stream(step(o));
  add_stream((along_x() ? g.src[2] : 1) * stride * base_.cell);
}

/// How far the tap's index is from that of the first tap of the vector's first window.
std::vector<int32_t> IndexKernel::names(int64_t row, int64_t tap) const {
  const PoolGeometry& g = p_.g;
  const TapRow& at = rows_[static_cast<size_t>(row)];
  const int64_t cell = (at.z * g.dilations[0] * g.src[1] + at.y * g.dilations[1]) * g.src[2] + tap * g.dilations[2];
  std::vector<int32_t> list;
  for (int64_t l = 0; l < lanes(); ++l)
    list.push_back(static_cast<int32_t>(along_x() ? (cell + l * g.strides[2]) * base_.cell
                                                  : cell * base_.cell + l * base_.channel));
  return list;
}

/// Windows with the same taps are a loop.
void IndexKernel::emit_windows(Body& back) {
  for (const WindowStretch& windows : window_stretches(p_.g, 2)) {
    Xbyak::Label next;
    mov(r8, windows.count);
    align(16);
    L(next);
    emit_window(back, windows.taps);
    advance_streams();
    dec(r8);
    jnz(next, T_NEAR);
  }
}

/// Results of neighbouring vectors are stored one after the other, so that those of 16 bits make whole cache lines.
void IndexKernel::emit_window(Body& back, const PoolGeometry::Taps& taps) {
  emit_channel_groups(*this, p_.g.channels, together_, lanes(), [&](int vectors, int last) {
    const Group group{vectors, last, lanes()};
    for (int v = 0; v < vectors;) {
      const bool halves = fits_halves(group, v);
      halves ? emit_halves(back, group, v, taps) : emit_vector(back, group, v, taps);
      v += halves ? 2 : 1;
    }
    for (int v = 0; v < vectors; ++v) store_indices(group, v);
  });
}

/// Vector `vector` of a tap.
RegExp IndexKernel::place_of_tap(int64_t row, int64_t tap, int vector) {
  const PoolOperand& source = p_.in[0];
  const int each = element_bytes(source.dtype);
  return at(static_cast<size_t>(row)) + static_cast<int>((tap * p_.g.dilations[2] - p_.g.pads_begin[2]) * source.x) +
         rcx * each + vector * lanes() * each;
}

void IndexKernel::emit_vector(Body& back, const Group& group, int vector, const PoolGeometry::Taps& taps) {
  const PoolOperand& source = p_.in[0];
  const int behind = vector * lanes() * element_bytes(source.dtype);
  const auto load = [&](int64_t row, int64_t tap) {
    load_elements(vec(kTap), source, false, place_of_tap(row, tap, vector), group.count(vector),
                  source.begins_line(behind, lanes()) && new_tap(rows_[static_cast<size_t>(row)].y, tap));
  };
  find_maximum(vec(winners_ + vector), {0, std::ssize(rows_), taps.begin, taps.end}, nullptr, load,
               [&](int64_t row, int64_t tap) { return names(row, tap); });
  store_maxima(back, group, vector, vector);
}

/// Names are looked up in a vector.
bool IndexKernel::fits_halves(const Group& group, int vector) const {
  return searched_in_halves(group, vector) && std::ssize(rows_) * p_.g.kernel[2] <= lanes();
}

/// This vector and the next one.
void IndexKernel::emit_halves(Body& back, const Group& group, int vector, const PoolGeometry::Taps& taps) {
  const Zmm best(kBest), moment(kTap), maxima(kRowBest);
  Xbyak::Label any, done;
  search_halves(winners_ + vector, {0, std::ssize(rows_), taps.begin, taps.end},
                [&](int64_t row, int64_t tap) { return place_of_tap(row, tap, vector); });
  jnz(any, T_NEAR);
  for (int half = 0; half < 2; ++half) name_winner(vec(winners_ + vector + half));
  vmovdqu16(moment, words(0x8000));
  count_from_zero(best, moment);  // and back
  if (stores_as_they_are_) {
    stream_in_pieces(stores_.maxima < kCacheLine ? stores_.maxima : 0);
    store_words(best, place(p_.out[0], out_stream(0), vector), 2 * lanes(), stores_.maxima > 0);
  } else {
    vmovdqa32(maxima, best);
    for (int half = 0; half < 2; ++half) {
      widen_words(best, maxima, half);
      store_maxima(back, group, vector + half, vector + half);
    }
  }
  jmp(done, T_NEAR);
  L(any);
  for (int half = 0; half < 2; ++half) emit_vector(back, group, vector + half, taps);
  L(done);
}

/// From the tap's number.
void IndexKernel::name_winner(const Xmm& winner) {
  std::vector<int32_t> table(static_cast<size_t>(lanes()), 0);
  for (int64_t row = 0; row < std::ssize(rows_); ++row)
    for (int64_t tap = 0; tap < p_.g.kernel[2]; ++tap)
      table[static_cast<size_t>(row * p_.g.kernel[2] + tap)] = names(row, tap)[0];
  vpermd(Zmm(winner.getIdx()), Zmm(winner.getIdx()), pattern(table));
  std::vector<int32_t> lanes_from_first;
  for (int64_t l = 0; l < lanes(); ++l) lanes_from_first.push_back(static_cast<int32_t>(l * base_.channel));
  if (base_.channel != 0) vpaddd(winner, winner, pattern(lanes_from_first));
}

void IndexKernel::emit_rows(Body& back) {
  Xbyak::Label row;
  mov(r8, ptr[rdi + offsetof(IndexCall, rows)]);
  if (joined_) {
    mov(r10, ptr[rdi + offsetof(IndexCall, pending)]);
    joined_->emit_start();
  }
  align(16);
  L(row);
  emit_row(back);
  if (joined_) joined_->emit_row_end(p_.g.dst[2]);
  advance_streams();
  dec(r8);
  jnz(row, T_NEAR);
  if (joined_) joined_->emit_finish();
}

/// A whole vector of windows that have all their taps, and not the row's last.
bool IndexKernel::alike(int64_t vector) const {
  return inside_row(vector * lanes(), lanes()) && (vector + 1) * lanes() < p_.g.dst[2];
}

/// Vectors that are alike are a loop, two at a time where they are stored so.
void IndexKernel::emit_row(Body& back) {
  const int64_t vectors = (p_.g.dst[2] + lanes() - 1) / lanes(), pair = joined_ ? 2 : 1;
  xor_(ecx, ecx);
  for (int64_t v = 0; v < vectors;) {
    int64_t end = v;
    while (alike(end)) ++end;
    const int64_t steps = v % pair == 0 ? (end - v) / pair : 0;
    if (steps < 2) {
      emit_row_vector(back, v++);
      continue;
    }
    Xbyak::Label next;
    align(16);
    L(next);
    for (int64_t k = 0; k < pair; ++k) emit_row_vector(back, v + k);
    v += steps * pair;
    cmp(rcx, static_cast<uint32_t>(v * lanes()));
    jl(next, T_NEAR);
  }
}

/// The vector at rcx, which is `vector` unless it is like that one.
void IndexKernel::emit_row_vector(Body& back, int64_t vector) {
  const int64_t first = vector * lanes();
  const Group group{1, static_cast<int>(std::min<int64_t>(lanes(), p_.g.dst[2] - first)), lanes()};
  imul(r9, rcx, static_cast<int>(p_.g.strides[2]));
  find_row_maximum(
      vec(winners_), {0, std::ssize(rows_), 0, p_.g.kernel[2]}, first,
      [&](int64_t row, int64_t tap) {
        load_row_tap(static_cast<size_t>(row), 0, tap, first, new_tap(rows_[static_cast<size_t>(row)].y, tap));
      },
      [&](int64_t row, int64_t tap) { return names(row, tap); });
  store_maxima(back, group, 0, vector);
  store_indices(group, 0);
  add(rcx, lanes());
}

/// Of the window whose maxima are in vec(kBest), vector `number` of a row.
void IndexKernel::store_maxima(Body& back, const Group& group, int vector, int64_t number) {
  const int count = group.count(vector);
  BodyHooks hooks;
  hooks.load = [&](Xmm dst, int operand) {
    const auto k = static_cast<size_t>(std::ranges::find(p_.back_in, operand) - p_.back_in.begin());
    const PoolOperand& o = p_.in[static_cast<size_t>(operand)];
    load_elements(dst, o, (along_x() ? o.x : o.c) == 0, place(o, back_stream(k), vector), count,
                  o.begins_line(vector * lanes() * element_bytes(o.dtype), lanes()));
  };
  hooks.skeleton = [&](Xmm dst) { vmovaps(dst, vec(kBest)); };
  hooks.store = [&](Xmm value, const Lane& lane) {
    const auto k = static_cast<size_t>(lane.imm);
    if (joined_) {
      const bool last = (number + 1) * lanes() >= p_.g.dst[2];
      return joined_->emit_store(k < kIndices ? k : k - 1, value, lane.flag, number, last, count);
    }
    stream_in_pieces(stores_.maxima < kCacheLine ? stores_.maxima : 0);
    const RegExp to = place(p_.out[k], out_stream(k), vector);
    store(value, p_.out[k].dtype, lane.flag, to, count, stores_.maxima > 0);
  };
  back.emit(hooks);
}

void IndexKernel::store_indices(const Group& group, int vector) {
  const Xmm first = scratch(1), index = scratch(2), winner = vec(winners_ + vector);
  const int count = group.count(vector), half = lanes() / 2;
  const bool streaming = stores_.indices > 0;
  stream_in_pieces(stores_.indices < kCacheLine ? stores_.indices : 0);
  load_first_index(first, vector);
  const RegExp to = place(indices(), out_stream(kIndices), vector);
  if (indices().dtype == Dtype::s32) {
    vpaddd(index, winner, first);
    return store_bytes(index, 4, to, count, streaming);
  }
  for (int h = 0; h * half < count; ++h) {
    if (wide()) {
      const Ymm part(h == 0 ? winner.getIdx() : index.getIdx());
      if (h > 0) vextracti64x4(part, Zmm(winner.getIdx()), 1);
      vpmovsxdq(Zmm(index.getIdx()), part);
    } else {
      const Xmm part(h == 0 ? winner.getIdx() : index.getIdx());
      if (h > 0) vextracti128(part, Ymm(winner.getIdx()), 1);
      vpmovsxdq(Ymm(index.getIdx()), part);
    }
    vpaddq(index, index, first);
    store_bytes(index, 4, to + h * half * 8, 2 * std::min(half, count - h * half), streaming);
  }
}

/// What the vector's names count from, in every lane.
void IndexKernel::load_first_index(const Xmm& first, int vector) {
  const bool s64 = indices().dtype == Dtype::s64;
  const int64_t each = along_x() ? base_.cell : base_.channel;
  mov(rax, at(first_stream()));
  if (each != 0) {
    const auto& moved = along_x() ? r9 : rcx;
    imul(rdx, moved, static_cast<int>(each));
    add(rax, rdx);
    if (vector > 0) add(rax, static_cast<int>(vector * lanes() * each));
  }
  const Xmm low(first.getIdx());
  vmovq(low, rax);
  s64 ? vpbroadcastq(first, low) : vpbroadcastd(first, low);
}

RegExp IndexKernel::place(const PoolOperand& o, size_t stream, int vector) {
  const int each = element_bytes(o.dtype);
  const Xbyak::Reg64 first = at(stream);
  if ((along_x() ? o.x : o.c) == 0) return first;
  return first + rcx * each + vector * lanes() * each;
}

}  // namespace partita::jit
