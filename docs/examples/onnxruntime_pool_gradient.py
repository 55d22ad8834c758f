#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A model with ONNX Runtime's MaxPool and Partita's MaxPoolGrad, and one whose only node is a graph of Partita's.

PARTITA_ORT_LIBRARY names libpartita_ort.so. onnx_model stands for any tool that writes models."""
import os
import sys

import numpy as np
import onnxruntime

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/compat/onnxruntime"))
import onnx_model

options = onnxruntime.SessionOptions()
options.register_custom_ops_library(os.environ["PARTITA_ORT_LIBRARY"])


def run(model, feed):
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run(None, feed)


# The gradient of a maximum pooling: the indices come from the forward node, the shape of dX from the graph.
windows = {"kernel_shape": [2, 2], "strides": [2, 2]}
large, small = ["batch", 1, 4, 4], ["batch", 1, 2, 2]
training = onnx_model.model(
    nodes=[onnx_model.node("MaxPool", ["X"], ["Y", "Indices"], **windows),
           onnx_model.node("MaxPoolGrad", ["dY", "Indices"], ["dX"], domain="com.microsoft", **windows)],
    inputs=[onnx_model.value("X", onnx_model.FLOAT, large), onnx_model.value("dY", onnx_model.FLOAT, small)],
    outputs=[onnx_model.value("dX", onnx_model.FLOAT, large)])
x = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
dx, = run(training, {"X": x, "dY": np.full([1, 1, 2, 2], 7, np.float32)})
print(dx[0, 0])

# Any graph of Partita's as one node: inputs and outputs in the order in which the text first names them.
tensor = ('{"id": %d, "dtype": "f32", "shape": [2, 3], "stride": [3, 1], "layout_type": "strided",'
          ' "property_type": "undef"}')
graph = ('{"graph": [{"id": 7, "kind": "SoftMax", "attrs": {"axis": {"type": "s64", "value": 1}},'
         ' "inputs": [' + tensor % 0 + '], "outputs": [' + tensor % 1 + ']}]}')
whole = onnx_model.model(
    nodes=[onnx_model.node("PartitaGraph", ["src"], ["dst"], domain="partita", graph=graph)],
    inputs=[onnx_model.value("src", onnx_model.FLOAT, [2, 3])],
    outputs=[onnx_model.value("dst", onnx_model.FLOAT, [2, 3])])
dst, = run(whole, {"src": np.zeros([2, 3], np.float32)})
print(dst)

expected = np.zeros([4, 4], np.float32)
expected[1::2, 1::2] = 7
assert np.array_equal(dx[0, 0], expected) and np.allclose(dst, 1 / 3)
