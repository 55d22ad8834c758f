// SPDX-License-Identifier: Apache-2.0
// Which planes can be turned, and the walk over groups of them.
#include "kernels/jit/pool/turned.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/jit/code/run_of.hpp"
#include "kernels/jit/flat/row_kernel.hpp"
#include "kernels/jit/flat/stream_copy.hpp"
#include "kernels/jit/pool/walk.hpp"
#include "src/base/check.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/threads.hpp"

namespace partita::jit {
namespace {

constexpr int64_t kGroupBytes = 96 << 10;  ///< of what is turned: the second-level cache holds a few times as much
constexpr int64_t kLeastTogether = 32, kMostTogether = 256;
constexpr int64_t kMostBytes = 512 << 10;  ///< of the smallest group: beyond, nothing is won
constexpr size_t kMostOperands = 32;

enum class Moves : uint8_t { nowhere, planes, cells };

/// Elements from a plane to the next one, of this image or of the next; absent where that is not one number.
std::optional<int64_t> plane_distance(const TensorDesc& d) {
  const int64_t images = d.dims[0], channels = d.dims[1];
  if (channels == 1) return images == 1 ? 0 : d.strides[0];
  if (images > 1 && d.strides[0] != channels * d.strides[1]) return std::nullopt;
  return d.strides[1];
}

Dims spatial(const Dims& dims) { return Dims(std::span(dims.begin() + 2, dims.end())); }

bool moves(const TensorDesc& d, int axis) { return d.dims[axis] > 1 && d.strides[axis] != 0; }

/// How a tensor of the pooling moves; absent where that is no way in which planes can be turned.
std::optional<Moves> moves_of(const TensorDesc& d) {
  bool cells = false;
  for (int axis = 2; axis < d.dims.size(); ++axis) cells = cells || moves(d, axis);
  const bool planes = moves(d, 0) || moves(d, 1);
  if (!planes) return Moves::nowhere;
  if (!cells) return Moves::planes;
  if (!is_dense(spatial(d.dims), spatial(d.strides)) || plane_distance(d).value_or(0) == 0) return std::nullopt;
  return Moves::cells;
}

int64_t planes_of(const Problem& p) { return p.out[0].dims[0] * p.out[0].dims[1]; }

bool is_of_pooling(const TensorDesc& d, const Problem& p) { return d.dims.size() == p.out[0].dims.size(); }

/// Bytes of all that is turned of one plane.
int64_t bytes_of_plane(const Problem& p) {
  int64_t bytes = 0;
  for (const auto* side : {&p.in, &p.out})
    for (const TensorDesc& d : *side)
      if (is_of_pooling(d, p) && moves_of(d) == Moves::cells)
        bytes += elements(spatial(d.dims)) * element_bytes(d.dtype);
  return bytes;
}

/// Planes of a group: they, and what is made of them, stay in the caches, and each thread has groups to do.
int64_t planes_together(const Problem& p) {
  const int64_t bytes = bytes_of_plane(p);
  int64_t together = kMostTogether;
  while (together > kLeastTogether && (together * bytes > kGroupBytes || together * 8 > planes_of(p))) together /= 2;
  // Groups without a rest need no code for it.
  const auto has_rest = [&](int64_t planes) { return planes_of(p) % planes != 0; };
  return has_rest(together) && together > kLeastTogether && !has_rest(together / 2) ? together / 2 : together;
}

/// A group's part of a tensor, channels last.
std::optional<TensorDesc> of_group(const TensorDesc& d, int64_t together) {
  const auto how = moves_of(d);
  if (!how) return std::nullopt;
  if (*how != Moves::nowhere && bits_of(d.dtype) < 8) return std::nullopt;
  TensorDesc made{.dtype = d.dtype, .dims = {1}, .strides = {0}, .offset = *how == Moves::nowhere ? d.offset : 0};
  const Dims cells = spatial(d.dims), dense = dense_strides(cells), given = spatial(d.strides);
  for (int i = 0; i < cells.size(); ++i) {
    made.dims.push_back(cells[i]);
    made.strides.push_back(*how == Moves::cells ? dense[i] * together : *how == Moves::planes ? 0 : given[i]);
  }
  made.dims.push_back(together);
  made.strides.push_back(*how == Moves::nowhere ? 0 : 1);
  return made;
}

}  // namespace

std::optional<Problem> TurnedPool::of_group(const Problem& problem) {
  Problem made = problem;
  made.attrs.set(Attr::data_format, std::string("NXC"));
  made.result_bytes = 0;
  made.constant_ports = 0;
  if (problem.in.size() + problem.out.size() > kMostOperands || planes_of(problem) < kLeastTogether ||
      bytes_of_plane(problem) * kLeastTogether > kMostBytes)
    return std::nullopt;
  const int64_t together = planes_together(problem);
  for (auto* side : {&made.in, &made.out})
    for (TensorDesc& desc : *side) {
      if (!is_of_pooling(desc, problem)) continue;
      auto part = jit::of_group(desc, together);
      if (!part || (side == &made.out && moves_of(desc) != Moves::cells)) return std::nullopt;
      if (plane_distance(desc).value_or(0) * element_bytes(desc.dtype) > TransposeKernel::kMaxRow) return std::nullopt;
      desc = std::move(*part);
    }
  return made;
}

TurnedPool::TurnedPool(const Problem& problem, const Target& target, Run group)
    : group_(std::move(group)),
      threads_(std::max(1, target.threads)),
      channels_(problem.out[0].dims[1]),
      planes_(planes_of(problem)),
      together_(planes_together(problem)) {
  // What nobody reads may have no memory: a gradient in whose place an expression reads its own operands.
  std::vector<bool> is_read(problem.in.size(), false);
  is_read[0] = traits_of(problem.step).front_port != 0;
  for (const Expr& e : {front_expression(problem), back_expression(problem)})
    for (const int k : loaded_operands(e)) is_read[static_cast<size_t>(k)] = true;
  for (size_t k = 0; k < problem.in.size(); ++k)
    in_.push_back(is_read[k] && is_of_pooling(problem.in[k], problem) ? operand(problem.in[k]) : Operand());
  int64_t most_streamed = 0;
  for (const TensorDesc& desc : problem.out) {
    Operand& o = out_.emplace_back(operand(desc));
    o.is_streamed = exceeds_cache(problem) && o.follow;
    if (!o.is_streamed) continue;
    most_streamed = std::max(most_streamed, o.plane);
    const auto next =
        std::ranges::find_if(in_, [&](const Operand& i) { return i.follow && !i.is_fetched && i.plane == o.plane; });
    if (next == in_.end()) continue;
    next->is_fetched = true;
    o.next = static_cast<int>(next - in_.begin());
  }
  streamed_at_ = group_scratch_;
  group_scratch_ += aligned(most_streamed * together_);
  for (Operand& o : in_) make_kernels(o, target.isa, false);
  for (Operand& o : out_) make_kernels(o, target.isa, true);
  scratch_ = {threads_, group_scratch_ + static_cast<int64_t>(group_.scratch_bytes)};
}

TurnedPool::Operand TurnedPool::operand(const TensorDesc& desc) {
  const Moves how = *moves_of(desc);
  if (how == Moves::nowhere) return {};
  const int64_t each = element_bytes(desc.dtype), cells = how == Moves::cells ? elements(spatial(desc.dims)) : 1;
  Operand made{.cells = how == Moves::cells ? cells : 0,
               .each = each,
               .offset = desc.offset * each,
               .n = desc.dims[0] > 1 ? desc.strides[0] * each : 0,
               .c = desc.dims[1] > 1 ? desc.strides[1] * each : 0,
               .at = group_scratch_};
  group_scratch_ += aligned(together_ * cells * each);
  if (how != Moves::cells) return made;
  made.plane = *plane_distance(desc) * each;
  made.follow = made.plane == cells * each;
  return made;
}

void TurnedPool::make_kernels(Operand& o, Isa isa, bool is_result) {
  if (o.cells == 0) return;
  const int64_t cell = together_ * o.each;
  const auto kernel = [&](int64_t planes) {
    TransposeShape shape{.bytes = static_cast<int>(o.each),
                         .a = is_result ? o.cells : planes,
                         .b = is_result ? planes : o.cells,
                         .src_row = is_result ? cell : o.plane,
                         .dst_row = is_result ? o.plane : cell,
                         .writes_runs = true,
                         .fetches_next = !is_result && o.follow && !o.is_fetched};
    return std::make_unique<const TransposeKernel>(isa, shape);
  };
  if (planes_ >= together_) o.whole = kernel(together_);
  if (planes_ % together_ != 0) o.rest = kernel(planes_ % together_);
}

Status TurnedPool::operator()(const RunArgs& args) const {
  const auto part = [&](int64_t begin, int64_t end, int number) {
    std::byte* scratch = scratch_.share(args.scratch, number);
    for (int64_t group = begin; group < end; ++group) run(args, group * together_, scratch);
    if (std::ranges::any_of(out_, &Operand::is_streamed)) end_streaming();
  };
  parallel_for((planes_ - 1) / together_ + 1, group_scratch_, part, threads_);
  return {};
}

const std::byte* TurnedPool::in_memory(const Operand& o, const void* base, int64_t plane) const {
  return static_cast<const std::byte*>(base) + o.offset + plane / channels_ * o.n + plane % channels_ * o.c;
}

/// One for each plane.
void TurnedPool::copy_numbers(const Operand& o, const void* base, int64_t first, std::byte* to) const {
  for (int64_t i = 0; i < planes_from(first); ++i)
    std::memcpy(to + i * o.each, in_memory(o, base, first + i), static_cast<size_t>(o.each));
}

/// Planes from `first` on.
void TurnedPool::run(const RunArgs& args, int64_t first, std::byte* scratch) const {
  std::array<const void*, kMostOperands> in;
  std::array<void*, kMostOperands> out;
  for (size_t k = 0; k < in_.size(); ++k) {
    const Operand& o = in_[k];
    in[k] = o.each == 0 ? args.in[k] : scratch + o.at;
    if (o.cells > 0)
      kernel(o, first)(in_memory(o, args.in[k], first), scratch + o.at);
    else if (o.each > 0)
      copy_numbers(o, args.in[k], first, scratch + o.at);
  }
  for (size_t k = 0; k < out_.size(); ++k) out[k] = scratch + out_[k].at;
  const Status made = group_.call(
      {.in = {in.data(), in_.size()}, .out = {out.data(), out_.size()}, .scratch = scratch + group_scratch_});
  PT_ASSERT(made.ok());
  for (size_t k = 0; k < out_.size(); ++k) {
    const Operand& o = out_[k];
    auto* const to = const_cast<std::byte*>(in_memory(o, args.out[k], first));
    if (!o.is_streamed) {
      kernel(o, first)(scratch + o.at, to);
      continue;
    }
    std::byte* const turned = scratch + streamed_at_;
    kernel(o, first)(scratch + o.at, turned);
    const std::byte* next = nullptr;
    if (const auto n = static_cast<size_t>(o.next); o.next >= 0 && first + 2 * together_ <= planes_)
      next = in_memory(in_[n], args.in[n], first + together_);
    stream_copy(to, turned, static_cast<size_t>(planes_from(first) * o.plane), next);
  }
}

Result<Run> make_turned(const Problem& problem, const Problem& group, const Target& target,
                        Result<Run> (*make)(const Problem&, const Target&)) {
  Target one_thread = target;
  one_thread.threads = 1;
  PT_ASSIGN(Run run, make(group, one_thread));
  return run_of<TurnedPool>(problem, target, std::move(run));
}

}  // namespace partita::jit
