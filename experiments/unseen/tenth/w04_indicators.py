"""A backtest of technical indicators: MACD and RSI decide what is held of many stocks, day by day.

The two moving averages, the signal line and the averages of gains and losses are kept for each
stock; a day updates them, chooses positions, and sums the day's profit, its cost and its turnover,
from which the portfolio's wealth and its deepest fall follow.
"""

from dataclasses import dataclass, field

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 300, "default": 25_000, "large": 400_000}
DAYS, COST = 25, 0.0005


@pk.workunit
def begin(
    i: int, fast: pk.View1D[pk.double], slow: pk.View1D[pk.double], price: pk.View2D[pk.double]
) -> None:
    fast[i] = price[0][i]
    slow[i] = price[0][i]


@pk.workunit
def clear(i: int, x: pk.View1D[pk.double]) -> None:
    x[i] = 0.0


@pk.workunit
def daily_return(i: int, ret: pk.View1D[pk.double], price: pk.View2D[pk.double], day: int) -> None:
    ret[i] = price[day][i] / price[day - 1][i] - 1.0


@pk.workunit
def earn(
    i: int, gain: pk.View1D[pk.double], position: pk.View1D[pk.double], ret: pk.View1D[pk.double]
) -> None:
    gain[i] = position[i] * ret[i]


@pk.workunit
def follow_price(
    i: int, ema: pk.View1D[pk.double], price: pk.View2D[pk.double], day: int, alpha: float
) -> None:
    ema[i] += alpha * (price[day][i] - ema[i])


@pk.workunit
def spread(
    i: int, macd: pk.View1D[pk.double], fast: pk.View1D[pk.double], slow: pk.View1D[pk.double]
) -> None:
    macd[i] = fast[i] / slow[i] - 1.0


@pk.workunit
def follow(i: int, ema: pk.View1D[pk.double], x: pk.View1D[pk.double], alpha: float) -> None:
    ema[i] += alpha * (x[i] - ema[i])


@pk.workunit
def average_up(i: int, up: pk.View1D[pk.double], ret: pk.View1D[pk.double], alpha: float) -> None:
    up[i] += alpha * (max(ret[i], 0.0) - up[i])


@pk.workunit
def average_down(
    i: int, down: pk.View1D[pk.double], ret: pk.View1D[pk.double], alpha: float
) -> None:
    down[i] += alpha * (max(-ret[i], 0.0) - down[i])


@pk.workunit
def strength(
    i: int, rsi: pk.View1D[pk.double], up: pk.View1D[pk.double], down: pk.View1D[pk.double]
) -> None:
    rsi[i] = 100.0 * up[i] / (up[i] + down[i] + 1e-12)


@pk.workunit
def decide(
    i: int,
    wanted: pk.View1D[pk.double],
    macd: pk.View1D[pk.double],
    line: pk.View1D[pk.double],
    rsi: pk.View1D[pk.double],
) -> None:
    """Long above the signal line unless overbought, short below it unless oversold."""
    wanted[i] = 0.0
    if macd[i] > line[i] and rsi[i] < 70.0:
        wanted[i] = 1.0
    if macd[i] < line[i] and rsi[i] > 30.0:
        wanted[i] = -1.0


@pk.workunit
def difference(
    i: int,
    trade: pk.View1D[pk.double],
    wanted: pk.View1D[pk.double],
    position: pk.View1D[pk.double],
) -> None:
    trade[i] = 0.5 * (wanted[i] - position[i])


@pk.workunit
def execute(i: int, position: pk.View1D[pk.double], trade: pk.View1D[pk.double]) -> None:
    position[i] += trade[i]


@pk.workunit
def total(i: int, acc: pk.Acc[pk.double], x: pk.View1D[pk.double]) -> None:
    acc += x[i]


@pk.workunit
def total_size(i: int, acc: pk.Acc[pk.double], x: pk.View1D[pk.double]) -> None:
    acc += abs(x[i])


@dataclass
class State:
    """Prices by day and stock; positions; the wealth after each day, and its deepest fall."""

    n: int
    days: int
    price: pk.View
    position: pk.View
    wealth: list = field(default_factory=list)
    fall: float = 0.0


def setup(n: int) -> State:
    rng = np.random.default_rng(104)
    price, position = pk.View([DAYS, n], pk.double), pk.View([n], pk.double)
    drift = rng.normal(0.0, 0.003, n)
    price.data[:] = 50.0 * np.exp(np.cumsum(drift + rng.normal(0.0, 0.02, (DAYS, n)), axis=0))
    return State(n, DAYS, price, position)


def run(state: State) -> None:
    n, price, position = state.n, state.price, state.position
    fast, slow, line, up, down = (pk.View([n], pk.double) for _ in range(5))
    ret, gain, macd, rsi, wanted, trade = (pk.View([n], pk.double) for _ in range(6))
    pk.parallel_for(n, begin, fast=fast, slow=slow, price=price)
    for view in (line, up, down, position):
        pk.parallel_for(n, clear, x=view)
    wealth, best, state.fall, state.wealth = 1.0, 1.0, 0.0, []
    for day in range(1, state.days):
        pk.parallel_for(n, daily_return, ret=ret, price=price, day=day)
        pk.parallel_for(n, earn, gain=gain, position=position, ret=ret)
        pk.parallel_for(n, follow_price, ema=fast, price=price, day=day, alpha=2.0 / 13.0)
        pk.parallel_for(n, follow_price, ema=slow, price=price, day=day, alpha=2.0 / 27.0)
        pk.parallel_for(n, spread, macd=macd, fast=fast, slow=slow)
        pk.parallel_for(n, follow, ema=line, x=macd, alpha=2.0 / 10.0)
        pk.parallel_for(n, average_up, up=up, ret=ret, alpha=1.0 / 14.0)
        pk.parallel_for(n, average_down, down=down, ret=ret, alpha=1.0 / 14.0)
        pk.parallel_for(n, strength, rsi=rsi, up=up, down=down)
        pk.parallel_for(n, decide, wanted=wanted, macd=macd, line=line, rsi=rsi)
        pk.parallel_for(n, difference, trade=trade, wanted=wanted, position=position)
        pk.parallel_for(n, execute, position=position, trade=trade)
        profit = pk.parallel_reduce(n, total, x=gain)
        turnover = pk.parallel_reduce(n, total_size, x=trade)
        wealth *= 1.0 + float(profit) / n - COST * float(turnover) / n
        best = max(best, wealth)
        state.fall = max(state.fall, 1.0 - wealth / best)
        state.wealth.append(wealth)


def outputs(state: State) -> dict:
    return {
        "position": np.array(state.position.data),
        "wealth": np.array(state.wealth),
        "fall": state.fall,
    }


def check(state: State, n: int, runs: int = 1) -> None:
    price = np.array(setup(n).price.data)
    fast, slow = price[0].copy(), price[0].copy()
    line, up, down, position = (np.zeros(n) for _ in range(4))
    wealth = [1.0]
    for day in range(1, DAYS):
        ret = price[day] / price[day - 1] - 1.0
        profit = np.sum(position * ret)
        fast += 2.0 / 13.0 * (price[day] - fast)
        slow += 2.0 / 27.0 * (price[day] - slow)
        macd = fast / slow - 1.0
        line += 2.0 / 10.0 * (macd - line)
        up += 1.0 / 14.0 * (np.maximum(ret, 0.0) - up)
        down += 1.0 / 14.0 * (np.maximum(-ret, 0.0) - down)
        rsi = 100.0 * up / (up + down + 1e-12)
        wanted = np.where((macd > line) & (rsi < 70.0), 1.0, 0.0)
        wanted[(macd < line) & (rsi > 30.0)] = -1.0
        trade = 0.5 * (wanted - position)
        position += trade
        wealth.append(wealth[-1] * (1.0 + profit / n - COST * np.sum(np.abs(trade)) / n))
    peak = np.maximum.accumulate(wealth)
    out = outputs(state)
    np.testing.assert_allclose(out["position"], position, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(out["wealth"], wealth[1:], rtol=1e-12)
    np.testing.assert_allclose(out["fall"], np.max(1.0 - wealth / peak), rtol=1e-9, atol=1e-13)


if __name__ == "__main__":
    main(globals())
