"""A wildfire on a grid of vegetation, in single precision.

Each cell has fuel, moisture and heat, and is untouched, burning or burnt. A step releases heat
where it burns, spreads it by diffusion and wind, dries, ignites, consumes fuel, and counts what
burns; the fire is followed until it is out or the steps are done.
"""

from dataclasses import dataclass, field

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 40, "default": 400, "large": 2_400}
DIFFUSION, WIND_X, WIND_Y, COOLING = 0.125, 0.1875, 0.0625, 0.03125
DRYING, KINDLING, WETNESS, BURNING, HEATING, LEAST = 0.02, 0.4, 0.8, 0.06, 8.0, 0.05


@pk.workunit
def restore(i: int, j: int, now: pk.View2D[pk.float], before: pk.View2D[pk.float]):
    now[i][j] = before[i][j]


@pk.workunit
def cold(i: int, j: int, heat: pk.View2D[pk.float], other: pk.View2D[pk.float]):
    heat[i][j] = 0.0
    other[i][j] = 0.0


@pk.workunit
def untouched(i: int, j: int, phase: pk.View2D[pk.uint8], match: pk.View2D[pk.uint8]):
    phase[i][j] = match[i][j]


@pk.workunit
def burn(
    i: int,
    j: int,
    loss: pk.View2D[pk.float],
    fuel: pk.View2D[pk.float],
    phase: pk.View2D[pk.uint8],
    rate: pk.float,
):
    if phase[i][j] == 1:
        loss[i][j] = rate * fuel[i][j]
    else:
        loss[i][j] = 0.0


@pk.workunit
def conduct(i: int, j: int, flux: pk.View2D[pk.float], heat: pk.View2D[pk.float], k: pk.float):
    flux[i][j] = k * (
        (heat[i - 1][j] + heat[i + 1][j]) + (heat[i][j - 1] + heat[i][j + 1]) - 4 * heat[i][j]
    )


@pk.workunit
def blow(
    i: int, j: int, flux: pk.View2D[pk.float], heat: pk.View2D[pk.float], wx: pk.float, wy: pk.float
):
    flux[i][j] += wx * (heat[i][j - 1] - heat[i][j]) + wy * (heat[i - 1][j] - heat[i][j])


@pk.workunit
def warm(
    i: int,
    j: int,
    after: pk.View2D[pk.float],
    heat: pk.View2D[pk.float],
    flux: pk.View2D[pk.float],
    loss: pk.View2D[pk.float],
    yields: pk.float,
    cooling: pk.float,
):
    after[i][j] = heat[i][j] + flux[i][j] + yields * loss[i][j] - cooling * heat[i][j]


@pk.workunit
def dry(i: int, j: int, wet: pk.View2D[pk.float], heat: pk.View2D[pk.float], rate: pk.float):
    w: pk.float = wet[i][j] - rate * heat[i][j]
    if w < 0:
        w = 0
    wet[i][j] = w


@pk.workunit
def consume(i: int, j: int, fuel: pk.View2D[pk.float], loss: pk.View2D[pk.float]):
    fuel[i][j] -= loss[i][j]


@pk.workunit
def ignite(
    i: int,
    j: int,
    phase: pk.View2D[pk.uint8],
    heat: pk.View2D[pk.float],
    wet: pk.View2D[pk.float],
    kindling: pk.float,
    wetness: pk.float,
):
    if phase[i][j] == 0 and heat[i][j] > kindling + wetness * wet[i][j]:
        phase[i][j] = 1


@pk.workunit
def expire(i: int, j: int, phase: pk.View2D[pk.uint8], fuel: pk.View2D[pk.float], least: pk.float):
    if phase[i][j] == 1 and fuel[i][j] < least:
        phase[i][j] = 2


@pk.workunit
def count_burning(i: int, j: int, acc: pk.Acc[pk.int64], phase: pk.View2D[pk.uint8]):
    if phase[i][j] == 1:
        acc += 1


@dataclass
class State:
    """The vegetation before the fire, where it is lit; the fields; how many cells burnt when."""

    n: int
    steps: int
    fuel0: pk.View
    wet0: pk.View
    match: pk.View
    fuel: pk.View
    wet: pk.View
    heat: pk.View
    other: pk.View
    phase: pk.View
    burning: list = field(default_factory=list)


def setup(n: int) -> State:
    rng = np.random.default_rng(103)
    fuel0, wet0, fuel, wet, heat, other = (pk.View([n, n], pk.float) for _ in range(6))
    match, phase = (pk.View([n, n], pk.uint8) for _ in range(2))
    fuel0.data[:] = rng.uniform(0.5, 1.5, (n, n))
    wet0.data[:] = rng.uniform(0.0, 0.5, (n, n))
    match.data[:] = rng.random((n, n)) < 0.02
    steps = 20 if n <= 100 else 8
    return State(n, steps, fuel0, wet0, match, fuel, wet, heat, other, phase)


def run(state: State) -> None:
    n, fuel, wet, phase = state.n, state.fuel, state.wet, state.phase
    heat, after = state.heat, state.other
    loss, flux = (pk.View([n, n], pk.float) for _ in range(2))
    cells = pk.MDRangePolicy([0, 0], [n, n])
    inner = pk.MDRangePolicy([1, 1], [n - 1, n - 1])
    pk.parallel_for(cells, restore, now=fuel, before=state.fuel0)
    pk.parallel_for(cells, restore, now=wet, before=state.wet0)
    pk.parallel_for(cells, cold, heat=heat, other=after)
    pk.parallel_for(cells, untouched, phase=phase, match=state.match)
    state.burning = []
    for _ in range(state.steps):
        pk.parallel_for(cells, burn, loss=loss, fuel=fuel, phase=phase, rate=BURNING)
        pk.parallel_for(inner, conduct, flux=flux, heat=heat, k=DIFFUSION)
        pk.parallel_for(inner, blow, flux=flux, heat=heat, wx=WIND_X, wy=WIND_Y)
        pk.parallel_for(
            inner,
            warm,
            after=after,
            heat=heat,
            flux=flux,
            loss=loss,
            yields=HEATING,
            cooling=COOLING,
        )
        pk.parallel_for(cells, consume, fuel=fuel, loss=loss)
        pk.parallel_for(cells, dry, wet=wet, heat=after, rate=DRYING)
        pk.parallel_for(
            cells, ignite, phase=phase, heat=after, wet=wet, kindling=KINDLING, wetness=WETNESS
        )
        pk.parallel_for(cells, expire, phase=phase, fuel=fuel, least=LEAST)
        burning = pk.parallel_reduce(cells, count_burning, phase=phase)
        state.burning.append(int(burning))
        heat, after = after, heat
        if burning == 0:
            break
    state.heat, state.other = heat, after


def outputs(state: State) -> dict:
    return {
        "fuel": np.array(state.fuel.data),
        "wet": np.array(state.wet.data),
        "heat": np.array(state.heat.data),
        "phase": np.array(state.phase.data),
        "burning": np.array(state.burning, dtype=float),
    }


def check(state: State, n: int, runs: int = 1) -> None:
    fresh, f = setup(n), np.float32
    fuel, wet = np.array(fresh.fuel0.data), np.array(fresh.wet0.data)
    phase, heat = np.array(fresh.match.data), np.zeros((n, n), f)
    burning, inner = [], np.s_[1:-1, 1:-1]
    for _ in range(fresh.steps):
        loss = np.where(phase == 1, f(BURNING) * fuel, f(0))
        u, d, l, r, c = (
            heat[:-2, 1:-1],
            heat[2:, 1:-1],
            heat[1:-1, :-2],
            heat[1:-1, 2:],
            heat[inner],
        )
        flux = f(DIFFUSION) * ((u + d) + (l + r) - f(4) * c)
        flux = flux + (f(WIND_X) * (l - c) + f(WIND_Y) * (u - c))
        after = np.zeros_like(heat)
        after[inner] = c + flux + f(HEATING) * loss[inner] - f(COOLING) * c
        heat = after
        fuel = fuel - loss
        wet = np.maximum(wet - f(DRYING) * heat, f(0))
        phase[(phase == 0) & (heat > f(KINDLING) + f(WETNESS) * wet)] = 1
        phase[(phase == 1) & (fuel < f(LEAST))] = 2
        burning.append(np.count_nonzero(phase == 1))
    out = outputs(state)
    np.testing.assert_array_equal(out["phase"], phase)
    np.testing.assert_array_equal(out["burning"], burning)
    for name, value in (("fuel", fuel), ("wet", wet), ("heat", heat)):
        np.testing.assert_allclose(out[name], value, rtol=1e-5, atol=1e-6, err_msg=name)


if __name__ == "__main__":
    main(globals())
