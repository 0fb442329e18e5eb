"""Sensor readings to variable-length bytes and back: deltas, zigzag, a scan of lengths, hashes."""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk

from common import main, rnd

SIZES = {"small": 2000, "default": 3_000_000, "large": 6_000_000}


@pk.workunit
def delta(i, d, v):
    if i == 0:
        d[i] = v[i]
    else:
        d[i] = v[i] - v[i - 1]


@pk.workunit
def zigzag(i, z, d):
    z[i] = (d[i] << 1) ^ (d[i] >> 63)


@pk.workunit
def width(i, w: pk.View1D[pk.int32], z):
    k: int = 1
    if z[i] >= 128:
        k = 2
    if z[i] >= 16384:
        k = 3
    if z[i] >= 2097152:
        k = 4
    if z[i] >= 268435456:
        k = 5
    w[i] = k


@pk.workunit
def place(i, acc: pk.Acc[pk.int64], last, end: pk.View1D[pk.int64], w: pk.View1D[pk.int32]):
    acc += w[i]
    if last:
        end[i] = acc


@pk.workunit
def emit(i, out: pk.View1D[pk.uint8], end, w, z):
    first: pk.int64 = end[i] - w[i]
    rest: pk.int64 = z[i]
    for k in range(w[i]):
        more: pk.int64 = 0
        if k < w[i] - 1:
            more = 128
        out[first + k] = (rest & 127) | more
        rest = rest >> 7


@pk.workunit
def digest(i, acc: pk.Acc[pk.int64], out: pk.View1D[pk.uint8]):
    h: pk.int64 = (out[i] + 1) * ((i & 1023) + 17)
    h = (h ^ (h >> 5)) * 40503
    acc += (h ^ (h >> 11)) & 65535


@pk.workunit
def read(i, z, out, end, w):
    first: pk.int64 = end[i] - w[i]
    value: pk.int64 = 0
    for k in range(w[i]):
        byte: pk.int64 = out[first + k]
        value = value | ((byte & 127) << (7 * k))
    z[i] = value


@pk.workunit
def unzigzag(i, d, z):
    d[i] = (z[i] >> 1) ^ -(z[i] & 1)


@pk.workunit
def restore(i, acc: pk.Acc[pk.int64], last, v, d):
    acc += d[i]
    if last:
        v[i] = acc


@pk.workunit
def differs(i, acc: pk.Acc[pk.int64], a, b):
    if a[i] != b[i]:
        acc += 1


@dataclass
class State:
    n: int
    v: pk.View
    out: pk.View
    back: pk.View
    length: int = 0
    hash: int = 0
    wrong: int = -1


def readings(n):
    u = rnd(n, 140)
    step = np.where(u < 0.6, 100.0, np.where(u < 0.9, 20000.0, np.where(u < 0.99, 3e6, 8e8)))
    return (1e9 + step * (rnd(n, 141) - 0.5)).astype(np.int64)


def setup(n):
    v, out, back = pk.View([n], pk.int64), pk.View([5 * n], pk.uint8), pk.View([n], pk.int64)
    v.data[:] = readings(n)
    return State(n, v, out, back)


def run(s):
    n = s.n
    d, z, end, z2, d2 = (pk.View([n], pk.int64) for _ in range(5))
    w = pk.View([n], pk.int32)
    pk.parallel_for(n, delta, d=d, v=s.v)
    pk.parallel_for(n, zigzag, z=z, d=d)
    pk.parallel_for(n, width, w=w, z=z)
    s.length = int(pk.parallel_scan(n, place, end=end, w=w))
    pk.parallel_for(n, emit, out=s.out, end=end, w=w, z=z)
    s.hash = pk.parallel_reduce(s.length, digest, out=s.out)
    pk.parallel_for(n, read, z=z2, out=s.out, end=end, w=w)
    pk.parallel_for(n, unzigzag, d=d2, z=z2)
    pk.parallel_scan(n, restore, v=s.back, d=d2)
    s.wrong = pk.parallel_reduce(n, differs, a=s.v, b=s.back)


def outputs(s):
    return {
        "back": s.back.data - s.v.data,
        "length": float(s.length),
        "hash": float(int(s.hash)),
        "out": np.array(s.out.data[: s.length]),
        "wrong": float(int(s.wrong)),
    }


def check(s, size, runs):
    assert int(s.wrong) == 0


if __name__ == "__main__":
    main(globals())
