"""Where the operands of an elementwise operation lie: broadcasting, the result's order, few axes.

Axes that lie together in every operand are one axis of the kernel, so that shapes and ranks do not
multiply plans and kernels. The law: the kernel's index i of axis k means the same elements of every
operand as NumPy's iteration over the broadcast shape; an operand has no index for axes along which
its stride is 0. The cost: a lookup; computing one takes some 20 us.
"""

from __future__ import annotations

from math import prod
from typing import Any, TypeAlias

import numpy as np

from pyfuser.support.caches import Table
from pyfuser.support.passes import left_out
from pyfuser.support.records import dataclass

Shape: TypeAlias = tuple[int, ...]
Placed: TypeAlias = tuple[Shape, Shape]  # shape and strides, as NumPy has them

SHORT = 64
"""Elements along the inner one of two axes below which they are one if they lie together. Longer
ones stay two, as the next operation may be on a part of an array, which has two: only calls over
one space share a loop."""

NARROW = 16
"""Elements below which rows are one axis with what lies around them, whoever rolls them."""

ROWS: set[int] = set()
"""Extents below `SHORT` of arrays that the program rolls or pads, which takes as many axes as they
have: axes of these extents stay apart, as only calls over one space share a loop."""

AXES = 3
"""Axes from which all that lie together are one."""

MAX_RANK = 5
"""Axes that a kernel has at most, after those that lie together are one."""


@dataclass(frozen=True, eq=False)
class Form:
    """An operand as the kernel has it: its own axes among the kernel's, extents and strides.

    An operand that is one element for all has `axes == ()` and one axis of extent 1.
    """

    axes: Shape
    shape: Shape
    strides: Shape


@dataclass(frozen=True, eq=False)
class Layout:
    """shape, strides: of the result. extents: of the kernel's axes. forms: of each operand."""

    shape: Shape
    strides: Shape
    extents: Shape
    forms: tuple[Form, ...]
    size: int
    result: Form


_KNOWN: Table[Any, Layout | None] = Table("layouts of NumPy operations", 4096)


def layout_of_call(
    inputs: tuple[Placed, ...], out: Placed | None, itemsize: int, copies: bool = False
) -> Layout | None:
    """How an operation walks its operands; None: as NumPy only knows, or it is an error.

    itemsize: of the result's elements, which may be given (`out`). copies: the result lies as the
    one operand does.
    """
    key = inputs, out, itemsize, copies
    try:
        return _KNOWN[key]
    except KeyError:
        return _KNOWN.keep(key, _layout(inputs, out, itemsize, copies))


def keep_rows(shape: Shape) -> bool:
    """Keep axes of such extents apart; whether that is new, so that layouts are to be forgotten."""
    new = {extent for extent in shape[1:] if NARROW <= extent < SHORT} - ROWS
    if not new or len(shape) > AXES or left_out("keep-rows"):
        return False
    ROWS.update(new)
    _KNOWN.clear()
    return True


def _layout(
    inputs: tuple[Placed, ...], out: Placed | None, itemsize: int, copies: bool
) -> Layout | None:
    try:
        shape = np.broadcast_shapes(*[shape for shape, _ in inputs])
        if out is not None and np.broadcast_shapes(shape, out[0]) != out[0]:
            return None
    except ValueError:
        return None
    shape = shape if out is None else out[0]
    if not shape or 0 in shape:
        return None
    full = [_broadcast(own, strides, shape) for own, strides in inputs]
    if out is not None:
        strides = out[1]
    elif copies and inputs:
        strides = _contiguous_as(inputs[0][1], shape, itemsize)
    else:
        strides = _order(inputs, full, shape, itemsize)
    order = sorted(range(len(shape)), key=lambda axis: -abs(strides[axis]))
    order = [axis for axis in order if shape[axis] > 1]
    if _meets_itself([shape[a] for a in order], [abs(strides[a]) for a in order], itemsize):
        return None
    if not order:
        one = (Form((), (1,), (itemsize,)),) * (len(full) + 1)
        return Layout(shape, strides, (1,), one[1:], 1, one[0])
    extents, merged = _merge(
        [shape[axis] for axis in order],
        [tuple(own[axis] for own in (*full, strides)) for axis in order],
    )
    if len(extents) > MAX_RANK:
        return None
    forms = tuple(_form(extents, own) for own in zip(*merged, strict=True))
    return Layout(shape, strides, extents, forms[:-1], prod(shape), forms[-1])


def _broadcast(own: Shape, strides: Shape, shape: Shape) -> Shape:
    missing = len(shape) - len(own)
    return (0,) * missing + tuple(
        0 if extent == 1 else stride for extent, stride in zip(own, strides, strict=True)
    )


def _order(inputs: tuple[Placed, ...], full: list[Shape], shape: Shape, itemsize: int) -> Shape:
    """The strides that NumPy gives a result: in the order of its operands' ("K")."""
    if all(is_c_order(own, strides) for own, strides in inputs) or len(shape) == 1:
        return c_strides(shape, itemsize)
    # As NumPy's iterator orders axes, which is what ufuncs allocate by; no element is looked at.
    small = tuple(min(extent, 2) for extent in shape)
    dummies = [
        np.lib.stride_tricks.as_strided(np.zeros(1, np.uint8), small, strides) for strides in full
    ]
    flags: Any = [["readonly"]] * len(dummies) + [["writeonly", "allocate"]]
    iterator = np.nditer(
        (*dummies, None),
        ["external_loop", "zerosize_ok"],
        flags,
        op_dtypes=[np.dtype(np.uint8)] * (len(dummies) + 1),
    )
    return _contiguous_as(iterator.operands[-1].strides, shape, itemsize)


def _contiguous_as(strides: Shape, shape: Shape, itemsize: int) -> Shape:
    """Contiguous strides of a shape, with its axes in the order of other strides."""
    order = sorted(range(len(shape)), key=lambda axis: (abs(strides[axis]), -axis))
    result, step = [0] * len(shape), itemsize
    for axis in order:
        result[axis] = step
        step *= shape[axis]
    return tuple(result)


def c_strides(shape: Shape, itemsize: int) -> Shape:
    """Of a row-major array."""
    result, step = [0] * len(shape), itemsize
    for axis in range(len(shape) - 1, -1, -1):
        result[axis] = step
        step *= max(shape[axis], 1)
    return tuple(result)


def is_c_order(shape: Shape, strides: Shape) -> bool:
    """Whether elements lie one after the other in row-major order, whatever lies between them."""
    step = 0
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent > 1:
            if stride < step or stride <= 0:
                return False
            step = stride * extent
    return True


# law
def _meets_itself(extents: list[int], strides: list[int], itemsize: int) -> bool:
    """Whether two elements of a result may share memory; the strides fall."""
    span = itemsize
    for extent, stride in zip(reversed(extents), reversed(strides), strict=True):
        if stride < span:
            return True
        span += (extent - 1) * stride
    return False


def _merge(extents: list[int], strides: list[Shape]) -> tuple[Shape, list[Shape]]:
    """Axes, the outermost first, with those that lie together in every operand as one.

    strides: for each axis, of every operand.
    """
    merged: list[tuple[int, Shape]] = []
    for extent, own in zip(extents, strides, strict=True):
        if merged:
            before, outer = merged[-1]
            together = (extent < SHORT and extent not in ROWS) or len(extents) > AXES
            if together and all(s == inner * extent for s, inner in zip(outer, own, strict=True)):
                merged[-1] = before * extent, own
                continue
        merged.append((extent, own))
    return tuple(extent for extent, _ in merged), [own for _, own in merged]


def _form(extents: Shape, strides: Shape) -> Form:
    axes = tuple(axis for axis, stride in enumerate(strides) if stride)
    if not axes:
        return Form((), (1,), (8,))
    return Form(axes, tuple(extents[a] for a in axes), tuple(strides[a] for a in axes))
