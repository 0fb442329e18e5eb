"""GPU kernels compute what the reference interpreter does: here on the host, thread by thread."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from pyfuser.codegen.kernel import spec_of
from pyfuser.nest.declined import declined
from tests.codegen.build import case
from tests.engine.test_native import EXACT_REDUCTIONS, MAPS, values
from tests.gpu.cases import CASES, CLOSE, PRINTING
from tests.gpu.emulator import Emulated

EXACT = {
    name: tested
    for name, tested in {**MAPS, **EXACT_REDUCTIONS, **CASES}.items()
    if not declined(spec_of(tested.kernel))
}


@pytest.fixture(scope="module")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> Emulated:
    return Emulated({**EXACT, **CLOSE, **PRINTING}, tmp_path_factory.mktemp("emulated"))


SLOW = {"scan of many"}


@pytest.mark.parametrize("name", EXACT)
def test_emulated_equals_interpreted(name: str, emulated: Emulated) -> None:
    expected, results = EXACT[name].interpreted()
    for seed in range(1 if name in SLOW else 3):
        arguments, actual = emulated.run(name, seed)
        assert actual == results
        for array, reference in zip(arguments, expected, strict=True):
            np.testing.assert_array_equal(array, reference)


@pytest.mark.parametrize("name", CLOSE)
def test_complex_functions_are_those_of_the_reference(name: str, emulated: Emulated) -> None:
    expected, _ = CLOSE[name].interpreted()
    arguments, _ = emulated.run(name)
    single = expected[0].dtype == "complex64"
    for array, reference in zip(arguments, expected, strict=True):
        np.testing.assert_allclose(array, reference, rtol=1e-5 if single else 1e-13)


def test_printf(emulated: Emulated, capfd: pytest.CaptureFixture[str]) -> None:
    emulated.run("printf")
    assert capfd.readouterr().out == 'x[0] is "0.5" %\nx[1] is "1e+06" %\n'


# --------------------------------------------------------------------------- the order of sums


def total(i, acc, x):
    acc += x[i]


def scaled_total(i, acc, x, y):
    y[i] = 2.0 * x[i]
    acc += x[i]


def prefix(i, acc, last, x, y):
    acc += x[i]
    if last:
        y[i] = acc


SIZE = 40_001
SUMS = {
    "alone": case(total, [SIZE], lambda: [values(SIZE)], "reduce"),
    "beside a map": case(scaled_total, [SIZE], lambda: [values(SIZE), np.zeros(SIZE)], "reduce"),
    "prefix": case(prefix, [SIZE], lambda: [values(SIZE), np.zeros(SIZE)], "scan"),
}


def test_the_bits_of_sums_depend_on_the_size_alone(tmp_path: Path) -> None:
    """Not on which thread or block is first, on the width of a warp, or on fusion."""
    sums: set[float] = set()
    prefixes: set[bytes] = set()
    for warp in (32, 64):
        folder = tmp_path / str(warp)
        folder.mkdir()
        emulated = Emulated(SUMS, folder, warp)
        for seed in range(3):
            sums |= {emulated.run(name, seed)[1][0] for name in ("alone", "beside a map")}
            (_, running), (last,) = emulated.run("prefix", seed)
            assert last == running[-1]
            prefixes.add(running.tobytes())
    assert len(sums) == len(prefixes) == 1
    assert sums.pop() == pytest.approx(math.fsum(values(SIZE)), rel=1e-13)
    running = np.frombuffer(prefixes.pop())
    np.testing.assert_allclose(running, np.cumsum(values(SIZE)), rtol=1e-11, atol=1e-11)


BARRIERS = {
    "before a half is read": (
        "        pf_barrier();\n        if (me < half)",
        "        if (me < half)",
    ),
    "before values are shared": ("    sum[me] = value;\n    pf_barrier();", "    sum[me] = value;"),
    "between a read and a write": ("sum[me - apart];\n        pf_barrier();", "sum[me - apart];"),
}


@pytest.mark.parametrize("barrier", BARRIERS)
def test_a_missing_barrier_shows(barrier: str, tmp_path: Path) -> None:
    before, after = BARRIERS[barrier]
    cases = {name: EXACT[name] for name in ("sum of float64", "scan of float64")}

    def broken(text: str) -> str:
        changed = text.replace(before, after)
        assert changed != text
        return changed

    emulated = Emulated(cases, tmp_path, change=broken)
    wrong = False
    for name, tested in cases.items():
        expected, results = tested.interpreted()
        for seed in range(3):
            arguments, actual = emulated.run(name, seed)
            wrong |= actual != results
            wrong |= not all(map(np.array_equal, arguments, expected))
    assert wrong
