"""Resampling: one pass moves and weighs, another writes each particle's copies side by side."""

from __future__ import annotations

import numpy as np

from experiments.peers.program import Outputs, State
from kernels.resampling import BEACONS, DT, ERROR, ONE, STEERING, STEPS, initial, measurement

FACTOR, OFFSET = 1664525, 1013904223
SHARPNESS = -0.5 / (ERROR * ERROR)


def setup(size: int) -> State:
    """Particles, room for the chosen ones, generators and weights."""
    now, seed = initial(size)
    weight = np.zeros(size, np.int32)
    return State(now=now, then=np.zeros_like(now), seed=seed, weight=weight, time=0, track=[])


def outputs(s: State) -> Outputs:
    """Read the particles and the track."""
    values = dict(zip(("x", "y", "vx", "vy"), s.now, strict=True))
    return {**values, "track": np.array([list(map(float, place)) for place in s.track])}


def floor(size: int) -> int:
    """A step moves four numbers and a generator; it reads four numbers, and writes copies."""
    return (72 + 64) * STEPS * size


def following(s: State) -> tuple[list[float], float]:
    """What is measured next."""
    s.time += 1
    return measurement(s.time)


def cpp(build):
    places = {f"X{n}": x for n, (x, _) in enumerate(BEACONS)}
    places |= {f"Y{n}": y for n, (_, y) in enumerate(BEACONS)}
    run_cpp = build("resampling", DT=DT, STEERING=STEERING, ERROR=ERROR, ONE=ONE, **places)

    def run(s: State) -> None:
        for _ in range(STEPS):
            distances, offset = following(s)
            estimate = np.zeros(2)
            run_cpp(len(s.seed), s.now, s.then, s.seed, s.weight, *distances, offset, estimate)
            s.track.append(estimate)
            s.now, s.then = s.then, s.now

    return run


def numba(njit):
    from math import ceil, exp, sqrt

    from numba import get_num_threads, prange

    (x0, y0), (x1, y1), (x2, y2) = BEACONS

    @njit
    def weigh(now, seed, weight, d0, d1, d2, sums):
        parts = len(sums)
        for part in prange(parts):
            total, mean_x, mean_y = 0, 0.0, 0.0
            for i in range(len(seed) * part // parts, len(seed) * (part + 1) // parts):
                first = np.uint32(seed[i] * np.uint32(FACTOR) + np.uint32(OFFSET))
                second = np.uint32(first * np.uint32(FACTOR) + np.uint32(OFFSET))
                seed[i] = second
                now[2, i] += STEERING * (first / 4294967296.0 - 0.5)
                now[3, i] += STEERING * (second / 4294967296.0 - 0.5)
                now[0, i] += DT * now[2, i]
                now[1, i] += DT * now[3, i]
                x, y = now[0, i], now[1, i]
                o0 = sqrt((x - x0) * (x - x0) + (y - y0) * (y - y0)) - d0
                o1 = sqrt((x - x1) * (x - x1) + (y - y1) * (y - y1)) - d1
                o2 = sqrt((x - x2) * (x - x2) + (y - y2) * (y - y2)) - d2
                w = np.int32(ONE * exp(SHARPNESS * (o0 * o0 + o1 * o1 + o2 * o2)))
                weight[i] = w
                total += w
                mean_x += w * x
                mean_y += w * y
            sums[part, 0], sums[part, 1], sums[part, 2] = total, mean_x, mean_y

    @njit
    def copy(now, then, weight, offset, sums):
        n, parts = len(weight), len(sums)
        scale = n / sums[:, 0].sum()
        for part in prange(parts):
            upto = sums[:part, 0].sum()  # whole numbers below 2^53
            place = ceil(scale * upto - offset)
            for i in range(n * part // parts, n * (part + 1) // parts):
                if weight[i]:
                    upto += weight[i]
                    last = ceil(scale * upto - offset)
                    for target in range(place, last):
                        for field in range(4):
                            then[field, target] = now[field, i]
                    place = last

    def run(s: State) -> None:
        sums = np.zeros((get_num_threads(), 3))
        for _ in range(STEPS):
            distances, offset = following(s)
            weigh(s.now, s.seed, s.weight, *distances, sums)
            copy(s.now, s.then, s.weight, offset, sums)
            total, x, y = sums.sum(axis=0)
            s.track.append((x / total, y / total))
            s.now, s.then = s.then, s.now

    return run


def numpy(np=np):
    def run(s: State) -> None:
        n = len(s.seed)
        for _ in range(STEPS):
            distances, offset = following(s)
            for v in s.now[2:]:
                s.seed *= np.uint32(FACTOR)
                s.seed += np.uint32(OFFSET)
                v += STEERING * (s.seed / 4294967296.0 - 0.5)
            place = s.now[:2]
            place += DT * s.now[2:]
            total = np.zeros_like(place[0])
            for (x, y), measured in zip(BEACONS, distances, strict=True):
                dx, dy = place[0] - x, place[1] - y
                dx *= dx
                dy *= dy
                dx += dy
                off = np.sqrt(dx, out=dx)
                off -= measured
                off *= off
                total += off
            total *= SHARPNESS
            weight = np.exp(total, out=total)
            weight *= ONE
            upto = np.cumsum(weight.astype(np.int64))
            weight = weight.astype(np.int32).astype(np.float64)
            everything = int(upto[-1])
            s.track.append([np.dot(axis, weight) / everything for axis in place])
            end = np.ceil(n / everything * upto - offset).astype(np.int64)
            parent = np.searchsorted(end, np.arange(n), side="right")
            s.now = s.now[:, parent]

    return run


def jax():
    import jax.numpy as jnp
    from jax import jit

    @jit
    def step(now, seed, distances, offset):
        n = len(seed)
        first = seed * jnp.uint32(FACTOR) + jnp.uint32(OFFSET)
        second = first * jnp.uint32(FACTOR) + jnp.uint32(OFFSET)
        v = now[2:] + STEERING * (jnp.stack([first, second]) / 4294967296.0 - 0.5)
        place = now[:2] + DT * v
        off = sum(
            (jnp.sqrt((place[0] - x) ** 2 + (place[1] - y) ** 2) - distances[k]) ** 2
            for k, (x, y) in enumerate(BEACONS)
        )
        weight = (ONE * jnp.exp(SHARPNESS * off)).astype(jnp.int64)
        upto = jnp.cumsum(weight)
        end = jnp.ceil(n / upto[-1] * upto - offset).astype(jnp.int64)
        copies = jnp.diff(end, prepend=0)
        parent = jnp.repeat(jnp.arange(n), copies, total_repeat_length=n)
        return jnp.concatenate([place, v])[:, parent], second, place @ weight / upto[-1]

    def run(s: State) -> None:
        for _ in range(STEPS):
            distances, offset = following(s)
            s.now, s.seed, estimate = step(s.now, s.seed, jnp.array(distances), offset)
            s.track.append(estimate)

    return run
