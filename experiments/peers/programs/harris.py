"""Harris corners: three rows of gradient products at a time; nothing but the response is stored.

The image lies flat here, so the left and right rim take part (see `kernels/harris.py`).
"""

from __future__ import annotations

import numpy as np

from experiments.peers.program import Outputs, State
from kernels.harris import KAPPA, THRESHOLD, picture

STRIP = 16  # rows


def setup(size: int) -> State:
    """The image and room for the response."""
    image = picture(size).ravel()
    return State(size=size, image=image, response=np.zeros_like(image), corners=np.zeros(1))


def outputs(s: State) -> Outputs:
    """Read the response inside the rim of two pixels, and the strength."""
    response = s.response.reshape(s.size, s.size)
    return {"response": response[2:-2, 2:-2], "corners": float(s.corners[0])}


def floor(size: int) -> int:
    """The image is read, the response written."""
    return 16 * size * size


def cpp(build, rim=0):
    """`rim`: how many columns at either side are left out."""
    run_cpp = build("harris", KAPPA=KAPPA, THRESHOLD=THRESHOLD, RIM=rim)

    def run(s: State) -> None:
        run_cpp(s.size, s.image, s.response, s.corners)

    return run


def numba(njit, rim=0):
    from numba import prange

    @njit(parallel=False)
    def products(p, w, row, out):
        first = row * w - 1
        for i in range(max(first, w + 1), min(first + w + 2, w * w - w - 1)):
            gx = 0.125 * (
                (p[i - w + 1] + 2.0 * p[i + 1] + p[i + w + 1])
                - (p[i - w - 1] + 2.0 * p[i - 1] + p[i + w - 1])
            )
            gy = 0.125 * (
                (p[i + w - 1] + 2.0 * p[i + w] + p[i + w + 1])
                - (p[i - w - 1] + 2.0 * p[i - w] + p[i - w + 1])
            )
            out[0, i - first], out[1, i - first], out[2, i - first] = gx * gx, gy * gy, gx * gy

    @njit(parallel=False)
    def strip(p, w, begin, end, response):
        strength = 0.0
        rows, sums = np.zeros((3, 3, w + 2)), np.zeros((3, w + 2))
        products(p, w, begin - 1, rows[(begin - 1) % 3])
        products(p, w, begin, rows[begin % 3])
        for row in range(begin, end):
            products(p, w, row + 1, rows[(row + 1) % 3])
            for c in range(3):
                for k in range(w + 2):
                    sums[c, k] = rows[0, c, k] + rows[1, c, k] + rows[2, c, k]
            low, high = max(row * w + rim, 2 * w + 2), min(row * w + w - rim, w * w - 2 * w - 2)
            for i in range(low, high):
                k = i - row * w + 1
                sxx = sums[0, k - 1] + sums[0, k] + sums[0, k + 1]
                syy = sums[1, k - 1] + sums[1, k] + sums[1, k + 1]
                sxy = sums[2, k - 1] + sums[2, k] + sums[2, k + 1]
                trace = sxx + syy
                response[i] = sxx * syy - sxy * sxy - KAPPA * trace * trace
                if response[i] > THRESHOLD:
                    strength += response[i]
        return strength

    @njit
    def corners(p, w, response):
        strength = 0.0
        for block in prange((w - 4 + STRIP - 1) // STRIP):
            begin = 2 + block * STRIP
            strength += strip(p, w, begin, min(begin + STRIP, w - 2), response)
        return strength

    def run(s: State) -> None:
        s.corners[0] = corners(s.image, s.size, s.response)

    return run


def structure(p, w):
    """Flat response on [2 w + 2, n - 2 w - 2), by shifts of whole arrays."""

    def box(x):
        rows = x[: len(x) - 2 * w] + x[w : len(x) - w] + x[2 * w :]
        return rows[:-2] + rows[1:-1] + rows[2:]

    wide = p[: len(p) - 2 * w] + 2.0 * p[w : len(p) - w] + p[2 * w :]
    tall = p[:-2] + 2.0 * p[1:-1] + p[2:]
    gx = 0.125 * (wide[2:] - wide[:-2])
    gy = 0.125 * (tall[2 * w :] - tall[: len(tall) - 2 * w])
    sxx, syy, sxy = box(gx * gx), box(gy * gy), box(gx * gy)
    trace = sxx + syy
    return sxx * syy - sxy * sxy - KAPPA * trace * trace


def numpy(np=np):
    def run(s: State) -> None:
        inner = structure(s.image, s.size)
        s.response[2 * s.size + 2 : -2 * s.size - 2] = inner
        s.corners[0] = inner[inner > THRESHOLD].sum()

    return run


def cupy_fuse(cupy):
    @cupy.fuse
    def products(nw, n, ne, w, e, sw, s, se):
        gx = 0.125 * ((ne + 2.0 * e + se) - (nw + 2.0 * w + sw))
        gy = 0.125 * ((sw + 2.0 * s + se) - (nw + 2.0 * n + ne))
        return gx * gx, gy * gy, gx * gy

    @cupy.fuse
    def columns(a, b, c, d, e, f, g, h, i):
        return a + b + c, d + e + f, g + h + i

    @cupy.fuse
    def strength(a, b, c, d, e, f, g, h, i, to):
        sxx, syy, sxy = a + b + c, d + e + f, g + h + i
        trace = sxx + syy
        cupy.subtract(sxx * syy - sxy * sxy, KAPPA * trace * trace, out=to)

    @cupy.fuse
    def strong(x):
        return cupy.where(x > THRESHOLD, x, 0.0)

    def run(s: State) -> None:
        p, w = s.image, s.size
        first, last = w + 1, p.size - w - 1
        near = (-w - 1, -w, -w + 1, -1, 1, w - 1, w, w + 1)
        three = products(*(p[first + shift : last + shift] for shift in near))
        n = three[0].size
        sums = columns(*(x[k * w : n - (2 - k) * w] for x in three for k in range(3)))
        n = sums[0].size
        inner = s.response[2 * w + 2 : -2 * w - 2]
        strength(*(x[k : n - 2 + k] for x in sums for k in range(3)), inner)
        s.corners[0] = strong(inner).sum()

    return run


def torch(torch):
    @torch.compile
    def corners(p, w, response):
        inner = structure(p, w)
        response[2 * w + 2 : -2 * w - 2] = inner
        return torch.where(inner > THRESHOLD, inner, 0.0).sum().reshape(1)

    def run(s: State) -> None:
        s.corners = corners(s.image, s.size, s.response)

    return run


def jax():
    from functools import partial

    import jax.numpy as jnp
    from jax import jit

    @partial(jit, static_argnums=1)
    def corners(p, w):
        inner = structure(p, w)
        strength = jnp.sum(jnp.where(inner > THRESHOLD, inner, 0.0), keepdims=True)
        return jnp.pad(inner, 2 * w + 2), strength

    def run(s: State) -> None:
        s.response, s.corners = corners(s.image, s.size)

    return run
