// SPDX-License-Identifier: Apache-2.0
// Joins steps that walk the same data:
//   loop -> loop                =>  one loop with both expressions
//   skeleton step -> loop       =>  the step with the loop's expression behind it
//   loop -> skeleton step       =>  the step with the loop's expression in front of it
// Skeleton steps are poolings, resamplings, softmax and normalisations, which read one main input and make one main
// result, and products (convolution, matmul), which read two. A value between them that is used elsewhere is still
// stored, in the same walk; otherwise it never reaches memory. Values keep the rounding of their data type
// (ExprOp::cast), so fused and unfused programs give the same bits, but for sums that the gradient of a pooling makes
// on its way, whose terms are added in another order.
#include "passes/optimize/fuse_loops.hpp"

#include <algorithm>
#include <map>

#include "kernels/loop/fold_plan.hpp"
#include "kernels/pool_geometry.hpp"
#include "kernels/transplant.hpp"
#include "passes/layout.hpp"
#include "passes/lower/lowering.hpp"
#include "passes/optimize/front_cost.hpp"
#include "passes/optimize/hoist.hpp"
#include "passes/optimize/make_again.hpp"
#include "passes/select.hpp"
#include "src/base/check.hpp"
#include "src/base/shape.hpp"

namespace partita {
namespace {

// Of one walk: beyond these generated code leaves the caches of instructions, and more streams than that are slower
// than two walks.
constexpr size_t kMaxOperands = 64;  ///< read and written
constexpr size_t kMaxOperators = 64;
constexpr size_t kMaxInstructions = 512;
constexpr int64_t kLeastGroup = 16;  ///< elements along the innermost axis

bool is_skeleton(StepKind s) { return traits_of(s).skeleton; }

bool covers(const TensorDesc& view, const Buffer& buffer) {
  return view.offset == 0 && elements(view.dims) == buffer.desc.elements();
}

bool is_folded(const Step& s, size_t output) { return fold_of_output(s.problem.back, output) != Fold::none; }

class Fuser {
 public:
  Fuser(Program& program, const JoinRule& shall_join) : p_(program), shall_join_(shall_join) {}

  void run() {
    for (size_t reader = 1; reader < p_.steps.size();)
      reader = is_conversion(p_.steps[reader]) && try_reader(reader) ? 1 : reader + 1;
    // before loops join each other: what makes numbers of narrow tensors belongs to the product that reads them
    for (size_t reader = 0; reader < p_.steps.size(); ++reader)
      if (is_product(p_.steps[reader].problem.step)) reader = join_fronts(reader);
    // and a narrow summand of the loop behind it is read as it is, too
    for (size_t reader = 1; reader < p_.steps.size();) {
      const auto& r = p_.steps[reader];
      const bool joins = r.problem.step == StepKind::loop && try_reader(reader, is_dequantization);
      reader = joins ? 1 : reader + 1;
    }
    for (size_t reader = 1; reader < p_.steps.size();)
      if (!try_reader(reader))
        ++reader;
      else
        reader = 1;
  }

 private:
  /// What shall_join_ is asked.
  struct Attempt {
    Problem joined, plain;
  };

  Buffer& buffer(int b) { return p_.buffers[static_cast<size_t>(b)]; }

  /// One tensor in another type.
  static bool is_conversion(const Step& s) {
    if (s.problem.step != StepKind::loop || s.in.size() != 1 || s.out.size() != 1) return false;
    const auto moves = [](const Instr& in) {
      return in.op == ExprOp::load || in.op == ExprOp::cast || in.op == ExprOp::store;
    };
    return std::all_of(s.problem.back.code.begin(), s.problem.back.code.end(), moves);
  }

  /// Makes numbers of one tensor of 8-bit integers.
  static bool is_dequantization(const Step& s) {
    if (s.problem.step != StepKind::loop || s.out.size() != 1 || s.in.empty()) return false;
    const Dtype from = s.problem.in[0].dtype;
    const auto scales = [](const Instr& in) {
      switch (in.op) {
        case ExprOp::load:
        case ExprOp::constant:
        case ExprOp::sub:
        case ExprOp::mul:
        case ExprOp::cast:
        case ExprOp::store: return true;
        default: return false;
      }
    };
    return (from == Dtype::s8 || from == Dtype::u8) &&
           std::all_of(s.problem.back.code.begin(), s.problem.back.code.end(), scales);
  }

  static bool is_any(const Step&) { return true; }

  /// What is computed once for many tiles is not computed again by each.
  static bool runs_less_often(const Step& maker, const Step& reader) { return maker.constant && !reader.constant; }

  /// Joins step `reader`, a product, with the loops that make its two inputs, where its kernels read their sources
  /// instead. A loop whose result is needed elsewhere stays beside. Returns where the product stands then.
  size_t join_fronts(size_t reader) {
    for (const auto& ports : {std::vector<size_t>{0, 1}, {1}, {0}}) {
      Step joined = p_.steps[reader];
      std::vector<size_t> makers;
      for (size_t port : ports)
        if (const int maker = loop_that_makes(p_.steps[reader], reader, port); maker >= 0) {
          const Step m = p_.steps[static_cast<size_t>(maker)];
          put_in_front(joined, m, port, port == 1 ? joined.problem.weights_front : joined.problem.front);
          makers.push_back(static_cast<size_t>(maker));
        }
      if (makers.size() != ports.size() || joined.in.size() > kMaxOperands) continue;
      if (!shall_join_(joined.problem, p_.steps[reader].problem)) continue;
      const Step plain = p_.steps[reader];
      p_.steps[reader] = std::move(joined);
      std::sort(makers.rbegin(), makers.rend());
      for (size_t maker : makers) {
        const int made = p_.steps[maker].out[0];
        if (needed_elsewhere(made, maker)) continue;
        p_.steps.erase(p_.steps.begin() + static_cast<long>(maker));
        --reader;
      }
      return reader;
    }
    return reader;
  }

  /// The loop that makes input `port` of `r` and nothing else, from sources that nothing in between changes; -1: none.
  int loop_that_makes(const Step& r, size_t reader, size_t port) {
    const int b = r.in[port];
    if (b == Step::kNoBuffer || std::count(r.in.begin(), r.in.end(), b) != 1) return -1;
    for (size_t maker = 0; maker < reader; ++maker) {
      Step& m = p_.steps[maker];
      if (!m.writes(b)) continue;
      if (runs_less_often(m, r)) return -1;
      turn(m, m.problem.out[0], r.problem.in[port]);
      const bool fits = m.problem.step == StepKind::loop && m.out.size() == 1 && !has_folds(m.problem) &&
                        r.problem.in[port] == m.problem.out[0] && covers(m.problem.out[0], buffer(b));
      return fits ? static_cast<int>(maker) : -1;
    }
    return -1;
  }

  /// The expression of loop `m` instead of the step's input `port`.
  static void put_in_front(Step& joined, const Step& m, size_t port, Expr& front) {
    joined.ops.insert(joined.ops.begin(), m.ops.begin(), m.ops.end());
    const int ports_in = joined.problem.in_ports(), ports_out = joined.problem.out_ports();
    joined.problem.ports_in = ports_in;
    joined.problem.ports_out = ports_out;
    joined.in[port] = Step::kNoBuffer;
    front = {};
    Transplant first(m.problem.back.code, front);
    for (size_t k = 0; k < m.in.size(); ++k) first.in_map.push_back(add_operand(joined, m, k));
    first.out_map = {-1};
    front.result = as_loaded(front, stored_value(m.problem.back, 0, first.run()), m.problem.out[0].dtype);
  }

  /// Tries to join step `reader` with a step that makes one of its inputs, one that `wanted` takes.
  bool try_reader(size_t reader, bool (*wanted)(const Step&) = is_any) {
    const Step& r = p_.steps[reader];
    for (size_t k = 0; k < r.in.size(); ++k) {
      const int b = r.in[k];
      if (b == Step::kNoBuffer || buffer(b).role == Buffer::Role::input || buffer(b).role == Buffer::Role::constant)
        continue;
      for (size_t maker = 0; maker < reader; ++maker) {
        if (!p_.steps[maker].writes(b)) continue;
        if (!wanted(p_.steps[maker]) || runs_less_often(p_.steps[maker], r)) break;
        if (join_behind(maker, reader) || join_in_front(maker, reader, b)) return true;
        break;
      }
    }
    return false;
  }

  bool needed_elsewhere(int b, size_t reader) const {
    if (p_.buffers[static_cast<size_t>(b)].role == Buffer::Role::output) return true;
    for (size_t s = 0; s < p_.steps.size(); ++s)
      if (s != reader && p_.steps[s].reads(b)) return true;
    return false;
  }

  /// Where one step in place of `maker` and `reader` may stand: nothing between them may need the one or feed the
  /// other.
  int place(size_t maker, size_t reader) const {
    bool late = true, early = true;
    for (size_t s = maker + 1; s < reader; ++s) {
      for (int b : p_.steps[maker].out) late = late && !p_.steps[s].reads(b);
      for (int b : p_.steps[reader].in) early = early && (b == Step::kNoBuffer || !p_.steps[s].writes(b));
    }
    return late ? static_cast<int>(reader) : early ? static_cast<int>(maker) : -1;
  }

  /// Poolings put a batch axis in front of tensors without one; a loop over such a tensor gets it, too.
  static void lift(Step& loop, const Dims& as) {
    if (loop.problem.step != StepKind::loop || reads_coordinates(loop.problem.back)) return;
    const Dims& space = loop.problem.out[0].dims;
    if (as.size() != space.size() + 1 || as[0] != 1 || !std::equal(space.begin(), space.end(), as.begin() + 1)) return;
    for (auto* side : {&loop.problem.in, &loop.problem.out})
      for (TensorDesc& desc : *side) desc = with_batch_axis(std::move(desc));
  }

  /// Steps over images lie channels last where memory does; a loop beside one follows. `mine`: the tensor between the
  /// two as the loop has it.
  static bool turn(Step& loop, const TensorDesc& mine, const TensorDesc& theirs) {
    if (loop.problem.step != StepKind::loop || reads_coordinates(loop.problem.back)) return false;
    return reorder_axes(loop.problem, mine, theirs);
  }

  static void turn_either(Step& m, Step& r) {
    for (size_t k = 0; k < r.in.size(); ++k) {
      const int made = output_of(m, r.in[k]);
      if (made < 0) continue;
      TensorDesc &read = r.problem.in[k], &written = m.problem.out[static_cast<size_t>(made)];
      if (turn(r, read, written) || turn(m, written, read)) return;
    }
  }

  /// Groups become rows of the walk, which are not to be short.
  static bool split(Step& loop, const TensorDesc& mine, const TensorDesc& theirs) {
    if (loop.problem.step != StepKind::loop || reads_coordinates(loop.problem.back)) return false;
    if (mine.dims.empty() || theirs.dims.empty()) return false;
    if (mine.dims.back() != theirs.dims.back() && theirs.dims.back() < kLeastGroup) return false;
    return split_axes(loop.problem, mine, theirs);
  }

  /// Joins loops of which one walks groups along an axis of the other's space.
  bool join_groups(size_t maker, size_t reader) {
    const Step &m = p_.steps[maker], &r = p_.steps[reader];
    for (size_t k = 0; k < r.in.size(); ++k) {
      const int made = output_of(m, r.in[k]);
      if (made < 0) continue;
      const TensorDesc &read = r.problem.in[k], &written = m.problem.out[static_cast<size_t>(made)];
      Step fine_reader = r, fine_maker = m;
      const bool reads = split(fine_reader, read, written);
      if (!reads && !split(fine_maker, written, read)) continue;
      const size_t changed = reads ? reader : maker;
      std::swap(p_.steps[changed], reads ? fine_reader : fine_maker);
      if (join_in_one_space(maker, reader)) return true;
      std::swap(p_.steps[changed], reads ? fine_reader : fine_maker);
      return false;
    }
    return false;
  }

  /// loop or skeleton step, then a loop.
  bool join_behind(size_t maker, size_t reader) {
    lift(p_.steps[reader], p_.steps[maker].problem.out[0].dims);
    lift(p_.steps[maker], p_.steps[reader].problem.out[0].dims);
    turn_either(p_.steps[maker], p_.steps[reader]);
    return join_in_one_space(maker, reader) || join_groups(maker, reader);
  }

  bool join_in_one_space(size_t maker, size_t reader) {
    const Step &m = p_.steps[maker], &r = p_.steps[reader];
    if (r.problem.step != StepKind::loop || (m.problem.step != StepKind::loop && !is_skeleton(m.problem.step)))
      return false;
    if (m.problem.out[0].dims != r.problem.out[0].dims) return false;
    if (is_skeleton(m.problem.step) && has_folds(r.problem) && !traits_of(m.problem.step).takes_folds) return false;
    for (size_t k = 0; k < r.in.size(); ++k) {
      const int made = output_of(m, r.in[k]);
      if (made < 0) continue;
      const TensorDesc& desc = m.problem.out[static_cast<size_t>(made)];
      if (is_own_output(m, static_cast<size_t>(made))) return false;
      if (is_folded(m, static_cast<size_t>(made))) return false;  // known only after the walk
      if (!covers(desc, buffer(r.in[k])) || r.problem.in[k] != desc) return false;
    }
    if (m.in.size() + r.in.size() + m.out.size() + r.out.size() > kMaxOperands) return false;
    if (m.ops.size() + r.ops.size() > kMaxOperators) return false;
    if (m.problem.back.code.size() + r.problem.back.code.size() > kMaxInstructions) return false;
    const int at = place(maker, reader);
    if (at < 0) return false;
    Step joined = joined_behind(m, r, reader);
    std::vector<Step> before;
    if (is_product(m.problem.step)) {
      // a product may use the memory of its result before it knows all of it
      if (std::ranges::any_of(joined.out, [&](int b) { return joined.reads(b); })) return false;
      before = hoist(joined, p_);
    }
    if (!replace(maker, reader, at, std::move(joined), m.problem)) return false;
    const auto place = static_cast<size_t>(at) == maker ? at : at - 1;
    p_.steps.insert(p_.steps.begin() + place, before.begin(), before.end());
    return true;
  }

  /// Outputs of a skeleton step beside its main result: statistics that no expression makes.
  static bool is_own_output(const Step& m, size_t k) {
    return is_skeleton(m.problem.step) && k > 0 && k < static_cast<size_t>(m.problem.out_ports());
  }

  /// Which output of `m` buffer `b` is; -1: none.
  static int output_of(const Step& m, int b) {
    const auto found = std::find(m.out.begin(), m.out.end(), b);
    return found == m.out.end() ? -1 : static_cast<int>(found - m.out.begin());
  }

  Step joined_behind(const Step& m, const Step& r, size_t reader) {
    Step joined;
    joined.problem.step = m.problem.step;
    joined.problem.op = m.problem.op;
    joined.problem.attrs = m.problem.attrs;
    joined.problem.narrow = m.problem.narrow;
    joined.problem.front = m.problem.front;
    joined.problem.weights_front = m.problem.weights_front;
    joined.problem.in = m.problem.in;
    joined.in = m.in;
    joined.constant = r.constant;
    if (is_skeleton(m.problem.step)) {
      joined.problem.ports_in = m.problem.in_ports();
      joined.problem.ports_out = m.problem.out_ports();
    }
    joined.ops = m.ops;
    joined.ops.insert(joined.ops.end(), r.ops.begin(), r.ops.end());
    Expr back = m.problem.back;
    if (back.empty()) {
      ExprBuilder build(back);
      build.store(0, build.skeleton());
    }
    Transplant first(back.code, joined.problem.back), second(r.problem.back.code, joined.problem.back);
    for (size_t k = 0; k < m.in.size(); ++k) first.in_map.push_back(static_cast<int>(k));
    first.out_map.assign(m.out.size(), -1);
    second.out_map.assign(r.out.size(), -1);
    for (const auto& [from, k] : outputs_behind(m, r, reader))
      (from == &m ? first : second).out_map[k] = add_output(joined, *from, k);
    const auto values = first.run();

    for (size_t k = 0; k < r.in.size(); ++k) {
      const int made = output_of(m, r.in[k]);
      second.in_map.push_back(made >= 0 ? -1 : add_input(joined, r, k));
      second.replacement.push_back(made < 0 ? ExprBuilder::Value{0}
                                            : as_loaded(joined.problem.back, stored_value(back, made, values),
                                                        m.problem.out[static_cast<size_t>(made)].dtype));
    }
    second.run();
    return joined;
  }

  /// Outputs of `m` and `r` joined, in order: what only `r` reads is gone; a skeleton's own outputs keep their places;
  /// folds are the last ones, so that the first output of a skeleton is stored where any is.
  std::vector<std::pair<const Step*, size_t>> outputs_behind(const Step& m, const Step& r, size_t reader) const {
    std::vector<std::pair<const Step*, size_t>> stored, own;
    for (size_t k = 0; k < m.out.size(); ++k) {
      if (is_own_output(m, k))
        own.emplace_back(&m, k);
      else if (!r.reads(m.out[k]) || needed_elsewhere(m.out[k], reader))
        stored.emplace_back(&m, k);
    }
    for (size_t k = 0; k < r.out.size(); ++k) stored.emplace_back(&r, k);
    std::stable_partition(stored.begin(), stored.end(),
                          [](const auto& output) { return !is_folded(*output.first, output.second); });
    stored.insert(stored.begin() + 1, own.begin(), own.end());
    return stored;
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

  /// A loop whose only result is read by a skeleton step as its gradient (backward) or source (forward).
  bool join_in_front(size_t maker, size_t reader, int b) {
    if (is_skeleton(p_.steps[reader].problem.step)) {
      const Problem& skeleton = p_.steps[reader].problem;
      const TensorDesc& main = skeleton.in[static_cast<size_t>(front_port(skeleton.step))];
      lift(p_.steps[maker], main.dims);
      if (!p_.steps[maker].problem.out.empty()) turn(p_.steps[maker], p_.steps[maker].problem.out[0], main);
    }
    const Step &m = p_.steps[maker], &r = p_.steps[reader];
    if (m.problem.step != StepKind::loop || !is_skeleton(r.problem.step) || m.out.size() != 1) return false;
    if (is_product(r.problem.step)) return false;  // join_fronts has been there
    if (has_folds(m.problem)) return false;
    const auto port = static_cast<size_t>(front_port(r.problem.step));
    if (r.in[port] != b || r.problem.in[port] != m.problem.out[0] || !covers(m.problem.out[0], buffer(b))) return false;
    if (std::count(r.in.begin(), r.in.end(), b) != 1 || loads(r.problem.back, static_cast<int>(port))) return false;
    if (needed_elsewhere(b, reader)) return false;
    if (m.in.size() + r.in.size() > kMaxOperands) return false;
    const int at = place(maker, reader);
    if (at < 0) return false;
    Step joined = r;
    put_in_front(joined, m, port, joined.problem.front);
    return replace(maker, reader, at, std::move(joined), r.problem);
  }

  /// Always a new operand: the step's own ports keep their numbers and spaces.
  static int add_operand(Step& joined, const Step& from, size_t k) {
    joined.in.push_back(from.in[k]);
    joined.problem.in.push_back(from.problem.in[k]);
    return static_cast<int>(joined.in.size()) - 1;
  }

  /// The value that `back` stores to its output `made`, among the new values of its instructions.
  static ExprBuilder::Value stored_value(const Expr& back, int made, const std::vector<ExprBuilder::Value>& values) {
    for (size_t i = 0; i < back.code.size(); ++i)
      if (back.code[i].op == ExprOp::store && back.code[i].imm == made) return values[i];
    PT_ASSERT(!"a loop stores each of its results");
    return 0;
  }

  /// Asks once for each pair of problems: a refusal is asked for anew whenever anything else has been joined, and
  /// trying primitives takes long. The names of operators alone do not tell attempts apart, for one operator may be
  /// several steps.
  bool is_wanted(const Step& joined, const Problem& plain) {
    std::vector<Attempt>& declined = declined_[joined.ops];
    for (const Attempt& a : declined)
      if (a.joined == joined.problem && a.plain == plain) return false;
    if (shall_join_(joined.problem, plain)) return true;
    declined.push_back({joined.problem, plain});
    return false;
  }

  /// `plain` is the problem of the skeleton step before; a loop may always take another one in.
  bool replace(size_t maker, size_t reader, int at, Step joined, const Problem& plain) {
    if (is_skeleton(plain.step) && !is_wanted(joined, plain)) return false;
    p_.steps[static_cast<size_t>(at)] = std::move(joined);
    p_.steps.erase(p_.steps.begin() + static_cast<long>(static_cast<size_t>(at) == maker ? reader : maker));
    return true;
  }

  Program& p_;
  const JoinRule& shall_join_;
  std::map<std::vector<std::string>, std::vector<Attempt>> declined_;  ///< by the operators of the joined step
};

/// Null where no row takes the problem.
const Kernel* kernel_for(const Problem& problem, const Target& target) {
  const auto picked = pick_kernel(problem, target, forced_kernel(problem.step));
  return picked.ok() ? picked->kernel : nullptr;
}

}  // namespace

void fuse_loops(Program& program, const JoinRule& shall_join) {
  Fuser(program, shall_join).run();
  const std::vector<Step> before = program.steps;
  if (!make_again(program)) return;
  Fuser(program, shall_join).run();
  if (program.steps.size() > before.size()) program.steps = before;  // what is made again joins nobody
}

void fuse_loops(Program& program, const Target& target) {
  fuse_loops(program, [&](const Problem& joined, const Problem& plain) {
    if (is_dear_in_front(joined)) return false;
    const Kernel* with = kernel_for(joined, target);
    if (!with) return false;
    const Kernel* without = kernel_for(plain, target);
    // rows of one table, best first
    if (is_product(plain.step)) return !with->slow && (!without || with <= without);
    return !with->slow || (!generates_loops(target) && (!without || without->slow));
  });
}

}  // namespace partita
