"""Loop distribution and speculation: what shares a loop, in which order, and that results stay."""
# ruff: noqa: F821

from __future__ import annotations

import math
import re
from itertools import count
from typing import Any

import numpy as np
import pytest

from pyfuser.codegen.cpu.unit import emit
from pyfuser.codegen.kernel import spec_of
from pyfuser.engine.native import prepare as compile_kernels
from pyfuser.ir import nodes
from pyfuser.ir.nodes import Sym
from pyfuser.ir.visit import statements
from pyfuser.nest.passes import distribute
from pyfuser.nest.passes.distribute import prepare
from pyfuser.nest.segments import Segment, expansion
from tests.codegen.build import Case, case
from tests.vendors import decide_with_maths

N = 1000  # several blocks and a remainder


@pytest.fixture(autouse=True)
def vector_maths(monkeypatch: pytest.MonkeyPatch) -> None:
    """The decisions of a machine that has vector maths, wherever the tests run."""
    decide_with_maths(monkeypatch, "exp", "log", "sin", "cos", "pow")


def split(given: Case, aliased: str = "") -> tuple[Segment, ...]:
    workunit = given.kernel.workunit
    uids = count(10**9)
    views = frozenset(p.sym for p in workunit.params if p.sym.name in aliased.split())
    indices = frozenset(workunit.indices)
    return prepare(workunit.body, views, indices, lambda name, dtype: Sym(name, next(uids), dtype))


def kinds(given: Case, aliased: str = "") -> str:
    return "".join("v" if s.vector else "s" for s in split(given, aliased))


def values() -> np.ndarray[Any, Any]:
    return np.random.default_rng(1).uniform(0.1, 2.0, N)


def keys() -> np.ndarray[Any, Any]:
    return np.random.default_rng(2).integers(0, 8, N, dtype=np.int32)


# --------------------------------------------------------------------------- what is cut


def deposit(i, x, density):
    x[i] = math.exp(x[i])
    cell: int = int(x[i])
    pk.atomic_add(density, [cell], 1.0)


def deposit_twice(i, x, y, density, other):
    pk.atomic_add(density, [int(x[i])], 1.0)
    y[i] = math.exp(y[i])
    pk.atomic_add(other, [int(y[i])], 1.0)


def before_and_after(i, x, y, n):
    scaled: float = math.exp(x[i])
    total: float = 0.0
    for k in range(n):
        total += scaled / (k + 1)
    y[i] = math.log(total) + scaled


def plain(i, x, y):
    y[i] = math.exp(x[i]) * x[i]


def poor(i, x, density):
    x[i] = x[i] + 1.0
    pk.atomic_add(density, [0], x[i])


def rows(i, x, n):
    first: float = x[i]
    for k in range(n):
        x[i] = x[i] + first * k


def atomic_operand(i, x, density):
    pk.atomic_add(density, [0], math.exp(x[i]))


def scattered(i, x, y, to):
    y[to[i]] = math.exp(x[i])


def stored_and_scattered(i, x, y, to):
    v: float = math.exp(x[i])
    x[i] = v
    y[to[i]] = v


def scattered_in_a_branch(i, x, y, to):
    v: float = math.exp(x[i])
    if v > 2.0:
        y[to[i]] = v


def scattered_between(i, x, y, to):
    y[to[i]] = x[i]
    x[i] = math.exp(x[i])
    y[to[i]] = math.sin(x[i])


def gathered(i, x, y, to):
    x[i] = math.exp(y[to[i]])


def gathered_by_choice(i, x, y, to):
    x[i] = math.exp(y[to[i]] if to[i] > 500 else x[i])


def gathered_alone(i, x, y, to):
    x[i] = y[to[i]] * 0.5 + 0.25 * x[i] * x[i] - 1.0 / (x[i] + 2.0) + y[i] * y[i] * x[i]


def of_long_integers(i, x, count):
    x[i] = math.exp(0.125 * count[i])


def of_integers(i, x, to):
    x[i] = math.exp(0.001 * to[i])


def to_long_integers(i, x, count):
    count[i] = math.exp(x[i])


def strided(i, x, y):
    y[2 * i + 1] = math.exp(x[i])


def places() -> np.ndarray[Any, Any]:
    return np.random.default_rng(3).permutation(N).astype(np.int32)


def places_case(function: Any) -> Case:
    return case(function, [N], lambda: [values(), np.zeros(N), places()])


def counts_case(function: Any) -> Case:
    return case(function, [N], lambda: [values(), keys().astype(np.int64)])


def deposit_case(function: Any = deposit) -> Case:
    return case(function, [N], lambda: [values(), np.zeros(10)])


def twice_case() -> Case:
    return case(deposit_twice, [N], lambda: [values(), values() + 1, np.zeros(10), np.zeros(30)])


def around_case() -> Case:
    return case(before_and_after, [N], lambda: [values(), np.zeros(N), 5])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (deposit_case(), "vs"),
        (twice_case(), "vs"),  # the exponential comes first: nothing in its way
        (around_case(), "vsv"),
        (deposit_case(atomic_operand), "vs"),
        (case(plain, [N], lambda: [values(), np.zeros(N)]), "v"),
        (places_case(scattered), "vs"),
        (places_case(stored_and_scattered), "vs"),
        (places_case(scattered_in_a_branch), "vs"),
        (places_case(scattered_between), "svs"),
        (places_case(gathered), "sv"),
        (places_case(gathered_by_choice), "v"),  # not every iteration may load it
        (places_case(gathered_alone), "v"),
        (counts_case(of_long_integers), "sv"),
        (counts_case(to_long_integers), "vs"),
        (case(of_integers, [N], lambda: [values(), places()]), "v"),
        (case(strided, [N], lambda: [values(), np.zeros(2 * N)]), "v"),
    ],
)
def test_kinds(given: Case, expected: str) -> None:
    assert kinds(given) == expected


@pytest.mark.parametrize(
    "given", [deposit_case(poor), case(rows, [N], lambda: [values(), 5])], ids=["atomic", "loop"]
)
def test_too_little_work_stays_in_one_loop(given: Case) -> None:
    (only,) = split(given)
    assert only.body == given.kernel.workunit.body


def test_statements_on_overlapping_views_keep_their_order() -> None:
    given = twice_case()
    assert kinds(given) == "vs"
    assert kinds(given, aliased="y density") == "svs"
    assert kinds(places_case(stored_and_scattered), aliased="x y") == "vs"
    assert kinds(places_case(gathered), aliased="x y") == "sv"


def spin(i, x, lock):
    x[i] = math.exp(x[i])
    while lock[0] > 0:
        lock[0] -= 1


def wait(i, x, lock, n):
    x[i] = math.exp(x[i])
    k: int = n
    while k > 0:
        k -= 1
    pk.atomic_add(lock, [0], 1)


def test_an_iteration_that_may_wait_for_another_is_not_cut() -> None:
    assert kinds(case(wait, [N], lambda: [values(), np.zeros(1, "int32"), 3])) == "vs"
    assert kinds(case(spin, [N], lambda: [values(), np.zeros(1, "int32")])) == "v"


def test_only_locals_that_cross_become_arrays() -> None:
    first, loop, last = split(around_case())
    assert [s.name for s in first.leaving] == ["scaled"]
    assert [s.name for s in loop.leaving] == ["total"]
    assert {s.name for s in last.arriving} == {"scaled", "total"}
    assert len(expansion((first, loop, last))) == 2


def row_first(i, x, y, n):
    t: List[float] = [0.0, 0.0, 0.0]
    for c in range(3):
        value: float = x[i]
        for k in range(n + i % 2):  # else strips run trip by trip
            value = value + x[i] / (c + k + 1)
        t[c] = 0.1 * value
    y[i] = math.exp(t[0]) + math.exp(t[1] - t[2])


def row_of_ones(i, x, y, n):
    t: List[float] = [1.0, 1.0, 1.0]
    for c in range(n):
        t[0] = t[0] + x[i] / (c + 1)
    y[i] = math.exp(0.1 * t[0]) + math.exp(0.1 * t[1] - t[2])


def row_looked_up(i, x, y, n):
    t: List[float] = [0.0, 0.0, 0.0]
    for c in range(n):
        t[c % 3] = t[c % 3] + x[i]
    y[i] = math.exp(0.1 * t[0]) + math.exp(0.1 * t[n % 3])


def row_case(function: Any) -> Case:
    return case(function, [N], lambda: [values(), np.zeros(N), 5])


def test_each_iteration_has_its_own_short_array() -> None:
    first, last = split(row_case(row_first))
    assert (first.vector, last.vector) == (False, True)
    assert [s.name for s in expansion((first, last))] == ["t"]
    assert "t_block[384]" in emit(spec_of(row_case(row_first).kernel))


def test_an_array_that_starts_at_anything_but_zeros_keeps_its_loop() -> None:
    assert kinds(row_case(row_of_ones)) == "v"


def test_a_long_array_keeps_its_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distribute, "MAX_ROW", 2)
    assert kinds(row_case(row_first)) == "v"


def cheap_index(i, x, y, n):
    place: int = i + 1
    scaled: float = math.exp(x[place])
    for k in range(n):
        y[place] += scaled * k


def test_what_follows_from_the_index_is_computed_again() -> None:
    parts = split(case(cheap_index, [N - 1], lambda: [values(), np.zeros(N), 5]))
    assert [s.name for s in expansion(parts)] == ["scaled"]
    repeated = parts[0].body[0]
    assert isinstance(repeated, nodes.Declare) and repeated.sym.name == "place"
    assert all(part.body[0] == repeated for part in parts)


# --------------------------------------------------------------------------- rows


def scaled_row(i, x, y, n):
    row: int = i
    total: float = 0.0
    for j in range(n):
        total += x[row][j] * x[row][j]
    inverse: float = 1.0 / math.sqrt(total / n + 1e-5)
    for k in range(n):
        x[row][k] = x[row][k] * inverse


def short_row(i, x, y, n):
    total: float = 0.0
    for j in range(8):
        total += x[i][j] * x[i][j]
    inverse: float = 1.0 / math.sqrt(total / n + 1e-5)
    for k in range(8):
        x[i][k] = x[i][k] * inverse


def another_row(i, x, y, n):
    total: float = 0.0
    for j in range(n):
        total += x[i][j] * x[i][j]
    inverse: float = 1.0 / math.sqrt(total / n + 1e-5)
    for k in range(n):
        y[i][k] = inverse


def shared_row(i, x, y, n):
    total: float = 0.0
    for j in range(n):
        total += x[0][j] * i
    inverse: float = 1.0 / math.sqrt(total * total / n + 1e-5)
    for k in range(n):
        y[i][k] = x[0][k] * inverse


def costly_between(i, x, y, n):
    total: float = 0.0
    for j in range(n):
        total += x[i][j] * x[i][j]
    inverse: float = math.pow(math.sin(total), 2.5) + math.cos(total)
    for k in range(n):
        x[i][k] = x[i][k] * inverse


def table_case(function: Any) -> Case:
    return case(function, [9], lambda: [table(), table(), 300])


def test_a_row_that_is_walked_along_again_stays_in_the_cache() -> None:
    assert kinds(table_case(scaled_row)) == "v"


@pytest.mark.parametrize("function", [short_row, another_row, shared_row, costly_between])
def test_other_loops_do_not_keep_a_segment_from_its_own(function: Any) -> None:
    """Rows of a block that stay near, and segments that are worth fetching rows again."""
    assert kinds(table_case(function)) == "svs"


# --------------------------------------------------------------------------- speculation


def scatter(i, hit, v, phi):
    angle: float = phi[i]
    if hit[i] == 1:
        v[i] = math.cos(angle) * v[i]


def guarded_load(i, hit, v, phi):
    if hit[i] == 1:
        v[i] = math.cos(phi[i])


def changed_operand(i, hit, v, phi):
    angle: float = phi[i]
    if hit[i] == 1:
        angle = angle * v[i]
        v[i] = math.cos(angle)


def many_calls(i, hit, v, phi):
    a: float = phi[i]
    if hit[i] == 1:
        v[i] = math.cos(a) + math.sin(a) + math.exp(a) + math.log(a) + math.cos(a + 1.0)


def chosen(i, hit, v, phi):
    v[i] = math.cos(phi[i]) if phi[i] > 1.5 else phi[i]


def chosen_unread(i, hit, v, phi):
    v[i] = math.cos(phi[i]) if hit[i] == 1 else 0.0


def scatter_case(function: Any) -> Case:
    return case(function, [N], lambda: [keys() % 2, values(), values() + 1])


def calls_in_branches(given: Case) -> int:
    (only,) = split(given)
    return sum(
        isinstance(e, nodes.Call)
        for branch in only.body
        if isinstance(branch, nodes.If)
        for s in statements(branch.then)
        for e in distribute.expressions(s)
    )


def test_a_safe_call_is_made_ahead_of_its_branch() -> None:
    assert calls_in_branches(scatter_case(scatter)) == 0


def test_a_safe_call_is_made_ahead_of_its_choice() -> None:
    """What is chosen was read by the condition; g++ is told to leave the call where it is."""
    given = scatter_case(chosen)
    assert [type(stmt) for stmt in split(given)[0].body] == [nodes.Declare, nodes.Store]
    assert "no-tree-sink" in emit(spec_of(given.kernel))


def test_a_call_of_what_may_be_outside_stays_behind_its_choice() -> None:
    given = scatter_case(chosen_unread)
    assert split(given)[0].body == given.kernel.workunit.body


@pytest.mark.parametrize("function", [guarded_load, changed_operand, many_calls])
def test_other_calls_stay(function: Any) -> None:
    given = scatter_case(function)
    assert calls_in_branches(given) > 0
    assert split(given)[0].body == given.kernel.workunit.body


# --------------------------------------------------------------------------- results


def several_sums(i, acc, x, y, n):
    scaled: float = math.exp(x[i])
    total: float = 0.0
    for k in range(n):
        total += scaled / (k + 1)
        acc += total
    y[i] = math.log(total) + scaled
    if y[i] > 1.0:
        acc += y[i]


def in_a_box(i, j, x, y, n):
    scaled: float = math.exp(x[i][j])
    for k in range(n):
        y[i][j] += scaled * k
    x[i][j] = math.log(y[i][j])


def table() -> np.ndarray[Any, Any]:
    return np.random.default_rng(3).uniform(0.1, 2.0, (9, 300))


RUN = {
    "row": row_case(row_first),
    "row of ones": row_case(row_of_ones),
    "row looked up": row_case(row_looked_up),
    "deposit": deposit_case(),
    "twice": twice_case(),
    "around": around_case(),
    "operand": deposit_case(atomic_operand),
    "index": case(cheap_index, [N - 1], lambda: [values(), np.zeros(N), 5]),
    "speculated": scatter_case(scatter),
    "chosen": scatter_case(chosen),
    "sums": case(several_sums, [N], lambda: [values(), np.zeros(N), 5], "reduce"),
    "row of a table": table_case(scaled_row),
    "costly": table_case(costly_between),
    "box": case(in_a_box, [9, 300], lambda: [table(), table(), 5]),
}


@pytest.mark.parametrize("name", RUN)
def test_results_are_the_interpreters(name: str) -> None:
    given = RUN[name]
    (launchable,) = compile_kernels([given.kernel])
    expected, results = given.interpreted()
    actual, found = given.run(launchable)
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)
    np.testing.assert_allclose(found, results, rtol=1e-12)


def test_a_serial_loop_is_not_cut() -> None:
    parallel, serial = (
        case(deposit, [N], lambda: [values(), np.zeros(10)], execution=execution)
        for execution in ("OpenMP", "Serial")
    )
    loops = [emit(spec_of(c.kernel)).count("for (int64_t") for c in (parallel, serial)]
    assert loops == [3, 1]  # a loop over blocks with two in it; the plain loop


def test_arrays_are_declared_for_a_block() -> None:
    source = emit(spec_of(around_case().kernel))
    assert re.findall(r"alignas\(64\) (\w+ \w+\[\d+\]);", source) == [
        "double scaled_block[128]",
        "double total_block[128]",
    ]
