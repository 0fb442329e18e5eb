"""The compiled hot path (see docs/hot.md): there if it was built and fits, and if it is allowed."""

from __future__ import annotations

import importlib
from typing import Any

from pyfuser.support.settings import SETTINGS

INTERFACE = 2
"""Of the extension that fits this source: raised whenever either side changes what they share."""


def _load() -> Any:
    if not SETTINGS.extension:
        return None
    try:
        found = importlib.import_module("pyfuser._hot")
    except ImportError:  # it was not built: there was no C compiler
        return None
    return found if found.INTERFACE == INTERFACE else None


HOT: Any = _load()
"""The extension, or None: then Python does all of its work, with the same results."""
