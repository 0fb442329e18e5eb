"""Row contraction: temporaries that live in a local array, and when they must not."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from textwrap import indent
from typing import Any

import numpy as np
import pytest

from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Const, DeclareArray, For, Stmt
from pyfuser.ir.reference.interpret import interpret
from pyfuser.ir.visit import map_body, statements
from pyfuser.trace.memory import Region
from pyfuser.transform.kernel import Kernel
from pyfuser.transform.rows import _Facts, _Row
from pyfuser.transform.unroll import unroll
from pyfuser.tuning.thresholds import DEFAULT
from tests.analysis.build import S, View, expr
from tests.codegen.build import from_text
from tests.transform.build import Program, Temporary

ROWS, COLUMNS = 5, 6


def arrays_of(kernel: Kernel) -> list[DeclareArray]:
    return [s for s in statements(kernel.workunit.body) if isinstance(s, DeclareArray)]


def data(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-5, 9, (ROWS, COLUMNS)).astype(float)


def outcome(program: Program, kernel: Kernel) -> list[np.ndarray]:
    """What a kernel leaves in the arrays that are not temporaries."""
    regions = [a for call in program.calls for a in call.arguments if isinstance(a, Region)]
    buffers = {id(region.buffer): region.buffer for region in regions}
    before = {key: np.array(buffer.root) for key, buffer in buffers.items()}
    values = [program.calls[slot.call].arguments[slot.argument] for slot in kernel.slots]
    values = [value.array() if isinstance(value, Region) else value for value in values]
    space = program.space
    interpret(kernel.workunit, kernel.pattern, space.begin, space.end, values, order=1)
    after = [np.array(b.root) for b in buffers.values() if b.external]
    for key, buffer in buffers.items():
        buffer.root[...] = before[key]
    return after


def poisoned(kernel: Kernel) -> Kernel:
    """The kernel with something else in its local arrays to start with."""

    def poison(stmt: Stmt) -> Stmt:
        if not isinstance(stmt, DeclareArray):
            return stmt
        return replace(stmt, values=(Const(float("nan"), stmt.sym.dtype),) * len(stmt.values))

    workunit = kernel.workunit
    return replace(kernel, workunit=replace(workunit, body=map_body(workunit.body, None, poison)))


def contracted(program: Program) -> int:
    """How many rows the kernel has, after comparing it with the calls one by one.

    Nothing may depend on what rows hold before the iteration stores to them.
    """
    kernel = program.check()
    expected = outcome(program, kernel)
    for form in (poisoned(kernel), unroll(poisoned(kernel))):
        for found, wanted in zip(outcome(program, form), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)
    return len(arrays_of(kernel))


def double(i, b, a, m):
    for j in range(m):
        b[i][j] = 2.0 * a[i][j]


def double_reversed(i, b, a, m):
    for j in range(m):
        b[i][m - 1 - j] = 2.0 * a[i][j]


def clear_tail(i, b, m):
    for j in range(i % m + 1, m):
        b[i][j] = -1.0


def square(i, b, m):
    for j in range(m):
        b[i][j] *= b[i][j]


def row_sum(i, s, b, m):
    value: float = 0.0
    for j in range(m):
        value += b[i][j]
    s[i] = value


def subtract(i, c, b, s, m):
    for j in range(m):
        c[i][j] = b[i][j] - s[i]


def centred(program: Program, make: Callable[..., None], *between: Any, **first: Any) -> Program:
    """Calls that fill a temporary row, use it for a sum, and once more."""
    t, s, c = Temporary(ROWS, COLUMNS), Temporary(ROWS), data(2)
    program.call(make, b=t, **({"a": data(), "m": COLUMNS} | first))
    for function in between:
        program.call(function, b=t, m=COLUMNS)
    program.call(row_sum, s=s, b=t, m=COLUMNS)
    program.call(subtract, c=c, b=t, s=s, m=COLUMNS)
    return program


def test_a_row_between_loops_that_stay_apart_is_a_local_array():
    program = centred(Program(ROWS), double)
    assert contracted(program) == 1
    kernel = program.kernel()
    assert {param.sym.name for param in kernel.workunit.params} == {"a", "m", "c"}
    assert [len(a.values) for a in arrays_of(kernel)] == [COLUMNS]


def test_in_reverse_and_partly_overwritten_and_updated():
    assert contracted(centred(Program(ROWS), double_reversed, clear_tail, square)) == 1


@pytest.mark.parametrize("axis", [0, 1])
def test_a_row_may_lie_along_any_axis(axis: int):
    def fill(i, b, a, m):
        for j in range(m):
            b[j][i] = a[i][j]

    def total(i, s, b, m):
        value: float = 0.0
        for j in range(m):
            value += b[j][i]
        s[i] = value + b[0][i]

    transposed = Temporary(COLUMNS, ROWS)
    program = Program(ROWS)
    if axis:
        contracted_rows = centred(program, double)
    else:
        program.call(fill, b=transposed, a=data(), m=COLUMNS)
        program.call(total, s=np.zeros(ROWS), b=transposed, m=COLUMNS)
        contracted_rows = program
    assert contracted(contracted_rows) == 1


def kept(make: Callable[..., None], columns: int = COLUMNS, **first: Any) -> Program:
    """Calls that fill rows that are read afterwards, too, and sum them up."""
    b, a = np.full((ROWS, columns), 7.0), data()[:, :1] + np.arange(float(columns))
    program = Program(ROWS)
    program.call(make, b=b, **({"a": a, "m": columns} | first))
    program.call(row_sum, s=np.zeros(ROWS), b=b, m=columns)
    return program


def test_a_short_row_that_is_read_afterwards_is_stored_at_the_end():
    assert contracted(kept(double)) == 1
    assert contracted(kept(double, DEFAULT.row_registers)) == 1
    program, b = Program(ROWS), data(1)
    program.call(double_reversed, b=b, a=data(), m=COLUMNS)
    program.call(square, b=b, m=COLUMNS)
    program.call(clear_tail, b=b, m=COLUMNS)
    assert contracted(program) == 1


def test_a_long_row_that_is_read_afterwards_stays():
    assert contracted(kept(double, DEFAULT.row_registers + 1)) == 0


def test_a_row_that_is_stored_and_not_loaded_stays():
    program = Program(ROWS)
    program.call(double, b=data(1), a=data(), m=COLUMNS)
    program.call(row_sum, s=np.zeros(ROWS), b=data(2), m=COLUMNS)
    assert contracted(program) == 0


def test_a_row_that_is_read_afterwards_and_may_overlap_another_stays():
    memory = np.zeros((ROWS + 1, COLUMNS))
    program = Program(ROWS)
    program.call(double, b=memory[1:], a=memory[:-1], m=COLUMNS)
    program.call(row_sum, s=np.zeros(ROWS), b=memory[1:], m=COLUMNS)
    assert not arrays_of(program.kernel())


def test_tiles_along_any_axes_that_are_read_afterwards():
    def turn(i, b, a):
        for j in range(3):
            for k in range(2):
                b[k][i][j] = a[i][j] + k

    def trace(i, s, b):
        s[i] = b[0][i][0] + b[1][i][1] + b[0][i][2]

    program, b = Program(ROWS), np.zeros((2, ROWS, 3))
    program.call(turn, b=b, a=data())
    program.call(trace, s=np.zeros(ROWS), b=b)
    assert contracted(program) == 1


#: Bodies that do not store a whole row before they, or others, load of it.
ILLEGAL = {
    "all but the last": "for j in range(m - 1): b[i][j] = 2.0 * a[i][j]",
    "all but the last and one": "for j in range(m - 1): b[i][j] = a[i][j]\nb[i][i % m] = 1.0",
    "all but the first and one": "for j in range(1, m): b[i][j] = a[i][j]\nb[i][i % m] = 1.0",
    "every other": "for j in range(0, m, 2): b[i][j] = a[i][j]",
    "from its number": "for j in range(i % m, m): b[i][j] = a[i][j]",
    "some trips": "for j in range(i + 1): b[i][j] = a[i][j]",
    "if positive": "for j in range(m):\n    if a[i][j] > 0.0: b[i][j] = a[i][j]",
    "until negative": "for j in range(m):\n    if a[i][j] < 0.0: break\n    b[i][j] = a[i][j]",
    "but negative": "for j in range(m):\n    if a[i][j] < 0.0: continue\n    b[i][j] = a[i][j]",
    "adds up": "for j in range(m): b[i][j] += a[i][j]",
    "in the middle": "for j in range(1, m): b[i][j] = a[i][j]\nb[i][1] = b[i][0]",
    "from the right": "for j in range(m): b[i][j] = a[i][j] + b[i][m - 1 - j]",
    "another row": "for j in range(m): b[i][j] = a[i][j] + b[(i + 1) % 5][j]",
    "by a local that moves": """for j in range(1, m): b[i][j] = a[i][j]
at: int = 1
b[i][at & 3] = 1.0
at = 4
b[i][1] = b[i][at & 3]
b[i][0] = 2.0""",
}
#: And some whose subscripts may lie outside of the row for all we know.
UNBOUNDED = {
    "indirectly": "for j in range(m):\n    b[i][int(a[i][j] + 9.0) % m] = a[i][j]",
    "while positive": """j: int = 0
while j < m and a[i][j] > -9.0:
    b[i][j] = a[i][j]
    j += 1""",
    "by a counter": """at: int = 0
for j in range(m):
    b[i][at] = a[i][j]
    if a[i][j] > 0.0 and at < m - 1: at += 1""",
    "from the left": """for j in range(m):
    b[i][j] = a[i][j]
    if j > 0: b[i][j] = b[i][j - 1] + a[i][j]""",
}
EITHER = {
    name: from_text(f"def work(i, b, a, m):\n{indent(text, '    ')}\n")
    for name, text in {**ILLEGAL, **UNBOUNDED}.items()
}


@pytest.mark.parametrize("name", EITHER)
def test_a_row_of_which_an_element_may_be_older_stays(name: str):
    assert contracted(centred(Program(ROWS), EITHER[name])) == 0


@pytest.mark.parametrize("name", EITHER)
def test_a_row_that_is_read_afterwards_and_is_not_stored_whole_stays(name: str):
    assert contracted(kept(EITHER[name], a=data())) == 0


@pytest.mark.parametrize("name", sorted(EITHER.keys() - {"another row"}))
def test_after_a_whole_row_was_stored_the_same_loops_are_legal(name: str):
    t, s, c = Temporary(ROWS, COLUMNS), np.zeros(ROWS), data(2)
    program = Program(ROWS)
    program.call(double, b=t, a=data(1), m=COLUMNS)
    program.call(EITHER[name], b=t, a=data(), m=COLUMNS)
    program.call(row_sum, s=s, b=t, m=COLUMNS)
    program.call(subtract, c=c, b=t, s=s, m=COLUMNS)
    assert contracted(program) == (name not in UNBOUNDED)


def first_two(i, s, b, m):
    t = 0.0
    for j in range(2):
        t += b[i][j]
    s[i] = t


@pytest.mark.parametrize("name", ["all but the last", "all but the last and one"])
def test_what_a_row_holds_beside_what_is_stored_and_loaded_stays(name: str):
    b, program = data(1), Program(ROWS)
    program.call(EITHER[name], b=b, a=data(), m=COLUMNS)
    program.call(first_two, s=np.zeros(ROWS), b=b, m=COLUMNS)
    assert contracted(program) == 0


def test_what_a_tile_holds_beside_what_is_stored_and_loaded_stays():
    def some(i, b, a):
        for j in range(2):
            b[i][0][j] = a[i][j]
        b[i][1][0] = a[i][2]
        b[i][1][i % 2] = a[i][3]

    def load(i, s, b):
        s[i] = b[i][0][0] + b[i][0][1]

    program, b = Program(ROWS), np.full((ROWS, 2, 2), 7.0)
    program.call(some, b=b, a=data())
    program.call(load, s=np.zeros(ROWS), b=b)
    assert contracted(program) == 0


def test_rows_have_a_bound_together():
    most = DEFAULT.row_bytes // (8 * DEFAULT.row_extent)
    a, program = np.ones((ROWS, DEFAULT.row_extent)), Program(ROWS)
    for _ in range(most + 1):
        t = Temporary(ROWS, DEFAULT.row_extent)
        program.call(double, b=t, a=a, m=DEFAULT.row_extent)
        program.call(row_sum, s=np.zeros(ROWS), b=t, m=DEFAULT.row_extent)
    assert contracted(program) == most


def at_least_four(i, b, a):
    for j in range(4 + i % 2):
        b[i][j] = a[i][j]


def by_what_changes(i, b, a, q):
    b[i][q[i] & 3] = a[i][0]
    q[i] += 1
    b[i][0] = b[i][q[i] & 3]
    for j in range(1, 4):
        b[i][j] = a[i][j]


def of_four(i, s, b):
    s[i] = b[i][0] + b[i][1] - b[i][2] * b[i][3]


@pytest.mark.parametrize(("make", "rows"), [(at_least_four, 1), (by_what_changes, 0)])
def test_trips_and_places_that_differ_from_iteration_to_iteration(
    make: Callable[..., None], rows: int
):
    program, t = Program(ROWS), Temporary(ROWS, 5)
    more = {"q": np.arange(ROWS, dtype=np.int32)} if make is by_what_changes else {}
    program.call(make, b=t, a=data(), **more)
    program.call(of_four, s=np.zeros(ROWS), b=t)
    assert contracted(program) == rows


def test_values_that_a_loop_surely_takes():
    j, k, m = S("j"), S("k"), S("m")
    facts = _Facts((), {}, set(), frozenset(), {})
    row = _Row(View("x").sym, (0,), (9,), facts)
    ranges = {k.sym: (1, 2), m.sym: (5, 9)}
    most = DEFAULT.row_extent

    def values(start: Any, stop: Any, step: Any = 1) -> range | None:
        return row._exact_trips(
            For(j.sym, *(expr(e).node for e in (start, stop, step)), ()), ranges
        )

    assert values(0, 4) == range(4) and values(1, 9, 2) == range(1, 9, 2)
    assert values(0, m) == range(5)
    assert values(k, 4) is None and values(0, 4, k) is None and values(4, 0, -1) is None
    assert values(most, most + 2) == range(most, most + 2)
    assert values(0, most) == range(most) and values(0, most + 1) is None


def test_a_place_by_an_element_is_not_one_for_long():
    i, q = S("i"), View("q", dtype=DType.INT32)
    row = _Row(View("x").sym, (0,), (9,), _Facts((i.sym,), {}, set(), frozenset({i.sym}), {}))
    own, other = ((i & 3).node,), ((q[i] & 3).node,)
    assert row._with_store(own, frozenset(), {}) == {own}
    assert row._with_store(other, frozenset(), {}) == frozenset()


def test_both_sides_of_a_branch_store():
    def either(i, b, a, m):
        for j in range(m):
            if a[i][j] > 0.0:
                b[i][j] = a[i][j]
            else:
                b[i][j] = -1.0

    assert contracted(centred(Program(ROWS), either)) == 1


def test_a_view_that_may_overlap_another_stays():
    base = Temporary(ROWS, COLUMNS)
    program = Program(ROWS)
    program.call(double, b=base, a=data(), m=COLUMNS)
    shifted = Temporary(ROWS, COLUMNS)
    shifted.region = base.region._replace(
        offset=8, shape=(ROWS, COLUMNS // 2), strides=(8 * COLUMNS, 16)
    )
    program.call(row_sum, s=np.zeros(ROWS), b=base, m=COLUMNS)
    program.call(row_sum, s=np.zeros(ROWS), b=shifted, m=COLUMNS // 2)
    assert not arrays_of(program.kernel())
    alone = Temporary(ROWS, COLUMNS)
    program.call(double, b=alone, a=data(), m=COLUMNS)
    program.call(row_sum, s=np.zeros(ROWS), b=alone, m=COLUMNS)
    assert len(arrays_of(program.kernel())) == 1


def test_a_view_whose_elements_share_memory_stays():
    program = Program(ROWS)
    broadcast = Temporary(ROWS, COLUMNS)
    broadcast.region = broadcast.region._replace(strides=(8 * COLUMNS, 0))
    program.call(double, b=broadcast, a=data(), m=COLUMNS)
    program.call(row_sum, s=np.zeros(ROWS), b=broadcast, m=COLUMNS)
    assert contracted(program) == 0


def test_long_rows_and_rows_hardly_used_stay():
    for columns, used, expected in (
        (DEFAULT.row_extent, DEFAULT.row_extent, 1),
        (DEFAULT.row_extent + 1, DEFAULT.row_extent + 1, 0),
        (100, 49, 0),
        (100, 50, 1),
    ):
        t, a = Temporary(ROWS, columns), np.ones((ROWS, columns))
        program = Program(ROWS)
        program.call(double, b=t, a=a, m=used)
        program.call(row_sum, s=np.zeros(ROWS), b=t, m=used)
        program.call(subtract, c=np.zeros((ROWS, columns)), b=t, s=np.zeros(ROWS), m=used)
        assert contracted(program) == expected


SUBSCRIPTS = ["j"] * 4 + ["j + 1", "j - 1", "m - 1 - j", "0", "m - 1", "i % m", "(i + j) % m"]
RANGES = ["m", "m", "m", "m", "m", "1, m", "m - 1", "0, m, 2", "i % m", "i % m, m"]
GUARDS = ["", "", "", "", "j > 0", "w[i][j] > 0.0"]


def random_workunit(rng: random.Random, number: int) -> Callable[..., Any]:
    lines = [f"def work{number}(i, x, y, w, m):"]
    for _ in range(rng.randint(1, 2)):
        lines.append(f"    for j in range({rng.choice(RANGES)}):")
        for _ in range(rng.randint(1, 2)):
            inside = " " * 8
            guard = rng.choice(GUARDS)
            if guard:
                lines.append(f"{inside}if {guard}:")
                inside += " " * 4
            target, source = rng.choice("xxy"), rng.choice("xyw")
            a, b = (rng.choice(SUBSCRIPTS) for _ in range(2))
            op = rng.choice(["=", "=", "=", "+="])
            if rng.random() < 0.1:
                lines.append(f"{inside}if w[i][j] > 3.0:")
                lines.append(f"{inside}    {rng.choice(['break', 'continue'])}")
            lines.append(
                f"{inside}{target}[i + 1][{a} + 1] {op} 0.5 * {source}[i + 1][{b} + 1] + j"
            )
    return from_text("\n".join([*lines, ""]))


def test_random_rows_hold_what_they_did():
    """Rows with a margin, so that every subscript is inside; rows stored and not, in every way."""
    rng = random.Random(5)
    found = 0
    for _ in range(150):
        shape = ROWS + 1, COLUMNS + 2
        arrays = [Temporary(*shape), Temporary(*shape)]
        given = np.random.default_rng(1).integers(-5, 9, shape).astype(float)
        program = Program(ROWS)
        for temporary in arrays[: rng.randint(0, 2)]:
            program.call(fill, b=temporary, a=given, m=rng.choice([COLUMNS + 2, COLUMNS + 1]))
        for number in range(rng.randint(1, 3)):
            x, y = rng.choices(arrays, k=2)
            program.call(random_workunit(rng, number), x=x, y=y, w=given, m=COLUMNS)
        program.call(keep, c=np.zeros(shape), b=arrays[0], m=COLUMNS + 2)
        found += contracted(program)
    assert found > 20


def fill(i, b, a, m):
    for j in range(m):
        b[i + 1][j] = a[i][j]


def keep(i, c, b, m):
    for j in range(m):
        c[i][m - 1 - j] = b[i + 1][j]
