// SPDX-License-Identifier: Apache-2.0
// PrimitiveRun: collects oneDNN primitives and the loops around them, in order, and makes a Run of them. The one way in
// which every row of this folder talks to oneDNN.
#pragma once

#include <deque>
#include <dnnl.hpp>
#include <memory>

#include "kernels/kernel.hpp"
#include "kernels/onednn/view.hpp"

namespace partita::onednn {

/// The process's CPU engine.
const dnnl::engine& cpu_engine();

/// Where an argument's data is: at a port of the problem, or in the scratch memory.
struct Place {
  enum class Of : uint8_t { in, out, scratch, own, packed };
  Of of = Of::scratch;
  size_t index = 0;            ///< port; packed: number of the pack
  size_t offset_bytes = 0;     ///< packed: in the scratch memory, where nobody gives the packed form
  bool constant = false;       ///< in: the same content in every execution
  const void* data = nullptr;  ///< own: kept with the run
};

/// One argument of a primitive. `have` is how the data lies at its place, `want` what the primitive takes; a reorder
/// stands between them where they differ.
struct Operand {
  int arg = 0;
  Place place;
  dnnl::memory::desc have, want;
  bool written = false;
};

/// Addresses of one execution.
class Addresses {
 public:
  explicit Addresses(const RunArgs& args) : args_(args) {}
  void* at(const Place& place) const;
  bool has_packed(size_t pack) const { return pack < args_.packed.size() && args_.packed[pack] != nullptr; }

 private:
  const RunArgs& args_;
};

class PrimitiveRun {
 public:
  Place in(const Problem& problem, int port) const;
  Place out(const Problem& problem, int port) const;
  /// Memory for values between the primitives.
  Place scratch(size_t bytes);
  /// A number that goes with the run.
  Place own(float value);
  Place own(int32_t value);

  Operand reads(int arg, const Place& place, const dnnl::memory::desc& have) const { return {arg, place, have, have}; }
  Operand reads(int arg, const Place& place, const dnnl::memory::desc& have, const dnnl::memory::desc& want) const {
    return {arg, place, have, want};
  }
  Operand writes(int arg, const Place& place, const dnnl::memory::desc& have) const {
    return {arg, place, have, have, true};
  }
  Operand writes(int arg, const Place& place, const dnnl::memory::desc& have, const dnnl::memory::desc& want) const {
    return {arg, place, have, want, true};
  }

  /// What a primitive finds in its scratchpad when it starts.
  enum class Scratchpad : uint8_t { anything, zeros };
  /// Appends a primitive with the reorders its operands need. Throws dnnl::error where a reorder does not exist.
  void add(const dnnl::primitive_desc_base& desc, std::vector<Operand> operands,
           Scratchpad scratchpad = Scratchpad::anything);
  /// Appends plain code.
  void add(std::function<void(const Addresses&)> work);

  /// True where oneDNN has only its unoptimised loops for one of the primitives.
  bool slow() const { return slow_; }
  /// Generates the machine code. Reorders become loops where the target gets generated code for them.
  Result<Run> finish(const Target& target) &&;

 private:
  struct Argument {
    int arg;
    Place place;
    dnnl::memory::desc desc;
  };
  struct Step {
    dnnl::primitive_desc_base desc;
    std::vector<Argument> arguments;
    Scratchpad scratchpad = Scratchpad::anything;
    std::function<void(const Addresses&)> work;  // instead of a primitive
    int pack = -1;                               // the pack it makes
    bool reorders = false;
  };
  struct PackPlace {
    size_t port, bytes;
  };
  class Call;
  void append(const dnnl::primitive_desc_base& desc, std::vector<Argument> arguments, Scratchpad scratchpad);
  void reorder(const Place& from, const dnnl::memory::desc& from_desc, const Place& to,
               const dnnl::memory::desc& to_desc);
  std::function<void(const Addresses&)> executed(const Step& step, const Place& scratchpad, const Target& target);

  std::vector<Step> steps_;
  std::vector<PackPlace> packs_;
  std::shared_ptr<std::deque<uint32_t>> own_ = std::make_shared<std::deque<uint32_t>>();
  size_t temporaries_bytes_ = 0, scratchpad_bytes_ = 0;
  bool slow_ = false;
};

/// Scratch memory from us, nothing else changed.
dnnl::primitive_attr plain_attr();
/// Beside that, the lower precisions the target allows; only for primitives that multiply matrices.
dnnl::primitive_attr math_attr(const Target& target);
/// Whether oneDNN may use the instructions on this machine.
bool has_isa(dnnl::cpu_isa isa);
/// True where the implementation is plain loops.
bool is_reference(const dnnl::primitive_desc_base& desc);
/// The Status for what oneDNN threw.
Status status_of(const dnnl::error& error);

}  // namespace partita::onednn
