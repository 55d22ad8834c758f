// SPDX-License-Identifier: Apache-2.0
// Merging of axes that lie behind one another in every operand, and the walk over what remains.
#include "kernels/ref/runs.hpp"

#include <algorithm>
#include <numeric>

#include "kernels/ref/view.hpp"
#include "src/base/threads.hpp"

namespace partita::ref {
namespace {

std::vector<Ints> lists_of(const std::vector<Dims>& strides) {
  std::vector<Ints> lists;
  for (const Dims& s : strides) lists.emplace_back(s.begin(), s.end());
  return lists;
}

Runs runs_over(const Dims& dims, const std::vector<Dims>& strides, const std::vector<bool>& inner, bool side,
               Order order) {
  Ints picked;
  std::vector<Ints> lists(strides.size());
  for (int axis = 0; axis < dims.size(); ++axis) {
    if (inner[static_cast<size_t>(axis)] != side) continue;
    picked.push_back(dims[axis]);
    for (size_t k = 0; k < strides.size(); ++k) lists[k].push_back(strides[k][axis]);
  }
  return Runs(std::move(picked), std::move(lists), order);
}

}  // namespace

Runs::Runs(const Dims& dims, const std::vector<Dims>& strides, Order order)
    : Runs(Ints(dims.begin(), dims.end()), lists_of(strides), order) {}

Runs::Runs(Ints dims, std::vector<Ints> strides, Order order) : dims_(std::move(dims)), strides_(std::move(strides)) {
  count_ = std::accumulate(dims_.begin(), dims_.end(), int64_t{1}, std::multiplies<>());
  merge_axes(order);
}

void Runs::merge_axes(Order order) {
  std::vector<size_t> axes;
  for (size_t i = 0; i < dims_.size(); ++i) {
    if (dims_[i] != 1) axes.push_back(i);
  }
  if (order == Order::memory && !strides_.empty()) {
    const Ints& first = strides_[0];
    std::stable_sort(axes.begin(), axes.end(), [&](size_t a, size_t b) { return first[a] > first[b]; });
  }
  Ints dims;
  std::vector<Ints> strides(strides_.size());
  for (size_t axis : axes) {
    bool joins = !dims.empty();
    for (size_t k = 0; joins && k < strides_.size(); ++k) {
      joins = strides[k].back() == strides_[k][axis] * dims_[axis];
    }
    if (joins) {
      dims.back() *= dims_[axis];
    } else {
      dims.push_back(dims_[axis]);
    }
    for (size_t k = 0; k < strides_.size(); ++k) {
      if (joins) {
        strides[k].back() = strides_[k][axis];
      } else {
        strides[k].push_back(strides_[k][axis]);
      }
    }
  }
  if (dims.empty()) {
    dims.push_back(1);
    for (Ints& s : strides) s.push_back(0);
  }
  dims_ = std::move(dims);
  strides_ = std::move(strides);
}

Positions Runs::at(int64_t index) const {
  Positions positions{};
  for (size_t axis = dims_.size(); axis-- > 0;) {
    const int64_t coordinate = index % dims_[axis];
    index /= dims_[axis];
    for (size_t k = 0; k < strides_.size(); ++k) positions[k] += coordinate * strides_[k][axis];
  }
  return positions;
}

void Runs::range(int64_t begin, int64_t end, const Positions& base, const RunBody& body) const {
  const int64_t row = dims_.back();
  for (int64_t place = begin; place < end;) {
    const int64_t n = std::min({kBlock, end - place, row - place % row});
    Positions positions = at(place);
    for (size_t k = 0; k < strides_.size(); ++k) positions[k] += base[k];
    body(positions, place, n);
    place += n;
  }
}

void Runs::each_in_parallel(int64_t cost, const RunBody& body, bool parallel) const {
  if (!parallel) return each({}, body);
  const int64_t blocks = (count_ + kBlock - 1) / kBlock;
  parallel_for(blocks, cost * kBlock,
               [&](int64_t begin, int64_t end) { range(begin * kBlock, std::min(end * kBlock, count_), {}, body); });
}

Slices::Slices(const Dims& dims, const std::vector<Dims>& strides, const std::vector<bool>& inner_axes,
               Order inner_order)
    : outer(runs_over(dims, strides, inner_axes, false, Order::row_major)),
      inner(runs_over(dims, strides, inner_axes, true, inner_order)) {}

void Slices::each_in_parallel(int64_t cost, const std::function<void(const Positions&, int64_t)>& body) const {
  parallel_for(outer.count(), cost * std::max<int64_t>(inner.count(), 1), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(outer.at(i), i);
  });
}

}  // namespace partita::ref
