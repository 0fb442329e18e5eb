"""Compiled scans and the maps beside them: the bits of the loops run one after the other."""
# ruff: noqa: F821

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pyfuser.codegen.cpu.unit import emit
from pyfuser.engine.launchable import team
from pyfuser.engine.native import prepare
from pyfuser.plan.plan import SCAN_TILE
from pyfuser.support.settings import SETTINGS
from tests.codegen.build import bound, case
from tests.codegen.test_sweep import Loop, Sweep, check, copy, double_in_place, numbers
from tests.nest.test_scans import mirrored
from tests.vendors import emit_as_on

pytestmark = pytest.mark.skipif(
    shutil.which(SETTINGS.compiler) is None, reason="needs a C++ compiler"
)

SIZES = (1, 100, SCAN_TILE, SCAN_TILE + 1, 9 * SCAN_TILE + 77)
THREADS = (1, 2, 3, 5)


def prefix(i, acc, last_pass, x, out):
    acc += x[i]
    if last_pass:
        out[i] = acc


def prefix_int32(i, acc: pk.Acc[pk.int32], last_pass, x, out):
    acc += x[i]
    if last_pass:
        out[i] = acc


def prefix_complex128(i, acc: pk.Acc[pk.complex128], last_pass, x, out):
    acc += x[i]
    if last_pass:
        out[i] = acc


PREFIXES = {
    "float64": prefix,
    "int32": prefix_int32,
    "complex128": prefix_complex128,
}


def around(n: int, dtype: str = "float64", execution: str = "OpenMP") -> Sweep:
    """Maps that make what is summed, and that use the sums."""
    loops = [
        Loop(double_in_place, "x"),  # an iteration that runs twice shows
        Loop(copy, "x y"),
        Loop(PREFIXES[dtype], "y z", pattern="scan"),
        Loop(copy, "z w"),
        Loop(double_in_place, "y"),
    ]
    arrays = {name: numbers(n, dtype, k) for k, name in enumerate("xyzw")}
    return Sweep(loops, arrays, execution)


@pytest.mark.parametrize("dtype", PREFIXES)
def test_maps_around_a_scan(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in SIZES:
        check(around(n, dtype), monkeypatch, waves=(SCAN_TILE,), threads=THREADS)


@pytest.mark.parametrize("first", [True, False])
def test_a_scan_at_an_end(first: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    loops = [Loop(prefix, "x y", pattern="scan"), Loop(copy, "y z")]
    arrays = {name: numbers(5 * SCAN_TILE + 3, seed=k) for k, name in enumerate("xyz")}
    if not first:
        loops = [Loop(copy, "x y"), Loop(prefix, "y z", pattern="scan")]
    check(Sweep(loops, arrays), monkeypatch, waves=(SCAN_TILE,), threads=THREADS)


def test_a_scan_of_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    loops = [
        Loop(copy, "x y", rim=5),
        Loop(prefix, "y z", rim=5, pattern="scan"),
        Loop(copy, "z x", rim=5),
    ]
    arrays = {name: numbers(3 * SCAN_TILE, seed=k) for k, name in enumerate("xyz")}
    check(Sweep(loops, arrays), monkeypatch, waves=(SCAN_TILE,), threads=THREADS)


def test_a_serial_scan_runs_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """One sum from beginning to end, whatever the tiles; its bits are not those of tiles."""
    n = 3 * SCAN_TILE + 5
    sweep = around(n, execution="Serial")
    assert "#pragma omp parallel" not in emit(sweep.spec())
    check(sweep, monkeypatch, waves=(SCAN_TILE,), threads=(1, 3))
    monkeypatch.setattr(team, "count", 1)
    assert around(n).apart() != sweep.apart()


def test_one_thread_passes_once_where_bits_allow() -> None:
    """Integers have one sum, in whatever order; others are added up tile by tile."""
    for dtype in PREFIXES:
        assert ("chain.alone" in emit(around(100, dtype).spec())) == (dtype == "int32")


def test_the_order_of_additions_shows_in_the_bits() -> None:
    """The test of the tests: these numbers tell tiles from one sum that runs on."""
    for dtype in ("float64", "complex128"):
        x = numbers(9 * SCAN_TILE + 77, dtype)
        assert by_tiles(x)[-1] != np.cumsum(x, dtype=x.dtype)[-1]


def test_the_code(golden: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    emit_as_on(monkeypatch, vector_bytes=64, intel=False)
    golden("cpp/chain.cpp", emit(around(100).spec()))


# --------------------------------------------------------------------------- passes at once


def test_first_passes_see_nothing_of_last_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 48 * SCAN_TILE  # so many that a second thread is worth it
    x = numbers(n, "int32")
    for threads in (2, 3):
        monkeypatch.setattr(team, "count", threads)
        made = case(mirrored, [n], lambda: [x.copy(), n], "scan")
        (launchable,) = prepare([made.kernel])
        before = x[: n - SCAN_TILE].sum()  # of the last tile, only the last pass is made
        assert launchable.run(made.kernel.space, bound(made.arguments()))[0] == before


def by_tiles(x: Any) -> Any:
    """The prefix sums in the order that the language's implementation defines."""
    zero = np.zeros(1, x.dtype)
    start, parts = zero, []
    for first in range(0, len(x), SCAN_TILE):
        tile = x[first : first + SCAN_TILE]
        parts.append(np.cumsum(np.concatenate([start, tile]), dtype=x.dtype)[1:])
        start = start + np.cumsum(np.concatenate([zero, tile]), dtype=x.dtype)[-1:]
    return np.concatenate(parts)


@pytest.mark.parametrize("dtype", PREFIXES)
def test_bits_do_not_depend_on_threads(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    n = 40 * SCAN_TILE + 9
    x = numbers(n, dtype)
    made = case(PREFIXES[dtype], [n], lambda: [x.copy(), np.zeros_like(x)], "scan")
    (launchable,) = prepare([made.kernel])
    expected = by_tiles(x)
    for threads in (1, 2, 3, 7):
        monkeypatch.setattr(team, "count", threads)
        (_, out), (total,) = made.run(launchable)
        assert out.tobytes() == expected.tobytes()
        assert np.asarray(total).astype(dtype) == expected[-1]
