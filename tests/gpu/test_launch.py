"""Sources of GPU kernels as golden files, what has none, and how kernels are launched."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import pytest

from pyfuser.codegen.gpu.context import Argument
from pyfuser.codegen.gpu.dialects import DIALECTS
from pyfuser.codegen.gpu.unit import CUDA, HIP, GpuKernel, emit
from pyfuser.codegen.kernel import spec_of
from pyfuser.ir.dtypes import DType
from pyfuser.nest.declined import declined, refusal
from pyfuser.nest.launch import Grid
from pyfuser.nest.spec import SweepSpec
from pyfuser.tuning.thresholds import DEFAULT
from tests.codegen.test_cpp import GOLDEN
from tests.engine.test_native import MAPS
from tests.gpu.cases import CASES
from tests.gpu.team_cases import NO_KERNEL

SUFFIXES = {"cuda": "cu", "hip": "hip"}
SOURCES = {
    **{name: tested for name, tested in GOLDEN.items() if not declined(spec_of(tested.kernel))},
    "several_sums": CASES["seven at once"],
    "atomics": MAPS["atomics"],
    "complex": MAPS["complex"],
}


#: Of HIP those that all others are built on: the kernels themselves are those of CUDA.
TEXTS = [("cuda", name) for name in SOURCES if name not in ("clip_serial", "team_of_one")]
TEXTS += [("hip", n) for n in ("atomics", "complex", "prefix", "several_sums", "team_of_two")]


@pytest.mark.parametrize(("dialect", "name"), TEXTS)
def test_golden(dialect: str, name: str, golden: Callable[[str, str], None]) -> None:
    kernel = emit(spec_of(SOURCES[name].kernel), DIALECTS[dialect])
    golden(f"{dialect}/{name}.{SUFFIXES[dialect]}", kernel.source)


def body(source: str) -> str:
    """The kernels themselves."""
    return source[source.index('extern "C" __global__') :]


@pytest.mark.parametrize("name", SOURCES)
def test_the_dialects_differ_only_in_what_kernels_are_built_on(name: str) -> None:
    spec = spec_of(SOURCES[name].kernel)
    assert body(emit(spec, CUDA).source) == body(emit(spec, HIP).source)


# --------------------------------------------------------------------------- declined


def test_what_is_declined_and_why() -> None:
    stencil = spec_of(GOLDEN["stencil"].kernel)
    assert declined(stencil) == ""
    assert "a sweep" in declined(SweepSpec((stencil, stencil)))
    checked = dataclasses.replace(stencil, sites=())
    assert "checked" in declined(checked)
    assert "not aligned" in declined(spec_of(MAPS["strides in bytes"].kernel))
    assert declined(spec_of(MAPS["strides"].kernel)) == ""
    _, team = NO_KERNEL["scratch by rank"]
    assert "scratch" in declined(spec_of(team.kernel)) == refusal(team.kernel.workunit)
    assert declined(spec_of(GOLDEN["team_of_two"].kernel)) == ""
    assert refusal(CASES["scratch"].kernel.workunit) == ""


# --------------------------------------------------------------------------- launches


def kernel_of(name: str) -> GpuKernel:
    cases = {**GOLDEN, **MAPS, **CASES}
    return emit(spec_of(cases[name].kernel), CUDA)


def test_arguments_are_those_of_the_source() -> None:
    kernel = kernel_of("dot_of_rows")
    assert kernel.arguments == (
        Argument("begin", axis=0),
        Argument("begin", axis=1),
        Argument("end", axis=0),
        Argument("end", axis=1),
        Argument("pointer", DType.FLOAT64, 0),
        Argument("stride", DType.INT64, 0, 0),
        Argument("pointer", DType.FLOAT64, 1),
        Argument("workspace"),
        Argument("results"),
    )
    assert body(kernel.source).split(")")[1].count(",") == len(kernel.arguments) - 1
    assert kernel_of("clip").arguments[-2:] == (
        Argument("scalar", DType.FLOAT64, 1),
        Argument("address", DType.INT64, 1),
    )


@pytest.mark.parametrize(
    ("name", "extents", "blocks", "threads"),
    [
        ("clip", [1], (1, 1, 1), (256, 1, 1)),
        ("clip", [257], (2, 1, 1), (256, 1, 1)),
        ("clip", [1 << 40], (1 << 22, 1, 1), (256, 1, 1)),
        ("stencil", [1000, 1000], (16, 250, 1), (64, 4, 1)),
        ("stencil", [1000, 3], (1, 16, 1), (4, 64, 1)),
        ("stencil", [2, 1000], (8, 1, 1), (128, 2, 1)),
        ("stencil", [1 << 30, 64], (1, 65535, 1), (64, 4, 1)),
        ("columns", [3, 1000], (1, 16, 1), (4, 64, 1)),
        ("cube", [9, 5, 300], (5, 2, 9), (64, 4, 1)),
        ("four axes", [3, 4, 5, 6], (1, 1, 3), (8, 8, 4)),
        ("clip_serial", [1000], (1, 1, 1), (1, 1, 1)),
        ("two operations on one", [1000], (1, 1, 1), (1, 1, 1)),
        ("sum of float64", [1024], (1, 1, 1), (256, 1, 1)),
        ("sum of float64", [1 << 40], (DEFAULT.gpu_blocks, 1, 1), (256, 1, 1)),
        ("prefix", [2049], (2, 1, 1), (256, 1, 1)),
    ],
)
def test_grids(
    name: str, extents: list[int], blocks: tuple[int, ...], threads: tuple[int, ...]
) -> None:
    begin = [7] * len(extents)
    grid = kernel_of(name).launch.grid(begin, [7 + extent for extent in extents])
    assert grid == Grid(blocks, threads)  # type: ignore[arg-type]


def test_any_block_is_small_enough_and_any_grid_allowed() -> None:
    rng = np.random.default_rng(0)
    for name, rank in (("clip", 1), ("stencil", 2), ("cube", 3), ("four axes", 4)):
        launch = kernel_of(name).launch
        for _ in range(300):
            extents = [int(2 ** rng.uniform(0, 40 / rank)) for _ in range(rank)]
            grid = launch.grid([0] * rank, extents)
            assert grid is not None
            assert math.prod(grid.threads) <= 256 and grid.threads[2] <= 64
            assert math.prod(grid.threads) >= min(math.prod(extents), 64)
            assert max(grid.blocks[1:]) <= 65535 and grid.blocks[0] * grid.threads[0] < 2**32


def test_nothing_is_launched_for_an_empty_box() -> None:
    for name in ("clip", "prefix", "sum of float64", "clip_serial"):
        launch = kernel_of(name).launch
        assert launch.grid([3], [3]) is None and launch.grid([3], [1]) is None
        assert launch.workspace_bytes([3], [3]) == 0


def test_workspaces() -> None:
    sums = kernel_of("seven at once").launch
    assert sums.results == 7 and sums.result_bytes == 7 * 16
    assert sums.workspace_bytes([0], [4096]) == 64 + 4 * 7 * 16
    assert kernel_of("prefix").launch.workspace_bytes([0], [4096]) == 64 + 2 * 257 * 16
    assert kernel_of("clip").launch.workspace_bytes([0], [4096]) == 0


def test_contraction_is_off_unless_fast_maths_are_asked_for() -> None:
    spec = spec_of(GOLDEN["clip"].kernel)
    assert "--fmad=false" in emit(spec, CUDA).options
    assert "-ffp-contract=off" in emit(spec, HIP).options
    assert emit(spec, CUDA, fastmath=True).options == ()
    assert emit(spec, HIP, fastmath=True).options == ("-fno-strict-aliasing",)
