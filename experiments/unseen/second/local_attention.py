"""One head of self-attention over the last W tokens, with a residual and a root-mean-square norm.

Source: I. Beltagy et al., "Longformer" (2020), causal sliding window; B. Zhang, R. Sennrich, "Root Mean
Square Layer Normalization" (2019). Floats; the maximum is subtracted before exp.
"""

import argparse
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pykokkos as pk

SIZES = {"small": 128, "default": 8_000, "large": 100_000}
D, W = 16, 24


@pk.workunit
def project(t, c, out, x, weight):
    s: pk.float = 0.0
    for k in range(D):
        s += x[t][k] * weight[k][c]
    out[t][c] = s


@pk.workunit
def scores(t, w, score, q, key, scale):
    s: pk.float = 0.0
    u = t + w - W + 1
    if u >= 0:
        for k in range(D):
            s += q[t][k] * key[u][k]
        score[t][w] = s * scale
    else:
        score[t][w] = -1e30


@pk.workunit
def peak(t, top, score):
    best: pk.float = score[t][W - 1]
    for w in range(W - 1):
        best = max(best, score[t][w])
    top[t] = best


@pk.workunit
def weigh(t, w, score, top):
    score[t][w] = exp(score[t][w] - top[t])


@pk.workunit
def normalise(t, total, score):
    s: pk.float = 0.0
    for w in range(W):
        s += score[t][w]
    total[t] = s


@pk.workunit
def mix(t, c, out, score, value, total):
    s: pk.float = 0.0
    for w in range(W):
        u = t + w - W + 1
        if u >= 0:
            s += score[t][w] * value[u][c]
    out[t][c] = s / total[t]


@pk.workunit
def residual(t, c, out, x):
    out[t][c] += x[t][c]


@pk.workunit
def rms(t, norm, out):
    s: pk.float = 1e-6
    for c in range(D):
        s += out[t][c] * out[t][c]
    norm[t] = sqrt(s / D)


@pk.workunit
def rescale(t, c, out, norm):
    out[t][c] /= norm[t]


@pk.workunit
def entropy(t, acc, score, total):
    for w in range(W):
        p: float = score[t][w] / total[t]
        if p > 0.0:
            acc -= p * log(p)


@dataclass
class State:
    n: int
    x: pk.View
    weights: list
    out: pk.View
    entropy: float = 0.0


def tokens(n: int):
    rng = np.random.default_rng(17)
    return rng.normal(size=(n, D)), [rng.normal(size=(D, D)) / np.sqrt(D) for _ in range(3)]


def setup(size: int) -> State:
    x, matrices = tokens(size)
    views = [pk.View(list(a.shape), pk.float) for a in (x, *matrices, x)]
    for view, values in zip(views, (x, *matrices), strict=False):
        view.data[:] = values
    return State(size, views[0], views[1:4], views[4])


def run(state: State) -> None:
    n, x, out = state.n, state.x, state.out
    wide, windows = pk.MDRangePolicy([0, 0], [n, D]), pk.MDRangePolicy([0, 0], [n, W])
    q, key, value = (pk.View([n, D], pk.float) for _ in range(3))
    score, top, total, norm = pk.View([n, W], pk.float), *(pk.View([n], pk.float) for _ in range(3))
    for target, weight in zip((q, key, value), state.weights, strict=True):
        pk.parallel_for(wide, project, out=target, x=x, weight=weight)
    pk.parallel_for(windows, scores, score=score, q=q, key=key, scale=1.0 / np.sqrt(D))
    pk.parallel_for(n, peak, top=top, score=score)
    pk.parallel_for(windows, weigh, score=score, top=top)
    pk.parallel_for(n, normalise, total=total, score=score)
    pk.parallel_for(wide, mix, out=out, score=score, value=value, total=total)
    pk.parallel_for(wide, residual, out=out, x=x)
    pk.parallel_for(n, rms, norm=norm, out=out)
    pk.parallel_for(wide, rescale, out=out, norm=norm)
    state.entropy = pk.parallel_reduce(n, entropy, score=score, total=total)


def outputs(state: State) -> dict[str, np.ndarray | float]:
    return {"out": np.array(state.out.data), "entropy": float(state.entropy)}


def check(state: State, size: int, runs: int) -> None:
    x, matrices = tokens(size)
    q, key, value = (x @ m for m in matrices)
    key, value = (np.pad(a, ((W - 1, 0), (0, 0))) for a in (key, value))
    u = np.arange(size)[:, None] + np.arange(W)
    score = np.where(u >= W - 1, np.einsum("tk,twk->tw", q, key[u]) / 4.0, -1e30)
    p = np.exp(score - score.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    out = x + np.einsum("tw,twk->tk", p, value[u])
    out /= np.sqrt(np.mean(out**2, 1, keepdims=True))
    np.testing.assert_allclose(outputs(state)["out"], out, atol=1e-4)
    positive = p[p > 0]
    np.testing.assert_allclose(
        outputs(state)["entropy"], -np.sum(positive * np.log(positive)), rtol=1e-4
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=lambda text: SIZES.get(text) or int(text), default="small")
    parser.add_argument("--runs", type=int, default=1)
    args = parser.parse_args()
    state, start = setup(args.size), perf_counter()
    for _ in range(args.runs):
        run(state)
    seconds = perf_counter() - start
    check(state, args.size, args.runs)
    print(f"local_attention: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
