# ruff: noqa: E501
"""What the NumPy peers share: reading a dump, the checksum, the timing in the form of common.hpp."""

import os
import sys
from time import perf_counter

import numpy as np


def load(folder):
    """Arrays and numbers of a dumped state."""
    state = {}
    with open(os.path.join(folder, "meta.txt")) as meta:
        for line in meta:
            name, kind, *rest = line.split()
            if kind == "number":
                value = float(rest[0])
                state[name] = int(value) if value.is_integer() else value
            else:
                x = np.fromfile(os.path.join(folder, name + ".bin"), dtype=kind)
                state[name] = x.reshape([int(e) for e in rest])
    return state


def bench(run):
    """`run(state)` gives a dictionary of outputs; print checksums and the median of 7."""
    state = load(sys.argv[1])
    total = 0.0
    for name, value in run(state).items():
        x = np.abs(np.asarray(value).ravel().astype(np.float64))
        mean = float(np.mean(x * (1.0 + np.arange(x.size) % 7))) if x.size else 0.0
        print(f"checksum {name} {mean:.12e}")
        total += mean
    print(f"checksum total {total:.12e}")
    start = perf_counter()
    while perf_counter() - start < 0.5:
        run(state)
    times = []
    for _ in range(7):
        start = perf_counter()
        run(state)
        times.append(perf_counter() - start)
    print(f"median {sorted(times)[3]:.9f}")
