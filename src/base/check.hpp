// SPDX-License-Identifier: Apache-2.0
// The macros of error handling: PT_TRY and PT_ASSIGN pass a failure on, PT_ASSERT catches bugs of our own.
#pragma once

#include "partita/status.hpp"

namespace partita {

[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);

}  // namespace partita

/// Returns the failure of a Status expression from the enclosing function.
#define PT_TRY(expression)                                    \
  do {                                                        \
    if (::partita::Status status_ = (expression); !status_.ok()) return status_; \
  } while (false)

#define PT_CONCAT_(a, b) a##b
#define PT_CONCAT(a, b) PT_CONCAT_(a, b)
/// Declares or assigns `target` from a Result expression, or returns its failure.
#define PT_ASSIGN(target, expression) PT_ASSIGN_(PT_CONCAT(result_, __LINE__), target, expression)
#define PT_ASSIGN_(result, target, expression)               \
  auto result = (expression);                                \
  if (!result.ok()) return std::move(result).take_status();  \
  target = std::move(result).value()

/// A claim about Partita itself, never about the caller's input.
#define PT_ASSERT(condition) \
  ((condition) ? void() : ::partita::assertion_failed(#condition, __FILE__, __LINE__))
