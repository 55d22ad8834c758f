// SPDX-License-Identifier: Apache-2.0
// guarded: where exceptions end.
#pragma once

#include <type_traits>
#include <utility>

#include "partita/status.hpp"

namespace partita {

/// The Status for the exception that is being handled: out_of_memory for those of containers that get no memory,
/// runtime_error with its text for what a callback of the caller has thrown.
Status status_of_exception() noexcept;

/// Runs the body of a public call, which returns a Status or a Result. Nothing of ours throws, but the C++ library
/// does where there is no memory, at any depth, and there is nothing to do about it before the call has ended.
template <class Body>
std::invoke_result_t<Body> guarded(Body&& body) noexcept {
  try {
    return std::forward<Body>(body)();
  } catch (...) {
    return status_of_exception();
  }
}

}  // namespace partita
