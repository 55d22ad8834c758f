// SPDX-License-Identifier: Apache-2.0
// Executes collected oneDNN primitives with all temporary memory inside RunArgs::scratch.
#include "kernels/onednn/primitive_run.hpp"

#include <bit>
#include <cstring>
#include <mutex>
#include <new>

#include "kernels/onednn/blocked_copy.hpp"
#include "src/base/check.hpp"
#include "src/base/round.hpp"
#include "src/base/text.hpp"
#include "src/base/threads.hpp"

namespace partita::onednn {
namespace {

// Streams are not thread-safe, engines are.
dnnl::stream& thread_stream() {
  thread_local dnnl::stream stream(cpu_engine());
  return stream;
}

Status called(const std::vector<std::function<void(const Addresses&)>>& calls, const RunArgs& args) {
  try {
    const Addresses addresses(args);
    for (const auto& call : calls) call(addresses);
    return {};
  } catch (const dnnl::error& error) {
    return status_of(error);
  } catch (const std::bad_alloc&) {
    return Status::out_of_memory();
  }
}

/// What makes pack number `pack` of the tensor at `port` by its reorder.
std::function<Status(const void*, void*, void*)> packed_by(std::function<void(const Addresses&)> reorder, size_t port,
                                                           size_t pack) {
  return [calls = std::vector{std::move(reorder)}, port, pack](const void* from, void* to, void* scratch) {
    std::vector<const void*> in(port + 1, nullptr), packed(pack + 1, nullptr);
    in[port] = from;
    packed[pack] = to;
    return called(calls, {in, {}, scratch, packed});
  };
}

}  // namespace

const dnnl::engine& cpu_engine() {
  static const dnnl::engine engine = [] {
    // oneDNN tells profilers of its code: environment variables name a library that it loads for that
    // (INTEL_JIT_PROFILER64) and folders outside the working folder that it writes into (JITDUMPDIR).
    dnnl_set_jit_profiling_flags(DNNL_JIT_PROFILE_NONE);
    return dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return engine;
}

void* Addresses::at(const Place& place) const {
  if (place.of == Place::Of::own) return const_cast<void*>(place.data);
  if (place.of == Place::Of::packed && has_packed(place.index)) return const_cast<void*>(args_.packed[place.index]);
  const void* base = place.of == Place::Of::in    ? args_.in[place.index]
                     : place.of == Place::Of::out ? args_.out[place.index]
                                                  : args_.scratch;
  return const_cast<char*>(static_cast<const char*>(base)) + place.offset_bytes;
}

Place PrimitiveRun::in(const Problem& problem, int port) const {
  const auto k = static_cast<size_t>(port);
  return {Place::Of::in, k, offset_bytes(problem.in[k]), problem.is_constant(k), nullptr};
}

Place PrimitiveRun::out(const Problem& problem, int port) const {
  const auto k = static_cast<size_t>(port);
  return {Place::Of::out, k, offset_bytes(problem.out[k]), false, nullptr};
}

Place PrimitiveRun::scratch(size_t bytes) {
  const Place place{Place::Of::scratch, 0, temporaries_bytes_, false, nullptr};
  temporaries_bytes_ += aligned(bytes);
  return place;
}

Place PrimitiveRun::own(int32_t value) {
  own_->push_back(static_cast<uint32_t>(value));
  return {Place::Of::own, 0, 0, true, &own_->back()};
}

Place PrimitiveRun::own(float value) { return own(std::bit_cast<int32_t>(value)); }

void PrimitiveRun::append(const dnnl::primitive_desc_base& desc, std::vector<Argument> arguments,
                          Scratchpad scratchpad) {
  scratchpad_bytes_ = std::max(scratchpad_bytes_, desc.scratchpad_desc().get_size());
  steps_.push_back({desc, std::move(arguments), scratchpad, {}, -1, false});
}

void PrimitiveRun::reorder(const Place& from, const dnnl::memory::desc& from_desc, const Place& to,
                           const dnnl::memory::desc& to_desc) {
  const dnnl::reorder::primitive_desc desc(cpu_engine(), from_desc, cpu_engine(), to_desc, plain_attr());
  append(desc, {{DNNL_ARG_FROM, from, from_desc}, {DNNL_ARG_TO, to, to_desc}}, Scratchpad::anything);
  steps_.back().reorders = true;
}

void PrimitiveRun::add(const dnnl::primitive_desc_base& desc, std::vector<Operand> operands, Scratchpad scratchpad) {
  std::vector<Argument> arguments;
  std::vector<std::pair<Operand, Place>> afterwards;
  for (const Operand& operand : operands) {
    Place place = operand.place;
    if (operand.have != operand.want) {
      place = scratch(operand.want.get_size());
      if (operand.written) {
        afterwards.emplace_back(operand, place);
      } else {
        const bool kept = operand.place.of == Place::Of::in && operand.place.constant;
        if (kept) place = {Place::Of::packed, packs_.size(), place.offset_bytes, false, nullptr};
        reorder(operand.place, operand.have, place, operand.want);
        if (kept) {
          steps_.back().pack = static_cast<int>(packs_.size());
          packs_.push_back({operand.place.index, operand.want.get_size()});
        }
      }
    }
    arguments.push_back({operand.arg, place, operand.want});
  }
  append(desc, std::move(arguments), scratchpad);
  slow_ |= is_reference(desc);
  for (const auto& [operand, place] : afterwards) reorder(place, operand.want, operand.place, operand.have);
}

void PrimitiveRun::add(std::function<void(const Addresses&)> work) {
  steps_.push_back({{}, {}, Scratchpad::anything, std::move(work), -1, false});
}

/// A primitive with its arguments. Memory objects are made once for each execution that runs at the same time and are
/// pointed at the data of the moment; inside, oneDNN still takes a little memory from the heap for every call.
class PrimitiveRun::Call {
 public:
  Call(const Step& step, const Place& scratchpad)
      : primitive_(step.desc.get()), arguments_(step.arguments), scratchpad_(scratchpad) {
    const dnnl::memory::desc desc = step.desc.scratchpad_desc();
    if (desc.get_size() > 0) arguments_.push_back({DNNL_ARG_SCRATCHPAD, scratchpad, desc});
    if (step.scratchpad == Scratchpad::zeros) cleared_ = desc.get_size();
    give_back(made());
  }

  void operator()(const Addresses& addresses) {
    if (cleared_ > 0) std::memset(addresses.at(scratchpad_), 0, cleared_);
    std::unique_ptr<Bound> bound = taken();
    for (size_t k = 0; k < arguments_.size(); ++k)
      if (void* data = addresses.at(arguments_[k].place); data != bound->data[k]) {
        bound->memories[k].set_data_handle(data);
        bound->data[k] = data;
      }
    dnnl::stream& stream = thread_stream();
    const auto count = static_cast<int>(bound->list.size());
    dnnl::error::wrap_c_api(dnnl_primitive_execute(primitive_.get(), stream.get(), count, bound->list.data()),
                            "could not execute a primitive");
    stream.wait();
    give_back(std::move(bound));
  }

 private:
  struct Bound {
    std::vector<dnnl::memory> memories;
    std::vector<dnnl_exec_arg_t> list;
    std::vector<void*> data;  ///< where the memories point
  };

  std::unique_ptr<Bound> made() const {
    auto bound = std::make_unique<Bound>();
    for (const Argument& argument : arguments_) {
      bound->memories.push_back(dnnl::memory(argument.desc, cpu_engine(), DNNL_MEMORY_NONE));
      bound->list.push_back({argument.arg, bound->memories.back().get()});
      bound->data.push_back(nullptr);
    }
    return bound;
  }

  std::unique_ptr<Bound> taken() {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        auto bound = std::move(free_.back());
        free_.pop_back();
        return bound;
      }
    }
    return made();
  }

  void give_back(std::unique_ptr<Bound> bound) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(bound));
  }

  dnnl::primitive primitive_;
  std::vector<Argument> arguments_;
  Place scratchpad_;
  size_t cleared_ = 0;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Bound>> free_;
};

std::function<void(const Addresses&)> PrimitiveRun::executed(const Step& step, const Place& scratchpad,
                                                             const Target& target) {
  if (step.work) return step.work;
  if (step.reorders) {
    const Place from = step.arguments[0].place, to = step.arguments[1].place;
    if (auto copy = blocked_copy(step.arguments[0].desc, step.arguments[1].desc, target)) {
      scratchpad_bytes_ = std::max(scratchpad_bytes_, copy->scratch_bytes);
      return [call = std::move(copy->call), from, to, scratchpad](const Addresses& addresses) {
        const void* const in = addresses.at(from);
        void* const out = addresses.at(to);
        const Status done = call({{&in, 1}, {&out, 1}, addresses.at(scratchpad)});
        PT_ASSERT(done.ok());  // a copy has no way to fail
      };
    }
  }
  return [call = std::make_shared<Call>(step, scratchpad)](const Addresses& addresses) { (*call)(addresses); };
}

Result<Run> PrimitiveRun::finish(const Target& target) && {
  const Place scratchpad{Place::Of::scratch, 0, temporaries_bytes_, false, nullptr};
  Run run;
  std::vector<std::function<void(const Addresses&)>> calls;
  try {
    for (const Step& step : steps_) {
      auto call = executed(step, scratchpad, target);
      if (!step.work) run.team = thread_count();
      if (step.pack < 0) {
        calls.push_back(std::move(call));
        continue;
      }
      const auto k = static_cast<size_t>(step.pack);
      run.packs.push_back({packs_[k].port, packs_[k].bytes, packed_by(call, packs_[k].port, k)});
      calls.push_back([call = std::move(call), k](const Addresses& addresses) {
        if (!addresses.has_packed(k)) call(addresses);
      });
    }
  } catch (const dnnl::error& error) {
    return status_of(error);
  }
  run.scratch_bytes = temporaries_bytes_ + aligned(scratchpad_bytes_);
  run.call = [calls = std::move(calls), own = std::move(own_)](const RunArgs& args) { return called(calls, args); };
  return run;
}

dnnl::primitive_attr plain_attr() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

dnnl::primitive_attr math_attr(const Target& target) {
  dnnl::primitive_attr attr = plain_attr();
  attr.set_deterministic(target.deterministic);
  switch (target.fpmath) {
    case FpMath::strict: break;
    case FpMath::bf16: attr.set_fpmath_mode(dnnl::fpmath_mode::bf16); break;
    case FpMath::f16: attr.set_fpmath_mode(dnnl::fpmath_mode::f16); break;
    case FpMath::any: attr.set_fpmath_mode(dnnl::fpmath_mode::any); break;
    case FpMath::tf32: attr.set_fpmath_mode(dnnl::fpmath_mode::tf32); break;
  }
  return attr;
}

bool has_isa(dnnl::cpu_isa isa) {
  static const auto has = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  return (has & static_cast<unsigned>(isa)) == static_cast<unsigned>(isa);
}

bool is_reference(const dnnl::primitive_desc_base& desc) {
  return std::string_view(desc.impl_info_str()).find("ref") != std::string_view::npos;
}

Status status_of(const dnnl::error& error) {
  const Code code = error.status == dnnl_out_of_memory       ? Code::out_of_memory
                    : error.status == dnnl_unimplemented     ? Code::unimplemented
                    : error.status == dnnl_invalid_arguments ? Code::invalid_arguments
                                                             : Code::runtime_error;
  return fail(code, str("oneDNN failed: ", error.what()));
}

}  // namespace partita::onednn
