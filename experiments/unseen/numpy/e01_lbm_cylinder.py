"""Lattice Boltzmann (D2Q9, BGK) flow past a cylinder in a periodic channel.

Collide, stream with np.roll, bounce back on the solid nodes and drive the flow
with a small body force.  Reports the velocity field, vorticity and drag.
"""

import numpy as np

SIZES = {"small": 24, "default": 120, "large": 448}
STEPS = 4

CX = np.array([0, 1, 0, -1, 0, 1, -1, -1, 1])
CY = np.array([0, 0, 1, 0, -1, 1, 1, -1, -1])
W = np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)
OPP = np.array([0, 3, 4, 1, 2, 7, 8, 5, 6])
TAU = 0.62
FORCE = 2.0e-5


def equilibrium(rho, ux, uy):
    cu = (CX[:, None, None] * ux[None] + CY[:, None, None] * uy[None]) * 3.0
    usq = 1.5 * (ux**2 + uy**2)
    return rho * W[:, None, None] * (1.0 + cu + 0.5 * cu**2 - usq)


def macroscopic(f):
    rho = f.sum(axis=0)
    ux = np.einsum("i,ixy->xy", CX, f) / rho
    uy = np.einsum("i,ixy->xy", CY, f) / rho
    return rho, ux, uy


def make(n, seed=1):
    rng = np.random.default_rng(seed)
    ny, nx = n, 2 * n
    y, x = np.mgrid[0:ny, 0:nx]
    solid = (x - nx // 4) ** 2 + (y - ny // 2) ** 2 < (n / 9.0) ** 2
    solid[0, :] = True
    solid[-1, :] = True
    profile = 0.05 * 4.0 * y * (ny - 1 - y) / (ny - 1.0) ** 2
    ux = profile * (1.0 + 0.02 * rng.standard_normal((ny, nx)))
    ux[solid] = 0.0
    uy = np.zeros_like(ux)
    f = equilibrium(np.ones((ny, nx)), ux, uy)
    return {"f": f, "solid": solid}


def step(f, solid):
    for i in range(9):
        f[i] = np.roll(f[i], (CY[i], CX[i]), axis=(0, 1))

    # populations sitting on solid nodes get reversed after the collision
    boundary = f[:, solid]
    drag = 2.0 * np.sum(CX[:, None] * boundary)
    reflected = boundary[OPP, :]

    rho, ux, uy = macroscopic(f)
    ux += FORCE * TAU / rho
    ux[solid] = 0
    uy[solid] = 0

    feq = equilibrium(rho, ux, uy)
    f += -(1.0 / TAU) * (f - feq)
    f[:, solid] = reflected
    return ux, uy, drag


def run(state):
    f, solid = state["f"], state["solid"]
    drags = []
    for _ in range(STEPS):
        ux, uy, drag = step(f, solid)
        drags.append(drag)
    vort = (np.roll(uy, -1, axis=1) - np.roll(uy, 1, axis=1)) - (
        np.roll(ux, -1, axis=0) - np.roll(ux, 1, axis=0)
    )
    vort[solid] = 0.0
    speed = np.sqrt(ux**2 + uy**2)
    return {
        "ux": ux,
        "uy": uy,
        "vort": 0.5 * vort,
        "vmax": speed.max(),
        "mean_profile": speed.mean(axis=1),
        "mass": f.sum(),
        "drag": np.array(drags),
    }


def check(result):
    keys = ["ux", "uy", "vort", "vmax", "mean_profile", "mass", "drag"]
    return [result[k] for k in keys]
