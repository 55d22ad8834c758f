// SPDX-License-Identifier: Apache-2.0
// PoolCode: what kernels of poolings that read windows and store what becomes of them in one loop have in common.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <variant>
#include <vector>

#include "kernels/jit/code/body.hpp"
#include "kernels/jit/flat/stream_copy.hpp"
#include "kernels/jit/pool/held_folds.hpp"
#include "kernels/jit/pool/plan.hpp"
#include "src/base/round.hpp"

namespace partita::jit {

/// Code that walks several tensors at once: rdi is the call, whose first member points to one address a stream; where
/// each stream is, the stack holds, or a register. Uses rax and rdx for a moment.
class PoolCode : protected Emitter {
 protected:
  PoolCode(Isa isa, const PoolPlan& plan) : Emitter(isa), p_(plan), value_end_(value_registers()) {}

  /// Emits all of it: steps(front, back) between the prologue and the return, then `tables`. Vector registers below
  /// `taken` are the steps' own. Returns the entry.
  const void* emit_all(
      const Problem& problem, int taken, const std::function<void(Body& front, Body& back)>& steps,
      const std::function<void()>& tables = [] {});
  /// The same without a front expression.
  const void* emit_all(const Problem& problem, int taken, const std::function<void(Body& back)>& steps,
                       const std::function<void()>& tables);

  /// The same without expressions.
  const void* emit_all(const std::function<void()>& steps);

  /// Streams advance by `step` bytes; they are numbered from 0 on.
  void add_stream(int64_t step) { steps_.push_back(step); }
  Xbyak::Address slot(size_t stream) { return qword[rsp + 8 * static_cast<int>(stream)]; }
  static constexpr size_t kStreamsBesideR10 = 7;
  /// The first streams stay in registers, up to `most` of them, instead of slots: rsi, r11 to r15, rbx, and r10 for the
  /// eighth one. To be said before anything is emitted.
  void hold_streams(size_t most) { held_streams_ = std::min(most, kStreamRegisters.size()); }
  /// Where a stream is: in its register, or in rdx, which this sets.
  Xbyak::Reg64 at(size_t stream);
  /// From here on the stream is at `to`.
  void set_stream(size_t stream, const Xbyak::Reg64& to);
  /// Streams [first, end) begin again where the call does.
  void start_streams(size_t first, size_t end);
  int64_t step_of(size_t stream) const { return steps_[stream]; }
  void advance_streams() { advance_streams(0, steps_.size()); }
  void advance_streams(size_t first, size_t end);
  void advance_stream(size_t stream, int64_t bytes);
  /// Vectors that the frame has room for; to be said before anything is emitted.
  void keep_vectors(int count) { kept_vectors_ = count; }
  /// The steps' own registers behind those of the expressions, and the number of the first one; to be said before
  /// anything is emitted.
  int reserve(int count) { return value_end_ -= count; }
  Xbyak::RegExp kept_vector(int number) const { return rsp + kept_vectors_at() + number * vector_bytes(); }

  /// Vectors [0, vectors) of a group, the last one with `last` elements, the others with `whole`.
  struct Group {
    int vectors, last, whole;
    int count(int v) const { return v + 1 == vectors ? last : whole; }
  };
  using Load = std::function<void(Xbyak::Xmm dst, const PoolOperand& o, size_t number)>;
  /// gradient = front's result; `load` knows operands by their number in front_in.
  void emit_gradient(Body& front, const Xbyak::Xmm& gradient, const Load& load);
  /// Loads `count` elements from `at`, or one of them into all lanes where it `repeats`. `ahead`: fetches what follows
  /// so many bytes behind, see fetch.
  void load_elements(const Xbyak::Xmm& dst, const PoolOperand& o, bool repeats, const Xbyak::RegExp& at, int count,
                     bool ahead, int bytes_ahead = kPrefetchFromMemory);
  /// Fetches what follows `at` by and by, so many bytes ahead where that is into the nearest cache; may use rax.
  void fetch(const Xbyak::RegExp& at, int bytes_ahead = kPrefetchFromMemory);
  /// How many bytes ahead to fetch of `o`, a stride's worth of whose rows are read side by side.
  int next_rows_of(const PoolOperand& o) const;
  /// What of a result's StagedLines may leave, as streams that do not move on, and code by which `count` lines do, if
  /// as many are left; `first` is the number of the first one.
  static constexpr size_t kLineStreams = 3;
  static std::array<const void*, kLineStreams> line_streams(const StagedLines::Lines& lines);
  void send_lines(size_t first, int64_t count);
  /// How many lines to send in each of `steps` steps, so that all but a few of those of `bytes` bytes leave.
  static int64_t lines_of_step(int64_t bytes, int64_t steps) { return bytes / kCacheLine / steps + 1; }
  /// How many of `lines` leave in `steps` steps of `each`.
  static int64_t lines_sent(int64_t lines, int64_t each, int64_t steps) { return std::min(lines / each, steps) * each; }
  /// The slot of result k, which is a fold, is at stream `first` + k.
  HeldFolds::Place folds_at(size_t first) {
    return [this, first](size_t k, int) { return Xbyak::RegExp(at(first + k)); };
  }
  /// How what follows is fetched.
  void fetch_by(Fetching how) { fetching_ = how; }
  /// Vector registers kBest, .. are the search's; AVX2 has no room for the last two.
  enum : int { kBest, kTap, kRowBest, kRowWinner };
  int search_registers() const { return wide() ? kRowWinner + 1 : kTap + 1; }
  struct Taps {
    int64_t first_row, end_row, first, end;
  };
  using LoadTap = std::function<void(int64_t row, int64_t tap)>;
  /// What a tap is called in each lane.
  using TapNames = std::function<std::vector<int32_t>(int64_t row, int64_t tap)>;
  /// Sets what the first taps of a row compete with.
  using StartRow = std::function<void(int64_t row, const Xbyak::Xmm& best, const Xbyak::Xmm& named)>;
  /// AVX-512, f32, tap_numbers: rows that windows above and below have, too. Of rows below `found` a window above has
  /// left what it found; of those from `kept` on this one leaves it, at place(row, part): the largest, their columns,
  /// and what says whether there was NaN.
  struct SharedRows {
    int64_t found, kept;
    std::function<Xbyak::RegExp(int64_t row, int part)> place;
  };
  static constexpr int kSharedParts = 3;
  /// winner = the name of the first maximum, NaN counts as one; vec(kBest) = the maximum. `load_tap` brings a tap to
  /// vec(kTap), and leaves the last two of scratch alone. All may be called twice, unless it is known that a tap
  /// probably `has_nan`. Uses all scratch, k1 and k2.
  void find_maximum(const Xbyak::Xmm& winner, const Taps& taps, const StartRow& start, const LoadTap& load_tap,
                    const TapNames& names, bool has_nan = false, const SharedRows* shared = nullptr);
  /// The same where taps outside the source are the lowest: `columns` has each lane's first tap inside of a row.
  void find_maximum_from(const Xbyak::Xmm& winner, const Taps& taps, const std::vector<int64_t>& columns,
                         const LoadTap& load_tap, const TapNames& names, bool has_nan = false,
                         const SharedRows* shared = nullptr);
  /// row * kernel + tap
  TapNames tap_numbers() const {
    return [this](int64_t row, int64_t tap) { return everywhere(row * p_.g.kernel[2] + tap); };
  }
  /// Where the tap lies, of the group's first vector of channels; may say so from rdx on, which it sets.
  using PlaceTap = std::function<Xbyak::RegExp(int64_t row, int64_t tap)>;
  /// vec(winners + v) = the tap number of the first maximum, for each vector of a group of channels. Uses what
  /// find_maximum does, and registers up to search_registers().
  void find_winners(int winners, const Group& group, const Taps& taps, const PlaceTap& place);
  /// Of one of the group's vectors.
  void find_channel_winner(const Xbyak::Xmm& winner, const Group& group, int vector, const Taps& taps,
                           const PlaceTap& place);
  /// Whether vectors `vector` and the next one are searched as one of 16-bit elements.
  bool searched_in_halves(const Group& group, int vector) const;
  /// find_winners for two such vectors, as if there were no NaN; Zmm(kBest) = the maxima, counted from zero. The zero
  /// flag tells that there was none.
  void search_halves(int winners, const Taps& taps, const PlaceTap& place);
  /// The same with the winners left as words.
  void find_winner_words(const Xbyak::Zmm& winner, const Xbyak::Zmm& moment, const Taps& taps, const PlaceTap& place);
  /// find_maximum for neighbours along x, from window `first` on; load_row_tap brings their taps. Where all of them are
  /// `inside_row` (all that their taps read, and what is loaded with it), any other such vector may be meant.
  void find_row_maximum(const Xbyak::Xmm& winner, const Taps& rows, int64_t first, const LoadTap& load_tap,
                        const TapNames& names, bool has_nan = false, const SharedRows* shared = nullptr);
  /// Of the source row that starts `displacement` bytes behind where the stream is; r9 is the first window times the
  /// stride. `ahead`: fetches what follows. Taps of a row come in ascending order, from 0 on. Uses row_tap_registers()
  /// from search_registers() + 1 on.
  void load_row_tap(size_t stream, int64_t displacement, int64_t tap, int64_t first, bool ahead);
  bool inside_row(int64_t first, int64_t windows) const;
  /// Of each of so many windows from `first` on: whether its tap is none of the row's cells.
  std::vector<bool> outside_row(int64_t tap, int64_t first, int64_t windows) const;
  int row_tap_registers() const { return wide() ? static_cast<int>(kMostStride) : 1; }
  /// Whether no window before this one read the tap.
  bool new_tap(int64_t row, int64_t tap) const {
    return row + p_.g.strides[1] >= p_.g.kernel[1] && tap + p_.g.strides[2] >= p_.g.kernel[2];
  }
  /// Adds to `sum` (or sets it, where this is the `first`) the gradients of the windows whose winner has the name. Uses
  /// k1 and scratch 1. `counts`, if any: each lane is one more where the names are the same.
  void add_won(const Xbyak::Xmm& sum, bool first, const Xbyak::Xmm& winner, const Xbyak::Operand& gradient,
               const std::vector<int32_t>& names, const Xbyak::Xmm* counts = nullptr);
  /// `to` is put together from several vectors; this brings vector `number`, called in ascending order. place(lane) is
  /// vector * lanes() + lane there. `alone`: there is no other; else the first one comes with the second one. Uses
  /// scratch 0 and, AVX2, changes `from`.
  void merge_lanes(const Xbyak::Xmm& to, const Xbyak::Xmm& from, int number, bool alone,
                   const std::function<int64_t(int lane)>& place);
  /// AVX2: `to` = every other lane of two vectors, the first ones or the second ones of each pair.
  void every_other_lane(const Xbyak::Xmm& to, const Xbyak::Xmm& first, const Xbyak::Operand& second, bool odd);
  /// AVX2: `to` = the lanes of two vectors in turns, of the lower halves or of the upper ones. Uses scratch 1.
  void lanes_in_turns(const Xbyak::Xmm& to, const Xbyak::Xmm& first, const Xbyak::Xmm& second, bool upper);
  static uint32_t mask_of(const std::vector<bool>& which);
  /// The lanes that `which` names = the bits. AVX-512: uses k1.
  void set_lanes(const Xbyak::Xmm& v, const std::vector<bool>& which, int32_t bits);
  /// A number for each lane: in a register, where one is left, else in memory. AVX2 has none left.
  class Held {
   public:
    explicit Held(const Xbyak::Zmm& v) : at_(v) {}
    explicit Held(const Xbyak::Address& a) : at_(a) {}
    operator const Xbyak::Operand&() const {  // NOLINT(google-explicit-constructor): stands for the operand
      return std::visit([](const auto& at) -> const Xbyak::Operand& { return at; }, at_);
    }
    bool in_memory() const { return std::holds_alternative<Xbyak::Address>(at_); }

   private:
    std::variant<Xbyak::Zmm, Xbyak::Address> at_;
  };
  Held held(const std::vector<int32_t>& numbers);
  /// The same of numbers of 16 bits.
  Held held_words(const std::vector<int32_t>& each) { return held(pairs_of(each)); }
  Held held_words(int64_t each) { return held(everywhere((each & 0xffff) | each << 16)); }
  /// Numbers in a register: `moment`, where none holds them.
  Xbyak::Xmm held_vector(const Xbyak::Xmm& moment, const Held& numbers);
  /// Emits code that seldom runs: it takes no registers for numbers.
  void emit_seldom(const std::function<void()>& code);
  std::vector<int32_t> everywhere(int64_t number) const {
    return std::vector<int32_t>(static_cast<size_t>(lanes()), static_cast<int32_t>(number));
  }

  /// Floats of 16 bits: the sign's bit, which alone is -0.
  static constexpr int32_t kSignOfWord = 0x8000;
  /// What a cell of a vector of 16-bit elements gets of a window: the gradient, where the winner has that name.
  struct WordTerm {
    int64_t name;
    /// The winners (0) or gradients (1), a word for each element; may say where they are from rdx on.
    std::function<Held(int part)> part;
  };
  /// sum = what the cell gets of the windows, added up in f32 in their order. bf16. Uses k1, scratch 0 and 1 and
  /// `upper`; none of them may be a term's.
  void sum_words(const Xbyak::Zmm& sum, const Xbyak::Zmm& upper, const std::vector<WordTerm>& terms);

  /// Floats of 16 bits are in the order of integers once those with a sign are counted from zero downwards, NaN beyond
  /// the infinities. Both zeros become 0. `signs` holds 0x8000.
  void count_from_zero(const Xbyak::Zmm& elements, const Xbyak::Zmm& signs);
  int64_t counted_infinity() const { return p_.in[0].dtype == Dtype::bf16 ? 0x7f80 : 0x7c00; }
  /// Changes `elements`, as they come from memory, to find those above 0, infinity among them; the others are -1 and
  /// counted_infinity().
  void find_positive(const Xbyak::Opmask& positive, const Xbyak::Zmm& elements, const Xbyak::Operand& minus_one,
                     const Xbyak::Operand& infinity);
  /// `words`, or, where operands choose, scratch 1: the same with zeros where one of them is not positive. `place`
  /// knows operands by their number in back_in, and may say so from rdx on. Uses k2 and scratch 0.
  Xbyak::Zmm chosen_words(const Xbyak::Zmm& words, const std::vector<int>& choice, int count,
                          const std::function<Xbyak::RegExp(const PoolOperand& o, size_t number)>& place);
  /// to = the lower or the upper half of a vector of the source's 16-bit elements as f32.
  void widen_words(const Xbyak::Zmm& to, const Xbyak::Zmm& from, int half);
  /// Loads elements [begin, end) of a vector at `at`, zeros around them.
  void load_words(const Xbyak::Zmm& to, const Xbyak::RegExp& at, int begin, int end);

  static constexpr float kLowest = -std::numeric_limits<float>::infinity();
  static constexpr int kMostTaken = 16;      ///< by the steps, so that both expressions have room
  static constexpr int64_t kMostStride = 4;  ///< along x

  const PoolPlan& p_;

 private:
  struct Room {
    int taken, front_end, back_first, end;
  };
  struct Bodies {
    Body front, back;
    int bytes;  ///< of the frame
  };
  Bodies bodies(const Problem& problem, const Room& room);
  Lanes back_lanes(const Problem& problem);
  int kept_vectors_at() const { return aligned(static_cast<int>(steps_.size()) * 8); }
  Xbyak::Xmm holder(size_t k) const { return vec(value_end_ - most_held_ + static_cast<int>(k)); }
  void enter_frame(int bytes);
  void leave_frame();
  const void* emit_frame(const Problem& problem, const Room& room,
                         const std::function<void(Body& front, Body& back)>& steps,
                         const std::function<void()>& tables);
  /// Two neighbours a lane, from the tap of the windows from `first` on.
  void load_pairs(const Xbyak::Xmm& pairs, size_t stream, int64_t displacement, int64_t tap, int64_t first, bool ahead);
  /// What a search takes the taps for: numbers, or numbers and NaN.
  enum class Taken : uint8_t { numbers, any };
  void search(const Xbyak::Xmm& winner, const Taps& taps, const StartRow& start, Taken taken, const LoadTap& load_tap,
              const TapNames& names, const SharedRows* shared);
  void compete(const Xbyak::Xmm& best, const Xbyak::Xmm& winner, const Xbyak::Xmm& value, const Xbyak::Operand& number,
               Taken taken);

  static constexpr std::array<int, 8> kStreamRegisters = {Xbyak::Operand::RSI, Xbyak::Operand::R11, Xbyak::Operand::RBX,
                                                          Xbyak::Operand::R12, Xbyak::Operand::R13, Xbyak::Operand::R14,
                                                          Xbyak::Operand::R15, Xbyak::Operand::R10};
  static constexpr size_t kFreeRegisters = 2;  ///< of those: what callers do not expect back, at the front
  Xbyak::Reg64 stream_register(size_t stream) const { return Xbyak::Reg64(kStreamRegisters[stream]); }

  std::vector<int64_t> steps_;
  size_t held_streams_ = 0;
  int value_end_;  // of the registers that expressions use
  int kept_vectors_ = 0;
  Fetching fetching_ = Fetching::near();
  bool rounds_gradient_ = false;
  int32_t gradient_type_ = 0;               // a Dtype
  std::vector<std::vector<int32_t>> held_;  // register by register
  int most_held_ = 0;                       // in the last ones of the value registers
  bool seldom_ = false;                     // what is emitted is code that seldom runs
};

}  // namespace partita::jit
