"""Functions that are not the program's own, and what calls of them touch."""

from __future__ import annotations

import builtins
import io
import math
import sys
import time
from collections.abc import Callable
from types import MethodType
from typing import Any

import numpy as np

from pyfuser.frontends.embedded import dispatch
from pyfuser.frontends.embedded.data_types import DataType
from pyfuser.frontends.embedded.misc import Timer
from pyfuser.frontends.embedded.policies import Iterate, MDRangePolicy, RangePolicy, TeamPolicy
from pyfuser.frontends.embedded.spaces import (
    ExecutionSpace,
    ExecutionSpaceInstance,
    Layout,
    MemorySpace,
    Trait,
)
from pyfuser.frontends.embedded.views import Subview, View, ViewType
from pyfuser.run.attributes import is_builtin_method
from pyfuser.run.values import (
    ITERABLES,
    OPAQUE,
    PASSIVE,
    SCALAR,
    SEQUENCES,
    Pairs,
    Part,
    Touches,
    is_array,
    is_scalar,
)

#: What a call gives, from the values of its arguments; raises Touches if it may touch arrays.
Rule = Callable[[list[Any]], Any]

_LAUNCHES = (dispatch.parallel_for, dispatch.parallel_reduce, dispatch.parallel_scan)
_INSIDE: frozenset[type] = ITERABLES - {type({}.keys())}  # of `enumerate` and `zip`
_CONTAINERS: frozenset[type] = SEQUENCES | {np.ndarray, View, Subview}
OPTIONS: frozenset[type] = frozenset(
    {ExecutionSpace, ExecutionSpaceInstance, MemorySpace, Layout, Trait, DataType, Iterate}
)


def is_launch(function: Any) -> bool:
    """Whether it is one of PyKokkos' patterns."""
    return any(function is launch for launch in _LAUNCHES)


def call(function: Any, given: list[Any]) -> Any:
    """What a call of a function gives; raises Touches unless it is known and harmless."""
    found = _KNOWN.get(id(function))
    if found is not None:
        return found[1](given)
    if type(function) is MethodType:
        found = _METHODS.get(id(function.__func__))
        if found is not None:
            return found[1](given)
    if is_builtin_method(function):
        return _builtin_method(function, given)
    raise Touches("")


def changes(function: Any) -> bool:
    """Whether a call that is known may change what is in a list."""
    return is_builtin_method(function) and type(function.__self__) is list


def _require(condition: bool) -> None:
    if not condition:
        raise Touches("")


def _numbers(given: list[Any]) -> None:
    """Raises Touches unless they are numbers, tuples or lists of them, types or options."""
    for value in given:
        parts = value if type(value) in (tuple, list) else (value,)
        for part in parts:
            kind = type(part)
            option = kind is type or kind in OPTIONS or issubclass(kind, np.dtype)
            if not (option or is_scalar(part)):
                raise Touches("")


def _gives_number(given: list[Any]) -> Any:
    _numbers(given)
    return SCALAR


def _gives_anything(given: list[Any]) -> Any:
    _numbers(given)
    return OPAQUE


def _gives_array(given: list[Any]) -> Any:
    _numbers(given)
    return Part(None)


def _like(given: list[Any]) -> Any:
    """`zeros_like` and the like read the shape of an array, not its elements."""
    _require(bool(given) and is_array(given[0]))
    _numbers(given[1:])
    return Part(given[0].ndim)


def _range(given: list[Any]) -> Any:
    _numbers(given)
    return PASSIVE


def _over(given: list[Any]) -> Any:
    """`enumerate` and `zip` hold what their iterators give."""
    for value in given:
        _require(type(value) in _INSIDE or is_scalar(value))
    return Pairs(given)


def _counted(given: list[Any]) -> Any:
    _over(given)
    return Pairs([(), *given[:1]])  # the counter needs no look


def _length(given: list[Any]) -> Any:
    _require(len(given) == 1 and (type(given[0]) in _CONTAINERS or type(given[0]) is Part))
    return len(given[0]) if type(given[0]) in SEQUENCES else SCALAR


def _clock(given: list[Any]) -> Any:
    _require(not given)
    return SCALAR


def _of_view(given: list[Any]) -> Any:
    """Methods of Views run what they need."""
    _require(all(map(is_scalar, given)))
    return SCALAR


def _print(given: list[Any]) -> Any:
    _require(all(map(is_scalar, given)) and _is_terminal(sys.stdout))
    return SCALAR


def _is_terminal(out: Any) -> bool:
    """Whether to write to it runs no code but that of `io`."""
    if type(out) is not io.TextIOWrapper:
        return type(out) is io.StringIO
    buffer: Any = out.buffer
    raw = buffer.raw if type(buffer) is io.BufferedWriter else buffer  # `python -u` has no buffer
    return type(raw) is io.FileIO


def _builtin_method(function: Any, given: list[Any]) -> Any:
    owner, name = function.__self__, function.__name__
    if type(owner) is not np.ndarray:
        if type(owner) is dict and name != "copy":
            return function(*given)
        return OPAQUE if name == "copy" else SCALAR
    sizes = [part for value in given for part in (value if type(value) is tuple else (value,))]
    _require(all(type(size) is int or size is SCALAR for size in sizes))
    _require(name not in ("reshape", "ravel") or owner.flags.c_contiguous)  # else they copy
    return Part(None)


def _table(*rows: tuple[list[Any], Rule]) -> dict[int, tuple[Any, Rule]]:
    """Functions by id(), each kept alive: to hash a foreign object might run its code."""
    return {id(function): (function, rule) for functions, rule in rows for function in functions}


_KNOWN = _table(
    ([int, float, bool, complex, abs, round, min, max, pow, divmod], _gives_number),
    ([np.float64, np.float32, np.int32, np.int64], _gives_number),
    ([function for function in vars(math).values() if callable(function)], _gives_number),
    ([slice, RangePolicy, MDRangePolicy, TeamPolicy, View], _gives_anything),
    ([np.empty, np.zeros, np.ones, np.arange, np.linspace, np.full], _gives_array),
    ([np.empty_like, np.zeros_like, np.ones_like, np.full_like], _like),
    ([range], _range),
    ([zip], _over),
    ([enumerate], _counted),
    ([len], _length),
    ([builtins.print], _print),
    (
        [
            Timer, time.time, time.perf_counter, time.monotonic, time.process_time, time.time_ns,
            time.perf_counter_ns, time.monotonic_ns, time.process_time_ns,
        ],
        _clock,
    ),
)  # fmt: skip
_METHODS = _table(
    ([Timer.seconds, Timer.reset], _clock),
    ([ViewType.extent, ViewType.rank, ViewType.fill, View.resize], _of_view),
)
