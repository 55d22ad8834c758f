// SPDX-License-Identifier: Apache-2.0
// A careless client of the C interface of oneDNN Graph.
#pragma once

#if __has_include(<oneapi/dnnl/dnnl_graph.h>)
#include <oneapi/dnnl/dnnl_graph.h>
#else
#include <oneapi/dnnl/dnnl_common.h>
#endif

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <vector>

#include "partita/dnnl_graph.h"
#include "partita/op.hpp"
#include "tests/support/random.hpp"

namespace partita::test {

/// Made once: it is libdnnl's.
dnnl_engine_t engine_of_all();

/// Whether the call succeeded. Ends the process where the answer is no status of the interface, or a failure without
/// text.
bool answered(dnnl_status_t status);

/// Keeps the handles it was given, uses them as the random numbers say, and destroys what is left at its end. Memory
/// that it hands over is as large as the library says it must be.
class CClient {
 public:
  explicit CClient(Random& random);
  ~CClient();
  CClient(const CClient&) = delete;
  CClient& operator=(const CClient&) = delete;

  /// One call, or a few that belong together.
  void call();

 private:
  using Lt = dnnl_graph_logical_tensor_t;
  using Memory = std::unique_ptr<void, decltype(&std::free)>;

  /// A tensor and, unless the library has it, its memory.
  struct Tensor {
    dnnl_graph_tensor_t handle = nullptr;
    Memory memory{nullptr, &std::free};
  };
  /// A compiled partition and what it was compiled for.
  struct Compiled {
    dnnl_graph_compiled_partition_t handle = nullptr;
    std::vector<Lt> inputs, outputs;
  };

  void make_graph();
  void add_sample();
  void add_random_op();
  void settle_graph();
  void take_partitions();
  void make_partition_of_op();
  void ask_partition();
  void compile();
  void execute();
  void ask_compiled();
  void ask_logical_tensor();
  void ask_tensor();
  void set_capacities();
  void pass_nulls();
  void destroy_one();

  dnnl_graph_op_t op_of(const op& from);
  dnnl_graph_op_t random_op();
  void set_attr(dnnl_graph_op_t made, Attr name, const AttrValue& value);
  void set_random_attr(dnnl_graph_op_t made);
  Lt lt_of(const logical_tensor& from);
  Lt random_lt();
  /// Changes one field, now and then.
  void spoil(Lt& t);
  std::vector<Lt> ports(dnnl_graph_partition_t p, bool inputs);
  Tensor tensor_for(const Lt& t);

  /// A number that is right in one of two cases, else one that clients get wrong.
  int64_t number(int64_t right);
  int64_t dim();
  /// Whether something that is usually done right goes wrong this time.
  bool careless() { return random_.whole(0, 15) == 0; }
  template <class Handle>
  Handle any(const std::vector<Handle>& handles) {
    return handles.empty() || random_.whole(0, 31) == 0 ? Handle{} : random_.one_of(handles);
  }

  Random& random_;
  std::vector<dnnl_graph_graph_t> graphs_;
  std::vector<dnnl_graph_op_t> ops_;
  std::vector<dnnl_graph_partition_t> partitions_;
  std::vector<Compiled> compiled_;
  std::vector<Tensor> tensors_;
};

}  // namespace partita::test
