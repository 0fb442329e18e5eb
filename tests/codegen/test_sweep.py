"""Compiled sweeps: the values of loops run one after the other, and of sums the very bits."""
# ruff: noqa: F821

from __future__ import annotations

import ctypes
import itertools
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from pyfuser.codegen.cpu.unit import emit
from pyfuser.codegen.kernel import spec_of
from pyfuser.engine.compiler import compile_library, find_compiler
from pyfuser.engine.launchable import team
from pyfuser.engine.native import Launchable, prepare, prepare_launches
from pyfuser.nest.spec import SweepSpec
from pyfuser.support.errors import ArgumentError
from pyfuser.support.settings import SETTINGS
from tests.codegen.build import bound, case
from tests.vendors import emit_as_on

pytestmark = pytest.mark.skipif(
    shutil.which(SETTINGS.compiler) is None, reason="needs a C++ compiler"
)

Array = np.ndarray[Any, Any]
WAVES, THREADS = (1, 2, 3, 7), (1, 2, 3, 5)


class Loop(NamedTuple):
    """One loop of a sweep by hand: its lag and ahead, and the arrays it takes."""

    function: Callable[..., Any]
    arrays: str
    lag: int = 0
    ahead: int = 0
    rim: int = 0  # iterations left out at each end of each axis
    pattern: str = "for"
    shift: int = 0  # of the beginning of the outermost axis
    rank: int = 9  # at most so many axes, the outermost
    team_size: int = 0


class Sweep:
    """Loops over arrays of one shape (and NumPy's numbers), to be run apart and together."""

    def __init__(
        self,
        loops: Sequence[Loop],
        arrays: dict[str, Any],
        execution: str = "OpenMP",
        rolling: dict[str, tuple[int, ...]] | None = None,
    ) -> None:
        """rolling: arrays that are left alone, as windows stand for them; see `plan.Rolling`."""
        self.arrays = arrays
        self.loops = loops
        self.rolling = rolling or {}
        self.windows = tuple(
            tuple(
                (k, place)
                for k, loop in enumerate(loops)
                for place, name in enumerate(loop.arrays.split())
                if name == view
            )
            for view in self.rolling
        )
        whole = next(iter(arrays.values())).shape
        self.kernels = []
        for loop in loops:
            shape = whole[: loop.rank]
            begin = [loop.rim] * len(shape)
            begin[0] += loop.shift
            end = [n - loop.rim for n in shape]
            values = [arrays[name] for name in loop.arrays.split()]
            given = case(
                loop.function, end, lambda v=values: v, loop.pattern, begin, execution,
                loop.team_size,
            )  # fmt: skip
            self.kernels.append(given.kernel)

    def apart(self) -> list[bytes]:
        """The bits of all arrays and results after the loops ran one by one."""
        memory = self._copies()
        values: list[Any] = []
        for loop, kernel, launchable in zip(
            self.loops, self.kernels, prepare(self.kernels), strict=True
        ):
            arguments = bound([memory[name] for name in loop.arrays.split()])
            values += launchable.run(kernel.space, arguments)
        return self._bits(memory, values)

    def together(self, wave: int, launchable: Launchable | None = None) -> list[bytes]:
        """The same after one launch."""
        memory = self._copies()
        return self._bits(memory, self.launch(memory, wave, launchable))

    def launch(
        self, memory: dict[str, Array], wave: int, launchable: Launchable | None = None
    ) -> tuple[Any, ...]:
        """Run all loops as a sweep on these arrays; their results."""
        if launchable is None:
            (launchable,) = prepare_launches([(self.kernels, self.windows)])
        arguments = [
            argument
            for loop in self.loops
            for argument in bound([memory[name] for name in loop.arrays.split()])
        ]
        stages = [
            (loop.lag, loop.ahead, *kernel.space[:2])
            for loop, kernel in zip(self.loops, self.kernels, strict=True)
        ]
        result: tuple[Any, ...] = launchable.run((wave, *self.rolling.values(), *stages), arguments)
        return result

    def _bits(self, memory: dict[str, Array], values: Iterable[Any]) -> list[bytes]:
        return _bits({n: a for n, a in memory.items() if n not in self.rolling}, values)

    def _copies(self) -> dict[str, Array]:
        return {name: array.copy() for name, array in self.arrays.items()}

    def spec(self) -> SweepSpec:
        return SweepSpec(tuple(map(spec_of, self.kernels)), self.windows)


def _bits(memory: dict[str, Array], values: Iterable[Any]) -> list[bytes]:
    return [array.tobytes() for array in memory.values()] + [
        np.asarray(value).tobytes() for value in values
    ]


def check(
    sweep: Sweep,
    monkeypatch: pytest.MonkeyPatch,
    waves: Iterable[int] = WAVES,
    threads: Iterable[int] = THREADS,
) -> None:
    """However many threads and steps, the bits are those of the loops run apart by one thread."""
    monkeypatch.setattr(team, "count", 1)
    expected = sweep.apart()
    for count, wave in itertools.product(threads, waves):
        monkeypatch.setattr(team, "count", count)
        assert sweep.together(wave) == expected, f"wave {wave}, threads {count}"


def numbers(shape: int | tuple[int, ...], dtype: str = "float64", seed: int = 1) -> Array:
    """Values whose sums depend on the order of additions."""
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "i":
        return rng.integers(-9, 10, shape).astype(dtype)
    values = rng.normal(size=shape) * 10.0 ** rng.integers(-8, 8, shape)
    if np.dtype(dtype).kind == "c":
        return (values + 1j * rng.normal(size=shape)).astype(dtype)
    return values.astype(dtype)


# --------------------------------------------------------------------------- lines


def smooth(i, x, y):
    y[i] = x[i - 1] + x[i + 1] - x[i]


def copy(i, x, y):
    y[i] = x[i]


def total(i, acc, x):
    acc += x[i]


def total_int64(i, acc: pk.Acc[pk.int64], x):
    acc += x[i]


def total_complex128(i, acc: pk.Acc[pk.complex128], x):
    acc += x[i]


TOTALS = {
    "float64": total,
    "int64": total_int64,
    "complex128": total_complex128,
}


def line(n: int, dtype: str = "float64", execution: str = "OpenMP") -> Sweep:
    """Two steps of a stencil with sums before, between and after them."""
    add = TOTALS[dtype]
    loops = [
        Loop(add, "x", pattern="reduce"),
        Loop(smooth, "x y", rim=1),
        Loop(add, "y", pattern="reduce"),
        Loop(smooth, "y z", 1, 1, rim=2),
        Loop(add, "z", 1, 1, pattern="reduce"),
    ]
    arrays = {"x": numbers(n, dtype), "y": numbers(n, dtype, 2), "z": numbers(n, dtype, 3)}
    return Sweep(loops, arrays, execution)


SMALL = (5, 6, 7, 9, 16, 17, 33, 64, 100)
#: Tiles of 8 terms, of 16, of 80; and above 2**18 iterations, of 4096.
LINES = (*SMALL, 511, 513, 1025, 5000)


@pytest.mark.parametrize("dtype", TOTALS)
def test_lines(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in LINES:
        check(line(n, dtype), monkeypatch)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_long_lines(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check(line(270_001, dtype), monkeypatch, waves=(1000, 4096, 300_000))


def test_a_serial_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    for n in SMALL:
        sweep = line(n, execution="Serial")
        assert "#pragma omp" not in emit(sweep.spec())
        check(sweep, monkeypatch, threads=(1, 3))


def test_more_threads_than_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(1, 8):
        loops = [Loop(copy, "x y"), Loop(total, "y", pattern="reduce"), Loop(copy, "y z")]
        check(Sweep(loops, {name: numbers(n, seed=n) for name in "xyz"}), monkeypatch)


def test_loops_that_hardly_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some threads have nothing to do in some loops, and the hull is what is cut."""
    for n in (20, 41):
        for shift in (n // 2, n - 4):
            loops = [
                Loop(copy, "x y"),
                Loop(smooth, "y z", 1, 1, rim=1, shift=shift),
                Loop(total, "z", 1, 1, pattern="reduce", shift=shift + 2),
                Loop(total, "z", 1, 1, pattern="reduce"),
            ]
            check(Sweep(loops, {name: numbers(n, seed=n) for name in "xyz"}), monkeypatch)


def double_in_place(i, x):
    x[i] *= 2.0


def test_lags_may_be_larger_than_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    for lag, ahead in ((0, 9), (9, 0), (5, 2), (40, 40)):
        loops = [
            Loop(total, "x", pattern="reduce"),
            Loop(double_in_place, "x", lag, ahead),  # an iteration that runs twice shows
            Loop(total, "x", lag, ahead, pattern="reduce"),
        ]
        check(Sweep(loops, {"x": numbers(61)}), monkeypatch)


def rolled(n: int) -> Sweep:
    """Two temporaries between three steps, with a sum of one of them."""
    loops = [
        Loop(smooth, "x y", rim=1),
        Loop(smooth, "y z", 1, 1, rim=2),
        Loop(total, "y", 1, 1, pattern="reduce", rim=3),
        Loop(smooth, "z w", 2, 2, rim=3),
        Loop(total, "w", 2, 2, pattern="reduce"),
    ]
    arrays = {name: numbers(n, seed=k) for k, name in enumerate("xyzw")}
    return Sweep(loops, arrays, rolling={"y": (8, -2, 0, 0, 2), "z": (8, -3, -1, 1, 3)})


def test_windows_roll_on(monkeypatch: pytest.MonkeyPatch) -> None:
    for n in (7, 8, 12, 17, 33, 64, 513, 5000):
        check(rolled(n), monkeypatch)


def tripled(i, x):
    x[i] *= 3.0


def test_windows_of_what_is_updated_roll_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """After some loops have read it, before others do; around cuts, too."""
    loops = [
        Loop(smooth, "x y", rim=1),
        Loop(smooth, "y z", 1, 1, rim=2),
        Loop(tripled, "y", 2, 2, rim=2),
        Loop(smooth, "y w", 3, 3, rim=3),
    ]
    for n in (9, 12, 17, 33, 64, 513, 5000):
        arrays = {name: numbers(n, seed=k) for k, name in enumerate("xyzw")}
        check(Sweep(loops, arrays, rolling={"y": (8, -4, 0, 0, 4)}), monkeypatch)


def overwritten(n: int, *window: int) -> Sweep:
    """What is left of a loop that wrote `x` to y as well: the next one overwrites all of that."""
    loops = [
        Loop(copy, "x z", rim=1),
        Loop(smooth, "z y", 1, 1, rim=2),
        Loop(smooth, "y w", 2, 2, rim=3),
    ]
    arrays = {name: numbers(n, seed=k) for k, name in enumerate("xyzw")}
    return Sweep(loops, arrays, rolling={"y": (8, *window)})


def test_windows_roll_on_though_their_first_store_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The numbers are those of the store that is gone, and those of the one that is left."""
    for n in (9, 12, 17, 33, 64, 513, 5000):
        check(overwritten(n, -3, 0, 0, 3), monkeypatch)
        check(overwritten(n, -3, -1, 1, 3), monkeypatch)


@pytest.mark.parametrize("window", [(-3, -2, 1, 3), (-3, -1, 2, 3)])
def test_a_store_that_is_not_saved_at_a_cut_shows(
    window: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test of the tests: a window that ends, or begins, a step before the store does."""
    monkeypatch.setattr(team, "count", 2)
    sweep = overwritten(100, *window)
    apart = sweep.apart()
    perturb = -6  # M_PERTURB of glibc: what is not saved is what the memory has
    ctypes.CDLL(None).mallopt(perturb, 0x5A)
    try:
        assert sweep.together(64) != apart
    finally:
        ctypes.CDLL(None).mallopt(perturb, 0)


def test_a_window_that_is_too_small_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test of the tests: reaches that the planner must not forget."""
    monkeypatch.setattr(team, "count", 1)
    sweep = rolled(100)
    assert sweep.together(2) == sweep.apart()
    sweep.rolling["y"] = (8, -1, 0, 0, 2)
    assert sweep.together(2) != sweep.apart()


def test_rows_roll_on(monkeypatch: pytest.MonkeyPatch) -> None:
    for shape in ((5, 7), (33, 5), (60, 70)):
        loops = [
            Loop(smooth_grid, "x y", rim=1),
            Loop(smooth_grid, "y z", 1, 1, rim=2),
            Loop(total_grid, "z", 1, 1, pattern="reduce"),
        ]
        arrays = {name: numbers(shape, seed=k) for k, name in enumerate("xyz")}
        numbers_of_rows = (8 * shape[1], -2, 0, 0, 2)
        check(Sweep(loops, arrays, rolling={"y": numbers_of_rows}), monkeypatch)


def ahead_of(i, x, y):
    y[i] = x[i + 2]


def test_a_lag_that_is_too_small_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test of the tests: what the planner must not do gives other values."""
    monkeypatch.setattr(team, "count", 1)
    arrays = {name: numbers(50, seed=n) for n, name in enumerate("xyz")}
    for lag, right in ((2, True), (1, False), (0, False)):
        sweep = Sweep([Loop(smooth, "x y", rim=2), Loop(ahead_of, "y z", lag, rim=2)], arrays)
        assert (sweep.together(1) == sweep.apart()) is right
    monkeypatch.setattr(team, "count", 3)  # needs what comes before its own share
    loops = [Loop(smooth, "x y", rim=1), Loop(smooth, "y z", 1, 0, rim=2)]
    right = Sweep(loops, arrays).apart()
    # On a busy machine the thread before may be done in time, once or twice.
    assert any(Sweep(loops, arrays).together(64) != right for _ in range(100))


# --------------------------------------------------------------------------- boxes


def smooth_grid(i, j, x, y):
    y[i][j] = x[i - 1][j] + x[i + 1][j] - x[i][j - 1]


def total_grid(i, j, acc, x):
    acc += x[i][j]


def smooth_cube(i, j, k, x, y):
    y[i][j][k] = x[i - 1][j][k] + x[i + 1][j][k] - x[i][j + 1][k - 1]


def total_cube(i, j, k, acc, x):
    acc += x[i][j][k]


def box(shape: tuple[int, ...]) -> Sweep:
    """As `line`, in two or three dimensions."""
    step, add = {2: (smooth_grid, total_grid), 3: (smooth_cube, total_cube)}[len(shape)]
    loops = [
        Loop(step, "x y", rim=1),
        Loop(add, "y", pattern="reduce", rim=1),
        Loop(step, "y z", 1, 1, rim=2),
        Loop(add, "z", 1, 1, pattern="reduce"),
    ]
    return Sweep(loops, {name: numbers(shape, seed=n) for n, name in enumerate("xyz")})


@pytest.mark.parametrize(
    "shape",
    [
        (5, 5),
        (9, 6),
        (40, 9),  # a tile is a part of a row
        (9, 70),
        (700, 5),  # several rows
        (257, 61),
        (2000, 7),
        (70, 4100),  # larger than a tile of a large reduction
        (6, 45_000),
        (5, 5, 5),
        (20, 6, 5),
        (9, 7, 300),
        (60, 40, 6),
        (7, 6, 9000),
    ],
    ids=str,
)
def test_boxes(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    check(box(shape), monkeypatch)


def next_rows(i, x, y, m):
    for j in range(m):
        y[i][j] = 3.0 * x[i + 1][j]


def row_totals(i, acc, x, m):
    for j in range(m):
        acc += x[i][j]


def test_loops_of_different_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    for shape in ((9, 5), (60, 40), (1030, 3)):
        m = np.int32(shape[1])
        arrays: dict[str, Any] = {n: numbers(shape, seed=k) for k, n in enumerate("xyz")}
        loops = [
            Loop(smooth_grid, "x y", rim=1),
            Loop(next_rows, "y z m", 1, 0, rim=1, rank=1),
            Loop(row_totals, "z m", 1, 0, pattern="reduce", rank=1),
            Loop(total_grid, "z", 1, 0, pattern="reduce"),
        ]
        check(Sweep(loops, {**arrays, "m": m}), monkeypatch)


def scaled(i, x, a, b, y):
    y[i] = x[i - 1] * a + b


def axpy(i, b, y, c, a, z):
    z[i] = y[i + 1] * a + c * b


def copy_element(i, j, x, y):
    y[i][j] = x[i][j]


def spread_of_row(team: pk.TeamMember, y, x):
    row: int = team.league_rank()

    def add(k: int, acc: pk.Acc[pk.double]):
        acc += x[row][k]

    mean: float = pk.parallel_reduce(pk.TeamThreadRange(team, COLUMNS_OF_ROW), add)

    def add_square(k: int, acc: pk.Acc[pk.double]):
        acc += (x[row][k] - mean) * (x[row][k] - mean)

    y[row][0] = pk.parallel_reduce(pk.TeamThreadRange(team, COLUMNS_OF_ROW), add_square)


COLUMNS_OF_ROW = 40


def test_two_sums_of_a_row_in_one_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = {name: np.random.default_rng(7).random((30, 40)) for name in "xyz"}
    loops = [Loop(copy_element, "x z"), Loop(spread_of_row, "y z", 1, 1, rank=1, team_size=1)]
    check(Sweep(loops, arrays), monkeypatch)


def test_numbers_between_the_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one slot or two, in every loop."""
    arrays: dict[str, Any] = {n: numbers(77, "complex128", k) for k, n in enumerate("xyz")}
    arrays |= {"a": np.complex128(2 - 1j), "b": np.float64(0.3), "c": np.int64(-7)}
    loops = [
        Loop(scaled, "x a b y", rim=1),
        Loop(axpy, "b y c a z", 1, 0, rim=1),
        Loop(total_complex128, "z", 1, 0, pattern="reduce"),
    ]
    check(Sweep(loops, arrays), monkeypatch)


# --------------------------------------------------------------------------- emitted code


def dot_of_neighbours(i, acc, y, z):
    acc += y[i - 1] * z[i + 1]


def test_golden(golden: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    emit_as_on(monkeypatch, vector_bytes=64, intel=False)
    loops = [
        Loop(smooth, "x y", rim=1),
        Loop(dot_of_neighbours, "y x", 0, 1, pattern="reduce", rim=2),
    ]
    sweep = Sweep(loops, {name: np.zeros(64) for name in "xy"})
    golden("cpp/sweep.cpp", emit(sweep.spec()))


def test_equal_loops_are_emitted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("x y", "y x")
    loops = [Loop(smooth, names[k % 2], k, k, rim=1) for k in range(6)]
    sweep = Sweep(loops, {name: numbers(90, seed=4) for name in "xy"})
    source = emit(sweep.spec())
    assert source.count("void run(\n") == 1
    assert source.count("{pf_stage0::run, ") == 6
    check(sweep, monkeypatch)


def named_as_the_code_is(i, first, last, slot, state, begin, end, part, parts):
    first[i] = last[i] + slot[i] + state[i] + begin[i] + end[i] + part[i] + parts[i]


def sum_named_as_the_code_is(tile, filled, tiling, common):
    filled += tiling[tile] + common[tile]


def test_names_of_users_do_not_meet_those_of_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    loops = [
        Loop(named_as_the_code_is, "a b c d e f g h"),
        Loop(sum_named_as_the_code_is, "a b", pattern="reduce"),
    ]
    arrays = {name: numbers(50, seed=n) for n, name in enumerate("abcdefgh")}
    check(Sweep(loops, arrays), monkeypatch, waves=(7,))


# --------------------------------------------------------------------------- errors


def test_a_misaligned_array_is_named() -> None:
    sweep = line(20)
    memory = {name: array.copy() for name, array in sweep.arrays.items()}
    odd = np.zeros(21 * 8, np.uint8)
    for name, place in (("x", "x"), ("y", "y"), ("z", "y")):  # of smooth(x, y) on y and z
        wrong = odd[4 : 4 + 20 * 8].view(np.float64)
        with pytest.raises(ArgumentError, match=f"argument {place!r} does not start at a multiple"):
            sweep.launch({**memory, name: wrong}, 3)
        for other in "xyz":
            assert (memory[other] == sweep.arrays[other]).all(), "nothing has run"


_COUNTED = """\
#include <stdlib.h>
static long pf_left = 1 << 30, pf_live = 0;
extern "C" void pf_limit(long left) { pf_left = left; }
extern "C" long pf_leaked() { return pf_live; }
static void* pf_counted(void* p) { if (p) ++pf_live; return p; }
static void* pf_malloc(size_t n) { return --pf_left < 0 ? 0 : pf_counted(malloc(n)); }
static void* pf_calloc(size_t n, size_t s) { return --pf_left < 0 ? 0 : pf_counted(calloc(n, s)); }
static void pf_free(void* p) { if (p) --pf_live; free(p); }
"""


def counted(spec: SweepSpec, folder: Path) -> tuple[Launchable, Any]:
    """A sweep whose allocations can be made to fail, and its library."""
    source = emit(spec)
    for name in ("malloc", "calloc", "free"):
        source = source.replace(f"__builtin_{name}(", f"pf_{name}(")
    assert "pf_free(" in source
    text, library = folder / "counted.cpp", folder / "counted.so"
    text.write_text(_COUNTED + source, encoding="utf-8")
    compile_library(find_compiler(SETTINGS.compiler), text, library)
    return Launchable(spec, source, library), ctypes.CDLL(str(library))


@pytest.mark.parametrize("make", [line, rolled], ids=["sums", "windows"])
def test_without_memory_nothing_runs_and_nothing_leaks(
    make: Callable[[int], Sweep], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = make(600)
    launchable, library = counted(sweep.spec(), tmp_path)
    for threads in (1, 3):
        monkeypatch.setattr(team, "count", threads)
        failures = 0
        while True:
            library.pf_limit(failures)
            memory = {name: array.copy() for name, array in sweep.arrays.items()}
            try:
                values = sweep.launch(memory, 5, launchable)
            except MemoryError as error:
                assert "no memory for its working space" in str(error)
                assert _bits(memory, ()) == _bits(sweep.arrays, ()), "nothing has run"
                assert library.pf_leaked() == 0
                failures += 1
                continue
            break
        assert sweep._bits(memory, values) == sweep.apart()
        assert library.pf_leaked() == 0
        assert failures >= (5 if threads == 1 else 7), "so many allocations failed"
