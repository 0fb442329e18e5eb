"""Equalise: the contrast of a photograph by the histogram of its brightness.

Source: R. Gonzalez and R. Woods, "Digital Image Processing", section 3.3. One run makes a luma map,
a histogram by atomics, a scan over its 256 bins, a table, and a map that looks pixels up.
"""

import numpy as np
import pykokkos as pk

SIZES = {"small": 4_096, "default": 8_000_000, "large": 24_000_000}
BINS = 256


@pk.workunit
def luma(i, y, r, g, b):
    y[i] = (77 * r[i] + 150 * g[i] + 29 * b[i]) // 256


@pk.workunit
def clear(i, counts):
    counts[i] = 0


@pk.workunit
def histogram(i, counts, y):
    pk.atomic_add(counts, [y[i]], 1)


@pk.workunit
def cumulate(i, acc, last_pass, upto, counts):
    acc += counts[i]
    if last_pass:
        upto[i] = acc


@pk.workunit
def make_table(i, table, upto, pixels):
    table[i] = 255.0 * upto[i] / pixels + 0.5


@pk.workunit
def look_up(i, result, y, table):
    result[i] = table[y[i]]


def setup(size):
    rng = np.random.default_rng(20)
    planes = [pk.View([size], pk.uint8) for _ in range(3)]
    for plane in planes:
        plane.data[:] = np.clip(rng.normal(100.0, 25.0, size), 0, 255)
    return {"n": size, "planes": planes, "result": pk.View([size], pk.uint8)}


def run(state):
    n, (r, g, b) = state["n"], state["planes"]
    y = pk.View([n], pk.int32)
    counts, upto, table = (pk.View([BINS], pk.int32) for _ in range(3))
    pk.parallel_for(n, luma, y=y, r=r, g=g, b=b)
    pk.parallel_for(BINS, clear, counts=counts)
    pk.parallel_for(n, histogram, counts=counts, y=y)
    pk.parallel_scan(BINS, cumulate, upto=upto, counts=counts)
    pk.parallel_for(BINS, make_table, table=table, upto=upto, pixels=n)
    pk.parallel_for(n, look_up, result=state["result"], y=y, table=table)


def outputs(state):
    return {"result": np.array(state["result"].data)}


def check(state, size, runs):
    assert np.array(state["result"].data).max() == 255, "range"
