"""Makes `import pykokkos` work where no PyKokkos is installed."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

from pyfuser.errors import PyFuserError
from pyfuser.frontends.embedded import annotations as parameter_types
from pyfuser.frontends.embedded import (
    data_types,
    decorators,
    dispatch,
    policies,
    pykokkos,
    spaces,
    views,
)
from pyfuser.settings import SETTINGS

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
    "pykokkos.interface.views": views,
    "pykokkos.kokkos_manager": pykokkos,
}


def installed() -> bool:
    """Whether another PyKokkos is installed or already imported; does not import it."""
    known = sys.modules.get("pykokkos")
    if known is not None:
        return known is not pykokkos
    try:
        return importlib.util.find_spec("pykokkos") is not None
    except (ImportError, ValueError):
        return False


def register() -> None:
    """Let `import pykokkos` give the embedded one, unless another is installed.

    PYFUSER_FRONTEND=embedded asks for the embedded one in any case. Raises PyFuserError if another
    is imported by then, because its Views and policies would mix with ours.
    """
    forced = SETTINGS.frontend == "embedded"
    if installed():
        if not forced:
            return
        if "pykokkos" in sys.modules:
            raise PyFuserError(
                "PYFUSER_FRONTEND=embedded, but the installed PyKokkos is already imported: "
                "import pyfuser before pykokkos"
            )
    sys.modules.update(_MODULES)
