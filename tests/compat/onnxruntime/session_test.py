#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The custom operators inside ONNX Runtime: what they compute, what they refuse, on which threads, at what cost.

PARTITA_ORT_LIBRARY names libpartita_ort.so. PARTITA_SEED repeats a run. --overhead only measures."""
import itertools
import json
import os
import sys
import time
import unittest

import numpy as np
import onnxruntime

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import onnx_model as om

LIBRARY = os.environ["PARTITA_ORT_LIBRARY"]
SEED = int(os.environ.get("PARTITA_SEED", time.time_ns() % 1000000))
STEPS = {om.FLOAT: 2e-6, om.FLOAT16: 1e-3, om.BFLOAT16: 8e-3}


def session_of(model, threads=1):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    options.register_custom_ops_library(LIBRARY)
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def cast_around(dtype, inputs, output, gradient):
    """Nodes that compute in `dtype` between f32 tensors: Python has no bf16 arrays."""
    if dtype == om.FLOAT:
        return [gradient(inputs, output)]
    casts = [om.node("Cast", [name], [name + "_cast"], to=dtype) for name in inputs[:1]]
    names = [inputs[0] + "_cast"] + list(inputs[1:])
    return casts + [gradient(names, output + "_cast"), om.node("Cast", [output + "_cast"], [output], to=om.FLOAT)]


def windows(size, kernel, stride, begin, end, dilation=1):
    return (size + begin + end - ((kernel - 1) * dilation + 1)) // stride + 1


def taps(case):
    """(window, cell) for each tap inside the source, as places in a plane."""
    spatial = range(len(case["kernel"]))
    for window in np.ndindex(*case["pooled"]):
        for tap in itertools.product(*(range(k) for k in case["kernel"])):
            cell = tuple(window[i] * case["strides"][i] - case["pads"][i] + tap[i] for i in spatial)
            if all(0 <= cell[i] < case["source"][i] for i in spatial):
                yield window, cell


def average_gradient(case, dy, include):
    counts = np.zeros(case["pooled"])
    for window, _ in taps(case):
        counts[window] += 1
    if include:
        counts[:] = np.prod(case["kernel"])
    dx = np.zeros(dy.shape[:2] + tuple(case["source"]))
    for window, cell in taps(case):
        dx[(slice(None), slice(None)) + cell] += dy[(slice(None), slice(None)) + window] / counts[window]
    return dx


def random_case(random, ceil=False):
    spatial = int(random.integers(1, 4))
    case = {"ceil": ceil}
    case["kernel"] = [int(random.integers(1, 4)) for _ in range(spatial)]
    case["strides"] = [int(random.integers(1, 4)) for _ in range(spatial)]
    case["pads"] = [int(random.integers(0, k)) for k in case["kernel"] * 2]
    case["source"] = [int(random.integers(k, k + 6)) for k in case["kernel"]]
    case["pooled"] = [windows(case["source"][i], case["kernel"][i], case["strides"][i], case["pads"][i],
                              case["pads"][i + spatial]) for i in range(spatial)]
    return case


def attributes(case):
    return {"kernel_shape": case["kernel"], "strides": case["strides"], "pads": case["pads"]}


def average_model(case, dtype, domain="com.microsoft", batch="N", channels=2, **more):
    def gradient(names, output):
        return om.node("AveragePoolGrad", names, [output], domain, **attributes(case), **more)
    nodes = cast_around(dtype, ["dY"], "dX", gradient)
    inside = [om.value("dX_cast", dtype, [batch, channels] + case["source"])]
    return om.model(nodes, [om.value("dY", om.FLOAT, [batch, channels] + case["pooled"])],
                    [om.value("dX", om.FLOAT, [batch, channels] + case["source"])],
                    inside if dtype != om.FLOAT else [])


class Gradients(unittest.TestCase):
    def setUp(self):
        self.random = np.random.default_rng(SEED)

    def check(self, got, expected, dtype, what):
        step = STEPS[dtype]
        self.assertEqual(got.shape, expected.shape)
        worst = np.max(np.abs(got - expected) / (1 + np.abs(expected)), initial=0)
        self.assertLessEqual(worst, step, f"{what} seed {SEED}")

    def numbers(self, shape, dtype):
        values = self.random.uniform(-1, 1, shape).astype(np.float32)
        if dtype == om.FLOAT16:
            return values.astype(np.float16).astype(np.float32)
        if dtype == om.BFLOAT16:
            return (values.view(np.uint32) & 0xFFFF0000).view(np.float32).reshape(shape)
        return values

    def test_average_is_what_the_definition_says(self):
        for k in range(18):
            case = random_case(self.random)
            dtype = (om.FLOAT, om.FLOAT16, om.BFLOAT16)[k % 3]
            include = int(self.random.integers(0, 2))
            session = session_of(average_model(case, dtype, count_include_pad=include))
            for batch in (1, 3):  # the graph leaves the batch open
                dy = self.numbers([batch, 2] + case["pooled"], dtype)
                self.check(session.run(None, {"dY": dy})[0], average_gradient(case, dy, include), dtype, case)

    def test_average_stands_in_both_domains(self):
        case = {"kernel": [2], "strides": [2], "pads": [0, 0], "source": [4], "pooled": [2]}
        dy = np.ones([1, 2, 2], np.float32)
        for domain in ("com.microsoft", "partita"):
            got = session_of(average_model(case, om.FLOAT, domain)).run(None, {"dY": dy})[0]
            np.testing.assert_array_equal(got, np.full([1, 2, 4], 0.5, np.float32))

    def test_three_axes_add_what_overlaps_and_are_kept_apart(self):
        case = {"kernel": [3, 2, 4], "strides": [1, 2, 1], "pads": [1, 0, 2, 1, 0, 2], "source": [4, 5, 7]}
        case["pooled"] = [windows(s, k, t, b, e) for s, k, t, b, e in
                          zip(case["source"], case["kernel"], case["strides"], case["pads"][:3], case["pads"][3:])]
        dy = self.numbers([1, 2] + case["pooled"], om.FLOAT)
        for include in (0, 1):
            got = session_of(average_model(case, om.FLOAT, count_include_pad=include)).run(None, {"dY": dy})[0]
            self.check(got, average_gradient(case, dy, include), om.FLOAT, case)

    def test_average_reads_auto_pad_and_ceil_mode(self):
        for auto_pad, begin, end in (("SAME_UPPER", 0, 1), ("SAME_LOWER", 1, 0)):
            case = {"kernel": [3], "strides": [2], "pads": [begin, end], "source": [6], "pooled": [3]}
            dy = self.numbers([1, 2, 3], om.FLOAT)
            model = om.model([om.node("AveragePoolGrad", ["dY"], ["dX"], "com.microsoft", kernel_shape=[3], strides=[2],
                                      auto_pad=auto_pad)],
                             [om.value("dY", om.FLOAT, [1, 2, 3])], [om.value("dX", om.FLOAT, [1, 2, 6])])
            self.check(session_of(model).run(None, {"dY": dy})[0], average_gradient(case, dy, 0), om.FLOAT, auto_pad)
        case = {"kernel": [3], "strides": [2], "pads": [0, 0], "source": [6], "pooled": [3]}
        for include in (0, 1):
            session = session_of(average_model(case, om.FLOAT, ceil_mode=1, count_include_pad=include))
            got = session.run(None, {"dY": dy})[0]
            self.check(got, average_gradient(case, dy, include), om.FLOAT, "ceil_mode")

    def maximum_model(self, case, dtype, batch="N", indices=None):
        """ONNX Runtime's own MaxPool makes the indices, unless they are an input."""
        shape, pooled = [batch, 2] + case["source"], [batch, 2] + case["pooled"]
        forward = [] if indices else [om.node("MaxPool", ["X"], ["Y", "Indices"], **attributes(case))]

        def gradient(names, output):
            return om.node("MaxPoolGrad", names, [output], "com.microsoft", **attributes(case))
        inputs = [om.value("dY", om.FLOAT, pooled)]
        inputs.append(om.value("Indices", om.INT64, pooled) if indices else om.value("X", om.FLOAT, shape))
        outputs = [om.value("dX", om.FLOAT, shape)] + ([] if indices else [om.value("Indices", om.INT64, pooled)])
        inside = [] if dtype == om.FLOAT else [om.value("dX_cast", dtype, shape)]
        return om.model(forward + cast_around(dtype, ["dY", "Indices"], "dX", gradient), inputs, outputs, inside)

    def test_maximum_goes_where_the_runtimes_own_indices_say(self):
        for k in range(18):
            case = random_case(self.random)
            dtype = (om.FLOAT, om.FLOAT16, om.BFLOAT16)[k % 3]
            session = session_of(self.maximum_model(case, dtype))
            x = self.random.uniform(-1, 1, [2, 2] + case["source"]).astype(np.float32)
            dy = self.numbers([2, 2] + case["pooled"], dtype)
            dx, indices = session.run(None, {"X": x, "dY": dy})
            expected = np.zeros(x.size)
            np.add.at(expected, indices.ravel(), dy.ravel().astype(np.float64))
            self.check(dx, expected.reshape(x.shape), dtype, case)

    def test_maximum_refuses_an_index_outside_the_tensor(self):
        case = {"kernel": [2], "strides": [2], "pads": [0, 0], "source": [4], "pooled": [2]}
        session = session_of(self.maximum_model(case, om.FLOAT, batch=1, indices=True))
        dy = np.ones([1, 2, 2], np.float32)
        good = np.array([[[0, 3], [4, 7]]], np.int64)
        np.testing.assert_array_equal(session.run(None, {"dY": dy, "Indices": good})[0], [[[1, 0, 0, 1], [1, 0, 0, 1]]])
        for wrong in (8, -2, 1 << 40):
            bad = good.copy()
            bad[0, 1, 1] = wrong
            with self.assertRaisesRegex(Exception, "MaxPoolGrad: "):
                session.run(None, {"dY": dy, "Indices": bad})

    def test_empty_batch_gives_an_empty_gradient(self):
        case = {"kernel": [2], "strides": [2], "pads": [0, 0], "source": [4], "pooled": [2]}
        got = session_of(average_model(case, om.FLOAT)).run(None, {"dY": np.ones([0, 2, 2], np.float32)})[0]
        self.assertEqual(got.shape, (0, 2, 4))


class Refusals(unittest.TestCase):
    def refused(self, text, shape=(1, 2, 4), **changes):
        given = {"kernel_shape": [2], "strides": [2]}
        given.update(changes)
        given = {name: value for name, value in given.items() if value is not None}
        model = om.model([om.node("AveragePoolGrad", ["dY"], ["dX"], "com.microsoft", **given)],
                         [om.value("dY", om.FLOAT, [1, 2, 2])],
                         [om.value("dX", om.FLOAT, None if shape is None else list(shape))])
        with self.assertRaisesRegex(Exception, text):
            session_of(model).run(None, {"dY": np.ones([1, 2, 2], np.float32)})

    def test_attributes(self):
        self.refused("AveragePoolGrad: kernel_shape has 0 entries", kernel_shape=None)
        self.refused("strides has 2 entries, it must have 1", strides=[2, 2])
        self.refused("strides has an entry 0", strides=[0])
        self.refused("pads has 1 entries, it must have 2", pads=[1])
        self.refused("auto_pad is `SAME`", auto_pad="SAME")
        self.refused("dilations of an average must be 1", dilations=[2])

    def test_shapes(self):
        self.refused("the graph must tell the shape of dX", shape=None)
        self.refused(r"dY is \[1,2,2\], which is not what pooling \[1,2,7\] makes", shape=(1, 2, 7))
        self.refused(r"which is not what pooling \[1,3,4\] makes", shape=(1, 3, 4))


def tensor(number, shape):
    strides = [int(s) for s in np.cumprod([1] + list(shape)[:0:-1])[::-1]]
    return {"id": number, "dtype": "f32", "shape": list(shape), "stride": strides, "layout_type": "strided",
            "property_type": "variable"}


def partita_json(batch=2, channels=4, size=8):
    """relu'(y, avg'(dy)): two operators that become one partition."""
    def t(number, *dims):
        return tensor(number, [batch, *dims])

    def attribute(kind, value):
        return {"type": kind, "value": value}
    pool = {"id": 1, "name": "pool", "kind": "AvgPoolBackward",
            "attrs": {"kernel": attribute("s64[]", [2, 2]), "strides": attribute("s64[]", [2, 2]),
                      "pads_begin": attribute("s64[]", [0, 0]), "pads_end": attribute("s64[]", [0, 0]),
                      "exclude_pad": attribute("bool", True), "data_format": attribute("string", "NCX"),
                      "src_shape": attribute("s64[]", [batch, channels, size, size])},
            "inputs": [t(0, channels, size // 2, size // 2)], "outputs": [t(1, channels, size, size)]}
    relu = {"id": 2, "name": "relu", "kind": "ReLUBackward", "attrs": {},
            "inputs": [t(2, channels, size, size), t(1, channels, size, size)], "outputs": [t(3, channels, size, size)]}
    return json.dumps({"graph": [pool, relu]})


def graph_model(text, shapes_in, shapes_out):
    inputs = [om.value(f"in{i}", om.FLOAT, s) for i, s in enumerate(shapes_in)]
    outputs = [om.value(f"out{i}", om.FLOAT, s) for i, s in enumerate(shapes_out)]
    node = om.node("PartitaGraph", [f"in{i}" for i in range(len(shapes_in))],
                   [f"out{i}" for i in range(len(shapes_out))], "partita", **({"graph": text} if text else {}))
    return om.model([node], inputs, outputs)


class Graphs(unittest.TestCase):
    def setUp(self):
        self.random = np.random.default_rng(SEED)

    def expected(self, dy, y):
        return np.where(y > 0, np.repeat(np.repeat(dy, 2, 2), 2, 3) / 4, 0)

    def test_a_graph_runs_as_one_node(self):
        session = session_of(graph_model(partita_json(batch=2), [[2, 4, 4, 4], [2, 4, 8, 8]], [[2, 4, 8, 8]]))
        dy = self.random.uniform(-1, 1, [2, 4, 4, 4]).astype(np.float32)
        y = self.random.uniform(-1, 1, [2, 4, 8, 8]).astype(np.float32)
        for _ in range(2):
            np.testing.assert_allclose(session.run(None, {"in0": dy, "in1": y})[0], self.expected(dy, y), rtol=1e-6)

    def test_open_dims_are_compiled_as_they_come(self):
        text = json.dumps({"graph": [{"id": 1, "kind": "Exp", "attrs": {},
                                      "inputs": [self.open_tensor(0)], "outputs": [self.open_tensor(1)]},
                                     {"id": 2, "kind": "Sqrt", "attrs": {},
                                      "inputs": [self.open_tensor(1)], "outputs": [self.open_tensor(2)]}]})
        session = session_of(graph_model(text, [["N", 3]], [["N", 3]]))
        for rows in (1, 5, 2):
            x = self.random.uniform(-1, 1, [rows, 3]).astype(np.float32)
            np.testing.assert_allclose(session.run(None, {"in0": x})[0], np.sqrt(np.exp(x)), rtol=1e-5)

    @staticmethod
    def open_tensor(number):
        unknown = -9223372036854775808
        return {"id": number, "dtype": "f32", "shape": [unknown, 3], "stride": [unknown, unknown],
                "layout_type": "strided", "property_type": "variable"}

    def refused(self, text, model, feed):
        with self.assertRaisesRegex(Exception, text):
            session_of(model).run(None, feed)

    def test_what_is_wrong_is_said(self):
        dy, y = np.ones([2, 4, 4, 4], np.float32), np.ones([2, 4, 8, 8], np.float32)
        good = partita_json(batch=2)
        shapes = [[2, 4, 4, 4], [2, 4, 8, 8]]
        both = {"in0": dy, "in1": y}
        self.refused("PartitaGraph: the attribute `graph`", graph_model(None, shapes, [[2, 4, 8, 8]]), both)
        self.refused("PartitaGraph: graph:1", graph_model("{", shapes, [[2, 4, 8, 8]]), both)
        self.refused("the graph has 2 inputs, the node 1", graph_model(good, shapes[:1], [[2, 4, 8, 8]]), {"in0": dy})
        self.refused("the graph has 1 outputs, the node 2", graph_model(good, shapes, [[2, 4, 8, 8]] * 2), both)
        self.refused("PartitaGraph: ", graph_model(good, [[2, 4, 4, 5], [2, 4, 8, 8]], [[2, 4, 8, 8]]),
                     {"in0": np.ones([2, 4, 4, 5], np.float32), "in1": y})


def threads_of_the_process():
    return len(os.listdir("/proc/self/task"))


class Threads(unittest.TestCase):
    """No thread is started beside the session's own."""

    def test_work_runs_on_the_sessions_threads(self):
        case = {"kernel": [3, 3], "strides": [1, 1], "pads": [1, 1, 1, 1], "source": [64, 64], "pooled": [64, 64]}
        dy = np.ones([4, 32, 64, 64], np.float32)
        results = []
        for threads in (1, 2, 4):
            session = session_of(average_model(case, om.FLOAT, batch=4, channels=32), threads)
            before = threads_of_the_process()
            for _ in range(3):
                results.append(session.run(None, {"dY": dy})[0])
            self.assertEqual(threads_of_the_process(), before, f"{threads} threads in the session")
        for result in results[1:]:
            np.testing.assert_array_equal(results[0], result)


def overhead():
    """Microseconds of a node above an Identity of the same output, on a small tensor."""
    case = {"kernel": [2], "strides": [2], "pads": [0, 0], "source": [8], "pooled": [4]}
    identity = om.model([om.node("Identity", ["dY"], ["dX"])], [om.value("dY", om.FLOAT, [1, 2, 8])],
                        [om.value("dX", om.FLOAT, [1, 2, 8])])
    times = {}
    for name, model, shape in (("Identity", identity, [1, 2, 8]),
                               ("AveragePoolGrad", average_model(case, om.FLOAT, batch=1), [1, 2, 4])):
        session = session_of(model)
        feed = {"dY": np.ones(shape, np.float32)}
        binding = session.io_binding()
        binding.bind_cpu_input("dY", feed["dY"])
        binding.bind_output("dX")
        best = float("inf")
        for _ in range(30):
            start = time.perf_counter()
            for _ in range(2000):
                session.run_with_iobinding(binding)
            best = min(best, (time.perf_counter() - start) / 2000 * 1e6)
        times[name] = best
    print(", ".join(f"{name} {t:.2f} us" for name, t in times.items()),
          f"difference {times['AveragePoolGrad'] - times['Identity']:.2f} us")


if __name__ == "__main__":
    if "--overhead" in sys.argv:
        overhead()
    else:
        unittest.main()
