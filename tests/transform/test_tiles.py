"""Tile contraction: temporaries of several axes an iteration, and when they must stay."""

from __future__ import annotations

import random
from collections.abc import Callable
from textwrap import indent
from typing import Any

import numpy as np
import pytest

from pyfuser.tuning.thresholds import DEFAULT
from tests.codegen.build import from_text
from tests.transform.build import Program, Temporary
from tests.transform.test_rows import arrays_of, contracted

TILES, M = 4, 3


def data(seed: int = 0, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-5, 9, shape or (TILES, M, M)).astype(float)


def fill(e, t, a, m):
    for i in range(m):
        for j in range(m):
            t[e][i][j] = a[e][i][j] * 2.0


def by_columns(e, t, a, m):
    for j in range(m):
        for i in range(m):
            t[e][i][j] = a[e][j][i] - 1.0


def row_by_row(e, t, a, m):
    for i in range(m):
        for j in range(m):
            t[e][i][j] = a[e][i][j]
        t[e][i][i] -= 0.5
        for j in range(m):
            t[e][i][j] += t[e][i][m - 1 - j]


def two_triangles(e, t, a, m):
    for i in range(m):
        for j in range(m):
            if j < i:
                t[e][i][j] = a[e][i][j]
            else:
                t[e][i][j] = a[e][j][i]


def written_out(e, t, a, m):
    for i in range(m):
        t[e][i][0] = a[e][i][0]
        t[e][i][1] = t[e][i][0] + a[e][i][1]
        t[e][i][2] = t[e][i][1] + a[e][i][2]


LEGAL = [fill, by_columns, row_by_row, two_triangles, written_out]


ILLEGAL = {  # in each trip of a loop over i
    "one triangle": "for j in range(i + 1): t[e][i][j] = a[e][i][j]",
    "all but a column": "for j in range(m - 1): t[e][i][j] = a[e][i][j]",
    "all but a row": "if i > 0:\n    for j in range(m): t[e][i][j] = a[e][i][j]",
    "all but the first trip": "for j in range(m): t[e][i][j] = a[e][i][j]",
    "the diagonal": "t[e][i][i] = a[e][i][i]",
    "a row ahead": "for j in range(m): t[e][i][j] = a[e][i][j]\nt[e][i][0] += t[e][(i + 1) % m][0]",
    "above first": "for j in range(m): t[e][j][i] = a[e][i][j] + t[e][i][j]",
    "by a local": "p: int = i // 2\nfor j in range(m): t[e][p][j] = a[e][i][j]",
    "some rows": "if a[e][i][0] > 0.0:\n    for j in range(m): t[e][i][j] = a[e][i][j]",
    "until large": """for j in range(m):
    if a[e][i][j] > 6.0: break
    t[e][i][j] = a[e][i][j]""",
    "of another": "for j in range(m): t[e][i][j] = a[e][i][j] + t[3 - e][i][j]",
}


def made_of(name: str) -> Callable[..., Any]:
    trips = "1, m" if name == "all but the first trip" else "m"
    body = indent(ILLEGAL[name], " " * 8)
    return from_text(f"def work(e, t, a, m):\n    for i in range({trips}):\n{body}\n")


def total(e, s, t, m):
    value: float = 0.0
    for i in range(m):
        for j in range(m):
            value += t[e][i][j] * (i + 2 * j + 1)
    s[e] = value + t[e][1][2]


def product(e, c, t, m):
    for i in range(m):
        for j in range(m):
            value: float = 0.0
            for k in range(m):
                value += t[e][i][k] * t[e][k][j]
            c[e][i][j] = value


def program(*makes: Callable[..., None]) -> Program:
    made, t = Program(TILES), Temporary(TILES, M, M)
    for n, make in enumerate(makes):
        made.call(make, t=t, a=data(n), m=M)
    made.call(total, s=np.zeros(TILES), t=t, m=M)
    made.call(product, c=np.zeros((TILES, M, M)), t=t, m=M)
    return made


@pytest.mark.parametrize("make", LEGAL)
def test_a_tile_between_loops_that_stay_apart_is_a_local_array(make: Callable[..., None]):
    made = program(make)
    assert contracted(made) == 1
    assert [len(a.values) for a in arrays_of(made.kernel())] == [M * M]


@pytest.mark.parametrize("name", ILLEGAL)
def test_a_tile_of_which_an_element_may_be_older_stays(name: str):
    """After the whole tile was stored the same loops are legal."""
    assert contracted(program(made_of(name))) == 0
    if name != "of another":
        assert contracted(program(fill, made_of(name))) == 1


@pytest.mark.parametrize(("m", "expected"), [(M, 1), (5, 0)])
def test_a_tile_that_is_read_afterwards_is_stored_at_the_end_if_registers_hold_it(m, expected):
    assert (m * m <= DEFAULT.row_registers) == bool(expected)
    made, t = Program(TILES), data(1, TILES, m, m)
    made.call(fill, t=t, a=data(0, TILES, m, m), m=m)
    made.call(total, s=np.zeros(TILES), t=t, m=m)
    assert contracted(made) == expected


def test_large_tiles_stay():
    for m, expected in ((16, 1), (17, 0)):
        assert (m * m <= DEFAULT.row_extent) == bool(expected)
        made, t = Program(TILES), Temporary(TILES, m, m)
        made.call(fill, t=t, a=data(0, TILES, m, m), m=m)
        made.call(total, s=np.zeros(TILES), t=t, m=m)
        assert contracted(made) == expected


def test_three_axes_and_another_layout():
    def three(e, t, a, m):
        for i in range(m):
            for j in range(m):
                for k in range(2):
                    t[i][k][e][j] = a[e][i][j] + k

    def summed(e, s, t, m):
        value: float = 0.0
        for k in range(2):
            for j in range(m):
                for i in range(m):
                    value += t[i][k][e][j]
        s[e] = value

    made, t = Program(TILES), Temporary(M, 2, TILES, M)
    made.call(three, t=t, a=data(), m=M)
    made.call(summed, s=np.zeros(TILES), t=t, m=M)
    assert contracted(made) == 1


# --------------------------------------------------------------------------- random tiles

OUTER = ["m", "m", "m", "m", "1, m", "m - 1", "0, m, 2"]
INNER = ["m", "m", "m", "m", "i, m", "i + 1", "m - 1", "e % m, m"]
PLACES = ["i][j", "i][j", "i][j", "j][i", "i][i", "i][0", "1][j", "m - 1 - i][j", "i][m - 1 - j",
          "(i + 1) % m][j"]  # fmt: skip
GUARDS = ["", "", "", "", "j > 0", "i > 0", "a[e][i][j] > 0.0"]


def random_workunit(rng: random.Random, number: int) -> Callable[..., Any]:
    lines = [f"def work{number}(e, t, u, a, m):"]
    for _ in range(rng.randint(1, 2)):
        lines.append(f"    for i in range({rng.choice(OUTER)}):")
        for _ in range(rng.randint(1, 2)):
            lines.append(f"        for j in range({rng.choice(INNER)}):")
            inside, guard = " " * 12, rng.choice(GUARDS)
            if guard:
                lines.append(f"{inside}if {guard}:")
                inside += " " * 4
            if rng.random() < 0.1:
                lines.append(f"{inside}if a[e][j][i] > 3.0:")
                lines.append(f"{inside}    {rng.choice(['break', 'continue'])}")
            target, source = rng.choice("ttu"), rng.choice("tuaaa")
            op = rng.choice(["=", "=", "=", "+="])
            into, of = rng.choice(PLACES), rng.choice(PLACES)
            lines.append(f"{inside}{target}[e][{into}] {op} 0.5 * {source}[e][{of}] + j")
        if rng.random() < 0.3:
            lines.append(f"        t[e][{rng.choice(('i][i', 'i][0', '0][i'))}] += 1.0")
    return from_text("\n".join([*lines, ""]))


def test_random_tiles_hold_what_they_did():
    rng = random.Random(7)
    found = 0
    for _ in range(150):
        arrays = [Temporary(TILES, M, M), Temporary(TILES, M, M)]
        made = Program(TILES)
        for temporary in arrays[: rng.randint(0, 2)]:
            made.call(rng.choice((fill, by_columns)), t=temporary, a=data(1), m=M)
        for number in range(rng.randint(1, 3)):
            t, u = rng.sample(arrays, 2)
            made.call(random_workunit(rng, number), t=t, u=u, a=data(2), m=M)
        made.call(product, c=np.zeros((TILES, M, M)), t=arrays[0], m=M)
        found += contracted(made)
    assert found > 40
