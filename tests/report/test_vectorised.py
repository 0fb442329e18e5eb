"""`vectorised: yes | no`: what the report says is what g++ does with the code."""

from __future__ import annotations

import inspect
import math
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyfuser
from pyfuser.compare import serve
from pyfuser.engine.compiler import flags
from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.report.model import KernelReport, Vectors
from pyfuser.runtime.session import SESSION
from pyfuser.support.settings import SETTINGS

ROOT = Path(__file__).parents[2]
N = 1000


@pk.workunit
def scale(i, x, a):
    x[i] = a * x[i]


@pk.workunit
def count(i, x, p):
    pk.atomic_add(x, [p[i]], 1.0)


@pk.workunit
def wait(i, x):
    v: float = x[i]
    while v > 1.0:
        v = v / 2.0
    x[i] = v


@pk.workunit
def divided(i, p, n):
    p[i] = p[i] // n


@pk.workunit
def largest(i, acc, x):
    acc = math.fmax(acc, x[i])


@pk.workunit
def gamma(i, x):
    x[i] = math.lgamma(x[i])


@pk.workunit
def neighbours(
    i: int,
    j: int,
    count: pk.View2D[pk.uint8],
    cell: pk.View2D[pk.uint8],
    n: int,
):
    up: int = (i + n - 1) % n
    down: int = (i + 1) % n
    count[i][j] = (
        cell[up][(j + n - 1) % n] + cell[up][j] + cell[i][(j + 1) % n] + cell[down][(j + 1) % n]
    )


@pk.workunit
def clamped(i: int, j: int, low: pk.View2D[pk.float], x: pk.View2D[pk.float], n: int):
    u = i - 1 if i > 0 else i
    d = i + 1 if i < n - 1 else i
    left = j - 1 if j > 0 else j
    r = j + 1 if j < n - 1 else j
    low[i][j] = fmin(fmin(fmin(x[u][j], x[d][j]), fmin(x[i][left], x[i][r])), x[i][j])  # noqa: F821


@pk.workunit
def far(i: int, j: int, count: pk.View2D[pk.uint8], cell: pk.View2D[pk.uint8], n: int):
    count[i][j] = cell[i][(3 * j + 1) % n]


def told(launch: Callable[..., Any], policy: Any, workunit: Any, **arguments: Any) -> Vectors:
    with pyfuser.fusing():
        result = launch(policy, workunit, **arguments)
    if launch is pk.parallel_reduce:
        float(result)
    (group,) = pyfuser.explain().groups
    assert group.vectors is not None
    return group.vectors


@pytest.fixture
def x() -> Any:
    return pk.View([N], pk.double)


@pytest.fixture
def p() -> Any:
    return pk.View([N], pk.int64)


def test_plain_loops(x: Any) -> None:
    assert told(pk.parallel_for, N, scale, x=x, a=2.0) == Vectors("yes")


def test_serial_loops_are_up_to_the_compiler(x: Any) -> None:
    policy = pk.RangePolicy(pk.ExecutionSpace.Serial, 0, N)
    assert told(pk.parallel_for, policy, scale, x=x, a=2.0).answer == "unknown"


def test_atomics(x: Any, p: Any) -> None:
    found = told(pk.parallel_for, N, count, x=x, p=p)
    assert found.answer == "no" and "atomic" in found.why
    assert found.location is not None and found.location.file == __file__


def test_loops_inside(x: Any) -> None:
    assert told(pk.parallel_for, N, wait, x=x).answer == "unknown"


def test_division_of_long_integers(p: Any) -> None:
    found = told(pk.parallel_for, N, divided, p=p, n=3)
    assert found.answer == "no" and "integers are divided" in found.why


def test_functions_without_a_vector_version(x: Any) -> None:
    found = told(pk.parallel_for, N, gamma, x=x)
    assert found.answer == "no" and "lgamma() has no vector version" in found.why


def test_reductions_in_order(x: Any) -> None:
    found = told(pk.parallel_reduce, N, largest, x=x)
    assert found.answer == "no" and "acc is not only added to" in found.why


def test_overlapping_arrays_are_up_to_the_compiler(x: Any) -> None:
    @pk.workunit
    def move(i, y, x):
        y[i] = x[i]

    found = told(pk.parallel_for, N // 2, move, y=x[: N // 2], x=x[1 : N // 2 + 1])
    assert found.answer == "unknown"


# --------------------------------------------------------------------------- as g++ has it

PROGRAMS = ("boltzmann", "cg_poisson", "gray_scott", "many_tiny", "particles", "resampling")


@pytest.mark.skipif("g++" not in SETTINGS.compiler or not shutil.which("g++"), reason="needs g++")
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_compiler_agrees(name: str, tmp_path: Path) -> None:
    """Where the report says yes, g++ makes vectors of a loop, and where no, of none."""
    SESSION.flushes.clear()
    module = serve.load(ROOT / "kernels" / f"{name}.py")
    state = module.setup(module.SIZES["small"])
    with pyfuser.fusing():
        module.run(state)
    kernels = {kernel.generated: kernel for kernel in pyfuser.explain(8).kernels}
    answers = [answer(kernel) for kernel in kernels.values()]
    assert answers
    for generated, expected in zip(kernels, answers, strict=True):
        if expected in ("yes", "no"):
            assert (vector_loops(generated, tmp_path) > 0) == (expected == "yes"), generated


def answer(kernel: KernelReport) -> str:
    """That of all loops of a kernel, if they have one."""
    found = {loop.vectors.answer for loop in kernel.loops if loop.vectors is not None}
    return found.pop() if len(found) == 1 else "unknown"


def vector_loops(source: str, folder: Path, *options: str) -> int:
    """How many loops g++ makes vectors of."""
    path = folder / "kernel.cpp"
    path.write_text(source)
    command = [
        "g++",
        *flags(False),
        *options,
        "-fopt-info-vec-optimized",
        str(path),
        "-o",
        "/dev/null",
    ]
    done = subprocess.run([*command, "-lm"], capture_output=True, text=True, check=True)
    return len(re.findall("optimized: loop vectorized", done.stderr))


@pytest.mark.parametrize(
    ("workunit", "names", "dtype", "vectors"),
    [
        (neighbours, ("count", "cell"), pk.uint8, True),
        (clamped, ("low", "x"), pk.float, True),
        (far, ("count", "cell"), pk.uint8, False),
    ],
)
def test_edges_do_not_keep_the_interior_from_vectors(
    workunit: Any, names: tuple[str, str], dtype: Any, vectors: bool, tmp_path: Path
) -> None:
    """`% n` and selected subscripts; not where a remainder wraps more than once."""
    SESSION.flushes.clear()
    n = 40
    views = {name: pk.View([n, n], dtype) for name in names}
    with pyfuser.fusing():
        pk.parallel_for(pk.MDRangePolicy([0, 0], [n, n]), workunit, **views, n=n)
    (kernel,) = pyfuser.explain().kernels
    assert (vector_loops(kernel.generated, tmp_path) > 0) == vectors


@pk.workunit
def masked(i, y, x, m, s):
    y[i] = x[i] if m[i] else s


@pk.workunit
def masked_twice(i, y, x, m, other):
    if m[i] or not other[i]:
        y[i] = x[i]


@pk.workunit
def changed(i, x, m, other):
    if m[i]:
        m[i] = other[i] if x[i] > 0.5 else x[i] < 0.25


@pk.workunit
def copied(i, y, x, m, s):
    marked: bool = m[i]
    y[i] = x[i] if marked else s


@pk.workunit
def chosen_before(i, x, m, other, s):
    marked: bool = m[i]
    if x[i] > s:
        marked = other[i]
    m[i] = marked


@pk.workunit
def chosen_elsewhere(i, y, x, m, p, s):
    y[i] = x[i] if m[(p[i] * p[i]) % 64] else s


@pytest.mark.parametrize(
    ("workunit", "vectors"),
    [
        (masked, True),
        (masked_twice, True),
        (changed, True),
        (copied, True),
        (chosen_before, True),
        (chosen_elsewhere, False),
    ],
)
def test_bools_in_memory_do_not_keep_a_loop_from_vectors(
    workunit: Any, vectors: bool, tmp_path: Path
) -> None:
    SESSION.flushes.clear()
    rng = np.random.default_rng(1)
    given = {"y": rng.random(64), "x": rng.random(64), "p": np.arange(64), "s": 0.5}
    given |= {"m": rng.random(64) < 0.5, "other": rng.random(64) < 0.5}
    given = {name: given[name] for name in inspect.signature(workunit).parameters if name != "i"}
    with pyfuser.fusing():
        pk.parallel_for(64, workunit, **given)
    (kernel,) = pyfuser.explain().kernels
    avx512 = "-march=x86-64-v4"  # others have no masks for bytes
    assert (vector_loops(kernel.generated, tmp_path, avx512) > 0) == vectors


@pk.workunit
def wrapped_into_cells(i, x, v, cell, part, length):
    a: float = x[i] + 0.5 * v[i]
    a -= length * math.floor(a / length)
    if a >= length:
        a = 0.0
    x[i] = a
    c: int = int(a)
    cell[i] = c
    part[i] = a - c


def test_what_follows_from_a_chosen_constant_does_not_keep_it_from_vectors(tmp_path: Path) -> None:
    SESSION.flushes.clear()
    views = {name: pk.View([64], pk.double) for name in ("x", "v", "part")}
    with pyfuser.fusing():
        cell = pk.View([64], pk.int64)
        pk.parallel_for(64, wrapped_into_cells, **views, cell=cell, length=8.0)
    (kernel,) = pyfuser.explain().kernels
    assert vector_loops(kernel.generated, tmp_path) > 0
