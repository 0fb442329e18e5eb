"""Floating-point warnings of recorded operations, when NumPy computes them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

_REGISTRY: dict[Any, Any] = {}
"""What `warnings` keeps of the lines that warned, as a module's `__warningregistry__`."""

_USUAL = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}


class Warner:
    """Runs an operation so that floating-point errors warn at the line that recorded it."""

    __slots__ = ("_call", "_usual")

    def __init__(self) -> None:
        self._call: Any = None
        umath: Any = np._core.umath  # type: ignore[attr-defined]
        make = getattr(umath, "_make_extobj", None)  # what `errstate` sets, made once
        self._usual: Any = None
        if make is not None:
            kinds = {kind: "call" if how == "warn" else how for kind, how in _USUAL.items()}
            self._usual = umath._extobj_contextvar, make(call=self, **kinds)

    def run(self, call: Any, compute: Callable[[], None], state: dict[str, str] | None) -> None:
        """Run `compute` for a call, which messages call what `named` says.

        state: what the program wants, if it is not the default.
        """
        self._call, outer = call, self._call
        try:
            if state is None and self._usual is not None:
                variable, own = self._usual
                token = variable.set(own)
                try:
                    compute()
                finally:
                    variable.reset(token)
                return
            wanted = (state or _USUAL).items()
            kinds: Any = {kind: "call" if how == "warn" else how for kind, how in wanted}
            with np.errstate(call=self, **kinds):
                compute()
        finally:
            self._call = outer

    def __call__(self, kind: str, flags: int) -> None:
        call = self._call
        message = f"{kind} encountered in {call.named}"
        file, line = call.code.co_filename, call.line
        warnings.warn_explicit(message, RuntimeWarning, file, line, registry=_REGISTRY)


WARNER = Warner()
