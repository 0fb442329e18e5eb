"""Gaussian naive Bayes: fit class means and variances, then classify every row.

Source: T. Chan, G. Golub and R. LeVeque, "Updating formulae ... sample variances" (1979) for the
two-pass fit in blocks of rows; prediction as in scikit-learn's GaussianNB.

One run makes 16 launches: fit 11 (rows in BLOCKS blocks, then small ones a class and feature),
prediction 4 (a row and class, or a row) and 1 reduction. Unfused, a row's FEATURES doubles are
read twice in the fit and once a class in the likelihood (from cache), and the 2 * CLASSES + 1
temporaries of a row are written and read: some 600 bytes a row.
"""

import argparse
from dataclasses import dataclass
from math import exp, log
from time import perf_counter

import numpy as np
import pykokkos as pk

SIZES = {"small": 2_000, "default": 1_200_000, "large": 4_000_000, "gpu": 10_000_000}
FEATURES, CLASSES, BLOCKS, SMOOTHING = 16, 4, 256, 1e-9


@pk.workunit
def count_rows(
    b: int, counts: pk.View2D[pk.double], y: pk.View1D[pk.int32], length: int, rows: int
) -> None:
    """Count a block's rows by class."""
    for i in range(b * length, b * length + length):
        if i < rows:
            counts[b][y[i]] += 1.0


@pk.workunit
def sum_rows(
    b: int,
    sums: pk.View2D[pk.double],
    x: pk.View2D[pk.double],
    y: pk.View1D[pk.int32],
    length: int,
    rows: int,
    features: int,
) -> None:
    """Sum a block's rows by class and feature."""
    for i in range(b * length, b * length + length):
        if i < rows:
            for f in range(features):
                sums[b][y[i] * features + f] += x[i][f]


@pk.workunit
def sum_squares(
    b: int,
    sums: pk.View2D[pk.double],
    x: pk.View2D[pk.double],
    y: pk.View1D[pk.int32],
    mean: pk.View1D[pk.double],
    length: int,
    rows: int,
    features: int,
) -> None:
    """Sum a block's squared distances from the mean by class and feature."""
    for i in range(b * length, b * length + length):
        if i < rows:
            for f in range(features):
                distance: float = x[i][f] - mean[y[i] * features + f]
                sums[b][y[i] * features + f] += distance * distance


@pk.workunit
def combine(k: int, result: pk.View1D[pk.double], parts: pk.View2D[pk.double], blocks: int) -> None:
    """Add what the blocks found."""
    value: float = 0.0
    for b in range(blocks):
        value += parts[b][k]
    result[k] = value


@pk.workunit
def divide_by_count(
    k: int, values: pk.View1D[pk.double], counts: pk.View1D[pk.double], features: int
) -> None:
    values[k] /= counts[k // features]


@pk.workunit
def smooth(k: int, variance: pk.View1D[pk.double], epsilon: float) -> None:
    variance[k] += epsilon


@pk.workunit
def log_prior(c: int, prior: pk.View1D[pk.double], counts: pk.View1D[pk.double], rows: int) -> None:
    prior[c] = log(counts[c] / rows)


@pk.workunit
def log_likelihood(
    k: int,
    joint: pk.View1D[pk.double],
    x: pk.View2D[pk.double],
    mean: pk.View1D[pk.double],
    variance: pk.View1D[pk.double],
    prior: pk.View1D[pk.double],
    features: int,
    classes: int,
) -> None:
    """Joint log likelihood of row k // classes and class k % classes, but for a constant."""
    row: int = k // classes
    c: int = k % classes
    value: float = 0.0
    for f in range(features):
        distance: float = x[row][f] - mean[c * features + f]
        value += distance * distance / variance[c * features + f]
    joint[k] = prior[c] - 0.5 * value


@pk.workunit
def log_determinant(
    c: int,
    prior: pk.View1D[pk.double],
    variance: pk.View1D[pk.double],
    features: int,
) -> None:
    """Fold the normal distribution's normalisation into the prior."""
    value: float = 0.0
    for f in range(features):
        value += log(6.283185307179586 * variance[c * features + f])
    prior[c] -= 0.5 * value


@pk.workunit
def best_class(
    i: int,
    label: pk.View1D[pk.int32],
    top: pk.View1D[pk.double],
    joint: pk.View1D[pk.double],
    classes: int,
) -> None:
    """Find a row's most likely class and how likely it is."""
    best: int = 0
    for c in range(1, classes):
        if joint[i * classes + c] > joint[i * classes + best]:
            best = c
    label[i] = best
    top[i] = joint[i * classes + best]


@pk.workunit
def weigh(
    k: int,
    weight: pk.View1D[pk.double],
    joint: pk.View1D[pk.double],
    top: pk.View1D[pk.double],
    classes: int,
) -> None:
    weight[k] = exp(joint[k] - top[k // classes])


@pk.workunit
def confidence(
    i: int, certainty: pk.View1D[pk.double], weight: pk.View1D[pk.double], classes: int
) -> None:
    """Probability of the chosen class, whose own weight is one."""
    value: float = 0.0
    for c in range(classes):
        value += weight[i * classes + c]
    certainty[i] = 1.0 / value


@pk.workunit
def agree(
    i: int, acc: pk.Acc[pk.double], label: pk.View1D[pk.int32], y: pk.View1D[pk.int32]
) -> None:
    if label[i] == y[i]:
        acc += 1.0


@dataclass
class State:
    """Rows and classes given, the fitted model, and what it says of the rows."""

    rows: int
    x: pk.View
    y: pk.View
    mean: pk.View
    variance: pk.View
    prior: pk.View
    label: pk.View
    certainty: pk.View
    hits: float = 0.0


def samples(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows drawn from overlapping normal distributions, and their classes."""
    rng = np.random.default_rng(9)
    y = rng.integers(0, CLASSES, size, dtype=np.int32)
    y[:CLASSES] = np.arange(CLASSES)
    centres = rng.uniform(-0.6, 0.6, (CLASSES, FEATURES))
    return rng.normal(0.0, 1.0, (size, FEATURES)) + centres[y], y


def setup(size: int) -> State:
    """Make random rows."""
    x, y = pk.View([size, FEATURES], pk.double), pk.View([size], pk.int32)
    x.data[:], y.data[:] = samples(size)
    mean, variance = (pk.View([CLASSES * FEATURES], pk.double) for _ in range(2))
    prior, label = pk.View([CLASSES], pk.double), pk.View([size], pk.int32)
    return State(size, x, y, mean, variance, prior, label, pk.View([size], pk.double))


def fit(state: State) -> None:
    """Find priors, means and variances."""
    rows, cells = state.rows, CLASSES * FEATURES
    x, y, mean, variance = state.x, state.y, state.mean, state.variance
    length = (rows + BLOCKS - 1) // BLOCKS
    counts, parts = pk.View([CLASSES], pk.double), pk.View([BLOCKS, CLASSES], pk.double)
    sums, squares = (pk.View([BLOCKS, cells], pk.double) for _ in range(2))

    pk.parallel_for(BLOCKS, count_rows, counts=parts, y=y, length=length, rows=rows)
    pk.parallel_for(
        BLOCKS, sum_rows, sums=sums, x=x, y=y, length=length, rows=rows, features=FEATURES
    )
    pk.parallel_for(CLASSES, combine, result=counts, parts=parts, blocks=BLOCKS)
    pk.parallel_for(cells, combine, result=mean, parts=sums, blocks=BLOCKS)
    pk.parallel_for(cells, divide_by_count, values=mean, counts=counts, features=FEATURES)
    pk.parallel_for(
        BLOCKS, sum_squares, sums=squares, x=x, y=y, mean=mean, length=length, rows=rows,
        features=FEATURES,
    )  # fmt: skip
    pk.parallel_for(cells, combine, result=variance, parts=squares, blocks=BLOCKS)
    pk.parallel_for(cells, divide_by_count, values=variance, counts=counts, features=FEATURES)
    pk.parallel_for(cells, smooth, variance=variance, epsilon=SMOOTHING)
    pk.parallel_for(CLASSES, log_prior, prior=state.prior, counts=counts, rows=rows)
    pk.parallel_for(
        CLASSES, log_determinant, prior=state.prior, variance=variance, features=FEATURES
    )


def predict(state: State) -> None:
    """Classify the rows and say how certain that is."""
    rows, pairs = state.rows, state.rows * CLASSES
    joint, weight = (pk.View([pairs], pk.double) for _ in range(2))
    top = pk.View([rows], pk.double)
    pk.parallel_for(
        pairs, log_likelihood, joint=joint, x=state.x, mean=state.mean, variance=state.variance,
        prior=state.prior, features=FEATURES, classes=CLASSES,
    )  # fmt: skip
    pk.parallel_for(rows, best_class, label=state.label, top=top, joint=joint, classes=CLASSES)
    pk.parallel_for(pairs, weigh, weight=weight, joint=joint, top=top, classes=CLASSES)
    pk.parallel_for(rows, confidence, certainty=state.certainty, weight=weight, classes=CLASSES)
    state.hits = pk.parallel_reduce(rows, agree, label=state.label, y=state.y)


def run(state: State) -> None:
    """Fit and predict; each run does the same."""
    fit(state)
    predict(state)


def outputs(state: State) -> dict[str, np.ndarray | float]:
    """Read the model, the labels and their certainty."""
    return {
        "mean": np.array(state.mean.data).reshape(CLASSES, FEATURES),
        "variance": np.array(state.variance.data).reshape(CLASSES, FEATURES),
        "label": np.array(state.label.data),
        "certainty": np.array(state.certainty.data),
        "hits": float(state.hits),
    }


def reference(size: int, runs: int) -> dict[str, np.ndarray | float]:
    """NumPy by class, with normal densities written out."""
    x, y = samples(size)
    if runs == 0:
        model = {"mean": np.zeros((CLASSES, FEATURES)), "variance": np.zeros((CLASSES, FEATURES))}
        return {**model, "label": np.zeros(size, np.int32), "certainty": np.zeros(size), "hits": 0}
    mean = np.stack([x[y == c].mean(axis=0) for c in range(CLASSES)])
    variance = np.stack([x[y == c].var(axis=0) for c in range(CLASSES)]) + SMOOTHING
    joint = np.stack(
        [
            np.log(np.mean(y == c))
            - np.sum(0.5 * np.log(2 * np.pi * variance[c]))
            - np.sum((x - mean[c]) ** 2 / (2 * variance[c]), axis=1)
            for c in range(CLASSES)
        ],
        axis=1,
    )
    label = np.argmax(joint, axis=1).astype(np.int32)
    certainty = 1.0 / np.sum(np.exp(joint - joint.max(axis=1, keepdims=True)), axis=1)
    hits = float(np.count_nonzero(label == y))
    return {
        "mean": mean, "variance": variance, "label": label, "certainty": certainty, "hits": hits
    }  # fmt: skip


def check(state: State, size: int, runs: int) -> None:
    """Sums of n terms: n eps at most, 1e-9; a label may differ only where two classes tie."""
    actual, expected = outputs(state), reference(size, runs)
    for name in ("mean", "variance", "certainty"):
        np.testing.assert_allclose(
            actual[name], expected[name], rtol=1e-9, atol=1e-10, err_msg=name
        )
    tied = np.asarray(expected["certainty"]) <= 0.5 + 1e-8
    differ = np.asarray(actual["label"]) != np.asarray(expected["label"])
    assert not np.any(differ & ~tied), "label: a clear row is classified otherwise"
    ties = int(np.count_nonzero(differ))
    assert abs(actual["hits"] - expected["hits"]) <= ties, "hits: wrong number of right labels"


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
    print(f"naive_bayes: size {args.size}, runs {args.runs}, {seconds:.3f} s, correct")


if __name__ == "__main__":
    main()
