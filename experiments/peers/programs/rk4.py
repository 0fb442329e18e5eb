"""RK4: an element's whole orbit in registers; stage by stage where the tool has no loop."""

from __future__ import annotations

import numpy as np

from experiments.peers.program import Outputs, State
from kernels.rk4 import DEATH, DT, EATEN, GROWN, STEPS, initial


def setup(size: int) -> State:
    """The ensemble."""
    x, y, birth = initial(size)
    return State(x=x, y=y, birth=birth, alive=np.zeros(1))


def outputs(s: State) -> Outputs:
    """Read the populations."""
    return {"x": s.x, "y": s.y, "alive": float(s.alive[0])}


def floor(size: int) -> int:
    """Populations are read and written, birth rates read: steps of an element are its own."""
    return 40 * size


def cpp(build):
    run_cpp = build("rk4", STEPS=STEPS, EATEN=EATEN, GROWN=GROWN, DEATH=DEATH, DT=DT)

    def run(s: State) -> None:
        run_cpp(s.x.size, s.x, s.y, s.birth, s.alive)

    return run


def numba(njit):
    from numba import prange

    @njit
    def orbit(xs, ys, birth):
        alive = 0.0
        for i in prange(xs.size):
            x, y, b = xs[i], ys[i], birth[i]
            for _ in range(STEPS):
                k1, l1 = x * (b - EATEN * y), y * (GROWN * x - DEATH)
                u, w = x + 0.5 * DT * k1, y + 0.5 * DT * l1
                k2, l2 = u * (b - EATEN * w), w * (GROWN * u - DEATH)
                u, w = x + 0.5 * DT * k2, y + 0.5 * DT * l2
                k3, l3 = u * (b - EATEN * w), w * (GROWN * u - DEATH)
                u, w = x + DT * k3, y + DT * l3
                k4, l4 = u * (b - EATEN * w), w * (GROWN * u - DEATH)
                x += DT / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
                y += DT / 6.0 * (l1 + 2.0 * l2 + 2.0 * l3 + l4)
            xs[i], ys[i] = x, y
            alive += x + y
        return alive

    def run(s: State) -> None:
        s.alive[0] = orbit(s.x, s.y, s.birth)

    return run


def step(x, y, birth):
    """One step by whole arrays."""

    def rates(u, w):
        return u * (birth - EATEN * w), w * (GROWN * u - DEATH)

    k1, l1 = rates(x, y)
    k2, l2 = rates(x + 0.5 * DT * k1, y + 0.5 * DT * l1)
    k3, l3 = rates(x + 0.5 * DT * k2, y + 0.5 * DT * l2)
    k4, l4 = rates(x + DT * k3, y + DT * l3)
    return (
        x + DT / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4),
        y + DT / 6.0 * (l1 + 2.0 * l2 + 2.0 * l3 + l4),
    )


def numpy(np=np):
    def run(s: State) -> None:
        for _ in range(STEPS):
            s.x, s.y = step(s.x, s.y, s.birth)
        s.alive[0] = np.sum(s.x) + np.sum(s.y)

    return run


def cupy_fuse(cupy):
    @cupy.fuse
    def orbit(x, y, birth):
        for _ in range(STEPS):
            x, y = step(x, y, birth)
        return x, y, x + y

    def run(s: State) -> None:
        s.x, s.y, living = orbit(s.x, s.y, s.birth)
        s.alive[0] = living.sum()

    return run


def torch(torch):
    @torch.compile
    def orbit(x, y, birth):
        for _ in range(STEPS):
            x, y = step(x, y, birth)
        return x, y, (x + y).sum().reshape(1)

    def run(s: State) -> None:
        s.x, s.y, s.alive = orbit(s.x, s.y, s.birth)

    return run


def jax():
    import jax.numpy as jnp
    from jax import jit

    @jit
    def orbit(x, y, birth):
        for _ in range(STEPS):
            x, y = step(x, y, birth)
        return x, y, jnp.sum(x + y, keepdims=True)

    def run(s: State) -> None:
        s.x, s.y, s.alive = orbit(s.x, s.y, s.birth)

    return run


def numexpr():
    from numexpr import evaluate

    rate_x, rate_y = "u * (birth - eaten * w)", "w * (grown * u - death)"
    scalars = {"eaten": EATEN, "grown": GROWN, "death": DEATH, "sixth": DT / 6.0}

    def run(s: State) -> None:
        for _ in range(STEPS):
            values = {"x": s.x, "y": s.y, "birth": s.birth, "u": s.x, "w": s.y, **scalars}
            for stage, h in enumerate((0.5 * DT, 0.5 * DT, DT, 0.0), start=1):
                k, m = evaluate(rate_x, values), evaluate(rate_y, values)
                values |= {f"k{stage}": k, f"l{stage}": m, "k": k, "l": m, "h": h}
                if stage < 4:
                    u, w = evaluate("x + h * k", values), evaluate("y + h * l", values)
                    values |= {"u": u, "w": w}
            evaluate("x + sixth * (k1 + 2.0 * k2 + 2.0 * k3 + k4)", values, out=s.x)
            evaluate("y + sixth * (l1 + 2.0 * l2 + 2.0 * l3 + l4)", values, out=s.y)
        s.alive[0] = evaluate("sum(x + y)", {"x": s.x, "y": s.y})

    return run
