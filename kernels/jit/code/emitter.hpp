// SPDX-License-Identifier: Apache-2.0
// Emitter: machine code for lane operations, the same text for AVX2 and AVX-512.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <vector>

#include "kernels/jit/code/code_memory.hpp"
#include "kernels/jit/code/fetching.hpp"
#include "kernels/jit/code/lanes.hpp"
#include "kernels/jit/code/xbyak.hpp"
#include "kernels/kernel.hpp"
#include "src/base/round.hpp"

namespace partita::jit {

/// Of vectors that follow each other: whether the one `behind` bytes behind the first one is the first in its cache
/// line, where the one before it has `bytes` bytes.
constexpr bool begins_line(int64_t behind, int64_t bytes) {
  const int64_t before = behind - bytes;
  return before < 0 || before / kCacheLine != behind / kCacheLine;
}

/// 32-bit lanes of a vector.
constexpr int lanes_of(Isa isa) { return isa == Isa::avx512 ? 16 : 8; }

/// The width is a value, not a template argument. The last kScratch vector registers belong to conversions.
class Emitter : private CodeMemory, public Xbyak::CodeGenerator {
 public:
  static constexpr int kScratch = 4;
  static constexpr int kFoldedRows = 4;

  explicit Emitter(Isa isa)
      : Xbyak::CodeGenerator(kInitialBytes, Xbyak::AutoGrow, static_cast<CodeMemory*>(this)),
        wide_(isa == Isa::avx512),
        converts_bf16_(wide_ && converts_to_bf16()),
        shifts_bits_(wide_ && picks_unaligned_bytes()) {}
  /// Denormals of bf16 survive stores, too; the instruction that converts makes zeros of them, so vectors that have
  /// some take longer.
  void keep_denormals() { keeps_denormals_ = true; }

  bool wide() const { return wide_; }
  Isa isa() const { return wide_ ? Isa::avx512 : Isa::avx2; }
  /// 32-bit lanes of a vector.
  int lanes() const { return lanes_of(isa()); }
  int vector_bytes() const { return lanes() * 4; }
  /// Vector registers free for values.
  int value_registers() const { return (wide_ ? 32 : 16) - kScratch; }

  Xbyak::Xmm vec(int i) const { return wide_ ? Xbyak::Xmm(Xbyak::Zmm(i)) : Xbyak::Xmm(Xbyak::Ymm(i)); }
  Xbyak::Xmm scratch(int i) const { return vec(value_registers() + i); }

  /// AVX-512: the mask of a comparison in k2, and what takes it from there.
  void compare(const Lane& lane, Xbyak::Xmm a, Xbyak::Xmm b);
  void select(Xbyak::Xmm dst, Xbyak::Xmm yes, Xbyak::Xmm no);
  void select_or_zero(Xbyak::Xmm dst, Xbyak::Xmm yes);
  /// AVX-512: the mask of lanes of ones.
  void take_condition(Xbyak::Xmm mask) { vpmovd2m(k2, mask); }
  /// AVX-512: before anything is unpacked, once. Uses k3 from then on, and eax now.
  void prepare_unpack();
  /// dst = op of a, b, c (registers). Not for load, store, skeleton, constant, index, number.
  /// A round of random numbers uses scratch 0 and 1.
  void compute(const Lane& lane, Xbyak::Xmm dst, Xbyak::Xmm a, Xbyak::Xmm b, Xbyak::Xmm c);
  /// Whether operand `k` of the operation may come from memory.
  bool takes_memory(const Lane& lane, int k) const;
  /// The same with operand `k` in memory; `in` are the others.
  void compute(const Lane& lane, Xbyak::Xmm dst, const Xbyak::Xmm (&in)[3], int k, const Xbyak::Address& memory);
  /// dst = the f32 (or whatever) bits in every lane.
  void broadcast_bits(Xbyak::Xmm dst, int32_t bits);

  /// How an operand is walked along the innermost axis.
  enum class Walk : uint8_t { same, next };
  /// AVX-512 alone: the mask of partial vectors that have elements [begin, end) stays in a register from here on: the
  /// first one in k6, others in k5, k4, ..
  void hold_mask(int begin, int end);
  /// Loads `count` <= lanes() elements at `address` (register expression) as f32, or as s32 where that is their type.
  void load(Xbyak::Xmm dst, Dtype dtype, Walk walk, const Xbyak::RegExp& address, int count);
  /// The same of elements [begin, end) of a vector at `address`, zeros around them. AVX-512 alone; uses k1 and rax.
  void load_between(Xbyak::Xmm dst, Dtype dtype, const Xbyak::RegExp& address, int begin, int end);
  /// The same with elements of 2 bytes as they are, two a lane.
  void load_halves_between(Xbyak::Xmm dst, const Xbyak::RegExp& address, int begin, int end);
  /// Lanes [begin, end) of a vector; `at` is where the first lane's element would be.
  struct Piece {
    Xbyak::RegExp at;
    int begin, end;
  };
  /// The same of elements that lie in several pieces, for vectors whose pieces lie `apart` bytes from each other.
  /// Between pieces stays what the registers have: 0, or bits that become a number of that type.
  void load_pieces(const std::vector<Xbyak::Xmm>& to, Dtype dtype, const std::vector<Piece>& pieces, int apart = 0);
  void load_halves_pieces(const std::vector<Xbyak::Xmm>& to, const std::vector<Piece>& pieces, int apart = 0);
  /// Of the bf16 elements at `address`, twice as many as there are lanes, those at odd or those at even places, as f32.
  void load_every_other(Xbyak::Xmm dst, const Xbyak::RegExp& address, bool odd);
  /// Converts and stores `count` elements; `streaming` bypasses the caches (address aligned to the bytes stored, or to
  /// a piece of stream_in_pieces).
  void store(Xbyak::Xmm value, Dtype dtype, bool integer, const Xbyak::RegExp& address, int count, bool streaming);
  /// From here on streaming stores go in pieces of 16 or 32 bytes, each aligned to itself, where a vector is wider;
  /// parts of a vector that are whole pieces are streamed, too. Stores then use scratch 0 besides.
  void stream_in_pieces(int bytes) { stream_piece_ = bytes; }
  /// to += bytes, to a register or memory of 64 bits. Uses rax where the distance does not fit 32 bits.
  void advance(const Xbyak::Operand& to, int64_t bytes);
  /// Fetches a cache line that a stream of reads at `from` will read. In turns: by who reads line by line, and from
  /// elsewhere at every call; uses rax then.
  void fetch_line(const Xbyak::RegExp& from, Fetching fetching);
  /// dst's lower half = value as 16-bit elements side by side. AVX-512 alone; uses scratch 0 to 2, dst may be one.
  void to_halves(Xbyak::Xmm dst, Xbyak::Xmm value, Dtype dtype, bool integer);
  /// acc = fold(acc, value) in the first `count` lanes. Uses all scratch but 2.
  void fold_into(Xbyak::Xmm acc, Xbyak::Xmm value, Fold fold, int count);
  /// The lowest four lanes of dst = fold of all lanes of a. Uses all scratch but 2.
  void fold_lanes(Xbyak::Xmm dst, Xbyak::Xmm a, Fold fold);
  /// The f32 at `address` = fold(itself, all lanes of acc). Changes acc; uses all scratch but 2.
  void fold_lanes_to_memory(Xbyak::Xmm acc, Fold fold, const Xbyak::RegExp& address);
  /// The same for the f32 at `address` and the following ones with accumulators number acc, acc + 1, .. acc +
  /// kFoldedRows - 1: in the same order, but together. Uses all scratch.
  void fold_rows_to_memory(int acc, Fold fold, const Xbyak::RegExp& address);
  /// The `count` f32 at `address` = fold(themselves, value). Uses all scratch.
  void fold_to_memory(Xbyak::Xmm value, Fold fold, const Xbyak::RegExp& address, int count);
  /// The same where there is memory for a whole vector, which is quicker to read again.
  void fold_to_slot(Xbyak::Xmm value, Fold fold, const Xbyak::RegExp& address, int count);
  /// Loads or stores `count` elements of 1, 2 or 4 bytes as they are, one a lane: loads fill up with zeros, stores drop
  /// the upper bytes. Stores use scratch 3; `streaming` as above.
  void load_bytes(Xbyak::Xmm dst, int bytes, const Xbyak::RegExp& address, int count);
  void store_bytes(Xbyak::Xmm v, int bytes, const Xbyak::RegExp& address, int count, bool streaming);
  /// Moves a power of two of bytes, up to a vector of AVX-512; streaming ones are vectors of this code. Uses vector
  /// register 0 or rcx.
  void move_bytes(int bytes, const Xbyak::RegExp& from, const Xbyak::RegExp& to, bool streaming);
  /// Stores `count` elements of 16 bits that lie side by side in a whole vector. AVX-512 alone.
  void store_words(Xbyak::Xmm v, const Xbyak::RegExp& address, int count, bool streaming);
  /// Loads `count` elements of 4 bytes that lie `step` elements apart. Uses scratch 0 and 1.
  void load_apart(Xbyak::Xmm dst, const Xbyak::RegExp& address, int step, int count);
  /// Whether load and store know the type, and whether values can be rounded to it.
  static bool loads(Dtype dtype);
  /// Types of 4 bits, which load knows, too: elements from a whole byte on, the first one in its low half.
  static bool unpacks(Dtype dtype) { return dtype == Dtype::s4 || dtype == Dtype::u4; }
  /// `count` elements of types of four bits, in the lowest ones of lanes whose others may be anything, with bit_places
  /// in a register. AVX-512 alone.
  void load_four_bits(Xbyak::Xmm dst, Xbyak::Xmm places, const Xbyak::RegExp& address, int count);
  static bool stores(Dtype dtype);
  static bool casts(Dtype dtype);

  /// The bits in every lane, as an instruction's last operand.
  Xbyak::Address everywhere(int32_t bits);
  /// A whole vector of numbers, one a lane, as an instruction's last operand.
  Xbyak::Address pattern(const std::vector<int32_t>& numbers);
  /// AVX-512 alone: numbers of 16 bits, of which a vector holds so many.
  static constexpr int kWords = 32;
  Xbyak::Address words(const std::vector<int32_t>& each) { return pattern(pairs_of(each)); }
  Xbyak::Address words(int64_t each) { return words(std::vector<int32_t>(kWords, static_cast<int32_t>(each))); }
  /// Of words, as lanes.
  static std::vector<int32_t> pairs_of(const std::vector<int32_t>& words);
  /// The order that takes words from both halves of a vector in turns.
  static std::vector<int32_t> halves_in_turns();
  /// Where the numbers 0, 1, 2, .. lie, one a lane.
  Xbyak::Label& lane_numbers() { return lane_numbers_used_ = true, lane_numbers_; }

  /// Emits the code that rarely runs, then the constants used; call once behind the code.
  void emit_constants();
  /// Executable and no longer writable. Perf and the code file get to know it.
  const uint8_t* finish();

 protected:
  static constexpr size_t kInitialBytes = 8192;

 private:
  Xbyak::Address constant(int32_t bits);
  Xbyak::Address upper_words(int half);
  void each_piece(const std::vector<Xbyak::Xmm>& to, const std::vector<Piece>& pieces, int apart,
                  const std::function<void(const Xbyak::Xmm& masked, const Xbyak::RegExp& at)>& load);
  static Xbyak::Opmask held_mask(size_t number) { return Xbyak::Opmask(6 - static_cast<int>(number)); }
  void set_mask(const Xbyak::Opmask& mask, int begin, int end);
  Xbyak::Opmask mask_of(int begin, int end);
  void load_masked(const Xbyak::Xmm& dst, int bytes, const Xbyak::RegExp& address);
  void load_same(Xbyak::Xmm dst, Dtype dtype, const Xbyak::RegExp& address);
  /// The first bytes of a vector, zeros behind them. In the largest pieces there are: on some processors masked stores
  /// of AVX2 take dozens of cycles, and masked loads are not seen by what fetches ahead.
  void load_first(const Xbyak::Xmm& dst, const Xbyak::RegExp& address, int bytes);
  /// More than 16 bytes use scratch 3.
  void store_first(Xbyak::Xmm v, const Xbyak::RegExp& address, int bytes);
  void load_bytes_of_bits(Xbyak::Xmm bytes, const Xbyak::RegExp& address, int count);
  void load_packed(Xbyak::Xmm dst, Dtype dtype, const Xbyak::RegExp& address, int count);
  void widen(Xbyak::Xmm dst, Dtype dtype);
  void halves_to_f32(Xbyak::Xmm v);
  void widen_f8(Xbyak::Xmm v, Dtype dtype);
  void narrow_f8(Xbyak::Xmm v, Dtype dtype);
  void round_to_bf16(Xbyak::Xmm v);
  void round_to_halves(Xbyak::Xmm dst, Xbyak::Xmm value);
  void convert_or(std::initializer_list<Xbyak::Xmm> values, const std::function<void()>& instruction,
                  const std::function<void()>& otherwise);
  Xbyak::Xmm reaching(Xbyak::Xmm v, int bytes) const;
  void store_halves(Xbyak::Xmm packed, const Xbyak::RegExp& address, int count, bool streaming);
  bool in_pieces(int bytes, bool streaming) const {
    return streaming && stream_piece_ > 0 && bytes % stream_piece_ == 0;
  }
  void stream(Xbyak::Xmm v, const Xbyak::RegExp& address, int bytes);
  void to_integer(Xbyak::Xmm v, Dtype dtype);
  void to_s32(Xbyak::Xmm v);
  void is_not_zero(Xbyak::Xmm v);
  void fold_pair(Xbyak::Xmm dst, Xbyak::Xmm a, Xbyak::Xmm b, Fold fold);
  void fold_parts(Xbyak::Xmm dst, Xbyak::Xmm a, Xbyak::Xmm b, Fold fold, bool halves);
  void fold_inside_quarters(Xbyak::Xmm dst, Xbyak::Xmm a, Fold fold);
  void keep_lanes(Xbyak::Xmm dst, Xbyak::Xmm a, Xbyak::Xmm others, int count);
  void compare(Xbyak::Xmm dst, Xbyak::Xmm a, Xbyak::Xmm b, uint8_t predicate);
  void philox_round(Xbyak::Xmm dst, Xbyak::Xmm counter, const Xbyak::Operand& key);
  Xbyak::Address half_of_table(int32_t imm);
  Xbyak::Address bit_places();
  void lookup_in_two(Xbyak::Xmm dst, Xbyak::Xmm a, Xbyak::Xmm first, const Xbyak::Operand& rest);
  void rectify(Xbyak::Xmm dst, Xbyak::Xmm a);
  void cast(Xbyak::Xmm dst, Xbyak::Xmm a, Dtype dtype);
  void pack(Xbyak::Xmm dst, Xbyak::Xmm a, Xbyak::Xmm b, Dtype dtype);
  Xbyak::Xmm half(Xbyak::Xmm v) const { return wide_ ? Xbyak::Xmm(Xbyak::Ymm(v.getIdx())) : Xbyak::Xmm(v.getIdx()); }
  Xbyak::Xmm low(Xbyak::Xmm v) const { return Xbyak::Xmm(v.getIdx()); }

  bool wide_;
  int stream_piece_ = 0;                         // 0: whole vectors
  std::vector<std::pair<int, int>> held_masks_;  // of elements
  bool converts_bf16_;                           // AVX512_BF16
  bool shifts_bits_;                             // AVX512_VBMI
  bool keeps_denormals_ = false;
  std::vector<std::function<void()>> rare_;    // code that stands behind the kernel's
  size_t instructions_ = 0;                    // bytes before the constants
  std::map<int32_t, Xbyak::Label> constants_;  // one lane each
  std::map<int32_t, Xbyak::Label> vectors_;    // AVX2 has no operands that repeat a lane
  std::map<std::vector<int32_t>, Xbyak::Label> patterns_;
  Xbyak::Label masks_;  // eight lanes of ones, eight of zeros
  Xbyak::Label lane_numbers_;
  bool masks_used_ = false, lane_numbers_used_ = false;
};

}  // namespace partita::jit
