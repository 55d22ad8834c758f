#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Networks as graphs, for inference and as one training step (forward and backward, without the optimizer):
#   tests/data/make_models.py FOLDER [--batch 2] [--image 32] [--width 0.125] [--depth 1] [--tokens 16] [--hidden 32]
# `--image 224 --width 1 --depth 0` are the networks as published; the defaults are small, for tests (tests/data/models).
import argparse
import os
import sys

sys.dont_write_bytecode = True

from graph_builder import Graph, dense


class Net:
    """A network under construction. In training every layer leaves on a tape how its gradient is made."""

    def __init__(self, training):
        self.g, self.training, self.tape, self.diffs = Graph(), training, [], {}
        self.four_bits = False  # the weights of layers of tokens

    def parameter(self, *shape):
        """Weights and their like: the same in every execution of a network that is not trained."""
        return self.g.tensor("f32", shape, prop="undef" if self.training else "constant")

    # Gradients

    def give(self, tensor, diff):
        """`diff` is (a part of) the gradient of `tensor`."""
        if tensor.id in self.diffs:
            diff = self.g.op("Add", [self.diffs[tensor.id], diff])
        self.diffs[tensor.id] = diff

    def layer(self, result, backward):
        if self.training:
            self.tape.append((result, backward))
        return result

    def finish(self, result):
        """The gradient of the result comes from outside; whatever nothing reads has none."""
        if self.training:
            self.diffs[result.id] = self.g.tensor(result.dtype, result.shape)
            for tensor, backward in reversed(self.tape):
                if tensor.id in self.diffs:
                    backward(self.diffs.pop(tensor.id))
        return self.g

    # Layers of pictures, channels first

    def conv(self, x, channels, kernel, stride=1, groups=1, bias=False):
        kernel = (kernel, kernel) if isinstance(kernel, int) else kernel
        pads = [k // 2 for k in kernel]
        attrs = dict(strides=[stride] * 2, dilations=[1, 1], pads_begin=pads, pads_end=pads, groups=groups,
                     data_format="NCX", weights_format="OIX")
        weights = self.parameter(channels, x.shape[1] // groups, *kernel)
        size = [(n + 2 * p - k) // stride + 1 for n, p, k in zip(x.shape[2:], pads, kernel)]
        y = self.g.op("Convolution", [x, weights], ("f32", (x.shape[0], channels, *size)), **attrs)

        def backward(diff):
            self.g.op("ConvolutionBackwardWeights", [x, diff], ("f32", weights.shape), weights_shape=weights.shape,
                      **attrs)
            if self.tape[0][0] is not y:  # nobody asks for the gradient of the picture
                self.give(x, self.g.op("ConvolutionBackwardData", [diff, weights], ("f32", x.shape),
                                       dst_shape=x.shape, **attrs))
        self.layer(y, backward)
        return self.bias(y) if bias else y

    def bias(self, x):
        y = self.g.op("BiasAdd", [x, self.parameter(x.shape[1])], data_format="NCX")

        def backward(diff):
            self.g.op("BiasAddBackward", [diff], ("f32", (x.shape[1],)), data_format="NCX")
            self.give(x, diff)
        return self.layer(y, backward)

    def norm(self, x, scaled=True):
        """Without `scaled`, scale and offset are not trained."""
        c, attrs = x.shape[1], dict(epsilon=0.001, data_format="NCX")
        gamma = self.parameter(c)
        if not self.training:
            return self.g.op("BatchNormInference", [x, gamma] + [self.parameter(c) for _ in range(3)], **attrs)
        statistics = [("f32", (c,))] * 4
        y, _, _, mean, variance = self.g.many(
            "BatchNormForwardTraining", [x, self.g.f32(c), self.g.f32(c), gamma, self.g.f32(c)],
            [("f32", x.shape)] + statistics, momentum=0.9, **attrs)

        def backward(diff):
            diffs = self.g.many("BatchNormTrainingBackward", [x, diff, mean, variance, gamma],
                                [("f32", x.shape)] + statistics[:2 if scaled else 0], **attrs)
            self.give(x, diffs[0])
        return self.layer(y, backward)

    def pool(self, kind, x, kernel, stride, pad=0):
        attrs = dict(kernel=[kernel] * 2, strides=[stride] * 2, pads_begin=[pad] * 2, pads_end=[pad] * 2,
                     data_format="NCX")
        if kind == "AvgPool":
            attrs["exclude_pad"] = False
        size = [(n + 2 * pad - kernel) // stride + 1 for n in x.shape[2:]]
        y = self.g.op(kind, [x], ("f32", (*x.shape[:2], *size)), **attrs)

        def backward(diff):
            if kind == "AvgPool":
                self.give(x, self.g.op("AvgPoolBackward", [diff], ("f32", x.shape), src_shape=x.shape, **attrs))
            else:
                self.give(x, self.g.op("MaxPoolBackward", [x, diff], ("f32", x.shape), **attrs))
        return self.layer(y, backward)

    def global_average(self, x):
        return self.pool("AvgPool", x, x.shape[2], 1)

    def upsample(self, x):
        shape = (*x.shape[:2], 2 * x.shape[2], 2 * x.shape[3])
        attrs = dict(mode="nearest", scales=[2.0, 2.0], data_format="NCX")
        y = self.g.op("Interpolate", [x], ("f32", shape), **attrs)
        return self.layer(y, lambda diff: self.give(x, self.g.op("InterpolateBackward", [x, diff], ("f32", x.shape),
                                                                 **attrs)))

    def concat(self, parts):
        """No operator takes tensors apart: the gradients of the parts are slices, views that come from outside."""
        shape = list(parts[0].shape)
        shape[1] = sum(p.shape[1] for p in parts)
        y = self.g.op("Concat", parts, ("f32", shape), axis=1)

        def backward(_):
            for p in parts:
                self.give(p, self.g.tensor("f32", p.shape, dense(shape)))
        return self.layer(y, backward)

    # Element by element

    def activation(self, kind, x, **attrs):
        y = self.g.op(kind, [x], **attrs)
        known = y if kind in ("ReLU", "Sigmoid", "Tanh") else x  # the others need the source
        return self.layer(y, lambda diff: self.give(x, self.g.op(kind + "Backward", [known, diff], **attrs)))

    def relu(self, x):
        return self.activation("ReLU", x)

    def add(self, a, b):
        def backward(diff):
            self.give(a, diff)
            self.give(b, diff)
        return self.layer(self.g.op("Add", [a, b]), backward)

    def multiply(self, a, b):
        """`b` may be a factor for each channel of each picture."""
        def backward(diff):
            self.give(a, self.g.op("Multiply", [diff, b]))
            back = self.g.op("Multiply", [diff, a])
            if b.shape != a.shape:
                axes = [i for i, (m, n) in enumerate(zip(a.shape, b.shape)) if m != n]
                back = self.g.op("ReduceSum", [back], ("f32", b.shape), axes=axes, keep_dims=True)
            self.give(b, back)
        return self.layer(self.g.op("Multiply", [a, b]), backward)

    def reshape(self, x, shape):
        def moved(tensor, to):
            return self.g.op("StaticReshape", [tensor], ("f32", to), shape=list(to), special_zero=False)
        return self.layer(moved(x, shape), lambda diff: self.give(x, moved(diff, x.shape)))

    def transpose(self, x, order):
        def moved(tensor, by):
            return self.g.op("StaticTranspose", [tensor], ("f32", [tensor.shape[a] for a in by]), order=list(by))
        return self.layer(moved(x, order), lambda diff: self.give(x, moved(diff, [order.index(a) for a in
                                                                                  range(len(order))])))

    # Layers of tokens: one row each

    def quantized(self, inner, features):
        """Weights of four bits, whose scales and zero points are for some rows each; no constants: they are not kept."""
        rows = min(64, inner // 4)
        weights, groups = self.g.tensor("u4", (inner, features)), (inner // rows, features)
        return self.g.op("DynamicDequantize", [weights, self.g.f32(*groups), self.g.tensor("u8", groups)],
                         ("f32", weights.shape), qtype="per_group", group_shape=[rows, 1])

    def linear(self, x, features, bias=True):
        rows, inner = x.shape
        weights = self.quantized(inner, features) if self.four_bits else self.parameter(inner, features)
        y = self.g.op("MatMul", [x, weights], ("f32", (rows, features)))

        def backward(diff):
            self.g.op("MatMul", [x, diff], ("f32", (inner, features)), transpose_a=True)
            self.give(x, self.g.op("MatMul", [diff, weights], ("f32", x.shape), transpose_b=True))
        y = self.layer(y, backward)
        if not bias:
            return y

        def bias_backward(diff, src=y):
            self.g.op("ReduceSum", [diff], ("f32", (features,)), axes=[0])
            self.give(src, diff)
        return self.layer(self.g.op("Add", [y, self.parameter(features)]), bias_backward)

    def layer_norm(self, x):
        rows, n = x.shape
        gamma, beta = self.parameter(n), self.parameter(n)
        if not self.training:
            return self.g.op("LayerNorm", [x, gamma, beta], keep_stats=False)
        statistics = [("f32", (rows,))] * 2
        y, mean, variance = self.g.many("LayerNorm", [x, gamma, beta], [("f32", x.shape)] + statistics, keep_stats=True)

        def backward(diff):
            diff, _, _ = self.g.many("LayerNormBackward", [x, diff, mean, variance, gamma, beta],
                                     [("f32", x.shape)] + [("f32", (n,))] * 2)
            self.give(x, diff)
        return self.layer(y, backward)

    def rms_norm(self, x):
        """There is no gradient of RMSNorm: training spells both ways in small operators."""
        rows, n = x.shape
        gamma, column = self.parameter(n), ("f32", (rows, 1))
        if not self.training:
            return self.g.op("RMSNorm", [x, gamma])
        mean = self.g.op("ReduceMean", [self.g.op("Square", [x])], column, axes=[1], keep_dims=True)
        root = self.g.op("Pow", [self.g.op("Add", [mean, self.g.op("Exp", [self.g.f32(1)])], column)], beta=-0.5)
        normal = self.g.op("Multiply", [x, root])
        y = self.g.op("Multiply", [normal, gamma])

        def backward(diff):
            self.g.op("ReduceSum", [self.g.op("Multiply", [diff, normal])], ("f32", (n,)), axes=[0])
            diff = self.g.op("Multiply", [diff, gamma])
            share = self.g.op("ReduceMean", [self.g.op("Multiply", [diff, normal])], column, axes=[1], keep_dims=True)
            diff = self.g.op("Subtract", [diff, self.g.op("Multiply", [normal, share])])
            self.give(x, self.g.op("Multiply", [diff, root]))
        return self.layer(y, backward)

    def attention(self, x, batch, heads, key_heads, causal):
        """Projections, scaled products, softmax; fewer heads of keys and values serve several of queries."""
        rows, n = x.shape
        tokens, size = rows // batch, n // heads
        group = heads // key_heads

        def split(y, count, groups):
            y = self.transpose(self.reshape(y, (batch, tokens, count, size)), (0, 2, 1, 3))
            return self.reshape(y, (batch, count // groups, groups, tokens, size)) if group > 1 else y

        q = split(self.linear(x, n, bias=not causal), heads, group)
        # A bias of the keys changes nothing, and its gradient would be a sum of zero.
        k, v = (split(self.linear(x, key_heads * size, bias=b), key_heads, 1) for b in (False, not causal))
        out = self.products(q, k, v, causal)
        if group > 1:
            out = self.reshape(out, (batch, heads, tokens, size))
        out = self.reshape(self.transpose(out, (0, 2, 1, 3)), (rows, n))
        return self.linear(out, n, bias=not causal)

    def attention_of_token(self, x, heads, cached):
        """One query a sequence and head, on the keys and values of `cached` tokens; those of the new one are results."""
        batch, n = x.shape
        size = n // heads
        cache = (batch, heads, cached, size)
        q = self.reshape(self.linear(x, n, bias=False), (batch, heads, 1, size))
        for _ in range(2):
            self.linear(x, n, bias=False)
        y = self.g.op("MatMul", [q, self.g.f32(*cache)], ("f32", (batch, heads, 1, cached)), transpose_b=True)
        p = self.g.op("SoftMax", [self.g.op("Multiply", [y, self.g.f32(1)])], axis=-1)
        out = self.g.op("MatMul", [p, self.g.f32(*cache)], ("f32", q.shape))
        return self.linear(self.reshape(out, (batch, n)), n, bias=False)

    def products(self, q, k, v, causal):
        g, scores = self.g, ("f32", (*q.shape[:-1], k.shape[-2]))
        scale = g.f32(1)
        y = g.op("Multiply", [g.op("MatMul", [q, k], scores, transpose_b=True), scale])
        mask = None
        if causal:
            row, column = (g.op("GenIndex", [y], ("s32", scores[1]), axis=a) for a in (-2, -1))
            mask = g.op("GreaterEqual", [row, column], ("boolean", scores[1]))
            y = g.op("Select", [mask, y, g.f32(1)], scores)
        else:
            y = g.op("Add", [y, g.f32(q.shape[0], 1, 1, k.shape[-2])])
        p = g.op("SoftMax", [y], axis=-1)
        out = g.op("MatMul", [p, v], ("f32", q.shape))

        def summed(diff, like):
            """Heads of queries that share keys add their gradients."""
            if diff.shape == like.shape:
                return diff
            axes = [i for i, (m, n) in enumerate(zip(diff.shape, like.shape)) if m != n]
            return g.op("ReduceSum", [diff], ("f32", like.shape), axes=axes, keep_dims=True)

        def backward(diff):
            wide = (*q.shape[:-2], *k.shape[-2:])
            self.give(v, summed(g.op("MatMul", [p, diff], ("f32", wide), transpose_a=True), v))
            ds = g.op("SoftMaxBackward", [g.op("MatMul", [diff, v], scores, transpose_b=True), p], axis=-1)
            if causal:
                ds = g.op("Select", [mask, ds, g.op("Multiply", [g.f32(1), g.f32(1)])], scores)
            ds = g.op("Multiply", [ds, scale])
            self.give(q, g.op("MatMul", [ds, k], ("f32", q.shape)))
            self.give(k, summed(g.op("MatMul", [ds, q], ("f32", wide), transpose_a=True), k))
        return self.layer(out, backward)


class Sizes:
    """Of the networks: depth 0 means as deep as published."""

    def __init__(self, batch, image, width, depth, tokens, hidden):
        self.batch, self.image, self.width, self.depth = batch, image, width, depth
        self.tokens, self.hidden = tokens, hidden

    def channels(self, n):
        return max(4, int(n * self.width) // 4 * 4)

    def blocks(self, n):
        return min(n, self.depth) if self.depth else n

    def picture(self, net):
        return net.g.f32(self.batch, 3, self.image, self.image)

    def rows(self, net):
        return net.g.f32(self.batch * self.tokens, self.hidden)


def resnet50(net, s):
    x = net.relu(net.norm(net.conv(s.picture(net), s.channels(64), 7, 2)))
    x = net.pool("MaxPool", x, 3, 2, 1)
    for stage, blocks in enumerate((3, 4, 6, 3)):
        inner = s.channels(64 << stage)
        for block in range(s.blocks(blocks)):
            stride = 2 if stage > 0 and block == 0 else 1
            y = net.relu(net.norm(net.conv(x, inner, 1)))
            y = net.relu(net.norm(net.conv(y, inner, 3, stride)))
            y = net.norm(net.conv(y, 4 * inner, 1))
            if block == 0:
                x = net.norm(net.conv(x, 4 * inner, 1, stride))
            x = net.relu(net.add(y, x))
    return net.global_average(x)


def vgg16(net, s):
    x = s.picture(net)
    for stage, blocks in enumerate((2, 2, 3, 3, 3)):
        for _ in range(s.blocks(blocks)):
            x = net.relu(net.conv(x, s.channels(min(64 << stage, 512)), 3, bias=True))
        x = net.pool("MaxPool", x, 2, 2)
    return x


def densenet121(net, s):
    growth = s.channels(32)
    x = net.relu(net.norm(net.conv(s.picture(net), 2 * growth, 7, 2)))
    x = net.pool("MaxPool", x, 3, 2, 1)
    for stage, layers in enumerate((6, 12, 24, 16)):
        for _ in range(s.blocks(layers)):
            y = net.conv(net.relu(net.norm(x)), 4 * growth, 1)
            x = net.concat([x, net.conv(net.relu(net.norm(y)), growth, 3)])
        x = net.relu(net.norm(x))
        if stage < 3:
            x = net.pool("AvgPool", net.conv(x, x.shape[1] // 2, 1), 2, 2)
    return net.global_average(x)


def inception(net, s):
    """The first blocks of Inception v3 behind its stem, and the one that halves the picture."""
    def unit(x, channels, kernel, stride=1):
        return net.relu(net.norm(net.conv(x, s.channels(channels), kernel, stride)))
    x = net.pool("MaxPool", unit(unit(s.picture(net), 32, 3, 2), 64, 3), 3, 2, 1)
    for pooled in (32, 64, 64)[:s.blocks(3)]:
        a = unit(x, 64, 1)
        b = unit(unit(x, 48, 1), 64, 5)
        c = unit(unit(unit(x, 64, 1), 96, 3), 96, 3)
        d = unit(net.pool("AvgPool", x, 3, 1, 1), pooled, 1)
        x = net.concat([a, b, c, d])
    a = unit(x, 384, 3, 2)
    b = unit(unit(unit(x, 64, 1), 96, 3), 96, 3, 2)
    return net.concat([a, b, net.pool("MaxPool", x, 3, 2, 1)])


def unet(net, s):
    def twice(x, channels):
        for _ in range(2):
            x = net.relu(net.norm(net.conv(x, s.channels(channels), 3)))
        return x
    x, skips = s.picture(net), []
    levels = s.blocks(4) if s.depth != 1 else 2
    for level in range(levels):
        x = twice(x, 64 << level)
        skips.append(x)
        x = net.pool("MaxPool", x, 2, 2)
    x = twice(x, 64 << levels)
    for level in reversed(range(levels)):
        x = net.conv(net.upsample(x), s.channels(64 << level), 3)
        x = twice(net.concat([skips[level], x]), 64 << level)
    return net.conv(x, 4, 1, bias=True)


def mobilenet_v3(net, s):
    """Blocks of MobileNetV3-large: kernel, expanded and result channels, gate, activation, stride."""
    rows = ((3, 16, 16, False, "ReLU", 1), (3, 64, 24, False, "ReLU", 2), (3, 72, 24, False, "ReLU", 1),
            (5, 72, 40, True, "ReLU", 2), (5, 120, 40, True, "ReLU", 1), (3, 240, 80, False, "HardSwish", 2),
            (3, 200, 80, False, "HardSwish", 1), (3, 480, 112, True, "HardSwish", 1),
            (3, 672, 112, True, "HardSwish", 1), (5, 672, 160, True, "HardSwish", 2),
            (5, 960, 160, True, "HardSwish", 1))
    x = net.activation("HardSwish", net.norm(net.conv(s.picture(net), s.channels(16), 3, 2)))
    for kernel, expanded, channels, gate, activation, stride in (rows[4:6] if s.depth == 1 else rows):
        expanded, channels = s.channels(expanded), s.channels(channels)
        y = net.activation(activation, net.norm(net.conv(x, expanded, 1)))
        y = net.activation(activation, net.norm(net.conv(y, expanded, kernel, stride, groups=expanded)))
        if gate:
            z = net.relu(net.conv(net.global_average(y), s.channels(expanded // 4), 1, bias=True))
            z = net.activation("HardSigmoid", net.conv(z, expanded, 1, bias=True), alpha=1 / 6, beta=0.5)
            y = net.multiply(y, z)
        # An offset here changes nothing behind the next convolution and norm: its gradient would be a sum of zero.
        y = net.norm(net.conv(y, channels, 1), scaled=False)
        x = net.add(y, x) if x.shape == y.shape else y
    return net.global_average(net.activation("HardSwish", net.norm(net.conv(x, s.channels(960), 1))))


def bert(net, s):
    x = s.rows(net)
    for _ in range(s.blocks(2)):
        x = net.layer_norm(net.add(x, net.attention(x, s.batch, 4, 4, causal=False)))
        y = net.linear(net.activation("GELU", net.linear(x, 4 * s.hidden)), s.hidden)
        x = net.layer_norm(net.add(x, y))
    return x


def llama(net, s):
    x = s.rows(net)
    for _ in range(s.blocks(2)):
        x = net.add(x, net.attention(net.rms_norm(x), s.batch, 4, 2, causal=True))
        x = net.add(x, gated_mlp(net, net.rms_norm(x), s))
    return x


def gated_mlp(net, x, s):
    gate, up = (net.linear(x, 3 * s.hidden, bias=False) for _ in range(2))
    gate = net.multiply(gate, net.activation("Sigmoid", gate))
    return net.linear(net.multiply(gate, up), s.hidden, bias=False)


def llama_token(net, s):
    """The next token of each sequence, behind many of which keys and values are known."""
    x = net.g.f32(s.batch, s.hidden)
    for _ in range(s.blocks(2)):
        x = net.add(x, net.attention_of_token(net.rms_norm(x), 4, 32 * s.tokens))
        x = net.add(x, gated_mlp(net, net.rms_norm(x), s))
    return x


def llama_four_bits(net, s):
    """The gated MLPs of a few tokens, with weights of four bits."""
    net.four_bits = True
    x = net.g.f32(4 * s.batch, s.hidden)
    for _ in range(s.blocks(2)):
        x = net.add(x, gated_mlp(net, net.rms_norm(x), s))
    return x


MODELS = (resnet50, vgg16, densenet121, inception, unet, mobilenet_v3, bert, llama)
INFERENCE_MODELS = (llama_token, llama_four_bits)


def model_graphs(batch=2, image=32, width=0.125, depth=1, tokens=16, hidden=32):
    """Name -> graph: each network for inference and, where there is one, for training."""
    sizes, graphs = Sizes(batch, image, width, depth, tokens, hidden), {}
    for model in MODELS + INFERENCE_MODELS:
        for training in (False, True) if model in MODELS else (False,):
            net = Net(training)
            result = model(net, sizes)
            graphs[f"{model.__name__}_{'training' if training else 'inference'}"] = net.finish(result)
    return graphs


def main():
    parser = argparse.ArgumentParser(description="Writes networks as graphs.")
    parser.add_argument("folder")
    for name, kind, value in (("batch", int, 2), ("image", int, 32), ("width", float, 0.125), ("depth", int, 1),
                              ("tokens", int, 16), ("hidden", int, 32)):
        parser.add_argument("--" + name, type=kind, default=value)
    arguments = vars(parser.parse_args())
    folder = arguments.pop("folder")
    os.makedirs(folder, exist_ok=True)
    for name, graph in model_graphs(**arguments).items():
        with open(os.path.join(folder, name + ".json"), "w", encoding="utf-8") as out:
            out.write(graph.text())


if __name__ == "__main__":
    main()
