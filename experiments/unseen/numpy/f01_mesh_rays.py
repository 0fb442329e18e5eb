"""Triangle soup geometry: face normals, areas, bounding boxes, shading, and
a ray test of one sight line per facet against its own plane (laser scan QC)."""

import numpy as np

SIZES = {"small": 1200, "default": 40000, "large": 300000}


def make(n, seed=1):
    rng = np.random.default_rng(seed)
    centre = rng.normal(size=(n, 3))
    centre /= np.linalg.norm(centre, axis=1, keepdims=True)
    centre *= 10.0
    a = centre + rng.normal(scale=0.2, size=(n, 3))
    b = centre + rng.normal(scale=0.2, size=(n, 3))
    c = centre + rng.normal(scale=0.2, size=(n, 3))
    scanner = np.array([14.0, -3.0, 2.5])
    noise = rng.normal(scale=0.01, size=(n, 3))
    return {"a": a, "b": b, "c": c, "scanner": scanner, "noise": noise}


def face_normals(a, b, c):
    nrm = np.cross(b - a, c - a)
    length = np.sqrt((nrm * nrm).sum(axis=1))
    area = 0.5 * length
    safe = np.where(length > 1e-12, length, 1.0)
    return nrm / safe[:, None], area


def run(state):
    a, b, c = state["a"], state["b"], state["c"]
    scanner = state["scanner"]
    nrm, area = face_normals(a, b, c)
    mid = (a + b + c) / 3.0
    # orient the normals outwards from the body centre
    body = (mid * area[:, None]).sum(axis=0) / area.sum()
    flip = ((mid - body) * nrm).sum(axis=1) < 0.0
    nrm[flip] *= -1.0

    # visibility and incidence angle
    view = scanner - mid
    dist = np.linalg.norm(view, axis=1)
    view = view / dist[:, None]
    cosi = np.clip((view * nrm).sum(axis=1), -1.0, 1.0)
    visible = (cosi > 0.1) & (dist < 22.0)
    incidence = np.degrees(np.arccos(cosi))

    # where the slightly disturbed ray meets the plane of the facet
    ray = -view + state["noise"]
    ray /= np.sqrt((ray**2).sum(axis=1))[:, np.newaxis]
    denom = (ray * nrm).sum(axis=1)
    t = ((a - scanner) * nrm).sum(axis=1) / np.where(np.abs(denom) < 1e-3, 1e-3, denom)
    hit = scanner + t[:, None] * ray
    err = np.linalg.norm(hit - mid, axis=1)

    # bounding box of each facet and of the visible part
    lo = np.minimum(np.minimum(a, b), c)
    hi = np.maximum(np.maximum(a, b), c)
    inside = np.all((hit >= lo) & (hit <= hi), axis=1)
    vis_lo, vis_hi = lo[visible].min(axis=0), hi[visible].max(axis=0)
    edges = np.stack([((p - q) ** 2).sum(axis=1) for p, q in ((a, b), (b, c), (c, a))], axis=1)
    aspect = np.sqrt(edges.max(axis=1) / edges.min(axis=1))
    return {
        "body": body,
        "visible": visible,
        "incidence": incidence,
        "err_med": np.median(err[visible]),
        "inside": inside.mean(),
        "box": np.concatenate([vis_lo, vis_hi]),
        "aspect": aspect,
        "seen_area": area[visible].sum() / area.sum(),
    }


def check(result):
    return [
        result["body"],
        result["visible"],
        result["incidence"],
        result["err_med"],
        result["inside"],
        result["box"],
        result["aspect"],
        result["seen_area"],
    ]
