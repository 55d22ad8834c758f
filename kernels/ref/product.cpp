// SPDX-License-Identifier: Apache-2.0
// The blocked product: tiles of 64 x 256 results, 128 products deep at a time, computed by a 4 x 16 inner block.
#include "kernels/ref/product.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "src/base/cpu.hpp"
#include "src/base/threads.hpp"

namespace partita::ref {
namespace {

constexpr int64_t kTileRows = 64, kTileColumns = 256, kDepth = 128;
constexpr int64_t kBlockRows = 4, kBlockColumns = 16;
/// Not a power of two, or all rows would fall into the same few sets of the cache.
constexpr int64_t kRightStride = kTileColumns + kBlockColumns;

using Vector = float __attribute__((vector_size(32)));
constexpr int64_t kLanes = 8;
static_assert(kBlockColumns == 2 * kLanes);

struct Tile {
  std::vector<float> left = std::vector<float>(kTileRows * kDepth);
  std::vector<float> right = std::vector<float>(kDepth * kRightStride);
  std::vector<double> sums = std::vector<double>(kTileRows * kTileColumns);
};

/// Adds one block's products to its sums; `left` has rows of kDepth, `right` rows of kRightStride.
[[gnu::always_inline]] inline void add_block(const float* left, const float* right, int64_t depth, double* sums) {
  Vector a0{}, a1{}, b0{}, b1{}, c0{}, c1{}, d0{}, d1{};
  for (int64_t k = 0; k < depth; ++k) {
    Vector low, high;
    std::memcpy(&low, right + k * kRightStride, sizeof low);
    std::memcpy(&high, right + k * kRightStride + kLanes, sizeof high);
    a0 += left[k] * low;
    a1 += left[k] * high;
    b0 += left[kDepth + k] * low;
    b1 += left[kDepth + k] * high;
    c0 += left[2 * kDepth + k] * low;
    c1 += left[2 * kDepth + k] * high;
    d0 += left[3 * kDepth + k] * low;
    d1 += left[3 * kDepth + k] * high;
  }
  const Vector results[kBlockRows][2] = {{a0, a1}, {b0, b1}, {c0, c1}, {d0, d1}};
  for (int64_t row = 0; row < kBlockRows; ++row) {
    for (int64_t j = 0; j < kBlockColumns; ++j) sums[row * kTileColumns + j] += results[row][j / kLanes][j % kLanes];
  }
}

[[gnu::always_inline]] inline void add_tile(Tile& tile, int64_t rows, int64_t columns, int64_t depth) {
  for (int64_t j = 0; j < columns; j += kBlockColumns) {
    for (int64_t i = 0; i < rows; i += kBlockRows) {
      add_block(tile.left.data() + i * kDepth, tile.right.data() + j, depth, tile.sums.data() + i * kTileColumns + j);
    }
  }
}

void add_tile_exactly(Tile& tile, int64_t rows, int64_t columns, int64_t depth) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < depth; ++k) {
      const double left = tile.left[static_cast<size_t>(i * kDepth + k)];
      const float* right = tile.right.data() + k * kRightStride;
      double* sums = tile.sums.data() + i * kTileColumns;
      for (int64_t j = 0; j < columns; ++j) sums[j] += left * double{right[j]};
    }
}

void add_tile_anywhere(Tile& tile, int64_t rows, int64_t columns, int64_t depth) {
  add_tile(tile, rows, columns, depth);
}

using AddTile = void (*)(Tile& tile, int64_t rows, int64_t columns, int64_t depth);

#if defined(__x86_64__)
[[gnu::target("avx2,fma")]] void add_tile_avx2(Tile& tile, int64_t rows, int64_t columns, int64_t depth) {
  add_tile(tile, rows, columns, depth);
}
AddTile fastest_add_tile() { return machine_isa() >= Isa::avx2 ? add_tile_avx2 : add_tile_anywhere; }
#else
AddTile fastest_add_tile() { return add_tile_anywhere; }
#endif

/// Computes and stores one tile of one product; what lies beyond the edges is multiplied with zeros.
void compute_tile(const Product& p, AddTile add, Tile& tile, int64_t batch, int64_t i0, int64_t j0) {
  const int64_t rows = std::min(kTileRows, p.rows - i0), columns = std::min(kTileColumns, p.columns - j0);
  const int64_t padded = (columns + kBlockColumns - 1) / kBlockColumns * kBlockColumns;
  std::fill(tile.sums.begin(), tile.sums.end(), 0.0);
  std::fill(tile.left.begin(), tile.left.end(), 0.0f);
  for (int64_t k0 = 0; k0 < p.depth; k0 += kDepth) {
    const int64_t depth = std::min(kDepth, p.depth - k0);
    for (int64_t i = 0; i < rows; ++i) p.left(batch, i0 + i, k0, depth, tile.left.data() + i * kDepth);
    for (int64_t k = 0; k < depth; ++k) {
      float* row = tile.right.data() + k * kRightStride;
      p.right(batch, k0 + k, j0, columns, row);
      std::fill(row + columns, row + padded, 0.0f);
    }
    add(tile, rows, columns, depth);
  }
  for (int64_t i = 0; i < rows; ++i) p.store(batch, i0 + i, j0, columns, tile.sums.data() + i * kTileColumns);
}

}  // namespace

void multiply_all(const Product& product) {
  const int64_t across = (product.columns + kTileColumns - 1) / kTileColumns;
  const int64_t down = (product.rows + kTileRows - 1) / kTileRows;
  const AddTile add = product.exact ? add_tile_exactly : fastest_add_tile();
  const auto part = [&](int64_t begin, int64_t end) {
    Tile tile;
    for (int64_t t = begin; t < end; ++t) {
      compute_tile(product, add, tile, t / (across * down), t % down * kTileRows, t / down % across * kTileColumns);
    }
  };
  const int64_t tiles = product.batches * across * down;
  if (!product.parallel) return part(0, tiles);
  const int64_t cost =
      std::min(product.rows, kTileRows) * std::min(product.columns, kTileColumns) * (product.depth + 1);
  parallel_for(tiles, cost, part);
}

}  // namespace partita::ref
