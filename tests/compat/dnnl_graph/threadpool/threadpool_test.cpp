// SPDX-License-Identifier: Apache-2.0
// Streams with a thread pool. This program stands in for a libdnnl of that runtime: it has the one function that such a
// libdnnl has more, which Partita finds among the process's symbols.
#include <atomic>
#include <mutex>
#include <oneapi/dnnl/dnnl_threadpool_iface.hpp>
#include <set>
#include <thread>

#include "tests/compat/dnnl_graph/handles.hpp"

static dnnl::threadpool_interop::threadpool_iface* pool_of_streams = nullptr;

extern "C" __attribute__((visibility("default"))) dnnl_status_t dnnl_threadpool_interop_stream_get_threadpool(
    dnnl_stream_t, void** pool) {
  *pool = pool_of_streams;
  return dnnl_success;
}

namespace partita::test {
namespace {

class Pool : public dnnl::threadpool_interop::threadpool_iface {
 public:
  explicit Pool(bool asynchronous) : asynchronous_(asynchronous) {}
  ~Pool() override { join(); }

  int get_num_threads() const override { return 3; }
  bool get_in_parallel() const override { return busy; }
  uint64_t get_flags() const override { return asynchronous_ ? ASYNCHRONOUS : 0; }
  void parallel_for(int n, const std::function<void(int, int)>& fn) override {
    ++calls;
    for (int k = 0; k < n; ++k)
      threads_.emplace_back([this, fn, k, n] {
        {
          const std::lock_guard lock(mutex_);
          workers.insert(std::this_thread::get_id());
          ++parts;
        }
        if (asynchronous_) std::this_thread::sleep_for(std::chrono::milliseconds(2));
        fn(k, n);
      });
    if (!asynchronous_) join();
  }
  void join() {
    for (std::thread& t : threads_) t.join();
    threads_.clear();
  }

  std::atomic<int> calls = 0, parts = 0;
  std::set<std::thread::id> workers;  ///< fewer than parts where a thread's id is given again
  bool busy = false;

 private:
  bool asynchronous_;
  std::mutex mutex_;
  std::vector<std::thread> threads_;
};

/// abs over so many elements that it is worth three threads.
struct Large {
  Large() {
    engine = make_engine();
    stream = make_stream(engine);
    p = partition_of(make_op(1, dnnl_graph_op_abs, {desc}, {lt(1, {kCount})}));
    c = make_compiled(p);
  }
  void run() {
    // Parts are dealt among the threads that were there at compile time.
    EXPECT_STATUS(compile(p, c, {desc}, {lt(1, {kCount})}, engine), dnnl_success);
    const Tensor x = make_tensor(desc, engine, in.data()), y = make_tensor(lt(1, {kCount}), engine, out.data());
    EXPECT_STATUS(execute(c, stream, {&x}, {&y}), dnnl_success);
    for (float f : out) ASSERT_EQ(f, 2);
  }

  static constexpr int64_t kCount = 1 << 20;
  const Lt desc = lt(0, {kCount});
  Engine engine;
  Stream stream;
  PartitionHandle p;
  Compiled c;
  std::vector<float> in = std::vector<float>(kCount, -2), out = std::vector<float>(kCount);
};

TEST(dnnl_graph_threadpool, runs_the_parts) {
  for (const bool asynchronous : {false, true}) {
    Large work;
    Pool pool(asynchronous);
    pool_of_streams = &pool;
    work.run();
    pool.join();
    EXPECT_EQ(pool.calls, 1);
    EXPECT_EQ(pool.parts, 3);
    EXPECT_FALSE(pool.workers.contains(std::this_thread::get_id()));
  }
}

TEST(dnnl_graph_threadpool, is_left_alone_by_those_who_run_on_it) {
  Large work;
  Pool pool(false);
  pool.busy = true;
  pool_of_streams = &pool;
  work.run();
  EXPECT_EQ(pool.calls, 0);
}

TEST(dnnl_graph_threadpool, a_stream_without_one_runs_on_the_calling_thread) {
  Large work;
  pool_of_streams = nullptr;
  work.run();
}

}  // namespace
}  // namespace partita::test
