"""Elementwise chain: one loop, or one expression, over the pixels."""

from __future__ import annotations

import numpy as np

from experiments.peers.program import Outputs, State
from kernels.elementwise_chain import CURVATURE, GAIN, LIMIT, READ_NOISE, SKY, frames

FLOOR2 = READ_NOISE * READ_NOISE


def setup(size: int) -> State:
    """The frames and room for the result."""
    raw, dark, flat = frames(size)
    return State(raw=raw, dark=dark, flat=flat, out=np.zeros(size))


def outputs(s: State) -> Outputs:
    """Read the significances."""
    return {"significance": s.out}


def floor(size: int) -> int:
    """Three inputs, one output."""
    return 32 * size


def cpp(build):
    run_cpp = build("elementwise_chain", CURVATURE=CURVATURE, GAIN=GAIN, SKY=SKY, FLOOR2=FLOOR2,
                    LIMIT=LIMIT)  # fmt: skip

    def run(s: State) -> None:
        run_cpp(s.raw.size, s.raw, s.dark, s.flat, s.out)

    return run


def numba(njit):
    from math import sqrt

    from numba import prange

    @njit
    def calibrate(raw, dark, flat, out):
        for i in prange(raw.size):
            even = (raw[i] - dark[i]) / flat[i]
            electrons = GAIN * (even + CURVATURE * even * even)
            ratio = (electrons - SKY) / sqrt(electrons + FLOOR2)
            out[i] = min(max(ratio, -LIMIT), LIMIT)

    def run(s: State) -> None:
        calibrate(s.raw, s.dark, s.flat, s.out)

    return run


def numpy(np=np):
    def run(s: State) -> None:
        even = s.raw - s.dark
        even /= s.flat
        electrons = CURVATURE * even
        electrons *= even
        electrons += even
        electrons *= GAIN
        signal = np.subtract(electrons, SKY, out=even)
        electrons += FLOOR2
        signal /= np.sqrt(electrons, out=electrons)
        np.clip(signal, -LIMIT, LIMIT, out=s.out)

    return run


def cupy_fuse(cupy):
    @cupy.fuse
    def calibrate(raw, dark, flat):
        even = (raw - dark) / flat
        electrons = GAIN * (even + CURVATURE * even * even)
        ratio = (electrons - SKY) / cupy.sqrt(electrons + FLOOR2)
        return cupy.minimum(cupy.maximum(ratio, -LIMIT), LIMIT)

    def run(s: State) -> None:
        s.out = calibrate(s.raw, s.dark, s.flat)

    return run


def torch(torch):
    @torch.compile
    def calibrate(raw, dark, flat):
        even = (raw - dark) / flat
        electrons = GAIN * (even + CURVATURE * even * even)
        return torch.clip((electrons - SKY) / torch.sqrt(electrons + FLOOR2), -LIMIT, LIMIT)

    def run(s: State) -> None:
        s.out = calibrate(s.raw, s.dark, s.flat)

    return run


def numba_cuda(cuda):
    from math import sqrt

    @cuda.jit
    def calibrate(raw, dark, flat, out):
        i = cuda.grid(1)
        if i < raw.size:
            even = (raw[i] - dark[i]) / flat[i]
            electrons = GAIN * (even + CURVATURE * even * even)
            ratio = (electrons - SKY) / sqrt(electrons + FLOOR2)
            out[i] = min(max(ratio, -LIMIT), LIMIT)

    def run(s: State) -> None:
        calibrate[-(-s.raw.size // 256), 256](s.raw, s.dark, s.flat, s.out)

    return run


def jax():
    import jax.numpy as jnp
    from jax import jit

    @jit
    def calibrate(raw, dark, flat):
        even = (raw - dark) / flat
        electrons = GAIN * (even + CURVATURE * even * even)
        return jnp.clip((electrons - SKY) / jnp.sqrt(electrons + FLOOR2), -LIMIT, LIMIT)

    def run(s: State) -> None:
        s.out = calibrate(s.raw, s.dark, s.flat)

    return run


def numexpr():
    from numexpr import evaluate

    even = "((raw - dark) / flat)"
    electrons = f"(gain * ({even} + curvature * {even} * {even}))"
    ratio = f"({electrons} - sky) / sqrt({electrons} + floor2)"
    scalars = {"gain": GAIN, "curvature": CURVATURE, "sky": SKY, "floor2": FLOOR2, "top": LIMIT}

    def run(s: State) -> None:
        values = {"raw": s.raw, "dark": s.dark, "flat": s.flat, **scalars}
        values["r"] = evaluate(ratio, values)
        evaluate("where(r > top, top, where(r < -top, -top, r))", values, out=s.out)

    return run
