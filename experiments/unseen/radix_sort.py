"""Radix sort: 32-bit keys with their numbers, bit after bit.

Source: G. Blelloch, "Prefix Sums and Their Applications" (1990), split. A bit makes a map for its
flags, a scan, a map for the places and 2 that scatter.
"""

import numpy as np
import pykokkos as pk

SIZES = {"small": 1_000, "default": 2_000_000, "large": 8_000_000}
BITS = 4


@pk.workunit
def flag(i, zero, key, bit):
    zero[i] = 1 - (key[i] >> bit) % 2


@pk.workunit
def count_before(i, acc, last_pass, before, zero):
    acc += zero[i]
    if last_pass:
        before[i] = acc


@pk.workunit
def find_place(i, place, zero, before, zeros):
    place[i] = before[i] - 1
    if zero[i] == 0:
        place[i] = zeros + i - before[i]


@pk.workunit
def move(i, target, source, place):
    target[place[i]] = source[i]


@pk.workunit
def copy(i, target, source):
    target[i] = source[i]


@pk.workunit
def count_up(i, target):
    target[i] = i


def setup(size):
    rng = np.random.default_rng(24)
    given = pk.View([size], pk.int32)
    given.data[:] = rng.integers(0, 1 << 30, size)
    return {"n": size, "given": given, "sorted": [pk.View([size], pk.int32) for _ in range(4)]}


def run(state):
    n, (key, number, key2, number2) = state["n"], state["sorted"]
    pk.parallel_for(n, copy, target=key, source=state["given"])
    pk.parallel_for(n, count_up, target=number)
    zero, before, place = (pk.View([n], pk.int32) for _ in range(3))
    for bit in range(BITS):
        pk.parallel_for(n, flag, zero=zero, key=key, bit=bit)
        zeros = pk.parallel_scan(n, count_before, before=before, zero=zero)
        pk.parallel_for(n, find_place, place=place, zero=zero, before=before, zeros=zeros)
        pk.parallel_for(n, move, target=key2, source=key, place=place)
        pk.parallel_for(n, move, target=number2, source=number, place=place)
        key, number, key2, number2 = key2, number2, key, number
    state["sorted"] = [key, number, key2, number2]


def outputs(state):
    key, number = state["sorted"][:2]
    return {"key": np.array(key.data), "number": np.array(number.data)}


def check(state, size, runs):
    low = np.array(state["sorted"][0].data) % (1 << BITS)
    assert (np.diff(low) >= 0).all(), "order"
