"""`pyfuser.capture`: a function whose calls are recorded once and then run without its Python.

What may be replayed is found while the function runs for the first time with arguments of some
kinds. It runs on the caller's memory, and its calls are recorded as all others are, so whatever
comes in between (a read, an error, a signal) finds what it would have found. The function is given
stand-ins for Views and numbers (`frontends.embedded.watch`): a View of a stand-in's memory is an
argument, or a part of one, in each call; a number that is passed on to kernels may be another one
next time, one that is looked at is a part of the kind. Whatever reads or writes memory, or runs
what is recorded, ends the capture, and so does what else cannot be promised.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pyfuser.frontends import modes
from pyfuser.frontends.embedded.outside import Name, are_unchanged, change_outside, names_of
from pyfuser.frontends.embedded.returned import (
    VALUES,
    Place,
    Refused,
    built,
    new_views,
    original,
    returned,
)
from pyfuser.frontends.embedded.views import ViewType
from pyfuser.frontends.embedded.watch import Refusal, Watch
from pyfuser.runtime.captured import (
    FLOAT,
    OBJECT,
    VALUE,
    VIEW,
    Kinds,
    Template,
    compiled,
    temporary,
)
from pyfuser.runtime.session import TRACER
from pyfuser.support.counters import COUNTERS
from pyfuser.support.errors import ArgumentError, CaptureWarning, warn
from pyfuser.support.extension import HOT
from pyfuser.support.tracebacks import users_line
from pyfuser.trace import reason
from pyfuser.trace.future import plain
from pyfuser.trace.images import USE
from pyfuser.trace.memory import Buffer, Region

MAX_KINDS = 16
"""Kinds of arguments of one function that are known at once, ..."""

MAX_LAYOUTS = 16
"""... ways in which their memory lies that the extension knows, each with memory of its own, ..."""

MAX_MADE = 256
"""... and how often it is told of one: a function that is new each time gains nothing."""


class Step(NamedTuple):
    """What is known for arguments of one kind.

    numbers: places of numbers that are a part of the kind, with them. names: what it may read from
    outside, see `frontends.embedded.outside`. fresh: places of memory that
    is new each time, and how to make the Views of it that come back. wanted: the calls whose
    results come back. result: what comes back, with `Place` in it.
    """

    template: Template
    numbers: tuple[tuple[int, float], ...]
    names: tuple[Name, ...]
    fresh: tuple[tuple[int, Any], ...]
    wanted: tuple[int, ...]
    result: Any


class Repeated(NamedTuple):
    """How many steps `repeat` has done, and what the last one returned (None if there was none)."""

    steps: int
    result: Any


class _Alone:
    """What the extension does, where there is none."""

    def __init__(self) -> None:
        self.entries: list[Any] = []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.slow(*args, **kwargs)

    def slow(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def again(self, *args: Any, **kwargs: Any) -> Any:
        return NotImplemented

    def steps(self, *given: Any) -> Any:
        return NotImplemented


if TYPE_CHECKING or HOT is None:  # noqa: SIM108
    _Base = _Alone
else:
    _Base = HOT.Capture


class _Same:
    """An object in a key, equal to itself only; it lives as long as the key."""

    __slots__ = ("it",)

    def __init__(self, it: Any) -> None:
        self.it = it

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.it is other.it

    def __hash__(self) -> int:
        return id(self.it)


class Capture(_Base):
    """A function whose calls are run without its Python; see `pyfuser.capture` and docs/capture.md.

    It is called as the function is; `__wrapped__` is that.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self._function = function
        self._steps: dict[Any, list[Step]] = {}
        self._refused: set[Any] = set()  # kinds that are not replayed
        self._made = 0
        self._told = False
        functools.update_wrapper(self, function)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def repeat(
        self, n: int, *args: Any, swap: Iterable[Any] = (), until: Any = None, **kwargs: Any
    ) -> Repeated:
        """Do `n` steps, each with these arguments, and with no Python in between.

        swap: pairs of Views among the arguments, which exchange their memory after each step, one
        pair after the other: `[(u, new)]`. until: a number; the first step whose result is less is
        the last one.

        Raises ArgumentError for pairs that cannot be exchanged, for a result that is no number, and
        if `n` is no number of steps.
        """
        if not isinstance(n, (int, np.integer)) or isinstance(n, bool) or n < 0:
            raise ArgumentError(
                f"repeat: the number of steps comes first, as in repeat(10, ...), not {n!r}"
            )
        values = [plain(value) for value in (*args, *kwargs.values())]
        pairs = _pairs(swap)
        swaps = tuple(_place(view, values) for pair in pairs for view in pair)
        for one, other in pairs:
            if one._code != other._code or one._region[2:] != other._region[2:]:
                raise ArgumentError(
                    "repeat: Views that change places have one shape, data type and layout, not "
                    f"{_kind_of(one)} and {_kind_of(other)}"
                )
        limit = None if until is None else float(until)
        done, result, names = 0, None, tuple(kwargs)
        while done < n:
            found = self.steps(n - done, swaps, limit, tuple(values), names)
            if found is not NotImplemented:
                more, reached, result = found
                done += more
            else:
                result = self(*args, **kwargs)
                for one, other in pairs:
                    one.__dict__, other.__dict__ = other.__dict__, one.__dict__
                done, reached = done + 1, limit is not None and _number(result) < limit
            if reached:
                break
        return Repeated(done, result)

    def slow(self, *args: Any, **kwargs: Any) -> Any:
        """A call that the extension does not know."""
        if TRACER.watch is not None and TRACER.watch.captures:  # of a step that calls this one
            return self._function(*args, **kwargs)
        if not modes.traced(True):
            return self._function(*args, **kwargs)
        if modes.SWITCHES.careful or TRACER.gate is not None or USE.devices:
            return self._as_usual(args, kwargs)
        if TRACER.calls:
            TRACER.flush(reason.CAPTURED)
            found = self.again(*args, **kwargs)
            if found is not NotImplemented:
                return found
        values, names = [plain(value) for value in (*args, *kwargs.values())], tuple(kwargs)
        try:
            key, kinds = _kinds(values)
        except Refused as error:
            return self._refuse(None, Refusal(str(error), *users_line()), args, kwargs)
        if (key, names) in self._refused:
            return self._as_usual(args, kwargs)
        for step in self._steps.get((key, names), ()):
            if are_unchanged(step.names) and all(_same(values[n], x) for n, x in step.numbers):
                return self._replay(step, kinds, names, values)
        why = change_outside(self._function)
        if why is not None:
            return self._refuse((key, names), Refusal(why, *self._place), args, kwargs)
        objects = [value for value, kind in zip(values, kinds, strict=True) if kind[0] == OBJECT]
        outside = names_of(self._function, objects)
        return self._record((key, names), values, names, outside)

    def _refuse(
        self, key: Any, refusal: Refusal, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Any:
        self._refused.add(key)
        self._tell(refusal)
        return self._as_usual(args, kwargs)

    def _as_usual(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        with modes.fusing(reason.CAPTURED):
            return self._function(*args, **kwargs)

    def _tell(self, refusal: Refusal) -> None:
        if not self._told:
            self._told = True
            name = getattr(self._function, "__name__", "the function")
            text = f"pyfuser.capture: {name!r} runs as usual each time, as {refusal.why}"
            warn(text, refusal.file, refusal.line, CaptureWarning)

    # ------------------------------------------------------------------- the first time

    def _record(
        self, key: Any, values: list[Any], names: tuple[str, ...], outside: tuple[Name, ...]
    ) -> Any:
        with TRACER.lock:
            watch, launches = Watch(values), COUNTERS.launches
            positional = watch.arguments[: len(values) - len(names)]
            named = dict(zip(names, watch.arguments[len(positional) :], strict=True))
            step: Step | None = None
            try:
                watch.begin()
                with modes.recording():
                    result = self._function(*positional, **named)
                watch.end()
                if COUNTERS.launches != launches:
                    watch.refuse("a call runs at once", self._place)
                positional.clear()
                named.clear()
                step = self._step(watch, result, values, outside)
            except Refused as error:
                watch.refuse(str(error), self._place)
            finally:
                watch.end()
                TRACER.flush(reason.CAPTURED)
                watch.settle()
        if step is not None:
            self._keep(key, step)
        if watch.refusal is not None:
            self._refused.add(key)
            self._tell(watch.refusal)
        return original(result, watch)

    def _keep(self, key: Any, step: Step) -> None:
        known = self._steps.setdefault(key, [])
        known.insert(0, step)
        del known[MAX_KINDS:]
        while len(self._steps) > MAX_KINDS:
            del self._steps[next(iter(self._steps))]

    @property
    def _place(self) -> tuple[str, int]:
        code = getattr(self._function, "__code__", None)
        return users_line() if code is None else (code.co_filename, code.co_firstlineno)

    def _step(
        self, watch: Watch, result: Any, values: Sequence[Any], outside: tuple[Name, ...]
    ) -> Step:
        """What is kept of a function that has run. Raises Refused."""
        if watch.refusal is not None:
            raise Refused(watch.refusal.why)
        if list(map(id, TRACER.calls)) != list(map(id, watch.calls)):
            raise Refused("it drops calls")
        fresh: list[tuple[int, Any]] = []
        wanted: list[int] = []
        given = returned(result, watch, fresh, wanted)
        places = [place for place, _ in fresh]
        for place, buffer in enumerate(watch.made_buffers):
            if buffer.reachable and place not in places:
                raise Refused("it keeps a View that it made, and does not return it")
        sources = [source for line in watch.sources for source in line if type(source) is Region]
        reached = {id(region): region for region in sources}
        for buffer in {id(region.buffer): region.buffer for region in sources}.values():
            if not buffer.reachable or _is_own(buffer, sources):
                raise Refused("it makes an array that is no View")
        made = tuple(buffer.nbytes for buffer in watch.made_buffers)
        recorded = tuple(zip(watch.calls, watch.sources, strict=True))
        numbers = tuple((place, values[place]) for place in sorted(watch.read))
        template = Template(recorded, made, tuple(reached.values()))
        return Step(template.without_data(), numbers, outside, tuple(fresh), tuple(wanted), given)

    # ------------------------------------------------------------------- later

    def _replay(self, step: Step, kinds: Any, names: tuple[str, ...], values: list[Any]) -> Any:
        arguments = [v._region if isinstance(v, ViewType) else v for v in values]
        if HOT is not None and self._made < MAX_MADE:
            entry = self._compiled(step, kinds, names, arguments)
            if entry is not None:
                self._made += 1
                self.entries.append(entry)
                del self.entries[:-MAX_LAYOUTS]
        regions, views = new_views(step.fresh)
        new = dict(zip((place for place, _ in step.fresh), regions, strict=True))
        with TRACER.lock:
            sizes = enumerate(step.template.made)
            made = [new[n] if n in new else temporary(size) for n, size in sizes]
            calls = step.template.calls(arguments, made)
            for call in calls:
                TRACER.record(call)
            futures = [calls[place].result for place in step.wanted]
            calls.clear()
            TRACER.flush(reason.CAPTURED)
        return built(step.result, values, futures, views)

    def _compiled(
        self, step: Step, kinds: Any, names: tuple[str, ...], arguments: Sequence[Any]
    ) -> Any:
        wants = list(kinds)
        for place, number in step.numbers:
            wants[place] = VALUE, 0, number
        build: Any = functools.partial(built, step.result)
        if step.result is None or step.result == Place("future", 0):
            build = None
        fresh, make = [place for place, _ in step.fresh], functools.partial(new_views, step.fresh)
        return compiled(
            step.template,
            Kinds(tuple(wants), names),
            step.names,
            arguments,
            fresh,
            step.wanted,
            make,
            build,
        )


def _pairs(swap: Iterable[Any]) -> list[tuple[Any, Any]]:
    """The pairs of `swap=`. Raises ArgumentError for what is none."""
    found = list(swap)
    if any(type(pair) not in (tuple, list) or len(pair) != 2 for pair in found):
        raise ArgumentError("repeat: swap is a list of pairs of Views, as in swap=[(u, new)]")
    return [(one, other) for one, other in found]


def _kind_of(view: Any) -> str:
    return f"{list(view.shape)} of {view.dtype.__name__}"


def _place(view: Any, values: Sequence[Any]) -> int:
    """Which argument a View is. Raises ArgumentError if it is not one of them."""
    places = [n for n, value in enumerate(values) if value is view]
    if len(places) != 1 or not isinstance(view, ViewType):
        what = _kind_of(view) if isinstance(view, ViewType) else repr(view)
        raise ArgumentError(
            "repeat: swap=[(a, b)] exchanges Views that are arguments of the step, each once; "
            f"{what} is {'more than one' if len(places) > 1 else 'none'} of them"
        )
    return places[0]


def _number(result: Any) -> float:
    try:
        return float(result)
    except TypeError:
        raise ArgumentError(
            "pyfuser.capture: with until=, the step returns a number, and nothing else"
        ) from None


def _same(value: Any, number: float) -> bool:
    return (
        type(value) is type(number) and np.float64(value).tobytes() == np.float64(number).tobytes()
    )


def _is_own(buffer: Buffer, regions: Sequence[Region]) -> bool:
    """Whether only these regions have an array that is no View: the function made it."""
    if not buffer.wraps_array:
        return False
    return sys.getrefcount(_owner(buffer.root)) <= len(_holders(_owner(buffer.root), regions)) + 1


def _holders(owner: Any, regions: Sequence[Region]) -> set[int]:
    """What has an array among regions: their buffers, and arrays that are parts of it."""
    roots = ((region.buffer, region.buffer.root) for region in regions)
    return {
        id(buffer) if root is owner else id(root) for buffer, root in roots if _owner(root) is owner
    }


def _owner(array: Any) -> Any:
    """The array that has the memory of another one."""
    while isinstance(getattr(array, "base", None), np.ndarray):
        array = array.base
    return array


def _kinds(values: Sequence[Any]) -> tuple[Any, tuple[tuple[int, int, Any], ...]]:
    """The kinds of arguments, as a key and as `runtime.captured.Kinds`. Raises Refused."""
    key: list[Any] = []
    kinds: list[tuple[int, int, Any]] = []
    first: dict[int, int] = {}
    for place, value in enumerate(values):
        kind = type(value)
        if isinstance(value, ViewType):
            region = value._region
            number = first.setdefault(id(value), place)
            key.append((kind, value._code, number, value.shape, value.layout, *region[2:]))
            kinds.append((VIEW, value._code, number))
        elif isinstance(value, float):
            key.append(float)
            kinds.append((FLOAT, 0, None))
        elif kind in VALUES:
            key.append((kind, value))
            kinds.append((VALUE, 0, value))
        elif isinstance(value, (list, dict, set, tuple)):
            raise Refused(f"an argument is a {kind.__name__}: give what is in it as arguments")
        elif hasattr(value, "__array_interface__") or hasattr(value, "__pyfuser_memory__"):
            raise Refused("an argument is an array: give a View of it, made with array=")
        else:
            key.append(_Same(value))
            kinds.append((OBJECT, 0, value))
    return tuple(key), tuple(kinds)
