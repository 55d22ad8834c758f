// SPDX-License-Identifier: Apache-2.0
// Writing of row code: copies of the sweeps' code for each vector of each row.
#include "kernels/jit/rows/row_code.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "kernels/jit/code/expand.hpp"
#include "kernels/jit/flat/pairs.hpp"
#include "src/base/check.hpp"
#include "src/base/cpu.hpp"
#include "src/base/dtype.hpp"

namespace partita::jit {
namespace {

constexpr int kLeastNarrow = 8;  ///< vectors of 16-bit rows: shorter ones are computed rather than written
constexpr int kSums = 4;         ///< vectors of a row are folded in so many chains, so that fewer wait for each other

bool same_tensor(const RowView& a, const RowView& b) {
  return a.port == b.port && a.table == b.table && a.offset == b.offset && a.row == b.row && a.lane == b.lane &&
         a.outer == b.outer;
}

LaneOp op_of(Fold how) {
  switch (how) {
    case Fold::max: return LaneOp::max;
    case Fold::min: return LaneOp::min;
    case Fold::mul: return LaneOp::mul;
    case Fold::sum:
    case Fold::none: break;
  }
  return LaneOp::add;
}

/// NaN in either gives NaN.
Lane folded(Fold how, uint16_t a, uint16_t b) {
  return {.op = op_of(how), .a = a, .b = b, .flag = how == Fold::max || how == Fold::min};
}

}  // namespace

RowCode::RowCode(const RowPlan& plan, int rows) : RowCode(plan, rows, 0) {}

RowCode::RowCode(const RowPlan& plan, int rows, int64_t columns)
    : plan_(plan),
      width_(jit::lanes_of(plan.isa)),
      vectors_(columns > 0 ? 1 : static_cast<int>(vectors(plan))),
      rows_(rows),
      columns_(columns) {
  lanes_.in_order = true;  // what is read at a place is read before it is written there, see lanes_of
}

RowCode RowCode::of_columns(const RowPlan& plan, int64_t lanes) {
  return {plan, static_cast<int>(plan.space.rows), lanes};
}

int64_t RowCode::vectors(const RowPlan& plan) {
  const int64_t width = jit::lanes_of(plan.isa);
  return (plan.space.lanes + width - 1) / width;
}

size_t RowCode::LaneHash::operator()(const Lane& lane) const {
  uint64_t h = static_cast<uint64_t>(lane.op) | uint64_t{lane.a} << 8 | uint64_t{lane.b} << 24 | uint64_t{lane.c} << 40;
  h ^= static_cast<uint64_t>(static_cast<uint32_t>(lane.imm)) * 0x9e3779b97f4a7c15;
  return static_cast<size_t>((h ^ h >> 29) * 0xbf58476d1ce4e5b9);
}

int RowCode::lanes_in(int vector) const {
  return static_cast<int>(std::min<int64_t>(width_, plan_.space.lanes - int64_t{vector} * width_));
}

RowCode::Value RowCode::emit(const Lane& lane) {
  auto& code = lanes_.code;
  PT_ASSERT(code.size() < UINT16_MAX);
  const auto next = static_cast<Value>(code.size());
  if (lane.op != LaneOp::store) {
    const auto [place, is_new] = known_.try_emplace(lane, next);
    if (!is_new) return place->second;
  }
  code.push_back(lane);
  return next;
}

RowCode::Value RowCode::constant(float value) {
  return emit({.op = LaneOp::constant, .imm = std::bit_cast<int32_t>(value)});
}

/// What is computed of numbers alone is numbers, too. Other operations need that of their row in every lane.
RowCode::Value RowCode::computed(Lane lane, int row) {
  const std::array operands = {&lane.a, &lane.b, &lane.c};
  const std::span read(operands.data(), static_cast<size_t>(lane_operands(lane.op)));
  const auto is_constant = [&](const Value* v) {
    return lanes_.code[*v].op == LaneOp::constant || lanes_.code[*v].op == LaneOp::table;
  };
  const bool any = std::ranges::any_of(read, [&](const Value* v) { return is_number(*v); });
  lane.number = any && std::ranges::all_of(read, [&](const Value* v) { return is_number(*v) || is_constant(v); });
  for (Value* v : read)
    if (!lane.number && is_number(*v)) *v = emit({.op = LaneOp::spread, .a = *v, .imm = row});
  return emit(lane);
}

RowOperand RowCode::operand_at(const RowView& view, Fold fold, const Spot& spot) const {
  const int64_t each = element_bytes(view.dtype);
  if (columns_ > 0)
    return {.dtype = view.dtype,
            .steps = view.steps,
            .row_bytes = view.lane * columns_,
            .fold = fold,
            .behind = static_cast<int>(spot.row * view.row)};
  RowOperand o{.dtype = view.dtype, .steps = view.steps, .row_bytes = view.row * rows_, .fold = fold};
  o.count = spot.numbers ? rows_ : view.steps ? lanes_in(spot.vector) : 1;
  o.behind = static_cast<int>(spot.row * view.row + (view.steps ? spot.vector * width_ * each : 0));
  o.kept = fold != Fold::none || spot.numbers;
  if (begins_line(view, spot, o.behind)) o.fetching = Fetching::in_turns();
  if (spot.numbers) o.steps = true;
  return o;
}

/// Whether rows come from memory, one behind the other, and this vector is the first one that begins in its line.
bool RowCode::begins_line(const RowView& view, const Spot& spot, int behind) const {
  const int64_t each = element_bytes(view.dtype);
  if (!plan_.may_stream || reads_streams_alone() || view.from != RowView::From::in || !view.steps || spot.numbers ||
      view.row != plan_.space.lanes * each)
    return false;
  return jit::begins_line(behind, each * (spot.vector > 0 ? width_ : lanes_in(vectors_ - 1)));
}

int RowCode::operand(RowCodeSide& side, const RowView& view, Fold fold, const Spot& spot) {
  const bool numbers_apart = columns_ == 0 && spot.numbers && view.row != element_bytes(view.dtype);
  if (rows_ > 1 && (view.row * rows_ > kFarthest || numbers_apart)) works_ = false;
  auto& [views, first] = side.tensors;
  size_t k = 0;
  while (k < views.size() && !same_tensor(views[k], view)) ++k;
  if (k == views.size()) {
    views.push_back(view);
    first.push_back(static_cast<int>(side.operands.size()));
    const int rows = view.row == 0 || spot.numbers ? 1 : rows_, vectors = view.steps ? vectors_ : 1;
    side.operands.reserve(side.operands.size() + static_cast<size_t>(rows * vectors));
    for (Spot s{.numbers = spot.numbers}; s.row < rows; ++s.row)
      for (s.vector = 0; s.vector < vectors; ++s.vector) {
        RowOperand o = operand_at(view, fold, s);
        if (s.row + s.vector > 0) o.place = first.back();
        side.operands.push_back(o);
      }
  }
  const int row = view.row == 0 || spot.numbers ? 0 : spot.row;
  return first[k] + (view.steps ? row * vectors_ + spot.vector : row);
}

RowCode::Value RowCode::load(const RowView& view, const Spot& spot) {
  if (view.from != RowView::From::scratch)
    return emit(
        {.op = LaneOp::load, .imm = operand(in_, view, Fold::none, spot), .number = spot.numbers && columns_ == 0});
  return spot.numbers || is_number_view(view) ? numbers_.at(view.offset) : elements_.at({view.offset, index(spot)});
}

void RowCode::store(const RowView& view, Fold how, Value value, bool integer, const Spot& spot) {
  if (view.from != RowView::From::scratch) {
    if (!spot.numbers && is_number(value)) value = emit({.op = LaneOp::spread, .a = value, .imm = spot.row});
    emit({.op = LaneOp::store, .a = value, .imm = operand(out_, view, how, spot), .flag = integer});
    return;
  }
  if (integer) value = computed({.op = LaneOp::to_float, .a = value}, spot.row);
  if (how != Fold::none)
    to_fold_[view.offset].push_back(value);
  else if (spot.numbers)
    numbers_[view.offset] = value;
  else
    elements_[{view.offset, index(spot)}] = value;
}

Lanes RowCode::lanes_of(const Sweep& sweep) const {
  Problem types;  // expansion asks for the operands' types alone
  for (const RowView& view : sweep.in()) types.in.push_back({view.dtype, {}, {}, 0});
  for (const RowView& view : sweep.out()) types.out.push_back({view.dtype, {}, {}, 0});
  return loads_first(expanded(sweep.expr(), types, plan_.isa));  // an output may lie over an input
}

void RowCode::copy(const Lanes& lanes, const Sweep& sweep, const Spot& spot) {
  std::vector<Value> moved(lanes.code.size());
  for (size_t i = 0; i < lanes.code.size(); ++i) {
    Lane lane = lanes.code[i];
    const auto k = static_cast<size_t>(lane.imm);
    if (lane.op == LaneOp::load) {
      moved[i] = load(sweep.in()[k], spot);
    } else if (lane.op == LaneOp::store) {
      store(sweep.out()[k], sweep.fold_of_out(k), moved[lane.a], lane.flag, spot);
    } else {
      const std::array operands = {&lane.a, &lane.b, &lane.c};
      for (int n = 0; n < lane_operands(lane.op); ++n)
        *operands[static_cast<size_t>(n)] = moved[*operands[static_cast<size_t>(n)]];
      moved[i] = computed(lane, spot.row);
    }
  }
}

/// The values of all vectors, then of all lanes.
void RowCode::fold(int64_t place, Fold how) {
  const std::vector<Value>& values = to_fold_.at(place);
  if (columns_ > 0) {
    for (Value value : values) numbers_[place] = emit(folded(how, numbers_.at(place), value));
    return;
  }
  std::array<Value, 4> ends;
  for (int row = 0; row < rows_; ++row) {
    const auto first = values.begin() + row * vectors_;
    std::vector<Value> chains(first, first + vectors_);
    if (const int last = lanes_in(vectors_ - 1); last < width_)
      chains.back() = emit({.op = LaneOp::keep, .a = chains.back(), .b = constant(identity_of(how)), .imm = last});
    for (size_t v = kSums; v < chains.size(); ++v) chains[v % kSums] = emit(folded(how, chains[v % kSums], chains[v]));
    chains.resize(std::min<size_t>(chains.size(), kSums));
    for (; chains.size() > 1; chains.pop_back()) {
      Value& other = chains[chains.size() / 2 - 1];
      other = emit(folded(how, other, chains.back()));
    }
    ends[static_cast<size_t>(row)] = chains[0];
  }
  Value all = 0;
  const auto imm = static_cast<int32_t>(how);
  if (rows_ == 1) {
    all = emit({.op = LaneOp::across, .a = ends[0], .imm = imm, .number = true});
  } else {
    const auto halves = [&](size_t a, size_t b) {
      return emit({.op = LaneOp::halves, .a = ends[a], .b = ends[b], .imm = imm});
    };
    const Value low = halves(0, 1), high = rows_ > 2 ? halves(2, 3) : low;
    const Value quarters = emit({.op = LaneOp::quarters, .a = low, .b = high, .imm = imm});
    all = emit({.op = LaneOp::across_quarters, .a = quarters, .imm = imm, .number = true});
  }
  const Lane& before = lanes_.code[numbers_.at(place)];
  const bool changes = before.op != LaneOp::constant || std::bit_cast<float>(before.imm) != identity_of(how);
  numbers_[place] = changes ? computed(folded(how, numbers_.at(place), all), 0) : all;
}

void RowCode::begin(const RowView& numbers, float value) { numbers_[numbers.offset] = constant(value); }

void RowCode::read(const RowView& tensor, const RowView& numbers) {
  numbers_[numbers.offset] = load(tensor, {.numbers = true});
}

void RowCode::elements(const Sweep& sweep) {
  to_fold_.clear();
  const Lanes lanes = lanes_of(sweep);
  for (Spot spot; spot.row < rows_; ++spot.row)
    for (spot.vector = 0; spot.vector < vectors_; ++spot.vector) copy(lanes, sweep, spot);
  for (size_t k = 0; k < sweep.out().size(); ++k) {
    const RowView& view = sweep.out()[k];
    const Fold how = sweep.fold_of_out(k);
    if (view.from == RowView::From::scratch && how != Fold::none) fold(view.offset, how);
  }
}

void RowCode::numbers(const Sweep& sweep) { copy(lanes_of(sweep), sweep, {.numbers = true}); }

void RowCode::write(const RowView& numbers, const RowView& tensor) {
  store(tensor, Fold::none, numbers_.at(numbers.offset), false, {.numbers = true});
}

std::vector<size_t> RowCode::results() const {
  std::vector<size_t> results;
  for (size_t k = 0; k < out_.tensors.views.size(); ++k)
    if (out_.tensors.views[k].steps && out_.operands[static_cast<size_t>(out_.tensors.first[k])].fold == Fold::none)
      results.push_back(k);
  return results;
}

std::shared_ptr<const FlatKernel> RowCode::make_joined() const {
  const std::vector<size_t> results = this->results();
  if (results.empty() || results.size() > JoinedStores::most_outputs(plan_.isa)) return nullptr;
  const RowView& first = out_.tensors.views[results[0]];
  const int64_t each = element_bytes(first.dtype);
  for (size_t k : results) {
    const RowView& view = out_.tensors.views[k];
    const bool follows = view.row == plan_.space.lanes * each && view.outer == first.outer;
    if (each == 1 || element_bytes(view.dtype) != each || !follows) return nullptr;
    if (each == 2 && vectors_ < kLeastNarrow) return nullptr;
  }
  RowShape shape{.length = width_, .in = in_.operands, .out = out_.operands, .streaming = true, .joined = true};
  // Vectors of all results by row, those of each result in their order.
  std::vector<int> next(results.size(), 0);
  int row = 0;
  RowOperand* before = nullptr;
  for (const Lane& lane : lanes_.code) {
    if (lane.op != LaneOp::store) continue;
    for (size_t k = 0; k < results.size(); ++k) {
      const int at = lane.imm - out_.tensors.first[results[k]];
      if (at < 0 || at >= rows_ * vectors_) continue;
      if (at != next[k]++ || at / vectors_ < row) return nullptr;
      RowOperand& o = shape.out[static_cast<size_t>(lane.imm)];
      const int vector = at % vectors_;
      o.joined = {.number = vector, .last = vector + 1 == vectors_};
      if (at / vectors_ > row) before->joined->ends_row = true;
      row = at / vectors_;
      before = &o;
    }
  }
  before->joined->ends_row = true;
  if (std::ranges::any_of(next, [&](int count) { return count != rows_ * vectors_; })) return nullptr;
  return std::make_shared<const FlatKernel>(plan_.isa, lanes_, shape, 0);
}

std::shared_ptr<const FlatKernel> RowCode::make(bool streaming) const {
  const int64_t length = columns_ > 0 ? columns_ : width_;
  RowShape shape{.length = length, .in = in_.operands, .out = out_.operands, .streaming = streaming};
  const Lanes lanes = plan_.isa == Isa::avx512 ? in_pairs(lanes_, shape) : lanes_;
  return std::make_shared<const FlatKernel>(plan_.isa, lanes, shape, 0);
}

}  // namespace partita::jit
