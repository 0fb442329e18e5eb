"""Counts the canonical k-mers of a genome, their spectrum, and the minimizers of its windows."""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk
from common import main, view

SIZES = {"small": 2_000, "default": 200_000, "large": 3_000_000}
WINDOW, TOP = 5, 64


@pk.function
def scramble(x: pk.uint32) -> pk.uint32:
    h: pk.uint32 = x * 2654435761
    h = h ^ (h >> 15)
    h = h * 2246822519
    return h ^ (h >> 13)


@pk.workunit
def encode(i: int, code: pk.View1D[pk.uint8], text: pk.View1D[pk.uint8]):
    """A, C, G, T are 0 to 3, anything else 4."""
    code[i] = 4
    if text[i] == 65:
        code[i] = 0
    elif text[i] == 67:
        code[i] = 1
    elif text[i] == 71:
        code[i] = 2
    elif text[i] == 84:
        code[i] = 3


@pk.workunit
def is_gc(i: int, acc: pk.Acc[pk.int64], code: pk.View1D[pk.uint8]):
    if code[i] == 1 or code[i] == 2:
        acc += 1


@pk.workunit
def find_valid(i: int, ok: pk.View1D[pk.uint8], code: pk.View1D[pk.uint8], k: int):
    good: int = 1
    for b in range(k):
        if code[i + b] > 3:
            good = 0
    ok[i] = good


@pk.workunit
def forward(i: int, word: pk.View1D[pk.int32], code: pk.View1D[pk.uint8], k: int):
    w: int = 0
    for b in range(k):
        w = w * 4 + (code[i + b] & 3)
    word[i] = w


@pk.workunit
def backward(i: int, word: pk.View1D[pk.int32], code: pk.View1D[pk.uint8], k: int):
    w: int = 0
    for b in range(k):
        w = w * 4 + 3 - (code[i + k - 1 - b] & 3)
    word[i] = w


@pk.workunit
def canonical(i: int, c: pk.View1D[pk.int32], f: pk.View1D[pk.int32], r: pk.View1D[pk.int32]):
    c[i] = min(f[i], r[i])


@pk.workunit
def clear(w: int, table: pk.View1D[pk.int32]):
    table[w] = 0


@pk.workunit
def tally(i: int, table: pk.View1D[pk.int32], c: pk.View1D[pk.int32], ok: pk.View1D[pk.uint8]):
    if ok[i] == 1:
        pk.atomic_increment(table, [c[i]])


@pk.workunit
def is_present(w: int, acc: pk.Acc[pk.int64], table: pk.View1D[pk.int32]):
    if table[w] > 0:
        acc += 1


@pk.workunit
def spectrum(w: int, hist: pk.View1D[pk.int32], table: pk.View1D[pk.int32], top: int):
    if table[w] > 0:
        pk.atomic_increment(hist, [min(table[w], top) - 1])


@pk.workunit
def entropy(w: int, acc: pk.Acc[pk.double], table: pk.View1D[pk.int32], scale: float):
    if table[w] > 0:
        p: float = table[w] * scale
        acc -= p * pk.log2(p)


@pk.workunit
def hash_words(i: int, h: pk.View1D[pk.uint32], c: pk.View1D[pk.int32], ok: pk.View1D[pk.uint8]):
    h[i] = 4294967295
    if ok[i] == 1:
        h[i] = scramble(c[i])


@pk.workunit
def minimizer(i: int, at: pk.View1D[pk.int32], h: pk.View1D[pk.uint32], window: int):
    """Place of the least hash of a window, the leftmost one."""
    best: int = i
    for b in range(1, window):
        if h[i + b] < h[best]:
            best = i + b
    at[i] = best


@pk.workunit
def is_new(i: int, new: pk.View1D[pk.uint8], at: pk.View1D[pk.int32]):
    new[i] = 1
    if i > 0 and at[i] == at[i - 1]:
        new[i] = 0


@pk.workunit
def place(
    i: int, acc: pk.Acc[pk.int64], last: bool, slot: pk.View1D[pk.int32], new: pk.View1D[pk.uint8]
):
    if last:
        slot[i] = acc
    acc += new[i]


@pk.workunit
def pack(
    i: int,
    out: pk.View1D[pk.int32],
    slot: pk.View1D[pk.int32],
    new: pk.View1D[pk.uint8],
    at: pk.View1D[pk.int32],
):
    if new[i] == 1:
        out[slot[i]] = at[i]


@pk.workunit
def gap_sum(i: int, acc: pk.Acc[pk.double], out: pk.View1D[pk.int32]):
    gap: float = out[i + 1] - out[i]
    acc += gap * gap


@dataclass
class State:
    size: int
    k: int
    text: pk.View
    table: pk.View
    hist: pk.View
    minimizers: pk.View
    gc: int = 0
    distinct: int = 0
    picked: int = 0
    bits: float = 0.0
    gaps: float = 0.0


def problem(n):
    rng = np.random.default_rng(2)
    text = np.frombuffer(b"ACGT", dtype=np.uint8)[rng.choice(4, n, p=[0.3, 0.2, 0.2, 0.3])].copy()
    for _ in range(n // 500):  # repeats
        a, b = rng.integers(0, n - 100, 2)
        text[a : a + 100] = text[b : b + 100]
    text[rng.random(n) < 0.001] = ord("N")
    return text


def setup(n):
    k = 5 if n < 10_000 else 8
    return State(
        n,
        k,
        view(problem(n)),
        pk.View([4**k], pk.int32),
        pk.View([TOP], pk.int32),
        pk.View([n], pk.int32),
    )


def run(s):
    n, k = s.size, s.k
    words, windows, kinds = n - k + 1, n - k + 2 - WINDOW, 4**k
    code = pk.View([n], pk.uint8)
    ok = pk.View([words], pk.uint8)
    f, r, c = (pk.View([words], pk.int32) for _ in range(3))
    h = pk.View([words], pk.uint32)
    pk.parallel_for(n, encode, code=code, text=s.text)
    gc = pk.parallel_reduce(n, is_gc, code=code)
    pk.parallel_for(words, find_valid, ok=ok, code=code, k=k)
    pk.parallel_for(words, forward, word=f, code=code, k=k)
    pk.parallel_for(words, backward, word=r, code=code, k=k)
    pk.parallel_for(words, canonical, c=c, f=f, r=r)

    pk.parallel_for(kinds, clear, table=s.table)
    pk.parallel_for(TOP, clear, table=s.hist)
    pk.parallel_for(words, tally, table=s.table, c=c, ok=ok)
    distinct = pk.parallel_reduce(kinds, is_present, table=s.table)
    pk.parallel_for(kinds, spectrum, hist=s.hist, table=s.table, top=TOP)
    bits = pk.parallel_reduce(kinds, entropy, table=s.table, scale=1.0 / words)

    at, slot = pk.View([windows], pk.int32), pk.View([windows], pk.int32)
    new = pk.View([windows], pk.uint8)
    pk.parallel_for(words, hash_words, h=h, c=c, ok=ok)
    pk.parallel_for(windows, minimizer, at=at, h=h, window=WINDOW)
    pk.parallel_for(windows, is_new, new=new, at=at)
    pk.parallel_for(n, clear, table=s.minimizers)
    picked = pk.parallel_scan(windows, place, slot=slot, new=new)
    pk.parallel_for(windows, pack, out=s.minimizers, slot=slot, new=new, at=at)
    s.gc, s.distinct, s.bits, s.picked = int(gc), int(distinct), float(bits), int(picked)
    s.gaps = float(pk.parallel_reduce(s.picked - 1, gap_sum, out=s.minimizers))


def outputs(s):
    names = ("table", "hist", "minimizers")
    numbers = ("gc", "distinct", "picked", "bits", "gaps")
    return {a: np.array(getattr(s, a).data) for a in names} | {a: getattr(s, a) for a in numbers}


def check(s):
    n, k = s.size, s.k
    text = problem(n)
    code = np.full(n, 4)
    for v, letter in enumerate(b"ACGT"):
        code[text == letter] = v
    rows = np.lib.stride_tricks.sliding_window_view(code, k)
    ok = (rows < 4).all(axis=1)
    weight = 4 ** np.arange(k)[::-1]
    c = np.minimum((rows & 3) @ weight, (3 - (rows[:, ::-1] & 3)) @ weight)
    table = np.bincount(c[ok], minlength=4**k)
    assert (s.table.data == table).all()
    assert (s.hist.data == np.bincount(np.minimum(table[table > 0], TOP) - 1, minlength=TOP)).all()
    assert s.gc == ((code == 1) | (code == 2)).sum() and s.distinct == (table > 0).sum()
    p = table[table > 0] / len(c)
    np.testing.assert_allclose(s.bits, -(p * np.log2(p)).sum(), rtol=1e-10)
    h = (c * 2654435761) & 0xFFFFFFFF
    h ^= h >> 15
    h = (h * 2246822519) & 0xFFFFFFFF
    h ^= h >> 13
    h[~ok] = 0xFFFFFFFF
    w = np.lib.stride_tricks.sliding_window_view(h, WINDOW)
    at = np.arange(len(w)) + w.argmin(axis=1)
    out = at[np.r_[True, at[1:] != at[:-1]]]
    assert s.picked == len(out)
    assert (s.minimizers.data[: len(out)] == out).all()
    np.testing.assert_allclose(s.gaps, (np.diff(out).astype(float) ** 2).sum(), rtol=1e-10)


if __name__ == "__main__":
    main(globals())
