"""Makes `import pykokkos` work where no PyKokkos is installed."""

from __future__ import annotations

import importlib.util
import os
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

from pyfuser.frontends.embedded import annotations as parameter_types
from pyfuser.frontends.embedded import (
    array_functions,
    atomics,
    bin_sort,
    creation,
    data_types,
    decorators,
    dispatch,
    ext_module,
    linalg,
    misc,
    policies,
    pykokkos,
    random,
    spaces,
)
from pyfuser.support.errors import PyFuserError
from pyfuser.support.settings import SETTINGS

#: Modules of PyKokkos that programs import, and what stands for them.
_MODULES: dict[str, ModuleType] = {
    "pykokkos": pykokkos,
    "pykokkos.interface": pykokkos,
    "pykokkos.interface.accumulator": parameter_types,
    "pykokkos.interface.data_types": data_types,
    "pykokkos.interface.decorators": decorators,
    "pykokkos.interface.execution_policy": policies,
    "pykokkos.interface.execution_space": spaces,
    "pykokkos.interface.layout": spaces,
    "pykokkos.interface.memory_space": spaces,
    "pykokkos.interface.parallel_dispatch": dispatch,
    "pykokkos.interface.views": pykokkos,
    "pykokkos.interface.atomic": atomics,
    "pykokkos.interface.bin_sort": bin_sort,
    "pykokkos.interface.ext_module": ext_module,
    "pykokkos.interface.random": random,
    "pykokkos.interface.timer": misc,
    "pykokkos.kokkos_manager": pykokkos,
    "pykokkos.lib": pykokkos,
    "pykokkos.lib.constants": pykokkos,
    "pykokkos.lib.create": creation,
    "pykokkos.lib.info": misc,
    "pykokkos.lib.manipulate": array_functions,
    "pykokkos.lib.ufuncs": pykokkos,
    "pykokkos.lib.util": array_functions,
    "pykokkos.linalg": linalg,
    "pykokkos.linalg.l3_blas": linalg,
}


_STAND_INS = {
    os.path.join("kernels", "pykokkos", "__init__.py"): 2,
    os.path.join("pyfuser", "run", "spawned", "pykokkos.py"): 1,
}
"""Modules that give way to the PyKokkos there is, and how far above them their folder is."""


def installed() -> bool:
    """Whether another PyKokkos is installed or already imported; does not import it."""
    known = sys.modules.get("pykokkos")
    if known is not None:
        return known is not pykokkos
    try:
        spec = importlib.util.find_spec("pykokkos")
        for end, above in _STAND_INS.items():
            if spec is not None and spec.origin is not None and spec.origin.endswith(end):
                spec = _find_without(spec.origin.rsplit(os.sep, above)[0])
    except (ImportError, ValueError):
        return False
    return spec is not None


def _find_without(folder: str) -> ModuleSpec | None:
    """What else of this name there is."""
    path = list(sys.path)
    sys.path[:] = [entry for entry in path if os.path.abspath(entry) != os.path.abspath(folder)]
    try:
        return importlib.util.find_spec("pykokkos")
    finally:
        sys.path[:] = path


def register() -> bool:
    """Let `import pykokkos` give the embedded one, unless another is installed; tell whether so.

    PYFUSER_FRONTEND=embedded asks for the embedded one in any case. Raises PyFuserError if another
    is imported by then, because its Views and policies would mix with ours.
    """
    forced = SETTINGS.frontend == "embedded"
    if installed():
        if not forced:
            return False
        if "pykokkos" in sys.modules:
            raise PyFuserError(
                "PYFUSER_FRONTEND=embedded, but the installed PyKokkos is already imported: "
                "import pyfuser before pykokkos"
            )
    take_the_place()
    return True


def take_the_place() -> None:
    """Be what `import pykokkos` gives, also in a process that found a shim as this repository's
    `kernels/pykokkos` is: one that gives way to whatever PyKokkos there is.
    """
    sys.modules.update(_MODULES)
