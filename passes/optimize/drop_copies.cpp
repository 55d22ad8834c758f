// SPDX-License-Identifier: Apache-2.0
// Buffers that hold the same elements at the same places become one.
#include "passes/optimize/drop_copies.hpp"

#include <algorithm>

#include "src/base/shape.hpp"

namespace partita {
namespace {

/// Each element has one place, which is the same in both.
bool same_places(const TensorDesc& a, const TensorDesc& b) {
  if (a.dtype != b.dtype || a.offset != b.offset || a.dims != b.dims || !same_strides(a, b)) return false;
  for (int d = 0; d < a.dims.size(); ++d)
    if (a.dims[d] > 1 && a.strides[d] == 0) return false;
  return true;
}

class Dropper {
 public:
  explicit Dropper(Program& program) : p_(program) {}

  void run() {
    for (size_t s = 0; s < p_.steps.size();)
      if (moves_nothing(p_.steps[s]) && drop(s))
        p_.steps.erase(p_.steps.begin() + static_cast<long>(s));
      else
        ++s;
  }

 private:
  const Buffer& buffer(int b) const { return p_.buffers[static_cast<size_t>(b)]; }

  /// One load and its store, from all of one buffer to the same places of another.
  bool moves_nothing(const Step& step) const {
    const Problem& p = step.problem;
    if (!is_copy(p) || step.in[0] < 0 || !same_places(p.in[0], p.out[0])) return false;
    const auto covered = [&](int b) { return elements(p.in[0].dims) == buffer(b).desc.elements(); };
    return covered(step.in[0]) && covered(step.out[0]);
  }

  /// Only the step at `s` writes the buffer.
  bool is_made_by(int b, size_t s) const {
    for (size_t i = 0; i < p_.steps.size(); ++i)
      if (i != s && p_.steps[i].writes(b)) return false;
    return true;
  }

  bool drop(size_t s) {
    const int from = p_.steps[s].in[0], to = p_.steps[s].out[0];
    if (from == to || !is_made_by(to, s)) return false;
    if (buffer(to).role == Buffer::Role::temporary) {
      tell(s, [&](const Step& step) { return step.reads(to); });
      rename(to, from);
      return true;
    }
    if (buffer(to).role != Buffer::Role::output || buffer(from).role != Buffer::Role::temporary) return false;
    tell(s, [&](const Step& step) { return step.writes(from); });
    rename(from, to);
    return true;
  }

  /// The first step that `is_heir` takes computes the operators of the dropped one, too.
  template <class F>
  void tell(size_t dropped, F is_heir) {
    const auto heir = std::find_if(p_.steps.begin(), p_.steps.end(), is_heir);
    if (heir == p_.steps.end()) return;
    const auto& ops = p_.steps[dropped].ops;
    const bool behind = static_cast<size_t>(heir - p_.steps.begin()) > dropped;
    heir->ops.insert(behind ? heir->ops.begin() : heir->ops.end(), ops.begin(), ops.end());
  }

  void rename(int from, int to) {
    for (Step& step : p_.steps)
      for (auto* side : {&step.in, &step.out}) std::replace(side->begin(), side->end(), from, to);
  }

  Program& p_;
};

}  // namespace

void drop_copies(Program& program) { Dropper(program).run(); }

}  // namespace partita
