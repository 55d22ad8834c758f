// SPDX-License-Identifier: Apache-2.0
// Linking of samples; entry: linked_samples().
#include "tests/support/linked_samples.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "tests/support/sample.hpp"

namespace partita::test {
namespace {

/// More tensors than one sample has.
constexpr uint64_t kIdsOfASample = 1 << 16;

class Linker {
 public:
  explicit Linker(Random& random) : random_(random) {}

  std::vector<op> run(int count) {
    for (int k = 0; k < count; ++k) {
      add(sample(random_.one_of(sampled_patterns()), random_), static_cast<uint64_t>(k) * kIdsOfASample);
      if (random_.whole(0, 3) == 0) add_stranger();
    }
    if (random_.coin()) std::shuffle(ops_.begin(), ops_.end(), random_.engine());
    return std::move(ops_);
  }

 private:
  void add(std::vector<op> part, uint64_t first_id) {
    std::map<uint64_t, bool> inner;
    for (const op& o : part)
      for (const logical_tensor& t : o.outputs) inner[t.id] = true;
    std::map<uint64_t, logical_tensor> outer;  // what an input of the sample has become
    for (op& o : part) {
      o.id = ops_.size() + 1;
      for (logical_tensor& t : o.inputs) {
        const bool made_here = inner.contains(t.id);
        const uint64_t id = t.id;
        if (const auto known = outer.find(id); known != outer.end()) {
          t = known->second;
          continue;
        }
        t.id += first_id;
        // One in two inputs is a result of an earlier operator, of the sample's own values one in eight.
        if (random_.whole(0, made_here ? 7 : 1) == 0) t = earlier(t);
        if (!made_here) outer.emplace(id, t);
      }
      for (logical_tensor& t : o.outputs) t.id += first_id;
      made_.insert(made_.end(), o.outputs.begin(), o.outputs.end());
      ops_.push_back(std::move(o));
    }
  }

  /// A result of the same type and shape, or the tensor itself where there is none.
  logical_tensor earlier(const logical_tensor& t) {
    std::vector<const logical_tensor*> fit;
    for (const logical_tensor& made : made_)
      if (made.dtype == t.dtype && made.dims == t.dims) fit.push_back(&made);
    return fit.empty() ? t : *random_.one_of(fit);
  }

  void add_stranger() {
    if (made_.empty()) return;
    const logical_tensor read = random_.one_of(made_);
    const bool end =
        random_.coin() && read.dtype != Dtype::s64 && read.dtype != Dtype::boolean;  // it takes others only
    op stranger(ops_.size() + 1, end ? OpKind::End : OpKind::Wildcard);
    stranger.add_input(read);
    if (!end) {
      const logical_tensor result(next_result_++, read.dtype, read.dims);
      stranger.add_output(result);
      made_.push_back(result);
    }
    ops_.push_back(std::move(stranger));
  }

  Random& random_;
  std::vector<op> ops_;
  std::vector<logical_tensor> made_;
  uint64_t next_result_ = uint64_t{1} << 40;  // beyond those of samples
};

}  // namespace

std::vector<op> linked_samples(Random& random, int count) { return Linker(random).run(count); }

}  // namespace partita::test
