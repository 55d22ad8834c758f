// SPDX-License-Identifier: Apache-2.0
// Averages and their gradients, channel-first, with as many windows as cells: a plane is one row of elements, whatever
// its rows are. Its sums along x are those of the plane moved by some elements, without the elements that come from
// another row; sums along y those of the plane moved by some rows.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/jit/code/body.hpp"
#include "kernels/jit/flat/joined_stores.hpp"
#include "kernels/jit/pool/average/plan.hpp"
#include "kernels/jit/pool/folds.hpp"
#include "kernels/jit/pool/held_folds.hpp"
#include "kernels/kernel.hpp"
#include "kernels/thread_scratch.hpp"

namespace partita::jit {

/// Where a result's terms lie: the element of the operand at the same place, moved by each pair of these numbers of
/// cells. Both directions of a pooling look alike so.
struct AveragePlanes : AveragePlan {
  explicit AveragePlanes(const Problem& problem);

  int64_t width() const { return g.src[2]; }
  int64_t size() const { return g.src[1] * g.src[2]; }  ///< elements of a plane
  bool backward;                                        ///< windows are the operand, else the result
  std::vector<int64_t> moves_x, moves_y;                ///< ascending; those that reach a cell of the plane
  /// Of each window of a plane: what its average multiplies by. Empty where that is `weight` for all.
  std::vector<float> weights;

 private:
  std::vector<int64_t> moves(int axis) const;
};

struct AveragePlaneCall {
  const void* const* windows;  ///< operands of front at the first plane
  const void* const* cells;    ///< operands of back, then results, at the first plane
  const JoinedPlace* joined;   ///< where planes are joined: of each result
  int64_t pending;             ///< the same: elements before the first one that share its vector
  const float* weights;
  /// For each move along x a bit for each element: the moved one is in the same row. As many zeros before as lanes.
  const std::byte* inside;
  int64_t planes;
  std::byte* sums;  ///< scratch memory, zeros where nothing is stored
};

class AveragePlaneKernel : private Emitter {
 public:
  enum class Stores : uint8_t { plain, streaming, joined };

  /// Throws Xbyak::Error where there is no memory for code.
  AveragePlaneKernel(Isa isa, const AveragePlanes& planes, const Problem& problem, Stores stores);
  void operator()(const AveragePlaneCall& call) const { entry_(&call); }

  /// Scratch memory of a call.
  static int64_t sums_bytes(Isa isa, const AveragePlanes& planes);
  /// Bytes of one move's bits; some more are read.
  static int64_t inside_bytes(const AveragePlanes& planes) { return aligned_bits(planes.size()); }

 private:
  /// A plane's scratch memory: where its sums along x begin in it.
  struct Section {
    int64_t sums, bytes;
  };
  /// Three vectors of elements that follow each other.
  struct Neighbours {
    Xbyak::Xmm before, own, behind;
  };
  static Section section(Isa isa, const AveragePlanes& planes);
  static int64_t planes_together(const AveragePlanes& planes);
  static int64_t aligned_bits(int64_t count) { return (count / 8 + 8) / 4 * 4; }

  void emit_start();
  void emit_groups(Body& front, Body& back);
  void next_group();
  void exchange_sums();
  template <class Start, class Group, class End>
  void emit_planes(const Xbyak::Reg64& planes, const Start& start, const Group& group, const End& end);
  BodyHooks front_hooks(int vector, int count);
  void emit_elements(Body& front, int vectors, int last);
  void emit_last_sums();
  void emit_sums(const Neighbours& elements, int vector, int count);
  void add_moved(const Xbyak::Xmm& sum, const Neighbours& elements, size_t move, int vector);
  void take_between(const Xbyak::Xmm& dst, const Xbyak::Xmm& low, const Xbyak::Xmm& high, int by);
  BodyHooks back_hooks(int vector, int count, bool end);
  void emit_cells(Body& back, int vectors, int last);
  void emit_weights(const Xbyak::Xmm& sum, int vector);
  Xbyak::RegExp sums(const Xbyak::Reg64& plane, int64_t moved, int vector) const {
    return plane + rcx * 4 + static_cast<int>(section_.sums + moved * 4 + vector * vector_bytes());
  }
  /// The elements of the vector before the group, -1, and before that, -2.
  Xbyak::Xmm kept(int vector) const { return vec(together_ - 1 - vector); }
  const PoolOperand& front_operand(size_t k) const { return p_.in[static_cast<size_t>(p_.front_in[k])]; }
  const PoolOperand& cell_operand(size_t k) const {
    return k < p_.back_in.size() ? p_.in[static_cast<size_t>(p_.back_in[k])] : p_.out[k - p_.back_in.size()];
  }
  size_t cell_operands() const { return p_.back_in.size() + p_.out.size(); }
  HeldFolds::Place fold_slots() {
    return [this](size_t k, int) {
      mov(rdx, slot(p_.back_in.size() + k));
      return Xbyak::RegExp(rdx);
    };
  }
  Xbyak::Address slot(size_t k) { return qword[rsp + 8 * static_cast<int>(k)]; }
  size_t front_slot(size_t k) const { return cell_operands() + k; }
  size_t joined_slot() const { return front_slot(p_.front_in.size()); }
  size_t read_slot() const { return joined_slot() + 3 * p_.out.size(); }
  size_t stored_slot() const { return read_slot() + 1; }
  size_t slots() const { return stored_slot() + 1; }

  const AveragePlanes& p_;
  Stores stores_;
  int together_;  // vectors
  Section section_;
  std::optional<JoinedStores> joined_;
  std::optional<HeldFolds> folds_;  // of a call
  void (*entry_)(const AveragePlaneCall*) = nullptr;
};

class AveragePlanePool {
 public:
  static bool fits(const Problem& problem);
  /// Throws Xbyak::Error where there is no memory for code.
  AveragePlanePool(const Problem& problem, const Target& target);
  AveragePlanePool(const AveragePlanePool&) = delete;
  AveragePlanePool& operator=(const AveragePlanePool&) = delete;

  size_t scratch_bytes() const { return std::max(sums_.bytes(), folds_.scratch_bytes()); }
  Status operator()(const RunArgs& args) const;

 private:
  void make_inside();
  void run(const RunArgs& args, int64_t n, int64_t c, int64_t planes, bool streaming, std::byte* sums) const;

  AveragePlanes p_;
  int threads_;
  int64_t sums_bytes_;
  ThreadScratch sums_;
  PoolFolds folds_;
  int64_t planes_ = 1;  // of a call
  std::vector<std::byte> inside_;
  std::unique_ptr<const AveragePlaneKernel> kernel_, streaming_;
  bool joined_ = false;                       // how streaming_ stores
  int64_t element_bytes_ = 0, together_ = 0;  // where planes are joined: of all results; elements at once
};

}  // namespace partita::jit
