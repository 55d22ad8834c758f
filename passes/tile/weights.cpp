// SPDX-License-Identifier: Apache-2.0
// Regions around matrices that loops make for one product. An axis of the matrix may be one axis of a loop, or groups
// and what is in them; tiles are made of whole groups.
#include "passes/tile/weights.hpp"

#include <algorithm>
#include <numeric>

#include "src/base/cpu.hpp"
#include "src/base/divisor.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"

namespace partita {
namespace {

constexpr int64_t kMostRows = 256;  ///< of the other factor; with more, making the matrix takes little of the time
/// Of tiles, where neighbours in memory are along them, and else.
constexpr int64_t kColumnsOfRows = 256, kColumns = 128;
constexpr int64_t kSummed = 512;
constexpr int64_t kWantedTiles = 16, kLeastTiles = 8;  ///< next to each other: threads do not share sums
constexpr int64_t kLeastColumns = 64;                  ///< products of less are slow
constexpr int64_t kLeastSummed = 128;        ///< products that sum over less, and add to what others summed, are slow
constexpr int64_t kLeastElements = 1 << 14;  ///< for which to call a primitive

/// Where an axis of a step or of a value lies in the matrix: along which of the product's axes (-1: none), how many of
/// its elements are from one index to the next, and whether it is the outermost that lies there.
struct Place {
  int along = -1;
  int64_t apart = 1;
  bool outermost = false;
};

bool is_plain(const Expr& e) {
  return std::ranges::none_of(e.code,
                              [](const Instr& in) { return reads_place(in.op) || fold_of(in.op) != Fold::none; });
}

class Finder {
 public:
  Finder(const Program& p, size_t product, int port) : p_(p), product_(product), port_(port) {}

  /// The matrix, where loops make it for this product alone.
  bool find() {
    const Step& step = p_.steps[product_];
    walk_ = walk_of(step.problem);
    if (!walk_ || step.problem.fused() || step.in.size() > 3) return false;
    const TensorDesc& view = step.problem.in[static_cast<size_t>(port_)];
    std::vector<Place> places;
    for (int along : walk_->in[static_cast<size_t>(port_)]) places.push_back({along, 1, true});
    return follow(step.in[static_cast<size_t>(port_)], view, places);
  }

  /// From the product's axis of this kind.
  int kept() const { return walk_->space.size() - (port_ == 1 ? 2 : 3); }
  int summed() const { return walk_->space.size() - 1; }
  const Walk& walk() const { return *walk_; }

  /// Whether no execution changes the matrix.
  bool is_constant() const {
    return std::ranges::all_of(loops_, [&](const Loop& l) {
      return std::ranges::all_of(p_.steps[l.step].in, [&](int b) {
        const Buffer& buffer = p_.buffers[static_cast<size_t>(b)];
        return buffer.role == Buffer::Role::constant || buffer.desc.property == Property::constant ||
               std::ranges::any_of(loops_, [&](const Loop& other) { return p_.steps[other.step].writes(b); });
      });
    });
  }

  /// Elements along an axis of the product that stay together.
  int64_t group(int along) const {
    int64_t group = 1;
    for (const Loop& l : loops_)
      for (const Place& place : l.places)
        if (place.along == along && place.outermost) group = std::lcm(group, place.apart);
    return group;
  }

  /// Tiles along these axes of the product, outermost first; each index of a tile axis is a group.
  Region region(const std::vector<int>& axes) const {
    Region r;
    r.around = Around::weights;
    for (int a : axes) r.axes.push_back({walk_->space[a] / group(a)});
    const auto cut = [&](const Place& place, int64_t extent) {
      const auto at = std::ranges::find(axes, place.along);
      if (at == axes.end() || !place.outermost || extent == 1) return TileCut{};
      return TileCut{static_cast<int>(at - axes.begin()), group(place.along) / place.apart};
    };
    std::vector<Loop> in_order = loops_;
    std::ranges::sort(in_order, {}, &Loop::step);
    for (const Loop& l : in_order) {
      const Step& step = p_.steps[l.step];
      r.steps.push_back(l.step);
      r.walks.push_back(*walk_of(step.problem));
      std::vector<TileCut>& cuts = r.tiled.emplace_back();
      for (size_t d = 0; d < l.places.size(); ++d)
        cuts.push_back(cut(l.places[d], step.problem.out[0].dims[static_cast<int>(d)]));
      Region::Local local{step.out[0], {}};
      const logical_tensor& made = p_.buffers[static_cast<size_t>(local.buffer)].desc;
      for (int d = 0; d < made.rank(); ++d)
        local.tiled.push_back(cut(l.of_result[static_cast<size_t>(d)], made.dims[d]));
      r.local.push_back(std::move(local));
    }
    r.steps.push_back(product_);
    r.walks.push_back(*walk_);
    std::vector<TileCut>& cuts = r.tiled.emplace_back();
    for (int d = 0; d < walk_->space.size(); ++d) cuts.push_back(cut({d, 1, true}, walk_->space[d]));
    return r;
  }

 private:
  struct Loop {
    size_t step;
    std::vector<Place> places;     ///< of its axes
    std::vector<Place> of_result;  ///< of the axes of what it makes
  };

  /// Adds the loop that makes `buffer`, which its reader sees as `view` with axes at `places`, and the loops before it.
  bool follow(int buffer, const TensorDesc& view, const std::vector<Place>& places) {
    const Buffer& b = p_.buffers[static_cast<size_t>(buffer)];
    if (b.role != Buffer::Role::temporary || view.offset != 0) return false;
    size_t maker = 0;
    int makers = 0;
    int64_t reads = 0;
    for (size_t s = 0; s < p_.steps.size(); ++s) {
      if (p_.steps[s].writes(buffer)) maker = s, ++makers;
      reads += std::ranges::count(p_.steps[s].in, buffer);
    }
    if (makers != 1 || reads != 1) return false;
    const Step& step = p_.steps[maker];
    const Problem& p = step.problem;
    if (p.step != StepKind::loop || step.out.size() != 1 || p.out[0].offset != 0 || !is_plain(p.back)) return false;
    const auto own = places_of(p.out[0].dims, p.out[0].strides, view, places);
    const auto of_result = places_of(Dims(b.desc.dims), Dims(b.desc.strides), view, places);
    if (!own || !of_result) return false;
    loops_.push_back({maker, *own, *of_result});
    for (size_t k = 0; k < step.in.size(); ++k)
      if (step.in[k] != Step::kNoBuffer &&
          elements(p.in[k].dims) == p_.buffers[static_cast<size_t>(step.in[k])].desc.elements())
        follow(step.in[k], p.in[k], *own);
    return true;
  }

  /// Places of axes with such extents and strides in what `view` sees with axes at `places`.
  static std::optional<std::vector<Place>> places_of(const Dims& dims, const Dims& strides, const TensorDesc& view,
                                                     const std::vector<Place>& places) {
    std::vector<Place> made;
    for (int d = 0; d < dims.size(); ++d) {
      made.emplace_back();
      if (dims[d] <= 1) continue;
      const auto at = axis_around(dims[d], strides[d], view.dims, view.strides);
      if (!at) return std::nullopt;
      const Place& around = places[static_cast<size_t>(at->axis)];
      const bool outermost = dims[d] * strides[d] == view.dims[at->axis] * view.strides[at->axis];
      made.back() = {around.along, around.apart * at->times, around.outermost && outermost};
    }
    return made;
  }

  const Program& p_;
  size_t product_;
  int port_;
  std::optional<Walk> walk_;
  std::vector<Loop> loops_;  // from the product's backwards
};

/// Whether loops make the tensor of 8-bit integers, element by element: a product of two such is one of integers.
bool is_of_integers(const Program& program, int buffer) {
  const auto maker = std::ranges::find_if(program.steps, [&](const Step& s) { return s.writes(buffer); });
  if (maker == program.steps.end() || maker->problem.step != StepKind::loop) return false;
  for (size_t k = 0; k < maker->in.size(); ++k) {
    const int from = maker->in[k];
    if (from == Step::kNoBuffer) continue;
    const logical_tensor& t = program.buffers[static_cast<size_t>(from)].desc;
    if (t.elements() != program.buffers[static_cast<size_t>(buffer)].desc.elements()) continue;
    if (t.dtype == Dtype::s8 || t.dtype == Dtype::u8 || is_of_integers(program, from)) return true;
  }
  return false;
}

/// How large tiles are.
struct Extents {
  int64_t kept, summed;
};

std::optional<Extents> extents_of(const Finder& f, const TensorDesc& matrix, int port) {
  const Dims& space = f.walk().space;
  const int64_t kept_group = f.group(f.kept()), summed_group = f.group(f.summed());
  const auto& walked = f.walk().in[static_cast<size_t>(port)];
  const auto kept = static_cast<int>(std::ranges::find(walked, f.kept()) - walked.begin());
  const int64_t columns = elements(matrix.dims) / space[f.summed()];
  const int64_t wanted =
      std::min(matrix.strides[kept] == 1 ? kColumnsOfRows : kColumns, std::max(columns / kWantedTiles, kLeastColumns));
  Extents e;
  e.kept =
      largest_divisor(space[f.kept()] / kept_group, kept_group > kLeastColumns ? 1 : wanted / kept_group) * kept_group;
  e.summed = std::min(space[f.summed()] / summed_group, std::max<int64_t>(1, kSummed / summed_group)) * summed_group;
  if (e.kept < std::min(kLeastColumns, space[f.kept()]) || e.summed < std::min(kLeastSummed, space[f.summed()]) ||
      e.kept * e.summed < kLeastElements || columns / e.kept < kLeastTiles)
    return std::nullopt;
  return e;
}

}  // namespace

std::optional<CutRegion> find_weights(const Program& program, size_t product, const Target& target) {
  const Step& step = program.steps[product];
  if (step.problem.step != StepKind::matmul) return std::nullopt;
  if (is_of_integers(program, step.in[0]) && is_of_integers(program, step.in[1])) return std::nullopt;
  for (const int port : {1, 0}) {
    Finder finder(program, product, port);
    if (!finder.find()) continue;
    const Dims& space = finder.walk().space;
    const TensorDesc& matrix = step.problem.in[static_cast<size_t>(port)];
    const auto bytes = static_cast<int64_t>(bytes_for(matrix.dtype, elements(matrix.dims)));
    const int64_t rows = elements(step.problem.out[0].dims) / (elements(matrix.dims) / space[finder.summed()]);
    if (bytes < static_cast<int64_t>(second_level_cache_bytes()) || rows > kMostRows) continue;
    // the constant cache keeps it; what a deterministic engine does must not depend on that
    if ((target.keeps_packs || target.deterministic) && finder.is_constant()) continue;
    const auto extents = extents_of(finder, matrix, port);
    if (!extents) continue;
    CutRegion made;
    std::vector<int> axes;
    const auto add = [&](int axis, int64_t extent) {
      if (extent == space[axis]) return;
      axes.push_back(axis);
      made.extents.push_back(extent / finder.group(axis));
    };
    const int rank = step.problem.out[0].dims.size();
    for (int d = 0; d < rank - 2; ++d)
      if (std::ranges::count(finder.walk().in[static_cast<size_t>(port)], d) > 0) add(d, 1);
    add(finder.kept(), extents->kept);
    add(finder.summed(), extents->summed);
    made.region = finder.region(axes);
    return made;
  }
  return std::nullopt;
}

}  // namespace partita
