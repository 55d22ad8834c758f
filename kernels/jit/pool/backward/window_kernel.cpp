// SPDX-License-Identifier: Apache-2.0
// Code of whole windows: rdi call, rcx the group's first channel or element of windows, along x r9 its first element of
// cells, r8 steps left, r10 waiting elements of joined rows, rax and rdx for a moment; streams hold the operands'
// places. Vectors: the best tap, a tap, (from indices: what was found) the winners' numbers, the gradients, source
// cells (AVX2: where the gradient will be) or later both of them spread, then those of front and of back.
#include "kernels/jit/pool/backward/window_kernel.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>

#include "kernels/jit/pool/channel_groups.hpp"
#include "kernels/jit/pool/names.hpp"
#include "src/base/cpu.hpp"
#include "src/base/dtype.hpp"

namespace partita::jit {
namespace {

using Xbyak::RegExp;
using Xbyak::Xmm;
using Xbyak::Ymm;
using Xbyak::Zmm;

constexpr int64_t kMostTogether = 4;
constexpr size_t kPlaces = 3;  ///< of a joined result
/// Of the source, read at once; of planes the processor reads fewer by itself, or more.
constexpr int64_t kFewRows = 3, kFewPlaneRows = 4;
constexpr int64_t kFarthestFetched = 1 << 16;

}  // namespace

size_t WindowKernel::streams_of(const PoolPlan& p) {
  return static_cast<size_t>(source_streams(p)) + p.front_in.size() +
         static_cast<size_t>(p.tap_rows()) * (p.back_in.size() + p.out.size());
}

/// Halves of 16-bit vectors are stored in pairs, which the loop over a row must not part.
bool WindowKernel::joins(Isa isa, const PoolPlan& p) {
  const bool narrow = isa == Isa::avx512 && bits_of(p.out[0].dtype) == 16,
             looped = p.g.dst[2] > kMostTogether * lanes_of(isa);
  return !p.maximum && !p.channel_last && p.g.kernel[0] == 1 && (!narrow || !looped || p.g.kernel[2] % 2 == 0) &&
         p.out.size() <= (isa == Isa::avx512 ? JoinedStores::kMostOutputs : 1);
}

int WindowKernel::streamed_piece(Isa isa, const PoolPlan& p) {
  if (!along_x(p)) return p.streams_cells(isa) ? kCacheLine : 0;
  const int64_t whole = whole_of(isa, p);
  return p.streamed_piece(whole == lanes_of(isa) ? 0 : whole * p.g.kernel[2]);
}

Fetching WindowKernel::fetching(const PoolPlan& p) {
  if (p.tap_rows() == 1 && reads_streams_alone()) return {};  // windows of one axis: one stream
  const bool few_rows = p.tap_rows() <= (along_x(p) && !reads_streams_alone() ? kFewPlaneRows : kFewRows);
  if (few_rows) return Fetching::in_turns();
  return along_x(p) ? Fetching::near() : Fetching::of_many_streams();
}

/// Behind its planes a window's next ones follow, not those that lie behind each of them: small ones are fetched a
/// whole window before.
int WindowKernel::fetched_behind(const PoolPlan& p, const PoolOperand& o) {
  const int64_t planes = p.g.kernel[0] * o.z;
  const bool small = along_x(p) && p.g.kernel[0] > 1 && planes >= kPrefetchFromMemory && planes <= kFarthestFetched;
  return small ? static_cast<int>(planes) : kPrefetchFromMemory;
}

WindowKernel::WindowKernel(Isa isa, const PoolPlan& plan, const Problem& problem, const WindowStores& stores)
    : PoolCode(isa, plan),
      streaming_(stores.piece > 0),
      large_(stores.large),
      along_x_(along_x(plan)),
      inner_(inner_of(plan)),
      whole_(along_x_ ? static_cast<int>(whole_of(isa, plan)) : lanes()),
      together_(vectors_together()),
      winners_(search_registers()),
      gradients_(p_.maximum ? winners_ + (keeps() ? 1 : together_) : 0),
      cells_(wide() ? gradients_ + together_ : gradients_),
      folds_(*this, p_.out, slot_vectors(), reserve(HeldFolds::registers(*this, p_.out, slot_vectors()))) {
  if (stores.piece > 0 && stores.piece < 64) stream_in_pieces(stores.piece);
  if (streaming_ || stores.joined) fetch_by(cell_by_cell() && reads_streams_alone() ? Fetching::near() : fetching(p_));
  add_streams();
  hold_streams(std::min(streams_of(p_), kStreamsBesideR10));
  int taken = gradients_ + (keeps() ? 1 : together_);
  if (keeps()) keep_vectors(2 * together_);
  if (stores.joined) {
    const auto places = static_cast<int>(8 * streams_of(p_));
    joined_.emplace(static_cast<Emitter&>(*this), types_of(p_.out), taken, r10d, rsp + places);
    taken += JoinedStores::registers(*this, p_.out.size());
    for (size_t k = 0; k < kPlaces * p_.out.size(); ++k) add_stream(0);
  }
  if (p_.maximum && interleaved() && wide()) taken += spreads_once() ? 2 * cells_together() : static_cast<int>(width());
  const auto steps = [&](Body& front, Body& back) { emit_steps(front, back); };
  const auto tables = [&] {
    if (joined_) joined_->emit_tables();
  };
  entry_ = reinterpret_cast<void (*)(const WindowCall*)>(
      reinterpret_cast<uintptr_t>(emit_all(problem, taken, steps, tables)));
}

/// Rows that are stored one after the other make whole cache lines, wherever they begin; cells do where all of a line's
/// vectors are.
int WindowKernel::vectors_together() const {
  if (!along_x_) return wide() || streaming_ ? 2 : 1;
  if (!wide()) return 1;
  const int64_t row = (elements() + whole_ - 1) / whole_;
  return row <= kMostTogether ? static_cast<int>(row) : 1;
}

void WindowKernel::add_streams() {
  const auto add = [&](const PoolOperand& o, bool cells) {
    add_stream(along_x_ ? o.y * (cells ? p_.g.strides[1] : 1) : o.x * (cells ? p_.g.strides[2] : 1));
  };
  if (from_indices()) {
    add(p_.in[static_cast<size_t>(p_.indices)], false);
    add_stream(p_.g.src[2] * p_.g.strides[1] * p_.base.cell);
  } else {
    for (int64_t r = 0; r < source_streams(p_); ++r) add(p_.in[0], true);
  }
  for (int k : p_.front_in) add(p_.in[static_cast<size_t>(k)], false);
  for (int64_t r = 0; r < tap_rows(); ++r)
    for (int k : p_.back_in) add(p_.in[static_cast<size_t>(k)], true);
  for (int64_t r = 0; r < tap_rows(); ++r)
    for (const PoolOperand& o : p_.out) add(o, true);
}

/// Averages along x make one row of cells after the other: memory likes it, and windows that are read
/// once more come from the nearest cache.
void WindowKernel::emit_steps(Body& front, Body& back) {
  Xbyak::Label step;
  mov(r8, ptr[rdi + offsetof(WindowCall, steps)]);
  if (from_indices()) {
    mov(rax, ptr[rdi + offsetof(WindowCall, counts)]);
    vmovups(vec(kBest), ptr[rax]);
  }
  if (joined_) {
    mov(r10, ptr[rdi + offsetof(WindowCall, pending)]);
    joined_->emit_start();
  }
  if (cell_by_cell()) return emit_cell_by_cell(front, back);
  align(16);
  L(step);
  const auto groups = [&](int64_t first, int64_t end) {
    emit_channel_groups(*this, elements(), together_, whole_, [&](int vectors, int last) {
      const Group group{vectors, last, whole_};
      if (along_x_) imul(r9, rcx, static_cast<int>(width()));
      emit_gradients(front, group);
      if (p_.maximum && spreads_once()) spread_winners(group);
      folds_.emit_start();
      for (int64_t row = first; row < end; ++row) emit_cells(back, group, row);
      folds_.emit_end(along_x_ ? 1 : vectors, slots());
    });
  };
  if (p_.maximum || !along_x_)
    groups(0, tap_rows());
  else
    for (int64_t row = 0; row < tap_rows(); ++row) {
      groups(row, row + 1);
      if (joined_) joined_->emit_row_end(p_.g.src[2]);
    }
  advance_streams();
  dec(r8);
  jnz(step, T_NEAR);
  if (joined_) joined_->emit_finish();
  if (!from_indices()) return;
  mov(rax, ptr[rdi + offsetof(WindowCall, counts)]);
  vmovups(ptr[rax], vec(kBest));
}

/// Where cells read tensors of their own from memory, those and the results are walked as they lie: a row of cells
/// after the other, and each cell from its first channel to its last. Windows are read again for each of their cells,
/// from the caches. A single tensor of f32 is as fast, or faster, where they are read once.
bool WindowKernel::cell_by_cell() const {
  const auto walked = [&](int k) { return p_.in[static_cast<size_t>(k)].x != 0; };
  const auto tensors = std::ranges::count_if(p_.back_in, walked);
  return large_ && !p_.maximum && !along_x_ && (tensors > 1 || (tensors == 1 && bits_of(p_.out[0].dtype) == 16));
}

/// r8 are the steps left of the first row.
void WindowKernel::emit_cell_by_cell(Body& front, Body& back) {
  const auto advance = [&](size_t first, size_t count) { advance_streams(first, first + count); };
  for (int64_t row = 0; row < tap_rows(); ++row) {
    if (row > 0) {
      mov(r8, ptr[rdi + offsetof(WindowCall, steps)]);
      start_streams(front_stream(0), front_stream(p_.front_in.size()));
    }
    Xbyak::Label step;
    align(16);
    L(step);
    for (int64_t cell = 0; cell < width(); ++cell)
      emit_channel_groups(*this, elements(), together_, whole_, [&](int vectors, int last) {
        const Group group{vectors, last, whole_};
        emit_gradients(front, group);
        folds_.emit_start();
        for (int v = 0; v < vectors; ++v) emit_cell(back, group, row, cell, v);
        folds_.emit_end(vectors, slots());
      });
    advance(front_stream(0), p_.front_in.size());
    advance(back_stream(row, 0), p_.back_in.size());
    advance(out_stream(row, 0), p_.out.size());
    dec(r8);
    jnz(step, T_NEAR);
  }
}

void WindowKernel::emit_gradients(Body& front, const Group& group) {
  const Taps taps{0, tap_rows(), 0, width()};
  const auto place = [&](int64_t row, int64_t tap) { return cells_at(p_.in[0], static_cast<size_t>(row), tap, 0); };
  const bool searches = p_.maximum && !from_indices(), together = searches && !along_x_ && !keeps();
  if (together) find_winners(winners_, group, taps, place);
  for (int v = 0; v < group.vectors; ++v) {
    if (from_indices()) load_winner(group, v);
    if (searches && along_x_) find_winner(group, v);
    if (searches && keeps()) find_channel_winner(winner(v), group, v, taps, place);
    emit_gradient(front, gradient(v),
                  [&](Xmm dst, const PoolOperand& o, size_t k) { load_windows(dst, o, front_stream(k), group, v); });
    if (!p_.maximum && p_.weight != 1)
      vmulps(gradient(v), gradient(v), pattern(everywhere(std::bit_cast<int32_t>(p_.weight))));
    if (keeps()) keep_window(v);
  }
}

void WindowKernel::keep_window(int vector) {
  if (p_.maximum) vmovaps(ptr[kept_winner(vector)], winner(vector));
  vmovaps(ptr[kept_gradient(vector)], gradient(vector));
}

HeldFolds::Place WindowKernel::slots() {
  return [this](size_t k, int vector) { return cells_at(p_.out[k], out_stream(0, k), 0, vector); };
}

/// A row of cells of each window. A cell's vectors are stored one after the other, so that 16-bit results make whole
/// cache lines; joined rows in the order of memory.
void WindowKernel::emit_cells(Body& back, const Group& group, int64_t row) {
  for (int v = 0; joined_ && v < group.vectors; ++v)
    for (int64_t cell = 0; cell < width() && cells_of(group, cell, v) > 0; ++cell) emit_cell(back, group, row, cell, v);
  if (joined_) return;
  for (int64_t cell = 0; cell < width(); ++cell)
    for (int v = 0; v < group.vectors; ++v)
      if (cells_of(group, cell, v) > 0) emit_cell(back, group, row, cell, v);
}

bool WindowKernel::spreads_once() const {
  return wide() && p_.maximum && interleaved() && tap_rows() > 1 && cells_ + 2 * cells_together() <= kMostTaken;
}

/// Kind 0: winners, 1: gradients.
Xmm WindowKernel::spread_register(int kind, int64_t cell, int vector) const {
  return vec(cells_ + (kind * together_ + vector) * static_cast<int>(width()) + static_cast<int>(cell));
}

void WindowKernel::spread_winners(const Group& group) {
  const Xmm index = scratch(1);
  for (int64_t cell = 0; cell < width(); ++cell) {
    vmovups(index, pattern(windows_of(cell)));
    for (int v = 0; v < group.vectors; ++v)
      for (int kind : {0, 1})
        vpermps(Zmm(spread_register(kind, cell, v).getIdx()), Zmm(index.getIdx()),
                Zmm((kind == 0 ? winners_ : gradients_) + v));
  }
}

void WindowKernel::find_winner(const Group& group, int vector) {
  const auto load = [&](int64_t row, int64_t tap) {
    if (tap == 0) load_taps(group, row, vector);
    pick_tap(group, row, tap, vector);
  };
  find_maximum(winner(vector), {0, tap_rows(), 0, width()}, nullptr, load, tap_numbers());
}

/// The winner's name is how far its index is from that of the vector's first cell; no cell has that of a window that
/// does not exist.
void WindowKernel::load_winner(const Group& group, int vector) {
  const PoolOperand& indices = p_.in[static_cast<size_t>(p_.indices)];
  const int each = element_bytes(indices.dtype), count = group.count(vector);
  const int64_t before = vector * whole_;
  const Xmm first = scratch(1), low(first.getIdx()), name = winner(vector);
  imul(rax, r9, static_cast<int>(p_.base.cell));
  add(rax, at(1));
  add(rax, static_cast<int>(before * width() * p_.base.cell));
  vmovq(low, rax);
  indices.dtype == Dtype::s64 ? vpbroadcastq(first, low) : vpbroadcastd(first, low);
  const NameRegisters names{name.getIdx(), first.getIdx(), {scratch(2).getIdx(), scratch(3).getIdx()}};
  load_names(*this, indices.dtype, names, at(0) + rcx * each + static_cast<int>(before * each), count);
  std::vector<bool> missing(static_cast<size_t>(lanes()));
  std::fill(missing.begin() + count, missing.end(), true);
  set_lanes(name, missing, -1);
}

/// Along x: the row's source cells, which the taps are picked from, where there are registers for them.
void WindowKernel::load_taps(const Group& group, int64_t row, int vector) {
  if (paired()) {
    const RegExp cells = cells_at(p_.in[0], static_cast<size_t>(row), 0, vector);
    fetch(cells, fetched_behind(p_, p_.in[0]));
    load_bytes(vec(cells_), 4, cells, group.count(vector));
  } else if (interleaved() && wide()) {
    for (int64_t cell = 0; cell < width() && cells_of(group, cell, vector) > 0; ++cell)
      load_cells(vec(cells_ + static_cast<int>(cell)), p_.in[0], static_cast<size_t>(row), group, cell, vector);
  }
}

/// kTap = a tap of each window. Along x, places come from several vectors of cells, one vector after the other.
void WindowKernel::pick_tap(const Group& group, int64_t row, int64_t tap, int vector) {
  const Xmm taps = vec(kTap);
  const auto stream = static_cast<size_t>(row);
  if (!interleaved()) return load_cells(taps, p_.in[0], stream, group, tap, vector);
  if (paired())
    return tap == 0 ? vpslld(taps, vec(cells_), 16)
                    : vandps(taps, vec(cells_), pattern(everywhere(std::bit_cast<int32_t>(0xffff0000u))));
  if (!wide() && inner_ == 1 && width() == 2 && cells_of(group, 1, vector) > 0) {
    const Xmm second = vec(cells_);
    load_cells(taps, p_.in[0], stream, group, 0, vector);
    load_cells(second, p_.in[0], stream, group, 1, vector);
    return every_other_lane(taps, taps, second, tap == 1);
  }
  const auto place = [&](int lane) { return (lane / inner_ * width() + tap) * inner_ + lane % inner_; };
  const bool alone = cells_of(group, 1, vector) == 0;
  for (int64_t cell = 0; cell < width() && cells_of(group, cell, vector) > 0; ++cell) {
    const Xmm other = vec(cells_ + (wide() ? static_cast<int>(cell) : 0));
    if (!wide()) load_cells(other, p_.in[0], stream, group, cell, vector);
    merge_lanes(taps, other, static_cast<int>(cell), alone, place);
  }
}

void WindowKernel::emit_cell(Body& back, const Group& group, int64_t row, int64_t cell, int vector) {
  BodyHooks hooks;
  counted_ = false;
  hooks.load = [&](Xmm dst, int operand) {
    const auto k = static_cast<size_t>(std::ranges::find(p_.back_in, operand) - p_.back_in.begin());
    const bool searched = p_.maximum && !from_indices() && operand == 0;  // its lines were fetched then
    load_cells(dst, p_.in[static_cast<size_t>(operand)], back_stream(row, k), group, cell, vector, !searched);
  };
  hooks.skeleton = [&](Xmm dst) { select_gradient(dst, row, cell, vector); };
  hooks.store = [&](Xmm value, const Lane& lane) {
    const auto k = static_cast<size_t>(lane.imm);
    const PoolOperand& o = p_.out[k];
    const int count = cells_of(group, cell, vector);
    if (joined_)
      return joined_->emit_store(k, value, lane.flag, vector * width() + cell, ends_row(group, cell, vector), count);
    if (o.fold != Fold::none) return folds_.emit_fold(k, along_x_ ? 0 : vector, value, count, slots());
    const RegExp to = cells_at(o, out_stream(row, k), cell, vector);
    store(value, o.dtype, lane.flag, to, count, streaming_ && (along_x_ || count == lanes()));
  };
  back.emit(hooks);
}

/// Along x, for each element of vector `cell` of the cells: its window's element.
std::vector<int32_t> WindowKernel::windows_of(int64_t cell) const {
  std::vector<int32_t> windows;
  for (int64_t place = cell * lanes(); place < (cell + 1) * lanes(); ++place)
    windows.push_back(static_cast<int32_t>(place / inner_ / width() * inner_ + place % inner_));
  return windows;
}

/// For each element of vector `cell` of a row of cells: the number of its tap, or its name.
std::vector<int32_t> WindowKernel::taps_of(int64_t row, int64_t cell) const {
  if (from_indices()) {
    const int64_t z = row / p_.g.kernel[1], y = row % p_.g.kernel[1];
    std::vector<int32_t> names;
    for (int64_t place = cell * lanes(); place < (cell + 1) * lanes(); ++place)
      names.push_back(static_cast<int32_t>(((z * p_.g.src[1] + y) * p_.g.src[2] + place) * p_.base.cell));
    return names;
  }
  if (!interleaved()) return everywhere(row * width() + cell);
  std::vector<int32_t> taps;
  for (int64_t place = cell * lanes(); place < (cell + 1) * lanes(); ++place)
    taps.push_back(static_cast<int32_t>(row * width() + place / inner_ % width()));
  return taps;
}

/// The lanes that k1, or with AVX2 `equal`, names. An expression may read the gradient twice.
void WindowKernel::count_found(const Xmm& equal) {
  if (!from_indices() || counted_) return;
  counted_ = true;
  const Xmm counts = vec(kBest);
  wide() ? vpsubd(counts | k1, counts, pattern(everywhere(-1))) : vpsubd(counts, counts, equal);
}

/// What the windows give to vector `cell` of a row of their cells.
void WindowKernel::select_gradient(const Xmm& dst, int64_t row, int64_t cell, int vector) {
  if (keeps()) return select_kept(dst, row, cell, vector);
  const Xmm index = scratch(1);
  Xmm gradient = vec(gradients_ + vector), winner = vec(winners_ + vector);
  const bool once = spreads_once(), now = interleaved() && !once;
  if (once) {
    winner = spread_register(0, cell, vector);
    gradient = spread_register(1, cell, vector);
  }
  const auto spread = [&](const Xmm& to, const Xmm& from) {
    vpermps(permutable(to), permutable(index), permutable(from));
  };
  if (now) vmovups(index, pattern(windows_of(cell)));
  if (!p_.maximum) return now ? spread(dst, gradient) : vmovaps(dst, gradient);
  const Xmm own = scratch(0);
  if (now) spread(own, winner);
  if (wide()) {
    vpcmpeqd(k1, now ? own : winner, held(taps_of(row, cell)));
    if (now)
      vpermps(Zmm(dst.getIdx()) | k1 | T_z, Zmm(index.getIdx()), Zmm(gradient.getIdx()));
    else
      vmovaps(dst | k1 | T_z, gradient);
    return count_found(own);
  }
  vpcmpeqd(own, now ? own : winner, pattern(taps_of(row, cell)));
  count_found(own);
  if (now) spread(dst, gradient);
  vandps(dst, own, now ? dst : gradient);
}

void WindowKernel::select_kept(const Xmm& dst, int64_t row, int64_t cell, int vector) {
  if (!p_.maximum) return vmovaps(dst, ptr[kept_gradient(vector)]);
  const Xmm own = scratch(0);
  vmovaps(own, ptr[kept_winner(vector)]);
  vpcmpeqd(own, own, pattern(taps_of(row, cell)));
  count_found(own);
  vandps(dst, own, ptr[kept_gradient(vector)]);
}

void WindowKernel::load_windows(const Xmm& dst, const PoolOperand& o, size_t stream, const Group& group, int vector) {
  const int each = element_bytes(o.dtype);
  const Xbyak::Reg64 windows = at(stream);
  const int behind = vector * whole_ * each;
  load_elements(dst, o, repeats(o), repeats(o) ? RegExp(windows) : windows + rcx * each + behind, group.count(vector),
                o.begins_line(behind, lanes()));
}

void WindowKernel::load_cells(const Xmm& dst, const PoolOperand& o, size_t stream, const Group& group, int64_t cell,
                              int vector, bool ahead) {
  load_elements(dst, o, repeats(o), cells_at(o, stream, cell, vector), cells_of(group, cell, vector),
                ahead && o.begins_line(cells_behind(o, cell, vector), lanes()), fetched_behind(p_, o));
}

/// Of vector `cell` of the windows' cells, in a row where the stream is.
RegExp WindowKernel::cells_at(const PoolOperand& o, size_t stream, int64_t cell, int vector) {
  const int each = element_bytes(o.dtype);
  const auto behind = static_cast<int>(cells_behind(o, cell, vector));
  const Xbyak::Reg64 row = at(stream);
  if (along_x_) return repeats(o) ? RegExp(row) : row + r9 * each + behind;
  const RegExp place = row + static_cast<int>(cell * o.x);
  return repeats(o) ? place : place + rcx * each + behind;
}

/// Bytes behind the group's first element, or that of the cell.
int64_t WindowKernel::cells_behind(const PoolOperand& o, int64_t cell, int vector) const {
  const int64_t elements = along_x_ ? vector * whole_ * width() + cell * lanes() : int64_t{vector} * lanes();
  return elements * element_bytes(o.dtype);
}

/// Whether the vector is the row's last one. Groups of a loop are whole in every sense, the last one, too.
bool WindowKernel::ends_row(const Group& group, int64_t cell, int vector) const {
  const bool looped = elements() > int64_t{together_} * whole_;
  if (looped && group.vectors == together_ && group.last == whole_) return false;
  return vector + 1 == group.vectors && (cell + 1 == width() || cells_of(group, cell + 1, vector) == 0);
}

int WindowKernel::cells_of(const Group& group, int64_t cell, int vector) const {
  if (!along_x_) return group.count(vector);
  return static_cast<int>(std::clamp<int64_t>(group.count(vector) * width() - cell * lanes(), 0, lanes()));
}

Ymm WindowKernel::permutable(const Xmm& v) const { return wide() ? Ymm(Zmm(v.getIdx())) : Ymm(v.getIdx()); }

}  // namespace partita::jit
