"""What a program is told that asks for a GPU and cannot have one; what the compiler is told."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from pathlib import Path
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

import pykokkos as pk
import pytest

from pyfuser.codegen.gpu.unit import CUDA, emit
from pyfuser.codegen.kernel import spec_of
from pyfuser.engine.gpu import compiler, library
from pyfuser.support.errors import DeviceError, KernelError
from tests.gpu.conftest import FAKE, fake_modules
from tests.gpu.test_emulated import SUMS


@pytest.fixture
def forgotten(monkeypatch: pytest.MonkeyPatch) -> Any:
    """CuPy was never asked for, and what takes its place when it is."""
    library._library.cache_clear()
    yield lambda module: monkeypatch.setitem(sys.modules, "cupy", module)
    library._library.cache_clear()


def test_without_cupy_the_error_says_what_to_install(forgotten: Any) -> None:
    forgotten(None)
    for ask in (pk.set_default_space, pk.ExecutionSpaceInstance, lambda s: pk.RangePolicy(s, 0, 3)):
        with pytest.raises(DeviceError, match=r"Cuda is not available.*pip install cupy-cuda13x"):
            ask(pk.Cuda)
    with pytest.raises(ValueError, match=r"docs\.cupy\.dev"):
        pk.set_default_space(pk.HIP)
    assert pk.get_default_space() is pk.OpenMP


def test_without_a_gpu(forgotten: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    modules = fake_modules()
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    runtime = modules["cupy.cuda.runtime"]
    with pytest.raises(DeviceError, match=r"the installed CuPy is for pk\.Cuda"):
        pk.set_default_space(pk.HIP)
    monkeypatch.setattr(runtime, "getDeviceCount", lambda: 0)
    with pytest.raises(DeviceError, match="no GPU"):
        pk.set_default_space(pk.Cuda)

    def insufficient() -> int:
        raise runtime.CUDARuntimeError("cudaErrorInsufficientDriver")  # type: ignore[attr-defined]

    monkeypatch.setattr(runtime, "getDeviceCount", insufficient)
    with pytest.raises(DeviceError, match="cudaErrorInsufficientDriver"):
        pk.set_default_space(pk.Cuda)


def test_programs_without_a_gpu_do_not_load_what_gpus_need() -> None:
    needs = "('cupy', 'pyfuser.codegen.gpu', 'pyfuser.engine.gpu')"
    code = "import sys, pyfuser, pykokkos; "
    code += f"print([m for m in sys.modules if m.startswith({needs})])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("architecture", "known", "option"),
    [
        ("90", (75, 90, 100), "-arch=sm_90"),
        ("120", (75, 90, 100), "-arch=compute_100"),
        ("95", (75, 90, 100), "-arch=compute_90"),
    ],
)
def test_an_architecture_that_is_too_new(
    architecture: str, known: tuple[int, ...], option: str
) -> None:
    nvrtc = SimpleNamespace(getSupportedArchs=lambda: known)
    found: Any = SimpleNamespace(nvrtc=nvrtc, runtime=SimpleNamespace(is_hip=False))
    assert compiler.target(found, architecture) == (option,)
    found.runtime.is_hip = True
    assert compiler.target(found, "gfx90a") == ()


def test_what_the_compiler_says_is_told(cupy: Any) -> None:
    from pyfuser.engine.gpu.library import loaded

    with pytest.raises(KernelError, match=r"(?s)rejects a kernel.*error.*not_a_type"):
        compiler.compiled(loaded(), "not_a_type x;\n", ("-std=c++17", "-arch=sm_90"))


# --------------------------------------------------------------------------- the stand-in

PARTS = ("", "cuda", "cuda.driver", "cuda.nvrtc", "cuda.runtime")


def installed_cupy() -> ModuleType | None:
    """A real CuPy, with or without a GPU."""
    try:
        found = importlib.import_module("cupy")
    except Exception:
        return None
    return None if FAKE in Path(str(found.__file__)).parents else found


def words(text: str) -> list[str]:
    """The parameters in the signature that Cython puts first into a docstring."""
    inside = text.partition("(")[2].partition("\n")[0].rpartition(")")[0]
    given = (part.partition("=")[0].split() for part in inside.split(","))
    names = [part[-1] for part in given if part]
    return [name for name in names if name not in ("self", "*", "/")]


def parameters(function: Any) -> list[str]:
    """The names of a function's parameters."""
    try:
        return [name for name in inspect.signature(function).parameters if name != "self"]
    except (TypeError, ValueError):  # Cython's
        return words(function.__doc__ or "")


@pytest.mark.parametrize("part", PARTS)
def test_the_stand_in_has_no_names_of_its_own(part: str) -> None:
    real: Any = installed_cupy()
    if real is None:
        pytest.skip("no CuPy to compare with")
    fake: Any = fake_modules()[".".join(filter(None, ("cupy", part)))]
    for name in filter(None, part.split(".")):
        real = getattr(real, name)
    for name, value in vars(fake).items():
        if name.startswith("_") or isinstance(value, ModuleType) or _imported(value, fake):
            continue
        assert hasattr(real, name), f"cupy.{part} has no {name}"
        other = getattr(real, name)
        if isinstance(value, FunctionType):
            own, theirs = parameters(value), parameters(other)
            assert own == theirs[: len(own)], f"cupy.{part}.{name} takes {theirs}"
        elif isinstance(value, type):
            compare_classes(f"cupy.{part}.{name}", value, other)
        elif isinstance(value, int):
            assert value == other, f"cupy.{part}.{name} is {other}"


def compare_classes(name: str, fake: type, real: Any) -> None:
    """The stand-in's methods are the real class's, with its parameters."""
    for method, value in vars(fake).items():
        if method.startswith("_") or isinstance(value, type):
            continue
        assert hasattr(real, method), f"{name} has no {method}"
        if isinstance(value, FunctionType):
            own, theirs = parameters(value), parameters(getattr(real, method))
            assert own == theirs[: len(own)], f"{name}.{method} takes {theirs}"


def _imported(value: Any, module: ModuleType) -> bool:
    """Whether a name comes from elsewhere, such as typing."""
    home = getattr(value, "__module__", None) or module.__name__
    return home != module.__name__ and not str(home).startswith("cupy.")


def test_a_source_compiles_by_way_of_a_real_cupy() -> None:
    """What NVRTC has to be asked needs no GPU."""
    real = installed_cupy()
    if real is None:
        pytest.skip("no CuPy")
    found = library.Library(real)
    try:
        found.nvrtc.getVersion()
    except Exception as error:
        pytest.skip(f"CuPy has no compiler: {error}")
    kernel = emit(spec_of(SUMS["beside a map"].kernel), CUDA)
    options = (compiler.STANDARD, *kernel.options, *compiler.target(found, "90"))
    assert compiler.compiled(found, kernel.source, options).startswith(b"\x7fELF")
    with pytest.raises(KernelError, match="not_a_type"):
        compiler.compiled(found, "not_a_type x;", options)
