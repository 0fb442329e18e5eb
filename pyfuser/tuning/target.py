"""What kernels are emitted for: `Target`, a value that is made once from the machine (`host`)."""

from __future__ import annotations

import ctypes
import platform

from pyfuser.ir.dtypes import DType
from pyfuser.ir.maths import FUNCTIONS
from pyfuser.support.caches import once
from pyfuser.support.records import dataclass
from pyfuser.tuning.host import cpu_flags, is_intel

Function = tuple[str, DType]

_LANES = {DType.FLOAT64: ("", "4", "8"), DType.FLOAT32: ("f", "8", "16")}


@dataclass(frozen=True, slots=True)
class Target:
    """A processor, and the C library's vector maths there.

    vector_bytes: of the widest vectors: 64 (AVX-512), 32 (AVX), or 16. intel: whether it is one of
    Intel's: some code was measured to be faster on these only. vector_maths: the functions, each
    for arguments of a dtype, that the library has for vectors of 32 and of 64 bytes (glibc's
    libmvec).
    """

    vector_bytes: int = 16
    intel: bool = False
    vector_maths: frozenset[Function] = frozenset()

    @property
    def avx512_of_intel(self) -> bool:
        """Whether it is one of Intel's with AVX-512: others were measured apart."""
        return self.intel and self.vector_bytes == 64


@once
def host() -> Target:
    """The processor that runs this."""
    flags = cpu_flags()
    vector_bytes = 64 if "avx512f" in flags else 32 if "avx" in flags else 16
    return Target(vector_bytes, is_intel(), _vector_maths(flags))


def _vector_maths(flags: frozenset[str]) -> frozenset[Function]:
    """What libmvec has, if there is one and the processor can run its AVX2 kernels.

    Before glibc 2.35 that is exp, log, sin, cos and pow.
    """
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return frozenset()
    try:
        library = ctypes.CDLL("libmvec.so.1") if {"avx2", "fma"} <= flags else None
    except OSError:
        return frozenset()
    return frozenset(
        (name, dtype)
        for name, function in FUNCTIONS.items()
        for dtype, (suffix, narrow, wide) in _LANES.items()
        if function.c_name
        and all(
            hasattr(library, f"_ZGV{lanes}{'v' * function.arity}_{function.c_name}{suffix}")
            for lanes in (f"dN{narrow}", f"eN{wide}")
        )
    )
