"""Tone mapping: in C++ and Numba one walk over the picture, whose blur is never stored whole."""

from __future__ import annotations

from math import exp, log

import numpy as np

from experiments.peers.program import Outputs, State
from kernels.tone_mapping import DARKEST, EXPOSURE, FRAMES, WHITE, picture

WEIGHTS = 0.2126, 0.7152, 0.0722


def setup(size: int) -> State:
    """The picture's planes, what is shown, and the two sums: logarithms and clipped pixels."""
    colours = picture(size)
    sums = np.array([log(EXPOSURE) * size * size, 0.0])
    return State(colours=colours, shown=np.zeros_like(colours), sums=sums)


def outputs(s: State) -> Outputs:
    """Read what is shown and the sums."""
    brightness, clipped = (float(value) for value in s.sums)
    return {"shown": np.asarray(s.shown), "brightness": brightness, "clipped": clipped}


def floor(size: int) -> int:
    """A frame reads three planes and writes three."""
    return FRAMES * 48 * size * size


def scale_of(s: State) -> float:
    """The exposure that the frame before asks for."""
    return EXPOSURE / exp(float(s.sums[0]) / s.colours[0].size)


def cpp(build):
    run_cpp = build("tone_mapping", DARKEST=DARKEST, WHITE=WHITE)

    def run(s: State) -> None:
        for _ in range(FRAMES):
            run_cpp(s.colours.shape[1], s.colours, s.shown, scale_of(s), s.sums)

    return run


def numba(njit):
    from numba import prange

    strip = 32

    @njit
    def frame(colours, shown, scale):
        n = colours.shape[1]
        brightness, clipped = 0.0, 0.0
        for block in prange((n + strip - 1) // strip):
            begin, end = block * strip, min(block * strip + strip, n)
            low, high = max(begin - 2, 0), min(end + 2, n)
            y, t = np.empty((high - low, n)), np.empty((high - low, n))
            for i in range(low, high):
                red, green, blue = colours[0, i], colours[1, i], colours[2, i]
                row, wide = y[i - low], t[i - low]
                for j in range(n):
                    row[j] = scale * (0.2126 * red[j] + 0.7152 * green[j] + 0.0722 * blue[j])
                for j in range(2, n - 2):
                    near = 4.0 * (row[j - 1] + row[j + 1]) + 6.0 * row[j]
                    wide[j] = 0.0625 * (row[j - 2] + row[j + 2] + near)
            gain = np.empty(n)
            for i in range(begin, end):
                k = i - low
                for j in range(n):
                    around = y[k, j]
                    brightness += np.log(DARKEST + around / scale)
                    if 1 < i < n - 2 and 1 < j < n - 2:
                        near = 4.0 * (t[k - 1, j] + t[k + 1, j]) + 6.0 * t[k, j]
                        around = 0.0625 * (t[k - 2, j] + t[k + 2, j] + near)
                    gain[j] = scale * (1.0 + y[k, j] * (1.0 / WHITE**2)) / (1.0 + around)
                for plane in range(3):
                    for j in range(n):
                        value = colours[plane, i, j] * gain[j]
                        if plane == 0 and value >= 1.0:
                            clipped += 1.0
                        shown[plane, i, j] = np.sqrt(min(value, 1.0))
        return brightness, clipped

    def run(s: State) -> None:
        for _ in range(FRAMES):
            s.sums[:] = frame(s.colours, s.shown, scale_of(s))

    return run


def around_of(np, y):
    """Every pixel's surroundings: the binomial filter of five by five, none at the rim."""
    t = 0.0625 * (y[:, :-4] + y[:, 4:] + 4.0 * (y[:, 1:-3] + y[:, 3:-1]) + 6.0 * y[:, 2:-2])
    return 0.0625 * (t[:-4] + t[4:] + 4.0 * (t[1:-3] + t[3:-1]) + 6.0 * t[2:-2])


def numpy(np=np):
    def frame(s: State) -> None:
        scale = scale_of(s)
        red, green, blue = s.colours
        light = WEIGHTS[0] * red
        light += WEIGHTS[1] * green
        light += WEIGHTS[2] * blue
        s.sums[0] = np.log(DARKEST + light).sum()
        light *= scale
        gain = light + 1.0
        gain[2:-2, 2:-2] = around_of(np, light) + 1.0
        light *= 1.0 / WHITE**2
        light += 1.0
        np.divide(light, gain, out=gain)
        gain *= scale
        np.multiply(s.colours, gain, out=s.shown)
        s.sums[1] = np.count_nonzero(s.shown[0] >= 1.0)
        np.minimum(s.shown, 1.0, out=s.shown)
        np.sqrt(s.shown, out=s.shown)

    def run(s: State) -> None:
        for _ in range(FRAMES):
            frame(s)

    return run


def jax():
    import jax.numpy as jnp
    from jax import jit

    @jit
    def frame(colours, brightness):
        scale = EXPOSURE / jnp.exp(brightness / colours[0].size)
        light = WEIGHTS[0] * colours[0] + WEIGHTS[1] * colours[1] + WEIGHTS[2] * colours[2]
        y = scale * light
        around = y.at[2:-2, 2:-2].set(around_of(jnp, y))
        mapped = colours * (scale * (1.0 + y * (1.0 / WHITE**2)) / (1.0 + around))
        count = jnp.count_nonzero(mapped[0] >= 1.0)
        logs = jnp.sum(jnp.log(DARKEST + light))
        return jnp.sqrt(jnp.minimum(mapped, 1.0)), jnp.stack([logs, count.astype(logs.dtype)])

    def run(s: State) -> None:
        for _ in range(FRAMES):
            s.shown, s.sums = frame(s.colours, s.sums[0])

    return run
