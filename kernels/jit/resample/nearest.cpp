// SPDX-License-Identifier: Apache-2.0
// A place of the result has the bytes of one of the source, whatever their type; code knows how many, a table where
// they are. Large results whose places are no whole cache lines leave through lines in scratch memory.
#include "kernels/jit/resample/nearest.hpp"

#include <algorithm>

#include "kernels/jit/flat/exceeds_cache.hpp"
#include "kernels/jit/flat/run_copy.hpp"
#include "src/base/dtype.hpp"
#include "src/base/round.hpp"
#include "src/base/threads.hpp"

namespace partita::jit {
namespace {

constexpr int64_t kLeastBytes = 32;  ///< of a place: smaller ones are better made several at once

/// Each place has one source, with the weight 1.
bool picks(const AxisMap& map) {
  if (map.weighted()) return false;
  for (int64_t place = 0; place < map.to(); ++place)
    if (map.taps(place).size() != 1) return false;
  return true;
}

int64_t source_of(const AxisMap& map, int64_t place) { return map.taps(place)[0].source; }

}  // namespace

/// Code: rdi the row's first source, rsi the place that is made, rdx where the table says whose bytes it has, rcx how
/// many places there are, which goes to r8, for copies use rcx; rax the source of the place.
class PlacesKernel : private Emitter {
 public:
  PlacesKernel(Isa isa, const RunCopy& place) : Emitter(isa) {
    Xbyak::Label next;
    mov(r8, rcx);
    align(16);
    L(next);
    mov(rax, qword[rdx]);
    add(rax, rdi);
    emit_run_copy(*this, rax, rsi, 0, place);
    advance(rsi, place.bytes);
    add(rdx, 8);
    dec(r8);
    jnz(next, T_NEAR);
    vzeroupper();
    ret();
    entry_ =
        reinterpret_cast<void (*)(const void*, void*, const int64_t*, int64_t)>(reinterpret_cast<uintptr_t>(finish()));
  }
  void operator()(const void* src, void* dst, const int64_t* sources, int64_t places) const {
    entry_(src, dst, sources, places);
  }

 private:
  void (*entry_)(const void*, void*, const int64_t*, int64_t) = nullptr;
};

bool NearestCopy::fits(const Problem& p) {
  bool channel_last = false;
  if (p.step != StepKind::resample || p.fused() || p.in[0].dtype != p.out[0].dtype ||
      refuse_resample_walk(p, channel_last) || !channel_last)
    return false;
  const PlaneWalk walk = resample_walk(p, true);
  const int64_t bytes = walk.channels * element_bytes(p.out[0].dtype);
  if (bytes < kLeastBytes || bytes > INT32_MAX) return false;
  const auto follow = [&](const TensorDesc& desc, int64_t places) {
    const WalkedTensor t = walked(desc, p, walk);
    return t.channel_step(walk) == 1 && (places == 1 || t.x == walk.channels * t.each);
  };
  return picks(walk.z) && picks(walk.y) && picks(walk.x) && follow(p.in[0], 1) && follow(p.out[0], walk.x.to());
}

NearestCopy::NearestCopy(const Problem& p, const Target& target)
    : walk_(resample_walk(p, true)),
      src_(walked(p.in[0], p, walk_)),
      dst_(walked(p.out[0], p, walk_)),
      bytes_(walk_.channels * dst_.each),
      threads_(std::max(target.threads, 1)) {
  for (int64_t x = 0; x < walk_.x.to(); ++x) sources_.push_back(source_of(walk_.x, x) * src_.x);
  RunCopy place{.bytes = bytes_};
  plain_ = std::make_shared<const PlacesKernel>(target.isa, place);
  if (!exceeds_cache(p)) return;
  if (dst_.at_cache_lines(true)) {
    place.streaming = true;
    streaming_ = std::make_shared<const PlacesKernel>(target.isa, place);
  } else {
    staging_ = Staging(threads_, bytes_, walk_.x.to());
  }
}

Status NearestCopy::operator()(const RunArgs& args) const {
  const bool streams = streaming_ && outputs_aligned(args);
  const PlacesKernel& kernel = streams ? *streaming_ : *plain_;
  const int64_t to_z = walk_.z.to(), to_y = walk_.y.to(), places = walk_.x.to();
  const auto part = [&](int64_t begin, int64_t end, int number) {
    StagedLines lines = staging_.lines(args.scratch, number);
    for (int64_t row = begin; row < end; ++row) {
      const int64_t y = row % to_y, z = row / to_y % to_z, plane = row / to_y / to_z;
      const std::byte* const src = src_.at(args.in[0], walk_, plane, source_of(walk_.z, z), source_of(walk_.y, y), 0);
      auto* const dst = const_cast<std::byte*>(dst_.at(args.out[0], walk_, plane, z, y, 0));
      const auto make = [&](int64_t first, int64_t some, std::byte* to) {
        kernel(src, to, &sources_[static_cast<size_t>(first)], some);
      };
      staging_ ? staging_.run(lines, dst, places, make) : make(0, places, dst);
    }
    lines.finish();
    if (streams || staging_) end_streaming();
  };
  parallel_for(walk_.outer * to_z * to_y, places * walk_.channels, part, static_cast<int>(threads_));
  return {};
}

}  // namespace partita::jit
