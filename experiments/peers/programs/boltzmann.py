"""Boltzmann: one pass over the particles of a species, densities apart for each thread."""

from __future__ import annotations

import numpy as np

from experiments.peers.program import Outputs, State
from kernels.boltzmann import (
    BOX,
    CELLS,
    CHARGE_TO_MASS,
    DT,
    FIELD,
    LOSS,
    RATES,
    STEPS,
    initial,
)

KINDS = tuple(range(len(RATES)))
IMPULSES = tuple(ratio * FIELD * DT for ratio in CHARGE_TO_MASS)
TWO_PI = 6.283185307179586


def setup(size: int) -> State:
    """Places, velocities, seeds and densities of every species."""
    state = State(energy=np.zeros(len(KINDS)))
    for kind in KINDS:
        x, v, seed = initial(size, kind)
        for name, value in (("x", x), ("v", v), ("seed", seed), ("density", np.zeros(CELLS))):
            setattr(state, f"{name}{kind}", value)
    return state


def outputs(s: State) -> Outputs:
    """Read everything that lives on."""
    names = [f"{name}{kind}" for kind in KINDS for name in ("x", "v", "seed", "density")]
    energies = {f"energy{kind}": float(s.energy[kind]) for kind in KINDS}
    return {name: getattr(s, name) for name in names} | energies


def floor(size: int) -> int:
    """Places, velocities and seeds are read and written."""
    return 104 * len(KINDS) * STEPS * size


def species(s: State, kind: int):
    return [getattr(s, f"{name}{kind}") for name in ("x", "v", "seed", "density")]


def cpp(build):
    run_cpp = build("boltzmann", CELLS=CELLS, BOX=BOX, DT=DT, LOSS=LOSS)

    def run(s: State) -> None:
        for _ in range(STEPS):
            for kind in KINDS:
                x, v, seed, density = species(s, kind)
                energy = s.energy[kind : kind + 1]
                run_cpp(seed.size, x, v, seed, density, IMPULSES[kind], RATES[kind], energy)

    return run


def numba(njit):
    from math import cos, exp, sin, sqrt

    from numba import get_num_threads, prange, uint32

    @njit(parallel=False)
    def part(x, v, seed, impulse, rate, begin, end, density):
        density[:], energy = 0.0, 0.0
        for i in range(begin, end):
            v[0, i] += impulse
            for c in range(3):
                place = x[c, i] + DT * v[c, i]
                if place < 0.0:
                    place += BOX
                if place >= BOX:
                    place -= BOX
                x[c, i] = place
            s0 = uint32(seed[i] * uint32(1664525) + uint32(1013904223))
            s1 = uint32(s0 * uint32(1664525) + uint32(1013904223))
            s2 = uint32(s1 * uint32(1664525) + uint32(1013904223))
            seed[i] = s2
            speed = sqrt(v[0, i] * v[0, i] + v[1, i] * v[1, i] + v[2, i] * v[2, i])
            if s0 / 4294967296.0 < 1.0 - exp(-rate * DT * speed):
                mu = 1.0 - 2.0 * (s1 / 4294967296.0)
                phi = TWO_PI * (s2 / 4294967296.0)
                away = LOSS * speed * sqrt(1.0 - mu * mu)
                v[0, i], v[1, i] = away * cos(phi), away * sin(phi)
                v[2, i] = LOSS * speed * mu
            density[min(int(x[0, i] * (CELLS / BOX)), CELLS - 1)] += 1.0
            energy += 0.5 * (v[0, i] * v[0, i] + v[1, i] * v[1, i] + v[2, i] * v[2, i])
        return energy

    @njit
    def advance(x, v, seed, parts, impulse, rate):
        threads, n, energy = len(parts), seed.size, 0.0
        for k in prange(threads):
            begin, end = n * k // threads, n * (k + 1) // threads
            energy += part(x, v, seed, impulse, rate, begin, end, parts[k])
        return energy

    def run(s: State) -> None:
        parts = np.empty((get_num_threads(), CELLS))
        for _ in range(STEPS):
            for kind in KINDS:
                x, v, seed, density = species(s, kind)
                s.energy[kind] = advance(x, v, seed, parts, IMPULSES[kind], RATES[kind])
                density += parts.sum(axis=0)

    return run


def collide(xp, v, seed, rate):
    """Velocities and seeds after the collisions, by whole arrays."""
    u = []
    for _ in range(3):
        seed = seed * np.uint32(1664525) + np.uint32(1013904223)
        u.append(seed / 4294967296.0)
    speed = xp.sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2])
    hit = u[0] < 1.0 - xp.exp(-rate * DT * speed)
    mu, phi = 1.0 - 2.0 * u[1], TWO_PI * u[2]
    away = LOSS * speed * xp.sqrt(1.0 - mu * mu)
    after = xp.stack([away * xp.cos(phi), away * xp.sin(phi), LOSS * speed * mu])
    return xp.where(hit, after, v), seed


def numpy(np=np):
    def run(s: State) -> None:
        for _ in range(STEPS):
            for kind in KINDS:
                x, v, seed, density = species(s, kind)
                v[0] += IMPULSES[kind]
                x += DT * v
                x[x < 0.0] += BOX
                x[x >= BOX] -= BOX
                v[...], seed[...] = collide(np, v, seed, RATES[kind])
                cells = np.minimum((x[0] * (CELLS / BOX)).astype(np.int32), CELLS - 1)
                density += np.bincount(cells, minlength=CELLS)
                s.energy[kind] = 0.5 * np.vdot(v, v)

    return run


def jax():
    import jax.numpy as jnp
    from jax import jit

    @jit
    def advance(x, v, seed, density, impulse, rate):
        v = v.at[0].add(impulse)
        x = x + DT * v
        x = jnp.where(x < 0.0, x + BOX, x)
        x = jnp.where(x >= BOX, x - BOX, x)
        v, seed = collide(jnp, v, seed, rate)
        cells = jnp.minimum((x[0] * (CELLS / BOX)).astype(jnp.int32), CELLS - 1)
        return x, v, seed, density.at[cells].add(1.0), 0.5 * jnp.sum(v * v)

    def run(s: State) -> None:
        for _ in range(STEPS):
            energies = []
            for kind in KINDS:
                *new, energy = advance(*species(s, kind), IMPULSES[kind], RATES[kind])
                for name, value in zip(("x", "v", "seed", "density"), new, strict=True):
                    setattr(s, f"{name}{kind}", value)
                energies.append(energy)
            s.energy = jnp.stack(energies)

    return run
