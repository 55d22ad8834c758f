// SPDX-License-Identifier: Apache-2.0
// CodeMemory: the pages of one code generator.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/jit/code/xbyak.hpp"

namespace partita::jit {

/// Pages straight from the system, readable and writable. Xbyak's own allocator lists them in a container, and loses
/// them where the container gets no memory; a generator has two blocks at most, while it grows.
class CodeMemory : public Xbyak::Allocator {
 public:
  CodeMemory() = default;
  ~CodeMemory() override;
  CodeMemory(const CodeMemory&) = delete;
  CodeMemory& operator=(const CodeMemory&) = delete;

  /// Throws Xbyak::Error where the system gives none.
  uint8_t* alloc(size_t bytes) override;
  void free(uint8_t* block) override;

 private:
  struct Block {
    uint8_t* begin = nullptr;
    size_t bytes = 0;
  };
  std::array<Block, 2> blocks_{};
};

}  // namespace partita::jit
