"""The compiled hot path (see docs/hot.md): there if it was built and fits, and if it is allowed."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from pyfuser.support.settings import SETTINGS

Owner = TypeVar("Owner")
Initializer = TypeVar("Initializer", bound=Callable[..., None])

INTERFACE = 27
"""Of the extension that fits this source: raised whenever either side changes what they share."""

NUMPY_INTERFACE = 13


def _load(name: str, interface: int) -> Any:
    if not SETTINGS.extension:
        return None
    try:
        found = importlib.import_module(name)
    except ImportError:  # it was not built: there was no C compiler
        return None
    return found if interface == found.INTERFACE else None


HOT: Any = _load("pyfuser._hot", INTERFACE)
"""The extension, or None: then Python does all of its work, with the same results."""

NUMPY: Any = _load("pyfuser._numpy", NUMPY_INTERFACE)
"""The same of lazy NumPy's arrays."""


def with_buffer(owner: type[Owner]) -> type[Owner]:
    """A decorator for a class with `__buffer__`: before Python 3.12 the extension sees to it."""
    if HOT is not None and sys.version_info < (3, 12):
        HOT.give_buffer(owner)
    return owner


def numpys_api() -> Any:
    """The table of NumPy's C API, in a capsule."""
    core = "numpy._core" if "numpy._core" in sys.modules else "numpy.core"  # before NumPy 2
    return importlib.import_module(f"{core}._multiarray_umath")._ARRAY_API


RANGE, BOX = range(2)
"""What `usual_init` knows, as hot/policies.c does."""


def usual_init(kind: int) -> Callable[[Initializer], Initializer]:
    """A decorator for an `__init__`: the extension does what is usual."""
    return lambda function: function if HOT is None else HOT.Init(function, kind)
