"""Maps that load and store 16 bytes at a time: which, when, and that they compute the same."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyfuser.codegen.gpu import CUDA, HIP, declined, emit
from pyfuser.codegen.gpu_vector import Plan, Vectors, chooser, plan
from pyfuser.codegen.spec import spec_of
from pyfuser.ir.canonical import fresh
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Const, Load, Param, Read, Store, Update, Workunit
from tests.codegen.build import Case, case
from tests.gpu.compilers import (
    MISSING_CLANG,
    MISSING_NVRTC,
    clang,
    compile_cuda,
    compile_hip,
    nvrtc,
)
from tests.gpu.emulator import Emulated
from tests.gpu.launch import renamed
from tests.gpu.test_emulated import EXACT

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
    assert [re.sub(r"_\d+", "", entry) for entry in emulated.launched[name]] == ["pf_vectors"]
    check(emulated, VECTORS[name], name, 0, plain=True)
    assert [re.sub(r"_\d+", "", entry) for entry in emulated.launched[name]] == ["pf_kernel"]


@pytest.mark.parametrize("name", UNALIGNED)
def test_what_is_not_aligned_is_loaded_one_by_one(name: str, emulated: Emulated) -> None:
    assert emulated.kernels[name].vectors is not None
    check(emulated, UNALIGNED[name], name, 0)
    assert [re.sub(r"_\d+", "", entry) for entry in emulated.launched[name]] == ["pf_kernel"]


def test_other_kernels_compute_the_same_with_vectors(tmp_path: Path) -> None:
    """All maps of the other tests that can have vectors."""
    cases = {n: c for n, c in EXACT.items() if isinstance(plan(spec_of(c.kernel), WIDE), Plan)}
    assert len(cases) > 5
    emulated = Emulated(cases, tmp_path, widest=WIDE)
    for name, tested in cases.items():
        check(emulated, tested, name, 1)
    assert any("pf_vectors" in entry for entries in emulated.launched.values() for entry in entries)
