// SPDX-License-Identifier: Apache-2.0
// Search for concatenations that only element-wise loops read, and the loops' parts.
#include "passes/optimize/through_concats.hpp"

#include <algorithm>
#include <optional>

#include "kernels/loop/fold_plan.hpp"
#include "passes/lower/lowering.hpp"
#include "passes/optimize/parts.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"

namespace partita {
namespace {

/// Loops over more parts would cost more than the tensor between; copies become one step again (join_copies).
constexpr size_t kMostParts = 4, kMostCopies = 32;
constexpr int64_t kShortestRun = 64;  ///< elements of a part that lie next to each other, where it is computed

/// A tensor that copies make part by part.
struct Concat {
  int buffer = 0, axis = 0;
  std::vector<size_t> copies;  ///< steps
};

class Mover {
 public:
  explicit Mover(Program& program) : p_(program) {}

  void run() {
    while (move_one()) {
    }
  }

 private:
  /// What moves makes the result behind it a concatenation.
  bool move_one() {
    std::vector<int> writers(p_.buffers.size(), 0);
    for (const Step& step : p_.steps)
      for (int b : step.out)
        if (b != Step::kNoBuffer) ++writers[static_cast<size_t>(b)];
    for (size_t b = 0; b < writers.size(); ++b) {
      if (writers[b] < 2) continue;
      const auto concat = concat_into(static_cast<int>(b));
      if (!concat || !may_move(*concat)) continue;
      move(*concat);
      return true;
    }
    return false;
  }

  const Buffer& buffer(int b) const { return p_.buffers[static_cast<size_t>(b)]; }
  const TensorDesc& part(const Concat& c, size_t k) const { return p_.steps[c.copies[k]].problem.out[0]; }

  static bool is_whole(const TensorDesc& desc, const logical_tensor& tensor) {
    return desc.offset == 0 && desc.dims == Dims(tensor.dims) && desc.strides == Dims(tensor.strides);
  }

  std::optional<Concat> concat_into(int b) const {
    if (buffer(b).role != Buffer::Role::temporary) return {};
    Concat c{.buffer = b, .axis = 0, .copies = {}};
    for (size_t s = 0; s < p_.steps.size(); ++s) {
      if (!p_.steps[s].writes(b)) continue;
      if (!is_copy(p_.steps[s].problem) || p_.steps[s].in[0] < 0) return {};
      c.copies.push_back(s);
    }
    if (c.copies.size() > kMostCopies) return {};
    TensorDesc whole = part(c, 0);
    for (size_t k = 1; k < c.copies.size(); ++k) {
      const auto axis = axis_between(part(c, k - 1), part(c, k));
      if (!axis || (k > 1 && *axis != c.axis)) return {};
      c.axis = *axis;
      whole.dims[c.axis] += part(c, k).dims[c.axis];
    }
    if (!is_whole(whole, buffer(b).desc)) return {};
    return c;
  }

  bool may_move(const Concat& c) const {
    bool read = false;
    for (const Step& step : p_.steps) {
      if (!step.reads(c.buffer)) continue;
      if (!may_move(step, c)) return false;
      read = true;
    }
    return read;
  }

  /// An element-wise loop over the space of the tensor.
  bool may_move(const Step& loop, const Concat& c) const {
    const Problem& p = loop.problem;
    if (p.step != StepKind::loop || loop.out.size() != 1 || has_folds(p) || reads_coordinates(p.back)) return false;
    if (p.out[0].dims != Dims(buffer(c.buffer).desc.dims)) return false;
    for (size_t k = 0; k < loop.in.size(); ++k) {
      if (loop.in[k] == Step::kNoBuffer) return false;
      if (loop.in[k] == c.buffer && !is_whole(p.in[k], buffer(c.buffer).desc)) return false;
    }
    return is_copy(p) || is_worth_parts(loop, c);
  }

  bool is_worth_parts(const Step& loop, const Concat& c) const {
    if (c.copies.size() > kMostParts) return false;
    // What makes numbers of integers belongs to the product behind it.
    const auto is_narrow = [](const TensorDesc& desc) { return bits_of(desc.dtype) < 16; };
    if (std::ranges::any_of(loop.problem.in, is_narrow) || is_narrow(loop.problem.out[0])) return false;
    for (size_t k = 0; k < c.copies.size(); ++k)
      if (part(c, k).dims[c.axis] * part(c, k).strides[c.axis] < kShortestRun) return false;
    // Steps that take the whole loop in front of them, and reductions, which belong into it.
    return std::ranges::none_of(p_.steps, [&](const Step& reader) {
      return reader.reads(loop.out[0]) &&
             (reader.problem.step == StepKind::loop
                  ? has_folds(reader.problem)
                  : traits_of(reader.problem.step).skeleton && !is_product(reader.problem.step));
    });
  }

  void move(const Concat& c) {
    std::vector<Step> steps;
    for (size_t s = 0; s < p_.steps.size(); ++s) {
      if (std::ranges::count(c.copies, s) > 0) continue;
      if (p_.steps[s].reads(c.buffer))
        add_parts(p_.steps[s], c, steps);
      else
        steps.push_back(p_.steps[s]);
    }
    p_.steps = std::move(steps);
  }

  /// The loop for each part, and where it is no copy, copies of what they make.
  void add_parts(const Step& loop, const Concat& c, std::vector<Step>& steps) {
    std::vector<Step> copies;
    int64_t start = 0;
    for (size_t copy : c.copies) {
      const Step& source = p_.steps[copy];
      const int64_t extent = source.problem.out[0].dims[c.axis];
      Step piece = loop;
      if (is_copy(loop.problem)) piece.ops.insert(piece.ops.begin(), source.ops.begin(), source.ops.end());
      const auto narrow = [&](TensorDesc& desc) {
        desc.dims[c.axis] = extent;
        desc.offset += start * desc.strides[c.axis];
      };
      for (size_t k = 0; k < piece.in.size(); ++k) {
        if (piece.in[k] != c.buffer) {
          narrow(piece.problem.in[k]);
          continue;
        }
        piece.in[k] = source.in[0];
        piece.problem.in[k] = source.problem.in[0];
      }
      TensorDesc& result = piece.problem.out[0];
      narrow(result);
      if (!is_copy(loop.problem)) {
        const TensorDesc there = result;
        result = {result.dtype, result.dims, dense_strides(result.dims), 0};
        const int own = add_temporary(result);
        Step& last = copies.emplace_back();
        last.problem = copy_loop(result, there);
        last.in = {own};
        last.out = piece.out;
        last.ops = source.ops;
        piece.out = {own};
      }
      steps.push_back(std::move(piece));
      start += extent;
    }
    steps.insert(steps.end(), copies.begin(), copies.end());
  }

  int add_temporary(const TensorDesc& desc) {
    p_.buffers.push_back(
        {.role = Buffer::Role::temporary, .desc = logical_tensor(0, desc.dtype, desc.dims), .content = {}});
    return static_cast<int>(p_.buffers.size()) - 1;
  }

  Program& p_;
};

}  // namespace

void move_through_concats(Program& program) { Mover(program).run(); }

}  // namespace partita
