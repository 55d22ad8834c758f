// SPDX-License-Identifier: Apache-2.0
// The standard allocator, and the identity of engines.
#include "partita/engine.hpp"

#include <atomic>
#include <cstdlib>

#include "src/base/env.hpp"

namespace partita {
namespace {

/// By the environment, for the clients of interfaces that have no place for options.
bool demanded() {
  static const bool wanted = env_flag(Env::deterministic);
  return wanted;
}

}  // namespace

allocator allocator::standard() {
  return {[](size_t size, size_t alignment) -> void* {
            void* p = nullptr;
            return posix_memalign(&p, alignment < sizeof(void*) ? sizeof(void*) : alignment, size) == 0 ? p : nullptr;
          },
          [](void* p) { std::free(p); }};
}

engine::engine(EngineKind kind, engine_options options)
    : kind_(kind), deterministic_(options.deterministic || demanded()), memory_(allocator::standard()) {}

engine::engine(EngineKind kind, allocator memory, engine_options options)
    : kind_(kind), deterministic_(options.deterministic || demanded()), memory_(std::move(memory)) {
  static std::atomic<uint64_t> last = 0;
  identity_ = ++last;
}

}  // namespace partita
