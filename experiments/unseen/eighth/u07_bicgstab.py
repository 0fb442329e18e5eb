"""BiCGStab with Jacobi's preconditioner for convection-diffusion on a square, variable coefficients."""

from dataclasses import dataclass
import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 64, "default": 500, "large": 1500}
ITERATIONS, TOLERANCE = 6, 1e-10


@pk.workunit
def apply(
    i: int,
    j: int,
    y: pk.View2D[pk.double],
    x: pk.View2D[pk.double],
    d: pk.View2D[pk.double],
    wind: pk.View2D[pk.double],
):
    """Five points: diffusion, wind from the left and from below, and a sink in the diagonal."""
    y[i][j] = (
        d[i][j] * x[i][j]
        - x[i + 1][j]
        - x[i][j + 1]
        - (1.0 + wind[i][j]) * x[i - 1][j]
        - (1.0 + 0.5 * wind[i][j]) * x[i][j - 1]
    )


@pk.workunit
def precondition(
    i: int, j: int, y: pk.View2D[pk.double], x: pk.View2D[pk.double], d: pk.View2D[pk.double]
):
    y[i][j] = x[i][j] / d[i][j]


@pk.workunit
def dot(i: int, j: int, acc: pk.Acc[pk.double], x: pk.View2D[pk.double], y: pk.View2D[pk.double]):
    acc += x[i][j] * y[i][j]


@pk.workunit
def subtract(
    i: int,
    j: int,
    z: pk.View2D[pk.double],
    x: pk.View2D[pk.double],
    y: pk.View2D[pk.double],
    a: float,
):
    z[i][j] = x[i][j] - a * y[i][j]


@pk.workunit
def axpy(i: int, j: int, x: pk.View2D[pk.double], y: pk.View2D[pk.double], a: float):
    x[i][j] += a * y[i][j]


@pk.workunit
def direct(
    i: int,
    j: int,
    p: pk.View2D[pk.double],
    r: pk.View2D[pk.double],
    v: pk.View2D[pk.double],
    beta: float,
    omega: float,
):
    p[i][j] = r[i][j] + beta * (p[i][j] - omega * v[i][j])


@pk.workunit
def copy(i: int, j: int, y: pk.View2D[pk.double], x: pk.View2D[pk.double]):
    y[i][j] = x[i][j]


@pk.workunit
def zero(i: int, j: int, x: pk.View2D[pk.double]):
    x[i][j] = 0.0


@dataclass
class State:
    size: int
    b: pk.View
    d: pk.View
    wind: pk.View
    x: pk.View
    residual: float = 0.0
    iterations: int = 0


def problem(n):
    rng = np.random.default_rng(7)
    y, x = np.indices((n + 2, n + 2)) / (n + 1.0)
    wind = 0.5 + 0.5 * np.sin(5 * x) * np.cos(3 * y)
    d = 4.0 + 1.5 * wind + 0.01 + 0.3 * rng.random((n + 2, n + 2))
    b = np.zeros((n + 2, n + 2))
    b[1:-1, 1:-1] = rng.standard_normal((n, n))
    return b, d, wind


def setup(n):
    b, d, wind, x = (pk.View([n + 2, n + 2], pk.double) for _ in range(4))
    b.data[:], d.data[:], wind.data[:] = problem(n)
    return State(n, b, d, wind, x)


def run(s):
    n = s.size
    box = pk.MDRangePolicy([1, 1], [n + 1, n + 1])
    r, shadow, p, ph, v, u, uh, t = (pk.View([n + 2, n + 2], pk.double) for _ in range(8))
    inner = lambda x, y: float(pk.parallel_reduce(box, dot, x=x, y=y))
    pk.parallel_for(box, zero, x=s.x)
    pk.parallel_for(box, copy, y=r, x=s.b)
    pk.parallel_for(box, copy, y=shadow, x=r)
    pk.parallel_for(box, copy, y=p, x=r)
    rho = start = inner(r, r)
    for s.iterations in range(1, ITERATIONS + 1):
        pk.parallel_for(box, precondition, y=ph, x=p, d=s.d)
        pk.parallel_for(box, apply, y=v, x=ph, d=s.d, wind=s.wind)
        alpha = rho / inner(shadow, v)
        pk.parallel_for(box, subtract, z=u, x=r, y=v, a=alpha)
        pk.parallel_for(box, precondition, y=uh, x=u, d=s.d)
        pk.parallel_for(box, apply, y=t, x=uh, d=s.d, wind=s.wind)
        tu, tt = pk.parallel_reduce(box, dot, x=t, y=u), pk.parallel_reduce(box, dot, x=t, y=t)
        omega = float(tu) / float(tt)
        pk.parallel_for(box, axpy, x=s.x, y=ph, a=alpha)
        pk.parallel_for(box, axpy, x=s.x, y=uh, a=omega)
        pk.parallel_for(box, subtract, z=r, x=u, y=t, a=omega)
        norm, fresh = (
            pk.parallel_reduce(box, dot, x=r, y=r),
            pk.parallel_reduce(box, dot, x=shadow, y=r),
        )
        s.residual = (float(norm) / start) ** 0.5
        if s.residual < TOLERANCE:
            break
        beta = float(fresh) / rho * alpha / omega
        rho = float(fresh)
        pk.parallel_for(box, direct, p=p, r=r, v=v, beta=beta, omega=omega)


def outputs(s):
    return {"x": np.array(s.x.data), "residual": s.residual, "iterations": s.iterations}


def check(s):
    b, d, wind = problem(s.size)

    def A(x):
        y = np.zeros_like(x)
        y[1:-1, 1:-1] = (
            d[1:-1, 1:-1] * x[1:-1, 1:-1]
            - x[2:, 1:-1]
            - x[1:-1, 2:]
            - (1 + wind[1:-1, 1:-1]) * x[:-2, 1:-1]
            - (1 + 0.5 * wind[1:-1, 1:-1]) * x[1:-1, :-2]
        )
        return y

    x, r = 0 * b, b.copy()
    sh, p, rho, start = r.copy(), r.copy(), np.vdot(r, r), np.vdot(r, r)
    for _ in range(s.iterations):
        ph = p / d
        v = A(ph)
        alpha = rho / np.vdot(sh, v)
        u = r - alpha * v
        t = A(u / d)
        omega = np.vdot(t, u) / np.vdot(t, t)
        x = x + alpha * ph + omega * u / d
        r = u - omega * t
        fresh = np.vdot(sh, r)
        p = r + fresh / rho * alpha / omega * (p - omega * v)
        rho = fresh
    np.testing.assert_allclose(s.x.data, x, rtol=0, atol=1e-9)
    np.testing.assert_allclose(s.residual, np.sqrt(np.vdot(r, r) / start), rtol=1e-6)
    assert s.residual < 1.0


if __name__ == "__main__":
    main(globals())
