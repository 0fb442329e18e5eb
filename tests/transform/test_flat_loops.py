"""Flat loops over small matrices become loops over rows and columns; others stay."""

from __future__ import annotations

import linecache
import random
from dataclasses import replace

import numpy as np
import pytest

from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Binary, Body, For, Workunit
from pyfuser.ir.reference.interpret import interpret
from pyfuser.ir.verify import verify
from pyfuser.ir.visit import all_expressions, statements
from pyfuser.lower.lower import ScalarType, ViewType, lower
from pyfuser.transform.flat_loops import SHORT, split

N = 3


def unit_of(text: str) -> Workunit:
    lines = "".join(f"    {line}\n" for line in text.strip("\n").split("\n"))
    source = f"def work(i, y, x, m):\n    s: int = 0\n{lines}    y[i] += s\n"
    linecache.cache["<flat>"] = (len(source), None, source.splitlines(keepends=True), "<flat>")
    names: dict[str, object] = {"pk": pk}
    exec(compile(source, "<flat>", "exec"), names)
    types = {"y": ViewType(DType.INT64, 1), "x": ViewType(DType.INT32, 1)}
    scalar = {"m": ScalarType(DType.INT32)}
    return lower(names["work"], "for", 1, types | scalar).workunit  # type: ignore[arg-type]


def loops(body: Body) -> list[int]:
    """The trips of the loops over ranges."""
    return [s.stop.value for s in statements(body) if isinstance(s, For)]  # type: ignore[union-attr]


def results(unit: Workunit) -> list[int]:
    y, x = np.zeros(N, np.int64), np.arange(5000, dtype=np.int32) * 3 % 7919
    interpret(unit, "for", (0,), (N,), [y, x, 5])
    return y.tolist()


def check(text: str) -> Workunit:
    unit = unit_of(text)
    made = replace(unit, body=split(unit.body))
    verify(made)
    assert results(made) == results(unit)
    return made


SPLIT = {
    "rows": ("for k in range(12):\n    s = s * 3 + x[(k // 4) * 7 + k % 4]", [3, 4]),
    "also flat": ("for k in range(12):\n    s = s * 3 + x[(k // 4) * 7] + k", [3, 4]),
    "three lengths": (
        "for k in range(24):\n    s = s * 3 + x[k // 12 + 5 * (k // 4 % 3) + 50 * (k % 4)]",
        [2, 3, 4],
    ),
    "a remainder by two lengths": (
        "for k in range(24):\n    s = s * 3 + x[k % 12 + 100 * (k % 4)]", [2, 3, 4],
    ),
    "skipping": (
        "for k in range(8):\n    if x[k // 2] % 3 == 0:\n        continue\n    s = s * 5 + k % 2",
        [4, 2],
    ),
    "long": ("for k in range(200):\n    s = s * 3 + x[k // 10] * (k % 10)", [20, 10]),
}  # fmt: skip

WHOLE = {
    "no divisor": "for k in range(10):\n    s = s * 3 + x[k // 4] + k % 4",
    "as long as the loop": "for k in range(4):\n    s = s * 3 + x[k // 4] + k % 4",
    "not from 0": "for k in range(4, 16):\n    s = s * 3 + x[k // 4] + k % 4",
    "backwards": "for k in range(11, -1, -1):\n    s = s * 3 + x[k // 4] + k % 4",
    "by steps": "for k in range(0, 24, 2):\n    s = s * 3 + x[k // 4] + k % 4",
    "of no known length": "for k in range(m):\n    s = s * 3 + x[k // 5] + k % 5",
    "by no known length": "for k in range(10):\n    s = s * 3 + x[k // m] + k % m",
    "two lengths": "for k in range(12):\n    s = s * 3 + x[k // 4] + k % 6",
    "by one": "for k in range(12):\n    s = s * 3 + x[k // 1] + k % 1",
    "by less than 0": "for k in range(12):\n    s = s * 3 + x[(k // -4) + 9] + k % -4",
    "left": "for k in range(12):\n    s = s * 3 + x[k // 4]\n    if s % 5 == 3:\n        break",
    "changed": "for k in range(12):\n    s = s * 3 + x[k // 4] + k % 4\n    k = 0",
    "something else": "for k in range(12):\n    s = s * 3 + x[(k + 1) // 4] + (k + 1) % 4",
    "long, and read flat": f"for k in range({2 * SHORT}):\n    s = s * 3 + x[k] * (k % 4)",
}


@pytest.mark.parametrize("text, trips", SPLIT.values(), ids=SPLIT)
def test_a_flat_loop_becomes_loops_over_rows_and_columns(text, trips):
    made = check(text)
    assert loops(made.body) == trips
    assert not any(isinstance(e, Binary) and e.op in "/%" for e in all_expressions(made.body)) or (
        "skipping" in text or "continue" in text
    )


@pytest.mark.parametrize("text", WHOLE.values(), ids=WHOLE)
def test_other_loops_stay(text):
    unit = unit_of(text)
    assert split(unit.body) == unit.body


@pytest.mark.parametrize("seed", range(60))
def test_any_loop_computes_the_same(seed):
    rng = random.Random(seed)

    def term(index: str) -> str:
        divisor = rng.choice([1, 2, 3, 4, 4, 6, 8, 12])
        part = rng.choice([f"({index} // {divisor})", f"({index} % {divisor})", index])
        return f"{rng.randrange(1, 9)} * {part}"

    trips = rng.choice([4, 8, 12, 24, 36, 96])
    subscript = " + ".join(term(rng.choice(["k", "k", "(k // 2)"])) for _ in range(3))
    text = f"for k in range({trips}):\n    s = (s * 3 + x[{subscript}]) % 99991"
    if rng.random() < 0.4:
        text += f"\n    for j in range(6):\n        s += {term('k')} - {term('j')}"
    if rng.random() < 0.2:
        leave = rng.choice(["break", "continue"])
        text += f"\n    if s % {rng.randrange(2, 9)} == 1:\n        {leave}"
    check(text)


@pk.workunit
def product(team, y, x, d):
    e: int = team.league_rank()
    local: pk.ScratchView2D[float] = pk.ScratchView2D(team.team_scratch(0), 3, 4)

    def fetch(k: int):
        local[k // 4][k % 4] = x[e][k // 4][k % 4]

    pk.parallel_for(pk.TeamThreadRange(team, 12), fetch)
    team.team_barrier()

    def multiply(k: int):
        total: float = 0.0
        for b in range(4):
            total += d[k % 4][b] * local[k // 4][b]
        y[e][k // 4][k % 4] = total

    pk.parallel_for(pk.TeamThreadRange(team, 12), multiply)


def test_a_team_that_shares_a_matrix_by_a_flat_range():
    rng = np.random.default_rng(1)
    y, x, d = pk.View([50, 3, 4], pk.double), pk.View([50, 3, 4], pk.double), pk.View([4, 4], float)
    x.data[:], d.data[:] = rng.integers(-9, 9, (50, 3, 4)), rng.integers(-9, 9, (4, 4))
    pk.parallel_for(pk.TeamPolicy(50, pk.AUTO), product, y=y, x=x, d=d)
    assert (y.data == np.einsum("ab,eqb->eqa", d.data, x.data)).all()
