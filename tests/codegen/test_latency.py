"""Bodies that are a long chain of operations: which are cut into loops, and that no bit changes."""
# ruff: noqa: F821

from __future__ import annotations

import linecache
import re
from collections.abc import Callable
from math import exp, log, sin, sqrt
from typing import Any

import numpy as np
import pykokkos
import pytest

from pyfuser.codegen.cpu.unit import emit
from pyfuser.codegen.kernel import spec_of
from pyfuser.engine import native
from pyfuser.nest.cost import pipeline
from pyfuser.nest.passes import blocks as cpu_blocks
from pyfuser.support.caches import Table
from pyfuser.tuning.thresholds import DEFAULT
from tests.codegen.build import Case, as_interpreted, case
from tests.vendors import decide_with_maths, emit_as_on


@pytest.fixture(autouse=True)
def vector_maths(monkeypatch: pytest.MonkeyPatch) -> None:
    """The decisions of a machine that has vector maths, wherever the tests run."""
    decide_with_maths(monkeypatch, "exp", "log", "sin")
    emit_as_on(monkeypatch, vector_bytes=32)


BLOCK = DEFAULT.block
SIZES = [1, BLOCK - 1, BLOCK, BLOCK + 1, 4 * BLOCK, 40_007]
STEP = """
    g{n}: pk.float = a - t[i]
    b = 0.5 * b + 0.25 * g{n}
    c = 0.5 * c + 0.125 * g{n} * g{n}
    p{n}: pk.float = b / 0.75
    q{n}: pk.float = c / 0.875
    d{n}: pk.float = p{n} / (sqrt(q{n}) + 0.001)
    a = 0.99 * a
    a = a - 0.01 * d{n}
"""
SCALARS = [f"s{k}" for k in range(33)]


def steps(count: int, head: str, tail: str) -> Any:
    """A workunit of so many steps of an optimiser, each from the values of the one before."""
    body = "    a: pk.float = w[i]\n    b: pk.float = 0.0\n    c: pk.float = 0.0"
    for n in range(count):
        body += STEP.format(n=n)
    source = f"def work({head}):\n{body}\n{tail}"
    name = f"<{len(linecache.cache)} steps>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    made: dict[str, Any] = {}
    exec(compile(source, name, "exec"), {"pk": pykokkos, "sqrt": sqrt}, made)
    return made["work"]


MAP = steps(3, "i, w, t", "    w[i] = a\n    t[i] = b\n")
SUM = steps(3, "i, acc, w, t", "    w[i] = a\n    acc += 0.5 * a * a\n")
LONG = steps(3, ", ".join(["i", "acc", "w", "t", *SCALARS]), "    w[i] = a\n    acc += a\n")
SHORT = steps(1, "i, w, t", "    w[i] = a\n")
BRANCH = steps(3, "i, w, t", "    if a > 0.5:\n        w[i] = a\n")


def of_functions(i, w, t):
    a: pk.float = sin(w[i])
    b: pk.float = exp(a)
    t[i] = log(1.0 + b)
    w[i] = a


def sum_of_functions(i, acc, w, t):
    a: pk.float = sin(w[i])
    t[i] = exp(a)
    acc += t[i]


def independent(i, w, t):
    a: pk.float = w[i]
    w[i] = exp(a)
    t[i] = sin(a)


def one_function(i, w, t):
    a: pk.float = w[i] + t[i]
    t[i] = exp(a) * a


def within_another(i, w, t):
    a: pk.float = w[i]
    t[i] = log(1.0 + exp(sin(a)))


def arguments(n: int, scalars: int = 0) -> list[Any]:
    rng = np.random.default_rng(7)
    found = [rng.random(n, np.float32), 1 + rng.random(n, np.float32)]
    return [*found, *(0.5 + k / 64 for k in range(scalars))]


def build(work: Callable[..., None], n: int, pattern: str, scalars: int = 0) -> Case:
    return case(work, [n], lambda: arguments(n, scalars), pattern)


def bits(given: Case) -> tuple[bytes, ...]:
    (launchable,) = native.prepare([given.kernel])
    arrays, results = given.run(launchable)
    written = [a.tobytes() for a in arrays if isinstance(a, np.ndarray)]
    return (*written, *(np.float64(value).tobytes() for value in results))


def loops(given: Case) -> int:
    """How many loops the body is cut into; 1 where it is not cut."""
    return _body(given).count("++step") or 1


def _body(given: Case) -> str:
    code = emit(spec_of(given.kernel))
    return code[code.index("#pragma GCC ivdep") - 40 :]


CHAINS = [(MAP, "for"), (SUM, "reduce"), (of_functions, "for"), (sum_of_functions, "reduce")]


@pytest.mark.parametrize(("work", "pattern"), CHAINS)
def test_cuts_change_no_bit(
    work: Callable[..., None], pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {}
    for n in SIZES:
        assert loops(build(work, n, pattern)) > 1
        found[n] = bits(build(work, n, pattern))
    monkeypatch.setattr(cpu_blocks, "cut", lambda body: ())
    monkeypatch.setattr(native, "KERNELS", Table("of a test", 999))
    for n, value in found.items():
        assert loops(build(work, n, pattern)) == 1
        assert value == bits(build(work, n, pattern)), n


def test_each_function_of_a_function_has_a_loop() -> None:
    assert loops(build(of_functions, 500, "for")) == 3
    assert loops(build(sum_of_functions, 500, "reduce")) == 2


def test_results_are_right() -> None:
    as_interpreted(build(MAP, 700, "for"))
    as_interpreted(build(SUM, 700, "reduce"))


def test_what_is_kept_has_room_in_long_blocks() -> None:
    given = build(LONG, 5000, "reduce", len(SCALARS))
    code = emit(spec_of(given.kernel))
    assert loops(given) > 2
    (size,) = set(re.findall(r"float \w+_block\[(\d+)\]", code))
    assert f"space = {size} - running.filled" in code
    assert int(size) == 4 * BLOCK
    as_interpreted(given)


@pytest.mark.parametrize("work", [SHORT, BRANCH, independent, one_function, within_another])
def test_others_stay_in_one_loop(work: Callable[..., None]) -> None:
    assert loops(build(work, 500, "for")) == 1


def test_long_bodies_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    body = build(MAP, 500, "for").kernel.workunit.body
    assert pipeline.cut(body)
    monkeypatch.setattr(pipeline, "MAX_STATEMENTS", len(body) - 1)
    assert not pipeline.cut(body)


def test_a_serial_loop_is_not_cut() -> None:
    """Its iterations may read what those before have stored."""
    for execution, blocks in (("OpenMP", True), ("Serial", False)):
        given = case(of_functions, [500], lambda: arguments(500), execution=execution)
        assert ("_block[" in emit(spec_of(given.kernel))) is blocks
