// SPDX-License-Identifier: Apache-2.0
// Fills and compares in blocks that threads share.
#include "tests/bench/memory.hpp"

#include <array>
#include <cmath>
#include <cstring>
#include <new>
#include <vector>

#include "src/base/dtype.hpp"
#include "src/base/text.hpp"

namespace partita::bench {
namespace {

constexpr size_t kPage = 4096;
constexpr int64_t kBlock = 4096;
using Block = std::array<float, kBlock>;

/// Calls work(block number, first element, count) for each block of `elements`.
template <class Work>
void for_each_block(int64_t elements, Work work) {
  const int64_t blocks = (elements + kBlock - 1) / kBlock;
#pragma omp parallel for schedule(static)
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t first = block * kBlock;
    work(block, first, std::min(kBlock, elements - first));
  }
}

/// splitmix64's finalizer.
uint64_t scrambled(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

/// What one block found; summed in the order of blocks.
struct Finding {
  int64_t wrong = 0;
  int64_t first = 0;
  double got = 0, expected = 0;
};

double root_mean_square(const void* data, Dtype dtype, int64_t elements) {
  std::vector<double> sums(static_cast<size_t>((elements + kBlock - 1) / kBlock));
  for_each_block(elements, [&](int64_t block, int64_t first, int64_t count) {
    Block values;
    load_floats(data, dtype, first, count, values.data());
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += double{values[i]} * values[i];
    sums[static_cast<size_t>(block)] = sum;
  });
  double sum = 0;
  for (double part : sums) sum += part;
  return elements > 0 ? std::sqrt(sum / static_cast<double>(elements)) : 0;
}

}  // namespace

Memory::Memory(size_t bytes) : bytes_(bytes) {
  data_.reset(std::aligned_alloc(kPage, (bytes + kPage) / kPage * kPage));
  if (!data_) throw std::bad_alloc();
}

void fill(void* data, const Shape& shape, Range range, uint64_t seed) {
  const float scale = (range.high - range.low) * 0x1p-24f;
  for_each_block(shape.elements(), [&](int64_t, int64_t first, int64_t count) {
    Block values;
    for (int64_t i = 0; i < count; ++i) {
      const uint64_t bits = scrambled(static_cast<uint64_t>(first + i) * 0x9e3779b97f4a7c15u + seed);
      values[i] = range.low + scale * static_cast<float>(bits >> 40);
    }
    store_floats(data, shape.dtype, first, count, values.data());
  });
}

void fill_with_nan(const Memory& memory) { std::memset(memory.data(), 0xff, memory.bytes()); }

void widen(const void* from, Dtype dtype, int64_t elements, float* to) {
  for_each_block(elements,
                 [&](int64_t, int64_t first, int64_t count) { load_floats(from, dtype, first, count, to + first); });
}

std::string difference(const void* got, Dtype got_dtype, const void* expected, Dtype expected_dtype, int64_t elements,
                       double tolerance) {
  const double scale = root_mean_square(expected, expected_dtype, elements);
  std::vector<Finding> findings(static_cast<size_t>((elements + kBlock - 1) / kBlock));
  for_each_block(elements, [&](int64_t block, int64_t first, int64_t count) {
    Block ours, theirs;
    load_floats(got, got_dtype, first, count, ours.data());
    load_floats(expected, expected_dtype, first, count, theirs.data());
    Finding& finding = findings[static_cast<size_t>(block)];
    for (int64_t i = 0; i < count; ++i) {
      const double a = ours[i], b = theirs[i];
      if (std::abs(a - b) <= tolerance * std::max(std::abs(b), scale)) continue;  // false for NaN
      if (finding.wrong++ == 0) finding = {1, first + i, a, b};
    }
  });
  Finding all;
  for (const Finding& f : findings) {
    if (all.wrong == 0) all = {0, f.first, f.got, f.expected};
    all.wrong += f.wrong;
  }
  if (all.wrong == 0) return {};
  return str(all.wrong, " of ", elements, " elements differ, the first at ", all.first, ": ", all.got,
             " where oneDNN has ", all.expected);
}

}  // namespace partita::bench
