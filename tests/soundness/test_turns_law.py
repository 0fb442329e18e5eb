"""What calls do alone and fused alike, to the bit, in whatever order others run."""

from __future__ import annotations

from typing import Any

import pykokkos as pk
import pytest

from pyfuser.ir.dtypes import DType
from pyfuser.lower.lower import ViewType, lower
from pyfuser.runtime.turns import takes_turns


def plain(i, x, n):
    x[i] = 1.0


def prints(i, x, n):
    pk.printf("%d\n", i)
    x[i] = 1.0


def counts(i, x, n):
    pk.atomic_add(n, [0], 1)


def fetches(i, x, n):
    k: int = pk.atomic_fetch_add(n, [0], 1)
    x[k] = 1.0


def sums(i, x, n):
    pk.atomic_add(x, [0], 0.1)


def sums_and_counts(i, x, n):
    pk.atomic_add(n, [0], 1)
    pk.atomic_add(x, [0], 0.1)


@pytest.mark.parametrize(
    ("function", "same"),
    [
        (plain, True),
        (counts, True),
        (prints, False),
        (fetches, False),
        (sums, False),
        (sums_and_counts, False),
    ],
)
def test_workunits_whose_order_does_not_show(function: Any, same: bool) -> None:
    types = {"x": ViewType(DType.FLOAT64, 1), "n": ViewType(DType.INT32, 1)}
    assert takes_turns(lower(function, "for", 1, types).workunit) is same
