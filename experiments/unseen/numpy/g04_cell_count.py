"""Fluorescence microscopy: flat-field, smoothing, Otsu plus local threshold,
opening, connected components and per-cell measurements on a uint16 frame."""

import numpy as np

SIZES = {"small": 64, "default": 320, "large": 900}


def make(n, seed=1):
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[0:n, 0:n]
    img = np.full((n, n), 300.0)
    n_cells = max(6, n * n // 900)
    for _ in range(n_cells):
        cy, cx = rng.uniform(0, n, size=2)
        ry, rx = rng.uniform(4, 8, size=2)
        y0, y1 = max(int(cy) - 20, 0), min(int(cy) + 20, n)
        x0, x1 = max(int(cx) - 20, 0), min(int(cx) + 20, n)
        d = ((yy[y0:y1, x0:x1] - cy) / ry) ** 2 + ((xx[y0:y1, x0:x1] - cx) / rx) ** 2
        img[y0:y1, x0:x1] += rng.uniform(1500, 4000) / (1.0 + d**4)
    flat = 1.0 - 0.4 * (((yy - n / 2) / n) ** 2 + ((xx - n / 2) / n) ** 2)
    frame = rng.poisson(img * flat)
    hot = rng.integers(0, n, size=(n // 8, 2))
    frame[hot[:, 0], hot[:, 1]] = 60000
    return {
        "frame": np.clip(frame, 0, 65535).astype(np.uint16),
        "flat": flat,
        "dark": np.uint16(100),
    }


def gaussian_blur(img, sigma):
    r = int(3 * sigma + 0.5)
    k = np.exp(-0.5 * (np.arange(-r, r + 1) / sigma) ** 2)
    k /= k.sum()
    for axis in (0, 1):
        pad = [(0, 0), (0, 0)]
        pad[axis] = (r, r)
        p = np.pad(img, pad, mode="reflect")
        out = np.zeros_like(img)
        for i, w in enumerate(k):
            sl = [slice(None), slice(None)]
            sl[axis] = slice(i, i + img.shape[axis])
            out += w * p[tuple(sl)]
        img = out
    return img


def remove_hot(img):
    """Replace pixels far above their four neighbours by the neighbours' median."""
    p = np.pad(img, 1, mode="edge")
    nb = np.stack([p[:-2, 1:-1], p[2:, 1:-1], p[1:-1, :-2], p[1:-1, 2:]])
    med = np.median(nb, axis=0)
    hot = img > 3.0 * med + 500.0
    return np.where(hot, med, img), hot.sum()


def otsu(img, bins=256):
    lo, hi = img.min(), img.max()
    q = ((img - lo) * ((bins - 1) / (hi - lo))).astype(np.int64)
    hist = np.bincount(q.ravel(), minlength=bins).astype(float)
    w0 = np.cumsum(hist)
    m0 = np.cumsum(hist * np.arange(bins))
    w1 = w0[-1] - w0
    with np.errstate(divide="ignore", invalid="ignore"):
        between = w0 * w1 * (m0 / w0 - (m0[-1] - m0) / w1) ** 2
    return lo + (hi - lo) * np.nanargmax(between[:-1]) / (bins - 1)


def local_mean(img, half):
    p = np.pad(img, ((half + 1, half), (half + 1, half)), mode="edge")
    s = p.cumsum(axis=0).cumsum(axis=1)
    w = 2 * half + 1
    return (s[w:, w:] - s[:-w, w:] - s[w:, :-w] + s[:-w, :-w]) / w**2


def cross(mask, op):
    out = mask.copy()
    op(out[1:], mask[:-1], out=out[1:])
    op(out[:-1], mask[1:], out=out[:-1])
    op(out[:, 1:], mask[:, :-1], out=out[:, 1:])
    op(out[:, :-1], mask[:, 1:], out=out[:, :-1])
    return out


def label(mask):
    """Flood every component with its largest pixel number until nothing moves."""
    lab = np.where(mask, np.arange(1, mask.size + 1).reshape(mask.shape), 0)
    while True:
        new = cross(lab, np.maximum)
        new *= mask
        if np.array_equal(new, lab):
            break
        lab = new
    ids, inv = np.unique(lab, return_inverse=True)
    return inv.reshape(mask.shape), len(ids) - 1


def run(state):
    img = (state["frame"].astype(np.float64) - state["dark"]) / state["flat"]
    img, n_hot = remove_hot(img)
    smooth = gaussian_blur(img, 1.2)
    thr = otsu(smooth)
    mask = (smooth > 0.8 * thr) & (smooth > 1.02 * local_mean(smooth, 15))
    mask = cross(cross(mask, np.logical_and), np.logical_or)
    lab, count = label(mask)

    flat_lab = lab.ravel()
    yy, xx = np.indices(lab.shape)
    area = np.bincount(flat_lab)[1:]
    total = np.bincount(flat_lab, weights=img.ravel())[1:]
    cy = np.bincount(flat_lab, weights=yy.ravel())[1:] / area
    cx = np.bincount(flat_lab, weights=xx.ravel())[1:] / area
    brightest = np.zeros(count + 1)
    np.maximum.at(brightest, flat_lab, smooth.ravel())
    grad = np.hypot(*np.gradient(smooth))
    edge = mask & ~cross(mask, np.logical_and)
    big = area >= 30
    return {
        "n_hot": n_hot,
        "thr": thr,
        "count": count,
        "area": area,
        "centroid": np.column_stack([cy, cx]),
        "intensity": total / area,
        "brightest": brightest[1:],
        "n_big": big.sum(),
        "sharpness": grad[edge].mean(),
        "background": np.median(img[~mask]),
    }


def check(result):
    return list(result.values())
