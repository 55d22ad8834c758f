#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One client of the Graph API, run on graph files with oneDNN's libdnnl and with Partita in front; outputs must agree.

usage: client_outputs.py CLIENT LIBPARTITA_DNNL_GRAPH.SO FILE.json ..

The client is run as `CLIENT --reps 0 --dump FOLDER FILE.json`; it prints a line of tab-separated fields (name, operators,
partitions, supported, run, three times, sum, errors) and writes each output tensor to FOLDER/NAME.ID.bin: four bytes of
data type, then the elements. Every partition that runs on oneDNN must run on Partita. Exits with 1 where one does not, or
where outputs differ by more than the tolerance of their type.
"""
import collections
import json
import os
import subprocess
import sys
import tempfile

import numpy

KINDS = {1: "f16", 2: "bf16", 3: "f32", 4: "s32", 5: "s8", 6: "u8", 8: "boolean", 9: "f8_e5m2", 10: "f8_e4m3"}
# Relative to the largest magnitude of the tensor. Integers may differ by one: a sum may round the other way.
TOLERANCE = {"f32": 2e-4, "bf16": 4e-2, "f16": 8e-3, "f8_e5m2": 0.3, "f8_e4m3": 0.15}


def run(client, file, folder, preload):
    env = dict(os.environ, LD_PRELOAD=preload) if preload else os.environ
    try:
        done = subprocess.run([client, "--reps", "0", "--dump", folder, file], capture_output=True, text=True, env=env,
                              timeout=120)
    except subprocess.TimeoutExpired:
        return None, "took more than two minutes"
    lines = [line.split("\t") for line in done.stdout.splitlines() if "\t" in line]
    if not lines:
        return None, f"ended with {done.returncode} {done.stderr.strip()[-200:]}"
    fields = lines[-1]
    if fields[1] == "ERROR":
        return None, fields[2]
    return fields, fields[9] if len(fields) > 9 else ""


def is_whole(fields, file):
    """Every partition ran, but those of operators that compute nothing."""
    with open(file, encoding="utf-8") as stream:
        idle = sum(op["kind"] in ("End", "Wildcard") for op in json.load(stream)["graph"])
    return fields is not None and int(fields[4]) + idle >= int(fields[2])


def values(path):
    with open(path, "rb") as stream:
        data = stream.read()
    kind = KINDS.get(int.from_bytes(data[:4], "little"), "other")
    raw = numpy.frombuffer(data[4:], dtype=numpy.uint8)
    if kind == "f32":
        return kind, raw.view(numpy.float32).astype(numpy.float64)
    if kind == "f16":
        return kind, raw.view(numpy.float16).astype(numpy.float64)
    if kind == "bf16":
        return kind, (raw.view(numpy.uint16).astype(numpy.uint32) << 16).view(numpy.float32).astype(numpy.float64)
    if kind == "s32":
        return kind, raw.view(numpy.int32).astype(numpy.float64)
    if kind == "s8":
        return kind, raw.view(numpy.int8).astype(numpy.float64)
    if kind == "f8_e5m2":
        return kind, (raw.astype(numpy.uint16) << 8).view(numpy.float16).astype(numpy.float64)
    if kind == "f8_e4m3":
        sign, rest = numpy.where(raw & 128, -1.0, 1.0), raw & 127
        exponent, mantissa = (rest >> 3).astype(int), (rest & 7) / 8
        number = numpy.where(exponent == 0, mantissa * 2.0**-6, (1 + mantissa) * 2.0 ** (exponent - 7.0))
        return kind, sign * numpy.where(rest == 127, numpy.nan, number)
    return kind, raw.astype(numpy.float64)


def difference(a, b):
    """A text, or empty where they agree."""
    (kind, x), (other, y) = values(a), values(b)
    if kind != other or x.size != y.size:
        return f"{kind} x {x.size} and {other} x {y.size}"
    if x.size == 0 or numpy.array_equal(x, y, equal_nan=True):
        return ""
    both = numpy.isfinite(x) & numpy.isfinite(y)
    apart = numpy.abs(x - y)[both]
    allowed = max(TOLERANCE[kind] * numpy.abs(x[both]).max(initial=0), 1e-6) if kind in TOLERANCE else 1
    wild = int((~both & ~((x == y) | (numpy.isnan(x) & numpy.isnan(y)))).sum())
    if wild == 0 and apart.max(initial=0) <= allowed:
        return ""
    return (f"{kind}: {int((apart > allowed).sum()) + wild} of {x.size} differ, by up to {apart.max(initial=0):.4g} "
            f"(allowed {allowed:.4g}), {wild} infinite or not numbers in one only")


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    client, library, files = sys.argv[1], os.path.abspath(sys.argv[2]), sys.argv[3:]
    count = collections.Counter()
    partitions = collections.Counter()
    failures = []
    for file in files:
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
            upstream, why = run(client, file, one, None)
            ours, trouble = run(client, file, two, library)
            count["files"] += 1
            whole = {}
            for name, fields in (("oneDNN", upstream), ("Partita", ours)):
                whole[name] = is_whole(fields, file)
                count[f"whole on {name}"] += whole[name]
                partitions[name] += int(fields[4]) if fields else 0
            if not whole["Partita"]:
                if whole["oneDNN"]:
                    failures.append(f"{file}: runs on oneDNN, not on Partita: {trouble}")
                else:
                    print(f"{file}: whole on neither: oneDNN: {why}; Partita: {trouble}")
            elif not whole["oneDNN"]:
                count["only on Partita"] += 1
                print(f"{file}: only on Partita: oneDNN: {why}")
            else:
                names = sorted(os.listdir(one))
                wrong = [f"{n}: {d}" for n in names
                         if (d := difference(f"{one}/{n}", f"{two}/{n}") if os.path.exists(f"{two}/{n}") else "missing")]
                count["agree" if not wrong else "differ"] += 1
                failures += [f"{file}: {w}" for w in wrong]
    for failure in failures:
        print("FAILED", failure)
    print(dict(count), "partitions run:", dict(partitions))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
