// SPDX-License-Identifier: Apache-2.0
// Writing of the sweeps over a row as passes, and their code.
//   rdi call, rsi and rdx addresses for a moment, rcx element in the row, r8 rows left; operands' addresses lie on the
//   stack, pass after pass, and spilled values behind them.
#include "kernels/jit/rows/long_rows.hpp"

#include <algorithm>
#include <array>

#include "kernels/jit/code/frame.hpp"
#include "kernels/jit/flat/row_emitter.hpp"
#include "src/base/check.hpp"
#include "src/base/round.hpp"

namespace partita::jit {
namespace {

constexpr size_t kMostOperands = 1536;  ///< of all passes

}  // namespace

class LongRows::Writer : public RowWriter {
 public:
  explicit Writer(const RowPlan& plan) : plan_(plan) {}

  void begin(const RowView& numbers, float value) override {
    Sweep s;
    s.store(as_row(numbers), s.builder().constant(value));
    this->numbers(s);
  }
  void read(const RowView& tensor, const RowView& numbers) override { copy(tensor, numbers); }
  void write(const RowView& numbers, const RowView& tensor) override { copy(numbers, tensor); }
  void elements(const Sweep& sweep) override { add(sweep.passes(plan_.isa, plan_.space.lanes)); }
  void numbers(const Sweep& sweep) override {
    std::vector<RowPass> passes = sweep.passes(plan_.isa, 1);
    for (RowPass& pass : passes)
      for (Lane& lane : pass.lanes.code) lane.number = true;
    add(std::move(passes));
  }

  std::vector<RowPass> passes() && { return std::move(passes_); }

 private:
  void copy(const RowView& from, const RowView& to) {
    Sweep s;
    s.store(to, s.load(from));
    add(s.passes(plan_.isa, 1));
  }
  void add(std::vector<RowPass> passes) {
    for (RowPass& pass : passes) {
      // Scratch memory is that of one row.
      for (size_t k = 0; k < pass.in.size(); ++k)
        if (pass.in[k].from == RowView::From::scratch) pass.shape.in[k].row_bytes = 0;
      for (size_t k = 0; k < pass.out.size(); ++k)
        if (pass.out[k].from == RowView::From::scratch) pass.shape.out[k].row_bytes = 0;
      passes_.push_back(std::move(pass));
    }
  }

  const RowPlan& plan_;
  std::vector<RowPass> passes_;
};

class LongRows::Code : private RowEmitter {
 public:
  Code(Isa isa, std::vector<RowPass> passes) : RowEmitter(isa, 0), passes_(std::move(passes)) {
    int slots = 0;
    for (const RowPass& pass : passes_) {
      first_slots_.push_back(slots);
      slots += static_cast<int>(pass.shape.in.size() + pass.shape.out.size());
    }
    const int spill_at = aligned(slots * 8);
    int spilled = 0;
    for (size_t p = 0; p < passes_.size(); ++p) {
      const int registers = begin(p);
      bodies_.push_back(
          {*this, passes_[p].lanes, {0, registers, rsp + spill_at}, [this](int operand) { return repeats(operand); }});
      spilled = std::max(spilled, bodies_.back().spill_slots());
    }
    emit_in_frame(*this, {rbx, r12, r13, r14, r15}, spill_at + spilled * 64, [&] { emit_rows(); });
    emit_constants();
    finish_rows();
    bodies_.clear();
    passes_.clear();
  }
  using RowEmitter::operator();

 private:
  /// Pass `p` is emitted from here on.
  int begin(size_t p) { return begin_rows(passes_[p].shape, passes_[p].lanes.code.size(), first_slots_[p], false); }
  /// work(k) for each operand of the pass that has an address.
  template <class F>
  void each_address(F work) {
    for (size_t k = 0; k < shape_.in.size() + shape_.out.size(); ++k)
      if (operand(k).place < 0) work(k);
  }

  void emit_rows() {
    mov(rsi, ptr[rdi + offsetof(RowCall, in)]);
    int next = 0;
    for (size_t p = 0; p < passes_.size(); ++p) {
      begin(p);
      each_address([&](size_t k) {
        mov(rax, ptr[rsi + 8 * next++]);
        mov(slot(k), rax);
      });
    }
    mov(r8, ptr[rdi + offsetof(RowCall, rows)]);
    Xbyak::Label row;
    align(16);
    L(row);
    for (size_t p = 0; p < passes_.size(); ++p) emit_pass(p);
    dec(r8);
    jnz(row, T_NEAR);
  }

  void emit_pass(size_t p) {
    begin(p);
    assign_addresses();
    each_address([&](size_t k) {
      if (addresses_[k]) mov(*addresses_[k], slot(k));
    });
    bodies_[p].emit_constants();
    emit_row(bodies_[p]);
    each_address([&](size_t k) { advance(slot(k), operand(k).row_bytes); });
  }

  std::vector<RowPass> passes_;  // empty once there is code, and so are they:
  std::vector<Body> bodies_;
  std::vector<int> first_slots_;
};

bool LongRows::fit(const RowPlan& plan) {
  return plan.space.along_lanes && plan.tiling.blocks == 1 && !plan.may_stream;
}

LongRows::LongRows(const RowPlan& plan, size_t tile_bytes, const WriteRow& write) : WholeRows(plan, tile_bytes) {
  Writer writer(plan);
  write(writer);
  std::vector<RowPass> passes = std::move(writer).passes();
  for (const RowPass& pass : passes)
    for (const auto* side : {&pass.in, &pass.out}) views_.insert(views_.end(), side->begin(), side->end());
  PT_ASSERT(views_.size() <= kMostOperands);
  code_ = std::make_unique<const Code>(plan.isa, std::move(passes));
}

LongRows::~LongRows() = default;

void LongRows::run(const RunArgs& args, std::byte* scratch, int64_t begin, int64_t end) const {
  std::array<const void*, kMostOperands> addresses;
  each_tile(args, scratch, begin, end, [&](const Tile& tile) {
    for (size_t k = 0; k < views_.size(); ++k) addresses[k] = tile.address(views_[k], 0);
    (*code_)({addresses.data(), nullptr, nullptr, tile.rows});
  });
}

}  // namespace partita::jit
