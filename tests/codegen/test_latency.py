"""Bodies that are a long chain of operations: which are cut into loops, and that no bit changes."""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np
import pykokkos
import pytest

from pyfuser.codegen import cpp_blocks
from pyfuser.codegen.cpp import emit
from pyfuser.codegen.cpp_prelude import BLOCK
from pyfuser.codegen.spec import spec_of
from pyfuser.engine import native
from tests.codegen.build import Case, as_interpreted, case

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
    found = re.search(r"#ifdef __AVX512F__\n.*?#else(.*?)#endif", _body(given), re.DOTALL)
    return found.group(1).count("++step") if found else 1


def _body(given: Case) -> str:
    code = emit(spec_of(given.kernel))
    return code[code.index("#pragma GCC ivdep") - 40 :]


@pytest.mark.parametrize(("work", "pattern"), [(MAP, "for"), (SUM, "reduce")])
def test_cuts_change_no_bit(
    work: Callable[..., None], pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {}
    for n in SIZES:
        assert loops(build(work, n, pattern)) > 2
        found[n] = bits(build(work, n, pattern))
    monkeypatch.setattr(cpp_blocks, "cut", lambda body: ())
    monkeypatch.setattr(native, "_launchables", {})
    for n, value in found.items():
        assert loops(build(work, n, pattern)) == 1
        assert value == bits(build(work, n, pattern)), n


def test_results_are_right() -> None:
    as_interpreted(build(MAP, 700, "for"))
    as_interpreted(build(SUM, 700, "reduce"))


def test_what_is_kept_has_room_in_long_blocks() -> None:
    given = build(LONG, 5000, "reduce", len(SCALARS))
    code = emit(spec_of(given.kernel))
    assert loops(given) > 2
    (size,) = set(re.findall(r"float \w+_block\[(\d+)\]", code))
    assert f"space = {size} - running.filled" in code
    assert int(size) == cpp_blocks.LONG_BLOCK
    as_interpreted(given)


@pytest.mark.parametrize("work", [SHORT, BRANCH])
def test_others_stay_in_one_loop(work: Callable[..., None]) -> None:
    assert loops(build(work, 500, "for")) == 1
