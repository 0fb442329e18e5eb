"""Short local arrays become locals where their elements are known by number; others stay."""

from __future__ import annotations

import linecache
import random

import numpy as np
import pytest

from pyfuser.ir.accesses import accesses
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import DeclareArray, Read, Workunit
from pyfuser.ir.reference.interpret import interpret
from pyfuser.ir.verify import verify
from pyfuser.ir.visit import all_expressions, statements
from pyfuser.lower.lower import ScalarType, ViewType, lower
from pyfuser.pipeline import for_c
from pyfuser.trace.call import Space
from pyfuser.trace.shape import ScalarShape
from pyfuser.transform.elements import MOST, choose_elements, split_arrays
from pyfuser.transform.kernel import Kernel, Slot
from tests.transform.build import Program, Temporary

N = 6


def kernel_of(text: str, p: int | None, q: int | None) -> Kernel:
    """A kernel of a body over `y` and `x`, and two scalars that have these values, if any."""
    lines = "".join(f"    {line}\n" for line in text.strip("\n").split("\n"))
    source = f"from typing import List\ndef work(i, y, x, p, q):\n{lines}"
    linecache.cache["<elements>"] = (len(source), None, source.splitlines(True), "<elements>")
    names: dict[str, object] = {}
    exec(compile(source, "<elements>", "exec"), names)
    view = ViewType(DType.FLOAT64, 1)
    types = {"y": view, "x": view, "p": ScalarType(DType.INT32), "q": ScalarType(DType.INT32)}
    unit = lower(names["work"], "for", 1, types).workunit  # type: ignore[arg-type]
    slots = tuple(Slot(0, n) for n in range(4))
    program = Program(N)
    region = program._region(np.zeros(N))
    assert region is not None
    numbers = [ScalarShape(DType.INT32, value) for value in (p, q)]
    shapes = (region, region, *numbers)  # of views nothing is asked
    return Kernel("for", Space((0,), (N,)), unit, slots, shapes)  # type: ignore[arg-type]


def results(unit: Workunit, p: int, q: int) -> list[float]:
    y, x = np.zeros(N), np.arange(N, dtype=float) * 3 % 7
    interpret(unit, "for", (0,), (N,), [y, x, p, q])
    return y.tolist()


def made_of(kernel: Kernel) -> Workunit:
    made = split_arrays(choose_elements(kernel))
    verify(made.workunit)
    return made.workunit


def arrays(unit: Workunit) -> int:
    return sum(isinstance(s, DeclareArray) for s in statements(unit.body))


SPLIT = {
    "by number": """
a: List[float] = [x[i], 2.0, 3.0]
a[1] = a[0] + a[2]
y[i] = a[1] * a[0]
""",
    "by a scalar": """
a: List[float] = [x[i], 2.0, 3.0, 4.0]
t: float = a[p]
a[p] = a[2 * q]
a[2 * q] += t
if t > 2.0:
    a[q] = 7.0
y[i] = a[0] + 10.0 * a[1] + 100.0 * a[2] + 1000.0 * a[3]
""",
    "again in each trip": """
s: float = 0.0
for k in range(3):
    a: List[float] = [s, x[i]]
    a[0] = a[0] + a[1]
    a[1] *= 2.0
    s = a[0] + a[1]
y[i] = s
""",
}

KEPT = {
    "by what data chooses": """
a: List[float] = [1.0, 2.0, 3.0]
y[i] = a[int(x[i]) % 3]
""",
    "by a loop's variable": """
a: List[float] = [1.0, 2.0, 3.0]
for k in range(3):
    y[i] += a[k]
""",
    "by a local that changes": """
a: List[float] = [1.0, 2.0, 3.0]
k: int = p
k = k + 1
y[i] = a[k]
""",
    "by one of a few": """
a: List[float] = [1.0, 2.0]
y[i] = a[int(x[i]) & 1]
""",
    "in a loop of many trips": """
a: List[float] = [1.0, 2.0]
for k in range(int(x[i])):
    a[(k + p) % 2] += 1.0
y[i] = a[0]
""",
}


@pytest.mark.parametrize("name", SPLIT)
def test_arrays_that_become_locals(name: str) -> None:
    kernel = kernel_of(SPLIT[name], 1, 1)
    made = made_of(kernel)
    assert arrays(kernel.workunit) == 1 and arrays(made) == 0
    assert results(made, 1, 1) == results(kernel.workunit, 1, 1)


@pytest.mark.parametrize("name", KEPT)
def test_arrays_that_stay(name: str) -> None:
    kernel = kernel_of(KEPT[name], 1, 1)
    made = made_of(kernel)
    assert arrays(made) == 1
    assert results(made, 1, 1) == results(kernel.workunit, 1, 1)


def test_scalars_without_a_value_stay() -> None:
    """As where each call has another one."""
    kernel = kernel_of(SPLIT["by a scalar"], None, 1)
    made = made_of(kernel)
    assert arrays(made) == 1
    for p in range(4):
        assert results(made, p, 1) == results(kernel.workunit, p, 1)


def test_scalars_that_choose_nothing_keep_no_value() -> None:
    """One kernel serves all values of them."""
    kernel = kernel_of("a: List[float] = [1.0, 2.0]\ny[i] = a[p] + x[q]", 1, 2)
    made = made_of(kernel)
    read = {e.sym.name for e in all_expressions(made.body) if isinstance(e, Read)}
    assert "q" in read and "p" not in read


def test_elements_that_are_none_stay() -> None:
    for p in (-1, 2, 3):
        text = "a: List[float] = [1.0, 2.0]\nif p >= 0 and p < 2:\n    y[i] = a[p]"
        made = made_of(kernel_of(text, p, 0))
        assert arrays(made) == 1 and results(made, p, 0) == [0.0] * N


def test_long_arrays_stay() -> None:
    for length in (MOST, MOST + 1):
        text = f"a: List[float] = [{', '.join('1.0' for _ in range(length))}]\ny[i] = a[p]"
        assert arrays(made_of(kernel_of(text, 1, 0))) == (length > MOST)


def test_random_bodies() -> None:
    rng = random.Random(5)
    split = 0
    for _ in range(300):
        lines = ["a: List[float] = [x[i], 2.0, 3.0, 4.0]", "b: List[float] = [1.0, x[i]]"]
        places = ["a[0]", "a[3]", "a[p]", "a[p + 1]", "a[2 * q]", "b[q]", "b[1]", "b[1 - q]"]
        if rng.random() < 0.2:
            places.append("a[int(x[i]) % 4]")
        for _ in range(rng.randint(2, 7)):
            to, one, other = (rng.choice(places) for _ in range(3))
            op = rng.choice(["=", "+=", "-=", "*="])
            pad = ""
            if rng.random() < 0.3:
                lines.append(f"if {one} > {rng.randint(0, 4)}.0:")
                pad = "    "
            lines.append(f"{pad}{to} {op} {one} + 0.5 * {other}")
        lines.append("y[i] = a[0] + 3.0 * a[1] + 5.0 * a[2] + 7.0 * a[3] + 11.0 * b[0] + b[1]")
        kernel = kernel_of("\n".join(lines), 2, rng.randint(0, 1))
        q = kernel.shapes[3].value  # type: ignore[union-attr]
        made = made_of(kernel)
        split += 2 - arrays(made)
        assert results(made, 2, q) == results(kernel.workunit, 2, q), lines
    assert split > 300


def test_rotations_need_no_memory() -> None:
    """Each of the calls has its own row and column, as Jacobi's method for small matrices."""

    def fill(i, a, x):  # type: ignore[no-untyped-def]
        for r in range(2):
            for c in range(2):
                a[i][r][c] = x[i] + r + 2 * c

    def swap(i, a, p, q):  # type: ignore[no-untyped-def]
        for r in range(2):
            t: float = a[i][r][p]
            a[i][r][p] = 2.0 * a[i][r][q]
            a[i][r][q] = t

    def read(i, y, a):  # type: ignore[no-untyped-def]
        y[i] = a[i][0][0] + 3.0 * a[i][0][1] + 5.0 * a[i][1][0] + 7.0 * a[i][1][1]

    x, y = np.arange(8.0), np.zeros(8)
    program, a = Program(8), Temporary(8, 2, 2)
    program.call(fill, a=a, x=x)
    program.call(swap, a=a, p=0, q=1)
    program.call(swap, a=a, p=1, q=0)
    program.call(read, y=y, a=a)
    kernel = for_c(program.kernel())
    assert arrays(kernel.workunit) == 0
    assert {"choose-elements", "split-arrays"} <= {*kernel.passes}


@pytest.mark.parametrize("extents", [(4,), (4, 4), (17,)])
def test_short_rows_of_a_temporary_need_no_loop(extents: tuple[int, ...]) -> None:
    def start2(i, q, x):  # type: ignore[no-untyped-def]
        q[i][0][0] = x[i]
        q[i][1][0] = 1.0

    def flow2(i, q, a, b):  # type: ignore[no-untyped-def]
        q[i][b][0] = q[i][b][0] + 0.5 * q[i][a][0]

    def start(i, q, x):  # type: ignore[no-untyped-def]
        q[i][0] = x[i]
        q[i][1] = 1.0

    def flow(i, q, a, b):  # type: ignore[no-untyped-def]
        q[i][b] = q[i][b] + 0.5 * q[i][a]

    def finish(i, y, q, a):  # type: ignore[no-untyped-def]
        y[i] = q[i][a]

    def finish2(i, y, q, a):  # type: ignore[no-untyped-def]
        y[i] = q[i][a][0]

    calls = (start, flow, finish) if len(extents) == 1 else (start2, flow2, finish2)
    x, y = np.arange(8.0), np.zeros(8)
    program, q = Program(8), Temporary(8, *extents)
    program.call(calls[0], q=q, x=x)
    program.call(calls[1], q=q, a=0, b=1)
    program.call(calls[1], q=q, a=1, b=0)
    program.call(calls[2], y=y, q=q, a=1)
    kernel = for_c(program.kernel())
    named = {access.view.name for access in accesses(kernel.workunit.body)}
    assert named == ({"q", "x", "y"} if extents == (17,) else {"x", "y"})
