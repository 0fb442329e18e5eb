"""Boltzmann: electrons and ions advected in a field, colliding with a background gas.

Source: Monte Carlo collisions by the null-collision idea, see C. Birdsall, "Particle-in-cell
charged-particle simulations, plus Monte Carlo collisions" (1991); random numbers come from one
32-bit linear congruential generator a particle (Numerical Recipes' constants), so every run is
reproducible.

One run makes STEPS steps. A step makes 23 launches for each of 2 species: push 1, move 3, wrap 3,
draws 6, speed 1, chance 1, hit 1, angles 2, scatter 3, deposit 1 and 1 reduction. Unfused they
move some 430 bytes a particle; 8 temporaries a species die with the step.
"""

import argparse
from dataclasses import dataclass, field
from math import cos, exp, sin, sqrt
from time import perf_counter

import numpy as np
import pykokkos as pk

SIZES = {"small": 2_000, "default": 2_000_000, "large": 8_000_000, "gpu": 32_000_000}
STEPS = 1
BOX, CELLS, DT, FIELD, LOSS = 1.0, 4096, 0.01, 2.0, 0.98
CHARGE_TO_MASS = (-1.0, 0.01)
RATES = (12.0, 30.0)


@pk.workunit
def push(i, v, impulse):
    v[i] += impulse


@pk.workunit
def move(i, x, v, dt):
    x[i] += dt * v[i]


@pk.workunit
def wrap(i, x, box):
    if x[i] < 0.0:
        x[i] += box
    if x[i] >= box:
        x[i] -= box


@pk.workunit
def shuffle(i, seed):
    """One step of the particle's own generator, modulo 2^32."""
    seed[i] = seed[i] * 1664525 + 1013904223


@pk.workunit
def uniform(i, u, seed):
    u[i] = seed[i] / 4294967296.0


@pk.workunit
def speed(i, s, vx, vy, vz):
    s[i] = sqrt(vx[i] * vx[i] + vy[i] * vy[i] + vz[i] * vz[i])


@pk.workunit
def chance(i, p, s, rate, dt):
    p[i] = 1.0 - exp(-rate * dt * s[i])


@pk.workunit
def decide(i, hit, u, p):
    hit[i] = 0
    if u[i] < p[i]:
        hit[i] = 1


@pk.workunit
def polar(i, mu, u):
    mu[i] = 1.0 - 2.0 * u[i]


@pk.workunit
def azimuth(i, phi, u):
    phi[i] = 6.283185307179586 * u[i]


@pk.workunit
def scatter_x(i, vx, hit, s, mu, phi, loss):
    if hit[i] == 1:
        vx[i] = loss * s[i] * sqrt(1.0 - mu[i] * mu[i]) * cos(phi[i])


@pk.workunit
def scatter_y(i, vy, hit, s, mu, phi, loss):
    if hit[i] == 1:
        vy[i] = loss * s[i] * sqrt(1.0 - mu[i] * mu[i]) * sin(phi[i])


@pk.workunit
def scatter_z(i, vz, hit, s, mu, loss):
    if hit[i] == 1:
        vz[i] = loss * s[i] * mu[i]


@pk.workunit
def deposit(i, density, x, cells_per_length, last):
    cell: int = int(x[i] * cells_per_length)
    if cell > last:
        cell = last
    pk.atomic_add(density, [cell], 1.0)


@pk.workunit
def energy(i, acc, vx, vy, vz):
    acc += 0.5 * (vx[i] * vx[i] + vy[i] * vy[i] + vz[i] * vz[i])


@dataclass
class Species:
    """Particles of a kind: places, velocities, generators, and what is measured of them."""

    charge_to_mass: float
    rate: float
    x: list[pk.View]
    v: list[pk.View]
    seed: pk.View
    density: pk.View
    energy: float = 0.0


@dataclass
class State:
    """All species."""

    size: int
    species: list[Species] = field(default_factory=list)


def initial(size: int, kind: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return places, velocities (one row a component) and seeds of a species."""
    rng = np.random.default_rng((8, kind))
    x = rng.uniform(0.0, BOX, (3, size))
    v = rng.normal(0.0, 1.0, (3, size))
    return x, v, rng.integers(0, 2**32, size, dtype=np.uint32)


def components(values: np.ndarray) -> list[pk.View]:
    """Return a View a row."""
    views = [pk.View([values.shape[1]], pk.double) for _ in values]
    for view, row in zip(views, values, strict=True):
        view.data[:] = row
    return views


def setup(size: int) -> State:
    """Make `size` particles of each species."""
    state = State(size)
    for kind, (charge_to_mass, rate) in enumerate(zip(CHARGE_TO_MASS, RATES, strict=True)):
        x, v, numbers = initial(size, kind)
        seed, density = pk.View([size], pk.uint32), pk.View([CELLS], pk.double)
        seed.data[:] = numbers
        state.species.append(
            Species(charge_to_mass, rate, components(x), components(v), seed, density)
        )
    return state


def advect(n: int, species: Species) -> None:
    """Accelerate along x and move in the periodic box."""
    impulse = species.charge_to_mass * FIELD * DT
    pk.parallel_for("push", n, push, v=species.v[0], impulse=impulse)
    for x, v in zip(species.x, species.v, strict=True):
        pk.parallel_for("move", n, move, x=x, v=v, dt=DT)
        pk.parallel_for("wrap", n, wrap, x=x, box=BOX)


def draw(n: int, seed: pk.View) -> pk.View:
    """Return a uniform random number a particle."""
    u = pk.View([n], pk.double)
    pk.parallel_for("shuffle", n, shuffle, seed=seed)
    pk.parallel_for("uniform", n, uniform, u=u, seed=seed)
    return u


def collide(n: int, species: Species) -> None:
    """Let some particles hit the gas: they lose a little speed and fly off anywhere."""
    vx, vy, vz = species.v
    s, p, mu, phi = (pk.View([n], pk.double) for _ in range(4))
    hit = pk.View([n], pk.int32)
    pk.parallel_for("speed", n, speed, s=s, vx=vx, vy=vy, vz=vz)
    pk.parallel_for("chance", n, chance, p=p, s=s, rate=species.rate, dt=DT)
    pk.parallel_for("decide", n, decide, hit=hit, u=draw(n, species.seed), p=p)
    pk.parallel_for("polar", n, polar, mu=mu, u=draw(n, species.seed))
    pk.parallel_for("azimuth", n, azimuth, phi=phi, u=draw(n, species.seed))
    pk.parallel_for("scatter", n, scatter_x, vx=vx, hit=hit, s=s, mu=mu, phi=phi, loss=LOSS)
    pk.parallel_for("scatter", n, scatter_y, vy=vy, hit=hit, s=s, mu=mu, phi=phi, loss=LOSS)
    pk.parallel_for("scatter", n, scatter_z, vz=vz, hit=hit, s=s, mu=mu, loss=LOSS)


def measure(n: int, species: Species) -> None:
    """Add to the density along x and sum the kinetic energy."""
    pk.parallel_for(
        "deposit", n, deposit,
        density=species.density, x=species.x[0], cells_per_length=CELLS / BOX, last=CELLS - 1,
    )  # fmt: skip
    vx, vy, vz = species.v
    species.energy = pk.parallel_reduce("energy", n, energy, vx=vx, vy=vy, vz=vz)


def run(state: State) -> None:
    """Advance all species STEPS steps; densities add up."""
    for _ in range(STEPS):
        for species in state.species:
            advect(state.size, species)
            collide(state.size, species)
            measure(state.size, species)


def outputs(state: State) -> dict[str, np.ndarray | float]:
    """Read everything that lives on."""
    result: dict[str, np.ndarray | float] = {}
    for kind, species in enumerate(state.species):
        result[f"x{kind}"] = np.array([view.data for view in species.x])
        result[f"v{kind}"] = np.array([view.data for view in species.v])
        result[f"seed{kind}"] = np.array(species.seed.data)
        result[f"density{kind}"] = np.array(species.density.data)
        result[f"energy{kind}"] = float(species.energy)
    return result


def reference(size: int, runs: int) -> dict[str, np.ndarray | float]:
    """The same physics in NumPy, all components of all particles at once."""
    result: dict[str, np.ndarray | float] = {}
    for kind, (charge_to_mass, rate) in enumerate(zip(CHARGE_TO_MASS, RATES, strict=True)):
        x, v, seed = initial(size, kind)
        density = np.zeros(CELLS)
        for _ in range(runs * STEPS):
            v[0] += charge_to_mass * FIELD * DT
            x += DT * v
            x[x < 0.0] += BOX
            x[x >= BOX] -= BOX
            u = []
            for _ in range(3):
                seed = seed * np.uint32(1664525) + np.uint32(1013904223)
                u.append(seed / 2.0**32)
            s = np.linalg.norm(v, axis=0)
            hit = u[0] < -np.expm1(-rate * DT * s)
            mu, phi = 1.0 - 2.0 * u[1], 2.0 * np.pi * u[2]
            sine = np.sqrt(1.0 - mu * mu)
            away = LOSS * s * np.stack([sine * np.cos(phi), sine * np.sin(phi), mu])
            v = np.where(hit, away, v)
            cells = np.minimum((x[0] * (CELLS / BOX)).astype(np.int32), CELLS - 1)
            density += np.bincount(cells, minlength=CELLS)
        result |= {f"x{kind}": x, f"v{kind}": v, f"seed{kind}": seed, f"density{kind}": density}
        result[f"energy{kind}"] = 0.5 * float(np.sum(v * v)) if runs else 0.0
    return result


def check(state: State, size: int, runs: int) -> None:
    """Places and velocities take a few roundings a step: 1e-12 each is ample.

    Chances are 1e-9 that a rounding moves a particle over the edge of a cell: up to two counts of
    a density may differ. A hit that a rounding decides is as rare, and is let pass likewise.
    """
    actual, expected = outputs(state), reference(size, runs)
    atol = 1e-12 * (1 + runs * STEPS)
    for name, values in expected.items():
        if name.startswith("energy"):
            np.testing.assert_allclose(actual[name], values, rtol=1e-9, err_msg=name)
            continue
        wrong = np.count_nonzero(np.abs(actual[name] - values) > atol)
        assert wrong <= 2 * runs * (size >= 100_000), f"{name}: {wrong} elements differ"


def main() -> None:
    """Run and check from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=lambda text: SIZES.get(text) or int(text), default="small")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--space", default=None, help="an execution space, such as OpenMP")
    args = parser.parse_args()
    if args.space:
        pk.set_default_space(pk.ExecutionSpace(args.space))
    state = setup(args.size)
    start = perf_counter()
    for _ in range(args.runs):
        run(state)
    seconds = perf_counter() - start
    check(state, args.size, args.runs)
    print(f"boltzmann: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
