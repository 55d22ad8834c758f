# SPDX-License-Identifier: Apache-2.0
# Sub-graphs that training is full of: twelve times the gradient of a pooling with what stands around it, and steps of
# optimizers. Each is one partition but for squeeze_excite, whose halves only share an input.
from graph_builder import Graph


def pool(rank, kernel, stride, pad=0):
    return dict(kernel=[kernel] * rank, strides=[stride] * rank, pads_begin=[pad] * rank, pads_end=[pad] * rank,
                data_format="NCX")


def conv(**attrs):
    return dict(strides=[1, 1], dilations=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], data_format="NCX",
                weights_format="OIX", **attrs)


def average_backward(g, diff, shape, window):
    return g.op("AvgPoolBackward", [diff], (diff.dtype, shape), src_shape=shape, exclude_pad=True, **window)


def norm_backward(g, src, diff, channels):
    return g.many("BatchNormTrainingBackward", [src, diff] + [g.f32(channels) for _ in range(3)],
                  [(diff.dtype, src.shape), ("f32", (channels,)), ("f32", (channels,))], epsilon=0.001,
                  data_format="NCX")[0]


def resnet_stem():
    g = Graph()
    large, small = (2, 8, 16, 16), (2, 8, 8, 8)
    y = g.f32(*large)
    diff = g.op("MaxPoolBackward", [y, g.f32(*small)], ("f32", large), **pool(2, 3, 2, 1))
    norm_backward(g, g.f32(*large), g.op("ReLUBackward", [y, diff]), 8)
    return g


def resnet_head():
    """The gradient behind the ReLU goes both ways round the last block: it is an output and is read once more."""
    g = Graph()
    large = (2, 32, 7, 7)
    diff = average_backward(g, g.f32(2, 32, 1, 1), large, pool(2, 7, 1))
    diff = g.op("ReLUBackward", [g.f32(*large), diff])
    norm_backward(g, g.f32(*large), diff, 32)
    g.many("End", [diff], [])
    return g


def vgg_block():
    g = Graph()
    large, small = (2, 8, 16, 16), (2, 8, 8, 8)
    y = g.f32(*large)
    diff = g.op("MaxPoolBackward", [y, g.f32(*small)], ("f32", large), **pool(2, 2, 2))
    diff = g.op("ReLUBackward", [y, diff])
    g.op("BiasAddBackward", [diff], ("f32", (8,)), data_format="NCX")
    src = (2, 4, 16, 16)
    g.op("ConvolutionBackwardData", [diff, g.f32(8, 4, 1, 1)], ("f32", src), dst_shape=src, **conv())
    return g


def densenet_transition():
    g = Graph()
    large, small, src = (2, 8, 16, 16), (2, 8, 8, 8), (2, 16, 16, 16)
    diff = average_backward(g, g.f32(*small), large, pool(2, 2, 2))
    g.op("ConvolutionBackwardData", [diff, g.f32(8, 16, 1, 1)], ("f32", src), dst_shape=src, **conv())
    weights = (8, 16, 1, 1)
    g.op("ConvolutionBackwardWeights", [g.f32(*src), diff], ("f32", weights), weights_shape=weights, **conv())
    return g


def inception_average():
    """Four branches meet; one gradient arrives as a slice of a larger tensor, the sums stand in any order."""
    g = Graph()
    shape = (2, 8, 9, 9)
    diff = average_backward(g, g.f32(*shape), shape, pool(2, 3, 1, 1))
    diff = g.op("Add", [g.tensor("f32", shape, [24 * 81, 81, 9, 1]), diff])
    diff = g.op("Add", [diff, g.f32(*shape)])
    g.op("Add", [g.f32(*shape), diff])
    return g


def inception_maximum():
    g = Graph()
    large, small = (2, 8, 9, 9), (2, 8, 4, 4)
    diff = g.op("MaxPoolBackward", [g.f32(*large), g.tensor("f32", small, [24 * 16, 16, 4, 1])], ("f32", large),
                **pool(2, 3, 2))
    g.op("Add", [g.f32(*large), g.op("Add", [diff, g.f32(*large)])])
    return g


def squeeze_excite():
    """The gate's gradient on its way to two small dense layers, and the source's gradient with what they give back."""
    g = Graph()
    large, gate = (2, 8, 12, 12), (2, 8, 1, 1)
    diff, x = g.f32(*large), g.f32(*large)
    g.op("ReduceSum", [g.op("Multiply", [diff, x])], ("f32", gate), axes=[2, 3], keep_dims=True)
    back = average_backward(g, g.f32(*gate), large, pool(2, 12, 1))
    g.op("Add", [g.op("Multiply", [diff, g.f32(*gate)]), back])
    return g


def unet_skip():
    g = Graph()
    large, small = (2, 4, 16, 16), (2, 4, 8, 8)
    y = g.f32(*large)
    diff = g.op("MaxPoolBackward", [y, g.f32(*small)], ("f32", large), **pool(2, 2, 2))
    g.op("ReLUBackward", [y, g.op("Add", [g.tensor("f32", large, [8 * 256, 256, 16, 1]), diff])])
    return g


def lenet():
    g = Graph()
    large, small = (4, 6, 14, 14), (4, 6, 7, 7)
    g.op("TanhBackward", [g.f32(*large), average_backward(g, g.f32(*small), large, pool(2, 2, 2))])
    return g


def audio():
    g = Graph()
    large, small = (4, 8, 1, 64), (4, 8, 1, 16)
    y = g.f32(*large)
    window = dict(kernel=[1, 4], strides=[1, 4], pads_begin=[0, 0], pads_end=[0, 0], data_format="NCX")
    diff = g.op("MaxPoolBackward", [y, g.f32(*small)], ("f32", large), **window)
    norm_backward(g, g.f32(*large), g.op("ReLUBackward", [y, diff]), 8)
    return g


def video():
    """In three dimensions; trained in bf16 with an f32 gradient behind."""
    g = Graph()
    large, small = (2, 8, 4, 8, 8), (2, 8, 2, 4, 4)
    y = g.bf16(*large)
    diff = g.op("MaxPoolBackward", [y, g.bf16(*small)], ("bf16", large), **pool(3, 2, 2))
    diff = g.op("TypeCast", [g.op("ReLUBackward", [y, diff])], ("f32", large))
    g.op("BiasAddBackward", [diff], ("f32", (8,)), data_format="NCX")
    return g


def resnet_shortcut():
    g = Graph()
    large, small = (2, 8, 16, 16), (2, 8, 8, 8)
    diff = g.op("ConvolutionBackwardData", [g.f32(2, 16, 8, 8), g.f32(16, 8, 1, 1)], ("f32", small), dst_shape=small,
                **conv())
    diff = average_backward(g, diff, large, pool(2, 2, 2))
    g.op("ReLUBackward", [g.f32(*large), g.op("Add", [g.f32(*large), diff])])
    return g


def sgd_momentum():
    """v = momentum v + d; w = w - rate v; the gradient is summed over two steps and decayed."""
    g = Graph()
    shape, w = (16, 24), g.f32(16, 24)
    diff = g.op("Add", [g.f32(*shape), g.f32(*shape)])
    diff = g.op("Add", [diff, g.op("Multiply", [w, g.f32(1)])])
    velocity = g.op("Add", [g.op("Multiply", [g.f32(*shape), g.f32(1)]), diff])
    g.op("Subtract", [w, g.op("Multiply", [velocity, g.f32(1)])])
    return g


def adam():
    """The inputs are any numbers: Abs and Exp keep the root and the denominator positive."""
    g = Graph()
    shape, w, diff = (16, 24), g.f32(16, 24), g.f32(16, 24)
    mean = g.op("Add", [g.op("Multiply", [g.f32(*shape), g.f32(1)]), g.op("Multiply", [diff, g.f32(1)])])
    variance = g.op("Multiply", [g.op("Abs", [g.f32(*shape)]), g.op("Exp", [g.f32(1)])])
    variance = g.op("Add", [variance, g.op("Multiply", [g.op("Square", [diff]), g.op("Exp", [g.f32(1)])])])
    root = g.op("Add", [g.op("Sqrt", [variance]), g.op("Exp", [g.f32(1)])])
    g.op("Subtract", [w, g.op("Multiply", [g.op("Divide", [mean, root]), g.f32(1)])])
    return g


def chain_graphs():
    return {f.__name__: f() for f in
            (resnet_stem, resnet_head, vgg_block, densenet_transition, inception_average, inception_maximum,
             squeeze_excite, unet_skip, lenet, audio, video, resnet_shortcut, sgd_momentum, adam)}
