"""A Fermi-Pasta-Ulam-Tsingou chain, advanced by Bogacki and Shampine's adaptive Runge-Kutta pair.

Source: P. Bogacki, L. Shampine, "A 3(2) pair of Runge-Kutta formulas" (1989); alpha-FPUT forces.
Every attempt reads two error norms and then accepts (buffers are swapped) or halves the step.
"""

import argparse
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pykokkos as pk

SIZES = {"small": 1_000, "default": 100_000, "large": 300_000}
ATTEMPTS, ALPHA, TOLERANCE = 12, 0.25, 1e-5


@pk.workunit
def start(i, q, p, n):
    q[i] = 0.4 * sin(0.013 * i) + 0.05 * cos(1.7 * i)
    p[i] = 0.1 * sin(0.4 * i) if i > 0 and i < n - 1 else 0.0


@pk.workunit
def force(i, f, q):
    right = q[i + 1] - q[i]
    left = q[i] - q[i - 1]
    f[i] = right - left + ALPHA * (right * right - left * left)


@pk.workunit
def euler(i, out, y, slope, h):
    out[i] = y[i] + h * slope[i]


@pk.workunit
def combine(i, out, y, k1, k2, k3, h):
    out[i] = y[i] + h * (2.0 * k1[i] + 3.0 * k2[i] + 4.0 * k3[i]) / 9.0


@pk.workunit
def error(i, acc, y, k1, k2, k3, k4, h, tol):
    e = h * (-5.0 / 72.0 * k1[i] + k2[i] / 12.0 + k3[i] / 9.0 - k4[i] / 8.0)
    scaled = e / (tol + tol * abs(y[i]))
    acc += scaled * scaled


@dataclass
class State:
    n: int
    q: pk.View
    p: pk.View
    spare: list
    time: float = 0.0
    accepted: int = 0


def setup(size: int) -> State:
    views = [pk.View([size], pk.double) for _ in range(4)]
    return State(size, views[0], views[1], views[2:])


def run(state: State) -> None:
    n, inner = state.n, pk.RangePolicy(1, state.n - 1)
    q, p, (q1, p1) = state.q, state.p, state.spare
    pk.parallel_for(n, start, q=q, p=p, n=n)
    pk.parallel_for(n, start, q=q1, p=p1, n=n)
    f1, f2, f3, f4, q2, q3, p2, p3 = (pk.View([n], pk.double) for _ in range(8))
    state.time, state.accepted, h = 0.0, 0, 0.05
    for _ in range(ATTEMPTS):
        pk.parallel_for(inner, force, f=f1, q=q)
        pk.parallel_for(n, euler, out=q2, y=q, slope=p, h=0.5 * h)
        pk.parallel_for(n, euler, out=p2, y=p, slope=f1, h=0.5 * h)
        pk.parallel_for(inner, force, f=f2, q=q2)
        pk.parallel_for(n, euler, out=q3, y=q, slope=p2, h=0.75 * h)
        pk.parallel_for(n, euler, out=p3, y=p, slope=f2, h=0.75 * h)
        pk.parallel_for(inner, force, f=f3, q=q3)
        pk.parallel_for(inner, combine, out=q1, y=q, k1=p, k2=p2, k3=p3, h=h)
        pk.parallel_for(inner, combine, out=p1, y=p, k1=f1, k2=f2, k3=f3, h=h)
        pk.parallel_for(inner, force, f=f4, q=q1)
        eq = pk.parallel_reduce(inner, error, y=q, k1=p, k2=p2, k3=p3, k4=p1, h=h, tol=TOLERANCE)
        ep = pk.parallel_reduce(inner, error, y=p, k1=f1, k2=f2, k3=f3, k4=f4, h=h, tol=TOLERANCE)
        norm = np.sqrt((float(eq) + float(ep)) / (2 * n))
        if norm <= 1.0:
            q, p, q1, p1 = q1, p1, q, p
            state.time += h
            state.accepted += 1
        h *= min(3.0, max(0.2, 0.9 * norm ** (-1 / 3)))
    state.q, state.p, state.spare = q, p, [q1, p1]


def outputs(state: State) -> dict[str, np.ndarray | float]:
    return {"q": np.array(state.q.data), "p": np.array(state.p.data), "time": state.time}


def check(state: State, size: int, runs: int) -> None:
    """Energy drifts by no more than the tolerance allows, and some steps were accepted."""
    i = np.arange(size)
    q0 = 0.4 * np.sin(0.013 * i) + 0.05 * np.cos(1.7 * i)

    def energy(q, p):
        d = np.diff(q)
        return np.sum(0.5 * p[1:-1] ** 2) + np.sum(0.5 * d**2 + ALPHA / 3 * d**3)

    out = outputs(state)
    before, after = energy(q0, 0.1 * np.sin(0.4 * i)), energy(out["q"], out["p"])
    assert state.accepted >= 5 and state.time > 0.3, (state.accepted, state.time)
    np.testing.assert_allclose(after, before, rtol=5e-3)
    assert out["q"][0] == q0[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=lambda text: SIZES.get(text) or int(text), default="small")
    parser.add_argument("--runs", type=int, default=1)
    args = parser.parse_args()
    state, start = setup(args.size), perf_counter()
    for _ in range(args.runs):
        run(state)
    seconds = perf_counter() - start
    check(state, args.size, args.runs)
    print(f"fpu_chain: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
