// SPDX-License-Identifier: Apache-2.0
// Runs a whole graph: fills inputs, compiles and executes its partitions, and compares each with the references.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "partita/graph.hpp"

namespace partita {

struct RunSettings {
  Policy policy = Policy::fusion;
  int reps = 1;                ///< timed executions of each partition; the median counts
  uint64_t seed = 1;           ///< of the input data; the same seed gives the same data
  bool verify = false;         ///< compare each partition's outputs with the references, run on the same inputs
  int threads = 0;             ///< 0: as many as OpenMP gives
  bool deterministic = false;  ///< engine_options::deterministic
  bool open_layouts = false;   ///< tensors between partitions lie as compilation likes, whatever the graph says
};

struct PartitionReport {
  uint64_t id = 0;
  std::vector<uint64_t> ops;
  std::vector<std::string> op_names;  ///< "ReLU 7"
  std::string pattern;
  bool supported = false;
  std::vector<step_info> steps;
  double compile_ms = 0, exec_ms = 0;
  size_t bytes = 0;  ///< inputs and outputs, each once
  size_t scratch_bytes = 0;
  double max_error = 0;  ///< largest error found, relative to the reference's size; 0 where not verified
};

struct GraphReport {
  size_t ops = 0;
  std::vector<PartitionReport> partitions;
  double compile_ms = 0, exec_ms = 0;
  bool verified = false;  ///< compared and within tolerance
  double max_error = 0;
  std::string mismatch;  ///< the first output that differs from the reference, and where; empty where none does
};

/// `g` may be finalized already. `progress` (or null) is called with the share of partitions done.
/// Errors are those of finalize, compile and execute, and unknown input shapes.
Result<GraphReport> run_graph(graph& g, const RunSettings& settings,
                              const std::function<void(double)>& progress = nullptr);

}  // namespace partita
