"""Networks: PageRank on a CSR graph with np.add.reduceat, until converged, plus degree statistics."""

import numpy as np

SIZES = {"small": 120, "default": 8000, "large": 120_000}  # nodes, about ten edges each


def make(n, seed=1):
    rng = np.random.default_rng(seed)
    m = 10 * n
    src = rng.integers(0, n, m)
    dst = (n * rng.random(m) ** 2.5).astype(np.int64)
    keep = src != dst
    src, dst = src[keep], dst[keep]
    order = np.lexsort((src, dst))  # rows = target nodes
    src, dst = src[order], dst[order]
    indptr = np.searchsorted(dst, np.arange(n + 1))
    return {"n": n, "indptr": indptr, "indices": src.astype(np.int32), "damping": 0.85}


def csr_dot(indptr, indices, data, x):
    """y = A @ x with empty rows taken care of"""
    y = np.zeros(len(indptr) - 1)
    filled = indptr[1:] > indptr[:-1]
    prod = x[indices] if data is None else data * x[indices]
    y[filled] = np.add.reduceat(prod, indptr[:-1][filled])
    return y


def gini(x):
    x = np.sort(x)
    n = x.size
    return float((2 * np.arange(1, n + 1) - n - 1) @ x / (n * x.sum()))


def run(g):
    n, indptr, indices, d = g["n"], g["indptr"], g["indices"], g["damping"]
    out_degree = np.bincount(indices, minlength=n)
    in_degree = np.diff(indptr)
    dangling = out_degree == 0
    weight = 1.0 / np.maximum(out_degree, 1)

    rank = np.full(n, 1.0 / n)
    error, sweeps = 1.0, 0
    while error > 1e-7 and sweeps < 30:
        spread = csr_dot(indptr, indices, None, rank * weight)
        new = d * (spread + rank[dangling].sum() / n) + (1 - d) / n
        error = np.abs(new - rank).sum()
        rank = new
        sweeps += 1

    # hubs and authorities: three power iterations of HITS with the same structure
    hub = np.ones(n)
    for _ in range(3):
        auth = csr_dot(indptr, indices, None, hub)
        auth /= np.linalg.norm(auth)
        hub = np.bincount(indices, weights=np.repeat(auth, in_degree), minlength=n)
        hub /= np.sqrt((hub**2).sum())
    top = np.argsort(rank)[::-1][:20]
    corr = np.corrcoef(rank, in_degree)[0, 1]
    return rank, rank[top], sweeps, gini(rank), float(corr), auth, hub


def check(result):
    rank, top, sweeps, gini_, corr, auth, hub = result
    return [rank, top, float(sweeps), gini_, corr, auth, hub]
