// SPDX-License-Identifier: Apache-2.0
// PicksKernel: rows of results along x that take a few places each. Source places are folded over the rows they are
// taken from, a vector in a register, and results are picked from a few such registers. Rows of few results that follow
// each other are made some at a time, so that they fill vectors.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "kernels/jit/code/body.hpp"
#include "kernels/jit/flat/joined_stores.hpp"
#include "kernels/jit/taps/axis_map.hpp"
#include "kernels/jit/taps/operand_code.hpp"

namespace partita::jit {

/// Taps of a result, or rows of a row of results, at the most.
inline constexpr size_t kMostPicked = OperandCode::kMostRows;

/// The same sum of `count` taps, at least as many as there are: what is split has weights that are powers of two less,
/// so that nothing meets a weight of zero. The maximum is the same, too.
std::vector<Tap> split_taps(std::span<const Tap> taps, size_t count);

/// A row of results: rows of sources, in bytes from the plane.
struct PickedRow {
  std::array<int32_t, kMostPicked> from;
  std::array<float, kMostPicked> weights;
};

/// Where a vector of results takes its places from, by taps.
struct Picks {
  using Numbers = std::vector<int32_t>;
  static constexpr size_t kLanes = 16;
  static constexpr int kVectors = 4;  ///< of the source's row, that are at hand
  struct Taps {
    int vector = 0;  ///< of the source's row, places are counted from its first; they lie there or in the next one
    uint16_t further = 0;               ///< but for these lanes, whose places lie in the two behind that
    bool is_fourth = false;             ///< some of those lie in the last one
    Numbers places = {}, weights = {};  ///< weights as bits
  };
  int first = 0, last = 0;  ///< vectors
  std::vector<Taps> taps = {};
};
/// Of all results; nothing where one takes too many places, or a vector places too far from each other.
std::optional<std::vector<Picks>> picks_of(const AxisMap& map);

struct PicksShape {
  enum class Stores : uint8_t { plain, streaming, joined };
  SourceRows rows = {};
  int64_t places = 0;     ///< of a source's row, which takes whole vectors
  int64_t results = 0;    ///< of a turn
  int64_t together = 1;   ///< rows of a turn: their sources' vectors are one row for `picks`
  bool weighted = false;  ///< along x; else taps are folded as rows are
  std::vector<Picks> picks = {};
  std::vector<TurnOperand> in = {}, out = {};  ///< of the back expression
  Stores stores = Stores::plain;
};

struct PicksCall {
  const std::byte* source;  ///< plane
  const PickedRow* rows;
  int64_t count;  ///< of turns
  const void* const* in;
  void* const* out;
  const JoinedPlace* joined;
  int64_t pending;
};

class PicksKernel : private OperandCode {
 public:
  using OperandCode::kMostOperands;
  static constexpr size_t kMostOutputs = 2;
  static constexpr int64_t kMostResults = 1024;

  /// AVX-512 alone. `back` has no coordinates. Throws Xbyak::Error where there is no memory for code.
  PicksKernel(const Lanes& back, const PicksShape& shape);
  void operator()(const PicksCall& call) const { entry_(&call); }

 private:
  using Zmm = Xbyak::Zmm;
  void choose_held();
  void emit_start();
  void emit_turn(Body& body);
  void emit_row_start(int row);
  void emit_source(int vector, int of_row);
  void emit_picks(Zmm to, const Picks& picks);
  void pick(Zmm to, const Picks::Taps& taps);
  static Zmm source(int vector) { return Zmm(vector % Picks::kVectors); }
  BodyHooks hooks(size_t vector);

  PicksShape s_;
  std::map<Picks::Numbers, int> held_;  ///< registers of numbers that most vectors share
  std::optional<JoinedStores> joined_;
  void (*entry_)(const PicksCall*) = nullptr;
};

}  // namespace partita::jit
