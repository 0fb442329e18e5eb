"""NumPy called as if from the program's own line, so that its warnings name that line.

A warning belongs to the code that runs when NumPy warns: its file and line are told, and its module
remembers which lines have warned. Between the program and NumPy there is only code of ours; so the
call is made by a function whose code says that it is the program's line, with its module's names.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

from pyfuser.frontends.numpy.record import program_frame
from pyfuser.support.caches import Table

_CALL: CodeType = (lambda function, args, kwargs: function(*args, **kwargs)).__code__

_LINES: Table[tuple[int, int], tuple[CodeType, CodeType]] = Table("lines that call NumPy", 1024)
"""By id() of the code of the program and line: that code, and one that calls from there."""


def as_program(function: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """What the function returns, called from the program's line. Raises what it raises."""
    frame = program_frame(sys._getframe(1))
    of, line = frame.f_code, frame.f_lineno or 1
    known = _LINES.get((id(of), line))
    if known is None or known[0] is not of:
        code = _CALL.replace(co_filename=of.co_filename, co_firstlineno=line, co_name=of.co_name)
        known = _LINES.keep((id(of), line), (of, code))
    try:
        return FunctionType(known[1], frame.f_globals)(function, args, kwargs)
    except BaseException as error:
        own = error.__traceback__
        if own is not None and own.tb_next is not None:  # the program's line is there already
            own.tb_next = own.tb_next.tb_next
        raise
