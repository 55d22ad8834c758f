// SPDX-License-Identifier: Apache-2.0
// From the plain comparison, which nearly always is enough, to those that cost further runs of the references.
#include "src/harness/verify.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <vector>

#include "src/base/check.hpp"
#include "src/base/text.hpp"
#include "src/harness/compare.hpp"

namespace partita {
namespace {

class Verification {
 public:
  Verification(const Partition& partition, const Given& given, const Tensors& tensors)
      : partition_(partition),
        given_(given),
        tensors_(tensors),
        tolerance_(value_tolerance_of(partition)),
        quantized_(is_quantized_inside(partition)) {}

  Result<Verdict> run() {
    PT_ASSIGN(const Tensors expected, run_reference(partition_, given_, tensors_));
    for (const auto& [id, storage] : expected) {
      PT_ASSIGN(const Difference d, difference(id, storage));
      verdict_.max_error = std::isnan(d.max_error) ? d.max_error : std::max(verdict_.max_error, d.max_error);
      if (d.wrong > 0 && verdict_.mismatch.empty())
        verdict_.mismatch = str("output tensor ", id, " (", storage.desc.text(), "): ", d.first);
    }
    return std::move(verdict_);
  }

 private:
  Result<Difference> difference(uint64_t id, const Storage& expected) {
    const Storage& got = tensors_.at(id);
    Difference d = compare(got, expected, tolerance_);
    if (d.wrong == 0) return d;
    // Roundings between operators may add up to more than the tolerance, and fused operators leave them out.
    if (!wide_) {
      PT_ASSIGN(wide_, run_reference(partition_, given_, tensors_, {.inner = InnerValues::wide}));
    }
    if (const Difference unrounded = compare(got, wide_->at(id), tolerance_); unrounded.wrong == 0) return unrounded;
    for (size_t round = 0; round < rounds(); ++round) {
      if (erring_.size() <= kRunsOfRound * round) PT_TRY(run_with_errors(round));
      std::vector<const Storage*> others = {&wide_->at(id)};
      for (const Tensors& results : erring_) others.push_back(&results.at(id));
      d = compare(got, expected, tolerance_, others);
      if (d.wrong == 0) break;
    }
    return d;
  }

  /// Few terms that cancel may all be moved the same way by chance. Where values are quantized inside, which of them
  /// round the other way is chance, too, and each way leads elsewhere.
  size_t rounds() const { return quantized_ ? 9 : 6; }

  /// Errors as large as the tolerance; where values are quantized, smaller ones in turns with them. Large ones move so
  /// many integers that those of a later operator may all be cut off at their limits; small ones move the few alone
  /// that lie in the middle between two.
  Status run_with_errors(size_t round) {
    constexpr double kShares[] = {1, 1e-2, 1e-4};
    const double share = tolerance_ * kShares[quantized_ ? round % std::size(kShares) : 0];
    for (uint64_t seed : {2 * round + 1, 2 * round + 2})
      for (double direction : {1.0, -1.0}) {
        PT_ASSIGN(Tensors results, run_reference(partition_, given_, tensors_, {.errors = {direction * share, seed}}));
        erring_.push_back(std::move(results));
      }
    return {};
  }

  static constexpr size_t kRunsOfRound = 4;

  const Partition& partition_;
  const Given& given_;
  const Tensors& tensors_;
  const double tolerance_;
  const bool quantized_;
  std::optional<Tensors> wide_;
  std::vector<Tensors> erring_;
  Verdict verdict_;
};

}  // namespace

Result<Verdict> verify_results(const Partition& partition, const Given& given, const Tensors& tensors) {
  return Verification(partition, given, tensors).run();
}

}  // namespace partita
