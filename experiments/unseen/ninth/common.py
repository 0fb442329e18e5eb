"""Common to the ten programs: command line, views of a state, checksum."""

import argparse
import dataclasses
from time import perf_counter

import numpy as np
import pykokkos as pk


def leaves(state):
    """Yield (name, array) for all Views, arrays and numbers of a state."""

    def walk(name, value):
        if isinstance(value, np.ndarray):
            yield name, value
        elif hasattr(value, "data") and hasattr(value, "shape"):
            yield name, np.asarray(value.data)
        elif isinstance(value, (list, tuple)):
            for k, item in enumerate(value):
                yield from walk(f"{name}{k}", item)
        elif isinstance(value, dict):
            for k, item in value.items():
                yield from walk(f"{name}_{k}", item)
        elif isinstance(value, (str, type(None))):
            pass
        else:
            yield name, np.array(float(value))

    for field in dataclasses.fields(state):
        yield from walk(field.name, getattr(state, field.name))


def checksum(outputs):
    return sum(float(np.sum(np.asarray(v, dtype=np.float64))) for v in outputs.values())


def view(array):
    types = {
        "float64": pk.double,
        "float32": pk.float,
        "int32": pk.int32,
        "int64": pk.int64,
        "uint8": pk.uint8,
        "int8": pk.int8,
        "uint32": pk.uint32,
    }
    v = pk.View(list(array.shape), types[array.dtype.name])
    v.data[...] = array
    return v


def main(module):
    parser = argparse.ArgumentParser(description=module["__doc__"])
    parser.add_argument("--size", default="small", choices=module["SIZES"])
    args = parser.parse_args()
    state = module["setup"](module["SIZES"][args.size])
    start = perf_counter()
    module["run"](state)
    seconds = perf_counter() - start
    module["check"](state)
    print(
        module["__file__"].rsplit("/")[-1], seconds, checksum(module["outputs"](state)), "correct"
    )
