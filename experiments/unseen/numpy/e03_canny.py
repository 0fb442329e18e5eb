"""Canny-style edge detector on a synthetic grey image (uint8 in, bool out).

Separable Gaussian blur, Sobel gradients, quantised direction, non-maximum
suppression by shifted comparisons, then a few hysteresis sweeps.
"""

import math

import numpy as np

SIZES = {"small": 40, "default": 448, "large": 1400}


def make(n, seed=1):
    rng = np.random.default_rng(seed)
    yy, xx = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
    img = 60.0 + 40.0 * np.sin(xx / n * 5.0) * np.cos(yy / n * 3.0)
    for _ in range(25):
        cy, cx = rng.uniform(0, n, 2)
        r = rng.uniform(0.03, 0.15) * n
        img[(yy - cy) ** 2 + (xx - cx) ** 2 < r * r] += rng.uniform(-60, 90)
    img += rng.normal(0, 4.0, img.shape)
    return np.clip(img, 0, 255).astype(np.uint8)


def gaussian_kernel(sigma):
    radius = int(math.ceil(3 * sigma))
    t = np.arange(-radius, radius + 1)
    k = np.exp(-0.5 * (t / sigma) ** 2)
    return k / k.sum()


def blur(img, sigma):
    k = gaussian_kernel(sigma)
    r = len(k) // 2
    h, w = img.shape
    p = np.pad(img, ((r, r), (0, 0)), mode="reflect")
    out = np.zeros_like(img)
    for i, c in enumerate(k):
        out += c * p[i : i + h, :]
    p = np.pad(out, ((0, 0), (r, r)), mode="reflect")
    out = np.zeros_like(img)
    for i, c in enumerate(k):
        out += c * p[:, i : i + w]
    return out


def sobel(img):
    p = np.pad(img, 1, mode="edge")
    smooth_y = p[:-2] + 2 * p[1:-1] + p[2:]
    smooth_x = p[:, :-2] + 2 * p[:, 1:-1] + p[:, 2:]
    gx = smooth_y[:, 2:] - smooth_y[:, :-2]
    gy = smooth_x[2:] - smooth_x[:-2]
    return gx, gy


def nonmax(mag, gx, gy):
    angle = np.rad2deg(np.arctan2(gy, gx)) % 180
    sector = np.floor((angle + 22.5) / 45.0).astype(np.int8) % 4
    p = np.pad(mag, 1)
    c = slice(1, -1)
    lo, hi = slice(0, -2), slice(2, None)
    before = np.choose(sector, [p[c, lo], p[lo, lo], p[lo, c], p[lo, hi]])
    after = np.choose(sector, [p[c, hi], p[hi, hi], p[hi, c], p[hi, lo]])
    keep = (mag >= before) & (mag >= after)
    return np.where(keep, mag, 0)


def hysteresis(thin, low, high, sweeps=6):
    weak = thin > low
    strong = thin > high
    for _ in range(sweeps):
        p = np.pad(strong, 1)
        grown = np.zeros_like(strong)
        for dy in range(3):
            for dx in range(3):
                grown |= p[dy : dy + strong.shape[0], dx : dx + strong.shape[1]]
        strong = grown & weak
    return strong


def run(state):
    img = state.astype(np.float64)
    smooth = blur(img, 1.4)
    gx, gy = sobel(smooth)
    mag = np.hypot(gx, gy)
    thin = nonmax(mag, gx, gy)
    high = 0.25 * mag.max()
    edges = hysteresis(thin, 0.4 * high, high)
    rows, cols = np.nonzero(edges)
    return {
        "mag": mag,
        "edges": edges,
        "n": len(rows),
        "centroid": np.array([rows.mean(), cols.mean()]),
        "row_hist": edges.sum(axis=1),
    }


def check(result):
    return [result["mag"], result["edges"], result["n"], result["centroid"], result["row_hist"]]
