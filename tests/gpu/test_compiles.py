"""Every kernel of kernels/, and of the tests, compiles for GPUs without a warning."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pyfuser.codegen.gpu.unit import CUDA, HIP, Dialect, declined, emit
from pyfuser.codegen.kernel import spec_of
from pyfuser.nest.spec import KernelSpec
from tests.codegen.test_cpp import GOLDEN
from tests.engine.test_native import EXACT_REDUCTIONS, MAPS
from tests.gpu.cases import CASES, CLOSE, PRINTING
from tests.gpu.compilers import (
    MISSING_CLANG,
    MISSING_NVRTC,
    Rejected,
    clang,
    compile_cuda,
    compile_hip,
    nvrtc,
)
from tests.gpu.launch import renamed
from tests.gpu.sources import PROGRAMS, specs_of_program
from tests.gpu.team_cases import TEAMS

TESTED = {**GOLDEN, **MAPS, **EXACT_REDUCTIONS, **CASES, **CLOSE, **PRINTING, **TEAMS}
BATCHES = 6

needs_nvrtc = [pytest.mark.nvrtc, pytest.mark.skipif(nvrtc() is None, reason=MISSING_NVRTC)]
needs_clang = [pytest.mark.hip, pytest.mark.skipif(clang() is None, reason=MISSING_CLANG)]


def target(arch: str) -> Any:
    if arch.startswith("gfx"):
        return pytest.param(HIP, compile_hip, arch, marks=needs_clang, id=arch)
    return pytest.param(CUDA, compile_cuda, arch, marks=needs_nvrtc, id=arch)


# Machine code (sm_) takes twice as long as PTX (compute_), whose text is checked as strictly: it is
# made of kernels of the tests, which have every kind of those of the programs.
OF_PROGRAMS = [target(arch) for arch in ("compute_90", "gfx90a")]
OF_TESTS = [target(arch) for arch in ("compute_80", "sm_90", "gfx90a", "gfx1100")]
Compile = Callable[[str, str], object]

specs_of = cache(specs_of_program)


def batch(specs: list[KernelSpec], dialect: Dialect) -> str:
    """One source with the kernels of all specs."""
    return "".join(renamed(emit(spec, dialect), n).source for n, spec in enumerate(specs))


@pytest.mark.parametrize(("dialect", "compile_source", "arch"), OF_PROGRAMS)
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_programs(path: Path, dialect: Dialect, compile_source: Compile, arch: str) -> None:
    specs = specs_of(path)
    assert specs and not any(map(declined, specs))
    compile_source(batch(specs, dialect), arch)


@pytest.mark.parametrize(("dialect", "compile_source", "arch"), OF_TESTS)
@pytest.mark.parametrize("part", range(BATCHES))
def test_kernels_of_the_tests(
    part: int, dialect: Dialect, compile_source: Compile, arch: str
) -> None:
    specs = [spec_of(tested.kernel) for tested in TESTED.values()][part::BATCHES]
    compile_source(batch([spec for spec in specs if not declined(spec)], dialect), arch)


@pytest.mark.parametrize(("dialect", "compile_source", "arch"), OF_TESTS)
@pytest.mark.parametrize("fault", ["int unused", "missing()"])
def test_a_warning_is_an_error(
    fault: str, dialect: Dialect, compile_source: Compile, arch: str
) -> None:
    source = emit(spec_of(GOLDEN["clip"].kernel), dialect).source
    broken = source.replace("        double value", f"        {fault};\n        double value")
    assert broken != source
    with pytest.raises(Rejected):
        compile_source(broken, arch)


OCML = sorted(Path("/").glob("usr/lib/*/amdgcn/bitcode/ocml.bc")) + sorted(
    Path("/").glob("opt/rocm*/amdgcn/bitcode/ocml.bc")
)


@pytest.mark.hip
@pytest.mark.skipif(not OCML, reason="no ocml.bc: apt-get install rocm-device-libs")
def test_hip_has_the_functions_that_are_called() -> None:
    """The compiler takes any name on trust; a linker would not."""
    library = OCML[0].read_bytes()
    sources = [
        emit(spec_of(c.kernel), HIP).source for n, c in TESTED.items() if "functions of" in n
    ]
    names = set(re.findall(r"__ocml_\w+", "".join(sources)))
    assert len(names) > 60
    assert [name for name in sorted(names) if name.encode() not in library] == []
