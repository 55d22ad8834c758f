// SPDX-License-Identifier: Apache-2.0
// How far results may be from the exact ones: one table, which tests measure against and docs/generated/accuracy.md
// shows.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "partita/op.hpp"

namespace partita {

/// What an error is measured by: the unit in the last place that a number of this size has in the result's type.
enum class ErrorScale : uint8_t {
  result,  ///< the exact result itself
  terms,   ///< the sum of the absolute values of the terms that the result is a sum of
  tensor,  ///< the largest absolute value of the exact result over the whole tensor
};
std::string_view text_of(ErrorScale scale);

struct ErrorBound {
  double worst = 0, mean = 0;  ///< in units in the last place; 0.5 is correct rounding
};

/// For floating-point results, against arithmetic in f64 on the same inputs. f32: results of f32; narrow: results of 16
/// and 8 bits; 0 where they are exact, or where there are none.
struct Accuracy {
  OpKind kind;
  ErrorScale scale;
  ErrorBound f32, narrow;
  /// Narrow results below two to the power of this are measured as if they had this size.
  std::optional<int> least_exponent = {};
};

/// Every operator that computes floating-point numbers, by number. What is not in it copies, counts or quantizes.
std::span<const Accuracy> accuracy_table();

}  // namespace partita
