"""Lazy NumPy: `import pyfuser.numpy as np` in a program that is written for NumPy.

Values, types, shapes, strides, aliasing, exceptions and warnings are NumPy's. Operations on large
arrays are recorded, with those on Views, and run as few kernels when somebody reads a result.
"""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec
from typing import Any

import numpy

from pyfuser.frontends.numpy.fallbacks import Module
from pyfuser.frontends.numpy.namespace import NAMES, find
from pyfuser.support.settings import SETTINGS
from pyfuser.trace.call import GPU_SPACES

globals().update(NAMES)

__path__: list[str] = []


class _Modules:
    """Finds the modules that NumPy's has below it, for `import pyfuser.numpy.random`."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if not name.startswith(f"{__name__}."):
            return None
        try:
            importlib.import_module(_numpys(name))
        except ModuleNotFoundError:
            return None
        return ModuleSpec(name, _Modules, is_package=True)  # type: ignore[arg-type]

    @staticmethod
    def create_module(spec: ModuleSpec) -> Any:
        return Module(spec.name[len(__name__) + 1 :], sys.modules[_numpys(spec.name)])

    @staticmethod
    def exec_module(module: Any) -> None:
        """It is made as it is found."""


def _numpys(name: str) -> str:
    return name.replace(__name__, "numpy", 1)


if SETTINGS.space in GPU_SPACES:
    NAMES["set_space"](SETTINGS.space)

sys.meta_path.insert(0, _Modules)  # before what reads `numpy.__path__`


def __getattr__(name: str) -> Any:
    """All else that NumPy has."""
    if name == "__all__" or (name.startswith("__") and name != "__version__"):
        raise AttributeError(name)
    value = globals()[name] = find(name)
    return value


def __dir__() -> list[str]:
    return sorted({*NAMES, *dir(numpy)})
