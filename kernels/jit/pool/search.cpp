// SPDX-License-Identifier: Apache-2.0
// The search for maxima: the number of the first maximum of a window, in each lane. NaN is one.
#include <array>
#include <bit>

#include "kernels/jit/code/predicates.hpp"
#include "kernels/jit/pool/code.hpp"
#include "kernels/jit/pool/compete.hpp"
#include "src/base/dtype.hpp"

namespace partita::jit {
namespace {

using Xbyak::RegExp;
using Xbyak::Xmm;
using Xbyak::Ymm;
using Xbyak::Zmm;

/// Taps are added up to know whether one is NaN, in turns, since each addition waits for the one before it: ports that
/// compare have more to do than those that add. A sum is NaN where a tap is, or where infinities of both signs are.
constexpr std::array<int, 2> kSums = {2, 3};  // scratch

}  // namespace

/// AVX-512: as if there were no NaN, which takes fewer instructions, and where there was one, anew.
void PoolCode::find_maximum(const Xmm& winner, const Taps& taps, const StartRow& start, const LoadTap& load_tap,
                            const TapNames& names, bool has_nan, const SharedRows* shared) {
  const auto search_for = [&](Taken taken) {
    search(winner, taps, start, taken, load_tap, names, taken == Taken::numbers ? shared : nullptr);
  };
  if (!wide() || has_nan) return search_for(Taken::any);
  Xbyak::Label done;
  search_for(Taken::numbers);
  const Xmm sum = scratch(kSums[0]);
  if ((taps.end_row - taps.first_row) * (taps.end - taps.first) > 1) vaddps(sum, sum, scratch(kSums[1]));
  vcmpps(k1, sum, sum, kUnordered);
  kortestw(k1, k1);
  jz(done, T_NEAR);
  emit_seldom([&] { search_for(Taken::any); });
  L(done);
}

/// Each step waits for the one before it, so rows are searched by themselves and then compete with each other.
void PoolCode::search(const Xmm& winner, const Taps& taps, const StartRow& start, Taken taken, const LoadTap& load_tap,
                      const TapNames& names, const SharedRows* shared) {
  size_t turn = 0;
  // Of numbers: what has been added up to one of the sums so far.
  const auto add = [&](const Xbyak::Operand& taps_or_sum) {
    const Xmm sum = scratch(kSums[turn % kSums.size()]);
    turn++ < kSums.size() ? vmovups(sum, taps_or_sum) : vaddps(sum, sum, taps_or_sum);
  };
  const auto before = [&](int64_t row) { return held_vector(scratch(0), held(everywhere(row * p_.g.kernel[2]))); };
  for (int64_t row = taps.first_row; row < taps.end_row; ++row) {
    const bool apart = wide() && row > taps.first_row;
    const Xmm best = vec(apart ? kRowBest : kBest), named = apart ? vec(kRowWinner) : winner;
    const bool is_found = shared != nullptr && row < shared->found, is_kept = shared != nullptr && row >= shared->kept;
    bool first = row == taps.first_row || apart;
    if (start && !is_found && (row == taps.first_row || is_kept)) {
      start(row, best, named);
      first = false;
    }
    if (is_found) {
      const auto columns = ptr[shared->place(row, 1)];
      vmovups(best, ptr[shared->place(row, 0)]);
      row == 0 ? vmovups(named, columns) : vpaddd(named, before(row), columns);
      add(ptr[shared->place(row, 2)]);
    }
    const Xmm row_sum = scratch(1);
    for (int64_t tap = taps.first; tap < taps.end && !is_found; ++tap) {
      const auto number = held(names(row, tap));
      load_tap(row, tap);
      if (is_kept)
        tap == taps.first ? vmovaps(row_sum, vec(kTap)) : vaddps(row_sum, row_sum, vec(kTap));
      else if (taken == Taken::numbers)
        add(vec(kTap));
      if (first) {
        vmovaps(best, vec(kTap));
        vmovups(named, number);
      } else {
        compete(best, named, vec(kTap), number, taken);
      }
      first = false;
    }
    if (is_kept && !is_found) {
      add(row_sum);
      vmovups(ptr[shared->place(row, 2)], row_sum);
      vmovups(ptr[shared->place(row, 0)], best);
      vpsubd(row_sum, named, before(row));
      vmovups(ptr[shared->place(row, 1)], row_sum);
    }
    if (apart) compete(vec(kBest), winner, best, named, taken);
  }
}

/// Cells outside the row never win.
void PoolCode::find_row_maximum(const Xmm& winner, const Taps& rows, int64_t first, const LoadTap& load_tap,
                                const TapNames& names, bool has_nan, const SharedRows* shared) {
  const PoolGeometry& g = p_.g;
  const Taps taps{rows.first_row, rows.end_row, 0, g.kernel[2]};
  if (inside_row(first, lanes())) return find_maximum(winner, taps, nullptr, load_tap, names, has_nan, shared);
  std::vector<int64_t> columns;
  for (int64_t w = first; w < first + lanes(); ++w) columns.push_back(w < g.dst[2] ? g.taps(2, w).begin : 0);
  find_maximum_from(winner, taps, columns, load_tap, names, has_nan, shared);
}

void PoolCode::find_maximum_from(const Xmm& winner, const Taps& taps, const std::vector<int64_t>& columns,
                                 const LoadTap& load_tap, const TapNames& names, bool has_nan,
                                 const SharedRows* shared) {
  const auto start = [&](int64_t row, const Xmm& best, const Xmm& named) {
    std::vector<int32_t> first;
    for (size_t l = 0; l < columns.size(); ++l) first.push_back(names(row, columns[l])[l]);
    vmovups(named, pattern(first));
    broadcast_bits(best, std::bit_cast<int32_t>(kLowest));
  };
  find_maximum(winner, taps, start, load_tap, names, has_nan, shared);
}

/// Of zeros with either sign the first one stays.
void PoolCode::compete(const Xmm& best, const Xmm& winner, const Xmm& value, const Xbyak::Operand& number,
                       Taken taken) {
  if (taken == Taken::any) return emit_compete(*this, best, winner, value, number, scratch(0), scratch(1));
  vcmpps(k1, best, value, kLess);
  vmaxps(best, value, best);
  vmovdqa32(winner | k1, number);
}

bool PoolCode::searched_in_halves(const Group& group, int vector) const {
  const PoolOperand& source = p_.in[0];
  return wide() && (source.dtype == Dtype::bf16 || source.dtype == Dtype::f16) && source.c != 0 &&
         vector + 1 < group.vectors && group.count(vector) == lanes() && group.count(vector + 1) == lanes();
}

void PoolCode::find_channel_winner(const Xmm& winner, const Group& group, int vector, const Taps& taps,
                                   const PlaceTap& place) {
  const PoolOperand& source = p_.in[0];
  const auto load = [&](int64_t row, int64_t tap) {
    const RegExp at = place(row, tap);
    load_elements(vec(kTap), source, source.c == 0,
                  source.c == 0 ? at : at + vector * lanes() * element_bytes(source.dtype), group.count(vector),
                  new_tap(row, tap), next_rows_of(source));
  };
  find_maximum(winner, taps, nullptr, load, tap_numbers());
}

void PoolCode::find_winners(int winners, const Group& group, const Taps& taps, const PlaceTap& place) {
  const int vector_step = lanes() * element_bytes(p_.in[0].dtype);
  const auto find_one = [&](int vector) { find_channel_winner(vec(winners + vector), group, vector, taps, place); };
  for (int v = 0; v < group.vectors; ++v) {
    if (!searched_in_halves(group, v)) {
      find_one(v);
      continue;
    }
    Xbyak::Label done;
    search_halves(winners + v, taps, [&](int64_t row, int64_t tap) { return place(row, tap) + v * vector_step; });
    jz(done, T_NEAR);
    find_one(v);
    find_one(v + 1);
    L(done);
    ++v;
  }
}

void PoolCode::search_halves(int winners, const Taps& taps, const PlaceTap& place) {
  const Zmm winner(winners), further(winners + 1);
  find_winner_words(winner, further, taps, place);
  vextracti64x4(Ymm(winners + 1), winner, 1);
  vpmovzxwd(further, Ymm(winners + 1));
  vpmovzxwd(winner, Ymm(winners));
  kortestd(k1, k2);
}

void PoolCode::find_winner_words(const Zmm& winner, const Zmm& moment, const Taps& taps, const PlaceTap& place) {
  const Zmm best(kBest), tap(kTap), least(kRowBest);
  const Zmm signs(held_vector(moment, held_words(kSignOfWord)).getIdx());
  bool first = true;
  for (int64_t row = taps.first_row; row < taps.end_row; ++row)
    for (int64_t column = taps.first; column < taps.end; ++column) {
      const RegExp at = place(row, column);
      if (new_tap(row, column)) fetch(at, next_rows_of(p_.in[0]));
      vmovdqu16(tap, ptr[at]);
      count_from_zero(tap, signs);
      const Held number = held_words(row * p_.g.kernel[2] + column);
      if (first) {
        vmovdqa32(best, tap);
        vmovdqa32(least, tap);
        vmovups(winner, number);
      } else {
        vpminsw(least, least, tap);
        vpcmpgtw(k1, tap, best);
        vpmaxsw(best, best, tap);
        // What is in memory is loaded apart: masked loads of words are slow on some processors.
        vmovdqu16(winner | k1, held_vector(vec(kRowWinner), number));
      }
      first = false;
    }
  vmovdqu16(tap, words(-counted_infinity()));
  vpcmpgtw(k1, best, words(counted_infinity()));
  vpcmpgtw(k2, tap, least);
  kortestd(k1, k2);
}

}  // namespace partita::jit
