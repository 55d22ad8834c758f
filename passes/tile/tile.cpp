// SPDX-License-Identifier: Apache-2.0
// The tile pass: finds regions, makes their tiles' programs, and puts a step in place of each region.
#include "passes/tile/tile.hpp"

#include <algorithm>
#include <utility>

#include "passes/lower/lowering.hpp"
#include "passes/tile/region.hpp"
#include "passes/tile/split_products.hpp"
#include "passes/tile/tile_program.hpp"
#include "passes/tile/tiling.hpp"
#include "passes/tile/weights.hpp"
#include "src/base/check.hpp"
#include "src/base/text.hpp"

namespace partita {
namespace {

const char* refuse_tiles(const Problem&, const Target&) { return "made by the tile pass only"; }
Result<Run> make_tiles(const Problem&, const Target&) {
  return fail(Code::unimplemented, "made by the tile pass only");
}

constexpr Kernel kTiles = {"tiles_any_program", StepKind::tiles, Isa::any, refuse_tiles, make_tiles};

/// Index arithmetic inside a tile would count from the tile's start: coordinates along its axes are read from a table.
void replace_indices(Program& program, const Region& region) {
  for (size_t i = 0; i < region.steps.size(); ++i) {
    Step& step = program.steps[region.steps[i]];
    for (Instr& in : step.problem.back.code) {
      if (in.op != ExprOp::index_s32 || region.tiled[i][static_cast<size_t>(in.imm)].axis < 0) continue;
      const Dims& space = step.problem.out[0].dims;
      const auto axis = in.imm;
      std::vector<int32_t> table(static_cast<size_t>(space[axis]));
      for (size_t k = 0; k < table.size(); ++k) table[k] = static_cast<int32_t>(k);
      Buffer b{.role = Buffer::Role::constant,
               .desc = logical_tensor(0, Dtype::s32, Dims{space[axis]}),
               .content = std::vector<std::byte>(table.size() * sizeof(int32_t))};
      std::copy_n(reinterpret_cast<const std::byte*>(table.data()), b.content.size(), b.content.data());
      program.buffers.push_back(std::move(b));
      TensorDesc desc{Dtype::s32, space, Dims(space.size(), 0), 0};
      desc.strides[axis] = 1;
      step.in.push_back(static_cast<int>(program.buffers.size()) - 1);
      step.problem.in.push_back(desc);
      in = {.op = ExprOp::load, .imm = static_cast<int32_t>(step.in.size()) - 1};
    }
  }
}

bool counts_along_tiles(const Program& program, const Region& region) {
  for (size_t i = 0; i < region.steps.size(); ++i)
    for (const Instr& in : program.steps[region.steps[i]].problem.back.code)
      if (in.op == ExprOp::index_s32 && region.tiled[i][static_cast<size_t>(in.imm)].axis >= 0) return true;
  return false;
}

/// Steps that need the region's results stand behind it, the others before it.
void put_in_place(Program& program, const Region& region, Step made) {
  made.picked.kernel = &kTiles;
  std::vector<Step> before, behind;
  for (size_t s = 0; s < program.steps.size(); ++s) {
    if (std::binary_search(region.steps.begin(), region.steps.end(), s)) continue;
    Step& step = program.steps[s];
    const auto needs = [&](const Step& other) {
      return std::any_of(other.out.begin(), other.out.end(), [&](int b) { return step.reads(b) || step.writes(b); });
    };
    const bool late = needs(made) || std::any_of(behind.begin(), behind.end(), needs);
    (late ? behind : before).push_back(std::move(step));
  }
  before.push_back(std::move(made));
  std::move(behind.begin(), behind.end(), std::back_inserter(before));
  program.steps = std::move(before);
}

/// A region to be cut; nothing where there is none, or one that is better run as a whole.
template <class Tiling>
std::optional<CutRegion> cut_region(const Program& program, Around around, const Tiling& tiling) {
  for (const bool sums : {true, false}) {
    std::optional<Region> region = find_region(program, around, sums);
    if (!region) return std::nullopt;
    auto extents = tiling(program, *region);
    const bool cut = extents && extents->back() < region->axes.back().extent;
    // Sums that one tile makes at once need nothing of what adding up does.
    if (region->accumulates(program) && !cut) continue;
    if (!extents) return std::nullopt;
    return CutRegion{std::move(*region), std::move(*extents)};
  }
  return std::nullopt;
}

/// Puts one step in place of the region; false where no kernel takes it in tiles.
Result<bool> replace(Program& program, const CutRegion& cut, const Target& target) {
  Result<Step> made = tile_step(program, cut.region, cut.extents, target);
  if (made.status().code() == Code::unimplemented) return false;
  if (!made.ok()) return std::move(made).take_status();
  put_in_place(program, cut.region, std::move(made).value());
  return true;
}

/// Regions of one kind, until there is none or one that is better run as a whole.
template <class Tiling>
Status tile_all(Program& program, const Target& target, Around around, const Tiling& tiling) {
  for (;;) {
    auto cut = cut_region(program, around, tiling);
    if (!cut) return {};
    if (counts_along_tiles(program, cut->region)) {
      replace_indices(program, cut->region);
      cut = cut_region(program, around, tiling);  // the steps have further operands
      if (!cut) return {};
    }
    PT_ASSIGN(const bool replaced, replace(program, *cut, target));
    if (!replaced) return {};
  }
}

bool has_tiles(const Program& program) {
  return std::ranges::any_of(program.steps, [](const Step& s) { return s.problem.step == StepKind::tiles; });
}

bool has_products(const Program& program) {
  return std::ranges::count_if(program.steps, [](const Step& s) { return s.problem.step == StepKind::matmul; }) > 1;
}

/// Products over all heads stay as they are where heads alone make no tiles, either.
Status tile_products(Program& program, const Target& target) {
  PT_TRY(tile_all(program, target, Around::products, tiling_of));
  if (has_tiles(program) || !has_products(program)) return {};
  Program split = program;
  if (!split_products(split)) return {};
  PT_TRY(tile_all(split, target, Around::products, tiling_of));
  if (has_tiles(split)) program = std::move(split);
  return {};
}

/// Matrices that are made for one product never exist as a whole. Products are known by their results, because steps
/// change places.
Status tile_weights(Program& program, const Target& target) {
  std::vector<int> results;
  for (const Step& s : program.steps)
    if (s.problem.step == StepKind::matmul) results.push_back(s.out[0]);
  for (const int result : results) {
    const auto product = std::ranges::find_if(program.steps, [&](const Step& s) { return s.writes(result); });
    if (product->problem.step != StepKind::matmul) continue;
    const auto cut = find_weights(program, static_cast<size_t>(product - program.steps.begin()), target);
    if (!cut) continue;
    if (auto replaced = replace(program, *cut, target); !replaced.ok()) return std::move(replaced).take_status();
  }
  return {};
}

}  // namespace

Status tile(Program& program, const Target& target) {
  PT_TRY(tile_products(program, target));
  if (generates_loops(target)) PT_TRY(tile_weights(program, target));
  return generates_loops(target) ? tile_all(program, target, Around::sums, tiling_of_sums) : Status();
}

}  // namespace partita
