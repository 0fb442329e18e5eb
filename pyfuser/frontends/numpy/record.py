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

from pyfuser.frontends.numpy import floating
from pyfuser.frontends.numpy.layout import Form, Layout, Placed, layout_of_call
from pyfuser.frontends.numpy.memory import ArrayMemory, buffer_of, host, kernel_dtype, region_of
from pyfuser.frontends.numpy.operations import COPY, Operation
from pyfuser.frontends.numpy.resolution import Resolution, number, resolve
from pyfuser.frontends.numpy.switches import errors, is_loud, recording, threshold
from pyfuser.frontends.numpy.workunits import Recipe, recipe_of
from pyfuser.frontends.numpy.wrap import of_region
from pyfuser.ir.dtypes import DType
from pyfuser.runtime.first_tier import DirectCall
from pyfuser.runtime.session import TRACER
from pyfuser.trace.call import Argument
from pyfuser.trace.memory import Allocation, Handle, Region
from pyfuser.trace.reason import Reason

_OURS = "pyfuser.frontends.numpy"

LOOP = Reason("a loop begins again")

LOOP_CALLS = 16
"""Calls after which a trace ends where one of them comes again: traces of loops are alike, and
planning a long one takes long. Shorter ones go on for several trips."""


class Recorded(DirectCall):
    """A recorded operation, which NumPy can compute, too.

    errors: what floating-point errors do, None: they warn.
    """

    __slots__ = ("errors", "recipe")

    recipe: Recipe
    errors: dict[str, str] | None

    def compute(self) -> None:
        """By NumPy."""
        space = self.recipe.space
        first, *others = self.arguments
        assert type(first) is Region
        whole = len(first.shape) == len(space.end) and not self.recipe.masked
        read = any(type(a) is Region and a.buffer is first.buffer for a in others)
        first.allocate(space[:2] if whole and not read else None)
        arguments = tuple(a.array() if type(a) is Region else a for a in self.arguments)
        with floating.warning_at(self.code.co_filename, self.line, self.recipe, self.errors):
            self.recipe.compute(arguments)


def record(
    operation: Operation,
    inputs: tuple[Any, ...],
    out: Any = None,
    mask: Any = None,
    signature: Any = None,
    casting: str = "same_kind",
) -> Any:
    """Record an operation; its result, or None if NumPy is to compute it.

    out: the array that takes the result. mask: an array of bools; only with `out`. signature: of
    NumPy's loop, where it is given.
    """
    if not recording():
        return None
    state = errors()
    if is_loud(state):
        return None
    operands = (*inputs, mask) if mask is not None else inputs
    kinds, pending = _kinds(operands)
    if kinds is None:
        return None
    dtype: Any = None
    if out is not None:
        dtype = _recordable(out)
        if dtype is None or not out._writeable:
            return None
        pending = pending or _pending(out)
    resolution = resolve(operation, kinds[: len(inputs)], dtype, signature, casting)
    if resolution is None:
        return None
    layout = _layout(operands, out, resolution, operation is COPY)
    if layout is None or not (pending or layout.size >= threshold()):
        return None
    values = [
        number(operation, n, value, dtype)
        for n, (value, dtype) in enumerate(
            zip(_values(operands), (*resolution.loops[:-1], DType.BOOL), strict=False)
        )
    ]
    if None in values:
        return None
    return _record(operation, resolution, layout, values, out, mask is not None, state)


def _kinds(operands: tuple[Any, ...]) -> tuple[Any, bool]:
    """What NumPy resolves types by, of each operand, and whether anything is pending on one.

    None: there is one that is not recorded.
    """
    kinds: list[Any] = []
    pending = False
    for value in operands:
        kind = type(value)
        if isinstance(value, ArrayMemory):
            dtype = _recordable(value)
            if dtype is None:
                return None, False
            kinds.append(dtype.numpy)
            pending = pending or _pending(value)
        elif kind is float or kind is int:
            kinds.append(kind)
        elif kind is bool:
            kinds.append(_BOOL)
        elif isinstance(value, np.generic):
            kinds.append(value.dtype)
        else:
            return None, False
    return tuple(kinds), pending


_BOOL = np.dtype(np.bool_)


def _recordable(x: Any) -> DType | None:
    """The type of an array's elements, if kernels know it and nobody else reaches the memory."""
    if x._owner is None:
        return None
    buffer = buffer_of(x)
    if buffer is not None and buffer.external:
        return None
    return kernel_dtype(x)


def _pending(x: Any) -> bool:
    buffer = buffer_of(x)
    return buffer is not None and buffer.pending > 0


def _placed(x: Any) -> Placed:
    region = x._region
    if region is not None:
        return region.shape, region.strides
    array = x._array
    return array.shape, array.strides


def _layout(
    operands: tuple[Any, ...], out: Any, resolution: Resolution, copies: bool
) -> Layout | None:
    inputs = tuple(_placed(x) for x in operands if isinstance(x, ArrayMemory) and _rank(x))
    result = None if out is None else _placed(out)
    if not inputs and result is None:
        return None
    return layout_of_call(inputs, result, resolution.result.size, copies)


def _rank(x: Any) -> int:
    region = x._region
    return len(region.shape) if region is not None else x._array.ndim


def _values(operands: tuple[Any, ...]) -> list[Any]:
    """Regions of arrays; numbers as they are, and those that arrays without axes hold."""
    values: list[Any] = []
    for x in operands:
        if not isinstance(x, ArrayMemory):
            values.append(x)
        elif _rank(x):
            values.append(region_of(x))
        else:
            values.append(host(x)[()])
    return values


def _record(
    operation: Operation,
    resolution: Resolution,
    layout: Layout,
    values: list[Any],
    out: Any,
    masked: bool,
    state: dict[str, str] | None,
) -> Any:
    kinds = tuple(value.dtype if type(value) is Region else None for value in values)
    recipe = recipe_of(operation, resolution.loops, kinds, resolution.result, layout, masked)
    frame = program_frame(sys._getframe(3))
    end_trip(frame)
    handle: Handle | None = None
    if out is None:
        handle = Handle()
        buffer = Allocation(layout.size * resolution.result.size, handle)
        target = Region(buffer, 0, layout.strides, layout.shape, resolution.result)
    else:
        found = region_of(out)
        assert found is not None
        target = found
        apart = _apart(values, recipe, target, layout, frame, state)
        if apart is not None:
            values = apart
            layout = _layout_of(values, target)
            recipe = recipe_of(
                operation, resolution.loops, kinds, resolution.result, layout, masked
            )
    arguments: list[Argument] = [formed(target, layout.result)]
    for value, form in zip(values, recipe.forms, strict=True):
        arguments.append(value if form is None else formed(value, form))
    _append(recipe, tuple(arguments), frame, state)
    return out if handle is None else of_region(target, handle)


def _append(
    recipe: Recipe,
    arguments: tuple[Argument, ...],
    frame: FrameType,
    state: dict[str, str] | None,
) -> None:
    call = Recorded(
        "for", recipe.space, recipe.workunit, arguments, None, None, frame.f_code, ~frame.f_lasti
    )
    call.recipe = recipe
    call.errors = state
    TRACER.record(call)


def formed(region: Region, form: Form) -> Region:
    """A region with the axes that a kernel has for it."""
    if region.shape == form.shape and region.strides == form.strides:
        return region
    return Region(region.buffer, region.offset, form.strides, form.shape, region.dtype)


def end_trip(frame: FrameType) -> None:
    """Before a call is recorded: run the trace if a loop begins again."""
    calls = TRACER.calls
    if len(calls) >= LOOP_CALLS:
        code, at = frame.f_code, ~frame.f_lasti
        if any(call.at == at and call.code is code for call in calls):
            TRACER.flush(LOOP)


def program_frame(frame: FrameType) -> FrameType:
    """The innermost frame of the user's program."""
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_OURS):
        frame = frame.f_back
    return frame


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
    handle = Handle()
    buffer = Allocation(layout.size * region.dtype.size, handle)
    copy = Region(buffer, 0, layout.strides, layout.shape, region.dtype)
    kinds = (region.dtype,)
    recipe = recipe_of(COPY, (region.dtype, region.dtype), kinds, region.dtype, layout, False)
    arguments = formed(copy, layout.result), formed(region, layout.forms[0])
    _append(recipe, arguments, frame, state)
    return copy
