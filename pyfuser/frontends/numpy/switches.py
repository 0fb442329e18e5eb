"""When operations are recorded, and when NumPy computes them at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyfuser.frontends.modes import traced
from pyfuser.support.settings import SETTINGS
from pyfuser.trace.images import USE

LAZY_FROM = 1 << 14
"""Elements of the result from which an operation is recorded; fewer take NumPy a few microseconds,
which is what recording takes. Operations on what is pending are recorded whatever their size."""

ALWAYS = SETTINGS.numpy_lazy
"""Whether also the smallest operations are recorded, and every trace is compiled."""

EAGER = SETTINGS.numpy_eager
"""Whether NumPy computes everything at once."""

_LOUD = frozenset({"raise", "call", "print", "log"})

_STATE: Any = getattr(np._core.umath, "_extobj_contextvar", None)  # type: ignore[attr-defined]
_DEFAULT: Any = _STATE.get(None) if _STATE is not None else None


def threshold() -> int:
    """The number of elements from which operations are recorded; see `LAZY_FROM`."""
    return 1 if ALWAYS else LAZY_FROM


def recording() -> bool:
    """Whether operations may be recorded here."""
    return not EAGER and not USE.devices and traced(True)


def errors() -> dict[str, str] | None:
    """What floating-point errors do here, if it is not the default."""
    if _STATE is None or _STATE.get(None) is _DEFAULT:
        return None
    state: Any = np.geterr()
    return None if state == _USUAL else state


def is_loud(state: dict[str, str] | None) -> bool:
    """Whether a floating-point error would do more than warn, so that it has to come at once."""
    return state is not None and not _LOUD.isdisjoint(state.values())


_USUAL = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}
