// SPDX-License-Identifier: Apache-2.0
// Finding of regions. Axes of walks and of the buffers between steps that are walked together form one class; a tile
// axis is a class along which no step of the region sums or normalises.
#include "passes/tile/region.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "kernels/loop/fold_plan.hpp"
#include "src/base/shape.hpp"

namespace partita {
namespace {

/// Classes of numbered things.
class Classes {
 public:
  int add() {
    parent_.push_back(static_cast<int>(parent_.size()));
    return parent_.back();
  }
  int of(int a) {
    while (parent_[static_cast<size_t>(a)] != a) a = parent_[static_cast<size_t>(a)];
    return a;
  }
  void join(int a, int b) { parent_[static_cast<size_t>(of(a))] = of(b); }

 private:
  std::vector<int> parent_;
};

bool sums_up(const Step& s, int buffer) {
  if (s.problem.step != StepKind::loop) return false;
  for (size_t k = 0; k < s.out.size(); ++k)
    if (s.out[k] == buffer && fold_of_output(s.problem.back, k) != Fold::none) return true;
  return false;
}

bool bound_by_arithmetic(StepKind s) { return is_product(s) || s == StepKind::convolution_backward_weights; }

bool is_matmul(const Step& s) { return s.problem.step == StepKind::matmul; }

class Finder {
 public:
  Finder(const Program& p, Around around, bool sums) : p_(p), around_(around), sums_(sums) {
    for (const Step& s : p.steps) walks_.push_back(walk_of(s.problem));
  }

  std::optional<Region> run() {
    std::vector<int> seeds;
    for (size_t b = 0; b < p_.buffers.size(); ++b)
      if (p_.buffers[b].role == Buffer::Role::temporary) seeds.push_back(static_cast<int>(b));
    std::stable_sort(seeds.begin(), seeds.end(), [&](int a, int b) { return bytes(a) > bytes(b); });
    for (int seed : seeds) {
      // a seed is made from a product: only its rows and columns can be cut without computing it twice
      const auto makes = [&](const Step& s) {
        return around_ == Around::products ? is_matmul(s) && s.writes(seed) : sums_up(s, seed);
      };
      if (std::none_of(p_.steps.begin(), p_.steps.end(), makes)) continue;
      if (auto region = grown_from(seed)) return region;
    }
    return std::nullopt;
  }

 private:
  size_t bytes(int b) const { return p_.buffers[static_cast<size_t>(b)].desc.size_bytes(); }

  std::optional<Region> grown_from(int seed) {
    std::set<size_t> excluded;
    for (;;) {
      steps_ = component(seed, excluded);
      const auto products =
          std::count_if(steps_.begin(), steps_.end(), [&](size_t s) { return is_matmul(p_.steps[s]); });
      if (around_ == Around::products ? products < 2 : products > 0) return std::nullopt;
      if (!classify()) return std::nullopt;
      std::vector<int> axes = tile_classes(seed);
      if (axes.empty()) return std::nullopt;
      const size_t before = excluded.size();
      if (const auto summed = summed_class(seed, axes)) {
        axes.push_back(summed->axis);
        excluded.insert(summed->behind.begin(), summed->behind.end());
      }
      for (size_t s : steps_)
        if (!has_any(s, axes)) excluded.insert(s);
      if (excluded.size() > before) continue;
      if (!is_convex() || (around_ == Around::sums && has_skeletons_beside())) return std::nullopt;
      return region(axes);
    }
  }

  /// Steps that hang together by values whose views are whole permuted axes.
  std::vector<size_t> component(int seed, const std::set<size_t>& excluded) {
    std::set<size_t> found;
    std::vector<int> open = {seed};
    std::set<int> seen = {seed};
    while (!open.empty()) {
      const int b = open.back();
      open.pop_back();
      for (size_t s = 0; s < p_.steps.size(); ++s) {
        const Step& step = p_.steps[s];
        if (excluded.count(s) || !walks_[s] || (!step.reads(b) && !step.writes(b))) continue;
        if (!views_fit(step, b)) continue;
        found.insert(s);
        for (const auto* side : {&step.in, &step.out})
          for (int other : *side)
            if (other != Step::kNoBuffer && is_inner(other) && seen.insert(other).second) open.push_back(other);
      }
    }
    return {found.begin(), found.end()};
  }

  /// A value made by one step, so that a tile may make its piece of it.
  bool is_inner(int b) const {
    const Buffer::Role role = p_.buffers[static_cast<size_t>(b)].role;
    if (role != Buffer::Role::temporary && role != Buffer::Role::output) return false;
    return std::count_if(p_.steps.begin(), p_.steps.end(), [&](const Step& s) { return s.writes(b); }) == 1;
  }

  bool views_fit(const Step& step, int b) const {
    const logical_tensor& desc = p_.buffers[static_cast<size_t>(b)].desc;
    for (size_t k = 0; k < step.in.size(); ++k)
      if (step.in[k] == b && !axes_of_view(step.problem.in[k], desc)) return false;
    for (size_t k = 0; k < step.out.size(); ++k)
      if (step.out[k] == b && !axes_of_view(step.problem.out[k], desc)) return false;
    return true;
  }

  bool touches(int b, bool writing) const {
    return std::any_of(steps_.begin(), steps_.end(),
                       [&](size_t s) { return writing ? p_.steps[s].writes(b) : p_.steps[s].reads(b); });
  }

  /// Classes of the axes of `steps_` and of the values between them. False where a value is made and read in the region
  /// by views that do not fit each other.
  bool classify() {
    classes_ = {};
    space_.assign(p_.steps.size(), {});
    buffer_.clear();
    for (size_t s : steps_)
      for (int d = 0; d < walks_[s]->space.size(); ++d) space_[s].push_back(classes_.add());
    for (size_t b = 0; b < p_.buffers.size(); ++b) {
      const int buffer = static_cast<int>(b);
      if (!touches(buffer, true) || (!touches(buffer, false) && p_.buffers[b].role == Buffer::Role::output)) continue;
      std::vector<int>& axes = buffer_[buffer];
      for (int d = 0; d < p_.buffers[b].desc.rank(); ++d) axes.push_back(classes_.add());
      for (size_t s : steps_) {
        const Step& step = p_.steps[s];
        for (size_t k = 0; k < step.in.size(); ++k)
          if (step.in[k] == buffer && !unite(step.problem.in[k], walks_[s]->in[k], s, buffer)) return false;
        for (size_t k = 0; k < step.out.size(); ++k)
          if (step.out[k] == buffer && !unite(step.problem.out[k], walks_[s]->out[k], s, buffer)) return false;
      }
    }
    return true;
  }

  bool unite(const TensorDesc& view, const std::vector<int>& walked, size_t s, int buffer) {
    const auto axes = axes_of_view(view, p_.buffers[static_cast<size_t>(buffer)].desc);
    if (!axes) return !touches(buffer, false);  // written only: nobody here reads another piece of it
    for (int d = 0; d < view.dims.size(); ++d) {
      const int axis = (*axes)[static_cast<size_t>(d)], at = walked[static_cast<size_t>(d)];
      if (axis >= 0 && at >= 0)
        classes_.join(buffer_[buffer][static_cast<size_t>(axis)], space_[s][static_cast<size_t>(at)]);
    }
    return true;
  }

  bool has(size_t s, int c) { return axis_of(s, c) >= 0; }

  int axis_of(size_t s, int c) {
    for (size_t d = 0; d < space_[s].size(); ++d)
      if (classes_.of(space_[s][d]) == c && walks_[s]->space[static_cast<int>(d)] > 1) return static_cast<int>(d);
    return -1;
  }

  bool has_any(size_t s, const std::vector<int>& axes) {
    return std::any_of(axes.begin(), axes.end(), [&](int c) { return has(s, c); });
  }

  /// The classes of the seed's axes along which the region can be cut, outermost first.
  std::vector<int> tile_classes(int seed) {
    std::vector<int> found;
    for (int axis : buffer_[seed]) {
      const int c = classes_.of(axis);
      if (std::find(found.begin(), found.end(), c) == found.end() && is_free(c)) found.push_back(c);
    }
    return found;
  }

  struct Summed {
    int axis;
    std::set<size_t> behind;  ///< what waits for the whole sums
  };

  /// A class along which the region can be cut as well, after all others, if products that sum along it and whose
  /// results it does not need itself add up tile by tile: the queries of attention's gradient, for those of keys and
  /// values.
  std::optional<Summed> summed_class(int seed, const std::vector<int>& axes) {
    if (around_ != Around::products || !sums_) return std::nullopt;
    for (int c : axes)
      for (size_t s : steps_)
        if (is_matmul(p_.steps[s]) && is_matrix_axis(s, c)) return std::nullopt;
    for (int axis : buffer_[seed]) {
      const int c = classes_.of(axis);
      if (std::find(axes.begin(), axes.end(), c) != axes.end()) continue;
      std::set<size_t> sums;
      for (size_t s : steps_)
        if (sums_along(s, c)) sums.insert(s);
      const std::set<size_t> behind = steps_behind(sums);
      const bool apart =
          std::none_of(behind.begin(), behind.end(), [&](size_t s) { return sums.count(s) || has(s, c); });
      if (!sums.empty() && apart && is_free(c, sums, behind)) return Summed{c, behind};
    }
    return std::nullopt;
  }

  bool is_matrix_axis(size_t s, int c) {
    const int at = axis_of(s, c);
    return at >= p_.steps[s].problem.out[0].dims.size() - 2;
  }

  /// A product and nothing else, of which the class is the axis that it sums.
  bool sums_along(size_t s, int c) {
    const Problem& p = p_.steps[s].problem;
    return is_matmul(p_.steps[s]) && !p.fused() && p.in.size() == 2 && axis_of(s, c) == p.out[0].dims.size();
  }

  /// Steps of the region that read what `makers` make, or what such steps make.
  std::set<size_t> steps_behind(const std::set<size_t>& makers) const {
    std::set<int> made;
    for (size_t m : makers) made.insert(p_.steps[m].out.begin(), p_.steps[m].out.end());
    std::set<size_t> behind;
    for (size_t s : steps_) {
      const Step& step = p_.steps[s];
      if (std::none_of(step.in.begin(), step.in.end(), [&](int b) { return made.count(b) > 0; })) continue;
      behind.insert(s);
      made.insert(step.out.begin(), step.out.end());
    }
    return behind;
  }

  bool is_free(int c) { return is_free(c, {}, {}); }

  /// But for products `sums` that sum along the class, and for steps `behind` them.
  bool is_free(int c, const std::set<size_t>& sums, const std::set<size_t>& behind) {
    int64_t extent = 0;
    for (size_t s : steps_) {
      if (behind.count(s)) continue;
      int times = 0;
      for (size_t d = 0; d < space_[s].size(); ++d) {
        const int64_t size = walks_[s]->space[static_cast<int>(d)];
        if (classes_.of(space_[s][d]) != c || size == 1) continue;
        if ((!walks_[s]->free[d] && !sums.count(s)) || (extent != 0 && extent != size)) return false;
        extent = size;
        ++times;
      }
      if (times > 1) return false;  // two axes at once: a tile would be a diagonal
      if (times == 0 && !is_cheap(s)) return false;
    }
    return extent > 1;
  }

  /// May run again for every tile along an axis it does not have: a loop whose results stay inside.
  bool is_cheap(size_t s) const {
    const Step& step = p_.steps[s];
    if (step.problem.step != StepKind::loop) return false;
    return std::none_of(step.out.begin(), step.out.end(), [&](int b) { return !is_local(b); });
  }

  bool is_local(int b) const {
    if (p_.buffers[static_cast<size_t>(b)].role != Buffer::Role::temporary || !buffer_.count(b)) return false;
    for (size_t s = 0; s < p_.steps.size(); ++s) {
      const bool inside = std::binary_search(steps_.begin(), steps_.end(), s);
      if (!inside && (p_.steps[s].reads(b) || p_.steps[s].writes(b))) return false;
    }
    return touches(b, true) && touches(b, false) && fits_everywhere(b);
  }

  bool fits_everywhere(int b) const {
    return std::all_of(steps_.begin(), steps_.end(), [&](size_t s) { return views_fit(p_.steps[s], b); });
  }

  /// Poolings and the like, which would take the loops beside them along, and fold what they make.
  bool has_skeletons_beside() const {
    for (size_t s = 0; s < p_.steps.size(); ++s) {
      const Step& step = p_.steps[s];
      const bool inside = std::binary_search(steps_.begin(), steps_.end(), s);
      if (inside || step.problem.step == StepKind::loop || bound_by_arithmetic(step.problem.step)) continue;
      for (int b : step.in)
        if (b != Step::kNoBuffer && touches(b, true)) return true;
      for (int b : step.out)
        if (touches(b, false)) return true;
    }
    return false;
  }

  /// No step outside stands between two inside.
  bool is_convex() const {
    std::set<int> behind;
    for (size_t s = 0; s < p_.steps.size(); ++s) {
      const Step& step = p_.steps[s];
      const bool inside = std::binary_search(steps_.begin(), steps_.end(), s);
      const bool depends = std::any_of(step.in.begin(), step.in.end(), [&](int b) { return behind.count(b) > 0; });
      if (inside && depends) return false;
      if (inside) continue;
      const bool after = depends || std::any_of(step.in.begin(), step.in.end(),
                                                [&](int b) { return b != Step::kNoBuffer && touches(b, true); });
      if (after) behind.insert(step.out.begin(), step.out.end());
    }
    return true;
  }

  Region region(const std::vector<int>& axes) {
    Region r;
    r.around = around_;
    r.steps = steps_;
    for (int c : axes) {
      int64_t extent = 1;
      for (size_t s : steps_)
        if (const int d = axis_of(s, c); d >= 0) extent = walks_[s]->space[d];
      r.axes.push_back({extent});
    }
    const auto number = [&](int c, int64_t size) {
      const auto at = std::find(axes.begin(), axes.end(), classes_.of(c));
      return TileCut{at == axes.end() || size == 1 ? -1 : static_cast<int>(at - axes.begin())};
    };
    for (size_t s : steps_) {
      r.walks.push_back(*walks_[s]);
      std::vector<TileCut>& tiled = r.tiled.emplace_back();
      for (size_t d = 0; d < space_[s].size(); ++d)
        tiled.push_back(number(space_[s][d], walks_[s]->space[static_cast<int>(d)]));
    }
    for (const auto& [b, of_axes] : buffer_) {
      if (!is_local(b)) continue;
      Region::Local local{b, {}};
      for (size_t d = 0; d < of_axes.size(); ++d)
        local.tiled.push_back(number(of_axes[d], p_.buffers[static_cast<size_t>(b)].desc.dims[static_cast<int>(d)]));
      r.local.push_back(std::move(local));
    }
    return r;
  }

  const Program& p_;
  Around around_;
  bool sums_;  // products may sum along the last tile axis
  std::vector<std::optional<Walk>> walks_;
  std::vector<size_t> steps_;
  Classes classes_;
  std::vector<std::vector<int>> space_;     // of each step: the axes of its space
  std::map<int, std::vector<int>> buffer_;  // of each value made in the region: its axes
};

}  // namespace

const Region::Local* Region::local_of(int buffer) const {
  for (const Local& l : local)
    if (l.buffer == buffer) return &l;
  return nullptr;
}

bool Region::accumulates(const Program& program, size_t i) const {
  if (!is_matmul(program.steps[steps[i]])) return false;
  return tiled[i].back().axis ==
         static_cast<int>(axes.size()) - 1;  // the last axis of a product's space is the summed one
}

bool Region::accumulates(const Program& program) const {
  for (size_t i = 0; i < steps.size(); ++i)
    if (accumulates(program, i)) return true;
  return false;
}

std::optional<Within> axis_around(int64_t extent, int64_t stride, const Dims& dims, const Dims& strides) {
  if (extent <= 1 || stride == 0) return std::nullopt;
  for (int a = 0; a < dims.size(); ++a) {
    if (dims[a] <= 1 || strides[a] == 0) continue;
    if (stride % strides[a] == 0 && extent * stride <= dims[a] * strides[a]) return Within{a, stride / strides[a]};
  }
  return std::nullopt;
}

std::optional<std::vector<int>> axes_of_view(const TensorDesc& view, const logical_tensor& buffer) {
  std::vector<int> axes;
  if (view.offset != 0) return std::nullopt;
  for (int d = 0; d < view.dims.size(); ++d) {
    int found = -1;
    if (view.dims[d] > 1 && view.strides[d] != 0) {
      for (int a = 0; a < buffer.rank(); ++a)
        if (buffer.dims[a] == view.dims[d] && buffer.strides[a] == view.strides[d]) found = a;
      if (found < 0 || std::count(axes.begin(), axes.end(), found) > 0) return std::nullopt;
    }
    axes.push_back(found);
  }
  return axes;
}

std::optional<Region> find_region(const Program& program, Around around, bool sums) {
  return Finder(program, around, sums).run();
}

}  // namespace partita
