// SPDX-License-Identifier: Apache-2.0
// How a C function answers: it runs a body that returns a Status; the status becomes a number, its text is kept.
#pragma once

#include <exception>
#include <initializer_list>
#include <utility>

#include "src/compat/dnnl_graph/abi.hpp"

namespace partita::abi {

/// Keeps the text for partita_last_error() where it is a failure.
dnnl_status_t answer(const Status& status) noexcept;
dnnl_status_t answer_out_of_memory() noexcept;

/// Nothing is thrown across the C interface: the only exceptions here are those of containers that get no memory.
template <class Body>
dnnl_status_t answer_of(Body&& body) noexcept {
  try {
    return answer(body());
  } catch (const std::exception&) {
    return answer_out_of_memory();
  }
}

/// Fails with `code` where one of the pointers is null; says which.
Status need(std::initializer_list<std::pair<const char*, const void*>> pointers, Code code = Code::invalid_arguments);

}  // namespace partita::abi
