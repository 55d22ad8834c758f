// SPDX-License-Identifier: Apache-2.0
// Shares of a problem, each on one thread: of a sum, which are added up, or of a result, which lie side by side.
#include "kernels/onednn/shares.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>

#include "kernels/float_copy.hpp"
#include "kernels/onednn/post_ops.hpp"
#include "kernels/thread_scratch.hpp"
#include "src/base/check.hpp"
#include "src/base/divisor.hpp"
#include "src/base/dtype.hpp"
#include "src/base/round.hpp"
#include "src/base/shape.hpp"
#include "src/base/threads.hpp"

namespace partita::onednn {
namespace {

constexpr int64_t kMostShares = 16;
/// Multiplications that make a share of a product worth a thread.
constexpr int64_t kWorthShare = int64_t{1} << 18;
/// Rows or columns of a share's matrix: primitives want an axis without steps in memory.
constexpr int64_t kLeast = 8;
/// Memory for the results of all shares of a sum, in elements.
constexpr int64_t kMostElements = int64_t{1} << 25;
/// Elements of a sum that stay in the first-level cache while the shares are added.
constexpr int64_t kRun = 2048;

/// Sums of products of integers are exact, however they are split.
bool is_exact(const Problem& problem) {
  Product product;
  return !read_product(problem, product) && is_integer(product.src.dtype) && is_integer(product.weights.dtype);
}

/// Steps whose primitives, or some of them, split sums between threads, or into blocks that depend on their number.
bool splits_sums(const Problem& problem) {
  switch (problem.step) {
    case StepKind::matmul:
    case StepKind::convolution:
    case StepKind::convolution_backward_data: return !is_exact(problem);
    case StepKind::convolution_backward_weights:
    case StepKind::batch_norm:
    case StepKind::batch_norm_backward:
    case StepKind::layer_norm_backward:
    case StepKind::group_norm:
    case StepKind::reduce:
    case StepKind::prelu_backward: return true;
    // Whole rows, windows or elements are made by one thread. No `default`: a new step whose sums are split, and which
    // is forgotten here, would give other bits with other threads.
    case StepKind::none:
    case StepKind::loop:
    case StepKind::pool_forward:
    case StepKind::pool_backward:
    case StepKind::max_pool_backward:
    case StepKind::max_pool_indices_backward:
    case StepKind::softmax:
    case StepKind::softmax_backward:
    case StepKind::layer_norm:
    case StepKind::resample:
    case StepKind::resample_backward:
    case StepKind::concat:
    case StepKind::dropout:
    case StepKind::tiles: return false;
  }
  return true;
}

/// Of a convolution: each window's, over the channels of one group.
int64_t multiplications(const Problem& problem) {
  const bool forward = problem.step == StepKind::convolution,
             weights = problem.step == StepKind::convolution_backward_weights;
  const bool swapped = problem.op == OpKind::ConvTransposeBackwardWeights;
  const TensorDesc& narrow = forward ? problem.out[0] : weights && !swapped ? problem.in[1] : problem.in[0];
  const TensorDesc& kernel = weights ? problem.out[0] : problem.in[1];
  const int64_t channels = channel_first(narrow, problem.attrs).dims[1];
  return elements(narrow.dims) * (elements(kernel.dims) / std::max<int64_t>(channels, 1));
}

/// Runs the shares, each on one thread with the scratch memory of its part.
struct Pieces {
  Run run;
  std::vector<int64_t> in_steps, out_steps;
  int64_t shares, cost;
  int threads;
  size_t scratch_bytes;

  ThreadScratch all_scratch() const { return {threads, static_cast<int64_t>(scratch_bytes)}; }

  Status operator()(std::span<const void* const> in, std::span<void* const> out, std::byte* scratch) const {
    std::mutex mutex;
    std::optional<Status> failed;
    const auto part = [&](int64_t begin, int64_t end, int number) {
      const ThreadScope alone(1);
      std::array<const void*, Problem::kMostPorts> from;
      std::array<void*, Problem::kMostPorts> to;
      for (int64_t s = begin; s < end; ++s) {
        for (size_t k = 0; k < in.size(); ++k)
          from[k] = in[k] ? static_cast<const std::byte*>(in[k]) + s * in_steps[k] : nullptr;
        for (size_t k = 0; k < out.size(); ++k)
          to[k] = out[k] ? static_cast<std::byte*>(out[k]) + s * out_steps[k] : nullptr;
        Status status =
            run.call({{from.data(), in.size()}, {to.data(), out.size()}, all_scratch().share(scratch, number)});
        if (status.ok()) continue;
        const std::lock_guard lock(mutex);
        if (!failed) failed.emplace(std::move(status));
      }
    };
    parallel_for(shares, cost, part, threads);
    return failed ? std::move(*failed) : Status();
  }
};

/// The shares' results lie one behind the other in scratch memory, then the scratch memory of the pieces.
struct Sum {
  Pieces pieces;
  TensorDesc part;
  Run copy;  ///< of the first one, where the sum is, to the result
  size_t part_bytes;

  size_t parts_bytes() const { return part_bytes * static_cast<size_t>(pieces.shares); }
  size_t all_scratch() const { return parts_bytes() + std::max(pieces.all_scratch().bytes(), copy.scratch_bytes); }

  Status operator()(const RunArgs& args) const {
    auto* scratch = static_cast<std::byte*>(args.scratch);
    void* parts = scratch;
    PT_TRY(pieces(args.in, {&parts, 1}, scratch + parts_bytes()));
    add(scratch);
    const void* const sum = scratch;
    return copy.call({{&sum, 1}, args.out.first(1), scratch + parts_bytes()});
  }

 private:
  /// All of them to the first one.
  void add(std::byte* scratch) const {
    const int64_t count = elements(part.dims);
    const auto sums = [&](int64_t share) {
      return reinterpret_cast<float*>(scratch + static_cast<size_t>(share) * part_bytes);
    };
    parallel_for((count + kRun - 1) / kRun, kRun * pieces.shares, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin * kRun; at < std::min(count, end * kRun); at += kRun) {
        const int64_t n = std::min(kRun, count - at);
        float* total = sums(0) + at;
        for (int64_t s = 1; s < pieces.shares; ++s) {
          const float* one = sums(s) + at;
          for (int64_t i = 0; i < n; ++i) total[i] += one[i];
        }
      }
    });
  }
};

Run run_of(std::function<Status(const RunArgs&)> call, size_t scratch_bytes) {
  return Run{.call = std::move(call), .scratch_bytes = scratch_bytes};
}

}  // namespace

Shares::Shares(const Problem& problem, const Target& target)
    : problem_(problem), piece_(problem), target_(target), alone_(target.deterministic && splits_sums(problem)) {
  target_.threads = std::max(1, target.threads);
  if (!alone_) return;
  piece_.constant_ports = 0;
  in_steps_.assign(problem.in.size(), 0);
  out_steps_.assign(problem.out.size(), 0);
  for (const auto* side : {&problem.in, &problem.out})
    for (const TensorDesc& t : *side)
      if (bits_of(t.dtype) < 8) return;
  if (!problem.front.empty() || !problem.weights_front.empty()) return;
  switch (problem.step) {
    case StepKind::convolution:
    case StepKind::convolution_backward_data: share_images(); break;
    case StepKind::convolution_backward_weights: share_batch(); break;
    case StepKind::matmul: share_product(); break;
    default: break;
  }
}

void Shares::cut(TensorDesc& tensor, int axis, int64_t shares, int64_t& step) {
  if (axis < 0 || tensor.dims[axis] == 1) return;
  tensor.dims[axis] /= shares;
  step = static_cast<int64_t>(bytes_for(tensor.dtype, tensor.dims[axis] * tensor.strides[axis]));
}

void Shares::share_batch() {
  const int64_t each = std::max<int64_t>(elements(problem_.out[0].dims), 1);
  work_ = multiplications(problem_);
  shares_ = largest_divisor(problem_.in[0].dims[0], std::min({kMostShares, kMostElements / each, work_ / kWorthShare}));
  if (shares_ == 1) return;
  sums_ = true;
  for (size_t port = 0; port < 2; ++port) cut(piece_.in[port], 0, shares_, in_steps_[port]);
  piece_.out[0] = compact(piece_.out[0]);
  piece_.out[0].dtype = Dtype::f32;
  out_steps_[0] = static_cast<int64_t>(aligned(bytes_for(Dtype::f32, each)));
}

/// Along the batch; the operands of `back` lie over the result.
void Shares::share_images() {
  work_ = multiplications(problem_);
  shares_ = largest_divisor(problem_.in[0].dims[0], std::min(kMostShares, work_ / kWorthShare));
  cut(piece_.in[0], 0, shares_, in_steps_[0]);
  for (auto port = static_cast<size_t>(problem_.in_ports()); port < piece_.in.size(); ++port)
    cut(piece_.in[port], 0, shares_, in_steps_[port]);
  for (size_t port = 0; port < piece_.out.size(); ++port) cut(piece_.out[port], 0, shares_, out_steps_[port]);
}

/// Along that axis of the result that makes the most shares.
void Shares::share_product() {
  const TensorDesc &a = problem_.in[0], &b = problem_.in[1], &dst = problem_.out[0];
  const int rank = dst.dims.size();
  if (a.dims.size() < 2 || b.dims.size() < 2) return;
  const int64_t depth = a.dims[a.dims.size() - (problem_.attrs.flag_or(Attr::transpose_a, false) ? 2 : 1)];
  work_ = elements(dst.dims) * depth;
  const int64_t most = std::min(kMostShares, work_ / kWorthShare);
  int axis = -1;
  for (int d = 0; d < rank; ++d)
    if (const int64_t count = largest_divisor(dst.dims[d], d < rank - 2 ? most : std::min(most, dst.dims[d] / kLeast));
        count > shares_) {
      shares_ = count;
      axis = d;
    }
  if (axis < 0) return;
  const int from_right = rank - axis;
  // Row and column of the result are those of one operand each, wherever a transposition puts them.
  const auto operand = [&](size_t port, int own, Attr transposed) {
    TensorDesc& t = piece_.in[port];
    const int last = t.dims.size();
    const bool swapped = problem_.attrs.flag_or(transposed, false);
    const int at = from_right > 2 ? last - from_right : from_right == own ? last - (swapped ? 3 - own : own) : -1;
    cut(t, at, shares_, in_steps_[port]);
  };
  operand(0, 2, Attr::transpose_a);
  operand(1, 1, Attr::transpose_b);
  for (size_t port = 2; port < piece_.in.size(); ++port)
    cut(piece_.in[port], piece_.in[port].dims.size() - from_right, shares_, in_steps_[port]);
  for (size_t port = 0; port < piece_.out.size(); ++port)
    cut(piece_.out[port], piece_.out[port].dims.size() - from_right, shares_, out_steps_[port]);
}

Result<Run> Shares::whole(Run of_piece) const {
  if (!alone_) return of_piece;
  const size_t scratch = aligned(of_piece.scratch_bytes);
  Pieces pieces{.run = std::move(of_piece),
                .in_steps = in_steps_,
                .out_steps = out_steps_,
                .shares = shares_,
                .cost = std::max<int64_t>(work_ / shares_, 1),
                .threads = static_cast<int>(std::min<int64_t>(target_.threads, shares_)),
                .scratch_bytes = scratch};
  if (sums_) {
    const auto part_bytes = static_cast<size_t>(out_steps_[0]);
    PT_ASSIGN(Run copy, float_copy(piece_.out[0], problem_.out[0], target_));
    Sum sum{.pieces = std::move(pieces), .part = piece_.out[0], .copy = std::move(copy), .part_bytes = part_bytes};
    const size_t bytes = sum.all_scratch();
    return run_of(std::move(sum), bytes);
  }
  const size_t bytes = pieces.all_scratch().bytes();
  return run_of([pieces = std::move(pieces)](
                    const RunArgs& args) { return pieces(args.in, args.out, static_cast<std::byte*>(args.scratch)); },
                bytes);
}

}  // namespace partita::onednn
