// SPDX-License-Identifier: Apache-2.0
// Random tensors and the differential test of kernel tables.
#include "tests/support/random_problem.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "kernels/ref/reference.hpp"
#include "src/base/dtype.hpp"
#include "src/base/shape.hpp"
#include "src/base/text.hpp"

namespace partita::test {
namespace {

constexpr unsigned char kNanByte = 0xff;
/// A number in every type.
constexpr unsigned char kOtherByte = 0x2a;

int64_t position(const TensorDesc& desc, int64_t index) {
  int64_t at = desc.offset;
  for (int axis = desc.dims.size() - 1; axis >= 0; --axis) {
    at += index % desc.dims[axis] * desc.strides[axis];
    index /= desc.dims[axis];
  }
  return at;
}

Buffer empty_buffer(const TensorDesc& desc, unsigned char fill = kNanByte) {
  return {desc, GuardedMemory(bytes_for(desc.dtype, desc.offset + span_of(desc.dims, desc.strides)), fill)};
}

std::vector<Buffer> outputs_of(const Problem& problem, unsigned char fill = kNanByte) {
  std::vector<Buffer> outputs;
  for (const TensorDesc& desc : problem.out) outputs.push_back(empty_buffer(desc, fill));
  return outputs;
}

/// `shared` is an input that lies where the first output does, -1 for none.
Status execute(const Run& run, const std::vector<Buffer>& in, std::vector<Buffer>& out, unsigned char fill = kNanByte,
               int shared = -1) {
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  for (const Buffer& buffer : in) inputs.push_back(buffer.data());
  for (Buffer& buffer : out) outputs.push_back(buffer.data());
  if (shared >= 0) inputs[static_cast<size_t>(shared)] = out[0].data();
  GuardedMemory scratch((run.scratch_bytes + 63) / 64 * 64, fill);
  return run.call({inputs, outputs, scratch.data()});
}

/// Over slices the result may lie over the main input.
void expect_same_in_place(const Kernel& row, const Run& run, const Problem& problem, const std::vector<Buffer>& in,
                          const std::vector<Buffer>& expected) {
  const int port = front_port(problem.step);
  const Buffer& source = in[static_cast<size_t>(port)];
  const TensorDesc &from = source.desc, &to = problem.out[0];
  if (!row.in_place || !traits_of(problem.step).rows || bits_of(from.dtype) != bits_of(to.dtype)) return;
  if (from.dims != to.dims || from.strides != to.strides || from.offset != to.offset) return;
  std::vector<Buffer> out = outputs_of(problem);
  std::memcpy(out[0].data(), source.data(), source.bytes.size());
  const Status status = execute(run, in, out, kNanByte, port);
  ASSERT_TRUE(status.ok()) << status.text();
  for (size_t k = 0; k < out.size(); ++k)
    EXPECT_EQ(difference(out[k], expected[k], 0), "") << "output " << k << " in the place of input " << port;
}

void expect_row_agrees(const Kernel& row, const Problem& problem, const Expectation& expectation,
                       const std::vector<Buffer>& in, const std::vector<Buffer>& expected) {
  SCOPED_TRACE(row.name);
  const Result<Run> run = row.make(problem, expectation.target);
  ASSERT_TRUE(run.ok()) << run.status().text();
  std::vector<Buffer> out = outputs_of(problem), again = outputs_of(problem, kOtherByte);
  for (const Status& status : {execute(*run, in, out), execute(*run, in, again, kOtherByte)})
    ASSERT_TRUE(status.ok()) << status.text();
  for (size_t port = 0; port < out.size(); ++port) {
    const double tolerance = tolerance_of(problem.in[0].dtype) * expectation.tolerance_factor;
    EXPECT_EQ(difference(out[port], expected[port], std::max(tolerance, tolerance_of(out[port].desc.dtype))), "")
        << "output " << port;
    EXPECT_EQ(damage(out[port]), "") << "output " << port;
    EXPECT_EQ(difference(again[port], out[port], 0), "") << "output " << port << " depends on what memory held before";
  }
  expect_same_in_place(row, *run, problem, in, out);
}

}  // namespace

Problem problem_for(StepKind step, OpKind op) {
  Problem problem;
  problem.step = step;
  problem.op = op;
  return problem;
}

TensorDesc dense_desc(Dtype dtype, const Dims& dims) {
  TensorDesc desc{.dtype = dtype, .dims = dims, .strides = dims};
  int64_t stride = 1;
  for (int axis = dims.size() - 1; axis >= 0; --axis) {
    desc.strides[axis] = stride;
    stride *= std::max<int64_t>(dims[axis], 1);
  }
  return desc;
}

TensorDesc other_format_desc(Dtype dtype, const Dims& dims, bool channel_last) {
  Dims other = dims;  // the channels move to the other end
  const int from = channel_last ? dims.size() - 1 : 1, to = channel_last ? 1 : dims.size() - 1;
  other.erase(from);
  other.insert(to, dims[from]);
  TensorDesc desc = dense_desc(dtype, dims);
  desc.strides = dense_desc(dtype, other).strides;
  const int64_t channel = desc.strides[to];
  desc.strides.erase(to);
  desc.strides.insert(from, channel);
  return desc;
}

TensorDesc scattered_desc(Dtype dtype, const Dims& dims, Random& random) {
  TensorDesc desc{.dtype = dtype, .dims = dims, .strides = dims, .offset = random.whole(0, 3)};
  std::vector<int> order(static_cast<size_t>(dims.size()));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random.engine());
  int64_t stride = random.whole(1, 2);
  for (int axis : order) {
    desc.strides[axis] = stride;
    stride = stride * std::max<int64_t>(dims[axis], 1) + random.whole(0, 2);
  }
  return desc;
}

TensorDesc any_desc(Dtype dtype, const Dims& dims, Random& random) {
  return random.whole(0, 2) == 0 ? scattered_desc(dtype, dims, random) : dense_desc(dtype, dims);
}

Buffer with_strides(const Buffer& tensor, const Dims& strides) {
  TensorDesc desc = tensor.desc;
  desc.strides = strides;
  Buffer made = empty_buffer(desc, 0);
  const auto each = static_cast<size_t>(element_bytes(desc.dtype));
  for (int64_t i = 0; i < elements(desc.dims); ++i)
    std::memcpy(static_cast<std::byte*>(made.data()) + static_cast<size_t>(position(desc, i)) * each,
                static_cast<const std::byte*>(tensor.data()) + static_cast<size_t>(position(tensor.desc, i)) * each,
                each);
  return made;
}

double Buffer::get(int64_t index) const { return load_as_double(data(), desc.dtype, position(desc, index)); }

Buffer random_buffer(const TensorDesc& desc, Random& random, Range range) {
  Buffer buffer = empty_buffer(desc);
  for (int64_t i = 0; i < elements(desc.dims); ++i) {
    store_from_double(buffer.data(), desc.dtype, position(desc, i), random.real(range.low, range.high));
  }
  return buffer;
}

Buffer nan_buffer(const TensorDesc& desc) { return empty_buffer(desc); }

std::string difference(const Buffer& got, const Buffer& expected, double tolerance) {
  for (int64_t i = 0; i < elements(got.desc.dims); ++i) {
    const double a = got.get(i), b = expected.get(i);
    const bool equal = a == b || (std::isnan(a) && std::isnan(b));
    if (equal || std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b))) continue;
    return str("element ", i, " of ", text_of(got.desc), ": got ", a, ", expected ", b);
  }
  return {};
}

std::string damage(const Buffer& written) {
  std::vector<bool> inside(written.bytes.size());
  const size_t size = bytes_for(written.desc.dtype, 1);
  for (int64_t i = 0; i < elements(written.desc.dims); ++i) {
    const size_t at = static_cast<size_t>(position(written.desc, i)) * size;
    std::fill_n(inside.begin() + static_cast<std::ptrdiff_t>(at), size, true);
  }
  for (size_t i = 0; i < inside.size(); ++i) {
    if (inside[i] || written.bytes.data()[i] == std::byte{kNanByte}) continue;
    return str("byte ", i, " between the elements was written");
  }
  return {};
}

double tolerance_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f16: return 2e-3;
    case Dtype::bf16: return 1.6e-2;
    default: return 5e-5;
  }
}

void expect_rows_agree(const Problem& problem, Random& random, const Expectation& expectation) {
  SCOPED_TRACE(str("seed ", random.seed(), ": ", text_of(problem)));
  std::vector<Buffer> in;
  for (size_t port = 0; port < problem.in.size(); ++port) {
    const Range range = port < expectation.ranges.size() ? expectation.ranges[port] : Range{};
    in.push_back(random_buffer(problem.in[port], random, range));
  }
  const Reference reference = reference_of(problem.op);
  ASSERT_NE(reference, nullptr);
  std::vector<Buffer> expected = outputs_of(problem);
  const Run oracle{.call = [&](const RunArgs& args) { return reference(problem, args); }};
  const Status status = execute(oracle, in, expected);
  ASSERT_TRUE(status.ok()) << status.text();
  int accepted = 0;
  std::string refusals;
  for (const Kernel& row : kernels_for(problem.step)) {
    if (std::string_view(row.name).ends_with("_ref")) continue;
    const char* reason = row.isa <= expectation.target.isa ? row.refuse(problem, expectation.target) : "lacks the ISA";
    refusals += str("\n  ", row.name, ": ", reason ? reason : "accepted");
    if (reason) continue;
    ++accepted;
    expect_row_agrees(row, problem, expectation, in, expected);
  }
  EXPECT_GE(accepted, expectation.at_least) << "rows that accepted" << refusals;
}

std::string text_of(const Problem& problem) {
  std::string text = str(name_of(problem.step), " ", name_of(problem.op), " (");
  for (const TensorDesc& tensor : problem.in) text += str(" ", partita::text_of(tensor));
  text += " ) -> (";
  for (const TensorDesc& tensor : problem.out) text += str(" ", partita::text_of(tensor));
  text += " ) {";
  for (const auto& [attr, value] : problem.attrs.all()) text += str(" ", name_of(attr), "=", partita::text_of(value));
  return text + " }";
}

}  // namespace partita::test
