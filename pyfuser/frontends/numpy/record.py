"""Recording an elementwise operation; or finding that NumPy is to compute it at once.

The law: what is recorded gives, whenever it runs, what NumPy would give now. So an operation is
recorded only on memory that nobody else reaches, its types, shapes and errors are settled here, and
an operand that overlaps the result other than element for element is copied first.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import numpy as np

from pyfuser.frontends.numpy import layout as layouts
from pyfuser.frontends.numpy.layout import Form, Layout, layout_of_call
from pyfuser.frontends.numpy.memory import host, is_away, unmade, usable
from pyfuser.frontends.numpy.operations import COPY, Operation, is_exact
from pyfuser.frontends.numpy.recorded import Recorded
from pyfuser.frontends.numpy.resolution import Resolution, number, resolve
from pyfuser.frontends.numpy.spaces import SPACE
from pyfuser.frontends.numpy.switches import LIMITS, errors, is_loud, recording
from pyfuser.frontends.numpy.workunits import Recipe, recipe_of
from pyfuser.frontends.numpy.wrap import KIND, of_region
from pyfuser.ir.dtypes import DType
from pyfuser.runtime.first_tier import is_lost
from pyfuser.runtime.session import TRACER
from pyfuser.support.caches import Table
from pyfuser.support.extension import NUMPY
from pyfuser.support.records import dataclass
from pyfuser.trace.call import Argument
from pyfuser.trace.memory import Allocation, Handle, Region, are_strided
from pyfuser.trace.pool import most_memory
from pyfuser.trace.reason import Reason

_OURS = "pyfuser.frontends.numpy"

LOOP = Reason("a loop begins again")

LOOP_CALLS = 16
"""Calls after which a trace ends where a loop begins again, as traces of loops are alike, and
planning a long one takes long. Shorter ones go on for several trips."""

MOST_CALLS = 48
"""Calls after which a trace ends where one of them comes again, wherever the loop begins."""

TRIPS_STRIDED = 4
"""Trips of a trace, if not too many calls, of operands whose elements are a cache line or
more apart, as those of columns are: then lines are fetched for several elements."""


def record(
    operation: Operation,
    inputs: tuple[Any, ...],
    out: Any = None,
    mask: Any = None,
    signature: Any = None,
    casting: str = "same_kind",
    due: bool = False,
) -> Any:
    """Record an operation; its result, or None if NumPy is to compute it.

    out: the array that takes the result. mask: an array of bools; only with `out`. signature: of
    NumPy's loop, where it is given. due: `is_due` and `end_trip` were called.
    """
    state = errors()
    if not recording() or is_loud(state):
        return None
    with TRACER.lock:
        key: list[Any] = [operation, signature, casting, mask is not None, SPACE.execution]
        values: list[Any] = []
        operands = inputs if mask is None else (*inputs, mask)
        pending = _read(operands, key, values)
        if pending is None:
            return None
        target: Region | None = None
        if out is not None:
            target = usable(out)
            if target is None or not out._writeable:
                return None
            pending = pending or is_away(target.buffer)
            key.append(target[2:])
        whole = tuple(key)
        entry = _ENTRIES.get(whole, _UNKNOWN)
        if entry is _UNKNOWN:
            entry = _ENTRIES.keep(whole, _entry(operation, values, key, target, signature, casting))
        if entry is None or (LIMITS.exact and not is_exact(operation, entry.resolution.loops)):
            return None
        least = 1 if due else LIMITS.first(operation.costly)
        size = entry.layout.size
        if (size < least and not joins(size, pending)) or not _numbers(entry, values):
            return None
        frame = program_frame(sys._getframe(2))
        if size >= least:
            LIMITS.small = 0
            site = frame.f_code, ~frame.f_lasti, entry.layout.result.shape
            if not (pending or SPACE.device) and is_lost(site):
                return None
        if not due:
            end_trip(frame, entry.strided)
        if target is None:
            return _fresh(entry, values, frame, state)
        _into(entry, values, target, frame, state)
        return out


def joins(size: int, pending: bool) -> bool:
    """Whether a call on less than is recorded the first time is, as something is pending."""
    return pending and (SPACE.device or size >= LIMITS.most or may_follow())


SMALL_CALLS = 8
"""Calls on few elements that are recorded one after the other, as something is pending on their
operands. Recording one takes as long as ten times NumPy's, so then what is pending runs instead."""


def may_follow() -> bool:
    """Whether another call on few elements is recorded, as something is pending."""
    calls = TRACER.calls
    first = calls[0].position if calls else 0
    if LIMITS.after != first:
        LIMITS.small, LIMITS.after = 0, first
    LIMITS.small += 1
    return LIMITS.small <= SMALL_CALLS


def is_due(size: int, pending: bool) -> bool:
    """Whether a call on so many elements is recorded, which the extension knows nothing of.

    Called by what an array's method or function of the program's calls.
    """
    if pending or size >= LIMITS.first(False):
        return True
    if size < LIMITS.most or NUMPY is None:
        return False
    return bool(NUMPY.ripe(program_frame(sys._getframe(2)).f_code, 16 * size))


def _read(operands: tuple[Any, ...], key: list[Any], values: list[Any]) -> bool | None:
    """Put what decides how an operation is recorded into `key`, and its operands into `values`.

    Whether anything is pending on one; None: there is one that is not recorded.
    """
    pending = False
    for x in operands:
        kind = type(x)
        if kind is KIND.array:
            region = x._region
            if region is None or region.buffer.external:
                region = usable(x)
                if region is None:
                    return None
            if is_away(region.buffer):
                pending = True
            if region.shape:
                key.append(region[2:])
                values.append(region)
            else:
                value = host(x)[()]
                key.append(value.dtype)
                values.append(value)
        elif kind is float or kind is int or kind is complex:
            key.append(kind)
            values.append(x)
        elif kind is bool:
            key.append(_BOOL)
            values.append(x)
        elif isinstance(x, np.generic):
            key.append(x.dtype)
            values.append(x)
        else:
            return None
    return pending


_BOOL = np.dtype(np.bool_)


def _numbers(entry: Entry, values: list[Any]) -> bool:
    """Give numbers among the operands their types; False: NumPy is to see to one."""
    for n, dtype in entry.numbers:
        value = values[n] = number(entry.operation, n, values[n], dtype)
        if value is None:
            return False
    return True


@dataclass(frozen=True, eq=False)
class Entry:
    """How an operation on operands of certain types and places is recorded.

    numbers: the places of operands that are numbers, and the types that they get. strided:
    whether an array's elements are a cache line or more apart.
    """

    operation: Operation
    resolution: Resolution
    layout: Layout
    recipe: Recipe
    numbers: tuple[tuple[int, DType], ...]
    strided: bool


_ENTRIES: Table[Any, Entry | None] = Table("recorded NumPy operations by operands", 4096)
_UNKNOWN: Any = object()


def keep_rows(shape: tuple[int, ...]) -> None:
    """Have calls on arrays of these extents run over as many axes (see `layout.ROWS`)."""
    if layouts.keep_rows(shape):
        _ENTRIES.clear()
        if NUMPY is not None:
            NUMPY.forget_layouts()


_FIRST = 5  # entries of a key before those of operands


def _entry(
    operation: Operation,
    values: list[Any],
    key: list[Any],
    target: Region | None,
    signature: Any,
    casting: str,
) -> Entry | None:
    """None: NumPy is to compute it."""
    masked = key[3]
    kinds = [
        value.dtype.numpy if type(value) is Region else kind
        for value, kind in zip(values, key[_FIRST:], strict=False)
    ]
    given = tuple(kinds[:-1] if masked else kinds)
    result = None if target is None else target.dtype
    resolution = resolve(operation, given, result, signature, casting)
    if resolution is None:
        return None
    places = tuple((value.shape, value.strides) for value in values if type(value) is Region)
    out = None if target is None else (target.shape, target.strides)
    if not places and out is None:
        return None
    layout = layout_of_call(places, out, resolution.result.size, operation is COPY)
    if layout is None:
        return None
    if out is None and layout.size * resolution.result.size > most_memory():
        return None  # NumPy's to make, or to refuse, at the call
    types = (*resolution.loops[: len(given)], DType.BOOL)
    numbers = tuple(
        (n, dtype)
        for n, (value, dtype) in enumerate(zip(values, types, strict=False))
        if type(value) is not Region
    )
    divisor = operation.divides and types[1].is_integer and type(values[1]) is Region
    if divisor:
        return None
    recipe = _recipe(operation, resolution, layout, values, masked, out is None)
    arrays = places if out is None else (*places, out)
    strided = any(are_strided(*placed) for placed in arrays)
    return Entry(operation, resolution, layout, recipe, numbers, strided)


def _recipe(
    operation: Operation,
    resolution: Resolution,
    layout: Layout,
    values: list[Any],
    masked: bool,
    fresh: bool = False,
) -> Recipe:
    kinds = tuple(value.dtype if type(value) is Region else None for value in values)
    return recipe_of(operation, resolution.loops, kinds, resolution.result, layout, masked, fresh)


def _fresh(entry: Entry, values: list[Any], frame: FrameType, state: Any) -> Any:
    """Record the operation; its result is a new array."""
    layout, result = entry.layout, entry.resolution.result
    target, owner = unmade(layout.shape, layout.strides, result)
    _append(entry.recipe, layout, target, values, frame, state)
    return of_region(target, owner)


def _into(entry: Entry, values: list[Any], target: Region, frame: FrameType, state: Any) -> None:
    """Record the operation, which writes an array that there is."""
    layout, recipe = entry.layout, entry.recipe
    if any(type(value) is Region and value.buffer is target.buffer for value in values):
        apart = _apart(values, recipe, target, layout, frame, state)
        if apart is not None:
            values = apart
            layout = _layout_of(values, target)
            recipe = _recipe(entry.operation, entry.resolution, layout, values, recipe.masked)
    _append(recipe, layout, target, values, frame, state)


def _append(
    recipe: Recipe,
    layout: Layout,
    target: Region,
    values: list[Any],
    frame: FrameType,
    state: Any,
) -> None:
    arguments: list[Argument] = [formed(target, layout.result)]
    for value, form in zip(values, recipe.forms, strict=True):
        arguments.append(value if form is None else formed(value, form))
    call = Recorded(
        "for", recipe.space, recipe.workunit, tuple(arguments), None, None, frame.f_code,
        ~frame.f_lasti,
    )  # fmt: skip
    call.recipe = recipe
    call.ripe = False
    call.errors = state
    call.caller = caller_of(frame)
    TRACER.record(call)


def formed(region: Region, form: Form) -> Region:
    """A region with the axes that a kernel has for it."""
    strides = form.strides if form.axes else (region.dtype.size,)
    if region.shape == form.shape and region.strides == strides:
        return region
    return Region(region.buffer, region.offset, strides, form.shape, region.dtype)


def end_trip(frame: FrameType, strided: bool = False) -> None:
    """Before a call is recorded: run the trace if a loop begins again.

    That is where an instruction comes again, called from the same one, after an instruction that
    stands behind it or in another function. strided: see `Entry`.
    """
    calls = TRACER.calls
    if len(calls) >= LOOP_CALLS:
        code, at = frame.f_code, ~frame.f_lasti
        last = calls[-1]
        if len(calls) < MOST_CALLS and last.code is code and last.at > at:  # both are negative
            return
        caller = caller_of(frame)
        trips = sum(
            call.at == at and call.code is code and getattr(call, "caller", caller) == caller
            for call in calls
        )
        if strided and 0 < trips < TRIPS_STRIDED:  # is there room for all of another trip?
            trips = len(calls) + len(calls) // trips > MOST_CALLS
        if trips:
            TRACER.flush(LOOP)


def caller_of(frame: FrameType) -> tuple[int, int]:
    """Where the function of a frame was called."""
    back = frame.f_back
    return (0, 0) if back is None else (id(back.f_code), back.f_lasti)


def program_frame(frame: FrameType) -> FrameType:
    """The innermost frame of the user's program."""
    ours = _MODULES or _our_modules()
    while id(frame.f_globals) in ours and frame.f_back is not None:
        frame = frame.f_back
    return frame


_MODULES: frozenset[int] = frozenset()
"""The id() of the names of each of our modules, once all are imported."""


def _our_modules() -> frozenset[int]:
    global _MODULES
    names = [name for name in sys.modules if name.startswith(_OURS)]
    _MODULES = frozenset(id(sys.modules[name].__dict__) for name in names)
    return _MODULES


# --------------------------------------------------------------------------- overlap


def _apart(
    values: list[Any],
    recipe: Recipe,
    target: Region,
    layout: Layout,
    frame: FrameType,
    state: dict[str, str] | None,
) -> list[Any] | None:
    """The operands, those copied that overlap the result other than element for element.

    None: there are none.
    """
    result = formed(target, layout.result)
    apart, found = [], False
    for value, form in zip(values, recipe.forms, strict=True):
        if form is not None and not independent(formed(value, form), form, result, layout):
            value, found = _copied(value, frame, state), True
        apart.append(value)
    return apart if found else None


def _layout_of(values: list[Any], target: Region) -> Layout:
    inputs = tuple((v.shape, v.strides) for v in values if type(v) is Region)
    layout = layout_of_call(inputs, (target.shape, target.strides), target.dtype.size)
    assert layout is not None
    return layout


# law: False
def independent(operand: Region, form: Form, result: Region, layout: Layout) -> bool:
    """Whether each iteration writes only what no other one reads of an operand."""
    if operand.buffer is not result.buffer:
        return True
    if form.axes == layout.result.axes and operand[1:4] == result[1:4]:
        return True
    low, high = operand.bounds()
    least, most = result.bounds()
    if high <= least or most <= low:
        return True
    return _interleaved(operand, result)


# law: False
def _interleaved(one: Region, other: Region) -> bool:
    """Whether no element shares a byte with one of the other, as all lie on steps apart."""
    step = 0
    for stride in (*one.strides, *other.strides):
        step = np.gcd(step, abs(stride))
    if not step:
        return False
    apart = (other.offset - one.offset) % int(step)
    return bool(apart >= one.dtype.size and int(step) - apart >= other.dtype.size)


def _copied(region: Region, frame: FrameType, state: dict[str, str] | None) -> Region:
    """A copy of an operand, recorded; of the same strides if it has no gaps, else row-major."""
    placed = region.shape, region.strides
    layout = layout_of_call((placed,), None, region.dtype.size, True)
    assert layout is not None
    buffer = Allocation(layout.size * region.dtype.size, Handle())  # a temporary from the start
    copy = Region(buffer, 0, layout.strides, layout.shape, region.dtype)
    kinds = (region.dtype,)
    recipe = recipe_of(COPY, (region.dtype, region.dtype), kinds, region.dtype, layout, False)
    _append(recipe, layout, copy, [region], frame, state)
    return copy
