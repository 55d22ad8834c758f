// SPDX-License-Identifier: Apache-2.0
// The standard allocator.
#include "partita/engine.hpp"

#include <cstdlib>

namespace partita {

allocator allocator::standard() {
  return {[](size_t size, size_t alignment) -> void* {
            void* p = nullptr;
            return posix_memalign(&p, alignment < sizeof(void*) ? sizeof(void*) : alignment, size) == 0 ? p : nullptr;
          },
          [](void* p) { std::free(p); }};
}

}  // namespace partita
