"""Swings of a power grid after a fault: the embedded Runge-Kutta pair of Bogacki and Shampine.

Machines joined by lines; two error norms decide each step, and a governor reads the mean frequency.
"""

from dataclasses import dataclass
from math import sin, sqrt

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 1_000, "default": 100_000, "large": 1_000_000}
END, TRIES, DEGREE = 0.3, 12, 3
DAMPING, GAIN, TOLERANCE = 0.4, 0.5, 1e-4


@pk.workunit
def line_flow(i: int, flow, theta, links, strength):
    """What the machine takes in over its lines."""
    total: pk.double = 0.0
    for k in range(3):
        total += strength[i][k] * sin(theta[links[i][k]] - theta[i])
    flow[i] = total


@pk.workunit
def acceleration(i: int, out, flow, omega, power, inertia, bias: float, damping: float):
    out[i] = (power[i] + bias + flow[i] - damping * omega[i]) / inertia[i]


@pk.workunit
def ahead(i: int, out, y, slope, h: float):
    out[i] = y[i] + h * slope[i]


@pk.workunit
def third_order(i: int, out, y, k1, k2, k3, h: float):
    out[i] = y[i] + h * (2.0 * k1[i] + 3.0 * k2[i] + 4.0 * k3[i]) / 9.0


@pk.workunit
def defect(i: int, e, k1, k2, k3, k4, h: float):
    """Between the third and the second order."""
    e[i] = h * (-5.0 * k1[i] + 6.0 * k2[i] + 8.0 * k3[i] - 9.0 * k4[i]) / 72.0


@pk.workunit
def relative(i: int, e, y, tolerance: float):
    e[i] = e[i] / (tolerance * (1.0 + abs(y[i])))


@pk.workunit
def square_sum(i: int, acc: pk.Acc[pk.double], e):
    acc += e[i] * e[i]


@pk.workunit
def eighth_power_sum(i: int, acc: pk.Acc[pk.double], e):
    """Its eighth root is nearly the largest."""
    square: pk.double = e[i] * e[i]
    acc += square * square * square * square


@pk.workunit
def kinetic(i: int, acc: pk.Acc[pk.double], omega, inertia):
    acc += 0.5 * inertia[i] * omega[i] * omega[i]


@pk.workunit
def momentum(i: int, acc: pk.Acc[pk.double], omega, inertia):
    acc += inertia[i] * omega[i]


@pk.workunit
def too_fast(i: int, acc: pk.Acc[pk.int64], omega, limit: float):
    if abs(omega[i]) > limit:
        acc += 1


@pk.workunit
def copy(i: int, to, source):
    to[i] = source[i]


@dataclass
class State:
    n: int
    mass: float
    theta0: pk.View
    omega0: pk.View
    power: pk.View
    inertia: pk.View
    links: pk.View
    strength: pk.View
    theta: pk.View
    omega: pk.View
    history: pk.View


class Pace:
    """Proposes steps from the errors of those before."""

    def __init__(self, h):
        self.h = h
        self.rejected = 0

    def judge(self, norms):
        mean, largest = norms
        error = max(mean, 0.2 * largest)
        good = error <= 1.0
        growth = 0.9 * (error + 1e-10) ** (-1.0 / 3.0)
        self.h *= min(max(growth, 0.3), 2.0 if good else 1.0)
        self.rejected += not good
        return good


def setup(n: int) -> State:
    rng = np.random.default_rng(21)
    doubles = [pk.View([n], pk.double) for _ in range(6)]
    theta0, omega0, power, inertia, theta, omega = doubles
    theta0.data[:] = 0.3 * rng.standard_normal(n)
    omega0.data[:] = np.where(rng.random(n) < 0.05, 2.0, 0.0) * rng.random(n)
    draw = rng.standard_normal(n)
    power.data[:] = draw - draw.mean() - 0.2
    inertia.data[:] = 0.5 + rng.random(n)
    links, strength = pk.View([n, DEGREE], pk.int32), pk.View([n, DEGREE], pk.double)
    here, order = np.arange(n), rng.permutation(n)
    partner = np.empty(n, int)
    partner[order] = order[::-1]
    near = (here + rng.integers(-40, 41, n)) % n
    far = np.where(here % 10 == 0, partner, here - 1)
    links.data[:] = np.stack([here + 1, near, far], axis=1) % n
    strength.data[:] = 2.0 + rng.random((n, DEGREE))
    mass = float(np.array(inertia.data).sum())
    history = pk.View([TRIES, 6], pk.double)
    return State(n, mass, theta0, omega0, power, inertia, links, strength, theta, omega, history)


def run(s: State) -> None:
    n = s.n
    theta, omega, next_theta, next_omega, flow = (pk.View([n], pk.double) for _ in range(5))
    k1, k2, k3, k4, w2, w3, bend, turn = (pk.View([n], pk.double) for _ in range(8))
    pk.parallel_for(n, copy, to=theta, source=s.theta0)
    pk.parallel_for(n, copy, to=omega, source=s.omega0)

    def accelerate(out, theta, omega):
        pk.parallel_for(n, line_flow, flow=flow, theta=theta, links=s.links, strength=s.strength)
        pk.parallel_for(
            n,
            acceleration,
            out=out,
            flow=flow,
            omega=omega,
            power=s.power,
            inertia=s.inertia,
            bias=bias,
            damping=DAMPING,
        )

    def norms():
        """Root mean square and nearly the largest of both defects."""
        mean = largest = 0.0
        for e, y in ((turn, next_theta), (bend, next_omega)):
            pk.parallel_for(n, relative, e=e, y=y, tolerance=TOLERANCE)
            mean += float(pk.parallel_reduce(n, square_sum, e=e))
            largest += float(pk.parallel_reduce(n, eighth_power_sum, e=e))
        return sqrt(mean / (2 * n)), largest**0.125

    s.history.data[:] = 0.0
    t, bias, pace, tries = 0.0, 0.0, Pace(0.1), 0
    accelerate(k1, theta, omega)
    while t < END and tries < TRIES:
        h = min(pace.h, END - t)
        pk.parallel_for(n, ahead, out=next_theta, y=theta, slope=omega, h=0.5 * h)
        pk.parallel_for(n, ahead, out=w2, y=omega, slope=k1, h=0.5 * h)
        accelerate(k2, next_theta, w2)
        pk.parallel_for(n, ahead, out=next_theta, y=theta, slope=w2, h=0.75 * h)
        pk.parallel_for(n, ahead, out=w3, y=omega, slope=k2, h=0.75 * h)
        accelerate(k3, next_theta, w3)
        pk.parallel_for(n, third_order, out=next_theta, y=theta, k1=omega, k2=w2, k3=w3, h=h)
        pk.parallel_for(n, third_order, out=next_omega, y=omega, k1=k1, k2=k2, k3=k3, h=h)
        accelerate(k4, next_theta, next_omega)
        pk.parallel_for(n, defect, e=turn, k1=omega, k2=w2, k3=w3, k4=next_omega, h=h)
        pk.parallel_for(n, defect, e=bend, k1=k1, k2=k2, k3=k3, k4=k4, h=h)
        if pace.judge(norms()):
            t += h
            theta, next_theta = next_theta, theta
            omega, next_omega = next_omega, omega
            k1, k4 = k4, k1
            energy = float(pk.parallel_reduce(n, kinetic, omega=omega, inertia=s.inertia))
            mean = float(pk.parallel_reduce(n, momentum, omega=omega, inertia=s.inertia)) / s.mass
            fast = int(pk.parallel_reduce(n, too_fast, omega=omega, limit=1.0))
            bias -= GAIN * h * mean
            row = [t, h, energy, mean, fast, bias]
            for column, value in enumerate(row):
                s.history[tries, column] = value
        tries += 1
    s.theta, s.omega = theta, omega


def outputs(s: State) -> dict:
    views = {"theta": s.theta, "omega": s.omega, "history": s.history}
    return {name: np.array(view.data) for name, view in views.items()}


def check(s: State, n: int) -> None:
    power, inertia, links, strength = (
        np.array(v.data) for v in (s.power, s.inertia, s.links, s.strength)
    )

    def slope(y, bias):
        flow = (strength * np.sin(y[0][links] - y[0][:, None])).sum(axis=1)
        return np.stack([y[1], (power + bias + flow - DAMPING * y[1]) / inertia])

    y = np.stack([np.array(s.theta0.data), np.array(s.omega0.data)])
    t, h, bias, expected, rejected = 0.0, 0.1, 0.0, [], 0
    k1 = slope(y, bias)
    while t < END and len(expected) < TRIES:
        step = min(h, END - t)
        k2 = slope(y + step / 2 * k1, bias)
        k3 = slope(y + step * 3 / 4 * k2, bias)
        new = y + step * (2 / 9 * k1 + k2 / 3 + 4 / 9 * k3)
        k4 = slope(new, bias)
        e = step * (-5 / 72 * k1 + k2 / 12 + k3 / 9 - k4 / 8) / (TOLERANCE * (1 + abs(new)))
        error = max(np.sqrt((e**2).mean()), 0.2 * (e**8).sum() ** 0.125)
        good = error <= 1
        h *= min(max(0.9 * (error + 1e-10) ** (-1 / 3), 0.3), 2.0 if good else 1.0)
        if good:
            t, y, k1 = t + step, new, k4
            mean = (inertia * y[1]).sum() / inertia.sum()
            bias -= GAIN * step * mean
            energy = (0.5 * inertia * y[1] ** 2).sum()
            expected.append([t, step, energy, mean, (abs(y[1]) > 1).sum(), bias])
        else:
            rejected += 1
            expected.append([0.0] * 6)
    expected += [[0.0] * 6] * (TRIES - len(expected))
    assert t >= END and rejected >= 1, (t, rejected)
    np.testing.assert_allclose(s.history.data, expected, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(s.theta.data, y[0], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(s.omega.data, y[1], rtol=1e-8, atol=1e-10)


if __name__ == "__main__":
    main(globals())
