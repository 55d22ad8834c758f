// SPDX-License-Identifier: Apache-2.0
// Philox as lane operations; entry: uniform_of().
#include "kernels/jit/code/vector_random.hpp"

#include "kernels/jit/code/emitter.hpp"
#include "src/base/philox.hpp"

namespace partita::jit {
namespace {

using Value = LaneBuilder::Value;

constexpr int kQuad = 4;  ///< elements that share a counter, and lanes of a quarter
/// Numbers of a vector lie less than 2^31 apart.
constexpr int64_t kFarthest = INT32_MAX / lanes_of(Isa::avx512);

/// Whether the first lane of every quarter has a number that is a multiple of four, and the others follow.
bool has_whole_quads(const TensorDesc& numbers) {
  if (step_of(numbers) != 1 || numbers.offset % kQuad != 0) return false;
  for (int d = 0; d + 1 < numbers.dims.size(); ++d)
    if (numbers.dims[d] > 1 && numbers.strides[d] % kQuad != 0) return false;
  return true;
}

class Uniform {
 public:
  Uniform(LaneBuilder& b, int operand, int64_t step)
      : b_(b),
        step_(static_cast<int32_t>(step)),
        lane_(b.op(LaneOp::lane_number, 0)),
        place_(b.op(LaneOp::and_, lane_, b.bits(3))) {
    first_ = b_.op(LaneOp::number, 0, 0, 0, operand);
  }

  /// Of numbers that follow each other from a multiple of four on.
  Value whole(Words seed, Words offset) {
    const Value quads = b_.op(LaneOp::iadd64, quarter(offset), at(b_.op(LaneOp::shr, lane_, 0, 0, 2), 0));
    return unit(words(seed, b_.op(LaneOp::iadd64, b_.op(LaneOp::shr64, first_, 0, 0, 2), quads)));
  }

  /// Of any: each lane finds its number among those of its own counter. Lanes that have the same one share it.
  Value any(Words seed, Words offset) {
    const Value ahead = b_.op(LaneOp::imul, lane_, b_.bits(step_));
    const Value number = b_.op(LaneOp::iadd, word(first_, b_.bits(0)), ahead);  // low words alone
    const auto of_lane = [&](int32_t k) {
      const Value start = b_.op(LaneOp::iadd, b_.op(LaneOp::isub, lane_, place_), b_.bits(k));
      const Value distance = at(b_.op(LaneOp::imul, start, b_.bits(step_)), 0);
      const Value quad = b_.op(LaneOp::shr64, b_.op(LaneOp::iadd64, first_, distance), 0, 0, 2);
      return word(words(seed, b_.op(LaneOp::iadd64, quad, quarter(offset))), number);
    };
    Value drawn = of_lane(0);
    if (step_ == 1) {  // a quarter reaches into the next four at the most
      const Value behind = b_.op(LaneOp::igt, place_, b_.op(LaneOp::and_, number, b_.bits(kQuad - 1)));
      drawn = b_.select(behind, of_lane(kQuad - 1), drawn);
    } else if (step_ != 0) {
      for (int32_t k = 1; k < kQuad; ++k)
        drawn = b_.select(b_.op(LaneOp::igt, place_, b_.bits(k - 1)), of_lane(k), drawn);
    }
    return unit(drawn);
  }

 private:
  /// `x` in lane `lane` of each quarter, zeros in the others.
  Value at(Value x, int32_t lane) {
    const Value from = b_.op(LaneOp::igt, place_, b_.bits(lane - 1));
    return b_.op(LaneOp::and_, x, b_.op(LaneOp::and_, from, b_.op(LaneOp::igt, b_.bits(lane + 1), place_)));
  }
  /// The words in lanes 0 and `high` of each quarter.
  Value quarter(Words words, int32_t high = 1) { return b_.op(LaneOp::or_, at(words.low, 0), at(words.high, high)); }
  /// In each lane: word `which` modulo 4 of the quarter.
  Value word(Value of, Value which) { return b_.op(LaneOp::word, of, which); }

  Value words(Words seed, Value counter) {
    Value key = quarter(seed, 2);
    const Value weyl =
        quarter({b_.bits(static_cast<int32_t>(kPhiloxWeyl[0])), b_.bits(static_cast<int32_t>(kPhiloxWeyl[1]))}, 2);
    for (int round = 0; round < kPhiloxRounds; ++round) {
      counter = b_.op(LaneOp::philox, counter, key);
      key = b_.op(LaneOp::iadd, key, weyl);
    }
    return counter;
  }

  /// See unit_float.
  Value unit(Value word) {
    return b_.mul(b_.op(LaneOp::to_float, b_.op(LaneOp::shr, word, 0, 0, 8)), b_.constant(0x1p-24f));
  }

  LaneBuilder& b_;
  int32_t step_;
  Value lane_, place_;  ///< number of the lane in the vector, in its quarter
  Value first_;         ///< number of the vector's first element
};

}  // namespace

int64_t step_of(const TensorDesc& numbers) {
  return numbers.dims.empty() || numbers.dims.back() == 1 ? 0 : numbers.strides.back();
}

const char* refuse_numbers(const TensorDesc& numbers) {
  const int64_t step = step_of(numbers);
  return step < 0 || step > kFarthest ? "numbers of neighbours lie too far apart" : nullptr;
}

Value uniform_of(LaneBuilder& b, int operand, const TensorDesc& numbers, Words seed, Words offset) {
  Uniform made(b, operand, step_of(numbers));
  return has_whole_quads(numbers) ? made.whole(seed, offset) : made.any(seed, offset);
}

}  // namespace partita::jit
