"""Emitted PyKokkos source is short, and lowering it gives the ir back."""

from __future__ import annotations

import inspect
import linecache
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pyfuser.codegen.pykokkos.team import needs_team
from pyfuser.codegen.pykokkos.text import CASTS
from pyfuser.codegen.pykokkos.unit import emit
from pyfuser.ir import nodes
from pyfuser.ir.canonical import canonical, fresh
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import (
    Binary,
    Cast,
    Compare,
    Const,
    Declare,
    Expr,
    Load,
    Logical,
    Param,
    Read,
    Select,
    Stmt,
    Store,
    Unary,
    Update,
    Workunit,
)
from pyfuser.ir.reference.interpret import interpret
from pyfuser.ir.verify import verify
from pyfuser.ir.visit import all_expressions, statements
from pyfuser.lower.lower import ScalarType, ViewType, lower
from pyfuser.pipeline import KERNEL_PASSES, run_passes
from pyfuser.transform.kernel import Kernel
from tests.fuzz import harness, oracle
from tests.strategies import random_program

INDEX = fresh("i", DType.INT32)
HERE = (Read(INDEX),)
X, Y = fresh("x", DType.FLOAT64), fresh("y", DType.FLOAT32)
K = fresh("k", DType.INT64)
ONE = Const(1.0, DType.FLOAT64)


def workunit(*body: Stmt) -> Workunit:
    result = Workunit("work", (INDEX,), (Param(X, 1), Param(Y, 1), Param(K)), body)
    verify(result)
    return result


def lowered_again(original: Workunit, pattern: str = "for") -> Workunit:
    """What lowering makes of the emitted source: for a team of one, if it is for teams."""
    text = "from __future__ import annotations\n" + emit(original)
    name = f"<emitted {original.name}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    namespace: dict[str, Any] = {}
    exec(compile(text, name, "exec"), namespace)
    function = namespace[original.name]
    names = list(inspect.signature(function).parameters)
    names = names[len(names) - len(original.params) :]
    types = {
        n: ViewType(p.sym.dtype, p.rank) if p.rank else ScalarType(p.sym.dtype)
        for n, p in zip(names, original.params, strict=True)
    }
    size = int(needs_team(original))
    return lower(function, pattern, len(original.indices), types, team_size=size).workunit


def body_of(original: Workunit) -> str:
    return textwrap.dedent(emit(original).partition("):\n")[2]).rstrip()


def x_is(value: Expr) -> Workunit:
    return workunit(Store(X, HERE, value))


F32 = Load(Y, HERE)
F64 = Load(X, HERE)
AND_OR = Logical(
    "&&",
    Compare("<", Read(INDEX), Const(3, DType.INT32)),
    Logical("||", Compare("<", F64, ONE), Compare(">", F64, ONE)),
)

SAME = [
    ("x[i] = x[i] + y[i]", x_is(Binary("+", F64, Cast(F32, DType.FLOAT64)))),
    ("x[i] = x[i] - (x[i] - 1.0)", x_is(Binary("-", F64, Binary("-", F64, ONE)))),
    ("x[i] = x[i] - x[i] - 1.0", x_is(Binary("-", Binary("-", F64, F64), ONE))),
    ("x[i] = float(x[i])", x_is(Cast(Cast(F64, DType.FLOAT32, True), DType.FLOAT64))),
    ("x[i] = -(x[i] + 1.0)", x_is(Unary("-", Binary("+", F64, ONE), DType.FLOAT64))),
    ("x[i] = i // 2", x_is(
        Cast(Binary("/", Read(INDEX), Const(2, DType.INT32)), DType.FLOAT64)
    )),
    ("x[i] = k + 1", x_is(
        Cast(Binary("+", Read(K), Cast(Const(1, DType.INT32), DType.INT64)), DType.FLOAT64)
    )),
    ("y[i] = 1.0", workunit(Store(Y, HERE, Cast(ONE, DType.FLOAT32)))),
    ("pk.atomic_add(x, [i], 1.0)", workunit(Update("+", X, HERE, ONE, True))),
]  # fmt: skip


@pytest.mark.parametrize(("text", "original"), SAME)
def test_source_and_back(text: str, original: Workunit) -> None:
    assert body_of(original) == text
    assert canonical(lowered_again(original)) == canonical(original)


def rounded() -> Expr:
    """A rounding to float32 that C++ would not insert."""
    return Binary("+", F64, Cast(Cast(F64, DType.FLOAT32), DType.FLOAT64))


EQUIVALENT = [
    ("t: pk.float = x[i]\nx[i] = x[i] + t", x_is(rounded())),
    (
        "choice: pk.double = 0.0\nif x[i] < 1.0:\n    choice = x[i]\nelse:\n    choice = 1.0\n"
        "x[i] = choice",
        x_is(Select(Compare("<", F64, ONE), F64, ONE)),
    ),
    (
        "t: pk.double = 1.0\nif t < x[i]:\n    x[i] = t",
        workunit(Update("min", X, HERE, ONE)),
    ),
    (
        "if i < 3 and not not (x[i] < 1.0 or x[i] > 1.0):\n    x[i] = 1.0",
        workunit(nodes.If(AND_OR, (Store(X, HERE, ONE),))),
    ),
    ("quotient: pk.float = y[i]\nquotient /= y[i]\nx[i] = quotient", x_is(
        Cast(Binary("/", F32, F32), DType.FLOAT64)
    )),
]  # fmt: skip


@pytest.mark.parametrize(("text", "original"), EQUIVALENT)
def test_what_the_language_cannot_say(text: str, original: Workunit) -> None:
    assert body_of(original) == text
    again = lowered_again(original)
    x, y = np.array([0.1, 2.0, 1.0, 3.0]), np.array([0.3, 2, 1, 5], np.float32)
    results = []
    for each in (original, again):
        arrays = x.copy(), y.copy()
        interpret(each, "for", (0,), (4,), (*arrays, 7))
        results.append(b"".join(array.tobytes() for array in arrays))
    assert results[0] == results[1]


def test_a_wide_loop_variable_becomes_a_while_loop() -> None:
    q = fresh("q", DType.INT64)
    loop = nodes.For(
        q,
        Cast(Const(0, DType.INT32), DType.INT64),
        Read(K),
        Const(1, DType.INT32),
        (nodes.If(Compare("==", Read(q), Read(K)), (nodes.Continue(),)), Store(X, HERE, ONE)),
    )
    again = lowered_again(workunit(loop))
    array = np.zeros(4)
    interpret(again, "for", (0,), (4,), (array, np.zeros(4, np.float32), 2))
    assert array.tolist() == [1.0] * 4


def test_many_parameters_take_several_lines() -> None:
    names = [f"a_rather_long_name_{n}" for n in range(9)]
    params = tuple(Param(fresh(name, DType.FLOAT64)) for name in names)
    lines = emit(Workunit("much", (fresh("i", DType.INT32),), params, ())).splitlines()
    assert max(map(len, lines)) <= 72
    first = lines.index("def much(")
    assert lines[lines.index("):") + 1] == "    pass"
    assert "".join(lines[first:]).count(": pk.double,") == 9


def test_names_are_kept_and_clashes_resolved() -> None:
    first, second, keyword = (fresh(n, DType.FLOAT64) for n in ("t", "t", "lambda"))
    body = (Declare(first, ONE), Declare(second, Read(first)), Declare(keyword, Read(second)))
    text = body_of(workunit(*body))
    assert text.splitlines() == [
        "t: pk.double = 1.0",
        "t_1: pk.double = t",
        "lambda_1: pk.double = t_1",
    ]


def programs() -> Iterator[tuple[Any, list[Workunit], Any]]:
    for seed in range(100, 150):
        program = random_program(seed)
        try:
            expected = oracle.run(program)
            workunits = harness.lowered(program, expected[1])
            harness.run_unfused(program, workunits, 0)
        except oracle.Rejected:
            continue
        yield program, workunits, expected


def _says_what_becomes_several_lines(original: Workunit) -> bool:
    for e in all_expressions(original.body):
        if isinstance(e, Select) or (isinstance(e, Cast) and e.explicit and e.dtype not in CASTS):
            return True
        if isinstance(e, Unary) and isinstance(e.operand, Cast) and e.dtype.is_float:
            return True  # of what is converted first, as `acc -= n` of an unsigned n
        if isinstance(e, Logical):
            sides = [s for s in (e.left, e.right) if isinstance(s, Logical)]
            if e.right in sides or any(e.op == "&&" and s.op == "||" for s in sides):
                return True
    return False


def _begins_later(workunit: Workunit) -> bool:
    """Whether a local is declared without a value, for which the source says 0."""
    return any(isinstance(s, nodes.Declare) and s.value is None for s in statements(workunit.body))


def test_random_workunits_survive_the_way_through_source() -> None:
    same = 0
    for program, workunits, expected in programs():
        calls = zip(workunits, program.calls, strict=True)
        again = [lowered_again(w, call.pattern) for w, call in calls]
        for original, other in zip(workunits, again, strict=True):
            if not _says_what_becomes_several_lines(original) and not _begins_later(original):
                assert canonical(other) == canonical(original), emit(original)
                same += 1
        found = harness.run_unfused(program, again, 2)
        harness.compare(program, expected, found, "emitted source", exact=False)
    assert same > 50


def through_source(kernel: Kernel) -> Kernel:
    """The optimised kernel, lowered from its emitted source where that is one reduction at most."""
    kernel = run_passes(KERNEL_PASSES, kernel)
    if len(kernel.workunit.accumulators) > 1:
        return kernel
    return replace(kernel, workunit=lowered_again(kernel.workunit, kernel.pattern))


def test_fused_kernels_survive_the_way_through_source() -> None:
    for program, workunits, expected in programs():
        found, _, _ = harness.run_fused(program, workunits, through_source, 3)
        harness.compare(program, expected, found, "emitted fused source", exact=False)
