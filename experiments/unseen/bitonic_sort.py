"""Bitonic sort: keys with their numbers, by K. Batcher's network (1968).

One run makes log2(n) (log2(n) + 1) / 2 launches of a map that compares and swaps, whose distances
change from launch to launch, after a map that makes keys from the data.
"""

import numpy as np
import pykokkos as pk

SIZES = {"small": 1 << 8, "default": 1 << 17, "large": 1 << 20}


@pk.workunit
def start(i, key, number, x):
    key[i] = x[i]
    number[i] = i


@pk.workunit
def exchange(i, key, number, distance, block):
    low: int = 2 * distance * (i // distance) + i % distance
    high: int = low + distance
    up: int = (low // block) % 2
    if (key[low] > key[high] and up == 0) or (key[low] < key[high] and up == 1):
        value: float = key[low]
        key[low] = key[high]
        key[high] = value
        place: int = number[low]
        number[low] = number[high]
        number[high] = place


def setup(size):
    rng = np.random.default_rng(17)
    x, key = (pk.View([size], pk.double) for _ in range(2))
    x.data[:] = rng.permutation(size)
    return {"n": size, "x": x, "key": key, "number": pk.View([size], pk.int32)}


def run(state):
    n, key, number = state["n"], state["key"], state["number"]
    pk.parallel_for(n, start, key=key, number=number, x=state["x"])
    block = 2
    while block <= n:
        distance = block // 2
        while distance:
            pk.parallel_for(
                n // 2, exchange, key=key, number=number, distance=distance, block=block
            )
            distance //= 2
        block *= 2


def outputs(state):
    return {"key": np.array(state["key"].data), "number": np.array(state["number"].data)}


def check(state, size, runs):
    assert (np.diff(np.array(state["key"].data)) >= 0).all(), "order"
