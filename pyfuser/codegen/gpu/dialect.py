"""What differs between GPU languages: `Dialect`; each has one, and a header, in `gpu.dialects`.

A dialect's header gives every other piece of an emitted kernel the same vocabulary:
`pf_thread(x)`, `pf_barrier()`, `pf_exchange_32(...)`. Nothing is included, so a source compiles
with a GPU's run-time compiler as well as with others, and what the user calls a local cannot meet a
macro of a header.
"""

from __future__ import annotations

from collections.abc import Callable

from pyfuser.ir.dtypes import DType
from pyfuser.support.records import dataclass

Native = Callable[[str, DType], str]
Library = Callable[[str, DType], "tuple[str, str]"]


DEVICE, SHARED = "__device__", "__shared__"
"""What marks a function of the GPU, and memory of a block, in all languages."""

BUILTINS = ("threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize")
"""Names of CUDA's variables, which no local may have."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """One language for GPU kernels.

    name: "cuda"; the vocabulary is in the header of that name. globals: what stands before the
    namespace of a kernel. printf: the declaration that a call of printf needs. native(op, dtype):
    an expression over `cell` and `value` that applies `op` by an instruction of the processor and
    returns the old value, or "". library(name, dtype): how a function of the C library is called,
    and its declaration where it needs one. options: what compilers are told; exact: the same, where
    floating-point values must be those of other engines.
    """

    name: str
    globals: str
    printf: str
    native: Native
    library: Library
    options: tuple[str, ...]
    exact: tuple[str, ...]
