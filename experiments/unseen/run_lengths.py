"""Run lengths: a scan line image as runs of equal pixels.

Source: run-length encoding by prefix sums, as in A. Balevic, "Parallel Variable-Length Encoding on
GPGPUs" (2009). One run makes a threshold map, one that marks where runs begin, a scan that numbers
them, and 2 maps that scatter begins and values.
"""

import numpy as np
import pykokkos as pk

SIZES = {"small": 2_000, "default": 8_000_000, "large": 32_000_000}


@pk.workunit
def threshold(i, bit, x, level):
    bit[i] = 0
    if x[i] > level:
        bit[i] = 1


@pk.workunit
def begins(i, first, bit):
    first[i] = 0
    if i == 0:
        first[i] = 1
    elif bit[i] != bit[i - 1]:
        first[i] = 1


@pk.workunit
def number(i, acc, last_pass, place, first):
    acc += first[i]
    if last_pass:
        place[i] = acc


@pk.workunit
def note_begin(i, begin, place, first):
    if first[i] == 1:
        begin[place[i] - 1] = i


@pk.workunit
def note_value(i, value, bit, place, first):
    if first[i] == 1:
        value[place[i] - 1] = bit[i]


def setup(size):
    rng = np.random.default_rng(23)
    x = pk.View([size], pk.float)
    x.data[:] = np.sin(np.arange(size) / 7.0) + rng.normal(0.0, 0.1, size)
    begin, value = (pk.View([size], pk.int32) for _ in range(2))
    return {"n": size, "x": x, "begin": begin, "value": value, "count": 0}


def run(state):
    n = state["n"]
    bit, first, place = (pk.View([n], pk.int32) for _ in range(3))
    pk.parallel_for(n, threshold, bit=bit, x=state["x"], level=0.2)
    pk.parallel_for(n, begins, first=first, bit=bit)
    count = pk.parallel_scan(n, number, place=place, first=first)
    pk.parallel_for(n, note_begin, begin=state["begin"], place=place, first=first)
    pk.parallel_for(n, note_value, value=state["value"], bit=bit, place=place, first=first)
    state["count"] = int(count)


def outputs(state):
    count = state["count"]
    return {name: np.array(state[name].data)[:count] for name in ("begin", "value")}


def check(state, size, runs):
    value = np.array(state["value"].data)[: state["count"]]
    assert (value[1:] != value[:-1]).all(), "runs alternate"
