"""The Debug execution space: the workunit's Python function, called for each index in turn."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from pyfuser.frontends.embedded.annotations import Acc
from pyfuser.trace.call import Space
from pyfuser.trace.future import plain


def run(pattern: str, space: Space, function: Callable[..., Any], kwargs: dict[str, Any]) -> Any:
    """Call `function` for every index of `space`; the accumulator's value for a reduction or scan.

    Python's semantics hold, not C++'s: integers do not overflow and `/` of integers is exact.
    """
    kwargs = {name: plain(value) for name, value in kwargs.items()}
    accumulator: Acc[Any] = Acc(0)
    extra = {"for": (), "reduce": (accumulator,), "scan": (accumulator, True)}[pattern]
    for index in itertools.product(*map(range, space.begin, space.end)):
        function(*index, *extra, **kwargs)
    return None if pattern == "for" else accumulator.val
