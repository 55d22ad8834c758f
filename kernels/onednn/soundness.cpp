// SPDX-License-Identifier: Apache-2.0
// A reorder of a row of few elements to places apart.
#include "kernels/onednn/soundness.hpp"

#include <algorithm>
#include <array>

#include "kernels/onednn/primitive_run.hpp"
#include "src/base/warn.hpp"

namespace partita::onednn {
namespace {

using dnnl::memory;

bool reorders_all_elements() {
  constexpr int64_t kCount = 14, kApart = 4;  // of other rows, planning ends the process there
  std::array<float, kCount> row;
  std::array<float, kCount * kApart> apart{};
  row.fill(1);
  const auto type = memory::data_type::f32;
  memory from({{1, kCount}, type, memory::dims{kCount, 1}}, cpu_engine(), row.data());
  memory to({{1, kCount}, type, memory::dims{kCount * kApart, kApart}}, cpu_engine(), apart.data());
  dnnl::stream stream(cpu_engine());
  dnnl::reorder(from, to).execute(stream, from, to);
  stream.wait();
  return std::ranges::count(apart, 1.0f) == kCount;
}

}  // namespace

const char* refuse_machine() {
  static const bool sound = [] {
    const bool all = reorders_all_elements();
    if (!all)
      warn_once(Warning::no_primitives,
                "oneDNN does not know the caches of this machine and computes wrongly; plain loops are used, which are "
                "slow (cmake/build_onednn.sh builds a oneDNN that works)");
    return all;
  }();
  return sound ? nullptr : "oneDNN does not know the caches of this machine and computes wrongly";
}

}  // namespace partita::onednn
