"""The ChaCha20 stream cipher: quarter rounds on sixteen rows of 32-bit words, one block a column.

A message is enciphered, the bits of the cipher are counted, and it is deciphered again.
"""

from dataclasses import dataclass, field

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 180, "default": 6_250, "large": 800_000}
QUARTERS = [(0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15)]
QUARTERS += [(0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)]


@pk.function
def rotate(x: pk.uint32, r: int) -> pk.uint32:
    return (x << r) | (x >> (32 - r))


@pk.workunit
def constant(i: int, row: pk.View1D[pk.uint32], value: pk.uint32):
    row[i] = value


@pk.workunit
def counter(i: int, row: pk.View1D[pk.uint32], first: int):
    row[i] = first + i


@pk.workunit
def quarter(
    i: int,
    a: pk.View1D[pk.uint32],
    b: pk.View1D[pk.uint32],
    c: pk.View1D[pk.uint32],
    d: pk.View1D[pk.uint32],
):
    a[i] += b[i]
    d[i] = rotate(d[i] ^ a[i], 16)
    c[i] += d[i]
    b[i] = rotate(b[i] ^ c[i], 12)
    a[i] += b[i]
    d[i] = rotate(d[i] ^ a[i], 8)
    c[i] += d[i]
    b[i] = rotate(b[i] ^ c[i], 7)


@pk.workunit
def add_word(i: int, row: pk.View1D[pk.uint32], value: pk.uint32):
    row[i] += value


@pk.workunit
def add_counter(i: int, row: pk.View1D[pk.uint32], first: int):
    row[i] += first + i


@pk.workunit
def mix_in(
    w: int,
    i: int,
    out: pk.View2D[pk.uint32],
    text: pk.View2D[pk.uint32],
    stream: pk.View2D[pk.uint32],
):
    out[w][i] = text[w][i] ^ stream[w][i]


@pk.workunit
def ones(w: int, i: int, acc: pk.Acc[pk.int64], x: pk.View2D[pk.uint32]):
    v: pk.uint32 = x[w][i]
    v = v - ((v >> 1) & 1431655765)
    v = (v & 858993459) + ((v >> 2) & 858993459)
    v = (v + (v >> 4)) & 252645135
    acc += (v * 16843009) >> 24


@pk.workunit
def differ(w: int, i: int, acc: pk.Acc[pk.int64], x: pk.View2D[pk.uint32], y: pk.View2D[pk.uint32]):
    if x[w][i] != y[w][i]:
        acc += 1


@dataclass
class State:
    n: int
    words: list
    text: pk.View
    cipher: pk.View
    plain: pk.View
    counts: list = field(default_factory=list)


def setup(n: int) -> State:
    rng = np.random.default_rng(1402)
    text, cipher, plain = (pk.View([16, n], pk.uint32) for _ in range(3))
    text.data[:] = rng.integers(0, 2**32, (16, n))
    words = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574]
    words += [int(w) for w in rng.integers(0, 2**32, 8)] + [1]
    words += [int(w) for w in rng.integers(0, 2**32, 3)]
    return State(n, words, text, cipher, plain)


def encipher(s: State, out, text) -> None:
    n, stream = s.n, pk.View([16, s.n], pk.uint32)
    rows = [stream[w, :] for w in range(16)]
    for w in range(16):
        if w == 12:
            pk.parallel_for(n, counter, row=rows[w], first=s.words[12])
        else:
            pk.parallel_for(n, constant, row=rows[w], value=s.words[w])
    for _ in range(10):
        for a, b, c, d in QUARTERS:
            pk.parallel_for(n, quarter, a=rows[a], b=rows[b], c=rows[c], d=rows[d])
    for w in range(16):
        if w == 12:
            pk.parallel_for(n, add_counter, row=rows[w], first=s.words[12])
        else:
            pk.parallel_for(n, add_word, row=rows[w], value=s.words[w])
    pk.parallel_for(pk.MDRangePolicy([0, 0], [16, n]), mix_in, out=out, text=text, stream=stream)


def run(s: State) -> None:
    everything = pk.MDRangePolicy([0, 0], [16, s.n])
    encipher(s, s.cipher, s.text)
    bits = int(pk.parallel_reduce(everything, ones, x=s.cipher))
    encipher(s, s.plain, s.cipher)
    wrong = int(pk.parallel_reduce(everything, differ, x=s.plain, y=s.text))
    s.counts = [bits, wrong]


def outputs(s: State) -> dict:
    return {"cipher": np.array(s.cipher.data), "counts": np.array(s.counts)}


def check(s: State, n: int) -> None:
    first = np.repeat(np.array(s.words, np.uint32)[:, None], n, 1)
    first[12] += np.arange(n, dtype=np.uint32)
    x = first.copy()

    def turn(a, r):
        return (a << np.uint32(r)) | (a >> np.uint32(32 - r))

    for _ in range(10):
        for a, b, c, d in QUARTERS:
            for to, by, change, r in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                x[to] += x[by]
                x[change] = turn(x[change] ^ x[to], r)
    np.testing.assert_array_equal(s.cipher.data, s.text.data ^ (x + first))
    bits = np.unpackbits(np.array(s.cipher.data).view(np.uint8)).sum()
    assert s.counts == [bits, 0]


if __name__ == "__main__":
    main(globals())
