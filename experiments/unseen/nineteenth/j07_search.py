"""A search engine: statistics of terms, BM25 for a few queries, the best by histogram.

Documents as rows of a sparse matrix; the hits of a query are counted, placed by a scan, gathered.
"""

from dataclasses import dataclass
from math import log

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 600, "default": 40_000, "large": 400_000}
QUERIES, WORDS, WANTED, BINS = 5, 4, 100, 1024
K1, B = 1.2, 0.75


@pk.workunit
def clear(i: int, x: pk.View1D[pk.int32]):
    x[i] = 0


@pk.workunit
def document_frequency(e: int, df: pk.View1D[pk.int32], term: pk.View1D[pk.int32]):
    pk.atomic_add(df, [term[e]], 1)


@pk.workunit
def rarity(v: int, idf: pk.View1D[pk.double], df: pk.View1D[pk.int32], documents: int):
    idf[v] = log(1.0 + (documents - df[v] + 0.5) / (df[v] + 0.5))


@pk.workunit
def length(i: int, out, start, count):
    total: int = 0
    for e in range(start[i], start[i + 1]):
        total += count[e]
    out[i] = total


@pk.workunit
def penalty(i: int, norm, length, mean: float, k1: float, b: float):
    """Long documents repeat themselves."""
    norm[i] = k1 * (1.0 - b + b * length[i] / mean)


@pk.workunit
def freshness(i: int, boost: pk.View1D[pk.double], day: pk.View1D[pk.int32], today: int):
    boost[i] = 0.7 + 0.3 / (1.0 + 0.01 * (today - day[i]))


@pk.workunit
def forget(v: int, weight: pk.View1D[pk.double]):
    weight[v] = 0.0


@pk.workunit
def ask(k: int, weight, queries, query: int, idf):
    weight[queries[query][k]] = idf[queries[query][k]]


@pk.workunit
def bm25(i: int, score, start, term, count, weight, norm):
    total: pk.double = 0.0
    for e in range(start[i], start[i + 1]):
        tf: pk.double = count[e]
        total += weight[term[e]] * tf * 2.2 / (tf + norm[i])
    score[i] = total


@pk.workunit
def scale(i: int, score: pk.View1D[pk.double], by: pk.View1D[pk.double]):
    score[i] *= by[i]


@pk.workunit
def quantise(i: int, bin, score, per_unit: float, bins: int):
    bin[i] = min(int(score[i] * per_unit), bins - 1)


@pk.workunit
def tally(i: int, histogram: pk.View1D[pk.int32], bin: pk.View1D[pk.int32]):
    if bin[i] > 0:
        pk.atomic_add(histogram, [bin[i]], 1)


@pk.workunit
def mark(i: int, place: pk.View1D[pk.int32], bin: pk.View1D[pk.int32], bar: int):
    if bin[i] >= bar:
        place[i] = 1
    else:
        place[i] = 0


@pk.workunit
def running(i: int, acc: pk.Acc[pk.int32], last_pass: bool, place: pk.View1D[pk.int32]):
    acc += place[i]
    if last_pass:
        place[i] = acc


@pk.workunit
def gather(i: int, hit, value, score, bin, place, bar: int, offset: int):
    if bin[i] >= bar:
        hit[offset + place[i] - 1] = i
        value[offset + place[i] - 1] = score[i]


@pk.workunit
def seen(h: int, clicks: pk.View1D[pk.int32], hit: pk.View1D[pk.int32]):
    clicks[hit[h]] += 1


@dataclass
class State:
    n: int
    vocabulary: int
    start: pk.View
    term: pk.View
    count: pk.View
    day: pk.View
    queries: pk.View
    idf: pk.View
    hit: pk.View
    value: pk.View
    found: pk.View
    clicks: pk.View


def setup(n: int) -> State:
    rng = np.random.default_rng(12)
    vocabulary = 200 + n // 8
    sizes = rng.integers(2, 16, n)
    start = pk.View([n + 1], pk.int32)
    start.data[0] = 0
    start.data[1:] = np.cumsum(sizes)
    m = int(sizes.sum())
    term, count = pk.View([m], pk.int32), pk.View([m], pk.uint8)
    # Common terms come first; those of a document differ, as its steps are at least 1.
    drawn = (vocabulary * rng.random(m) ** 3).astype(np.int64)
    order = np.lexsort((drawn, np.repeat(np.arange(n), sizes)))
    drawn = drawn[order]
    inside = np.arange(m) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    term.data[:] = drawn + inside
    vocabulary += 16
    count.data[:] = np.minimum(rng.geometric(0.5, m), 40)
    day = pk.View([n], pk.int32)
    day.data[:] = rng.integers(0, 3650, n)
    queries = pk.View([QUERIES, WORDS], pk.int32)
    for q in range(QUERIES):
        first = rng.choice(vocabulary // 8, 2, replace=False)
        rare = vocabulary // 8 + rng.choice(vocabulary // 2, 2, replace=False)
        queries.data[q] = np.concatenate([first, rare])
    idf, hit = pk.View([vocabulary], pk.double), pk.View([QUERIES * 4 * WANTED], pk.int32)
    value, found = pk.View([QUERIES * 4 * WANTED], pk.double), pk.View([QUERIES, 2], pk.int32)
    clicks = pk.View([n], pk.int32)
    return State(n, vocabulary, start, term, count, day, queries, idf, hit, value, found, clicks)


def run(s: State) -> None:
    n, vocabulary, postings = s.n, s.vocabulary, s.term.shape[0]
    df, lengths = pk.View([vocabulary], pk.int32), pk.View([n], pk.int32)
    norm, boost, score = (pk.View([n], pk.double) for _ in range(3))
    weight = pk.View([vocabulary], pk.double)
    bin, place = pk.View([n], pk.int32), pk.View([n], pk.int32)
    histogram = pk.View([BINS], pk.int32)
    s.hit.data[:], s.value.data[:] = 0, 0.0
    pk.parallel_for(n, clear, x=s.clicks)
    pk.parallel_for(vocabulary, clear, x=df)
    pk.parallel_for(postings, document_frequency, df=df, term=s.term)
    pk.parallel_for(vocabulary, rarity, idf=s.idf, df=df, documents=n)
    pk.parallel_for(n, length, out=lengths, start=s.start, count=s.count)
    mean = float(lengths.data.sum()) / n
    pk.parallel_for(n, penalty, norm=norm, length=lengths, mean=mean, k1=K1, b=B)
    pk.parallel_for(n, freshness, boost=boost, day=s.day, today=3650)
    offset = 0
    for query in range(QUERIES):
        pk.parallel_for(vocabulary, forget, weight=weight)
        pk.parallel_for(WORDS, ask, weight=weight, queries=s.queries, query=query, idf=s.idf)
        pk.parallel_for(
            n,
            bm25,
            score=score,
            start=s.start,
            term=s.term,
            count=s.count,
            weight=weight,
            norm=norm,
        )
        pk.parallel_for(n, scale, score=score, by=boost)
        pk.parallel_for(n, quantise, bin=bin, score=score, per_unit=30.0, bins=BINS)
        pk.parallel_for(BINS, clear, x=histogram)
        pk.parallel_for(n, tally, histogram=histogram, bin=bin)
        # The lowest bin with which there are at most twice as many as wanted.
        bar, hits = BINS, 0
        while bar > 1 and hits < WANTED and hits + histogram[bar - 1] <= 4 * WANTED:
            bar -= 1
            hits += int(histogram[bar])
        pk.parallel_for(n, mark, place=place, bin=bin, bar=bar)
        pk.parallel_scan(n, running, place=place)
        pk.parallel_for(
            n,
            gather,
            hit=s.hit,
            value=s.value,
            score=score,
            bin=bin,
            place=place,
            bar=bar,
            offset=offset,
        )
        pk.parallel_for(pk.RangePolicy(offset, offset + hits), seen, clicks=s.clicks, hit=s.hit)
        s.found[query, 0], s.found[query, 1] = hits, bar
        offset += hits


def outputs(s: State) -> dict:
    names = ("idf", "hit", "value", "found", "clicks")
    return {name: np.array(getattr(s, name).data) for name in names}


def check(s: State, n: int) -> None:
    start, term, count = (np.array(v.data).astype(int) for v in (s.start, s.term, s.count))
    row = np.repeat(np.arange(n), np.diff(start))
    df = np.bincount(term, minlength=s.vocabulary)
    idf = np.log(1 + (n - df + 0.5) / (df + 0.5))
    np.testing.assert_allclose(s.idf.data, idf, rtol=1e-12)
    lengths = np.bincount(row, count, n)
    norm = K1 * (1 - B + B * lengths / lengths.mean())
    boost = 0.7 + 0.3 / (1 + 0.01 * (3650 - np.array(s.day.data)))
    offset, clicks = 0, np.zeros(n, int)
    for query in range(QUERIES):
        asked = np.isin(term, np.array(s.queries.data)[query])
        part = np.where(asked, idf[term] * count * 2.2 / (count + norm[row]), 0)
        score = np.bincount(row, part, n) * boost
        bins = np.minimum((score * 30).astype(int), BINS - 1)
        histogram, bar, hits = np.bincount(bins, minlength=BINS), BINS, 0
        while bar > 1 and hits < WANTED and hits + histogram[bar - 1] <= 4 * WANTED:
            bar -= 1
            hits += histogram[bar]
        best = np.flatnonzero(bins >= bar)
        np.testing.assert_array_equal(s.found.data[query], [best.size, bar])
        np.testing.assert_array_equal(s.hit.data[offset : offset + hits], best)
        np.testing.assert_allclose(s.value.data[offset : offset + hits], score[best], rtol=1e-11)
        clicks[best] += 1
        offset += hits
    assert offset > 0
    np.testing.assert_array_equal(s.clicks.data, clicks)


if __name__ == "__main__":
    main(globals())
