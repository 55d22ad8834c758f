// SPDX-License-Identifier: Apache-2.0
// What the processor can do. PARTITA_MAX_ISA lowers machine_isa() and nothing else here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace partita {

/// Instruction sets kernels ask for; each includes the ones before it.
enum class Isa : uint8_t { any, avx2, avx512 };

std::string_view name_of(Isa isa);
/// The best the machine has that PARTITA_MAX_ISA allows: avx2 means AVX2+FMA+F16C, avx512 means F, BW, DQ and VL beside
/// it.
Isa machine_isa();
/// Whether the machine has AVX512_BF16, which rounds f32 to bf16 in one instruction (denormals become zero). For code
/// that machine_isa() lets use AVX-512.
bool converts_to_bf16();
/// Whether the machine has AVX512_VBMI, which picks bytes that begin at any bit. For code of Isa::avx512.
bool picks_unaligned_bytes();
/// For tests, which try code without it, too: what picks_unaligned_bytes says from here on, where the machine has it.
void assume_unaligned_bytes(bool picked);
/// Whether the processor's own prefetching reads a stream at memory's speed where nothing is written meanwhile, or much
/// computed, so that lines fetched by instructions only hold it up: AMD's, by measurement.
bool reads_streams_alone();
/// For tests, which try both kinds on any machine: what reads_streams_alone says from here on. Threads that compile
/// meanwhile may see either.
void assume_streams_alone(bool alone);
/// Bytes of a core's own second-level cache; 1 MiB where it cannot be read.
size_t second_level_cache_bytes();
/// Bytes of the last-level cache that a core reaches; 32 MiB where it cannot be read.
size_t last_level_cache_bytes();
/// The same, divided by the number of processors, but 16 MiB at most: a virtual machine sees the cache of a whole
/// socket, which it shares.
size_t last_level_cache_share();
/// Whether a result of so many bytes is better stored past the caches: more than half of the processors' shares of the
/// last level together.
bool leaves_the_caches(int64_t bytes);

}  // namespace partita
