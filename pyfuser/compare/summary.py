"""The arithmetic of a comparison: medians, ratios of pairs, differences between results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import comb, exp, log
from statistics import median
from typing import Any

import numpy as np

from pyfuser.support.records import dataclass

# Reductions may be reassociated: a sum of n terms moves by some sqrt(n) eps, 1e-12 for 16M terms,
# and an iteration that divides by sums amplifies that. A wrong element is off by far more.
TOLERANCE = 1e-9
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Spread:
    """Order statistics of repeated times, in the times' unit."""

    median: float
    low: float
    high: float


def spread(times: Sequence[float]) -> Spread:
    """Median, minimum and maximum; `times` must not be empty."""
    return Spread(median(times), min(times), max(times))


def speedup(before: Sequence[float], after: Sequence[float]) -> float:
    """The median of before/after over neighbouring pairs.

    Both times of a pair were taken one right after the other, so a machine that slows down for
    a while moves both and not their ratio.
    """
    return median(ratios(before, after))


def ratios(before: Sequence[float], after: Sequence[float]) -> list[float]:
    """before/after of each neighbouring pair."""
    return [b / a for b, a in zip(before, after, strict=True)]


@dataclass(frozen=True, slots=True)
class Interval:
    """Where the median lies, with the probability `confidence`, for independent pairs."""

    low: float
    high: float
    confidence: float


def median_interval(values: Sequence[float]) -> Interval:
    """The narrowest pair of order statistics that covers the median with at least 95%.

    The k-th smallest and the k-th largest of n values miss the median if fewer than k values lie on
    one side of it, which has the probability 2 * P(Binomial(n, 1/2) < k), whatever the distribution
    of the values: see W. J. Conover, "Practical Nonparametric Statistics", on confidence intervals
    for a quantile. Times of programs are not normally distributed, so means and standard deviations
    say little. Fewer than 6 values cannot reach 95%: then it is their minimum and maximum, with the
    confidence that those have (75% for 3). `values` must not be empty.
    """
    ordered = sorted(values)
    n, best = len(ordered), 1
    while best + 1 <= n // 2 and _coverage(n, best + 1) >= CONFIDENCE:
        best += 1
    return Interval(ordered[best - 1], ordered[n - best], _coverage(n, best))


def _coverage(n: int, k: int) -> float:
    """How likely the k-th smallest and the k-th largest of n values enclose the median."""
    missed: int = sum(comb(n, below) for below in range(k))
    return max(0.0, 1.0 - 2.0 * missed / 2.0**n)


def geometric_mean(values: Sequence[float]) -> float:
    """The mean that suits ratios; `values` must not be empty and must be positive."""
    return exp(sum(log(value) for value in values) / len(values))


@dataclass(frozen=True, slots=True)
class Difference:
    """How two sets of outputs differ.

    identical: every bit is equal. relative: the largest difference, relative to the largest
    magnitude of that output; infinite if shapes, dtypes, names or the places of NaNs differ.
    """

    identical: bool
    relative: float

    @property
    def acceptable(self) -> bool:
        return self.identical or self.relative <= TOLERANCE

    def __str__(self) -> str:
        return "bit-identical" if self.identical else f"differ by {self.relative:.1e}"


def difference(first: Mapping[str, Any], second: Mapping[str, Any]) -> Difference:
    """Compare the outputs of two runs of a program, name by name."""
    if first.keys() != second.keys():
        return Difference(False, float("inf"))
    identical, relative = True, 0.0
    for name in first:
        one, other = np.asarray(first[name]), np.asarray(second[name])
        if one.shape == other.shape and one.dtype == other.dtype and _same_bits(one, other):
            continue
        identical = False
        relative = max(relative, _relative(one, other))
    return Difference(identical, relative)


def _same_bits(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    """For equal shapes and dtypes; unlike ==, this tells zeros by sign, and a NaN is itself."""
    first, second = (
        np.ascontiguousarray(array).reshape(-1).view(np.uint8) for array in (one, other)
    )
    return np.array_equal(first, second)


def _relative(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> float:
    if one.shape != other.shape or one.dtype != other.dtype:
        return float("inf")
    if one.dtype.kind not in "fc":
        return 0.0 if np.array_equal(one, other) else float("inf")
    odd = ~(np.isfinite(one) & np.isfinite(other))
    if not np.array_equal(one[odd], other[odd], equal_nan=True):
        return float("inf")
    distance = np.abs(one[~odd] - other[~odd]).max(initial=0.0)
    scale = np.abs(one[~odd]).max(initial=0.0)
    if distance == 0.0:  # only the signs of zeros or the payloads of NaNs differ
        return 0.0
    return float(distance / scale) if scale else float("inf")
