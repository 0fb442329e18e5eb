"""Sinkhorn's iterations in plain NumPy: one buffer of exponents, reductions along its axes."""

import numpy as np

FIRST, LAST, FALL, TOLERANCE = 0.5, 0.02, 0.85, 1e-9


def solve(most, x, y, mass_x, mass_y):
    c = (x[:, :1] - y[:, 0]) ** 2 + (x[:, 1:] - y[:, 1]) ** 2
    f, g, m = np.zeros(len(x)), np.zeros(len(y)), np.empty_like(c)
    log_x, log_y = np.log(mass_x), np.log(mass_y)
    errors, eps = [], FIRST

    def sums(axis):
        np.subtract(g, c, out=m)
        np.add(m, f[:, None], out=m)
        np.divide(m, eps, out=m)
        top = m.max(axis=axis, keepdims=True)
        np.subtract(m, top, out=m)
        np.exp(m, out=m)
        return top.ravel(), m.sum(axis=axis)

    for _ in range(most):
        top, s = sums(1)
        errors.append(float(np.abs(s * np.exp(top) - mass_x).sum()))
        if eps == LAST and errors[-1] < TOLERANCE:
            break
        f += eps * (log_x - top - np.log(s))
        top, s = sums(0)
        g += eps * (log_y - top - np.log(s))
        eps = max(LAST, FALL * eps)
    np.subtract(g, c, out=m)
    np.add(m, f[:, None], out=m)
    np.divide(m, eps, out=m)
    np.exp(m, out=m)
    goal = (m @ y) / mass_x[:, None]
    return {
        "f": f,
        "g": g,
        "goal": goal,
        "errors": np.array(errors),
        "cost": np.array([np.vdot(m, c)]),
    }


if __name__ == "__main__":
    from numpy_common import bench

    names = ("most", "x", "y", "mass_x", "mass_y")
    bench(lambda state: solve(*(state[name] for name in names)))
