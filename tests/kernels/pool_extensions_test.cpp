// SPDX-License-Identifier: Apache-2.0
// Poolings beyond oneDNN Graph, every row against the references: rounding up with each divisor, tensors without a
// batch, indices forward and backward, adaptive windows; random shapes, types, views and data formats on guarded
// memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/pool_geometry.hpp"
#include "src/base/cpu.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"
#include "tests/support/guarded_memory.hpp"
#include "tests/support/kernel_run.hpp"
#include "tests/support/pool_case.hpp"

namespace partita::test {
namespace {

using List = std::vector<int64_t>;

enum class Rounding : uint8_t { floor, ceil, ceil_inside };

/// Sizes that real problems have, strides beyond kernels, pads on one side, windows that start behind the source.
Geometry random_windows(Random& random, bool dilated) {
  Geometry g;
  const int64_t axes = random.whole(1, 3);
  const auto rounding = random.pick({Rounding::floor, Rounding::ceil, Rounding::ceil_inside});
  while (std::ssize(g.wide) < axes) {
    const int64_t wide = random.whole(1, std::ssize(g.wide) + 1 == axes ? 40 : 7), kernel = random.whole(1, 4);
    const int64_t stride = random.whole(1, 5), dilation = dilated ? random.pick<int64_t>({1, 1, 2}) : 1;
    const int64_t begin = random.whole(0, 2), end = random.whole(0, 2);
    const int64_t room = wide + begin + end - (kernel - 1) * dilation - 1;
    if (room < 0) continue;
    int64_t narrow = (rounding == Rounding::floor ? room : room + stride - 1) / stride + 1;
    if (rounding == Rounding::ceil_inside && (narrow - 1) * stride >= wide + begin) --narrow;
    g.add({wide, narrow, kernel, stride, dilation, begin, end});
  }
  return g;
}

/// Dense, in the other data format's memory order, or anywhere.
TensorDesc view(Dtype dtype, const Dims& dims, bool channel_last, Random& random) {
  const int64_t kind = random.whole(0, 5);
  if (kind == 0) return scattered_desc(dtype, dims, random);
  if (kind != 1 || dims.size() < 3) return dense_desc(dtype, dims);
  TensorDesc desc = other_format_desc(dtype, dims, channel_last);
  desc.offset = 5;
  return desc;
}

Dtype any_float(Random& random) { return random.pick({Dtype::f32, Dtype::f32, Dtype::bf16, Dtype::f16}); }

/// The problem without its batch axis, where that has one item.
Problem without_batch(Problem p) {
  for (auto* side : {&p.in, &p.out})
    for (TensorDesc& desc : *side) {
      desc.dims.erase(0);
      desc.strides.erase(0);
    }
  return p;
}

struct Sizes {
  bool channel_last;
  int64_t batch, channels;
  Dtype dtype;
};

Sizes random_sizes(Random& random) {
  return {random.coin(), random.whole(1, 2), random.pick<int64_t>({1, 3, 8, 16, 21, 40, 70}), any_float(random)};
}

TensorDesc view_of(const Sizes& s, Dtype dtype, const List& spatial, Random& random) {
  return view(dtype, activation_dims(s.batch, s.channels, spatial, s.channel_last), s.channel_last, random);
}

Problem average(OpKind kind, const Geometry& g, Random& random) {
  const bool backward = kind == OpKind::AvgPoolBackward;
  const Sizes s = random_sizes(random);
  Problem p =
      pool_without_tensors({.op = kind, .windows = g, .channel_last = s.channel_last, .exclude_pad = random.coin()});
  if (random.coin()) p.attrs.set(Attr::exclude_overhang, random.coin());
  if (random.whole(0, 2) == 0) p.attrs.set(Attr::divisor_override, random.pick<int64_t>({0, 1, -3, 7, 300}));
  p.in = {view_of(s, s.dtype, backward ? g.narrow : g.wide, random)};
  p.out = {view_of(s, s.dtype, backward ? g.wide : g.narrow, random)};
  return p;
}

TEST(pool_extensions, averages_divide_alike_in_every_row) {
  for (const Isa isa : generated_isas())
    for (uint64_t seed = 1; seed <= 120; ++seed) {
      Random random(seed);
      const OpKind kind = random.pick({OpKind::AvgPool, OpKind::AvgPoolBackward});
      const Problem p = average(kind, random_windows(random, false), random);
      expect_rows_agree(p, random, {.tolerance_factor = 2, .target = {.isa = isa, .threads = 2}});
      if (HasFailure()) return;
    }
}

/// What rounding up, the padding and the divisors make of one row of ones, counted by hand.
TEST(pool_extensions, divisors_are_those_of_the_definition) {
  struct Case {
    int64_t wide, kernel, stride, begin, end, narrow;
    bool exclude_pad, exclude_overhang;
    int64_t override;
    std::vector<double> divisors;
  };
  const Case cases[] = {
      {5, 3, 2, 0, 0, 2, false, true, 0, {3, 3}},                 // nothing overhangs
      {6, 3, 2, 0, 0, 3, false, true, 0, {3, 3, 2}},              // the last window overhangs
      {6, 3, 2, 0, 0, 3, false, false, 0, {3, 3, 3}},             //
      {6, 3, 2, 0, 0, 3, true, false, 0, {3, 3, 2}},              //
      {6, 3, 2, 1, 1, 4, false, true, 0, {3, 3, 3, 2}},           // the padding counts, what is behind it does not
      {6, 3, 2, 1, 1, 4, false, false, 0, {3, 3, 3, 3}},          //
      {6, 3, 2, 1, 1, 4, true, true, 0, {2, 3, 3, 1}},            //
      {6, 3, 2, 1, 1, 4, true, true, 255, {255, 255, 255, 255}},  // an override wins over either
      {6, 3, 2, 1, 1, 4, false, true, -255, {-255, -255, -255, -255}},
      {6, 1, 2, 0, 0, 4, false, true, 0, {1, 1, 1, 0}},   // the last window starts behind the source
      {6, 1, 2, 0, 0, 4, false, false, 7, {7, 7, 7, 0}},  //
      {5, 2, 4, 0, 1, 2, false, true, 0, {2, 2}},         // a stride beyond the kernel; pads on one side
      {5, 4, 3, 2, 0, 3, false, true, 0, {4, 4, 1}},
  };
  for (const Case& c : cases) {
    Problem p = pool_problem({.op = OpKind::AvgPoolBackward,
                              .windows = {{c.wide}, {c.narrow}, {c.kernel}, {c.stride}, {1}, {c.begin}, {c.end}, {}},
                              .exclude_pad = c.exclude_pad});
    p.attrs.set(Attr::exclude_overhang, c.exclude_overhang);
    p.attrs.set(Attr::divisor_override, c.override);
    SCOPED_TRACE(text_of(p));
    const PoolGeometry g = pool_geometry(p, p.out[0].dims, p.in[0].dims);
    std::vector<Buffer> in;
    in.push_back(nan_buffer(p.in[0]));
    std::vector<double> expected(static_cast<size_t>(c.wide), 0);
    for (int64_t o = 0; o < c.narrow; ++o) {
      const double divisor = c.divisors[static_cast<size_t>(o)];
      EXPECT_EQ(g.divisor({o}), divisor) << "window " << o;
      store_from_double(in[0].data(), Dtype::f32, o, 840.0 * static_cast<double>(o + 1));
      for (int64_t k = 0; k < c.kernel; ++k)
        if (const int64_t at = o * c.stride - c.begin + k; at >= 0 && at < c.wide)
          expected[static_cast<size_t>(at)] += 840.0 * static_cast<double>(o + 1) / divisor;
    }
    for (const Kernel& row : kernels_for(p.step)) {
      if (machine_isa() < row.isa || row.refuse(p, {.isa = row.isa, .threads = 1})) continue;
      const auto got = run_kernel(row, p, in, 1);
      for (int64_t i = 0; i < c.wide; ++i)
        EXPECT_NEAR(got[0].get(i), expected[static_cast<size_t>(i)], 1e-3) << row.name << " cell " << i;
    }
  }
}

TEST(pool_extensions, references_take_tensors_without_a_batch) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    const OpKind kind = random.pick({OpKind::AvgPool, OpKind::AvgPoolBackward});
    Problem p = average(kind, random_windows(random, false), random);
    for (auto* side : {&p.in, &p.out})
      for (TensorDesc& desc : *side) desc.dims[0] = 1;
    const Problem bare = without_batch(p);
    SCOPED_TRACE(str("seed ", seed, ": ", text_of(bare)));
    EXPECT_TRUE(lacks_batch_axis(bare));
    EXPECT_EQ(with_batch_axis(bare).in[0].dims, p.in[0].dims);
    std::vector<Buffer> in;
    in.push_back(random_buffer(p.in[0], random));
    const auto expected = reference_results(p, in);
    in[0].desc = bare.in[0];
    auto got = reference_results(bare, in);
    got[0].desc = expected[0].desc;
    EXPECT_EQ(difference(got[0], expected[0], 0), "");
  }
}

Problem with_indices(const Geometry& g, const Sizes& s, Random& random) {
  Problem p = pool_without_tensors({.op = OpKind::MaxPool, .windows = g, .channel_last = s.channel_last});
  if (random.coin()) p.attrs.set(Attr::index_base, std::string(random.pick({"plane", "tensor"})));
  p.in = {view_of(s, s.dtype, g.wide, random)};
  p.out = {view_of(s, s.dtype, g.narrow, random), view_of(s, random.pick({Dtype::s64, Dtype::s32}), g.narrow, random)};
  return p;
}

TEST(pool_extensions, indices_name_the_first_maximum_in_every_row) {
  constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  int generated = 0;
  for (const Isa isa : generated_isas())
    for (uint64_t seed = 1; seed <= 120; ++seed) {
      Random random(seed);
      const Problem p = with_indices(random_windows(random, true), random_sizes(random), random);
      SCOPED_TRACE(str(name_of(isa), " seed ", seed, ": ", text_of(p)));
      std::vector<Buffer> in;
      in.push_back(random_buffer(p.in[0], random));
      if (random.coin())  // ties, and values that compare in their own way
        for (size_t i = 0; i < in[0].bytes.size() / bytes_for(p.in[0].dtype, 1); ++i)
          store_from_double(in[0].data(), p.in[0].dtype, static_cast<int64_t>(i),
                            random.pick({-kInf, -kInf, kNan, kInf, 0.0f, 0.0f, 1.0f}));
      const auto expected = reference_results(p, in);
      for (const Kernel& row : kernels_for(p.step)) {
        if (isa < row.isa || row.refuse(p, {.isa = isa, .threads = 2})) continue;
        generated += std::string_view(row.name).find("_jit_") != std::string_view::npos;
        const auto got = run_kernel(row, p, in, 2);
        for (size_t k = 0; k < 2; ++k) {
          EXPECT_EQ(difference(got[k], expected[k], 0), "") << row.name << " output " << k;
          EXPECT_EQ(damage(got[k]), "") << row.name;
        }
      }
      if (HasFailure()) return;
    }
  EXPECT_GE(generated, static_cast<int>(generated_isas().size()) * 50);
}

/// Large results go past the caches: indices whose rows are cache lines at once, maxima of shorter rows by way of
/// scratch memory.
TEST(pool_extensions, large_maxima_and_indices_have_the_bits_of_small_ones) {
  int64_t bytes = int64_t{1} << 20;
  while (!leaves_the_caches(bytes)) bytes *= 2;
  if (bytes > (int64_t{64} << 20)) GTEST_SKIP() << "the caches are very large";
  const int64_t from = 16 * 16, to = 8 * 8, few = 4, many = bytes / (to * 12) + few;
  const auto problem = [&](int64_t channels) {
    Problem p = pool_problem({.op = OpKind::MaxPool,
                              .windows = {{16, 16}, {8, 8}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {0, 0}, {}},
                              .channels = channels});
    p.out.push_back(dense_desc(Dtype::s64, p.out[0].dims));
    return p;
  };
  Random random(5);
  std::vector<float> source(static_cast<size_t>(many * from));
  for (float& value : source) value = static_cast<float>(random.whole(0, 50));
  const auto run = [&](const Kernel& row, int64_t channels, const void* in, GuardedMemory& best,
                       GuardedMemory& places) {
    const Result<partita::Run> made = row.make(problem(channels), {.isa = row.isa, .threads = 2});
    ASSERT_TRUE(made.ok()) << made.status().text();
    GuardedMemory scratch((made->scratch_bytes + 63) / 64 * 64, 0xff);
    void* out[] = {best.data(), places.data()};
    ASSERT_TRUE(made->call({{&in, 1}, out, scratch.data()}).ok());
  };
  for (const Kernel& row : kernels_for(StepKind::pool_forward)) {
    if (std::string_view(row.name).find("_jit_") == std::string_view::npos || machine_isa() < row.isa ||
        row.refuse(problem(many), {.isa = row.isa, .threads = 2}))
      continue;
    GuardedMemory best(static_cast<size_t>(many * to) * 4, 0xff), places(static_cast<size_t>(many * to) * 8, 0xff);
    run(row, many, source.data(), best, places);
    for (const int64_t first : {int64_t{0}, many - few}) {
      GuardedMemory few_best(few * to * 4, 0xff), few_places(few * to * 8, 0xff);
      run(row, few, source.data() + first * from, few_best, few_places);
      EXPECT_EQ(std::memcmp(best.data() + first * to * 4, few_best.data(), few_best.size()), 0) << row.name;
      EXPECT_EQ(std::memcmp(places.data() + first * to * 8, few_places.data(), few_places.size()), 0) << row.name;
    }
  }
}

/// Indices of cells of the windows' own planes, some of windows without cells, many of one cell.
Buffer random_indices(const Problem& p, Random& random) {
  Buffer buffer = nan_buffer(p.in[1]);
  const PoolGeometry g = pool_geometry(p, p.out[0].dims, p.in[1].dims);
  const PoolIndex base = pool_index(p.attrs, g);
  const Dims& dims = p.in[1].dims;
  for (int64_t i = 0; i < elements(dims); ++i) {
    const Dims at = coordinates(i, dims);
    const int64_t cell = random.whole(0, 9) == 0 ? -1 : random.whole(0, elements(g.src) - 1) / random.whole(1, 2);
    int64_t position = p.in[1].offset;
    for (int d = 0; d < at.size(); ++d) position += at[d] * p.in[1].strides[d];
    const int64_t index = cell < 0 ? -1 : base.first(at[0], at[g.channel_axis()]) + cell * base.cell;
    store_from_double(buffer.data(), p.in[1].dtype, position, static_cast<double>(index));
  }
  return buffer;
}

Problem from_indices(const Geometry& g, const Sizes& s, Random& random) {
  Problem p = problem_for(StepKind::max_pool_indices_backward, OpKind::MaxPoolIndicesBackward);
  p.attrs.set(Attr::data_format, std::string(s.channel_last ? "NXC" : "NCX"));
  if (random.coin()) p.attrs.set(Attr::index_base, std::string(random.pick({"plane", "tensor"})));
  p.in = {view_of(s, s.dtype, g.narrow, random), view_of(s, random.pick({Dtype::s64, Dtype::s32}), g.narrow, random)};
  p.out = {view_of(s, s.dtype, g.wide, random)};
  return p;
}

TEST(pool_extensions, gradients_go_where_indices_say) {
  int generated = 0;
  for (const Isa isa : generated_isas())
    for (uint64_t seed = 1; seed <= 120; ++seed) {
      Random random(seed);
      const Problem p = from_indices(random_windows(random, true), random_sizes(random), random);
      SCOPED_TRACE(str(name_of(isa), " seed ", seed, ": ", text_of(p)));
      std::vector<Buffer> in;
      in.push_back(random_buffer(p.in[0], random));
      in.push_back(random_indices(p, random));
      const auto expected = reference_results(p, in);
      for (const Kernel& row : kernels_for(p.step)) {
        if (isa < row.isa || row.refuse(p, {.isa = isa, .threads = 2})) continue;
        generated += std::string_view(row.name).find("_jit_") != std::string_view::npos;
        const auto got = run_kernel(row, p, in, 2);
        EXPECT_EQ(difference(got[0], expected[0], tolerance_of(p.out[0].dtype)), "") << row.name;
        EXPECT_EQ(damage(got[0]), "") << row.name;
      }
      if (HasFailure()) return;
    }
  EXPECT_GE(generated, static_cast<int>(generated_isas().size()) * 120);
}

TEST(pool_extensions, an_index_of_no_cell_is_an_error_in_every_row) {
  for (const char* base : {"plane", "tensor"})
    for (const bool channel_last : {false, true})
      for (const int64_t wrong : {int64_t{-2}, int64_t{35}, int64_t{1} << 40, int64_t{-1} << 62}) {
        Problem p = problem_for(StepKind::max_pool_indices_backward, OpKind::MaxPoolIndicesBackward);
        p.attrs.set(Attr::data_format, std::string(channel_last ? "NXC" : "NCX"));
        p.attrs.set(Attr::index_base, std::string(base));
        p.in = {dense_desc(Dtype::f32, activation_dims(2, 3, {2, 3}, channel_last)),
                dense_desc(Dtype::s64, activation_dims(2, 3, {2, 3}, channel_last))};
        p.out = {dense_desc(Dtype::f32, activation_dims(2, 3, {5, 7}, channel_last))};
        Random random(3);
        std::vector<Buffer> in;
        in.push_back(random_buffer(p.in[0], random));
        in.push_back(random_indices(p, random));
        // Of batch item 1, channel 2: in a tensor's numbers its cells follow all others but one.
        const Dims at = channel_last ? Dims{1, 1, 2, 2} : Dims{1, 2, 1, 2};
        int64_t position = 0;
        for (int d = 0; d < 4; ++d) position += at[d] * p.in[1].strides[d];
        const int64_t index = wrong == 35 && std::string_view(base) == "tensor" ? 34 : wrong;
        reinterpret_cast<int64_t*>(in[1].data())[position] = index;
        for (const Kernel& row : kernels_for(p.step)) {
          if (machine_isa() < row.isa || row.refuse(p, {.isa = row.isa, .threads = 2})) continue;
          SCOPED_TRACE(row.name);
          const auto run = row.make(p, {.isa = row.isa, .threads = 2});
          ASSERT_TRUE(run.ok());
          std::vector<Buffer> out;
          out.push_back(nan_buffer(p.out[0]));
          GuardedMemory scratch((run->scratch_bytes + 63) / 64 * 64, 0xff);
          const void* sources[] = {in[0].data(), in[1].data()};
          void* targets[] = {out[0].data()};
          const Status status = run->call({sources, targets, scratch.data()});
          EXPECT_EQ(status.code(), Code::invalid_arguments);
          EXPECT_NE(status.text().find(str("window [1,2] of batch item 1, channel 2 is ", index, ", cells of")),
                    std::string::npos)
              << status.text();
        }
      }
}

/// Elements of `with` are what `value` makes of those of `from`.
template <class F>
Buffer mapped(const Buffer& from, const Buffer& with, F value) {
  Buffer made = nan_buffer(dense_desc(Dtype::f32, from.desc.dims));
  for (int64_t i = 0; i < elements(from.desc.dims); ++i)
    store_from_double(made.data(), Dtype::f32, i, value(from.get(i), with.get(i)));
  return made;
}

/// front: times an operand; back: an operand decides what stays, and half of it is stored beside.
void add_expressions(Problem& p, const Sizes& s, const List& read, const List& made, Random& random) {
  p.ports_in = static_cast<int>(p.in.size());
  p.ports_out = static_cast<int>(p.out.size());
  p.in.push_back(view_of({s.channel_last, s.batch, s.channels, Dtype::f32}, Dtype::f32, read, random));
  p.in.push_back(view_of({s.channel_last, s.batch, s.channels, Dtype::f32}, Dtype::f32, made, random));
  p.out.push_back(view_of({s.channel_last, s.batch, s.channels, Dtype::f32}, Dtype::f32, made, random));
  ExprBuilder front(p.front);
  p.front.result = front.mul(front.load(0), front.load(p.ports_in));
  ExprBuilder back(p.back);
  const auto value =
      back.select(back.gt(back.load(p.ports_in + 1), back.constant(0)), back.skeleton(), back.constant(0));
  back.store(0, value);
  back.store(p.ports_out, back.mul(value, back.constant(0.5f)));
}

TEST(pool_extensions, expressions_around_indices_are_computed_in_the_same_walk) {
  const auto keep = [](double value, double mask) { return mask > 0 ? value : 0; };
  int compared = 0;
  for (const Isa isa : generated_isas())
    for (uint64_t seed = 1; seed <= 80; ++seed) {
      Random random(seed);
      const bool backward = random.coin();
      const Geometry g = random_windows(random, true);
      Sizes s = random_sizes(random);
      s.dtype = Dtype::f32;
      const Problem plain = backward ? from_indices(g, s, random) : with_indices(g, s, random);
      Problem p = plain;
      backward ? add_expressions(p, s, g.narrow, g.wide, random) : add_expressions(p, s, g.wide, g.narrow, random);
      SCOPED_TRACE(str(name_of(isa), " seed ", seed, ": ", text_of(p)));
      std::vector<Buffer> in;
      const auto indices = [&] {
        Random own(seed + 1);
        return random_indices(p, own);
      };
      for (size_t k = 0; k < p.in.size(); ++k)
        in.push_back(backward && k == 1 ? indices() : random_buffer(p.in[k], random));
      const auto ports = static_cast<size_t>(p.ports_in);
      std::vector<Buffer> prepared;
      prepared.push_back(mapped(in[0], in[ports], [](double a, double b) { return a * b; }));
      Problem separate = plain;
      separate.in[0] = prepared[0].desc;
      separate.out[0] = dense_desc(Dtype::f32, plain.out[0].dims);
      if (backward) prepared.push_back(indices());
      const auto results = reference_results(separate, prepared);
      const Buffer expected = mapped(results[0], in[ports + 1], keep);
      for (const Kernel& row : kernels_for(p.step)) {
        if (isa < row.isa || row.refuse(p, {.isa = isa, .threads = 2})) continue;
        ++compared;
        const auto got = run_kernel(row, p, in, 2);
        EXPECT_EQ(difference(got[0], expected, tolerance_of(Dtype::f32)), "") << row.name;
        for (int64_t i = 0; i < elements(expected.desc.dims); ++i)
          ASSERT_EQ(got.back().get(i), got[0].get(i) / 2) << row.name << " element " << i;
        if (backward) continue;
        EXPECT_EQ(difference(got[1], results[1], 0), "") << row.name;
      }
      if (HasFailure()) return;
    }
  EXPECT_GE(compared, static_cast<int>(generated_isas().size()) * 40);
}

TEST(pool_extensions, adaptive_windows_agree_with_the_reference) {
  for (const Isa isa : generated_isas())
    for (uint64_t seed = 1; seed <= 80; ++seed) {
      Random random(seed);
      const bool backward = random.coin();
      const Sizes s = random_sizes(random);
      List wide, narrow;
      for (int64_t axes = random.whole(1, 3); axes > 0; --axes) {
        wide.push_back(random.whole(1, axes == 1 ? 50 : 9));
        narrow.push_back(random.whole(1, random.coin() ? wide.back() : 12));
      }
      Problem p = problem_for(StepKind::resample, backward ? OpKind::AdaptiveAvgPoolBackward : OpKind::AdaptiveAvgPool);
      p.attrs.set(Attr::data_format, std::string(s.channel_last ? "NXC" : "NCX"));
      if (!backward) p.attrs.set(Attr::sizes, narrow);
      const auto dims = [&](const List& list) { return activation_dims(s.batch, s.channels, list, s.channel_last); };
      p.in = {dense_desc(s.dtype, dims(backward ? narrow : wide))};
      p.out = {dense_desc(s.dtype, dims(backward ? wide : narrow))};
      expect_rows_agree(p, random, {.tolerance_factor = 2, .target = {.isa = isa, .threads = 2}});
      if (HasFailure()) return;
    }
}

}  // namespace
}  // namespace partita::test
