"""A GPU for tests of whole programs: a real one if there is one, else the stand-in for CuPy."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pykokkos as pk
import pytest

import pyfuser
from pyfuser.engine.gpu import library, steps
from pyfuser.frontends.embedded import spaces
from pyfuser.runtime.session import TRACER
from pyfuser.trace.images import USE
from tests.gpu import driver_of_c

FAKE = Path(__file__).with_name("fake_cupy")


@cache
def real_cupy() -> ModuleType | None:
    """CuPy with a GPU, or None."""
    try:
        import cupy

        return cupy if cupy.cuda.runtime.getDeviceCount() else None
    except Exception:
        return None


@cache
def fake_modules() -> dict[str, ModuleType]:
    """The stand-in's modules, loaded once: kernels that were compiled refer to them."""
    hidden = {name: sys.modules.pop(name) for name in list(sys.modules) if _is_cupy(name)}
    sys.path.insert(0, str(FAKE))
    try:
        import cupy  # noqa: F401

        return {name: module for name, module in sys.modules.items() if _is_cupy(name)}
    finally:
        sys.path.remove(str(FAKE))
        for name in [name for name in sys.modules if _is_cupy(name)]:
            del sys.modules[name]
        sys.modules.update(hidden)


def _is_cupy(name: str) -> bool:
    return name.split(".", maxsplit=1)[0] == "cupy"


@contextmanager
def on_gpu() -> Iterator[Any]:
    """CuPy (or the stand-in for it), with pk.Cuda the default execution space inside."""
    real = real_cupy()
    with pytest.MonkeyPatch.context() as patch:
        pyfuser.sync()
        library._library.cache_clear()
        if real is None:
            for name, module in fake_modules().items():
                patch.setitem(sys.modules, name, module)
            functions = driver_of_c.addresses(library._library().driver, library._library().runtime)
            patch.setattr(steps, "addresses", lambda library: functions)
        before = pk.get_default_space()
        pk.set_default_space(pk.Cuda)
        try:
            yield real or fake_modules()["cupy"]
            pyfuser.sync()
        finally:
            pk.set_default_space(before)
            spaces._IN_USE.clear()
            library._library.cache_clear()
            USE.devices = False
            TRACER.place = None


@pytest.fixture
def cupy() -> Iterator[Any]:
    """CuPy, with pk.Cuda the default execution space."""
    with on_gpu() as module:
        yield module
    if real_cupy() is not None:
        end_if_broken(module)


def end_if_broken(cupy: Any) -> None:
    """End a process whose GPU refuses everything since a kernel failed, as all tests would fail.

    pytest-xdist starts a new one.
    """
    try:
        cupy.cuda.runtime.deviceSynchronize()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        if "PYTEST_XDIST_WORKER" in os.environ:
            print(error, file=sys.__stderr__, flush=True)
            os._exit(3)
        raise


@pytest.fixture
def fake(cupy: Any) -> Any:
    """The stand-in's device, for tests of what a real one does not tell."""
    if real_cupy() is not None:
        pytest.skip("looks into the stand-in for CuPy; there is a GPU")
    return cupy.machine.MACHINE
