"""Texture screening of a micrograph: block pooling, local contrast in small
windows, a local-maximum detector and ranking of the blocks by focus."""

import numpy as np

sliding_window_view = np.lib.stride_tricks.sliding_window_view

SIZES = {"small": 48, "default": 256, "large": 768}
BLOCK = 8


def make(n, seed=1):
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:n, 0:n] / n
    img = 90.0 + 50.0 * np.sin(14 * x + 3 * y) * np.cos(9 * y)
    img += 40.0 * np.exp(-((x - 0.6) ** 2 + (y - 0.3) ** 2) / 0.02)
    img += rng.normal(scale=6.0, size=(n, n)) * (0.3 + x)
    dead = rng.random((n, n)) < 0.001
    img[dead] = 0.0
    return {"img": np.clip(img, 0, 255).astype(np.uint8)}


def pool(img, k):
    h, w = img.shape
    return img[: h // k * k, : w // k * k].reshape(h // k, k, w // k, k)


def run(state):
    img = state["img"].astype(np.float32)
    # replace dead pixels by the mean of left and right neighbours
    dead = img == 0
    pad = np.pad(img, 1, mode="edge")
    img = np.where(dead, 0.5 * (pad[1:-1, :-2] + pad[1:-1, 2:]), img)

    # block statistics
    blocks = pool(img, BLOCK)
    mean = blocks.mean(axis=(1, 3))
    std = blocks.std(axis=(1, 3))
    top = blocks.max(axis=(1, 3))
    bottom = blocks.min(axis=(1, 3))
    michelson = (top - bottom) / np.maximum(top + bottom, 1.0)

    # focus: energy of the gradient in each block
    gy, gx = np.gradient(img)
    focus = pool(gx * gx + gy * gy, BLOCK).mean(axis=(1, 3))
    order = np.argsort(focus, axis=None, kind="stable")[::-1]
    best = np.stack(np.unravel_index(order[:10], focus.shape), axis=1)

    # 3x3 windows: local maxima that clearly stand out of their neighbourhood
    win = sliding_window_view(img, (3, 3))
    local_max = win.max(axis=(2, 3))
    local_min = win.min(axis=(2, 3))
    centre = img[1:-1, 1:-1]
    peak = (centre == local_max) & (local_max - local_min > 12.0)
    rows = peak.sum(axis=1)

    # 2x2 pyramid
    half = pool(img, 2).mean(axis=(1, 3))
    quarter = pool(half, 2).mean(axis=(1, 3))
    hist, _ = np.histogram(quarter, bins=32, range=(0, 256))

    flat = std < np.percentile(std, 20)
    return {
        "mean": mean,
        "std": std,
        "michelson": michelson,
        "focus": focus,
        "best": best,
        "peaks": rows,
        "quarter": quarter,
        "hist": hist,
        "flat_level": mean[flat].mean(),
    }


def check(result):
    return [
        result[k]
        for k in (
            "mean",
            "std",
            "michelson",
            "focus",
            "best",
            "peaks",
            "quarter",
            "hist",
            "flat_level",
        )
    ]
