"""The compiled hot path (see docs/hot.md): there if it was built and fits, and if it is allowed."""

from __future__ import annotations

import importlib
from typing import Any

from pyfuser.support.settings import SETTINGS

INTERFACE = 7
"""Of the extension that fits this source: raised whenever either side changes what they share."""

NUMPY_INTERFACE = 1


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
