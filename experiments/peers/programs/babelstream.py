"""BabelStream: all passes of an element at once where the tool has a loop; else one by one."""

from __future__ import annotations

import numpy as np

from experiments.peers.program import Outputs, State
from kernels.babelstream import PASSES, SCALAR, initial


def setup(size: int) -> State:
    """The benchmark's three arrays."""
    return State(a=initial(size), b=np.zeros(size), c=np.zeros(size), dot=np.zeros(1))


def outputs(s: State) -> Outputs:
    """Read the arrays and the dot product."""
    return {"a": s.a, "b": s.b, "c": s.c, "dot": float(s.dot[0])}


def floor(size: int) -> int:
    """Read a, write a, b and c: passes of an element are its own."""
    return 32 * size


def cpp(build):
    run_cpp = build("babelstream", PASSES=PASSES, SCALAR=SCALAR)

    def run(s: State) -> None:
        run_cpp(s.a.size, s.a, s.b, s.c, s.dot)

    return run


def numba(njit):
    from numba import prange

    @njit
    def passes(a, b, c):
        total = 0.0
        for i in prange(a.size):
            ai = a[i]
            for _ in range(PASSES):
                bi = SCALAR * ai
                ci = ai + bi
                ai = bi + SCALAR * ci
            a[i], b[i], c[i] = ai, bi, ci
            total += ai * bi
        return total

    def run(s: State) -> None:
        s.dot[0] = passes(s.a, s.b, s.c)

    return run


def numpy(np=np):
    def run(s: State) -> None:
        a, b, c = s.a, s.b, s.c
        for _ in range(PASSES):
            np.copyto(c, a)
            np.multiply(SCALAR, c, out=b)
            np.add(a, b, out=c)
            np.multiply(SCALAR, c, out=a)
            a += b
            s.dot[0] = np.dot(a, b)

    return run


def cupy_fuse(cupy):
    @cupy.fuse
    def passes(a):
        for _ in range(PASSES):
            b = SCALAR * a
            c = a + b
            a = b + SCALAR * c
        return a, b, c

    def run(s: State) -> None:
        s.a, s.b, s.c = passes(s.a)
        s.dot[0] = cupy.dot(s.a, s.b)

    return run


def torch(torch):
    @torch.compile
    def passes(a):
        for _ in range(PASSES):
            b = SCALAR * a
            c = a + b
            a = b + SCALAR * c
        return a, b, c, (a * b).sum().reshape(1)

    def run(s: State) -> None:
        s.a, s.b, s.c, s.dot = passes(s.a)

    return run


def jax():
    import jax.numpy as jnp
    from jax import jit

    @jit
    def passes(a):
        for _ in range(PASSES):
            b = SCALAR * a
            c = a + b
            a = b + SCALAR * c
        return a, b, c, jnp.sum(a * b, keepdims=True)

    def run(s: State) -> None:
        s.a, s.b, s.c, s.dot = passes(s.a)

    return run


def numexpr():
    from numexpr import evaluate

    def run(s: State) -> None:
        values = {"a": s.a, "b": s.b, "c": s.c, "s": SCALAR}
        for _ in range(PASSES):
            evaluate("s * a", values, out=s.b)
            evaluate("a + b", values, out=s.c)
            evaluate("b + s * c", values, out=s.a)
            s.dot[0] = evaluate("sum(a * b)", values)

    return run
