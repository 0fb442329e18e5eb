"""An error of the user's shows the user's lines, not the way through our own."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any

from pyfuser.errors import PyFuserError
from pyfuser.settings import SETTINGS

_PACKAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")
_OURS = (_PACKAGE, "<launch of ")  # the latter: see `engine.marshal`


def users_part(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames of this package; the whole of it if no other is left."""
    frames = []
    step = traceback
    while step is not None:
        if not step.tb_frame.f_code.co_filename.startswith(_OURS):
            frames.append(step)
        step = step.tb_next
    shown: TracebackType | None = None
    for step in reversed(frames):
        shown = TracebackType(shown, step.tb_frame, step.tb_lasti, step.tb_lineno)
    return shown or traceback


def install() -> None:
    """Print uncaught errors of ours, and Ctrl-C, so; with PYFUSER_DEBUG they are printed whole."""
    if SETTINGS.debug:
        return
    before: Callable[..., Any] = sys.excepthook

    def hook(
        kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, (PyFuserError, KeyboardInterrupt)):
            traceback = users_part(traceback)
            error.__traceback__ = traceback
        before(kind, error, traceback)

    sys.excepthook = hook
