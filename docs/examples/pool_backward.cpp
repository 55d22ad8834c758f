// SPDX-License-Identifier: Apache-2.0
// The gradient of an average pooling with the ReLU in front of it, fused into one partition.
#include <iostream>
#include <partita/partita.hpp>
#include <vector>

namespace pt = partita;

int main() {
  const pt::Dims small{1, 2, 2, 2}, large{1, 2, 4, 4};
  const pt::logical_tensor diff_dst(0, pt::Dtype::f32, small), pooled(1, pt::Dtype::f32, large),
      relu_dst(2, pt::Dtype::f32, large), diff_src(3, pt::Dtype::f32, large);

  pt::op pool(1, pt::OpKind::AvgPoolBackward, {diff_dst}, {pooled});
  pool.set_attr(pt::Attr::kernel, std::vector<int64_t>{2, 2}).set_attr(pt::Attr::strides, std::vector<int64_t>{2, 2});
  pool.set_attr(pt::Attr::pads_begin, std::vector<int64_t>{0, 0})
      .set_attr(pt::Attr::pads_end, std::vector<int64_t>{0, 0});
  pool.set_attr(pt::Attr::exclude_pad, true).set_attr(pt::Attr::data_format, std::string("NCX"));
  pool.set_attr(pt::Attr::src_shape, std::vector<int64_t>{1, 2, 4, 4});
  const pt::op relu(2, pt::OpKind::ReLUBackward, {relu_dst, pooled}, {diff_src});

  pt::graph graph;
  for (const pt::op& o : {pool, relu})
    if (const pt::Status s = graph.add_op(o); !s.ok()) return std::cerr << s.text() << '\n', 1;
  if (const pt::Status s = graph.finalize(); !s.ok()) return std::cerr << s.text() << '\n', 1;

  const auto partitions = graph.get_partitions();
  if (!partitions.ok()) return std::cerr << partitions.status().text() << '\n', 1;
  std::cout << partitions->size() << " partition: " << (*partitions)[0].pattern() << '\n';

  const pt::engine cpu;
  const auto compiled = (*partitions)[0].compile(std::vector{diff_dst, relu_dst}, std::vector{diff_src}, cpu);
  if (!compiled.ok()) return std::cerr << compiled.status().text() << '\n', 1;

  std::vector<float> dy(8, 4.0f), y(32, 1.0f), dx(32);
  y[5] = 0;  // the ReLU was off here
  const pt::Status done =
      compiled->execute(pt::stream(cpu), std::vector<pt::tensor>{{diff_dst, dy.data()}, {relu_dst, y.data()}},
                        std::vector<pt::tensor>{{diff_src, dx.data()}});
  if (!done.ok()) return std::cerr << done.text() << '\n', 1;
  std::cout << "diff_src[4] = " << dx[4] << ", diff_src[5] = " << dx[5] << '\n';
  return dx[4] == 1.0f && dx[5] == 0.0f ? 0 : 1;
}
