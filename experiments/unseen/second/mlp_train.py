"""Train a network with one hidden layer of tanh by gradient descent with momentum, in full batches.

Source: D. Rumelhart, G. Hinton, R. Williams, "Learning representations by back-propagating errors" (1986).
Layers are launches over samples and units; gradients of weights loop over all samples.
"""

import argparse
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pykokkos as pk

SIZES = {"small": 256, "default": 10_000, "large": 60_000}
FEATURES, HIDDEN, EPOCHS, RATE, KEEP = 6, 10, 4, 0.5, 0.8


@pk.workunit
def hidden(s, u, z, x, w, b):
    t = b[u]
    for k in range(FEATURES):
        t += x[s][k] * w[k][u]
    z[s][u] = t


@pk.workunit
def activate(s, u, a, z):
    a[s][u] = tanh(z[s][u])


@pk.workunit
def output(s, p, a, v):
    t = v[HIDDEN]
    for u in range(HIDDEN):
        t += a[s][u] * v[u]
    p[s] = 1.0 / (1.0 + exp(-t))


@pk.workunit
def loss(s, acc, p, y):
    acc -= log(p[s]) if y[s] == 1 else log(1.0 - p[s])


@pk.workunit
def delta_out(s, d, p, y, n):
    d[s] = (p[s] - y[s]) / n


@pk.workunit
def delta_hidden(s, u, e, d, v, a):
    e[s][u] = d[s] * v[u] * (1.0 - a[s][u] * a[s][u])


@pk.workunit
def grad_v(u, g, d, a, n):
    t = 0.0
    for s in range(n):
        t += d[s] * (a[s][u] if u < HIDDEN else 1.0)
    g[u] = t


@pk.workunit
def grad_w(k, u, g, e, x, n):
    t = 0.0
    for s in range(n):
        t += e[s][u] * x[s][k]
    g[k][u] = t


@pk.workunit
def grad_b(u, g, e, n):
    t = 0.0
    for s in range(n):
        t += e[s][u]
    g[u] = t


@pk.workunit
def step1(u, w, m, g):
    m[u] = KEEP * m[u] - RATE * g[u]
    w[u] += m[u]


@pk.workunit
def step2(k, u, w, m, g):
    m[k][u] = KEEP * m[k][u] - RATE * g[k][u]
    w[k][u] += m[k][u]


@dataclass
class State:
    n: int
    x: pk.View
    y: pk.View
    start: list
    weights: list
    losses: list


def data(n: int):
    rng = np.random.default_rng(88)
    x = rng.normal(size=(n, FEATURES))
    y = (x[:, 0] * x[:, 1] + 0.5 * x[:, 2] > 0.1).astype(np.int8)
    w, b = rng.normal(size=(FEATURES, HIDDEN)), rng.normal(size=HIDDEN)
    return x, y, [w, b, 0.5 * rng.normal(size=HIDDEN + 1)]


def setup(size: int) -> State:
    values = data(size)
    x, y = pk.View([size, FEATURES], pk.double), pk.View([size], pk.int8)
    x.data[:], y.data[:] = values[:2]
    weights = [pk.View(list(a.shape), pk.double) for a in values[2]]
    return State(size, x, y, values[2], weights, [])


def run(state: State) -> None:
    n, x, y, (w, b, v) = state.n, state.x, state.y, state.weights
    for view, values in zip(state.weights, state.start, strict=True):
        view.data[:] = values
    z, a, e = (pk.View([n, HIDDEN], pk.double) for _ in range(3))
    p, d = pk.View([n], pk.double), pk.View([n], pk.double)
    mw, gw = (pk.View([FEATURES, HIDDEN], pk.double) for _ in range(2))
    mb, gb = (pk.View([HIDDEN], pk.double) for _ in range(2))
    mv, gv = (pk.View([HIDDEN + 1], pk.double) for _ in range(2))
    units, table = (
        pk.MDRangePolicy([0, 0], [n, HIDDEN]),
        pk.MDRangePolicy([0, 0], [FEATURES, HIDDEN]),
    )
    state.losses = []
    for _ in range(EPOCHS):
        pk.parallel_for(units, hidden, z=z, x=x, w=w, b=b)
        pk.parallel_for(units, activate, a=a, z=z)
        pk.parallel_for(n, output, p=p, a=a, v=v)
        state.losses.append(pk.parallel_reduce(n, loss, p=p, y=y))
        pk.parallel_for(n, delta_out, d=d, p=p, y=y, n=n)
        pk.parallel_for(units, delta_hidden, e=e, d=d, v=v, a=a)
        pk.parallel_for(HIDDEN + 1, grad_v, g=gv, d=d, a=a, n=n)
        pk.parallel_for(table, grad_w, g=gw, e=e, x=x, n=n)
        pk.parallel_for(HIDDEN, grad_b, g=gb, e=e, n=n)
        pk.parallel_for(HIDDEN + 1, step1, w=v, m=mv, g=gv)
        pk.parallel_for(table, step2, w=w, m=mw, g=gw)
        pk.parallel_for(HIDDEN, step1, w=b, m=mb, g=gb)


def outputs(state: State) -> dict[str, np.ndarray | float]:
    found = dict(zip("wbv", (np.array(view.data) for view in state.weights), strict=True))
    return found | {"losses": np.array([float(number) for number in state.losses])}


def check(state: State, size: int, runs: int) -> None:
    x, y, (w, b, v) = data(size)
    moments, losses = [np.zeros_like(t) for t in (w, b, v)], []
    for _ in range(EPOCHS):
        a = np.tanh(x @ w + b)
        p = 1.0 / (1.0 + np.exp(-(a @ v[:-1] + v[-1])))
        losses.append(-np.sum(np.log(np.where(y == 1, p, 1.0 - p))))
        d = (p - y) / size
        e = d[:, None] * v[:-1] * (1.0 - a**2)
        slopes = [x.T @ e, e.sum(0), np.append(a.T @ d, d.sum())]
        moments = [KEEP * m - RATE * g for m, g in zip(moments, slopes, strict=True)]
        w, b, v = (t + m for t, m in zip((w, b, v), moments, strict=True))
    out = outputs(state)
    for name, values in {"w": w, "b": b, "v": v, "losses": losses}.items():
        np.testing.assert_allclose(out[name], values, rtol=1e-8, atol=1e-10, err_msg=name)
    assert out["losses"][-1] < out["losses"][0]


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
    print(f"mlp_train: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
