// SPDX-License-Identifier: Apache-2.0
// Rows of few windows: a vector has those of several planes, which begin at lanes of their own. Cells are loaded plane
// by plane into parts of a vector, under masks, so that taps are taken from all of them by one permutation.
#include <algorithm>
#include <bit>

#include "kernels/jit/pool/backward/plane_period_kernel.hpp"
#include "src/base/dtype.hpp"

namespace partita::jit {
namespace {

using Xbyak::Xmm;
using Xbyak::Ymm;
using Xbyak::Zmm;

}  // namespace

int PlanePeriodKernel::side_by_side(const PoolPlan& p, Isa isa) {
  const PoolGeometry& g = p.g;
  const auto moves_evenly = [&](const PoolOperand& o) { return o.planes_apart(g).has_value(); };
  const auto is_row = [&](int k) {
    const PoolOperand& o = p.in[static_cast<size_t>(k)];
    return moves_evenly(o) && is_plain_float(o.dtype) && o.x == element_bytes(o.dtype);
  };
  const auto is_gradient = [&](int k) {
    const PoolOperand& o = p.in[static_cast<size_t>(k)];
    return is_row(k) || (o.x == 0 && o.planes_apart(g) == 0);
  };
  if (isa != Isa::avx512 || p.indices >= 0 || p.has_folds() || g.strides[2] > 2 || !is_row(0)) return 1;
  const bool in_words = searches_words(p, isa);
  if (!in_words && p.in[0].dtype != Dtype::f32) return 1;
  if (!std::ranges::all_of(p.front_in, is_gradient) || !std::ranges::all_of(p.out, moves_evenly) ||
      !std::ranges::all_of(p.back_in, [&](int k) { return moves_evenly(p.in[static_cast<size_t>(k)]); }))
    return 1;
  constexpr int64_t kMost = 4;
  const int64_t lanes = in_words ? kWords : lanes_of(isa), periods = (g.src[2] - 1) / g.strides[2] + 1;
  const auto each = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max(g.dst[2], periods))));
  return static_cast<int>(std::clamp<int64_t>(lanes / each, 1, kMost));
}

/// The first maxima of the vector's windows; what find_row_maximum does for those of one plane.
void PlanePeriodKernel::search_planes(const Step& step, int behind, bool has_nan, const SharedRows* shared) {
  const PeriodPart& rows = step.search;
  const bool beside = step.search_beside && !in_words_;
  const Xmm winner = vec(search_registers());
  std::vector<int64_t> columns;
  for (int l = 0; l < lanes(); ++l) {
    const int64_t window = l % lanes_of_plane();
    columns.push_back(window < p_.g.dst[2] ? p_.g.taps(2, window).begin : 0);
  }
  const auto load = [&](int64_t row, int64_t tap) {
    load_tap_of_planes(row, tap, behind, !has_nan && new_tap(row, tap), beside);
  };
  const Taps taps{rows.first_tap, rows.end_tap, 0, p_.g.kernel[2]};
  find_maximum_from(winner, taps, columns, load, tap_numbers(), has_nan, shared);
  keep_winners(winner, behind, lanes());
}

/// With a stride of 2 one vector has the cells of half of the planes, or half of those of one, and a second one the
/// others. Cells outside the row are the lowest; `beside`: where there is a window.
void PlanePeriodKernel::load_tap_of_planes(int64_t row, int64_t tap, int behind, bool ahead, bool beside) {
  const PoolGeometry& g = p_.g;
  const PoolOperand& source = p_.in[0];
  const int64_t cell = tap * g.dilations[2] - g.pads_begin[2];
  const int planes = planes_of_vector(), first = behind / lanes_of_plane();
  const Xbyak::RegExp cells_at = at(0) + static_cast<int>(source_row(row));
  const auto load = [&](const std::vector<Xmm>& to, int64_t from, int count) {
    if (beside) return load_beside(to, cells_at + static_cast<int>(from * source.x), first, count);
    for (const Xmm& v : to) vmovups(v, held(everywhere(lowest_bits())));
    load_pieces(to, source.dtype, pieces_of(source, cells_at, from, g.src[2], {first, count, lanes()}),
                static_cast<int>(count * operand_apart(source)));
  };
  const bool is_second = stride() == 2 && g.dilations[2] == 1 && tap % 2 == 1;  // one cell behind the first one
  if (ahead && !is_second) fetch_planes(source, cells_at + static_cast<int>(cell * source.x), first, planes);
  const auto exclude = [&] {
    if (beside) set_lanes(vec(kTap), outside_planes(tap, lanes_of_plane(), lanes()), lowest_bits());
  };
  if (stride() == 1) {
    load({vec(kTap)}, cell, planes);
    return exclude();
  }
  const Xmm cells = vec(search_registers() + 1), others = vec(search_registers() + 2);
  if (!is_second && planes > 1) {
    load({cells, others}, cell, planes / 2);
  } else if (!is_second) {
    load({cells}, cell, 1);
    load({others}, cell + lanes(), 1);
  }
  const auto place = [&](int l) { return 2 * l + (is_second ? 1 : 0); };
  merge_lanes(vec(kTap), cells, 0, false, place);
  merge_lanes(vec(kTap), others, 1, false, place);
  exclude();
}

/// One vector of the taps of all planes, or two with the cells of half of the planes each. Elements outside the row are
/// the lowest, or, of what may be read `beside` the rows, any.
void PlanePeriodKernel::load_words_of_planes(const std::vector<Xmm>& to, int64_t row, int64_t tap, bool beside) {
  const PoolOperand& source = p_.in[0];
  const int64_t cell = tap * p_.g.dilations[2] - p_.g.pads_begin[2];
  const int planes = planes_ / static_cast<int>(to.size());
  const Xbyak::RegExp cells_at = at(0) + static_cast<int>(source_row(row));
  const Xbyak::RegExp from = cells_at + static_cast<int>(cell * source.x);
  if (tap == 0) fetch_planes(source, from, 0, planes_);
  if (beside) return load_beside(to, from, 0, planes);
  for (const Xmm& v : to) vmovdqu16(v, words(lowest_bits()));
  load_halves_pieces(to, pieces_of(source, cells_at, cell, p_.g.src[2], {0, planes, kWords}),
                     static_cast<int>(planes * operand_apart(source)));
}

/// Vectors that have parts of `planes` planes each, from plane `first` on, in which they lie as `from` does in plane 0.
void PlanePeriodKernel::load_beside(const std::vector<Xmm>& to, const Xbyak::RegExp& from, int first, int planes) {
  for (const Xmm& v : to) {
    const Zmm all(v.getIdx());
    const auto part = [&](int q) { return ptr[from + static_cast<int>((first + q) * operand_apart(p_.in[0]))]; };
    if (planes <= 2)
      planes == 1 ? vmovups(all, part(0)) : vmovups(Ymm(all.getIdx()), part(0));
    else
      vmovups(Xmm(all.getIdx()), part(0));
    for (int q = 1; q < planes; ++q)
      planes == 2 ? vinserti64x4(all, all, part(q), 1) : vinserti32x4(all, all, part(q), static_cast<uint8_t>(q));
    first += planes;
  }
}

/// Of each of `lanes` lanes, `each` of a plane: whether a window is there, whose tap is no cell.
std::vector<bool> PlanePeriodKernel::outside_planes(int64_t tap, int each, int lanes) const {
  const std::vector<bool> plane = outside_row(tap, 0, p_.g.dst[2]);
  std::vector<bool> outside;
  for (int l = 0; l < lanes; ++l) {
    const auto window = static_cast<size_t>(l % each);
    outside.push_back(window < plane.size() && plane[window]);
  }
  return outside;
}

/// Of the windows `behind` the first one; zeros where there are none.
void PlanePeriodKernel::load_gradients_of_planes(const Xmm& to, const PoolOperand& o, const Xbyak::Reg64& windows,
                                                 int behind) {
  const int first = behind / lanes_of_plane(), planes = planes_of_vector();
  fetch_planes(o, windows, first, planes);
  broadcast_bits(to, 0);
  load_pieces({to}, o.dtype, pieces_of(o, windows, 0, p_.g.dst[2], {first, planes, lanes()}));
}

/// Minus infinity as the source's type has it.
int32_t PlanePeriodKernel::lowest_bits() const {
  const Dtype dtype = p_.in[0].dtype;
  return dtype == Dtype::f32 ? std::bit_cast<int32_t>(kLowest) : dtype == Dtype::bf16 ? 0xff80 : 0xfc00;
}

/// A vector that has each plane's elements from `begin` on, of those of a row, which are `width`.
std::vector<Emitter::Piece> PlanePeriodKernel::pieces_of(const PoolOperand& o, const Xbyak::RegExp& row, int64_t begin,
                                                         int64_t width, const PlaneLanes& of) const {
  const int each = element_bytes(o.dtype), count = of.lanes / of.count;
  const auto inside = [&](int64_t place) { return static_cast<int>(std::clamp<int64_t>(place - begin, 0, count)); };
  std::vector<Piece> pieces;
  for (int q = 0; q < of.count; ++q) {
    const int64_t away = (of.first + q) * operand_apart(o) + (begin - q * count) * each;
    pieces.push_back({row + static_cast<int>(away), q * count + inside(0), q * count + inside(width)});
  }
  return pieces;
}

/// What will be read of planes where it is now read from `from` on, which is in the first one.
void PlanePeriodKernel::fetch_planes(const PoolOperand& o, const Xbyak::RegExp& from, int first, int count) {
  for (int q = first; q < first + count; ++q) fetch(from + static_cast<int>(q * operand_apart(o)));
}

/// What a winner is called where the tap won, of windows `behind` the lane's; nothing where that is another plane's.
std::vector<int32_t> PlanePeriodKernel::names_of_planes(int64_t tap, int64_t behind) const {
  std::vector<int32_t> list = everywhere(tap);
  for (int l = 0; l < lanes(); ++l) {
    const int64_t each = lanes_of_plane(), window = l % each + behind;
    const bool is_inside = window >= 0 && window < each;
    if (!is_inside && (window + each) % each < p_.g.dst[2]) list[static_cast<size_t>(l)] = kNoWinner;
  }
  return list;
}

/// Which lanes, `behind` the first one, are no windows where there are `count` of them.
std::vector<bool> PlanePeriodKernel::no_windows(int behind, int count) const {
  std::vector<bool> none;
  for (int l = 0; l < lanes(); ++l)
    none.push_back(planes_ > 1 ? (behind + l) % lanes_of_plane() >= p_.g.dst[2] : l >= count);
  return none;
}

}  // namespace partita::jit
