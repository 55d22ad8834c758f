// SPDX-License-Identifier: Apache-2.0
// The C library's allocation functions and two of the system's calls, in front of the real ones.
#include "tests/faults/failing_memory.hpp"

#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <limits>

// The C library's own, under the names it has for programs like this one.
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);
}

namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
std::atomic<int64_t> left{kNever};  ///< requests until the one that fails
std::atomic<bool> stays{false}, happened{false};
std::atomic<int64_t> blocks{0}, bytes{0}, mapped{0};
std::atomic<int> no_code{-1};

struct Range {
  uintptr_t begin = 0, end = 0;
};

/// Where the code of OpenMP's runtime lies.
Range openmp() {
  static const Range found = [] {
    Range range;
    dl_iterate_phdr(
        [](dl_phdr_info* library, size_t, void* to) {
          if (!std::strstr(library->dlpi_name, "gomp") && !std::strstr(library->dlpi_name, "omp.so")) return 0;
          auto& range = *static_cast<Range*>(to);
          range.begin = library->dlpi_addr;
          for (int i = 0; i < library->dlpi_phnum; ++i)
            range.end =
                std::max(range.end, library->dlpi_addr + library->dlpi_phdr[i].p_vaddr + library->dlpi_phdr[i].p_memsz);
          return 1;
        },
        &range);
    return range;
  }();
  return found;
}

bool fails(void* caller) {
  if (left.load(std::memory_order_relaxed) == kNever) return false;
  const auto at = reinterpret_cast<uintptr_t>(caller);
  const Range runtime = openmp();
  if (at >= runtime.begin && at < runtime.end) return false;
  const int64_t now = left.fetch_sub(1) - 1;
  if (now > 0) return false;
  if (now < 0 && !stays) return false;
  happened = true;
  errno = ENOMEM;
  return true;
}

void* taken(void* p) {
  if (p) {
    ++blocks;
    bytes += static_cast<int64_t>(malloc_usable_size(p));
  }
  return p;
}

void given(void* p) {
  if (!p) return;
  --blocks;
  bytes -= static_cast<int64_t>(malloc_usable_size(p));
}

}  // namespace

extern "C" {

[[gnu::noinline]] void* malloc(size_t n) noexcept {
  return fails(__builtin_return_address(0)) ? nullptr : taken(__libc_malloc(n));
}
[[gnu::noinline]] void* calloc(size_t n, size_t size) noexcept {
  return fails(__builtin_return_address(0)) ? nullptr : taken(__libc_calloc(n, size));
}
[[gnu::noinline]] void* realloc(void* p, size_t n) noexcept {
  if (fails(__builtin_return_address(0))) return nullptr;
  const auto before = static_cast<int64_t>(p ? malloc_usable_size(p) : 0);
  void* const q = __libc_realloc(p, n);
  if (!q && n > 0) return nullptr;
  blocks += (q != nullptr) - (p != nullptr);
  bytes += static_cast<int64_t>(q ? malloc_usable_size(q) : 0) - before;
  return q;
}
[[gnu::noinline]] void* memalign(size_t alignment, size_t n) noexcept {
  return fails(__builtin_return_address(0)) ? nullptr : taken(__libc_memalign(alignment, n));
}
[[gnu::noinline]] void* aligned_alloc(size_t alignment, size_t n) noexcept {
  return fails(__builtin_return_address(0)) ? nullptr : taken(__libc_memalign(alignment, n));
}
[[gnu::noinline]] int posix_memalign(void** to, size_t alignment, size_t n) noexcept {
  if (fails(__builtin_return_address(0))) return ENOMEM;
  void* const p = taken(__libc_memalign(alignment, n));
  if (!p) return ENOMEM;
  *to = p;
  return 0;
}
void free(void* p) noexcept {
  given(p);
  __libc_free(p);
}

void* mmap(void* address, size_t n, int protection, int flags, int file, off_t offset) noexcept {
  const int how = no_code;
  const bool both = (protection & PROT_WRITE) && (protection & PROT_EXEC);
  if (how == static_cast<int>(partita::test::NoCodeMemory::How::no_pages) ||
      (how == static_cast<int>(partita::test::NoCodeMemory::How::no_both_at_once) && both)) {
    errno = how == 0 ? ENOMEM : EACCES;
    return MAP_FAILED;
  }
  const long got = syscall(SYS_mmap, address, n, protection, flags, file, offset);
  if (got != -1) mapped += static_cast<int64_t>(n);
  return got == -1 ? MAP_FAILED : reinterpret_cast<void*>(got);
}

int munmap(void* address, size_t n) noexcept {
  const long got = syscall(SYS_munmap, address, n);
  if (got == 0) mapped -= static_cast<int64_t>(n);
  return static_cast<int>(got);
}

int mprotect(void* address, size_t n, int protection) noexcept {
  using How = partita::test::NoCodeMemory::How;
  const int how = no_code;
  const bool executable = protection & PROT_EXEC;
  if ((how == static_cast<int>(How::no_execution) && executable) ||
      (how == static_cast<int>(How::no_both_at_once) && executable && (protection & PROT_WRITE))) {
    errno = EACCES;
    return -1;
  }
  return static_cast<int>(syscall(SYS_mprotect, address, n, protection));
}
}

namespace partita::test {

Heap heap() { return {blocks, bytes}; }
int64_t mapped_bytes() { return mapped; }

FailingMemory::FailingMemory(int64_t nth, bool stay) {
  openmp();
  ::stays = stay;
  ::happened = false;
  ::left = nth;
}
FailingMemory::~FailingMemory() { ::left = kNever; }
bool FailingMemory::happened() const { return ::happened; }

NoCodeMemory::NoCodeMemory(How how) { no_code = static_cast<int>(how); }
NoCodeMemory::~NoCodeMemory() { no_code = -1; }

}  // namespace partita::test
