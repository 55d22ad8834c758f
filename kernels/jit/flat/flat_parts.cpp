// SPDX-License-Identifier: Apache-2.0
// Order of axes, joining of axes, cutting into rows.
#include "kernels/jit/flat/flat_parts.hpp"

#include <algorithm>

#include "kernels/loop/collapse.hpp"
#include "kernels/loop/fold_plan.hpp"
#include "src/base/cpu.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"

namespace partita::jit {
namespace {

constexpr int64_t kRow = 2048;
/// Where there are so many, threads share whole lines of the innermost axis: calls over the pieces of one would be
/// short.
constexpr int64_t kManyLines = 16, kLongRow = 8192, kLongFoldedRow = 4096;
/// Lines that are folded upon each other, so few that a copy of the results for each thread does not pay (FoldPlan):
/// threads share pieces of them instead.
constexpr int64_t kFewLines = 256, kLeastPiece = 128, kMostPieces = 4;

/// The operand whose memory the walk follows: the first result that is stored, else the largest operand.
const TensorDesc& leader_of(const Problem& loop) {
  for (size_t k = 0; k < loop.out.size(); ++k)
    if (fold_of_output(loop.back, k) == Fold::none) return loop.out[k];
  const auto size = [](const TensorDesc& desc) {
    int64_t n = 1;
    for (int d = 0; d < desc.dims.size(); ++d)
      if (desc.strides[d] != 0) n *= desc.dims[d];
    return n;
  };
  const TensorDesc* leader = &loop.out[0];
  for (const TensorDesc& desc : loop.in)
    if (size(desc) > size(*leader)) leader = &desc;
  return *leader;
}

/// Whether every row begins with a whole byte.
bool has_whole_bytes(const TensorDesc& desc) {
  bool even = desc.offset % 2 == 0;
  for (int d = 0; d + 1 < desc.dims.size(); ++d) even = even && (desc.dims[d] == 1 || desc.strides[d] % 2 == 0);
  return even;
}

const char* refuse_operand(const TensorDesc& desc, bool output) {
  const bool packed = !output && Emitter::unpacks(desc.dtype);
  if (!packed && (output ? !Emitter::stores(desc.dtype) : !Emitter::loads(desc.dtype)))
    return "an operand's type has no generated conversion";
  if (packed && !has_whole_bytes(desc)) return "a row of an operand begins in the middle of a byte";
  const int64_t step = desc.dims.back() == 1 ? 1 : desc.strides.back();
  if (step != 1 && (output || step != 0)) return "an operand's elements are not next to each other";
  return nullptr;
}

/// Whether each row becomes one number of all that is folded.
bool folds_rows(const Problem& loop) {
  for (size_t k = 0; k < loop.out.size(); ++k)
    if (fold_of_output(loop.back, k) != Fold::none && loop.out[k].strides.back() != 0) return false;
  return true;
}

/// Elements [start, start + rows * length) of the innermost axis.
FlatPart part_of(const Problem& loop, int64_t start, int64_t rows, int64_t length) {
  FlatPart part;
  part.length = length;
  part.start = start;
  const auto view_of = [&](const TensorDesc& desc, std::vector<bool>& steps) {
    TensorDesc view = desc;
    const int64_t step = desc.dims.back() == 1 ? 0 : desc.strides.back();
    view.offset += start * step;
    view.dims.back() = rows;
    view.strides.back() = step * length;
    steps.push_back(step != 0);
    return view;
  };
  for (size_t k = 0; k < loop.in.size(); ++k) {
    part.in.push_back(view_of(loop.in[k], part.in_steps));
    part.numbers.push_back(counts(loop.back, static_cast<int>(k)) ? std::optional(loop.in[k]) : std::nullopt);
  }
  for (const TensorDesc& desc : loop.out) part.out.push_back(view_of(desc, part.out_steps));
  part.rows = part.out[0].dims;
  part.find_places();
  return part;
}

/// Length of the rows that an axis is cut into, `least` of them: equal ones in whole vectors where that works out.
int64_t row_length(int64_t length, int64_t least) {
  constexpr int64_t kVector = 16;
  for (int64_t n = least; n > 0 && n <= 4 * least; ++n)
    if (length % (n * kVector) == 0) return length / n;
  return std::clamp(length, int64_t{1}, kRow);
}

/// Where short rows of an input lie apart, what is read next is not what lies behind: later rows are fetched.
void fetch_later_rows(RowShape& shape) {
  constexpr int64_t kLongest = 2048;  // bytes
  std::vector<Fetching> later;
  for (const RowOperand& o : shape.in) {
    const int64_t bytes = shape.length * bits_of(o.dtype) / 8;
    later.push_back(bytes <= kLongest && o.row_bytes > bytes ? later_rows(o, shape.length) : Fetching{});
  }
  if (std::ranges::none_of(later, [](const Fetching& f) { return static_cast<bool>(f); })) return;
  for (size_t k = 0; k < later.size(); ++k) {
    RowOperand& o = shape.in[k];
    if (o.steps && !o.numbers) o.fetching = later[k] ? later[k] : shape.fetching;
  }
  shape.fetching = {};
}

}  // namespace

RowPlaces::RowPlaces(const TensorDesc& over_rows) : offset(over_rows.offset), strides(over_rows.strides) {
  const int64_t bits = bits_of(over_rows.dtype);
  offset = offset * bits / 8;
  for (int d = 0; d < strides.size(); ++d) strides[d] = strides[d] * bits / 8;
}

Fetching later_rows(const RowOperand& o, int64_t length) {
  constexpr int64_t kFetched = 1024, kMostRows = 16;  // bytes, and rows they are of
  const int64_t bytes = length * bits_of(o.dtype) / 8;
  if (!o.steps || o.numbers || bytes == 0 || o.row_bytes == 0 || o.row_bytes > INT32_MAX / kMostRows) return {};
  return Fetching::near(static_cast<int>(o.row_bytes * std::clamp(kFetched / bytes, int64_t{1}, kMostRows)));
}

Problem with_axes(const Problem& loop, const Dims& order) {
  Problem p = loop;
  for (auto* side : {&p.in, &p.out})
    for (TensorDesc& desc : *side) {
      desc.dims = permuted(desc.dims, order);
      desc.strides = permuted(desc.strides, order);
    }
  for (Instr& in : p.back.code)
    if (in.op == ExprOp::index_s32)
      in.imm = static_cast<int32_t>(std::find(order.begin(), order.end(), int64_t{in.imm}) - order.begin());
  return p;
}

Problem prepared(const Problem& loop) {
  Problem p = collapsed(with_axes(loop, axes_in_memory_order(leader_of(loop).strides)));
  for (auto* side : {&p.in, &p.out})
    for (TensorDesc& desc : *side)
      if (desc.dims.empty()) {
        desc.dims = {1};
        desc.strides = {1};
      }
  return p;
}

bool shares_lines(const TensorDesc& desc, int axis) {
  const int64_t bits = std::abs(desc.strides[axis]) * bits_of(desc.dtype);
  return desc.dims[axis] > 1 && bits > 0 && bits < int64_t{kCacheLine} * 8;
}

Problem in_words(Problem loop) {
  constexpr int64_t kBits = 32;
  const int64_t bits = bits_of(loop.out[0].dtype), each = kBits / std::max<int64_t>(bits, 8);
  const auto has_words = [&](const TensorDesc& desc) {
    bool whole = desc.strides.back() == 1 && desc.dims.back() % each == 0 && desc.offset % each == 0;
    for (int d = 0; d + 1 < desc.dims.size(); ++d) whole = whole && (desc.dims[d] == 1 || desc.strides[d] % each == 0);
    return whole;
  };
  if (!is_copy(loop) || bits < 8 || bits >= kBits || !has_words(loop.in[0]) || !has_words(loop.out[0])) return loop;
  for (auto* side : {&loop.in, &loop.out})
    for (TensorDesc& desc : *side) {
      desc.dtype = Dtype::f32;
      desc.offset /= each;
      desc.dims.back() /= each;
      for (int d = 0; d + 1 < desc.dims.size(); ++d) desc.strides[d] /= each;
    }
  return loop;
}

const char* refuse_rows(const Problem& p) {
  if (p.in.size() > kMaxLoopOperands || p.out.size() > kMaxLoopOperands) return "too many operands";
  for (size_t k = 0; k < p.in.size(); ++k) {
    if (counts(p.back, static_cast<int>(k))) continue;
    if (const char* reason = refuse_operand(p.in[k], false)) return reason;
  }
  for (size_t k = 0; k < p.out.size(); ++k) {
    const bool folded = fold_of_output(p.back, k) != Fold::none;
    if (const char* reason = refuse_operand(p.out[k], !folded)) return reason;
  }
  return nullptr;
}

std::vector<FlatPart> parts_of(const Problem& loop) {
  const int64_t length = loop.out[0].dims.back(), lines = elements(loop.out[0].dims) / std::max<int64_t>(length, 1);
  const bool into_lines = has_folds(loop) && !folds_rows(loop);
  const int64_t most = into_lines ? 0 : has_folds(loop) ? kLongFoldedRow : kLongRow;
  const bool whole = lines >= kManyLines && length <= most;
  const int64_t pieces = into_lines && lines <= kFewLines ? std::min(length / kLeastPiece, kMostPieces) : 0;
  const int64_t row = whole ? length : row_length(length, std::max((length + kRow - 1) / kRow, pieces));
  std::vector<FlatPart> parts{part_of(loop, 0, length / row, row)};
  if (length % row > 0) parts.push_back(part_of(loop, length / row * row, 1, length % row));
  return parts;
}

int FlatPart::last_axis() const {
  int axis = rows.size() - 1;
  while (axis > 0 && rows[axis] == 1) --axis;
  return axis;
}

RowShape FlatPart::shape(int axis) const {
  RowShape shape{.length = length, .fetching = Fetching::near()};
  const auto operand = [&](const TensorDesc& desc, bool steps, const RowPlaces& places) {
    return RowOperand{desc.dtype, steps, places.strides[axis]};
  };
  for (size_t k = 0; k < in.size(); ++k) {
    shape.in.push_back(operand(in[k], in_steps[k], in_places[k]));
    if (numbers[k]) shape.in.back().numbers = std::make_shared<const TensorDesc>(*numbers[k]);
  }
  for (size_t k = 0; k < out.size(); ++k) shape.out.push_back(operand(out[k], out_steps[k], out_places[k]));
  fetch_later_rows(shape);
  return shape;
}

bool FlatPart::group(RowShape& shape, size_t operations) {
  constexpr int64_t kMostRows = 16, kMostElements = 4096, kFetched = 512;  // bytes of each row
  constexpr int64_t kMostOperations = 512;                                 // the code is written once for each row
  const int last = last_axis();
  int outer = last - 1;
  while (outer > 0 && rows[outer] == 1) --outer;
  if (outer < 0 || rows[outer] == 1 || rows[last] > kMostRows || rows[last] * length > kMostElements ||
      rows[last] * static_cast<int64_t>(operations) > kMostOperations)
    return false;
  for (size_t k = 0; k < out.size(); ++k) shape.out[k].group_bytes = out_places[k].strides[outer];
  for (size_t k = 0; k < in.size(); ++k) {
    RowOperand& o = shape.in[k];
    o.group_bytes = in_places[k].strides[outer];
    const int64_t step = std::abs(o.group_bytes);
    if (!o.fetching || step == 0 || step > INT32_MAX) continue;
    o.fetching = Fetching::near(static_cast<int>(o.group_bytes * std::max<int64_t>(1, kFetched / step)));
  }
  shape.group = grouped = rows[last];
  rows[last] = 1;
  return true;
}

void FlatPart::read_lines_once() {
  constexpr int64_t kNear = 128, kLeastRun = 256;  // lines that stay in the nearest cache; bytes that a call writes
  const int axis = last_axis();
  for (const TensorDesc& desc : out)
    if (rows[axis] * elements() * bits_of(desc.dtype) / 8 < kLeastRun) return;
  for (const TensorDesc& desc : in) {
    int64_t lines = grouped * rows[axis];
    for (int d = axis - 1; d >= 0; lines *= rows[d--]) {
      if (!shares_lines(desc, d)) continue;
      if (d == axis - 1 || lines <= kNear) break;
      return move_axis(d, axis - 1);
    }
  }
}

/// Axes between take one place less.
void FlatPart::move_axis(int from, int to) {
  const auto move = [&](Dims& dims) {
    for (int d = from; d < to; ++d) std::swap(dims[d], dims[d + 1]);
  };
  move(rows);
  for (auto* side : {&in, &out})
    for (TensorDesc& desc : *side) {
      move(desc.dims);
      move(desc.strides);
    }
  find_places();
}

void FlatPart::find_places() {
  in_places.clear();
  out_places.clear();
  for (const TensorDesc& desc : in) in_places.emplace_back(desc);
  for (const TensorDesc& desc : out) out_places.emplace_back(desc);
}

bool FlatPart::is_read_once(size_t k) const {
  bool moves = in_steps[k] && !numbers[k];
  for (int d = 0; d < rows.size(); ++d) moves = moves && (rows[d] == 1 || in[k].strides[d] != 0);
  return moves;
}

int64_t FlatPart::bytes_read() const {
  int64_t bytes = 0;
  for (size_t k = 0; k < in.size(); ++k)
    if (is_read_once(k)) bytes += partita::elements(rows) * elements() * bits_of(in[k].dtype) / 8;
  return bytes;
}

void FlatPart::fetch_in_turns(const Lanes& lanes, RowShape& shape) const {
  constexpr size_t kMostStreams = 2, kFewOperations = 6;
  // What is fetched takes the time of operations that there are anyway while the processor reads ahead.
  if (lanes.code.size() > kFewOperations && reads_streams_alone()) {
    shape.fetching = {};
    return;
  }
  if (std::ranges::any_of(shape.in, [](const RowOperand& o) { return static_cast<bool>(o.fetching); })) return;
  if (!leaves_the_caches(bytes_read())) return fetch_in_caches(shape);
  std::vector<RowOperand*> streams;
  for (size_t k = 0; k < in.size(); ++k)
    if (is_read_once(k)) streams.push_back(&shape.in[k]);
  if (streams.size() > kMostStreams) return;
  shape.fetching = {};
  const bool stores =
      std::ranges::any_of(shape.out, [](const RowOperand& o) { return o.steps && o.fold == Fold::none; });
  if (!stores && reads_streams_alone()) {
    const bool folds_rows = std::ranges::any_of(shape.out, &RowOperand::steps);
    if (folds_rows) shape.fetching = Fetching::second_level();
    return;
  }
  for (RowOperand* stream : streams) stream->fetching = Fetching::in_turns();
}

void FlatPart::fetch_in_caches(RowShape& shape) const {
  for (RowOperand& o : shape.in)
    if (shape.group > 1 && length * bits_of(o.dtype) / 8 < kCacheLine) o.fetching = {};
  if (!reads_streams_alone()) {
    const bool again = std::ranges::any_of(shape.in, [](const RowOperand& o) { return o.steps && o.row_bytes == 0; });
    if (!again || partita::elements(rows) == 1) return;
    for (RowOperand& o : shape.in)
      if (o.steps && o.row_bytes != 0 && !o.numbers && !o.fetching) o.fetching = shape.fetching;
  }
  shape.fetching = {};
}

void place_of(const FlatPart& part, const Dims& at, int32_t* place) {
  for (int d = 0; d < at.size(); ++d) place[d] = static_cast<int32_t>(at[d]);
  place[at.size() - 1] = static_cast<int32_t>(part.start + at.back() * part.length);
}

}  // namespace partita::jit
