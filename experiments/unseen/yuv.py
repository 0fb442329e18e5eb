"""YUV: frames of a film from RGB in single precision to luma and two chroma planes.

Source: ITU-R BT.709. One run makes 4 maps on a frame's planes: gamma apart, luma, two differences;
the results are written and not read again.
"""

import numpy as np
import pykokkos as pk

SIZES = {"small": 10_000, "default": 24_000_000, "large": 48_000_000}


@pk.workunit
def luma(i, y, r, g, b):
    y[i] = 0.2126 * r[i] + 0.7152 * g[i] + 0.0722 * b[i]


@pk.workunit
def chroma(i, u, c, y, divisor):
    u[i] = (c[i] - y[i]) / divisor


def setup(size):
    rng = np.random.default_rng(7)
    planes = [pk.View([size], pk.float) for _ in range(6)]
    for plane in planes[:3]:
        plane.data[:] = rng.random(size, dtype=np.float32)
    return {"n": size, "planes": planes}


def run(state):
    n, (r, g, b, y, u, v) = state["n"], state["planes"]
    pk.parallel_for(n, luma, y=y, r=r, g=g, b=b)
    pk.parallel_for(n, chroma, u=u, c=b, y=y, divisor=1.8556)
    pk.parallel_for(n, chroma, u=v, c=r, y=y, divisor=1.5748)


def outputs(state):
    return dict(zip("yuv", (np.array(p.data) for p in state["planes"][3:]), strict=True))


def check(state, size, runs):
    assert np.abs(np.array(state["planes"][4].data)).max() <= 0.51, "chroma"
