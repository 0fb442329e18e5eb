"""Ising model: checkerboard Metropolis sweeps with a xorshift generator at every site.

int8 spins, uint32 generators, thresholds in fixed point; the temperature follows the magnetisation.
"""

from dataclasses import dataclass
import math
import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 64, "default": 600, "large": 4000}
SWEEPS, TEMPERATURE = 2, 2.5


@pk.workunit
def churn(i: int, j: int, s: pk.View2D[pk.uint32]):
    v: pk.uint32 = s[i][j]
    v ^= v << 13
    v ^= v >> 17
    v ^= v << 5
    s[i][j] = v


@pk.workunit
def neighbours(i: int, j: int, h: pk.View2D[pk.int8], spin: pk.View2D[pk.int8], n: int):
    up: int = i - 1 if i > 0 else n - 1
    down: int = i + 1 if i < n - 1 else 0
    left: int = j - 1 if j > 0 else n - 1
    right: int = j + 1 if j < n - 1 else 0
    h[i][j] = spin[up][j] + spin[down][j] + spin[i][left] + spin[i][right]


@pk.workunit
def cost(i: int, j: int, e: pk.View2D[pk.int8], spin: pk.View2D[pk.int8], h: pk.View2D[pk.int8]):
    e[i][j] = spin[i][j] * h[i][j]


@pk.workunit
def accept(
    i: int,
    j: int,
    flip: pk.View2D[pk.uint8],
    e: pk.View2D[pk.int8],
    s: pk.View2D[pk.uint32],
    table: pk.View1D[pk.uint32],
):
    """Energies fall always, and rise with a probability from the table."""
    flip[i][j] = 1 if e[i][j] <= 0 or s[i][j] < table[e[i][j]] else 0


@pk.workunit
def turn(i: int, j: int, spin: pk.View2D[pk.int8], flip: pk.View2D[pk.uint8], colour: int):
    if (i + j) % 2 == colour and flip[i][j] == 1:
        spin[i][j] = -spin[i][j]


@pk.workunit
def flips(i: int, j: int, acc: pk.Acc[pk.int64], flip: pk.View2D[pk.uint8], colour: int):
    if (i + j) % 2 == colour:
        acc += flip[i][j]


@pk.workunit
def magnetisation(i: int, j: int, acc: pk.Acc[pk.int64], spin: pk.View2D[pk.int8]):
    acc += spin[i][j]


@pk.workunit
def energy(i: int, j: int, acc: pk.Acc[pk.int64], e: pk.View2D[pk.int8]):
    acc += e[i][j]


@dataclass
class State:
    size: int
    spin: pk.View
    seeds: pk.View
    table: pk.View
    temperature: float = TEMPERATURE
    magnetisation: int = 0
    energy: int = 0
    flips: int = 0


def initial(n):
    rng = np.random.default_rng(6)
    spin = np.where(rng.random((n, n)) < 0.6, 1, -1).astype(np.int8)
    return spin, rng.integers(1, 2**32, (n, n), dtype=np.uint32)


def thresholds(temperature):
    return np.array(
        [min(2**32 - 1, int(2**32 * math.exp(-2.0 * e / temperature))) for e in range(5)], np.uint32
    )


def setup(n):
    spin, seeds, table = (
        pk.View([n, n], pk.int8),
        pk.View([n, n], pk.uint32),
        pk.View([5], pk.uint32),
    )
    spin.data[:], seeds.data[:] = initial(n)
    table.data[:] = thresholds(TEMPERATURE)
    return State(n, spin, seeds, table)


def run(s):
    n = s.size
    box = pk.MDRangePolicy([0, 0], [n, n])
    flipped = 0
    for _ in range(SWEEPS):
        h, e = pk.View([n, n], pk.int8), pk.View([n, n], pk.int8)
        flip = pk.View([n, n], pk.uint8)
        for colour in (0, 1):
            pk.parallel_for(box, churn, s=s.seeds)
            pk.parallel_for(box, neighbours, h=h, spin=s.spin, n=n)
            pk.parallel_for(box, cost, e=e, spin=s.spin, h=h)
            pk.parallel_for(box, accept, flip=flip, e=e, s=s.seeds, table=s.table)
            pk.parallel_for(box, turn, spin=s.spin, flip=flip, colour=colour)
            flipped = flipped + pk.parallel_reduce(box, flips, flip=flip, colour=colour)
        bonds = pk.parallel_reduce(box, energy, e=e)
        s.magnetisation = int(pk.parallel_reduce(box, magnetisation, spin=s.spin))
        s.temperature *= 0.99 if abs(s.magnetisation) < 0.5 * n * n else 1.01
        s.table.data[:] = thresholds(s.temperature)
    s.energy, s.flips = int(bonds), int(flipped)


def outputs(s):
    return {
        "spin": np.array(s.spin.data),
        "seeds": np.array(s.seeds.data),
        "m": s.magnetisation,
        "energy": s.energy,
        "flips": s.flips,
        "t": s.temperature,
    }


def check(s):
    n = s.size
    spin, v = initial(n)
    i, j = np.indices((n, n))
    temperature, flipped = TEMPERATURE, 0
    for _ in range(SWEEPS):
        for colour in (0, 1):
            v = v ^ v << np.uint32(13)
            v = v ^ v >> np.uint32(17)
            v = v ^ v << np.uint32(5)
            e = spin * sum(np.roll(spin, d, a) for d in (1, -1) for a in (0, 1))
            flip = ((e <= 0) | (v < thresholds(temperature)[np.maximum(e, 0)])) & (
                (i + j) % 2 == colour
            )
            spin = np.where(flip, -spin, spin)
            flipped += flip.sum()
        m = spin.sum(dtype=np.int64)
        temperature *= 0.99 if abs(m) < 0.5 * n * n else 1.01
    assert np.array_equal(s.spin.data, spin) and np.array_equal(s.seeds.data, v)
    assert (s.magnetisation, s.energy, s.flips) == (m, e.sum(dtype=np.int64), flipped)


if __name__ == "__main__":
    main(globals())
