// SPDX-License-Identifier: Apache-2.0
// The standard allocator, and the identity of engines.
#include "partita/engine.hpp"

#include <atomic>
#include <cstdlib>

namespace partita {

allocator allocator::standard() {
  return {[](size_t size, size_t alignment) -> void* {
            void* p = nullptr;
            return posix_memalign(&p, alignment < sizeof(void*) ? sizeof(void*) : alignment, size) == 0 ? p : nullptr;
          },
          [](void* p) { std::free(p); }};
}

engine::engine(EngineKind kind) : kind_(kind), memory_(allocator::standard()) {}

engine::engine(EngineKind kind, allocator memory) : kind_(kind), memory_(std::move(memory)) {
  static std::atomic<uint64_t> last = 0;
  identity_ = ++last;
}

}  // namespace partita
