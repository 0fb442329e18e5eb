"""Lennard-Jones: velocity-Verlet steps of molecular dynamics with fixed neighbour lists.

Source: L. Verlet, "Computer Experiments on Classical Fluids" (1967), as in miniMD and ExaMiniMD
between two rebuilds of the lists; a periodic cubic crystal, slightly shaken, `size` atoms a side.

One run makes STEPS steps of 15 launches: half kicks 6, drift 3, wrap 3, forces 1, and 2
reductions (kinetic and potential energy). Forces read 26 neighbours through an index list (104
bytes an atom, plus gathers); the other launches move 37 doubles (296 bytes) an atom a step.
"""

import argparse
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pykokkos as pk

SIZES = {"small": 8, "default": 100, "large": 150, "gpu": 200}
STEPS = 1
SPACING, SHAKE, DT = 1.2, 0.05, 0.002
SHELL = [
    (x, y, z) for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (-1, 0, 1) if (x, y, z) != (0, 0, 0)
]


@pk.workunit
def kick(i: int, v: pk.View1D[pk.double], f: pk.View1D[pk.double], dt: float) -> None:
    v[i] += dt * f[i]


@pk.workunit
def drift(i: int, x: pk.View1D[pk.double], v: pk.View1D[pk.double], dt: float) -> None:
    x[i] += dt * v[i]


@pk.workunit
def wrap(i: int, x: pk.View1D[pk.double], box: float) -> None:
    """Bring a coordinate back into the periodic box."""
    if x[i] < 0.0:
        x[i] += box
    if x[i] >= box:
        x[i] -= box


@pk.workunit
def forces(
    i: int,
    fx: pk.View1D[pk.double],
    fy: pk.View1D[pk.double],
    fz: pk.View1D[pk.double],
    bond: pk.View1D[pk.double],
    x: pk.View1D[pk.double],
    y: pk.View1D[pk.double],
    z: pk.View1D[pk.double],
    neighbours: pk.View2D[pk.int32],
    count: int,
    box: float,
) -> None:
    """Force on an atom and half the energy of its pairs, nearest images."""
    half: float = 0.5 * box
    sum_x: float = 0.0
    sum_y: float = 0.0
    sum_z: float = 0.0
    sum_e: float = 0.0
    for k in range(count):
        j: int = neighbours[i][k]
        dx: float = x[i] - x[j]
        dy: float = y[i] - y[j]
        dz: float = z[i] - z[j]
        if dx > half:
            dx -= box
        if dx < -half:
            dx += box
        if dy > half:
            dy -= box
        if dy < -half:
            dy += box
        if dz > half:
            dz -= box
        if dz < -half:
            dz += box
        r2: float = 1.0 / (dx * dx + dy * dy + dz * dz)
        r6: float = r2 * r2 * r2
        pull: float = 24.0 * r2 * r6 * (2.0 * r6 - 1.0)
        sum_x += pull * dx
        sum_y += pull * dy
        sum_z += pull * dz
        sum_e += 2.0 * r6 * (r6 - 1.0)
    fx[i] = sum_x
    fy[i] = sum_y
    fz[i] = sum_z
    bond[i] = sum_e


@pk.workunit
def kinetic_energy(
    i: int,
    acc: pk.Acc[pk.double],
    vx: pk.View1D[pk.double],
    vy: pk.View1D[pk.double],
    vz: pk.View1D[pk.double],
) -> None:
    acc += 0.5 * (vx[i] * vx[i] + vy[i] * vy[i] + vz[i] * vz[i])


@pk.workunit
def total(i: int, acc: pk.Acc[pk.double], values: pk.View1D[pk.double]) -> None:
    acc += values[i]


@dataclass
class State:
    """Places, velocities and forces by component, the neighbour lists, and the energies."""

    atoms: int
    box: float
    x: list[pk.View]
    v: list[pk.View]
    f: list[pk.View]
    bond: pk.View
    neighbours: pk.View
    kinetic: float = 0.0
    potential: float = 0.0


def crystal(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return shaken lattice places and velocities, one row a component."""
    rng = np.random.default_rng(7)
    grid = np.indices((size, size, size)).reshape(3, -1)
    x = (SPACING * grid + rng.uniform(-SHAKE, SHAKE, grid.shape)) % (SPACING * size)
    v = rng.normal(0.0, 1.0, grid.shape)
    return x, v - v.mean(axis=1, keepdims=True)


def neighbour_lists(size: int) -> np.ndarray:
    """Return the 26 atoms around every atom of the lattice."""
    a, b, c = np.indices((size, size, size))
    columns = [
        (((a + p) % size * size + (b + q) % size) * size + (c + r) % size).ravel()
        for p, q, r in SHELL
    ]
    return np.stack(columns, axis=1).astype(np.int32)


def components(values: np.ndarray) -> list[pk.View]:
    """Return a View a row."""
    views = [pk.View([values.shape[1]], pk.double) for _ in values]
    for view, row in zip(views, values, strict=True):
        view.data[:] = row
    return views


def setup(size: int) -> State:
    """Make a shaken crystal and its first forces."""
    x, v = crystal(size)
    atoms = size**3
    bond, neighbours = pk.View([atoms], pk.double), pk.View([atoms, len(SHELL)], pk.int32)
    neighbours.data[:] = neighbour_lists(size)
    f = components(np.zeros_like(x))
    state = State(atoms, SPACING * size, components(x), components(v), f, bond, neighbours)
    update_forces(state)
    return state


def update_forces(state: State) -> None:
    """Compute forces and pair energies from the places."""
    (x, y, z), (fx, fy, fz) = state.x, state.f
    pk.parallel_for(
        "forces", state.atoms, forces,
        fx=fx, fy=fy, fz=fz, bond=state.bond, x=x, y=y, z=z,
        neighbours=state.neighbours, count=len(SHELL), box=state.box,
    )  # fmt: skip


def run(state: State) -> None:
    """Advance STEPS steps."""
    n = state.atoms
    for _ in range(STEPS):
        for x, v, f in zip(state.x, state.v, state.f, strict=True):
            pk.parallel_for("kick", n, kick, v=v, f=f, dt=0.5 * DT)
            pk.parallel_for("drift", n, drift, x=x, v=v, dt=DT)
            pk.parallel_for("wrap", n, wrap, x=x, box=state.box)
        update_forces(state)
        for v, f in zip(state.v, state.f, strict=True):
            pk.parallel_for("kick", n, kick, v=v, f=f, dt=0.5 * DT)
        vx, vy, vz = state.v
        state.kinetic = pk.parallel_reduce("kinetic", n, kinetic_energy, vx=vx, vy=vy, vz=vz)
        state.potential = pk.parallel_reduce("potential", n, total, values=state.bond)


def outputs(state: State) -> dict[str, np.ndarray | float]:
    """Read places, velocities and energies."""
    return {
        "x": np.array([view.data for view in state.x]),
        "v": np.array([view.data for view in state.v]),
        "kinetic": float(state.kinetic),
        "potential": float(state.potential),
    }


def pair_forces(x: np.ndarray, lists: np.ndarray, box: float) -> tuple[np.ndarray, float]:
    """Return forces and the potential energy, one neighbour of all atoms after the other."""
    f, energy = np.zeros_like(x), 0.0
    for column in lists.T:
        d = x - x[:, column]
        d -= box * np.rint(d / box)
        inverse2 = 1.0 / np.sum(d * d, axis=0)
        inverse6 = inverse2**3
        f += 24.0 * inverse2 * inverse6 * (2.0 * inverse6 - 1.0) * d
        energy += 2.0 * float(np.sum(inverse6 * (inverse6 - 1.0)))
    return f, energy


def reference(size: int, runs: int) -> dict[str, np.ndarray | float]:
    """Velocity Verlet in NumPy."""
    (x, v), lists, box = crystal(size), neighbour_lists(size), SPACING * size
    f, _ = pair_forces(x, lists, box)
    kinetic = potential = 0.0
    for _ in range(runs * STEPS):
        v += 0.5 * DT * f
        x = (x + DT * v) % box
        f, potential = pair_forces(x, lists, box)
        v += 0.5 * DT * f
        kinetic = 0.5 * float(np.sum(v * v))
    return {"x": x, "v": v, "kinetic": kinetic, "potential": potential}


def check(state: State, size: int, runs: int) -> None:
    """Atoms collide within about 1 unit of time (500 steps): errors stay near 1e-12 for 100.

    A place within such an error of the box's rim might lie on either side of it: none does.
    """
    actual, expected = outputs(state), reference(size, runs)
    for name in expected:
        np.testing.assert_allclose(actual[name], expected[name], rtol=1e-9, atol=1e-9, err_msg=name)


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
    print(f"lennard_jones: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
