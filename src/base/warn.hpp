// SPDX-License-Identifier: Apache-2.0
// Warnings: what the caller cannot be told by a Status, because the call succeeds.
#pragma once

#include <cstdint>
#include <string_view>

namespace partita {

/// What is warned of once a process.
enum class Warning : uint8_t { no_code, no_dump, no_primitives };
inline constexpr int kWarnings = 3;

/// "partita: text" on stderr, at the first call for this warning. Thread-safe.
void warn_once(Warning about, std::string_view text) noexcept;
/// The same at every call, for those who count themselves.
void print_warning(std::string_view text) noexcept;

}  // namespace partita
