// SPDX-License-Identifier: Apache-2.0
// The pattern language: chains of operators, written as engineers draw them.
//   A > B        op(A) >> op(B)          DQ on port 0      .in(0, op(Dequantize))
//   [B]          maybe(B)                x, used later     bind("x") .. same("x")
//   B*, B+       many(B), some(B)        the other operand .other(..)
//   A or B       A | B, either({p, q})   enters at port 1  .at(1)
// Factors of a matrix product are also called by what it sums over: .at(kSummedRows), .in(kSummedColumns, ..).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "partita/op.hpp"

namespace partita {

/// A set of operator kinds.
class OpSet {
 public:
  constexpr OpSet() = default;
  constexpr OpSet(OpKind kind) {
    const auto position = static_cast<size_t>(position_of(kind));
    words_[position / 64] = uint64_t{1} << (position % 64);
  }
  constexpr bool has(OpKind kind) const {
    const auto position = static_cast<size_t>(position_of(kind));
    return words_[position / 64] >> (position % 64) & 1;
  }
  constexpr bool empty() const { return words_[0] == 0 && words_[1] == 0; }
  friend constexpr OpSet operator|(OpSet a, OpSet b) {
    a.words_[0] |= b.words_[0];
    a.words_[1] |= b.words_[1];
    return a;
  }
  friend constexpr OpSet operator-(OpSet a, OpSet b) {
    a.words_[0] &= ~b.words_[0];
    a.words_[1] &= ~b.words_[1];
    return a;
  }
  friend constexpr bool operator==(OpSet, OpSet) = default;
  static constexpr OpSet all() {
    OpSet set;
    for (int k = 0; k < kOpKinds; ++k) set = set | OpSet(op_kind_at(k));
    return set;
  }

 private:
  static_assert(kOpKinds < 128);
  uint64_t words_[2] = {0, 0};
};
constexpr OpSet operator|(OpKind a, OpKind b) { return OpSet(a) | OpSet(b); }
/// "MatMul", "ReLU|GELU|.."
std::string text_of(OpSet set);

struct FinalGraph;
struct Match;

namespace patterns {

struct Pat;
struct Side;

inline constexpr int kAny = -1, kOther = -1;
/// Ports of a matrix product by the axis of the input along which it sums: the last one, or the one before. Where the
/// input is the first or second factor, and transposed or not, is one spelling of several.
inline constexpr int kSummedColumns = -2, kSummedRows = -3;
/// Most repetitions of many and some.
inline constexpr int kMany = 32;

/// One place in a chain: an operator of one of `kinds`, or one of the chains `either`, or only a name for the value.
struct Item {
  OpSet kinds;
  std::vector<Pat> either;
  int min = 1, max = 1;
  std::vector<Side> sides;
  int at = kAny;  ///< input port by which the chain enters; kAny: any that no side takes
  std::string_view bind, same;
};

/// A chain: each item reads the first output of the one before.
struct Pat {
  std::vector<Item> items;

  /// What feeds an input port of the last item.
  Pat in(int port, Pat producer) &&;
  Pat other(Pat producer) &&;
  /// The input port by which the chain enters the last item.
  Pat at(int port) &&;
};

/// The chain that feeds an input port; kOther: the port that the chain leaves free.
struct Side {
  int port = kOther;
  Pat chain;
};

Pat op(OpSet kinds);
Pat maybe(OpSet kinds);
Pat maybe(Pat chain);
Pat many(OpSet kinds);
Pat many(Pat chain);
Pat some(OpSet kinds);
Pat either(std::vector<Pat> chains);
/// Names the value at this place. Within a repeated chain the name belongs to one repetition.
Pat bind(std::string_view name);
/// Demands that the value at this place is the one of that name.
Pat same(std::string_view name);
Pat operator>>(Pat a, Pat b);

/// A fusion: what is grouped. How the group is compiled is the same for all.
struct Pattern {
  std::string_view name;
  std::string_view text;  ///< for the docs: what it groups, in one sentence
  Pat chain;
  /// Further chains, each from a value on that the chains before it named (`same("x") >> ..`).
  std::vector<Pat> with = {};
  /// Values between its operators may also be used outside; they become outputs of the partition.
  bool inner_outputs = false;
  /// Null: take it; otherwise the reason not to.
  const char* (*refuse)(const FinalGraph&, const Match&) = nullptr;
};

}  // namespace patterns

/// Every pattern, tried in this order (passes/patterns/all.cpp).
const std::vector<patterns::Pattern>& all_patterns();

}  // namespace partita
