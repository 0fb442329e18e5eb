"""An American put by Longstaff and Schwartz: least squares over simulated paths, backwards in time.

Paths go forwards from given normal numbers. At each date, from the last back, the cash of later
dates is discounted and regressed, on the paths in the money, on three Laguerre polynomials of the
price; where the fit is below the payoff, the option is exercised. NumPy arrays throughout.
"""

from dataclasses import dataclass, field
from math import exp, log, sqrt

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 1_000, "default": 40_000, "large": 400_000}
DATES, SPOT, STRIKE, RATE, VOLATILITY, YEARS = 14, 36.0, 40.0, 0.06, 0.2, 1.0


@pk.workunit
def first_price(i: int, price: pk.View2D[pk.double], spot: float):
    price[0][i] = spot


@pk.workunit
def next_price(
    i: int,
    price: pk.View2D[pk.double],
    normal: pk.View2D[pk.double],
    t: int,
    drift: float,
    spread: float,
):
    price[t][i] = price[t - 1][i] * exp(drift + spread * normal[t - 1][i])


@pk.workunit
def payoff(i: int, pay: pk.View1D[pk.double], price: pk.View2D[pk.double], t: int, strike: float):
    pay[i] = max(strike - price[t][i], 0.0)


@pk.workunit
def copy(i: int, out: pk.View1D[pk.double], x: pk.View1D[pk.double]):
    out[i] = x[i]


@pk.workunit
def discount(i: int, cash: pk.View1D[pk.double], factor: float):
    cash[i] *= factor


@pk.workunit
def in_the_money(i: int, weight: pk.View1D[pk.double], pay: pk.View1D[pk.double]):
    if pay[i] > 0.0:
        weight[i] = 1.0
    else:
        weight[i] = 0.0


@pk.workunit
def laguerre_1(
    i: int, out: pk.View1D[pk.double], price: pk.View2D[pk.double], t: int, strike: float
):
    out[i] = 1.0 - price[t][i] / strike


@pk.workunit
def laguerre_2(
    i: int, out: pk.View1D[pk.double], price: pk.View2D[pk.double], t: int, strike: float
):
    x: float = price[t][i] / strike
    out[i] = 1.0 - 2.0 * x + 0.5 * x * x


@pk.workunit
def total(i: int, acc: pk.Acc[pk.double], x: pk.View1D[pk.double]):
    acc += x[i]


@pk.workunit
def weighted(i: int, acc: pk.Acc[pk.double], w: pk.View1D[pk.double], x: pk.View1D[pk.double]):
    acc += w[i] * x[i]


@pk.workunit
def moment(
    i: int,
    acc: pk.Acc[pk.double],
    w: pk.View1D[pk.double],
    x: pk.View1D[pk.double],
    y: pk.View1D[pk.double],
):
    acc += w[i] * x[i] * y[i]


@pk.workunit
def continuation(
    i: int,
    fit: pk.View1D[pk.double],
    one: pk.View1D[pk.double],
    two: pk.View1D[pk.double],
    a: float,
    b: float,
    c: float,
):
    fit[i] = a + b * one[i] + c * two[i]


@pk.workunit
def exercise(
    i: int, cash: pk.View1D[pk.double], pay: pk.View1D[pk.double], fit: pk.View1D[pk.double]
):
    if pay[i] > 0.0 and pay[i] > fit[i]:
        cash[i] = pay[i]


@pk.workunit
def deviation(i: int, acc: pk.Acc[pk.double], x: pk.View1D[pk.double], mean: float):
    acc += (x[i] - mean) * (x[i] - mean)


@dataclass
class State:
    """Normal numbers by date and path; what each path earns; coefficients; price and its error."""

    n: int
    dates: int
    normal: np.ndarray
    cash: np.ndarray
    fits: list = field(default_factory=list)
    result: list = field(default_factory=list)


def setup(n: int) -> State:
    rng = np.random.default_rng(113)
    return State(n, DATES, rng.standard_normal((DATES, n)), np.zeros(n))


def run(state: State) -> None:
    n, cash, dates = state.n, state.cash, state.dates
    price = np.zeros((dates + 1, n))
    pay, weight, one, two, fit = (np.zeros(n) for _ in range(5))
    dt = YEARS / dates
    drift, spread = (RATE - 0.5 * VOLATILITY**2) * dt, VOLATILITY * sqrt(dt)
    pk.parallel_for(n, first_price, price=price, spot=SPOT)
    for t in range(1, dates + 1):
        pk.parallel_for(
            n, next_price, price=price, normal=state.normal, t=t, drift=drift, spread=spread
        )
    pk.parallel_for(n, payoff, pay=pay, price=price, t=dates, strike=STRIKE)
    pk.parallel_for(n, copy, out=cash, x=pay)
    state.fits = []
    for t in range(dates - 1, 0, -1):
        pk.parallel_for(n, discount, cash=cash, factor=exp(-RATE * dt))
        pk.parallel_for(n, payoff, pay=pay, price=price, t=t, strike=STRIKE)
        pk.parallel_for(n, in_the_money, weight=weight, pay=pay)
        pk.parallel_for(n, laguerre_1, out=one, price=price, t=t, strike=STRIKE)
        pk.parallel_for(n, laguerre_2, out=two, price=price, t=t, strike=STRIKE)
        s = float(pk.parallel_reduce(n, total, x=weight))
        s1 = float(pk.parallel_reduce(n, weighted, w=weight, x=one))
        s2 = float(pk.parallel_reduce(n, weighted, w=weight, x=two))
        s11 = float(pk.parallel_reduce(n, moment, w=weight, x=one, y=one))
        s12 = float(pk.parallel_reduce(n, moment, w=weight, x=one, y=two))
        s22 = float(pk.parallel_reduce(n, moment, w=weight, x=two, y=two))
        y = float(pk.parallel_reduce(n, weighted, w=weight, x=cash))
        y1 = float(pk.parallel_reduce(n, moment, w=weight, x=one, y=cash))
        y2 = float(pk.parallel_reduce(n, moment, w=weight, x=two, y=cash))
        normal = np.array([[s, s1, s2], [s1, s11, s12], [s2, s12, s22]])
        a, b, c = (float(v) for v in np.linalg.solve(normal, np.array([y, y1, y2])))
        state.fits += [a, b, c]
        pk.parallel_for(n, continuation, fit=fit, one=one, two=two, a=a, b=b, c=c)
        pk.parallel_for(n, exercise, cash=cash, pay=pay, fit=fit)
    pk.parallel_for(n, discount, cash=cash, factor=exp(-RATE * dt))
    mean = float(pk.parallel_reduce(n, total, x=cash)) / n
    variance = float(pk.parallel_reduce(n, deviation, x=cash, mean=mean)) / (n - 1)
    state.result = [mean, sqrt(variance / n)]


def outputs(state: State) -> dict:
    return {
        "cash": np.array(state.cash),
        "fits": np.array(state.fits),
        "result": np.array(state.result),
    }


def check(state: State, n: int, runs: int = 1) -> None:
    normal, dt = setup(n).normal, YEARS / DATES
    walk = np.cumsum((RATE - 0.5 * VOLATILITY**2) * dt + VOLATILITY * sqrt(dt) * normal, axis=0)
    price = np.exp(log(SPOT) + walk)
    cash, fits = np.maximum(STRIKE - price[-1], 0.0), []
    for t in range(DATES - 2, -1, -1):
        cash *= exp(-RATE * dt)
        pay, x = np.maximum(STRIKE - price[t], 0.0), price[t] / STRIKE
        basis = np.stack([np.ones(n), 1.0 - x, 1.0 - 2.0 * x + 0.5 * x * x], axis=1)
        inside = pay > 0.0
        fit = np.linalg.lstsq(basis[inside], cash[inside], rcond=None)[0]
        fits += list(fit)
        cash = np.where(inside & (pay > basis @ fit), pay, cash)
    cash *= exp(-RATE * dt)
    out = outputs(state)
    np.testing.assert_allclose(out["cash"], cash, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(out["fits"], fits, rtol=1e-5)
    np.testing.assert_allclose(out["result"], [cash.mean(), cash.std(ddof=1) / sqrt(n)], rtol=1e-10)


if __name__ == "__main__":
    main(globals())
