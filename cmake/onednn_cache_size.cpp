// SPDX-License-Identifier: Apache-2.0
// Compiled into our own build of oneDNN (onednn_trim.cmake). Some virtual machines answer CPUID's questions for caches
// with zeros, which oneDNN takes for caches of one byte: it plans blocks for them that leave elements out of reorders,
// or divides by zero (oneDNN issue 5313 has the same on AArch64). Then the C library is asked, else a guess is made.
#include <unistd.h>

#include "cpu/platform.hpp"

namespace dnnl::impl::cpu::platform {

/// What oneDNN has under the name of the function below.
unsigned told_per_core_cache_size(int level);

unsigned get_per_core_cache_size(int level) {
  constexpr unsigned kSmallest = 1024;
  const unsigned told = told_per_core_cache_size(level);
  if (told >= kSmallest || level < 1 || level > 3) return told;
  constexpr unsigned kGuesses[] = {32 << 10, 512 << 10, 2 << 20};
  const long found = level == 1 ? sysconf(_SC_LEVEL1_DCACHE_SIZE) : level == 2 ? sysconf(_SC_LEVEL2_CACHE_SIZE) : 0;
  return found >= long{kSmallest} ? static_cast<unsigned>(found) : kGuesses[level - 1];
}

}  // namespace dnnl::impl::cpu::platform
