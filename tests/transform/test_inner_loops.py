"""Joining the inner loops of fused calls, and when not to."""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pykokkos as pk
import pytest

from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import For, Load, Update
from pyfuser.ir.visit import all_expressions, statements
from pyfuser.transform.inner_loops import fuse_inner_loops
from pyfuser.transform.kernel import Kernel
from tests.analysis.build import S, View, let, loop, workunit
from tests.codegen.build import case
from tests.transform.build import Program, Temporary

ROWS, COLUMNS = 3, 5


def loops(kernel: Kernel) -> int:
    return sum(isinstance(stmt, For) for stmt in statements(kernel.workunit.body))


def data(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-5, 9, (ROWS, COLUMNS)).astype(float)


def scale(i, b, a, m):
    for j in range(m):
        b[i][j] = 2.0 * a[i][j]


def add(i, c, a, b, m):
    for k in range(m):
        c[i][k] = a[i][k] + b[i][k]


def shifted(i, c, b, m):
    for j in range(1, m):
        c[i][j] = b[i][j - 1]


def previous(i, c, b, m):
    for j in range(m):
        if j > 0:
            c[i][j] = b[i][j - 1]


def following(i, c, b, m):
    for j in range(m):
        if j < m - 1:
            c[i][j] = b[i][j + 1]


def reverse(i, c, b, m):
    for j in range(m):
        c[i][j] = b[i][m - 1 - j]


def first_column(i, c, m):
    for _j in range(m):
        c[i][0] += 1.0


def read_first(i, d, c, m):
    for j in range(m):
        d[i][j] = c[i][0]


def total(i, acc, c, m):
    for j in range(m):
        acc += c[i][j]


def complex_total(i, acc: pk.Acc[pk.complex128], c, m):
    for j in range(m):
        acc += c[i][j]


def total_of_first(i, acc, c, m):
    for _j in range(m):
        acc += c[i][0]


def total_in_order(i, acc, c, m):
    for j in range(m):
        acc = acc + c[i][j]


def total_of_some(i, acc, c, m):
    for j in range(m):
        if j % 2 == 0:
            continue
        acc += c[i][j]


def stop_early(i, c, b, m):
    for j in range(m):
        if b[i][j] > 3.0:
            break
        c[i][j] = b[i][j]


def row_total(i, s, a, m):
    value: float = 0.0
    for j in range(m):
        value += a[i][j]
    s[i][0] = value


def by_row_total(i, c, s, a, m):
    whole: float = s[i][0]
    for j in range(m):
        c[i][j] = a[i][j] + whole


def test_equal_loops_are_joined_and_the_row_between_them_contracted():
    a, c, t = data(), data(1), Temporary(ROWS, COLUMNS)
    program = Program(ROWS)
    program.call(scale, b=t, a=a, m=COLUMNS)
    program.call(add, c=c, a=a, b=t, m=COLUMNS)
    kernel = program.check()
    assert loops(kernel) == 1
    assert {param.sym.name for param in kernel.workunit.params} == {"a", "m", "c"}


def test_a_live_row_is_stored_and_not_loaded_again():
    a, b, c = data(), data(1), data(2)
    program = Program(ROWS)
    program.call(scale, b=b, a=a, m=COLUMNS)
    program.call(add, c=c, a=a, b=b, m=COLUMNS)
    kernel = program.check()
    assert loops(kernel) == 1
    loaded = {e.view.name for e in all_expressions(kernel.workunit.body) if isinstance(e, Load)}
    assert loaded == {"a"}


@pytest.mark.parametrize("reader", [previous, following, reverse])
def test_another_element_of_the_row_keeps_loops_apart(reader: Callable[..., None]):
    a, b, c = data(), data(1), data(2)
    program = Program(ROWS)
    program.call(scale, b=b, a=a, m=COLUMNS)
    program.call(reader, c=c, b=b, m=COLUMNS)
    assert loops(program.check()) == 2


def test_other_bounds_keep_loops_apart():
    a, b, c = data(), data(1), data(2)
    program = Program(ROWS)
    program.call(scale, b=b, a=a, m=COLUMNS)
    program.call(shifted, c=c, b=b, m=COLUMNS)
    assert loops(program.check()) == 2


def test_one_element_for_all_trips_keeps_loops_apart():
    c, d = data(1), data(2)
    program = Program(ROWS)
    program.call(first_column, c=c, m=COLUMNS)
    program.call(read_first, d=d, c=c, m=COLUMNS)
    assert loops(program.check()) == 2


def test_a_later_write_of_what_the_first_loop_reads_at_another_place():
    b, c = data(), data(1)
    program = Program(ROWS)
    program.call(following, c=c, b=b, m=COLUMNS)
    program.call(scale, b=b, a=c, m=COLUMNS)
    assert loops(program.check()) == 2


def test_a_sum_shares_the_loop_of_a_map():
    a, b = data(), data(1)
    program = Program(ROWS)
    program.call(scale, b=b, a=a, m=COLUMNS)
    program.call(total, "reduce", c=b, m=COLUMNS)
    kernel = program.check()
    assert loops(kernel) == 1
    loaded = {e.view.name for e in all_expressions(kernel.workunit.body) if isinstance(e, Load)}
    assert loaded == {"a"}


def test_a_sum_of_other_elements_keeps_to_itself():
    a, b = data(), data(1)
    program = Program(ROWS)
    program.call(scale, b=b, a=a, m=COLUMNS)
    program.call(total_of_first, "reduce", c=b, m=COLUMNS)
    assert loops(program.check()) == 2


@pytest.mark.parametrize("reader", [total_in_order, total_of_some, row_total])
def test_a_value_that_passes_from_trip_to_trip_keeps_to_itself(reader: Callable[..., None]):
    a, b, s = data(), data(1), data(2)
    program = Program(ROWS)
    program.call(scale, b=b, a=a, m=COLUMNS)
    if reader is row_total:
        program.call(reader, s=s, a=b, m=COLUMNS)
    else:
        program.call(reader, "reduce", c=b, m=COLUMNS)
    assert loops(program.check()) == 2


def test_a_sum_keeps_apart_from_a_value_that_passes_from_trip_to_trip():
    a, b, s = data(), data(1), data(2)
    program = Program(ROWS)
    program.call(total, "reduce", c=b, m=COLUMNS)
    program.call(row_total, s=s, a=a, m=COLUMNS)
    assert loops(program.check()) == 2


def test_a_sum_of_complex_numbers_keeps_to_itself():
    a, b = data().astype(complex), data(1).astype(complex)
    program = Program(ROWS)
    program.call(scale, b=b, a=a, m=COLUMNS)
    program.call(complex_total, "reduce", c=b, m=COLUMNS)
    assert loops(program.check()) == 2


def test_a_loop_that_may_end_early_keeps_to_itself():
    a, b, c = data(), data(1), data(2)
    program = Program(ROWS)
    program.call(stop_early, c=c, b=b, m=COLUMNS)
    program.call(scale, b=a, a=b, m=COLUMNS)
    assert loops(program.check()) == 2


def counted(i, s, a, m):
    for j in range(m):
        pk.atomic_add(s, [i, 0], a[i][j])


@pytest.mark.parametrize("first", [True, False])
def test_a_loop_with_atomics_keeps_to_itself(first: bool):
    a, b, s = data(), data(1), data(2)
    program = Program(ROWS)
    if first:
        program.call(counted, s=s, a=a, m=COLUMNS)
    program.call(scale, b=b, a=a, m=COLUMNS)
    if not first:
        program.call(counted, s=s, a=a, m=COLUMNS)
    assert loops(program.check()) == 2


def test_a_value_of_the_first_loop_that_the_second_needs_keeps_them_apart():
    a, s, c = data(), data(1), data(2)
    program = Program(ROWS)
    program.call(row_total, s=s, a=a, m=COLUMNS)
    program.call(by_row_total, c=c, s=s, a=a, m=COLUMNS)
    assert loops(program.check()) == 2


def shared_by_a_team(team: pk.TeamMember, c, b, a, m):
    j: int = team.league_rank()

    def one(i: int):
        b[j][i] = a[j][i] * 2.0

    def two(i: int):
        c[j][i] = b[j][i] + 1.0

    pk.parallel_for(pk.TeamThreadRange(team, m), one)
    pk.parallel_for(pk.TeamThreadRange(team, m), two)


def partly_shared(team: pk.TeamMember, c, b, a, m):
    j: int = team.league_rank()

    def one(i: int):
        b[j][i] = a[j][i] * 2.0

    pk.parallel_for(pk.TeamThreadRange(team, m), one)
    for i in range(m):
        c[j][i] = b[j][i] + 1.0


def shared_later(team: pk.TeamMember, c, b, a, m):
    j: int = team.league_rank()

    def two(i: int):
        c[j][i] = b[j][i] + 1.0

    for i in range(m):
        b[j][i] = a[j][i] * 2.0
    pk.parallel_for(pk.TeamThreadRange(team, m), two)


@pytest.mark.parametrize(
    ("function", "shared"),
    [(shared_by_a_team, True), (partly_shared, False), (shared_later, False)],
)
def test_a_loop_is_shared_if_both_were(function: Callable[..., None], shared: bool):
    team = case(
        function, [ROWS], lambda: [data(), data(1), data(2), COLUMNS], team_size=1, widened=False
    )
    joined = [
        s for s in statements(fuse_inner_loops(team.kernel).workunit.body) if isinstance(s, For)
    ]
    assert [loop.shared for loop in joined] == [shared]


def test_overlapping_rows_keep_loops_apart():
    base, a = np.zeros((ROWS, COLUMNS + 1)), data()
    base[:] = np.arange(base.size).reshape(base.shape)
    program = Program(ROWS)
    program.call(scale, b=base[:, 1:], a=a, m=COLUMNS)
    program.call(add, c=base[:, :-1], a=a, b=a, m=COLUMNS)
    assert loops(program.check()) == 2


def test_other_rows_that_overlap_do_not_matter():
    base, a = np.zeros((ROWS, COLUMNS + 1)), data()
    program = Program(ROWS)
    program.call(scale, b=data(1), a=a, m=COLUMNS)
    program.call(scale, b=data(2), a=a, m=COLUMNS)
    program.call(first_column, c=base[:, 1:], m=COLUMNS)
    program.call(read_first, d=data(3), c=base[:, :-1], m=COLUMNS)
    assert loops(program.check()) == 3


@pytest.mark.parametrize(("first", "left"), [(True, 2), (False, 3)])
def test_one_of_two_rows_that_overlaps_a_third_keeps_loops_apart(first: bool, left: int):
    """The loop that reads the third may join that of the other row, if it is the next one."""
    base, a = np.zeros((ROWS, COLUMNS + 1)), data()
    rows = [base[:, 1:], data(1)] if first else [data(1), base[:, 1:]]
    program = Program(ROWS)
    for row in rows:
        program.call(scale, b=row, a=a, m=COLUMNS)
    program.call(read_first, d=data(2), c=base[:, :-1], m=COLUMNS)
    assert loops(program.check()) == left


def test_a_value_that_one_loop_adds_to():
    """What another one reads or adds to, or adds up in another order, keeps them apart."""
    i, m, x, y = S("i"), S("m"), View("x", 2), View("y", 2)
    s, t = S("s", DType.FLOAT64), S("t", DType.FLOAT64)

    def adds(j: S) -> Any:
        return Update("+", s.sym, (), x[i, j].node)

    def adds_more(j: S) -> Any:
        return Update("+", s.sym, (), y[i, j].node)

    def adds_elsewhere(j: S) -> Any:
        return Update("+", t.sym, (), x[i, j].node)

    def scales(j: S) -> Any:
        return y[i, j] << 2.0 * x[i, j]

    def uses(j: S) -> Any:
        return y[i, j] << s * x[i, j]

    def loops_inside(j: S) -> Any:
        return loop(S("k"), 0, 3, [scales(j)])

    def left(*parts: Callable[[S], Any]) -> int:
        variables = [S("j") for _ in parts]
        loops = [loop(j, 0, m, [part(j)]) for j, part in zip(variables, parts, strict=True)]
        body = [let(s, 1.0), let(t, 1.0), *loops, y[i, 0] << s + t]
        unit = workunit("w", [i], [x, y, m], body)
        kernel = case(unit, [ROWS], lambda: [data(), data(1), COLUMNS], widened=False).kernel
        return sum(isinstance(stmt, For) for stmt in fuse_inner_loops(kernel).workunit.body)

    assert left(adds, adds_elsewhere) == left(adds, scales) == left(scales, adds) == 1
    assert left(adds, uses) == left(uses, adds) == left(adds, adds_more) == 2
    assert left(adds, loops_inside) == left(loops_inside, adds) == 2
    assert left(scales, loops_inside) == 1


SUBSCRIPTS = ["j", "j", "j", "j", "(j + 1) % m", "m - 1 - j", "0", "i"]


def random_workunit(rng: random.Random, number: int, reduces: bool = False) -> Callable[..., Any]:
    lines = [f"def work{number}(i, {'acc, ' if reduces else ''}x, y, z, m):"]
    for _ in range(rng.randint(1, 2)):
        lines.append(f"    for j in range({rng.choice(['m', 'm', 'm', 'm - 1'])}):")
        for _ in range(rng.randint(1, 2)):
            target, left, right = rng.choice("xyz"), rng.choice("xyz"), rng.choice("xyz")
            a, b, c = (rng.choice(SUBSCRIPTS) for _ in range(3))
            op = rng.choice(["=", "=", "+="])
            if reduces and rng.random() < 0.7:
                lines.append(f"        acc += {left}[i][{b}] + 0.5 * {right}[i][{c}]")
                continue
            lines.append(f"        {target}[i][{a}] {op} {left}[i][{b}] + 0.5 * {right}[i][{c}]")
    text = "\n".join(lines) + "\n"
    name = f"<inner loops {number} {reduces}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    scope: dict[str, Any] = {}
    exec(compile(text, name, "exec"), scope)
    return scope[f"work{number}"]


def test_random_loops_compute_what_they_did():
    rng = random.Random(12)
    joined = 0
    for _ in range(250):
        arrays = [data(k) for k in range(3)]
        if rng.random() < 0.4:
            arrays[rng.randrange(3)] = Temporary(ROWS, COLUMNS)  # type: ignore[call-overload]
        program = Program(ROWS)
        for number in range(rng.randint(2, 3)):
            x, y, z = rng.choices(arrays, k=3)
            program.call(random_workunit(rng, number), x=x, y=y, z=z, m=COLUMNS)
        if rng.random() < 0.5:
            x, y, z = rng.choices(arrays, k=3)
            last = random_workunit(rng, 3, reduces=True)
            program.call(last, "reduce", x=x, y=y, z=z, m=COLUMNS)
        before = sum(isinstance(s, For) for c in program.calls for s in statements(c.workunit.body))
        joined += before - loops(program.check())
    assert joined > 70
