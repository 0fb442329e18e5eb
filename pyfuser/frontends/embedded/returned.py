"""What a captured function returns: what stands in it for arguments, new Views and Futures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pyfuser.frontends.embedded.views import View
from pyfuser.frontends.embedded.watch import Watch
from pyfuser.trace.future import Future

VALUES = frozenset({int, bool, str, bytes, complex, type(None)})


class Place(NamedTuple):
    """In a result: which argument, wanted result or new View stands there."""

    kind: str
    number: int


class Refused(Exception):
    """Why a function that has run is not replayed."""


def returned(result: Any, watch: Watch, fresh: list[tuple[int, Any]], wanted: list[int]) -> Any:
    """A result with places in it; what it needs is added to `fresh` and `wanted`.

    Raises Refused.
    """
    kind = type(result)
    if kind in (tuple, list):
        return kind(returned(part, watch, fresh, wanted) for part in result)
    if kind is dict:
        return {name: returned(part, watch, fresh, wanted) for name, part in result.items()}
    if watch.original(result) is not result:
        return Place("argument", next(n for n, a in enumerate(watch.arguments) if a is result))
    if kind is Future:
        for place, call in enumerate(watch.calls):
            if call.result is result:
                wanted.append(place)
                return Place("future", len(wanted) - 1)
    if kind is View:
        for place, buffer in enumerate(watch.made_buffers):
            if result._region.buffer is buffer and place not in [n for n, _ in fresh]:
                made = result.shape, result.dtype, result.space, result.layout, result.trait
                fresh.append((place, made))
                return Place("view", len(fresh) - 1)
    if kind in VALUES or kind is float or kind is Future or isinstance(result, np.generic):
        return result
    raise Refused(f"it returns a {kind.__name__} that is no argument and no View that it made")


def original(result: Any, watch: Watch) -> Any:
    """A result with arguments in place of what stood for them."""
    kind = type(result)
    if kind in (tuple, list):
        return kind(original(part, watch) for part in result)
    if kind is dict:
        return {name: original(part, watch) for name, part in result.items()}
    return watch.original(result)


def built(result: Any, values: Sequence[Any], futures: Sequence[Any], views: Any) -> Any:
    """A result with what stands at its places now."""
    kind = type(result)
    if kind is Place:
        of = {"argument": values, "future": futures, "view": views}
        return of[result.kind][result.number]
    if kind in (tuple, list):
        return kind(built(part, values, futures, views) for part in result)
    if kind is dict:
        return {name: built(part, values, futures, views) for name, part in result.items()}
    return result


def new_views(fresh: Sequence[tuple[int, Any]], overwritten: Sequence[bool] | None = None) -> Any:
    """New Views, and their regions first. overwritten: if it is given, memory is made now.

    Zero, unless a kernel overwrites all of it before it reads any.
    """
    views = []
    for place, (_, made) in enumerate(fresh):
        view = View.__new__(View)
        view._init_view(*made)
        views.append(view)
        if overwritten is not None:
            region = view._region
            box = (0,) * len(region.shape), region.shape
            region.allocate(box if overwritten[place] else None)
    return tuple(view._region for view in views), tuple(views)
