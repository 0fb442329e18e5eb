"""Which side of a selection leaves an index as it is, by what is written."""

from __future__ import annotations

import pytest

from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Binary, Cast, Compare, Const, Expr, Read, Select, Store, Sym, Unary
from pyfuser.ir.visit import reads
from pyfuser.nest.corrections import kept_first


def given(dtype: DType) -> tuple[Read, Read, Const]:
    """An index, a number that no iteration changes, and zero."""
    return Read(Sym("p", 1, dtype)), Read(Sym("n", 2, dtype)), Const(0, dtype)


def turned(value: Expr) -> tuple[Expr, set[Expr]]:
    """The value after the pass, and the comparisons that hold inside."""
    place = Sym("p", 1, value.dtype)
    store = Store(Sym("y", 3, value.dtype), (Const(0, DType.INT32),), value)
    (made,), kept = kept_first((store,), lambda e: place not in reads(e))
    assert isinstance(made, Store)
    return made.value, kept


@pytest.mark.parametrize("dtype", [DType.INT32, DType.INT64])
def test_the_side_that_leaves_it_comes_first(dtype: DType) -> None:
    p, n, zero = given(dtype)
    less, back = Compare("<", p, n), Binary("-", p, n)
    straight = Select(less, p, back)
    assert turned(straight) == (straight, {less})
    assert turned(Select(Compare(">=", p, n), back, p)) == (straight, {less})
    assert turned(Select(Compare(">", n, p), p, n))[1] == {Compare(">", n, p)}
    assert turned(Select(Compare("<", n, p), n, p)) == (
        Select(Compare(">=", n, p), p, n), {Compare(">=", n, p)},
    )  # fmt: skip
    assert turned(Select(Compare("<=", p, zero), zero, p))[1] == {Compare(">", p, zero)}


def test_of_selections_in_comparisons_stands_what_they_keep() -> None:
    p, n, zero = given(DType.INT32)
    least = Select(Compare("<", p, zero), zero, p)
    value, kept = turned(Select(Compare(">=", least, n), n, least))
    inner = Select(Compare(">=", p, zero), p, zero)
    assert value == Select(Compare("<", inner, n), inner, n)
    assert kept == {Compare(">=", p, zero), Compare("<", p, n)}


def test_a_selection_that_keeps_nothing_stays_in_a_comparison() -> None:
    p, n, zero = given(DType.INT32)
    by = Select(Compare("<", n, zero), Binary("+", p, n), p)
    value, kept = turned(Select(Compare(">=", by, n), n, by))
    assert value == Select(Compare("<", by, n), by, n)
    assert kept == {Compare("<", by, n)}


def test_conversions_do_not_matter() -> None:
    p, n, _ = given(DType.INT64)
    narrow, end = Cast(p, DType.INT32), Cast(n, DType.INT32)
    value = Select(Compare(">=", narrow, end), Binary("-", p, n), p)
    assert turned(value)[0] == Select(Compare("<", narrow, end), p, Binary("-", p, n))


def test_what_is_no_correction_stays() -> None:
    p, n, zero = given(DType.INT32)
    test = Compare(">=", p, n)
    for value in (
        Select(test, n, zero),
        Select(test, p, p),
        Select(Compare(">=", n, zero), zero, n),  # of no index
        Select(Compare("==", p, n), zero, p),  # holds nowhere inside, as it stands
        Select(Compare("!=", p, n), zero, p),
        Select(Unary("!", test, DType.BOOL), zero, p),
        Binary("+", p, n),
    ):
        assert turned(value) == (value, set())


@pytest.mark.parametrize("dtype", [DType.FLOAT64, DType.UINT32])
def test_of_what_is_no_index_nothing_is_turned(dtype: DType) -> None:
    """`not x >= nan` is not `x < nan`."""
    p, n, _ = given(dtype)
    value = Select(Compare(">=", p, n), n, p)
    assert turned(value) == (value, set())
