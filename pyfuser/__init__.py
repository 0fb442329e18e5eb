"""PyFuser: fuses PyKokkos workunits into few, large kernels.

`import pyfuser` makes `import pykokkos` work: the installed PyKokkos, else the embedded one.
"""

from __future__ import annotations

from pyfuser.api import disable, enable, fuse, fusing, pending, sync, unfused
from pyfuser.errors import PyFuserError
from pyfuser.frontends.embedded.register import register

__all__ = [
    "PyFuserError",
    "disable",
    "enable",
    "fuse",
    "fusing",
    "pending",
    "sync",
    "unfused",
]

register()
