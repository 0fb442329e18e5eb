# ruff: noqa: E501
"""The electrolyte in plain NumPy: slices, buffers that are kept, exponentials only where ions are."""

import numpy as np

ATOMS, INSIDE, WATER, SALT, OMEGA, TOLERANCE, EVERY = 12, 4.0, 78.5, 0.9, 0.85, 1e-6, 6
LENGTH, STERN, BLUR, CLAMP = 24.0, 1.4, 1.1, 12.0


def solve(n, most, atoms):
    h = LENGTH / (n - 1)
    h2 = h * h
    axis = np.arange(n) * h
    eps, ions, rho = np.full((n, n, n), WATER), np.full((n, n, n), SALT), np.zeros((n, n, n))
    for x, y, z, radius, charge in atoms:
        r2 = (axis - x)[:, None, None] ** 2 + (axis - y)[:, None] ** 2 + (axis - z) ** 2
        eps[r2 < radius * radius] = INSIDE
        ions[r2 < (radius + STERN) ** 2] = 0.0
        gauss = [np.exp(-((axis - c) ** 2) / BLUR**2) for c in (x, y, z)]
        rho += (charge * gauss[0])[:, None, None] * gauss[1][:, None] * gauss[2]

    def mean(a, b):
        return 2.0 * a * b / (a + b)

    fx = mean(eps[:-1, 1:-1, 1:-1], eps[1:, 1:-1, 1:-1])
    fy = mean(eps[1:-1, :-1, 1:-1], eps[1:-1, 1:, 1:-1])
    fz = mean(eps[1:-1, 1:-1, :-1], eps[1:-1, 1:-1, 1:])
    total = fx[1:] + fx[:-1] + fy[:, 1:] + fy[:, :-1] + fz[:, :, 1:] + fz[:, :, :-1]
    phi = np.zeros((n, n, n))
    inner = phi[1:-1, 1:-1, 1:-1]
    source, reach = h2 * rho[1:-1, 1:-1, 1:-1], h2 * ions[1:-1, 1:-1, 1:-1]
    r, t = np.empty_like(inner), np.empty_like(inner)
    up, down, dx, dy, dz = (
        np.empty_like(r),
        np.empty_like(r),
        np.empty_like(fx),
        np.empty_like(fy),
        np.empty_like(fz),
    )
    residuals = []
    for iteration in range(most):
        np.subtract(phi[1:, 1:-1, 1:-1], phi[:-1, 1:-1, 1:-1], out=dx)
        np.subtract(phi[1:-1, 1:, 1:-1], phi[1:-1, :-1, 1:-1], out=dy)
        np.subtract(phi[1:-1, 1:-1, 1:], phi[1:-1, 1:-1, :-1], out=dz)
        dx *= fx
        dy *= fy
        dz *= fz
        np.subtract(dx[1:], dx[:-1], out=r)
        r += dy[:, 1:]
        r -= dy[:, :-1]
        r += dz[:, :, 1:]
        r -= dz[:, :, :-1]
        np.clip(inner, -CLAMP, CLAMP, out=up)
        np.exp(up, out=up)
        np.divide(1.0, up, out=down)
        np.subtract(up, down, out=t)
        t *= reach
        t *= 0.5
        r += source
        r -= t
        up += down
        up *= reach
        up *= 0.5
        up += total
        np.divide(r, up, out=up)
        up *= OMEGA
        inner += up
        if iteration % EVERY == EVERY - 1:
            residuals.append(float(np.sqrt(np.vdot(r, r))))
            if residuals[-1] < TOLERANCE * residuals[0]:
                break
    return {
        "phi": phi,
        "residuals": np.array(residuals),
        "energy": np.array([0.5 * h * np.vdot(source, inner)]),
        "charge": np.array([h * t.sum()]),
    }


if __name__ == "__main__":
    from numpy_common import bench

    bench(lambda state: solve(state["n"], state["most"], state["atoms"]))
