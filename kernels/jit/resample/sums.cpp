// SPDX-License-Identifier: Apache-2.0
// Weighted sums of prepared rows, and the results' expression.
#include <algorithm>

#include "kernels/jit/flat/exceeds_cache.hpp"
#include "kernels/jit/flat/stream_copy.hpp"
#include "kernels/jit/resample/rows.hpp"
#include "src/base/round.hpp"

namespace partita::jit {
namespace {

constexpr size_t kMaxOperands = 96;

}  // namespace

ResampleSums::ResampleSums(const Problem& p, Isa isa, const PlaneWalk& walk, const ResampleBlocks& blocks)
    : walk_(walk), blocks_(blocks), back_(back_expression(p)) {
  back_in_ = loaded_operands(back_);
  for (int k : back_in_) in_.push_back(walked(p.in[static_cast<size_t>(k)], p, walk));
  for (const TensorDesc& desc : p.out) out_.push_back(walked(desc, p, walk));
  for (const auto* side : {&in_, &out_})
    for (const WalkedTensor& t : *side) whole_rows_ = whole_rows_ && t.row_step(walk, walk.x.to()) >= 0;
  if (exceeds_cache(p)) {
    may_stream_ = may_stream();
    stages_ = !may_stream_ && may_stage();
  }
  if (stages_) staged_floats_ = staged_offset(out_.size()) / 4;
  const bool shorter = kind_of(blocks.chunks.size() - 1) == 1;
  for (size_t kind = 0; kind < (whole_rows_ && shorter ? 2 : 1); ++kind)
    for (const YBlock& block : blocks.blocks)
      for (const TapStretch& s : block.stretches) {
        for (int64_t z = 0; z < walk.z.to(); ++z) make_kernels(isa, kind, walk.z.taps(z).size() * s.positions.size());
        scratch_rows_ = std::max(scratch_rows_, whole_rows_ ? s.count : 1);
      }
  if (walk.z.most_taps() * walk.y.most_taps() <= kGroupedTaps) scratch_rows_ = 0;
}

size_t ResampleSums::kind_of(size_t chunk) const {
  const XChunk& c = blocks_.chunks[chunk];
  return whole_rows_ && c.end - c.begin != blocks_.chunk ? 1 : 0;
}

int64_t ResampleSums::length(size_t kind) const {
  if (!whole_rows_) return walk_.channels;
  const XChunk& last = blocks_.chunks.back();
  return walk_.channels * (kind == 0 ? blocks_.chunk : last.end - last.begin);
}

/// Every row starts where a streaming store may.
bool ResampleSums::may_stream() const {
  for (const WalkedTensor& t : out_) {
    if (!t.at_cache_lines(/*places=*/false)) return false;
    const int64_t along = whole_rows_ ? blocks_.chunk * walk_.channels * t.each : t.x;
    if (along % kCacheLine != 0 && (!whole_rows_ || blocks_.chunks.size() > 1)) return false;
  }
  return true;
}

/// Rows start anywhere, but lie one behind the other.
bool ResampleSums::may_stage() const {
  return whole_rows_ && blocks_.chunks.size() == 1 && std::ranges::all_of(out_, [&](const WalkedTensor& t) {
           return t.y == walk_.x.to() * walk_.channels * t.each;
         });
}

int64_t ResampleSums::staged_offset(size_t output) const {
  const YBlock& largest = blocks_.blocks.front();
  int64_t offset = 0;
  for (size_t o = 0; o < output; ++o) offset += aligned(staged_bytes(o, largest.end - largest.begin));
  return offset;
}

bool ResampleSums::streams(const RunArgs& args) const { return may_stream_ && outputs_aligned(args); }

void ResampleSums::make_kernels(Isa isa, size_t kind, size_t taps) {
  for (size_t done = 0; done == 0 || done < taps; done += kGroupedTaps) {
    const size_t group = std::min<size_t>(kGroupedTaps, taps - done), accumulate = done > 0 ? 1 : 0;
    if (done + group < taps) {
      Kernel& kernel = partials_[kind][accumulate][group];
      if (!kernel) kernel = make_partial(isa, kind, group, accumulate);
      continue;
    }
    for (size_t streaming = 0; streaming <= (may_stream_ ? 1 : 0); ++streaming) {
      Kernel& kernel = finals_[streaming][kind][accumulate][group];
      if (!kernel) kernel = make_final(isa, kind, group, accumulate, streaming == 1);
    }
  }
}

RowOperand ResampleSums::partial_rows() const {
  return {Dtype::f32, true, (whole_rows_ ? blocks_.row_floats : walk_.channels) * 4};
}

ExprBuilder::Value ResampleSums::write_sum(RowKernelWriter& w, size_t taps, bool accumulate) const {
  const RowOperand row{Dtype::f32, true,
                       (whole_rows_ ? blocks_.y_step.shift * blocks_.row_floats : walk_.channels) * 4};
  auto sum = accumulate ? w.load(partial_rows()) : w.builder().constant(0);
  for (size_t k = 0; k < taps; ++k) {
    auto term = w.load(row);
    if (walk_.y.weighted()) term = w.builder().mul(term, w.load({Dtype::f32, false, whole_rows_ ? 4 : 0}));
    if (walk_.z.weighted()) term = w.builder().mul(term, w.load({Dtype::f32, false, 0}));
    sum = k == 0 && !accumulate ? term : w.builder().add(sum, term);
  }
  return sum;
}

ResampleSums::Kernel ResampleSums::make_partial(Isa isa, size_t kind, size_t taps, bool accumulate) const {
  RowKernelWriter w;
  w.store(partial_rows(), write_sum(w, taps, accumulate));
  return w.make(isa, length(kind), false);
}

ResampleSums::Kernel ResampleSums::make_final(Isa isa, size_t kind, size_t taps, bool accumulate,
                                              bool streaming) const {
  RowKernelWriter w;
  const auto sum = write_sum(w, taps, accumulate);
  const auto operand = [&](const WalkedTensor& t) -> RowOperand {
    if (whole_rows_) return {t.dtype, t.row_step(walk_, walk_.x.to()) == 1, t.y * blocks_.y_step.step};
    return {t.dtype, t.channel_step(walk_) == 1, t.x};
  };
  std::vector<RowOperand> operands, outputs;
  for (const WalkedTensor& t : in_) operands.push_back(operand(t));
  for (const WalkedTensor& t : out_) outputs.push_back(operand(t));
  w.splice(back_, back_in_, operands, outputs, sum);
  return w.make(isa, length(kind), streaming);
}

void ResampleSums::run(const RunArgs& args, const ResamplePiece& piece, const Prepared& from) const {
  const XChunk& chunk = blocks_.chunks[piece.chunk];
  for (const TapStretch& s : blocks_.blocks[piece.block].stretches) {
    if (whole_rows_) {
      run_rows(args, piece, from, s, 0, s.count);
      continue;
    }
    for (int64_t row = 0; row < s.count; ++row) run_rows(args, piece, from, s, row, chunk.end - chunk.begin);
  }
  if (!stages_) return;
  const YBlock& block = blocks_.blocks[piece.block];
  for (size_t o = 0; o < out_.size(); ++o) {
    const std::byte* to = out_[o].at(args.out[o], walk_, piece.plane, piece.z, block.begin, 0);
    stream_copy(const_cast<std::byte*>(to), staged(from, o),
                static_cast<size_t>(staged_bytes(o, block.end - block.begin)));
  }
}

/// Result row `row` of the stretch, and the following ones where rows are whole.
void ResampleSums::run_rows(const RunArgs& args, const ResamplePiece& piece, const Prepared& from,
                            const TapStretch& stretch, int64_t row, int64_t rows) const {
  std::array<const void*, kMaxOperands> in;
  std::array<void*, kMaxOperands> out;
  const auto z_taps = walk_.z.taps(piece.z);
  const size_t over_y = stretch.positions.size(), all = z_taps.size() * over_y, kind = kind_of(piece.chunk);
  const int64_t y = stretch.first + row * blocks_.y_step.step, x = blocks_.chunks[piece.chunk].begin;
  size_t at_z = 0, at_y = 0;
  const float* slot = nullptr;
  for (size_t done = 0; done == 0 || done < all; done += kGroupedTaps) {
    const size_t group = std::min<size_t>(kGroupedTaps, all - done), accumulate = done > 0 ? 1 : 0;
    size_t k = 0;
    if (accumulate) in[k++] = from.sums;
    for (size_t t = done; t < done + group; ++t) {
      const Tap& tap = z_taps[at_z];
      if (at_y == 0) slot = from.slots + tap.source % blocks_.z_slots * from.slot_floats;
      in[k++] = slot + (stretch.positions[at_y] + row * blocks_.y_step.shift) * blocks_.row_floats;
      if (walk_.y.weighted()) in[k++] = &stretch.weights[at_y * static_cast<size_t>(stretch.count)] + row;
      if (walk_.z.weighted()) in[k++] = &tap.weight;
      if (++at_y < over_y) continue;
      at_y = 0;
      ++at_z;
    }
    if (done + group < all) {
      out[0] = from.sums;
      (*partials_[kind][accumulate][group])({in.data(), out.data(), nullptr, rows});
      continue;
    }
    for (size_t o = 0; o < in_.size(); ++o)
      in[k++] = in_[o].at(args.in[static_cast<size_t>(back_in_[o])], walk_, piece.plane, piece.z, y, x);
    for (size_t o = 0; o < out_.size(); ++o)
      out[o] = stages_ ? staged(from, o) + staged_bytes(o, y - blocks_.blocks[piece.block].begin)
                       : const_cast<std::byte*>(out_[o].at(args.out[o], walk_, piece.plane, piece.z, y, x));
    (*finals_[piece.streaming ? 1 : 0][kind][accumulate][group])({in.data(), out.data(), nullptr, rows});
  }
}

}  // namespace partita::jit
