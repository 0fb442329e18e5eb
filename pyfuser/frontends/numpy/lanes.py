"""Reductions of long axes on a GPU: by lanes, as a thread for each result would leave it idle.

An axis of `count` elements becomes one of `count // lanes` rows of `lanes` elements. Each lane is
reduced by a thread of its own, whose neighbours have the next elements in memory; then the lanes
are. It is another order than NumPy's, so sums of floats have other last digits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

THREADS = 1 << 16
"""Threads that keep a GPU busy: half of those that an H100 runs at a time."""

EACH = 64
"""Elements that a lane has at least."""

WARP = 32
"""Lanes of a row whose elements lie one after the other: what neighbours read is one access."""


def lanes_of(count: int, results: int, inner: bool) -> int:
    """How many lanes an axis has; less than 2: it is reduced by a thread for each result.

    results: of the reduction. inner: whether elements of the axis lie one after the other.
    """
    wanted, most = THREADS // results, count // EACH
    if inner and count >= WARP * EACH // 2:
        wanted, most = max(wanted, WARP), max(most, WARP)
    return min(wanted, most)


def by_lanes(x: Any, axis: int, lanes: int, ufunc: Any, reduce: Callable[[Any], Any]) -> Any:
    """Reduce an axis by its lanes; None: `reduce`, which reduces the axis of an array, did not.

    ufunc: of a lane's result and one element more.
    """
    shape = x.shape
    rows = shape[axis] // lanes
    whole = rows * lanes

    def part(start: int, stop: int) -> tuple[slice, ...]:
        return (*(slice(None),) * axis, slice(start, stop))

    body = x[part(0, whole)].reshape(*shape[:axis], rows, lanes, *shape[axis + 1 :])
    found = reduce(body)
    if found is None:
        return None
    if whole < shape[axis]:
        first = found[part(0, shape[axis] - whole)]
        ufunc(first, x[part(whole, shape[axis])], out=first)
    return reduce(found)
