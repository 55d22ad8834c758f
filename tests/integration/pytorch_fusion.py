#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's oneDNN fuser on Partita, put in front of libdnnl: a convolutional network and a perceptron, equal to eager.

usage: pytorch_fusion.py LIBPARTITA_DNNL_GRAPH.SO

Answers 77 (skipped) where PyTorch is missing or does not take the Graph API from a libdnnl of version 3.
"""
import os
import re
import subprocess
import sys

SKIPPED = 77


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def networks():
    import torch
    from torch import nn

    convolutional = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.Sigmoid(), nn.AvgPool2d(2), nn.Conv2d(32, 8, 1), nn.ReLU())
    perceptron = nn.Sequential(
        nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.GELU(), nn.Linear(128, 10), nn.Softmax(dim=1))
    return {"convolutional": (convolutional, torch.rand(2, 3, 32, 32)), "perceptron": (perceptron, torch.rand(5, 64))}


def run():
    """In the process that has Partita in front."""
    import torch

    torch.manual_seed(1)
    torch.jit.enable_onednn_fusion(True)
    for name, (net, x) in networks().items():
        net.eval()
        with torch.no_grad():
            wanted = net(x)
            fused = torch.jit.freeze(torch.jit.trace(net, x))
            print(f"network {name}", flush=True)
            for _ in range(4):  # the fuser acts after it has seen the shapes
                found = fused(x)
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)
        print(f"{name}: equal to eager, largest difference {(found - wanted).abs().max().item():.2g}", flush=True)


def libraries_of(module):
    """What the module's library and those beside it are linked to, as the loader sees it."""
    text = ""
    for folder in (os.path.dirname(module.__file__), os.path.join(os.path.dirname(module.__file__), "lib")):
        for file in os.listdir(folder):
            if ".so" in file:
                text += subprocess.run(["ldd", os.path.join(folder, file)], capture_output=True, text=True).stdout
    return text


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    library = sys.argv[1]
    if library == "--run":
        return run()
    try:
        import torch
    except ImportError:
        skip("no PyTorch here")
    if not re.search(r"libdnnl\.so\.3", libraries_of(torch)):
        skip("this PyTorch has its own copy of oneDNN inside, nothing can be put in front of it")
    result = subprocess.run([sys.executable, __file__, "--run"], capture_output=True, text=True,
                            env=dict(os.environ, LD_PRELOAD=os.path.abspath(library), PARTITA_VERBOSE="1"))
    lines = result.stdout.splitlines()
    if result.returncode != 0:
        sys.exit(f"the run failed ({result.returncode}):\n{result.stdout[-3000:]}\n{result.stderr[-3000:]}")
    network, executed = None, {}
    for line in lines:
        if line.startswith("network "):
            network = line.split()[1]
        elif line.startswith("partita_verbose,v1,graph,exec,") and network:
            executed.setdefault(network, set()).add(line.split(",")[6] + " by " + line.split(",")[11])
        elif ": equal to eager" in line:
            print(line)
    for name in networks():
        if not executed.get(name):
            sys.exit(f"no partition of the network '{name}' ran on Partita:\n" + "\n".join(lines[-20:]))
        for partition in sorted(executed[name]):
            print(f"{name}: {partition}")


if __name__ == "__main__":
    main()
