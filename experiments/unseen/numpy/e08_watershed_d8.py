"""D8 hydrology on a raster terrain: directions, accumulation, wetness, basin stats.

Flow directions from the steepest of eight neighbours, accumulation level by level
over the receiver graph (np.add.at), outlets by pointer doubling, and the topographic wetness index.
"""

import numpy as np

SIZES = {"small": 16, "default": 256, "large": 800}
CELL = 30.0
OFFSETS = [(-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1)]


def make(n, seed=1):
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:n, 0:n] / float(n)
    z = 300 * (1 - y) + 40 * np.abs(x - 0.5)
    for octave in range(1, 6):
        k = 2**octave
        ph = rng.uniform(0, 2 * np.pi, 4)
        z += (
            25.0
            / octave**2
            * (np.sin(k * x * 3 + ph[0]) * np.cos(k * y * 2 + ph[1]) + np.sin(k * (x + y) + ph[2]))
        )
    z += rng.uniform(0, 0.2, z.shape)
    rain = 1.0 + 0.5 * rng.random(z.shape)
    return {"z": z, "rain": rain}


def smooth_pits(z, passes=3):
    """Raise cells which are lower than all their neighbours."""
    z = z.copy()
    for _ in range(passes):
        inner = z[1:-1, 1:-1]
        lowest = np.full(inner.shape, np.inf)
        for dy, dx in OFFSETS:
            nb = z[1 + dy : z.shape[0] - 1 + dy, 1 + dx : z.shape[1] - 1 + dx]
            lowest = np.minimum(lowest, nb)
        pit = inner <= lowest
        inner[pit] = lowest[pit] + 0.01
    return z


def flow_direction(z):
    ny, nx = z.shape
    padded = np.pad(z, 1, constant_values=1e9)
    slope = np.empty((8, ny, nx))
    for k, (dy, dx) in enumerate(OFFSETS):
        dist = CELL * np.hypot(dy, dx)
        slope[k] = (z - padded[1 + dy : 1 + dy + ny, 1 + dx : 1 + dx + nx]) / dist
    d = slope.argmax(axis=0)
    steep = np.take_along_axis(slope, d[None], axis=0)[0]
    d[steep <= 0] = -1
    return d, np.maximum(steep, 0)


def receivers(d):
    ny, nx = d.shape
    idx = np.arange(ny * nx).reshape(ny, nx)
    step = np.array([dy * nx + dx for dy, dx in OFFSETS] + [0])
    return (idx + step[d]).ravel()  # d == -1 picks the trailing 0: a sink


def accumulate(rec, w):
    """Sum of w over everything upstream, by order of descent (level by level)."""
    n = len(rec)
    sink = rec == np.arange(n)
    total = w.copy()
    indeg = np.bincount(rec[~sink], minlength=n)
    frontier = np.flatnonzero(indeg == 0)
    levels = 0
    while frontier.size:
        frontier = frontier[~sink[frontier]]
        down = rec[frontier]
        np.add.at(total, down, total[frontier])
        np.subtract.at(indeg, down, 1)
        cand = np.unique(down)
        frontier = cand[indeg[cand] == 0]
        levels += 1
    return total, levels


def outlets(rec):
    root = rec.copy()
    while True:
        nxt = root[root]
        if np.array_equal(nxt, root):
            return root
        root = nxt


def run(state):
    z = smooth_pits(state["z"])
    d, slope = flow_direction(z)
    rec = receivers(d)
    acc, levels = accumulate(rec, state["rain"].ravel())
    area = acc.reshape(z.shape) * CELL**2
    twi = np.log(area / CELL / np.maximum(slope, 1e-3))
    root = outlets(rec)
    ids, basin_cells = np.unique(root, return_counts=True)
    top = np.sort(basin_cells)[::-1][:10]
    streams = area > np.percentile(area, 95)
    return d, area, twi, levels, len(ids), top, streams.sum(axis=0)


def check(result):
    return list(result)
