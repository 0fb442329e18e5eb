"""Compiled kernels compute what the reference interpreter does, bit for bit for maps."""
# ruff: noqa: F821, SIM, FURB

from __future__ import annotations

import math
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyfuser.engine import launchable, native
from pyfuser.engine.launchable import team
from pyfuser.ir.canonical import fresh
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import (
    Accumulator,
    AtomicFetch,
    Cast,
    Const,
    Extent,
    Load,
    Param,
    Read,
    Store,
    Unary,
    Update,
    Workunit,
)
from pyfuser.support.caches import Table
from pyfuser.support.errors import ArgumentError
from pyfuser.trace.call import Space
from pyfuser.trace.memory import Buffer, Handle, Region, region_of
from pyfuser.tuning.thresholds import DEFAULT
from tests.codegen.build import Case, bound, case
from tests.vendors import tune

N = 1000


def values(n: int = N, dtype: str = "float64", seed: int = 0) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(seed)
    if dtype.startswith("float"):
        return (rng.standard_normal(n) * 4).astype(dtype)
    if dtype.startswith("complex"):
        return (rng.standard_normal(n) + 1j * rng.standard_normal(n)).astype(dtype)
    if dtype == "bool":
        return rng.random(n) < 0.5
    return rng.integers(0, 100, n).astype(dtype)


# --------------------------------------------------------------------------- workunits


def axpy(i, a, x, y):
    y[i] += a * x[i]


def precedence(i, x, y):
    a: float = x[i]
    b: float = x[i + 1]
    y[i] = a - (b - 1.0) - -b / (a / 2.0) * (a * b) + (a + b) * (a - b) / (1.0 + (a * a + b * b))


def bits(i, x, y, n):
    k: int = x[i]
    y[i] = ((k << 3) ^ (k & 13) | (k >> 1)) + ~k % 7 - -k // 3 * n


def branches(i, x, y, limit):
    value: float = x[i]
    if value > limit:
        value = limit
    elif value < -limit and not (value < -3.0 or i % 3 == 0):
        value = -limit
    else:
        value = math.sqrt(math.fabs(value)) if i % 2 == 0 else math.floor(value)
    y[i] = value


def loops(i, x, y, m):
    total: float = 0.0
    for k in range(m):
        if k == 5:
            continue
        total += x[i + k] * k
    for k in range(m, 0, -2):
        total -= x[i + k]
    count: int = 0
    while count < i % 7:
        count += 1
        if count > 4:
            break
    y[i] = total + count


def narrow(i, b, h, u, f, y):
    b[i] += h[i]
    h[i] = u[i] * 3
    u[i] = y[i] * 10.0
    f[i] *= 1.1
    f[i] = f[i] + y[i]


def rows(i, j, x, y):
    y[i][j] = x[j][i] + y[i][j] * 2


def cube(i, j, k, x, y):
    y[i][j][k] = x[k][i][j] - i + 2 * j


def scatter(i, order, x, y):
    y[order[i]] = x[i]


def histogram(i, x, counts, weights, extremes):
    pk.atomic_add(counts, [x[i]], 1)
    pk.atomic_sub(weights, [x[i]], 0.5)
    pk.atomic_max(extremes, [0], x[i])
    pk.atomic_min(extremes, [1], x[i])
    pk.atomic_mul(weights, [100 + x[i]], 2.0)


def constants(i, y, s):
    y[i] = (1e-300 + 0.1 + 1e16) * math.pi + 1e22
    s[i] = pk.float(0.1) * pk.float(3.0)


def exact_functions(i, x, y):
    a: float = x[i]
    y[i] = (
        math.copysign(math.trunc(a), -a)
        + math.fmin(a, 1.0) * math.fmax(a, -1.0)
        + math.fmod(a, 0.7)
        + math.degrees(a)
        + math.radians(a)
        + math.ceil(a)
        + abs(a)
        + pow(a, 2)
    )
    if math.isnan(a) or math.isinf(a):
        y[i] = -1.0


def signs_of_extremes(i, x, y):
    y[i] = math.copysign(1.0, math.fmin(x[i], x[i + 1])) + math.copysign(
        2.0, math.fmax(x[i], x[i + 1])
    )


def total(i, acc, x):
    acc += x[i]


def guarded_total(i, acc, x):
    if x[i] > 0.0:
        for k in range(3):
            acc += x[i] * k


def total2(i, j, acc, x):
    acc += x[i][j]


def total3(i, j, k, acc, x):
    acc += x[i][j][k]


def recurrence(i, acc, x):
    acc = acc * 0.5 + x[i]


def prefix(i, acc, last, x, y):
    acc += x[i]
    if last:
        y[i] = acc


def exclusive(i, acc, last, x):
    value: int = x[i]
    if last:
        x[i] = acc
    acc += value


def overlapping() -> list[Any]:
    base = values(2 * N)
    return [2.0, base[0::2], base[1::2]]


def strided() -> list[Any]:
    base = np.zeros((N, 3))
    base[:, 1] = values()
    return [0.5, base[:, 1], values(2 * N)[::-2]]


def structured() -> list[Any]:
    records = np.zeros(N, dtype=[("flag", "i1"), ("x", "f8")])
    records["x"] = values()
    return [0.5, records["x"], values(N, seed=1)]


MAPS: dict[str, Case] = {
    "axpy": case(axpy, [N], lambda: [2.5, values(), values(seed=1)]),
    "axpy, serial": case(axpy, [N], lambda: [2.5, values(), values(seed=1)], execution="Serial"),
    "axpy, part": case(axpy, [N - 3], lambda: [2.5, values(), values(seed=1)], begin=[5]),
    "axpy, empty": case(axpy, [3], lambda: [2.5, values(), values(seed=1)], begin=[5]),
    "interleaved": case(axpy, [N], overlapping),
    "strides": case(axpy, [N], strided),
    "strides in bytes": case(axpy, [N], structured),
    "float32": case(axpy, [N], lambda: [2.5, values(N, "float32"), values(N, "float32", 1)]),
    "complex": case(
        axpy, [N], lambda: [2.5 - 1j, values(N, "complex128"), values(N, "complex128", 1)]
    ),
    "complex64": case(
        axpy,
        [N],
        lambda: [np.complex64(2.5 - 1j), values(N, "complex64"), values(N, "complex64", 1)],
    ),
    "precedence": case(precedence, [N - 1], lambda: [values(), np.zeros(N)]),
    "bits": case(bits, [N], lambda: [values(N, "int32"), np.zeros(N, "int64"), 3]),
    "branches": case(branches, [N], lambda: [values(), np.zeros(N), 2.0]),
    "loops": case(loops, [N - 20], lambda: [values(), np.zeros(N), 10]),
    "narrow": case(
        narrow,
        [N],
        lambda: [
            values(N, "int8"),
            values(N, "int16"),
            values(N, "uint8"),
            values(N, "float32"),
            np.abs(values(N, seed=2)),
        ],
    ),
    "rows": case(
        rows, [30, 20], lambda: [values(600).reshape(20, 30), values(600).reshape(30, 20)]
    ),
    "columns": case(
        rows,
        [30, 20],
        lambda: [values(600).reshape(30, 20).T, values(600).reshape(20, 30).T],
    ),
    "cube": case(
        cube,
        [5, 6, 7],
        lambda: [values(210).reshape(7, 5, 6), np.zeros((5, 6, 7))],
        begin=[1, 0, 2],
    ),
    "scatter": case(
        scatter,
        [N],
        lambda: [np.random.default_rng(0).permutation(N).astype("int32"), values(), np.zeros(N)],
    ),
    "atomics": case(
        histogram,
        [N],
        lambda: [
            values(N, "int32"),
            np.zeros(100, "int64"),
            np.ones(200),
            np.array([-5, 500], "int32"),
        ],
    ),
    "constants": case(constants, [4], lambda: [np.zeros(4), np.zeros(4, "float32")]),
    "functions": case(exact_functions, [N], lambda: [values(), np.zeros(N)]),
    "extremes of zeros": case(
        signs_of_extremes, [N], lambda: [np.copysign(0.0, values(N + 1)), np.zeros(N)]
    ),
}
EXACT_REDUCTIONS: dict[str, Case] = {
    "prefix of integers": case(
        prefix, [20000], lambda: [values(20000).round(), np.zeros(20000)], "scan"
    ),
    "exclusive prefix in place": case(exclusive, [9000], lambda: [values(9000).round()], "scan"),
    "recurrence": case(recurrence, [N], lambda: [values()], "reduce"),
    "total of whole numbers": case(total, [20001], lambda: [values(20001).round()], "reduce"),
    "of rows": case(
        total2, [300, 77], lambda: [values(23100).reshape(300, 77).round()], "reduce", [1, 2]
    ),
    "of long rows": case(
        total2, [2, 9000], lambda: [values(18000).reshape(2, 9000).round()], "reduce"
    ),
    "of a cube": case(
        total3, [40, 20, 9], lambda: [values(7200).reshape(40, 20, 9).round()], "reduce", [3, 1, 0]
    ),
    "of nothing": case(
        total3, [4, 1, 9], lambda: [values(7200).reshape(40, 20, 9)], "reduce", [3, 1, 0]
    ),
}


@pytest.fixture(scope="module")
def launchables() -> dict[str, Any]:
    """All kernels of the tables, compiled at once; a thread is worth while for any iteration."""
    cases = {**MAPS, **EXACT_REDUCTIONS}
    with pytest.MonkeyPatch.context() as patch:
        tune(patch, worth_a_thread=1)
        patch.setattr(native, "KERNELS", Table("of a test", 999))
        return dict(zip(cases, native.prepare([c.kernel for c in cases.values()]), strict=True))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", [*MAPS, *EXACT_REDUCTIONS])
def test_compiled_equals_interpreted(
    name: str, threads: int, launchables: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    tested = {**MAPS, **EXACT_REDUCTIONS}[name]
    monkeypatch.setattr(team, "count", threads)
    expected, results = tested.interpreted()
    arguments, actual = tested.run(launchables[name])
    assert actual == results
    for array, reference in zip(arguments, expected, strict=True):
        np.testing.assert_array_equal(array, reference)


# --------------------------------------------------------------------------- reductions


def prefix_sum(i, acc, last, x, y):
    acc += x[i]
    if last:
        y[i] = acc


def scaled_total(i, acc, x, y):
    y[i] = 2.0 * x[i]
    acc += x[i]


def test_sums_depend_on_neither_threads_nor_fusion(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 100_001
    alone = case(total, [n], lambda: [values(n)], "reduce")
    beside_a_map = case(scaled_total, [n], lambda: [values(n), np.zeros(n)], "reduce")
    scan = case(prefix_sum, [n], lambda: [values(n), np.zeros(n)], "scan")
    cases = [alone, beside_a_map, scan]
    launchables = native.prepare([c.kernel for c in cases])
    sums: set[Any] = set()
    prefixes: set[bytes] = set()
    for threads in (1, 2, 3):
        monkeypatch.setattr(team, "count", threads)
        (_, first), (_, second), (arrays, last) = (
            c.run(launchable) for c, launchable in zip(cases, launchables, strict=True)
        )
        sums |= {first, second}
        prefixes.add(arrays[1].tobytes())
        assert last == (arrays[1][-1],)
    assert len(sums) == len(prefixes) == 1
    exact = math.fsum(values(n))
    assert next(iter(sums))[0] == pytest.approx(exact, rel=1e-12)
    assert np.frombuffer(next(iter(prefixes)))[-1] == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("dtype", list(DType), ids=lambda d: d.value)
def test_a_sum_of_any_type(dtype: DType) -> None:
    i = fresh("i", DType.INT64)
    x, acc = fresh("x", dtype), fresh("acc", dtype)
    body = (Update("+", acc, (), Load(x, (Read(i),))),)
    workunit = Workunit("sum", (i,), (Param(x, 1),), body, (Accumulator(acc),))
    n = 5000
    kernel = case(workunit, [n], lambda: [values(n, dtype.value)], "reduce")
    (launchable,) = native.prepare([kernel.kernel])
    _, (result,) = kernel.run(launchable)
    array = values(n, dtype.value)
    if dtype is DType.BOOL:
        assert result is True
    elif dtype.is_integer:
        assert result == int(array.sum(dtype=array.dtype))
    else:
        single = dtype in (DType.FLOAT32, DType.COMPLEX64)
        assert result == pytest.approx(array.sum(dtype="complex128"), rel=1e-4 if single else 1e-12)


# --------------------------------------------------------------------------- the rest of the ir


def test_what_only_ir_can_say() -> None:
    """Old values of atomics, extents, exchange, compare and exchange, 16-byte atomics."""
    i = fresh("i", DType.INT64)
    x, z, out = fresh("x", DType.INT32), fresh("z", DType.COMPLEX128), fresh("out", DType.INT64)
    zero, one = Const(0, DType.INT64), Const(1, DType.INT32)
    swap = AtomicFetch("compare_exchange", x, (zero,), Const(7, DType.INT32), Const(5, DType.INT32))
    body = (
        Store(out, (zero,), Extent(x, 0)),
        Store(out, (Const(1, DType.INT64),), Cast(AtomicFetch("+", x, (zero,), one), DType.INT64)),
        Store(out, (Const(2, DType.INT64),), Cast(swap, DType.INT64)),
        Store(
            out,
            (Const(3, DType.INT64),),
            Cast(AtomicFetch("exchange", x, (zero,), one), DType.INT64),
        ),
        Store(out, (Const(4, DType.INT64),), Unary("-", Const(-(2**63), DType.INT64), DType.INT64)),
        Update("*", z, (zero,), Const(2j, DType.COMPLEX128), atomic=True),
        Update("max", x, (zero,), Const(3, DType.INT32)),
    )
    params = (Param(x, 1), Param(z, 1), Param(out, 1))
    workunit = Workunit("odd", (i,), params, body)

    def arguments() -> list[Any]:
        return [np.array([4, 0, 0], "int32"), np.array([1 + 1j]), np.zeros(5, "int64")]

    for execution in ("OpenMP", "Serial"):
        tested = case(workunit, [1], arguments, execution=execution)
        (launchable,) = native.prepare([tested.kernel])
        expected, _ = tested.interpreted()
        actual, _ = tested.run(launchable)
        for array, reference in zip(actual, expected, strict=True):
            np.testing.assert_array_equal(array, reference)


def lanes(i, a, x, y):
    """g++ contracts this into vfmaddsub although it is told not to."""
    y[2 * i] = a * x[2 * i] - y[2 * i]
    y[2 * i + 1] = a * x[2 * i + 1] + y[2 * i + 1]


def test_no_contraction_between_lanes() -> None:
    tested = case(lanes, [N // 2], lambda: [1.1, values(), values(seed=1)])
    (launchable,) = native.prepare([tested.kernel])
    np.testing.assert_array_equal(tested.run(launchable)[0][2], tested.interpreted()[0][2])


def say(i, x):
    pk.printf('x[%d] is "%g" %%\n', i, x[i])


def test_printf(capfd: pytest.CaptureFixture[str]) -> None:
    tested = case(say, [2], lambda: [np.array([0.5, 1e6])])
    (launchable,) = native.prepare([tested.kernel])
    tested.run(launchable)
    assert capfd.readouterr().out == 'x[0] is "0.5" %\nx[1] is "1e+06" %\n'


# --------------------------------------------------------------------------- arguments


def fill(i, n, s, x):
    x[i] = n + s


def test_numbers_that_do_not_fit() -> None:
    tested = case(fill, [4], lambda: [3, np.float32(0.5), np.zeros(4)])
    (launchable,) = native.prepare([tested.kernel])
    space, x = tested.kernel.space, np.zeros(4)

    def run(n: Any, s: Any) -> float:
        launchable.run(space, bound([n, s, x]))
        return float(x[0])

    assert run(3, 0.5) == 3.5
    assert run(np.int64(-3), True) == -2.0
    assert run(3, 1e300) == math.inf  # as C converts it
    with pytest.raises(OverflowError, match="'n': 2147483648 does not fit int32"):
        run(2**31, 0.5)
    with pytest.raises(ArgumentError, match="'n': expected an integer"):
        run(2.5, 0.5)
    with pytest.raises(ArgumentError, match="'s': expected a number"):
        run(2, "half")


def test_misaligned_memory_is_refused() -> None:
    tested = case(total, [3], lambda: [np.zeros(3)], "reduce")
    (launchable,) = native.prepare([tested.kernel])
    odd = np.frombuffer(bytearray(25), dtype="float64", offset=1)
    with pytest.raises(ArgumentError, match="'x' does not start at a multiple of 8 bytes"):
        launchable.run(tested.kernel.space, bound([odd]))


def test_a_view_is_allocated_by_its_first_launch() -> None:
    tested = case(axpy, [4], lambda: [2.0, np.ones(4), np.zeros(4)])
    (launchable,) = native.prepare([tested.kernel])
    handle = Handle()
    view = Region(Buffer(32, handle), 0, (8,), (4,), DType.FLOAT64)
    launchable.run(Space((0,), (4,)), [2.0, region_of(np.ones(4), DType.FLOAT64), view])
    assert view.array().tolist() == [2.0] * 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_child_does_not_wait_for_its_parents_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(team, "count", 2)
    n = 100_000
    tested = case(axpy, [n], lambda: [2.0, np.ones(n), np.zeros(n)])
    (launchable,) = native.prepare([tested.kernel])
    tested.run(launchable)
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        os._exit(int(tested.run(launchable)[0][2][-1]))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
    assert team.count == 2


def test_threads_wait_for_a_short_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the first kernel that is loaded tells libgomp, unless the program does."""
    seen: list[str | None] = []

    class Loaded:
        pf_kernel = None

    def load(path: str) -> Loaded:
        seen.append(os.environ.get("GOMP_SPINCOUNT"))
        return Loaded()

    monkeypatch.setattr(launchable.ctypes, "CDLL", load)
    for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT"):
        monkeypatch.delenv(name, raising=False)
    launchable._entry_point(Path("kernel.so"))
    assert "GOMP_SPINCOUNT" not in os.environ
    monkeypatch.setenv("OMP_WAIT_POLICY", "active")
    launchable._entry_point(Path("kernel.so"))
    monkeypatch.setenv("GOMP_SPINCOUNT", "7")
    launchable._entry_point(Path("kernel.so"))
    assert seen == [str(DEFAULT.spins), None, "7"]
    assert os.environ["GOMP_SPINCOUNT"] == "7"
