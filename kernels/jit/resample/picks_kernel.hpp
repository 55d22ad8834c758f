// SPDX-License-Identifier: Apache-2.0
// PicksKernel: rows of results along x that take one or two places each. Source places are summed over the rows they
// are taken from, a vector in a register, and results are picked from two such registers.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <vector>

#include "kernels/jit/code/body.hpp"
#include "kernels/jit/flat/joined_stores.hpp"
#include "kernels/jit/resample/axes.hpp"

namespace partita::jit {

/// A row of results: two rows of sources, in bytes from the plane. One row alone is both, a half of each.
struct PickedRow {
  int32_t first, second;
  float first_weight, second_weight;
};

struct PickOperand {
  Dtype dtype;
  bool steps;  ///< one element for each result of a row, else one for all
  int64_t row_bytes;
};

/// Where a vector of results takes its places from: `vector` of the source's row and the next one.
struct Picks {
  static constexpr size_t kLanes = 16;
  using Numbers = std::vector<int32_t>;
  int vector = 0;
  std::array<Numbers, 2> places;   ///< of the first and of the second tap
  std::array<Numbers, 2> weights;  ///< as bits; of one place alone a half each
};
/// Of all results; nothing where one takes more than two places, or a vector places too far from each other.
std::optional<std::vector<Picks>> picks_of(const AxisMap& map);

struct PicksShape {
  enum class Stores : uint8_t { plain, streaming, joined };
  Dtype source = Dtype::undef;
  int64_t places = 0, results = 0;  ///< of a row
  bool two_rows = false, two_places = false;
  std::vector<Picks> picks = {};
  std::vector<PickOperand> in = {}, out = {};  ///< of the back expression
  Stores stores = Stores::plain;
};

struct PicksCall {
  const std::byte* source;  ///< plane
  const PickedRow* rows;
  int64_t count;  ///< of rows
  const void* const* in;
  void* const* out;
  const JoinedPlace* joined;
  int64_t pending;
};

class PicksKernel : private Emitter {
 public:
  static constexpr size_t kMostOperands = 5;
  static constexpr int64_t kMostResults = 1024;

  /// AVX-512 alone. `back` has no coordinates. Throws Xbyak::Error where there is no memory for code.
  PicksKernel(const Lanes& back, const PicksShape& shape);
  void operator()(const PicksCall& call) const { entry_(&call); }

 private:
  using Zmm = Xbyak::Zmm;
  size_t operands() const { return s_.in.size() + s_.out.size(); }
  const PickOperand& operand(size_t k) const { return k < s_.in.size() ? s_.in[k] : s_.out[k - s_.in.size()]; }
  int count_of(size_t vector) const;
  Xbyak::RegExp elements(size_t k, size_t vector) const;
  void choose_held();
  void emit_start();
  void emit_row(Body& body);
  void emit_source(int vector);
  void emit_picks(Zmm to, const Picks& picks);
  BodyHooks hooks(size_t vector);

  PicksShape s_;
  std::map<Picks::Numbers, int> held_;  ///< registers of numbers that most vectors share
  std::optional<JoinedStores> joined_;
  void (*entry_)(const PicksCall*) = nullptr;
};

}  // namespace partita::jit
