// SPDX-License-Identifier: Apache-2.0
// Loops over tiles of two axes. Operands that do not lie along the last axis are brought into tiles of scratch memory
// (transposed, or element by element), a flat kernel evaluates the rows of the tile, and outputs that lie otherwise are
// brought from their tile to their place.
#include "kernels/jit/flat/strided.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "kernels/jit/code/expand.hpp"
#include "kernels/jit/code/run_of.hpp"
#include "kernels/jit/flat/block_copy.hpp"
#include "kernels/jit/flat/exceeds_cache.hpp"
#include "kernels/jit/flat/flat_kernel.hpp"
#include "kernels/jit/flat/flat_parts.hpp"
#include "kernels/jit/flat/strided_space.hpp"
#include "kernels/jit/flat/transpose.hpp"
#include "kernels/thread_scratch.hpp"
#include "src/base/dtype.hpp"
#include "src/base/round.hpp"
#include "src/base/shape.hpp"
#include "src/base/threads.hpp"

namespace partita::jit {
namespace {

constexpr size_t kMaxOperands = 160;
constexpr int64_t kTileLength = 128;  ///< elements of a row of a tile
constexpr int64_t kFewRows = 8, kLongTile = 2048;
/// Tiles across lines that their neighbours share: so few lines stay in the nearest cache, and of a result, whose lines
/// would otherwise be read before they are written, fewer.
constexpr int64_t kTileOfLines = 256, kRowsOfLines = 32;
/// Of all tiles of a thread, where that allows kLeastRows; so many that sources are read in long runs.
constexpr int64_t kTileBytes = 262144;
/// Copies through the caches: so many times as far apart as those of the source, rows of the result are each in a page
/// of its own while those of the source share some, and it pays to stay in one.
constexpr int64_t kFarApart = 16;
constexpr int64_t kLeastRows = 16, kMostRows = 512;
constexpr int64_t kSmallTile = 1024;   ///< elements: a call for each would cost as much
constexpr int64_t kCallsOfThread = 8;  ///< at the least, where one makes several tiles

template <class T>
void copy_elements(const std::byte* from, int64_t from_step, std::byte* to, int64_t to_step, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    std::memcpy(to + i * to_step * int64_t{sizeof(T)}, from + i * from_step * int64_t{sizeof(T)}, sizeof(T));
}

/// n elements; steps are counted in elements.
void copy_strided(int64_t bytes, const std::byte* from, int64_t from_step, std::byte* to, int64_t to_step, int64_t n) {
  if (bytes == 4) return copy_elements<uint32_t>(from, from_step, to, to_step, n);
  if (bytes == 2) return copy_elements<uint16_t>(from, from_step, to, to_step, n);
  copy_elements<uint8_t>(from, from_step, to, to_step, n);
}

/// The part of the space that a tile covers along one axis: whole tiles, then perhaps a smaller one.
struct Cut {
  int64_t extent = 1, whole = 1;
  int64_t count() const { return (extent + whole - 1) / whole; }
  int64_t rest() const { return extent % whole; }
  int64_t start(int64_t tile) const { return tile * whole; }
  int64_t length_at(int64_t start) const { return std::min(whole, extent - start); }
  /// 0 for a whole tile, 1 for the rest.
  size_t kind(int64_t length) const { return length == whole ? 0 : 1; }
};

struct Operand {
  TensorDesc desc;
  Access access = Access::direct;
  Dtype tile_dtype = Dtype::undef;  ///< of elements in its tile
  int64_t tile = 0, pitch = 0;      ///< where its tile lies in a thread's scratch, and bytes from row to row
  /// By the kinds of the tile along the last axis and the one before.
  std::array<std::array<std::shared_ptr<const TransposeKernel>, 2>, 2> transpose = {};
  bool numbers = false;  ///< its addresses are what is read (ExprOp::uniform)

  int64_t inner() const { return desc.dims.back() == 1 ? 0 : desc.strides.back(); }
  int64_t other() const { return desc.strides[desc.strides.size() - 2]; }
  int64_t element(const Dims& at) const {
    int64_t index = desc.offset;
    for (int d = 0; d < at.size(); ++d) index += at[d] * desc.strides[d];
    return index;
  }
};

struct TilePlace {
  Dims at;  ///< first element
  int64_t rows = 0, length = 0;
  size_t row_kind = 0, length_kind = 0;
  int64_t tiles = 1;  ///< that a call makes
};

class StridedLoop {
 public:
  StridedLoop(const Problem& loop, const Target& target) : problem_(tiled_space(loop)), target_(target) {
    if (is_copy(problem_)) shared_lines_ = put_lines_together(problem_);
    const Dims& dims = problem_.out[0].dims;
    empty_ = elements(dims) == 0;
    if (empty_) return;
    lengths_ = {dims.back(), std::min(dims.back(), tile_length(dims))};
    for (const TensorDesc& desc : problem_.in) {
      in_.push_back(operand(desc, false));
      Operand& o = in_.back();
      o.numbers = counts(problem_.back, static_cast<int>(in_.size()) - 1);
      if (o.numbers) o.access = Access::direct;
    }
    for (const TensorDesc& desc : problem_.out) out_.push_back(operand(desc, true));
    cost_ = static_cast<int64_t>(problem_.back.code.size());
    coordinates_ = reads_coordinates(problem_.back);
    streams_ = may_stream();
    copies_ = copies_directly();
    outer_ = dims;
    outer_.erase(outer_.size() - 1);
    outer_.erase(outer_.size() - 1);
    cut_tiles(dims);
    if (copies_) cut_turns();
    make_kernels();
  }

  size_t scratch_bytes() const { return scratch().bytes(); }

  Status operator()(const RunArgs& args) const {
    if (empty_) return {};
    const int64_t tiles = elements(outer_) * rows_.count() * lengths_.count() * turns_.count();
    const int64_t parts = threads();
    const bool streams = streams_ && outputs_aligned(args);
    const int64_t cost = turns_.whole * rows_.whole * lengths_.whole * cost_;
    parallel_for(parts, tiles * cost / parts, [&](int64_t begin, int64_t end) {
      // A part has its own scratch memory, whichever thread runs it.
      for (int64_t part = begin; part < end; ++part) {
        const int64_t first = tiles * part / parts, last = tiles * (part + 1) / parts;
        if (first == last) continue;
        TilePlace place = place_of(first);
        for (int64_t tile = first; tile < last; ++tile, go_on(place))
          run(place, args, scratch().share(args.scratch, part), streams);
        if (streams) end_streaming();
      }
    });
    return {};
  }

 private:
  int64_t threads() const { return std::max(target_.threads, 1); }
  ThreadScratch scratch() const { return {threads(), tile_bytes_}; }

  /// Copies of few rows have no tiles to fit anywhere, and little to do in each.
  int64_t tile_length(const Dims& dims) const {
    if (!is_copy(problem_) || dims[dims.size() - 2] > kFewRows) return kTileLength;
    switch (shared_lines_) {
      case SharedLines::source: return kTileOfLines;
      case SharedLines::result: return kRowsOfLines;
      case SharedLines::none: break;
    }
    return kLongTile;
  }

  /// Where tiles are small, or neighbours of one have parts of the same cache lines, a call makes those that follow
  /// each other along the last axis before them.
  void cut_turns() {
    if (outer_.empty()) return;
    const bool alone = rows_.count() == 1 && lengths_.count() == 1 && rows_.whole * lengths_.whole <= kSmallTile;
    if (shared_lines_ == SharedLines::none && !alone) return;
    const int64_t extent = outer_.back(), calls = elements(outer_) / extent * rows_.count() * lengths_.count(),
                  wanted = threads() * kCallsOfThread;
    turns_ = {extent, std::clamp(extent * calls / wanted, int64_t{1}, extent)};
    outer_.back() = 1;
  }

  static Operand operand(const TensorDesc& desc, bool output) {
    Operand o{.desc = desc, .access = access_of(desc, output)};
    o.tile_dtype = Emitter::loads(desc.dtype) ? desc.dtype : Dtype::f32;
    return o;
  }

  template <class F>
  void each_operand(F f) {
    for (auto* side : {&in_, &out_})
      for (Operand& o : *side) f(o, side == &out_);
  }

  bool has_tile(const Operand& o) const { return o.access != Access::direct && !copies_; }

  void cut_tiles(const Dims& dims) {
    int64_t row_bytes = 0;
    each_operand([&](Operand& o, bool) {
      // Not a power of two, so that the rows of a block do not meet in the caches.
      o.pitch = aligned(lengths_.whole * element_bytes(o.tile_dtype)) + kCacheLine;
      if (has_tile(o)) row_bytes += o.pitch;
    });
    const int64_t fitting = kTileBytes / std::max<int64_t>(row_bytes, 1) / kLeastRows * kLeastRows;
    const int64_t extent = dims[dims.size() - 2];
    const int64_t most = shared_lines_ == SharedLines::result ? kRowsOfLines : kMostRows;
    rows_ = {extent, std::min(extent, std::clamp(fitting, kLeastRows, most))};
    each_operand([&](Operand& o, bool) {
      if (!has_tile(o)) return;
      o.tile = tile_bytes_;
      tile_bytes_ += o.pitch * rows_.whole;
    });
  }

  /// Results beyond their share of the last-level cache, all of them written by the flat kernel in whole aligned lines.
  bool may_stream() const {
    for (const Operand& o : out_) {
      const int64_t each = element_bytes(o.desc.dtype);
      if (o.access != Access::direct || o.desc.offset * each % kCacheLine != 0) return false;
      for (int d = 0; d + 1 < o.desc.dims.size(); ++d)
        if (o.desc.dims[d] > 1 && o.desc.strides[d] * each % kCacheLine != 0) return false;
      if (lengths_.count() > 1 && lengths_.whole * each % kCacheLine != 0) return false;
    }
    return exceeds_cache(problem_);
  }

  /// Copies go without a tile, unless they are to stream and a register is less than a line.
  bool copies_directly() const {
    if (!is_copy(problem_)) return false;
    for (const auto* side : {&in_, &out_})
      if (std::max(side->front().inner(), side->front().other()) * 4 > TransposeKernel::kMaxRow) return false;
    if (in_[0].access == Access::direct) return in_[0].inner() == 1 && out_[0].access == Access::transposed;
    if (in_[0].access != Access::transposed || out_[0].access != Access::direct) return false;
    return !streams_ || (target_.isa == Isa::avx512 && element_bytes(out_[0].desc.dtype) > 1);
  }

  void make_kernels() {
    if (copies_) return make_copies();
    make_transposes();
    Problem tile = problem_;
    for (size_t k = 0; k < in_.size(); ++k) tile.in[k].dtype = in_[k].tile_dtype;
    const Lanes lanes = expanded(tile.back, tile, target_.isa);
    for (size_t kind : {0u, 1u}) {
      const int64_t length = kind == 0 ? lengths_.whole : lengths_.rest();
      if (length == 0) continue;
      RowShape shape{.length = length};
      for (const Operand& o : in_) {
        shape.in.push_back(row_operand(o));
        if (o.access == Access::direct) shape.in.back().fetching = later_rows(shape.in.back(), length);
      }
      for (const Operand& o : out_) shape.out.push_back(row_operand(o));
      const int inner_axis = problem_.out[0].dims.size() - 1;
      plain_[kind] = std::make_shared<const FlatKernel>(target_.isa, lanes, shape, inner_axis);
      shape.streaming = true;
      shape.fenced = false;
      if (streams_) streaming_[kind] = std::make_shared<const FlatKernel>(target_.isa, lanes, shape, inner_axis);
    }
  }

  static RowOperand row_operand(const Operand& o) {
    if (o.access != Access::direct) return {o.tile_dtype, true, o.pitch};
    RowOperand row{o.desc.dtype, o.inner() != 0, o.other() * element_bytes(o.desc.dtype)};
    if (o.numbers) row.numbers = std::make_shared<const TensorDesc>(o.desc);
    return row;
  }

  template <class F>
  void each_kind(F f) const {
    for (size_t i : {0u, 1u})
      for (size_t j : {0u, 1u}) {
        const int64_t length = i == 0 ? lengths_.whole : lengths_.rest(), rows = j == 0 ? rows_.whole : rows_.rest();
        if (length > 0 && rows > 0) f(i, j, length, rows);
      }
  }

  void make_transposes() {
    each_operand([&](Operand& o, bool output) {
      if (o.access != Access::transposed) return;
      const int64_t bytes = element_bytes(o.desc.dtype), far = o.inner() * bytes;
      each_kind([&](size_t i, size_t j, int64_t length, int64_t rows) {
        const auto step = static_cast<int>(o.other());
        const TransposeShape in{static_cast<int>(bytes), length, rows, far, o.pitch, false, step};
        const TransposeShape out{static_cast<int>(bytes), rows, length, o.pitch, far};
        o.transpose[i][j] = std::make_shared<const TransposeKernel>(target_.isa, output ? out : in);
      });
    });
  }

  void make_copies() {
    const auto bytes = static_cast<int>(element_bytes(out_[0].desc.dtype));
    each_kind([&](size_t i, size_t j, int64_t length, int64_t rows) {
      TransposeShape shape{bytes, length, rows, in_[0].inner() * bytes, out_[0].other() * bytes};
      shape.step = static_cast<int>(in_[0].other());
      if (in_[0].access == Access::direct)
        shape = {bytes, rows, length, in_[0].other() * bytes, out_[0].inner() * bytes};
      shape.writes_runs = shape.step == 1 && shape.dst_row >= kFarApart * shape.src_row;
      if (turns_.whole > 1) {
        const int axis = outer_.size() - 1;
        shape.next_src = in_[0].desc.strides[axis] * bytes;
        shape.next_dst = out_[0].desc.strides[axis] * bytes;
      }
      in_[0].transpose[i][j] = std::make_shared<const TransposeKernel>(target_.isa, shape);
      shape.streaming = true;
      shape.writes_runs = shape.step == 1 && shape.src_row == shape.b * bytes;
      shape.fetches_next = shape.writes_runs && turns_.whole == 1;
      if (streams_) out_[0].transpose[i][j] = std::make_shared<const TransposeKernel>(target_.isa, shape);
    });
  }

  TilePlace place_of(int64_t tile) const {
    const auto next = [&tile](const Cut& cut) {
      const int64_t start = cut.start(tile % cut.count());
      tile /= cut.count();
      return start;
    };
    const int64_t turn = next(turns_), length = next(lengths_), row = next(rows_);
    Dims at = coordinates(tile, outer_);
    if (!at.empty()) at.back() += turn;
    at.push_back(row);
    at.push_back(length);
    TilePlace place{.at = at};
    measure(place);
    return place;
  }

  /// The next tile, or turn of tiles; these may be so small that counting their coordinates anew would cost more.
  void go_on(TilePlace& place) const {
    Dims& at = place.at;
    const int last = at.size() - 1;
    /// Whether it begins anew.
    const auto step = [&at](int axis, const Cut& cut) {
      at[axis] += cut.whole;
      if (at[axis] < cut.extent) return false;
      at[axis] = 0;
      return true;
    };
    int d = last - 2;
    if (turns_.extent > 1 && !step(d--, turns_)) return measure(place);
    if (step(last, lengths_) && step(last - 1, rows_))
      for (; d >= 0 && ++at[d] == outer_[d]; --d) at[d] = 0;
    measure(place);
  }

  void measure(TilePlace& place) const {
    const int last = place.at.size() - 1;
    place.rows = rows_.length_at(place.at[last - 1]);
    place.length = lengths_.length_at(place.at[last]);
    place.row_kind = rows_.kind(place.rows);
    place.length_kind = lengths_.kind(place.length);
    place.tiles = turns_.extent > 1 ? turns_.length_at(place.at[last - 2]) : 1;
  }

  static std::byte* address(const void* base, const Operand& o, const Dims& at) {
    return const_cast<std::byte*>(moved(base, o.element(at) * element_bytes(o.desc.dtype)));
  }

  void run(const TilePlace& place, const RunArgs& args, std::byte* scratch, bool streams) const {
    if (copies_) {
      const Operand& kernels = streams ? out_[0] : in_[0];
      const TransposeKernel& kernel = *kernels.transpose[place.length_kind][place.row_kind];
      return kernel(address(args.in[0], in_[0], place.at), address(args.out[0], out_[0], place.at), place.tiles);
    }
    std::array<const void*, kMaxOperands> in;
    std::array<void*, kMaxOperands> out;
    for (size_t k = 0; k < in_.size(); ++k) {
      if (in_[k].access != Access::direct) fill(in_[k], place, args.in[k], scratch + in_[k].tile);
      in[k] = in_[k].access == Access::direct ? address(args.in[k], in_[k], place.at) : scratch + in_[k].tile;
    }
    for (size_t k = 0; k < out_.size(); ++k)
      out[k] = out_[k].access == Access::direct ? address(args.out[k], out_[k], place.at) : scratch + out_[k].tile;
    evaluate(streams ? *streaming_[place.length_kind] : *plain_[place.length_kind], place, in.data(), out.data());
    for (size_t k = 0; k < out_.size(); ++k)
      if (out_[k].access != Access::direct) drain(out_[k], place, scratch + out_[k].tile, args.out[k]);
  }

  /// All rows at once, or one by one where the expression reads coordinates.
  void evaluate(const FlatKernel& kernel, const TilePlace& place, const void** in, void** out) const {
    std::array<int32_t, kMaxRank + 1> at{};
    for (int d = 0; d < place.at.size(); ++d) at[static_cast<size_t>(d)] = static_cast<int32_t>(place.at[d]);
    if (!coordinates_) return kernel({in, out, at.data(), place.rows});
    for (int64_t r = 0; r < place.rows; ++r) {
      kernel({in, out, at.data(), 1});
      ++at[static_cast<size_t>(place.at.size()) - 2];
      for (size_t k = 0; k < in_.size(); ++k) in[k] = moved(in[k], row_operand(in_[k]).row_bytes);
      for (size_t k = 0; k < out_.size(); ++k)
        out[k] = static_cast<std::byte*>(out[k]) + row_operand(out_[k]).row_bytes;
    }
  }

  static void fill(const Operand& o, const TilePlace& place, const void* base, std::byte* tile) {
    if (o.access == Access::transposed)
      return (*o.transpose[place.length_kind][place.row_kind])(address(base, o, place.at), tile);
    Dims at = place.at;
    for (int64_t r = 0; r < place.rows; ++r, ++at[at.size() - 2], tile += o.pitch) {
      if (o.tile_dtype == o.desc.dtype) {
        copy_strided(element_bytes(o.desc.dtype), address(base, o, at), o.inner(), tile, 1, place.length);
        continue;
      }
      auto* to = reinterpret_cast<float*>(tile);
      const int64_t from = o.element(at), step = o.inner();
      if (step == 1) {
        load_floats(base, o.desc.dtype, from, place.length, to);
        continue;
      }
      for (int64_t i = 0; i < place.length; ++i) load_floats(base, o.desc.dtype, from + i * step, 1, to + i);
    }
  }

  static void drain(const Operand& o, const TilePlace& place, const std::byte* tile, void* base) {
    if (o.access == Access::transposed)
      return (*o.transpose[place.length_kind][place.row_kind])(tile, address(base, o, place.at));
    Dims at = place.at;
    for (int64_t r = 0; r < place.rows; ++r, ++at[at.size() - 2], tile += o.pitch)
      copy_strided(element_bytes(o.desc.dtype), tile, 1, address(base, o, at), o.inner(), place.length);
  }

  Problem problem_;
  Target target_;
  Dims outer_;  ///< axes before the tile's two
  Cut rows_, lengths_;
  Cut turns_;  ///< of the last axis before the tile's two; its extent is 1 where calls make one tile
  std::vector<Operand> in_, out_;
  std::array<std::shared_ptr<const FlatKernel>, 2> plain_, streaming_;
  int64_t tile_bytes_ = 0;
  int64_t cost_ = 1;
  bool coordinates_ = false;
  bool copies_ = false;  ///< one transposing copy without tiles
  SharedLines shared_lines_ = SharedLines::none;
  bool streams_ = false, empty_ = false;
};

const char* refuse_output(const TensorDesc& desc) {
  if (!Emitter::stores(desc.dtype)) return "an output's type has no generated conversion";
  for (int d = 0; d < desc.dims.size(); ++d)
    if (desc.dims[d] > 1 && desc.strides[d] == 0) return "an output repeats along an axis";
  return nullptr;
}

}  // namespace

const char* refuse_strided(const Problem& problem, const Target&) {
  if (problem.in.size() > kMaxOperands || problem.out.size() > kMaxOperands) return "too many operands";
  for (const Instr& in : problem.back.code)
    if (fold_of(in.op) != Fold::none) return "the loop folds elements";
  for (const TensorDesc& desc : problem.out)
    if (const char* reason = refuse_output(desc)) return reason;
  return refuse_expansion(problem.back, problem);
}

Result<Run> make_strided(const Problem& problem, const Target& target) {
  if (auto blocks = block_copy_plan(problem, target)) return make_block_copy(problem, target, std::move(*blocks));
  return run_of<StridedLoop>(problem, target);
}

}  // namespace partita::jit
