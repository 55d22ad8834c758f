// SPDX-License-Identifier: Apache-2.0
// Predicates of vcmpps, by what they say of NaN: true only for kUnordered, kNotEqual and kNotGreaterEqual.
#pragma once

#include <cstdint>

namespace partita::jit {

constexpr uint8_t kEqual = 0x00, kUnordered = 0x03, kNotEqual = 0x04, kOrdered = 0x07, kLess = 0x11,
                  kNotGreaterEqual = 0x19, kGreaterEqual = 0x1d, kGreater = 0x1e;

}  // namespace partita::jit
