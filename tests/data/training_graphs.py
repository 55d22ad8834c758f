# SPDX-License-Identifier: Apache-2.0
# Parts of training steps: backward passes with the element-wise operators that stand beside them.
from graph_builder import Graph


def pool_backward_chain():
    """Backward through an average pooling (f32) and a max pooling (bf16), both with neighbours."""
    g = Graph()
    n28, n56, n112 = (8, 64, 28, 28), (8, 64, 56, 56), (8, 64, 112, 112)
    # Two branches meet behind an average pooling whose result went through a ReLU.
    diff = g.op("Add", [g.f32(*n28), g.f32(*n28)])
    diff = g.op("ReLUBackward", [g.f32(*n28), diff])
    diff = g.op("AvgPoolBackward", [diff], ("f32", n56), src_shape=n56, kernel=[2, 2], strides=[2, 2],
                pads_begin=[0, 0], pads_end=[0, 0], exclude_pad=True, data_format="NCX")
    diff = g.op("Add", [diff, g.f32(*n56)])  # the gradient of a skip connection
    diff = g.op("Multiply", [diff, g.f32(64, 1, 1)])
    diff = g.op("ReLUBackward", [g.f32(*n56), diff])
    # The stem trains in bf16; its activation was not kept.
    activation = g.op("ReLU", [g.op("BiasAdd", [g.bf16(*n112), g.bf16(64)], data_format="NCX")])
    diff = g.op("TypeCast", [diff], ("bf16", n56))
    diff = g.op("MaxPoolBackward", [activation, diff], ("bf16", n112), kernel=[3, 3], strides=[2, 2], pads_begin=[1, 1],
                pads_end=[1, 1], data_format="NCX")
    diff = g.op("ReLUBackward", [activation, diff])
    g.op("BiasAddBackward", [diff], ("bf16", (64,)), data_format="NCX")
    return g


def global_pool_channel_last():
    """The head of a mobile network, channels last in bf16: the mean over the picture and a gate, backward."""
    g = Graph()
    src = (8, 14, 14, 96)
    diff = g.op("AvgPoolBackward", [g.bf16(8, 1, 1, 96)], ("bf16", src), src_shape=src, kernel=[14, 14], strides=[1, 1],
                pads_begin=[0, 0], pads_end=[0, 0], exclude_pad=True, data_format="NXC")
    diff = g.op("Multiply", [diff, g.bf16(8, 1, 1, 96)])
    g.op("HardSwishBackward", [g.bf16(*src), diff])
    return g


def conv_block():
    """Convolution, bias, ReLU and max pooling forward, then the gradients of all of them."""
    g = Graph()
    src, mid, out, weights = (4, 8, 28, 28), (4, 16, 28, 28), (4, 16, 14, 14), (16, 8, 3, 3)
    conv = dict(strides=[1, 1], dilations=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], data_format="NCX",
                weights_format="OIX")
    pool = dict(kernel=[2, 2], strides=[2, 2], pads_begin=[0, 0], pads_end=[0, 0], data_format="NCX")
    x, w = g.f32(*src), g.f32(*weights)
    y = g.op("BiasAdd", [g.op("Convolution", [x, w], ("f32", mid), **conv), g.f32(16)], data_format="NCX")
    y = g.op("ReLU", [y])
    g.op("MaxPool", [y], ("f32", out), **pool)
    diff = g.op("ReLUBackward", [y, g.op("MaxPoolBackward", [y, g.f32(*out)], ("f32", mid), **pool)])
    g.op("BiasAddBackward", [diff], ("f32", (16,)), data_format="NCX")
    g.op("ConvolutionBackwardWeights", [x, diff], ("f32", weights), weights_shape=weights, **conv)
    g.op("ConvolutionBackwardData", [diff, w], ("f32", src), dst_shape=src, **conv)
    return g


def mlp():
    """Two dense layers with GELU, forward and backward."""
    g = Graph()
    x, w1, w2 = g.f32(32, 64), g.f32(64, 128), g.f32(128, 16)
    hidden = g.op("BiasAdd", [g.op("MatMul", [x, w1], ("f32", (32, 128))), g.f32(128)])
    active = g.op("GELU", [hidden])
    y = g.op("MatMul", [active, w2], ("f32", (32, 16)))
    diff = g.op("Subtract", [y, g.f32(32, 16)])  # of half the squared distance to the target
    g.op("MatMul", [active, diff], ("f32", (128, 16)), transpose_a=True)
    diff = g.op("GELUBackward", [hidden, g.op("MatMul", [diff, w2], ("f32", (32, 128)), transpose_b=True)])
    g.op("BiasAddBackward", [diff], ("f32", (128,)))
    g.op("MatMul", [x, diff], ("f32", (64, 128)), transpose_a=True)
    g.op("MatMul", [diff, w1], ("f32", (32, 64)), transpose_b=True)
    return g


def attention():
    """Attention of one layer in bf16, forward and backward."""
    g = Graph()
    heads, scores = (2, 4, 32, 16), (2, 4, 32, 32)
    q, k, v, scale = g.bf16(*heads), g.bf16(*heads), g.bf16(*heads), g.bf16()
    s = g.op("Multiply", [g.op("MatMul", [q, k], ("bf16", scores), transpose_b=True), scale])
    p = g.op("SoftMax", [s], axis=-1)
    g.op("MatMul", [p, v], ("bf16", heads))
    diff_out = g.bf16(*heads)
    g.op("MatMul", [p, diff_out], ("bf16", heads), transpose_a=True)
    diff = g.op("MatMul", [diff_out, v], ("bf16", scores), transpose_b=True)
    diff = g.op("Multiply", [g.op("SoftMaxBackward", [diff, p], axis=-1), scale])
    g.op("MatMul", [diff, k], ("bf16", heads))
    g.op("MatMul", [diff, q], ("bf16", heads), transpose_a=True)
    return g


def batch_norm_block():
    """Batch normalisation with ReLU and a skip connection, forward and backward."""
    g = Graph()
    shape, c = (4, 8, 14, 14), [("f32", (8,))]
    norm = dict(epsilon=0.00001, data_format="NCX")
    x, gamma = g.f32(*shape), g.f32(8)
    y, _, _, mean, variance = g.many("BatchNormForwardTraining", [x, g.f32(8), g.f32(8), gamma, g.f32(8)],
                                     [("f32", shape)] + c * 4, momentum=0.9, **norm)
    y = g.op("ReLU", [g.op("Add", [y, g.f32(*shape)])])
    diff = g.op("ReLUBackward", [y, g.f32(*shape)])
    diff = g.many("BatchNormTrainingBackward", [x, diff, mean, variance, gamma], [("f32", shape)] + c * 2, **norm)[0]
    g.op("Add", [diff, g.f32(*shape)])
    return g


def layer_norm_block():
    """Layer normalisation and the gated activation behind it, forward and backward."""
    g = Graph()
    shape = (4, 16, 32)
    x, gamma, beta, gate = g.f32(*shape), g.f32(32), g.f32(32), g.f32(*shape)
    y, mean, variance = g.many("LayerNorm", [x, gamma, beta], [("f32", shape), ("f32", shape[:2]), ("f32", shape[:2])])
    s = g.op("Sigmoid", [gate])
    g.op("Multiply", [y, s])
    diff_out = g.f32(*shape)
    g.op("SigmoidBackward", [s, g.op("Multiply", [diff_out, y])])
    diff = g.op("Multiply", [diff_out, s])
    g.many("LayerNormBackward", [x, diff, mean, variance, gamma, beta],
           [("f32", shape), ("f32", (32,)), ("f32", (32,))])
    return g


def training_graphs():
    return {f.__name__: f() for f in (pool_backward_chain, global_pool_channel_last, conv_block, mlp, attention,
                                      batch_norm_block, layer_norm_block)}
