"""What the statements that `rewrite` adds to a program call.

The law: while code that was not rewritten runs, nothing is pending on memory that NumPy can reach.
Rewritten statements test `TRACER.raw` (how many pending arguments are such memory) and come here
only if there are some.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Any

from pyfuser.frontends.embedded.dispatch import parallel_for, watched_for
from pyfuser.run.checks import Check, Checked
from pyfuser.run.endings import end_quietly
from pyfuser.run.harmless import Moment
from pyfuser.run.lent import lent, lent_to
from pyfuser.run.values import ITERABLES, Targets, Touches, unpacks_quietly
from pyfuser.run.watched import INNER_METHOD, OUTER, twin
from pyfuser.runtime.session import SESSION, TRACER
from pyfuser.trace.reason import Reason


class Site:
    """A place where a program may have to wait for pending calls.

    checked: the check of whether what stands there touches arrays, if there can be one, and the
    local variables that it is given.
    """

    __slots__ = ("_check", "file", "line", "text", "variables")

    def __init__(self, file: str, line: int, text: str, checked: Checked | None = None) -> None:
        self.file = file
        self.line = line
        self.text = text
        self._check: Check | None = checked[0] if checked else None
        self.variables = checked[1] if checked else ()

    def why(self, values: tuple[Any, ...], variables: dict[str, Any]) -> str | None:
        """Why what stands there may touch arrays; None if it does not."""
        if self._check is None:
            return self.text
        try:
            self._check(Moment(values, variables))
        except Touches as touches:
            return str(touches)
        return None


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
_HELD = 5  # references to a local variable's value, and those on the way to `end_quietly`


def number_of(module: int, place: int) -> int:
    """The number of a module's site number `place`."""
    return module * PER_MODULE + place


SITES = Sites()


def before(number: int, *values: Any) -> None:
    """Run what is pending if what stands at a site may touch arrays."""
    site = SITES[number]
    why = site.why(values, sys._getframe(1).f_globals)
    if why is not None:
        flush(site, why)


def unbound(number: int, loaded: bool, *values: Any) -> None:
    """`before`, where one of the variables that may have no value has none.

    values: of those that surely have one, and of those that are loaded if `loaded`. The program
    meets its error itself, where it comes to it.
    """
    site, given = SITES[number], iter(values)
    everything = tuple([
        next(given) if each.certain or (loaded and each.loaded) else Moment.NOWHERE
        for each in site.variables
    ])  # fmt: skip
    why = site.why(everything, sys._getframe(1).f_globals)
    if why is None:
        return
    try:
        flush(site, why)
    except BaseException as error:
        error.__context__ = None  # our NameError
        raise


def ends(number: int, *value: Any) -> None:
    """A statement gives a variable another value; see `before`."""
    if end_quietly(value, _HELD):
        return
    try:
        flush(SITES[number], "the end of what a variable holds, which may run code")
    except BaseException as error:
        error.__context__ = None  # our NameError
        raise


def flush(site: Site, why: str) -> None:
    """Run what is pending, and let a report tell why."""
    if len(TRACER.calls) == 1:
        SESSION.budget.alone(TRACER.calls[0])
    TRACER.flush(Reason(why, site.file, site.line))


class _Old:
    """Whether the end of what the next statement's targets are may run foreign code."""

    __slots__ = ("noisy",)

    def __init__(self) -> None:
        self.noisy = False


_OLD = _Old()


def old(*values: Any) -> None:
    """A statement comes that gives its targets, which have these values, what it calls last."""
    _OLD.noisy = not end_quietly(values, _HELD)


def top(function: Any) -> Any:
    """What a statement calls last: in place of what knows how to leave calls pending, that."""
    if _OLD.noisy:
        _OLD.noisy = False
        return function
    return watched_for if function is parallel_for else twin(function)


def leave(number: int, mark: str) -> None:
    """A function returns or raises."""
    site = SITES[number]
    if mark == OUTER:
        flush(site, site.text)
        return
    frame = sys._getframe(1)
    held = frame.f_code.co_varnames[0] if mark == INNER_METHOD else ""
    if not end_quietly([v for name, v in frame.f_locals.items() if name != held], _HELD):
        flush(site, "the end of what a variable holds, which may run code")


def finish(number: int) -> None:
    """A block ends after which nothing may be pending."""
    site = SITES[number]
    flush(site, site.text)


_PASSIVE = ITERABLES | {set}
_PASSIVE_ITERATORS = frozenset(map(type, map(iter, ([], (), {}, "", range(0)))))
_second = itemgetter(1)


def iterate(number: int, targets: Targets, iterable: Iterable[Any]) -> Iterable[Any]:
    """What a loop iterates over, made to run what is pending before it is asked for an element.

    targets: of the loop; `...`: its body binds their names again. Iterators of others are wrapped
    by functions of C only, so that tracebacks stay as they are. They go, which may run code of a
    generator, after the last of what they are zipped with.
    """
    kind: Any = type(iterable)
    of_others = kind is enumerate or kind is zip
    passive = kind in _PASSIVE or (of_others and _passive_inside(iterable))
    if passive and targets is not ... and end_quietly((iterable,), _HELD):
        tuples = of_others or kind is type({}.items())
        if targets is None or (tuples and all(part is None for part in targets)):
            return iterable
        return map(partial(_unpacked, number, targets), iterable)
    ticks = iter(partial(_tick, number), None)
    last = iter(_Last(number).__len__, 1)  # gives 0 for ever
    return map(_second, zip(ticks, chain(iterable), last, strict=False))


def _unpacked(number: int, targets: Targets, value: Any) -> Any:
    """An element, which targets are given: run what is pending if that may run code."""
    if TRACER.raw and not unpacks_quietly(value, targets):
        flush(SITES[number], SITES[number].text)
    return value


class _Last(dict[str, int]):
    """Runs what is pending when the loop is left."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        _tick(self.number)


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
    "__pyfuser_lent__": lent,
    "__pyfuser_lent_to__": lent_to,
    "__pyfuser_ends__": ends,
    "__pyfuser_unbound__": unbound,
    "__pyfuser_unbound_error__": NameError,
    "__pyfuser_finish__": finish,
    "__pyfuser_old__": old,
    "__pyfuser_top__": top,
    "__pyfuser_leave__": leave,
    "__pyfuser_iterate__": iterate,
}
