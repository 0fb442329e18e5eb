"""PyFuser: fuses PyKokkos workunits into few, large kernels.

`import pyfuser` makes `import pykokkos` work: the installed PyKokkos, else the embedded one.
"""

from __future__ import annotations

import pyfuser.support.blas  # noqa: F401  # isort: split  # before NumPy is imported
from pyfuser.api import (
    calibrate,
    capture,
    disable,
    discard,
    enable,
    explain,
    fuse,
    fusing,
    load_ipython_extension,
    pending,
    stats,
    sync,
    unfused,
    unload_ipython_extension,
)
from pyfuser.frontends.embedded.register import register
from pyfuser.support.errors import (
    ArgumentError,
    ArgumentValueError,
    BoundsError,
    CacheError,
    CaptureWarning,
    CheckError,
    CompilerError,
    DeclinedError,
    DeviceError,
    DivisionError,
    KernelError,
    PyFuserError,
    PyFuserWarning,
    RaceError,
    SettingError,
    SettingWarning,
    StepError,
    UsageError,
    VerificationError,
    WorkunitError,
    WorkunitWarning,
)
from pyfuser.support.settings import SETTINGS, refuse
from pyfuser.support.tracebacks import install
from pyfuser.version import VERSION as __version__

__all__ = [
    "ArgumentError",
    "ArgumentValueError",
    "BoundsError",
    "CacheError",
    "CaptureWarning",
    "CheckError",
    "CompilerError",
    "DeclinedError",
    "DeviceError",
    "DivisionError",
    "KernelError",
    "PyFuserError",
    "PyFuserWarning",
    "RaceError",
    "SettingError",
    "SettingWarning",
    "StepError",
    "UsageError",
    "VerificationError",
    "WorkunitError",
    "WorkunitWarning",
    "__version__",
    "calibrate",
    "capture",
    "disable",
    "discard",
    "enable",
    "explain",
    "fuse",
    "fusing",
    "load_ipython_extension",
    "pending",
    "stats",
    "sync",
    "unfused",
    "unload_ipython_extension",
]

if not register():
    from pyfuser.frontends.upstream.install import install as hook_installed

    hook_installed()
elif SETTINGS.engine == "pykokkos":
    refuse(
        SettingError(
            "PYFUSER_ENGINE=pykokkos needs an installed PyKokkos, and none is used here: install "
            "it, and do not set PYFUSER_FRONTEND=embedded"
        )
    )
if not SETTINGS.debug:
    install()
if SETTINGS.on:  # as few programs ask for it, it takes no time of the others
    from pyfuser.run.program import watch_from_environment

    watch_from_environment()
