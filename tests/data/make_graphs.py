#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Writes every graph of this folder: `python3 tests/data/make_graphs.py [FOLDER]`. The results are committed.
import os
import sys

sys.dont_write_bytecode = True  # the sources stay as they are

from chain_graphs import chain_graphs
from graph_builder import Graph
from make_models import model_graphs
from operator_graphs import operator_graphs
from pattern_graphs import pattern_graphs
from training_graphs import training_graphs


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

    # Depthwise with a zero point of the weights; transposed ones with results that no tap reaches.
    g = graphs["int8_zero_points"] = Graph()
    nothing = dict(dilations=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], data_format="NCX")
    narrow = (1, 16, 6, 6)

    def dequantized(dtype, shape, zero):
        return g.op("Dequantize", [g.tensor(dtype, shape)], ("f32", shape), scales=[0.1], zps=[zero])

    g.op("Convolution", [dequantized("s8", narrow, 0), dequantized("s8", (16, 1, 3, 3), 5)], ("f32", (1, 16, 4, 4)),
         groups=16, strides=[1, 1], weights_format="OIX", **nothing)
    for dtype, zero, kernel, stride, more in (("s8", 0, 1, 3, 0), ("s8", 3, 2, 4, 0), ("u8", 0, 2, 2, 1),
                                              ("u8", 3, 3, 3, 2)):
        wide = 5 * stride + kernel + more
        g.op("ConvTranspose", [dequantized(dtype, narrow, zero), dequantized("s8", (16, 16, kernel, kernel), 0)],
             ("f32", (1, 16, wide, wide)), strides=[stride, stride], output_padding=[more, more], weights_format="IOX",
             **nothing)

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

    # One token of a language model: groups along the summed axis, and along the other one.
    g = graphs["four_bits_times_vector"] = Graph()
    x = g.tensor("f16", (1, 64))
    for dtype, group in (("s4", (16, 1)), ("u4", (1, 16))):
        of_groups = (64 // group[0], 48 // group[1])
        w = g.op("DynamicDequantize", [g.tensor(dtype, (64, 48)), g.tensor("f16", of_groups), g.tensor("u8", of_groups)],
                 ("f16", (64, 48)), qtype="per_group", group_shape=list(group))
        g.op("GELU", [g.op("MatMul", [x, w], ("f32", (1, 48)))], mode="gelu_erf")

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

    # Products: a bias of every second number; keys that have their values behind them; results with gaps.
    g = graphs["strided_products"] = Graph()
    g.op("MatMul", [g.f32(8, 16), g.f32(16, 24), g.tensor("f32", (24,), [2])], ("f32", (8, 24)))
    g.op("Convolution", [g.f32(*nchw), g.f32(6, 4, 3, 3), g.tensor("f32", (6,), [3])], ("f32", (2, 6, 8, 10)), **conv)
    for dtype in ("f32", "bf16"):
        keys = g.tensor(dtype, (2, 3, 16, 16), [2 * 3 * 16 * 16, 16 * 16, 16, 1])
        g.op("MatMul", [g.tensor(dtype, (2, 3, 16, 16)), keys], (dtype, (2, 3, 16, 16)), transpose_b=True)
    for added in ((16,), (3, 1, 16)):
        product = g.op("MatMul", [g.f32(3, 8, 32), g.f32(3, 32, 16)], ("f32", (3, 8, 16)))
        g.op("Add", [product, g.f32(*added)], g.tensor("f32", (3, 8, 16), [136, 16, 1]))
    return graphs


def main(folder):
    for group, graphs in (("op", operator_graphs()), ("pattern", pattern_graphs()), ("dtype", dtype_graphs()),
                          ("training", training_graphs()), ("chain", chain_graphs()), ("models", model_graphs())):
        os.makedirs(os.path.join(folder, group), exist_ok=True)
        for name, graph in graphs.items():
            with open(os.path.join(folder, group, name + ".json"), "w", encoding="utf-8") as out:
                out.write(graph.text())


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__)))
