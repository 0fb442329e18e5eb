"""Black-Scholes: prices of European call and put options.

Source: F. Black and M. Scholes, "The Pricing of Options and Corporate Liabilities" (1973); the
normal distribution by erf, the put by put-call parity.

One run makes 9 launches with 7 temporaries. Unfused they move 28 doubles (224 bytes) an option;
fused, 3 inputs and 2 outputs are left (40 bytes), and one log, exp, 2 square roots and 2 erf.
"""

import argparse
import math
from dataclasses import dataclass
from math import erf, exp, log, sqrt
from time import perf_counter

import numpy as np
import pykokkos as pk

SIZES = {"small": 2_000, "default": 4_000_000, "large": 12_000_000, "gpu": 80_000_000}
RATE = 0.03
VOLATILITY = 0.25


@pk.workunit
def log_moneyness(i, result, spot, strike):
    result[i] = log(spot[i] / strike[i])


@pk.workunit
def deviation(i, result, maturity, volatility):
    result[i] = volatility * sqrt(maturity[i])


@pk.workunit
def first_score(i, d1, moneyness, sigma, maturity, drift):
    d1[i] = (moneyness[i] + drift * maturity[i]) / sigma[i]


@pk.workunit
def second_score(i, d2, d1, sigma):
    d2[i] = d1[i] - sigma[i]


@pk.workunit
def normal_cdf(i, result, x):
    result[i] = 0.5 * (1.0 + erf(x[i] / sqrt(2.0)))


@pk.workunit
def discount(i, result, strike, maturity, rate):
    result[i] = strike[i] * exp(-rate * maturity[i])


@pk.workunit
def call_price(i, call, spot, discounted, n1, n2):
    call[i] = spot[i] * n1[i] - discounted[i] * n2[i]


@pk.workunit
def put_price(i, put, call, spot, discounted):
    put[i] = call[i] - spot[i] + discounted[i]


@dataclass
class State:
    """The options and their prices."""

    size: int
    spot: pk.View
    strike: pk.View
    maturity: pk.View
    call: pk.View
    put: pk.View


def options(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return spot prices, strike prices and times to maturity."""
    rng = np.random.default_rng(4)
    return rng.uniform(20, 100, size), rng.uniform(20, 100, size), rng.uniform(0.1, 3, size)


def setup(size: int) -> State:
    """Make random options."""
    spot, strike, maturity, call, put = (pk.View([size], pk.double) for _ in range(5))
    for view, values in zip((spot, strike, maturity), options(size), strict=True):
        view.data[:] = values
    return State(size, spot, strike, maturity, call, put)


def price(state: State) -> None:
    """Price every option once."""
    n, spot, strike, maturity = state.size, state.spot, state.strike, state.maturity
    moneyness, sigma, d1, d2, n1, n2, discounted = (pk.View([n], pk.double) for _ in range(7))
    drift = RATE + 0.5 * VOLATILITY * VOLATILITY
    pk.parallel_for(n, log_moneyness, result=moneyness, spot=spot, strike=strike)
    pk.parallel_for(n, deviation, result=sigma, maturity=maturity, volatility=VOLATILITY)
    pk.parallel_for(
        n, first_score, d1=d1, moneyness=moneyness, sigma=sigma, maturity=maturity, drift=drift
    )
    pk.parallel_for(n, second_score, d2=d2, d1=d1, sigma=sigma)
    pk.parallel_for(n, normal_cdf, result=n1, x=d1)
    pk.parallel_for(n, normal_cdf, result=n2, x=d2)
    pk.parallel_for(n, discount, result=discounted, strike=strike, maturity=maturity, rate=RATE)
    pk.parallel_for(n, call_price, call=state.call, spot=spot, discounted=discounted, n1=n1, n2=n2)
    pk.parallel_for(n, put_price, put=state.put, call=state.call, spot=spot, discounted=discounted)


def run(state: State) -> None:
    """Price every option; each run does the same."""
    price(state)


def outputs(state: State) -> dict[str, np.ndarray | float]:
    """Read the prices."""
    return {"call": np.array(state.call.data), "put": np.array(state.put.data)}


def tail(x: np.ndarray) -> np.ndarray:
    """Return the normal distribution at -x, by erfc."""
    return np.array([0.5 * math.erfc(value / math.sqrt(2.0)) for value in x.tolist()])


def reference(size: int, runs: int) -> dict[str, np.ndarray | float]:
    """Textbook formulas, each price on its own."""
    if runs == 0:
        return {"call": np.zeros(size), "put": np.zeros(size)}
    spot, strike, maturity = options(size)
    sigma = VOLATILITY * np.sqrt(maturity)
    d1 = (np.log(spot) - np.log(strike) + RATE * maturity) / sigma + 0.5 * sigma
    d2 = d1 - sigma
    discounted = strike * np.exp(-RATE * maturity)
    call = spot * tail(-d1) - discounted * tail(-d2)
    put = discounted * tail(d2) - spot * tail(d1)
    return {"call": call, "put": put}


def check(state: State, size: int, runs: int) -> None:
    """Probabilities are off by some eps, prices by that times 100, and d1 a little more."""
    actual, expected = outputs(state), reference(size, runs)
    for name in expected:
        np.testing.assert_allclose(actual[name], expected[name], rtol=0, atol=1e-11, err_msg=name)


def main() -> None:
    """Run and check from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=lambda text: SIZES.get(text) or int(text), default="small")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--space", default=None, help="an execution space, such as OpenMP")
    args = parser.parse_args()
    if args.space:
        pk.set_default_space(pk.ExecutionSpace(args.space))
    state = setup(args.size)
    start = perf_counter()
    for _ in range(args.runs):
        run(state)
    seconds = perf_counter() - start
    check(state, args.size, args.runs)
    print(f"black_scholes: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
