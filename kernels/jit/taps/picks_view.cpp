// SPDX-License-Identifier: Apache-2.0
#include "kernels/jit/taps/picks_view.hpp"

#include <algorithm>
#include <numeric>

#include "kernels/jit/flat/row_kernel.hpp"
#include "src/base/round.hpp"

namespace partita::jit {
namespace {

constexpr int64_t kLanes = static_cast<int64_t>(Picks::kLanes);
constexpr int64_t kRowsOfACall = 128;  ///< at least, where threads get as many calls as this:
constexpr int64_t kLeastCalls = 16;

/// Of all results along z and y.
std::optional<std::vector<PickedRow>> picked_rows(const PlaneWalk& walk, const WalkedTensor& source) {
  const auto most_z = static_cast<size_t>(walk.z.most_taps()), most_y = static_cast<size_t>(walk.y.most_taps());
  if (most_z * most_y > kMostPicked || source.z < 0 || source.y < 0) return {};
  if (walk.z.from() * source.z + walk.y.from() * source.y > INT32_MAX) return {};
  std::vector<PickedRow> rows;
  for (int64_t z = 0; z < walk.z.to(); ++z)
    for (int64_t y = 0; y < walk.y.to(); ++y) {
      if (walk.z.taps(z).empty() || walk.y.taps(y).empty()) return {};
      PickedRow& row = rows.emplace_back();
      size_t count = 0;
      for (const Tap& tz : split_taps(walk.z.taps(z), most_z))
        for (const Tap& ty : split_taps(walk.y.taps(y), most_y)) {
          row.from[count] = static_cast<int32_t>(tz.source * source.z + ty.source * source.y);
          row.weights[count++] = tz.weight * ty.weight;
        }
    }
  return rows;
}

/// Bytes from a plane to the next one; nothing where that is not one number.
std::optional<int64_t> plane_distance(const WalkedTensor& t, const PlaneWalk& walk) {
  if (walk.inner == 1) return t.outer;
  if (walk.outer > 1 && t.outer != t.inner * walk.inner) return {};
  return t.inner;
}

/// Whether all rows, and all planes, follow each other.
bool follow(const WalkedTensor& t, const PlaneWalk& walk) {
  const int64_t row = walk.x.to() * t.each, layer = row * walk.y.to(), plane = layer * walk.z.to();
  return t.row_step(walk, walk.x.to()) == 1 && (walk.y.to() == 1 || t.y == row) && (walk.z.to() == 1 || t.z == layer) &&
         plane_distance(t, walk) == plane;
}

bool is_one_number(const WalkedTensor& t, const PlaneWalk& walk) {
  return t.row_step(walk, walk.x.to()) == 0 && t.y == 0 && t.z == 0 && t.inner == 0 && t.outer == 0;
}

/// Planes [first, first + count * group) as `count` planes.
void take_planes(WalkedTensor& t, int64_t distance, int64_t first, int64_t group) {
  t.offset += first * distance;
  t.outer = group * distance;
  t.inner = 0;
}

}  // namespace

bool is_weighted(const AxisMap& map) {
  bool weighted = map.weighted();
  for (int64_t place = 0; place < map.to() && !weighted; ++place)
    weighted = static_cast<int64_t>(map.taps(place).size()) < map.most_taps();
  return weighted;
}

std::optional<PicksView> picks_view(const Problem& p, const PlaneWalk& walk) {
  PicksView view{.walk = walk,
                 .places = walk.x.from(),
                 .source_port = front_port(p.step),
                 .source = walked(p.in[static_cast<size_t>(front_port(p.step))], p, walk),
                 .in_ports = loaded_operands(back_expression(p)),
                 .row_taps = static_cast<size_t>(walk.z.most_taps() * walk.y.most_taps()),
                 .rows_weighted = is_weighted(walk.z) || is_weighted(walk.y)};
  for (int k : view.in_ports) view.in.push_back(walked(p.in[static_cast<size_t>(k)], p, walk));
  for (const TensorDesc& desc : p.out) view.out.push_back(walked(desc, p, walk));
  const auto step = [&](const WalkedTensor& t) { return t.row_step(walk, walk.x.to()); };
  if (view.source.row_step(walk, walk.x.from()) != 1 ||
      std::ranges::any_of(view.in, [&](const WalkedTensor& t) { return step(t) < 0; }) ||
      std::ranges::any_of(view.out, [&](const WalkedTensor& t) { return step(t) != 1; }))
    return {};
  auto rows = picked_rows(walk, view.source);
  if (!rows) return {};
  view.rows = *std::move(rows);
  return view;
}

std::vector<PicksView> in_turns_of_rows(const PicksView& view) {
  const PlaneWalk& walk = view.walk;
  const int64_t results = walk.x.to(), rows = walk.z.to() * walk.y.to();
  if (results < 2 || results >= kLanes) return {};
  int64_t each = sizeof(float);
  for (const WalkedTensor& t : view.out) each = std::clamp<int64_t>(t.each, 2, each);
  const int64_t line = kCacheLine / each, together = line / std::gcd(results, line);
  int64_t group = together / std::gcd(rows, together);
  while (group * rows < kRowsOfACall && group * 2 * kLeastCalls <= view.planes()) group *= 2;
  const int64_t groups = view.planes() / group;
  const auto is_followed = [&](const WalkedTensor& t) { return follow(t, walk); };
  const auto is_read = [&](const WalkedTensor& t) { return follow(t, walk) || is_one_number(t, walk); };
  const auto distance = plane_distance(view.source, walk);
  if (groups == 0 || !distance || *distance < 0 || view.places + *distance * group > INT32_MAX / 2 ||
      !std::ranges::all_of(view.out, is_followed) || !std::ranges::all_of(view.in, is_read))
    return {};

  const auto part = [&](int64_t first, int64_t count, int64_t of) {
    PicksView made = view;
    made.walk.outer = count;
    made.walk.inner = 1;
    take_planes(made.source, *distance, first, of);
    for (auto* side : {&made.in, &made.out})
      for (WalkedTensor& t : *side) take_planes(t, *plane_distance(t, walk), first, of);
    return made;
  };
  PicksView turns = part(0, groups, group);
  turns.together = together;
  turns.walk.z = identity_map(1);
  turns.walk.y = identity_map(group * rows / together);
  turns.walk.x = joined_map(identity_map(together), walk.x.of_source(rounded_up(view.places, kLanes)));
  for (auto* side : {&turns.in, &turns.out})
    for (WalkedTensor& t : *side) {
      t.z = 0;
      if (t.row_step(walk, results) == 1) t.y = together * results * t.each;
    }
  turns.rows.clear();
  for (int64_t plane = 0; plane < group; ++plane)
    for (PickedRow row : view.rows) {
      for (int32_t& from : row.from) from += static_cast<int32_t>(plane * *distance);
      turns.rows.push_back(row);
    }
  std::vector<PicksView> parts = {std::move(turns)};
  if (const int64_t done = groups * group; done < view.planes()) parts.push_back(part(done, view.planes() - done, 1));
  return parts;
}

}  // namespace partita::jit
