#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Random graphs with shapes of real networks: chains of operators, forward and backward.
#   python3 tests/data/random_graphs.py FOLDER --kind chains --seed 1 --count 100
#   ./dev bench graphs FOLDER            what is slower than oneDNN's primitives one by one?
#   ./dev run --verify FOLDER            what is wrong?
import argparse
import math
import os
import random
import sys

sys.dont_write_bytecode = True  # the sources stay as they are

from graph_builder import Graph

UNARY = [("Abs", {}), ("Clamp", dict(min=-1.0, max=2.0)), ("Elu", dict(alpha=0.5)), ("Exp", {}), ("GELU", {}),
         ("HardSigmoid", dict(alpha=0.2, beta=0.5)), ("HardSwish", {}), ("LeakyReLU", dict(alpha=0.1)), ("Mish", {}),
         ("ReLU", {}), ("Round", {}), ("Sigmoid", {}), ("SoftPlus", {}), ("Square", {}), ("Tanh", {})]
UNARY_BACKWARD = [("AbsBackward", {}), ("ClampBackward", dict(min=-1.0, max=2.0)), ("EluBackward", dict(alpha=0.5)),
                  ("GELUBackward", {}), ("HardSwishBackward", {}), ("MishBackward", {}), ("ReLUBackward", {}),
                  ("SigmoidBackward", {}), ("SoftPlusBackward", {}), ("TanhBackward", {})]
BINARY = ["Add", "Maximum", "Minimum", "Multiply", "SquaredDifference", "Subtract"]
CHANNELS = [1, 3, 8, 16, 24, 32, 40, 64, 80, 96, 128, 192, 256, 384, 512]
EXTENTS = [5, 7, 8, 9, 12, 13, 14, 16, 17, 20, 27, 28, 32, 35, 49, 55, 56, 64, 80, 112, 128, 224]
WIDTHS = [10, 64, 80, 100, 128, 197, 256, 300, 384, 512, 577, 768, 1000, 1024, 1536, 2048, 3072, 4096]


class Walk:
    """A graph that grows behind one tensor. An operator that does not suit the tensor leaves the graph as it is."""

    def __init__(self, rng, elements):
        self.rng, self.elements, self.g = rng, elements, Graph()
        self.dtype = rng.choice(["f32", "f32", "bf16"])
        self.format = rng.choice(["NCX", "NXC"])
        self.used = []

    # Tensors

    def tensor(self, shape, dtype=None):
        return self.g.tensor(dtype or self.dtype, shape)

    def image_shape(self, channels, extents):
        if self.format == "NCX":
            return (self.batch, channels, *extents)
        return (self.batch, *extents, channels)

    def start_image(self):
        rng = self.rng
        axes = rng.choice([1, 2, 2, 2, 2, 3])
        while True:
            self.batch = rng.choice([1, 2, 4, 8, 16, 32])
            channels = rng.choice(CHANNELS)
            side = rng.choice(EXTENTS)
            extents = [side if rng.random() < 0.8 else rng.choice(EXTENTS) for _ in range(axes)]
            size = self.batch * channels * math.prod(extents)
            if self.elements / 16 <= size <= self.elements:
                return self.tensor(self.image_shape(channels, extents))

    def start_rows(self):
        rng = self.rng
        self.format = None
        while True:
            outer = [[rng.choice([1, 2, 8, 32, 64, 128, 256, 512, 1024])],
                     [rng.choice([1, 2, 4, 8, 16]), rng.choice([16, 49, 77, 128, 197, 384, 512])],
                     [rng.choice([1, 2, 4]), rng.choice([8, 12, 16]), rng.choice([32, 77, 128, 256])]]
            shape = (*rng.choice(outer), rng.choice(WIDTHS))
            if self.elements / 16 <= math.prod(shape) <= self.elements:
                return self.tensor(shape)

    def is_image(self, x):
        return self.format is not None and len(x.shape) >= 3 and x.shape[0] == self.batch

    def channel_axis(self, x):
        return 1 if self.format == "NCX" else len(x.shape) - 1

    def channels(self, x):
        return x.shape[self.channel_axis(x)]

    def extents(self, x):
        return x.shape[2:] if self.format == "NCX" else x.shape[1:-1]

    def op(self, kind, inputs, result=None, **attrs):
        self.used.append(kind)
        return self.g.op(kind, inputs, result, **attrs)

    def has_product(self):
        return any("Conv" in kind or kind == "MatMul" for kind in self.used)

    # Operators that may follow any tensor

    def unary(self, x):
        kind, attrs = self.rng.choice(UNARY)
        return self.op(kind, [x], **attrs)

    def unary_backward(self, x):
        kind, attrs = self.rng.choice(UNARY_BACKWARD)
        return self.op(kind, [self.tensor(x.shape, x.dtype), x], **attrs)

    def binary(self, x):
        kept = self.rng.choice(["all", "all", "one axis", "all but one", "none"])
        shape = list(x.shape)
        if kept == "one axis":
            axis = self.rng.randrange(len(shape))
            shape = [d if i == axis else 1 for i, d in enumerate(shape)]
        elif kept == "all but one":
            shape[self.rng.randrange(len(shape))] = 1
        elif kept == "none":
            shape = [1] * len(shape)
        operands = [x, self.tensor(shape, x.dtype)]
        if self.rng.random() < 0.3:
            operands.reverse()
        return self.op(self.rng.choice(BINARY), operands, (x.dtype, x.shape))

    def type_cast(self, x):
        other = "bf16" if x.dtype == "f32" else "f32"
        return self.op("TypeCast", [x], (other, x.shape))

    def bias_add(self, x):
        order = self.format if self.is_image(x) else "NXC"
        channels = x.shape[1 if order == "NCX" else -1]
        return self.op("BiasAdd", [x, self.tensor((channels,), x.dtype)], data_format=order)

    def soft_max(self, x):
        axis = self.rng.randrange(len(x.shape)) if self.rng.random() < 0.4 else len(x.shape) - 1
        kind = self.rng.choice(["SoftMax", "LogSoftmax", "SoftMaxBackward", "LogSoftmaxBackward"])
        inputs = [x, self.tensor(x.shape, x.dtype)] if kind.endswith("Backward") else [x]
        return self.op(kind, inputs, axis=axis)

    def layer_norm(self, x):
        kept, last = x.shape[:-1], x.shape[-1:]
        if self.rng.random() < 0.5:
            return self.op("LayerNorm", [x, self.g.f32(*last), self.g.f32(*last)], keep_stats=False)
        if self.rng.random() < 0.3:
            return self.op("RMSNorm", [x, self.g.f32(*last)])
        self.used.append("LayerNormBackward")
        results = [(x.dtype, x.shape), ("f32", last), ("f32", last)]
        inputs = [self.tensor(x.shape, x.dtype), x, self.g.f32(*kept), self.g.f32(*kept), self.g.f32(*last),
                  self.g.f32(*last)]
        return self.g.many("LayerNormBackward", inputs, results)[0]

    def reduce(self, x):
        axes = sorted(self.rng.sample(range(len(x.shape)), self.rng.randint(1, max(1, len(x.shape) - 1))))
        kind = self.rng.choice(["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2"])
        keep = self.rng.random() < 0.7
        shape = [1 if i in axes else d for i, d in enumerate(x.shape) if keep or i not in axes]
        return self.op(kind, [x], (x.dtype, shape), axes=axes, keep_dims=keep)

    def transpose(self, x):
        order = list(range(len(x.shape)))
        self.rng.shuffle(order)
        self.format = None
        return self.op("StaticTranspose", [x], (x.dtype, [x.shape[i] for i in order]), order=order)

    def reshape(self, x):
        axis = self.rng.randrange(len(x.shape))
        divisors = [d for d in (2, 3, 4, 7, 8) if x.shape[axis] % d == 0 and x.shape[axis] > d]
        if divisors and len(x.shape) < 5:
            d = self.rng.choice(divisors)
            shape = [*x.shape[:axis], d, x.shape[axis] // d, *x.shape[axis + 1:]]
        elif axis + 1 < len(x.shape):
            shape = [*x.shape[:axis], x.shape[axis] * x.shape[axis + 1], *x.shape[axis + 2:]]
        else:
            return None
        self.format = None
        return self.op("StaticReshape", [x], (x.dtype, shape), shape=shape, special_zero=False)

    def concat(self, x):
        axis = self.channel_axis(x) if self.is_image(x) and self.rng.random() < 0.7 else len(x.shape) - 1
        other = list(x.shape)
        other[axis] = self.rng.choice([other[axis], max(1, other[axis] // 2), 2 * other[axis]])
        parts = [x, self.tensor(other, x.dtype)]
        self.rng.shuffle(parts)
        shape = list(x.shape)
        shape[axis] += other[axis]
        return self.op("Concat", parts, (x.dtype, shape), axis=axis)

    # Operators of images

    def window(self, x):
        extents = self.extents(x)
        size = self.rng.choice([1, 2, 2, 3, 3, 3, 5, 7])
        if self.rng.random() < 0.1:
            kernel, strides = list(extents), [1] * len(extents)  # a global pooling
        else:
            kernel = [min(size, e) for e in extents]
            strides = [self.rng.choice([1, 2, 2, size])] * len(extents)
        pads = [self.rng.choice([0, k // 2]) if max(kernel) == size else 0 for k in kernel]
        pooled = [(e + 2 * p - k) // s + 1 for e, p, k, s in zip(extents, pads, kernel, strides)]
        if math.prod(kernel) == 1 or math.prod(pooled) * math.prod(kernel) * self.channels(x) > 1 << 26:
            return None, None
        return dict(kernel=kernel, strides=strides, pads_begin=pads, pads_end=pads, data_format=self.format), pooled

    def pool(self, x):
        attrs, pooled = self.window(x)
        if attrs is None:
            return None
        kind = self.rng.choice(["AvgPool", "MaxPool"])
        if kind == "AvgPool":
            attrs["exclude_pad"] = self.rng.random() < 0.5
        return self.op(kind, [x], (x.dtype, self.image_shape(self.channels(x), pooled)), **attrs)

    def pool_backward(self, x):
        """The current tensor is the pooled one; its source has an extent that the window reduces to it."""
        size = self.rng.choice([2, 2, 3, 3, 5])
        stride = self.rng.choice([1, 2, 2, size])
        pad = self.rng.choice([0, size // 2])
        extents = [(e - 1) * stride + size - 2 * pad for e in self.extents(x)]
        shape = self.image_shape(self.channels(x), extents)
        if min(extents) < 1 or math.prod(shape) > 2 * self.elements:
            return None
        axes = len(extents)
        attrs = dict(kernel=[size] * axes, strides=[stride] * axes, pads_begin=[pad] * axes, pads_end=[pad] * axes,
                     data_format=self.format)
        if self.rng.random() < 0.5:
            return self.op("MaxPoolBackward", [self.tensor(shape, x.dtype), x], (x.dtype, shape), **attrs)
        exclude = self.rng.random() < 0.5
        return self.op("AvgPoolBackward", [x], (x.dtype, shape), src_shape=shape, exclude_pad=exclude, **attrs)

    def batch_norm(self, x):
        c = (self.channels(x),)
        statistics = [self.g.f32(*c) for _ in range(4)]
        if self.rng.random() < 0.4:
            return self.op("BatchNormInference", [x, *statistics], data_format=self.format, epsilon=0.001)
        self.used.append("BatchNormTraining")
        if self.rng.random() < 0.5:
            return self.g.many("BatchNormForwardTraining", [x, *statistics], [(x.dtype, x.shape)] + [("f32", c)] * 4,
                               data_format=self.format, epsilon=0.001, momentum=0.1)[0]
        return self.g.many("BatchNormTrainingBackward", [self.tensor(x.shape, x.dtype), x, *statistics[:3]],
                           [(x.dtype, x.shape)] + [("f32", c)] * 2, data_format=self.format, epsilon=0.001)[0]

    def group_norm(self, x):
        groups = [d for d in (2, 4, 8, 16, 32) if self.channels(x) % d == 0]
        if not groups:
            return None
        c = (self.channels(x),)
        return self.op("GroupNorm", [x, self.g.f32(*c), self.g.f32(*c)], data_format=self.format,
                       groups=self.rng.choice(groups), keep_stats=False)

    def interpolate(self, x):
        extents = [self.rng.choice([e, 2 * e, max(1, e // 2), self.rng.choice(EXTENTS)]) for e in self.extents(x)]
        shape = self.image_shape(self.channels(x), extents)
        if math.prod(shape) > 2 * self.elements:
            return None
        mode = self.rng.choice(["nearest", ["linear", "bilinear", "trilinear"][len(extents) - 1]])
        rule = self.rng.choice(["half_pixel", "align_corners"]) if mode != "nearest" else "half_pixel"
        return self.op("Interpolate", [x], (x.dtype, shape), sizes=extents, mode=mode,
                       coordinate_transformation_mode=rule, data_format=self.format)

    # Products

    def convolution(self, x):
        extents, channels = self.extents(x), self.channels(x)
        size, axes = self.rng.choice([1, 1, 3, 3, 5]), len(extents)
        if channels % 8 or min(extents) < size or math.prod(x.shape) > self.elements:
            return None
        made = self.rng.choice([16, 32, 64, 128])
        if math.prod(x.shape) * made * size ** axes > 1 << 30:
            return None
        stride = self.rng.choice([1, 1, 2])
        pads = [size // 2] * axes
        attrs = dict(strides=[stride] * axes, dilations=[1] * axes, pads_begin=pads, pads_end=pads,
                     data_format=self.format, weights_format="OIX" if self.format == "NCX" else "XIO")
        kernel = [size] * axes
        out = [(e + 2 * p - size) // stride + 1 for e, p in zip(extents, pads)]

        def weights(i, o):
            return self.tensor((o, i, *kernel) if self.format == "NCX" else (*kernel, i, o), x.dtype)

        if stride == 1 and self.rng.random() < 0.4:
            shape = self.image_shape(made, extents)
            return self.op("ConvolutionBackwardData", [x, weights(made, channels)], (x.dtype, shape), dst_shape=shape,
                           **attrs)
        return self.op("Convolution", [x, weights(channels, made)], (x.dtype, self.image_shape(made, out)), **attrs)

    def matmul(self, x):
        made = self.rng.choice([32, 64, 128, 256, 768, 1024])
        if math.prod(x.shape) * made > 1 << 30 or len(x.shape) < 2:
            return None
        turned = self.rng.random() < 0.3
        w = self.tensor((made, x.shape[-1]) if turned else (x.shape[-1], made), x.dtype)
        w.prop = self.rng.choice(["constant", "undef"])
        return self.op("MatMul", [x, w], (x.dtype, [*x.shape[:-1], made]), transpose_a=False, transpose_b=turned)

    ANY = [unary, unary, unary_backward, binary, binary, type_cast, bias_add, soft_max, layer_norm, reduce, transpose,
           reshape, concat]
    IMAGE = [pool, pool, pool_backward, pool_backward, batch_norm, batch_norm, group_norm, interpolate]

    def follow(self, kind, x):
        image = self.is_image(x)
        steps = self.ANY + (self.IMAGE if image else [])
        if kind == "products" and not self.has_product():
            steps = steps + [Walk.convolution if image else Walk.matmul] * len(steps)
        return self.rng.choice(steps)(self, x)


def random_graph(kind, rng, elements):
    """A graph of `kind` and the names of its operators."""
    while True:
        walk = Walk(rng, elements)
        x = walk.start_image() if rng.random() < 0.65 else walk.start_rows()
        length = 1 if kind == "operators" else rng.randint(2, 5)
        for _ in range(4 * length):
            if len(walk.used) < length and math.prod(x.shape) >= 64 and len(x.shape) > 1:
                x = walk.follow(kind, x) or x
        if len(walk.used) == length and (kind != "products" or walk.has_product()):
            return walk.g, walk.used


def main():
    parser = argparse.ArgumentParser(description="Writes random graphs.")
    parser.add_argument("folder")
    parser.add_argument("--kind", choices=["operators", "chains", "products"], default="chains")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--elements", type=int, default=1 << 19, help="of the first tensor, at most")
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    for i in range(options.count):
        # One generator a graph: the same graph whatever the count.
        graph, used = random_graph(options.kind, random.Random(f"{options.kind} {options.seed} {i}"), options.elements)
        name = f"{options.kind}_{options.seed}_{i:04}_{'_'.join(used)}.json"
        with open(os.path.join(options.folder, name), "w") as file:
            file.write(graph.text())


if __name__ == "__main__":
    main()
