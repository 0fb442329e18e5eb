"""The Debug execution space: the workunit's Python function, called for each index in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pyfuser.frontends.embedded.annotations import Acc
from pyfuser.frontends.embedded.foreign import has_memory, shared_array
from pyfuser.frontends.embedded.policies import TeamMember
from pyfuser.trace.call import Space
from pyfuser.trace.future import plain


def run(
    pattern: str,
    space: Space,
    function: Callable[..., Any],
    kwargs: dict[str, Any],
    teams: bool = False,
    view: Any = None,
) -> Any:
    """Call `function` for every index of `space`; the accumulator's value for a reduction or scan.

    Python's semantics hold, not C++'s: integers do not overflow and `/` of integers is exact.
    view: where a lambda's values are stored. teams: the index is the league's rank, and the
    function gets the one member of each team.
    """
    kwargs = {name: _indexable(name, plain(value)) for name, value in kwargs.items()}
    accumulator: Acc[Any] = Acc(0)
    is_lambda = getattr(function, "__name__", "") == "<lambda>"
    extra = {"for": (), "reduce": (accumulator,), "scan": (accumulator, True)}[pattern]
    for index in _indices(space.begin, space.end):
        first: tuple[Any, ...] = (TeamMember(index[0], 0),) if teams else index
        value = function(*first, *extra, **kwargs)
        if is_lambda and pattern == "reduce":
            accumulator.val = value
        elif is_lambda and view is not None:
            view[index if len(index) > 1 else index[0]] = value
    return None if pattern == "for" else accumulator.val


def _indices(begin: tuple[int, ...], end: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Every index of a space, none of them made before it is its turn, as a space may be huge."""
    if not begin:
        yield ()
        return
    for first in range(begin[0], end[0]):
        for rest in _indices(begin[1:], end[1:]):
            yield first, *rest


def _indexable(name: str, value: Any) -> Any:
    """An argument; if it is another library's array, NumPy's over its memory."""
    return shared_array(f"argument {name!r}", value) if has_memory(value) else value
