// SPDX-License-Identifier: Apache-2.0
// How a C function answers: it runs a body that returns a Status; the status becomes a number, its text is kept.
#pragma once

#include <initializer_list>
#include <utility>

#include "src/base/guarded.hpp"
#include "src/compat/dnnl_graph/abi.hpp"

namespace partita::abi {

/// Keeps the text for partita_last_error() where it is a failure.
dnnl_status_t answer(const Status& status) noexcept;

/// Nothing is thrown across the C interface.
template <class Body>
dnnl_status_t answer_of(Body&& body) noexcept {
  return answer(guarded([&]() -> Status { return body(); }));
}

/// Fails with `code` where one of the pointers is null; says which.
Status need(std::initializer_list<std::pair<const char*, const void*>> pointers, Code code = Code::invalid_arguments);

}  // namespace partita::abi
