"""Adam: steps of the optimiser with decoupled weight decay, in single precision.

Source: D. Kingma and J. Ba, "Adam: A Method for Stochastic Optimization" (2015); I. Loshchilov and
F. Hutter, "Decoupled Weight Decay Regularization" (2019). Gradients are those of a quadratic loss.

One run makes STEPS steps of 8 launches and a reduction at the end. Literals and scalars are
doubles, so every launch computes in double and rounds to float when it stores. Unfused, a step
moves 21 floats (84 bytes) a weight; fused, w, m and v are read and written and a target is read
(28 bytes).
"""

import argparse
from dataclasses import dataclass
from math import sqrt
from time import perf_counter

import numpy as np
import pykokkos as pk

SIZES = {"small": 10_000, "default": 12_000_000, "large": 48_000_000, "gpu": 120_000_000}
STEPS = 3
RATE, BETA1, BETA2, EPSILON, DECAY = 0.01, 0.9, 0.999, 1e-8, 0.01


@pk.workunit
def gradient(i, g, w, target):
    g[i] = w[i] - target[i]


@pk.workunit
def first_moment(i, m, g, beta):
    m[i] = beta * m[i] + (1.0 - beta) * g[i]


@pk.workunit
def second_moment(i, v, g, beta):
    v[i] = beta * v[i] + (1.0 - beta) * g[i] * g[i]


@pk.workunit
def unbias(i, result, moment, correction):
    result[i] = moment[i] / correction


@pk.workunit
def direction(i, d, m_hat, v_hat, epsilon):
    d[i] = m_hat[i] / (sqrt(v_hat[i]) + epsilon)


@pk.workunit
def shrink(i, w, factor):
    w[i] = factor * w[i]


@pk.workunit
def descend(i, w, d, rate):
    w[i] -= rate * d[i]


@pk.workunit
def loss(i, acc, w, target):
    acc += 0.5 * (w[i] - target[i]) * (w[i] - target[i])


@dataclass
class State:
    """Weights, their targets, both moments, the steps made and the last loss."""

    size: int
    w: pk.View
    target: pk.View
    m: pk.View
    v: pk.View
    steps: int = 0
    loss: float = 0.0


def initial(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return weights and targets."""
    rng = np.random.default_rng(15)
    return rng.random(size, np.float32), rng.random(size, np.float32) + np.float32(1.0)


def setup(size: int) -> State:
    """Make weights; both moments start at zero."""
    w, target, m, v = (pk.View([size], pk.float32) for _ in range(4))
    w.data[:], target.data[:] = initial(size)
    return State(size, w, target, m, v)


def step(state: State) -> None:
    """Make one step; gradient, unbiased moments and direction die with it."""
    n, w = state.size, state.w
    state.steps += 1
    g, m_hat, v_hat, d = (pk.View([n], pk.float32) for _ in range(4))
    first, second = 1.0 - BETA1**state.steps, 1.0 - BETA2**state.steps
    pk.parallel_for(n, gradient, g=g, w=w, target=state.target)
    pk.parallel_for(n, first_moment, m=state.m, g=g, beta=BETA1)
    pk.parallel_for(n, second_moment, v=state.v, g=g, beta=BETA2)
    pk.parallel_for(n, unbias, result=m_hat, moment=state.m, correction=first)
    pk.parallel_for(n, unbias, result=v_hat, moment=state.v, correction=second)
    pk.parallel_for(n, direction, d=d, m_hat=m_hat, v_hat=v_hat, epsilon=EPSILON)
    pk.parallel_for(n, shrink, w=w, factor=1.0 - RATE * DECAY)
    pk.parallel_for(n, descend, w=w, d=d, rate=RATE)


def run(state: State) -> None:
    """Make STEPS steps and compute the loss."""
    for _ in range(STEPS):
        step(state)
    state.loss = pk.parallel_reduce(state.size, loss, w=state.w, target=state.target)


def outputs(state: State) -> dict[str, np.ndarray | float]:
    """Read weights, moments and loss."""
    return {
        "w": np.array(state.w.data),
        "m": np.array(state.m.data),
        "v": np.array(state.v.data),
        "loss": float(state.loss),
    }


def reference(size: int, runs: int) -> dict[str, np.ndarray | float]:
    """Adam in NumPy, all in double precision."""
    w, target = (values.astype(np.float64) for values in initial(size))
    m, v = np.zeros(size), np.zeros(size)
    for steps in range(1, runs * STEPS + 1):
        g = w - target
        m += (1 - BETA1) * (g - m)
        v += (1 - BETA2) * (g * g - v)
        ratio = (m / (1 - BETA1**steps)) / (np.sqrt(v / (1 - BETA2**steps)) + EPSILON)
        w -= RATE * (ratio + DECAY * w)
    error = w - target
    return {"w": w, "m": m, "v": v, "loss": 0.5 * float(error @ error) if runs else 0.0}


def check(state: State, size: int, runs: int) -> None:
    """Single precision against double: some 6e-8 of about 1 a step, a wrong factor is 1e-2."""
    actual, expected = outputs(state), reference(size, runs)
    atol = 1e-6 * (1 + runs * STEPS)
    for name in ("w", "m", "v"):
        np.testing.assert_allclose(actual[name], expected[name], rtol=0, atol=atol, err_msg=name)
    np.testing.assert_allclose(
        actual["loss"], expected["loss"], rtol=1e-5 * (1 + runs * STEPS), err_msg="loss"
    )


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
    print(f"adam_optimizer: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
