// SPDX-License-Identifier: Apache-2.0
// GroupNorm. A tile is a group of one sample (channel-first: rows are channels, lanes positions) or a sample
// (channel-last: rows are positions, lanes channels). Pieces of a tile are measured channel by channel while they lie
// in the cache; the channels of a group are joined in f64.
#include <algorithm>
#include <cmath>

#include "kernels/jit/code/run_of.hpp"
#include "kernels/jit/flat/exceeds_cache.hpp"
#include "kernels/jit/rows/norm.hpp"
#include "kernels/jit/rows/norm_parts.hpp"
#include "src/base/axes.hpp"
#include "src/base/check.hpp"
#include "src/base/dtype.hpp"
#include "src/base/round.hpp"
#include "src/base/shape.hpp"

namespace partita::jit {
namespace {

using Value = Sweep::Value;

constexpr int64_t kPiece = 8192;  ///< elements of a piece
constexpr int64_t kLeastLanes = 256, kLeastRows = 8;
constexpr int64_t kUnit = 64;
/// Samples or groups a thread, from which on threads do not share one.
constexpr int64_t kEnoughTiles = 4;
constexpr int64_t kJoinCost = 8;  ///< operations that join a piece of a group with the others
/// Bytes of a tile that stay in a core's own cache.
constexpr int64_t kOwnTile = int64_t{1} << 20;

struct GroupPlan : RowPlan {
  bool channel_lanes = false;
  int64_t groups = 1, channels = 1;
  int64_t pieces = 1, piece_rows = 1;

  /// Channels of a tile and, of them, those of one group.
  int64_t width() const { return channel_lanes ? channels : channels / groups; }
  int64_t together() const { return channels / groups; }
  int64_t groups_of_tile() const { return width() / together(); }
};

bool has_stats(const Problem& p) { return p.out_ports() > 2; }

/// Rows and lanes, whichever of channels and positions lie next to each other.
const char* choose_space(const Problem& p, const std::vector<SpaceOperand>& operands, GroupPlan& plan) {
  const Dims& dims = p.out[0].dims;
  const int channel = channel_axis(p.attrs, dims.size());
  std::vector<SharedAxis> positions;
  for (int d = 1; d < dims.size(); ++d)
    if (d != channel) positions.push_back(shared_axis(dims, d, operands));
  std::stable_sort(positions.begin(), positions.end(),
                   [](const SharedAxis& a, const SharedAxis& b) { return a.strides[0] > b.strides[0]; });
  positions = joined_axes(positions);
  if (positions.size() > 1) return "the positions are not evenly spaced";
  const SharedAxis sample = shared_axis(dims, 0, operands), channels = shared_axis(dims, channel, operands);
  SharedAxis position{1, std::vector<int64_t>(operands.size(), 0)};
  if (!positions.empty()) position = positions[0];
  plan.channels = channels.extent;
  RowSpace& space = plan.space;
  if (!positions.empty() && is_run(position, operands)) {
    SharedAxis group = channels, inside = channels;
    group.extent = plan.groups;
    inside.extent = plan.together();
    for (int64_t& stride : group.strides) stride *= plan.together();
    space.outer = {sample.extent, group.extent};
    space.rows = inside.extent;
    space.lanes = position.extent;
    space.views = views_of({sample, group}, inside, position, operands);
    return nullptr;
  }
  if (channels.extent > 1 && !is_run(channels, operands)) return "neither channels nor positions lie in runs";
  plan.channel_lanes = true;
  space.along_lanes = false;
  space.outer = {sample.extent};
  space.rows = position.extent;
  space.lanes = channels.extent;
  space.views = views_of({sample}, position, channels, operands);
  return nullptr;
}

void choose_pieces(GroupPlan& plan) {
  const RowSpace& space = plan.space;
  plan.tiling.tile_rows = space.rows;
  plan.tiling.block = space.lanes;
  plan.piece_rows = space.rows;
  if (plan.channel_lanes) {
    plan.piece_rows = std::min(space.rows, std::max(kLeastRows, kPiece / space.lanes));
    plan.pieces = (space.rows + plan.piece_rows - 1) / plan.piece_rows;
  } else {
    plan.tiling.block = std::min(space.lanes, std::max(kLeastLanes, kPiece / space.rows / kUnit * kUnit));
    plan.pieces = plan.tiling.blocks = (space.lanes + plan.tiling.block - 1) / plan.tiling.block;
  }
}

const char* plan_groups(const Problem& p, const Target& target, GroupPlan& plan) {
  plan.isa = target.isa;
  plan.threads = std::max(1, target.threads);
  plan.edges = edges_of(p);
  plan.groups = p.attrs.i64(Attr::groups);
  if (p.out[0].dims.size() < 2) return "the source has no channels";
  if (const char* reason = refuse_edges(p, plan.edges)) return reason;
  const std::vector<SpaceOperand> operands = edge_operands(p, plan.edges);
  if (const char* reason = choose_space(p, operands, plan)) return reason;
  choose_pieces(plan);
  place_views(p, operands, plan);
  if (plan.channel_lanes)  // pieces are rows there
    for (auto* side : {&plan.in, &plan.out})
      for (RowView& view : *side) view.block = 0;
  plan.may_stream = exceeds_cache(p);
  for (int port : {1, 2})
    if (has_affine(p, port))
      if (const char* reason = refuse_vector(p.in[static_cast<size_t>(port)], plan.channels)) return reason;
  return nullptr;
}

class GroupNorm {
 public:
  GroupNorm(const Problem& p, const Target& target) : problem_(p), epsilon_(p.attrs.f32_or(Attr::epsilon, 1e-5f)) {
    PT_ASSERT(plan_groups(p, target, plan_) == nullptr);
    sums_ = numbers(plan_.pieces);
    squares_ = numbers(plan_.pieces);
    mean_ = numbers(1);
    rstd_ = numbers(1);
    moments_ = reserved(plan_.groups_of_tile() * static_cast<int64_t>(sizeof(Part)), plan_.pieces);
    write_sweeps();
  }

  size_t scratch_bytes() const { return tiles_scratch(plan_, bytes_).bytes(); }

  Status operator()(const RunArgs& args) const {
    const int64_t tiles = tile_count(plan_);
    const auto part = [&](int64_t begin, int64_t end, int number) {
      std::byte* scratch = tiles_scratch(plan_, bytes_).share(args.scratch, number);
      for (int64_t t = begin; t < end; ++t) run(tile_at(plan_, args, scratch, t));
    };
    if (shares_tiles(tiles))
      part(0, tiles, 0);
    else
      parallel_for(tiles, tile_cost(plan_), part, plan_.threads);
    return {};
  }

 private:
  /// Whether threads share the pieces of each tile: where tiles are few, and deal worse with the threads than pieces do
  /// or leave the caches.
  bool shares_tiles(int64_t tiles) const {
    if (tiles >= kEnoughTiles * plan_.threads || plan_.pieces == 1) return false;
    const auto waste = [&](int64_t units) {
      return static_cast<double>(rounded_up(units, plan_.threads) - units) / static_cast<double>(units);
    };
    return waste(tiles) > waste(plan_.pieces) || tile_cost(plan_) * bits_of(problem_.in[0].dtype) / 8 > kOwnTile;
  }

  /// So many bytes of a tile's scratch memory, `pieces` times.
  RowView reserved(int64_t bytes, int64_t pieces) {
    bytes = aligned(bytes);
    const RowView view{.offset = static_cast<int64_t>(bytes_), .block = pieces > 1 ? bytes : 0};
    bytes_ += static_cast<size_t>(bytes * pieces);
    return view;
  }

  /// One f32 for each channel of a tile, `pieces` times.
  RowView numbers(int64_t pieces) {
    RowView view = reserved(plan_.width() * 4, pieces);
    view.steps = plan_.channel_lanes;
    (plan_.channel_lanes ? view.lane : view.row) = 4;
    return view;
  }

  /// gamma or beta of the tile's channels.
  RowView affine(int port) const {
    const TensorDesc& desc = problem_.in[static_cast<size_t>(port)];
    RowView view = vector_view(RowView::From::in, port, desc, 0);
    if (plan_.channel_lanes) return view;
    std::swap(view.row, view.lane);
    view.steps = false;
    view.outer = {0, plan_.together() * view.row};
    return view;
  }

  void write_sweeps() {
    add_up_.fold(sums_, Fold::sum, add_up_.front(plan_));
    add_up_.make(plan_);
    ExprBuilder b = differences_.builder();
    const Value x = differences_.front(plan_);
    differences_.fold(squares_, Fold::sum, b.apply(ExprOp::square, b.sub(x, differences_.load(sums_))));
    differences_.make(plan_);
    write_map();
  }

  void write_map() {
    ExprBuilder b = map_.builder();
    Value y = map_.front(plan_);
    y = b.mul(b.sub(y, map_.load(mean_)), map_.load(rstd_));
    if (has_affine(problem_, 1)) y = b.mul(y, map_.load(affine(1)));
    if (has_affine(problem_, 2)) y = b.add(y, map_.load(affine(2)));
    map_.back(plan_, y);
    map_.fetch_next_tile(plan_);
    map_.make(plan_);
  }

  /// Positions of a piece.
  int64_t positions_of(int64_t piece) const {
    const RowSpace& s = plan_.space;
    return plan_.channel_lanes ? std::min(plan_.piece_rows, s.rows - piece * plan_.piece_rows)
                               : std::min(plan_.tiling.block, s.lanes - piece * plan_.tiling.block);
  }

  void sweep(const Sweep& sweep, const Tile& tile, int64_t piece) const {
    if (!plan_.channel_lanes) return sweep.run(tile, piece, plan_.space.rows, positions_of(piece));
    Tile part = tile;
    part.row = piece * plan_.piece_rows;
    sweep.run(part, piece, positions_of(piece), plan_.space.lanes);
  }

  template <class F>
  void each_piece(F work) const {
    parallel_for(plan_.pieces, tile_cost(plan_) / plan_.pieces, [&](int64_t begin, int64_t end) {
      for (int64_t piece = begin; piece < end; ++piece) work(piece);
    });
  }

  void run(const Tile& tile) const {
    each_piece([&](int64_t piece) {
      float* sums = tile.floats(sums_, piece);
      std::fill_n(sums, plan_.width(), 0.0f);
      std::fill_n(tile.floats(squares_, piece), plan_.width(), 0.0f);
      sweep(add_up_, tile, piece);
      divide(sums, plan_.width(), static_cast<float>(positions_of(piece)));
      sweep(differences_, tile, piece);
      for (int64_t group = 0; group < plan_.groups_of_tile(); ++group)
        moments(tile, piece)[group] = joined_channels(tile, piece, group);
    });
    parallel_for(plan_.groups_of_tile(), plan_.pieces * kJoinCost, [&](int64_t begin, int64_t end) {
      for (int64_t group = begin; group < end; ++group) finish(tile, group);
    });
    each_piece([&](int64_t piece) { sweep(map_, tile, piece); });
  }

  /// What of a group lies in a piece: its mean, and the sum of squared differences from that.
  struct Part {
    double mean, squares;
  };
  Part* moments(const Tile& tile, int64_t piece) const { return reinterpret_cast<Part*>(tile.floats(moments_, piece)); }

  static void divide(float* numbers, int64_t n, float by) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) numbers[i] /= by;
  }

  static double sum_of(const float* numbers, int64_t n) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(numbers[i]);
    return sum;
  }

  static double squares_about(double mean, const float* means, int64_t n) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; ++i) {
      const double apart = static_cast<double>(means[i]) - mean;
      sum += apart * apart;
    }
    return sum;
  }

  /// The mean first, then the squares about it: channels that lie far apart cancel nothing.
  Part joined_channels(const Tile& tile, int64_t piece, int64_t group) const {
    const int64_t channels = plan_.together(), first = group * channels;
    const float* means = tile.floats(sums_, piece) + first;
    const double mean = sum_of(means, channels) / static_cast<double>(channels);
    return {mean, sum_of(tile.floats(squares_, piece) + first, channels) +
                      static_cast<double>(positions_of(piece)) * squares_about(mean, means, channels)};
  }

  /// A group of the tile: its pieces are joined in the same way.
  void finish(const Tile& tile, int64_t group_of_tile) const {
    const int64_t channels = plan_.together(), first = group_of_tile * channels;
    const auto elements_of = [&](int64_t piece) { return static_cast<double>(positions_of(piece) * channels); };
    double count = 0, mean = 0, variance = 0;
    for (int64_t piece = 0; piece < plan_.pieces; ++piece) {
      count += elements_of(piece);
      mean += elements_of(piece) * moments(tile, piece)[group_of_tile].mean;
    }
    mean /= count;
    for (int64_t piece = 0; piece < plan_.pieces; ++piece) {
      const Part& part = moments(tile, piece)[group_of_tile];
      variance += part.squares + elements_of(piece) * (part.mean - mean) * (part.mean - mean);
    }
    variance /= count;
    const double rstd = 1 / std::sqrt(variance + static_cast<double>(epsilon_));
    std::fill_n(tile.floats(mean_) + first, plan_.together(), static_cast<float>(mean));
    std::fill_n(tile.floats(rstd_) + first, plan_.together(), static_cast<float>(rstd));
    if (!has_stats(problem_)) return;
    const int64_t group = plan_.channel_lanes ? group_of_tile : tile.outer[1];
    for (size_t port : {1u, 2u}) {
      const TensorDesc& desc = problem_.out[port];
      const int64_t at = desc.offset + tile.outer[0] * desc.strides[0] + group * desc.strides[1];
      store_from_double(tile.args.out[port], desc.dtype, at, port == 1 ? mean : variance);
    }
  }

  Problem problem_;
  float epsilon_;
  GroupPlan plan_;
  size_t bytes_ = 0;
  RowView sums_, squares_;  ///< of each piece; the sums become means
  RowView moments_;         ///< of each piece: a Part of each group
  RowView mean_, rstd_;
  Sweep add_up_, differences_, map_;
};

}  // namespace

const char* refuse_group_norm(const Problem& problem, const Target& target) {
  GroupPlan plan;
  return plan_groups(problem, target, plan);
}
Result<Run> make_group_norm(const Problem& problem, const Target& target) { return run_of<GroupNorm>(problem, target); }

}  // namespace partita::jit
