// SPDX-License-Identifier: Apache-2.0
// What happens when a claim about Partita itself does not hold.
#include "src/base/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace partita {

void assertion_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "partita: %s:%d: this should hold and does not: %s\n", file, line, condition);
  std::fflush(stderr);
  std::abort();
}

}  // namespace partita
