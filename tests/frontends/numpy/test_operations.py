"""Every operation on special values of every type: the ir's bits are NumPy's."""

from __future__ import annotations

import itertools
import shutil
import warnings
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import pyfuser.numpy as np
from pyfuser.frontends.numpy import expressions
from pyfuser.frontends.numpy.operations import INEXACT, OPERATIONS, Operation
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Const
from pyfuser.runtime import first_tier
from pyfuser.runtime.session import TRACER
from pyfuser.support.caches import clear_caches
from pyfuser.support.settings import SETTINGS
from tests.frontends.numpy.programs import Mismatch, _equal

Lazily = Callable[[str], None]

OPERATIONS_BY_NAME = {operation.name: operation for operation in OPERATIONS.values()}
INTEGERS = [0, 1, 2, 3, 5, 7, 8, 31, 33, 63, 64, 100]
FLOATS = [
    0.0, -0.0, 0.5, 1.0, -1.0, 1.5, 2.5, -2.5, 3.0, -7.25, 1e-300, 5e-324, 1e30, -1e300, 0.1,
    float("inf"), float("-inf"), float("nan"), 1e16, 123456.789,
]  # fmt: skip


def special(dtype: DType) -> Any:
    kind = dtype.numpy
    with numpy.errstate(all="ignore"):
        if dtype is DType.BOOL:
            return numpy.array([False, True])
        if dtype.is_float:
            return numpy.array(FLOATS).astype(kind)
    low, high = dtype.range()
    values = [
        n for n in (*INTEGERS, *(-n for n in INTEGERS), low, low + 1, high) if low <= n <= high
    ]
    return numpy.array(values, dtype=kind)


def check(operation: Operation, dtype: DType) -> int:
    """Compare one operation on all combinations; how many calls were recorded."""
    values = special(dtype)
    count = operation.ufunc.nin
    if operation.divides and dtype.is_integer:
        pairs = [(values, n) for n in values.tolist()]
    else:
        grid = numpy.array(list(itertools.product(values, repeat=min(count, 2)))).T
        pairs = [tuple(part.astype(dtype.numpy).copy() for part in grid)]
        if count == 3:
            bounds = values[values == values]
            pairs = [(values, *sorted((bounds[k], bounds[k - 1]))) for k in range(bounds.size)]
    before = TRACER.recorded
    for given in pairs:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = operation.ufunc(*given)
            ours = tuple(np.array(g) if isinstance(g, numpy.ndarray) else g for g in given)
            found = numpy.asarray(getattr(np, operation.name)(*ours))
        if operation.name == "copysign" and dtype.is_float:
            expected, found = numpy.abs(expected), numpy.abs(found)
        assert expected.dtype == found.dtype
        if not _equal(expected, found, 4 if operation.name in INEXACT else 0):
            wrong = [
                (x, one, other)
                for *x, one, other in zip(
                    *(numpy.broadcast_to(g, expected.shape) for g in given), expected, found,
                    strict=True,
                )
                if not _equal(numpy.asarray(one), numpy.asarray(other), 4)
            ]  # fmt: skip
            raise Mismatch(f"{operation.name} of {dtype.value}: {wrong[:5]}")
    return TRACER.recorded - before


@pytest.mark.parametrize("tier", ["interpret", "numpy"])
@pytest.mark.parametrize("name", sorted(OPERATIONS_BY_NAME))
def test_special_values(name: str, tier: str, lazily: Lazily) -> None:
    lazily(tier)
    operation = OPERATIONS_BY_NAME[name]
    for dtype in operation.loops:
        if name == "clip" and dtype is DType.BOOL:
            continue
        assert check(operation, dtype), (name, dtype)


@pytest.mark.skipif(shutil.which(SETTINGS.compiler) is None, reason="needs a C++ compiler")
@pytest.mark.parametrize("name", ["floor_divide", "remainder", "maximum", "right_shift", "sign"])
def test_special_values_compiled(
    name: str, lazily: Lazily, monkeypatch: pytest.MonkeyPatch
) -> None:
    lazily("compiled")
    monkeypatch.setattr(first_tier, "runs_here", lambda trace, calls: False)
    for dtype in (DType.FLOAT64, DType.INT8, DType.INT64):
        if dtype in OPERATIONS_BY_NAME[name].loops:
            assert check(OPERATIONS_BY_NAME[name], dtype)


def test_cs_remainder_would_be_found(lazily: Lazily, monkeypatch: pytest.MonkeyPatch) -> None:
    lazily("interpret")
    never = Const(False, DType.BOOL)
    monkeypatch.setattr(expressions, "_opposed", lambda rest, divisor: never)
    clear_caches()
    try:
        with pytest.raises(Mismatch):
            check(OPERATIONS_BY_NAME["remainder"], DType.INT32)
        with pytest.raises(Mismatch):
            check(OPERATIONS_BY_NAME["floor_divide"], DType.INT32)
    finally:
        clear_caches()
