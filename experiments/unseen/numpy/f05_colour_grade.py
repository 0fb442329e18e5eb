"""Colour grading of a batch of pixels (n,3): white balance, channel mixing,
saturation by max/min over channels, clipping masks, hue classes, alpha over."""

import numpy as np

SIZES = {"small": 2000, "default": 60000, "large": 600000}

MIX = np.array([[1.60, -0.45, -0.15], [-0.20, 1.45, -0.25], [0.02, -0.52, 1.50]])
LUMA = np.array([0.2126, 0.7152, 0.0722])


def make(n, seed=1):
    rng = np.random.default_rng(seed)
    base = rng.beta(2.0, 4.0, size=(n, 1))
    tint = rng.normal(scale=0.12, size=(n, 3))
    rgb = np.clip(base + tint, 0.0, 1.0)
    rgb[:, 2] *= 0.8
    rgba = np.concatenate([rgb, rng.random((n, 1))], axis=-1).astype(np.float32)
    return {"rgba": rgba, "backdrop": np.array([0.1, 0.12, 0.2], dtype=np.float32)}


def hue_sat(rgb):
    hi = rgb.max(axis=-1)
    lo = rgb.min(axis=-1)
    delta = hi - lo
    safe = np.where(delta > 1e-6, delta, 1.0)
    r, g, b = rgb[..., 0], rgb[..., 1], rgb[..., 2]
    hue = np.where(
        hi == r,
        ((g - b) / safe) % 6.0,
        np.where(hi == g, (b - r) / safe + 2.0, (r - g) / safe + 4.0),
    )
    hue = np.where(delta > 1e-6, hue / 6.0, 0.0)
    sat = np.where(hi > 0, delta / np.maximum(hi, 1e-6), 0.0)
    return hue, sat, hi


def run(state):
    rgba = state["rgba"]
    rgb, alpha = rgba[..., :3], rgba[..., 3:]

    # grey-world balance from pixels that are neither clipped nor dark
    usable = np.all(rgb < 0.98, axis=-1) & np.any(rgb > 0.05, axis=-1)
    grey = rgb[usable].mean(axis=0, dtype=np.float64)
    balanced = rgb * (grey.mean() / grey)

    # camera matrix; count what falls out of gamut, then desaturate only that
    mixed = balanced @ MIX.T
    out = np.any((mixed < 0.0) | (mixed > 1.0), axis=-1)
    luma = (mixed * LUMA).sum(axis=-1, keepdims=True)
    mixed = np.where(out[..., None], luma + 0.6 * (mixed - luma), mixed)
    mixed = np.clip(mixed, 0.0, 1.0)

    hue, sat, value = hue_sat(mixed)
    strong = (sat > 0.35) & (value > 0.2)
    sector = np.minimum((hue * 12).astype(np.int64), 11)
    hist = np.bincount(sector[strong], minlength=12)

    # composite and encode
    over = alpha * mixed + (1.0 - alpha) * state["backdrop"]
    srgb = np.where(
        over <= 0.0031308, 12.92 * over, 1.055 * np.maximum(over, 0.0031308) ** (1 / 2.4) - 0.055
    )
    code = np.rint(srgb * 255.0).astype(np.uint8)

    chroma = mixed / np.maximum(mixed.sum(axis=-1, keepdims=True), 1e-4)
    dominant = mixed.argmax(axis=-1)
    return {
        "out": out.mean(),
        "grey": grey,
        "hist": hist,
        "sat": sat,
        "srgb": srgb,
        "code_mean": code.mean(axis=0),
        "chroma": chroma,
        "dominant": np.bincount(dominant, minlength=3),
    }


def check(result):
    return [
        result[k] for k in ("out", "grey", "hist", "sat", "srgb", "code_mean", "chroma", "dominant")
    ]
