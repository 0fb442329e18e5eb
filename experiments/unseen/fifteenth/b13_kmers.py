"""Words of twelve bases in DNA: a hashed bitmap of those seen, HyperLogLog, a second
genome's share.
"""

from dataclasses import dataclass, field

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 2_000, "default": 60_000, "large": 2_000_000}
K, REGISTERS = 12, 1024


@pk.workunit
def encode(i: int, code: pk.View1D[pk.uint8], base: pk.View1D[pk.uint8]):
    """A, C, G and T are 0 to 3; anything else 4."""
    if base[i] == 65:
        code[i] = 0
    elif base[i] == 67:
        code[i] = 1
    elif base[i] == 71:
        code[i] = 2
    elif base[i] == 84:
        code[i] = 3
    else:
        code[i] = 4


@pk.workunit
def forward(i: int, word: pk.View1D[pk.uint32], code: pk.View1D[pk.uint8]):
    w: pk.uint32 = 0
    for k in range(K):
        w = (w << 2) | (code[i + k] & 3)
    word[i] = w


@pk.workunit
def backward(i: int, word: pk.View1D[pk.uint32], code: pk.View1D[pk.uint8]):
    w: pk.uint32 = 0
    for k in range(K):
        w = (w << 2) | (3 - (code[i + K - 1 - k] & 3))
    word[i] = w


@pk.workunit
def valid(i: int, good: pk.View1D[pk.uint8], code: pk.View1D[pk.uint8]):
    good[i] = 1
    for k in range(K):
        if code[i + k] > 3:
            good[i] = 0


@pk.workunit
def canonical(i: int, word: pk.View1D[pk.uint32], other: pk.View1D[pk.uint32]):
    if other[i] < word[i]:
        word[i] = other[i]


@pk.workunit
def empty(i: int, x: pk.View1D[pk.uint32]):
    x[i] = 0


@pk.workunit
def enter(
    i: int,
    bitmap: pk.View1D[pk.uint32],
    h: pk.View1D[pk.uint32],
    good: pk.View1D[pk.uint8],
    mask: pk.uint32,
):
    if good[i] == 1:
        bit: pk.uint32 = h[i] & mask
        one: pk.uint32 = 1
        pk.atomic_fetch_or(bitmap, [bit >> 5], one << (bit & 31))


@pk.workunit
def mix(i: int, h: pk.View1D[pk.uint32], word: pk.View1D[pk.uint32]):
    x: pk.uint32 = word[i] * 2654435769
    x = (x ^ (x >> 15)) * 2246822519
    x = (x ^ (x >> 13)) * 3266489917
    h[i] = x ^ (x >> 16)


@pk.workunit
def rank(i: int, r: pk.View1D[pk.uint32], h: pk.View1D[pk.uint32]):
    """The position of the first one among the upper 22 bits."""
    x: pk.uint32 = h[i] >> 10
    k: pk.uint32 = 1
    while k <= 22 and (x & 1) == 0:
        x = x >> 1
        k += 1
    r[i] = k


@pk.workunit
def register(
    i: int,
    table: pk.View1D[pk.uint32],
    h: pk.View1D[pk.uint32],
    r: pk.View1D[pk.uint32],
    good: pk.View1D[pk.uint8],
):
    if good[i] == 1:
        pk.atomic_fetch_max(table, [h[i] & 1023], r[i])


@pk.workunit
def harmonic(i: int, acc: pk.Acc[pk.double], table: pk.View1D[pk.uint32]):
    acc += 1.0 / (1 << table[i])


@pk.workunit
def ones(i: int, acc: pk.Acc[pk.int64], bitmap: pk.View1D[pk.uint32]):
    v: pk.uint32 = bitmap[i]
    v = v - ((v >> 1) & 1431655765)
    v = (v & 858993459) + ((v >> 2) & 858993459)
    v = (v + (v >> 4)) & 252645135
    acc += (v * 16843009) >> 24


@pk.workunit
def shared(
    i: int,
    acc: pk.Acc[pk.int64],
    bitmap: pk.View1D[pk.uint32],
    h: pk.View1D[pk.uint32],
    good: pk.View1D[pk.uint8],
    mask: pk.uint32,
):
    bit: pk.uint32 = h[i] & mask
    if good[i] == 1 and ((bitmap[bit >> 5] >> (bit & 31)) & 1) == 1:
        acc += 1


@dataclass
class State:
    n: int
    size: int
    genomes: list
    bitmap: pk.View
    table: pk.View
    words: list
    numbers: list = field(default_factory=list)


def setup(n: int) -> State:
    rng = np.random.default_rng(213)
    genomes = [pk.View([n], pk.uint8) for _ in range(2)]
    letters = np.frombuffer(b"ACGT", np.uint8)
    first = letters[rng.integers(0, 4, n)]
    first[n // 2 : n // 2 + n // 5] = first[: n // 5]  # a repeat
    second = np.where(rng.random(n) < 0.02, letters[rng.integers(0, 4, n)], first)
    for genome, bases in zip(genomes, (first, second)):
        genome.data[:] = np.where(rng.random(n) < 0.002, ord("N"), bases)
    words = [pk.View([n - K + 1], pk.uint32) for _ in range(2)]
    size = 1 << max(6, (n // 4).bit_length())
    bitmap, table = pk.View([size], pk.uint32), pk.View([REGISTERS], pk.uint32)
    return State(n, size, genomes, bitmap, table, words)


def run(s: State) -> None:
    n, m, mask = s.n, s.n - K + 1, 32 * s.size - 1
    code, good = pk.View([n], pk.uint8), pk.View([m], pk.uint8)
    other, h, r = (pk.View([m], pk.uint32) for _ in range(3))
    pk.parallel_for(s.size, empty, x=s.bitmap)
    pk.parallel_for(REGISTERS, empty, x=s.table)

    def words_of(genome, word):
        pk.parallel_for(n, encode, code=code, base=genome)
        pk.parallel_for(m, forward, word=word, code=code)
        pk.parallel_for(m, backward, word=other, code=code)
        pk.parallel_for(m, valid, good=good, code=code)
        pk.parallel_for(m, canonical, word=word, other=other)
        pk.parallel_for(m, mix, h=h, word=word)

    words_of(s.genomes[0], s.words[0])
    pk.parallel_for(m, enter, bitmap=s.bitmap, h=h, good=good, mask=mask)
    pk.parallel_for(m, rank, r=r, h=h)
    pk.parallel_for(m, register, table=s.table, h=h, r=r, good=good)
    words_of(s.genomes[1], s.words[1])
    bits = int(pk.parallel_reduce(s.size, ones, bitmap=s.bitmap))
    power = float(pk.parallel_reduce(REGISTERS, harmonic, table=s.table))
    estimate = 0.7213 / (1 + 1.079 / REGISTERS) * REGISTERS**2 / power
    common = int(pk.parallel_reduce(m, shared, bitmap=s.bitmap, h=h, good=good, mask=mask))
    s.numbers = [bits, estimate, common]


def outputs(s: State) -> dict:
    words = {f"words{k}": np.array(w.data) for k, w in enumerate(s.words)}
    return {**words, "table": np.array(s.table.data), "numbers": np.array(s.numbers)}


def check(s: State, n: int) -> None:
    sets = []
    for genome, word in zip(s.genomes, s.words):
        text = np.array(genome.data).tobytes().decode()
        values = []
        for i in range(n - K + 1):
            piece = text[i : i + K]
            if "N" not in piece:
                back = piece[::-1].translate(str.maketrans("ACGT", "TGCA"))
                w = int(min(piece, back).translate(str.maketrans("ACGT", "0123")), 4)
                values.append(w)
                assert w == word.data[i]
        sets.append(values)

    def bits(values):
        x = np.array(values, np.uint32) * np.uint32(2654435769)
        x = (x ^ (x >> np.uint32(15))) * np.uint32(2246822519)
        x = (x ^ (x >> np.uint32(13))) * np.uint32(3266489917)
        return (x ^ (x >> np.uint32(16))) % np.uint32(32 * s.size)

    seen, distinct = np.unique(bits(sets[0])), len(set(sets[0]))
    assert s.numbers[0] == len(seen) and s.numbers[2] == np.isin(bits(sets[1]), seen).sum()
    assert 0.8 * distinct < s.numbers[1] < 1.2 * distinct + 2 * REGISTERS


if __name__ == "__main__":
    main(globals())
