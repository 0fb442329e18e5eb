"""The arithmetic of a comparison: medians, ratios of pairs, differences between results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import median
from typing import Any

import numpy as np

# Reductions may be reassociated: a sum of n terms moves by some sqrt(n) eps, 1e-12 for 16M terms,
# and an iteration that divides by sums amplifies that. A wrong element is off by far more.
TOLERANCE = 1e-9


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
    return median(b / a for b, a in zip(before, after, strict=True))


def geometric_mean(ratios: Sequence[float]) -> float:
    """The mean that suits ratios; `ratios` must not be empty and be positive."""
    return exp(sum(log(ratio) for ratio in ratios) / len(ratios))


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
