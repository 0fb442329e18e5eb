"""When operations are recorded, and when NumPy computes them at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyfuser.frontends.embedded.devices import enter_stream
from pyfuser.frontends.modes import traced
from pyfuser.frontends.numpy.spaces import SPACE
from pyfuser.support.settings import SETTINGS
from pyfuser.trace.images import USE

LAZY_FROM = 1 << 16
"""Elements of the result from which an operation is recorded. Recording one takes 4 to 7
microseconds, as NumPy takes for half as many; with what a launch takes, fewer elements do not pay.
Operations on what is pending are recorded whatever their size."""

COSTLY_FROM = 1 << 12
"""The same of functions that take NumPy some nanoseconds an element, as `sin` does."""

SURE_FROM = 1 << 20
"""Elements from which that is so the first time. Of fewer, the operations of a function of the
program are recorded once they have moved enough memory for kernels to be worth compiling: until
then NumPy computes them, and to record them would only slow them down."""


ROWS_FROM = 16
"""Rows from which their reductions are recorded, ..."""

COLUMNS_FROM = 1 << 12
"""... and columns: each is an iteration."""


class Limits:
    """The numbers of elements from which operations are recorded: of most, of costly functions.

    sure: from which they are without more ado (see `SURE_FROM`).
    rows, columns: the numbers of results from which reductions are recorded. small: calls on fewer
    elements that were recorded one after the other. after: the first call of their trace. exact:
    what kernels compute with other bits than NumPy is not recorded. eager: nothing is.
    """

    __slots__ = ("after", "columns", "costly", "eager", "exact", "most", "rows", "small", "sure")

    def __init__(self, always: bool, exact: bool) -> None:
        self.exact = exact
        self.eager = SETTINGS.numpy_eager
        self.most = 1 if always else LAZY_FROM
        self.costly = 1 if always else COSTLY_FROM
        self.sure = 1 if always else SURE_FROM
        self.rows = 1 if always else ROWS_FROM
        self.columns = 1 if always else COLUMNS_FROM
        self.small = 0
        self.after = -1

    def first(self, costly: bool) -> int:
        """From how many elements an operation is recorded the first time that it comes."""
        least = self.costly if costly else self.most
        return least if SPACE.device else max(least, self.sure)


LIMITS = Limits(SETTINGS.numpy_lazy, SETTINGS.numpy_exact)

_LOUD = frozenset({"raise", "call", "print", "log"})

_STATE: Any = getattr(np._core.umath, "_extobj_contextvar", None)  # type: ignore[attr-defined]
_DEFAULT: Any = _STATE.get(None) if _STATE is not None else None


def recording() -> bool:
    """Whether operations may be recorded here."""
    if LIMITS.eager or not traced(True):
        return False
    if not SPACE.device:
        return not USE.devices
    enter_stream()
    return True


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
