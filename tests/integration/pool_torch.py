#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Writes random pooling problems with PyTorch's results: `pool_torch.py FOLDER [COUNT]`. Each is a graph of one operator
# (N.json) and its tensors as they lie in memory (N.ID.bin), inputs and expected outputs.
import json
import os
import random
import sys

import torch
import torch.nn.functional as F

NAMES = {torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16", torch.int64: "s64"}
AVERAGE = (None, F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)
MAXIMUM = (None, F.max_pool1d, F.max_pool2d, F.max_pool3d)
ADAPTIVE = (None, F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d)


def attribute(value):
    if isinstance(value, bool):
        return {"type": "bool", "value": int(value)}
    if isinstance(value, int):
        return {"type": "s64", "value": value}
    return {"type": "string", "value": value} if isinstance(value, str) else {"type": "s64[]", "value": list(value)}


class Problem:
    """One operator; tensors are given channel-first and laid out as `layout` says."""

    def __init__(self, rank, batch, dtype, layout):
        self.rank, self.batch, self.dtype, self.layout = rank, batch, dtype, layout
        self.inputs, self.outputs, self.files = [], [], {}

    def laid_out(self, values):
        """The same values: dense, with channels last in memory, with the data format NXC, or with gaps."""
        channel = 1 if self.batch else 0
        last = values.movedim(channel, -1).contiguous()
        if self.layout == "NXC":
            return last
        if self.layout == "channels_last":
            return last.movedim(-1, channel)
        if self.layout == "gaps":
            wide = torch.zeros([2 * values.shape[0]] + [d + 1 for d in values.shape[1:]], dtype=values.dtype)
            view = wide[::2]
            for axis in range(1, values.dim()):
                view = view.narrow(axis, 1, values.shape[axis])
            view.copy_(values)
            return view
        return values.contiguous()

    def add(self, side, values):
        values = values if values.dtype == torch.int64 else values.to(self.dtype)
        view, id = self.laid_out(values.detach()), len(self.files)
        span = 1 + sum((d - 1) * s for d, s in zip(view.shape, view.stride())) if view.numel() else 0
        flat = torch.as_strided(view, [span], [1], view.storage_offset()).contiguous()
        self.files[id] = flat.view(torch.uint8).numpy().tobytes() if span else b""
        side.append({"id": id, "dtype": NAMES[view.dtype], "shape": list(view.shape), "stride": list(view.stride()),
                     "layout_type": "strided", "property_type": "undef"})
        return view.shape

    def write(self, stem, kind, attrs):
        attrs = dict(attrs, data_format="NXC" if self.layout == "NXC" else "NCX")
        op = {"id": 1, "name": "pool", "kind": kind, "attrs": {k: attribute(v) for k, v in sorted(attrs.items())},
              "inputs": self.inputs, "outputs": self.outputs}
        with open(stem + ".json", "w", encoding="utf-8") as out:
            json.dump({"engine_kind": "cpu", "fpmath_mode": "strict", "graph": [op]}, out)
        for id, data in self.files.items():
            with open(f"{stem}.{id}.bin", "wb") as out:
                out.write(data)


def windows(rank):
    """What PyTorch allows: pads up to half the kernel."""
    kernel = [random.randint(1, 5) for _ in range(rank)]
    return kernel, [random.randint(1, 4) for _ in range(rank)], [random.randint(0, k // 2) for k in kernel]


def common(kernel, stride, pad, ceil):
    return dict(kernel=kernel, strides=stride, pads_begin=pad, pads_end=pad,
                rounding_type="ceil_inside" if ceil else "floor")


def make(stem):
    rank, batch = random.randint(1, 3), random.random() < 0.7
    dtype = random.choice([torch.float32, torch.float32, torch.bfloat16, torch.float16])
    p = Problem(rank, batch, dtype, random.choice(["dense", "NXC", "channels_last", "gaps"]))
    kernel, stride, pad = windows(rank)
    dilation = [random.choice([1, 1, 2]) for _ in range(rank)]
    kind = random.choice(["average", "maximum", "adaptive"])
    dilation = dilation if kind == "maximum" else [1] * rank
    src = [(k - 1) * d + 1 + random.randint(0, 14 if rank == 1 else 7) for k, d in zip(kernel, dilation)]
    shape = ([random.randint(1, 2)] if batch else []) + [random.choice([1, 3, 8, 17, 32])] + src
    # In the type of the tensors, computed in f32: PyTorch adds 16-bit averages in their own type.
    x = torch.randn(shape).to(dtype).float().requires_grad_()
    ceil, backward = random.random() < 0.6, random.random() < 0.6
    attrs = common(kernel, stride, pad, ceil)
    if kind == "average":
        include, override = random.random() < 0.5, random.choice([None, None, 3, 7, 300]) if rank > 1 else None
        more = {} if rank == 1 else {"divisor_override": override}
        y = AVERAGE[rank](x, kernel, stride, pad, ceil, include, **more)
        attrs.update(exclude_pad=not include, exclude_overhang=True)
        if override:
            attrs["divisor_override"] = override
        names = ("AvgPool", "AvgPoolBackward")
    elif kind == "adaptive":
        sizes = [random.randint(1, s + 3) for s in src]
        y = ADAPTIVE[rank](x, sizes)
        names, attrs = ("AdaptiveAvgPool", "AdaptiveAvgPoolBackward"), {"sizes": sizes}
    else:
        y, indices = MAXIMUM[rank](x, kernel, stride, pad, dilation, ceil, return_indices=True)
        attrs["dilations"] = dilation
        names = ("MaxPool", random.choice(["MaxPoolBackward", "MaxPoolIndicesBackward"]))
    if not backward:
        p.add(p.inputs, x)
        p.add(p.outputs, y)
        if kind == "maximum":
            p.add(p.outputs, indices)
        return p.write(stem, names[0], attrs)
    gradient = torch.randn(y.shape).to(dtype).float()
    y.backward(gradient)
    if names[1] == "MaxPoolBackward":
        p.add(p.inputs, x)
    p.add(p.inputs, gradient)
    if names[1] == "MaxPoolIndicesBackward":
        p.add(p.inputs, indices)
    made = p.add(p.outputs, x.grad)
    if names[1] != "MaxPoolBackward" and names[1] != "AvgPoolBackward":
        attrs = {"spatial_axes": rank}
    if names[1] != "MaxPoolBackward":
        attrs["src_shape"] = list(made)
    p.write(stem, names[1], attrs)


def main(folder, count):
    os.makedirs(folder, exist_ok=True)
    torch.manual_seed(1)
    random.seed(1)
    for number in range(count):
        make(os.path.join(folder, f"{number:04d}"))
    print(f"{count} problems with the results of PyTorch {torch.__version__} in {folder}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 400)
