"""Smith-Waterman local alignment scores by anti-diagonals (int32, affine gaps).

One query against a small batch of equal-length targets.  The DP tables are kept
as three rolling diagonals, so each step is a whole-vector update over the batch.
"""

import numpy as np

SIZES = {"small": 8, "default": 180, "large": 1000}
NT = 24
OPEN, EXTEND = 11, 1
NEG = -(1 << 20)


def make(n, seed=1):
    rng = np.random.default_rng(seed)
    m = rng.integers(-4, 2, size=(20, 20))
    blosum = np.minimum(m, m.T)
    blosum[np.diag_indices(20)] = rng.integers(4, 10, size=20)
    query = rng.integers(0, 20, n).astype(np.int8)
    targets = rng.integers(0, 20, (NT, n)).astype(np.int8)
    for k in range(0, NT, 2):  # plant mutated copies
        w = n // 2
        s = rng.integers(0, n - w + 1)
        piece = query[s : s + w].copy()
        mut = rng.random(w) < 0.1 + 0.02 * k
        piece[mut] = rng.integers(0, 20, mut.sum())
        e = rng.integers(0, n - w + 1)
        targets[k, e : e + w] = piece
    return {"q": query, "t": targets, "sub": blosum.astype(np.int32)}


def batch_align(q, t, sub):
    """Best local score and its end cell for every target."""
    nt, n = t.shape
    m = len(q)
    # cell (i, j) lives on diagonal d = i + j at slot i; slot 0 is the border
    h2 = np.zeros((nt, m + 1), dtype=np.int32)
    h1 = np.zeros((nt, m + 1), dtype=np.int32)
    e1 = np.full((nt, m + 1), NEG, dtype=np.int32)
    f1 = np.full((nt, m + 1), NEG, dtype=np.int32)
    best = np.zeros(nt, dtype=np.int32)
    best_d = np.zeros(nt, dtype=np.int64)
    best_i = np.zeros(nt, dtype=np.int64)
    rows = np.arange(nt)
    trev = t[:, ::-1]
    for d in range(2, m + n + 1):
        lo, hi = max(1, d - n), min(m, d - 1)  # valid i, inclusive
        cur = slice(lo, hi + 1)
        prev = slice(lo - 1, hi)
        # j = d - i runs downward as i goes up: a slice of the reversed targets
        j0 = n - (d - lo)
        s = sub[q[lo - 1 : hi], trev[:, j0 : j0 + hi - lo + 1]]

        e = np.maximum(h1[:, cur] - OPEN, e1[:, cur] - EXTEND)  # gap in query
        f = np.maximum(h1[:, prev] - OPEN, f1[:, prev] - EXTEND)  # gap in target
        h = h2[:, prev] + s
        np.maximum(h, e, out=h)
        np.maximum(h, f, out=h)
        np.maximum(h, 0, out=h)

        h2, h1 = h1, np.zeros_like(h1)
        h1[:, cur] = h
        e1 = np.full_like(e1, NEG)
        e1[:, cur] = e
        f1 = np.full_like(f1, NEG)
        f1[:, cur] = f

        arg = h.argmax(axis=1)
        top = h[rows, arg]
        better = top > best
        best = np.where(better, top, best)
        best_d[better] = d
        best_i[better] = arg[better] + lo
    return best, best_i, best_d - best_i


def run(state):
    q, t, sub = state["q"], state["t"], state["sub"]
    score, iend, jend = batch_align(q, t, sub)
    self_score = sub[q, q].sum()
    order = np.argsort(-score, kind="stable")
    return {"score": score, "iend": iend, "jend": jend, "rel": score / self_score, "order": order}


def check(result):
    return [result[k] for k in ("score", "iend", "jend", "rel", "order")]
