"""Repeats in a list: what is printed once, with how often it comes."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

LONGEST = 64
"""Items of a period, at most."""


class Fold(NamedTuple):
    """`length` items from `start` on, which come `times` times in a row."""

    start: int
    length: int
    times: int


def folds(items: Sequence[Hashable]) -> Iterator[Fold]:
    """The list as folds, from left to right, each as long as it can be made."""
    numbers: dict[Hashable, int] = {}
    keys = [numbers.setdefault(item, len(numbers)) for item in items]
    start = 0
    while start < len(keys):
        longest = min(LONGEST, (len(keys) - start) // 2)
        found = [
            Fold(start, length, _times(keys, start, length)) for length in range(1, 1 + longest)
        ]
        repeated = [fold for fold in found if fold.times > 1]
        best = max(repeated, key=lambda f: f.length * f.times, default=Fold(start, 1, 1))
        yield best
        start += best.length * best.times


def _times(keys: Sequence[int], start: int, length: int) -> int:
    """How often the items from `start` on come in a row."""
    end = start + length
    while end < len(keys) and keys[end] == keys[end - length]:
        end += 1
    return (end - start) // length
