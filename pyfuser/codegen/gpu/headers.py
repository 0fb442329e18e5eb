"""The headers of GPU units (see `c.headers`): a dialect's vocabulary, then what builds on it.

A header whose functions are not all used in every unit defines them without `static`: compilers
warn of static functions that nothing calls.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pyfuser.codegen.c.headers import COMMON, assembled
from pyfuser.codegen.gpu.dialect import Dialect
from pyfuser.codegen.gpu.team_analysis import LANES

_HERE = Path(__file__).parent
_FOLDERS = (_HERE / "dialects", _HERE / "runtime", COMMON)


def headers(names: Iterable[str], dialect: Dialect, many: bool = False) -> list[str]:
    """The texts of a unit's headers; the vocabulary has the first.

    many: whether so many values are joined that the code for it is there once.
    """
    words = {
        "PF_ALIGNED": "alignas(2 * sizeof(T))",  # loaded at once, and in reach of 8-byte atomics
        "PF_DEVICE": dialect.device,
        "PF_LANES": str(LANES),
        "PF_SHARED": dialect.shared,
        "PF_TOTAL_INLINE": "__attribute__((noinline))" if many else "inline",
    }
    _, texts = assembled([dialect.name, *sorted(names)], _FOLDERS, words)
    return texts
