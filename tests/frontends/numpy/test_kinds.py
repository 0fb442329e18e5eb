"""Which reductions along an axis kernels compute, and the types of their results."""

from __future__ import annotations

import pytest

from pyfuser.frontends.numpy.along import REDUCTIONS, kind_of
from pyfuser.ir.dtypes import DType

BOOL, INT, LONG, BYTES, WIDE = DType.BOOL, DType.INT32, DType.INT64, DType.UINT8, DType.UINT64
SINGLE, DOUBLE, COMPLEX = DType.FLOAT32, DType.FLOAT64, DType.COMPLEX128


@pytest.mark.parametrize(
    ("name", "own", "innermost", "kind"),
    [
        ("sum", COMPLEX, False, None),
        ("any", COMPLEX, False, None),
        ("max", DOUBLE, True, None),
        ("min", SINGLE, True, None),
        ("max", DOUBLE, False, DOUBLE),
        ("max", INT, True, INT),
        ("sum", SINGLE, True, SINGLE),
        ("argmax", DOUBLE, True, None),
        ("argmin", INT, True, None),
        ("argmax", DOUBLE, False, LONG),
        ("argmin", BYTES, False, LONG),
        ("any", DOUBLE, True, BOOL),
        ("all", BYTES, False, BOOL),
        ("sum", INT, False, LONG),
        ("sum", BOOL, True, LONG),
        ("prod", LONG, False, LONG),
        ("prod", BYTES, False, WIDE),
        ("sum", WIDE, True, WIDE),
        ("min", BYTES, True, BYTES),
    ],
)
def test_types_of_results(name: str, own: DType, innermost: bool, kind: DType | None) -> None:
    assert kind_of(REDUCTIONS[name], own, innermost) is kind
