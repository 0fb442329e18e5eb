"""Microscopy: background removal by top-hat on uint8, Otsu threshold, reconstruction of marked cells."""

import numpy as np

SIZES = {"small": 40, "default": 300, "large": 1600}


def make(n, seed=1):
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:n, 0:n].astype(np.float32)
    img = 40 + 30 * np.sin(x / n * 3) + 20 * y / n + 4 * rng.standard_normal((n, n))
    for cy, cx in rng.integers(0, n, (40, 2)):
        y0, x0 = max(cy - 8, 0), max(cx - 8, 0)
        win = (slice(y0, cy + 9), slice(x0, cx + 9))
        img[win] += 110 * np.exp(-((y[win] - cy) ** 2 + (x[win] - cx) ** 2) / 12)
    return {"img": np.clip(img, 0, 255).astype(np.uint8), "radius": 4}


def dilate(a, r=1):
    for axis in (0, 1):
        out = a.copy()
        src, dst = np.moveaxis(a, axis, 0), np.moveaxis(out, axis, 0)
        for k in range(1, r + 1):
            np.maximum(dst[k:], src[:-k], out=dst[k:])
            np.maximum(dst[:-k], src[k:], out=dst[:-k])
        a = out
    return a


def erode(a, r=1):
    return ~dilate(~a, r)


def sub_sat(a, b):
    """a - b, never below zero (uint8)"""
    return np.where(a > b, a - b, 0).astype(np.uint8)


def add_sat(a, b):
    s = a + b
    s[s < a] = 255
    return s


def otsu(a):
    hist = np.bincount(a.ravel(), minlength=256).astype(float)
    p = hist / hist.sum()
    w = np.cumsum(p)
    mu = np.cumsum(p * np.arange(256))
    denom = w * (1 - w)
    var = np.zeros(256)
    np.divide((mu[-1] * w - mu) ** 2, denom, out=var, where=denom > 1e-12)
    return int(var.argmax())


def run(s):
    img, r = s["img"], s["radius"]
    tophat = sub_sat(img, dilate(erode(img, r), r))
    bright = add_sat(tophat, tophat >> 1)
    level = otsu(bright)
    cells = bright > level
    cells = dilate(erode(cells))  # opening takes the specks away
    marker = cells.copy()
    if cells.any():
        marker &= tophat > np.percentile(tophat[cells], 90)
    count = int(marker.sum())
    for sweeps in range(12):
        marker = dilate(marker) & cells
        new = int(np.count_nonzero(marker))
        if new == count:
            break
        count = new
    rim = marker ^ erode(marker)
    return tophat, marker, level, count, int(rim.sum()), float(img[marker].mean()) if count else 0.0


def check(result):
    tophat, marker, level, count, rim, mean = result
    return [
        tophat.astype(float).mean(axis=0),
        marker.sum(axis=1).astype(float),
        float(level),
        float(count),
        float(rim),
        mean,
    ]
