"""A radio link: 16-QAM on 64 subcarriers, echoes and noise, and what the receiver makes of it.

Fourier transforms by radix-2 passes (Stockham), single precision; a received stream for each level
of noise. The first four symbols are known to the receiver, as is every eighth subcarrier.
"""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 32, "default": 1_600, "large": 40_000}
CARRIERS, PREFIX, TAPS, KNOWN, SPACING = 64, 16, 5, 4, 8
LENGTH = CARRIERS + PREFIX
NOISE = [0.02, 0.06, 0.12]


@pk.workunit
def modulate(s: int, k: int, re, im, data, level):
    re[s][k] = level[data[s][k] & 3]
    im[s][k] = level[data[s][k] >> 2]


@pk.workunit
def butterflies(s: int, j: int, yr, yi, xr, xi, wr, wi, stride: int):
    """One pass: those at j and j + 32 go to 2 (j - j % stride) + j % stride, and stride further."""
    q: int = j % stride
    to: int = 2 * j - q
    ar: pk.float = xr[s][j]
    ai: pk.float = xi[s][j]
    br: pk.float = xr[s][j + CARRIERS // 2]
    bi: pk.float = xi[s][j + CARRIERS // 2]
    dr: pk.float = ar - br
    di: pk.float = ai - bi
    yr[s][to] = ar + br
    yi[s][to] = ai + bi
    yr[s][to + stride] = dr * wr[j - q] - di * wi[j - q]
    yi[s][to + stride] = dr * wi[j - q] + di * wr[j - q]


@pk.workunit
def prefix(s: int, t: int, sent, x):
    k: int = t - PREFIX
    if k < 0:
        k += CARRIERS
    sent[s][t] = 0.125 * x[s][k]


@pk.workunit
def echoes(s: int, t: int, yr, yi, xr, xi, hr, hi):
    sr: pk.float = 0.0
    si: pk.float = 0.0
    for d in range(TAPS):
        a: int = s
        b: int = t - d
        if b < 0:
            a = s - 1
            b += LENGTH
        if a >= 0:
            sr += hr[d] * xr[a][b] - hi[d] * xi[a][b]
            si += hr[d] * xi[a][b] + hi[d] * xr[a][b]
    yr[s][t] = sr
    yi[s][t] = si


@pk.workunit
def add_noise(s: int, t: int, z, y, noise, sigma: float):
    z[s][t] = y[s][t] + sigma * noise[s][t]


@pk.workunit
def strip(s: int, k: int, x, z):
    x[s][k] = 0.125 * z[s][k + PREFIX]


@pk.workunit
def estimate(k: int, gr, gi, xr, xi, tr, ti):
    """The channel at each subcarrier, from the known symbols."""
    sr: pk.float = 0.0
    si: pk.float = 0.0
    power: pk.float = 0.0
    for s in range(KNOWN):
        sr += xr[s][k] * tr[s][k] + xi[s][k] * ti[s][k]
        si += xi[s][k] * tr[s][k] - xr[s][k] * ti[s][k]
        power += tr[s][k] * tr[s][k] + ti[s][k] * ti[s][k]
    gr[k] = sr / power
    gi[k] = si / power


@pk.workunit
def equalise(s: int, k: int, er, ei, xr, xi, gr, gi):
    power: pk.float = gr[k] * gr[k] + gi[k] * gi[k]
    er[s][k] = (xr[s][k] * gr[k] + xi[s][k] * gi[k]) / power
    ei[s][k] = (xi[s][k] * gr[k] - xr[s][k] * gi[k]) / power


@pk.workunit
def phase(s: int, cr, ci, er, ei, tr, ti):
    """By how much a symbol's pilots are turned and scaled."""
    sr: pk.float = 0.0
    si: pk.float = 0.0
    power: pk.float = 0.0
    for m in range(CARRIERS // SPACING):
        k: int = m * SPACING
        sr += er[s][k] * tr[s][k] + ei[s][k] * ti[s][k]
        si += ei[s][k] * tr[s][k] - er[s][k] * ti[s][k]
        power += tr[s][k] * tr[s][k] + ti[s][k] * ti[s][k]
    cr[s] = sr / power
    ci[s] = si / power


@pk.workunit
def derotate(s: int, k: int, dr, di, er, ei, cr, ci):
    power: pk.float = cr[s] * cr[s] + ci[s] * ci[s]
    dr[s][k] = (er[s][k] * cr[s] + ei[s][k] * ci[s]) / power
    di[s][k] = (ei[s][k] * cr[s] - er[s][k] * ci[s]) / power


@pk.workunit
def decide(s: int, k: int, found, dr, di, border):
    a: int = 0
    b: int = 0
    for m in range(3):
        if dr[s][k] > border[m]:
            a += 1
        if di[s][k] > border[m]:
            b += 1
    found[s][k] = a + 4 * b


@pk.workunit
def wrong_bits(s: int, k: int, acc: pk.Acc[pk.int64], found, data):
    difference: int = found[s][k] ^ data[s][k]
    while difference > 0:
        acc += difference & 1
        difference = difference >> 1


@pk.workunit
def error_power(s: int, k: int, acc: pk.Acc[pk.double], dr, di, tr, ti):
    er: pk.double = dr[s][k] - tr[s][k]
    ei: pk.double = di[s][k] - ti[s][k]
    acc += er * er + ei * ei


@dataclass
class State:
    n: int
    noise_levels: list
    level: pk.View
    border: pk.View
    wr: pk.View
    wi: pk.View
    vi: pk.View
    hr: pk.View
    hi: pk.View
    data: pk.View
    noise_r: pk.View
    noise_i: pk.View
    dr: pk.View
    di: pk.View
    found: pk.View
    errors: pk.View
    powers: pk.View


def setup(n: int) -> State:
    random = np.random.default_rng(13)
    half, single = CARRIERS // 2, pk.float
    level, border = pk.View([4], single), pk.View([3], single)
    level.data[:] = np.array([-3, -1, 1, 3]) / np.sqrt(10)
    border.data[:] = np.array([-2, 0, 2]) / np.sqrt(10)
    wr, wi, vi = (pk.View([half], single) for _ in range(3))
    turn = np.exp(-2j * np.pi * np.arange(half) / CARRIERS)
    wr.data[:], wi.data[:], vi.data[:] = turn.real, turn.imag, -turn.imag
    hr, hi = pk.View([TAPS], single), pk.View([TAPS], single)
    hr.data[:], hi.data[:] = [0.9, 0.25, -0.1, 0.08, 0.03], [0.1, -0.2, 0.15, 0.0, -0.04]
    data = pk.View([n, CARRIERS], pk.uint8)
    data.data[:] = random.integers(0, 16, (n, CARRIERS))
    noise_r, noise_i = pk.View([n, LENGTH], single), pk.View([n, LENGTH], single)
    noise_r.data[:] = random.normal(0.0, 1.0, (n, LENGTH))
    noise_i.data[:] = random.normal(0.0, 1.0, (n, LENGTH))
    dr, di = pk.View([n, CARRIERS], single), pk.View([n, CARRIERS], single)
    found = pk.View([n, CARRIERS], pk.uint8)
    errors, powers = pk.View([len(NOISE)], pk.int64), pk.View([len(NOISE)], pk.double)
    views = level, border, wr, wi, vi, hr, hi, data, noise_r, noise_i, dr, di, found
    return State(n, list(NOISE), *views, errors, powers)


def fourier(n, x, y, wr, wi):
    """The transforms of the rows of x; y is room for passes."""
    stride = 1
    while stride < CARRIERS:
        pairs = pk.MDRangePolicy([0, 0], [n, CARRIERS // 2])
        pk.parallel_for(
            pairs, butterflies, yr=y[0], yi=y[1], xr=x[0], xi=x[1], wr=wr, wi=wi, stride=stride
        )
        x, y, stride = y, x, 2 * stride
    return x


def run(s: State) -> None:
    n = s.n
    carriers = pk.MDRangePolicy([0, 0], [n, CARRIERS])
    times = pk.MDRangePolicy([0, 0], [n, LENGTH])
    sent, x, y, e = ([pk.View([n, CARRIERS], pk.float) for _ in range(2)] for _ in range(4))
    a, b, c = ([pk.View([n, LENGTH], pk.float) for _ in range(2)] for _ in range(3))
    gr, gi = pk.View([CARRIERS], pk.float), pk.View([CARRIERS], pk.float)
    cr, ci = pk.View([n], pk.float), pk.View([n], pk.float)
    known = {"tr": sent[0], "ti": sent[1]}

    pk.parallel_for(carriers, modulate, re=sent[0], im=sent[1], data=s.data, level=s.level)
    pk.parallel_for(carriers, modulate, re=x[0], im=x[1], data=s.data, level=s.level)
    wave = fourier(n, x, y, s.wr, s.vi)
    for part in range(2):
        pk.parallel_for(times, prefix, sent=a[part], x=wave[part])
    pk.parallel_for(times, echoes, yr=b[0], yi=b[1], xr=a[0], xi=a[1], hr=s.hr, hi=s.hi)
    for index, sigma in enumerate(s.noise_levels):
        for part, noise in enumerate((s.noise_r, s.noise_i)):
            pk.parallel_for(times, add_noise, z=c[part], y=b[part], noise=noise, sigma=sigma)
            pk.parallel_for(carriers, strip, x=x[part], z=c[part])
        got = fourier(n, x, y, s.wr, s.wi)
        pk.parallel_for(CARRIERS, estimate, gr=gr, gi=gi, xr=got[0], xi=got[1], **known)
        pk.parallel_for(carriers, equalise, er=e[0], ei=e[1], xr=got[0], xi=got[1], gr=gr, gi=gi)
        pk.parallel_for(n, phase, cr=cr, ci=ci, er=e[0], ei=e[1], **known)
        pk.parallel_for(carriers, derotate, dr=s.dr, di=s.di, er=e[0], ei=e[1], cr=cr, ci=ci)
        pk.parallel_for(carriers, decide, found=s.found, dr=s.dr, di=s.di, border=s.border)
        wrong = pk.parallel_reduce(carriers, wrong_bits, found=s.found, data=s.data)
        power = pk.parallel_reduce(carriers, error_power, dr=s.dr, di=s.di, **known)
        s.errors.data[index] = int(wrong)
        s.powers.data[index] = float(power) / (n * CARRIERS)


def outputs(s: State) -> dict:
    names = ("dr", "di", "found", "errors", "powers")
    return {name: np.array(getattr(s, name).data) for name in names}


def check(s: State, n: int) -> None:
    data, level = np.array(s.data.data), s.level.data.astype(float)
    sent = level[data & 3] + 1j * level[data >> 2]
    wave = np.fft.ifft(sent, axis=1) * CARRIERS / 8
    stream = np.concatenate([wave[:, -PREFIX:], wave], 1).ravel()
    echo = np.convolve(stream, s.hr.data + 1j * s.hi.data)[: stream.size].reshape(n, LENGTH)
    for index, sigma in enumerate(s.noise_levels):
        noisy = echo + sigma * (s.noise_r.data + 1j * s.noise_i.data)
        got = np.fft.fft(noisy[:, PREFIX:], axis=1) / 8
        known = sent[:KNOWN]
        channel = (got[:KNOWN] * known.conj()).sum(0) / (abs(known) ** 2).sum(0)
        equal = got / channel
        pilots = sent[:, ::SPACING]
        turn = (equal[:, ::SPACING] * pilots.conj()).sum(1) / (abs(pilots) ** 2).sum(1)
        final = equal / turn[:, None]
        borders = s.border.data.astype(float)
        found = (final.real[..., None] > borders).sum(-1)
        found = found + 4 * (final.imag[..., None] > borders).sum(-1)
        wrong = sum(((found ^ data) >> bit & 1).sum() for bit in range(4))
        assert abs(int(s.errors.data[index]) - wrong) <= 4
        np.testing.assert_allclose(s.powers.data[index], (abs(final - sent) ** 2).mean(), rtol=1e-3)
    np.testing.assert_allclose(s.dr.data, final.real, atol=2e-4)
    np.testing.assert_allclose(s.di.data, final.imag, atol=2e-4)
    assert (s.found.data == found).mean() > 0.998


if __name__ == "__main__":
    main(globals())
