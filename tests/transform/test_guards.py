"""Neighbouring branches of one guard are one branch."""

from __future__ import annotations

from typing import Any

import pytest

from pyfuser.ir.nodes import Stmt
from pyfuser.trace.call import Space
from pyfuser.trace.shape import ScalarShape
from pyfuser.transform.guards import join_guards
from pyfuser.transform.kernel import Kernel, Slot
from tests.analysis.build import S, View, assign, region, when, workunit

I, N, M, X, Y = S("i"), S("n"), S("m"), View("x"), View("y")
ONE, TWO = X[I] << 1.0, Y[I] << X[I]


def joined(*body: Any) -> tuple[Stmt, ...]:
    unit = workunit("w", [I], [X, Y, N, M], body)
    shapes = (region(0, 8), region(1, 8), *(ScalarShape(s.sym.dtype, None) for s in (N, M)))
    slots = tuple(Slot(0, n) for n in range(4))
    kernel = Kernel("for", Space((0,), (8,)), unit, slots, shapes)
    return join_guards(kernel).workunit.body


def test_equal_guards_are_joined():
    assert joined(when(I < N, [ONE]), when(I < N, [TWO])) == (when(I < N, [ONE, TWO]),)
    three = joined(*(when(I < N, [s]) for s in (ONE, TWO, ONE)))
    assert three == (when(I < N, [ONE, TWO, ONE]),)


@pytest.mark.parametrize(
    "body",
    [
        (when(I < N, [ONE]), when(I < M, [TWO])),
        (when(I < N, [ONE]), ONE, when(I < N, [TWO])),
        (when(I < N, [ONE], [TWO]), when(I < N, [TWO])),
        (when(I < N, [ONE]), when(I < N, [TWO], [ONE])),
        (when(X[I] < 1.0, [ONE]), when(X[I] < 1.0, [TWO])),
        (when(I < N, [assign(N, 3)]), when(I < N, [TWO])),
        (when(I < N, [assign(I, 3)]), when(I < N, [TWO])),
    ],
)
def test_others_stay_apart(body):
    assert joined(*body) == body
