# SPDX-License-Identifier: Apache-2.0
# A graph under construction and its one JSON layout: an attribute or tensor a line, attributes sorted by name.
import json
import math


class Tensor:
    def __init__(self, id, dtype, shape, stride, prop):
        self.id, self.dtype, self.shape, self.stride, self.prop = id, dtype, list(shape), stride, prop

    def fields(self):
        return {"id": self.id, "dtype": self.dtype, "shape": self.shape, "stride": self.stride,
                "layout_type": "strided", "property_type": self.prop}


def dense(shape):
    return [math.prod(max(d, 1) for d in shape[i + 1:]) for i in range(len(shape))]


def attribute(value):
    """Python's type tells the attribute's; lists of nothing are lists of integers."""
    if isinstance(value, bool):
        return {"type": "bool", "value": int(value)}
    if isinstance(value, int):
        return {"type": "s64", "value": value}
    if isinstance(value, float):
        return {"type": "f32", "value": value}
    if isinstance(value, str):
        return {"type": "string", "value": value}
    return {"type": "f32[]" if value and isinstance(value[0], float) else "s64[]", "value": list(value)}


class Graph:
    def __init__(self, fpmath="strict"):
        self.fpmath, self.ops, self.tensors = fpmath, [], 0

    def tensor(self, dtype, shape, stride=None, prop="undef"):
        """A tensor from outside, or the result of the operator it is given to."""
        self.tensors += 1
        return Tensor(self.tensors - 1, dtype, shape, stride or dense(shape), prop)

    def f32(self, *shape):
        return self.tensor("f32", shape)

    def bf16(self, *shape):
        return self.tensor("bf16", shape)

    def many(self, kind, inputs, results, **attrs):
        """Adds an operator; `results` are (dtype, shape) or tensors. Returns the result tensors."""
        outputs = [r if isinstance(r, Tensor) else self.tensor(*r) for r in results]
        self.ops.append({"id": len(self.ops) + 1, "name": f"{kind.lower()}_{len(self.ops) + 1}", "kind": kind,
                         "attrs": {k: attribute(v) for k, v in sorted(attrs.items())},
                         "inputs": [t.fields() for t in inputs], "outputs": [t.fields() for t in outputs]})
        return outputs

    def op(self, kind, inputs, result=None, **attrs):
        """An operator with one result, by default of the first input's type and shape."""
        if result is None:
            result = (inputs[0].dtype, inputs[0].shape)
        return self.many(kind, inputs, [result], **attrs)[0]

    def text(self):
        def item_lines(items, indent):
            return ",\n".join(" " * indent + item for item in items)

        def op_text(o):
            lines = [f'"id": {o["id"]}', f'"name": {json.dumps(o["name"])}', f'"kind": {json.dumps(o["kind"])}']
            attrs = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in o["attrs"].items()]
            lines.append('"attrs": {\n' + item_lines(attrs, 8) + "\n      }" if attrs else '"attrs": {}')
            for side in ("inputs", "outputs"):
                tensors = [json.dumps(t) for t in o[side]]
                lines.append(f'"{side}": [\n' + item_lines(tensors, 8) + "\n      ]" if tensors else f'"{side}": []')
            return "    {\n" + item_lines(lines, 6) + "\n    }"

        head = f'{{\n  "engine_kind": "cpu",\n  "fpmath_mode": "{self.fpmath}",\n  "graph": [\n'
        return head + ",\n".join(op_text(o) for o in self.ops) + "\n  ]\n}\n"
