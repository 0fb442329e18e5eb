"""What the ten programs share: the command line, the checksum, the dump for the C++ peers."""

import argparse
import hashlib
import os
from dataclasses import fields
from time import perf_counter

import numpy as np
import pykokkos as pk


def array_of(value):
    """The NumPy array of an output, which may be a View, an array or a number."""
    if hasattr(value, "data") and not isinstance(value, np.ndarray):
        value = value.data
    return np.asarray(value)


def checksums(outputs):
    """For each output the mean of |x|, weighted by 1 + i % 7; and their sum."""
    sums = {}
    for name, value in outputs.items():
        x = np.abs(array_of(value).ravel().astype(np.float64))
        sums[name] = float(np.mean(x * (1.0 + np.arange(x.size) % 7))) if x.size else 0.0
    sums["total"] = sum(sums.values())
    return sums


def dump(state, folder):
    """Write each array as NAME.bin, and meta.txt with a line for each array or number."""
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "meta.txt"), "w") as meta:

        def put(name, value):
            if isinstance(value, (list, tuple)):
                for index, item in enumerate(value):
                    put(f"{name}_{index}", item)
            elif isinstance(value, (bool, int)):
                meta.write(f"{name} number {int(value)}\n")
            elif isinstance(value, float):
                meta.write(f"{name} number {value!r}\n")
            elif hasattr(value, "data"):
                x = np.ascontiguousarray(array_of(value))
                x.tofile(os.path.join(folder, name + ".bin"))
                meta.write(f"{name} {x.dtype} {' '.join(map(str, x.shape))}\n")

        for field in fields(state):
            put(field.name, getattr(state, field.name))


def main(program):
    """Time one run and print its checksum; or dump a fresh state."""
    parser = argparse.ArgumentParser(description=program["__doc__"].splitlines()[0])
    parser.add_argument("--size", default="small", help="small, default, large or a number")
    parser.add_argument("--dump", metavar="DIR", help="write the arrays of a fresh state, and stop")
    parser.add_argument("--repeat", type=int, default=0, help="more runs, of which the median")
    parser.add_argument("--check", action="store_true", help="check also where it is not small")
    args = parser.parse_args()
    size = program["SIZES"].get(args.size) or int(args.size)
    state = program["setup"](size)
    if args.dump:
        dump(state, args.dump)
        return
    run = program["run"]
    start = perf_counter()
    run(state)
    pk.fence()
    seconds = perf_counter() - start
    for name, value in checksums(program["outputs"](state)).items():
        print(f"checksum {name} {value:.12e}")
    digest = hashlib.sha256()
    for value in program["outputs"](state).values():
        digest.update(np.ascontiguousarray(array_of(value)).tobytes())
    print(f"checksum sha {int(digest.hexdigest()[:13], 16)}")
    if args.size == "small" or args.check:
        program["check"](state, size)
        print("check passed")
    print(f"seconds {seconds:.6f}")
    times = []
    for _ in range(args.repeat):
        start = perf_counter()
        run(state)
        pk.fence()
        times.append(perf_counter() - start)
    if times:
        print(f"median {sorted(times)[len(times) // 2]:.6f}")
        again = checksums(program["outputs"](state))["total"]
        print(f"again {again:.12e}")
