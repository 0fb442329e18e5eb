"""What to say of names that PyKokkos does not have, and of `from pykokkos import *`."""

from __future__ import annotations

import sys
import warnings
from opcode import opname

from pyfuser.support.errors import WorkunitWarning

_OF_PYFUSER = frozenset({
    "calibrate", "disable", "discard", "enable", "explain", "fuse", "fusing", "pending", "stats",
    "sync", "unfused",
})  # fmt: skip
_REDUCERS = frozenset({"Max", "Min", "MinMax", "Prod", "Sum", "LAnd", "LOr", "BAnd", "BOr"})
_NUMPY = "use NumPy's on v.data, the array of a View's memory, as in v.data.{name}()"
_INSTEAD = {
    **dict.fromkeys(("max", "min", "prod", "std", "sort", "cumsum", "argmin"), _NUMPY),
    **dict.fromkeys(("maximum", "minimum"), "use pk.fmax(v, w) or pk.fmin(v, w)"),
    **dict.fromkeys(("arange", "empty"), "use pk.array(np.{name}(...)), or pk.zeros(n)"),
    **dict.fromkeys(_REDUCERS, "parallel_reduce adds up, and PyKokkos has no other reducers"),
    "print": "print(view) shows a View, and pk.printf is for workunits",
}

_IMPORTS_STAR = ("IMPORT_STAR", "CALL_INTRINSIC_1")  # the latter from Python 3.12 on


def instead(name: str) -> str:
    """The end of a message about a name that the package does not have; empty: it may be a typo."""
    if name in _OF_PYFUSER:
        return f": write pyfuser.{name}, after `import pyfuser`"
    return f": {_INSTEAD[name]}".format(name=name) if name in _INSTEAD else ""


def warn_of_star() -> None:
    """Warn of `from pykokkos import *`, if that is what reads `__all__`: it gives no names."""
    frame = sys._getframe(2)
    if opname[frame.f_code.co_code[frame.f_lasti]] not in _IMPORTS_STAR:
        return
    warnings.warn_explicit(
        "`from pykokkos import *` imports nothing, as PyKokkos has it: write `import pykokkos as "
        "pk`, or the names, as in `from pykokkos import workunit, parallel_for`",
        WorkunitWarning,
        frame.f_code.co_filename,
        frame.f_lineno,
    )
