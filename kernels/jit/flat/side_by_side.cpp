// SPDX-License-Identifier: Apache-2.0
// Copies of an expression side by side.
#include "kernels/jit/flat/side_by_side.hpp"

#include <cstdlib>

#include "kernels/jit/code/expand.hpp"
#include "kernels/jit/code/imm32.hpp"
#include "kernels/jit/code/vector_random.hpp"
#include "kernels/jit/flat/flat_parts.hpp"
#include "kernels/jit/flat/pairs.hpp"
#include "kernels/transplant.hpp"
#include "src/base/check.hpp"
#include "src/base/dtype.hpp"

namespace partita::jit {
namespace {

int64_t vector_bytes(Isa isa, Dtype dtype) { return int64_t{lanes_of(isa)} * bits_of(dtype) / 8; }

ExprOp op_of(Fold fold) {
  switch (fold) {
    case Fold::max: return ExprOp::max;
    case Fold::min: return ExprOp::min;
    case Fold::mul: return ExprOp::mul;
    case Fold::sum:
    case Fold::none: break;
  }
  return ExprOp::add;
}

/// What `shape` says of fetching, each operand says itself.
void let_operands_fetch(RowShape& shape) {
  for (RowOperand& o : shape.in)
    if (o.steps && !o.fetching) o.fetching = shape.fetching;
  shape.fetching = {};
}

bool is_product_for_sum(const Expr& expr, const Instr& in) {
  return in.op == ExprOp::fma && expr.code[in.c].op == ExprOp::constant && expr.code[in.c].value == 0;
}

}  // namespace

SideBySide::SideBySide(const Expr& expr, std::vector<RowOperand> in, std::vector<RowOperand> out)
    : code_(expr.code), in_(std::move(in)), out_(std::move(out)) {}

int SideBySide::append(std::vector<RowOperand>& side, std::vector<TensorDesc>& types, RowOperand operand, int place,
                       int64_t behind) {
  if (side.size() > static_cast<size_t>(place)) {
    operand.place = place;
    operand.behind = imm32(behind);
  }
  types.push_back(described(operand));
  side.push_back(operand);
  return static_cast<int>(side.size()) - 1;
}

void SideBySide::add_vectors(Isa isa, int count, int64_t row) {
  for (int v = 0; v < count; ++v) add(isa, v, row);
}

void SideBySide::add(Isa isa, int vector, int64_t row) {
  Transplant t(code_, expr_);
  const bool second = vector % 2 != 0;  // of two
  const auto of_row = [&](const RowOperand& o) {
    const int first = o.every_other != EveryOther::no && second ? vector - 1 : vector;
    return (o.steps ? first * vector_bytes(isa, o.dtype) : 0) * (o.numbers ? step_of(*o.numbers) : 1);
  };
  const auto behind = [&](const RowOperand& o) { return row * o.row_bytes + of_row(o); };
  const auto is_new = [&](const RowOperand& operand) {
    return count_ == 0 || behind(operand) != 0 || operand.every_other == EveryOther::odd;
  };
  for (size_t k = 0; k < in_.size(); ++k) {
    const int place = static_cast<int>(k);
    RowOperand operand = in_[k];
    if (operand.every_other != EveryOther::no && second) {
      operand.every_other = EveryOther::odd;
      operand.fetching = {};  // the line that the even ones fetch
    }
    if (!begins_line(of_row(operand), vector_bytes(isa, operand.dtype))) operand.fetching = {};
    t.in_map.push_back(is_new(operand) ? append(shape_.in, types_.in, operand, place, behind(operand)) : place);
  }
  std::vector<size_t> folds(out_.size());  ///< where each output that folds stands
  for (size_t k = 0; k < out_.size(); ++k) {
    const int place = static_cast<int>(k);
    const bool folds_here = out_[k].fold != Fold::none;
    PT_ASSERT(folds_here || is_new(out_[k]));
    const int at = is_new(out_[k]) ? append(shape_.out, types_.out, out_[k], place, behind(out_[k])) : place;
    folds[k] = static_cast<size_t>(at);
    t.out_map.push_back(folds_here ? -1 : at);
  }
  folded_.resize(shape_.out.size());
  ++count_;

  const std::vector<Value> values = t.run();
  ExprBuilder b(expr_);
  for (size_t i = 0; i < code_.size(); ++i) {
    const Fold how = fold_of(code_[i].op);
    if (how == Fold::none) continue;
    std::optional<Value>& so_far = folded_[folds[static_cast<size_t>(code_[i].imm)]];
    const Instr made_by = expr_.code[values[i]];
    if (!so_far)
      so_far = values[i];
    else if (how == Fold::sum && is_product_for_sum(expr_, made_by))
      so_far = b.fma(made_by.a, made_by.b, *so_far);
    else
      so_far = b.apply(op_of(how), *so_far, values[i]);
  }
}

Lanes SideBySide::lanes(Isa isa, RowShape& shape) {
  for (size_t k = 0; k < folded_.size(); ++k)
    if (folded_[k]) ExprBuilder(expr_).fold(shape_.out[k].fold, static_cast<int>(k), *folded_[k]);
  shape.in = shape_.in;
  shape.out = shape_.out;
  const Lanes lanes = expanded(expr_, types_, isa);
  return isa == Isa::avx512 ? in_pairs(lanes, shape) : lanes;
}

RowsAtOnce::RowsAtOnce(Isa isa, const Expr& expr, RowShape shape, int rows) : rows_(rows) {
  let_operands_fetch(shape);
  for (const RowOperand& o : shape.in) in_bytes_.push_back(o.row_bytes);
  for (const RowOperand& o : shape.out) out_bytes_.push_back(o.row_bytes);
  SideBySide all(expr, shape.in, shape.out);
  for (int64_t row = 0; row < rows; ++row) all.add_vectors(isa, shape.vectors, row);
  const Lanes code = all.lanes(isa, shape);
  for (auto* side : {&shape.in, &shape.out})
    for (RowOperand& o : *side) o.row_bytes *= rows;
  kernel_ = std::make_shared<const FlatKernel>(isa, code, shape, 0);
}

void RowsAtOnce::run_some(RowCall& call, std::span<const void*> in, std::span<void*> out) const {
  RowCall part = call;
  part.rows = call.rows / rows_;
  (*kernel_)(part);
  const int64_t taken = part.rows * rows_;
  for (size_t k = 0; k < in.size(); ++k) in[k] = moved(in[k], taken * in_bytes_[k]);
  for (size_t k = 0; k < out.size(); ++k) out[k] = static_cast<std::byte*>(out[k]) + taken * out_bytes_[k];
  call.rows -= taken;
}

namespace {

constexpr int kStreams = 4;
constexpr size_t kMostOperations = 32;    ///< constants counted; where there are more, memory does not matter
constexpr size_t kLeastOperations = 16;   ///< the same; fewer leave room for those of the next vector anyway
constexpr int64_t kLongestSharing = 256;  ///< bytes of a row of results: four of longer ones are streams apart
constexpr int64_t kLeastApart = 2048;     ///< bytes from row to row
/// So few rows must be groups of streams without a rest: rows of the next group are fetched, which the rest are not.
constexpr int64_t kMostWithoutRest = 16;
/// Bytes from row to row: an instruction names places of a group's rows, and of what is fetched some rows behind them.
constexpr int64_t kFarthestRow = INT32_MAX / 32;

bool is_same_row(const RowOperand& o) { return o.steps && o.row_bytes == 0; }

/// Rows as far apart cannot be addressed from the first one.
bool is_out_of_reach(const RowOperand& o) { return o.numbers || std::abs(o.row_bytes) > kFarthestRow; }

}  // namespace

RowsAtOnce row_streams(const Expr& expr, const Lanes& lanes, RowShape shape, int64_t rows, Isa isa) {
  int64_t apart = 0;
  for (const auto* side : {&shape.in, &shape.out})
    for (const RowOperand& o : *side) apart = std::max(apart, o.row_bytes);
  const bool moves = std::ranges::all_of(shape.out, [](const RowOperand& o) { return o.row_bytes != 0; });
  if (lanes.code.size() > kMostOperations || rows < kStreams || apart < kLeastApart || !moves) return {};
  if (rows < kMostWithoutRest && rows % kStreams != 0) return {};
  if (apart * 2 * kStreams > INT32_MAX) return {};

  // Each goes on by a whole cache line of results.
  for (const RowOperand& o : shape.out)
    shape.vectors = std::max(shape.vectors, static_cast<int>(kCacheLine / vector_bytes(isa, o.dtype)));
  if (shape.length % (int64_t{lanes_of(isa)} * shape.vectors) != 0) shape.vectors = 1;
  shape.fetching = {};  // but what the next rows read at the same place
  for (RowOperand& o : shape.in) {
    const auto ahead = static_cast<int>(o.row_bytes * kStreams);
    if (ahead > 0) o.fetching = reads_streams_alone() ? Fetching::second_level(ahead) : Fetching::near(ahead);
  }
  return {isa, expr, shape, kStreams};
}

RowsAtOnce row_sharing(const Expr& expr, const Lanes& lanes, RowShape shape, int64_t rows, Isa isa) {
  const auto moves = [](const RowOperand& o) { return o.row_bytes != 0 && !is_out_of_reach(o); };
  const auto is_long = [&](const RowOperand& o) { return shape.length * bits_of(o.dtype) / 8 > kLongestSharing; };
  if (std::ranges::none_of(shape.in, is_same_row) || std::ranges::any_of(shape.in, is_out_of_reach) ||
      std::ranges::any_of(shape.out, is_long) || !std::ranges::all_of(shape.out, moves) ||
      lanes.code.size() > kMostOperations || rows < kStreams)
    return {};
  const auto is_half = [](const RowOperand& o) { return o.steps && bits_of(o.dtype) == 16; };
  const bool pairs = std::ranges::any_of(shape.in, is_half) && shape.length % (2 * lanes_of(isa)) == 0;
  shape.vectors = pairs ? 2 : 1;
  return {isa, expr, shape, kStreams};
}

RowsAtOnce row_folds(const Expr& expr, const RowShape& shape, int64_t rows, Isa isa) {
  const auto folds_rows = [](const RowOperand& o) { return o.fold != Fold::none && is_same_row(o); };
  if (rows < kStreams || !std::ranges::all_of(shape.out, folds_rows) || std::ranges::any_of(shape.in, is_out_of_reach))
    return {};
  return {isa, expr, shape, kStreams};
}

Lanes vectors_at_once(const Expr& expr, RowShape& shape, int vectors, Isa isa) {
  shape.vectors = vectors;
  let_operands_fetch(shape);
  SideBySide all(expr, shape.in, shape.out);
  all.add_vectors(isa, vectors);
  return all.lanes(isa, shape);
}

Lanes two_vectors(const Expr& expr, const Lanes& lanes, RowShape& shape, Isa isa) {
  const bool folds = std::ranges::any_of(shape.out, [](const RowOperand& o) { return o.fold != Fold::none; });
  const bool half_lines =
      shape.streaming && std::ranges::any_of(shape.out, [](const RowOperand& o) { return bits_of(o.dtype) == 16; });
  if (isa != Isa::avx512 || reads_coordinates(expr) || folds) return lanes;
  const bool pairs =
      std::ranges::any_of(shape.in, [](const RowOperand& o) { return o.steps && o.dtype == Dtype::bf16; });
  // Then one check for denormals does for both.
  const bool rounds =
      only_moves(lanes) && std::ranges::any_of(shape.out, [](const RowOperand& o) { return o.dtype == Dtype::bf16; });
  if (lanes.code.size() < kLeastOperations && !half_lines && !pairs && !rounds) return lanes;
  if (shape.vectors > 1 || shape.joined || shape.length % (2 * lanes_of(isa)) != 0) return lanes;
  return by_level(vectors_at_once(expr, shape, 2, isa));
}

}  // namespace partita::jit
