"""A backtest on one series: log returns, prefix sums, rolling windows, positions, equity."""

from dataclasses import dataclass
from math import fabs, log, sqrt

import numpy as np
import pykokkos as pk
from common import main, rnd, view

SIZES = {"small": 3_000, "default": 300_000, "large": 4_000_000}
W, FEE = 64, 1e-5


@pk.workunit
def log_return(i, r, p):
    r[i] = log(p[i] / p[i - 1])


@pk.workunit
def square(i, q, r):
    q[i] = r[i] * r[i]


@pk.workunit
def prefix(i, acc, last, x, c):
    acc += x[i]
    if last:
        c[i] = acc


@pk.workunit
def rolling_mean(i, m, c, w):
    m[i] = (c[i] - c[i - w]) / w


@pk.workunit
def rolling_std(i, s, c2, m, w):
    s[i] = sqrt(max((c2[i] - c2[i - w]) / w - m[i] * m[i], 1e-12))


@pk.workunit
def zscore(i, z, r, m, s):
    z[i] = (r[i] - m[i]) / s[i]


@pk.workunit
def position(i, pos, z):
    pos[i] = min(max(-z[i], -1.0), 1.0)


@pk.workunit
def profit(i, pnl, pos, r):
    pnl[i] = pos[i - 1] * r[i]


@pk.workunit
def costs(i, pnl, pos, fee):
    pnl[i] -= fee * fabs(pos[i] - pos[i - 1])


@pk.workunit
def signed_volume(i, sv, vol, r):
    if r[i] > 0.0:
        sv[i] = vol[i]
    elif r[i] < 0.0:
        sv[i] = -vol[i]
    else:
        sv[i] = 0.0


@pk.workunit
def total_of(i, acc, x):
    acc += x[i]


@pk.workunit
def deviation(i, acc, x, mean):
    acc += (x[i] - mean) * (x[i] - mean)


@pk.workunit
def turnover(i, acc, pos):
    acc += fabs(pos[i] - pos[i - 1])


@dataclass
class State:
    n: int
    p: pk.View
    vol: pk.View
    pos: pk.View
    equity: pk.View
    obv: pk.View
    mean: float = 0.0
    sharpe: float = 0.0
    turnover: float = 0.0


def setup(size):
    t = np.arange(size)
    p = 100 + 10 * np.sin(t * 0.001) + rnd(size, 7)
    return State(
        size, view(p), view(100 + 900 * rnd(size, 8)), *(view(np.zeros(size)) for _ in range(3))
    )


def run(s):
    n = s.n
    moves, full, trades = pk.RangePolicy(1, n), pk.RangePolicy(W, n), pk.RangePolicy(W + 1, n)
    r, q, c1, c2, m, sd, z, pnl, sv = (pk.View([n], pk.double) for _ in range(9))
    pk.parallel_for(moves, log_return, r=r, p=s.p)
    pk.parallel_for(moves, square, q=q, r=r)
    pk.parallel_scan(n, prefix, x=r, c=c1)
    pk.parallel_scan(n, prefix, x=q, c=c2)
    pk.parallel_for(full, rolling_mean, m=m, c=c1, w=W)
    pk.parallel_for(full, rolling_std, s=sd, c2=c2, m=m, w=W)
    pk.parallel_for(full, zscore, z=z, r=r, m=m, s=sd)
    pk.parallel_for(full, position, pos=s.pos, z=z)
    pk.parallel_for(trades, profit, pnl=pnl, pos=s.pos, r=r)
    pk.parallel_for(trades, costs, pnl=pnl, pos=s.pos, fee=FEE)
    pk.parallel_scan(n, prefix, x=pnl, c=s.equity)
    pk.parallel_for(moves, signed_volume, sv=sv, vol=s.vol, r=r)
    pk.parallel_scan(n, prefix, x=sv, c=s.obv)
    s.mean = pk.parallel_reduce(n, total_of, x=pnl) / n
    var = pk.parallel_reduce(n, deviation, x=pnl, mean=s.mean) / n
    s.sharpe = s.mean / var**0.5
    s.turnover = pk.parallel_reduce(trades, turnover, pos=s.pos)


def outputs(s):
    return {
        "pos": np.array(s.pos.data),
        "equity": np.array(s.equity.data),
        "obv": np.array(s.obv.data),
        "mean": float(s.mean),
        "sharpe": float(s.sharpe),
        "turnover": float(s.turnover),
    }


if __name__ == "__main__":
    main(globals())
