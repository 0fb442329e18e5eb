"""Loops over an index that is divided run as rows: whole ones, whatever lies around them."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pykokkos as pk
import pytest

from pyfuser.ir.visit import map_body, statements
from pyfuser.nest.build import nest_of
from pyfuser.nest.nodes import Run
from pyfuser.nest.passes.split_conditions import split_conditions
from pyfuser.nest.passes.split_rows import ENDS, split_rows
from pyfuser.pipeline import lowered
from tests.nest.harness import Sample, assert_interpreted, function_of, spec_for
from tests.nest.interpret import interpret

PARTS = (
    "i % m",
    "i // m",
    "(i // m) % 4",
    "i // (4 * m)",
    "i % (m * 4)",
    "plane // m",
    "plane % m",
    "i - plane",
    "i // five",
    "i % n",
    "row - 1 if row > 0 else row",
    "max(column - 1, 0)",
    "min(column + 2, m - 1)",
    "(column + m - 1) % m",
    "column - 1 if column > 0 else column + m - 1",
    "i - 1 if column > 0 else i",
    "row + column",
)
GUARDS = ("column > 0", "column < m - 1", "row > 0", "i >= m", "i < n - m", "plane > 3")


def random_text(rng: random.Random) -> str:
    """The text of a body that divides its index."""
    lines = ["row: int = i // m", "column: int = i % m", "plane: int = i % (4 * m)"]
    rng.shuffle(lines)
    lines += ["s: float = 0.0"]
    for _ in range(rng.randint(1, 3)):
        term = f"s += x[({rng.choice(PARTS)}) % 60] * {rng.choice(('1.0', '0.5', 'x[i]'))}"
        guard = rng.choice((*GUARDS, "", ""))
        lines.append(f"if {guard}:\n    {term}" if guard else term)
    if rng.random() < 0.3:
        lines.append("for t in range(-2, 3):\n    s += x[min(max(column + t, 0), m - 1)]")
    return "\n".join([*lines, f"v[i] = s{rng.choice(('', ' + row', ' * w[column]'))}"])


def test_random_bodies() -> None:
    """Of any lengths, which may divide each other or not, from any beginning."""
    done: Counter[str] = Counter()
    for seed in range(60):
        rng = random.Random(seed)
        sample = Sample(function_of(f"rows_{seed}", random_text(rng)), frozenset())
        n, m = rng.choice(((60, 4), (60, 5), (57, 7), (60, 20), (40, 64), (33, 3)))
        done.update(assert_interpreted(sample.case(n, m, rng.choice((0, 0, 1, 4, 9))), seed))
    assert done["split-rows"] > 40
    assert done["split-conditions"] > 8


def nest(text: str, **options: object) -> object:
    sample = Sample(function_of("given", text), frozenset(), **options)  # type: ignore[arg-type]
    return lowered(nest_of(spec_for(sample.case())))


@pytest.mark.parametrize(
    ("text", "splits"),
    [
        ("y[i] = x[i] * w[i % m]", True),
        ("y[i] = x[i] * w[i % 20]", True),
        ("y[i] = x[i] * w[i % 3]", False),  # too short to gain
        ("q: int = x[i] * 9\ny[i] = x[i] * w[(q + i) % m]", False),  # not of the index
        ("q: int = m + x[i] * 3\ny[i] = x[i] * w[i % q]", False),  # another in each iteration
        ("i += 1\ny[i] = x[i % m]", False),
        ("y[i] = x[i] * w[int(i / 20.0)]", False),
        ("y[i] = x[i] * w[i % int(box * 10.0)]", True),
        ("y[i] = x[i] * w[i % (m + 1)]", True),
        ("y[i] = x[i] * w[i % (n // m)]", False),  # may trap
        ("y[i] = x[i] * w[i % label[i]]", False),
        ("s: float = 0.0\nfor t in range(i % m):\n    s += x[t]\ny[i] = s", False),
        ("y[i] = x[i] * x[i] + x[i] * x[i + 1] + sqrt(x[i + (i % m > 90)])", True),
    ],
)
def test_what_runs_as_rows(text: str, splits: bool) -> None:
    assert ("split-rows" in nest(text).passes) is splits  # type: ignore[attr-defined]


def test_a_divisor_that_is_cut_to_fewer_bits() -> None:
    """Its value is not that of the scalar."""
    text = "y[i] = x[i] * w[i % pk.uint8(m)]"
    found = function_of("given", text)
    found.__globals__["pk"] = pk
    assert_interpreted(Sample(found, frozenset()).case(700, 256 + 40))


def test_what_stays_as_it_is() -> None:
    """Checked and serial loops, and sums, keep the order of their iterations."""
    text = "y[i] = x[i] * w[i % m]"
    assert not nest(text, execution="Serial").passes  # type: ignore[attr-defined]
    spec = spec_for(Sample(function_of("given", text), frozenset()).case())
    checked = nest_of(replace(spec, sites=()))
    assert split_rows(checked) is checked


def test_every_run_is_needed() -> None:
    """Of bodies that ask for nothing, for the column, and for the row as well."""
    missing = Counter[tuple[int, int]]()
    for text in (
        "y[i] = x[i] * w[i % m]",
        "y[i] = x[i - 1 if i % m > 0 else i] + x[i + 1 if i % m < m - 1 else i]",
        "y[i] = x[i - 1 if i % m > 20 else i]",  # inside, but for more than an end
        "y[i] = x[i - m if i // m > 1 else i] + x[i - 1 if i % m > 0 else i]",
        "y[i] = x[i - m if i // m > 1 else i] + x[i - 1 if i % m > 20 else i]",
    ):
        sample = Sample(function_of("given", text), frozenset())
        for n, m, begin in ((100, 7, 3), (9, 20, 0), (190, 45, 2)):
            given = sample.case(n, m, begin)
            made = split_rows(split_conditions(nest_of(spec_for(given, small=True))))
            *others, loop = made.functions
            runs = [s for s in statements(loop.body) if isinstance(s, Run)]
            expected = given.interpreted()[0]
            for number, run in enumerate(runs):
                body = map_body(loop.body, None, lambda s, run=run: () if s is run else s)
                less = replace(made, functions=(*others, replace(loop, body=body)))
                space, found = given.kernel.space, given.arguments()
                interpret(less, space.begin, space.end, found, number)
                pairs = zip(found, expected, strict=True)
                missing[len(runs), number] += not all(np.array_equal(a, b) for a, b in pairs)
    assert {count for count, _ in missing} == {4, 8, 9}
    assert all(missing.values()), missing


def test_columns_are_split_off() -> None:
    """Within a row, conditions on the column are asked at its ends alone."""
    found = nest("y[i] = x[i - 1 if i % m > 0 else i] + x[i + 1 if i % m < m - 1 else i]")
    assert ENDS in {f.name for f in found.functions}  # type: ignore[attr-defined]
