// SPDX-License-Identifier: Apache-2.0
// What the figures depend on beside the code: processor, instruction sets, threads, versions.
#pragma once

#include <cstddef>
#include <string>

namespace partita::bench {

struct Machine {
  std::string cpu;
  int cpus = 0;
  size_t cache_bytes = 0;  ///< of the last level
  int threads = 0;         ///< that the contenders use
  std::string partita, partita_isa;
  std::string onednn, onednn_isa;
  std::string date;  ///< UTC
};

/// Limits oneDNN to what PARTITA_MAX_ISA allows Partita, unless ONEDNN_MAX_CPU_ISA says otherwise, so that both are
/// compared alike. Must come before any other use of oneDNN.
void limit_onednn_isa();

Machine this_machine(int threads);

}  // namespace partita::bench
