"""Connected components of a picture: labels spread and jump until none changes, then areas."""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk
from common import main, view

SIZES = {"small": 40, "default": 300, "large": 1_200}
THRESHOLD, BLOBS = 120, 4


@pk.workunit
def threshold(i: int, j: int, mask: pk.View2D[pk.uint8], image: pk.View2D[pk.uint8], level: int):
    mask[i][j] = 1 if image[i][j] > level else 0


@pk.workunit
def erode(i: int, j: int, out: pk.View2D[pk.uint8], mask: pk.View2D[pk.uint8]):
    out[i][j] = mask[i][j] & mask[i - 1][j] & mask[i + 1][j] & mask[i][j - 1] & mask[i][j + 1]


@pk.workunit
def dilate(i: int, j: int, out: pk.View2D[pk.uint8], mask: pk.View2D[pk.uint8]):
    out[i][j] = mask[i][j] | mask[i - 1][j] | mask[i + 1][j] | mask[i][j - 1] | mask[i][j + 1]


@pk.workunit
def number(i: int, j: int, label: pk.View2D[pk.int32], mask: pk.View2D[pk.uint8], n: int):
    label[i][j] = -1
    if mask[i][j] == 1:
        label[i][j] = i * n + j


@pk.function
def lesser(a: int, b: int) -> int:
    """The lesser label, where b is one."""
    return b if b >= 0 and b < a else a


@pk.workunit
def spread(i: int, j: int, new: pk.View2D[pk.int32], old: pk.View2D[pk.int32]):
    least: int = old[i][j]
    if least >= 0:
        least = lesser(least, old[i - 1][j])
        least = lesser(least, old[i + 1][j])
        least = lesser(least, old[i][j - 1])
        least = lesser(least, old[i][j + 1])
    new[i][j] = least


@pk.workunit
def hook(
    i: int,
    j: int,
    root: pk.View2D[pk.int32],
    old: pk.View2D[pk.int32],
    new: pk.View2D[pk.int32],
    n: int,
):
    """The old root of a pixel learns of its lesser neighbour."""
    if new[i][j] >= 0 and new[i][j] < old[i][j]:
        pk.atomic_fetch_min(root, [old[i][j] // n, old[i][j] % n], new[i][j])


@pk.workunit
def copy(i: int, j: int, b: pk.View2D[pk.int32], a: pk.View2D[pk.int32]):
    b[i][j] = a[i][j]


@pk.workunit
def jump(i: int, j: int, b: pk.View2D[pk.int32], a: pk.View2D[pk.int32], n: int):
    b[i][j] = a[i][j]
    if a[i][j] >= 0:
        b[i][j] = a[a[i][j] // n][a[i][j] % n]


@pk.workunit
def differs(i: int, j: int, acc: pk.Acc[pk.int64], a: pk.View2D[pk.int32], b: pk.View2D[pk.int32]):
    if a[i][j] != b[i][j]:
        acc += 1


@pk.workunit
def is_root(i: int, j: int, root: pk.View1D[pk.int32], label: pk.View2D[pk.int32], n: int):
    root[i * n + j] = 1 if label[i][j] == i * n + j else 0


@pk.workunit
def compact(
    k: int, acc: pk.Acc[pk.int64], last: bool, rank: pk.View1D[pk.int32], root: pk.View1D[pk.int32]
):
    if last:
        rank[k] = acc
    acc += root[k]


@pk.workunit
def relabel(
    i: int,
    j: int,
    out: pk.View2D[pk.int32],
    label: pk.View2D[pk.int32],
    rank: pk.View1D[pk.int32],
):
    out[i][j] = 0
    if label[i][j] >= 0:
        out[i][j] = rank[label[i][j]] + 1


@pk.workunit
def clear(k: int, v: pk.View1D[pk.int32]):
    v[k] = 0


@pk.workunit
def areas(i: int, j: int, area: pk.View1D[pk.int32], label: pk.View2D[pk.int32]):
    if label[i][j] > 0:
        pk.atomic_increment(area, [label[i][j] - 1])


@pk.workunit
def large(k: int, acc: pk.Acc[pk.int64], area: pk.View1D[pk.int32], least: int):
    if area[k] >= least:
        acc += 1


@dataclass
class State:
    size: int
    image: pk.View
    out: pk.View
    area: pk.View
    found: int = 0
    large: int = 0
    rounds: int = 0


def problem(n):
    rng = np.random.default_rng(7)
    a = rng.normal(size=(n, n))
    for _ in range(BLOBS):
        a = a + np.roll(a, 1, 0) + np.roll(a, -1, 0) + np.roll(a, 1, 1) + np.roll(a, -1, 1)
    a = (a - a.min()) / (a.max() - a.min())
    return (255 * a).astype(np.uint8)


def setup(n):
    return State(n, view(problem(n)), pk.View([n, n], pk.int32), pk.View([n * n], pk.int32))


def run(s):
    n = s.size
    inner = pk.MDRangePolicy([1, 1], [n - 1, n - 1])
    full = pk.MDRangePolicy([0, 0], [n, n])
    mask, thin, thick = (pk.View([n, n], pk.uint8) for _ in range(3))
    label, new, root, old = (pk.View([n, n], pk.int32) for _ in range(4))
    pk.parallel_for(inner, threshold, mask=mask, image=s.image, level=THRESHOLD)
    pk.parallel_for(inner, erode, out=thin, mask=mask)
    pk.parallel_for(inner, dilate, out=thick, mask=thin)
    pk.parallel_for(full, number, label=label, mask=thick, n=n)
    s.rounds, changed = 0, 1
    while changed > 0:
        pk.parallel_for(full, copy, b=old, a=label)
        pk.parallel_for(inner, spread, new=new, old=old)
        pk.parallel_for(full, copy, b=root, a=old)
        pk.parallel_for(inner, hook, root=root, old=old, new=new, n=n)
        pk.parallel_for(full, jump, b=label, a=root, n=n)
        pk.parallel_for(full, jump, b=root, a=label, n=n)
        pk.parallel_for(full, copy, b=label, a=root)
        changed = int(pk.parallel_reduce(full, differs, a=label, b=old))
        s.rounds += 1
    flag, rank = pk.View([n * n], pk.int32), pk.View([n * n], pk.int32)
    pk.parallel_for(full, is_root, root=flag, label=label, n=n)
    s.found = int(pk.parallel_scan(n * n, compact, rank=rank, root=flag))
    pk.parallel_for(full, relabel, out=s.out, label=label, rank=rank)
    pk.parallel_for(n * n, clear, v=s.area)
    pk.parallel_for(full, areas, area=s.area, label=s.out)
    s.large = int(pk.parallel_reduce(max(1, s.found), large, area=s.area, least=20))


def outputs(s):
    return {
        "out": np.array(s.out.data),
        "area": np.array(s.area.data),
        "found": s.found,
        "large": s.large,
        "rounds": s.rounds,
    }


def check(s):
    n = s.size
    if n > 500:
        return
    mask = np.zeros((n, n), dtype=bool)
    mask[1:-1, 1:-1] = problem(n)[1:-1, 1:-1] > THRESHOLD

    def cross(m, op):
        out = np.zeros_like(m)
        out[1:-1, 1:-1] = op.reduce(
            [m[1:-1, 1:-1], m[:-2, 1:-1], m[2:, 1:-1], m[1:-1, :-2], m[1:-1, 2:]]
        )
        return out

    mask = cross(cross(mask, np.logical_and), np.logical_or)
    out = np.zeros((n, n), dtype=int)
    area = []
    for a, b in np.argwhere(mask):
        if out[a, b]:
            continue
        area.append(0)
        stack = [(a, b)]
        out[a, b] = len(area)
        while stack:
            p, q = stack.pop()
            area[-1] += 1
            for c, d in ((p - 1, q), (p + 1, q), (p, q - 1), (p, q + 1)):
                if mask[c, d] and not out[c, d]:
                    out[c, d] = len(area)
                    stack.append((c, d))
    assert s.found == len(area) and (s.out.data == out).all()
    assert (s.area.data[: len(area)] == area).all()
    assert s.large == (np.array(area) >= 20).sum() and s.found > 1


if __name__ == "__main__":
    main(globals())
