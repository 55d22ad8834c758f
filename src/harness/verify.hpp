// SPDX-License-Identifier: Apache-2.0
// Whether a partition's results are what the references make of the same inputs.
#pragma once

#include <string>

#include "src/harness/reference_run.hpp"

namespace partita {

struct Verdict {
  double max_error = 0;  ///< see Difference
  std::string mismatch;  ///< the first result that differs too much, and where; empty where none does
};

/// `tensors` holds the inputs and results of the partition. An element that is off by more than the tolerance is taken
/// for right where the references, too, come to such a result from small errors inside the partition (SmallErrors): a
/// value that Quantize rounds the other way travels on as a whole step, and of numbers that cancel only errors remain.
Result<Verdict> verify_results(const Partition& partition, const Given& given, const Tensors& tensors);

}  // namespace partita
