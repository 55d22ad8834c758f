// SPDX-License-Identifier: Apache-2.0
// What every tensor must keep to, whichever operator has it.
#pragma once

#include <string>

#include "partita/logical_tensor.hpp"

namespace partita {

/// Dims or strides that were cut off at kMaxRank; empty where none were.
std::string rank_fault(const logical_tensor& t);

/// What is wrong with a host scalar; empty where nothing is, or where the tensor is none.
std::string host_scalar_fault(const logical_tensor& t);

/// Which elements of a result would overwrite each other; empty where none do, or where strides are not known yet.
std::string overlap_fault(const logical_tensor& result);

}  // namespace partita
