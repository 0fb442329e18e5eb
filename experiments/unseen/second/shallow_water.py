"""Shallow water on a staggered grid in a closed basin: gravity waves, Coriolis, drag and a dye.

Source: A. Arakawa, V. Lamb (1977), C grid; forward-backward in time; the dye goes upwind in flux form.
u lies on the left side of a cell, v below it; sides of the basin are walls, which nothing writes.
"""

import argparse
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pykokkos as pk

SIZES = {"small": 32, "default": 250, "large": 700}
STEPS, DT, G, DEPTH, CORIOLIS, DRAG = 6, 0.05, 1.0, 1.0, 0.1, 0.01


@pk.workunit
def face_u(i, j, flux, u, eta):
    flux[i][j] = u[i][j] * (DEPTH + 0.5 * (eta[i][j] + eta[i][j - 1]))


@pk.workunit
def face_v(i, j, flux, v, eta):
    flux[i][j] = v[i][j] * (DEPTH + 0.5 * (eta[i][j] + eta[i - 1][j]))


@pk.workunit
def continuity(i, j, new, eta, fu, fv):
    new[i][j] = eta[i][j] - DT * (fu[i][j + 1] - fu[i][j] + fv[i + 1][j] - fv[i][j])


@pk.workunit
def dye_u(i, j, out, fu, dye):
    out[i][j] = fu[i][j] * (dye[i][j - 1] if fu[i][j] > 0.0 else dye[i][j])


@pk.workunit
def dye_v(i, j, out, fv, dye):
    out[i][j] = fv[i][j] * (dye[i - 1][j] if fv[i][j] > 0.0 else dye[i][j])


@pk.workunit
def transport(i, j, new, dye, du, dv, eta, new_eta):
    content = dye[i][j] * (DEPTH + eta[i][j])
    content -= DT * (du[i][j + 1] - du[i][j] + dv[i + 1][j] - dv[i][j])
    new[i][j] = content / (DEPTH + new_eta[i][j])


@pk.workunit
def momentum_u(i, j, new, u, v, eta):
    across = 0.25 * (v[i][j] + v[i][j - 1] + v[i + 1][j] + v[i + 1][j - 1])
    push = CORIOLIS * across - G * (eta[i][j] - eta[i][j - 1])
    new[i][j] = (u[i][j] + DT * push) / (1.0 + DT * DRAG)


@pk.workunit
def momentum_v(i, j, new, v, u, eta):
    across = 0.25 * (u[i][j] + u[i - 1][j] + u[i][j + 1] + u[i - 1][j + 1])
    push = -CORIOLIS * across - G * (eta[i][j] - eta[i - 1][j])
    new[i][j] = (v[i][j] + DT * push) / (1.0 + DT * DRAG)


@pk.workunit
def energy(i, j, acc, eta, u, v):
    acc += 0.5 * G * eta[i][j] * eta[i][j] + 0.5 * DEPTH * (u[i][j] * u[i][j] + v[i][j] * v[i][j])


@pk.workunit
def amount(i, j, acc, dye, eta):
    acc += dye[i][j] * (DEPTH + eta[i][j])


@dataclass
class State:
    n: int
    fields: dict
    energy: float = 0.0
    amount: float = 0.0


def hill(n: int):
    y, x = np.mgrid[0:n, 0:n] / n
    return 0.2 * np.exp(-30 * ((x - 0.4) ** 2 + (y - 0.5) ** 2)), ((x + y) % 0.5 < 0.25).astype(
        float
    )


def setup(size: int) -> State:
    shapes = {
        "eta": [size, size],
        "dye": [size, size],
        "u": [size, size + 1],
        "v": [size + 1, size],
    }
    fields = {k + s: pk.View(shape, pk.double) for k, shape in shapes.items() for s in ("", "2")}
    fields["eta"].data[:], fields["dye"].data[:] = hill(size)
    return State(size, fields)


def run(state: State) -> None:
    n, f = state.n, state.fields
    centre, inner_u = pk.MDRangePolicy([0, 0], [n, n]), pk.MDRangePolicy([0, 1], [n, n])
    inner_v = pk.MDRangePolicy([1, 0], [n, n])
    fu, du, fv, dv = (pk.View(shape, pk.double) for shape in ([n, n + 1],) * 2 + ([n + 1, n],) * 2)
    for _ in range(STEPS):
        pk.parallel_for(inner_u, face_u, flux=fu, u=f["u"], eta=f["eta"])
        pk.parallel_for(inner_v, face_v, flux=fv, v=f["v"], eta=f["eta"])
        pk.parallel_for(centre, continuity, new=f["eta2"], eta=f["eta"], fu=fu, fv=fv)
        pk.parallel_for(inner_u, dye_u, out=du, fu=fu, dye=f["dye"])
        pk.parallel_for(inner_v, dye_v, out=dv, fv=fv, dye=f["dye"])
        pk.parallel_for(
            centre,
            transport,
            new=f["dye2"],
            dye=f["dye"],
            du=du,
            dv=dv,
            eta=f["eta"],
            new_eta=f["eta2"],
        )
        pk.parallel_for(inner_u, momentum_u, new=f["u2"], u=f["u"], v=f["v"], eta=f["eta2"])
        pk.parallel_for(inner_v, momentum_v, new=f["v2"], v=f["v"], u=f["u2"], eta=f["eta2"])
        for name in ("eta", "dye", "u", "v"):
            f[name], f[name + "2"] = f[name + "2"], f[name]
    state.energy = pk.parallel_reduce(centre, energy, eta=f["eta"], u=f["u"], v=f["v"])
    state.amount = pk.parallel_reduce(centre, amount, dye=f["dye"], eta=f["eta"])


def outputs(state: State) -> dict[str, np.ndarray | float]:
    found = {name: np.array(state.fields[name].data) for name in ("eta", "dye", "u", "v")}
    return found | {"energy": float(state.energy), "amount": float(state.amount)}


def check(state: State, size: int, runs: int) -> None:
    """The waves against NumPy; water and dye are kept; the dye stays within its bounds."""
    eta, dye = hill(size)
    water, content = eta.sum(), np.sum(dye * (DEPTH + eta))
    u, v = np.zeros((size, size + 1)), np.zeros((size + 1, size))
    for _ in range(STEPS * runs):
        fu, fv = np.zeros_like(u), np.zeros_like(v)
        fu[:, 1:-1] = u[:, 1:-1] * (DEPTH + 0.5 * (eta[:, 1:] + eta[:, :-1]))
        fv[1:-1] = v[1:-1] * (DEPTH + 0.5 * (eta[1:] + eta[:-1]))
        eta = eta - DT * (np.diff(fu, axis=1) + np.diff(fv, axis=0))
        va = 0.25 * (v[:-1, 1:] + v[:-1, :-1] + v[1:, 1:] + v[1:, :-1])
        u[:, 1:-1] += DT * (CORIOLIS * va - G * np.diff(eta, axis=1))
        u /= 1.0 + DT * DRAG
        ua = 0.25 * (u[1:, :-1] + u[:-1, :-1] + u[1:, 1:] + u[:-1, 1:])
        v[1:-1] += DT * (-CORIOLIS * ua - G * np.diff(eta, axis=0))
        v /= 1.0 + DT * DRAG
    out = outputs(state)
    for name, values in {"eta": eta, "u": u, "v": v}.items():
        np.testing.assert_allclose(out[name], values, atol=1e-12, err_msg=name)
    np.testing.assert_allclose([out["eta"].sum(), out["amount"]], [water, content], rtol=1e-9)
    assert out["dye"].min() > -1e-12 and out["dye"].max() < 1.0 + 1e-12


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=lambda text: SIZES.get(text) or int(text), default="small")
    parser.add_argument("--runs", type=int, default=1)
    args = parser.parse_args()
    state, start = setup(args.size), perf_counter()
    for _ in range(args.runs):
        run(state)
    seconds = perf_counter() - start
    check(state, args.size, args.runs)
    print(f"shallow_water: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
