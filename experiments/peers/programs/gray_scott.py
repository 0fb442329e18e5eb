"""Gray-Scott: one pass over both chemicals a step."""

from __future__ import annotations

import numpy as np

from experiments.peers.program import Outputs, State
from kernels.gray_scott import DT, FEED, KILL, SPREAD_U, SPREAD_V, STEPS, initial


def setup(size: int) -> State:
    """Both pairs of grids start alike."""
    u, v = initial(size)
    return State(size=size, u=u, v=v, new_u=u.copy(), new_v=v.copy(), amount=np.zeros(1))


def outputs(s: State) -> Outputs:
    """Read the concentrations."""
    return {"u": s.u, "v": s.v, "amount": float(s.amount[0])}


def floor(size: int) -> int:
    """A step reads u and v and writes them; the sum joins the last one."""
    return 32 * STEPS * size * size


def swap(s: State) -> None:
    s.u, s.v, s.new_u, s.new_v = s.new_u, s.new_v, s.u, s.v


def cpp(build):
    run_cpp = build("gray_scott", DT=DT, FEED=FEED, KILL=KILL, SPREAD_U=SPREAD_U,
                    SPREAD_V=SPREAD_V)  # fmt: skip

    def run(s: State) -> None:
        for _ in range(STEPS):
            run_cpp(s.size, s.u, s.v, s.new_u, s.new_v, s.amount)
            swap(s)

    return run


def numba(njit):
    from numba import prange

    @njit
    def step(w, u, v, new_u, new_v):
        amount = 0.0
        for i in prange(w, u.size - w):
            lap_u = u[i - w] + u[i + w] + u[i - 1] + u[i + 1] - 4.0 * u[i]
            lap_v = v[i - w] + v[i + w] + v[i - 1] + v[i + 1] - 4.0 * v[i]
            r = u[i] * v[i] * v[i]
            new_u[i] = u[i] + DT * (SPREAD_U * lap_u - r + FEED * (1.0 - u[i]))
            new_v[i] = v[i] + DT * (SPREAD_V * lap_v + r - (FEED + KILL) * v[i])
            amount += new_v[i]
        return amount + new_v[:w].sum() + new_v[-w:].sum()

    def run(s: State) -> None:
        for _ in range(STEPS):
            s.amount[0] = step(s.size, s.u, s.v, s.new_u, s.new_v)
            swap(s)

    return run


def numpy(np=np):
    def laplacian(x, w):
        n = x.size
        lap = x[: n - 2 * w] + x[2 * w :]
        lap += x[w - 1 : n - w - 1]
        lap += x[w + 1 : n - w + 1]
        lap -= 4.0 * x[w : n - w]
        return lap

    def run(s: State) -> None:
        inner = slice(s.size, s.u.size - s.size)
        for _ in range(STEPS):
            u, v = s.u[inner], s.v[inner]
            rate_u, rate_v = laplacian(s.u, s.size), laplacian(s.v, s.size)
            r = u * v
            r *= v
            rate_u *= SPREAD_U
            rate_u -= r
            rate_u += FEED * (1.0 - u)
            rate_v *= SPREAD_V
            rate_v += r
            rate_v -= (FEED + KILL) * v
            rate_u *= DT
            rate_v *= DT
            np.add(u, rate_u, out=s.new_u[inner])
            np.add(v, rate_v, out=s.new_v[inner])
            swap(s)
        s.amount[0] = s.v.sum()

    return run


def cupy_fuse(cupy):
    @cupy.fuse
    def react(u, u1, u2, u3, u4, v, v1, v2, v3, v4, to_u, to_v):
        r = u * v * v
        lap_u = u1 + u2 + u3 + u4 - 4.0 * u
        lap_v = v1 + v2 + v3 + v4 - 4.0 * v
        cupy.add(u, DT * (SPREAD_U * lap_u - r + FEED * (1.0 - u)), out=to_u)
        cupy.add(v, DT * (SPREAD_V * lap_v + r - (FEED + KILL) * v), out=to_v)

    def cross(x, w):
        """The inner cells, and their neighbours."""
        n = x.size
        shifts = (0, -w, w, -1, 1)
        return [x[w + shift : n - w + shift] for shift in shifts]

    def run(s: State) -> None:
        w = s.size
        for _ in range(STEPS):
            targets = s.new_u[w:-w], s.new_v[w:-w]
            react(*cross(s.u, w), *cross(s.v, w), *targets)
            swap(s)
        s.amount[0] = s.v.sum()

    return run


def torch(torch):
    def laplacian(x, w):
        n = x.numel()
        around = x[: n - 2 * w] + x[2 * w :] + x[w - 1 : n - w - 1] + x[w + 1 : n - w + 1]
        return around - 4.0 * x[w : n - w]

    @torch.compile
    def step(w, u, v, new_u, new_v):
        ui, vi = u[w:-w], v[w:-w]
        r = ui * vi * vi
        new_u[w:-w] = ui + DT * (SPREAD_U * laplacian(u, w) - r + FEED * (1.0 - ui))
        new_v[w:-w] = vi + DT * (SPREAD_V * laplacian(v, w) + r - (FEED + KILL) * vi)

    def run(s: State) -> None:
        for _ in range(STEPS):
            step(s.size, s.u, s.v, s.new_u, s.new_v)
            swap(s)
        s.amount[0] = s.v.sum()

    return run


def jax():
    from functools import partial

    import jax.numpy as jnp
    from jax import jit

    def laplacian(x, w):
        n = x.size
        around = x[: n - 2 * w] + x[2 * w :] + x[w - 1 : n - w - 1] + x[w + 1 : n - w + 1]
        return around - 4.0 * x[w : n - w]

    @partial(jit, static_argnums=0)
    def step(w, u, v):
        ui, vi = u[w:-w], v[w:-w]
        r = ui * vi * vi
        new_u = ui + DT * (SPREAD_U * laplacian(u, w) - r + FEED * (1.0 - ui))
        new_v = vi + DT * (SPREAD_V * laplacian(v, w) + r - (FEED + KILL) * vi)
        u, v = u.at[w:-w].set(new_u), v.at[w:-w].set(new_v)
        return u, v, jnp.sum(v, keepdims=True)

    def run(s: State) -> None:
        for _ in range(STEPS):
            s.u, s.v, s.amount = step(s.size, s.u, s.v)

    return run
