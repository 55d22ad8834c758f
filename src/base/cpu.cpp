// SPDX-License-Identifier: Apache-2.0
// Asks the processor and the operating system; PARTITA_MAX_ISA lowers the answer.
#include "src/base/cpu.hpp"

#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <array>
#include <atomic>
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
  warn_of_value(Env::max_isa, *value);
  return Isa::avx512;
}

constexpr size_t kLevels = 5;
/// Bytes of the data or unified cache of each level, one instance; 0 where there is none or nothing is known.
using Caches = std::array<size_t, kLevels>;

/// AMD's processors and their relatives.
bool has_amd_leaves() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kTopologyExtensions = 1u << 22;
  return __get_cpuid(0x80000001, &a, &b, &c, &d) != 0 && (c & kTopologyExtensions) != 0;
#else
  return false;
#endif
}

/// Intel's leaf 4; AMD's has the same fields. The C library adds up the third-level caches of some AMD processors.
Caches caches_by_cpuid() {
  Caches found{};
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  const unsigned leaf = has_amd_leaves() ? 0x8000001d : 4;
  for (unsigned i = 0; __get_cpuid_count(leaf, i, &a, &b, &c, &d) != 0; ++i) {
    const unsigned type = a & 31u, level = a >> 5 & 7u;
    constexpr unsigned kNone = 0, kInstructions = 2, kMost = 16;
    if (type == kNone || i == kMost) break;
    if (type == kInstructions || level >= kLevels) continue;
    const size_t line = (b & 0xfffu) + 1, partitions = (b >> 12 & 0x3ffu) + 1, ways = (b >> 22) + 1;
    found[level] = line * partitions * ways * (size_t{c} + 1);
  }
#endif
  return found;
}

Caches read_caches() {
  Caches found = caches_by_cpuid();
#if defined(_SC_LEVEL4_CACHE_SIZE)
  if (found == Caches{}) {
    constexpr std::array names = {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE,
                                  _SC_LEVEL4_CACHE_SIZE};
    for (size_t i = 0; i < names.size(); ++i) found[i + 1] = static_cast<size_t>(std::max(0L, sysconf(names[i])));
  }
#endif
  return found;
}

/// A virtual machine sees the cache of a whole socket, which it shares with others that it does not see.
constexpr size_t kLargestShare = size_t{16} << 20;

size_t processors() { return static_cast<size_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN))); }

const Caches& caches() {
  static const Caches found = read_caches();
  return found;
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

namespace {

/// What CPUID says in leaf 7, in the registers a and c: compilers differ in the names they have for these.
struct LeafSeven {
  unsigned a = 0, c = 0;
};

LeafSeven leaf_seven([[maybe_unused]] unsigned subleaf) {
  LeafSeven leaf;
#if defined(__x86_64__)
  unsigned b = 0, d = 0;
  if (__get_cpuid_count(7, subleaf, &leaf.a, &b, &leaf.c, &d) == 0) return {};
#endif
  return leaf;
}

}  // namespace

bool converts_to_bf16() {
  static const bool has = (leaf_seven(1).a & (1u << 5)) != 0;
  return has;
}

namespace {

bool has_unaligned_bytes() { return (leaf_seven(0).c & (1u << 1)) != 0; }

std::atomic<bool>& unaligned_bytes() {
  static std::atomic<bool> picked = has_unaligned_bytes();
  return picked;
}

std::atomic<bool>& streams_alone() {
  static std::atomic<bool> alone = has_amd_leaves();
  return alone;
}

}  // namespace

bool picks_unaligned_bytes() { return unaligned_bytes().load(std::memory_order_relaxed); }

void assume_unaligned_bytes(bool picked) { unaligned_bytes() = picked && has_unaligned_bytes(); }

bool reads_streams_alone() { return streams_alone().load(std::memory_order_relaxed); }

void assume_streams_alone(bool alone) { streams_alone() = alone; }

size_t second_level_cache_bytes() { return caches()[2] > 0 ? caches()[2] : size_t{1} << 20; }

size_t last_level_cache_bytes() {
  for (size_t level = kLevels; --level > 1;)
    if (caches()[level] > 0) return caches()[level];
  return size_t{32} << 20;
}

size_t last_level_cache_share() { return std::min(last_level_cache_bytes() / processors(), kLargestShare); }

bool leaves_the_caches(int64_t bytes) {
  static const auto most = static_cast<int64_t>(last_level_cache_share() * processors() / 2);
  return bytes > most;
}

}  // namespace partita
