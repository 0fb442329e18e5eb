"""An American put by Longstaff and Schwartz: paths forward, regressions backward."""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk

from common import main, rnd

SIZES = {"small": 1200, "default": 1_500_000, "large": 3_000_000}
DATES = 6
STRIKE, RATE, VOL, DT = 1.0, 0.05, 0.3, 1.0 / 6.0


@pk.workunit
def start(i, s, spot):
    s[0][i] = spot


@pk.workunit
def grow(i, s, z, t, drift, vol):
    s[t + 1][i] = s[t][i] * pk.exp(drift + vol * z[t][i])


@pk.workunit
def payoff(i, pay, s, t, strike):
    pay[i] = max(strike - s[t][i], 0.0)


@pk.workunit
def take(i, cash, pay):
    cash[i] = pay[i]


@pk.workunit
def discount(i, cash, factor):
    cash[i] *= factor


@pk.workunit
def feature(i, x, pay, s, t):
    """Distance from the strike where the option is in the money."""
    x[i] = 0.0
    if pay[i] > 0.0:
        x[i] = 1.0 - s[t][i]


@pk.workunit
def count(i, acc, pay):
    if pay[i] > 0.0:
        acc += 1.0


@pk.workunit
def power1(i, acc, x):
    acc += x[i]


@pk.workunit
def power2(i, acc, x):
    acc += x[i] * x[i]


@pk.workunit
def power3(i, acc, x):
    acc += x[i] * x[i] * x[i]


@pk.workunit
def power4(i, acc, x):
    acc += x[i] * x[i] * x[i] * x[i]


@pk.workunit
def cross0(i, acc, pay, cash):
    if pay[i] > 0.0:
        acc += cash[i]


@pk.workunit
def cross1(i, acc, x, cash):
    acc += x[i] * cash[i]


@pk.workunit
def cross2(i, acc, x, cash):
    acc += x[i] * x[i] * cash[i]


@pk.workunit
def predict(i, hold, x, a, b, c):
    hold[i] = a + x[i] * (b + c * x[i])


@pk.workunit
def exercise(i, cash, pay, hold):
    if pay[i] > 0.0 and pay[i] > hold[i]:
        cash[i] = pay[i]


@dataclass
class State:
    n: int
    z: pk.View
    s: pk.View
    cash: pk.View
    value: float = 0.0


def normals(n):
    """Nearly normal numbers."""
    return (
        sum(rnd(DATES * n, 60 + k) for k in range(4)).reshape(DATES, n) * 3.0**0.5 - 2.0 * 3.0**0.5
    )


def setup(n):
    z = pk.View([DATES, n], pk.double)
    z.data[:] = normals(n)
    return State(n, z, pk.View([DATES + 1, n], pk.double), pk.View([n], pk.double))


def run(st):
    n, s, cash = st.n, st.s, st.cash
    pay, x, hold = (pk.View([n], pk.double) for _ in range(3))
    drift, vol, factor = (RATE - 0.5 * VOL * VOL) * DT, VOL * DT**0.5, float(np.exp(-RATE * DT))
    pk.parallel_for(n, start, s=s, spot=1.0)
    for t in range(DATES):
        pk.parallel_for(n, grow, s=s, z=st.z, t=t, drift=drift, vol=vol)
    pk.parallel_for(n, payoff, pay=pay, s=s, t=DATES, strike=STRIKE)
    pk.parallel_for(n, take, cash=cash, pay=pay)
    for t in range(DATES - 1, 0, -1):
        pk.parallel_for(n, discount, cash=cash, factor=factor)
        pk.parallel_for(n, payoff, pay=pay, s=s, t=t, strike=STRIKE)
        pk.parallel_for(n, feature, x=x, pay=pay, s=s, t=t)
        m = [pk.parallel_reduce(n, count, pay=pay)]
        m += [pk.parallel_reduce(n, f, x=x) for f in (power1, power2, power3, power4)]
        r = [pk.parallel_reduce(n, cross0, pay=pay, cash=cash)]
        r += [pk.parallel_reduce(n, f, x=x, cash=cash) for f in (cross1, cross2)]
        m, r = [float(v) for v in m], [float(v) for v in r]
        a, b, c = np.linalg.solve([m[0:3], m[1:4], m[2:5]], r)
        pk.parallel_for(n, predict, hold=hold, x=x, a=float(a), b=float(b), c=float(c))
        pk.parallel_for(n, exercise, cash=cash, pay=pay, hold=hold)
    pk.parallel_for(n, discount, cash=cash, factor=factor)
    st.value = float(pk.parallel_reduce(n, power1, x=cash)) / n


def outputs(st):
    return {"cash": np.array(st.cash.data), "value": st.value}


def check(st, size, runs):
    assert 0.05 < st.value < 0.2


if __name__ == "__main__":
    main(globals())
