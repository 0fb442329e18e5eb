"""Hybrid Monte Carlo of a phi-four chain: leapfrog trajectories, accepted or rejected by the host.

Momenta come from hashes (Box and Muller). Sums of the action, the kinetic energy, the field and its
square are read for each trajectory; the step grows or shrinks with what was accepted.
"""

from dataclasses import dataclass, field
from math import exp

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 900, "default": 25_000, "large": 2_000_000}
MASS, COUPLING, LEAPS, TRAJECTORIES = 0.4, 0.1, 6, 6


@pk.function
def mix(x: pk.uint32) -> pk.uint32:
    x ^= x >> 16
    x *= 2146121005
    x ^= x >> 15
    x *= 2221713035
    x ^= x >> 16
    return x


@pk.workunit
def copy(i: int, out: pk.View1D[pk.double], x: pk.View1D[pk.double]):
    out[i] = x[i]


@pk.workunit
def draw(i: int, u: pk.View1D[pk.double], key: pk.uint32):
    h: pk.uint32 = i
    h = mix(mix(h + key) ^ key)
    u[i] = (h + 0.5) * 2.3283064365386963e-10


@pk.workunit
def momenta(i: int, p: pk.View1D[pk.double], u: pk.View1D[pk.double], v: pk.View1D[pk.double]):
    p[i] = pk.sqrt(-2.0 * pk.log(u[i])) * pk.cos(6.283185307179586 * v[i])


@pk.workunit
def force(i: int, f: pk.View1D[pk.double], q: pk.View1D[pk.double], n: int, m: float, c: float):
    left: float = q[i - 1] if i > 0 else q[n - 1]
    right: float = q[i + 1] if i < n - 1 else q[0]
    f[i] = left + right - (2.0 + m) * q[i] - 4.0 * c * q[i] * q[i] * q[i]


@pk.workunit
def move(i: int, x: pk.View1D[pk.double], v: pk.View1D[pk.double], h: float):
    x[i] += h * v[i]


@pk.workunit
def action(i: int, acc: pk.Acc[pk.double], q: pk.View1D[pk.double], n: int, m: float, c: float):
    right: float = q[i + 1] if i < n - 1 else q[0]
    d: float = right - q[i]
    s: float = q[i] * q[i]
    acc += 0.5 * d * d + 0.5 * m * s + c * s * s


@pk.workunit
def square(i: int, acc: pk.Acc[pk.double], x: pk.View1D[pk.double]):
    acc += x[i] * x[i]


@pk.workunit
def total(i: int, acc: pk.Acc[pk.double], x: pk.View1D[pk.double]):
    acc += x[i]


@dataclass
class State:
    n: int
    first: pk.View
    q: pk.View
    history: list = field(default_factory=list)


def setup(n: int) -> State:
    first, q = pk.View([n], pk.double), pk.View([n], pk.double)
    first.data[:] = np.random.default_rng(1405).normal(0.0, 0.7, n)
    return State(n, first, q)


def energy(n, q, p) -> float:
    potential = float(pk.parallel_reduce(n, action, q=q, n=n, m=MASS, c=COUPLING))
    return potential + 0.5 * float(pk.parallel_reduce(n, square, x=p))


def run(s: State) -> None:
    n, q, saved = s.n, s.q, pk.View([s.n], pk.double)
    p, f, u, v = (pk.View([n], pk.double) for _ in range(4))
    pk.parallel_for(n, copy, out=q, x=s.first)
    step, s.history = 0.8 * n**-0.25, []
    for k in range(TRAJECTORIES):
        pk.parallel_for(n, draw, u=u, key=2 * k + 1)
        pk.parallel_for(n, draw, u=v, key=2 * k + 2)
        pk.parallel_for(n, momenta, p=p, u=u, v=v)
        pk.parallel_for(n, copy, out=saved, x=q)
        before = energy(n, q, p)
        pk.parallel_for(n, force, f=f, q=q, n=n, m=MASS, c=COUPLING)
        for _ in range(LEAPS):
            pk.parallel_for(n, move, x=p, v=f, h=0.5 * step)
            pk.parallel_for(n, move, x=q, v=p, h=step)
            pk.parallel_for(n, force, f=f, q=q, n=n, m=MASS, c=COUPLING)
            pk.parallel_for(n, move, x=p, v=f, h=0.5 * step)
        change = energy(n, q, p) - before
        accepted = change < 0.0 or (0.37 * (k + 1)) % 1.0 < exp(-change)
        if not accepted:
            pk.parallel_for(n, copy, out=q, x=saved)
        step *= 1.1 if accepted else 0.7
        mean = float(pk.parallel_reduce(n, total, x=q)) / n
        spread = float(pk.parallel_reduce(n, square, x=q)) / n
        s.history.append([change, float(accepted), step, mean, spread])


def outputs(s: State) -> dict:
    return {"q": np.array(s.q.data), "history": np.array(s.history)}


def check(s: State, n: int) -> None:
    def mixed(x):
        for shift, factor in ((16, 2146121005), (15, 2221713035)):
            x = ((x ^ (x >> shift)) * factor) & 0xFFFFFFFF
        return x ^ (x >> 16)

    def uniform(key):
        return (mixed(mixed((np.arange(n) + key) & 0xFFFFFFFF) ^ key) + 0.5) / 2**32

    def pull(x):
        return np.roll(x, 1) + np.roll(x, -1) - (2 + MASS) * x - 4 * COUPLING * x**3

    q = np.array(setup(n).first.data)
    step = 0.8 * n**-0.25
    for k in range(TRAJECTORIES):
        p = np.sqrt(-2 * np.log(uniform(2 * k + 1))) * np.cos(2 * np.pi * uniform(2 * k + 2))
        x = q.copy()
        for _ in range(LEAPS):
            p += 0.5 * step * pull(x)
            x += step * p
            p += 0.5 * step * pull(x)
        q = x if s.history[k][1] else q
        step = s.history[k][2]
        assert -10.0 - 0.01 * n < s.history[k][0] < 5.0
    np.testing.assert_allclose(s.q.data, q, rtol=1e-8, atol=1e-10)


if __name__ == "__main__":
    main(globals())
