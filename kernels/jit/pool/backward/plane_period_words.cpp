// SPDX-License-Identifier: Apache-2.0
// The search in elements of 16 bits that are neighbours along x, 32 windows at once: along each row of taps, which is
// done once for all windows that have the row, then from row to row. Elements are counted so that integers have the
// order of floats, both zeros are the same, and NaN of either sign are above the infinities: from the lowest number on,
// which is minus infinity.
#include <algorithm>

#include "kernels/jit/pool/backward/plane_period_kernel.hpp"
#include "kernels/jit/pool/walk.hpp"

namespace partita::jit {
namespace {

using Xbyak::RegExp;
using Xbyak::Ymm;
using Xbyak::Zmm;

/// Vectors: some taps of each of the rows that are searched at once, the first of which becomes the largest, and their
/// columns; the best tap and its number; scratch: cells and what is needed for a moment.
constexpr int kRowsAtOnce = 2, kTapsAtOnce = 3;
Zmm tap_of_row(int64_t row, int64_t tap) { return Zmm(static_cast<int>(row * kTapsAtOnce + tap)); }
Zmm column_of_row(int64_t row) { return Zmm(static_cast<int>(kRowsAtOnce * kTapsAtOnce + row)); }
const Zmm kLargest(8), kNumber(9);
constexpr int kMoment = 0, kCells = 1, kCellsBehind = 2;
constexpr int32_t kLeast = -0x8000;
const Xbyak::Opmask kLowerWords = Xbyak::util::k7;  ///< of each lane, from the start of a call on

Xbyak::Opmask mask_of_row(int64_t row) { return Xbyak::Opmask(static_cast<int>(1 + row)); }

}  // namespace

void PlanePeriodKernel::prepare_words() {
  if (!takes_turns()) return;
  mov(eax, 0x55555555u);
  kmovd(kLowerWords, eax);
}

/// The winners of windows from rcx on.
void PlanePeriodKernel::search_words(const Step& step, int64_t first, int count) {
  const PeriodPart& rows = step.search;
  const auto numbers_at = static_cast<int>(aligned(p_.g.dst[2] * 2));
  const auto place = [&](int64_t row) { return at(shared_stream(row % shared_)) + rcx * 2; };
  int64_t row = rows.first_tap;
  for (; step.shares && row < std::min(shared_, rows.end_tap); ++row) {
    const RegExp found = place(row);
    vmovdqu16(tap_of_row(0, 0), ptr[found]);
    vmovdqu16(column_of_row(0), ptr[found + numbers_at]);
    compete_words(0, row, row == rows.first_tap);
  }
  while (row < rows.end_tap) {
    const auto together = std::min<int64_t>(kRowsAtOnce, rows.end_tap - row);
    search_words_along({row, together, step.search_beside}, first, count);
    for (int64_t i = 0; i < together; ++i, ++row) {
      if (shared_ > 0 && row >= p_.g.strides[1]) {  // the window below has it, too
        const RegExp found = place(row);
        vmovdqu16(ptr[found], tap_of_row(i, 0));
        vmovdqu16(ptr[found + numbers_at], column_of_row(i));
      }
      compete_words(i, row, row == rows.first_tap);
    }
  }
  Xbyak::Label anew, done;
  vpcmpgtw(k1, kLargest, words(2 * counted_infinity() - 0x8000));
  kortestd(k1, k1);
  jnz(anew, T_NEAR);
  name_none(count);
  for (int behind = 0; behind < count; behind += lanes()) {
    const Zmm part = tap_of_row(0, behind / lanes());
    widen_numbers(part, behind);
    store_winners(vec(part.getIdx()), behind);
  }
  jmp(done, T_NEAR);
  L(anew);
  emit_seldom([&] {
    for (int behind = 0; behind < count; behind += lanes()) {
      if (behind > 0) add(r9, static_cast<uint32_t>(lanes() * stride()));
      search_floats(step, first, behind, std::min(lanes(), count - behind), true);
    }
  });
  imul(r9, rcx, static_cast<int>(stride()));
  L(done);
}

/// What is no window, in a vector's part that is stored, has a winner that no tap is called.
void PlanePeriodKernel::name_none(int count) {
  std::vector<int32_t> none(kWords, 0);
  for (int behind = 0; behind < count; behind += lanes()) {
    const std::vector<bool> of_part = no_windows(behind, std::min(lanes(), count - behind));
    for (int l = 0; l < lanes(); ++l)
      if (of_part[static_cast<size_t>(l)]) none[word_of(behind + l)] = -1;
  }
  if (std::ranges::count(none, -1) > 0) vpord(kNumber, kNumber, words(none));
}

/// part = the numbers of the windows from `behind` on, one a lane.
void PlanePeriodKernel::widen_numbers(const Zmm& part, int behind) {
  if (takes_turns()) return behind > 0 ? vpsrld(part, kNumber, 16) : vpandd(part, kNumber, pattern(everywhere(0xffff)));
  if (behind > 0) vextracti64x4(Ymm(part.getIdx()), kNumber, 1);
  vpmovzxwd(part, Ymm(behind > 0 ? part.getIdx() : kNumber.getIdx()));
}

/// Where in a vector of words the window is: in turns, a lane's lower half is a window of the first half of them, its
/// upper half one of the second.
size_t PlanePeriodKernel::word_of(int window) const {
  const int word = takes_turns() ? window % lanes() * 2 + window / lanes() : window;
  return static_cast<size_t>(word);
}

/// What row `i` of those searched at once has found competes with what the rows before it have.
void PlanePeriodKernel::compete_words(int64_t i, int64_t row, bool first) {
  const Zmm moment(scratch(kMoment).getIdx());
  if (row > 0) vmovdqu16(moment, words(row * p_.g.kernel[2]));
  if (first) {
    vmovdqa32(kLargest, tap_of_row(i, 0));
    row == 0 ? vmovdqa32(kNumber, column_of_row(i)) : vpaddw(kNumber, column_of_row(i), moment);
    return;
  }
  vpcmpgtw(k1, tap_of_row(i, 0), kLargest);
  vpmaxsw(kLargest, kLargest, tap_of_row(i, 0));
  vpaddw(kNumber | k1, column_of_row(i), moment);
}

/// The first maximum of each window in some rows of taps, and its column, which counts from 0. Each step is done for
/// all rows before the next one, since it waits for the one before.
void PlanePeriodKernel::search_words_along(const WordRows& of, int64_t first, int count) {
  const int64_t taps = p_.g.kernel[2], together = taps <= kTapsAtOnce ? taps : 2, rows = of.rows;
  std::vector<int32_t> starts(kWords, 0);  // the first columns that are cells
  const std::vector<int32_t> first_taps = p_.first_taps(0);
  for (int w = 0; w < count; ++w) {
    const auto window = static_cast<size_t>(planes_ > 1 ? w % words_of_plane() : first + w);
    if (window < first_taps.size()) starts[word_of(w)] = first_taps[window];
  }
  const bool start = std::ranges::any_of(starts, [](int32_t s) { return s > 0; });
  for (int64_t i = 0; i < rows && (start || taps == 1); ++i) vmovdqu16(column_of_row(i), held_words(starts));
  for (int64_t tap = 0; tap < taps; tap += together) {
    const int64_t end = std::min(tap + together, taps), from = tap == 0 ? 0 : 1;  // the largest stays
    const auto of_tap = [&](int64_t i, int64_t t) { return tap_of_row(i, from + t - tap); };
    std::vector<Zmm> loaded;
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t t = tap; t < end; ++t) {
        if (tap == 0 && next_window_has(t)) continue;
        load_word_tap(of_tap(i, t), of.row + i, t, first, of.beside);
        loaded.push_back(of_tap(i, t));
      }
    order_words(loaded);
    for (int64_t t = tap; t < end; ++t)
      for (int64_t i = 0; i < rows; ++i)
        if (tap == 0 && next_window_has(t)) valignd(of_tap(i, t), of_tap(i, 0), of_tap(i, 0), 1);
    for (int64_t t = tap; t < end && (planes_ == 1 || of.beside); ++t)
      exclude_words(from + t - tap, rows,
                    planes_ > 1 ? outside_planes(t, words_of_plane(), kWords) : outside_row(t, first, count));
    for (int64_t t = std::max<int64_t>(tap, 1); t < end; ++t) {
      const bool only = t == 1 && !start;
      const Zmm number(scratch(kMoment).getIdx());
      vmovdqu16(number, words(t));  // by itself: masked loads of words are slow on some processors
      for (int64_t i = 0; i < rows; ++i) vpcmpgtw(mask_of_row(i), of_tap(i, t), tap_of_row(i, 0));
      for (int64_t i = 0; i < rows; ++i) vpmaxsw(tap_of_row(i, 0), tap_of_row(i, 0), of_tap(i, t));
      for (int64_t i = 0; i < rows; ++i)
        vmovdqu16(only ? column_of_row(i) | mask_of_row(i) | T_z : column_of_row(i) | mask_of_row(i), number);
    }
  }
}

/// Elements as they come from memory become integers in the order of floats.
void PlanePeriodKernel::order_words(const std::vector<Zmm>& elements) {
  const Zmm signs(held_vector(scratch(kMoment), held_words(kSignOfWord)).getIdx());
  for (const Zmm& each : elements) count_from_zero(each, signs);
  const Held lift = held_words(0x8000 - counted_infinity());
  for (const Zmm& each : elements) vpsubw(each, each, lift);
}

/// Whether a tap is what the first one is of the window behind, which lies in the lane behind, also of a plane's last
/// window: there is a lane more.
bool PlanePeriodKernel::next_window_has(int64_t tap) const {
  return takes_turns() && planes_ > 1 && tap == stride() && p_.g.dilations[2] == 1 && p_.g.dst[2] < words_of_plane();
}

/// That tap of each window. Two columns come with the first one of them where windows start two cells apart: each lane
/// of what is loaded has both of a window, so that shifts bring a column of two vectors to one, in turns.
void PlanePeriodKernel::load_word_tap(const Zmm& to, int64_t row, int64_t tap, int64_t first, bool beside) {
  const int64_t cell = tap * p_.g.dilations[2] - p_.g.pads_begin[2];
  const Zmm cells(scratch(kCells).getIdx()), behind(scratch(kCellsBehind).getIdx());
  if (stride() == 1)
    return planes_ > 1 ? load_words_of_planes({to}, row, tap, beside)
                       : load_source_words(to, row, cell, first, tap == 0);
  if (tap % 2 == 0 && planes_ > 1) {
    load_words_of_planes({cells, behind}, row, tap, beside);
  } else if (tap % 2 == 0) {
    load_source_words(cells, row, cell, first, tap == 0);
    load_source_words(behind, row, cell + kWords, first, tap == 0);
  }
  if (tap % 2 == 0) {
    vpslld(to, behind, 16);
    vpblendmw(to | kLowerWords, to, cells);
  } else {
    vpsrld(to, cells, 16);
    vpblendmw(to | kLowerWords, behind, to);
  }
}

/// Those of the windows' taps become the lowest number, in all rows that are searched at once.
void PlanePeriodKernel::exclude_words(int64_t tap, int64_t rows, const std::vector<bool>& outside) {
  if (std::ranges::count(outside, true) == 0) return;
  constexpr int32_t kMost = 0x7fff;
  std::vector<int32_t> most(kWords, kMost);
  for (size_t w = 0; w < outside.size(); ++w)
    if (outside[w]) most[word_of(static_cast<int>(w))] = kLeast;
  const auto bound = words(most);
  for (int64_t i = 0; i < rows; ++i) vpminsw(tap_of_row(i, tap), tap_of_row(i, tap), bound);
}

/// A vector from the cell on that lies `cell` cells behind the first window's period; zeros outside the row.
void PlanePeriodKernel::load_source_words(const Zmm& to, int64_t row, int64_t cell, int64_t first, bool ahead) {
  const int64_t begin = first * stride() + cell;
  const auto part = [&](int64_t place) { return static_cast<int>(std::clamp<int64_t>(place - begin, 0, kWords)); };
  const int from = part(0), end = part(p_.g.src[2]);
  if (from >= end) return vpxord(to, to, to);
  const RegExp cells = at(0) + static_cast<int>(source_row(row)) + r9 * 2 + static_cast<int>(cell * 2);
  if (ahead) fetch(cells);
  load_words(to, cells, from, end);
}

}  // namespace partita::jit
