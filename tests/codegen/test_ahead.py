"""Memory that loops ask for before they come to it: which, and that results stay what they are."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from pyfuser.codegen.cpu.unit import emit
from pyfuser.codegen.kernel import spec_of
from pyfuser.engine import native
from pyfuser.pipeline import C_PASSES, run_passes
from pyfuser.support.caches import Table
from pyfuser.tuning.target import Target
from tests.codegen.build import Case, as_interpreted, case
from tests.vendors import emit_as_on

Array = np.ndarray[Any, Any]
N = 1000
INTEL = Target(vector_bytes=64, intel=True)


def ones(*shape: int, dtype: Any = float) -> Array:
    return np.ones(shape, dtype)


def ramp(*shape: int, dtype: Any = float) -> Array:
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


def copied(i, y, x):
    y[i] = x[i]


def changed(i, x, factor):
    x[i] *= factor


def stencil(i, y, x, m):
    y[i] = x[i - m] + x[i + 1] + x[i + m] - x[i - 1]


def shifted(i, y, x, m):
    at: int = i - 1
    ahead: int = at + m
    y[at] = x[ahead] + x[i]


def four(i, y, x, z, w):
    y[i] = x[i] + z[i] * w[i]


def with_one(i, y, x, z, w):
    y[i] = x[i] + z[0] * w[0]


def gathered(i, y, x, at):
    y[i] = x[at[i]]


def found(i, y, x):
    at: int = int(x[i])
    y[i] = x[at]


def every_other(i, y, x):
    y[i] = x[2 * i]


def backwards(i, y, x, n):
    y[i] = x[n - 1 - i]


def quotient(i, y, x, m):
    y[i] = x[i // m]


def rows(i, y, x, m):
    total: float = 0.0
    for k in range(m):
        total += x[i] * k
    y[i] = total


def plane(i, j, y, x):
    y[i, j] = x[i - 1, j] + x[i, j + 1]


def turned(i, j, y, x):
    y[j, i] = x[j, i]


def total(i, acc, x):
    acc += x[i] * x[i]


def sometimes(i, y, x):
    if x[i] > 3.0:
        y[i] = x[i]


def words(i, y, x):
    y[i] = 2 * x[i]


CASES: dict[str, tuple[Case, list[str]]] = {
    "copy": (case(copied, [N], lambda: [ones(N), ramp(N)]), ["y[i], 1", "x[i], 0"]),
    "changed": (case(changed, [N], lambda: [ramp(N), 3.0]), ["x[i], 1"]),
    "stencil": (
        case(stencil, [N - 60], lambda: [ones(N), ramp(N), 30], begin=[30]),
        ["y[i], 1", "x[i + (int64_t)m], 0"],
    ),
    "shifted": (
        case(shifted, [N - 4], lambda: [ones(N), ramp(N), 4], begin=[1]),
        ["y[i - 1], 1", "x[(int64_t)((int32_t)(i - 1) + m)], 0"],
    ),
    "four": (case(four, [N], lambda: [ones(N), ramp(N), ramp(N), ones(N)]), []),
    "two and scalars": (
        case(with_one, [N], lambda: [ones(N), ramp(N), ramp(N), ones(N)]),
        ["y[i], 1", "x[i], 0"],
    ),
    "gathered": (case(gathered, [N], lambda: [ones(N), ramp(N), ramp(N, dtype=np.int32)]), []),
    "found": (case(found, [N], lambda: [ones(N), ramp(N)]), []),
    "every other": (case(every_other, [N], lambda: [ones(N), ramp(2 * N)]), []),
    "backwards": (case(backwards, [N], lambda: [ones(N), ramp(N), N]), []),
    "quotient": (case(quotient, [N], lambda: [ones(N), ramp(N), 3]), []),
    "rows": (case(rows, [N], lambda: [ones(N), ramp(N), 40]), []),
    "plane": (
        case(plane, [19, 300], lambda: [ones(20, 301), ramp(20, 301)], begin=[1, 0]),
        ["y[i * y_stride0 + j], 1", "x[i * y_stride0 + j + 1], 0"],
    ),
    "short rows": (
        case(plane, [300, 20], lambda: [ones(301, 21), ramp(301, 21)], begin=[1, 0]),
        [],
    ),
    "turned": (
        case(turned, [300, 20], lambda: [ones(20, 300), ramp(20, 300)]),
        ["y[j * y_stride0 + i], 1", "x[j * y_stride0 + i], 0"],
    ),
    "sum": (case(total, [N], lambda: [ramp(N)], "reduce"), ["x[i], 0"]),
    "condition": (case(sometimes, [N], lambda: [ones(N), ramp(N)]), ["y[i], 1", "x[i], 0"]),
    "words": (
        case(words, [N], lambda: [ones(N, dtype=np.int64), ramp(N, dtype=np.int32)]),
        ["y[i], 1", "x[i], 0"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_asked_for(name: str) -> None:
    this, expected = CASES[name]
    text = emit(spec_of(run_passes(C_PASSES, this.kernel), target=INTEL))
    asked = re.findall(r"__builtin_prefetch\(&(.*) \+ \d+(, \d)\);", text)
    assert sorted({place + kind for place, kind in asked}) == sorted(expected)


@pytest.mark.parametrize("intel", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_results(name: str, intel: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    emit_as_on(monkeypatch, intel=intel)
    monkeypatch.setattr(native, "KERNELS", Table("of a test", 999))
    as_interpreted(CASES[name][0])


def test_lines_are_asked_for_once() -> None:
    text = emit(spec_of(CASES["words"][0].kernel, target=INTEL))
    assert re.findall(r"line \+= (\d+)", text) == ["16", "8"]
    assert re.findall(r"__builtin_prefetch\(.* \+ (\d+), ", text) == ["1024", "512"]
