# ruff: noqa: B905
"""A text as bytes: words, numbers and signs by scans, their hashes in buckets, and the text packed.

Lower case, lines, depth in brackets, histograms by atomics, entropy; integers but for a few sums.
"""

from dataclasses import dataclass
from math import log

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 1_000, "default": 100_000, "large": 4_000_000}
BUCKETS, LENGTHS = 1024, 16
SPACE, LETTER, DIGIT, SIGN = 0, 1, 2, 3


@pk.workunit
def clear(i: int, f: pk.View1D[pk.int32], value: int):
    f[i] = value


@pk.workunit
def clear_bytes(i: int, f: pk.View1D[pk.uint8]):
    f[i] = 0


@pk.workunit
def classify(
    i: int, kind: pk.View1D[pk.uint8], text: pk.View1D[pk.uint8], table: pk.View1D[pk.uint8]
):
    kind[i] = table[text[i]]


@pk.workunit
def lower_case(i: int, low: pk.View1D[pk.uint8], text: pk.View1D[pk.uint8]):
    if text[i] >= 65 and text[i] <= 90:
        low[i] = text[i] + 32
    else:
        low[i] = text[i]


@pk.workunit
def count_byte(i: int, histogram: pk.View1D[pk.int32], text: pk.View1D[pk.uint8]):
    pk.atomic_add(histogram, [text[i]], 1)


@pk.workunit
def entropy(b: int, acc: pk.Acc[pk.double], histogram: pk.View1D[pk.int32], n: int):
    if histogram[b] > 0:
        share: pk.double = histogram[b] / n
        acc -= share * log(share)


@pk.workunit
def begins(i: int, flag: pk.View1D[pk.uint8], kind: pk.View1D[pk.uint8]):
    flag[i] = 0
    if kind[i] == SIGN:
        flag[i] = 1
    elif kind[i] != SPACE:
        if i == 0 or kind[i - 1] != kind[i]:
            flag[i] = 1


@pk.workunit
def place(
    i: int, acc: pk.Acc[pk.int64], last: bool, flag: pk.View1D[pk.uint8], where: pk.View1D[pk.int32]
):
    """The number of flags before."""
    if last:
        where[i] = acc
    acc += flag[i]


@pk.workunit
def number_line(
    i: int, acc: pk.Acc[pk.int64], last: bool, text: pk.View1D[pk.uint8], line: pk.View1D[pk.int32]
):
    if last:
        line[i] = acc
    if text[i] == 10:
        acc += 1


@pk.workunit
def nest(
    i: int, acc: pk.Acc[pk.int64], last: bool, text: pk.View1D[pk.uint8], depth: pk.View1D[pk.int32]
):
    if text[i] == 40:
        acc += 1
    elif text[i] == 41:
        acc -= 1
    if last:
        depth[i] = acc


@pk.workunit
def inside(i: int, acc: pk.Acc[pk.int64], depth: pk.View1D[pk.int32]):
    if depth[i] > 0:
        acc += 1


@pk.workunit
def keep_place(
    i: int, begin: pk.View1D[pk.int32], flag: pk.View1D[pk.uint8], where: pk.View1D[pk.int32]
):
    if flag[i] == 1:
        begin[where[i]] = i


@pk.workunit
def measure(
    t: int,
    length: pk.View1D[pk.int32],
    begin: pk.View1D[pk.int32],
    kind: pk.View1D[pk.uint8],
    n: int,
):
    first: int = begin[t]
    size: int = 1
    if kind[first] != SIGN:
        while first + size < n and kind[first + size] == kind[first]:
            size += 1
    length[t] = size


@pk.workunit
def hash_word(t: int, hashes: pk.View1D[pk.uint32], low: pk.View1D[pk.uint8], begin, length):
    h: pk.uint32 = 5381
    for j in range(length[t]):
        h = h * 33 + low[begin[t] + j]
    hashes[t] = h ^ (h >> 15)


@pk.workunit
def to_bucket(t: int, bucket: pk.View1D[pk.int32], hashes: pk.View1D[pk.uint32]):
    bucket[t] = hashes[t] % BUCKETS


@pk.workunit
def count_length(t: int, lengths: pk.View1D[pk.int32], length: pk.View1D[pk.int32]):
    pk.atomic_add(lengths, [min(length[t], LENGTHS - 1)], 1)


@pk.workunit
def count_bucket(
    t: int, members: pk.View1D[pk.int32], earliest: pk.View1D[pk.int32], bucket: pk.View1D[pk.int32]
):
    pk.atomic_add(members, [bucket[t]], 1)
    pk.atomic_fetch_min(earliest, [bucket[t]], t)


@pk.workunit
def collides(t: int, acc: pk.Acc[pk.int64], hashes, earliest, bucket):
    if hashes[t] != hashes[earliest[bucket[t]]]:
        acc += 1


@pk.workunit
def of_kind(t: int, acc: pk.Acc[pk.int64], kind, begin, which: int):
    if kind[begin[t]] == which:
        acc += 1


@pk.workunit
def capital(t: int, acc: pk.Acc[pk.int64], text, low, begin):
    if text[begin[t]] != low[begin[t]]:
        acc += 1


@pk.workunit
def value_of(t: int, acc: pk.Acc[pk.double], text, kind, begin, length):
    if kind[begin[t]] == DIGIT:
        value: pk.double = 0.0
        for j in range(length[t]):
            value = 10.0 * value + (text[begin[t] + j] - 48)
        acc += value


@pk.workunit
def kept(i: int, flag: pk.View1D[pk.uint8], kind: pk.View1D[pk.uint8]):
    """All but the spaces after a space."""
    flag[i] = 1
    if i > 0:
        if kind[i] == SPACE and kind[i - 1] == SPACE:
            flag[i] = 0


@pk.workunit
def mask_digit(i: int, low: pk.View1D[pk.uint8], kind: pk.View1D[pk.uint8]):
    if kind[i] == DIGIT:
        low[i] = 35


@pk.workunit
def pack(i: int, packed, low, flag, where):
    if flag[i] == 1:
        packed[where[i]] = low[i]


@dataclass
class State:
    n: int
    text: pk.View
    table: pk.View
    line: pk.View
    depth: pk.View
    packed: pk.View
    histogram: pk.View
    lengths: pk.View
    members: pk.View
    earliest: pk.View
    numbers: pk.View


def setup(n: int) -> State:
    rng = np.random.default_rng(20)
    letters = np.frombuffer(b"etaoinshrdlucmfwypvbgkjqxz", np.uint8)
    chances = 1 / (np.arange(26) + 3.0)
    vocabulary = []
    for _ in range(600):
        size = min(1 + rng.poisson(4), 14)
        vocabulary.append(rng.choice(letters, size=size, p=chances / chances.sum()).tobytes())
    zipf = 1 / (np.arange(600) + 2.0)
    pieces, length = [], 0
    words, luck = rng.choice(600, size=n // 3 + 20, p=zipf / zipf.sum()), rng.random(n // 3 + 20)
    for word, x in zip(words, luck):
        piece = vocabulary[word]
        if x < 0.08:
            piece = piece.capitalize()
        elif x < 0.12:
            piece = b"%d" % int(x * 1e7 % 100000)
        elif x < 0.15:
            piece = b"(" + piece + b", " + vocabulary[-1 - word] + b")"
        piece += b". " if x > 0.95 else b",  " if x > 0.91 else b"\n" if x > 0.88 else b" "
        pieces.append(piece)
        length += len(piece)
        if length >= n:
            break
    text, table = pk.View([n], pk.uint8), pk.View([256], pk.uint8)
    text.data[:] = np.frombuffer(b"".join(pieces)[:n], np.uint8)
    kinds = np.full(256, SIGN)
    kinds[[9, 10, 13, 32]] = SPACE
    kinds[65:91] = kinds[97:123] = LETTER
    kinds[48:58] = DIGIT
    table.data[:] = kinds
    line, depth, packed = pk.View([n], pk.int32), pk.View([n], pk.int32), pk.View([n], pk.uint8)
    tables = [pk.View([size], pk.int32) for size in (256, LENGTHS, BUCKETS, BUCKETS)]
    return State(n, text, table, line, depth, packed, *tables, pk.View([11], pk.double))


def run(s: State) -> None:
    n, text = s.n, s.text

    def array(dtype, size=n):
        return pk.View([size], dtype)

    for table in (s.histogram, s.lengths, s.members):
        pk.parallel_for(table.shape[0], clear, f=table, value=0)
    pk.parallel_for(BUCKETS, clear, f=s.earliest, value=n)
    kind, low, flag, where = array(pk.uint8), array(pk.uint8), array(pk.uint8), array(pk.int32)
    pk.parallel_for(n, classify, kind=kind, text=text, table=s.table)
    pk.parallel_for(n, lower_case, low=low, text=text)
    pk.parallel_for(n, count_byte, histogram=s.histogram, text=text)
    s.numbers[0] = float(pk.parallel_reduce(256, entropy, histogram=s.histogram, n=n))
    s.numbers[1] = int(pk.parallel_scan(n, number_line, text=text, line=s.line))
    s.numbers[2] = int(pk.parallel_scan(n, nest, text=text, depth=s.depth))
    s.numbers[3] = int(pk.parallel_reduce(n, inside, depth=s.depth))
    pk.parallel_for(n, begins, flag=flag, kind=kind)
    words = int(pk.parallel_scan(n, place, flag=flag, where=where))
    begin, length, hashes = array(pk.int32, words), array(pk.int32, words), array(pk.uint32, words)
    bucket = array(pk.int32, words)
    pk.parallel_for(n, keep_place, begin=begin, flag=flag, where=where)
    pk.parallel_for(words, measure, length=length, begin=begin, kind=kind, n=n)
    pk.parallel_for(words, hash_word, hashes=hashes, low=low, begin=begin, length=length)
    pk.parallel_for(words, to_bucket, bucket=bucket, hashes=hashes)
    pk.parallel_for(words, count_length, lengths=s.lengths, length=length)
    pk.parallel_for(words, count_bucket, members=s.members, earliest=s.earliest, bucket=bucket)
    s.numbers[4] = words
    s.numbers[5] = int(
        pk.parallel_reduce(words, collides, hashes=hashes, earliest=s.earliest, bucket=bucket)
    )
    s.numbers[6] = int(pk.parallel_reduce(words, of_kind, kind=kind, begin=begin, which=LETTER))
    s.numbers[7] = int(pk.parallel_reduce(words, of_kind, kind=kind, begin=begin, which=DIGIT))
    s.numbers[8] = int(pk.parallel_reduce(words, capital, text=text, low=low, begin=begin))
    s.numbers[9] = float(
        pk.parallel_reduce(words, value_of, text=text, kind=kind, begin=begin, length=length)
    )
    keep, to = array(pk.uint8), array(pk.int32)
    pk.parallel_for(n, kept, flag=keep, kind=kind)
    pk.parallel_for(n, mask_digit, low=low, kind=kind)
    s.numbers[10] = int(pk.parallel_scan(n, place, flag=keep, where=to))
    pk.parallel_for(n, clear_bytes, f=s.packed)
    pk.parallel_for(n, pack, packed=s.packed, low=low, flag=keep, where=to)


def outputs(s: State) -> dict:
    views = {
        "line": s.line,
        "depth": s.depth,
        "packed": s.packed,
        "histogram": s.histogram,
        "lengths": s.lengths,
        "members": s.members,
        "earliest": s.earliest,
        "numbers": s.numbers,
    }
    return {name: np.array(view.data) for name, view in views.items()}


def check(s: State, n: int) -> None:
    import re

    text = np.array(s.text.data)
    raw = text.tobytes()
    tokens = [match.group() for match in re.finditer(rb"[A-Za-z]+|[0-9]+|[^A-Za-z0-9\s]", raw)]
    hashes = []
    for token in tokens:
        h = 5381
        for byte in token.lower():
            h = (h * 33 + byte) & 0xFFFFFFFF
        hashes.append(h ^ (h >> 15))
    buckets = [h % BUCKETS for h in hashes]
    earliest, members = np.full(BUCKETS, n), np.bincount(buckets, minlength=BUCKETS)
    for t in range(len(tokens) - 1, -1, -1):
        earliest[buckets[t]] = t
    lengths = np.bincount([min(len(token), LENGTHS - 1) for token in tokens], minlength=LENGTHS)
    histogram = np.bincount(text, minlength=256)
    packed = re.sub(rb"[0-9]", b"#", re.sub(rb"(\s)\s+", rb"\1", raw)).lower()
    depth = np.cumsum((text == 40).astype(int) - (text == 41))
    lines = np.cumsum(text == 10) - (text == 10)
    share = histogram[histogram > 0] / n
    digits = [token for token in tokens if token.isdigit()]
    numbers = [
        -(share * np.log(share)).sum(),
        raw.count(b"\n"),
        depth[-1],
        (depth > 0).sum(),
        len(tokens),
        sum(h != hashes[earliest[b]] for h, b in zip(hashes, buckets)),
        sum(token.isalpha() for token in tokens),
        len(digits),
        sum(token != token.lower() and token[:1] != token[:1].lower() for token in tokens),
        sum(map(int, digits)),
        len(packed),
    ]
    np.testing.assert_allclose(s.numbers.data, numbers, rtol=1e-10)
    assert np.array(s.packed.data)[: len(packed)].tobytes() == packed
    pairs = (
        (s.line, lines),
        (s.depth, depth),
        (s.histogram, histogram),
        (s.lengths, lengths),
        (s.members, members),
        (s.earliest, earliest),
    )
    for view, expected in pairs:
        np.testing.assert_array_equal(view.data, expected)


if __name__ == "__main__":
    main(globals())
