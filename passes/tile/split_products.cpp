// SPDX-License-Identifier: Apache-2.0
// Axes of buffers are cut one by one; who sees the whole axis follows.
#include "passes/tile/split_products.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "passes/layout.hpp"

namespace partita {
namespace {

bool has_room(const Dims& dims) { return dims.size() < kMaxRank; }

/// An axis of a buffer that becomes two.
struct Cut {
  int axis;
  int64_t outer, inner;
};

/// The axis that `view` walks as two, if it is one, and the other axes are whole.
std::optional<Cut> cut_by(const TensorDesc& view, const logical_tensor& buffer) {
  if (view.offset != 0) return std::nullopt;
  for (int a = 0; a < buffer.rank(); ++a)
    for (int inner = 0; inner < view.dims.size(); ++inner) {
      if (view.strides[inner] != buffer.strides[a] || view.dims[inner] <= 1 || view.dims[inner] >= buffer.dims[a])
        continue;
      for (int outer = 0; outer < view.dims.size(); ++outer)
        if (view.dims[outer] * view.dims[inner] == buffer.dims[a] &&
            view.strides[outer] == view.dims[inner] * view.strides[inner])
          return Cut{a, view.dims[outer], view.dims[inner]};
    }
  return std::nullopt;
}

/// Axis `axis` as an inner one in its place and an outer one at `at`.
void cut_axis(TensorDesc& tensor, int axis, int at, const Cut& cut) {
  const int64_t stride = tensor.strides[axis];
  tensor.dims[axis] = cut.inner;
  tensor.dims.insert(at, cut.outer);
  tensor.strides.insert(at, stride * cut.inner);
}

void repeat_at(TensorDesc& tensor, int at) {
  tensor.dims.insert(at, 1);
  tensor.strides.insert(at, 0);
}

/// Its view's axis `d` is cut: a row or a column of the result, or of the batch. The sum over an axis is not.
bool cut_product(Problem& p, const TensorDesc& view, int d, const Cut& cut) {
  if (p.in.size() != 2 || !p.front.empty() || !p.back.empty()) return false;
  std::array<TensorDesc*, 3> tensors = {&p.in[0], &p.in[1], &p.out[0]};
  for (const TensorDesc* tensor : tensors)
    if (tensor->dims.size() < 2 || !has_room(tensor->dims)) return false;
  const int from_end = view.dims.size() - d;
  if (from_end > 2) {
    for (TensorDesc* tensor : tensors) {
      const int axis = tensor->dims.size() - from_end;
      if (axis < 0) continue;
      tensor->dims[axis] == 1 ? repeat_at(*tensor, axis) : cut_axis(*tensor, axis, axis, cut);
    }
    return true;
  }
  const bool a_turned = p.attrs.flag_or(Attr::transpose_a, false), b_turned = p.attrs.flag_or(Attr::transpose_b, false);
  const int row_of_a = a_turned ? 1 : 2, column_of_b = b_turned ? 2 : 1;
  const bool is_a = &view == &p.in[0], is_b = &view == &p.in[1];
  if ((is_a && from_end != row_of_a) || (is_b && from_end != column_of_b)) return false;
  const bool columns = is_b || (!is_a && from_end == 1);
  TensorDesc &cut_in = columns ? p.in[1] : p.in[0], &other = columns ? p.in[0] : p.in[1];
  const auto batch = [](const TensorDesc& tensor) { return tensor.dims.size() - 2; };
  cut_axis(cut_in, cut_in.dims.size() - (columns ? column_of_b : row_of_a), batch(cut_in), cut);
  cut_axis(p.out[0], p.out[0].dims.size() - (columns ? 1 : 2), batch(p.out[0]), cut);
  repeat_at(other, batch(other));
  return true;
}

class Splitter {
 public:
  explicit Splitter(Program& program) : p_(program) {}

  bool run() {
    for (size_t b = 0; b < p_.buffers.size(); ++b)
      if (const auto cut = cut_somewhere(static_cast<int>(b)); cut && !cut_buffer(static_cast<int>(b), *cut))
        return false;
    return cut_products_ && std::ranges::all_of(p_.steps, [&](Step& step) { return follow_buffers(step); });
  }

 private:
  /// A loop that walks two axes of a temporary as one (what puts heads beside each other again).
  bool follow_buffers(Step& step) {
    if (step.problem.step != StepKind::loop) return true;
    for (size_t k = 0; k < step.in.size(); ++k) {
      const int b = step.in[k];
      if (b == Step::kNoBuffer || p_.buffers[static_cast<size_t>(b)].role != Buffer::Role::temporary) continue;
      const logical_tensor& desc = p_.buffers[static_cast<size_t>(b)].desc;
      const TensorDesc view = step.problem.in[k];
      for (int d = 0; d < view.dims.size(); ++d) {
        const TensorDesc own{desc.dtype, Dims(desc.dims), Dims(desc.strides), 0};
        const auto cut = cut_by(own, logical_tensor(0, desc.dtype, Dims{view.dims[d]}, Dims{view.strides[d]}));
        if (cut && (!cut_view(step, view, d, *cut) || !cut_others(step))) return false;
        if (cut) break;
      }
    }
    return true;
  }

  template <class See>
  void for_each_view(int buffer, const See& see) {
    for (Step& step : p_.steps) {
      for (size_t k = 0; k < step.in.size(); ++k)
        if (step.in[k] == buffer) see(step, step.problem.in[k]);
      for (size_t k = 0; k < step.out.size(); ++k)
        if (step.out[k] == buffer) see(step, step.problem.out[k]);
    }
  }

  /// An axis of a temporary that any step walks as two.
  std::optional<Cut> cut_somewhere(int b) {
    const Buffer& buffer = p_.buffers[static_cast<size_t>(b)];
    std::optional<Cut> cut;
    if (buffer.role != Buffer::Role::temporary) return cut;
    for_each_view(b, [&](const Step&, const TensorDesc& view) {
      if (!cut) cut = cut_by(view, buffer.desc);
    });
    return cut;
  }

  /// Cuts the axis of a temporary, for all who see it whole, and what they see of other temporaries.
  bool cut_buffer(int b, const Cut& cut) {
    logical_tensor& desc = p_.buffers[static_cast<size_t>(b)].desc;
    if (desc.rank() >= kMaxRank) return false;
    const int64_t extent = desc.dims[cut.axis], stride = desc.strides[cut.axis];
    TensorDesc whole{desc.dtype, Dims(desc.dims), Dims(desc.strides), 0};
    cut_axis(whole, cut.axis, cut.axis, cut);
    desc = logical_tensor(desc.id, desc.dtype, whole.dims, whole.strides);
    bool follows = true;
    std::vector<Step*> changed;
    for_each_view(b, [&](Step& step, const TensorDesc& view) {
      for (int d = 0; d < view.dims.size() && follows; ++d) {
        if (view.dims[d] != extent || view.strides[d] != stride) continue;
        follows = cut_view(step, view, d, cut);
        changed.push_back(&step);
        break;
      }
    });
    for (const Step* step : changed)
      if (follows) follows = cut_others(*step);
    return follows;
  }

  bool cut_view(Step& step, const TensorDesc& view, int d, const Cut& cut) {
    if (step.problem.step == StepKind::matmul) return cut_products_ = cut_product(step.problem, view, d, cut);
    if (step.problem.step != StepKind::loop || !has_room(view.dims)) return false;
    for (const Instr& in : step.problem.back.code)
      if (in.op == ExprOp::index_s32) return false;
    TensorDesc fine = view;
    cut_axis(fine, d, d, cut);
    return split_axes(step.problem, TensorDesc(view), fine);
  }

  /// Temporaries of a step that now walks two axes.
  bool cut_others(const Step& step) {
    for (const auto& [buffers, views] :
         {std::pair(&step.in, &step.problem.in), std::pair(&step.out, &step.problem.out)})
      for (size_t k = 0; k < buffers->size(); ++k) {
        const int b = (*buffers)[k];
        if (b == Step::kNoBuffer || p_.buffers[static_cast<size_t>(b)].role != Buffer::Role::temporary) continue;
        const auto cut = cut_by((*views)[k], p_.buffers[static_cast<size_t>(b)].desc);
        if (cut && !cut_buffer(b, *cut)) return false;
      }
    return true;
  }

  Program& p_;
  bool cut_products_ = false;
};

}  // namespace

bool split_products(Program& program) { return Splitter(program).run(); }

}  // namespace partita
