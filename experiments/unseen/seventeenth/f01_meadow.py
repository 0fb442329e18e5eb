"""Grazing animals on a meadow: they move, eat, fall ill, die and have young; the list is packed each step.

Births and deaths come from one scan; a second one lists the ill, who alone run the steps of the illness.
"""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 1000, "default": 100_000, "large": 1_000_000}
STEPS = 8


@pk.workunit
def settle(
    i: int,
    at: pk.View1D[pk.int32],
    energy: pk.View1D[pk.double],
    age: pk.View1D[pk.int32],
    ill: pk.View1D[pk.int32],
    key: pk.View1D[pk.int64],
    at0: pk.View1D[pk.int32],
    energy0: pk.View1D[pk.double],
    age0: pk.View1D[pk.int32],
):
    at[i] = at0[i]
    energy[i] = energy0[i]
    age[i] = age0[i]
    key[i] = (i + 1) * 2654435761 & 4294967295
    ill[i] = 0
    if i % 50 == 0:
        ill[i] = 4


@pk.workunit
def sow(c: int, grass: pk.View1D[pk.double], grass0: pk.View1D[pk.double]):
    grass[c] = grass0[c]


@pk.workunit
def draw(i: int, key: pk.View1D[pk.int64], u: pk.View1D[pk.int64], step: int):
    x: pk.int64 = (key[i] + step * 40503) & 4294967295
    x = ((x ^ (x >> 16)) * 739982445) & 4294967295
    x = ((x ^ (x >> 15)) * 695872825) & 4294967295
    u[i] = x ^ (x >> 16)


@pk.workunit
def wander(
    i: int, at: pk.View1D[pk.int32], u: pk.View1D[pk.int64], grass: pk.View1D[pk.double], side: int
):
    row: pk.int32 = at[i] // side
    col: pk.int32 = at[i] % side
    best: pk.int32 = at[i]
    for k in range(2):
        way: pk.int32 = int((u[i] >> (2 * k)) & 3)
        r: pk.int32 = row
        c: pk.int32 = col
        if way == 0:
            r = (row + 1) % side
        elif way == 1:
            r = (row + side - 1) % side
        elif way == 2:
            c = (col + 1) % side
        else:
            c = (col + side - 1) % side
        if grass[r * side + c] > grass[best]:
            best = r * side + c
    at[i] = best


@pk.workunit
def empty(c: int, crowd: pk.View1D[pk.int32], sick: pk.View1D[pk.int32]):
    crowd[c] = 0
    sick[c] = 0


@pk.workunit
def count(i: int, at: pk.View1D[pk.int32], crowd: pk.View1D[pk.int32]):
    pk.atomic_add(crowd, [at[i]], 1)


@pk.workunit
def list_ill(
    i: int,
    acc: pk.Acc[pk.int32],
    last: bool,
    ill: pk.View1D[pk.int32],
    patient: pk.View1D[pk.int32],
):
    if ill[i] > 0:
        if last:
            patient[acc] = i
        acc += 1


@pk.workunit
def cough(k: int, patient: pk.View1D[pk.int32], at: pk.View1D[pk.int32], sick: pk.View1D[pk.int32]):
    pk.atomic_add(sick, [at[patient[k]]], 1)


@pk.workunit
def suffer(
    k: int, patient: pk.View1D[pk.int32], energy: pk.View1D[pk.double], ill: pk.View1D[pk.int32]
):
    energy[patient[k]] -= 0.35
    ill[patient[k]] -= 1


@pk.workunit
def catch(
    i: int,
    at: pk.View1D[pk.int32],
    sick: pk.View1D[pk.int32],
    u: pk.View1D[pk.int64],
    ill: pk.View1D[pk.int32],
):
    if ill[i] == 0 and sick[at[i]] * 60 > ((u[i] >> 8) & 255):
        ill[i] = 4


@pk.workunit
def eat(
    i: int,
    at: pk.View1D[pk.int32],
    crowd: pk.View1D[pk.int32],
    grass: pk.View1D[pk.double],
    energy: pk.View1D[pk.double],
):
    energy[i] += min(0.8 * grass[at[i]] / crowd[at[i]], 0.9)


@pk.workunit
def live_on(i: int, energy: pk.View1D[pk.double], age: pk.View1D[pk.int32]):
    energy[i] -= 0.25 + 0.01 * pk.sqrt(pk.double(age[i]))
    age[i] += 1


@pk.workunit
def grazed(c: int, grass: pk.View1D[pk.double], crowd: pk.View1D[pk.int32]):
    if crowd[c] > 0:
        grass[c] -= min(0.8 * grass[c], 0.9 * crowd[c])


@pk.workunit
def regrow(c: int, grass: pk.View1D[pk.double], rate: float):
    grass[c] += rate * (grass[c] + 0.05) * (1.0 - grass[c])


@pk.workunit
def fate(
    i: int,
    energy: pk.View1D[pk.double],
    age: pk.View1D[pk.int32],
    u: pk.View1D[pk.int64],
    stays: pk.View1D[pk.int32],
    young: pk.View1D[pk.int32],
):
    stays[i] = 1
    young[i] = 0
    if energy[i] < 0.0 or age[i] > 18 + ((u[i] >> 20) & 7):
        stays[i] = 0
    elif energy[i] > 1.6 and age[i] > 1:
        young[i] = 1 + int((u[i] >> 24) & 1)


@pk.workunit
def place(
    i: int,
    acc: pk.Acc[pk.int32],
    last: bool,
    stays: pk.View1D[pk.int32],
    young: pk.View1D[pk.int32],
    slot: pk.View1D[pk.int32],
):
    if last:
        slot[i] = acc
    acc += stays[i] + young[i]


@pk.workunit
def keep(
    i: int,
    stays: pk.View1D[pk.int32],
    young: pk.View1D[pk.int32],
    slot: pk.View1D[pk.int32],
    at: pk.View1D[pk.int32],
    energy: pk.View1D[pk.double],
    age: pk.View1D[pk.int32],
    ill: pk.View1D[pk.int32],
    key: pk.View1D[pk.int64],
    at2: pk.View1D[pk.int32],
    energy2: pk.View1D[pk.double],
    age2: pk.View1D[pk.int32],
    ill2: pk.View1D[pk.int32],
    key2: pk.View1D[pk.int64],
):
    if stays[i] == 1:
        k: pk.int32 = slot[i]
        at2[k] = at[i]
        energy2[k] = energy[i] / (1 + young[i])
        age2[k] = age[i]
        ill2[k] = ill[i]
        key2[k] = key[i]


@pk.workunit
def bear(
    i: int,
    young: pk.View1D[pk.int32],
    slot: pk.View1D[pk.int32],
    u: pk.View1D[pk.int64],
    at: pk.View1D[pk.int32],
    energy: pk.View1D[pk.double],
    at2: pk.View1D[pk.int32],
    energy2: pk.View1D[pk.double],
    age2: pk.View1D[pk.int32],
    ill2: pk.View1D[pk.int32],
    key2: pk.View1D[pk.int64],
):
    for b in range(young[i]):
        k: pk.int32 = slot[i] + 1 + b
        at2[k] = at[i]
        energy2[k] = energy[i] / (1 + young[i])
        age2[k] = 0
        ill2[k] = 0
        key2[k] = (u[i] * 5 + 77 * (b + 1)) & 4294967295


@pk.workunit
def total(i: int, acc: pk.Acc[pk.double], x: pk.View1D[pk.double]):
    acc += x[i]


@dataclass
class State:
    n: int
    side: int
    at0: pk.View
    energy0: pk.View
    age0: pk.View
    grass0: pk.View
    grass: pk.View
    at: pk.View
    energy: pk.View
    crowd: int = 0
    patients: int = 0
    food: float = 0.0
    fat: float = 0.0


def setup(n: int) -> State:
    rng = np.random.default_rng(8)
    side = max(int(np.sqrt(n * 0.8)), 4)
    at0, age0, at = (pk.View([n], pk.int32) for _ in range(3))
    energy0, energy = (pk.View([n], pk.double) for _ in range(2))
    grass0, grass = (pk.View([side * side], pk.double) for _ in range(2))
    at0[...] = rng.integers(0, side * side, n).astype(np.int32)
    age0[...] = rng.integers(0, 18, n).astype(np.int32)
    energy0[...] = rng.uniform(0.2, 1.8, n)
    grass0[...] = rng.uniform(0.3, 1.0, side * side)
    return State(n, side, at0, energy0, age0, grass0, grass, at, energy)


def run(s: State) -> None:
    n, m, side, grass = s.n, s.n, s.side, s.grass
    room = 5 * n
    at, age, ill, at2, age2, ill2, stays, young, slot, patient = (
        pk.View([room], pk.int32) for _ in range(10)
    )
    energy, energy2 = (pk.View([room], pk.double) for _ in range(2))
    key, key2, u = (pk.View([room], pk.int64) for _ in range(3))
    crowd, sick = (pk.View([side * side], pk.int32) for _ in range(2))
    field = pk.RangePolicy(0, side * side)
    old = {"at": at, "energy": energy, "age": age, "ill": ill, "key": key}
    pk.parallel_for(n, settle, at0=s.at0, energy0=s.energy0, age0=s.age0, **old)
    pk.parallel_for(field, sow, grass=grass, grass0=s.grass0)
    s.patients = 0
    for step in range(STEPS):
        herd = pk.RangePolicy(0, m)
        pk.parallel_for(herd, draw, key=key, u=u, step=step)
        pk.parallel_for(herd, wander, at=at, u=u, grass=grass, side=side)
        pk.parallel_for(field, empty, crowd=crowd, sick=sick)
        pk.parallel_for(herd, count, at=at, crowd=crowd)
        patients = int(pk.parallel_scan(herd, list_ill, ill=ill, patient=patient))
        s.patients += patients
        if patients > 0:
            pk.parallel_for(pk.RangePolicy(0, patients), cough, patient=patient, at=at, sick=sick)
            pk.parallel_for(
                pk.RangePolicy(0, patients), suffer, patient=patient, energy=energy, ill=ill
            )
            pk.parallel_for(herd, catch, at=at, sick=sick, u=u, ill=ill)
        pk.parallel_for(herd, eat, at=at, crowd=crowd, grass=grass, energy=energy)
        pk.parallel_for(herd, live_on, energy=energy, age=age)
        pk.parallel_for(field, grazed, grass=grass, crowd=crowd)
        pk.parallel_for(field, regrow, grass=grass, rate=0.9 if m < n else 0.6)
        pk.parallel_for(herd, fate, energy=energy, age=age, u=u, stays=stays, young=young)
        new = int(pk.parallel_scan(herd, place, stays=stays, young=young, slot=slot))
        if new > room:
            raise RuntimeError("too many animals")
        common = {
            "at": at,
            "energy": energy,
            "at2": at2,
            "energy2": energy2,
            "age2": age2,
            "ill2": ill2,
            "key2": key2,
        }
        pk.parallel_for(
            herd, keep, stays=stays, young=young, slot=slot, age=age, ill=ill, key=key, **common
        )
        pk.parallel_for(herd, bear, young=young, slot=slot, u=u, **common)
        at, at2, energy, energy2, age, age2 = at2, at, energy2, energy, age2, age
        ill, ill2, key, key2, m = ill2, ill, key2, key, new
    s.food = float(pk.parallel_reduce(field, total, x=grass))
    s.fat = float(pk.parallel_reduce(pk.RangePolicy(0, m), total, x=energy))
    s.crowd, s.at, s.energy = m, at, energy


def outputs(s: State) -> dict:
    m = s.crowd
    numbers = np.array([float(m), float(s.patients), s.food, s.fat])
    return {
        "at": np.array(s.at.data[:m]),
        "energy": np.array(s.energy.data[:m]),
        "grass": s.grass,
        "numbers": numbers,
    }


def check(s: State, n: int) -> None:
    at, energy, age = (
        np.array(v.data).astype(t) for v, t in ((s.at0, int), (s.energy0, float), (s.age0, int))
    )
    grass, side, sizes, patients = np.array(s.grass0.data), s.side, [], 0
    key = (np.arange(n) + 1) * 2654435761 & 4294967295
    ill = np.where(np.arange(n) % 50 == 0, 4, 0)
    for step in range(STEPS):
        x = (key + step * 40503) & 4294967295
        x = ((x ^ (x >> 16)) * 739982445) & 4294967295
        x = ((x ^ (x >> 15)) * 695872825) & 4294967295
        u = x ^ (x >> 16)
        row, col = np.divmod(at, side)
        for k in range(2):
            way = (u >> (2 * k)) & 3
            r = (row + np.array([1, -1, 0, 0])[way]) % side
            c = (col + np.array([0, 0, 1, -1])[way]) % side
            at = np.where(grass[r * side + c] > grass[at], r * side + c, at)
        crowd = np.bincount(at, minlength=side * side)
        was = ill > 0
        patients += was.sum()
        sick = np.bincount(at[was], minlength=side * side)
        energy, ill = energy - 0.35 * was, ill - was
        ill = np.where((ill == 0) & (sick[at] * 60 > ((u >> 8) & 255)), 4, ill)
        energy = (
            energy + np.minimum(0.8 * grass[at] / crowd[at], 0.9) - (0.25 + 0.01 * np.sqrt(age))
        )
        age = age + 1
        grass = grass - np.minimum(0.8 * grass, 0.9 * crowd)
        grass = grass + (0.9 if at.size < n else 0.6) * (grass + 0.05) * (1 - grass)
        stays = ~((energy < 0) | (age > 18 + ((u >> 20) & 7)))
        young = np.where(stays & (energy > 1.6) & (age > 1), 1 + ((u >> 24) & 1), 0)
        many = stays + young
        who = np.repeat(np.arange(at.size), many)
        nth = np.arange(who.size) - np.repeat(np.cumsum(many) - many, many)
        energy = (energy / (1 + young))[who]
        key = np.where(nth == 0, key[who], (u[who] * 5 + 77 * nth) & 4294967295)
        at, age, ill = at[who], np.where(nth == 0, age[who], 0), np.where(nth == 0, ill[who], 0)
        sizes.append(at.size)
    assert (s.crowd, s.patients) == (at.size, patients), (sizes, s.crowd, patients, s.patients)
    np.testing.assert_array_equal(s.at.data[: s.crowd], at)
    np.testing.assert_allclose(s.energy.data[: s.crowd], energy, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(s.grass.data, grass, rtol=1e-10)
    np.testing.assert_allclose([s.food, s.fat], [grass.sum(), energy.sum()], rtol=1e-10)


if __name__ == "__main__":
    main(globals())
