// SPDX-License-Identifier: Apache-2.0
// Programs of tiles: the region's steps over smaller spaces. Values of the region lie in memory of the thread that
// computes the tile, everything else where it is, a little further for every tile.
#include "passes/tile/tile_program.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "kernels/thread_scratch.hpp"
#include "passes/lower/lowering.hpp"
#include "passes/mark_constants.hpp"
#include "passes/optimize/drop_copies.hpp"
#include "passes/optimize/fuse_loops.hpp"
#include "passes/plan.hpp"
#include "passes/run_steps.hpp"
#include "passes/select.hpp"
#include "src/base/check.hpp"
#include "src/base/dtype.hpp"
#include "src/base/round.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "src/base/threads.hpp"

namespace partita {
namespace {

/// A buffer of the program around, as a tile sees it.
struct Port {
  static constexpr int kSums = -2;
  int buffer = 0;             ///< of the program around; kNoBuffer: its addresses are numbers (ExprOp::uniform);
                              ///< kSums: what tiles along the last axis add up, in memory of the thread
  int inner = 0;              ///< of the tile's program
  int64_t first = 0;          ///< bits from the tensor's start to the first tile's
  std::vector<int64_t> step;  ///< bits from one index along each tile axis to the next
  bool written = false;
};

/// What tiles along the last axis share (keys and values of a head) is brought into its last form once for all those
/// that a thread computes. Of larger tensors, each thread would hold a copy that leaves the caches.
constexpr size_t kMostKept = size_t{4} << 20;
/// Packing a factor takes about as long as multiplying so many rows with it.
constexpr int64_t kWorthPacking = 64;

struct TileProgram {
  Program program;
  std::vector<Port> ports;
  size_t sums_bytes = 0;
};

/// Makes the program of tiles of the given extents.
class Maker {
 public:
  Maker(const Program& around, const Region& region, const std::vector<int64_t>& extents)
      : around_(around), region_(region), extents_(extents) {}

  Result<TileProgram> run(const Target& target) {
    for (const Region::Local& l : region_.local) add_local(l);
    for (size_t i = 0; i < region_.steps.size(); ++i)
      PT_TRY(region_.accumulates(around_, i) ? add_summand(i) : add_step(i));
    return finished(target);
  }

  /// Stores what tiles have added up.
  Result<TileProgram> run_behind(const Target& target) {
    for (size_t i = 0; i < region_.steps.size(); ++i) {
      if (!region_.accumulates(around_, i)) continue;
      const Step& whole = around_.steps[region_.steps[i]];
      TensorDesc result = whole.problem.out[0];
      int buffer = whole.out[0];
      PT_TRY(cut(i, region_.walks[i].out[0], true, buffer, result));
      const TensorDesc sums = sums_of(result.dims);
      LoopStep store;
      auto sum = store.load(sums, add_sums(sums));
      if (whole.in.size() > 2) {
        TensorDesc bias = whole.problem.in[2];
        int at = whole.in[2];
        PT_TRY(cut(i, region_.walks[i].in[2], false, at, bias));
        sum = store.builder().add(sum, store.load(spread(bias, result.dims), at));
      }
      store.store(result, buffer, sum);
      made_.program.steps.push_back(store.take());
      made_.program.steps.back().ops = whole.ops;
    }
    return finished(target);
  }

 private:
  Result<TileProgram> finished(const Target& target) {
    drop_copies(made_.program);
    mark_constants(made_.program);  // so that loops are fused with their like
    fuse_loops(made_.program, target);
    mark_constants(made_.program);
    PT_TRY(select_kernels(made_.program, target));
    plan_memory(made_.program);
    return std::move(made_);
  }

  void add_local(const Region::Local& l) {
    const logical_tensor& whole = around_.buffers[static_cast<size_t>(l.buffer)].desc;
    Dims dims;
    for (int d = 0; d < whole.rank(); ++d) dims.push_back(l.tiled[static_cast<size_t>(d)].of(whole.dims[d], extents_));
    local_[l.buffer] = add_temporary(whole.dtype, dims);
  }

  Status add_step(size_t i) {
    Step step = around_.steps[region_.steps[i]];
    PT_TRY(cut_inputs(i, step));
    for (size_t k = 0; k < step.out.size(); ++k)
      PT_TRY(cut(i, region_.walks[i].out[k], true, step.out[k], step.problem.out[k]));
    made_.program.steps.push_back(std::move(step));
    return {};
  }

  Status cut_inputs(size_t i, Step& step) {
    for (size_t k = 0; k < step.in.size(); ++k) {
      if (step.in[k] == Step::kNoBuffer && !counts(step.problem.back, static_cast<int>(k))) continue;
      PT_TRY(cut(i, region_.walks[i].in[k], false, step.in[k], step.problem.in[k]));
    }
    return {};
  }

  int add_temporary(Dtype dtype, const Dims& dims) {
    made_.program.buffers.push_back(
        {.role = Buffer::Role::temporary, .desc = logical_tensor(0, dtype, dims), .content = {}});
    return static_cast<int>(made_.program.buffers.size()) - 1;
  }

  static TensorDesc sums_of(const Dims& dims) { return {Dtype::f32, dims, dense_strides(dims), 0}; }

  /// The next sums in the thread's memory.
  int add_sums(const TensorDesc& desc) {
    Port port{.buffer = Port::kSums,
              .first = static_cast<int64_t>(made_.sums_bytes) * 8,
              .step = std::vector<int64_t>(extents_.size(), 0),
              .written = true};
    made_.sums_bytes += aligned(bytes_for(Dtype::f32, elements(desc.dims)));
    return inner_of(std::move(port), desc);
  }

  /// A product that sums along the last axis: its summand, and a loop that adds it. The product does not add itself: it
  /// may use the memory of its result before it knows all of it.
  Status add_summand(size_t i) {
    Step product = around_.steps[region_.steps[i]];
    product.in.resize(2);  // a bias is added behind
    product.problem.in.resize(2);
    PT_TRY(cut_inputs(i, product));
    Dims dims = product.problem.out[0].dims;
    for (int d = 0; d < dims.size(); ++d) dims[d] = cut_of(i, region_.walks[i].out[0], dims, d).of(dims[d], extents_);
    const TensorDesc sums = sums_of(dims);
    const int summand = add_temporary(Dtype::f32, dims), all = add_sums(sums);
    product.out[0] = summand;
    product.problem.out[0] = sums;
    product.problem.narrow = false;
    made_.program.steps.push_back(std::move(product));
    LoopStep add;
    const auto x = add.load(sums, all), y = add.load(sums, summand);
    add.store(sums, all, add.builder().add(x, y));
    made_.program.steps.push_back(add.take());
    return {};
  }

  /// How axis `d` of an operand with these dims is cut.
  TileCut cut_of(size_t i, const std::vector<int>& walked, const Dims& dims, int d) const {
    const int at = walked[static_cast<size_t>(d)];
    return at >= 0 && dims[d] > 1 ? region_.tiled[i][static_cast<size_t>(at)] : TileCut{};
  }

  /// An operand as the tile sees it.
  Status cut(size_t i, const std::vector<int>& walked, bool written, int& buffer, TensorDesc& desc) {
    std::vector<TileCut> cuts;
    Dims dims = desc.dims;
    for (int d = 0; d < desc.dims.size(); ++d) {
      cuts.push_back(cut_of(i, walked, desc.dims, d));
      dims[d] = cuts.back().of(desc.dims[d], extents_);
    }
    const auto local = local_.find(buffer);
    if (local != local_.end()) {
      desc = local_view(desc, dims, buffer, local->second);
      buffer = local->second;
      return {};
    }
    Port port{.buffer = buffer, .step = std::vector<int64_t>(extents_.size(), 0), .written = written};
    const int64_t bits = bits_of(desc.dtype);
    for (size_t d = 0; d < cuts.size(); ++d)
      if (const TileCut& c = cuts[d]; c.axis >= 0)
        port.step[static_cast<size_t>(c.axis)] += desc.strides[static_cast<int>(d)] * c.times * bits;
    port.first = desc.offset * bits;
    bool whole_bytes = port.first % 8 == 0;
    for (size_t c = 0; c < extents_.size(); ++c) whole_bytes = whole_bytes && port.step[c] * extents_[c] % 8 == 0;
    if (!whole_bytes) return fail(Code::unimplemented, "tiles start within a byte");
    desc.dims = dims;
    desc.offset = 0;
    if (buffer == Step::kNoBuffer && !begins_with_quads(port)) {
      desc.offset = 1;  // kernels learn from offsets whether numbers begin with a multiple of four
      port.first -= bits;
    }
    buffer = inner_of(std::move(port), desc);
    return {};
  }

  /// Whether every tile's numbers begin with a multiple of four.
  static bool begins_with_quads(const Port& port) {
    constexpr int64_t kQuadBits = 4 * 8;
    const auto quads = [](int64_t bits) { return bits % kQuadBits == 0; };
    return quads(port.first) && std::ranges::all_of(port.step, quads);
  }

  /// The view of a piece that `desc` is of the whole value.
  TensorDesc local_view(const TensorDesc& desc, const Dims& dims, int buffer, int piece) const {
    const logical_tensor& whole = around_.buffers[static_cast<size_t>(buffer)].desc;
    const logical_tensor& own = made_.program.buffers[static_cast<size_t>(piece)].desc;
    if (desc.dims == whole.dims && desc.strides == whole.strides) return {desc.dtype, own.dims, own.strides, 0};
    TensorDesc view{desc.dtype, dims, Dims(dims.size(), 0), 0};
    int64_t next = 1;
    for (int d = dims.size() - 1; d >= 0; --d) {
      const auto at = axis_around(desc.dims[d], desc.strides[d], Dims(whole.dims), Dims(whole.strides));
      // an axis of size 1 has any stride, but a repeated one none
      view.strides[d] = at ? own.strides[at->axis] * at->times : desc.dims[d] > 1 ? 0 : next;
      next = std::max(next, view.strides[d] * dims[d]);
    }
    return view;
  }

  /// The tile's buffer for a port; operands that move alike share it.
  int inner_of(Port port, const TensorDesc& desc) {
    for (Port& known : made_.ports)
      if (known.buffer == port.buffer && known.first == port.first && known.step == port.step) {
        known.written = known.written || port.written;
        Buffer& b = made_.program.buffers[static_cast<size_t>(known.inner)];
        if (port.written) b.role = Buffer::Role::output;
        return known.inner;
      }
    Buffer b{.role = port.written ? Buffer::Role::output : Buffer::Role::input,
             .tensor = static_cast<uint64_t>(port.buffer),  // a tile's pairs name buffers of the program around
             .desc = logical_tensor(0, desc.dtype, desc.dims, desc.strides),
             .content = {}};
    if (!port.written && stays(port, b.desc)) b.desc.property = Property::constant;
    // What is made between products is read soon.
    if (port.written && region_.around == Around::sums)
      b.whole_bytes = around_.buffers[static_cast<size_t>(port.buffer)].desc.size_bytes();
    made_.program.buffers.push_back(std::move(b));
    port.inner = static_cast<int>(made_.program.buffers.size()) - 1;
    made_.ports.push_back(std::move(port));
    return made_.ports.back().inner;
  }

  /// Whether tiles that follow each other along the last axis see the same place of the tensor.
  bool stays(const Port& port, const logical_tensor& piece) const {
    return port.buffer != Step::kNoBuffer && extents_.back() < region_.axes.back().extent && port.step.back() == 0 &&
           piece.size_bytes() <= kMostKept;
  }

  const Program& around_;
  const Region& region_;
  const std::vector<int64_t>& extents_;
  TileProgram made_;
  std::map<int, int> local_;
};

/// All tiles: those of full size, and those at the end of the last axis where they are smaller.
class Tiles {
 public:
  std::vector<int64_t> counts, extents;  ///< of each tile axis
  TileProgram full, rest;
  TileProgram behind;  ///< for all tiles along the last axis, once they have added up
  bool has_rest = false;
  std::vector<int> in, out;  ///< buffers of the program around, as the step has them

  ThreadScratch scratch(int threads) const {
    const size_t kept = aligned(full.program.kept_bytes) + aligned(rest.program.kept_bytes);
    return {threads, static_cast<int64_t>(shared_bytes() + kept + full.sums_bytes)};
  }

  Status run(const RunArgs& args, int most) const {
    const int64_t together = full.sums_bytes > 0 ? counts.back() : 1;
    int64_t n = 1;
    for (int64_t count : counts) n *= count;
    std::mutex mutex;
    Status failed;
    const auto part = [&](int64_t begin, int64_t end, int number) {
      const ThreadScope alone(1);  // the programs' scratch memory is for one thread
      Memory memory{scratch(most).share(args.scratch, number)};
      for (int64_t t = begin * together; t < end * together; ++t)
        if (Status s = run_tile(args, memory, t); !s.ok()) {
          const std::lock_guard lock(mutex);
          if (failed.ok()) failed = std::move(s);
          return;
        }
    };
    constexpr int64_t kAlwaysWorthThreads = 1 << 20;
    parallel_for(n / together, kAlwaysWorthThreads, part, most);
    return failed;
  }

 private:
  /// A thread's: for the arena and the addresses of any of the programs, behind them what two keep between tiles,
  /// behind that what tiles add up.
  struct Memory {
    std::byte* start;
    int64_t kept_of_full = -1, kept_of_rest = -1;  ///< for which index along the axes before the last
  };

  static size_t bytes_of(const Program& p) { return aligned(p.arena_bytes) + aligned(p.addresses * sizeof(void*)); }
  size_t shared_bytes() const {
    return std::max({bytes_of(full.program), bytes_of(rest.program), bytes_of(behind.program)});
  }
  std::byte* kept_by_full(const Memory& m) const { return m.start + shared_bytes(); }
  std::byte* kept_by_rest(const Memory& m) const { return kept_by_full(m) + aligned(full.program.kept_bytes); }
  std::byte* sums(const Memory& m) const { return kept_by_rest(m) + aligned(rest.program.kept_bytes); }

  Status run_tile(const RunArgs& args, Memory& memory, int64_t t) const {
    const int64_t along = t % counts.back(), before = t / counts.back();
    const bool last = along == counts.back() - 1, smaller = has_rest && last;
    if (along == 0) std::memset(sums(memory), 0, full.sums_bytes);
    int64_t& kept_of = smaller ? memory.kept_of_rest : memory.kept_of_full;
    PT_TRY(run_program(smaller ? rest : full, args, memory, t, smaller ? kept_by_rest(memory) : kept_by_full(memory),
                       kept_of != before));
    kept_of = before;
    return last && full.sums_bytes > 0 ? run_program(behind, args, memory, t, nullptr, false) : Status();
  }

  Status run_program(const TileProgram& tile, const RunArgs& args, const Memory& memory, int64_t t, std::byte* kept,
                     bool makes_kept) const {
    if (tile.program.kept_bytes == 0) kept = nullptr;
    auto** pointers = reinterpret_cast<void**>(memory.start + aligned(tile.program.arena_bytes));
    place_buffers(tile.program, pointers, memory.start, kept);
    std::array<int64_t, kMaxRank> at{};
    for (auto axis = counts.size(); axis-- > 0; t /= counts[axis]) at[axis] = t % counts[axis] * extents[axis];
    for (const Port& port : tile.ports) {
      int64_t bits = port.first;
      for (size_t c = 0; c < counts.size(); ++c) bits += at[c] * port.step[c];
      // numbers begin at any address, so this is no arithmetic of pointers
      const auto base = reinterpret_cast<uintptr_t>(port.buffer == Port::kSums ? sums(memory) : base_of(port, args));
      pointers[port.inner] = reinterpret_cast<void*>(base + static_cast<uintptr_t>(bits / 8));
    }
    if (kept && makes_kept) PT_TRY(make_kept(tile.program, pointers, memory.start, kept));
    return run_steps(tile.program, pointers, memory.start, kept);
  }

  const void* base_of(const Port& port, const RunArgs& args) const {
    if (port.buffer == Step::kNoBuffer) return nullptr;
    const auto o = std::find(out.begin(), out.end(), port.buffer);
    if (o != out.end()) return args.out[static_cast<size_t>(o - out.begin())];
    return args.in[static_cast<size_t>(std::find(in.begin(), in.end(), port.buffer) - in.begin())];
  }
};

/// The port of a tensor; null where tiles see it in several ways.
const Port* only_port(const TileProgram& tile, uint64_t buffer) {
  const auto is_it = [&](const Port& p) { return p.buffer == static_cast<int>(buffer); };
  const auto found = std::ranges::find_if(tile.ports, is_it);
  return std::ranges::count_if(tile.ports, is_it) == 1 ? &*found : nullptr;
}

/// What a tile may make in the place of what it reads, the whole program may, if no other tile reads that.
std::vector<std::pair<size_t, size_t>> inplace_of(const Tiles& tiles) {
  std::vector<std::pair<size_t, size_t>> pairs;
  for (const auto& pair : tiles.full.program.inplace) {
    const Port *from = only_port(tiles.full, pair.first), *to = only_port(tiles.full, pair.second);
    if (!from || !to || from->buffer < 0 || to->buffer < 0 || from->first != to->first || from->step != to->step)
      continue;
    bool apart = true;
    for (size_t c = 0; c < tiles.counts.size(); ++c) apart = apart && (tiles.counts[c] == 1 || from->step[c] != 0);
    if (!apart || (tiles.has_rest && !std::ranges::count(tiles.rest.program.inplace, pair))) continue;
    const auto place = [](const std::vector<int>& side, int buffer) {
      return static_cast<size_t>(std::ranges::find(side, buffer) - side.begin());
    };
    pairs.emplace_back(place(tiles.in, from->buffer), place(tiles.out, to->buffer));
  }
  return pairs;
}

std::string describe(const Tiles& tiles) {
  int64_t n = 1;
  for (int64_t count : tiles.counts) n *= count;
  std::string text = str(n, " tiles of ");
  for (size_t c = 0; c < tiles.extents.size(); ++c) text += str(c ? "x" : "", tiles.extents[c]);
  const auto add_steps = [&](bool constant) {
    for (const Step& s : tiles.full.program.steps)
      if (s.constant == constant) text += str(" ", s.picked.kernel->name, " (", text_of(s), ");");
  };
  if (std::ranges::any_of(tiles.full.program.steps, &Step::constant)) {
    text += str(", once for ", tiles.counts.back(), " of them:");
    add_steps(true);
    text += " each:";
  } else {
    text += ", each:";
  }
  add_steps(false);
  if (tiles.full.sums_bytes > 0)
    text += str(" one after the other, whose sums are stored behind ", tiles.counts.back(), ";");
  text.pop_back();
  return text;
}

}  // namespace

Result<Step> tile_step(const Program& program, const Region& region, const std::vector<int64_t>& extents,
                       const Target& target) {
  Target alone = target;
  alone.threads = 1;
  alone.deterministic = false;  // with one thread there is nothing to split
  alone.keeps_packs = region.axes.back().extent >= kWorthPacking;
  const ThreadScope scope(1);
  auto tiles = std::make_shared<Tiles>();
  tiles->extents = extents;
  for (size_t c = 0; c < extents.size(); ++c)
    tiles->counts.push_back((region.axes[c].extent + extents[c] - 1) / extents[c]);
  PT_ASSIGN(tiles->full, Maker(program, region, extents).run(alone));
  if (tiles->full.sums_bytes > 0) {
    PT_ASSIGN(tiles->behind, Maker(program, region, extents).run_behind(alone));
  }
  if (const int64_t left = region.axes.back().extent % extents.back(); left != 0) {
    std::vector<int64_t> smaller = extents;
    smaller.back() = left;
    PT_ASSIGN(tiles->rest, Maker(program, region, smaller).run(alone));
    tiles->has_rest = true;
  }
  Step step;
  step.problem.step = StepKind::tiles;
  for (size_t s : region.steps)
    for (const std::string& op : program.steps[s].ops)
      if (std::find(step.ops.begin(), step.ops.end(), op) == step.ops.end()) step.ops.push_back(op);
  for (const TileProgram* tile : {&tiles->full, &tiles->behind})
    for (const Port& port : tile->ports) {
      if (port.buffer < 0) continue;
      std::vector<int>& side = port.written ? step.out : step.in;
      if (std::find(side.begin(), side.end(), port.buffer) != side.end()) continue;
      const logical_tensor& t = program.buffers[static_cast<size_t>(port.buffer)].desc;
      side.push_back(port.buffer);
      (port.written ? step.problem.out : step.problem.in).push_back({t.dtype, t.dims, t.strides, 0});
    }
  tiles->in = step.in;
  tiles->out = step.out;
  step.inplace = inplace_of(*tiles);
  step.note = describe(*tiles);
  step.run = {.call = [tiles, most = target.threads](const RunArgs& args) { return tiles->run(args, most); },
              .scratch_bytes = tiles->scratch(std::max(1, target.threads)).bytes()};
  return step;
}

}  // namespace partita
