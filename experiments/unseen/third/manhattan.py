"""Sums of absolute differences of patches of 32 pixels, in float32, and the nearest of many.

Source: C. Barnes et al., "PatchMatch" (2009), without its random search.
"""

from math import fabs

import numpy as np
import pykokkos as pk

SIZES = {"small": 40, "default": 3_000, "large": 15_000}
PIXELS, PATCHES = 32, 300


@pk.workunit
def normalise(i, patch, d: int):
    total: pk.float = 0.0
    for c in range(d):
        total += patch[i][c]
    for c in range(d):
        patch[i][c] = patch[i][c] / total


@pk.workunit
def match(i, place, patch, given, m: int, d: int):
    least: pk.float = 1e30
    at: int = -1
    for j in range(m):
        far: pk.float = 0.0
        for c in range(d):
            far += fabs(patch[i][c] - given[j][c])
        if far < least:
            least = far
            at = j
    place[i] = at


@pk.workunit
def first_half(i, acc, place, half: int):
    if place[i] < half:
        acc += 1


def setup(size):
    rng = np.random.default_rng(62)
    patch, given = pk.View([size, PIXELS], pk.float), pk.View([PATCHES, PIXELS], pk.float)
    patch.data[:] = rng.random((size, PIXELS)) + 0.1
    given.data[:] = rng.random((PATCHES, PIXELS))
    given.data[:] /= given.data.sum(axis=1, keepdims=True)
    return {
        "n": size,
        "patch": patch,
        "given": given,
        "place": pk.View([size], pk.int32),
        "half": 0,
    }


def run(state):
    n = state["n"]
    pk.parallel_for(n, normalise, patch=state["patch"], d=PIXELS)
    pk.parallel_for(
        n,
        match,
        place=state["place"],
        patch=state["patch"],
        given=state["given"],
        m=PATCHES,
        d=PIXELS,
    )
    state["half"] = int(pk.parallel_reduce(n, first_half, place=state["place"], half=PATCHES // 2))


def outputs(state):
    return {"place": np.array(state["place"].data), "half": state["half"]}


def check(state, size, runs):
    place = np.array(state["place"].data)
    assert state["half"] == (place < PATCHES // 2).sum()
    patch, given = np.array(state["patch"].data)[:50], np.array(state["given"].data)
    far = np.abs(patch[:, None] - given[None]).sum(axis=2)
    found = far[np.arange(len(patch)), place[:50]]
    np.testing.assert_allclose(found, far.min(axis=1), rtol=1e-5)
