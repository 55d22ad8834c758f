// SPDX-License-Identifier: Apache-2.0
// compile: from a partition and concrete tensors to an executable. The whole chain is spelled in compile.cpp.
#pragma once

#include <memory>
#include <vector>

#include "passes/partition.hpp"
#include "passes/specialize.hpp"
#include "src/run/executable.hpp"

namespace partita {

/// An executable, or - where `waits_for` is not empty - the ids of shape inputs whose content must arrive first.
struct Compiled {
  std::shared_ptr<const Executable> executable;
  std::vector<uint64_t> waits_for;
};

/// Compiles for `threads` threads (0: as many as OpenMP gives) and that engine. Looks into the compiled-partition cache
/// first; equal concurrent requests build once. `hit` (or null) tells whether this request built nothing. Thread-safe.
Result<Compiled> compile(const Partition& partition, const Given& given, int threads, const engine& on = engine(),
                         bool* hit = nullptr);

/// What a program depends on beside the partition and its tensors.
struct CompileOptions {
  int threads = 0;  ///< 0: as many as OpenMP gives
  bool deterministic = false;
  bool keeps_constants = constant_cache_capacity(EngineKind::cpu) > 0;  ///< kernels are chosen by it
  friend bool operator==(const CompileOptions&, const CompileOptions&) = default;
};

/// The chain itself, without the cache.
Result<Compiled> compile_uncached(const Partition& partition, const Given& given, const CompileOptions& options);

/// Drops what the cache holds for a partition that keeps what it makes of constants. Thread-safe.
void forget_partition(uint64_t id);

/// Most executables the cache keeps (least recently used go first); 0 switches it off. Default 1024.
void set_cache_capacity(size_t executables);
size_t cache_capacity();

}  // namespace partita
