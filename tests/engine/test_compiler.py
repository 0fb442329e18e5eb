"""What happens when there is no compiler, or it fails; and what is compiled when."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyfuser.codegen.c.headers import header
from pyfuser.codegen.c.maths import vector as maths_vector
from pyfuser.codegen.cpu.unit import FOLDERS
from pyfuser.engine import native
from pyfuser.engine.cache import KernelCache
from pyfuser.engine.compiler import (
    IN_ONE_LOOP,
    ONE_VECTOR_LOOP,
    build_identity,
    compile_library,
    find_compiler,
    flags,
)
from pyfuser.ir.dtypes import DType
from pyfuser.support.caches import Table
from pyfuser.support.counters import COUNTERS
from pyfuser.support.errors import CompilerError
from pyfuser.support.settings import SETTINGS
from pyfuser.tuning.target import host
from tests.codegen.build import case
from tests.vendors import tune

ROUNDED = header("rounded", FOLDERS).text

needs_maths = pytest.mark.skipif(
    ("exp", DType.FLOAT64) not in host().vector_maths, reason="no processor with AVX2, or no glibc"
)


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KernelCache:
    """A process that has compiled nothing, with an empty directory."""
    directory = KernelCache(tmp_path)
    monkeypatch.setattr(native, "kernel_cache", lambda: directory)
    monkeypatch.setattr(native, "KERNELS", Table("of a test", 999))
    return directory


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)
    return path


def double(i, x):
    x[i] = 2.0 * x[i]


def twice(j, vector):
    vector[j] = 2.0 * vector[j]


def triple(i, x):
    x[i] = 3.0 * x[i]


def ones() -> list[np.ndarray]:
    return [np.ones(8)]


def test_what_is_compiled_when(empty_cache: KernelCache, monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = [case(f, [8], ones).kernel for f in (double, twice, triple)]
    COUNTERS.reset()
    launchables = native.prepare(kernels)
    assert COUNTERS.compilations == 2, "kernels that differ in names are one"
    libraries = [launchable.library for launchable in launchables]
    assert libraries[0] == libraries[1]
    assert [one.spec.names_of_params() for one in launchables] == [("x",), ("vector",), ("x",)]
    assert COUNTERS.compile_seconds > 0
    assert [one.library for one in native.prepare(kernels)] == libraries
    assert (COUNTERS.compilations, COUNTERS.cache_hits) == (2, 0)
    monkeypatch.setattr(native, "KERNELS", Table("of a test", 999))  # another process
    other = native.prepare(kernels)
    assert (COUNTERS.compilations, COUNTERS.cache_hits) == (2, 2)
    tested = case(triple, [8], ones)
    assert tested.run(other[2])[0][0].tolist() == [3.0] * 8


def both(i, x):
    x[i] = 2.0 * x[i]
    x[i] = 3.0 * x[i]


def float_rows(i, j, m):
    m[i][j] = 2.0 * m[i][j]


@pytest.mark.parametrize(
    ("function", "extents", "dtype", "options"),
    [
        (double, [8], np.float64, [ONE_VECTOR_LOOP]),
        (double, [8], np.complex128, [ONE_VECTOR_LOOP]),
        (double, [8], np.float32, []),
        (both, [8], np.float64, [IN_ONE_LOOP, ONE_VECTOR_LOOP]),
        (both, [8], np.int8, [IN_ONE_LOOP]),
        (float_rows, [4, 256], np.float64, [ONE_VECTOR_LOOP]),
        (float_rows, [256, 4], np.float64, []),
    ],
)
def test_a_kernel_on_disk_is_not_missing_whatever_it_was_compiled_with(
    function: Callable[..., None], extents: list[int], dtype: type, options: list[tuple[str, ...]],
    empty_cache: KernelCache, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    given: list[tuple[str, ...]] = []

    def compiled(*arguments: Any) -> None:
        given.append(arguments[-1])
        compile_library(*arguments)

    monkeypatch.setattr(native, "compile_library", compiled)
    kernel = case(function, extents, lambda: [np.ones(extents, dtype)]).kernel
    assert native.missing([kernel]) == 1
    native.prepare([kernel])
    assert given == [tuple(chain.from_iterable(options))]
    assert native.missing([kernel]) == 0
    monkeypatch.setattr(native, "KERNELS", Table("of a test", 999))  # another process
    assert native.missing([kernel]) == 0


def test_a_damaged_library_is_never_loaded(
    empty_cache: KernelCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    tested = case(double, [8], ones)
    (launchable,) = native.prepare([tested.kernel])
    copy = launchable.library.read_bytes()
    replacement = launchable.library.with_suffix(".new")
    replacement.write_bytes(copy[: len(copy) // 2])
    os.replace(replacement, launchable.library)  # the loaded library stays mapped
    monkeypatch.setattr(native, "KERNELS", Table("of a test", 999))
    COUNTERS.reset()
    (again,) = native.prepare([tested.kernel])
    assert (COUNTERS.compilations, COUNTERS.cache_hits) == (1, 0)
    assert tested.run(again)[0][0].tolist() == [2.0] * 8


def test_no_compiler() -> None:
    with pytest.raises(
        CompilerError, match=r"^no C\+\+ compiler found \('g\+\+-none'\): install"
    ) as e:
        find_compiler("g++-none")
    assert "apt install g++" in str(e.value)
    assert "PYFUSER_CXX" in str(e.value)
    assert "\n" not in str(e.value)


def test_an_upgraded_compiler_is_another_one(tmp_path: Path) -> None:
    program = script(tmp_path / "c++", "exit 0")
    first = find_compiler.__wrapped__(str(program))
    assert find_compiler.__wrapped__(str(program)) == first
    script(program, "exit  0")
    assert find_compiler.__wrapped__(str(program)).identity != first.identity


def test_fastmath_is_another_build() -> None:
    found = find_compiler(SETTINGS.compiler)
    assert build_identity(found, True) != build_identity(found, False)


_SUBNORMAL = """
import numpy as np
import pyfuser
import pykokkos as pk

@pyfuser.fuse
@pk.workunit
def double(i, x):
    x[i] *= 2.0

x = np.ones(100_000)
pk.parallel_for(len(x), double, x=x)
pyfuser.sync()
assert np.all(x == 2.0)
assert np.all((np.full(1000, 5e-324) * 1.0).view(np.int64) == 1)  # else it would equal 0, too
"""


def test_fastmath_leaves_numpy_its_subnormal_numbers(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(_SUBNORMAL)
    environment = dict(os.environ, PYFUSER_FASTMATH="1", PYFUSER_CACHE_DIR=str(tmp_path))
    tmp_path.chmod(0o700)
    subprocess.run([sys.executable, str(program)], env=environment, check=True)


def test_a_compiler_that_fails(
    tmp_path: Path, empty_cache: KernelCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = script(tmp_path / "c++", "echo 'kernel.cpp:7: no such luck' >&2; exit 3")
    monkeypatch.setattr(native, "SETTINGS", replace(SETTINGS, compiler=str(program)))
    with pytest.raises(CompilerError, match=r"status 3\nkernel.cpp:7: no such luck"):
        native.prepare([case(double, [8], ones).kernel, case(triple, [8], ones).kernel])
    assert not list(empty_cache.directory.glob("*.so"))


def test_a_compiler_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tune(monkeypatch, compile_seconds=0.1)
    program = script(tmp_path / "c++", "sleep 60")
    source = tmp_path / "kernel.cpp"
    source.write_text("")
    with pytest.raises(CompilerError, match="no result after"):
        compile_library(find_compiler(str(program)), source, tmp_path / "kernel.so")


def test_a_compiler_that_cannot_be_run(tmp_path: Path) -> None:
    program = tmp_path / "c++"
    program.write_bytes(b"\x7fELF nonsense")
    program.chmod(0o700)
    source = tmp_path / "kernel.cpp"
    source.write_text("")
    with pytest.raises(CompilerError, match="cannot be run"):
        compile_library(find_compiler(str(program)), source, tmp_path / "kernel.so")


@pytest.mark.parametrize("branches", [2, 8, 40])
def test_values_that_meet_behind_many_branches_become_vectors(
    tmp_path: Path, branches: int
) -> None:
    chain = "else ".join(f"if (x[i] < {k}) v = x[i] * {k + 3}; " for k in range(branches))
    assert vectorised(tmp_path, f"double v = 0; {chain} y[i] = v;")


@needs_maths
@pytest.mark.parametrize("count", [1, 40])
def test_a_loop_of_many_inlined_functions_becomes_vectors(tmp_path: Path, count: int) -> None:
    functions = frozenset((name, DType.FLOAT64) for name in ("exp", "log"))
    terms = " + ".join(f"pf_exp_f64({k} * x[i]) + pf_log_f64({k} + x[i])" for k in range(count))
    prelude = ROUNDED + maths_vector.prelude(functions, host())
    assert vectorised(tmp_path, f"y[i] = {terms};", prelude)


@needs_maths
@pytest.mark.parametrize(
    "call", ["pf_exp_f64(n)", "pf_log_f64(n)", "pf_exp_f32(n)", "pf_sin_f64(n)"]
)
def test_a_loop_around_a_call_that_does_not_change_becomes_vectors(
    tmp_path: Path, call: str
) -> None:
    functions = {("exp", DType.FLOAT64), ("log", DType.FLOAT64), ("exp", DType.FLOAT32)}
    functions |= {("sin", DType.FLOAT64)}
    prelude = ROUNDED + maths_vector.prelude(frozenset(functions), host())
    assert vectorised(tmp_path, f"y[i] = x[i] * {call};", prelude)


def test_values_that_become_floats_are_rounded_beside_each_other(tmp_path: Path) -> None:
    """g++ 12 makes a vector of the two conversions, and forgets them."""
    source, target = tmp_path / "kernel.cpp", tmp_path / "kernel.so"
    source.write_text(
        'extern "C" void widen(double* __restrict__ z, const double* __restrict__ x) {\n'
        "    z[0] = (double)(float)x[0];\n    z[1] = (double)(float)x[1];\n}\n"
    )
    compile_library(find_compiler(SETTINGS.compiler), source, target)
    x, z = np.array([0.1, 0.2]), np.zeros(2)
    ctypes.CDLL(str(target)).widen(ctypes.c_void_p(z.ctypes.data), ctypes.c_void_p(x.ctypes.data))
    assert (z == x.astype(np.float32).astype(np.float64)).all()


def vectorised(directory: Path, body: str, prelude: str = "") -> bool:
    """Whether g++, as kernels are compiled, makes vectors of a loop from `x[i]` to `y[i]`."""
    source = directory / "loop.cpp"
    source.write_text(
        f"#include <stdint.h>\n{prelude}\n"
        "void loop(long n, double* __restrict__ y, const double* __restrict__ x) {\n"
        f"for (long i = 0; i < n; ++i) {{ {body} }}\n}}\n"
    )
    command = [*find_compiler(SETTINGS.compiler).command, *flags(False)]
    command += ["-fopt-info-vec-optimized", str(source), "-o", str(directory / "loop.so")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return "loop vectorized" in done.stderr
