// SPDX-License-Identifier: Apache-2.0
// Transposing copies of few rows: so many source rows become one run with their elements in turns, or one run becomes
// so many destination rows (the channels of an image go last, or come first). A vector of the result takes what it
// needs of each source vector: by one permutation, into the lanes that are that vector's.
//   rdi, rsi the first source and destination element of the block; r9 blocks and rcx tiles left; eax is used by masks.
//   k1 belongs to partial vectors, k2 to k6 hold masks, k7 those that find no register.
#include <algorithm>
#include <array>

#include "kernels/jit/flat/transpose.hpp"

namespace partita::jit {
namespace {

using Xbyak::Zmm;

constexpr int kLeast = 2, kMost = 8;  ///< rows
constexpr int kFirstIndex = 16, kFirstResult = 8;
constexpr int kFirstMask = 2;
constexpr size_t kHeldMasks = 5;

/// Where the lanes of result vector `result` are: of which source vector, and in which lane of it.
struct Origin {
  int vector, lane;
};

class Turns {
 public:
  Turns(int rows, int lanes, bool interleaves) : rows_(rows), lanes_(lanes), interleaves_(interleaves) {}

  /// Source and result each have `rows` vectors.
  Origin origin(int result, int lane) const {
    if (interleaves_) {
      const int place = result * lanes_ + lane;
      return {place % rows_, place / rows_};
    }
    const int place = lane * rows_ + result;
    return {place / lanes_, place % lanes_};
  }
  /// In the lanes of source vectors from `vector` on: what comes later goes over it. Interleaved ones are in no order.
  uint32_t mask(int result, int vector) const {
    uint32_t mask = 0;
    for (int lane = 0; lane < lanes_; ++lane) {
      const int from = origin(result, lane).vector;
      if (interleaves_ ? from == vector : from >= vector) mask |= uint32_t{1} << lane;
    }
    return mask;
  }
  /// The lanes of all sources, as permutations of words or doublewords read them.
  std::vector<int32_t> index(int result) const {
    std::vector<int32_t> numbers(16, 0);
    for (int lane = 0; lane < lanes_; ++lane) {
      const int from = origin(result, lane).lane;
      numbers[static_cast<size_t>(lane * 16 / lanes_)] |= lanes_ == 32 && lane % 2 == 1 ? from << 16 : from;
    }
    return numbers;
  }

 private:
  int rows_, lanes_;
  bool interleaves_;
};

bool are_few(int64_t rows) { return rows >= kLeast && rows <= kMost; }

}  // namespace

/// Few source rows become a run.
bool TransposeKernel::interleaves() const {
  return wide() && shape_.bytes > 1 && shape_.step == 1 && are_few(shape_.a) && shape_.b >= lanes() &&
         shape_.dst_row == shape_.a * shape_.bytes;
}

/// A run becomes few destination rows.
bool TransposeKernel::separates() const {
  return wide() && shape_.bytes > 1 && shape_.step == 1 && are_few(shape_.b) && shape_.a >= lanes() &&
         shape_.src_row == shape_.b * shape_.bytes;
}

void TransposeKernel::emit_interleaved() {
  const bool joins = interleaves();
  const int rows = static_cast<int>(joins ? shape_.a : shape_.b), width = kCacheLine / shape_.bytes;
  const int64_t length = joins ? shape_.b : shape_.a;
  const Turns turns(rows, width, joins);
  std::map<uint32_t, int> held;
  for (int result = 0; result < rows; ++result) {
    vmovdqu32(Zmm(kFirstIndex + result), pattern(turns.index(result)));
    for (int vector = 1; vector < rows && held.size() < kHeldMasks; ++vector) {
      const auto [place, is_new] =
          held.try_emplace(turns.mask(result, vector), static_cast<int>(held.size()) + kFirstMask);
      if (!is_new) continue;
      mov(eax, place->first);
      kmovd(Xbyak::Opmask(place->second), eax);
    }
  }
  const auto in_rows = [&](const Xbyak::Reg64& base, int row, int64_t distance) {
    return base + static_cast<int>(row * distance);
  };
  /// `count` elements of each row; the run has `rows` times as many.
  const auto in_run = [&](int vector, int count) { return std::clamp(count * rows - vector * width, 0, width); };
  const auto block = [&](int count) {
    for (int v = 0; v < rows; ++v) {
      const int elements = joins ? count : in_run(v, count);
      if (elements == 0) continue;
      const Xbyak::RegExp from = joins ? in_rows(rdi, v, shape_.src_row) : rdi + v * kCacheLine;
      shape_.bytes == 2 ? load_halves_between(Zmm(v), from, 0, elements) : load_bytes(Zmm(v), 4, from, elements);
    }
    for (int r = 0; r < rows; ++r) {
      const int elements = joins ? in_run(r, count) : count;
      if (elements == 0) continue;
      const Zmm result(kFirstResult + r), index(kFirstIndex + r);
      const auto permute = [&](const Zmm& to, int v) {
        shape_.bytes == 2 ? vpermw(to, index, Zmm(v)) : vpermd(to, index, Zmm(v));
      };
      permute(result, 0);
      for (int v = 1; v < rows; ++v) {
        const uint32_t mask = turns.mask(r, v);
        const auto found = held.find(mask);
        if (found == held.end()) {
          mov(eax, mask);
          kmovd(k7, eax);
        }
        permute(result | (found == held.end() ? k7 : Xbyak::Opmask(found->second)), v);
      }
      const Xbyak::RegExp to = joins ? rsi + r * kCacheLine : in_rows(rsi, r, shape_.dst_row);
      const bool streams = shape_.streaming && elements == width;
      shape_.bytes == 2 ? store_words(result, to, elements, streams) : store_bytes(result, 4, to, elements, streams);
    }
  };
  emit_tiles([&] {
    Xbyak::Label next;
    if (length >= width) {
      mov(r9, length / width);
      align(16);
      L(next);
      block(width);
      add(rdi, joins ? kCacheLine : rows * kCacheLine);
      add(rsi, joins ? rows * kCacheLine : kCacheLine);
      dec(r9);
      jnz(next, T_NEAR);
    }
    if (length % width > 0) block(static_cast<int>(length % width));
  });
}

}  // namespace partita::jit
