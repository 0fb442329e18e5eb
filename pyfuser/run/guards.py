"""What the statements that `rewrite` adds to a program call.

The law: while code that was not rewritten runs, nothing is pending on memory that NumPy can reach.
Rewritten statements test `TRACER.raw` (how many pending arguments are such memory) and come here
only if there are some.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import chain
from operator import itemgetter
from types import FunctionType, MethodType
from typing import Any

from pyfuser import driver
from pyfuser.frontends.embedded.dispatch import parallel_for, watched_for
from pyfuser.run.harmless import Names, Touches
from pyfuser.run.watched import OUTER, TWINS, twin
from pyfuser.trace.asked import REASON

TRACER = driver.TRACER


@dataclass(frozen=True)
class Site:
    """A place where a program may have to wait for pending calls.

    check: raises Touches if what stands there may touch arrays; None: it may. names: the local
    variables whose values the check is given, all others being global.
    """

    file: str
    line: int
    text: str
    check: Callable[[Names], None] | None = None
    names: tuple[str, ...] = ()


class Sites:
    """The sites of all modules, by number.

    Code of a module that was kept on disk comes without its sites: they are made when the first
    of them is asked for, which is where calls on arrays are pending.
    """

    def __init__(self) -> None:
        self._known: dict[int, list[Site]] = {}  # by module
        self._makers: dict[int, Callable[[], list[Site]]] = {}

    def add(self, module: int, make: Callable[[], list[Site]]) -> None:
        """`make` gives the sites that `number_of` gave numbers of a module to, in that order."""
        self._makers[module] = make

    def __getitem__(self, number: int) -> Site:
        module, place = divmod(number, PER_MODULE)
        sites = self._known.get(module)
        if sites is None:
            try:
                sites = self._known[module] = self._makers[module]()
            except (RecursionError, MemoryError):  # for now nothing is known of what stands here
                return Site("", 0, "a statement")
        return sites[place]


PER_MODULE = 1 << 32


def number_of(module: int, place: int) -> int:
    """The number of a module's site number `place`."""
    return module * PER_MODULE + place


SITES = Sites()


def before(number: int, *values: Any) -> None:
    """Run what is pending if what stands at a site may touch arrays."""
    site = SITES[number]
    why = site.text
    if site.check is not None:
        known = dict(zip(site.names, values, strict=True))
        try:
            site.check(partial(_name, known, sys._getframe(1).f_globals))
        except Touches as touches:
            why = str(touches)
        else:
            return
    flush(site, why)


def flush(site: Site, why: str) -> None:
    """Run what is pending, and let a report tell why."""
    REASON.now = site.file, site.line, why
    try:
        TRACER.flush()
    finally:
        REASON.now = None


_NOWHERE = object()


def _name(known: dict[str, Any], variables: dict[str, Any], name: str) -> Any:
    if name in known:
        return known[name]
    found = variables.get(name, _NOWHERE)
    if found is _NOWHERE:
        found = getattr(builtins, name, _NOWHERE)
    if found is _NOWHERE:
        raise Touches(name)
    return found


def top(function: Any) -> Any:
    """What a statement calls last: in place of what knows how to leave calls pending, that."""
    kind = type(function)
    if kind is FunctionType:
        found = TWINS.get(id(function.__code__))
        if found is None:
            return watched_for if function is parallel_for else function
        return function if found[0] is found[1] else twin(function)
    if kind is MethodType and type(function.__func__) is FunctionType:
        return MethodType(twin(function.__func__), function.__self__)
    return function


def leave(number: int, mark: str) -> None:
    """A function returns or raises."""
    if mark == OUTER:
        flush(SITES[number], SITES[number].text)


_PASSIVE = frozenset(
    map(type, ([], (), {}, set(), range(0), "", {}.items(), {}.keys(), {}.values()))
)  # giving their elements runs no code and reads no array
_PASSIVE_ITERATORS = frozenset(type(iter(kind())) for kind in (list, tuple, dict, str)) | {
    type(iter(range(0)))
}
_second = itemgetter(1)


def iterate(number: int, unpacks: bool, iterable: Iterable[Any]) -> Iterable[Any]:
    """What a loop iterates over, made to run what is pending before it is asked for an element.

    unpacks: the loop's target takes elements apart. Iterators of others are wrapped by functions
    of C only, so that tracebacks stay as they are.
    """
    kind: Any = type(iterable)
    if kind in _PASSIVE and (not unpacks or kind is type({}.items())):
        return iterable
    if (kind is enumerate or kind is zip) and _passive_inside(iterable):
        return iterable
    ticks = iter(partial(_tick, number), None)
    return map(_second, zip(ticks, chain(iterable), strict=False))


def _passive_inside(iterable: Any) -> bool:
    try:
        parts = iterable.__reduce__()[1]
    except (TypeError, AttributeError, IndexError):
        return False
    inner = parts[:1] if type(iterable) is enumerate else parts
    return all(type(part) in _PASSIVE_ITERATORS for part in inner)


def _tick(number: int) -> int:
    if TRACER.raw:
        flush(SITES[number], SITES[number].text)
    return 0


def install() -> None:
    """Put the names that rewritten code uses where every module finds them."""
    vars(builtins).update(NAMES)


#: Names in rewritten code.
NAMES = {
    "__pyfuser_tracer__": TRACER,
    "__pyfuser_before__": before,
    "__pyfuser_top__": top,
    "__pyfuser_leave__": leave,
    "__pyfuser_iterate__": iterate,
}
