// SPDX-License-Identifier: Apache-2.0
// Memory that ends at a page nobody may touch: a kernel that reads or writes behind its tensor faults at once.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <new>
#include <utility>

namespace partita::test {

/// `size` bytes, the last one just before the guard page. Aligned to 64 where size is a multiple of 64. Of those filled
/// with zeros only pages that are written take memory.
class GuardedMemory {
 public:
  GuardedMemory(size_t size, unsigned char fill) : size_(size) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    mapped_ = (size + page - 1) / page * page + page;
    base_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base_ == MAP_FAILED) throw std::bad_alloc();
    mprotect(static_cast<std::byte*>(base_) + mapped_ - page, page, PROT_NONE);
    data_ = static_cast<std::byte*>(base_) + mapped_ - page - size;
    if (fill != 0) std::memset(data_, fill, size);
  }
  GuardedMemory(GuardedMemory&& other) noexcept
      : base_(std::exchange(other.base_, MAP_FAILED)), mapped_(other.mapped_), size_(other.size_), data_(other.data_) {}
  GuardedMemory& operator=(GuardedMemory&&) = delete;
  ~GuardedMemory() {
    if (base_ != MAP_FAILED) munmap(base_, mapped_);
  }

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  void* base_ = MAP_FAILED;
  size_t mapped_ = 0, size_ = 0;
  std::byte* data_ = nullptr;
};

}  // namespace partita::test
