// SPDX-License-Identifier: Apache-2.0
// Pages of code generators.
#include "kernels/jit/code/code_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "src/base/check.hpp"

namespace partita::jit {

CodeMemory::~CodeMemory() {
  for (const Block& block : blocks_) PT_ASSERT(block.begin == nullptr);
}

uint8_t* CodeMemory::alloc(size_t bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  bytes = (bytes + page - 1) / page * page;
  const auto unused = std::ranges::find(blocks_, nullptr, &Block::begin);
  PT_ASSERT(unused != blocks_.end());
  void* const begin = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (begin == MAP_FAILED) throw Xbyak::Error(Xbyak::ERR_CANT_ALLOC);
  *unused = {static_cast<uint8_t*>(begin), bytes};
  return unused->begin;
}

void CodeMemory::free(uint8_t* block) {
  const auto at = std::ranges::find(blocks_, block, &Block::begin);
  if (block == nullptr || at == blocks_.end()) return;
  munmap(at->begin, at->bytes);  // nothing can be done where it fails
  *at = {};
}

}  // namespace partita::jit
