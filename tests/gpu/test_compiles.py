"""Every kernel of kernels/, and of the tests, compiles for GPUs without a warning."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from pyfuser.codegen.gpu.unit import CUDA, HIP, Dialect, emit
from pyfuser.codegen.kernel import spec_of
from pyfuser.nest.declined import declined
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
from tests.gpu.emulator import shared
from tests.gpu.launch import renamed_source
from tests.gpu.team_cases import TEAMS
from tests.gpu.test_programs import ON_STAND_IN
from tests.programs import KERNELS

TESTED = {**GOLDEN, **MAPS, **EXACT_REDUCTIONS, **CASES, **CLOSE, **PRINTING, **TEAMS}

needs_nvrtc = [pytest.mark.nvrtc, pytest.mark.skipif(nvrtc() is None, reason=MISSING_NVRTC)]
needs_clang = [pytest.mark.hip, pytest.mark.skipif(clang() is None, reason=MISSING_CLANG)]


def target(arch: str) -> Any:
    if arch.startswith("gfx"):
        return pytest.param(HIP, compile_hip, arch, marks=needs_clang, id=arch)
    return pytest.param(CUDA, compile_cuda, arch, marks=needs_nvrtc, id=arch)


TARGETS = [target(arch) for arch in ("compute_80", "sm_90", "gfx90a", "gfx1100")]
Compile = Callable[..., object]


def batch(sources: dict[str, str]) -> str:
    """One source with all kernels, of which what compilers say has the names."""
    return "".join(
        f'#line 1 "{name}"\n{renamed_source(source, n)}'
        for n, (name, source) in enumerate(sources.items())
    )


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the kernels of the programs."""
    folder = shared(tmp_path_factory.mktemp("texts"))
    made = folder / "texts-of-programs"
    with FileLock(folder / "texts.lock"):
        if not made.exists():
            command = [sys.executable, "-m", "tests.corpus", "*-small", "--texts", str(made)]
            subprocess.run(command, cwd=Path(__file__).parents[2], check=True)
    return made


def kernels_of(path: Path, texts: Path, kind: str) -> list[str]:
    found = (texts / f"{path.stem}-small.{kind}").read_text().split("\n\f\n")
    assert all(found)
    return found


@pytest.mark.parametrize(("dialect", "compile_source", "arch"), [TARGETS[0], TARGETS[-1]])
def test_programs(texts: Path, dialect: Dialect, compile_source: Compile, arch: str) -> None:
    kind = "cuda" if dialect is CUDA else "hip"
    sources = {
        f"{path.stem}:{n}": source
        for path in KERNELS
        for n, source in enumerate(kernels_of(path, texts, kind))
    }
    compile_source(batch(sources), arch, code=False)


def words(*sources: str) -> set[str]:
    """What kernels are made of: our run time, types, the shapes of blocks, statements."""
    found = r"\b(?:pf_\w+|u?int\d+_t|float|double|if|for|while|break|continue)\b|\(\d+\)"
    return set(re.findall(found, "".join(sources)))


def test_the_stand_in_runs_whatever_kernels_are_made_of(texts: Path) -> None:
    have = {path.stem: words(*kernels_of(path, texts, "cuda")) for path in KERNELS}
    assert set().union(*have.values()) == set().union(*(have[name] for name in ON_STAND_IN))


@pytest.mark.parametrize(("dialect", "compile_source", "arch"), TARGETS)
def test_kernels_of_the_tests(dialect: Dialect, compile_source: Compile, arch: str) -> None:
    specs = {name: spec_of(tested.kernel) for name, tested in TESTED.items()}
    sources = {
        name: emit(spec, dialect).source for name, spec in specs.items() if not declined(spec)
    }
    compile_source(batch(sources), arch, code=False)


@pytest.mark.parametrize(("dialect", "compile_source", "arch"), TARGETS[1:3])
def test_code_is_made(dialect: Dialect, compile_source: Compile, arch: str) -> None:
    """Of kernels that have all that the others are made of: it takes much longer."""
    sources: dict[str, str] = {}
    made: set[str] = set()
    for name, tested in TESTED.items():
        spec = spec_of(tested.kernel)
        source = "" if declined(spec) else emit(spec, dialect).source
        if words(source) - made:
            sources[name] = source
            made |= words(source)
    compile_source(batch(sources), arch)


@pytest.mark.parametrize("code", [True, False])
@pytest.mark.parametrize(("dialect", "compile_source", "arch"), TARGETS)
@pytest.mark.parametrize("fault", ["int unused", "missing()"])
def test_a_warning_is_an_error(
    fault: str, dialect: Dialect, compile_source: Compile, arch: str, code: bool
) -> None:
    source = emit(spec_of(GOLDEN["clip"].kernel), dialect).source
    broken = source.replace("        double value", f"        {fault};\n        double value")
    assert broken != source
    with pytest.raises(Rejected, match="the broken one"):
        compile_source(batch({"another": source, "the broken one": broken}), arch, code=code)


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
