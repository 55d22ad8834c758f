// SPDX-License-Identifier: Apache-2.0
// Copies of runs: a loop over groups of vectors where there are many, else one move behind the other.
#include "kernels/jit/flat/run_copy.hpp"

#include "kernels/jit/code/imm32.hpp"

namespace partita::jit {
namespace {

constexpr int kUnrolled = 8;  ///< vectors
constexpr int kFetched = 16;  ///< bytes: less is fetched with its neighbours

}  // namespace

void emit_run_copy(Emitter& e, const Xbyak::Reg64& from, const Xbyak::Reg64& to, int64_t at, const RunCopy& run) {
  const int vector = e.vector_bytes(), pass = kUnrolled * vector;
  const int there = imm32(at);
  const auto move = [&](int bytes, const Xbyak::RegExp& src, const Xbyak::RegExp& dst) {
    if (bytes >= kFetched) e.fetch_line(src, run.fetching);
    e.move_bytes(bytes, src, dst, run.streaming);
  };
  int64_t done = 0;
  if (const int64_t passes = run.bytes / pass; passes > 2) {
    Xbyak::Label next;
    e.xor_(e.ecx, e.ecx);
    e.L(next);
    for (int v = 0; v < pass; v += vector) move(vector, from + e.rcx + v, to + e.rcx + (there + v));
    e.add(e.rcx, static_cast<uint32_t>(pass));
    e.cmp(e.rcx, imm32(passes * pass));
    e.jb(next, Xbyak::CodeGenerator::T_NEAR);
    done = passes * pass;
  }
  const auto move_from = [&](int64_t begin, int bytes) { move(bytes, from + imm32(begin), to + imm32(at + begin)); };
  int part = vector;
  while (part > run.bytes) part /= 2;
  for (; done + part <= run.bytes; done += part) move_from(done, part);
  if (done == run.bytes) return;
  while (part / 2 >= run.bytes - done) part /= 2;
  move_from(run.bytes - part, part);
}

}  // namespace partita::jit
