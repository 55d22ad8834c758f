// SPDX-License-Identifier: Apache-2.0
// Copies in an order of memory that a step's tensors have, without gaps.
#include "passes/optimize/untangle.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "kernels/loop/fold_plan.hpp"
#include "passes/lower/lowering.hpp"
#include "passes/select.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"

namespace partita {
namespace {

/// Axes from the widest stride to the narrowest, those of extent 1 left out.
using Order = std::vector<int>;

/// Empty for a tensor that repeats elements or has fewer than two axes that matter: it lies in any order.
Order order_of(const TensorDesc& tensor) {
  Order order;
  for (int axis = 0; axis < tensor.dims.size(); ++axis) {
    if (tensor.dims[axis] == 1) continue;
    if (tensor.strides[axis] == 0 || tensor.dims[axis] == 0) return {};
    order.push_back(axis);
  }
  std::ranges::stable_sort(order, std::greater(), [&](int axis) { return tensor.strides[axis]; });
  return order.size() < 2 ? Order() : order;
}

/// Without gaps, the axes in `order`.
TensorDesc laid_out(TensorDesc tensor, const Order& order) {
  tensor.offset = 0;
  int64_t stride = 1;
  for (int axis = 0; axis < tensor.dims.size(); ++axis) tensor.strides[axis] = 1;
  for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
    tensor.strides[*axis] = stride;
    stride *= tensor.dims[*axis];
  }
  return tensor;
}

/// What a loop folds into repeats along the folded axes; with these of extent 1, it is what lies in memory.
TensorDesc kept_axes(TensorDesc tensor) {
  for (int axis = 0; axis < tensor.dims.size(); ++axis)
    if (tensor.strides[axis] == 0) tensor.dims[axis] = 1;
  return tensor;
}

/// From the best: generated code, a primitive (which reads f32 copies of most that generated code refuses, and computes
/// maxima without NaN), and what computes element by element.
enum class Speed { generated, primitive, slow };

Speed speed_of(const Problem& problem, const Target& target) {
  const auto picked = pick_kernel(problem, target, forced_kernel(problem.step));
  if (!picked.ok() || picked->kernel->slow) return Speed::slow;
  return picked->kernel->isa == Isa::any ? Speed::primitive : Speed::generated;
}

/// Operators whose kernels want all tensors in one order of memory, a good one.
bool wants_one_order(StepKind step) { return traits_of(step).images || traits_of(step).rows; }

class Untangler {
 public:
  Untangler(Program& program, const Target& target) : p_(program), target_(target) {}

  void run() {
    std::vector<Step> steps = std::move(p_.steps);
    p_.steps.clear();
    for (Step& step : steps) add(std::move(step));
  }

 private:
  /// A tensor that was copied, as it was read.
  struct Copied {
    int buffer;
    TensorDesc read;
    int copy;
    TensorDesc as;
  };

  /// Result `k` as it lies in memory.
  static TensorDesc result(const Problem& problem, size_t k) {
    const TensorDesc& desc = problem.out[k];
    return fold_of_output(problem.back, k) == Fold::none ? desc : kept_axes(desc);
  }

  void add(Step step) {
    std::vector<Step> after;
    const std::vector<Order> orders = orders_of(step.problem);
    if (!orders.empty()) {
      read_copies(step, orders.front());
      if (const Order* order = order_that_helps(step.problem, orders)) after = copied(step, *order);
    }
    p_.steps.push_back(std::move(step));
    std::ranges::move(after, std::back_inserter(p_.steps));
  }

  /// Axes of a tensor that has fewer than the main one (a norm's scale) are others: it stays as it lies.
  static bool has_axes_of_step(const Problem& problem, const TensorDesc& desc) {
    return !wants_one_order(problem.step) || desc.dims.size() == problem.in[0].dims.size();
  }

  /// The orders that tensors lie in, the one of most bytes first, at last that of the axes (of the data format) where
  /// one of those may be slow; empty where the step has no use for one.
  static std::vector<Order> orders_of(const Problem& problem) {
    if (problem.step != StepKind::loop && !wants_one_order(problem.step)) return {};
    std::map<Order, int64_t> bytes;
    for (const auto* side : {&problem.in, &problem.out})
      for (const TensorDesc& desc : *side)
        if (Order order = order_of(desc); !order.empty() && has_axes_of_step(problem, desc))
          bytes[std::move(order)] += elements(desc.dims) * bits_of(desc.dtype);
    // What is folded into may lie in another order than the only one of whole tensors.
    if (bytes.size() < (wants_one_order(problem.step) || has_folds(problem) ? 1 : 2)) return {};
    std::vector<Order> orders;
    for (const auto& entry : bytes) orders.push_back(entry.first);
    std::ranges::stable_sort(orders, std::greater(), [&](const Order& order) { return bytes[order]; });
    if (wants_one_order(problem.step)) {
      orders.emplace_back(problem.in[0].dims.size());
      std::iota(orders.back().begin(), orders.back().end(), 0);
    }
    return orders;
  }

  /// Null where the step's kernel is a fast one, or would be no faster in any order.
  const Order* order_that_helps(const Problem& problem, const std::vector<Order>& orders) const {
    std::optional<Speed> speed;
    for (const Order& order : orders) {
      if (!tangled(problem, order)) continue;
      if (!speed) speed = speed_of(problem, target_);
      if (*speed == Speed::generated) return nullptr;
      Problem straight = problem;
      for (TensorDesc& desc : straight.in)
        if (is_tangled(problem, desc, order)) desc = laid_out(desc, order);
      for (size_t k = 0; k < straight.out.size(); ++k)
        if (is_tangled(problem, result(problem, k), order)) straight.out[k] = straight_result(problem, k, order);
      if (speed_of(straight, target_) < *speed) return &order;
    }
    return nullptr;
  }

  /// Such a tensor has the axes of `main`, no others, in another order; axes of extent 1 are in any order. One of
  /// images or rows may also have gaps between the elements that `main` has next to each other.
  static bool is_tangled(const Problem& problem, const TensorDesc& desc, const Order& main) {
    const Order order = order_of(desc);
    if (!has_axes_of_step(problem, desc)) return false;
    Order wanted;
    for (const int axis : main)
      if (desc.dims[axis] != 1) wanted.push_back(axis);
    if (order.empty() || !std::ranges::is_permutation(order, wanted)) return false;
    return order != wanted || (wants_one_order(problem.step) && desc.strides[order.back()] != 1);
  }

  /// Result `k` without gaps, the axes in `order`.
  static TensorDesc straight_result(const Problem& problem, size_t k, const Order& order) {
    TensorDesc made = laid_out(result(problem, k), order);
    made.dims = problem.out[k].dims;
    for (int axis = 0; axis < made.dims.size(); ++axis)
      if (problem.out[k].strides[axis] == 0) made.strides[axis] = 0;
    return made;
  }

  static bool tangled(const Problem& problem, const Order& main) {
    for (const TensorDesc& desc : problem.in)
      if (is_tangled(problem, desc, main)) return true;
    for (size_t k = 0; k < problem.out.size(); ++k)
      if (is_tangled(problem, result(problem, k), main)) return true;
    return false;
  }

  void read_copies(Step& step, const Order& main) const {
    if (step.problem.step != StepKind::loop) return;
    for (size_t k = 0; k < step.in.size(); ++k) read_copy(step, k, main);
  }

  bool read_copy(Step& step, size_t k, const Order& main) const {
    for (const Copied& c : copies_) {
      if (c.buffer != step.in[k] || c.read != step.problem.in[k] || order_of(c.as) != main) continue;
      step.in[k] = c.copy;
      step.problem.in[k] = c.as;
      return true;
    }
    return false;
  }

  int temporary(const TensorDesc& desc) {
    p_.buffers.push_back({.role = Buffer::Role::temporary,
                          .desc = logical_tensor(0, desc.dtype, desc.dims, desc.strides),
                          .content = {}});
    return static_cast<int>(p_.buffers.size()) - 1;
  }

  static Step copy(const Step& of, const TensorDesc& from, int from_buffer, const TensorDesc& to, int to_buffer) {
    LoopStep loop;
    loop.store(to, to_buffer, loop.load(from, from_buffer, false));
    Step made = loop.take();
    made.ops = of.ops;
    made.note = "copy into the order of the other tensors";
    return made;
  }

  /// Copies of inputs go before the step; those of results, which are returned, behind it.
  std::vector<Step> copied(Step& step, const Order& main) {
    std::vector<Step> after;
    for (size_t k = 0; k < step.in.size(); ++k) {
      const TensorDesc read = step.problem.in[k];
      if (step.in[k] == Step::kNoBuffer || !is_tangled(step.problem, read, main) || read_copy(step, k, main)) continue;
      const TensorDesc as = laid_out(read, main);
      const int made = temporary(as);
      p_.steps.push_back(copy(step, read, step.in[k], as, made));
      copies_.push_back({step.in[k], read, made, as});
      step.in[k] = made;
      step.problem.in[k] = as;
    }
    for (size_t k = 0; k < step.out.size(); ++k) {
      const TensorDesc written = result(step.problem, k);
      if (!is_tangled(step.problem, written, main)) continue;
      const TensorDesc as = laid_out(written, main);
      const int made = temporary(as);
      after.push_back(copy(step, as, made, written, step.out[k]));
      step.problem.out[k] = straight_result(step.problem, k, main);
      step.out[k] = made;
    }
    return after;
  }

  Program& p_;
  const Target& target_;
  std::vector<Copied> copies_;
};

}  // namespace

void untangle(Program& program, const Target& target) { Untangler(program, target).run(); }

}  // namespace partita
