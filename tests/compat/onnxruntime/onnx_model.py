#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes ONNX models of a few nodes, field by field, so that nothing but a protobuf's wire format is needed."""

FLOAT, INT32, INT64, FLOAT16, BFLOAT16 = 1, 6, 7, 10, 16


def _varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field, value):
    return _varint(field << 3) + _varint(value)


def _bytes(field, value):
    if isinstance(value, str):
        value = value.encode()
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _attribute(name, value):
    text = _bytes(1, name)
    if isinstance(value, bool) or isinstance(value, int):
        return text + _number(3, int(value)) + _number(20, 2)
    if isinstance(value, str):
        return text + _bytes(4, value) + _number(20, 3)
    return text + b"".join(_number(8, v) for v in value) + _number(20, 7)


def node(op, inputs, outputs, domain="", **attributes):
    """A node; attributes are integers, strings, or lists of integers."""
    text = b"".join(_bytes(1, name) for name in inputs) + b"".join(_bytes(2, name) for name in outputs)
    text += _bytes(4, op)
    text += b"".join(_bytes(5, _attribute(name, value)) for name, value in attributes.items())
    return text + (_bytes(7, domain) if domain else b"")


def value(name, dtype, shape):
    """A tensor's name, element type and shape; a dim is a number, a name, or None; a shape of None is not told."""
    dims = b""
    for dim in shape or []:
        told = b"" if dim is None else _bytes(2, dim) if isinstance(dim, str) else _number(1, dim)
        dims += _bytes(1, told)
    tensor = _number(1, dtype) + (b"" if shape is None else _bytes(2, dims))
    return _bytes(1, name) + _bytes(2, _bytes(1, tensor))


def model(nodes, inputs, outputs, values=(), opsets=(("", 18), ("com.microsoft", 1), ("partita", 1))):
    """The bytes of a model; `values` are the tensors in between whose shape is told."""
    graph = b"".join(_bytes(1, n) for n in nodes) + _bytes(2, "graph")
    graph += b"".join(_bytes(11, v) for v in inputs) + b"".join(_bytes(12, v) for v in outputs)
    graph += b"".join(_bytes(13, v) for v in values)
    text = _number(1, 8) + _bytes(7, graph)
    return text + b"".join(_bytes(8, _bytes(1, domain) + _number(2, version)) for domain, version in opsets)
