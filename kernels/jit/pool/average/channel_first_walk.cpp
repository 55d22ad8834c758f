// SPDX-License-Identifier: Apache-2.0
// The walk over channel-first averages: calls of some planes, or of some rows of one.
#include <algorithm>
#include <array>
#include <bit>

#include "kernels/jit/flat/exceeds_cache.hpp"
#include "kernels/jit/pool/average/channel_first.hpp"
#include "kernels/jit/pool/walk.hpp"
#include "src/base/dtype.hpp"
#include "src/base/threads.hpp"

namespace partita::jit {
namespace {

constexpr size_t kMostOperands = 32;
constexpr int64_t kMostWidth = 1 << 14, kMostTerms = 64;
constexpr int64_t kMostAdaptiveWidth = 1 << 12;  ///< the table of their windows stays in the second-level cache
constexpr int64_t kUnitElements = 1 << 13;       ///< of a call: what calls share with their neighbours stays small

}  // namespace

bool AverageFirstPool::fits(const Problem& problem) {
  const AveragePlan p(problem);
  if (p.adaptive && (p.g.dst[2] > p.g.src[2] || p.g.src[2] > kMostAdaptiveWidth)) return false;
  if (p.maximum || p.channel_last || p.g.src[2] > kMostWidth || p.g.dst[2] > kMostWidth ||
      p.reach(2) * p.g.strides[2] > kMostTerms || p.out.size() > JoinedStores::kMostOutputs ||
      p.back_in.size() + p.out.size() > kMostOperands || p.front_in.size() > kMostOperands)
    return false;
  const auto even_rows = [&](const PoolOperand& o) { return p.g.src[0] == 1 || o.z == o.y * p.g.src[1]; };
  return std::ranges::all_of(p.back_in, [&](int k) { return even_rows(p.in[static_cast<size_t>(k)]); }) &&
         std::ranges::all_of(p.out, even_rows);
}

AverageFirstPool::AverageFirstPool(const Problem& problem, const Target& target)
    : p_(problem),
      threads_(std::max(1, target.threads)),
      block_(p_.column_blocks(p_.g.src[2])[0]),
      lanes_(lanes_of(target.isa)),
      sums_bytes_(AverageFirstKernel::rows_of_sums(p_) * AverageFirstKernel::sums_bytes(target.isa, p_)),
      sums_(threads_, sums_bytes_),
      column_weights_(p_.column_weights()) {
  // Whole vectors are read.
  column_weights_.resize(static_cast<size_t>(p_.g.dst[2] + 4 * lanes_), 0.0f);
  element_bytes_ = element_bytes(p_.out[0].dtype);
  together_ = JoinedStores::together(target.isa, element_bytes_);
  make_rows();
  folds_ = {problem, p_, target, p_.g.batch * p_.g.channels * std::ssize(rows_), sums_.bytes()};
  kernel_ = std::make_unique<const AverageFirstKernel>(target.isa, p_, problem, AverageFirstStores::plain);
  if (!exceeds_cache(problem)) return;
  joined_ = !aligned_rows();
  if (joined_ && !rows_follow(target.isa, p_.out, p_.g.src[2], p_.rows(), planes_ > 1)) return;
  streaming_ = std::make_unique<const AverageFirstKernel>(
      target.isa, p_, problem, joined_ ? AverageFirstStores::joined : AverageFirstStores::streaming);
}

void AverageFirstPool::make_rows() {
  const int64_t width = p_.g.src[2], rows = p_.rows();
  const int64_t together = even_part(rows, std::max<int64_t>(1, kUnitElements / width));
  // What is folded of a plane is one number.
  if (together >= rows && !p_.has_folds())
    planes_ = std::clamp<int64_t>(kUnitElements / (rows * width), 1, p_.g.channels);
  const auto windows = [](const RowCover& c) { return std::pair(c.z, c.y); };  // whichever of their taps the row is
  for (int64_t first = 0; first < rows; first += together) {
    Rows made{first, std::min(together, rows - first), 0, {}};
    std::vector<RowCover> before;
    size_t stretch = 0;
    for (int64_t row = first; row < first + made.count; ++row) {
      std::vector<RowCover> covers = p_.row_covers(row / p_.g.src[1], row % p_.g.src[1]);
      if (row > first && std::ranges::equal(covers, before, {}, windows, windows)) {
        ++made.table[stretch];
        continue;
      }
      ++made.stretches;
      stretch = made.table.size();
      made.table.insert(made.table.end(), {1, std::ssize(covers)});
      for (const RowCover& c : covers) {
        for (int k : p_.front_in) {
          const PoolOperand& o = p_.in[static_cast<size_t>(k)];
          made.table.push_back(c.z * o.z + c.y * o.y);
        }
        made.table.push_back(std::bit_cast<int32_t>(c.weight));
      }
      before = std::move(covers);
    }
    rows_.push_back(std::move(made));
  }
}

/// Every row starts where whole vectors of a result do.
bool AverageFirstPool::aligned_rows() const {
  return std::ranges::all_of(p_.out, [&](const PoolOperand& o) {
    const int64_t vector = lanes_ * element_bytes(o.dtype);
    return std::ranges::all_of(std::array{o.offset, o.n, o.c, o.z, o.y}, [&](int64_t at) { return at % vector == 0; });
  });
}

Status AverageFirstPool::operator()(const RunArgs& args) const {
  const bool streaming = streaming_ && outputs_aligned(args);
  const int64_t blocks = std::ssize(rows_), tiles = (p_.g.channels + planes_ - 1) / planes_;
  const auto part = [&](int64_t begin, int64_t end, int number) {
    const PoolFolds::Part folds(folds_, args, number);
    std::byte* sums = sums_.share(args.scratch, number);
    fill_words(sums, sums_bytes_, 0.0f);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t c = i / blocks % tiles * planes_;
      folds.unit(i, [&](const RunArgs& to) {
        run(to, rows_[static_cast<size_t>(i % blocks)], i / blocks / tiles, c, std::min(planes_, p_.g.channels - c),
            streaming, sums);
      });
    }
    if (streaming) end_streaming();
  };
  parallel_for(p_.g.batch * tiles * blocks, rows_[0].count * planes_ * p_.g.src[2], part, threads_);
  folds_.finish(args);
  return {};
}

void AverageFirstPool::run(const RunArgs& args, const Rows& rows, int64_t n, int64_t c, int64_t planes, bool streaming,
                           std::byte* sums) const {
  std::array<const void*, kMostOperands> windows, cells;
  std::array<void*, JoinedStores::kMostOutputs> out;
  size_t count = 0;
  for (int k : p_.front_in) {
    const auto o = static_cast<size_t>(k);
    windows[count++] = p_.in[o].at(args.in[o], n, c, 0, 0, block_.window);
  }
  count = 0;
  const int64_t z = rows.first / p_.g.src[1], y = rows.first % p_.g.src[1];
  for (int k : p_.back_in) {
    const auto o = static_cast<size_t>(k);
    cells[count++] = p_.in[o].at(args.in[o], n, c, z, y, 0);
  }
  for (size_t o = 0; o < p_.out.size(); ++o) {
    out[o] = const_cast<std::byte*>(p_.out[o].at(args.out[o], n, c, z, y, 0));
    cells[count++] = out[o];
  }
  AverageFirstCall call{.stretches = rows.table.data(),
                        .stretch_count = rows.stretches,
                        .windows = windows.data(),
                        .cells = cells.data(),
                        .joined = nullptr,
                        .pending = 0,
                        .column_weights = column_weights_.data() + (p_.same_along_x ? 0 : block_.window),
                        .planes = planes,
                        .sums = sums};
  if (!streaming || !joined_) return (streaming ? *streaming_ : *kernel_)(call);
  const JoinedCall joined({out.data(), p_.out.size()}, element_bytes_, together_, planes * rows.count * p_.g.src[2]);
  call.joined = joined.places();
  call.pending = joined.pending();
  (*streaming_)(call);
  joined.finish();
}

}  // namespace partita::jit
