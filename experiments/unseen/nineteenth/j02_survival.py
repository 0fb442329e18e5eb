# ruff: noqa: B905
"""Survival of patients: Weibull regression with censoring by a trust-region Newton method.

Four parameters; value, gradient and information are fifteen sums over the patients a step.
"""

from dataclasses import dataclass
from math import exp, log

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 2_000, "default": 150_000, "large": 2_000_000}
STEPS = 12


@pk.workunit
def take_log(i: int, out: pk.View1D[pk.double], x: pk.View1D[pk.double]):
    out[i] = log(x[i])


@pk.workunit
def fill(i: int, out: pk.View1D[pk.double], value: float):
    out[i] = value


@pk.workunit
def add_effect(i: int, eta: pk.View1D[pk.double], x: pk.View1D[pk.double], beta: float):
    eta[i] += beta * x[i]


@pk.workunit
def standardise(i: int, z, log_time, eta, spread: float):
    z[i] = (log_time[i] - eta[i]) / spread


@pk.workunit
def hazard(i: int, w: pk.View1D[pk.double], z: pk.View1D[pk.double]):
    """Cumulative; cut off where far from any patient's."""
    w[i] = exp(min(z[i], 60.0))


@pk.workunit
def surprise(i: int, r, w, died):
    r[i] = w[i] - died[i]


@pk.workunit
def curvature(i: int, q, w, z, r):
    q[i] = w[i] * z[i] + r[i]


@pk.workunit
def log_likelihood(i: int, acc: pk.Acc[pk.double], z, w, died, log_spread: float):
    if died[i] == 1:
        acc += z[i] - log_spread - w[i]
    else:
        acc -= w[i]


@pk.workunit
def dot(i: int, acc: pk.Acc[pk.double], a, b):
    acc += a[i] * b[i]


@pk.workunit
def weighted(i: int, acc: pk.Acc[pk.double], w, a, b):
    acc += w[i] * a[i] * b[i]


@pk.workunit
def deaths(i: int, acc: pk.Acc[pk.int64], died):
    acc += died[i]


@pk.workunit
def median_time(i: int, out, eta, spread: float):
    out[i] = exp(eta[i] + spread * -0.36651292058166435)


@dataclass
class State:
    n: int
    time: pk.View
    died: pk.View
    age: pk.View
    dose: pk.View
    expected: pk.View
    parameters: pk.View
    history: pk.View


class Model:
    """The likelihood at one set of parameters (three effects and the logarithm of the spread)."""

    def __init__(self, s: State):
        self.n, self.died = s.n, s.died
        views = [pk.View([s.n], pk.double) for _ in range(7)]
        self.log_time, self.eta, self.z, self.w, self.r, self.q, one = views
        pk.parallel_for(self.n, fill, out=one, value=1.0)
        pk.parallel_for(self.n, take_log, out=self.log_time, x=s.time)
        self.columns = [one, s.age, s.dose]
        self.dead = int(pk.parallel_reduce(self.n, deaths, died=s.died))

    def at(self, theta) -> float:
        """Move to these parameters; their log-likelihood."""
        self.spread = exp(theta[3])
        pk.parallel_for(self.n, fill, out=self.eta, value=0.0)
        for column, beta in zip(self.columns, theta):
            pk.parallel_for(self.n, add_effect, eta=self.eta, x=column, beta=float(beta))
        pk.parallel_for(
            self.n, standardise, z=self.z, log_time=self.log_time, eta=self.eta, spread=self.spread
        )
        pk.parallel_for(self.n, hazard, w=self.w, z=self.z)
        value = pk.parallel_reduce(
            self.n, log_likelihood, z=self.z, w=self.w, died=self.died, log_spread=float(theta[3])
        )
        return float(value)

    def gradient(self):
        pk.parallel_for(self.n, surprise, r=self.r, w=self.w, died=self.died)
        sums = [pk.parallel_reduce(self.n, dot, a=self.r, b=x) for x in self.columns]
        slope = pk.parallel_reduce(self.n, dot, a=self.r, b=self.z)
        return np.array([float(x) / self.spread for x in sums] + [float(slope) - self.dead])

    def information(self):
        pk.parallel_for(self.n, curvature, q=self.q, w=self.w, z=self.z, r=self.r)
        m = np.zeros((4, 4))
        for j, a in enumerate(self.columns):
            for k, b in enumerate(self.columns[: j + 1]):
                m[j, k] = pk.parallel_reduce(self.n, weighted, w=self.w, a=a, b=b)
                m[j, k] /= self.spread**2
                m[k, j] = m[j, k]
            m[j, 3] = m[3, j] = pk.parallel_reduce(self.n, dot, a=self.q, b=a) / self.spread
        m[3, 3] = pk.parallel_reduce(self.n, dot, a=self.q, b=self.z)
        return m


def setup(n: int) -> State:
    rng = np.random.default_rng(5)
    time, age, dose, expected = (pk.View([n], pk.double) for _ in range(4))
    died = pk.View([n], pk.uint8)
    age.data[:] = rng.standard_normal(n)
    dose.data[:] = rng.integers(0, 4, n) * 0.5
    mean = 1.5 - 0.4 * np.array(age.data) + 0.6 * np.array(dose.data)
    end = np.exp(mean + 0.7 * np.log(rng.exponential(size=n)))
    left = rng.uniform(0.5, 30, n)
    time.data[:], died.data[:] = np.minimum(end, left), end <= left
    history = pk.View([STEPS, 3], pk.double)
    return State(n, time, died, age, dose, expected, pk.View([4], pk.double), history)


def run(s: State) -> None:
    model, theta, damping = Model(s), np.array([1.0, 0.0, 0.0, 0.0]), 0.05
    s.history.data[:] = 0.0
    value, stale = model.at(theta), True
    for step in range(STEPS):
        if stale:
            gradient, information = model.gradient(), model.information()
        matrix = information + damping * np.diag(abs(np.diag(information)))
        move = np.linalg.solve(matrix, gradient)
        promised = float(gradient @ move - 0.5 * move @ information @ move)
        s.history[step, 0], s.history[step, 1], s.history[step, 2] = value, promised, damping
        if abs(promised) < 1e-10 * abs(value):
            break
        tried = model.at(theta + move)
        ratio = (tried - value) / promised
        stale = promised > 0.0 and ratio > 0.05
        if stale:
            theta, value = theta + move, tried
        if not stale or ratio < 0.25:
            damping = 8.0 * damping + 0.01
        elif ratio > 0.75:
            damping *= 0.02
    for k in range(4):
        s.parameters[k] = float(theta[k])
    model.at(theta)
    pk.parallel_for(s.n, median_time, out=s.expected, eta=model.eta, spread=model.spread)


def outputs(s: State) -> dict:
    views = {"expected": s.expected, "parameters": s.parameters, "history": s.history}
    return {name: np.array(view.data) for name, view in views.items()}


def check(s: State, n: int) -> None:
    died = np.array(s.died.data).astype(float)
    log_time = np.log(np.array(s.time.data))
    x = np.stack([np.ones(n), np.array(s.age.data), np.array(s.dose.data)], axis=1)

    def at(theta):
        spread = np.exp(theta[3])
        z = (log_time - x @ theta[:3]) / spread
        w = np.exp(z)
        a = np.concatenate([x / spread, z[:, None]], axis=1)
        gradient = a.T @ (w - died) - [0, 0, 0, died.sum()]
        information = a.T @ (w[:, None] * a)
        extra = a.T @ (w - died)
        information[3, :3] += extra[:3]
        information[:, 3] += extra
        return (died * (z - theta[3]) - w).sum(), gradient, information

    theta = np.array(s.parameters.data)
    value, gradient, information = at(theta)
    size = np.sqrt(np.diag(information))
    assert np.all(abs(gradient) < 1e-3 * size), gradient / size
    assert abs(theta[2] - 0.6) < 0.1 and abs(theta[1] + 0.4) < 0.1
    # The path of the method, with its own rules.
    theta, damping, rows = np.array([1.0, 0, 0, 0]), 0.05, []
    value, gradient, information = at(theta)
    for _ in range(STEPS):
        matrix = information + damping * np.diag(abs(np.diag(information)))
        move = np.linalg.solve(matrix, gradient)
        promised = gradient @ move - 0.5 * move @ information @ move
        rows.append([value, promised, damping])
        if abs(promised) < 1e-10 * abs(value):
            break
        tried, g, m = at(theta + move)
        ratio = (tried - value) / promised
        good = promised > 0 and ratio > 0.05
        if good:
            theta, value, gradient, information = theta + move, tried, g, m
        if not good or ratio < 0.25:
            damping = 8 * damping + 0.01
        elif ratio > 0.75:
            damping *= 0.02
    rows = np.array(rows)
    found = np.array(s.history.data)
    assert not found[len(rows) :].any()
    scale = 1e-9 * abs(rows[:, :1])
    assert np.all(abs(found[: len(rows)] - rows) <= 1e-6 * abs(rows) + scale)
    np.testing.assert_allclose(s.parameters.data, theta, rtol=1e-7)
    expected = np.exp(x @ theta[:3]) * np.log(2) ** np.exp(theta[3])
    np.testing.assert_allclose(s.expected.data, expected, rtol=1e-7)


if __name__ == "__main__":
    main(globals())
