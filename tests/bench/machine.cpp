// SPDX-License-Identifier: Apache-2.0
// Asks the operating system and both libraries.
#include "tests/bench/machine.hpp"

#include <benchmark/benchmark.h>

#include <array>
#include <cstdlib>
#include <ctime>
#include <dnnl.hpp>
#include <fstream>

#include "src/base/cpu.hpp"
#include "src/base/text.hpp"

namespace partita::bench {
namespace {

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (!line.starts_with("model name")) continue;
    const size_t at = line.find(": ");
    if (at != std::string::npos) return line.substr(at + 2);
  }
  return benchmark::SystemInfo::Get().name;
}

const char* name_of(dnnl::cpu_isa isa) {
  switch (isa) {
    case dnnl::cpu_isa::isa_default: return "none in particular";
    case dnnl::cpu_isa::sse41: return "sse41";
    case dnnl::cpu_isa::avx: return "avx";
    case dnnl::cpu_isa::avx2: return "avx2";
    case dnnl::cpu_isa::avx2_vnni: return "avx2_vnni";
    case dnnl::cpu_isa::avx2_vnni_2: return "avx2_vnni_2";
    case dnnl::cpu_isa::avx512_core: return "avx512_core";
    case dnnl::cpu_isa::avx512_core_vnni: return "avx512_core_vnni";
    case dnnl::cpu_isa::avx512_core_bf16: return "avx512_core_bf16";
    case dnnl::cpu_isa::avx512_core_fp16: return "avx512_core_fp16";
    case dnnl::cpu_isa::avx512_core_amx: return "avx512_core_amx";
    case dnnl::cpu_isa::avx512_core_amx_fp16: return "avx512_core_amx_fp16";
    default: return "newer than this program";
  }
}

std::string now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M", &utc);
  return text.data();
}

}  // namespace

void limit_onednn_isa() {
  if (std::getenv("ONEDNN_MAX_CPU_ISA") || std::getenv("DNNL_MAX_CPU_ISA")) return;
  switch (machine_isa()) {
    case Isa::any: dnnl::set_max_cpu_isa(dnnl::cpu_isa::sse41); break;
    case Isa::avx2: dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2); break;
    case Isa::avx512: break;
  }
}

Machine this_machine(int threads) {
  const dnnl::version_t* version = dnnl::version();
  return {.cpu = cpu_name(),
          .cpus = benchmark::CPUInfo::Get().num_cpus,
          .cache_bytes = last_level_cache_bytes(),
          .threads = threads,
          .partita = PARTITA_VERSION,
          .partita_isa = std::string(partita::name_of(machine_isa())),
          .onednn = str(version->major, ".", version->minor, ".", version->patch),
          .onednn_isa = name_of(dnnl::get_effective_cpu_isa()),
          .date = now()};
}

}  // namespace partita::bench
