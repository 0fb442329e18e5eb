"""Gaussian naive Bayes: two passes fit, a third one predicts; a row stays in registers."""

from __future__ import annotations

import numpy as np

from experiments.peers.program import Outputs, State
from kernels.naive_bayes import CLASSES, FEATURES, SMOOTHING, samples


def setup(size: int) -> State:
    """The rows and room for model, labels and certainties."""
    x, y = samples(size)
    mean, variance = np.zeros((CLASSES, FEATURES)), np.zeros((CLASSES, FEATURES))
    return State(x=x, y=y, mean=mean, variance=variance, label=np.zeros(size, np.int32),
                 certainty=np.zeros(size), hits=np.zeros(1))  # fmt: skip


def outputs(s: State) -> Outputs:
    """Read the model, the labels and their certainty."""
    return {"mean": s.mean, "variance": s.variance, "label": s.label, "certainty": s.certainty,
            "hits": float(s.hits[0])}  # fmt: skip


def floor(size: int) -> int:
    """Rows and classes are read three times, labels and certainties written."""
    return (3 * (8 * FEATURES + 4) + 12) * size


def log_prior(xp, counts, variance):
    """Prior and normalisation of every class."""
    norm = xp.sum(xp.log(2.0 * np.pi * variance), axis=1)
    return xp.log(counts / counts.sum()) - 0.5 * norm


def cpp(build):
    run_cpp = build("naive_bayes", FEATURES=FEATURES, CLASSES=CLASSES, SMOOTHING=SMOOTHING)

    def run(s: State) -> None:
        run_cpp(len(s.x), s.x, s.y, s.mean, s.variance, s.label, s.certainty, s.hits)

    return run


def numba(njit):
    from math import exp

    from numba import get_num_threads, prange

    @njit(parallel=False)
    def part_of_sums(x, y, begin, end, out, counts):
        sums, number = np.zeros((CLASSES, FEATURES)), np.zeros(CLASSES)
        for i in range(begin, end):
            number[y[i]] += 1.0
            for f in range(FEATURES):
                sums[y[i], f] += x[i, f]
        out[:], counts[:] = sums, number

    @njit(parallel=False)
    def part_of_squares(x, y, mean, begin, end, out):
        sums = np.zeros((CLASSES, FEATURES))
        for i in range(begin, end):
            for f in range(FEATURES):
                distance = x[i, f] - mean[y[i], f]
                sums[y[i], f] += distance * distance
        out[:] = sums

    @njit
    def sums(x, y, parts, counts):
        threads, n = len(parts), len(x)
        for k in prange(threads):
            begin, end = n * k // threads, n * (k + 1) // threads
            part_of_sums(x, y, begin, end, parts[k], counts[k])

    @njit
    def squares(x, y, mean, parts):
        threads, n = len(parts), len(x)
        for k in prange(threads):
            begin, end = n * k // threads, n * (k + 1) // threads
            part_of_squares(x, y, mean, begin, end, parts[k])

    @njit(parallel=False)
    def classify(row, mean, inverse, prior, joint):
        best = 0
        for c in range(CLASSES):
            value = 0.0
            for f in range(FEATURES):
                distance = row[f] - mean[c, f]
                value += distance * distance * inverse[c, f]
            joint[c] = prior[c] - 0.5 * value
            if joint[c] > joint[best]:
                best = c
        return best

    @njit
    def predict(x, y, mean, inverse, prior, label, certainty):
        hits = 0.0
        for i in prange(len(x)):
            joint = np.empty(CLASSES)
            best = classify(x[i], mean, inverse, prior, joint)
            total = 0.0
            for c in range(CLASSES):
                total += exp(joint[c] - joint[best])
            label[i], certainty[i] = best, 1.0 / total
            hits += best == y[i]
        return hits

    def run(s: State) -> None:
        parts = np.empty((get_num_threads(), CLASSES, FEATURES))
        counts = np.empty((get_num_threads(), CLASSES))
        sums(s.x, s.y, parts, counts)
        number = counts.sum(axis=0)
        s.mean[:] = parts.sum(axis=0) / number[:, None]
        squares(s.x, s.y, s.mean, parts)
        s.variance[:] = parts.sum(axis=0) / number[:, None] + SMOOTHING
        prior = log_prior(np, number, s.variance)
        s.hits[0] = predict(s.x, s.y, s.mean, 1.0 / s.variance, prior, s.label, s.certainty)

    return run


def numpy(np=np):
    def run(s: State) -> None:
        joint = np.empty((len(s.x), CLASSES))
        for c in range(CLASSES):
            rows = s.x[s.y == c]
            s.mean[c], s.variance[c] = rows.mean(axis=0), rows.var(axis=0) + SMOOTHING
        prior = log_prior(np, np.bincount(s.y, minlength=CLASSES), s.variance)
        for c in range(CLASSES):
            distance = s.x - s.mean[c]
            distance *= distance
            joint[:, c] = prior[c] - 0.5 * (distance @ (1.0 / s.variance[c]))
        s.label[:] = joint.argmax(axis=1)
        joint -= joint.max(axis=1, keepdims=True)
        np.divide(1.0, np.exp(joint, out=joint).sum(axis=1), out=s.certainty)
        s.hits[0] = np.count_nonzero(s.label == s.y)

    return run


def jax():
    import jax.numpy as jnp
    from jax import jit

    @jit
    def classify(x, y):
        member = (y == jnp.arange(CLASSES)[:, None]).astype(x.dtype)
        counts = member.sum(axis=1)
        mean = member @ x / counts[:, None]
        variance = member @ (x - mean[y]) ** 2 / counts[:, None] + SMOOTHING
        distance = x[:, None, :] - mean
        joint = log_prior(jnp, counts, variance) - 0.5 * jnp.sum(distance**2 / variance, axis=2)
        label = jnp.argmax(joint, axis=1).astype(jnp.int32)
        top = joint.max(axis=1, keepdims=True)
        certainty = 1.0 / jnp.sum(jnp.exp(joint - top), axis=1)
        return mean, variance, label, certainty, jnp.sum(label == y, keepdims=True)

    def run(s: State) -> None:
        s.mean, s.variance, s.label, s.certainty, s.hits = classify(s.x, s.y)

    return run
