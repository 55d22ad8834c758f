// SPDX-License-Identifier: Apache-2.0
// Floats of 16 bits that are compared, chosen and added up as they come from memory, 32 a vector.
#include "kernels/jit/pool/code.hpp"
#include "src/base/dtype.hpp"

namespace partita::jit {
namespace {

using Xbyak::Ymm;
using Xbyak::Zmm;

}  // namespace

void PoolCode::count_from_zero(const Zmm& elements, const Zmm& signs) {
  vpmovw2m(k1, elements);
  vpsubw(elements | k1, signs, elements);
}

/// As integers they are 1 to infinity.
void PoolCode::find_positive(const Xbyak::Opmask& positive, const Zmm& elements, const Xbyak::Operand& minus_one,
                             const Xbyak::Operand& infinity) {
  constexpr uint8_t kBelow = 1;
  vpaddw(elements, elements, minus_one);
  vpcmpuw(positive, elements, infinity, kBelow);
}

Zmm PoolCode::chosen_words(const Zmm& words, const std::vector<int>& choice, int count,
                           const std::function<Xbyak::RegExp(const PoolOperand& o, size_t number)>& place) {
  const Zmm elements(scratch(0).getIdx()), chosen(scratch(1).getIdx());
  for (size_t c = 0; c < choice.size(); ++c) {
    const auto number = static_cast<size_t>(std::ranges::find(p_.back_in, choice[c]) - p_.back_in.begin());
    load_words(elements, place(p_.in[static_cast<size_t>(choice[c])], number), 0, count);
    find_positive(c == 0 ? k2 : k2 | k2, elements, held_words(-1), held_words(counted_infinity()));
  }
  if (choice.empty()) return words;
  vmovdqu16(chosen | k2 | T_z, words);
  return chosen;
}

void PoolCode::widen_words(const Zmm& to, const Zmm& from, int half) {
  const Ymm part(half == 0 ? from.getIdx() : to.getIdx());
  if (half == 1) vextracti64x4(part, from, 1);
  if (p_.in[0].dtype == Dtype::f16) return vcvtph2ps(to, part);
  vpmovzxwd(to, part);
  vpslld(to, to, 16);
}

void PoolCode::sum_words(const Zmm& sum, const Zmm& upper, const std::vector<WordTerm>& terms) {
  const Zmm won(scratch(0).getIdx()), moment(scratch(1).getIdx());
  const auto compare = [&](const WordTerm& term) {
    const Held name = held_words(term.name), winner = term.part(0);
    if (winner.in_memory() && !name.in_memory()) return vpcmpeqw(k1, Zmm(held_vector(moment, name).getIdx()), winner);
    vpcmpeqw(k1, Zmm(held_vector(moment, winner).getIdx()), name);
  };
  bool first = true;
  for (const WordTerm& term : terms) {
    compare(term);
    const Xbyak::Xmm gradient = held_vector(won, term.part(1));
    if (terms.size() == 1) return vmovdqu16(sum | k1 | T_z, gradient);
    if (first) {
      vmovdqu16(won | k1 | T_z, gradient);
      vpslld(sum, won, 16);
      vpandd(upper, won, held(everywhere(0xffff0000u)));
    } else {
      // Zeros with a sign change no sum.
      const Zmm zeros(held_vector(moment, held_words(kSignOfWord)).getIdx());
      vpblendmw(won | k1, zeros, Zmm(gradient.getIdx()));
      vpslld(moment, won, 16);
      vpandd(won, won, held(everywhere(0xffff0000u)));
      vaddps(sum, sum, moment);
      vaddps(upper, upper, won);
    }
    first = false;
  }
  if (terms.empty()) return vpxord(sum, sum, sum);
  compute({.op = LaneOp::pack, .imm = static_cast<int32_t>(Dtype::bf16)}, sum, sum, upper, sum);
  vpermw(sum, held_vector(won, held_words(halves_in_turns())), sum);
}

}  // namespace partita::jit
