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
#include "src/base/cpu.hpp"
#include "src/base/round.hpp"

namespace partita::jit {
namespace {

constexpr size_t kMostOperands = 1536;  ///< of all passes

/// A loop over a row, or over its numbers; or, where so many passes are guarded, none: those behind it are left out for
/// rows whose number, its input, is 0.
struct Pass : RowPass {
  size_t guarded = 0;
};

}  // namespace

class LongRows::Passes : public Writer {
 public:
  Passes(const RowPlan& plan, bool streaming) : plan_(plan), streaming_(streaming) {}

  void begin(const RowView& numbers, float value) override {
    Sweep s;
    s.store(as_row(numbers), s.builder().constant(value));
    this->numbers(s);
  }
  void read(const RowView& tensor, const RowView& numbers) override { copy(tensor, numbers); }
  void write(const RowView& numbers, const RowView& tensor) override { copy(numbers, tensor); }
  void elements(const Sweep& sweep) override { first_elements(sweep, plan_.space.lanes); }
  void first_elements(const Sweep& sweep, int64_t count) override {
    add(sweep.passes(plan_.isa, count, streaming_ && sweep.may_stream(plan_)));
  }
  void numbers(const Sweep& sweep) override {
    std::vector<RowPass> passes = sweep.passes(plan_.isa, 1, false);
    for (RowPass& pass : passes)
      for (Lane& lane : pass.lanes.code) lane.number = true;
    add(std::move(passes));
  }
  void where(const RowView& number, const std::function<void()>& write) override {
    Pass guard;
    guard.in = {number};
    guard.shape.in = {{.dtype = Dtype::f32, .steps = false, .row_bytes = 0}};
    const size_t at = passes_.size();
    passes_.push_back(std::move(guard));
    write();
    passes_[at].guarded = passes_.size() - at - 1;
  }

  std::vector<Pass> passes() && { return std::move(passes_); }

 private:
  void copy(const RowView& from, const RowView& to) {
    Sweep s;
    s.store(to, s.load(from));
    add(s.passes(plan_.isa, 1, false));
  }
  void add(std::vector<RowPass> passes) {
    for (RowPass& pass : passes) {
      // Scratch memory is that of one row.
      for (size_t k = 0; k < pass.in.size(); ++k)
        if (pass.in[k].from == RowView::From::scratch) pass.shape.in[k].row_bytes = 0;
      for (size_t k = 0; k < pass.out.size(); ++k)
        if (pass.out[k].from == RowView::From::scratch) pass.shape.out[k].row_bytes = 0;
      passes_.push_back({std::move(pass)});
    }
  }

  const RowPlan& plan_;
  bool streaming_;
  std::vector<Pass> passes_;
};

class LongRows::Code : private RowEmitter {
 public:
  Code(Isa isa, std::vector<Pass> passes) : RowEmitter(isa, 0), passes_(std::move(passes)) {
    int slots = 0;
    for (const Pass& pass : passes_) {
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
    emit_in_frame(*this, {rbx, r12, r13, r14, r15}, spill_at + spilled * 64, [&] {
      emit_rows();
      if (std::ranges::any_of(passes_, [](const Pass& pass) { return pass.shape.streaming; })) sfence();
    });
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
    for (size_t p = 0; p < passes_.size();) p = passes_[p].guarded > 0 ? emit_guarded(p) : emit_pass(p);
    for (size_t p = 0; p < passes_.size(); ++p) {
      begin(p);
      each_address([&](size_t k) { advance(slot(k), operand(k).row_bytes); });
    }
    dec(r8);
    jnz(row, T_NEAR);
  }

  /// Returns the number of the next one.
  size_t emit_pass(size_t p) {
    begin(p);
    assign_addresses();
    each_address([&](size_t k) {
      if (addresses_[k]) mov(*addresses_[k], slot(k));
    });
    bodies_[p].emit_constants();
    emit_row(bodies_[p]);
    return p + 1;
  }

  size_t emit_guarded(size_t p) {
    begin(p);
    Xbyak::Label none;
    mov(rdx, slot(0));
    cmp(dword[rdx], 0);
    je(none, T_NEAR);
    const size_t end = p + 1 + passes_[p].guarded;
    for (++p; p < end;) p = emit_pass(p);
    L(none);
    return end;
  }

  std::vector<Pass> passes_;  // empty once there is code, and so are they:
  std::vector<Body> bodies_;
  std::vector<int> first_slots_;
};

bool LongRows::fit(const RowPlan& plan, LongRowsWhere where) {
  const bool fits = plan.space.along_lanes && plan.tiling.blocks == 1;
  return fits && (!plan.may_stream || (where == LongRowsWhere::in_streams_too && reads_streams_alone()));
}

LongRows::LongRows(const RowPlan& plan, size_t tile_bytes, const Write& write)
    : WholeRows(plan, tile_bytes), plain_(variant(write, false)) {
  if (plan.may_stream) streaming_ = variant(write, true);
}

LongRows::~LongRows() = default;

LongRows::Variant LongRows::variant(const Write& write, bool streaming) const {
  Passes writer(plan_, streaming);
  write(writer);
  std::vector<Pass> passes = std::move(writer).passes();
  Variant made;
  for (const Pass& pass : passes) {
    made.views.insert(made.views.end(), pass.in.begin(), pass.in.end());
    for (size_t k = 0; k < pass.out.size(); ++k) {
      if (pass.shape.streaming && !pass.shape.out[k].kept) made.streamed.push_back(made.views.size());
      made.views.push_back(pass.out[k]);
    }
  }
  if (streaming && made.streamed.empty()) return {};
  PT_ASSERT(made.views.size() <= kMostOperands);
  made.code = std::make_unique<const Code>(plan_.isa, std::move(passes));
  return made;
}

/// False, and nothing has been done, where results that are stored past the caches do not begin at cache lines.
bool LongRows::run(const Variant& variant, const Tile& tile) {
  std::array<const void*, kMostOperands> addresses;
  for (size_t k = 0; k < variant.views.size(); ++k) addresses[k] = tile.address(variant.views[k], 0);
  if (!std::ranges::all_of(variant.streamed, [&](size_t k) { return is_at_cache_line(addresses[k]); })) return false;
  (*variant.code)({addresses.data(), nullptr, nullptr, tile.rows});
  return true;
}

void LongRows::run(const RunArgs& args, std::byte* scratch, int64_t begin, int64_t end) const {
  each_tile(args, scratch, begin, end, [&](const Tile& tile) {
    if (!streaming_.code || !run(streaming_, tile)) run(plain_, tile);
  });
}

}  // namespace partita::jit
