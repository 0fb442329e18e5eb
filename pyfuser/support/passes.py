"""Which passes are left out, to see what they gain: `PYFUSER_WITHOUT=name,name`.

`pipeline` has their names. Results are the same without them: a pass makes kernels faster.
"""

from __future__ import annotations

from pyfuser.support.settings import SETTINGS


def left_out(name: str) -> bool:
    """Whether a pass, by its name, is left out of this process's kernels."""
    return name in SETTINGS.without
