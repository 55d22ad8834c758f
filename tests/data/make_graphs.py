#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Writes every graph of this folder: `python3 tests/data/make_graphs.py [FOLDER]`. The results are committed.
import os
import sys

sys.dont_write_bytecode = True  # the sources stay as they are

from graph_builder import Graph
from operator_graphs import operator_graphs
from training_graphs import training_graphs


def pattern_graphs():
    """Pattern name -> a graph in which it claims something."""
    graphs = {}
    nchw, pooled = (2, 4, 8, 10), (2, 4, 4, 5)
    window = dict(kernel=[3, 3], strides=[2, 2], pads_begin=[1, 1], pads_end=[1, 1], data_format="NCX")
    conv = dict(strides=[1, 1], dilations=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], data_format="NCX",
                weights_format="OIX")

    g = graphs["max_pool_backward_elementwise"] = Graph()
    diff = g.op("ReLUBackward", [g.f32(*pooled), g.f32(*pooled)])
    diff = g.op("MaxPoolBackward", [g.f32(*nchw), diff], ("f32", nchw), **window)
    g.op("Multiply", [g.op("Add", [diff, g.f32(*nchw)]), g.f32(4, 1, 1)])

    g = graphs["avg_pool_backward_elementwise"] = Graph()
    diff = g.op("Multiply", [g.f32(*pooled), g.f32(*pooled)])
    diff = g.op("AvgPoolBackward", [diff], ("f32", nchw), src_shape=nchw, exclude_pad=True, **window)
    g.op("ReLUBackward", [g.f32(*nchw), diff])

    g = graphs["pool_elementwise"] = Graph()
    for kind, attrs in (("MaxPool", {}), ("AvgPool", dict(exclude_pad=False))):
        y = g.op(kind, [g.f32(*nchw)], ("f32", pooled), **window, **attrs)
        g.op("ReLU", [g.op("Add", [y, g.f32(*pooled)])])

    # Not a pattern's name: poolings beyond oneDNN Graph, each with neighbours.
    g = graphs["pool_extensions"] = Graph()
    diff = g.op("ReLUBackward", [g.f32(*pooled), g.f32(*pooled)])
    diff = g.op("MaxPoolIndicesBackward", [diff, g.tensor("s64", pooled)], ("f32", nchw), data_format="NCX")
    g.op("Multiply", [g.op("Add", [diff, g.f32(*nchw)]), g.f32(4, 1, 1)])
    diff = g.op("Multiply", [g.f32(*pooled), g.f32(*pooled)])
    diff = g.op("AdaptiveAvgPoolBackward", [diff], ("f32", (2, 4, 9, 7)), data_format="NCX")
    g.op("ReLUBackward", [g.f32(2, 4, 9, 7), diff])
    y, _ = g.many("MaxPool", [g.op("ReLU", [g.f32(*nchw)])], [("f32", pooled), ("s64", pooled)], **window)
    g.op("Abs", [y])
    y = g.op("AvgPool", [g.op("Tanh", [g.f32(4, 8, 10)])], ("f32", (4, 4, 5)), exclude_pad=True, **window)
    g.op("Add", [y, g.f32(4, 4, 5)])

    norm = dict(epsilon=0.001, data_format="NCX")
    g = graphs["pool_backward_batch_norm_backward"] = Graph()
    y = g.f32(*nchw)
    diff = g.op("MaxPoolBackward", [y, g.f32(*pooled)], ("f32", nchw), **window)
    diff = g.op("ReLUBackward", [y, diff])
    g.many("BatchNormTrainingBackward", [g.f32(*nchw), diff] + [g.f32(4) for _ in range(3)],
           [("f32", nchw), ("f32", (4,)), ("f32", (4,))], **norm)

    g = graphs["pool_backward_reduction"] = Graph()
    y = g.f32(*nchw)
    diff = g.op("ReLUBackward", [y, g.op("MaxPoolBackward", [y, g.f32(*pooled)], ("f32", nchw), **window)])
    g.op("BiasAddBackward", [diff], ("f32", (4,)), data_format="NCX")
    g.op("ConvolutionBackwardData", [diff, g.f32(4, 4, 3, 3)], ("f32", nchw), dst_shape=nchw, **conv)

    g = graphs["batch_norm_elementwise"] = Graph()
    y = g.many("BatchNormForwardTraining", [g.op("Add", [g.f32(*nchw), g.f32(*nchw)])] + [g.f32(4) for _ in range(4)],
               [("f32", nchw)] + [("f32", (4,))] * 4, **norm)
    g.op("ReLU", [y[0]])

    g = graphs["batch_norm_backward_elementwise"] = Graph()
    diff = g.op("ReLUBackward", [g.f32(*nchw), g.f32(*nchw)])
    diff = g.many("BatchNormTrainingBackward", [g.f32(*nchw), diff] + [g.f32(4) for _ in range(3)],
                  [("f32", nchw), ("f32", (4,)), ("f32", (4,))], **norm)
    g.op("Add", [diff[0], g.f32(*nchw)])

    g = graphs["rows_elementwise"] = Graph()
    y = g.op("LayerNorm", [g.op("Add", [g.f32(6, 40), g.f32(6, 40)]), g.f32(40), g.f32(40)], ("f32", (6, 40)),
             keep_stats=False)
    g.op("GELU", [y])
    g.op("Multiply", [g.op("SoftMax", [g.op("Add", [g.f32(3, 5, 7), g.f32(5, 7)])], axis=2), g.f32(3, 5, 7)])

    g = graphs["rows_backward_elementwise"] = Graph()
    diff = g.op("SoftMaxBackward", [g.op("Multiply", [g.f32(3, 5, 7), g.f32(3, 5, 7)]), g.f32(3, 5, 7)], axis=2)
    g.op("Multiply", [diff, g.f32(1)])

    g = graphs["resample_elementwise"] = Graph()
    y = g.op("Interpolate", [g.op("ReLU", [g.f32(*pooled)])], ("f32", nchw), mode="nearest", scales=[2.0, 2.0],
             data_format="NCX")
    g.op("Add", [y, g.f32(*nchw)])
    diff = g.op("InterpolateBackward", [g.f32(*pooled), g.f32(*nchw)], ("f32", pooled), mode="linear",
                scales=[2.0, 2.0], data_format="NCX")
    g.op("ReLUBackward", [g.f32(*pooled), diff])

    g = graphs["reduction_elementwise"] = Graph()
    y = g.op("ReduceSum", [g.op("Multiply", [g.f32(*nchw), g.f32(*nchw)])], ("f32", (2, 4, 1, 1)), axes=[2, 3],
             keep_dims=True)
    g.op("Sigmoid", [y])

    g = graphs["int8_matmul_conv_post_ops"] = Graph()
    def quantized(dtype, shape, **attrs):
        return g.op("Dequantize", [g.tensor(dtype, shape)], ("f32", shape), **attrs)
    x = quantized("u8", (4, 16), scales=[0.05], zps=[3])
    w = quantized("s8", (16, 8), scales=[0.01 * (i + 1) for i in range(8)], zps=[0] * 8, qtype="per_channel", axis=1)
    y = g.op("ReLU", [g.op("BiasAdd", [g.op("MatMul", [x, w], ("f32", (4, 8))), g.f32(8)])])
    g.op("Quantize", [y], ("u8", (4, 8)), scales=[0.05], zps=[0])
    x = quantized("u8", nchw, scales=[0.05], zps=[0])
    w = quantized("s8", (6, 4, 3, 3), scales=[0.02])
    y = g.op("Convolution", [x, w], ("f32", (2, 6, 8, 10)), **conv)
    g.op("Quantize", [g.op("Add", [y, g.f32(2, 6, 8, 10)])], ("s8", (2, 6, 8, 10)), scales=[0.1])

    g = graphs["conv_swish_post_ops"] = Graph()
    y = g.op("Convolution", [g.f32(*nchw), g.f32(6, 4, 3, 3), g.f32(6)], ("f32", (2, 6, 8, 10)), **conv)
    y = g.op("Multiply", [y, g.op("Sigmoid", [y])])
    g.op("Add", [y, g.f32(2, 6, 8, 10)])

    g = graphs["matmul_conv_post_ops"] = Graph()
    y = g.op("MatMul", [g.f32(2, 5, 8), g.f32(8, 6)], ("f32", (2, 5, 6)))
    y = g.op("GELU", [g.op("BiasAdd", [y, g.f32(6)])])
    g.op("TypeCast", [g.op("Add", [y, g.f32(2, 5, 6)])], ("bf16", (2, 5, 6)))
    y = g.op("Convolution", [g.f32(*nchw), g.f32(6, 4, 3, 3)], ("f32", (2, 6, 8, 10)), **conv)
    y = g.op("BatchNormInference", [y] + [g.f32(6) for _ in range(4)], epsilon=0.001, data_format="NCX")
    g.op("ReLU", [y])

    g = graphs["elementwise_chain"] = Graph()
    y = g.op("Tanh", [g.op("Subtract", [g.f32(2, 3, 4), g.f32(4)])])
    mask = g.op("GreaterEqual", [y, g.f32()], ("boolean", (2, 3, 4)))
    g.op("Select", [mask, y, g.op("Square", [y])], ("f32", (2, 3, 4)))
    return graphs


def dtype_graphs():
    graphs = {}
    nchw, pooled = (2, 4, 8, 10), (2, 4, 4, 5)
    window = dict(kernel=[2, 2], strides=[2, 2], pads_begin=[0, 0], pads_end=[0, 0], data_format="NCX")
    conv = dict(strides=[1, 1], dilations=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], data_format="NCX",
                weights_format="OIX")
    for dtype in ("bf16", "f16"):
        g = graphs[f"{dtype}_blocks"] = Graph()
        t = lambda *shape: g.tensor(dtype, shape)
        g.op("GELU", [g.op("BiasAdd", [g.op("MatMul", [t(5, 16), t(16, 8)], (dtype, (5, 8))), t(8)])])
        g.op("ReLU", [g.op("Convolution", [t(*nchw), t(6, 4, 3, 3), t(6)], (dtype, (2, 6, 8, 10)), **conv)])
        diff = g.op("MaxPoolBackward", [t(*nchw), t(*pooled)], (dtype, nchw), **window)
        g.op("ReLUBackward", [t(*nchw), diff])
        diff = g.op("AvgPoolBackward", [t(*pooled)], (dtype, nchw), src_shape=nchw, exclude_pad=False, **window)
        g.op("Add", [diff, g.f32(*nchw)], ("f32", nchw))
        g.op("SoftMax", [t(3, 17)], axis=-1)
        g.op("ReduceSum", [t(3, 17)], (dtype, (3,)), axes=[-1])
        g.op("RMSNorm", [t(3, 16), t(16)])

    g = graphs["int8_residual_block"] = Graph()
    q = dict(qtype="per_tensor", zps=[0])
    x = g.op("Dequantize", [g.tensor("u8", nchw)], ("f32", nchw), scales=[0.1], **q)
    w = g.op("Dequantize", [g.op("Quantize", [g.f32(4, 4, 3, 3)], ("s8", (4, 4, 3, 3)), scales=[0.01], **q)],
             ("f32", (4, 4, 3, 3)), scales=[0.01], **q)
    y = g.op("ReLU", [g.op("Add", [g.op("Convolution", [x, w], ("f32", nchw), **conv), x])])
    g.op("Quantize", [y], ("u8", nchw), scales=[0.1], **q)

    for dtype in ("f8_e4m3", "f8_e5m2"):
        g = graphs[f"{dtype}_matmul"] = Graph()
        x = g.op("Dequantize", [g.tensor(dtype, (4, 16))], ("f32", (4, 16)), scales=[0.5])
        w = g.op("Dequantize", [g.tensor(dtype, (16, 8))], ("f32", (16, 8)), scales=[0.25])
        g.op("Quantize", [g.op("MatMul", [x, w], ("f32", (4, 8)))], (dtype, (4, 8)), scales=[0.5])

    for dtype in ("s4", "u4"):
        g = graphs[f"{dtype}_weights"] = Graph()
        w = g.op("DynamicDequantize", [g.tensor(dtype, (32, 16)), g.f32(4, 16), g.tensor(dtype, (4, 16))],
                 ("f32", (32, 16)), qtype="per_group", group_shape=[8, 1])
        g.op("MatMul", [g.f32(3, 32), w], ("f32", (3, 16)))

    g = graphs["causal_mask"] = Graph()
    scores = g.f32(2, 3, 7, 7)
    row, column = (g.op("GenIndex", [scores], ("s32", scores.shape), axis=a) for a in (-2, -1))
    mask = g.op("GreaterEqual", [row, column], ("boolean", scores.shape))
    g.op("SoftMax", [g.op("Select", [mask, scores, g.f32()], ("f32", scores.shape))], axis=-1, mode="inf_as_zero")

    g = graphs["s32_arithmetic"] = Graph()
    a, b = g.tensor("s32", (3, 5)), g.tensor("s32", (5,))
    g.op("GreaterEqual", [g.op("Subtract", [g.op("Add", [a, b]), b]), a], ("boolean", (3, 5)))

    g = graphs["strided_inputs"] = Graph()
    transposed = g.tensor("f32", (4, 6), [1, 4])
    padded = g.tensor("f32", (4, 6), [9, 1])
    g.op("ReLU", [g.op("Add", [transposed, padded], ("f32", (4, 6)))])
    channel_last = g.tensor("f32", nchw, [320, 1, 40, 4])
    g.op("MaxPool", [channel_last], ("f32", pooled), **window)
    return graphs


def main(folder):
    for group, graphs in (("op", operator_graphs()), ("pattern", pattern_graphs()), ("dtype", dtype_graphs()),
                          ("training", training_graphs())):
        os.makedirs(os.path.join(folder, group), exist_ok=True)
        for name, graph in graphs.items():
            with open(os.path.join(folder, group, name + ".json"), "w", encoding="utf-8") as out:
                out.write(graph.text())


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__)))
