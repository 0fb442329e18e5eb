# ruff: noqa: F821
from __future__ import annotations

import linecache

import pytest

from pyfuser.ir.dtypes import DType
from pyfuser.lower.lower import lower, signature
from pyfuser.lower.types import BoundType, ScalarType, ViewType
from pyfuser.support.errors import ArgumentError, WorkunitError

F64 = ScalarType(DType.FLOAT64)
I32 = ScalarType(DType.INT32)
V1 = ViewType(DType.FLOAT64, 1)


def bare(i, acc, last, x, n):
    pass


def annotated(
    i: int,
    acc: pk.Acc[pk.int64],
    x: pk.View1D[pk.double],
    y: pk.View2D[float],
    f: pk.float,
    n: int,
    z: pk.View1D,
):
    pass


def test_leading_parameters_belong_to_the_policy() -> None:
    header = signature(bare)
    assert header.argument_names("for", 1) == ("acc", "last", "x", "n")
    assert header.argument_names("for", 2) == ("last", "x", "n")
    assert header.argument_names("reduce", 1) == ("last", "x", "n")
    assert header.argument_names("scan", 1) == ("x", "n")
    assert header.policy_names("scan", 1) == ("i", "acc", "last")


def test_the_signature_is_kept() -> None:
    assert signature(bare) is signature(bare)


def test_too_few_parameters() -> None:
    def short(i):
        pass

    with pytest.raises(WorkunitError, match="needs 1 index, an accumulator as first"):
        signature(short).policy_names("reduce", 1)


def test_annotations_are_read() -> None:
    parsed = signature(annotated).annotations
    assert [(a.kind, a.dtype, a.rank) for a in parsed.values()] == [
        ("scalar", DType.INT32, 0),
        ("accumulator", DType.INT64, 0),
        ("view", DType.FLOAT64, 1),
        ("view", DType.FLOAT64, 2),
        ("scalar", DType.FLOAT32, 0),
        ("scalar", DType.INT32, 0),
        ("view", None, 1),
    ]


GOOD = {"x": V1, "y": ViewType(DType.FLOAT64, 2), "f": I32, "n": I32, "z": V1}


def test_an_annotated_scalar_has_the_annotations_type() -> None:
    lowered = lower(annotated, "reduce", 1, GOOD)
    assert lowered.names == ("x", "y", "f", "n", "z")
    dtypes = [param.sym.dtype for param in lowered.workunit.params]
    assert dtypes[2:4] == [DType.FLOAT32, DType.INT32]
    assert lowered.workunit.accumulators[0].sym.dtype is DType.INT64


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": ViewType(DType.FLOAT32, 1)}, "'x' is annotated as a 1-D view of float64"),
        ({"y": V1}, "'y' is annotated as a 2-D view of float64 but is a 1-D view"),
        ({"x": F64}, "'x' is annotated as a view but is a scalar"),
        ({"n": V1}, "'n' is annotated as a scalar"),
        ({"n": F64}, "'n' is annotated as a scalar of type int32 but is a scalar of type float64"),
        ({"f": ScalarType(DType.COMPLEX128)}, "'f' is annotated"),
        ({"q": V1}, "unknown argument 'q'"),
    ],
)
def test_arguments_that_do_not_fit(change: dict[str, BoundType], message: str) -> None:
    with pytest.raises(ArgumentError, match=message) as caught:
        lower(annotated, "reduce", 1, {**GOOD, **change})
    place, source, mark = str(caught.value).splitlines()[1:]
    line = int(place.rpartition(":")[2])
    assert place.endswith(f"is at {__file__}:{line}")
    assert linecache.getline(__file__, line).strip() == source.strip()
    name = next(iter(change))
    assert source[mark.index("^") :].startswith(f"{name}: " if name in GOOD else "def annotated")


def test_missing_arguments() -> None:
    with pytest.raises(ArgumentError, match=r"missing argument 'x'"):
        lower(bare, "scan", 1, {"n": I32})


def test_unknown_annotations() -> None:
    def odd(i, x: dict):
        pass

    with pytest.raises(WorkunitError, match="'dict' is no type"):
        signature(odd)


def test_variadic_parameters() -> None:
    def many(i, *xs):
        pass

    with pytest.raises(WorkunitError, match=r"\*args"):
        signature(many)
