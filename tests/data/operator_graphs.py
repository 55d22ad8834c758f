# SPDX-License-Identifier: Apache-2.0
# One small graph for each operator kind, with its modes beside each other where they differ.
from graph_builder import Graph

SHAPE = (2, 3, 4, 5)
POOL = dict(kernel=[3, 3], strides=[2, 2], pads_begin=[1, 1], pads_end=[1, 1])
CONV = dict(strides=[1, 2], dilations=[1, 1], pads_begin=[1, 0], pads_end=[1, 1], auto_pad="None")

UNARY = {
    "Abs": [{}], "Clamp": [dict(min=-0.25, max=0.25)], "Elu": [dict(alpha=0.75)], "Exp": [{}],
    "GELU": [dict(mode="gelu_erf"), dict(mode="gelu_tanh")], "HardSigmoid": [dict(alpha=0.2, beta=0.5)],
    "HardSwish": [{}], "LeakyReLU": [dict(alpha=0.1)], "Log": [{}], "LogSoftmax": [dict(axis=-1), dict(axis=1)],
    "Mish": [{}],
    "Pow": [dict(beta=2.5), dict(beta=-1.0)], "Reciprocal": [{}], "ReLU": [{}], "Round": [{}], "Sigmoid": [{}],
    "SoftPlus": [dict(beta=1.0), dict(beta=-2.0)], "Sqrt": [{}], "Square": [{}], "Tanh": [{}],
}
# The first input is the forward source, or with use_dst the forward result.
BACKWARD = {
    "AbsBackward": [{}], "ClampBackward": [dict(min=-0.25, max=0.25, use_dst=d) for d in (True, False)],
    "EluBackward": [dict(alpha=0.75, use_dst=d) for d in (True, False)],
    "GELUBackward": [dict(mode="gelu_erf"), dict(mode="gelu_tanh")], "HardSigmoidBackward": [dict(alpha=0.2, beta=0.5)],
    "HardSwishBackward": [{}], "MishBackward": [{}], "ReLUBackward": [dict(use_dst=d) for d in (True, False)],
    "SigmoidBackward": [dict(use_dst=d) for d in (True, False)], "SoftPlusBackward": [dict(beta=1.0), dict(beta=-2.0)],
    "SqrtBackward": [dict(use_dst=d) for d in (True, False)], "TanhBackward": [dict(use_dst=d) for d in (True, False)],
    "LogSoftmaxBackward": [dict(axis=-1), dict(axis=1)], "SoftMaxBackward": [dict(axis=-1), dict(axis=1)],
}
BINARY = ("Add", "Divide", "Maximum", "Minimum", "Multiply", "SquaredDifference", "Subtract")
REDUCE = ("ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum")


def elementwise(add):
    for kind, modes in UNARY.items():
        g = add(kind)
        for mode in modes:
            g.op(kind, [g.f32(*SHAPE)], **mode)
        g.op(kind, [g.bf16(*SHAPE)], **modes[0])
    for kind, modes in BACKWARD.items():
        g = add(kind)
        for mode in modes:
            g.op(kind, [g.f32(*SHAPE), g.f32(*SHAPE)], **mode)
    for kind in BINARY:
        g = add(kind)
        g.op(kind, [g.f32(*SHAPE), g.f32(*SHAPE)], auto_broadcast="none")
        g.op(kind, [g.f32(2, 1, 4, 5), g.f32(3, 1, 1)], ("f32", SHAPE), auto_broadcast="numpy")
    g = add("GreaterEqual")
    g.op("GreaterEqual", [g.f32(*SHAPE), g.f32(5)], ("boolean", SHAPE))
    g = add("Select")
    g.op("Select", [g.tensor("boolean", (1, 4, 5)), g.f32(*SHAPE), g.f32()], ("f32", SHAPE))
    g = add("BiasAdd")
    g.op("BiasAdd", [g.f32(*SHAPE), g.f32(3)], data_format="NCX")
    g.op("BiasAdd", [g.f32(*SHAPE), g.f32(5)], data_format="NXC")
    g = add("BiasAddBackward")
    g.op("BiasAddBackward", [g.f32(*SHAPE)], ("f32", (3,)), data_format="NCX")
    g.op("BiasAddBackward", [g.f32(*SHAPE)], ("f32", (5,)), data_format="NXC")
    g = add("PReLU")
    g.op("PReLU", [g.f32(*SHAPE), g.f32(3)], data_format="NCX", per_channel_broadcast=True)
    g.op("PReLU", [g.f32(*SHAPE), g.f32(5)], data_format="NCX", per_channel_broadcast=False)
    g = add("PReLUBackward")
    g.many("PReLUBackward", [g.f32(*SHAPE), g.f32(3), g.f32(*SHAPE)], [("f32", SHAPE), ("f32", (3,))],
           data_format="NCX")


def movement(add):
    g = add("Concat")
    g.op("Concat", [g.f32(2, 3, 4), g.f32(2, 1, 4), g.f32(2, 2, 4)], ("f32", (2, 6, 4)), axis=-2)
    g = add("StaticReshape")
    g.op("StaticReshape", [g.f32(2, 3, 4)], ("f32", (2, 12)), shape=[0, -1], special_zero=True)
    g = add("StaticTranspose")
    g.op("StaticTranspose", [g.f32(2, 3, 4)], ("f32", (4, 2, 3)), order=[-1, 0, 1])
    g = add("Reorder")
    g.op("Reorder", [g.f32(2, 3, 4)], g.tensor("f32", (2, 3, 4), [12, 1, 3]))
    g = add("TypeCast")
    for a, b in (("f32", "bf16"), ("bf16", "f32"), ("f32", "f16"), ("f16", "f32")):
        g.op("TypeCast", [g.tensor(a, (2, 3, 4))], (b, (2, 3, 4)))
    g = add("GenIndex")
    g.op("GenIndex", [g.f32(2, 3, 4)], ("s32", (2, 3, 4)), axis=-2)
    # What follows a Wildcard is unknown, so it stands at the end of the line, as End does.
    for kind in ("End", "Wildcard"):
        g = add(kind)
        g.many(kind, [g.op("ReLU", [g.f32(2, 3)])], [])
    g = add("Dropout")
    g.many("Dropout", [g.f32(8, 16), g.tensor("s64", ()), g.tensor("s64", ()), g.f32()],
           [("f32", (8, 16)), ("u8", (8, 16))])


def reductions(add):
    for kind in REDUCE:
        g = add(kind)
        g.op(kind, [g.f32(*SHAPE)], ("f32", (2, 1, 4, 1)), axes=[1, -1], keep_dims=True)
        g.op(kind, [g.f32(*SHAPE)], ("f32", (2, 3, 5)), axes=[2], keep_dims=False)
    g = add("SoftMax")
    g.op("SoftMax", [g.f32(*SHAPE)], axis=-1)
    g.many("SoftMax", [g.f32(*SHAPE)], [("f32", SHAPE), ("f32", (2, 1, 4, 5))], axis=1, mode="inf_as_zero")


def pooling(add):
    nchw, pooled = (2, 4, 9, 10), (2, 4, 5, 5)
    nhwc, nhwc_pooled = (2, 9, 10, 4), (2, 5, 5, 4)
    g = add("AvgPool")
    for exclude in (True, False):
        g.op("AvgPool", [g.f32(*nchw)], ("f32", pooled), exclude_pad=exclude, data_format="NCX", **POOL)
    g.op("AvgPool", [g.bf16(*nhwc)], ("bf16", nhwc_pooled), exclude_pad=True, data_format="NXC", **POOL)
    g.op("AvgPool", [g.f32(2, 4, 10)], ("f32", (2, 4, 4)), kernel=[3], strides=[3], pads_begin=[0], pads_end=[0],
         exclude_pad=True, data_format="NCX", rounding_type="ceil")
    g = add("AvgPoolBackward")
    for exclude in (True, False):
        g.op("AvgPoolBackward", [g.f32(*pooled)], ("f32", nchw), src_shape=nchw, exclude_pad=exclude,
             data_format="NCX", **POOL)
    g.op("AvgPoolBackward", [g.f32(*nhwc_pooled), g.tensor("s32", (4,), prop="constant")], ("f32", nhwc),
         exclude_pad=True, data_format="NXC", **POOL)
    g = add("MaxPool")
    g.op("MaxPool", [g.f32(*nchw)], ("f32", pooled), data_format="NCX", **POOL)
    g.op("MaxPool", [g.f32(*nhwc)], ("f32", (2, 5, 6, 4)), data_format="NXC", kernel=[3, 3], strides=[1, 1],
         dilations=[2, 2], pads_begin=[0, 0], pads_end=[0, 0])
    g.op("MaxPool", [g.f32(*nchw)], ("f32", pooled), data_format="NCX", kernel=[3, 3], strides=[2, 2], pads_begin=[],
         pads_end=[], auto_pad="SAME_UPPER")
    # Extensions: rounding up with each divisor, tensors without a batch, indices.
    up = dict(kernel=[3, 3], strides=[2, 2], pads_begin=[0, 1], pads_end=[0, 1], data_format="NCX")
    add_up = dict(rounding_type="ceil_inside", exclude_overhang=True, **up)
    g = add("PoolExtensions")
    g.op("AvgPool", [g.f32(4, 6, 10)], ("f32", (4, 3, 6)), exclude_pad=False, **add_up)
    g.op("AvgPool", [g.f32(*nhwc)], ("f32", nhwc_pooled), exclude_pad=True, divisor_override=7, data_format="NXC",
         **POOL)
    g.op("AvgPoolBackward", [g.f32(4, 3, 6)], ("f32", (4, 6, 10)), exclude_pad=False, **add_up)
    g.op("AvgPoolBackward", [g.bf16(*nhwc_pooled)], ("bf16", nhwc), exclude_pad=False, divisor_override=7,
         data_format="NXC", **POOL)
    g.op("MaxPoolBackward", [g.f32(2, 4, 6, 10), g.f32(2, 4, 3, 6)], ("f32", (2, 4, 6, 10)),
         rounding_type="ceil_inside", **up)
    g.many("MaxPool", [g.f32(*nchw)], [("f32", pooled), ("s64", pooled)], data_format="NCX", **POOL)
    g.many("MaxPool", [g.bf16(*nhwc)], [("bf16", nhwc_pooled), ("s32", nhwc_pooled)], index_base="tensor",
           data_format="NXC", **POOL)
    g = add("MaxPoolIndicesBackward")
    g.op("MaxPoolIndicesBackward", [g.f32(*pooled), g.tensor("s64", pooled)], ("f32", nchw), data_format="NCX")
    g.op("MaxPoolIndicesBackward", [g.bf16(*nhwc_pooled), g.tensor("s32", nhwc_pooled)], ("bf16", nhwc),
         index_base="tensor", data_format="NXC")
    g.op("MaxPoolIndicesBackward", [g.f32(4, 5, 5), g.tensor("s64", (4, 5, 5))], ("f32", (4, 9, 10)), spatial_axes=2,
         data_format="NCX")
    g = add("AdaptiveAvgPool")
    g.op("AdaptiveAvgPool", [g.f32(*nchw)], ("f32", (2, 4, 4, 7)), sizes=[4, 7], data_format="NCX")
    g.op("AdaptiveAvgPool", [g.bf16(*nhwc)], ("bf16", (2, 3, 5, 4)), sizes=[3, 5], data_format="NXC")
    g = add("AdaptiveAvgPoolBackward")
    g.op("AdaptiveAvgPoolBackward", [g.f32(2, 4, 4, 7)], ("f32", nchw), data_format="NCX")
    g.op("AdaptiveAvgPoolBackward", [g.bf16(2, 3, 5, 4)], ("bf16", nhwc), data_format="NXC")
    g.op("AdaptiveAvgPoolBackward", [g.f32(4, 5, 7)], ("f32", (4, 9, 10)), spatial_axes=2, data_format="NCX")
    g = add("MaxPoolBackward")
    g.op("MaxPoolBackward", [g.f32(*nchw), g.f32(*pooled)], ("f32", nchw), data_format="NCX", **POOL)
    g.op("MaxPoolBackward", [g.bf16(*nhwc), g.bf16(*nhwc_pooled)], ("bf16", nhwc), data_format="NXC", **POOL)


def convolutions(add):
    src, dst = (2, 4, 7, 8), (2, 6, 7, 4)  # kernel 3x3, strides 1 and 2
    oix, xio = (6, 4, 3, 3), (3, 3, 4, 6)
    ncx = dict(data_format="NCX", weights_format="OIX", **CONV)
    nxc = dict(data_format="NXC", weights_format="XIO", **CONV)
    g = add("Convolution")
    g.op("Convolution", [g.f32(*src), g.f32(*oix), g.f32(6)], ("f32", dst), **ncx)
    g.op("Convolution", [g.f32(2, 7, 8, 4), g.f32(*xio)], ("f32", (2, 7, 4, 6)), **nxc)
    g.op("Convolution", [g.f32(*src), g.f32(6, 2, 3, 3)], ("f32", dst), groups=2, **ncx)
    g = add("ConvolutionBackwardData")
    g.op("ConvolutionBackwardData", [g.f32(*dst), g.f32(*oix)], ("f32", src), dst_shape=src, **ncx)
    g.op("ConvolutionBackwardData", [g.f32(*dst), g.f32(*oix), g.tensor("s32", (4,), prop="constant")], ("f32", src),
         **ncx)
    g = add("ConvolutionBackwardWeights")
    g.op("ConvolutionBackwardWeights", [g.f32(*src), g.f32(*dst)], ("f32", oix), weights_shape=oix, **ncx)
    ncx = dict(data_format="NCX", weights_format="IOX", **CONV)
    iox = (6, 4, 3, 3)  # from the 6 channels of `dst` to the 4 of `src`
    g = add("ConvTranspose")
    g.op("ConvTranspose", [g.f32(*dst), g.f32(*iox), g.f32(4)], ("f32", src), output_padding=[0, 0], **ncx)
    g = add("ConvTransposeBackwardData")
    g.op("ConvTransposeBackwardData", [g.f32(*src), g.f32(*iox)], ("f32", dst), **ncx)
    g = add("ConvTransposeBackwardWeights")
    g.op("ConvTransposeBackwardWeights", [g.f32(*dst), g.f32(*src)], ("f32", iox), weights_shape=iox, **ncx)
    g = add("MatMul")
    g.op("MatMul", [g.f32(2, 3, 4, 5), g.f32(1, 3, 5, 6), g.f32(6)], ("f32", (2, 3, 4, 6)))
    g.op("MatMul", [g.f32(5, 4), g.f32(6, 5)], ("f32", (4, 6)), transpose_a=True, transpose_b=True)
    g.op("MatMul", [g.f32(5), g.f32(5, 6)], ("f32", (6,)))
    g = add("Interpolate")
    for mode, coordinates in (("nearest", "half_pixel"), ("bilinear", "half_pixel"), ("linear", "align_corners")):
        g.op("Interpolate", [g.f32(2, 3, 4, 5)], ("f32", (2, 3, 7, 3)), mode=mode, sizes=[7, 3], data_format="NCX",
             coordinate_transformation_mode=coordinates)
    g.op("Interpolate", [g.f32(2, 4, 5, 3)], ("f32", (2, 8, 10, 3)), mode="nearest", scales=[2.0, 2.0],
         data_format="NXC")
    g = add("InterpolateBackward")
    for mode in ("nearest", "linear"):
        g.op("InterpolateBackward", [g.f32(2, 3, 4, 5), g.f32(2, 3, 7, 3)], mode=mode, sizes=[7, 3], data_format="NCX")
    g.op("InterpolateBackward", [g.f32(2, 5, 4, 16), g.f32(2, 7, 6, 16), g.tensor("s32", (2,))],
         ("f32", (2, 5, 4, 16)), mode="bilinear", data_format="NXC")


def normalisation(add):
    c = lambda g, n=3: g.f32(n)
    eps = dict(epsilon=0.001, data_format="NCX")
    stats = [("f32", (3,))] * 4
    g = add("BatchNormInference")
    g.op("BatchNormInference", [g.f32(*SHAPE), c(g), c(g), c(g), c(g)], **eps)
    g = add("BatchNormForwardTraining")
    g.many("BatchNormForwardTraining", [g.f32(*SHAPE), c(g), c(g), c(g), c(g)], [("f32", SHAPE)] + stats,
           momentum=0.75, **eps)
    g.many("BatchNormForwardTraining", [g.f32(*SHAPE), c(g), c(g)], [("f32", SHAPE)] + stats, momentum=0.5, **eps)
    g = add("BatchNormTrainingBackward")
    g.many("BatchNormTrainingBackward", [g.f32(*SHAPE), g.f32(*SHAPE), c(g), c(g), c(g)],
           [("f32", SHAPE), ("f32", (3,)), ("f32", (3,))], **eps)
    g = add("LayerNorm")
    g.many("LayerNorm", [g.f32(2, 3, 8), c(g, 8), c(g, 8)], [("f32", (2, 3, 8)), ("f32", (2, 3)), ("f32", (2, 3))])
    g.op("LayerNorm", [g.f32(2, 3, 8)], use_affine=False, keep_stats=False, begin_norm_axis=1)
    g = add("LayerNormBackward")
    g.many("LayerNormBackward", [g.f32(2, 3, 8), g.f32(2, 3, 8), g.f32(2, 3), g.f32(2, 3), c(g, 8), c(g, 8)],
           [("f32", (2, 3, 8)), ("f32", (8,)), ("f32", (8,))])
    g = add("GroupNorm")
    g.many("GroupNorm", [g.f32(2, 6, 4, 5), c(g, 6), c(g, 6)],
           [("f32", (2, 6, 4, 5)), ("f32", (2, 3)), ("f32", (2, 3))], groups=3, data_format="NCX")
    g.op("GroupNorm", [g.f32(2, 4, 5, 6)], groups=2, data_format="NXC", keep_stats=False, use_affine=False)
    g = add("RMSNorm")
    g.op("RMSNorm", [g.f32(2, 3, 8), c(g, 8)])


def quantization(add):
    per_channel = dict(qtype="per_channel", axis=1, scales=[0.05, 0.1, 0.2], zps=[1, 2, 3])
    g = add("Quantize")
    g.op("Quantize", [g.f32(*SHAPE)], ("u8", SHAPE), qtype="per_tensor", scales=[0.1], zps=[5])
    g.op("Quantize", [g.f32(*SHAPE)], ("s8", SHAPE), **per_channel)
    g = add("Dequantize")
    g.op("Dequantize", [g.tensor("u8", SHAPE)], ("f32", SHAPE), qtype="per_tensor", scales=[0.1], zps=[5])
    g.op("Dequantize", [g.tensor("s8", SHAPE)], ("f32", SHAPE), **per_channel)
    g = add("DynamicQuantize")
    g.op("DynamicQuantize", [g.f32(*SHAPE), g.f32(3), g.tensor("s32", (3,))], ("u8", SHAPE), qtype="per_channel",
         axis=1)
    g = add("DynamicDequantize")
    g.op("DynamicDequantize", [g.tensor("s8", SHAPE), g.f32(1)], ("f32", SHAPE), qtype="per_tensor")
    g.op("DynamicDequantize", [g.tensor("u8", (4, 8)), g.f32(2, 8), g.tensor("u8", (2, 8))], ("f32", (4, 8)),
         qtype="per_group", group_shape=[2, 1])


def operator_graphs():
    """Kind -> graph."""
    graphs = {}

    def add(kind):
        assert kind not in graphs, kind
        graphs[kind] = Graph()
        return graphs[kind]

    for family in (elementwise, movement, reductions, pooling, convolutions, normalisation, quantization):
        family(add)
    return graphs
