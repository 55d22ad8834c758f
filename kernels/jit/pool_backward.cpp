// SPDX-License-Identifier: Apache-2.0
// Pooling gradients by rows of cells: each row of the result is computed once, in order, from the few rows of the
// pooled side that reach it, and stored once. Those rows are prepared in scratch memory as f32 with the front
// expression applied:
//   average: the weighted sum of the rows over z and y      maximum: for each row its gradients and its winning taps
// Then every stretch of cells that lie alike to their windows is one call of generated code, which ends in the back
// expression.
#include "kernels/jit/pool_backward.hpp"

#include <array>
#include <map>

#include "kernels/jit/expand.hpp"
#include "kernels/jit/pool_windows.hpp"
#include "kernels/jit/row_kernel.hpp"
#include "kernels/jit/run_of.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/threads.hpp"

namespace partita::jit {
namespace {

constexpr int64_t kMaxTaps = 64;    ///< of a maximum's window: each is an operand
constexpr int64_t kMaxCovers = 16;  ///< windows over one cell
constexpr size_t kMaxOperands = 96;
constexpr int64_t kAlignment = 64;

using Kernel = std::shared_ptr<const FlatKernel>;

Expr front_of(const Problem& p, int port) {
  if (!p.front.empty()) return p.front;
  Expr e;
  e.result = ExprBuilder(e).load(port);
  return e;
}

Expr back_of(const Problem& p) {
  if (!p.back.empty()) return p.back;
  Expr e;
  ExprBuilder b(e);
  b.store(0, b.skeleton());
  return e;
}

int gradient_port(const Problem& p) { return p.step == StepKind::max_pool_backward ? 1 : 0; }

PoolGeometry geometry_of(const Problem& p) {
  return with_three_axes(pool_geometry(p, p.out[0].dims, p.in[static_cast<size_t>(gradient_port(p))].dims));
}

/// Windows over one cell at the most, along one axis.
int64_t most_covers(const PoolGeometry& g, int i) {
  return std::min(g.dst[i], ((g.kernel[i] - 1) * g.dilations[i] + g.strides[i]) / g.strides[i]);
}

/// A window row (z, y) over a row of cells: which taps the row is, and its weight.
struct RowCover {
  int64_t z, y, tap_z, tap_y;
  float weight;
  friend bool operator==(const RowCover&, const RowCover&) = default;
};

class PoolBackward {
 public:
  PoolBackward(const Problem& p, const Target& target)
      : g_(geometry_of(p)),
        isa_(target.isa),
        front_(front_of(p, gradient_port(p))),
        back_(back_of(p)),
        maximum_(p.step == StepKind::max_pool_backward) {
    for (const TensorDesc& desc : p.in) in_.push_back(desc.dims.empty() ? ChannelRows{} : channel_rows(desc));
    for (const TensorDesc& desc : p.out) out_.push_back(channel_rows(desc));
    front_in_ = loaded_operands(front_);
    back_in_ = loaded_operands(back_);
    stretches_ = cell_stretches(g_, 2);
    windows_ = window_stretches(g_, 2);
    pooled_row_ = g_.dst[2] * g_.channels;
    row_slots_ = std::max<int64_t>(1, most_covers(g_, 0) * most_covers(g_, 1));
    may_stream_ = may_stream(p);
    for (int64_t z = 0; z < g_.src[0]; ++z) z_covers_.push_back(covers_of(g_, 0, z));
    for (int64_t y = 0; y < g_.src[1]; ++y) y_covers_.push_back(covers_of(g_, 1, y));
    make_kernels();
  }

  Status operator()(const RunArgs& args) const {
    bool streaming = may_stream_;
    for (void* out : args.out) streaming = streaming && reinterpret_cast<uintptr_t>(out) % kAlignment == 0;
    const int64_t rows = g_.batch * g_.src[0] * g_.src[1];
    parallel_for(rows, g_.src[2] * g_.channels, [&](int64_t begin, int64_t end) {
      Scratch scratch(row_slots_, static_cast<size_t>(pooled_row_) * (maximum_ ? 2 : 1));
      for (int64_t row = begin; row < end; ++row)
        run_row(args, scratch, row / g_.src[1] / g_.src[0], row / g_.src[1] % g_.src[0], row % g_.src[1], streaming);
    });
    return {};
  }

 private:
  /// Prepared rows of one thread.
  struct Scratch {
    struct Slot {
      int64_t n = -1;
      std::vector<RowCover> covers;  // average: the whole sum; maximum: the one row
      float* data = nullptr;
    };
    Scratch(int64_t slots, size_t floats) : slots(static_cast<size_t>(slots)) {
      thread_local std::vector<float> memory;
      memory.resize(static_cast<size_t>(slots) * floats);
      for (size_t s = 0; s < this->slots.size(); ++s) this->slots[s].data = memory.data() + s * floats;
    }
    std::vector<Slot> slots;
  };

  bool may_stream(const Problem& p) const {
    int64_t bytes = 0;
    for (const TensorDesc& desc : p.out) {
      const ChannelRows rows = channel_rows(desc);
      for (int64_t distance : {rows.offset, rows.n, rows.z, rows.y, rows.x})
        if (distance % kAlignment != 0) return false;
      bytes += elements(desc.dims) * bits_of(desc.dtype) / 8;
    }
    return bytes > static_cast<int64_t>(last_level_cache_bytes() / 2);
  }

  std::vector<RowOperand> front_operands() const {
    std::vector<RowOperand> list;
    for (int k : front_in_) list.push_back(in_[static_cast<size_t>(k)].rows(in_[static_cast<size_t>(k)].x));
    return list;
  }

  RowOperand scratch_rows() const { return {Dtype::f32, true, g_.channels * 4}; }
  static RowOperand number() { return {Dtype::f32, false, 0}; }

  void make_kernels() {
    for (int64_t z = 0; z < g_.src[0]; ++z)
      for (int64_t y = 0; y < g_.src[1]; ++y) {
        const size_t rows = row_covers(z, y).size();
        if (!maximum_ && !sum_rows_.count(rows)) sum_rows_[rows] = make_sum(rows);
        for (const CellStretch& s : stretches_) {
          const size_t covers = maximum_ ? rows * s.covers.size() : s.covers.size();
          if (!spread_.count(covers))
            spread_[covers] = {make_spread(covers, false), may_stream_ ? make_spread(covers, true) : nullptr};
        }
      }
    if (!maximum_) return;
    RowKernelWriter w;
    w.store(scratch_rows(), w.splice(front_, front_in_, front_operands()));
    gradients_ = w.make(isa_, g_.channels, false);
    for (int64_t z = 0; z < g_.dst[0]; ++z)
      for (int64_t y = 0; y < g_.dst[1]; ++y)
        for (const WindowStretch& s : windows_) {
          const std::vector<int64_t> taps = valid_taps(z, y, s);
          if (!winners_.count(taps)) winners_[taps] = make_winner(taps);
        }
  }

  /// Numbers of the window's taps that lie inside the source, in row-major order.
  std::vector<int64_t> valid_taps(int64_t z, int64_t y, const WindowStretch& s) const {
    const auto tz = g_.taps(0, z), ty = g_.taps(1, y);
    std::vector<int64_t> taps;
    for (int64_t a = tz.begin; a < tz.end; ++a)
      for (int64_t b = ty.begin; b < ty.end; ++b)
        for (int64_t c = s.taps.begin; c < s.taps.end; ++c) taps.push_back((a * g_.kernel[1] + b) * g_.kernel[2] + c);
    return taps;
  }

  /// out = sum over m rows of front(row) * weight
  Kernel make_sum(size_t m) const {
    RowKernelWriter w;
    auto sum = w.builder().constant(0);
    for (size_t r = 0; r < m; ++r) {
      const auto value = w.splice(front_, front_in_, front_operands());
      const auto term = w.builder().mul(value, w.load(number()));
      sum = r == 0 ? term : w.builder().add(sum, term);
    }
    w.store(scratch_rows(), sum);
    return w.make(isa_, g_.channels, false);
  }

  /// Average: sum of prepared rows times weights. Maximum: sum of the gradients whose winning tap is this cell. Then
  /// back.
  Kernel make_spread(size_t covers, bool streaming) const {
    RowKernelWriter w;
    auto sum = w.builder().constant(0);
    for (size_t k = 0; k < covers; ++k) {
      const auto row = w.load(scratch_rows());
      const auto fixed = w.load(number());
      ExprBuilder b = w.builder();
      const auto term = maximum_ ? b.select(b.apply(ExprOp::eq, w.load(scratch_rows()), fixed), row, b.constant(0))
                                 : b.mul(row, fixed);
      sum = k == 0 ? term : b.add(sum, term);
    }
    const int64_t step = g_.strides[2];
    std::vector<RowOperand> operands, outputs;
    for (int k : back_in_) operands.push_back(in_[static_cast<size_t>(k)].rows(in_[static_cast<size_t>(k)].x * step));
    for (const ChannelRows& out : out_) outputs.push_back(out.rows(out.x * step));
    w.splice(back_, back_in_, operands, outputs, sum);
    return w.make(isa_, g_.channels, streaming);
  }

  /// out = number of the first maximum among the taps (NaN counts as maximum)
  Kernel make_winner(const std::vector<int64_t>& taps) const {
    RowKernelWriter w;
    const RowOperand source = in_[0].rows(in_[0].x * g_.strides[2]);
    ExprBuilder b = w.builder();
    auto winner = b.constant(taps.empty() ? -1.0f : static_cast<float>(taps[0]));
    if (!taps.empty()) {
      auto best = w.load(source);
      for (size_t k = 1; k < taps.size(); ++k) {
        const auto next = w.load(source);
        const auto real = b.apply(ExprOp::eq, next, next), best_real = b.apply(ExprOp::eq, best, best);
        const auto beats = b.select(real, b.gt(next, best), best_real);
        best = b.select(beats, next, best);
        winner = b.select(beats, b.constant(static_cast<float>(taps[k])), winner);
      }
    }
    w.store(scratch_rows(), winner);
    return w.make(isa_, g_.channels, false);
  }

  std::vector<RowCover> row_covers(int64_t z, int64_t y) const {
    std::vector<RowCover> list;
    for (const Cover& cz : z_covers_[static_cast<size_t>(z)])
      for (const Cover& cy : y_covers_[static_cast<size_t>(y)])
        list.push_back({cz.window, cy.window, cz.tap, cy.tap,
                        maximum_ ? 1.0f : axis_weight(g_, 0, cz.window) * axis_weight(g_, 1, cy.window)});
    return list;
  }

  void run_row(const RunArgs& args, Scratch& scratch, int64_t n, int64_t z, int64_t y, bool streaming) const {
    const std::vector<RowCover> covers = row_covers(z, y);
    std::array<const float*, kMaxCovers> rows{};
    if (maximum_)
      for (size_t r = 0; r < covers.size(); ++r) rows[r] = maximum_row(args, scratch, n, covers, r);
    else
      rows[0] = average_row(args, scratch.slots[0], n, covers);
    for (const CellStretch& s : stretches_) spread(args, s, covers, rows, n, z, y, streaming);
  }

  const float* average_row(const RunArgs& args, Scratch::Slot& slot, int64_t n,
                           const std::vector<RowCover>& covers) const {
    if (slot.n == n && slot.covers == covers) return slot.data;
    slot.n = n;
    slot.covers = covers;
    std::array<const void*, kMaxOperands> in;
    size_t k = 0;
    for (const RowCover& c : covers) {
      for (int operand : front_in_)
        in[k++] = in_[static_cast<size_t>(operand)].at(args.in[static_cast<size_t>(operand)], n, c.z, c.y, 0);
      in[k++] = &c.weight;
    }
    void* out = slot.data;
    (*sum_rows_.at(covers.size()))({in.data(), &out, nullptr, g_.dst[2]});
    return slot.data;
  }

  /// The prepared window row covers[r]: gradients, then winning taps.
  const float* maximum_row(const RunArgs& args, Scratch& scratch, int64_t n, const std::vector<RowCover>& covers,
                           size_t r) const {
    auto holds = [&](const Scratch::Slot& slot, const RowCover& c) {
      return slot.n == n && slot.covers.size() == 1 && slot.covers[0].z == c.z && slot.covers[0].y == c.y;
    };
    Scratch::Slot* unused = nullptr;
    for (Scratch::Slot& slot : scratch.slots) {
      if (holds(slot, covers[r])) return slot.data;
      const bool wanted = std::any_of(covers.begin(), covers.end(), [&](const RowCover& c) { return holds(slot, c); });
      if (!wanted) unused = &slot;
    }
    unused->n = n;
    unused->covers = {covers[r]};
    prepare(args, n, covers[r].z, covers[r].y, unused->data);
    return unused->data;
  }

  void prepare(const RunArgs& args, int64_t n, int64_t z, int64_t y, float* to) const {
    std::array<const void*, kMaxOperands> in;
    for (size_t k = 0; k < front_in_.size(); ++k)
      in[k] = in_[static_cast<size_t>(front_in_[k])].at(args.in[static_cast<size_t>(front_in_[k])], n, z, y, 0);
    void* out = to;
    (*gradients_)({in.data(), &out, nullptr, g_.dst[2]});
    for (const WindowStretch& s : windows_) {
      const std::vector<int64_t> taps = valid_taps(z, y, s);
      for (size_t k = 0; k < taps.size(); ++k) {
        const int64_t c = taps[k] % g_.kernel[2], row = taps[k] / g_.kernel[2];
        in[k] = in_[0].at(args.in[0], n, cell(0, z, row / g_.kernel[1]), cell(1, y, row % g_.kernel[1]),
                          cell(2, s.first, c));
      }
      out = to + pooled_row_ + s.first * g_.channels;
      (*winners_.at(taps))({in.data(), &out, nullptr, s.count});
    }
  }

  int64_t cell(int axis, int64_t window, int64_t tap) const {
    return window * g_.strides[axis] - g_.pads_begin[axis] + tap * g_.dilations[axis];
  }

  void spread(const RunArgs& args, const CellStretch& s, const std::vector<RowCover>& rows_over,
              const std::array<const float*, kMaxCovers>& rows, int64_t n, int64_t z, int64_t y, bool streaming) const {
    std::array<const void*, kMaxOperands> in;
    std::array<float, kMaxCovers> taps;
    std::array<void*, kMaxOperands> out;
    size_t k = 0, covers = 0;
    if (maximum_) {
      for (size_t r = 0; r < rows_over.size(); ++r)
        for (const Cover& c : s.covers) {
          taps[covers] =
              static_cast<float>((rows_over[r].tap_z * g_.kernel[1] + rows_over[r].tap_y) * g_.kernel[2] + c.tap);
          in[k++] = rows[r] + c.window * g_.channels;
          in[k++] = &taps[covers++];
          in[k++] = rows[r] + pooled_row_ + c.window * g_.channels;
        }
    } else {
      for (size_t c = 0; c < s.covers.size(); ++c, ++covers) {
        in[k++] = rows[0] + s.covers[c].window * g_.channels;
        in[k++] = &s.weights[c];
      }
    }
    for (int operand : back_in_)
      in[k++] = in_[static_cast<size_t>(operand)].at(args.in[static_cast<size_t>(operand)], n, z, y, s.first);
    for (size_t o = 0; o < out_.size(); ++o) out[o] = const_cast<std::byte*>(out_[o].at(args.out[o], n, z, y, s.first));
    const auto& [plain, past_caches] = spread_.at(covers);
    (streaming ? *past_caches : *plain)({in.data(), out.data(), nullptr, s.count});
  }

  PoolGeometry g_;
  Isa isa_;
  Expr front_, back_;
  bool maximum_;
  std::vector<int> front_in_, back_in_;
  std::vector<ChannelRows> in_, out_;
  std::vector<CellStretch> stretches_;
  std::vector<WindowStretch> windows_;
  std::vector<std::vector<Cover>> z_covers_, y_covers_;
  int64_t pooled_row_ = 0, row_slots_ = 1;
  bool may_stream_ = false;
  std::map<size_t, Kernel> sum_rows_;                   // by number of rows
  std::map<size_t, std::pair<Kernel, Kernel>> spread_;  // by number of covers: plain, streaming
  std::map<std::vector<int64_t>, Kernel> winners_;      // by valid taps
  Kernel gradients_;
};

}  // namespace

const char* refuse_pool_backward(const Problem& p, const Target&) {
  if (!p.attrs.is(Attr::data_format, "NXC")) return "the channels are not the last axis";
  const PoolGeometry g = geometry_of(p);
  int64_t covers = 1, taps = 1;
  for (int i = 0; i < 3; ++i) {
    covers *= most_covers(g, i);
    taps *= g.kernel[i];
  }
  if (covers > kMaxCovers) return "too many windows cover one cell";
  if (g.maximum && taps > kMaxTaps) return "the window has too many taps";
  const Expr front = front_of(p, gradient_port(p)), back = back_of(p);
  for (const Expr* e : {&front, &back}) {
    if (const char* reason = refuse_expansion(*e, p)) return reason;
    for (int k : loaded_operands(*e))
      if (const char* reason = refuse_channel_rows(p.in[static_cast<size_t>(k)], false)) return reason;
  }
  const size_t operands = loaded_operands(front).size() * kMaxCovers + loaded_operands(back).size() + 3 * kMaxCovers;
  if (operands > kMaxOperands || p.out.size() > kMaxOperands) return "too many operands";
  if (g.maximum)
    if (const char* reason = refuse_channel_rows(p.in[0], false)) return reason;
  for (const TensorDesc& desc : p.out)
    if (const char* reason = refuse_channel_rows(desc, true)) return reason;
  return nullptr;
}

Result<Run> make_pool_backward(const Problem& problem, const Target& target) {
  return run_of<PoolBackward>(problem, target);
}

}  // namespace partita::jit
