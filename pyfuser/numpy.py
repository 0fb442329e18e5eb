"""Lazy NumPy: `import pyfuser.numpy as np` in a program that is written for NumPy.

Values, types, shapes, strides, aliasing, exceptions and warnings are NumPy's. Operations on large
arrays are recorded, with those on Views, and run as few kernels when somebody reads a result.
"""

from __future__ import annotations

from typing import Any

import numpy

from pyfuser.frontends.numpy.namespace import NAMES, find

globals().update(NAMES)


def __getattr__(name: str) -> Any:
    """All else that NumPy has."""
    if name == "__all__" or (name.startswith("__") and name != "__version__"):
        raise AttributeError(name)
    value = globals()[name] = find(name)
    return value


def __dir__() -> list[str]:
    return sorted({*NAMES, *dir(numpy)})
