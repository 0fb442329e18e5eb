"""Reductions over all elements of an array, as NumPy computes them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pyfuser.frontends.numpy.along import REDUCTIONS
from pyfuser.frontends.numpy.extremes import extreme
from pyfuser.frontends.numpy.memory import kernel_dtype
from pyfuser.frontends.numpy.sums import total
from pyfuser.ir.dtypes import DType

_WIDENED = {DType.BOOL: DType.INT64}


def full_reduction(x: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`x.name(*args, **kwargs)` if that is one over all elements, and recorded; else None."""
    if len(args) > 1 or kwargs.get("axis") is not None or (args and args[0] is not None):
        return None
    if kwargs.keys() - {"axis", "ddof"}:
        return None
    own = kernel_dtype(x)
    if own is None or own.is_complex or not x.shape:
        return None
    if name == "sum":
        return _sum(x, own) if "ddof" not in kwargs else None
    if name == "mean":
        return _mean(x, own) if "ddof" not in kwargs else None
    if name in REDUCTIONS:
        return extreme(x, name, own) if "ddof" not in kwargs else None
    if name in ("var", "std"):
        return _spread(x, own, name, kwargs.get("ddof", 0))
    return None


def _sum(x: Any, own: DType) -> Any:
    kind = own
    if own.is_integer:
        kind = DType.UINT64 if not own.is_signed and own is not DType.BOOL else DType.INT64
    found = total(x, DType.FLOAT64 if own.is_float else kind)
    return None if found is None else _scalar(found, kind)


def _scalar(value: Any, kind: DType) -> Any:
    with np.errstate(over="ignore"):
        return kind.numpy.type(value)


def _mean(x: Any, own: DType) -> Any:
    found = total(x, DType.FLOAT64)
    if found is None:
        return None
    kind = own if own.is_float else DType.FLOAT64
    return _scalar(_scalar(found, kind) / kind.numpy.type(x.size), kind)


def _spread(x: Any, own: DType, name: str, ddof: Any) -> Any:
    if not own.is_float or type(ddof) is not int or ddof >= x.size:
        return None
    mean = _mean(x, own)
    if mean is None:
        return None
    apart = x - mean
    apart = np.square(apart, out=apart)
    found = total(apart, DType.FLOAT64)
    if found is None:
        return None
    variance = _scalar(_scalar(found, own) / own.numpy.type(x.size - ddof), own)
    return variance if name == "var" else _scalar(math.sqrt(variance), own)
