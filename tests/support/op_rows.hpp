// SPDX-License-Identifier: Apache-2.0
// One operator computed in every way Partita has: compiled, by every kernel row that accepts it, and by its reference.
#pragma once

#include <map>
#include <string>

#include "partita/op.hpp"
#include "src/harness/reference_run.hpp"

namespace partita::test {

struct OpRuns {
  std::string refusal;                  ///< why the operator cannot be compiled; empty where it can
  std::map<std::string, Tensors> rows;  ///< outputs by the name of the row, "compiled" and "reference" among them
};

/// Repeatable data for the operator's inputs, which must have known shapes.
Tensors input_data(const op& o, uint64_t seed);

/// Compiles the partition of one operator and runs it on `inputs` in every way. Outputs start as bytes that are NaN.
/// Fails the test where an accepted problem cannot be run.
OpRuns run_every_row(const Partition& single, const Tensors& inputs);

}  // namespace partita::test
