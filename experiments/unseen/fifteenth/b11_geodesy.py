"""Satellite positioning: station coordinates to another datum, local heights, outliers, a trend.

Cartesian to geodetic coordinates by iteration; the stations kept are compacted by a scan.
"""

from dataclasses import dataclass, field
from math import atan2, cos, fabs, sin, sqrt

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 1_000, "default": 40_000, "large": 1_000_000}
AXIS, FLAT = 6378137.0, 1 / 298.257222101
ECC = FLAT * (2 - FLAT)
LAT0, LON0 = 0.82, 0.15


@pk.workunit
def cartesian(i, x, y, z, lat, lon, height):
    n: pk.double = AXIS / sqrt(1.0 - ECC * sin(lat[i]) * sin(lat[i]))
    x[i] = (n + height[i]) * cos(lat[i]) * cos(lon[i])
    y[i] = (n + height[i]) * cos(lat[i]) * sin(lon[i])
    z[i] = (n * (1.0 - ECC) + height[i]) * sin(lat[i])


@pk.workunit
def helmert(i, x, y, z, dx, dy, dz, rx, ry, rz, scale):
    a: pk.double = x[i]
    b: pk.double = y[i]
    c: pk.double = z[i]
    x[i] = dx + scale * (a - rz * b + ry * c)
    y[i] = dy + scale * (rz * a + b - rx * c)
    z[i] = dz + scale * (-ry * a + rx * b + c)


@pk.workunit
def first_latitude(i, lat, p, x, y, z):
    p[i] = sqrt(x[i] * x[i] + y[i] * y[i])
    lat[i] = atan2(z[i], p[i] * (1.0 - ECC))


@pk.workunit
def better_latitude(i, lat, p, z):
    s: pk.double = sin(lat[i])
    n: pk.double = AXIS / sqrt(1.0 - ECC * s * s)
    lat[i] = atan2(z[i] + ECC * n * s, p[i])


@pk.workunit
def longitude(i, lon, x, y):
    lon[i] = atan2(y[i], x[i])


@pk.workunit
def ellipsoid_height(i, h, lat, p, z):
    s: pk.double = sin(lat[i])
    h[i] = p[i] * cos(lat[i]) + z[i] * s - AXIS * sqrt(1.0 - ECC * s * s)


@pk.workunit
def local(i, east, north, lat, lon):
    east[i] = AXIS * (lon[i] - LON0) * cos(LAT0) * 0.001
    north[i] = AXIS * (lat[i] - LAT0) * 0.001


@pk.workunit
def misfit(i, r, h, model):
    r[i] = h[i] - model[i]


@pk.workunit
def total(i, acc: pk.Acc[pk.double], x):
    acc += x[i]


@pk.workunit
def deviation(i, acc: pk.Acc[pk.double], x, mean):
    acc += (x[i] - mean) * (x[i] - mean)


@pk.workunit
def product(i, acc: pk.Acc[pk.double], x, y):
    acc += x[i] * y[i]


@pk.workunit
def mark(i, keep, r, mean, limit):
    if fabs(r[i] - mean) <= limit:
        keep[i] = 1
    else:
        keep[i] = 0


@pk.workunit
def places(i, acc: pk.Acc[pk.int64], last, place, keep):
    if last:
        place[i] = acc
    acc += keep[i]


@pk.workunit
def pack(i, to, x, keep, place):
    if keep[i] == 1:
        to[place[i]] = x[i]


@pk.workunit
def remove_trend(i, r, east, north, a, b, c):
    r[i] -= a + b * east[i] + c * north[i]


@dataclass
class State:
    n: int
    lat: pk.View
    lon: pk.View
    height: pk.View
    model: pk.View
    new: list
    kept: pk.View
    count: int = 0
    numbers: list = field(default_factory=list)


def setup(n: int) -> State:
    rng = np.random.default_rng(211)
    lat, lon, height, model, new_lat, new_lon, new_h, kept = (
        pk.View([n], pk.double) for _ in range(8)
    )
    lat.data[:], lon.data[:] = LAT0 + rng.normal(0, 0.03, n), LON0 + rng.normal(0, 0.05, n)
    height.data[:] = rng.gamma(2.0, 200.0, n)
    wrong = np.where(rng.random(n) < 0.02, rng.normal(0, 30, n), 0)
    model.data[:] = height.data + rng.normal(0, 0.3, n) + wrong + 3.0 * (lat.data - LAT0)
    return State(n, lat, lon, height, model, [new_lat, new_lon, new_h], kept)


def run(s: State) -> None:
    n, (lat, lon, h) = s.n, s.new
    x, y, z, p, r, east, north = (pk.View([n], pk.double) for _ in range(7))
    pk.parallel_for(n, cartesian, x=x, y=y, z=z, lat=s.lat, lon=s.lon, height=s.height)
    turn = {"rx": 2e-8, "ry": -1e-8, "rz": 5e-8, "scale": 1.0 + 3e-9}
    pk.parallel_for(n, helmert, x=x, y=y, z=z, dx=0.05, dy=-0.11, dz=0.42, **turn)
    pk.parallel_for(n, first_latitude, lat=lat, p=p, x=x, y=y, z=z)
    for _ in range(3):
        pk.parallel_for(n, better_latitude, lat=lat, p=p, z=z)
    pk.parallel_for(n, longitude, lon=lon, x=x, y=y)
    pk.parallel_for(n, ellipsoid_height, h=h, lat=lat, p=p, z=z)
    pk.parallel_for(n, local, east=east, north=north, lat=lat, lon=lon)
    pk.parallel_for(n, misfit, r=r, h=h, model=s.model)

    keep, place = pk.View([n], pk.uint8), pk.View([n], pk.int32)
    mean = pk.parallel_reduce(n, total, x=r) / n
    sigma = float(np.sqrt(float(pk.parallel_reduce(n, deviation, x=r, mean=mean)) / n))
    pk.parallel_for(n, mark, keep=keep, r=r, mean=mean, limit=2.0 * sigma)
    k = s.count = int(pk.parallel_scan(n, places, place=place, keep=keep))
    packed_east, packed_north = pk.View([n], pk.double), pk.View([n], pk.double)
    for to, values in ((s.kept, r), (packed_east, east), (packed_north, north)):
        pk.parallel_for(n, pack, to=to, x=values, keep=keep, place=place)

    e, q, res = packed_east, packed_north, s.kept
    sums = [float(pk.parallel_reduce(k, total, x=v)) for v in (e, q, res)]
    pairs = ((e, e), (e, q), (q, q), (e, res), (q, res))
    ee, eq, qq, er, qr = (float(pk.parallel_reduce(k, product, x=a, y=b)) for a, b in pairs)
    matrix = np.array([[k, sums[0], sums[1]], [sums[0], ee, eq], [sums[1], eq, qq]])
    a, b, c = (float(t) for t in np.linalg.solve(matrix, [sums[2], er, qr]))
    pk.parallel_for(k, remove_trend, r=res, east=e, north=q, a=a, b=b, c=c)
    rms = float(np.sqrt(float(pk.parallel_reduce(k, product, x=res, y=res)) / k))
    s.numbers = [float(mean), sigma, a, b, c, rms]


def outputs(s: State) -> dict:
    new = {k: np.array(v.data) for k, v in zip(("lat", "lon", "h"), s.new)}
    return {
        **new,
        "kept": np.array(s.kept.data)[: s.count],
        "numbers": np.array([s.count] + s.numbers),
    }


def check(s: State, n: int) -> None:
    lat, lon, h = (np.array(v.data) for v in (s.lat, s.lon, s.height))
    radius = AXIS / np.sqrt(1 - ECC * np.sin(lat) ** 2)
    x, y = (radius + h) * np.cos(lat) * np.cos(lon), (radius + h) * np.cos(lat) * np.sin(lon)
    z = (radius * (1 - ECC) + h) * np.sin(lat)
    k = 1 + 3e-9
    x2 = 0.05 + k * (x - 5e-8 * y - 1e-8 * z)
    y2 = -0.11 + k * (5e-8 * x + y - 2e-8 * z)
    z2 = 0.42 + k * (1e-8 * x + 2e-8 * y + z)
    new_lat, new_lon, new_h = (np.array(v.data) for v in s.new)
    radius = AXIS / np.sqrt(1 - ECC * np.sin(new_lat) ** 2)
    np.testing.assert_allclose((radius + new_h) * np.cos(new_lat) * np.cos(new_lon), x2, atol=1e-4)
    np.testing.assert_allclose((radius + new_h) * np.cos(new_lat) * np.sin(new_lon), y2, atol=1e-4)
    np.testing.assert_allclose((radius * (1 - ECC) + new_h) * np.sin(new_lat), z2, atol=1e-4)
    r = new_h - np.array(s.model.data)
    good = abs(r - r.mean()) <= 2 * r.std()
    assert s.count == good.sum() < n
    east, north = AXIS * (new_lon - LON0) * np.cos(LAT0) / 1000, AXIS * (new_lat - LAT0) / 1000
    design = np.stack([np.ones(s.count), east[good], north[good]], 1)
    rest = r[good] - design @ np.linalg.lstsq(design, r[good], rcond=None)[0]
    np.testing.assert_allclose(np.array(s.kept.data)[: s.count], rest, atol=1e-7)


if __name__ == "__main__":
    main(globals())
