// SPDX-License-Identifier: Apache-2.0
// Joins steps that walk the same data:
//   loop -> loop                 =>  one loop with both expressions
//   pooling step -> loop         =>  the pooling step with the loop's expression behind it
//   loop -> pooling (gradient)   =>  the pooling step with the loop's expression in front of it
// A value between them that is used elsewhere is still stored, in the same walk; otherwise it never reaches memory.
// Values keep the rounding of their data type (ExprOp::cast), so fused and unfused programs give the same bits.
#include <algorithm>

#include "passes/program.hpp"
#include "src/base/check.hpp"
#include "src/base/shape.hpp"

namespace partita {
namespace {

constexpr size_t kMaxOperands = 64;
constexpr size_t kMaxInstructions = 512;

bool is_pool(StepKind s) {
  return s == StepKind::pool_forward || s == StepKind::pool_backward || s == StepKind::max_pool_backward;
}

/// The port whose elements a pooling step's front expression replaces.
int front_port(StepKind s) { return s == StepKind::max_pool_backward ? 1 : 0; }

bool covers(const TensorDesc& view, const Buffer& buffer) {
  return view.offset == 0 && elements(view.dims) == buffer.desc.elements();
}

bool same_place(const TensorDesc& a, const TensorDesc& b) {
  return a.dtype == b.dtype && a.dims == b.dims && a.strides == b.strides && a.offset == b.offset;
}

/// Copies an expression into another one, with operands moved and chosen loads replaced by values.
class Transplant {
 public:
  Transplant(std::vector<Instr> code, Expr& to) : code_(std::move(code)), builder_(to) {}

  std::vector<int> in_map, out_map;  ///< new operand number of each operand; -1: replaced (in) or not stored (out)
  ExprBuilder::Value replacement = 0;

  /// Returns the new value of each old instruction.
  std::vector<ExprBuilder::Value> run() {
    std::vector<ExprBuilder::Value> value(code_.size(), 0);
    for (size_t i = 0; i < code_.size(); ++i) {
      const Instr& in = code_[i];
      const auto a = value[in.a], b = value[in.b], c = value[in.c];
      if (in.op == ExprOp::load) {
        const int to = in_map[static_cast<size_t>(in.imm)];
        value[i] = to < 0 ? replacement : builder_.load(to);
      } else if (in.op == ExprOp::store) {
        value[i] = a;
        const int to = out_map[static_cast<size_t>(in.imm)];
        if (to >= 0) builder_.store(to, a);
      } else if (in.op == ExprOp::constant) {
        value[i] = builder_.constant(in.value);
      } else {
        value[i] = builder_.apply(in.op, a, b, c, in.imm);
      }
    }
    return value;
  }

 private:
  std::vector<Instr> code_;
  ExprBuilder builder_;
};

class Fuser {
 public:
  explicit Fuser(Program& program) : p_(program) {}

  void run() {
    for (size_t reader = 1; reader < p_.steps.size();) {
      if (const int at = try_reader(reader); at >= 0) reader = static_cast<size_t>(std::max(at, 1));
      else ++reader;
    }
  }

 private:
  Buffer& buffer(int b) { return p_.buffers[static_cast<size_t>(b)]; }

  /// Tries to join step `reader` with a step that makes one of its inputs; the joined step's place, or -1.
  int try_reader(size_t reader) {
    const Step& r = p_.steps[reader];
    for (size_t k = 0; k < r.in.size(); ++k) {
      const int b = r.in[k];
      if (b == Step::kNoBuffer || buffer(b).role == Buffer::Role::input || buffer(b).role == Buffer::Role::constant) continue;
      for (size_t maker = 0; maker < reader; ++maker) {
        if (!p_.steps[maker].writes(b)) continue;
        const int at = join_behind(maker, reader, b);
        if (at >= 0) return at;
        const int front = join_in_front(maker, reader, b);
        if (front >= 0) return front;
        break;
      }
    }
    return -1;
  }

  bool needed_elsewhere(int b, size_t reader) const {
    if (p_.buffers[static_cast<size_t>(b)].role == Buffer::Role::output) return true;
    for (size_t s = 0; s < p_.steps.size(); ++s)
      if (s != reader && p_.steps[s].reads(b)) return true;
    return false;
  }

  /// Where one step in place of `maker` and `reader` may stand: nothing between them may need the one or feed the other.
  int place(size_t maker, size_t reader) const {
    bool late = true, early = true;
    for (size_t s = maker + 1; s < reader; ++s) {
      for (int b : p_.steps[maker].out) late = late && !p_.steps[s].reads(b);
      for (int b : p_.steps[reader].in) early = early && (b == Step::kNoBuffer || !p_.steps[s].writes(b));
    }
    return late ? static_cast<int>(reader) : early ? static_cast<int>(maker) : -1;
  }

  /// loop or pooling step, then a loop over the same space.
  int join_behind(size_t maker, size_t reader, int b) {
    const Step &m = p_.steps[maker], &r = p_.steps[reader];
    if (r.problem.step != StepKind::loop || (m.problem.step != StepKind::loop && !is_pool(m.problem.step))) return -1;
    const int made = static_cast<int>(std::find(m.out.begin(), m.out.end(), b) - m.out.begin());
    const TensorDesc& desc = m.problem.out[static_cast<size_t>(made)];
    if (!covers(desc, buffer(b)) || m.problem.out[0].dims != r.problem.out[0].dims) return -1;
    for (size_t k = 0; k < r.in.size(); ++k)
      if (r.in[k] == b && !same_place(r.problem.in[k], desc)) return -1;
    if (m.in.size() + r.in.size() > kMaxOperands || m.out.size() + r.out.size() > kMaxOperands) return -1;
    if (m.problem.back.code.size() + r.problem.back.code.size() > kMaxInstructions) return -1;
    const int at = place(maker, reader);
    if (at < 0) return -1;
    replace(maker, reader, at, joined_behind(m, r, b, made, needed_elsewhere(b, reader)));
    return at;
  }

  Step joined_behind(const Step& m, const Step& r, int b, int made, bool keep) {
    Step joined;
    joined.problem.step = m.problem.step;
    joined.problem.op = m.problem.op;
    joined.problem.attrs = m.problem.attrs;
    joined.problem.front = m.problem.front;
    joined.problem.in = m.problem.in;
    joined.in = m.in;
    joined.ops = m.ops;
    joined.ops.insert(joined.ops.end(), r.ops.begin(), r.ops.end());
    Expr back = m.problem.back;
    if (back.empty()) {
      ExprBuilder build(back);
      build.store(0, build.skeleton());
    }
    Transplant first(back.code, joined.problem.back);
    for (size_t k = 0; k < m.in.size(); ++k) first.in_map.push_back(static_cast<int>(k));
    for (size_t k = 0; k < m.out.size(); ++k)
      first.out_map.push_back(static_cast<int>(k) == made && !keep ? -1 : add_output(joined, m, k));
    const auto values = first.run();
    ExprBuilder::Value value = 0;
    for (size_t i = 0; i < back.code.size(); ++i)
      if (back.code[i].op == ExprOp::store && back.code[i].imm == made) value = values[i];

    Transplant second(r.problem.back.code, joined.problem.back);
    second.replacement = as_loaded(joined.problem.back, value, m.problem.out[static_cast<size_t>(made)].dtype);
    for (size_t k = 0; k < r.in.size(); ++k) second.in_map.push_back(r.in[k] == b ? -1 : add_input(joined, r, k));
    for (size_t k = 0; k < r.out.size(); ++k) second.out_map.push_back(add_output(joined, r, k));
    second.run();
    return joined;
  }

  /// What loading the stored value would have given.
  static ExprBuilder::Value as_loaded(Expr& expr, ExprBuilder::Value value, Dtype dtype) {
    if (dtype == Dtype::f32 || dtype == Dtype::s32) return value;
    return ExprBuilder(expr).apply(ExprOp::cast, value, 0, 0, static_cast<int32_t>(dtype));
  }

  /// Operands that both sides read at the same place are one.
  static int add_input(Step& joined, const Step& from, size_t k) {
    for (size_t i = 0; i < joined.in.size(); ++i)
      if (joined.in[i] == from.in[k] && joined.problem.in[i] == from.problem.in[k]) return static_cast<int>(i);
    joined.in.push_back(from.in[k]);
    joined.problem.in.push_back(from.problem.in[k]);
    return static_cast<int>(joined.in.size()) - 1;
  }

  static int add_output(Step& joined, const Step& from, size_t k) {
    joined.out.push_back(from.out[k]);
    joined.problem.out.push_back(from.problem.out[k]);
    return static_cast<int>(joined.out.size()) - 1;
  }

  /// A loop whose only result is read by a pooling step as its gradient (backward) or source (forward).
  int join_in_front(size_t maker, size_t reader, int b) {
    const Step &m = p_.steps[maker], &r = p_.steps[reader];
    if (m.problem.step != StepKind::loop || !is_pool(r.problem.step) || m.out.size() != 1) return -1;
    const auto port = static_cast<size_t>(front_port(r.problem.step));
    if (r.in[port] != b || !same_place(r.problem.in[port], m.problem.out[0]) || !covers(m.problem.out[0], buffer(b))) return -1;
    if (std::count(r.in.begin(), r.in.end(), b) != 1 || needed_elsewhere(b, reader)) return -1;
    if (m.in.size() + r.in.size() > kMaxOperands) return -1;
    const int at = place(maker, reader);
    if (at < 0) return -1;
    Step joined = r;
    joined.ops.insert(joined.ops.begin(), m.ops.begin(), m.ops.end());
    joined.in[port] = Step::kNoBuffer;
    joined.problem.front = {};
    Transplant first(m.problem.back.code, joined.problem.front);
    for (size_t k = 0; k < m.in.size(); ++k) first.in_map.push_back(add_operand(joined, m, k));
    first.out_map = {-1};
    auto value = as_loaded(joined.problem.front, stored_value(m, first.run()), m.problem.out[0].dtype);
    if (!r.problem.front.empty()) {
      Transplant second(r.problem.front.code, joined.problem.front);
      second.replacement = value;
      for (size_t k = 0; k < r.in.size(); ++k) second.in_map.push_back(k == port ? -1 : static_cast<int>(k));
      value = second.run()[r.problem.front.result];
    }
    joined.problem.front.result = value;
    replace(maker, reader, at, std::move(joined));
    return at;
  }

  /// Always a new operand: the step's own ports keep their numbers and spaces.
  static int add_operand(Step& joined, const Step& from, size_t k) {
    joined.in.push_back(from.in[k]);
    joined.problem.in.push_back(from.problem.in[k]);
    return static_cast<int>(joined.in.size()) - 1;
  }

  static ExprBuilder::Value stored_value(const Step& m, const std::vector<ExprBuilder::Value>& values) {
    for (size_t i = 0; i < m.problem.back.code.size(); ++i)
      if (m.problem.back.code[i].op == ExprOp::store) return values[i];
    PT_ASSERT(!"a loop stores its result");
    return 0;
  }

  void replace(size_t maker, size_t reader, int at, Step joined) {
    p_.steps[static_cast<size_t>(at)] = std::move(joined);
    p_.steps.erase(p_.steps.begin() + static_cast<long>(static_cast<size_t>(at) == maker ? reader : maker));
  }

  Program& p_;
};

}  // namespace

void fuse_loops(Program& program) { Fuser(program).run(); }

}  // namespace partita
