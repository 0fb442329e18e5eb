"""Maps that load and store 16 bytes at a time: which, when, and that they compute the same."""

from __future__ import annotations

import faulthandler
import multiprocessing
import re
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyfuser.codegen.gpu import grid as gpu_grid
from pyfuser.codegen.gpu.packed import Plan, Vectors, chooser, plan
from pyfuser.codegen.gpu.packed_map import VECTORS as ENTRY
from pyfuser.codegen.gpu.unit import CUDA, HIP, Dialect, emit
from pyfuser.codegen.kernel import spec_of
from pyfuser.tuning.thresholds import DEFAULT
from tests.codegen.build import Case, case
from tests.engine.test_native import MAPS
from tests.gpu.cases import CASES, PRINTING
from tests.gpu.compilers import compile_cuda, nvrtc
from tests.gpu.device import MISSING_GPU, OnDevice, architecture
from tests.gpu.emulator import Emulated
from tests.gpu.launch import renamed
from tests.gpu.test_compiles import OF_TESTS, Compile
from tests.gpu.test_emulated import EXACT
from tests.gpu.test_launch import SUFFIXES

N = 203
ROWS, COLUMNS = 7, 48
WIDE = 8
"""Of elements that have vectors here, whatever is the default."""


def memory(dtype: str, *shape: int, seed: int = 0, skip: int = 0) -> np.ndarray[Any, Any]:
    """Numbers that start `skip` elements behind an address that suits every vector."""
    kind = np.dtype(dtype)
    count = int(np.prod(shape))
    raw = np.zeros((count + skip) * kind.itemsize + 64, "uint8")
    start = -raw.ctypes.data % 64
    array = raw[start : start + (count + skip) * kind.itemsize].view(kind)[skip:]
    values = np.random.default_rng(seed).integers(-9 if kind.kind not in "bu" else 0, 9, count)
    array[:] = values.astype(kind) if kind.kind != "c" else values + 1j * values[::-1]
    return array.reshape(shape)


# --------------------------------------------------------------------------- what has vectors


def axpy(i, a, x, y):
    y[i] += a * x[i]


def scaled(i, x, y):
    y[i] = x[i] + x[i]


def fill(i, x):
    x[i] = i


def stencil(i, x, y):
    y[i] = x[i - 1] + x[i] + 3 * x[i + 1]


def far_stencil(i, x, y):
    y[i + 4] = x[i] - x[i + 7] + x[i + 4] * x[i + 8]


def guarded(i, x, y, z):
    t: float = x[i]
    y[i] = t
    if t > 2.0:
        y[i] += 1.0
        t = y[i] * z[i]
    z[i] = t


def edges(i, n, x, y):
    y[i] = x[i]
    if i > 0 and i < n - 1:
        y[i] = x[i - 1] + x[i + 1]


def kept_elsewhere(i, x, y):
    if x[i] > 0:
        y[i] = 5
    y[i] = y[i] + 1


def rows(i, j, x, y, z):
    y[i][j] = x[i][j] + x[i + 1][j] * z[i] - x[i][j + 1]


def columns(i, j, x, y):
    y[i][j] = 2 * x[i][j]


def planes(i, j, k, x, y):
    y[i][j][k] += x[k] * 2 + j


def apart(i, x, y, z):
    z[i] = x[i] * 2 + y[i]


def one_dimensional(dtype: str, begin: int, end: int, skip: int = 0) -> Case:
    return case(
        axpy,
        [end],
        lambda: [3.0, memory(dtype, N, seed=1, skip=skip), memory(dtype, N, seed=2, skip=skip)],
        begin=[begin],
    )


def two(function: Callable[..., Any], begin: int, end: int, dtype: str = "float32") -> Case:
    return case(function, [end], lambda: [memory(dtype, N, seed=s) for s in (1, 2)], begin=[begin])


VECTORS: dict[str, Case] = {
    **{
        f"{dtype} from {begin} to {end}": one_dimensional(dtype, begin, end)
        for dtype in ("float32", "float64")
        for begin in (0, 1, 2, 3, 5, 40)
        for end in (41, 43, 44, N - 1, N)
    },
    **{
        f"{dtype}, {skip} elements behind": one_dimensional(dtype, 2, N - 3, skip)
        for dtype in ("float32", "float64", "int16", "int8")
        for skip in (1, 3)
    },
    **{
        f"scaled {dtype}": two(scaled, 1, N, dtype)
        for dtype in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
                      "float32", "float64", "complex64")
    },
    "fewer than a vector": two(scaled, 5, 7),
    "one": two(scaled, 6, 7),
    "fill": case(fill, [N], lambda: [memory("float32", N)], begin=[3]),
    "stencil": two(stencil, 1, N - 1),
    "stencil of doubles": two(stencil, 1, N - 1, "float64"),
    "stencil of bytes": two(stencil, 1, N - 1, "int8"),
    "far stencil": two(far_stencil, 1, N - 9),
    "guarded": case(
        guarded, [N], lambda: [memory("float32", N, seed=s) for s in range(3)], begin=[1]
    ),
    "edges": case(edges, [N], lambda: [N, memory("float32", N), memory("float32", N, seed=1)]),
    "kept elsewhere": two(kept_elsewhere, 1, N),
    "mixed types": case(
        apart,
        [N],
        lambda: [memory("int16", N, seed=1), memory("float32", N, seed=2), memory("int8", N)],
        begin=[1],
    ),
    "mixed with doubles": case(
        apart,
        [N],
        lambda: [memory("float32", N, seed=1), memory("float64", N, seed=2), memory("bool", N)],
        begin=[3],
    ),
    "rows": case(
        rows,
        [ROWS, COLUMNS - 3],
        lambda: [
            memory("float32", ROWS + 1, COLUMNS), memory("float32", ROWS, COLUMNS, seed=1),
            memory("float32", ROWS),
        ],
        begin=[1, 3],
    ),
    "columns": case(
        columns,
        [COLUMNS - 1, ROWS],
        lambda: [memory("float32", ROWS, COLUMNS, seed=s).T for s in range(2)],
        begin=[2, 1],
    ),
    "planes": case(
        planes,
        [3, ROWS, COLUMNS],
        lambda: [memory("float32", COLUMNS), memory("float32", 3, ROWS, COLUMNS, seed=1)],
        begin=[1, 0, 5],
    ),
}  # fmt: skip

UNALIGNED: dict[str, Case] = {
    "one view an element behind": case(
        axpy, [N], lambda: [2.0, memory("float32", N, skip=1), memory("float32", N, seed=1)]
    ),
    "of another size": case(
        apart,
        [N],
        lambda: [
            memory("int16", N, skip=1), memory("float32", N, seed=2), memory("int8", N, skip=4),
        ],
    ),
    "rows of an odd length": case(
        columns, [ROWS, 45], lambda: [memory("float32", ROWS, 45, seed=s) for s in range(2)]
    ),
    "every other row of an odd length": case(
        columns, [ROWS, 45], lambda: [memory("float32", 2 * ROWS, 45, seed=s)[::2] for s in (0, 1)]
    ),
}  # fmt: skip
"""What has vectors, but not for these arguments."""


@pytest.fixture(scope="module")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> Emulated:
    return Emulated({**VECTORS, **UNALIGNED}, tmp_path_factory.mktemp("vectors"), widest=WIDE)


def check(emulated: Emulated, tested: Case, name: str, seed: int, plain: bool = False) -> None:
    expected, _ = tested.interpreted()
    arguments, _ = emulated.run(name, seed, plain)
    for array, reference in zip(arguments, expected, strict=True):
        np.testing.assert_array_equal(array, reference)


@pytest.mark.parametrize("name", VECTORS)
def test_vectors_compute_the_same(name: str, emulated: Emulated) -> None:
    for seed in range(2):
        check(emulated, VECTORS[name], name, seed)
    assert all(entry.startswith(ENTRY) for entry in emulated.launched[name])
    check(emulated, VECTORS[name], name, 0, plain=True)
    assert not any(entry.startswith(ENTRY) for entry in emulated.launched[name])


@pytest.mark.parametrize("name", UNALIGNED)
def test_what_is_not_aligned_is_loaded_one_by_one(name: str, emulated: Emulated) -> None:
    assert emulated.kernels[name].vectors is not None
    check(emulated, UNALIGNED[name], name, 0)
    assert not any(entry.startswith(ENTRY) for entry in emulated.launched[name])


def test_other_kernels_compute_the_same_with_vectors(tmp_path: Path) -> None:
    """All maps of the other tests that can have vectors."""
    cases = {n: c for n, c in EXACT.items() if isinstance(plan(spec_of(c.kernel), WIDE), Plan)}
    assert len(cases) > 5
    emulated = Emulated(cases, tmp_path, widest=WIDE)
    for name, tested in cases.items():
        check(emulated, tested, name, 1)
    assert any(e.startswith(ENTRY) for entries in emulated.launched.values() for e in entries)


def test_a_thread_takes_more_than_one_group(
    emulated: Emulated, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = replace(DEFAULT, gpu_grid=1, gpu_threads=8)
    for name, kernel in emulated.kernels.items():
        monkeypatch.setitem(emulated.kernels, name, replace(kernel, tuning=few))
    for name in ("float32 from 5 to 202", "stencil", "scaled int8"):
        check(emulated, VECTORS[name], name, 1)
        assert emulated.launched[name][0].startswith(ENTRY)


@pytest.mark.parametrize(
    ("name", "extents", "blocks", "threads"),
    [
        ("float32 from 0 to 41", [1024], (1, 1, 1), (256, 1, 1)),
        ("float32 from 0 to 41", [1025], (2, 1, 1), (256, 1, 1)),
        ("float64 from 0 to 41", [1024], (2, 1, 1), (256, 1, 1)),
        ("rows", [1000, 256], (1, 250, 1), (64, 4, 1)),
        ("rows", [1000, 2], (1, 4, 1), (1, 256, 1)),
        ("columns", [256, 1000], (1, 250, 1), (64, 4, 1)),
    ],
)
def test_grids_of_vectors(
    name: str, extents: list[int], blocks: tuple[int, ...], threads: tuple[int, ...]
) -> None:
    kernel = emit(spec_of(VECTORS[name].kernel), CUDA, widest=WIDE)
    begin = [5] * len(extents)
    grid = kernel.vector_grid(begin, [5 + extent for extent in extents])
    assert grid == gpu_grid.Grid(blocks, threads)  # type: ignore[arg-type]
    assert kernel.vector_grid(begin, begin) is None


def run_broken(folder: Path, before: str, after: str) -> None:
    """Run a stencil whose code is changed."""
    faulthandler.disable()  # an abort is what some changes ask for

    def change(text: str) -> str:
        assert before in text
        return text.replace(before, after)

    emulated = Emulated({"stencil": VECTORS["stencil"]}, folder, change=change)
    expected, _ = VECTORS["stencil"].interpreted()
    arguments, _ = emulated.run("stencil")
    assert all(map(np.array_equal, arguments, expected))


@pytest.mark.parametrize(
    ("before", "after", "status"),
    [
        (" + 4 <= i_end", " + 4 <= i_end", 0),
        ("+ i_begin) & 3)", "+ i_begin) & 3) + 1", -signal.SIGABRT),  # groups begin elsewhere
        ("if (i_begin <= i_group && ", "if (", 1),  # iterations before the space
        (" && i < i_group + 4; ++i)", "; i += 2)", 1),
        ("lane + 1 < 4 ? ", "lane < 4 ? ", 1),
    ],
)
def test_a_mistake_in_the_code_shows(before: str, after: str, status: int, tmp_path: Path) -> None:
    process = multiprocessing.get_context("fork").Process(
        target=partial(run_broken, tmp_path, before, after)
    )
    process.start()
    process.join()
    assert process.exitcode == status


@pytest.mark.gpu
@pytest.mark.skipif(architecture() is None, reason=MISSING_GPU)
def test_vectors_compute_the_same_on_a_gpu() -> None:
    cases = {**VECTORS, **UNALIGNED}
    on_device = OnDevice(cases, widest=WIDE)
    for name, tested in cases.items():
        expected, _ = tested.interpreted()
        arguments, _ = on_device.run(name)
        for array, reference in zip(arguments, expected, strict=True):
            np.testing.assert_array_equal(array, reference, err_msg=name)


# --------------------------------------------------------------------------- what has none


def shifted(i, x):
    x[i] = x[i + 1]


def both(i, x, y):
    y[i] = x[i]
    y[i + 1] = x[i]


def sometimes(i, x, y):
    if x[i] > 0:
        y[i] = x[i]


def gathered(i, x, y, index):
    y[i] = x[index[i]]


def scattered(i, x, y, index):
    y[index[i]] = x[i]


def every_other(i, x, y):
    y[i] = x[2 * i]


def backwards(i, n, x, y):
    y[n - 1 - i] = x[i]


def one_cell(i, x, y):
    y[0] = x[i]


def one_row(i, j, x, y):
    y[j] = x[i][j]


def along_rows(i, j, x, y):
    y[i][j] = x[j][i]


def far(i, x, y):
    y[i] = x[i] + x[i + 5]


def only_beside(i, x, y):
    y[i] = x[i + 1]


def sometimes_far(i, x, y):
    y[i] = 0
    if i > 4:
        y[i] = x[i - 4]


def two_phases(i, x, y):
    y[i] = 1
    x[i + 1] = 2


def looped(i, x, y):
    for _ in range(3):
        y[i] += x[i]


def listed(i, x, y):
    weights: list[float] = [0.5, 0.25]
    y[i] = x[i] * weights[1]


def floats(*shape: int) -> np.ndarray[Any, Any]:
    return memory("float32", *shape)


def overlapping() -> list[Any]:
    base = floats(N + 4)
    return [base[4:], base[:-4]]


def refused(
    function: Callable[..., Any], arguments: Callable[[], Sequence[Any]], *extents: int
) -> Case:
    return case(function, extents or (64,), lambda: list(arguments()))


def pair() -> list[Any]:
    return [floats(N), floats(N)]


def square_pair() -> list[Any]:
    return [floats(64, 64), floats(64, 64)]


def indexed() -> list[Any]:
    return [floats(N), floats(N), np.arange(N, dtype="int32")]


REFUSED: dict[str, tuple[Case, str]] = {
    "x[i] = x[i + 1]": (refused(shifted, lambda: [floats(N)]), "x: an iteration reaches several"),
    "y[i], y[i + 1]": (refused(both, pair), "y: an iteration reaches several elements of it"),
    "overlapping views": (refused(scaled, overlapping), "may overlap"),
    "a conditional store": (refused(sometimes, pair), "not every iteration stores"),
    "gathered": (refused(gathered, indexed), "depend on data"),
    "scattered": (refused(scattered, indexed), "depend on data"),
    "x[2 * i]": (refused(every_other, pair), "not neighbours in memory"),
    "y[n - 1 - i]": (refused(backwards, lambda: [64, *pair()]), "not neighbours in memory"),
    "y[0]": (refused(one_cell, pair), "one element of it"),
    "y[j] of (i, j)": (
        refused(one_row, lambda: [floats(64, 64), floats(64)], 64, 64), "one element of it",
    ),
    "a transpose": (refused(along_rows, square_pair, 64, 64), "not neighbours in memory"),
    "no unit stride": (
        refused(scaled, lambda: [floats(2 * N)[::2], floats(N)]), "not neighbours in memory",
    ),
    "x[i + 5]": (refused(far, pair), "not aligned where the stores are"),
    "x[i + 1] alone": (refused(only_beside, pair), "not aligned where the stores are"),
    "a conditional load": (refused(sometimes_far, pair), "not aligned where the stores are"),
    "two phases": (refused(two_phases, pair), "stores at different offsets"),
    "a loop": (refused(looped, pair), "loops or arrays"),
    "a local list": (refused(listed, pair), "loops or arrays"),
    "atomics": (MAPS["atomics"], "order of its iterations"),
    "an atomic sum": (CASES["atomic + of float32"], "order of its iterations"),
    "output": (PRINTING["printf"], "order of its iterations"),
    "a narrow index": (case(scaled, [64], pair, widened=False), "an index that may wrap"),
    "a sum": (CASES["sum of float32"], "not a map"),
    "a scan": (CASES["scan of float32"], "not a map"),
    "serial": (
        case(scaled, [64], pair, execution="Serial"), "not a map of many threads",
    ),
    "16 bytes": (
        case(scaled, [N], lambda: [memory("complex128", N), memory("complex128", N)]),
        "elements of 16 bytes",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_vectors_and_why(name: str) -> None:
    tested, why = REFUSED[name]
    spec = spec_of(tested.kernel)
    found = plan(spec, 16)
    assert isinstance(found, str) and why in found
    assert emit(spec, CUDA, widest=16).vectors is None
    assert ENTRY not in emit(spec, CUDA, widest=16).source


def test_elements_that_are_too_wide() -> None:
    spec = spec_of(VECTORS["scaled float64"].kernel)
    assert plan(spec, 4) == "elements of 8 bytes"
    assert emit(spec, CUDA).vectors is None, "the default, until it is measured"
    assert emit(spec, CUDA, widest=8).vectors is not None
    single = spec_of(VECTORS["scaled float32"].kernel)
    assert emit(single, CUDA).vectors is not None
    assert emit(single, CUDA, widest=0).vectors is None


def test_what_is_read_on_one_way_only_is_not_loaded_ahead() -> None:
    """x[i - 1] of the first iteration is outside of the view."""
    source = emit(spec_of(VECTORS["edges"].kernel), CUDA).source
    assert source.count("= pf_load_constant<4>(&x[i_group])") == 1
    assert len(re.findall(r"= pf_load\w*<", source)) == 1


def test_when_vectors_are_aligned() -> None:
    one = Vectors("e", 4, ((3, 4, 0),), ())
    assert all(chooser(one)(address) for address in (0, 4, 8))
    several = Vectors("e", 4, ((3, 4, 1), (4, 2, -2), (6, 1, 5)), (5, 7))
    assert several.needed == (3, 4, 5, 6, 7)
    aligned = chooser(several)
    for x, y, z in np.ndindex(8, 8, 8):
        same = (x + 1) % 4 == (y - 2) % 4 == (z + 5) % 4
        assert aligned(64 + 4 * x, 32 + 2 * y, 40, 16 + z, -4) == same
    assert not aligned(64 + 4 * 3, 32 + 2 * 2, 42, 16 + 3, -4)
    assert not aligned(64 + 4 * 3, 32 + 2 * 2, 40, 16 + 3, 5)


# --------------------------------------------------------------------------- what compilers make


@pytest.mark.parametrize("dialect", (CUDA, HIP), ids=lambda dialect: dialect.name)
def test_golden(dialect: Dialect, golden: Callable[[str, str], None]) -> None:
    source = emit(spec_of(VECTORS["stencil"].kernel), dialect).source
    golden(f"{dialect.name}/vectors.{SUFFIXES[dialect.name]}", source)


@pytest.mark.parametrize(("dialect", "compile_source", "arch"), OF_TESTS)
def test_vectors_compile(dialect: Dialect, compile_source: Compile, arch: str) -> None:
    kernels = [emit(spec_of(c.kernel), dialect, widest=WIDE) for c in VECTORS.values()]
    sources = {kernel.source: kernel for kernel in kernels}
    compile_source("".join(renamed(k, n).source for n, k in enumerate(sources.values())), arch)


@pytest.mark.nvrtc
@pytest.mark.skipif(nvrtc() is None, reason="no NVRTC")
@pytest.mark.parametrize(
    ("name", "loads", "stores"),
    [
        ("scaled float32", 1, 1),
        ("scaled float64", 1, 1),
        ("scaled int8", 1, 1),
        ("scaled complex64", 1, 1),
        ("float32 from 0 to 41", 2, 1),
        ("fill", 0, 1),
        ("far stencil", 3, 1),
        ("guarded", 2, 2),
        ("rows", 2, 1),
    ],
)
def test_loads_and_stores_are_of_16_bytes(name: str, loads: int, stores: int) -> None:
    source = emit(spec_of(VECTORS[name].kernel), CUDA, widest=WIDE).source
    text = compile_cuda(source, "compute_80").decode()
    plain, wide = text[text.index(".entry pf_kernel") :].split(f".entry {ENTRY}")
    wanted = r"{}\.global\S*\.(v4\.\w32|v2\.\w64)"
    assert len(re.findall(wanted.format("ld"), wide)) == loads
    assert len(re.findall(wanted.format("st"), wide)) == stores
    assert not re.findall(wanted.format("(ld|st)"), plain)


def test_hip_differs_only_in_what_kernels_are_built_on() -> None:
    for tested in VECTORS.values():
        sources = [emit(spec_of(tested.kernel), d, widest=WIDE).source for d in (CUDA, HIP)]
        assert len({source[source.index('extern "C" __global__') :] for source in sources}) == 1
