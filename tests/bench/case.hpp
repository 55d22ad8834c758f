// SPDX-License-Identifier: Apache-2.0
// Case: one row of the tables of cases, and what is done with it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/bench/net.hpp"
#include "tests/bench/onednn_chain.hpp"
#include "tests/bench/row.hpp"

namespace partita::bench {

inline const std::vector<Order> kBothOrders = {Order::ncx, Order::nxc};
inline const std::vector<Order> kNoOrder = {Order::plain};

/// A graph, and the same work as oneDNN primitives. The chain's in(i) and out(i) are the net's inputs and outputs.
struct Case {
  const char* group;
  std::string name;
  std::vector<Order> orders;
  std::function<void(Net&)> graph;
  std::function<void(Chain&)> chain;  ///< null where oneDNN has nothing like it: then tests alone check the results
  /// Inputs that are needed once more when all of them was read (batch normalisation needs its sums before its first
  /// result). What stays in the caches meanwhile lets a case be faster than the limit.
  std::vector<int> read_twice = {};
  /// Inputs that only name a shape.
  std::vector<int> never_read = {};
  std::vector<Dtype> dtypes = {Dtype::f32, Dtype::bf16, Dtype::f16};
  /// Makes the content of some inputs from that of others.
  std::function<void(const Net&, std::span<const Memory>)> derive = {};
  /// Outputs that oneDNN has nothing like.
  std::vector<int> unchecked = {};
};

/// A latency: what one call does, and what it is compared with (empty: nothing).
struct LatencyCase {
  const char* group;
  std::string name;
  /// Builds both contenders and fills in what the row says of kernels and partitions. Throws dnnl::error.
  std::function<Status(Row& row, Contender& partita, Contender& onednn)> prepare;
};
inline constexpr const char* kLatencies = "latencies";
/// Calls through the C interfaces of others, beside the same work through the C++ interface.
inline constexpr const char* kDoors = "doors";
/// Work on graphs of many operators, beside the same on ten graphs of a tenth of the size.
inline constexpr const char* kLargeGraphs = "large graphs";

std::vector<Case> pool_backward_cases();
std::vector<Case> pool_chain_cases();
std::vector<Case> pool_extension_cases();
std::vector<Case> elementwise_cases();
std::vector<Case> normalisation_cases();
std::vector<Case> movement_cases();
std::vector<LatencyCase> latency_cases();
std::vector<LatencyCase> c_interface_cases();
std::vector<LatencyCase> door_cases();
std::vector<LatencyCase> large_graph_cases();

struct Settings {
  double seconds = 0.15;  ///< a contender
  int threads = 1;
};

/// Checks Partita's results against oneDNN's, then measures. Problems are told in Row::error.
Row run_case(const Case& c, Variant variant, const Settings& settings);
Row run_latency(const LatencyCase& c, const Settings& settings);

}  // namespace partita::bench
