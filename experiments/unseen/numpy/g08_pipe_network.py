"""Water network on a random planar-ish graph: islands, hop distances from up
to 32 depots with bit sets, nodal heads by preconditioned CG, leak ranking."""

import numpy as np

SIZES = {"small": 60, "default": 3000, "large": 25000}


def make(n, seed=1):
    rng = np.random.default_rng(seed)
    side = int(np.ceil(np.sqrt(n)))
    idx = np.arange(n)
    row, col = idx // side, idx % side
    right = idx[(col < side - 1) & (idx + 1 < n)]
    down = idx[idx + side < n]
    diag = idx[(col < side - 1) & (idx + side + 1 < n) & (rng.random(n) < 0.3)]
    src = np.concatenate([right, down, diag])
    dst = np.concatenate([right + 1, down + side, diag + side + 1])
    src, dst = np.compress(rng.random(src.size) < 0.9, [src, dst], axis=1)  # closed valves
    sites = rng.permutation(n)
    xy = np.stack([col, row], axis=1) * 100.0 + rng.normal(0, 20, (n, 2))
    return {
        "n": n,
        "src": src,
        "dst": dst,
        "xy": xy,
        "diameter": rng.choice([0.1, 0.15, 0.2, 0.3], size=src.size),
        "demand": rng.gamma(2.0, 4e-5, n),
        "tanks": sites[: max(2, n // 200)],
        "depots": sites[-32:],
        "age": rng.integers(1, 80, src.size),
    }


def islands(n, src, dst):
    # min-label propagation with pointer jumping
    lab = np.arange(n)
    while True:
        m, new = np.minimum(lab[src], lab[dst]), lab.copy()
        np.minimum.at(new, src, m)
        np.minimum.at(new, dst, m)
        new = new[new]
        if (new == lab).all():
            return lab
        lab = new


def hops(n, src, dst, depots, limit=12):
    """Hop count to each depot: one bit per depot, or-ed along the edges."""
    seen = np.zeros(n, dtype=np.uint32)
    bits = np.uint32(1) << np.arange(len(depots), dtype=np.uint32)
    np.bitwise_or.at(seen, depots, bits)
    first = np.full(n, limit, dtype=np.int32)
    first[depots] = 0
    for step in range(1, limit):
        new = seen.copy()
        np.bitwise_or.at(new, src, seen[dst])
        np.bitwise_or.at(new, dst, seen[src])
        fresh = new & ~seen
        first[(seen == 0) & (fresh != 0)] = step
        seen = new
    return first, seen


class Network:
    def __init__(self, n, src, dst, cond, fixed):
        self.n, self.src, self.dst, self.cond = n, src, dst, cond
        self.free = ~np.isin(np.arange(n), fixed)
        self.diag = np.bincount(src, cond, n) + np.bincount(dst, cond, n)

    def apply(self, x):
        q = self.cond * (x[self.src] - x[self.dst])
        return np.bincount(self.src, q, self.n) - np.bincount(self.dst, q, self.n)

    def solve(self, head, demand, tol=1e-5, max_iter=500):
        """Jacobi-preconditioned CG on the free nodes; head holds the tank levels."""
        x = head.copy()
        r = np.where(self.free, -demand - self.apply(x), 0.0)
        minv = np.where(self.free, 1.0 / np.maximum(self.diag, 1e-12), 0.0)
        p = z = minv * r
        rz = r @ z
        stop = tol * np.linalg.norm(demand[self.free])
        for it in range(1, max_iter + 1):
            ap = self.apply(p) * self.free
            alpha = rz / (p @ ap)
            x += alpha * p
            r -= alpha * ap
            if np.linalg.norm(r) < stop:
                break
            z = minv * r
            rz, old = r @ z, rz
            p = z + (rz / old) * p
        return x, it


def run(state):
    n, src, dst = state["n"], state["src"], state["dst"]
    lab = islands(n, src, dst)
    fed = np.isin(lab, lab[state["tanks"]])
    first, seen = hops(n, src, dst, state["depots"])

    live = fed[src] & fed[dst]
    s, d = src[live], dst[live]
    length = np.linalg.norm(state["xy"][s] - state["xy"][d], axis=1)
    area = 0.25 * np.pi * state["diameter"][live] ** 2
    cond = 40.0 * area * state["diameter"][live] / np.maximum(length, 1.0)
    demand = np.where(fed, state["demand"], 0.0)
    net = Network(n, s, d, cond, state["tanks"])
    head = np.where(fed, 60.0, 0.0)
    iters = []
    for _ in range(3):  # pressure-dependent demand, a few Picard passes
        head, it = net.solve(head, demand)
        demand = np.where(fed, state["demand"] * np.sqrt(np.clip(head / 60.0, 0.0, 1.0)), 0.0)
        iters.append(it)

    flow = cond * (head[s] - head[d])
    risk = state["age"][live] ** 1.5 * np.maximum(head[s] + head[d], 0.0) * length
    return {
        "islands_fed": np.array([np.unique(lab).size, fed.mean()]),
        "first_hop": first,
        "covered": np.bitwise_count(seen).astype(int),
        "head": head,
        "cg_iters": np.array(iters),
        "fast_pipes": np.count_nonzero(np.abs(flow) > 0.05 * area),
        "worst": np.argsort(risk)[::-1][:15],
    }


def check(result):
    return list(result.values())
