# SPDX-License-Identifier: Apache-2.0
# A graph for each pattern and for each thing the rule makes.
from graph_builder import Graph


def pattern_graphs():
    """Name of a pattern or of what the rule makes -> a graph in which there is one."""
    graphs = {}
    nchw, pooled = (2, 4, 8, 10), (2, 4, 4, 5)
    window = dict(kernel=[3, 3], strides=[2, 2], pads_begin=[1, 1], pads_end=[1, 1], data_format="NCX")
    conv = dict(strides=[1, 1], dilations=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], data_format="NCX",
                weights_format="OIX")

    g = graphs["pool_backward_neighbourhood"] = Graph()
    diff = g.op("ReLUBackward", [g.f32(*pooled), g.f32(*pooled)])
    diff = g.op("MaxPoolBackward", [g.f32(*nchw), diff], ("f32", nchw), **window)
    g.op("Multiply", [g.op("Add", [diff, g.f32(*nchw)]), g.f32(4, 1, 1)])

    g = graphs["pool_backward_neighbourhood_average"] = Graph()
    diff = g.op("Multiply", [g.f32(*pooled), g.f32(*pooled)])
    diff = g.op("AvgPoolBackward", [diff], ("f32", nchw), src_shape=nchw, exclude_pad=True, **window)
    g.op("ReLUBackward", [g.f32(*nchw), diff])

    g = graphs["pool_neighbourhood"] = Graph()
    for kind, attrs in (("MaxPool", {}), ("AvgPool", dict(exclude_pad=False))):
        y = g.op(kind, [g.f32(*nchw)], ("f32", pooled), **window, **attrs)
        g.op("ReLU", [g.op("Add", [y, g.f32(*pooled)])])

    # Poolings beyond oneDNN Graph, each with neighbours.
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
    g = graphs["pool_backward_neighbourhood_batch_norm"] = Graph()
    y = g.f32(*nchw)
    diff = g.op("MaxPoolBackward", [y, g.f32(*pooled)], ("f32", nchw), **window)
    diff = g.op("ReLUBackward", [y, diff])
    g.many("BatchNormTrainingBackward", [g.f32(*nchw), diff] + [g.f32(4) for _ in range(3)],
           [("f32", nchw), ("f32", (4,)), ("f32", (4,))], **norm)

    g = graphs["pool_backward_neighbourhood_bias"] = Graph()
    y = g.f32(*nchw)
    diff = g.op("ReLUBackward", [y, g.op("MaxPoolBackward", [y, g.f32(*pooled)], ("f32", nchw), **window)])
    g.op("BiasAddBackward", [diff], ("f32", (4,)), data_format="NCX")
    g.op("ConvolutionBackwardData", [diff, g.f32(4, 4, 3, 3)], ("f32", nchw), dst_shape=nchw, **conv)

    g = graphs["batch_norm_neighbourhood"] = Graph()
    y = g.many("BatchNormForwardTraining", [g.op("Add", [g.f32(*nchw), g.f32(*nchw)])] + [g.f32(4) for _ in range(4)],
               [("f32", nchw)] + [("f32", (4,))] * 4, **norm)
    g.op("ReLU", [y[0]])

    g = graphs["batch_norm_backward_neighbourhood"] = Graph()
    diff = g.op("ReLUBackward", [g.f32(*nchw), g.f32(*nchw)])
    diff = g.many("BatchNormTrainingBackward", [g.f32(*nchw), diff] + [g.f32(4) for _ in range(3)],
                  [("f32", nchw), ("f32", (4,)), ("f32", (4,))], **norm)
    g.op("Add", [diff[0], g.f32(*nchw)])

    g = graphs["rows_neighbourhood"] = Graph()
    y = g.op("LayerNorm", [g.op("Add", [g.f32(6, 40), g.f32(6, 40)]), g.f32(40), g.f32(40)], ("f32", (6, 40)),
             keep_stats=False)
    g.op("GELU", [y])
    g.op("Multiply", [g.op("SoftMax", [g.op("Add", [g.f32(3, 5, 7), g.f32(5, 7)])], axis=2), g.f32(3, 5, 7)])

    g = graphs["rows_backward_neighbourhood"] = Graph()
    diff = g.op("SoftMaxBackward", [g.op("Multiply", [g.f32(3, 5, 7), g.f32(3, 5, 7)]), g.f32(3, 5, 7)], axis=2)
    g.op("Multiply", [diff, g.f32(1)])

    g = graphs["resample_neighbourhood"] = Graph()
    y = g.op("Interpolate", [g.op("ReLU", [g.f32(*pooled)])], ("f32", nchw), mode="nearest", scales=[2.0, 2.0],
             data_format="NCX")
    g.op("Add", [y, g.f32(*nchw)])
    diff = g.op("InterpolateBackward", [g.f32(*pooled), g.f32(*nchw)], ("f32", pooled), mode="linear",
                scales=[2.0, 2.0], data_format="NCX")
    g.op("ReLUBackward", [g.f32(*pooled), diff])

    g = graphs["reduction_neighbourhood"] = Graph()
    y = g.op("ReduceSum", [g.op("Multiply", [g.f32(*nchw), g.f32(*nchw)])], ("f32", (2, 4, 1, 1)), axes=[2, 3],
             keep_dims=True)
    g.op("Sigmoid", [y])

    g = graphs["int8_neighbourhoods"] = Graph()
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

    g = graphs["convolution_neighbourhood"] = Graph()
    y = g.op("Convolution", [g.f32(*nchw), g.f32(6, 4, 3, 3), g.f32(6)], ("f32", (2, 6, 8, 10)), **conv)
    y = g.op("Multiply", [y, g.op("Sigmoid", [y])])
    g.op("Add", [y, g.f32(2, 6, 8, 10)])

    g = graphs["matmul_neighbourhood"] = Graph()
    y = g.op("MatMul", [g.f32(2, 5, 8), g.f32(8, 6)], ("f32", (2, 5, 6)))
    y = g.op("GELU", [g.op("BiasAdd", [y, g.f32(6)])])
    g.op("TypeCast", [g.op("Add", [y, g.f32(2, 5, 6)])], ("bf16", (2, 5, 6)))
    y = g.op("Convolution", [g.f32(*nchw), g.f32(6, 4, 3, 3)], ("f32", (2, 6, 8, 10)), **conv)
    y = g.op("BatchNormInference", [y] + [g.f32(6) for _ in range(4)], epsilon=0.001, data_format="NCX")
    g.op("ReLU", [y])

    g = graphs["elementwise_neighbourhood"] = Graph()
    y = g.op("Tanh", [g.op("Subtract", [g.f32(2, 3, 4), g.f32(4)])])
    mask = g.op("GreaterEqual", [y, g.f32()], ("boolean", (2, 3, 4)))
    g.op("Select", [mask, y, g.op("Square", [y])], ("f32", (2, 3, 4)))

    g = graphs["movement_neighbourhood"] = Graph()
    y = g.op("StaticReshape", [g.f32(2, 12, 5)], ("f32", (2, 3, 4, 5)), shape=[2, 3, 4, 5], special_zero=False)
    y = g.op("StaticTranspose", [y], ("f32", (2, 4, 3, 5)), order=[0, 2, 1, 3])
    g.op("StaticReshape", [y], ("f32", (2, 12, 5)), shape=[2, 12, 5], special_zero=False)

    data, weights = dict(conv, dst_shape=nchw), dict(conv, weights_shape=[4, 4, 3, 3])
    g = graphs["convolution_gradient_neighbourhood"] = Graph()
    diff = g.op("ConvolutionBackwardData", [g.f32(*nchw), g.f32(4, 4, 3, 3)], ("f32", nchw), **data)
    g.op("ReLUBackward", [g.f32(*nchw), g.op("Add", [g.f32(*nchw), diff])])

    g = graphs["convolution_gradients"] = Graph()
    diff, norm_diff = g.f32(*nchw), [("f32", nchw), ("f32", (4,)), ("f32", (4,))]
    diff, _, _ = g.many("BatchNormTrainingBackward", [g.f32(*nchw), diff] + [g.f32(4) for _ in range(3)], norm_diff,
                        **norm)
    g.op("ConvolutionBackwardWeights", [g.f32(*nchw), diff], ("f32", (4, 4, 3, 3)), **weights)
    g.op("BiasAddBackward", [diff], ("f32", (4,)), data_format="NCX")
    diff = g.op("ConvolutionBackwardData", [diff, g.f32(4, 4, 3, 3)], ("f32", nchw), **data)
    diff = g.op("ReLUBackward", [g.f32(*nchw), diff])
    g.many("BatchNormTrainingBackward", [g.f32(*nchw), diff] + [g.f32(4) for _ in range(3)], norm_diff, **norm)

    squeezed, reduced = (2, 4, 1, 1), (2, 2, 1, 1)
    whole = dict(kernel=[8, 10], strides=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], exclude_pad=True, data_format="NCX")
    one = dict(conv, pads_begin=[0, 0], pads_end=[0, 0])
    g = graphs["squeeze_excite"] = Graph()
    x = g.op("HardSwish", [g.f32(*nchw)])
    y = g.op("AvgPool", [x], ("f32", squeezed), rounding_type="floor", **whole)
    y = g.op("ReLU", [g.op("Convolution", [y, g.f32(2, 4, 1, 1), g.f32(2)], ("f32", reduced), **one)])
    y = g.op("HardSigmoid", [g.op("Convolution", [y, g.f32(4, 2, 1, 1), g.f32(4)], ("f32", squeezed), **one)],
             alpha=0.2, beta=0.5)
    g.op("Multiply", [x, y])

    g = graphs["squeeze_excite_gradients"] = Graph()
    diff, x, y, z = g.f32(*nchw), g.f32(*nchw), g.f32(*reduced), g.f32(*squeezed)
    gate = g.op("ReduceSum", [g.op("Multiply", [diff, x])], ("f32", squeezed), axes=[2, 3], keep_dims=True)
    gate = g.op("HardSigmoidBackward", [z, gate], alpha=0.2, beta=0.5)
    g.op("ConvolutionBackwardWeights", [y, gate], ("f32", (4, 2, 1, 1)), weights_shape=[4, 2, 1, 1], **one)
    g.op("BiasAddBackward", [gate], ("f32", (4,)), data_format="NCX")
    gate = g.op("ConvolutionBackwardData", [gate, g.f32(4, 2, 1, 1)], ("f32", reduced), dst_shape=reduced, **one)
    gate = g.op("ReLUBackward", [y, gate])
    g.op("ConvolutionBackwardWeights", [g.f32(*squeezed), gate], ("f32", (2, 4, 1, 1)), weights_shape=[2, 4, 1, 1],
         **one)
    gate = g.op("ConvolutionBackwardData", [gate, g.f32(2, 4, 1, 1)], ("f32", squeezed), dst_shape=squeezed, **one)
    gate = g.op("AvgPoolBackward", [gate], ("f32", nchw), src_shape=nchw, **whole)
    g.op("Add", [gate, g.op("Multiply", [diff, z])])

    g = graphs["squeeze_excite_gradients_matmul"] = Graph()
    diff, x, y, z = g.f32(*nchw), g.f32(*nchw), g.f32(2, 3), g.f32(2, 4)
    gate = g.op("ReduceSum", [g.op("Multiply", [diff, x])], ("f32", (2, 4)), axes=[2, 3], keep_dims=False)
    gate = g.op("SigmoidBackward", [z, gate])
    g.op("MatMul", [gate, y], ("f32", (4, 3)), transpose_a=True)
    g.op("ReduceSum", [gate], ("f32", (4,)), axes=[0])
    gate = g.op("ReLUBackward", [y, g.op("MatMul", [gate, g.f32(4, 3)], ("f32", (2, 3)))])
    g.op("MatMul", [gate, g.f32(2, 4)], ("f32", (3, 4)), transpose_a=True)
    gate = g.op("MatMul", [gate, g.f32(3, 4)], ("f32", (2, 4)))
    gate, z = (g.op("StaticReshape", [t], ("f32", squeezed), shape=squeezed, special_zero=False) for t in (gate, z))
    gate = g.op("Multiply", [gate, g.f32(1)])
    g.op("Add", [g.op("Multiply", [diff, z]), gate])

    g = graphs["pool_backward_convolution_gradients"] = Graph()
    halves = dict(kernel=[2, 2], strides=[2, 2], pads_begin=[0, 0], pads_end=[0, 0], data_format="NCX")
    diff = g.op("AvgPoolBackward", [g.f32(*pooled)], ("f32", nchw), src_shape=nchw, exclude_pad=False, **halves)
    g.op("ConvolutionBackwardData", [diff, g.f32(4, 6, 1, 1)], ("f32", (2, 6, 8, 10)), dst_shape=[2, 6, 8, 10], **one)
    g.op("ConvolutionBackwardWeights", [g.f32(2, 6, 8, 10), diff], ("f32", (4, 6, 1, 1)), weights_shape=[4, 6, 1, 1],
         **one)
    diff = g.op("AdaptiveAvgPoolBackward", [g.f32(2, 4, 3, 5)], ("f32", nchw), src_shape=nchw, data_format="NCX")
    g.op("ConvolutionBackwardWeights", [g.f32(2, 6, 8, 10), diff], ("f32", (4, 6, 1, 1)), weights_shape=[4, 6, 1, 1],
         **one)
    g.op("BiasAddBackward", [diff], ("f32", (4,)), data_format="NCX")

    g = graphs["matmul_gradients"] = Graph()
    x, diff = g.f32(6, 16), g.op("TanhBackward", [g.f32(6, 8), g.f32(6, 8)])
    g.op("MatMul", [x, diff], ("f32", (16, 8)), transpose_a=True)
    g.op("ReduceSum", [diff], ("f32", (8,)), axes=[0])
    g.op("GELUBackward", [g.f32(6, 16), g.op("MatMul", [diff, g.f32(16, 8)], ("f32", (6, 16)), transpose_b=True)])
    # The gradient as the first factor of both, flat and transposed.
    diff = g.f32(2, 6, 8)
    g.op("MatMul", [diff, g.f32(8, 16)], ("f32", (2, 6, 16)))
    diff = g.op("StaticReshape", [diff], ("f32", (12, 8)), shape=[12, 8], special_zero=False)
    g.op("BiasAddBackward", [diff], ("f32", (8,)), data_format="NXC")
    diff = g.op("StaticTranspose", [diff], ("f32", (8, 12)), order=[1, 0])
    g.op("MatMul", [diff, g.f32(12, 16)], ("f32", (8, 16)))

    g = graphs["residual_blocks"] = Graph()
    def residual(x, dtype=None):
        """A block of two convolutions; with a type, quantized."""
        def coded(y):
            if dtype is None:
                return y
            y = g.op("Quantize", [y], (dtype, y.shape), scales=[0.05], zps=[0])
            return g.op("Dequantize", [y], ("f32", y.shape), scales=[0.05], zps=[0])
        def filter_():
            if dtype is None:
                return g.f32(4, 4, 3, 3)
            return g.op("Dequantize", [g.tensor("s8", (4, 4, 3, 3))], ("f32", (4, 4, 3, 3)), scales=[0.02])
        y = g.op("ReLU", [g.op("Convolution", [x, filter_(), g.f32(4)], **conv)])
        y = g.op("Convolution", [coded(y), filter_(), g.f32(4)], **conv)
        return coded(g.op("ReLU", [g.op("Add", [y, x])]))
    residual(residual(g.f32(*nchw)))
    residual(residual(g.op("Dequantize", [g.tensor("u8", nchw)], ("f32", nchw), scales=[0.05], zps=[0]), "u8"), "u8")

    g = graphs["convolution_depthwise"] = Graph()
    y = g.op("Convolution", [g.f32(*nchw), g.f32(6, 4, 1, 1), g.f32(6)], ("f32", (2, 6, 8, 10)), **one)
    depthwise = dict(conv, strides=[2, 2], groups=6)
    y = g.op("Convolution", [g.op("HardSwish", [y]), g.f32(6, 1, 3, 3), g.f32(6)], ("f32", (2, 6, 4, 5)), **depthwise)
    g.op("HardSwish", [y])

    heads, scores = (2, 3, 9, 4), (2, 3, 9, 9)
    g = graphs["attention"] = Graph()
    y = g.op("MatMul", [g.f32(*heads), g.f32(*heads)], ("f32", scores), transpose_b=True)
    y = g.op("Divide", [y, g.f32(1)])
    row, column = (g.op("GenIndex", [y], ("s32", scores), axis=a) for a in (-2, -1))
    mask = g.op("GreaterEqual", [row, column], ("boolean", scores))
    y = g.op("SoftMax", [g.op("Select", [mask, y, g.f32(1)], ("f32", scores))], axis=-1, mode="inf_as_zero")
    y = g.op("MatMul", [y, g.f32(*heads)], ("f32", heads))
    y = g.op("StaticTranspose", [y], ("f32", (2, 9, 3, 4)), order=[0, 2, 1, 3])
    g.op("StaticReshape", [y], ("f32", (2, 9, 12)), shape=[2, 9, 12], special_zero=False)

    for name, decomposed in (("attention_backward", True), ("attention_backward_softmax", False),
                             ("attention_backward_softmax_decomposed", False)):
        g = graphs[name] = Graph()
        q, k, v, diff, scale = g.f32(*heads), g.f32(*heads), g.f32(*heads), g.f32(*heads), g.f32(1)
        if decomposed:
            y = g.op("Multiply", [g.op("MatMul", [q, k], ("f32", scores), transpose_b=True), scale])
            p = g.op("Exp", [g.op("Subtract", [y, g.f32(2, 3, 9, 1)])])
            total = g.op("ReduceSum", [g.op("Multiply", [g.f32(*heads), diff])], ("f32", (2, 3, 9, 1)), axes=[-1],
                         keep_dims=True)
        else:
            p = g.f32(*scores)
        g.op("MatMul", [p, diff], ("f32", heads), transpose_a=True)
        ds = g.op("MatMul", [diff, v], ("f32", scores), transpose_b=True)
        if decomposed:
            ds = g.op("Multiply", [p, g.op("Subtract", [ds, total])])
        elif name == "attention_backward_softmax_decomposed":
            ds = g.op("Multiply", [ds, p])
            total = g.op("ReduceSum", [ds], ("f32", (2, 3, 9, 1)), axes=[-1], keep_dims=True)
            ds = g.op("Subtract", [ds, g.op("Multiply", [p, total])])
        else:
            ds = g.op("SoftMaxBackward", [ds, p], axis=-1)
        ds = g.op("Multiply", [ds, scale])
        g.op("MatMul", [ds, k], ("f32", heads))
        g.op("MatMul", [ds, q], ("f32", heads), transpose_a=True)

    g = graphs["gated_mlp"] = Graph()
    x = g.f32(5, 8)
    up, gate = (g.op("MatMul", [x, g.f32(8, 24)], ("f32", (5, 24))) for _ in range(2))
    gate = g.op("Multiply", [gate, g.op("Sigmoid", [gate])])
    g.op("MatMul", [g.op("Multiply", [gate, up]), g.f32(24, 8)], ("f32", (5, 8)))

    g = graphs["gated_mlp_bias"] = Graph()
    x = g.f32(5, 8)
    up, gate = (g.op("MatMul", [x, g.f32(8, 24)], ("f32", (5, 24))) for _ in range(2))
    up = g.op("Multiply", [g.op("Add", [up, g.f32(24)]), g.f32(1)])
    gate = g.op("BiasAdd", [gate, g.f32(24)], data_format="NXC")
    gate = g.op("Clamp", [g.op("Multiply", [gate, g.op("Sigmoid", [gate])])], min=-7.0, max=7.0)
    g.op("MatMul", [g.op("Multiply", [gate, up]), g.f32(24, 8)], ("f32", (5, 8)))
    return graphs
