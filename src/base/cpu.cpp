// SPDX-License-Identifier: Apache-2.0
// Asks the processor and the operating system; PARTITA_MAX_ISA lowers the answer.
#include "src/base/cpu.hpp"

#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <cstdio>
#include <optional>

#include "src/base/env.hpp"

namespace partita {
namespace {

Isa detected_isa() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return Isa::any;
  // Not every compiler knows the name of F16C; every processor with AVX2 and FMA has it.
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return avx512 ? Isa::avx512 : Isa::avx2;
#else
  return Isa::any;
#endif
}

Isa allowed_isa() {
  const std::optional<std::string>& value = env(Env::max_isa);
  if (!value) return Isa::avx512;
  for (Isa isa : {Isa::any, Isa::avx2, Isa::avx512}) {
    if (*value == name_of(isa)) return isa;
  }
  std::fprintf(stderr, "partita: PARTITA_MAX_ISA must be any, avx2 or avx512; it is `%s` and is ignored\n",
               value->c_str());
  return Isa::avx512;
}

size_t read_cache_bytes() {
#if defined(_SC_LEVEL4_CACHE_SIZE)
  for (int level : {_SC_LEVEL4_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE}) {
    const long bytes = sysconf(level);
    if (bytes > 0) return static_cast<size_t>(bytes);
  }
#endif
  return size_t{32} << 20;
}

}  // namespace

std::string_view name_of(Isa isa) {
  switch (isa) {
    case Isa::any: return "any";
    case Isa::avx2: return "avx2";
    case Isa::avx512: return "avx512";
  }
  return "unknown";
}

Isa machine_isa() {
  static const Isa isa = std::min(detected_isa(), allowed_isa());
  return isa;
}

bool converts_to_bf16() {
#if defined(__x86_64__)
  // CPUID leaf 7, subleaf 1: compilers differ in the name they have for it.
  static const bool has = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & (1u << 5)) != 0;
  }();
  return has;
#else
  return false;
#endif
}

size_t last_level_cache_bytes() {
  static const size_t bytes = read_cache_bytes();
  return bytes;
}

bool leaves_the_caches(int64_t bytes) {
  static const auto most = static_cast<int64_t>(
      std::min(last_level_cache_bytes() / 2,
               (size_t{8} << 20) * static_cast<size_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)))));
  return bytes > most;
}

}  // namespace partita
