"""Adam: all steps of a weight at once; every step is a pass where the tool has no loop."""

from __future__ import annotations

import numpy as np

from experiments.peers.program import Outputs, State
from kernels.adam_optimizer import BETA1, BETA2, DECAY, EPSILON, RATE, STEPS, initial


def setup(size: int) -> State:
    """Weights, targets and moments in single precision."""
    w, target = initial(size)
    m, v = np.zeros_like(w), np.zeros_like(w)
    return State(w=w, target=target, m=m, v=v, steps=0, loss=np.zeros(1))


def outputs(s: State) -> Outputs:
    """Read weights, moments and loss."""
    return {"w": s.w, "m": s.m, "v": s.v, "loss": float(s.loss[0])}


def floor(size: int) -> int:
    """Weights and moments are read and written, targets read: steps of a weight are its own."""
    return 28 * size


def corrections(s: State) -> tuple[np.ndarray, np.ndarray]:
    """Count STEPS more steps and return what takes the bias off their moments."""
    steps = np.arange(s.steps + 1, s.steps + STEPS + 1)
    s.steps += STEPS
    return 1.0 - BETA1**steps, 1.0 - BETA2**steps


def cpp(build):
    run_cpp = build("adam_optimizer", STEPS=STEPS, BETA1=BETA1, BETA2=BETA2, RATE=RATE,
                    EPSILON=EPSILON, DECAY=DECAY)  # fmt: skip

    def run(s: State) -> None:
        run_cpp(s.w.size, s.w, s.target, s.m, s.v, *corrections(s), s.loss)

    return run


def numba(njit):
    from numba import float32, prange

    @njit
    def steps(w, target, m, v, first, second):
        loss = 0.0
        for i in prange(w.size):
            wi, mi, vi = w[i], m[i], v[i]
            for k in range(STEPS):
                g = float32(wi - target[i])
                mi = float32(BETA1 * mi + (1.0 - BETA1) * g)
                vi = float32(BETA2 * vi + (1.0 - BETA2) * g * g)
                d = (mi / first[k]) / (np.sqrt(vi / second[k]) + EPSILON)
                wi = float32((1.0 - RATE * DECAY) * wi - RATE * d)
            w[i], m[i], v[i] = wi, mi, vi
            error = np.float64(wi - target[i])
            loss += 0.5 * error * error
        return loss

    def run(s: State) -> None:
        s.loss[0] = steps(s.w, s.target, s.m, s.v, *corrections(s))

    return run


def numpy(np=np):
    def run(s: State) -> None:
        w, m, v = s.w, s.m, s.v
        for first, second in zip(*(c.tolist() for c in corrections(s)), strict=True):
            g = w - s.target
            m *= BETA1
            m += (1.0 - BETA1) * g
            g *= g
            g *= 1.0 - BETA2
            v *= BETA2
            v += g
            d = v / second
            np.sqrt(d, out=d)
            d += EPSILON
            np.divide(m, d, out=d)
            d *= RATE / first
            w *= 1.0 - RATE * DECAY
            w -= d
        error = w - s.target
        s.loss[0] = 0.5 * np.vdot(error, error)

    return run


def cupy_fuse(cupy):
    scalars = (BETA1, 1.0 - BETA1, BETA2, 1.0 - BETA2, EPSILON, 1.0 - RATE * DECAY, RATE)
    b1, c1, b2, c2, epsilon, keep, rate = (np.float32(value) for value in scalars)

    @cupy.fuse
    def step(w, target, m, v, first, second):
        g = w - target
        m = m * b1 + g * c1
        v = v * b2 + g * g * c2
        d = (m / first) / (cupy.sqrt(v / second) + epsilon)
        return w * keep - d * rate, m, v

    @cupy.fuse
    def square(w, target):
        return (w - target) * (w - target)

    def run(s: State) -> None:
        for biases in zip(*corrections(s), strict=True):
            first, second = (np.float32(bias) for bias in biases)
            s.w, s.m, s.v = step(s.w, s.target, s.m, s.v, first, second)
        s.loss[0] = 0.5 * square(s.w, s.target).sum()

    return run


def torch(torch):
    @torch.compile
    def steps(w, target, m, v, first, second):
        for k in range(STEPS):
            g = w - target
            m = BETA1 * m + (1.0 - BETA1) * g
            v = BETA2 * v + (1.0 - BETA2) * g * g
            d = (m / first[k]) / (torch.sqrt(v / second[k]) + EPSILON)
            w = (1.0 - RATE * DECAY) * w - RATE * d
        return w, m, v, 0.5 * ((w - target) ** 2).sum().reshape(1)

    def run(s: State) -> None:
        first, second = (
            torch.from_numpy(values.astype(np.float32)).to(s.w.device) for values in corrections(s)
        )
        s.w, s.m, s.v, s.loss = steps(s.w, s.target, s.m, s.v, first, second)

    return run


def jax():
    import jax.numpy as jnp
    from jax import jit

    @jit
    def steps(w, target, m, v, first, second):
        for k in range(STEPS):
            g = w - target
            m = BETA1 * m + (1.0 - BETA1) * g
            v = BETA2 * v + (1.0 - BETA2) * g * g
            d = (m / first[k]) / (jnp.sqrt(v / second[k]) + EPSILON)
            w = (1.0 - RATE * DECAY) * w - RATE * d
        return w, m, v, 0.5 * jnp.sum((w - target) ** 2, keepdims=True)

    def run(s: State) -> None:
        first, second = (values.astype(np.float32) for values in corrections(s))
        s.w, s.m, s.v, s.loss = steps(s.w, s.target, s.m, s.v, first, second)

    return run


def numexpr():
    from numexpr import evaluate

    def run(s: State) -> None:
        w, m, v, target = s.w, s.m, s.v, s.target
        b1, b2, rate, keep = (np.float32(x) for x in (BETA1, BETA2, RATE, 1.0 - RATE * DECAY))
        c1, c2, epsilon = (np.float32(x) for x in (1.0 - BETA1, 1.0 - BETA2, EPSILON))
        for first, second in zip(*corrections(s), strict=True):
            p, q = np.float32(first), np.float32(second)
            values = {"w": w, "m": m, "v": v, "t": target, "b1": b1, "b2": b2, "c1": c1, "c2": c2,
                      "p": p, "q": q, "rate": rate, "keep": keep, "eps": epsilon}  # fmt: skip
            evaluate("b1 * m + c1 * (w - t)", values, out=m)
            evaluate("b2 * v + c2 * (w - t) * (w - t)", values, out=v)
            evaluate("keep * w - rate * (m / p) / (sqrt(v / q) + eps)", values, out=w)
        s.loss[0] = evaluate("sum(0.5 * (w - target) * (w - target))")

    return run
