"""Databases: splitmix64 hashing of keys, Bloom filter, HyperLogLog and an 8-row MinHash on uint64/uint32."""

import numpy as np

SIZES = {"small": 600, "default": 40_000, "large": 1_000_000}


def make(n, seed=1):
    rng = np.random.default_rng(seed)
    keys = rng.integers(0, 2**40, n, dtype=np.uint64)
    keys[n // 2 :] = keys[rng.integers(0, n // 2, n - n // 2)]  # half are duplicates
    probe = rng.integers(2**40, 2**41, n // 4, dtype=np.uint64)
    return {
        "keys": keys,
        "probe": probe,
        "salt": np.uint64(seed),
        "log2m": int(np.ceil(np.log2(n * 6))),
    }


def splitmix(x):
    z = x + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def popcount32(v):
    v = v - ((v >> np.uint32(1)) & np.uint32(0x55555555))
    v = (v & np.uint32(0x33333333)) + ((v >> np.uint32(2)) & np.uint32(0x33333333))
    v = (v + (v >> np.uint32(4))) & np.uint32(0x0F0F0F0F)
    return (v * np.uint32(0x01010101)) >> np.uint32(24)


def positions(h, log2m, k=4):
    lo = h & np.uint64(0xFFFFFFFF)
    hi = (h >> np.uint64(32)) | np.uint64(1)
    mask = np.uint64((1 << log2m) - 1)
    return [((lo + np.uint64(i) * hi) & mask).astype(np.intp) for i in range(k)]


def run(s):
    h = splitmix(s["keys"] ^ s["salt"])

    bits = np.zeros(1 << s["log2m"], dtype=bool)
    for pos in positions(h, s["log2m"]):
        bits[pos] = True
    words = np.packbits(bits).view(np.uint32)
    filled = int(popcount32(words).sum(dtype=np.int64))

    hit = np.ones(s["probe"].size, dtype=bool)
    for pos in positions(splitmix(s["probe"] ^ s["salt"]), s["log2m"]):
        hit &= bits[pos]
    false_rate = hit.mean()

    # HyperLogLog with 256 registers: rank of the highest set bit of the low 32 bits
    reg = (h >> np.uint64(56)).astype(np.int32)
    low = (h & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    for shift in (1, 2, 4, 8, 16):
        low |= low >> np.uint32(shift)
    rank = (33 - popcount32(low).astype(np.int32)).astype(np.uint8)
    registers = np.zeros(256, dtype=np.uint8)
    np.maximum.at(registers, reg, rank)
    estimate = 0.7213 / (1 + 1.079 / 256) * 256**2 / np.sum(2.0 ** -registers.astype(float))
    empty = int((registers == 0).sum())
    if estimate < 2.5 * 256 and empty:
        estimate = 256 * np.log(256 / empty)

    signature = np.array(
        [(h * np.uint64(2 * i + 3) ^ np.uint64(i << 20)).min() for i in range(8)], dtype=np.uint64
    )
    s["salt"] = s["salt"] + np.uint64(1)
    return filled, false_rate, registers, estimate, signature, int(np.bitwise_xor.reduce(h))


def check(result):
    filled, fr, registers, est, sig, x = result
    return [
        float(filled),
        float(fr),
        registers.astype(float),
        float(est),
        (sig >> np.uint64(20)).astype(float),
        float(x),
    ]
