// SPDX-License-Identifier: Apache-2.0
// RowCode: all sweeps over a row, or over some rows, as one straight piece of code; or over a vector of lanes of all
// rows, where lanes have the results. What sweeps hand on stays in registers.
#pragma once

#include <map>
#include <unordered_map>
#include <vector>

#include "kernels/jit/rows/whole_rows.hpp"

namespace partita::jit {

/// The tensors on one side of a piece of code, which has an operand for every vector of every row of each. The first of
/// them has the address.
struct RowCodeTensors {
  std::vector<RowView> views;
  std::vector<int> first;  ///< operands, by number

  /// The tensors' addresses for a tile, at the numbers of their first operands.
  template <class Pointer>
  void put_addresses(const Tile& tile, Pointer* to) const {
    for (size_t k = 0; k < views.size(); ++k) to[first[k]] = tile.address(views[k], 0);
  }
};

struct RowCodeSide {
  RowCodeTensors tensors;
  std::vector<RowOperand> operands;
};

class RowCode : public RowWriter {
 public:
  static constexpr int kMostRows = 4;
  static constexpr int64_t kFarthest = int64_t{1}
                                       << 30;  ///< bytes that all rows are within, to be in reach of an address
  /// Vectors of a row, the last of which may be partial.
  static int64_t vectors(const RowPlan& plan);
  /// Of `rows` rows at once (1, 2 or 4), which give the same results as one by one. Their numbers lie side by side in
  /// a register's lowest lanes, so that what is computed of numbers is computed once for all.
  RowCode(const RowPlan& plan, int rows);
  /// Of all rows, `lanes` of their lanes, which have the results: what is said of numbers holds for vectors of them.
  static RowCode of_columns(const RowPlan& plan, int64_t lanes);

  void begin(const RowView& numbers, float value) override;
  void read(const RowView& tensor, const RowView& numbers) override;
  void elements(const Sweep& sweep) override;
  void numbers(const Sweep& sweep) override;
  void write(const RowView& numbers, const RowView& tensor) override;

  /// False where some rows at once do not work: they lie too far apart, or numbers of theirs not next to each other.
  bool works() const { return works_; }
  const RowCodeSide& in() const { return in_; }
  const RowCodeSide& out() const { return out_; }
  /// Which views of out().tensors are results, by number: not numbers, nor sums of rows.
  std::vector<size_t> results() const;
  std::shared_ptr<const FlatKernel> make(bool streaming) const;
  /// With results past the caches whose rows follow each other, wherever they start (calls have their places); null
  /// where they do not, or are not written in their order.
  std::shared_ptr<const FlatKernel> make_joined() const;

 private:
  using Value = LaneBuilder::Value;
  struct LaneHash {
    size_t operator()(const Lane& lane) const;
  };
  /// Vector `vector` of row `row`, or the rows' numbers.
  struct Spot {
    int row = 0, vector = 0;
    bool numbers = false;
  };

  void copy(const Lanes& lanes, const Sweep& sweep, const Spot& spot);
  Lanes lanes_of(const Sweep& sweep) const;
  Value load(const RowView& view, const Spot& spot);
  void store(const RowView& view, Fold how, Value value, bool integer, const Spot& spot);
  void fold(int64_t place, Fold how);
  Value computed(Lane lane, int row);
  Value emit(const Lane& lane);
  Value constant(float value);
  int operand(RowCodeSide& side, const RowView& view, Fold fold, const Spot& spot);
  bool begins_line(const RowView& view, const Spot& spot, int behind) const;
  RowOperand operand_at(const RowView& view, Fold fold, const Spot& spot) const;
  int lanes_in(int vector) const;
  int index(const Spot& spot) const { return spot.row * vectors_ + spot.vector; }
  bool is_number(Value value) const { return lanes_.code[value].number; }

  RowCode(const RowPlan& plan, int rows, int64_t columns);
  bool is_number_view(const RowView& view) const { return columns_ > 0 ? view.row == 0 : !view.steps; }

  const RowPlan& plan_;
  int width_, vectors_, rows_;
  int64_t columns_;  ///< lanes, where they have the results; else 0
  bool works_ = true;
  Lanes lanes_;
  std::unordered_map<Lane, Value, LaneHash> known_;
  RowCodeSide in_, out_;
  std::map<int64_t, Value> numbers_;                   ///< by their place in scratch memory
  std::map<std::pair<int64_t, int>, Value> elements_;  ///< the same, and the index of the spot
  std::map<int64_t, std::vector<Value>> to_fold_;      ///< of the sweep that is copied, by place: at each index
};

}  // namespace partita::jit
