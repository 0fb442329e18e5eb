"""Ray tracing a few shiny spheres over a checkered floor, arrays of rays.

Each bounce intersects all the live rays with every sphere, shades the hits with
one point light (with shadow rays) and keeps going with the reflected subset.
"""

import numpy as np

SIZES = {"small": 14, "default": 120, "large": 420}
FAR = 1.0e6


class Sphere:
    def __init__(self, center, radius, color, mirror):
        self.center = np.asarray(center, dtype=float)
        self.radius = radius
        self.color = np.asarray(color, dtype=float)
        self.mirror = mirror


def dot(a, b):
    return np.sum(a * b, axis=-1)


def normalize(v):
    return v / np.sqrt(dot(v, v))[..., np.newaxis]


def make(n, seed=1):
    rng = np.random.default_rng(seed)
    spheres = [
        Sphere(
            (rng.uniform(-2, 2), rng.uniform(0.2, 1.2), rng.uniform(2, 5)),
            rng.uniform(0.3, 0.7),
            rng.uniform(0.2, 1.0, 3),
            rng.uniform(0.2, 0.6),
        )
        for _ in range(5)
    ]
    w, h = n * 4 // 3, n
    x = np.linspace(-1.33, 1.33, w)
    y = np.linspace(1.0, -1.0, h)
    px, py = np.meshgrid(x, y)
    target = np.stack([px.ravel(), py.ravel() + 0.4, np.zeros(w * h)], axis=-1)
    origin = np.array([0.0, 0.5, -2.0])
    return {
        "shape": (h, w),
        "spheres": spheres,
        "light": np.array([4.0, 5.0, -6.0]),
        "origin": np.broadcast_to(origin, target.shape).copy(),
        "dir": normalize(target - origin),
    }


def hit_sphere(s, o, d):
    oc = o - s.center
    b = dot(oc, d)
    disc = b * b - (dot(oc, oc) - s.radius**2)
    sq = np.sqrt(np.maximum(disc, 0.0))
    near, far = -b - sq, -b + sq
    t = np.where(near > 1e-4, near, far)
    return np.where((disc > 0) & (t > 1e-4), t, FAR)


def hit_floor(o, d):
    down = d[:, 1] < -1e-6
    t = np.where(down, (-0.5 - o[:, 1]) / np.where(down, d[:, 1], -1.0), FAR)
    return np.where(t > 1e-4, t, FAR)


def trace(scene, o, d, depth):
    spheres, light = scene["spheres"], scene["light"]
    ts = np.stack([hit_sphere(s, o, d) for s in spheres] + [hit_floor(o, d)])
    which = ts.argmin(axis=0)
    t = ts.min(axis=0)
    color = np.array([0.4, 0.55, 0.8]) * (0.5 + 0.5 * d[:, 1:2])  # sky

    hit = t < FAR
    if not hit.any():
        return color, t
    which, p = which[hit], o[hit] + d[hit] * t[hit][:, None]
    normal = np.tile(np.array([0.0, 1.0, 0.0]), (len(p), 1))
    check_ = (np.floor(p[:, 0]) + np.floor(p[:, 2])).astype(int) % 2
    albedo = np.where(check_[:, None] == 0, 0.9, 0.2) * np.ones(3)
    mirror = np.full(len(p), 0.1)
    for k, s in enumerate(spheres):
        mine = which == k
        normal[mine] = (p[mine] - s.center) / s.radius
        albedo[mine] = s.color
        mirror[mine] = s.mirror

    to_light = normalize(light - p)
    start = p + normal * 1e-3
    blocked = np.min([hit_sphere(s, start, to_light) for s in spheres], axis=0) < FAR
    lambert = np.clip(dot(normal, to_light), 0.0, None) * ~blocked
    half = normalize(to_light - d[hit])
    spec = np.clip(dot(normal, half), 0.0, 1.0) ** 50 * ~blocked
    local = albedo * (0.1 + 0.9 * lambert[:, None]) + 0.6 * spec[:, None]
    if depth > 0:
        r = d[hit] - 2.0 * dot(d[hit], normal)[:, None] * normal
        bounced, _ = trace(scene, start, normalize(r), depth - 1)
        local += bounced * mirror[:, None]
    color[hit] = local
    return color, t


def run(state):
    color, t = trace(state, state["origin"], state["dir"], depth=1)
    image = (255 * np.clip(color, 0, 1)).reshape(state["shape"] + (3,))
    depth = np.where(t < FAR, t, 0.0).reshape(state["shape"])
    luma = image @ np.array([0.2126, 0.7152, 0.0722])
    return image, depth, np.histogram(luma, bins=16, range=(0, 256))[0], luma.mean()


def check(result):
    image, depth, hist, mean = result
    return [image, depth, hist, mean]
