"""A Bloom filter by integer hashing: keys set bits by atomics, other keys are asked for.

Source: B. Bloom, "Space/Time Trade-offs in Hash Coding" (1970); A. Appleby's MurmurHash3 finaliser. Every
key mixes HASHES words of 32 bits; then a proof of work: the least nonce whose hash has leading zeros.
"""

import argparse
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pykokkos as pk

SIZES = {"small": 1_000, "default": 100_000, "large": 1_000_000}
HASHES, BITS_A_KEY, ZEROS, NONCES = 5, 10, 6, 300


@pk.function
def mix(h: pk.uint32) -> pk.uint32:
    h ^= h >> 16
    h *= 2246822507
    h ^= h >> 13
    h *= 3266489909
    h ^= h >> 16
    return h


@pk.workunit
def keys(i: int, key: pk.View1D[pk.uint32], salt: int):
    h: pk.uint32 = i * 2 + salt
    key[i] = mix(h)


@pk.workunit
def insert(i: int, word: pk.View1D[pk.uint32], key: pk.View1D[pk.uint32], bits: pk.uint32):
    h: pk.uint32 = key[i]
    one: pk.uint32 = 1
    for k in range(HASHES):
        h = mix(h + 2654435769)
        b: pk.uint32 = h % bits
        pk.atomic_or(word, [b >> 5], one << (b & 31))


@pk.workunit
def query(
    i: int,
    hit: pk.View1D[pk.uint8],
    word: pk.View1D[pk.uint32],
    key: pk.View1D[pk.uint32],
    bits: pk.uint32,
):
    h: pk.uint32 = key[i]
    found: int = 1
    k: int = 0
    while found == 1 and k < HASHES:
        h = mix(h + 2654435769)
        b: pk.uint32 = h % bits
        if ((word[b >> 5] >> (b & 31)) & 1) == 0:
            found = 0
        k += 1
    hit[i] = found


@pk.workunit
def hits(i: int, acc: pk.Acc[pk.int64], hit: pk.View1D[pk.uint8]):
    acc += hit[i]


@pk.workunit
def ones(w: int, acc: pk.Acc[pk.int64], word: pk.View1D[pk.uint32]):
    x: pk.uint32 = word[w]
    while x != 0:
        x &= x - 1
        acc += 1


@pk.workunit
def prove(i: int, nonce: pk.View1D[pk.int32], key: pk.View1D[pk.uint32]):
    nonce[i] = -1
    for t in range(NONCES):
        h: pk.uint32 = mix(key[i] ^ mix(t + 1))
        if (h >> (32 - ZEROS)) == 0:
            nonce[i] = t
            break


@pk.workunit
def work(i: int, acc: pk.Acc[pk.int64], nonce: pk.View1D[pk.int32]):
    if nonce[i] >= 0:
        acc += nonce[i] + 1


@dataclass
class State:
    n: int
    word: pk.View
    nonce: pk.View
    counts: list


def setup(size: int) -> State:
    words = size * BITS_A_KEY // 32 + 1
    return State(size, pk.View([words], pk.uint32), pk.View([size // 4], pk.int32), [])


def run(state: State) -> None:
    n, word, words = state.n, state.word, state.word.shape[0]
    present, absent = pk.View([n], pk.uint32), pk.View([n], pk.uint32)
    hit, false_hit = pk.View([n], pk.uint8), pk.View([n], pk.uint8)
    word.fill(0)
    pk.parallel_for(n, keys, key=present, salt=0)
    pk.parallel_for(n, keys, key=absent, salt=1)
    pk.parallel_for(n, insert, word=word, key=present, bits=32 * words)
    pk.parallel_for(n, query, hit=hit, word=word, key=present, bits=32 * words)
    pk.parallel_for(n, query, hit=false_hit, word=word, key=absent, bits=32 * words)
    pk.parallel_for(n // 4, prove, nonce=state.nonce, key=present)
    state.counts = [
        pk.parallel_reduce(n, hits, hit=hit),
        pk.parallel_reduce(n, hits, hit=false_hit),
        pk.parallel_reduce(words, ones, word=word),
        pk.parallel_reduce(n // 4, work, nonce=state.nonce),
    ]


def outputs(state: State) -> dict[str, np.ndarray | float]:
    counts = np.array([int(count) for count in state.counts])
    return {
        "word": np.array(state.word.data),
        "nonce": np.array(state.nonce.data),
        "counts": counts,
    }


def check(state: State, size: int, runs: int) -> None:
    def mixed(h):
        h = h ^ (h >> np.uint32(16))
        h = h * np.uint32(2246822507)
        h = h ^ (h >> np.uint32(13))
        h = h * np.uint32(3266489909)
        return h ^ (h >> np.uint32(16))

    out, bits = outputs(state), np.uint32(32 * len(state.word.data))
    h = mixed(np.arange(0, 2 * size, 2, dtype=np.uint32))
    field = np.zeros(bits, bool)
    for _ in range(HASHES):
        h = mixed(h + np.uint32(2654435769))
        field[h % bits] = True
    word = np.packbits(field, bitorder="little").view(np.uint32)
    np.testing.assert_array_equal(out["word"], word)
    assert out["counts"][0] == size and out["counts"][2] == field.sum()
    assert out["counts"][1] < 0.03 * size, out["counts"]
    nonces = out["nonce"][out["nonce"] >= 0].astype(int)
    assert out["counts"][3] == np.sum(nonces + 1) and abs(np.mean(nonces + 1) / 2**ZEROS - 1) < 0.3


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
    print(f"bloom_hash: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
