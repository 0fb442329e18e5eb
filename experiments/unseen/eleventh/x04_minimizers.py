"""Minimizers of a genome: the words of k letters that sketch it, for several k.

A word's letters are packed by two bits, forwards and as the other strand reads them; the lesser of
both is hashed, and in each window of ten words the least hash is chosen. Buckets of hashes are
counted by atomics, and the G and C letters of the chosen words by bits.
"""

from dataclasses import dataclass, field

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 2_000, "default": 150_000, "large": 2_000_000}
WORDS, WINDOW, BUCKETS = (11, 13, 15), 10, 1024


@pk.workunit
def pack(i: int, word: pk.View1D[pk.int64], base: pk.View1D[pk.int32], k: int):
    w: pk.int64 = 0
    for j in range(k):
        w = (w << 2) | base[i + j]
    word[i] = w


@pk.workunit
def pack_other(i: int, word: pk.View1D[pk.int64], base: pk.View1D[pk.int32], k: int):
    w: pk.int64 = 0
    for j in range(k):
        w = (w << 2) | (3 - base[i + k - 1 - j])
    word[i] = w


@pk.workunit
def canonical(
    i: int,
    least: pk.View1D[pk.int64],
    word: pk.View1D[pk.int64],
    other: pk.View1D[pk.int64],
):
    if other[i] < word[i]:
        least[i] = other[i]
    else:
        least[i] = word[i]


@pk.workunit
def hash(i: int, h: pk.View1D[pk.int64], word: pk.View1D[pk.int64], mask: int):
    """Thomas Wang's hash, which can be undone."""
    x: pk.int64 = word[i]
    x = (~x + (x << 21)) & mask
    x = x ^ (x >> 24)
    x = (x + (x << 3) + (x << 8)) & mask
    x = x ^ (x >> 14)
    x = (x + (x << 2) + (x << 4)) & mask
    x = x ^ (x >> 28)
    h[i] = (x + (x << 31)) & mask


@pk.workunit
def clear(i: int, x: pk.View1D[pk.int32]):
    x[i] = 0


@pk.workunit
def least_of_window(i: int, place: pk.View1D[pk.int32], h: pk.View1D[pk.int64], window: int):
    best: pk.int64 = h[i]
    where: int = i
    for j in range(1, window):
        if h[i + j] < best:
            best = h[i + j]
            where = i + j
    place[i] = where


@pk.workunit
def choose(i: int, chosen: pk.View1D[pk.int32], place: pk.View1D[pk.int32]):
    chosen[place[i]] = 1


@pk.workunit
def gc_letters(i: int, gc: pk.View1D[pk.int32], word: pk.View1D[pk.int64], odd: int):
    """C is 1 and G is 2: letters whose two bits differ."""
    x: pk.int64 = (word[i] ^ (word[i] >> 1)) & odd
    c: int = 0
    while x > 0:
        x = x & (x - 1)
        c += 1
    gc[i] = c


@pk.workunit
def fill(
    i: int,
    count: pk.View1D[pk.int32],
    chosen: pk.View1D[pk.int32],
    h: pk.View1D[pk.int64],
    buckets: int,
):
    if chosen[i] == 1:
        pk.atomic_add(count, [h[i] & (buckets - 1)], 1)


@pk.workunit
def total(i: int, acc: pk.Acc[pk.int64], x: pk.View1D[pk.int32]):
    acc += x[i]


@pk.workunit
def total_chosen(
    i: int, acc: pk.Acc[pk.int64], chosen: pk.View1D[pk.int32], x: pk.View1D[pk.int32]
):
    acc += chosen[i] * x[i]


@pk.workunit
def empty(b: int, acc: pk.Acc[pk.int64], count: pk.View1D[pk.int32]):
    if count[b] == 0:
        acc += 1


@dataclass
class State:
    """The letters; for the last k the hashes and what is chosen; buckets and a row for each k."""

    n: int
    base: pk.View
    h: pk.View
    chosen: pk.View
    count: list
    table: list = field(default_factory=list)


def setup(n: int) -> State:
    rng = np.random.default_rng(114)
    base, h, chosen = pk.View([n], pk.int32), pk.View([n], pk.int64), pk.View([n], pk.int32)
    base.data[:] = rng.choice(4, n, p=[0.3, 0.2, 0.2, 0.3])
    base.data[n // 2 : n // 2 + n // 4] = base.data[: n // 4]  # a repeat
    return State(n, base, h, chosen, [pk.View([BUCKETS], pk.int32) for _ in WORDS])


def run(state: State) -> None:
    n, base, h, chosen = state.n, state.base, state.h, state.chosen
    word, other, least = (pk.View([n], pk.int64) for _ in range(3))
    place, gc = pk.View([n], pk.int32), pk.View([n], pk.int32)
    state.table = []
    for k, count in zip(WORDS, state.count):
        words, mask = n - k + 1, (1 << 2 * k) - 1
        pk.parallel_for(words, pack, word=word, base=base, k=k)
        pk.parallel_for(words, pack_other, word=other, base=base, k=k)
        pk.parallel_for(words, canonical, least=least, word=word, other=other)
        pk.parallel_for(words, hash, h=h, word=least, mask=mask)
        pk.parallel_for(words - WINDOW + 1, least_of_window, place=place, h=h, window=WINDOW)
        pk.parallel_for(n, clear, x=chosen)
        pk.parallel_for(words - WINDOW + 1, choose, chosen=chosen, place=place)
        pk.parallel_for(words, gc_letters, gc=gc, word=least, odd=mask // 3)
        pk.parallel_for(BUCKETS, clear, x=count)
        pk.parallel_for(words, fill, count=count, chosen=chosen, h=h, buckets=BUCKETS)
        picked = pk.parallel_reduce(words, total, x=chosen)
        all_gc = pk.parallel_reduce(words, total, x=gc)
        chosen_gc = pk.parallel_reduce(words, total_chosen, chosen=chosen, x=gc)
        unused = pk.parallel_reduce(BUCKETS, empty, count=count)
        state.table.append([int(picked), int(all_gc), int(chosen_gc), int(unused)])


def outputs(state: State) -> dict:
    words = state.n - WORDS[-1] + 1
    return {
        "h": np.array(state.h.data)[:words],
        "chosen": np.array(state.chosen.data),
        "count": np.array([c.data for c in state.count]),
        "table": np.array(state.table, dtype=np.float64),
    }


def check(state: State, n: int, runs: int = 1) -> None:
    base = np.array(setup(n).base.data).astype(np.int64)
    out = outputs(state)
    for row, k in enumerate(WORDS):
        words, mask = n - k + 1, (1 << 2 * k) - 1
        letters = np.lib.stride_tricks.sliding_window_view(base, k)
        power = 4 ** np.arange(k)
        forwards, backwards = letters @ power[::-1], (3 - letters) @ power
        x = np.minimum(forwards, backwards)
        turned = (backwards < forwards)[:, None]
        gc = np.sum((letters == 1) | (letters == 2), axis=1)
        assert turned.any() and gc.max() <= k
        x = (~x + (x << 21)) & mask
        x ^= x >> 24
        x = (x * 265) & mask
        x ^= x >> 14
        x = (x * 21) & mask
        x ^= x >> 28
        h = (x + (x << 31)) & mask
        windows = np.lib.stride_tricks.sliding_window_view(h, WINDOW)
        chosen = np.zeros(n, int)
        chosen[np.arange(windows.shape[0]) + windows.argmin(axis=1)] = 1
        picked = np.flatnonzero(chosen)
        count = np.bincount(h[picked] % BUCKETS, minlength=BUCKETS)
        np.testing.assert_array_equal(out["count"][row], count)
        expected = [picked.size, gc.sum(), gc[picked].sum(), np.sum(count == 0)]
        np.testing.assert_array_equal(out["table"][row], expected)
    np.testing.assert_array_equal(out["h"], h)
    np.testing.assert_array_equal(out["chosen"], chosen)


if __name__ == "__main__":
    main(globals())
