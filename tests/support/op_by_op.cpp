// SPDX-License-Identifier: Apache-2.0
// Runs of whole graphs beside each other; entry: run_difference().
#include "tests/support/op_by_op.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "src/base/check.hpp"
#include "src/base/text.hpp"
#include "src/harness/graph_tensors.hpp"
#include "src/harness/reference_run.hpp"
#include "src/harness/verify.hpp"

namespace partita::test {
namespace {

std::string name_of(const partition& p) {
  std::string name;
  for (const op& o : p.form()->ops) name += str(name.empty() ? "" : ", ", partita::name_of(o.kind), " ", o.id);
  return name;
}

/// The kernels, for messages.
std::string steps_of(const compiled_partition& compiled) {
  std::string text;
  for (const step_info& step : compiled.steps()) text += str("\n  ", step.kernel, ": ", step.text);
  return text;
}

double element(const logical_tensor& desc, const void* data, int64_t index) {
  int64_t at = 0;
  for (int d = desc.rank() - 1; d >= 0; --d) {
    at += index % desc.dims[d] * desc.strides[d];
    index /= desc.dims[d];
  }
  return load_as_double(data, desc.dtype, at);
}
double element(const Storage& s, int64_t index) { return element(s.desc, s.data.get(), index); }

/// Neither zeros nor NaN have a sign to agree on (docs/numerics.md).
std::string value_difference(const Storage& got, const Storage& expected) {
  if (got.bytes != expected.bytes) return str("has ", got.bytes, " bytes, expected ", expected.bytes);
  for (int64_t i = 0; i < got.desc.elements(); ++i) {
    const double g = element(got, i), e = element(expected, i);
    if (g != e && !(std::isnan(g) && std::isnan(e))) return str("has ", g, " as element ", i, ", expected ", e);
  }
  return {};
}

bool any_finite(const Storage& s) {
  for (int64_t i = 0; i < s.desc.elements(); ++i)
    if (std::isfinite(element(s, i))) return true;
  return false;
}

/// One run of all partitions of a policy.
class GraphRun {
 public:
  explicit GraphRun(const graph& g) : tensors_(*g.form()) {}

  Status run(const graph& g, Policy policy, uint64_t seed, bool verify) {
    PT_TRY(tensors_.fill_inputs(seed));
    PT_ASSIGN(const auto partitions, g.get_partitions(policy));
    for (const partition& p : partitions) {
      if (!p.supported()) continue;
      PT_ASSIGN(const BoundPartition bound, tensors_.bind(p, on_).at(name_of(p)));
      steps_ += str("\n", name_of(p), ":", steps_of(bound.compiled));
      for (const step_info& step : bound.compiled.steps()) add_sums(name_of(p), step);
      PT_TRY(bound.compiled.execute(stream(on_, 2), bound.inputs, bound.outputs).at(name_of(p)));
      if (verify) PT_TRY(check(p, bound));
    }
    return {};
  }
  const Tensors& tensors() const { return tensors_.all(); }
  /// What ran, partition by partition.
  const std::string& steps() const { return steps_; }
  /// Averages, and poolings that fold, with their partitions and kernels. Sums are rounded otherwise by other kernels.
  const std::set<std::string>& sums() const { return sums_; }

 private:
  /// A step's text begins with its operators, "Abs 2 + AvgPoolBackward 5". A kernel goes other ways over tensors in
  /// another order, and those inside a partition lie as its other operators like them.
  void add_sums(const std::string& partition, const step_info& step) {
    const std::string operators = step.text.substr(0, step.text.find(" | "));
    const bool folds = operators.find("Pool") != std::string::npos && step.text.find("fold_") != std::string::npos;
    if (folds || operators.find("Avg") != std::string::npos) sums_.insert(str(partition, ": ", step.kernel));
  }

  Status check(const partition& p, const BoundPartition& bound) const {
    const Given given{bound.given_in, bound.given_out, bound.constants};
    PT_ASSIGN(Verdict verdict, verify_results(*p.form(), given, tensors_.all()));
    if (verdict.mismatch.empty()) return {};
    // Results that are nowhere finite cannot be measured; their values must be the same.
    PT_ASSIGN(const Tensors expected, run_reference(*p.form(), given, tensors_.all()));
    Partition measured = *p.form();
    measured.outputs.clear();
    std::vector<logical_tensor> given_out;
    for (const logical_tensor& out : bound.given_out) {
      const Storage& reference = expected.at(out.id);
      if (any_finite(reference)) {
        measured.outputs.push_back(*std::ranges::find(p.form()->outputs, out.id, &logical_tensor::id));
        given_out.push_back(out);
        continue;
      }
      const std::string wrong = value_difference(tensors_.all().at(out.id), reference);
      if (!wrong.empty()) return mismatch(p, bound, str("tensor ", out.id, " ", wrong));
    }
    if (given_out.size() < bound.given_out.size()) {
      const Given rest{bound.given_in, given_out, bound.constants};
      PT_ASSIGN(verdict, verify_results(measured, rest, tensors_.all()));
    }
    return verdict.mismatch.empty() ? Status() : mismatch(p, bound, verdict.mismatch);
  }

  /// Also prints the first numbers of the inputs.
  static Status mismatch(const partition& p, const BoundPartition& bound, const std::string& wrong) {
    for (const tensor& t : bound.inputs) {
      fprintf(stderr, "in %s:", t.desc.text().c_str());
      for (int64_t i = 0; i < t.desc.elements() && i < 20; ++i) fprintf(stderr, " %.9g", element(t.desc, t.data, i));
      fprintf(stderr, "\n");
    }
    return fail(Code::runtime_error,
                str(name_of(p), " gives otherwise than the references: ", wrong, steps_of(bound.compiled)));
  }

  engine on_;
  GraphTensors tensors_;
  std::string steps_;
  std::set<std::string> sums_;
};

}  // namespace

std::string run_difference(const graph& g, uint64_t seed, Against against) {
  GraphRun alone(g), grouped(g);
  if (const Status s = alone.run(g, Policy::debug, seed, true); !s.ok()) return str("op by op: ", s.text());
  const bool verify = against == Against::references;
  if (const Status s = grouped.run(g, Policy::fusion, seed, verify); !s.ok()) return str("fused: ", s.text());
  if (verify) return {};
  // Which kernel takes an average may depend on its neighbours (docs/numerics.md); what follows can enlarge the last
  // bits.
  if (alone.sums() != grouped.sums()) return {};
  for (const auto& [id, storage] : grouped.tensors()) {
    const std::string wrong = value_difference(storage, alone.tensors().at(id));
    if (!wrong.empty())
      return str("tensor ", id, " (", storage.desc.text(), ") of the fused graph ", wrong, grouped.steps());
  }
  return {};
}

}  // namespace partita::test
