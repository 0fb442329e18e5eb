"""Which short loops are written out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pyfuser.ir.nodes import Body, For, Read
from pyfuser.ir.visit import all_expressions, statements
from pyfuser.pipeline import C_PASSES, run_passes
from pyfuser.transform.unroll import NEAR
from pyfuser.tuning.thresholds import DEFAULT
from tests.transform.build import Program
from tests.vendors import tune

MAX_TRIPS = DEFAULT.unrolled_trips
COUNTED = DEFAULT.counted_trips

FEW = DEFAULT.gathered_trips

N, M = 20, 4


def loops(function: Callable[..., Any], **arguments: Any) -> int:
    """The loops left of one call over N iterations."""
    program = Program(N)
    program.call(function, **arguments)
    program.check()
    return sum(
        isinstance(s, For) for s in statements(run_passes(C_PASSES, program.kernel()).workunit.body)
    )


def columns(i, y, x, m):
    for f in range(m):
        y[i] += x[f][i]


def rows(i, y, x, m):
    for f in range(m):
        y[i] += x[i][f]


def rows_of_pairs(k, y, x, m):
    row: int = k // m
    c: int = k % m
    for f in range(m):
        y[k] += x[row][f] * x[c][f]


def of_a_table(i, y, x, m):
    for f in range(m):
        y[i] += x[0][f] * x[m][f]


def backwards(i, y, x, m):
    for f in range(m):
        y[i] += x[f][20 - 1 - i]


def indirectly(i, y, x, m):
    for f in range(m):
        y[i] += x[int(y[i]) % 4][f]


def in_strides(i, y, x, m):
    for f in range(m):
        y[i] += x[f][(NEAR + 1) * i]


def by_a_local(i, y, x, m):
    at: int = 0
    for f in range(m):
        y[i] += x[f][at]
        at = (at + i) % m


@pytest.mark.parametrize("work", [columns, of_a_table, backwards])
def test_loops_over_what_neighbours_share_or_have_side_by_side_are_written_out(work):
    assert loops(work, y=np.zeros(N), x=np.ones((M + 1, N)), m=M) == 0


@pytest.mark.parametrize("work", [rows_of_pairs, in_strides, by_a_local, indirectly])
def test_loops_over_what_is_far_apart_stay(work):
    assert loops(work, y=np.zeros(N), x=np.ones((N, (NEAR + 1) * N)), m=FEW + 1) == 1


def test_what_is_far_apart_depends_on_the_layout():
    assert loops(rows, y=np.zeros(N), x=np.ones((N, NEAR)), m=M) == 0
    x = np.ones((N, NEAR + 1))
    assert loops(rows, y=np.zeros(N), x=x, m=M) == 1
    assert loops(rows, y=np.zeros(N), x=np.asfortranarray(x), m=M) == 0
    assert loops(columns, y=np.zeros(N), x=np.ones((M, N)), m=M) == 0
    assert loops(columns, y=np.zeros(N), x=np.asfortranarray(np.ones((NEAR + 1, N))), m=M) == 1


def test_long_loops_stay():
    assert loops(columns, y=np.zeros(N), x=np.ones((N, N)), m=MAX_TRIPS) == 0
    assert loops(columns, y=np.zeros(N), x=np.ones((N, N)), m=MAX_TRIPS + 1) == 1


def nest(i, y, x, m, n):
    for c in range(m):
        for f in range(n):
            y[i] += x[int(y[i]) % 4][f] * (c * n)


def reads_of(name: str, **scalars: int) -> int:
    """How often the nest reads a scalar once it is ready to be emitted."""
    program = Program(N)
    program.call(nest, y=np.zeros(N), x=np.ones((N, 4 * N)), **scalars)
    program.check()
    body = run_passes(C_PASSES, program.kernel()).workunit.body
    return sum(isinstance(e, Read) and e.sym.name == name for e in all_expressions(body))


def test_a_nest_of_short_loops_has_its_trips_as_constants():
    assert reads_of("m", m=M, n=M) == reads_of("n", m=M, n=M) == 0


def test_a_short_loop_in_a_long_one_has_them_too():
    assert reads_of("m", m=COUNTED + 1, n=M) == 1
    assert reads_of("n", m=COUNTED + 1, n=M) == 0


def test_a_nest_with_a_long_loop_inside_has_not():
    assert reads_of("m", m=M, n=COUNTED + 1) == 1
    assert reads_of("n", m=M, n=COUNTED + 1) == 2


def nest_of_a_row(i, y, x, m, n, k):
    for p in range(m):
        for q in range(n):
            y[i] += x[k][p * n + q] * x[i][q]


def test_what_bounds_no_loop_stays_a_number_of_the_launch():
    """So that elimination, where it changes in each step, has one kernel."""
    program = Program(N)
    program.call(nest_of_a_row, y=np.zeros(N), x=np.ones((N, 2 * N)), m=M, n=M, k=3)
    program.check()
    body = run_passes(C_PASSES, program.kernel()).workunit.body
    names = {e.sym.name for e in all_expressions(body) if isinstance(e, Read)}
    assert "k" in names
    assert not names & {"m", "n"}


def triangle(i, y, x):
    """The factor of a 3 x 3 matrix, in place."""
    for c in range(3):
        for k in range(c):
            x[i][c * 3 + c] -= x[i][c * 3 + k] * x[i][c * 3 + k]
        for r in range(c + 1, 3):
            for k in range(c):
                x[i][r * 3 + c] -= x[i][r * 3 + k] * x[i][c * 3 + k]
            x[i][r * 3 + c] /= x[i][c * 3 + c] + 1.0
    y[i] = x[i][8]


def sums_of_a_row(i, y, x):
    for f in range(9):
        y[i] += x[i][f]


def root_of_a_row(i, y, x):
    for f in range(8):
        y[i] += 1.0 / (1.0 / (1.0 + x[i][f] * x[i][f]) + x[i][f])


def roots_and_squares(i, y, x):
    for f in range(8):
        y[i] += 1.0 / (1.0 / (1.0 + x[i][f] * x[i][f]) + x[i][f])
    for f in range(8):
        y[i] += 1.0 / (1.0 / (2.0 + x[i][f] * x[i][f]) + x[i][f])


def roots_of_a_long_row(i, y, x):
    for f in range(9):
        y[i] += 1.0 / (1.0 / (1.0 + x[i][f] * x[i][f]) + x[i][f])


def triangle_of_data(i, y, x):
    for c in range(3):
        for k in range(int(y[i]) % 3):
            x[i][c] += x[i][k] * x[i][k] / (1.0 + x[i][c])


def test_nests_whose_inner_loops_depend_on_the_outer_ones_are_written_out():
    assert loops(triangle, y=np.zeros(N), x=np.ones((N, 9))) == 0
    assert loops(triangle_of_data, y=np.zeros(N), x=np.ones((N, 9))) == 2


def test_vectors_gather_what_much_is_computed_of():
    assert loops(root_of_a_row, y=np.zeros(N), x=np.ones((N, 9))) == 0
    assert loops(roots_of_a_long_row, y=np.zeros(N), x=np.ones((N, 9))) == 1
    assert loops(sums_of_a_row, y=np.zeros(N), x=np.ones((N, 9))) == 1


def test_a_body_that_keeps_a_loop_keeps_those_whose_elements_are_far_apart():
    def both(i, y, x, m):
        for f in range(8):
            y[i] += 1.0 / (1.0 / (1.0 + x[i][f] * x[i][f]) + x[i][f])
        for f in range(int(y[i]) % 4):
            y[i] += x[i][f]

    assert loops(both, y=np.zeros(N), x=np.ones((N, 9)), m=M) == 2


def test_a_body_that_would_be_long_keeps_its_loops(monkeypatch):
    size = len([*all_expressions(written(roots_and_squares))])
    tune(monkeypatch, unrolled_nodes=(size + 1) // 2)
    assert loops(roots_and_squares, y=np.zeros(N), x=np.ones((N, 9))) == 0
    tune(monkeypatch, unrolled_nodes=(size - 1) // 2)
    assert loops(roots_and_squares, y=np.zeros(N), x=np.ones((N, 9))) == 2


def written(function: Callable[..., Any]) -> Body:
    """The body of a call on rows once its loops are unrolled, and no more."""
    program = Program(N)
    program.call(function, y=np.zeros(N), x=np.ones((N, 9)))
    names = [each.name for each in C_PASSES]
    return run_passes(C_PASSES[: names.index("unroll") + 1], program.kernel()).workunit.body
