// SPDX-License-Identifier: Apache-2.0
// Shares: steps whose primitives split sums between the threads they are made for, computed so that the problem alone
// decides how a sum is split.
#pragma once

#include "kernels/onednn/primitive_run.hpp"

namespace partita::onednn {

/// How a problem is computed. For most it is the problem itself, as one piece. For targets that want the same bits
/// whatever their threads, primitives whose sums might depend on them are made for one thread. Products are worth
/// several threads all the same: a convolution is cut along its batch, a matrix product along one axis of its result,
/// and the gradient of a convolution's weights becomes a sum over shares of the batch, added in their order. What
/// stands in front of the inputs (scales of integers that are multiplied as floats) is not cut: such a product stays
/// whole.
class Shares {
 public:
  Shares(const Problem& problem, const Target& target);

  /// What a primitive has to compute: the problem, or one of its equal shares.
  const Problem& piece() const { return piece_; }
  /// Threads to make the primitive for, as ThreadScope takes them; 0: the target's.
  int threads() const { return alone_ ? 1 : 0; }
  /// The problem's run, made of one of the piece.
  Result<Run> whole(Run of_piece) const;

 private:
  /// Divides an axis of a tensor of the piece by `shares_`.
  static void cut(TensorDesc& tensor, int axis, int64_t shares, int64_t& step);
  void share_images();
  void share_batch();
  void share_product();

  Problem problem_, piece_;
  Target target_;
  int64_t shares_ = 1, work_ = 1;
  bool alone_ = false, sums_ = false;
  std::vector<int64_t> in_steps_, out_steps_;  ///< bytes from one share of a port's tensor to the next
};

}  // namespace partita::onednn
