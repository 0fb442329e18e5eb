"""What the extension needs to record an operation without a line of Python (`hot_numpy/record.c`).

The law: it does what `record.record` does for operands of types and places that were seen before,
or nothing, and then that does all. So what is told here is what `record` has found for such
operands; what may differ from call to call is looked at again for each: who reaches the memory,
what is pending on it, which operands share memory with the result, what numbers are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pyfuser.frontends.numpy import record
from pyfuser.frontends.numpy.apply import SCALARS
from pyfuser.frontends.numpy.layout import Form, is_c_order
from pyfuser.frontends.numpy.memory import READ, Owner, region_of
from pyfuser.frontends.numpy.operations import (
    COPY,
    NAMED,
    OPERATIONS,
    SAME,
    WHERE,
    Conversion,
    Operation,
    is_exact,
)
from pyfuser.frontends.numpy.recorded import Recorded
from pyfuser.frontends.numpy.resolution import number
from pyfuser.frontends.numpy.spaces import SPACE
from pyfuser.frontends.numpy.switches import _DEFAULT, _STATE, LIMITS
from pyfuser.frontends.numpy.wrap import KIND
from pyfuser.ir.dtypes import DType
from pyfuser.runtime.first_tier import GIVEN_UP, SITES
from pyfuser.runtime.session import TRACER
from pyfuser.support.caches import CACHES
from pyfuser.support.extension import HOT, NUMPY
from pyfuser.trace.memory import LINE, Region, Unmade, are_strided
from pyfuser.tuning.thresholds import NOW

_OPERATORS = {
    "__add__": "add", "__sub__": "subtract", "__mul__": "multiply", "__truediv__": "divide",
    "__floordiv__": "floor_divide", "__mod__": "remainder", "__lshift__": "left_shift",
    "__rshift__": "right_shift", "__and__": "bitwise_and", "__or__": "bitwise_or",
    "__xor__": "bitwise_xor", "__neg__": "negative", "__pos__": "positive",
    "__abs__": "absolute", "__invert__": "invert", "__lt__": "less", "__le__": "less_equal",
    "__eq__": "equal", "__ne__": "not_equal", "__gt__": "greater", "__ge__": "greater_equal",
    "__pow__": "square", "__setitem__": "copy",
}  # fmt: skip
"""What is recorded for the methods of the class; `__pow__`: for squares."""

_UFUNCS = {ufunc: operation for ufunc, operation in OPERATIONS.items() if ufunc.nin <= 2}

_NUMBERS = SCALARS - {str, bytes, type(None)}


def plan(asked: Operation | Conversion, operands: tuple[Any, ...], out: Any) -> Any:
    """How the operation is recorded on operands of these types and places; None: by Python.

    The recipe, workunit and space; the result's shape, strides, type and bytes; the number of
    elements; what kernels have for the result, and for each operand: see `_operand`. In the end
    what has to be kept alive.
    """
    operation = COPY if isinstance(asked, Conversion) else asked
    arrays = [x for x in (*operands, out) if type(x) is KIND.array]
    if not all(type(x) in _NUMBERS or type(x) is KIND.array for x in operands):
        return None
    if any(region_of(x) is None or not x.shape for x in arrays):
        return None
    if operation.name == "square" and arrays[0].dtype == np.bool_:
        return None  # `x ** 2` is none
    if asked is SAME and not is_c_order(arrays[0].shape, arrays[0].strides):
        return None
    if operation.name == "clip" and len(arrays) > 1:
        return None
    if operation is COPY and out is not None and any(x.ndim > out.ndim for x in arrays):
        return None
    casting = "unsafe" if asked is COPY else "same_kind"
    signature = asked.dtype if isinstance(asked, Conversion) else None
    key: list[Any] = [operation, signature, casting, False, SPACE.execution]
    values: list[Any] = []
    target = None if out is None else region_of(out)
    if record._read(operands, key, values) is None or any(map(_is_external, arrays)):
        return None
    if target is not None:
        key.append(target[2:])
    entry = record._entry(operation, values, key, target, signature, casting)
    if entry is None or (LIMITS.exact and not is_exact(operation, entry.resolution.loops)):
        return None
    layout, recipe, kind = entry.layout, entry.recipe, entry.resolution.result
    numbers = dict(entry.numbers)
    result = layout.result
    form = result.shape, result.strides if result.axes else (kind.size,)
    placed = layout.shape, layout.strides
    return (
        recipe, recipe.workunit, recipe.space, *placed, kind, layout.size * kind.size, layout.size,
        None if placed == form else form,
        tuple([
            _operand(value, own, numbers.get(n), result)
            for n, (value, own) in enumerate(zip(values, recipe.forms, strict=True))
        ]),
        int(operation.costly),
        (asked, [x.dtype for x in arrays]),
    )  # fmt: skip


def _is_external(x: Any) -> bool:
    region = region_of(x)
    return region is None or region.buffer.external


def _operand(value: Any, form: Form | None, dtype: DType | None, result: Form) -> Any:
    """The type of a number; or an array's shape, strides and type, what kernels have instead of
    shape and strides, whether each iteration reads what it writes if operand and result begin in
    the same place, and the bytes of an element.
    """
    if form is None or type(value) is not Region:
        return dtype
    parts = form.axes, form.shape, form.strides
    aligned = parts == (result.axes, result.shape, result.strides)
    own = value.shape, value.strides
    placed = form.shape, form.strides if form.axes else (value.dtype.size,)
    return (*own, value.dtype, None if own == placed else placed, aligned, value.dtype.size)


_INTEGERS = tuple([
    (kind, kind.numpy.type, kind.range()[0], min(kind.range()[1], (1 << 63) - 1))
    for kind in DType
    if kind.is_integer and kind is not DType.BOOL
])  # fmt: skip
"""Types of integers, NumPy's of their scalars, and their least and greatest number of 64 bits."""


_KINDS = (
    DType.FLOAT64, DType.FLOAT32, DType.INT64, DType.INT32, DType.UINT64, DType.UINT32, DType.UINT8,
    DType.BOOL,
)  # fmt: skip
"""As `few.c` counts the types of elements."""

MIDDLE = 1 << 14
"""Elements from which an operation is recorded, as that takes a microsecond, if what is called in
its function has moved enough memory by NumPy for kernels to be worth compiling. Of NPBench's
programs, heat_3d at S (12,000 elements) loses below it, jacobi_2d (22,000) gains three times."""

STRIDED = 4
"""Elements side by side that take NumPy as long as one where they are a cache line or more apart:
an operation on 2,500 of these 3.4 us on an AMD EPYC (Zen 4)."""

KINDS = 64
"""Operations on operands of one kind are looked at once they have moved this part of what makes a
function ripe: of what has another shape in each trip of a loop, each would take 70 microseconds."""


class _Plans:
    """What the extension knows, in the list of caches."""

    name = "recorded NumPy operations of the extension"
    limit = 4096

    def __len__(self) -> int:
        return int(NUMPY.plans())

    def clear(self) -> None:
        """Forget it."""
        NUMPY.forget_plans()


def bind() -> None:
    """Tell the extension what it works on."""
    if NUMPY is None or HOT is None or _STATE is None:
        return
    named = {**NAMED, "copy": COPY, "where": WHERE}
    operations = {method: named[name] for method, name in _OPERATORS.items()}
    weight = STRIDED if are_strided((2,), (LINE,)) else 1  # where that pass is left out
    NUMPY.bind_recording(
        HOT.API, Recorded, Owner, Unmade, Region, operations, _UFUNCS, _STATE, _DEFAULT, SITES,
        SPACE, (plan, number, region_of, TRACER.flush), (READ, record.LOOP),
        (GIVEN_UP, MIDDLE, weight, NOW.running.ripe_bytes, NOW.running.ripe_bytes // KINDS),
        (DType.FLOAT64, DType.FLOAT32, np.float64, np.float32, _INTEGERS, _KINDS),
    )  # fmt: skip
    if not any(type(cache) is _Plans for cache in CACHES):
        CACHES.append(_Plans())
