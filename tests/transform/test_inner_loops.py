"""Joining the inner loops of fused calls, and when not to."""

from __future__ import annotations

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
from tests.codegen.build import case, from_text
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


def counted(i, s, a, m):
    for j in range(m):
        pk.atomic_add(s, [i, 0], a[i][j])


MEMORY = np.arange(ROWS * (COLUMNS + 1.0)).reshape(ROWS, COLUMNS + 1)


def program(*calls: tuple[Callable[..., None], str]) -> Program:
    """Calls with arrays for their parameters; "t" is a temporary, "low" and "high" overlap."""
    arrays = {name: data(n) for n, name in enumerate("abcdes")}
    arrays |= {"t": Temporary(ROWS, COLUMNS), "low": MEMORY[:, :-1], "high": MEMORY[:, 1:]}
    arrays |= {"z": data().astype(complex), "w": data(1).astype(complex)}
    made = Program(ROWS)
    for function, given in calls:
        names = function.__code__.co_varnames[1 : function.__code__.co_argcount - 1]
        views = [name for name in names if name != "acc"]
        bound = dict(zip(views, map(arrays.__getitem__, given.split()), strict=True))
        made.call(function, "reduce" if "acc" in names else "for", **bound, m=COLUMNS)
    return made


SCALED = (scale, "b a")
LOOPS = {
    "equal": ([SCALED, (add, "c a b")], 1),
    "the element before": ([SCALED, (previous, "c b")], 2),
    "the next element": ([SCALED, (following, "c b")], 2),
    "the other way round": ([SCALED, (reverse, "c b")], 2),
    "other bounds": ([SCALED, (shifted, "c b")], 2),
    "one element for all trips": ([(first_column, "c"), (read_first, "d c")], 2),
    "read at another place before": ([(following, "c b"), (scale, "b c")], 2),
    "a sum": ([SCALED, (total, "b")], 1),
    "a sum of other elements": ([SCALED, (total_of_first, "b")], 2),
    "a sum in order": ([SCALED, (total_in_order, "b")], 2),
    "a sum of some": ([SCALED, (total_of_some, "b")], 2),
    "a sum of a row": ([SCALED, (row_total, "s b")], 2),
    "a sum and one of a row": ([(total, "b"), (row_total, "s a")], 2),
    "a complex sum": ([(scale, "w z"), (complex_total, "w")], 2),
    "may end early": ([(stop_early, "c b"), (scale, "a b")], 2),
    "atomics first": ([(counted, "s a"), SCALED], 2),
    "atomics": ([SCALED, (counted, "s a")], 2),
    "needs what the first adds up": ([(row_total, "s a"), (by_row_total, "c s a")], 2),
    "overlapping rows": ([(scale, "high a"), (add, "low a a")], 2),
    "other rows that overlap": (
        [SCALED, (scale, "c a"), (first_column, "high"), (read_first, "d low")], 3,
    ),
    "the first of two rows overlaps": ([(scale, "high a"), SCALED, (read_first, "c low")], 2),
    "the second of two rows overlaps": ([SCALED, (scale, "high a"), (read_first, "c low")], 3),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_loops_that_are_left(name: str) -> None:
    """A loop that may not join its neighbour may still be joined by the next one."""
    calls, left = LOOPS[name]
    assert loops(program(*calls).check()) == left


@pytest.mark.parametrize("calls", [[SCALED, (add, "c a b")], [SCALED, (total, "b")]])
def test_a_live_row_is_stored_and_not_loaded_again(calls: Any) -> None:
    kernel = program(*calls).check()
    loaded = {e.view.name for e in all_expressions(kernel.workunit.body) if isinstance(e, Load)}
    assert loaded == {"a"}


def test_the_row_between_joined_loops_is_contracted() -> None:
    kernel = program((scale, "t a"), (add, "c a t")).check()
    assert {param.sym.name for param in kernel.workunit.params} == {"a", "m", "c"}


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
    return from_text("\n".join([*lines, ""]))


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
