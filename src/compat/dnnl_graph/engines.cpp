// SPDX-License-Identifier: Apache-2.0
// Allocators, engines with allocators, and the table of them.
//
// libdnnl destroys engines without telling us. What is guaranteed nevertheless: an identity (engine::identity) is given
// once, so that nothing compiled for a registered engine is found through another registration, even at the same
// address; and no allocator is called after its destruction, which drops its engines. An engine that libdnnl makes at
// the address of a destroyed one, while the allocator of that one still lives, uses that allocator.
#include "src/compat/dnnl_graph/engines.hpp"

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "src/base/check.hpp"
#include "src/compat/dnnl_graph/answer.hpp"
#include "src/compat/dnnl_graph/host.hpp"

namespace partita::abi {
namespace {

struct Registered {
  std::shared_ptr<const engine> value;
  const dnnl_graph_allocator* memory;
};

struct Table {
  std::shared_mutex mutex;
  std::unordered_map<dnnl_engine_t, Registered> engines;
};

Table& table() {
  static Table& the_table =
      *new Table;  // never destroyed, as all that is static here: clients run while the process ends
  return the_table;
}

}  // namespace

void register_engine(dnnl_engine_t handle, const dnnl_graph_allocator& memory) {
  uint64_t former = 0;
  {
    const std::unique_lock lock(table().mutex);
    Registered made{std::make_shared<const engine>(EngineKind::cpu, memory.memory), &memory};
    const auto [at, added] = table().engines.try_emplace(handle, made);
    if (!added) {
      former = at->second.value->identity();
      at->second = std::move(made);
    }
  }
  if (former != 0) forget_engine(former);
}

std::shared_ptr<const engine> engine_at(dnnl_engine_t handle) {
  static const engine& standard = *new engine;
  const std::shared_lock lock(table().mutex);
  const auto at = table().engines.find(handle);
  if (at != table().engines.end()) return at->second.value;
  return {std::shared_ptr<const void>(), &standard};  // owned by nobody, counted by nobody
}

void forget_allocator(const dnnl_graph_allocator& memory) {
  std::vector<uint64_t> gone;
  {
    const std::unique_lock lock(table().mutex);
    std::erase_if(table().engines, [&](const auto& entry) {
      if (entry.second.memory != &memory) return false;
      gone.push_back(entry.second.value->identity());
      return true;
    });
  }
  for (uint64_t identity : gone) forget_engine(identity);
}

}  // namespace partita::abi

using namespace partita;
using namespace partita::abi;

dnnl_status_t dnnl_graph_allocator_create(dnnl_graph_allocator_t* made, dnnl_graph_host_allocate_f host_malloc,
                                          dnnl_graph_host_deallocate_f host_free) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"allocator", made}}));
    const bool own = host_malloc != nullptr && host_free != nullptr;
    *made = new dnnl_graph_allocator{own ? allocator{host_malloc, host_free} : allocator::standard()};
    return {};
  });
}

dnnl_status_t dnnl_graph_allocator_destroy(dnnl_graph_allocator_t memory) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"allocator", memory}}));
    forget_allocator(*memory);
    delete memory;
    return {};
  });
}

dnnl_status_t dnnl_graph_make_engine_with_allocator(dnnl_engine_t* made, dnnl_engine_kind_t kind, size_t index,
                                                    const_dnnl_graph_allocator_t memory) {
  return answer_of([&]() -> Status {
    PT_TRY(need({{"engine", made}, {"allocator", memory}}));
    PT_ASSIGN(dnnl_engine_t handle, host::make_engine(kind, index));
    Status registered = guarded([&]() -> Status {
      register_engine(handle, *memory);
      return {};
    });
    if (registered.ok())
      *made = handle;
    else
      host::destroy_engine(handle);
    return registered;
  });
}
