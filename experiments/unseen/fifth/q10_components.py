"""Connected components by label relaxation with pointer jumping, then statistics of the components."""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk
from common import main, rnd

SIZES = {"small": 3000, "default": 400_000, "large": 3_000_000}


@pk.workunit
def number(i, label):
    label[i] = i


@pk.workunit
def copy(i, out, a):
    out[i] = a[i]


@pk.workunit
def hook(i, new, label, start, target):
    """A vertex and its root get the least label among its neighbours."""
    least = label[i]
    for e in range(start[i], start[i + 1]):
        least = min(least, label[target[e]])
    if least < label[i]:
        old = pk.atomic_fetch_min(new, [label[i]], least)
        own = pk.atomic_fetch_min(new, [i], least)


@pk.workunit
def jump(i, out, label):
    out[i] = label[label[i]]


@pk.workunit
def changes(i, acc: pk.Acc[pk.int64], a, b):
    if a[i] != b[i]:
        acc += 1


@pk.workunit
def zero(i, a):
    a[i] = 0


@pk.workunit
def tally(i, size, label):
    pk.atomic_add(size, [label[i]], 1)


@pk.workunit
def roots(i, acc: pk.Acc[pk.int64], label):
    if label[i] == i:
        acc += 1


@pk.workunit
def size_squared(i, acc, size):
    s: float = size[i]
    acc += s * s


@pk.workunit
def own_size(i, out, size, label):
    out[i] = size[label[i]]


@pk.workunit
def boundary(i, acc: pk.Acc[pk.int64], big, start, limit):
    """Edges of vertices in large components."""
    if big[i] >= limit:
        acc += start[i + 1] - start[i]


@dataclass
class State:
    n: int
    start: np.ndarray
    target: np.ndarray
    label: np.ndarray
    size: np.ndarray
    found: dict


def graph(n):
    """Broken chains, and few longer links, both ways, as CSR."""
    i = np.arange(n - 1)[rnd(n - 1, 18) < 0.97]
    j = i + 1
    k = np.arange(n)[rnd(n, 19) < 0.05]
    m = np.minimum(k + 2 + (rnd(len(k), 20) ** 3 * 3000).astype(np.int64), n - 1)
    src, dst = np.concatenate([i, j, k, m]), np.concatenate([j, i, m, k])
    order = np.argsort(src, kind="stable")
    start = np.zeros(n + 1, np.int32)
    start[1:] = np.cumsum(np.bincount(src, minlength=n))
    return start, dst[order].astype(np.int32)


def setup(n):
    return State(n, *graph(n), np.zeros(n, np.int32), np.zeros(n, np.int32), {})


def run(s):
    n, label = s.n, s.label
    new, spare = np.empty(n, np.int32), np.empty(n, np.int32)
    pk.parallel_for(n, number, label=label)
    rounds = 0
    while True:
        pk.parallel_for(n, copy, out=new, a=label)
        pk.parallel_for(n, hook, new=new, label=label, start=s.start, target=s.target)
        pk.parallel_for(n, jump, out=spare, label=new)
        pk.parallel_for(n, jump, out=new, label=spare)
        left = pk.parallel_reduce(n, changes, a=new, b=label)
        label, new = new, label
        rounds += 1
        if int(left) == 0:
            break
    pk.parallel_for(n, zero, a=s.size)
    pk.parallel_for(n, tally, size=s.size, label=label)
    count = pk.parallel_reduce(n, roots, label=label)
    square = pk.parallel_reduce(n, size_squared, size=s.size)
    pk.parallel_for(n, own_size, out=spare, size=s.size, label=label)
    pk.fence()
    largest = int(s.size.max())
    edges = pk.parallel_reduce(n, boundary, big=spare, start=s.start, limit=max(largest // 4, 2))
    s.found = {
        "count": int(count),
        "square": float(square),
        "largest": largest,
        "edges": int(edges),
        "rounds": rounds,
    }
    s.label = label


def outputs(s):
    return {
        "label": s.label * 1e-3,
        "size": s.size.copy(),
        **{k: float(v) for k, v in s.found.items()},
    }


def check(s, size, runs):
    assert s.size.sum() == size


if __name__ == "__main__":
    main(globals())
