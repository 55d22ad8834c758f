// SPDX-License-Identifier: Apache-2.0
// ReadyPartition: a compiled partition with tensors and a scratchpad, to be executed again and again.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "partita/partita.hpp"
#include "tests/support/graph_text.hpp"

namespace partita::test {

class ReadyPartition {
 public:
  /// The first partition of the graph, compiled for the tensors written there; every byte of them is zero.
  explicit ReadyPartition(std::string_view graph_text, int threads = 0) : stream_(engine_, threads) {
    const auto partitions = final_graph_of(graph_text).get_partitions();
    EXPECT_TRUE(partitions.ok());
    const partition& p = (*partitions)[0];
    auto compiled = p.compile(p.input_ports(), with_any_layout(p.output_ports()), engine_);
    EXPECT_TRUE(compiled.ok()) << compiled.status().text();
    compiled_ = std::move(compiled).value();
    for (const logical_tensor& t : compiled_.inputs()) in_.emplace_back(t, memory(t.size_bytes()));
    for (const logical_tensor& t : compiled_.outputs()) out_.emplace_back(t, memory(t.size_bytes()));
    scratchpad_ = memory(compiled_.scratchpad_bytes());
  }

  Status execute() const { return compiled_.execute(stream_, in_, out_, scratchpad_); }
  Status execute_without_scratchpad() const { return compiled_.execute(stream_, in_, out_); }
  const compiled_partition& compiled() const { return compiled_; }

  /// True where every step is computed by code of our own, generated or interpreted.
  bool is_our_own() const {
    for (const step_info& step : compiled_.steps())
      if (step.kernel.find("_jit") == std::string::npos && step.kernel.find("interpreter") == std::string::npos)
        return false;
    return true;
  }

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };

  static std::vector<logical_tensor> with_any_layout(std::vector<logical_tensor> ports) {
    for (logical_tensor& t : ports)
      if (t.layout == Layout::undef) t.layout = Layout::any;
    return ports;
  }

  /// Never null, so that no scratchpad is taken from the allocator.
  void* memory(size_t bytes) {
    const size_t rounded = bytes / 64 * 64 + 64;
    void* p = std::aligned_alloc(64, rounded);
    std::memset(p, 0, rounded);
    memory_.emplace_back(p);
    return p;
  }

  engine engine_;
  stream stream_;
  compiled_partition compiled_;
  std::vector<std::unique_ptr<void, Free>> memory_;
  std::vector<tensor> in_, out_;
  void* scratchpad_ = nullptr;
};

}  // namespace partita::test
