"""While loops that count become loops over ranges; others stay."""

from __future__ import annotations

import linecache
import random
from dataclasses import replace

import numpy as np
import pytest

from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Body, For, While, Workunit
from pyfuser.ir.reference.interpret import interpret
from pyfuser.ir.verify import verify
from pyfuser.ir.visit import statements
from pyfuser.lower.lower import ScalarType, ViewType, lower
from pyfuser.transform.count_loops import counted

N, M = 9, 5


def unit_of(text: str, whole: DType = DType.INT32) -> Workunit:
    lines = "".join(f"    {line}\n" for line in text.strip("\n").split("\n"))
    source = f"def work(i, y, x, m, n):\n    v: int = 0\n    s: int = 0\n{lines}    y[i] = v\n"
    linecache.cache["<counts>"] = (len(source), None, source.splitlines(keepends=True), "<counts>")
    names: dict[str, object] = {}
    exec(compile(source, "<counts>", "exec"), names)
    types = {"y": ViewType(DType.INT32, 1), "x": ViewType(DType.INT32, 1)}
    return lower(
        names["work"], "for", 1, types | {"m": ScalarType(whole), "n": ScalarType(whole)}
    ).workunit  # type: ignore[arg-type]


def counts(body: Body) -> tuple[int, int]:
    """How many loops over ranges there are, and others."""
    found = [*statements(body)]
    return sum(isinstance(s, For) for s in found), sum(isinstance(s, While) for s in found)


def results(unit: Workunit, m: int, n: int) -> list[int]:
    y, x = np.zeros(N, np.int32), np.arange(40, dtype=np.int32) * 3 % 7
    interpret(unit, "for", (0,), (N,), [y, x, m, n])
    return y.tolist()


def check(unit: Workunit) -> Workunit:
    made = replace(unit, body=counted(unit))
    verify(made)
    for m in (-3, 0, 1, 4, 9):
        for n in (-2, 0, 3, 10):
            assert results(made, m, n) == results(unit, m, n), (m, n)
    return made


RANGES = {
    "counter": """
k: int = 0
while k < m:
    v += x[i + k]
    k += 1
""",
    "limit first": """
k: int = 0
while m > k:
    v += x[i + k]
    k += 1
""",
    "up to": """
k: int = 0
while k <= 5:
    v += x[i + k]
    k += 1
""",
    "down": """
k: int = m
while k > 0:
    v = 3 * v + k
    k -= 1
""",
    "down to": """
k: int = m
while k >= -1:
    v = 3 * v + k
    k -= 1
""",
    "two": """
k: int = i
while k < n and s < 6:
    v += x[k]
    k += 1
    s += 1
""",
    "both ways": """
k: int = i
while s < n and k > 0:
    v = v * 3 + k - s
    k -= 1
    s += 1
""",
    "another walks": """
k: int = i
while s < 4:
    v = v * 2 + x[k]
    k += 2
    s += 1
""",
    "two limits": """
k: int = i - 3
j: int = n
while k < m and j < 9:
    v = 2 * v + j
    j += 1
    k += 1
""",
    "read later": """
k: int = 1
while k < m:
    v += x[k]
    k += 1
v = v * 3 + k
""",
    "both later": """
k: int = 1
while k < m:
    v += s
    s -= 3
    k += 1
v = v * s + k
""",
    "goes on": """
k: int = 0
for j in range(3):
    while k < j + m:
        v = 2 * v + k
        k += 1
""",
    "begins again": """
for j in range(3):
    k: int = j
    while k < m:
        v = 2 * v + k
        k += 1
""",
    "of what was set": """
b: int = m
k: int = b
b = 7
while k < b:
    v = 2 * v + k
    k += 1
""",
    "of what is set": """
b: int = m + i
k: int = i - 2
while k < b:
    v = 2 * v + k
    k += 1
""",
}
LOOPS = {
    "up to the largest": """
k: int = 0
while k <= m:
    v += x[i + k]
    k += 1
""",
    "step of two": """
k: int = 0
while k < m:
    v += x[i + k]
    k += 2
""",
    "moved limit": """
k: int = 0
b: int = m
while k < b:
    b -= 1
    v += x[k]
    k += 1
""",
    "step first": """
k: int = 0
while k < m:
    k += 1
    v += x[i + k]
""",
    "changed": """
k: int = 0
while k < m:
    if k == 2:
        k = 3
    v += x[k]
    k += 1
""",
    "some trips": """
k: int = 0
while k < m:
    if x[k] > 2:
        k += 1
    v += 1
    s += 1
    k += 1
""",
    "of data": """
k: int = 0
while k < m and x[k] < 6:
    v += 1
    k += 1
""",
    "or": """
k: int = 0
while k < m or s < 3:
    v += 1
    k += 1
    s += 1
""",
    "left": """
k: int = 0
while k < m:
    if x[k] > 5:
        break
    v += 1
    k += 1
""",
    "away": """
k: int = 0
while k < m:
    v += 1
    if v > 20:
        break
    k -= -2
""",
    "until": """
k: int = 0
while k != 6:
    v += 1
    k += 1
""",
}


@pytest.mark.parametrize("name", RANGES)
def test_loops_that_count(name):
    made = check(unit_of(RANGES[name]))
    assert counts(made.body)[1] == 0


@pytest.mark.parametrize("name", LOOPS)
def test_loops_that_do_something_else(name):
    unit = unit_of(LOOPS[name])
    assert counted(unit) == unit.body
    check(unit)


def test_what_64_bits_may_not_hold():
    """One comparison needs no difference, two do."""
    alone = "k: pk.int64 = m\nwhile k < n:\n    v += 1\n    k += 1"
    step = "    v += 1\n    k += 1\n    c += 1"
    both = f"k: pk.int64 = m\nc: pk.int64 = 0\nwhile k < n and c < 6:\n{step}"
    for text, others in ((alone, 0), (both, 1)):
        made = check(unit_of(text, DType.INT64))
        assert counts(made.body) == (1 - others, others)


def test_ends_of_32_bits():
    """What is left to an end is counted in 64."""
    text = "k: int = m\nwhile k < n and s < 6:\n    v += 1\n    k += 1\n    s += 1\nv = v * 7 + s"
    unit = unit_of(text)
    made = replace(unit, body=counted(unit))
    for m, n in (
        (2**31 - 3, 2**31 - 1),
        (2**31 - 9, 2**31 - 1),
        (-(2**31), 2**31 - 1),
        (5, -(2**31)),
    ):
        assert results(made, m, n) == results(unit, m, n)


def random_loop(rng: random.Random, depth: int, own: str) -> list[str]:
    """The lines of a loop that counts a local, perhaps around another one."""
    limit, way = rng.choice(("m", "n", "4", "n - 1", "i + 2")), rng.choice("+-")
    op = "<" if way == "+" else ">"
    body = [f"v = 3 * v + {own} - s"]
    if depth and rng.random() < 0.7:
        if rng.random() < 0.6:
            body.append(f"{own}2 = {rng.choice(('0', 'i', 'm'))}")
        body += random_loop(rng, depth - 1, own + "2")
    tail = [f"{own} {way}= 1", *(["s += 2"] if rng.random() < 0.3 else [])]
    rng.shuffle(tail)
    also = rng.choice(("", "", " and s < 9", " and x[3] < 5"))
    test = f"while {own} {op} {limit if way == '+' else '-' + limit}{also}:"
    last = [f"v += {own}"] * (rng.random() < 0.3)
    return [test, *("    " + line for line in (*body, *tail)), *last]


def test_random_loops():
    done = 0
    for seed in range(100):
        rng = random.Random(seed)
        lines = [f"k: int = {rng.choice(('0', 'i', 'i - 1', 'x[i]'))}", "k2: int = 1"]
        lines += [*random_loop(rng, 1, "k"), *random_loop(rng, 0, "k")]
        done += counts(check(unit_of("\n".join(lines))).body)[0]
    assert done >= 60
