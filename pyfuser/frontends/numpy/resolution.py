"""Types of an operation, as NumPy's ufuncs resolve them, and its numbers in these types."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pyfuser.frontends.numpy.complex_numbers import PARTS
from pyfuser.frontends.numpy.operations import COPY, WHERE, Operation
from pyfuser.ir.dtypes import DType, from_numpy
from pyfuser.support.caches import Table
from pyfuser.support.records import dataclass

_EXACT = 1 << 53  # integers up to this are doubles


@dataclass(frozen=True)
class Resolution:
    """loops: the types of NumPy's loop, the result's last. result: the type of what is stored."""

    loops: tuple[DType, ...]
    result: DType


_KNOWN: Table[Any, Resolution | None] = Table("types of NumPy operations", 4096)


def resolve(
    operation: Operation, kinds: tuple[Any, ...], out: DType | None, signature: Any, casting: str
) -> Resolution | None:
    """The types of an operation; None: kernels do not compute it, or it is an error.

    kinds: NumPy's dtypes, and `int` or `float` for Python's numbers. out: of the array that takes
    the result, if there is one.
    """
    key = operation, kinds, out, signature, casting
    try:
        return _KNOWN[key]
    except KeyError:
        return _KNOWN.keep(key, _resolve(operation, kinds, out, signature, casting))


def _resolve(
    operation: Operation, kinds: tuple[Any, ...], out: DType | None, signature: Any, casting: str
) -> Resolution | None:
    try:
        dtypes = _dtypes(operation, kinds, out, signature, casting)
    except Exception:  # NumPy raises it again when it computes
        return None
    found = [None if dtype is None else from_numpy(dtype) for dtype in dtypes]
    loops = tuple(dtype for dtype in found if dtype is not None)
    if len(loops) < len(found) or not set(loops[:-1]) <= operation.loops:
        return None
    result = out or loops[-1]
    if operation not in (COPY, WHERE) and len(set(loops[:-1])) > 1:
        return None  # as in comparing int64 with uint64
    if operation is not COPY and _narrows(loops[-1], result):
        return None  # as for operands
    return Resolution(loops, result) if _converts(loops[-1], result) else None


def _dtypes(
    operation: Operation, kinds: tuple[Any, ...], out: DType | None, signature: Any, casting: str
) -> tuple[Any, ...]:
    given = None if out is None else out.numpy
    if operation is COPY:
        (source,) = kinds
        target = given or signature or source
        if not isinstance(source, np.dtype):
            return target, target
        return (source, target) if _converts_between(source, target) else (None, None)
    if operation is WHERE:
        condition, *values = kinds
        weak = [kind if isinstance(kind, np.dtype) else kind(0) for kind in values]
        common = np.result_type(*weak)
        return condition, common, common, common
    more = {} if signature is None else {"signature": signature}
    resolved: tuple[Any, ...] = operation.ufunc.resolve_dtypes(
        (*kinds, given), casting=casting, **more
    )
    if not all(
        _converts_between(kind, loop) and not _narrows(from_numpy(kind), from_numpy(loop))
        for kind, loop in zip(kinds, resolved, strict=False)
        if isinstance(kind, np.dtype)
    ):
        return (None,)
    return resolved


def _narrows(source: DType | None, target: DType | None) -> bool:
    """Whether numbers may overflow when they are converted, of which NumPy warns apart."""
    return (
        source is not None
        and target is not None
        and source.is_float
        and (target.is_float or target.is_complex)
        and target.size < source.size * (1 + target.is_complex)
    )


def _converts_between(source: np.dtype[Any], target: np.dtype[Any]) -> bool:
    one, other = from_numpy(source), from_numpy(target)
    return one is not None and other is not None and _converts(one, other)


# law: False
def _converts(source: DType, target: DType) -> bool:
    """Whether C++ converts every value as NumPy does; floats beyond an integer's range differ."""
    if target.is_complex:
        return source.size <= target.size
    if source.is_complex:
        return target is DType.BOOL
    return not source.is_float or target.is_float or target is DType.BOOL


def number(operation: Operation, place: int, value: Any, dtype: DType) -> Any:
    """An operand that is a number, as the loop has it; None: NumPy is to see to it."""
    divides = operation.divides and place == 1 and dtype.is_integer
    if isinstance(value, np.generic):
        if not _converts_between(value.dtype, dtype.numpy):
            return None
        plain: Any = value.astype(dtype.numpy).item()
    elif isinstance(value, complex) and not dtype.is_complex:
        return None
    elif dtype is DType.BOOL:
        plain = value if type(value) is bool else None
    elif dtype.is_integer:
        plain = _integer(value, dtype)
    elif dtype.is_complex:
        re, im = (_float(part, PARTS[dtype]) for part in (value.real, value.imag))
        plain = None if re is None or im is None else complex(re, im)
    else:
        plain = _float(value, dtype)
    if operation.name == "clip" and plain != plain:  # NumPy's is NaN then, whatever `x` is
        return None
    return None if divides and plain in (0, -1, None) else plain


def _integer(value: Any, dtype: DType) -> int | None:
    least, greatest = dtype.range()
    if isinstance(value, float) or not least <= value <= greatest:
        return None
    return int(value)


def _float(value: Any, dtype: DType) -> float | None:
    if isinstance(value, int) and not -_EXACT <= value <= _EXACT:
        return None
    wide = float(value)
    if dtype is DType.FLOAT64 or not math.isfinite(wide):
        return wide
    return float(np.float32(wide)) if abs(wide) < float(np.finfo(np.float32).max) else None
