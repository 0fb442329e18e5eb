"""Whether an object that nobody holds any more goes without running foreign code.

When the last reference to an object goes, code may run: a finaliser, a callback of a weak
reference, or C that writes buffers back (numpy.nditer) or files (shelve). Finalisers of the
program's own watch for themselves; those of libraries must find what is pending done. So a
statement that takes a name from such an object, and the end of a function that holds one, run what
is pending first. In doubt an object is such a one.
"""

from __future__ import annotations

import _weakref
import contextlib
import functools
import gc
import io
import random
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    SimpleNamespace,
    WrapperDescriptorType,
)
from typing import Any
from weakref import ref

import numpy as np

from pyfuser.frontends.embedded.misc import Timer
from pyfuser.frontends.embedded.policies import MDRangePolicy, RangePolicy, TeamPolicy
from pyfuser.frontends.embedded.views import Subview, View
from pyfuser.run.attributes import MISSING, SCALARS, in_type, members, mro, object_dict
from pyfuser.run.known import OPTIONS
from pyfuser.run.watched import is_watched
from pyfuser.support.caches import Table
from pyfuser.trace.future import Future

#: Types whose objects hold nothing that could run code, and go without reading arrays.
_QUIET: frozenset[Any] = frozenset({
    *SCALARS, *OPTIONS, View, Subview, Future, Timer, RangePolicy, MDRangePolicy, TeamPolicy,
    range, slice, type, type(...), object, bytearray, CodeType, ModuleType, BuiltinFunctionType,
    np.random.Generator, np.random.RandomState, random.Random, io.StringIO, io.BytesIO, io.FileIO,
})  # fmt: skip
_MAX_OBJECTS = 64  # looked at for one answer
_MAX_TYPES = 1024  # whose answer is kept
_MARGIN = 1  # references that may be ours, or go as well


def end_quietly(values: Iterable[Any], held: int) -> bool:
    """Whether foreign code cannot run because names or places of some objects go.

    held: how many references to an object go with each time that it is among the values, those of
    the callers of this function included. What becomes of the objects is found as Python does it:
    one that loses its last reference goes, and with it its references to others.
    """
    counts: dict[int, int] = {}  # references that go, by id() of the object
    found: dict[int, Any] = {}
    for value in values:
        if type(value) not in _QUIET:
            found[id(value)] = value
            counts[id(value)] = counts.get(id(value), 0) + held
    value = None
    touched, gone = set(found), set[int]()
    while touched:
        key = touched.pop()
        if key in gone or sys.getrefcount(found[key]) - 2 > counts[key] + _MARGIN:
            continue
        gone.add(key)
        parts = _parts_of(found[key])
        if parts is None or len(found) > _MAX_OBJECTS:
            return False
        touched.update(_count(parts, counts, found))
        parts = None
    return True


def _count(parts: Iterable[Any], counts: dict[int, int], found: dict[int, Any]) -> set[int]:
    """Count what an object held that goes; returns the ids of what may go with it."""
    touched = set()
    for part in parts:
        if type(part) not in _QUIET:
            found[id(part)] = part
            counts[id(part)] = counts.get(id(part), 0) + 1
            touched.add(id(part))
    return touched


def _parts_of(value: Any) -> Iterable[Any] | None:
    """What an object holds; None if its end may run foreign code."""
    kind: Any = type(value)
    if not _callbacks_are_quiet(value):
        return None
    if kind in _PARTS:
        return _PARTS[kind](value)
    if issubclass(kind, np.dtype):
        return ()
    return _of_instance(value, kind) if _is_written_in_python(kind) else None


def _callbacks_are_quiet(value: Any) -> bool:
    """Whether weak references to an object call nothing foreign when it goes."""
    if not _weakref.getweakrefcount(value):
        return True
    callbacks = [_callback(reference) for reference in _weakref.getweakrefs(value)]
    return all(
        callback is None
        or is_watched(callback)
        or (type(callback) is FunctionType and str(callback.__module__).startswith("pyfuser."))
        for callback in callbacks
    )


def _callback(reference: Any) -> Any:
    return vars(ref)["__callback__"].__get__(reference)


_C_FUNCTIONS = (MethodDescriptorType, WrapperDescriptorType, BuiltinFunctionType)
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: made while the program ran
_BASES: frozenset[type] = frozenset({object, tuple, list, dict})
#: By id() of a class: the class, kept for its id, and the answer.
_WRITTEN_IN_PYTHON: Table[int, tuple[type, bool]] = Table("classes written in Python", _MAX_TYPES)


def _is_written_in_python(kind: type) -> bool:
    """Whether objects of a class go as those of Python's classes do, not by C of its own."""
    found = _WRITTEN_IN_PYTHON.get(id(kind))
    if found is None:
        answer = all(base in _BASES or _has_no_c(base) for base in mro(kind))
        found = _WRITTEN_IN_PYTHON.keep(id(kind), (kind, answer))
    return found[1]


def _has_no_c(kind: type) -> bool:
    flags: int = vars(type)["__flags__"].__get__(kind)
    own = members(kind).values()
    return bool(flags & _HEAP_TYPE) and not any(type(part) in _C_FUNCTIONS for part in own)


def _of_instance(value: Any, kind: type) -> list[Any] | None:
    """What an object of a class that is written in Python holds; None if its end runs code."""
    finaliser = in_type(kind, "__del__")
    if finaliser is not MISSING and not is_watched(finaliser):
        return None
    held = list((object_dict(value, kind) or {}).values())
    for base in mro(kind):
        if base is tuple or base is list:
            held += base.__iter__(value)
        elif base is dict:
            held += [part for pair in dict.items(value) for part in pair]
        for member in members(base).values():
            if type(member) is MemberDescriptorType:
                with contextlib.suppress(AttributeError):
                    held.append(member.__get__(value))
    return held


def _of_array(value: Any) -> Iterable[Any] | None:
    if value.dtype.hasobject:
        return None
    return () if value.base is None else (value.base,)


def _of_function(value: Any) -> Iterator[Any]:
    yield from value.__defaults__ or ()
    yield from (value.__kwdefaults__ or {}).values()
    for cell in value.__closure__ or ():
        with contextlib.suppress(ValueError):  # empty
            yield cell.cell_contents


def _of_file(value: Any) -> Iterable[Any] | None:
    try:
        return (value.buffer if type(value) is io.TextIOWrapper else value.raw,)
    except ValueError:  # detached
        return None


_EMPTY: tuple[Any, ...] = ([], (), set(), {}, {}.items(), {}.keys(), {}.values(), range(0), "")
#: Views of dictionaries and iterators, which hold what they go over.
_OVER: tuple[type, ...] = (
    *map(type, _EMPTY[4:7]),
    *(type(iter(e)) for e in _EMPTY),
    enumerate,
    zip,
)

#: What objects of some types hold; None: something that does not end quietly.
_PARTS: dict[type, Callable[[Any], Iterable[Any] | None]] = {
    **dict.fromkeys((tuple, list, set, frozenset, deque), iter),
    **dict.fromkeys(_OVER, gc.get_referents),
    dict: lambda value: [part for pair in value.items() for part in pair],
    np.ndarray: _of_array,
    FunctionType: _of_function,
    MethodType: lambda value: (value.__self__, value.__func__),
    functools.partial: lambda value: (value.func, value.args, value.keywords),
    SimpleNamespace: lambda value: vars(value).values(),
    **dict.fromkeys((io.TextIOWrapper, io.BufferedReader, io.BufferedWriter), _of_file),
}
