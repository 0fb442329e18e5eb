"""Photons in a turbid slab, by Monte Carlo with random numbers from counters.

A number is a hash of the photon's and the draw's. In each round the photons still alive go a free
path, leave or are absorbed in part (in fixed point, by depth), scatter by Henyey and Greenstein's
law, and weak ones play roulette; the host ends the rounds when few are left.
"""

from dataclasses import dataclass, field

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 1_000, "default": 50_000, "large": 1_100_000}
BINS, THICK, ALBEDO, G, WEAK, CHANCE, MOST, FEW = 50, 4.0, 0.9, 0.7, 0.35, 0.2, 14, 0.05
UNIT, MASK = 1 << 30, (1 << 32) - 1


@pk.workunit
def launch_photon(
    i: int,
    z: pk.View1D[pk.double],
    mu: pk.View1D[pk.double],
    w: pk.View1D[pk.double],
    alive: pk.View1D[pk.int32],
):
    z[i] = 0.0
    mu[i] = 1.0
    w[i] = 1.0
    alive[i] = 1


@pk.workunit
def clear(b: int, x: pk.View1D[pk.int64]):
    x[b] = 0


@pk.workunit
def bits(i: int, h: pk.View1D[pk.int64], counter: pk.int64, mask: pk.int64):
    x: pk.int64 = i
    x = (x * 747796405 + counter) & mask
    x = x ^ (x >> 16)
    x = (x * 2146121005) & mask
    x = x ^ (x >> 15)
    x = (x * 1845390219) & mask
    h[i] = x ^ (x >> 16)


@pk.workunit
def uniform(i: int, r: pk.View1D[pk.double], h: pk.View1D[pk.int64]):
    r[i] = (h[i] + 0.5) * 2.3283064365386963e-10


@pk.workunit
def free_path(i: int, s: pk.View1D[pk.double], r: pk.View1D[pk.double]):
    s[i] = -pk.log(r[i])


@pk.workunit
def move(
    i: int,
    z: pk.View1D[pk.double],
    mu: pk.View1D[pk.double],
    s: pk.View1D[pk.double],
    alive: pk.View1D[pk.int32],
):
    if alive[i] == 1:
        z[i] += mu[i] * s[i]


@pk.workunit
def leaves_above(
    i: int,
    acc: pk.Acc[pk.double],
    z: pk.View1D[pk.double],
    w: pk.View1D[pk.double],
    alive: pk.View1D[pk.int32],
):
    if alive[i] == 1 and z[i] < 0.0:
        acc += w[i]


@pk.workunit
def leaves_below(
    i: int,
    acc: pk.Acc[pk.double],
    z: pk.View1D[pk.double],
    w: pk.View1D[pk.double],
    alive: pk.View1D[pk.int32],
    thick: float,
):
    if alive[i] == 1 and z[i] > thick:
        acc += w[i]


@pk.workunit
def leave(i: int, alive: pk.View1D[pk.int32], z: pk.View1D[pk.double], thick: float):
    if z[i] < 0.0 or z[i] > thick:
        alive[i] = 0


@pk.workunit
def absorb(
    i: int,
    tally: pk.View1D[pk.int64],
    z: pk.View1D[pk.double],
    w: pk.View1D[pk.double],
    alive: pk.View1D[pk.int32],
    thick: float,
    albedo: float,
    bins: int,
    unit: float,
):
    if alive[i] == 1:
        b: int = min(int(z[i] / thick * bins), bins - 1)
        amount: pk.int64 = int(w[i] * (1.0 - albedo) * unit)
        pk.atomic_add(tally, [b], amount)


@pk.workunit
def fade(i: int, w: pk.View1D[pk.double], albedo: float):
    w[i] *= albedo


@pk.workunit
def deflection(i: int, c: pk.View1D[pk.double], r: pk.View1D[pk.double], g: float):
    t: float = (1.0 - g * g) / (1.0 - g + 2.0 * g * r[i])
    c[i] = (1.0 + g * g - t * t) / (2.0 * g)


@pk.workunit
def turn(i: int, mu: pk.View1D[pk.double], c: pk.View1D[pk.double], r: pk.View1D[pk.double]):
    side: float = pk.sqrt(max(0.0, (1.0 - mu[i] * mu[i]) * (1.0 - c[i] * c[i])))
    new: float = mu[i] * c[i] + side * pk.cos(6.283185307179586 * r[i])
    mu[i] = max(-1.0, min(1.0, new))


@pk.workunit
def roulette(
    i: int,
    w: pk.View1D[pk.double],
    alive: pk.View1D[pk.int32],
    r: pk.View1D[pk.double],
    weak: float,
    chance: float,
):
    if alive[i] == 1 and w[i] < weak:
        if r[i] < chance:
            w[i] /= chance
        else:
            alive[i] = 0


@pk.workunit
def count(i: int, acc: pk.Acc[pk.int64], alive: pk.View1D[pk.int32]):
    acc += alive[i]


@dataclass
class State:
    """The photons' depth, direction and weight; what is absorbed by depth; a row for each round."""

    n: int
    z: pk.View
    mu: pk.View
    w: pk.View
    alive: pk.View
    tally: pk.View
    rounds: list = field(default_factory=list)


def setup(n: int) -> State:
    z, mu, w = (pk.View([n], pk.double) for _ in range(3))
    return State(n, z, mu, w, pk.View([n], pk.int32), pk.View([BINS], pk.int64))


def run(state: State) -> None:
    n, z, mu, w, alive, tally = state.n, state.z, state.mu, state.w, state.alive, state.tally
    h = pk.View([n], pk.int64)
    r, s, c = (pk.View([n], pk.double) for _ in range(3))
    draws = 0

    def draw():
        nonlocal draws
        draws += 1
        pk.parallel_for(n, bits, h=h, counter=(draws * 2891336453) & MASK, mask=MASK)
        pk.parallel_for(n, uniform, r=r, h=h)

    state.rounds = []
    pk.parallel_for(n, launch_photon, z=z, mu=mu, w=w, alive=alive)
    pk.parallel_for(BINS, clear, x=tally)
    for _ in range(MOST):
        draw()
        pk.parallel_for(n, free_path, s=s, r=r)
        pk.parallel_for(n, move, z=z, mu=mu, s=s, alive=alive)
        up = pk.parallel_reduce(n, leaves_above, z=z, w=w, alive=alive)
        down = pk.parallel_reduce(n, leaves_below, z=z, w=w, alive=alive, thick=THICK)
        pk.parallel_for(n, leave, alive=alive, z=z, thick=THICK)
        pk.parallel_for(
            n,
            absorb,
            tally=tally,
            z=z,
            w=w,
            alive=alive,
            thick=THICK,
            albedo=ALBEDO,
            bins=BINS,
            unit=float(UNIT),
        )
        pk.parallel_for(n, fade, w=w, albedo=ALBEDO)
        draw()
        pk.parallel_for(n, deflection, c=c, r=r, g=G)
        draw()
        pk.parallel_for(n, turn, mu=mu, c=c, r=r)
        draw()
        pk.parallel_for(n, roulette, w=w, alive=alive, r=r, weak=WEAK, chance=CHANCE)
        left = int(pk.parallel_reduce(n, count, alive=alive))
        state.rounds.append([float(up) / n, float(down) / n, left / n])
        if left < FEW * n:
            break


def outputs(state: State) -> dict:
    return {
        "z": np.array(state.z.data),
        "mu": np.array(state.mu.data),
        "w": np.array(state.w.data),
        "tally": np.array(state.tally.data) / UNIT / state.n,
        "rounds": np.array(state.rounds),
    }


def check(state: State, n: int, runs: int = 1) -> None:
    z, mu, w, alive = np.zeros(n), np.ones(n), np.ones(n), np.ones(n, bool)
    tally, rounds, draws = np.zeros(BINS, np.int64), [], 0

    def draw():
        nonlocal draws
        draws += 1
        x = (np.arange(n) * 747796405 + ((draws * 2891336453) & MASK)) & MASK
        x ^= x >> 16
        x = (x * 2146121005) & MASK
        x ^= x >> 15
        x = (x * 1845390219) & MASK
        return ((x ^ (x >> 16)) + 0.5) / 2.0**32

    for _ in range(MOST):
        z = np.where(alive, z - mu * np.log(draw()), z)
        up, down = np.sum(w[alive & (z < 0.0)]), np.sum(w[alive & (z > THICK)])
        alive &= (z >= 0.0) & (z <= THICK)
        b = np.minimum((z[alive] / THICK * BINS).astype(int), BINS - 1)
        np.add.at(tally, b, (w[alive] * (1.0 - ALBEDO) * UNIT).astype(np.int64))
        w = w * ALBEDO
        t = (1.0 - G * G) / (1.0 - G + 2.0 * G * draw())
        c = (1.0 + G * G - t * t) / (2.0 * G)
        side = np.sqrt(np.maximum(0.0, (1.0 - mu * mu) * (1.0 - c * c)))
        mu = np.clip(mu * c + side * np.cos(2.0 * np.pi * draw()), -1.0, 1.0)
        r = draw()
        weak = alive & (w < WEAK)
        w = np.where(weak & (r < CHANCE), w / CHANCE, w)
        alive &= ~weak | (r < CHANCE)
        rounds.append([up / n, down / n, alive.mean()])
        if alive.sum() < FEW * n:
            break
    out = outputs(state)
    np.testing.assert_allclose(out["z"], z, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(out["mu"], mu, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(out["w"], w, rtol=1e-12)
    np.testing.assert_allclose(out["tally"], tally / UNIT / n, rtol=1e-6)
    np.testing.assert_allclose(out["rounds"], rounds, rtol=1e-10)


if __name__ == "__main__":
    main(globals())
