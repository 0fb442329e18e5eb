"""Feature hashing of a text: fold case, find words, hash each, count the buckets."""

from dataclasses import dataclass
import numpy as np
from common import main, rnd, view
import pyfuser
import pykokkos as pk

SIZES = {"small": 4000, "default": 2_000_000, "large": 20_000_000}
BUCKETS = 65536


@pk.workunit
def fold(i, low, text):
    low[i] = text[i]
    if text[i] >= 65 and text[i] <= 90:
        low[i] = text[i] + 32


@pk.workunit
def classify(i, kind, low):
    """1: letter, 2: digit, 3: line end, 0: other."""
    kind[i] = 0
    if low[i] >= 97 and low[i] <= 122:
        kind[i] = 1
    elif low[i] >= 48 and low[i] <= 57:
        kind[i] = 2
    elif low[i] == 10:
        kind[i] = 3


@pk.workunit
def starts(i, first, kind):
    first[i] = 0
    if kind[i] == 1:
        first[i] = 1
        if i > 0:
            if kind[i - 1] == 1:
                first[i] = 0


@pk.workunit
def letters(i, acc: pk.Acc[pk.int64], kind):
    if kind[i] == 1:
        acc += 1


@pk.workunit
def lines(i, acc: pk.Acc[pk.int64], kind):
    if kind[i] == 3:
        acc += 1


@pk.workunit
def number(i, acc: pk.Acc[pk.int64], last, first, begin):
    acc += first[i]
    if last:
        if first[i] == 1:
            begin[acc - 1] = i


@pk.workunit
def clear(b, count):
    count[b] = 0


@pk.workunit
def digest(w, hash_, size, low, kind, begin, n):
    h: pk.uint32 = 2166136261
    k = begin[w]
    while k < n and kind[k] == 1:
        h = (h ^ low[k]) * 16777619
        k += 1
    hash_[w] = h
    size[w] = k - begin[w]


@pk.workunit
def finish(w, hash_):
    h: pk.uint32 = hash_[w]
    h ^= h >> 15
    h *= 2246822519
    h ^= h >> 13
    hash_[w] = h


@pk.workunit
def bucket(w, place, hash_):
    place[w] = hash_[w] & 65535


@pk.workunit
def tally(w, count, place):
    pk.atomic_increment(count, [place[w]])


@pk.workunit
def long_words(w, acc: pk.Acc[pk.int64], size):
    if size[w] > 6:
        acc += 1


@pk.workunit
def used(b, acc: pk.Acc[pk.int64], count):
    if count[b] > 0:
        acc += 1


@dataclass
class State:
    n: int
    text: pk.View
    low: pk.View
    count: pk.View
    words: int = 0
    letters: int = 0
    lines: int = 0
    long: int = 0
    used: int = 0


def setup(n):
    r = rnd(n, 31)
    q = rnd(n, 32)
    letter = 97 + (q * q * 26).astype(np.int64)
    text = np.where(
        r < 0.70,
        letter,
        np.where(
            r < 0.78,
            letter - 32,
            np.where(r < 0.82, 48 + (q * 10).astype(np.int64), np.where(r < 0.83, 10, 32)),
        ),
    )
    return State(
        n,
        view(text.astype(np.uint8), pk.uint8),
        pk.View([n], pk.uint8),
        pk.View([BUCKETS], pk.int32),
    )


def run(s):
    n, low = s.n, s.low
    kind, first = pk.View([n], pk.uint8), pk.View([n], pk.uint8)
    begin = pk.View([n // 2 + 1], pk.int32)
    pk.parallel_for(n, fold, low=low, text=s.text)
    pk.parallel_for(n, classify, kind=kind, low=low)
    pk.parallel_for(n, starts, first=first, kind=kind)
    s.letters = pk.parallel_reduce(n, letters, kind=kind)
    s.lines = pk.parallel_reduce(n, lines, kind=kind)
    words = int(pk.parallel_scan(n, number, first=first, begin=begin))
    hash_, place, size = (
        pk.View([words], pk.uint32),
        pk.View([words], pk.int32),
        pk.View([words], pk.int32),
    )
    pk.parallel_for(BUCKETS, clear, count=s.count)
    pk.parallel_for(words, digest, hash_=hash_, size=size, low=low, kind=kind, begin=begin, n=n)
    pk.parallel_for(words, finish, hash_=hash_)
    pk.parallel_for(words, bucket, place=place, hash_=hash_)
    pk.parallel_for(words, tally, count=s.count, place=place)
    s.long = pk.parallel_reduce(words, long_words, size=size)
    s.used = pk.parallel_reduce(BUCKETS, used, count=s.count)
    s.words = words


def outputs(s):
    return {
        "low": np.array(s.low.data),
        "count": np.array(s.count.data),
        "words": s.words,
        "letters": int(s.letters),
        "lines": int(s.lines),
        "long": int(s.long),
        "used": int(s.used),
    }


if __name__ == "__main__":
    main(globals())
