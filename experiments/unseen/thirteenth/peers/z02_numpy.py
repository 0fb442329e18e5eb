"""The condensate in plain NumPy: slices of the inside (the rim is 0), buffers that are kept."""

import numpy as np

LENGTH, DT_SHARE, OMEGA, STRENGTH, EVERY = 16.0, 0.2, 0.7, 120.0, 4


def solve(n, steps, noise):
    h = LENGTH / (n - 1)
    h2, dt = h * h, DT_SHARE * h * h
    axis = (np.arange(n) - 0.5 * (n - 1)) * h
    x2, y2 = axis * axis, (axis * axis)[:, None]
    pot = (0.5 * (x2 + 1.1 * y2))[1:-1, 1:-1]
    g = np.exp(-0.25 * (x2 + y2)) * (1.0 + noise)
    u, v = g * (1.0 + 0.3 * axis), g * 0.3 * axis[:, None]
    for x in (u, v):
        x[0] = x[-1] = 0.0
        x[:, 0] = x[:, -1] = 0.0
    a = (0.5 * axis / h)[1:-1]
    b = a[:, None]
    shape = (n - 2, n - 2)
    w, t, hu, hv, tu, tv = (np.empty(shape) for _ in range(6))
    norms, energies, spins = [], [], []

    def turn(x, out):
        np.subtract(x[2:, 1:-1], x[:-2, 1:-1], out=out)
        out *= a
        np.subtract(x[1:-1, 2:], x[1:-1, :-2], out=t)
        np.multiply(t, b, out=t)
        out -= t

    def hamilton(x, other, omega, out):
        np.add(x[2:, 1:-1], x[:-2, 1:-1], out=out)
        out += x[1:-1, 2:]
        out += x[1:-1, :-2]
        out *= -0.5 / h2
        np.add(w, 2.0 / h2, out=t)
        np.multiply(t, x[1:-1, 1:-1], out=t)
        out += t
        np.multiply(other, omega, out=t)
        out += t

    ui, vi = u[1:-1, 1:-1], v[1:-1, 1:-1]
    for step in range(steps):
        norms.append(float(np.vdot(u, u) + np.vdot(v, v)) * h2)
        by = 1.0 / np.sqrt(norms[-1])
        u *= by
        v *= by
        np.multiply(ui, ui, out=w)
        np.multiply(vi, vi, out=t)
        w += t
        w *= STRENGTH
        w += pot
        turn(u, tu)
        turn(v, tv)
        hamilton(u, tv, -OMEGA, hu)
        hamilton(v, tu, OMEGA, hv)
        if step % EVERY == EVERY - 1:
            energies.append(h2 * float(np.einsum("ij,ij", ui, hu) + np.einsum("ij,ij", vi, hv)))
            spins.append(h2 * float(np.einsum("ij,ij", ui, tv) - np.einsum("ij,ij", vi, tu)))
        hu *= dt
        hv *= dt
        ui -= hu
        vi -= hv
    return {
        "u": u,
        "v": v,
        "norms": np.array(norms),
        "energies": np.array(energies),
        "spins": np.array(spins),
    }


if __name__ == "__main__":
    from numpy_common import bench

    bench(lambda state: solve(state["n"], state["steps"], state["noise"]))
