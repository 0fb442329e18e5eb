"""What a file in `programs/` provides, and the list of them.

Each file defines, for the program of the same name in `kernels/`,

- ``setup(size) -> State``: its data as NumPy arrays, before the first run,
- ``outputs(state)``: what the program's own ``outputs`` returns, from such a state,
- ``floor(size) -> int``: the bytes that one run must move through memory if each array that lives
  on is read or written once a sweep, and nothing else moves (0: no memory traffic to speak of),
- a factory for each peer that has a version: ``cpp(build)``, ``numba(njit)``, ``numpy()``,
  ``jax()``, ``numexpr()``, ``cupy_fuse(cupy)``, ``torch(torch)``, ``numba_cuda(cuda)``. It imports
  the library, compiles what it can and returns ``run(state)``, which makes one run in place. Where
  ``numpy(np)`` takes the module of its functions, it is CuPy's version, too.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pyfuser  # noqa: F401 - makes `import pykokkos` in kernels/ work
from pyfuser.compare import serve

State = SimpleNamespace
Outputs = dict[str, Any]

FOLDER = Path(__file__).parent / "programs"
KERNELS = Path(__file__).parents[2] / "kernels"


def names() -> list[str]:
    """All programs, in alphabetical order."""
    return sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")


def load(name: str) -> ModuleType:
    """The experts' versions of a program."""
    return importlib.import_module(f"experiments.peers.programs.{name}")


def erf(np: ModuleType) -> Any:
    """The error function for arrays of NumPy or CuPy, which have none themselves."""
    scipy = "cupyx.scipy" if np.__name__ == "cupy" else "scipy"
    return importlib.import_module(f"{scipy}.special").erf


def kernel(name: str) -> ModuleType:
    """A fresh copy of the PyKokkos program, which the caller may change."""
    return serve.load(KERNELS / f"{name}.py")


def failed_check(
    name: str, actual: Outputs, size: int, runs: int, expected: Outputs | None = None
) -> str | None:
    """What the program's own check, with its derived tolerances, finds wrong in `actual`.

    It compares with `expected`, or else with the program's own reference. None: nothing wrong.
    """
    module = kernel(name)
    setattr(module, "outputs", lambda state: actual)  # noqa: B010 - mypy: modules have no such
    if expected is not None:
        setattr(module, "reference", lambda size, runs: expected)  # noqa: B010
    return serve.failed_check(module, None, size, runs)
