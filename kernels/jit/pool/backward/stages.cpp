// SPDX-License-Identifier: Apache-2.0
// Row kernels of pooling gradients and their calls.
#include "kernels/jit/pool/backward/stages.hpp"

#include <algorithm>
#include <array>

#include "src/base/dtype.hpp"

namespace partita::jit {

/// The elements of a row: the operand's stride along them.
RowOperand PoolStages::operand(const PoolOperand& o, const RowWalk& walk) const {
  const int64_t row = walk.along == Along::x ? o.x : walk.along == Along::y ? o.y : walk.along == Along::c ? o.c : 0;
  const bool inner = (p_.channel_last ? o.c : o.x) != 0;
  const bool outer = walk.joined && (p_.channel_last ? o.x != 0 : o.y != 0 || o.z != 0);
  RowOperand made{o.dtype, inner || outer, row * walk.every};
  if (row != 0 && walk.ahead != 0) made.fetching = Fetching::near(static_cast<int>(walk.ahead * made.row_bytes));
  return made;
}

/// The operand's elements along the joined axes are next to each other, or all of them are the same one.
bool PoolStages::joinable(const PoolOperand& o, const Dims& spatial) const {
  std::array<std::pair<int64_t, int64_t>, 3> axes{};  // extent and stride, innermost first
  size_t count = 0;
  if (p_.channel_last)
    for (auto axis : {std::pair{p_.g.channels, o.c}, std::pair{spatial[2], o.x}}) axes[count++] = axis;
  else
    for (auto axis : {std::pair{spatial[2], o.x}, std::pair{spatial[1], o.y}, std::pair{spatial[0], o.z}})
      axes[count++] = axis;
  bool dense = true, same = true;
  int64_t distance = element_bytes(o.dtype);
  for (size_t k = 0; k < count; ++k) {
    if (axes[k].first == 1) continue;
    dense = dense && axes[k].second == distance;
    same = same && axes[k].second == 0;
    distance *= axes[k].first;
  }
  return dense || same;
}

bool PoolStages::joinable_pooled() const {
  if (!p_.same_along_x) return false;
  return std::ranges::all_of(p_.front_in, [&](int k) { return joinable(p_.in[static_cast<size_t>(k)], p_.g.dst); });
}

bool PoolStages::joinable_source() const { return joinable(p_.in[0], p_.g.src); }

bool PoolStages::joinable_cells() const {
  return std::ranges::all_of(p_.back_in, [&](int k) { return joinable(p_.in[static_cast<size_t>(k)], p_.g.src); }) &&
         std::ranges::all_of(p_.out, [&](const PoolOperand& o) { return joinable(o, p_.g.src); });
}

std::vector<RowOperand> PoolStages::front_operands(const RowWalk& walk) const {
  std::vector<RowOperand> list;
  for (int k : p_.front_in) list.push_back(operand(p_.in[static_cast<size_t>(k)], walk));
  return list;
}

template <class Write>
PoolStages::Kernel PoolStages::made(const Key& key, Write write) {
  const auto same = std::ranges::find(kernels_, key, &std::pair<Key, std::shared_ptr<const FlatKernel>>::first);
  if (same != kernels_.end()) return same->second.get();
  RowKernelWriter w;
  write(w);
  // Of the rows that a sum shares with the one before, one comes from memory; a channel-last spread asks for its rows
  // by itself, tiles of planes read many source rows at once.
  const bool from_memory =
      p_.channel_last ? key.kind == Kind::sum && p_.reach(1) > 1 : key.kind == Kind::source && p_.rows() > 1;
  const Fetching fetching = from_memory ? Fetching::near() : Fetching{};
  kernels_.emplace_back(key, w.make(isa_, key.walk.length, key.streaming, fetching));
  return kernels_.back().second.get();
}

std::vector<PoolStages::Kernel> PoolStages::sum(size_t covers, const RowWalk& walk) {
  std::vector<Kernel> list;
  size_t done = 0;
  do {
    const size_t rows = std::min(kSumRows, covers - done);
    const bool first = done == 0, last = done + rows == covers;
    const int form = static_cast<int>(rows) * 4 + first * 2 + last;
    list.push_back(made({Kind::sum, form, walk}, [&](RowKernelWriter& w) { write_sum(w, rows, first, last, walk); }));
    done += rows;
  } while (done < covers);
  return list;
}

/// out = (out +) sum over the rows of front(row) (* weight of the row) (* weight of the window)
void PoolStages::write_sum(RowKernelWriter& w, size_t rows, bool first, bool last, const RowWalk& walk) const {
  ExprBuilder b = w.builder();
  const RowOperand number{Dtype::f32, false, 0};
  auto sum = first ? b.constant(0) : w.load(scratch_rows(walk));
  for (size_t r = 0; r < rows; ++r) {
    auto value = w.splice(p_.front, p_.front_in, front_operands(walk));
    if (!p_.same_along_rows) value = b.mul(value, w.load(number));
    sum = first && r == 0 ? value : b.add(sum, value);
  }
  if (last && !p_.same_along_x)
    sum = b.mul(sum, w.load({Dtype::f32, !p_.channel_last, p_.channel_last ? 4 : 0}));
  else if (last && p_.weight != 1)
    sum = b.mul(sum, b.constant(p_.weight));
  w.store(scratch_rows(walk), sum);
}

PoolStages::Kernel PoolStages::gradients(const RowWalk& walk) {
  return made({Kind::gradients, 0, walk}, [&](RowKernelWriter& w) {
    w.store(scratch_rows(walk), w.splice(p_.front, p_.front_in, front_operands(walk)));
  });
}

PoolStages::Kernel PoolStages::source(const RowWalk& walk) {
  return made({Kind::source, 0, walk},
              [&](RowKernelWriter& w) { w.store(scratch_rows(walk), w.load(operand(p_.in[0], walk))); });
}

PoolStages::Back PoolStages::back(size_t summed, const RowWalk& walk, bool may_stream) {
  const auto kernel = [&](bool streaming) {
    return made({Kind::back, static_cast<int>(summed), walk, streaming}, [&](RowKernelWriter& w) {
      auto cells = summed == 0 ? w.builder().constant(0) : w.load(scratch_rows(walk));
      for (size_t k = 1; k < summed; ++k) cells = w.builder().add(cells, w.load(scratch_rows(walk)));
      std::vector<RowOperand> operands, outputs;
      for (int k : p_.back_in) operands.push_back(operand(p_.in[static_cast<size_t>(k)], walk));
      for (const PoolOperand& o : p_.out) outputs.push_back(operand(o, walk));
      w.splice(p_.back, p_.back_in, operands, outputs, cells);
    });
  };
  return {kernel(false), may_stream ? kernel(true) : nullptr};
}

void PoolStages::run_sum(const std::vector<Kernel>& kernels, const RunArgs& args, const std::vector<RowCover>& covers,
                         const Spot& at, int64_t rows, std::byte* to) const {
  std::array<const void*, kMaxOperands> in;
  void* out = to;
  size_t done = 0;
  for (const Kernel kernel : kernels) {
    size_t k = 0;
    if (done > 0) in[k++] = to;
    const size_t end = std::min(covers.size(), done + kSumRows);
    for (; done < end; ++done) {
      const RowCover& c = covers[done];
      for (int operand : p_.front_in) {
        const auto o = static_cast<size_t>(operand);
        in[k++] = p_.in[o].at(args.in[o], at.n, at.c, c.z, c.y, at.x);
      }
      if (!p_.same_along_rows) in[k++] = &c.weight;
    }
    if (done == covers.size() && !p_.same_along_x) in[k++] = window_weights_.data() + at.x;
    (*kernel)({in.data(), &out, nullptr, rows});
  }
}

void PoolStages::run_gradients(Kernel kernel, const RunArgs& args, const Spot& at, int64_t rows, std::byte* to) const {
  std::array<const void*, kMaxOperands> in;
  void* out = to;
  size_t k = 0;
  for (int operand : p_.front_in) {
    const auto o = static_cast<size_t>(operand);
    in[k++] = p_.in[o].at(args.in[o], at.n, at.c, at.z, at.y, at.x);
  }
  (*kernel)({in.data(), &out, nullptr, rows});
}

void PoolStages::run_source(Kernel kernel, const RunArgs& args, const Spot& at, int64_t rows, std::byte* to) const {
  const void* in = p_.in[0].at(args.in[0], at.n, at.c, at.z, at.y, at.x);
  void* out = to;
  (*kernel)({&in, &out, nullptr, rows});
}

void PoolStages::run_back(Kernel kernel, const RunArgs& args, std::span<const std::byte* const> summed, const Spot& at,
                          int64_t rows) const {
  std::array<const void*, kMaxOperands> in;
  std::array<void*, kMaxOperands> out;
  size_t k = 0;
  for (const std::byte* row : summed) in[k++] = row;
  for (int operand : p_.back_in) {
    const auto o = static_cast<size_t>(operand);
    in[k++] = p_.in[o].at(args.in[o], at.n, at.c, at.z, at.y, at.x);
  }
  for (size_t o = 0; o < p_.out.size(); ++o)
    out[o] = const_cast<std::byte*>(p_.out[o].at(args.out[o], at.n, at.c, at.z, at.y, at.x));
  (*kernel)({in.data(), out.data(), nullptr, rows});
}

const char* PoolStages::refuse(const PoolPlan& p) {
  if ((p.front_in.size() + 1) * kSumRows + 2 > kMaxOperands || p.back_in.size() + kMaxSummed > kMaxOperands ||
      p.out.size() > kMaxOperands)
    return "too many operands";
  // `width`: cells of the operand along x, which are windows in front and source cells behind.
  const auto fits = [&](const PoolOperand& o, int64_t width, bool written) {
    const int64_t step = p.channel_last ? o.c : o.x;
    const int64_t extent = p.channel_last ? p.g.channels : width;
    return extent == 1 || step == element_bytes(o.dtype) || (step == 0 && (!written || o.fold != Fold::none));
  };
  const char* reason = "an operand's elements along the innermost axis are not next to each other";
  for (int k : p.front_in)
    if (!fits(p.in[static_cast<size_t>(k)], p.g.dst[2], false)) return reason;
  for (int k : p.back_in)
    if (!fits(p.in[static_cast<size_t>(k)], p.g.src[2], false)) return reason;
  if (p.maximum && !fits(p.in[0], p.g.src[2], false)) return reason;
  for (const PoolOperand& o : p.out)
    if (!fits(o, p.g.src[2], true)) return reason;
  return nullptr;
}

}  // namespace partita::jit
