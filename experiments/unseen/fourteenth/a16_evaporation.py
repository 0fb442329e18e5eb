"""Evaporation from fields by Penman and Monteith (FAO 56), day by day at many stations, and a soil bucket.

Fourteen workunits a day on rows of the weather, with temporaries; the sun's numbers change each day.
"""

from dataclasses import dataclass, field
from math import cos, pi, sin

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 150, "default": 2_500, "large": 400_000}
DAYS, CAPACITY = 10, 60.0


@pk.workunit
def fill(i: int, x: pk.View1D[pk.double], value: float):
    x[i] = value


@pk.workunit
def psychrometric(i: int, g: pk.View1D[pk.double], height: pk.View1D[pk.double]):
    g[i] = 0.000665 * 101.3 * pk.pow((293.0 - 0.0065 * height[i]) / 293.0, 5.26)


@pk.workunit
def mean(i: int, t: pk.View1D[pk.double], low: pk.View1D[pk.double], high: pk.View1D[pk.double]):
    t[i] = 0.5 * (low[i] + high[i])


@pk.workunit
def vapour(i: int, e: pk.View1D[pk.double], t: pk.View1D[pk.double]):
    e[i] = 0.6108 * pk.exp(17.27 * t[i] / (t[i] + 237.3))


@pk.workunit
def slope(i: int, d: pk.View1D[pk.double], t: pk.View1D[pk.double]):
    es: float = 0.6108 * pk.exp(17.27 * t[i] / (t[i] + 237.3))
    d[i] = 4098.0 * es / ((t[i] + 237.3) * (t[i] + 237.3))


@pk.workunit
def sunset(i: int, w: pk.View1D[pk.double], lat: pk.View1D[pk.double], tilt: float):
    w[i] = pk.acos(-pk.tan(lat[i]) * tilt)


@pk.workunit
def outside(
    i: int,
    ra: pk.View1D[pk.double],
    w: pk.View1D[pk.double],
    lat: pk.View1D[pk.double],
    distance: float,
    sine: float,
    cosine: float,
):
    s: float = w[i] * pk.sin(lat[i]) * sine + pk.cos(lat[i]) * cosine * pk.sin(w[i])
    ra[i] = 37.586 * distance * s


@pk.workunit
def sunshine(
    i: int,
    rs: pk.View1D[pk.double],
    ra: pk.View1D[pk.double],
    low: pk.View1D[pk.double],
    high: pk.View1D[pk.double],
):
    rs[i] = 0.16 * pk.sqrt(high[i] - low[i]) * ra[i]


@pk.workunit
def longwave(
    i: int,
    rl: pk.View1D[pk.double],
    t: pk.View1D[pk.double],
    ea: pk.View1D[pk.double],
    rs: pk.View1D[pk.double],
    ra: pk.View1D[pk.double],
    height: pk.View1D[pk.double],
):
    clear: float = (0.75 + 0.00002 * height[i]) * ra[i]
    k: float = t[i] + 273.16
    cloud: float = 1.35 * min(rs[i] / clear, 1.0) - 0.35
    rl[i] = 4.903e-9 * k * k * k * k * (0.34 - 0.14 * pk.sqrt(ea[i])) * cloud


@pk.workunit
def net(i: int, rn: pk.View1D[pk.double], rs: pk.View1D[pk.double], rl: pk.View1D[pk.double]):
    rn[i] = 0.77 * rs[i] - rl[i]


@pk.workunit
def reference(
    i: int,
    et: pk.View1D[pk.double],
    d: pk.View1D[pk.double],
    rn: pk.View1D[pk.double],
    g: pk.View1D[pk.double],
    t: pk.View1D[pk.double],
    wind: pk.View1D[pk.double],
    el: pk.View1D[pk.double],
    eh: pk.View1D[pk.double],
):
    dry: float = 0.5 * (el[i] + eh[i]) - el[i]
    top: float = 0.408 * d[i] * rn[i] + g[i] * 900.0 / (t[i] + 273.0) * wind[i] * dry
    et[i] = max(top / (d[i] + g[i] * (1.0 + 0.34 * wind[i])), 0.0)


@pk.workunit
def stressed(i: int, et: pk.View1D[pk.double], water: pk.View1D[pk.double], capacity: float):
    et[i] *= min(1.0, 2.0 * water[i] / capacity)


@pk.workunit
def bucket(
    i: int,
    water: pk.View1D[pk.double],
    et: pk.View1D[pk.double],
    rain: pk.View1D[pk.double],
    capacity: float,
):
    water[i] = min(max(water[i] + rain[i] - et[i], 0.0), capacity)


@pk.workunit
def add(i: int, sum: pk.View1D[pk.double], x: pk.View1D[pk.double]):
    sum[i] += x[i]


@pk.workunit
def total(i: int, acc: pk.Acc[pk.double], x: pk.View1D[pk.double]):
    acc += x[i]


@dataclass
class State:
    n: int
    low: pk.View
    high: pk.View
    wind: pk.View
    rain: pk.View
    lat: pk.View
    height: pk.View
    water: pk.View
    season: pk.View
    totals: list = field(default_factory=list)


def setup(n: int) -> State:
    rng = np.random.default_rng(1416)
    low, high, wind, rain = (pk.View([DAYS, n], pk.double) for _ in range(4))
    lat, height, water, season = (pk.View([n], pk.double) for _ in range(4))
    low.data[:] = rng.uniform(2.0, 18.0, (DAYS, n))
    high.data[:] = low.data + rng.uniform(4.0, 16.0, (DAYS, n))
    wind.data[:] = rng.uniform(0.5, 5.0, (DAYS, n))
    rain.data[:] = np.maximum(rng.uniform(-20.0, 12.0, (DAYS, n)), 0.0)
    lat.data[:], height.data[:] = rng.uniform(-0.9, 0.9, n), rng.uniform(0.0, 2_000.0, n)
    return State(n, low, high, wind, rain, lat, height, water, season)


def run(s: State) -> None:
    n, lat, height = s.n, s.lat, s.height
    g = pk.View([n], pk.double)
    pk.parallel_for(n, fill, x=s.water, value=0.6 * CAPACITY)
    pk.parallel_for(n, fill, x=s.season, value=0.0)
    pk.parallel_for(n, psychrometric, g=g, height=height)
    s.totals = []
    for day in range(DAYS):
        t, el, eh, d, w, ra, rs, rl, rn, et = (pk.View([n], pk.double) for _ in range(10))
        low, high = s.low[day, :], s.high[day, :]
        year = 2.0 * pi * (120 + 3 * day) / 365.0
        declination, distance = 0.409 * sin(year - 1.39), 1.0 + 0.033 * cos(year)
        sine, cosine = sin(declination), cos(declination)
        pk.parallel_for(n, mean, t=t, low=low, high=high)
        pk.parallel_for(n, vapour, e=el, t=low)
        pk.parallel_for(n, vapour, e=eh, t=high)
        pk.parallel_for(n, slope, d=d, t=t)
        pk.parallel_for(n, sunset, w=w, lat=lat, tilt=sine / cosine)
        pk.parallel_for(
            n, outside, ra=ra, w=w, lat=lat, distance=distance, sine=sine, cosine=cosine
        )
        pk.parallel_for(n, sunshine, rs=rs, ra=ra, low=low, high=high)
        pk.parallel_for(n, longwave, rl=rl, t=t, ea=el, rs=rs, ra=ra, height=height)
        pk.parallel_for(n, net, rn=rn, rs=rs, rl=rl)
        pk.parallel_for(
            n, reference, et=et, d=d, rn=rn, g=g, t=t, wind=s.wind[day, :], el=el, eh=eh
        )
        pk.parallel_for(n, stressed, et=et, water=s.water, capacity=CAPACITY)
        pk.parallel_for(n, bucket, water=s.water, et=et, rain=s.rain[day, :], capacity=CAPACITY)
        pk.parallel_for(n, add, sum=s.season, x=et)
        sparse = s.water[::5]
        s.totals.append(pk.parallel_reduce((n + 4) // 5, total, x=sparse))
    s.totals = [float(x) for x in s.totals]
    s.totals.append(float(pk.parallel_reduce(n, total, x=s.season)))


def outputs(s: State) -> dict:
    return {
        "water": np.array(s.water.data),
        "season": np.array(s.season.data),
        "totals": np.array(s.totals),
    }


def check(s: State, n: int) -> None:
    lat, height = np.array(s.lat.data), np.array(s.height.data)
    g = 0.000665 * 101.3 * ((293.0 - 0.0065 * height) / 293.0) ** 5.26
    water, season = np.full(n, 0.6 * CAPACITY), np.zeros(n)
    days = zip(*(np.array(x.data) for x in (s.low, s.high, s.wind, s.rain)))
    for day, (low, high, wind, rain) in enumerate(days):
        year = 2.0 * pi * (120 + 3 * day) / 365.0
        tilt = 0.409 * sin(year - 1.39)
        t = 0.5 * (low + high)
        el, eh, em = (0.6108 * np.exp(17.27 * x / (x + 237.3)) for x in (low, high, t))
        d = 4098.0 * em / (t + 237.3) ** 2
        w = np.arccos(-np.tan(lat) * np.tan(tilt))
        ra = w * np.sin(lat) * sin(tilt) + np.cos(lat) * cos(tilt) * np.sin(w)
        ra *= 37.586 * (1.0 + 0.033 * cos(year))
        rs = 0.16 * np.sqrt(high - low) * ra
        cloud = 1.35 * np.minimum(rs / ((0.75 + 0.00002 * height) * ra), 1.0) - 0.35
        rn = 0.77 * rs - 4.903e-9 * (t + 273.16) ** 4 * (0.34 - 0.14 * np.sqrt(el)) * cloud
        top = 0.408 * d * rn + g * 900.0 / (t + 273.0) * wind * 0.5 * (eh - el)
        et = np.maximum(top / (d + g * (1.0 + 0.34 * wind)), 0.0)
        et *= np.minimum(1.0, 2.0 * water / CAPACITY)
        water = np.clip(water + rain - et, 0.0, CAPACITY)
        season += et
        np.testing.assert_allclose(s.totals[day], water[::5].sum(), rtol=1e-9)
    np.testing.assert_allclose(s.season.data, season, rtol=1e-9)


if __name__ == "__main__":
    main(globals())
